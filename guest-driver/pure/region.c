// SPDX-License-Identifier: GPL-2.0-only
/* States of the blocks of a pool; see region.h. */
#include "region.h"

void ebb_region_init(struct ebb_region *r, struct ebb_block *blocks, u32 num_blocks)
{
	*r = (struct ebb_region) {
		.blocks = blocks,
		.num_blocks = num_blocks,
		.num[EBB_BLOCK_FREE] = num_blocks,
	};
}

static void set_state(struct ebb_region *r, struct ebb_block *b, enum ebb_block_state state)
{
	if (state == EBB_BLOCK_FREE && b->has_failed)
		state = EBB_BLOCK_BAD;
	r->num[b->state]--;
	b->state = state;
	r->num[state]++;
	if (state != EBB_BLOCK_GRANTED)
		b->owner = NULL;
}

static bool is_all(const struct ebb_region *r, const struct ebb_run *run,
		   enum ebb_block_state state)
{
	u32 i;

	if (run->first >= r->num_blocks || run->count > r->num_blocks - run->first)
		return false;
	for (i = 0; i < run->count; i++)
		if (r->blocks[run->first + i].state != state)
			return false;
	return true;
}

static int move_all(struct ebb_region *r, const struct ebb_run *run, enum ebb_block_state from,
		    enum ebb_block_state to)
{
	u32 i;

	if (!is_all(r, run, from))
		return -EBUSY;
	for (i = 0; i < run->count; i++)
		set_state(r, &r->blocks[run->first + i], to);
	return 0;
}

bool ebb_region_next(const struct ebb_region *r, enum ebb_block_state state, u32 from, u32 end,
		     u32 max_count, bool (*is_in)(void *data, u32 block), void *data,
		     struct ebb_run *ret)
{
	u32 first = 0, count = 0;
	u32 i;

	if (!r->num[state])
		return false;
	if (end > r->num_blocks)
		end = r->num_blocks;
	for (i = from; i < end && count < max_count; i++) {
		if (r->blocks[i].state == state && (!is_in || is_in(data, i))) {
			if (!count++)
				first = i;
		} else if (count) {
			break;
		}
	}
	if (!count)
		return false;
	*ret = (struct ebb_run) { first, count };
	return true;
}

u32 ebb_region_room(const struct ebb_region *r, u32 want, u32 max_plugged)
{
	u32 plugged = ebb_region_num_plugged(r);
	u32 room = max_plugged > plugged ? max_plugged - plugged : 0;

	if (room > r->num[EBB_BLOCK_FREE])
		room = r->num[EBB_BLOCK_FREE];
	return want < room ? want : room;
}

int ebb_region_plug(struct ebb_region *r, const struct ebb_run *run)
{
	return move_all(r, run, EBB_BLOCK_FREE, EBB_BLOCK_PLUGGING);
}

int ebb_region_grant(struct ebb_region *r, u32 block, void *owner, u32 index)
{
	struct ebb_block *b = &r->blocks[block];

	if (block >= r->num_blocks || b->state != EBB_BLOCK_PLUGGING)
		return -ENOENT;
	set_state(r, b, EBB_BLOCK_GRANTED);
	b->owner = owner;
	b->index = index;
	return 0;
}

void ebb_region_end_plug(struct ebb_region *r, const struct ebb_run *run, bool is_plugged)
{
	enum ebb_block_state to = is_plugged ? EBB_BLOCK_DRAINING : EBB_BLOCK_FREE;
	u32 i;

	for (i = run->first; i < r->num_blocks && i - run->first < run->count; i++) {
		struct ebb_block *b = &r->blocks[i];

		if (b->state == EBB_BLOCK_PLUGGING || b->state == EBB_BLOCK_DRAINING)
			set_state(r, b, to);
	}
}

int ebb_region_leave(struct ebb_region *r, u32 block, const void *owner)
{
	struct ebb_block *b = &r->blocks[block];

	if (block >= r->num_blocks || b->state != EBB_BLOCK_GRANTED || b->owner != owner)
		return -ENOENT;
	set_state(r, b, EBB_BLOCK_DRAINING);
	return 0;
}

bool ebb_region_expel(struct ebb_region *r, u32 block, struct ebb_block *ret)
{
	struct ebb_block *b = &r->blocks[block];

	if (block >= r->num_blocks ||
	    (b->state != EBB_BLOCK_PLUGGING && b->state != EBB_BLOCK_GRANTED))
		return false;
	*ret = *b;
	set_state(r, b, EBB_BLOCK_DRAINING);
	return true;
}

int ebb_region_unplugged(struct ebb_region *r, const struct ebb_run *run)
{
	return move_all(r, run, EBB_BLOCK_DRAINING, EBB_BLOCK_FREE);
}

bool ebb_region_revoke(struct ebb_region *r, u32 block, struct ebb_block *ret)
{
	struct ebb_block *b = &r->blocks[block];

	if (block >= r->num_blocks || b->state == EBB_BLOCK_REVOKED ||
	    b->state == EBB_BLOCK_CONFIRMING)
		return false;
	*ret = *b;
	set_state(r, b, EBB_BLOCK_REVOKED);
	return true;
}

bool ebb_region_fail(struct ebb_region *r, u32 block, struct ebb_block *ret)
{
	struct ebb_block *b = &r->blocks[block];

	if (block >= r->num_blocks)
		return false;
	b->has_failed = true;
	if (b->state == EBB_BLOCK_FREE)
		set_state(r, b, EBB_BLOCK_BAD);
	return ebb_region_expel(r, block, ret);
}

int ebb_region_claim(struct ebb_region *r, const struct ebb_run *run)
{
	return move_all(r, run, EBB_BLOCK_REVOKED, EBB_BLOCK_CONFIRMING);
}

int ebb_region_confirmed(struct ebb_region *r, const struct ebb_run *run, bool is_confirmed)
{
	return move_all(r, run, EBB_BLOCK_CONFIRMING,
			is_confirmed ? EBB_BLOCK_FREE : EBB_BLOCK_REVOKED);
}
