// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How much memory the work of a simulated guest needs. The guest takes no offer beyond its need,
 * and memory beyond the need has value 0. Like an engine, it gives such memory back only on demand.
 */
#include <errno.h>
#include <string.h>

#include "fake.h"

void fake_need_define(struct fake_vm *vm)
{
	for (uint16_t g = 0; g < EBB_MAX_GUEST_NODES; g++)
		vm->need[g] = UINT32_MAX;
}

uint32_t fake_need_left(const struct fake_vm *vm, uint16_t g)
{
	const uint32_t held = vm->pools[g].pub.held;

	return vm->need[g] > held ? vm->need[g] - held : 0;
}

static void set(struct ebb_fake *f, usec_t now, struct fake_vm *vm, uint16_t g, uint32_t blocks)
{
	vm->need[g] = blocks;
	fake_guest_wake(f, now, vm);
}

int ebb_fake_vm_need(struct ebb_fake *f, usec_t now, const uint8_t *uuid, uint16_t node,
		     uint32_t blocks)
{
	for (size_t i = 0; i < f->num_vms; i++)
		if (memcmp(f->vms[i]->uuid, uuid, sizeof(f->vms[i]->uuid)) == 0) {
			if (node >= f->vms[i]->sla.num_nodes)
				return -ERANGE;
			set(f, now, f->vms[i], node, blocks);
			return 0;
		}
	return -ENOENT;
}

void ebb_fake_need_turn(struct ebb_fake *f, usec_t now, uint32_t turn)
{
	for (size_t i = 0; i < f->num_vms; i++)
		for (uint16_t g = 0; g < f->vms[i]->sla.num_nodes; g++) {
			const uint32_t size = f->vms[i]->pools[g].pub.size;
			const bool has_turn = i == turn % f->num_vms;

			set(f, now, f->vms[i], g,
			    has_turn ? size / 2 : size / 4 / (uint32_t)(f->num_vms - 1));
		}
}
