// SPDX-License-Identifier: GPL-2.0-or-later
/* Pools: what their devices report, and demands for memory until they are met. */
#include <errno.h>
#include <string.h>

#include "core/mem/mem.h"

/* Rounded up: a block of which a part is held is not free. */
static uint32_t blocks_of(uint64_t bytes)
{
	return (uint32_t)((bytes + EBB_BLOCK_BYTES - 1) / EBB_BLOCK_BYTES);
}

/* ---- reports ------------------------------------------------------------- */

static void revoke_is_done(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
			   uint16_t g)
{
	struct ebb_vm_pool *p = mem_own_pool(vm, g);
	struct ebb_record *r = core_record(s->env, vm, now, EBB_EVENT_MEM_REVOKE);

	r->node = g;
	r->bytes = (p->left + p->revoked) * EBB_BLOCK_BYTES;
	/* Before the deadline if no force was needed. */
	if (p->is_revoking) {
		r->agent_usec = p->revoke_at - p->revoke_due_at;
		r->total_usec = now - p->revoke_due_at;
	}
	core_text(r->text, "%u MiB taken, %u of them by force: %u held, limit %u, and %u ms %s",
		  (p->left + p->revoked) * EBB_BLOCK_MIB, p->revoked * EBB_BLOCK_MIB,
		  p->held * EBB_BLOCK_MIB, p->limit * EBB_BLOCK_MIB, vm->sla.mem_deadline_ms,
		  p->is_revoking ? "have passed" : "are about to end");
	p->is_revoking = false;
	p->left = p->revoked = 0;
}

static void take_report(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
			const struct ebb_pool_fact *f)
{
	struct ebb_vm_pool *p = mem_own_pool(vm, f->node);
	const uint32_t reach = core_pool_reach(p), held = blocks_of(f->held_bytes);
	const uint32_t unconfirmed = blocks_of(f->unconfirmed_bytes);
	const uint32_t taken = unconfirmed > p->unconfirmed ? unconfirmed - p->unconfirmed : 0;
	const bool is_other = held != p->held;
	const bool was_confirmed = p->requested == p->told;

	if (held + taken < p->held && p->is_leaving) {
		p->left += p->held - held - taken;
	} else if (held + taken < p->held) {
		if (p->released == 0)
			p->released_at = now;
		p->released += p->held - held - taken;
	}
	core_charge(s->env, vm);
	if (is_other)
		s->env->cycle->held_has_changed = true;
	p->held = held;
	p->unconfirmed = unconfirmed;
	p->requested = blocks_of(f->requested_bytes);
	if (p->requested == p->told)
		p->promised = p->told;
	else if (was_confirmed)
		/* Somebody else has changed it. */
		p->must_tell = true;
	if (p->is_revoking) {
		p->revoked += taken;
		if (p->held <= p->revoke_to)
			revoke_is_done(s, now, vm, f->node);
	} else if (p->left > 0 && p->held <= p->leave_to) {
		revoke_is_done(s, now, vm, f->node);
	}
	core_mark(s->env, vm);
	/* Without quorum the limit follows what is held. */
	if (core_pool_reach(p) != reach || (is_other && !s->env->has_quorum))
		core_stale(s->env, vm);
}

int mem_report(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
	       const struct ebb_fact_mem *f)
{
	if (!vm->is_running || !vm->link_up)
		return -ENOENT;
	for (uint16_t i = 0; i < f->num_pools; i++)
		if (f->pools[i].node >= vm->sla.num_nodes)
			return -EINVAL;
	for (uint16_t i = 0; i < f->num_pools; i++)
		take_report(s, now, vm, &f->pools[i]);
	return 0;
}

static const struct ebb_pool_fact *find_pool(const struct ebb_fact_hello *f, uint16_t g)
{
	for (uint16_t i = 0; i < f->num_pools; i++)
		if (f->pools[i].node == g)
			return &f->pools[i];
	return NULL;
}

static bool pool_fits(const struct ebb_vm *vm, const struct ebb_pool_fact *f)
{
	return f && f->block_bytes == EBB_BLOCK_BYTES &&
	       f->size_bytes / EBB_BLOCK_BYTES >= vm->pool_blocks[f->node];
}

static void record_misfit(const struct mem_room *s, usec_t now, const struct ebb_vm *vm, uint16_t g,
			  const struct ebb_pool_fact *f)
{
	struct ebb_record *r = core_record(s->env, vm, now, EBB_EVENT_ERROR);

	r->node = g;
	if (f)
		core_text(r->text,
			  "the pool of node %u has %llu MiB in blocks of %u KiB, by the domain "
			  "it is "
			  "%u MiB in blocks of %llu KiB: it gets no memory there",
			  g, (unsigned long long)(f->size_bytes >> 20), f->block_bytes >> 10,
			  vm->pool_blocks[g] * EBB_BLOCK_MIB, EBB_BLOCK_BYTES >> 10);
	else
		core_text(r->text,
			  "the SLA gives node %u memory, but the device has no pool there "
			  "(property pools): it gets none",
			  g);
}

