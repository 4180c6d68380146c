// SPDX-License-Identifier: GPL-2.0-or-later
/* See cores.h. */
#include <errno.h>
#include <stddef.h>

#include "core/cpu/cores.h"

int ebb_cores_own(struct ebb_cores *c, uint16_t thread, const void *vm, uint16_t vcpu)
{
	if (thread >= c->host->num_threads)
		return -EINVAL;
	if (c->owner[thread].vm)
		return -EBUSY;
	c->owner[thread].vm = vm;
	c->owner[thread].vcpu = vcpu;
	c->num_owned[c->host->threads[thread].core]++;
	return 0;
}

void ebb_cores_release(struct ebb_cores *c, uint16_t thread)
{
	if (thread >= c->host->num_threads || !c->owner[thread].vm)
		return;
	c->owner[thread].vm = NULL;
	c->num_owned[c->host->threads[thread].core]--;
}

uint16_t ebb_cores_pick(const struct ebb_cores *c, uint16_t node, bool allow_ht)
{
	uint16_t shared = EBB_THREAD_NONE;

	for (uint16_t i = 0; i < c->host->num_cores; i++) {
		const struct ebb_core *core = &c->host->cores[i];

		if (core->node != node || core->is_shared)
			continue;
		if (c->num_owned[i] == 0)
			return core->threads[0];
		for (uint16_t rank = 0; rank < core->num_threads; rank++)
			if (shared == EBB_THREAD_NONE && !c->owner[core->threads[rank]].vm)
				shared = core->threads[rank];
	}
	return allow_ht ? shared : EBB_THREAD_NONE;
}

bool ebb_cores_is_ht(const struct ebb_cores *c, uint16_t thread)
{
	if (thread >= c->host->num_threads)
		return false;
	return c->num_owned[c->host->threads[thread].core] > (c->owner[thread].vm ? 1 : 0);
}
