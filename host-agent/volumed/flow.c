/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scans among the requests of a volume. */
#include "volumed/flow.h"

unsigned int ebb_flow_of(struct ebb_flow *f, uint64_t offset, uint64_t bytes)
{
	struct ebb_flow_run *oldest = &f->runs[0];

	f->count++;
	for (unsigned int i = 0; i < EBB_FLOW_RUNS; i++) {
		struct ebb_flow_run *run = &f->runs[i];

		if (run->used && run->end == offset) {
			run->end = offset + bytes;
			run->used = f->count;
			if (run->length < EBB_FLOW_RUN)
				run->length++;
			return run->length == EBB_FLOW_RUN ? i + 1 : 0;
		}
		if (run->used < oldest->used)
			oldest = run;
	}
	*oldest = (struct ebb_flow_run){ .end = offset + bytes, .used = f->count };
	return 0;
}
