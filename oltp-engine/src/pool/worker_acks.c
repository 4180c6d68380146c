// SPDX-License-Identifier: GPL-2.0-or-later
/* See worker_acks.h. */
#include "worker_acks.h"

void acks_push(struct acks *acks, uint64_t epoch, uint64_t start_ns)
{
	uint32_t at = (acks->first + acks->n - 1) % ACKS_EPOCHS;

	if (!acks->n || acks->epochs[at].epoch != epoch) {
		at = (acks->first + acks->n++) % ACKS_EPOCHS;
		acks->epochs[at].epoch = epoch;
		acks->epochs[at].n = 0;
		acks->epochs[at].n_starts = 0;
	}
	acks->epochs[at].n++;
	if (!start_ns)
		return;
	acks->epochs[at].n_starts++;
	acks->starts[(acks->first_start + acks->n_starts++) % ACKS_STARTS] = start_ns;
}

static void measure(struct acks *acks, uint32_t n, uint64_t now_ns, struct hist *hist)
{
	for (uint32_t i = 0; hist && i < n; i++) {
		uint64_t start_ns = acks->starts[(acks->first_start + i) % ACKS_STARTS];

		/* One that was taken while its rate changed may be a little early. */
		hist_record(hist, now_ns > start_ns ? now_ns - start_ns : 0);
	}
	acks->first_start = (acks->first_start + n) % ACKS_STARTS;
	acks->n_starts -= n;
}

uint64_t acks_take(struct acks *acks, uint64_t durable, uint64_t now_ns, struct hist *hist)
{
	uint64_t taken = 0;

	while (acks_are_due(acks, durable)) {
		taken += acks->epochs[acks->first].n;
		measure(acks, acks->epochs[acks->first].n_starts, now_ns, hist);
		acks->first = (acks->first + 1) % ACKS_EPOCHS;
		acks->n--;
	}
	return taken;
}
