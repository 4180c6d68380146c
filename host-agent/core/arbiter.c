// SPDX-License-Identifier: GPL-2.0-or-later
/* See arbiter.h.  Arithmetic on arrays only; knows neither VMs nor time. */
#include "core/arbiter.h"

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t max32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The bounds of an entry in one round of filling. */
typedef void (*bounds_fn)(const struct ebb_arbiter_entry *e, uint32_t *ret_low,
			  uint32_t *ret_high);

/*
 * Gives every entry its low, then raises all evenly, none above its high, until the sum reaches
 * the budget.  Units that are left and too few for a further level go to the earliest entries, one
 * each.
 */
static void fill(struct ebb_arbiter_entry *entries, struct ebb_level_part *room, size_t count,
		 bounds_fn bounds, uint64_t budget,
		 void (*set)(struct ebb_arbiter_entry *e, uint32_t value))
{
	uint32_t low, high;
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		bounds(&entries[i], &low, &high);
		room[i] = (struct ebb_level_part){ .high = high - low };
		sum += low;
	}
	ebb_level_fill(room, count, budget > sum ? budget - sum : 0);
	for (size_t i = 0; i < count; i++) {
		bounds(&entries[i], &low, &high);
		set(&entries[i], low + room[i].value);
	}
}

static void set_target(struct ebb_arbiter_entry *e, uint32_t value)
{
	e->target = value;
}

static void set_limit(struct ebb_arbiter_entry *e, uint32_t value)
{
	e->limit = e->target <= e->used ? e->target : value;
}

static void bounds_target(const struct ebb_arbiter_entry *e, uint32_t *ret_low, uint32_t *ret_high)
{
	*ret_low = e->floor;
	*ret_high = max32(e->floor, min32(e->wanted, e->ceiling));
}

/*
 * Bounds of an offer that was made before: at least the part that the VM uses, at most the offer.
 */
static void bounds_kept(const struct ebb_arbiter_entry *e, uint32_t *ret_low, uint32_t *ret_high)
{
	*ret_low = e->used;
	*ret_high = max32(e->used, min32(e->limit, e->target));
}

/*
 * Entries below their floor are served before any entry gets more than its floor.  CPUs are never
 * below: the startup set counts as used.
 */
static void bounds_floor(const struct ebb_arbiter_entry *e, uint32_t *ret_low, uint32_t *ret_high)
{
	*ret_low = max32(e->used, e->limit);
	*ret_high = max32(*ret_low, min32(e->floor, e->target));
}

static void bounds_grown(const struct ebb_arbiter_entry *e, uint32_t *ret_low, uint32_t *ret_high)
{
	*ret_low = max32(e->used, e->limit);
	*ret_high = max32(*ret_low, e->target);
}

uint32_t ebb_arbiter_clamp(uint32_t capacity, struct ebb_arbiter_entry *entries,
			   struct ebb_level_part *room, size_t count)
{
	uint32_t changed = 0;

	fill(entries, room, count, bounds_target, capacity, set_target);
	for (size_t i = 0; i < count; i++)
		changed += entries[i].target != entries[i].wanted;
	return changed;
}

void ebb_arbiter_limits(uint32_t capacity, struct ebb_arbiter_entry *entries,
			struct ebb_level_part *room, size_t count)
{
	fill(entries, room, count, bounds_kept, capacity, set_limit);
	fill(entries, room, count, bounds_floor, capacity, set_limit);
	fill(entries, room, count, bounds_grown, capacity, set_limit);
}
