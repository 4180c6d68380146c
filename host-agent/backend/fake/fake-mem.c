// SPDX-License-Identifier: GPL-2.0-or-later
/* The pools of a simulated VM: the device's side, and what its guest does with them. */
#include <errno.h>
#include <string.h>

#include "fake.h"

/* A REVOKE may reach the device this much before the deadline in LIMITS, which is rounded up. */
#define DEADLINE_SLACK	(2 * EBB_USEC_PER_MSEC)
/* LIMITS may cross a HELLO. */
#define CROSSING_SLACK	EBB_USEC_PER_MSEC

void fake_mem_define(const struct ebb_fake *f, struct fake_vm *vm)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes && !f->cfg.has_no_pools; g++)
		vm->pools[g].pub.size = vm->sla.nodes[g].mem_max;
}

void fake_mem_clear(struct fake_vm *vm)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		vm->pools[g] = (struct fake_pool){ .pub.size = vm->pools[g].pub.size };
	vm->cap_bytes = 0;
}

void fake_mem_unplug_all(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		vm->pools[g].pub.held = vm->pools[g].pub.unconfirmed = 0;
	fake_device_mem(f, now, vm);
}

uint16_t fake_mem_list(const struct fake_vm *vm, struct ebb_pool_fact *ret_pools)
{
	uint16_t num = 0;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_fake_pool *p = &vm->pools[g].pub;

		if (p->size == 0)
			continue;
		ret_pools[num++] = (struct ebb_pool_fact){
			.node = g,
			.block_bytes = EBB_BLOCK_BYTES,
			.size_bytes = p->size * EBB_BLOCK_BYTES,
			.requested_bytes = p->requested * EBB_BLOCK_BYTES,
			.held_bytes = p->held * EBB_BLOCK_BYTES,
			.unconfirmed_bytes = p->unconfirmed * EBB_BLOCK_BYTES,
		};
	}
	return num;
}

/* ---- the device ---------------------------------------------------------- */

static void check_limit(struct ebb_fake *f, usec_t now, const struct fake_vm *vm, uint16_t g,
			uint64_t bytes)
{
	if (bytes % EBB_BLOCK_BYTES || bytes > vm->pools[g].pub.size * EBB_BLOCK_BYTES)
		fake_violate(f, vm, "node %u is told %llu bytes of pool memory", g,
			     (unsigned long long)bytes);
	if (bytes > vm->pools[g].pub.requested * EBB_BLOCK_BYTES && !vm->has_driver &&
	    now > vm->reset_at + CROSSING_SLACK)
		fake_violate(f, vm, "node %u is offered memory, no driver runs", g);
}

/* The memory cgroup was raised before. */
static void check_cap(struct ebb_fake *f, const struct fake_vm *vm)
{
	uint64_t bytes = 0;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_fake_pool *p = &vm->pools[g].pub;

		bytes += EBB_FAKE_BOOT_BYTES +
			 (p->held > p->requested ? p->held : p->requested) * EBB_BLOCK_BYTES;
	}
	if (!f->cfg.has_no_cap && vm->cap_bytes < bytes)
		fake_violate(f, vm, "may hold %llu bytes, its memory cgroup allows %llu",
			     (unsigned long long)bytes, (unsigned long long)vm->cap_bytes);
}

void fake_mem_limits(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
		     const struct ebb_action_limits *limits)
{
	bool is_raised = false, is_changed = false;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct fake_pool *p = &vm->pools[g];
		const uint32_t requested =
			(uint32_t)(limits->nodes[g].mem_limit_bytes / EBB_BLOCK_BYTES);

		check_limit(f, now, vm, g, limits->nodes[g].mem_limit_bytes);
		if (limits->nodes[g].mem_cutoff && !limits->nodes[g].mem_deadline_ms)
			fake_violate(f, vm, "node %u is told a cut-off, nothing is demanded", g);
		is_raised = is_raised || requested > p->pub.requested;
		is_changed = is_changed || requested != p->pub.requested;
		p->pub.requested = requested;
		p->due_at = limits->nodes[g].mem_deadline_ms ?
				    now + limits->nodes[g].mem_deadline_ms * EBB_USEC_PER_MSEC : 0;
	}
	if (is_raised)
		check_cap(f, vm);
	if (is_changed)
		fake_device_mem(f, now, vm);
}