/* The device was last told the size that it reports as requested, by this agent or another. */
static void begin_link(struct ebb_vm_pool *p)
{
	p->told = p->promised = p->requested;
	/* While nobody could be told nothing is taken away: the time begins anew. */
	p->num_due = 0;
	p->is_revoking = false;
	p->is_leaving = false;
}

void mem_hello(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
		      const struct ebb_fact_hello *f)
{
	const bool is_first_of_run = !core_has_hello(vm);

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_pool_fact *fact = find_pool(f, g);
		struct ebb_vm_pool *p = mem_own_pool(vm, g);
		const bool was_there = p->is_there;

		p->is_there = pool_fits(vm, fact);
		if ((f->is_first || was_there) && !p->is_there && vm->sla.nodes[g].mem_max > 0)
			record_misfit(s, now, vm, g, fact);
		if (p->is_there != was_there || is_first_of_run)
			s->env->cycle->plan_is_stale = true;
		if (is_first_of_run)
			p->held = 0;
		take_report(s, now, vm, fact ? fact : &(struct ebb_pool_fact){ .node = g });
		if (f->is_first)
			begin_link(p);
		/* An agent that was restarted takes over what the last one had offered. */
		if (is_first_of_run && core_is_found(vm))
			p->limit = p->requested;
		p->must_tell = true;
	}
}

/* ---- runs ---------------------------------------------------------------- */

void mem_start(const struct ebb_vm *vm, const struct ebb_fact_vm_running *f)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct ebb_vm_pool *p = mem_own_pool(vm, g);

		/*
		 * Found by an agent that starts: the last one may have told it anything, and
		 * libvirt may not know yet.
		 */
		p->requested = core_is_found(vm) ? vm->pool_blocks[g] : f->mem_blocks[g];
		p->mirrored = core_is_found(vm) ? UINT32_MAX : f->mem_blocks[g];
	}
}

void mem_stop(const struct ebb_vm *vm)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		*mem_own_pool(vm, g) = (struct ebb_vm_pool){ 0 };
	*mem_own_cap(vm) = (struct ebb_vm_cap){ 0 };
}

/* ---- limits -------------------------------------------------------------- */

void mem_set_target(const struct ebb_vm *vm, uint16_t g, uint32_t target)
{
	mem_own_pool(vm, g)->target = target;
}

void mem_set_limit(const struct mem_room *s, usec_t now, const struct ebb_vm *vm, uint16_t g,
		   uint32_t limit)
{
	struct ebb_vm_pool *p = mem_own_pool(vm, g);
	struct ebb_record *r;

	/* Nothing can be told before the device has said what the last agent left. */
	if (p->limit == limit || (core_is_found(vm) && !core_has_hello(vm)))
		return;
	core_mark(s->env, vm);
	r = core_record(s->env, vm, now,
			limit > p->limit ? EBB_EVENT_MEM_OFFER : EBB_EVENT_MEM_DEMAND);
	r->node = g;
	r->bytes = limit * EBB_BLOCK_BYTES;
	core_text(r->text, "memory limit %u -> %u MiB: %u held, goal %u of policy %s%s",
		  p->limit * EBB_BLOCK_MIB, limit * EBB_BLOCK_MIB, p->held * EBB_BLOCK_MIB,
		  p->target * EBB_BLOCK_MIB, s->env->policy->name,
		  limit < p->limit && limit >= p->held ? "; nothing to give back" : "");
	p->limit = limit;
	p->limit_at = now;
}

/* ---- demands ------------------------------------------------------------- */

static void drop_first(struct ebb_vm_pool *p)
{
	p->num_due--;
	memmove(&p->due[0], &p->due[1], p->num_due * sizeof(p->due[0]));
}

/* The limit has risen: demands below it are taken back. */
static void take_back(struct ebb_vm_pool *p)
{
	for (uint16_t i = 0; i < p->num_due; i++)
		if (p->due[i].limit < p->limit) {
			p->due[i].limit = p->limit;
			/* Demands for still less have this level, too, and come later. */
			p->num_due = (uint16_t)(i + 1);
		}
}

static void update_due(struct ebb_vm_pool *p, usec_t deadline)
{
	struct ebb_mem_due *last;

	take_back(p);
	while (p->num_due > 0 && p->held <= p->due[0].limit)
		drop_first(p);
	/* No demand goes down to leave_to any more: blocks that have left count as given back. */
	if (p->num_due == 0 || p->leave_to < p->due[p->num_due - 1].limit) {
		p->is_leaving = false;
		p->released += p->left;
		p->left = 0;
	}
	if (p->held <= p->limit)
		return;
	last = p->num_due ? &p->due[p->num_due - 1] : NULL;
	if (last && last->limit <= p->limit)
		return;
	/* A shorter deadline in a new SLA does not overtake older demands. */
	if (last && last->at > deadline)
		deadline = last->at;
	/* With no more room the last demand is met together with this one, later. */
	if (p->num_due == EBB_MEM_DUES)
		p->num_due--;
	p->due[p->num_due++] = (struct ebb_mem_due){ .at = deadline, .limit = p->limit };
}

void mem_update_due(const struct ebb_vm *vm, usec_t now)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		update_due(mem_own_pool(vm, g),
			   now + vm->sla.mem_deadline_ms * EBB_USEC_PER_MSEC);
}
