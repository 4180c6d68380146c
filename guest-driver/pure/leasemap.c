// SPDX-License-Identifier: GPL-2.0-only
/* The blocks of a lease; see leasemap.h. */
#include "leasemap.h"

void ebb_leasemap_init(struct ebb_leasemap *m, u32 *entries, u32 block_bytes)
{
	*m = (struct ebb_leasemap) { .entries = entries, .block_bytes = block_bytes };
}

void ebb_leasemap_append(struct ebb_leasemap *m, const struct ebb_run *run)
{
	u32 i;

	for (i = 0; i < run->count; i++)
		m->entries[m->num_blocks + i] = run->first + i;
	m->num_blocks += run->count;
	m->num_held += run->count;
}

u32 *ebb_leasemap_move(struct ebb_leasemap *m, u32 *entries)
{
	u32 *old = m->entries;
	u32 i;

	for (i = 0; i < m->num_blocks; i++)
		entries[i] = old[i];
	m->entries = entries;
	return old;
}

int ebb_leasemap_lookup(const struct ebb_leasemap *m, u64 index, u32 *ret_block)
{
	if (index >= m->num_blocks || !ebb_leasemap_is_held(m, index))
		return -ENOENT;
	*ret_block = ebb_leasemap_block(m, index);
	return 0;
}

int ebb_leasemap_range(const struct ebb_leasemap *m, u64 offset, u64 bytes, struct ebb_run *ret)
{
	u64 lease_bytes = (u64)m->num_blocks * m->block_bytes;
	u32 mask = m->block_bytes - 1;

	if (!bytes || offset & mask || bytes & mask)
		return -EINVAL;
	if (offset >= lease_bytes || bytes > lease_bytes - offset)
		return -ERANGE;
	ret->first = offset / m->block_bytes;
	ret->count = bytes / m->block_bytes;
	return 0;
}

int ebb_leasemap_release(struct ebb_leasemap *m, const struct ebb_run *run)
{
	u32 i;

	for (i = 0; i < run->count; i++)
		if (!ebb_leasemap_is_held(m, run->first + i))
			return -ENOENT;
	for (i = 0; i < run->count; i++)
		m->entries[run->first + i] |= EBB_LEASEMAP_RELEASED;
	m->num_held -= run->count;
	return 0;
}

void ebb_leasemap_revoke(struct ebb_leasemap *m, u32 index, u32 block)
{
	if (index >= m->num_blocks || !ebb_leasemap_is_held(m, index) ||
	    ebb_leasemap_block(m, index) != block)
		return;
	m->entries[index] |= EBB_LEASEMAP_REVOKED;
	m->num_held--;
	m->num_revoked++;
}

void ebb_leasemap_revoke_all(struct ebb_leasemap *m)
{
	u32 i;

	for (i = 0; i < m->num_blocks; i++)
		if (ebb_leasemap_is_held(m, i))
			ebb_leasemap_revoke(m, i, ebb_leasemap_block(m, i));
}
