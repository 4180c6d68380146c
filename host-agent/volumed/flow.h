/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which flow of a volume a request belongs to, from where it is on the disk.  Pure.
 *
 * A server of disks does not know which query of a database a request is for.  But a scan can be
 * seen: each of its requests begins where the one before ended.  A request that does so with
 * EBB_FLOW_RUN others before it belongs to a scan, which has a flow of its own; all others are in
 * flow 0.  Ends of earlier requests are kept for the EBB_FLOW_RUNS that continued last, so a scan
 * stays known beside any other requests as long as it has one in so many.
 *
 * A caller that knows better, for example with a connection for each query, uses its own numbers.
 */
#ifndef EBB_VOLUMED_FLOW_H
#define EBB_VOLUMED_FLOW_H

#include <stdint.h>

#define EBB_FLOW_RUNS	7u		/* flows 1 to 7 */
#define EBB_FLOW_RUN	3u		/* requests that continued, before a run is a scan */

struct ebb_flow_run {
	uint64_t end;			/* where its next request would begin */
	uint64_t used;			/* when it continued, in requests of the volume; 0: free */
	uint32_t length;		/* requests that continued */
};

/* Of a volume; all zero at first. */
struct ebb_flow {
	uint64_t count;			/* requests */
	struct ebb_flow_run runs[EBB_FLOW_RUNS];
};

/* The flow of a request that came, 0 to EBB_FLOW_RUNS. */
unsigned int ebb_flow_of(struct ebb_flow *f, uint64_t offset, uint64_t bytes);

#endif
