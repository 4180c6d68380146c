/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What volumed/meter.h must count, reckoned anew from a trace of arrivals, issues and completions:
 * afterwards, volume by volume, request by request and unit by unit.  It shares no code with the
 * meter but the size of a unit.
 */
#ifndef EBB_TEST_METER_RECKON_H
#define EBB_TEST_METER_RECKON_H

#include <stddef.h>
#include <stdint.h>

#define RECKON_NEVER	UINT64_MAX	/* not until the end of the trace */

struct reckon_request {
	uint64_t arrived, issued, completed;	/* times */
	uint64_t arrived_nth, issued_nth;	/* places in the trace: some are at the same time */
	uint64_t bytes;
};

/* A volume with one promise from time 0 to `end`; requests in the order in which they came. */
struct reckon_volume {
	uint64_t iops;			/* promised; not 0 */
	uint64_t interval, end;		/* end: a whole number of intervals */
	const struct reckon_request *requests;
	size_t num;
};

struct reckon_outcome {
	uint64_t charged, early, missed, violated, violated_intervals, overdue;
	uint64_t due_requests, late_nsec, late_max_nsec, late_units;
	uint64_t waiting_nsec, pending_nsec, waited_nsec;
	uint64_t *delays;		/* of the due_requests, in order of length */
};

/* The caller frees ret->delays. */
void reckon(const struct reckon_volume *v, struct reckon_outcome *ret);

#endif
