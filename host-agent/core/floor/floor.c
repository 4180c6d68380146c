// SPDX-License-Identifier: GPL-2.0-or-later
/* See floor.h. */
#include "core/floor/floor.h"
#include "model/sla.h"

/* The room's own part of a VM. */
static struct ebb_vm_floor *own(const struct ebb_vm *vm)
{
	return (struct ebb_vm_floor *)&vm->floor;
}

void floor_start(const struct ebb_vm *vm)
{
	*own(vm) = (struct ebb_vm_floor){ 0 };
}

void floor_stop(const struct ebb_vm *vm)
{
	floor_start(vm);
}

void floor_forget(const struct ebb_vm *vm)
{
	own(vm)->seen = (struct ebb_relio){ 0 };
	own(vm)->told_mib = 0;
}

/* ---- promises that are made ---------------------------------------------- */

/* Blocks of all guest nodes. */
static uint32_t asked(const struct ebb_vm *vm)
{
	uint32_t sum = 0;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		sum += ebb_sla_promised_blocks(&vm->sla, g);
	return sum;
}

/* Whether the promise can be kept: the SLA may have lowered the maximum of a node below it. */
static bool may_hold(const struct ebb_vm *vm)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		if (vm->floor.promised[g] > vm->sla.nodes[g].mem_max - vm->sla.nodes[g].mem_min)
			return false;
	return true;
}

void floor_review(const struct floor_room *s, const struct ebb_vm *vm)
{
	struct ebb_vm_floor *f = own(vm);
	bool is_same = true, is_lowered = true;

	f->is_raised = false;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const uint32_t blocks = ebb_sla_promised_blocks(&vm->sla, g);

		is_same = is_same && f->promised[g] == blocks;
		is_lowered = is_lowered && f->promised[g] >= blocks;
	}
	if (f->promised_mib == 0)
		return;
	/* More than it has may have been refused before the SLA asked for what it has again. */
	if (is_same) {
		f->is_refused = false;
		return;
	}
	if (!is_lowered && may_hold(vm)) {
		f->is_raised = true;
		return;
	}
	f->is_lowered = is_lowered;
	f->promised_mib = 0;
	for (uint16_t g = 0; g < EBB_MAX_GUEST_NODES; g++)
		f->promised[g] = f->booked[g] = 0;
	core_mark(s->env, vm);
}

bool floor_is_open(const struct ebb_vm *vm)
{
	const struct ebb_vm_floor *f = &vm->floor;

	return f->is_raised || (f->promised_mib == 0 && (f->is_refused || asked(vm) > 0));
}

/* Blocks of a node that a promise counts for: where overbooking is allowed, not all of them. */
static uint32_t booked(const struct floor_room *s, uint32_t blocks)
{
	const uint32_t percent = s->env->cfg.promise.overbook_percent;

	return (uint32_t)(((uint64_t)blocks * 100 + percent - 1) / percent);
}

/* Once for each value that the SLA asks for. */
static void refuse(const struct floor_room *s, usec_t now, const struct ebb_vm *vm, uint16_t h,
		   uint64_t left)
{
	struct ebb_vm_floor *f = own(vm);
	const uint64_t left_mib = left * s->env->cfg.promise.overbook_percent / 100 *
				  EBB_BLOCK_MIB;
	const uint32_t mib = vm->sla.reserve_mem_mib;

	if (f->is_raised && (!f->is_refused || f->refused_mib != mib))
		core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
			  "reserve-mem %u is not promised: node %u of the host has %llu MiB for "
			  "it; the promise of %u MiB holds", mib, h, (unsigned long long)left_mib,
			  f->promised_mib);
	else if (!f->is_refused)
		core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
			  "reserve-mem %u is not promised: node %u of the host has %llu MiB left "
			  "to promise; the VM runs without a promise", mib, h,
			  (unsigned long long)left_mib);
	f->is_refused = true;
	f->refused_mib = mib;
	f->short_node = h;
	f->short_mib = (uint32_t)left_mib;
}

static void promise(const struct floor_room *s, usec_t now, const struct ebb_vm *vm)
{
	struct ebb_vm_floor *f = own(vm);
	const uint32_t blocks = asked(vm);

	f->is_refused = f->is_raised = false;
	f->promised_mib = blocks * EBB_BLOCK_MIB;
	f->control = (struct floor_control){ .want = blocks };
	f->seen = (struct ebb_relio){ .doubt_until = f->seen.doubt_until };
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		f->promised[g] = ebb_sla_promised_blocks(&vm->sla, g);
		f->booked[g] = booked(s, f->promised[g]);
	}
	core_mark(s->env, vm);
	if (blocks > 0)
		core_text(core_record(s->env, vm, now, EBB_EVENT_SLA)->text,
			  "the hit ratio of a cache of %u MiB is promised", f->promised_mib);
}

void floor_admit(const struct floor_room *s, usec_t now, const struct ebb_vm *vm,
		 uint64_t used[EBB_MAX_NODES])
{
	uint64_t need[EBB_MAX_NODES] = { 0 }, before[EBB_MAX_NODES] = { 0 };

	own(vm)->is_lowered = false;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const uint16_t h = vm->sla.nodes[g].host_node;

		need[h] += booked(s, ebb_sla_promised_blocks(&vm->sla, g));
		before[h] += vm->floor.booked[g];
	}
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++) {
		const uint64_t has = s->env->nodes[h].mem_capacity;
		const uint64_t others = used[h] - before[h];

		if (need[h] > before[h] && others + need[h] > has) {
			refuse(s, now, vm, h, has > others ? has - others : 0);
			return;
		}
	}
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++)
		used[h] += need[h] - before[h];
	promise(s, now, vm);
}

