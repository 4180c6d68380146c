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
