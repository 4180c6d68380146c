// SPDX-License-Identifier: GPL-2.0-or-later
/* Pools: messages to devices, the limit of the memory cgroup, and libvirt's view. */
#include <errno.h>
#include <string.h>

#include "core/mem/mem.h"

/* ---- the limit of the memory cgroup (M7) --------------------------------- */

/* All that the VM may hold at present or as soon as it is told its limits. */
static uint64_t cap_needed(const struct mem_room *s, const struct ebb_vm *vm)
{
	uint64_t bytes = s->env->cfg.mem_overhead_bytes;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_pool *p = &vm->pools[g];
		const uint32_t reach = core_pool_reach(p);

		bytes += vm->boot_bytes[g];
		bytes += (reach > p->limit ? reach : p->limit) * EBB_BLOCK_BYTES;
	}
	return bytes;
}

static bool cap_allows(const struct mem_room *s, const struct ebb_vm *vm)
{
	const struct ebb_vm_cap *c = &vm->cap;
	uint64_t sure = c->bytes;

	if (c->is_missing)
		return true;
	if (c->action && c->setting < sure)
		sure = c->setting;
	return sure >= cap_needed(s, vm);
}

static bool has_demand(const struct ebb_vm *vm)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		if (vm->pools[g].num_due > 0)
			return true;
	return false;
}

static bool reconcile_cap(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
			  struct ebb_actions *out)
{
	struct ebb_vm_cap *c = mem_own_cap(vm);
	const uint64_t need = cap_needed(s, vm);
	struct ebb_action *a;

	if (c->action || c->is_missing || need == c->bytes)
		return true;
	/* While blocks are on their way back one step at the end will do. */
	if (c->bytes > 0 && need < c->bytes && has_demand(vm))
		return true;
	if (now < c->retry_at && need <= c->setting) {
		core_wake_at(vm, c->retry_at);
		return true;
	}
	a = core_emit(out, vm, EBB_ACTION_MEM_CAP);
	if (!a)
		return false;
	a->id = core_action_id(s->env, vm, 0);
	a->u.cap_bytes = need;
	c->action = a->id;
	c->setting = need;
	return true;
}

static void cap_done(const struct mem_room *s, usec_t now, const struct ebb_vm *vm, int err)
{
	struct ebb_vm_cap *c = mem_own_cap(vm);

	c->action = 0;
	if (err == 0) {
		c->bytes = c->setting;
		c->failures = 0;
		c->retry_at = 0;
		return;
	}
	if (err == -EOPNOTSUPP) {
		c->is_missing = true;
		core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
			  "libvirt has no memory cgroup for it: a guest that writes to memory it "
			  "does not hold is not stopped");
		return;
	}
	/* The call may or may not have set the limit: it is not known any more. */
	if (err == -ETIMEDOUT)
		c->bytes = 0;
	c->failures++;
	c->retry_at = now + core_backoff(s->env, c->failures);
	/* The process has ended, which is reported next. */
	if ((err == -ESRCH || err == -ENOENT) && c->failures == 1)
		return;
	core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
		  "setting the limit of its memory cgroup to %llu MiB failed: %s (%u in a row)",
		  (unsigned long long)(c->setting >> 20), strerror(-err), c->failures);
}

/* ---- messages ------------------------------------------------------------ */

/* The limit that the device is to be told, now or when it can be. */
static uint32_t goal(const struct ebb_vm *vm, uint16_t g)
{
	const struct ebb_vm_pool *p = &vm->pools[g];

	/*
	 * Without our driver the kernel's own would take what is requested, and never give it
	 * back.
	 */
	return p->is_there && vm->has_driver && core_counts_as_driven(vm) ? p->limit : 0;
}

static uint32_t pool_tells(const struct mem_room *s, const struct ebb_vm *vm, uint16_t g)
{
	const struct ebb_vm_pool *p = &vm->pools[g];
	const uint32_t want = goal(vm, g);

	/*
	 * One after the other: only then does a report say for certain which of the limits that
	 * were told the device has taken over.
	 */
	if (p->told != p->requested)
		return p->told;
	return want <= p->told || cap_allows(s, vm) ? want : p->told;
}

/* The cut-off that goes with a demand: memory worth less is to be given back first. */
static uint64_t cutoff(const struct mem_room *s, const struct ebb_vm *vm, uint16_t g)
{
	const struct ebb_vm_pool *p = &vm->pools[g];

	return vm->can_vom && p->num_due > 0 && p->held > pool_tells(s, vm, g) ?
		       vm->vom.cutoff[g] : 0;
}

bool mem_must_tell(const struct mem_room *s, const struct ebb_vm *vm)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_pool *p = &vm->pools[g];

		if (p->must_tell || p->told != pool_tells(s, vm, g) ||
		    p->told_cutoff != cutoff(s, vm, g) ||
		    p->told_due != (p->num_due ? p->due[0].at : 0))
			return true;
	}
	return false;
}

