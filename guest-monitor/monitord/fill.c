// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Levelling: see fill.h.
 *
 * One after the other means in the order of levels: a participant at level l
 * receives its units at l, l + step, l + 2 step and so on, and gives them at l,
 * l - step and so on.  So a height is searched below which (above which) all
 * exchanges happen, and what is left happens at that height, in the order of ties.
 */
#include "fill.h"

static uint64_t steps_between(uint64_t low, uint64_t high, uint64_t step)
{
	return high > low ? (high - low + step - 1) / step : 0;
}

/* Received at levels below height. */
static uint64_t sum_below(const struct ebb_fill *parts, size_t num, uint64_t height,
			  uint64_t step)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < num; i++)
		if (parts[i].is_in)
			sum += steps_between(parts[i].level, height, step);
	return sum;
}

void ebb_fill_up(struct ebb_fill *parts, size_t num, uint64_t units, uint64_t step)
{
	uint64_t low = 0, high = 0;

	for (size_t i = 0; i < num; i++) {
		parts[i].units = 0;
		if (parts[i].is_in && parts[i].level >= high)
			high = parts[i].level + (units + 1) * step;
	}
	if (high == 0)
		return;
	/* At low it is enough for all, at high it is not. */
	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		if (sum_below(parts, num, mid, step) <= units)
			low = mid;
		else
			high = mid;
	}
	units -= sum_below(parts, num, low, step);
	for (size_t i = 0; i < num; i++) {
		if (!parts[i].is_in)
			continue;
		parts[i].units = steps_between(parts[i].level, low, step);
		if (units > 0 && parts[i].level + parts[i].units * step == low) {
			parts[i].units++;
			units--;
		}
	}
}

static uint64_t given_above(const struct ebb_fill *part, uint64_t height, uint64_t step)
{
	uint64_t units = steps_between(height, part->level, step);

	return units < part->most ? units : part->most;
}

static uint64_t sum_above(const struct ebb_fill *parts, size_t num, uint64_t height,
			  uint64_t step)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < num; i++)
		if (parts[i].is_in)
			sum += given_above(&parts[i], height, step);
	return sum;
}

/* The lowest height above which no more than units are given. */
static uint64_t height_find(const struct ebb_fill *parts, size_t num, uint64_t units,
			    uint64_t step)
{
	uint64_t low = 0, high = 0;

	if (sum_above(parts, num, 0, step) <= units)
		return 0;
	for (size_t i = 0; i < num; i++)
		if (parts[i].is_in && parts[i].level > high)
			high = parts[i].level;
	/* At low it is too much, at high it is not. */
	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		if (sum_above(parts, num, mid, step) <= units)
			high = mid;
		else
			low = mid;
	}
	return high;
}

uint64_t ebb_fill_down(struct ebb_fill *parts, size_t num, uint64_t units, uint64_t step)
{
	uint64_t height = height_find(parts, num, units, step);

	units -= sum_above(parts, num, height, step);
	for (size_t i = num; i-- > 0;) {
		struct ebb_fill *part = &parts[i];

		part->units = part->is_in ? given_above(part, height, step) : 0;
		if (units > 0 && part->is_in && part->units < part->most &&
		    part->level - part->units * step == height) {
			part->units++;
			units--;
		}
	}
	return units;
}
