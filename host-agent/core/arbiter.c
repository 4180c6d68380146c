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

/* What an entry may have at least and at most, for one round of filling. */
typedef void (*bounds_fn)(const struct ebb_arbiter_entry *e, uint32_t *ret_low,
			  uint32_t *ret_high);

/* Level at which every entry is at its high. */
static uint32_t top_level(const struct ebb_arbiter_entry *entries, size_t count, bounds_fn bounds)
{
	uint32_t top = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t low, high;

		bounds(&entries[i], &low, &high);
		top = max32(top, high - low);
	}
	return top;
}

static uint64_t filled(const struct ebb_arbiter_entry *entries, size_t count, bounds_fn bounds,
		       uint32_t level)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t low, high;

		bounds(&entries[i], &low, &high);
		sum += low + min32(high - low, level);
	}
	return sum;
}

/*
 * Gives every entry its low, then raises all evenly, none above
 * its high, until the sum reaches the budget.  What a further whole level does
 * not fit into goes to the earliest entries, one each.
 */
static void fill(struct ebb_arbiter_entry *entries, size_t count, bounds_fn bounds,
		 uint64_t budget, void (*set)(struct ebb_arbiter_entry *e, uint32_t value))
{
	uint32_t low_level = 0, high_level = top_level(entries, count, bounds);
	uint64_t sum, rest;

	while (low_level < high_level) {
		const uint32_t mid = low_level + (high_level - low_level + 1) / 2;

		if (filled(entries, count, bounds, mid) <= budget)
			low_level = mid;
		else
			high_level = mid - 1;
	}
	sum = filled(entries, count, bounds, low_level);
	rest = budget > sum ? budget - sum : 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t low, high, value;

		bounds(&entries[i], &low, &high);
		value = low + min32(high - low, low_level);
		if (rest > 0 && value < high) {
			value++;
			rest--;
		}
		set(&entries[i], value);
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

/* Offers made before: they cost what is used, and at most what was offered. */
static void bounds_kept(const struct ebb_arbiter_entry *e, uint32_t *ret_low, uint32_t *ret_high)
{
	*ret_low = e->used;
	*ret_high = max32(e->used, min32(e->limit, e->target));
}

/*
 * What is kept for an entry comes before what others could have besides.  No CPU is given by this:
 * the startup set is used.
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

uint32_t ebb_arbiter_clamp(uint32_t capacity, struct ebb_arbiter_entry *entries, size_t count)
{
	uint32_t changed = 0;

	fill(entries, count, bounds_target, capacity, set_target);
	for (size_t i = 0; i < count; i++)
		changed += entries[i].target != entries[i].wanted;
	return changed;
}

void ebb_arbiter_limits(uint32_t capacity, struct ebb_arbiter_entry *entries, size_t count)
{
	fill(entries, count, bounds_kept, capacity, set_limit);
	fill(entries, count, bounds_floor, capacity, set_limit);
	fill(entries, count, bounds_grown, capacity, set_limit);
}
