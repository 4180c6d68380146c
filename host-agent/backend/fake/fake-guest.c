// SPDX-License-Identifier: GPL-2.0-or-later
/* Guests of the simulated world: see enum ebb_fake_guest. */
#include "fake.h"

static const usec_t ponder_usec[2] = { 10 * EBB_USEC_PER_MSEC, 200 * EBB_USEC_PER_MSEC };

void fake_guest_wake(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	if (vm->is_thinking || !vm->is_running || !vm->has_driver)
		return;
	if (fake_event_add(f, now + fake_between(f, f->cfg.think_usec), FAKE_EVENT_THINK, vm))
		vm->is_thinking = true;
}

void fake_guest_forget(struct ebb_fake_vcpu *v)
{
	/* The old boot may have asked for the removal of a CPU that it had lent. */
	v->is_given_back = v->is_granted && (!v->is_lent || v->is_given_back);
}

static void ponder(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	if (fake_event_add(f, now + fake_between(f, ponder_usec), FAKE_EVENT_THINK, vm))
		vm->is_thinking = true;
}

static bool is_asked(const struct fake_vm *vm, uint16_t vcpu)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++)
		if (vm->requests[i].is_used && vm->requests[i].r.vcpu == vcpu &&
		    vm->requests[i].r.type != VIRTIO_EBB_REQ_CPU_ADD)
			return true;
	return false;
}

static bool is_adding(const struct fake_vm *vm)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++)
		if (vm->requests[i].is_used && vm->requests[i].r.type == VIRTIO_EBB_REQ_CPU_ADD)
			return true;
	return false;
}

/* As the host would like it, and one of the other ways now and then. */
static uint16_t choose_tier(struct ebb_fake *f, const struct fake_vm *vm, uint16_t vcpu)
{
	const uint16_t told = vm->limits.nodes[vm->vcpus[vcpu].pub.node].tier;

	/* One that was ejected in vain, as it seemed, is gone for good. */
	if (!vm->can_lend || !vm->vcpus[vcpu].pub.is_plugged)
		return VIRTIO_EBB_TIER_UNPLUG;
	if (vm->guest == EBB_FAKE_RANDOM && fake_permille(f, 500))
		return (uint16_t)(VIRTIO_EBB_TIER_LEND + fake_chance(f, 3));
	return told == VIRTIO_EBB_TIER_ANY ? VIRTIO_EBB_TIER_LEND : told;
}

static void give_back(struct ebb_fake *f, usec_t now, struct fake_vm *vm, uint16_t vcpu)
{
	const uint16_t tier = choose_tier(f, vm, vcpu);
	const struct ebb_fact_request r = {
		.type = tier == VIRTIO_EBB_TIER_UNPLUG ? VIRTIO_EBB_REQ_CPU_REMOVE :
							 VIRTIO_EBB_REQ_CPU_LEND,
		.vcpu = vcpu,
		.park = tier == VIRTIO_EBB_TIER_PARK,
	};

	if (is_asked(vm, vcpu))
		return;
	vm->vcpus[vcpu].pub.is_given_back = true;
	fake_device_request(f, now, vm, &r);
}

static void ask(struct ebb_fake *f, usec_t now, struct fake_vm *vm, uint16_t node, uint32_t count,
		bool allow_ht)
{
	const struct ebb_fact_request r = {
		.type = VIRTIO_EBB_REQ_CPU_ADD,
		.count = (uint16_t)(count > VIRTIO_EBB_MAX_REQ_CPUS ? VIRTIO_EBB_MAX_REQ_CPUS :
								      count),
		.node = node,
		.allow_ht = allow_ht,
	};

	fake_device_request(f, now, vm, &r);
}

/* CPUs of a node that the guest works with: startup, or granted and neither forced nor going. */
static uint32_t working(const struct fake_vm *vm, uint16_t g)
{
	uint32_t count = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_fake_vcpu *v = &vm->vcpus[i].pub;

		count += v->node == g &&
			 (v->is_startup || (v->is_granted && !v->is_forced && !v->is_lent &&
					    !v->is_given_back));
	}
	return count;
}

static uint32_t asked_for(const struct fake_vm *vm, uint16_t g)
{
	uint32_t count = 0;

	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++)
		if (vm->requests[i].is_used && vm->requests[i].r.node == g &&
		    vm->requests[i].r.type == VIRTIO_EBB_REQ_CPU_ADD)
			count += vm->requests[i].r.count;
	return count;
}

static int newest(const struct fake_vm *vm, uint16_t g)
{
	int best = -1;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct fake_vcpu *v = &vm->vcpus[i];

		if (v->pub.node == g && v->pub.is_granted && !v->pub.is_given_back &&
		    !v->pub.is_forced && !v->pub.is_lent &&
		    (best < 0 || v->granted > vm->vcpus[best].granted))
			best = i;
	}
	return best;
}

/* Gives back CPUs that were forced, could not be removed before, or are of an earlier boot. */
static bool clear_up(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	bool is_busy = false;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_fake_vcpu *v = &vm->vcpus[i].pub;

		if (!v->is_granted || !(v->is_forced || v->is_given_back || vm->must_clear))
			continue;
		/* CPUs that an earlier boot has lent are as good as new. */
		if (v->is_lent && vm->can_lend && !v->is_given_back)
			continue;
		is_busy = true;
		give_back(f, now, vm, i);
	}
	if (!is_busy)
		vm->must_clear = false;
	return is_busy;
}

