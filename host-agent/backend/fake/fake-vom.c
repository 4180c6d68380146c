// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Histograms of simulated guests.  A part of the memory that a guest holds is its working set, of
 * which a little is used very often and the rest less and less.  Its size and value depend on the
 * VM alone, so that an even simulation has the same values each time.  Guests that are
 * EBB_FAKE_RANDOM say anything, those that are EBB_FAKE_SILENT nothing.
 */
#include <stdlib.h>

#include "fake.h"

#define KIB_PER_BLOCK	(EBB_BLOCK_BYTES >> 10)
#define PARTS		16u		/* buckets of a working set */

static uint32_t hash_of(const struct fake_vm *vm, uint32_t salt)
{
	uint32_t h = 2166136261u ^ salt;

	for (size_t i = 0; i < sizeof(vm->uuid); i++)
		h = (h ^ vm->uuid[i]) * 16777619u;
	return (h ^ h >> 15) * 2246822519u >> 8;
}

static void add(struct fake_vom *v, uint16_t g, uint64_t value, uint64_t kib)
{
	if (kib > 0 && v->f.num_buckets < EBB_MAX_VOM_BUCKETS)
		v->buckets[v->f.num_buckets++] = (struct ebb_vom_bucket){
			.value = value,
			.kib = kib < UINT32_MAX ? (uint32_t)kib : UINT32_MAX,
			.node = g,
		};
}

/*
 * 30 to 100% is in use, or what the guest needs where that is said; the best of it worth 1 us to
 * 1 s per second and MiB.
 */
static void tell_truth(const struct fake_vm *vm, uint16_t g, struct fake_vom *v)
{
	const uint64_t held = vm->pools[g].pub.held * KIB_PER_BLOCK;
	const uint64_t best = 1000ull << hash_of(vm, 77) % 20;
	uint64_t in_use = held * (300 + hash_of(vm, g) % 701) / 1000;

	if (vm->need[g] != UINT32_MAX)
		in_use = held < vm->need[g] * KIB_PER_BLOCK ? held : vm->need[g] * KIB_PER_BLOCK;
	add(v, g, 0, held - in_use);
	for (uint32_t i = 1; i <= PARTS; i++)
		add(v, g, best * i * i / (PARTS * PARTS),
		    in_use / PARTS + (i == PARTS ? in_use % PARTS : 0));
}

/* In disorder, of nodes that are not there, empty, far too much: for the core to bear. */
static void tell_anything(struct ebb_fake *f, struct fake_vom *v)
{
	v->f.num_buckets = (uint32_t)fake_chance(f, EBB_MAX_VOM_BUCKETS + 1);
	for (uint32_t i = 0; i < v->f.num_buckets; i++)
		v->buckets[i] = (struct ebb_vom_bucket){
			.value = fake_permille(f, 500) ? i : fake_chance(f, UINT64_MAX),
			.kib = (uint32_t)fake_chance(f, 100000),
			.node = (uint16_t)fake_chance(f, EBB_MAX_GUEST_NODES),
		};
}

/* In order, and as much or as little as it likes. */
static void tell_lies(struct ebb_fake *f, const struct fake_vm *vm, uint16_t g, struct fake_vom *v)
{
	uint64_t value = 0;

	for (uint64_t i = 0; i <= fake_chance(f, 20); i++) {
		value += fake_permille(f, 300) ? fake_chance(f, 1ull << 45) : fake_chance(f, 1000);
		add(v, g, value, fake_chance(f, 2 * vm->pools[g].pub.held * KIB_PER_BLOCK + 2));
	}
}

bool fake_vom_is_asked(const struct fake_vm *vm)
{
	return vm->has_driver && vm->can_vom && vm->has_limits && vm->limits.vom_seq != 0 &&
	       vm->limits.vom_seq != vm->vom_seq && vm->guest != EBB_FAKE_SILENT;
}

struct fake_vom *fake_vom_make(struct ebb_fake *f, struct fake_vm *vm)
{
	struct fake_vom *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->f.seq = vm->vom_seq = vm->limits.vom_seq;
	v->f.buckets = v->buckets;
	if (vm->guest == EBB_FAKE_RANDOM && fake_permille(f, 100))
		tell_anything(f, v);
	else
		for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
			if (vm->guest == EBB_FAKE_RANDOM && fake_permille(f, 300))
				tell_lies(f, vm, g, v);
			else
				tell_truth(vm, g, v);
		}
	return v;
}