/* ---- floors --------------------------------------------------------------- */

/* Guest node g's part of the floor that the VM wants. */
static uint32_t wanted(const struct ebb_vm *vm, uint16_t g)
{
	const struct ebb_vm_floor *f = &vm->floor;
	const uint64_t all = f->promised_mib / EBB_BLOCK_MIB;

	if (all == 0 || !vm->is_admitted)
		return 0;
	return (uint32_t)(((uint64_t)f->promised[g] * f->control.want + all - 1) / all);
}

static void settle_node(struct floor_room *s, uint16_t h)
{
	uint64_t minimums = 0, left;
	size_t num = 0;

	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t g = 0; vm->is_admitted && g < vm->sla.num_nodes; g++) {
			if (vm->sla.nodes[g].host_node != h)
				continue;
			minimums += vm->sla.nodes[g].mem_min;
			s->claims[num++] = (struct ebb_shortage_claim){
				.want = wanted(vm, g), .penalty = vm->sla.penalty,
			};
		}
	}
	left = s->env->nodes[h].mem_capacity;
	left = left > minimums ? left - minimums : 0;
	ebb_shortage_divide(s->claims, s->parts, num, s->env->cfg.promise.overbook_policy, left);
	num = 0;
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
			if (vm->sla.nodes[g].host_node == h)
				own(vm)->keep[g] = vm->is_admitted ? s->claims[num++].keep : 0;
	}
}

void floor_settle(struct floor_room *s)
{
	bool has_promises = false;

	for (size_t i = 0; i < s->env->num_active; i++)
		has_promises = has_promises || s->env->active[i]->floor.promised_mib > 0;
	/* Once more after the last one, so that no floor is left over. */
	if (!has_promises && !s->had_promises)
		return;
	s->had_promises = has_promises;
	for (uint16_t h = 0; h < s->env->host.num_nodes; h++)
		settle_node(s, h);
}

/* Blocks that the VM holds beyond its minimums. */
static uint32_t held(const struct ebb_vm *vm)
{
	uint32_t sum = 0;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		if (vm->pools[g].held > vm->sla.nodes[g].mem_min)
			sum += vm->pools[g].held - vm->sla.nodes[g].mem_min;
	return sum;
}

static void doubt(const struct floor_room *s, usec_t now, const struct ebb_vm *vm,
		  const struct ebb_relio_interval *i)
{
	char *text = core_record(s->env, vm, now, EBB_EVENT_ERROR)->text;
	const unsigned seconds = EBB_RELIO_DOUBT_USEC / EBB_USEC_PER_SEC;

	if (i->is_back)
		core_text(text, "its database's counts of I/Os went back: for %u s they are not "
			  "believed, and the memory that its promise takes stays as it is",
			  seconds);
	else
		core_text(text, "its database counted %llu I/Os, and %llu of its simulated cache, "
			  "in %.1f s: for %u s that is not believed",
			  (unsigned long long)i->actual, (unsigned long long)i->baseline,
			  (double)i->length / EBB_USEC_PER_SEC, seconds);
}

bool floor_report(const struct floor_room *s, usec_t now, const struct ebb_vm *vm,
		  const struct ebb_telemetry *t)
{
	struct ebb_vm_floor *f = own(vm);
	struct ebb_relio_interval i;
	enum ebb_relio_verdict verdict;

	if (f->promised_mib == 0 || !ebb_relio_is_due(&f->seen, now, s->env->cfg.meter_usec))
		return false;
	verdict = ebb_relio_take(&f->seen, now, f->promised_mib, t, &i);
	if (i.is_new_doubt)
		doubt(s, now, vm, &i);
	return floor_step(&f->control, f->promised_mib / EBB_BLOCK_MIB, held(vm), verdict, &i);
}

void floor_node(const struct floor_room *s, uint16_t host_node, struct ebb_mem_promise_node *ret)
{
	const uint64_t percent = s->env->cfg.promise.overbook_percent;
	uint64_t most = s->env->nodes[host_node].mem_capacity, taken = 0, promised = 0;

	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t g = 0; vm->is_admitted && g < vm->sla.num_nodes; g++) {
			if (vm->sla.nodes[g].host_node != host_node)
				continue;
			most -= vm->sla.nodes[g].mem_min < most ? vm->sla.nodes[g].mem_min : most;
			taken += vm->floor.booked[g];
			promised += vm->floor.promised[g];
		}
	}
	*ret = (struct ebb_mem_promise_node){
		.most_bytes = most * EBB_BLOCK_BYTES,
		.allowed_bytes = most * percent / 100 * EBB_BLOCK_BYTES,
		.promised_bytes = promised * EBB_BLOCK_BYTES,
		.free_bytes = (most > taken ? most - taken : 0) * percent / 100 * EBB_BLOCK_BYTES,
	};
}

/* ---- what guests are told -------------------------------------------------- */

static uint32_t tells(const struct ebb_vm *vm)
{
	return vm->can_baseline ? vm->floor.promised_mib : 0;
}

bool floor_must_tell(const struct ebb_vm *vm)
{
	return vm->floor.told_mib != tells(vm);
}

void floor_tell(const struct ebb_vm *vm, struct ebb_action_limits *l)
{
	struct ebb_vm_floor *f = own(vm);

	f->told_mib = tells(vm);
	for (uint16_t g = 0; f->told_mib > 0 && g < vm->sla.num_nodes; g++)
		l->nodes[g].mem_promise_mib = f->promised[g] * EBB_BLOCK_MIB;
}
