// SPDX-License-Identifier: GPL-2.0-or-later
/* See move.h. */
#include <stdbool.h>

#include "core/pressure/move.h"

static unsigned log2_of(uint64_t bytes)
{
	unsigned n = 0;

	while (bytes >>= 1)
		n++;
	return n;
}

/* Less than 0: a goes before b, for the reason given. */
static int compare(const struct ebb_move_candidate *a, const struct ebb_move_candidate *b,
		   uint64_t needed, enum ebb_move_why *ret_why)
{
	const uint64_t relief_a = a->relief < needed ? a->relief : needed;
	const uint64_t relief_b = b->relief < needed ? b->relief : needed;
	const bool is_idle_a = a->cpu_permille < EBB_MOVE_IDLE_PERMILLE;
	const bool is_idle_b = b->cpu_permille < EBB_MOVE_IDLE_PERMILLE;
	const unsigned state_a = log2_of(a->state_bytes), state_b = log2_of(b->state_bytes);

	*ret_why = EBB_MOVE_RELIEF;
	if (relief_a != relief_b)
		return relief_a > relief_b ? -1 : 1;
	*ret_why = EBB_MOVE_WEIGHT;
	if (a->weight != b->weight)
		return a->weight < b->weight ? -1 : 1;
	*ret_why = EBB_MOVE_IDLE;
	if (is_idle_a != is_idle_b)
		return is_idle_a ? -1 : 1;
	*ret_why = EBB_MOVE_STATE;
	if (state_a != state_b)
		return state_a < state_b ? -1 : 1;
	*ret_why = EBB_MOVE_ACTIVITY;
	if (a->cpu_permille != b->cpu_permille)
		return a->cpu_permille < b->cpu_permille ? -1 : 1;
	*ret_why = EBB_MOVE_NEWEST;
	return a->order > b->order ? -1 : 1;
}

/* The best but for index `not`; -1: none helps. */
static int best_of(const struct ebb_move_candidate *c, size_t count, uint64_t needed, int not)
{
	enum ebb_move_why why;
	int best = -1;

	for (size_t i = 0; i < count; i++)
		if ((int)i != not && c[i].relief > 0 &&
		    (best < 0 || compare(&c[i], &c[best], needed, &why) < 0))
			best = (int)i;
	return best;
}

int ebb_move_choose(const struct ebb_move_candidate *c, size_t count, uint64_t needed,
		    enum ebb_move_why *ret_why)
{
	const int best = best_of(c, count, needed, -1);
	const int next = best < 0 ? -1 : best_of(c, count, needed, best);

	*ret_why = EBB_MOVE_ALONE;
	if (next >= 0)
		compare(&c[best], &c[next], needed, ret_why);
	return best;
}

const char *ebb_move_why_text(enum ebb_move_why why)
{
	static const char *const texts[EBB_MOVE_WHY_MAX] = {
		[EBB_MOVE_ALONE] = "no other one helps",
		[EBB_MOVE_RELIEF] = "others help less",
		[EBB_MOVE_WEIGHT] = "others that help as much weigh more",
		[EBB_MOVE_IDLE] = "others that help as much are in use",
		[EBB_MOVE_STATE] = "others that help as much have more to take along",
		[EBB_MOVE_ACTIVITY] = "others that help as much compute more",
		[EBB_MOVE_NEWEST] = "others that help as much came before",
	};

	return (unsigned)why < EBB_MOVE_WHY_MAX ? texts[why] : "?";
}