void fake_mem_revoke(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
		     const struct ebb_action_pool *revoke)
{
	struct fake_pool *p = &vm->pools[revoke->node];
	const uint32_t target = (uint32_t)(revoke->bytes / EBB_BLOCK_BYTES);

	if (revoke->node >= vm->sla.num_nodes || revoke->bytes % EBB_BLOCK_BYTES ||
	    p->pub.size == 0) {
		fake_violate(f, vm, "REVOKE of node %u to %llu bytes", revoke->node,
			     (unsigned long long)revoke->bytes);
		return;
	}
	if (revoke->is_leave)
		fake_violate(f, vm, "node %u is to leave, which its driver does not know",
			     revoke->node);
	if (p->pub.requested > target)
		fake_violate(f, vm, "REVOKE of node %u to %u blocks, requested are %u",
			     revoke->node, target, p->pub.requested);
	if (p->pub.held > target) {
		if (vm->has_driver && (p->due_at == 0 || now + DEADLINE_SLACK < p->due_at))
			fake_violate(f, vm, "node %u is revoked before its deadline",
				     revoke->node);
		p->pub.unconfirmed += p->pub.held - target;
		p->pub.held = target;
	}
	fake_device_mem(f, now, vm);
	fake_guest_wake(f, now, vm);
}

int fake_mem_mirror(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
		    const struct ebb_action_pool *mirror)
{
	struct fake_pool *p = &vm->pools[mirror->node];
	const uint32_t requested = (uint32_t)(mirror->bytes / EBB_BLOCK_BYTES);

	if (fake_permille(f, f->cfg.place_fail_permille))
		return -EIO;
	p->mirrored = requested;
	if (p->pub.requested == requested)
		return 0;
	p->pub.requested = requested;
	fake_device_mem(f, now, vm);
	return 0;
}

/* ---- the guest ----------------------------------------------------------- */

static uint32_t may_plug(const struct ebb_fake_pool *p)
{
	const uint32_t room = p->size - p->held - p->unconfirmed;
	const uint32_t left = p->requested > p->held ? p->requested - p->held : 0;

	return left < room ? left : room;
}

/* Some, at least one: an engine gives and takes by steps. */
static uint32_t some_of(struct ebb_fake *f, uint32_t count)
{
	return count ? 1 + (uint32_t)fake_chance(f, count) : 0;
}

static bool think_of(struct ebb_fake *f, struct fake_vm *vm, uint16_t g)
{
	const bool is_random = vm->guest == EBB_FAKE_RANDOM;
	struct ebb_fake_pool *p = &vm->pools[g].pub;
	const struct ebb_fake_pool old = *p;

	if (vm->guest != EBB_FAKE_SILENT && (!is_random || fake_permille(f, 700))) {
		p->unconfirmed = 0;
		if (p->held > p->requested)
			p->held -= some_of(f, p->held - p->requested);
	}
	if (vm->guest == EBB_FAKE_GREEDY || vm->guest == EBB_FAKE_SILENT) {
		const uint32_t left = fake_need_left(vm, g), most = may_plug(p);

		p->held += some_of(f, left < most ? left : most);
	}
	if (is_random && fake_permille(f, 300))
		p->held += (uint32_t)fake_chance(f, may_plug(p) + 1);
	if (is_random && fake_permille(f, 200))
		p->held -= (uint32_t)fake_chance(f, p->held + 1);
	return memcmp(&old, p, sizeof(old)) != 0;
}

bool fake_mem_think(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	bool is_changed = false;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		if (vm->pools[g].pub.size > 0)
			is_changed = think_of(f, vm, g) || is_changed;
	if (is_changed)
		fake_device_mem(f, now, vm);
	return is_changed;
}