/* When to ask a device that has not taken over what it was told. */
static usec_t patience_ends_at(const struct mem_room *s, const struct ebb_vm_pool *p)
{
	return p->told == p->requested ? EBB_TIME_NEVER : p->told_at + s->env->cfg.link_grace_usec;
}

void mem_tell(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
		     struct ebb_action_limits *l)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct ebb_vm_pool *p = mem_own_pool(vm, g);
		const uint32_t tells = pool_tells(s, vm, g);

		if (p->told != tells || p->must_tell)
			p->told_at = now;
		p->told = tells;
		if (p->promised < tells)
			p->promised = tells;
		p->must_tell = false;
		p->told_cutoff = cutoff(s, vm, g);
		l->nodes[g].mem_cutoff = p->told_cutoff;
		core_wake_at(vm, patience_ends_at(s, p));
		p->told_due = p->num_due ? p->due[0].at : 0;
		l->nodes[g].mem_held_bytes = p->held * EBB_BLOCK_BYTES;
		l->nodes[g].mem_limit_bytes = tells * EBB_BLOCK_BYTES;
		if (p->held > tells)
			l->nodes[g].mem_deadline_ms = core_left_ms(p->told_due, now);
	}
}

/* The level that is overdue, UINT32_MAX if none is. */
static uint32_t overdue(const struct ebb_vm_pool *p, usec_t now)
{
	uint32_t level = UINT32_MAX;

	for (uint16_t i = 0; i < p->num_due && p->due[i].at <= now; i++)
		level = p->due[i].limit;
	return level;
}

/* When the guest is told what goes at a deadline. */
static usec_t leaves_at(const struct mem_room *s, const struct ebb_vm *vm, usec_t deadline)
{
	const usec_t ahead = vm->can_leave ? s->env->cfg.leave_usec : 0;

	return deadline > ahead ? deadline - ahead : 0;
}

/* The guest unplugs with its own hands, so that nothing that still reads a block reads zeroes. */
static bool leave(const struct mem_room *s, usec_t now, const struct ebb_vm *vm, uint16_t g,
		  struct ebb_actions *out)
{
	struct ebb_vm_pool *p = mem_own_pool(vm, g);
	struct ebb_action *a;

	if (p->num_due == 0 || now < leaves_at(s, vm, p->due[0].at) || now >= p->due[0].at ||
	    p->told > p->due[0].limit || (p->is_leaving && p->leave_to <= p->due[0].limit))
		return true;
	a = core_emit(out, vm, EBB_ACTION_REVOKE);
	if (!a)
		return false;
	a->u.pool.node = g;
	a->u.pool.bytes = p->due[0].limit * EBB_BLOCK_BYTES;
	a->u.pool.is_leave = true;
	p->is_leaving = true;
	p->leave_to = p->due[0].limit;
	return true;
}

/* After LIMITS: otherwise the guest could plug again the blocks that are revoked. */
bool mem_revoke(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
		struct ebb_actions *out)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct ebb_vm_pool *p = mem_own_pool(vm, g);
		const uint32_t level = overdue(p, now);
		struct ebb_action *a;

		if (!leave(s, now, vm, g, out))
			return false;
		if (level == UINT32_MAX || p->told > level ||
		    (p->is_revoking && p->revoke_to <= level && now < p->revoke_retry_at))
			continue;
		a = core_emit(out, vm, EBB_ACTION_REVOKE);
		if (!a)
			return false;
		a->u.pool.node = g;
		a->u.pool.bytes = level * EBB_BLOCK_BYTES;
		if (p->is_revoking && now >= p->revoke_retry_at)
			core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
				  "node %u: the device did not take memory down to %u MiB within "
				  "%u ms (%u MiB held); told "
				  "again", g, p->revoke_to * EBB_BLOCK_MIB,
				  (unsigned)((now - p->revoke_at) / EBB_USEC_PER_MSEC),
				  p->held * EBB_BLOCK_MIB);
		if (!p->is_revoking) {
			p->revoke_at = now;
			p->revoke_due_at = p->due[0].at;
			p->revoked = 0;
		}
		p->is_revoking = true;
		p->revoke_to = level;
		p->revoke_retry_at = now + s->env->cfg.confirm_usec;
		core_wake_at(vm, p->revoke_retry_at);
	}
	return true;
}

/* ---- libvirt's view of the requested size -------------------------------- */

static bool reconcile_mirror(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
			     uint16_t g,
			     struct ebb_actions *out)
{
	struct ebb_vm_pool *p = mem_own_pool(vm, g);
	struct ebb_action *a;
	usec_t at;