/* How many CPUs of a node the guest may keep: as the host says, and no more than it wants. */
static uint32_t keeps(const struct fake_vm *vm, uint16_t g)
{
	const uint32_t limit = vm->limits.nodes[g].limit;

	return vm->guest == EBB_FAKE_WANTING && vm->want[g] < limit ? vm->want[g] : limit;
}

static bool meet_demands(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	bool is_busy = false;

	for (uint16_t g = 0; g < vm->limits.num_nodes; g++) {
		uint32_t has = working(vm, g);
		int vcpu;

		for (; has > keeps(vm, g) && (vcpu = newest(vm, g)) >= 0; has--) {
			is_busy = true;
			give_back(f, now, vm, (uint16_t)vcpu);
		}
	}
	return is_busy;
}

static bool take_offers(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	bool is_busy = false;

	for (uint16_t g = 0; g < vm->limits.num_nodes; g++) {
		const uint32_t has = working(vm, g) + asked_for(vm, g);

		if (has >= keeps(vm, g))
			continue;
		is_busy = true;
		ask(f, now, vm, g, keeps(vm, g) - has, fake_permille(f, 500));
	}
	return is_busy;
}

/* Asks for what is not on offer: the host learns of it, though it refuses. */
static void ask_beyond(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	for (uint16_t g = 0; g < vm->limits.num_nodes; g++) {
		const uint32_t has = working(vm, g) + asked_for(vm, g);

		if (!vm->is_asking[g] || vm->want[g] <= has)
			continue;
		vm->is_asking[g] = false;
		ask(f, now, vm, g, vm->want[g] - has, true);
	}
}

/* Any request that a guest, or a device that was taken over, may make. */
static void do_anything(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	const uint16_t vcpu = (uint16_t)fake_chance(f, vm->num_vcpus);
	const uint16_t node = (uint16_t)fake_chance(f, vm->sla.num_nodes + 1u);
	const struct ebb_fact_request r = {
		.type = vm->can_lend && fake_permille(f, 500) ? VIRTIO_EBB_REQ_CPU_LEND :
								VIRTIO_EBB_REQ_CPU_REMOVE,
		.vcpu = vcpu,
	};

	switch (fake_chance(f, 4)) {
	case 0:
		ask(f, now, vm, EBB_NODE_ANY, 1 + (uint32_t)fake_chance(f, 8),
		    fake_permille(f, 500));
		break;
	case 1:
		ask(f, now, vm, node, 1 + (uint32_t)fake_chance(f, 8), fake_permille(f, 500));
		break;
	case 2:
		if (vm->vcpus[vcpu].pub.is_granted)
			give_back(f, now, vm, vcpu);
		break;
	default:
		/*
		 * Startup, not held, or twice: to be refused.  Not while it may
		 * be on its way to being granted or handed over, for then it would not be.
		 */
		if (vm->vcpus[vcpu].pub.is_startup || is_asked(vm, vcpu) ||
		    (!vm->vcpus[vcpu].pub.is_granted && !is_adding(vm) && !vm->sla.plug_ahead))
			fake_device_request(f, now, vm, &r);
		break;
	}
}

/* The device has answered these itself; an agent that is connected must not let it come to that. */
static void expire(struct ebb_fake *f, struct fake_vm *vm, usec_t now)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++) {
		struct fake_request *q = &vm->requests[i];

		if (!q->is_used || now <= q->sent_at + FAKE_DEVICE_TIMEOUT)
			continue;
		q->is_used = false;
		fake_violate(f, vm, "request %llu was not answered in time",
			     (unsigned long long)q->r.tag);
	}
}

void fake_guest_think(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	bool is_busy = false;

	vm->is_thinking = false;
	if (!vm->has_driver)
		return;
	expire(f, vm, now);
	if (!vm->is_welcome || !vm->has_limits) {
		/* Nobody is asked for what has been promised before. */
		fake_mem_think(f, now, vm);
		ponder(f, now, vm);
		return;
	}
	if (vm->guest != EBB_FAKE_SILENT &&
	    (vm->guest != EBB_FAKE_RANDOM || vm->must_clear || fake_permille(f, 800))) {
		is_busy = clear_up(f, now, vm) || is_busy;
		is_busy = meet_demands(f, now, vm) || is_busy;
	}
	if (!vm->must_clear &&
	    (vm->guest == EBB_FAKE_GREEDY || vm->guest == EBB_FAKE_SILENT ||
	     vm->guest == EBB_FAKE_WANTING ||
	     (vm->guest == EBB_FAKE_RANDOM && fake_permille(f, 300))))
		is_busy = take_offers(f, now, vm) || is_busy;
	if (!vm->must_clear && vm->guest == EBB_FAKE_WANTING)
		ask_beyond(f, now, vm);
	is_busy = fake_mem_think(f, now, vm) || is_busy;
	fake_device_vom(f, now, vm);
	if (vm->guest == EBB_FAKE_RANDOM)
		do_anything(f, now, vm);
	if (is_busy || vm->guest == EBB_FAKE_RANDOM)
		ponder(f, now, vm);
}
