// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The account of a VM: CPU time, memory and I/O of its whole life, on all its hosts.  Each agent
 * adds its own counters to those of the agents before it.  The device keeps the sum and takes it
 * along to another host.
 */
#include <errno.h>

#include "core/internal.h"

/* All members are of 64 bits; the first one is the writer. */
#define NUM_COUNTERS	(sizeof(struct ebb_account) / sizeof(uint64_t))
_Static_assert(NUM_COUNTERS == 2 + 2 * EBB_CLASS_MAX + 2 * 9, "an array of uint64_t");

/* The counters of this agent in this run; charges go on from its history. */
static void counted_here(const struct ebb_vm *vm, struct ebb_account *ret)
{
	const struct ebb_vm_charge *c = &vm->charge;

	*ret = (struct ebb_account){
		.age = c->at - c->since, .cpu = vm->promise.sum, .mem = vm->promised_cache.sum,
	};
	for (int k = 0; k < EBB_CLASS_MAX; k++) {
		ret->core_usec[k] = c->core_usec[k];
		ret->mib_usec[k] = c->mib_usec[k];
	}
}

void ebb_vm_account(const struct ebb_vm *vm, struct ebb_account *ret)
{
	const uint64_t *before = (const uint64_t *)&vm->before;
	uint64_t *sum = (uint64_t *)ret;

	counted_here(vm, ret);
	for (size_t i = 1; i < NUM_COUNTERS; i++)
		sum[i] += before[i];
}

/*
 * The device has more than this agent has counted.  The difference is from earlier agents: of
 * another host, or of this one if their counters did not reach the history.  So it counts once,
 * however often the device says it, and also for a VM that comes back to a host.  It never becomes
 * less: after a loss of the link the device has what it was given before.
 */
int core_account_take(struct ebb_state *s, struct ebb_vm *vm, const struct ebb_account *a)
{
	uint64_t *before = (uint64_t *)&vm->before;
	const uint64_t *all = (const uint64_t *)a;
	struct ebb_account own;
	const uint64_t *here = (const uint64_t *)&own;

	if (!vm->is_running || !vm->link_up)
		return -ENOENT;
	core_charge(&s->env, vm);
	counted_here(vm, &own);
	for (size_t i = 1; i < NUM_COUNTERS; i++)
		if (all[i] > here[i] && all[i] - here[i] > before[i])
			before[i] = all[i] - here[i];
	return 0;
}

bool core_account_emit(struct ebb_state *s, struct ebb_vm *vm, struct ebb_actions *out)
{
	struct ebb_action *a;

	if (!vm->work->is_account_due)
		return true;
	a = core_emit(out, vm, EBB_ACTION_ACCOUNT);
	if (!a)
		return false;
	core_charge(&s->env, vm);
	ebb_vm_account(vm, &a->u.account);
	a->u.account.writer = s->env.cfg.writer;
	vm->work->is_account_due = false;
	return true;
}

void core_account_all(struct ebb_state *s)
{
	for (size_t i = 0; i < s->env.num_active; i++) {
		struct ebb_vm *vm = s->active[i];

		vm->work->is_account_due = vm->link_up && vm->can_account && s->env.cfg.writer;
		if (vm->work->is_account_due)
			core_mark(&s->env, vm);
	}
}