	/* Only a size that will stay: libvirt sets the device to it once more. */
	if (p->mirror_action || !p->is_there || !vm->link_up || p->mirrored == p->told ||
	    p->told != p->requested || p->told != goal(vm, g))
		return true;
	at = (p->limit_at > p->told_at ? p->limit_at : p->told_at) + s->env->cfg.tidy_usec;
	if (now < at) {
		core_wake_at(vm, at);
		return true;
	}
	a = core_emit(out, vm, EBB_ACTION_MEM_MIRROR);
	if (!a)
		return false;
	a->id = core_action_id(s->env, vm, 0);
	a->u.pool.node = g;
	a->u.pool.bytes = p->told * EBB_BLOCK_BYTES;
	p->mirror_action = a->id;
	p->mirroring = p->told;
	return true;
}

/* ---- all of it ----------------------------------------------------------- */

static void record_release(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
			   uint16_t g)
{
	struct ebb_vm_pool *p = mem_own_pool(vm, g);
	const bool is_met = p->told_due > 0 && p->num_due == 0;
	struct ebb_record *r;

	if (p->released == 0)
		return;
	/* A guest may give and take thousands of times in a second. */
	if (!is_met && now < p->released_at + s->env->cfg.tidy_usec) {
		core_wake_at(vm, p->released_at + s->env->cfg.tidy_usec);
		return;
	}
	r = core_record(s->env, vm, now, EBB_EVENT_MEM_RELEASE);
	r->node = g;
	r->bytes = p->released * EBB_BLOCK_BYTES;
	core_text(r->text, "the guest gave %u MiB back: %u held, limit %u",
		  p->released * EBB_BLOCK_MIB, p->held * EBB_BLOCK_MIB, p->limit * EBB_BLOCK_MIB);
	p->released = 0;
}

/* A device that does not take over its limits: connected anew it says what it has. */
static void check_confirmed(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
			    uint16_t g)
{
	const struct ebb_vm_pool *p = &vm->pools[g];
	const usec_t until = patience_ends_at(s, p);

	if (now < until) {
		core_wake_at(vm, until);
		return;
	}
	core_close_link(vm);
	core_text(core_record(s->env, vm, now, EBB_EVENT_LINK)->text,
		  "closing the link: node %u was told %u MiB and reports a requested size of %u "
		  "MiB",
		  g, p->told * EBB_BLOCK_MIB, p->requested * EBB_BLOCK_MIB);
}

static void check_mirrored(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
			   uint16_t g)
{
	struct ebb_vm_pool *p = mem_own_pool(vm, g);

	if (p->mirroring == 0 || p->mirror_action)
		return;
	if (now < p->mirror_until) {
		core_wake_at(vm, p->mirror_until);
		return;
	}
	p->mirroring = 0;
	core_stale(s->env, vm);
}

void mem_settle(const struct mem_room *s, usec_t now, const struct ebb_vm *vm)
{
	mem_update_due(vm, now);
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct ebb_vm_pool *p = mem_own_pool(vm, g);

		record_release(s, now, vm, g);
		check_mirrored(s, now, vm, g);
		if (!vm->link_up)
			continue;
		check_confirmed(s, now, vm, g);
		for (uint16_t i = 0; i < p->num_due; i++)
			if (p->due[i].at > now) {
				const usec_t at = leaves_at(s, vm, p->due[i].at);

				core_wake_at(vm, at > now ? at : p->due[i].at);
			}
		if (p->is_revoking && p->revoke_retry_at > now)
			core_wake_at(vm, p->revoke_retry_at);
	}
}

bool mem_act(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
			  struct ebb_actions *out)
{
	/* Once limited it stays so: also where the SLA gives no memory any more. */
	if ((ebb_sla_has_mem(&vm->sla) || vm->cap.bytes > 0) && !reconcile_cap(s, now, vm, out))
		return false;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		if (!reconcile_mirror(s, now, vm, g, out))
			return false;
	return true;
}

static void mirror_done(const struct mem_room *s, usec_t now, const struct ebb_vm *vm, uint16_t g)
{
	struct ebb_vm_pool *p = mem_own_pool(vm, g);

	/* A failure is not tried again: the next change of the limit is. */
	p->mirrored = p->mirroring;
	p->mirror_action = 0;
	/* Late: the device may yet report that it was set, and is told again then. */
	p->mirror_until = now + s->env->cfg.confirm_usec;
	if (p->mirroring <= p->told)
		p->mirroring = 0;
	core_touch(s->env, vm);
}

void mem_done(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
	      const struct ebb_fact_action_done *f)
{
	if (f->type == EBB_ACTION_MEM_CAP) {
		if (f->id != vm->cap.action)
			return;
		cap_done(s, now, vm, f->err);
		core_touch(s->env, vm);
		return;
	}
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		if (vm->pools[g].mirror_action == f->id)
			mirror_done(s, now, vm, g);
}
