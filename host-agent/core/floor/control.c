// SPDX-License-Identifier: GPL-2.0-or-later
/* See control.h. */
#include "core/floor/control.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t step_of(uint32_t promised, uint32_t parts)
{
	return promised / parts > 0 ? promised / parts : 1;
}

static bool is_few(const struct ebb_relio_interval *i)
{
	return i->baseline >= FLOOR_LEAST_IOS &&
	       i->actual < i->baseline - i->baseline / FLOOR_MARGIN;
}

bool floor_step(struct floor_control *c, uint32_t promised, uint32_t held,
		enum ebb_relio_verdict verdict, const struct ebb_relio_interval *i)
{
	const uint32_t before = c->want;

	c->want = smaller(c->want, promised);
	switch (verdict) {
	case EBB_RELIO_NONE:
		*c = (struct floor_control){ .want = promised };
		break;
	case EBB_RELIO_GOOD:
		if (i->actual > i->baseline + ebb_relio_grain(i)) {
			/* All memory of the VM is too little, also that above the floor. */
			const uint32_t has = held > c->want ? smaller(held, promised) : c->want;

			c->want = smaller(promised, has + step_of(promised, FLOOR_GROWS));
			c->calm = 0;
		} else if (is_few(i) && held <= c->want) {
			c->calm++;
		} else {
			c->calm = 0;
		}
		if (c->calm >= FLOOR_CALM) {
			c->want -= smaller(c->want, step_of(promised, FLOOR_SHRINKS));
			c->calm = 0;
		}
		break;
	default:
		/* Counts that are not believed leave the floor as it is. */
		c->calm = 0;
	}
	return c->want != before;
}

/* Those with a penalty from least to most; returns what is left. */
static uint64_t divide(struct floor_claim *claims, struct ebb_level_part *room, size_t num,
		       uint32_t least, uint32_t most, uint64_t blocks)
{
	for (size_t i = 0; i < num; i++) {
		const bool is_in = claims[i].penalty >= least && claims[i].penalty <= most;

		room[i] = (struct ebb_level_part){
			.high = is_in ? claims[i].want : 0, .weight = claims[i].want,
		};
	}
	ebb_level_fill(room, num, blocks);
	for (size_t i = 0; i < num; i++) {
		claims[i].keep += room[i].value;
		blocks -= room[i].value;
	}
	return blocks;
}

/* The highest penalty below `below`; false: there is none. */
static bool next_penalty(const struct floor_claim *claims, size_t num, uint64_t below,
			 uint32_t *ret)
{
	bool is_found = false;

	for (size_t i = 0; i < num; i++)
		if (claims[i].penalty < below && (!is_found || claims[i].penalty > *ret)) {
			*ret = claims[i].penalty;
			is_found = true;
		}
	return is_found;
}

void floor_divide(struct floor_claim *claims, struct ebb_level_part *room, size_t num,
		  enum ebb_overbook policy, uint64_t blocks)
{
	uint64_t below = UINT64_MAX;
	uint32_t penalty = 0;

	for (size_t i = 0; i < num; i++)
		claims[i].keep = 0;
	if (policy == EBB_OVERBOOK_PROPORTIONAL) {
		divide(claims, room, num, 0, UINT32_MAX, blocks);
		return;
	}
	for (; next_penalty(claims, num, below, &penalty); below = penalty)
		blocks = divide(claims, room, num, penalty, penalty, blocks);
}
