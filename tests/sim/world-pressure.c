// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Violations and moves, counted again: from what the pools hold, and by the records alone, which
 * must take turns.  CPU times are not simulated, so that this is about memory.
 */
#include <string.h>

#include "tests/sim/world.h"

void world_pressure_forget(struct world *w)
{
	memset(w->pressure, 0, sizeof(w->pressure));
	for (unsigned i = 0; i < WORLD_VMS; i++) {
		w->vms[i].should_move = false;
		w->vms[i].move_at = 0;
	}
}

/* Blocks that the VM has of a node of the host. */
static uint64_t has(const struct ebb_vm *vm, uint16_t h)
{
	uint64_t sum = 0;

	for (uint16_t g = 0; vm && vm->is_running && g < vm->sla.num_nodes; g++)
		if (vm->sla.nodes[g].host_node == h)
			sum += vm->pools[g].held + vm->pools[g].unconfirmed;
	return sum;
}

/* Whether a record says that something ends. */
static bool is_end(const struct ebb_record *r)
{
	for (enum ebb_pressed what = 0; what < EBB_PRESSED_MAX; what++)
		if (r->code == ebb_pressed_code(what, true))
			return true;
	return false;
}

static bool is_of(const struct ebb_record *r, enum ebb_pressed what)
{
	return r->code == ebb_pressed_code(what, false) || r->code == ebb_pressed_code(what, true);
}

static void note_violation(struct world *w, const struct ebb_record *r)
{
	const bool ends = r->code == ebb_pressed_code(EBB_PRESSED_MEMORY, true);
	struct world_pressure *p = &w->pressure[r->node];

	/* What VMs that share cores use is up to the world, and not counted here. */
	if (is_of(r, EBB_PRESSED_CPU) || is_of(r, EBB_PRESSED_CORE))
		return;
	if (r->node >= w->host.num_nodes || (!ends && r->code != EBB_PRESSED_MEMORY)) {
		world_fail(w, "a violation of %s on node %u", ebb_pressed_code_name(r->code),
			   r->node);
		return;
	}
	if (ends != p->is_on)
		world_fail(w, "node %u: a violation %s twice", r->node, ends ? "ends" : "begins");
	if (ends && r->total_usec != r->at - p->on_at)
		world_fail(w, "node %u: a violation lasted %llu us, not %llu", r->node,
			   (unsigned long long)(r->at - p->on_at),
			   (unsigned long long)r->total_usec);
	p->is_on = !ends;
	p->on_at = r->at;
	w->num_violations += !ends;
}

static void note_move(struct world *w, const struct ebb_record *r, unsigned i)
{
	const bool ends = is_end(r);
	const usec_t cooldown = w->cfg.pressure.cool_down_s * EBB_USEC_PER_SEC;
	struct world_vm *v = &w->vms[i];

	if (ends != v->should_move)
		world_fail(w, "vm%u: a move %s twice", i, ends ? "ends" : "begins");
	v->should_move = !ends;
	if (ends)
		return;
	w->num_moves++;
	if (v->move_at && r->at < v->move_at + cooldown)
		world_fail(w, "vm%u should move, and was told so a moment ago", i);
	v->move_at = r->at;
	if (is_of(r, EBB_PRESSED_CPU))
		return;
	if (!w->pressure[r->node].is_on)
		world_fail(w, "vm%u should move for node %u, which is well", i, r->node);
	if (has(world_vm(w, i), r->node) == 0)
		world_fail(w, "vm%u should move, which would not help node %u", i, r->node);
	if (ebb_state_policy(w->state)->mem_review_usec == 0)
		world_fail(w, "vm%u should move, though the policy hands out all there is", i);
}

void world_pressure_note(struct world *w, const struct ebb_record *r)
{
	if (r->event == EBB_EVENT_VIOLATION)
		note_violation(w, r);
	for (unsigned i = 0; r->event == EBB_EVENT_MOVE && i < WORLD_VMS; i++)
		if (w->vms[i].is_defined && memcmp(w->vms[i].uuid, r->uuid, 16) == 0)
			note_move(w, r, i);
}

static void mark(usec_t *since, bool is_so, usec_t now)
{
	if (!is_so)
		*since = 0;
	else if (!*since)
		*since = now;
}

void world_pressure_check(struct world *w)
{
	const struct ebb_pressure *c = &w->cfg.pressure;
	const usec_t window = c->memory_window_s * EBB_USEC_PER_SEC;

	if (!ebb_state_is_loaded(w->state))
		return;
	for (uint16_t h = 0; h < w->host.num_nodes; h++) {
		const uint64_t all = w->host.pool_blocks[h];
		struct world_pressure *p = &w->pressure[h];
		uint64_t held = 0;

		for (size_t i = 0; i < ebb_state_num_vms(w->state); i++)
			held += has(ebb_state_vm_at(w->state, i), h);
		mark(&p->above_since, held > all * c->memory_threshold_percent / 100, w->now);
		mark(&p->low_since, held <= all * c->memory_target_percent / 100, w->now);
		if (p->above_since && w->now >= p->above_since + window && !p->is_on)
			world_fail(w, "node %u: %llu of %llu blocks held since %llu, and no "
				   "violation", h, (unsigned long long)held,
				   (unsigned long long)all, (unsigned long long)p->above_since);
		if (p->low_since && w->now >= p->low_since + window && p->is_on)
			world_fail(w, "node %u: %llu of %llu blocks held since %llu, and a "
				   "violation", h, (unsigned long long)held,
				   (unsigned long long)all, (unsigned long long)p->low_since);
	}
	for (unsigned i = 0; i < WORLD_VMS; i++) {
		const struct ebb_vm *vm = w->vms[i].is_defined ? world_vm(w, i) : NULL;

		if (vm && vm->move.is_on != w->vms[i].should_move)
			world_fail(w, "vm%u: the records say that it should%s move", i,
				   w->vms[i].should_move ? "" : " not");
		if (vm && vm->move.is_on && vm->move.pressed == EBB_PRESSED_MEMORY &&
		    has(vm, vm->move.host_node) == 0)
			world_fail(w, "vm%u should move, which would not help any more", i);
	}
}
