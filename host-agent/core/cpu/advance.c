// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cores that are offered shortly before they are free.  The way from an offer to a CPU in use goes
 * through the guest and back: told, asked for, granted.  A core that its owner has given back, or
 * loses at a deadline whatever it does, is free in a moment that is known; so the next owner is
 * told before that, and its request waits for the core (request.c).  The core itself is still freed
 * before it is given.
 */
#include "core/cpu/internal.h"

/*
 * Its thread is not known to take long on its way.  If it does, the offer is taken back, and made
 * again once the core is free: a guest whose request found no core asks when it is told anew.
 */
static bool is_quick(const struct ebb_vcpu *v, usec_t now)
{
	return v->place_failures == 0 &&
	       (!v->place_action || now < v->placed_at + CPU_ADVANCE_USEC);
}

uint16_t cpu_leaving(const struct ebb_vm *vm, uint16_t g, usec_t now)
{
	const struct ebb_vm_node *n = &vm->nodes[g];
	uint16_t leaving = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		leaving += v->node == g && !v->is_startup && v->thread != EBB_THREAD_NONE &&
			   cpu_vcpu_goes_home(vm, v) && is_quick(v, now);
	}
	/* Those that are forced at a deadline are held until then, and not forced yet. */
	for (uint16_t i = 0; i < n->num_due && n->due[i] <= now + CPU_ADVANCE_USEC; i++)
		leaving++;
	return leaving;
}

usec_t cpu_leaving_from(const struct ebb_vm *vm, uint16_t g, usec_t now)
{
	const struct ebb_vm_node *n = &vm->nodes[g];

	for (uint16_t i = 0; i < n->num_due; i++)
		if (n->due[i] > now + CPU_ADVANCE_USEC)
			return n->due[i] - CPU_ADVANCE_USEC;
	return EBB_TIME_NEVER;
}
