// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunks become the bytes of a group: see log_private.h. What holds much is written from where it
 * is, padded to whole blocks; what holds little is copied together behind the header.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "log_private.h"
#include "oltp-engine/src/base/crc32c.h"

#define GATHER_BYTES		(1u << 20)
/* From here on padding costs less than copying. */
#define IN_PLACE_MIN		(32u << 10)

int log_group_init(struct log_group *group)
{
	group->gather = aligned_alloc(LOG_BLOCK_BYTES, GATHER_BYTES);
	return group->gather ? 0 : -ENOMEM;
}

void log_group_finish(struct log_group *group)
{
	free(group->gather);
}

void log_group_begin(struct log_group *group)
{
	group->gathered = LOG_GROUP_HEADER_BYTES;
	log_chunks_init(&group->in_place);
	log_chunks_init(&group->copied);
	group->csn_first = UINT64_MAX;
	group->csn_last = 0;
	group->n_entries = 0;
	group->bytes = 0;
}

/* Up to a whole block. Returns the new length. */
static uint32_t pad(uint8_t *data, uint32_t used)
{
	uint32_t bytes = -used & (LOG_BLOCK_BYTES - 1);
	struct log_entry *entry = (struct log_entry *)(data + used);

	if (!bytes)
		return used;
	memset(entry, 0, bytes);
	entry->bytes = bytes;
	return used + bytes;
}

void log_group_add(struct log_group *group, struct log_chunk *chunk)
{
	if (chunk->used < IN_PLACE_MIN && chunk->used <= GATHER_BYTES - group->gathered) {
		memcpy(group->gather + group->gathered, chunk->data, chunk->used);
		group->gathered += chunk->used;
		log_chunks_push(&group->copied, chunk);
	} else {
		chunk->used = pad(chunk->data, chunk->used);
		group->bytes += chunk->used;
		log_chunks_push(&group->in_place, chunk);
	}
	group->n_entries += chunk->n_entries;
	if (chunk->csn_first < group->csn_first)
		group->csn_first = chunk->csn_first;
	if (chunk->csn_last > group->csn_last)
		group->csn_last = chunk->csn_last;
}

void log_group_seal(struct log_group *group, const struct log_group_header *header)
{
	struct log_group_header *own = (struct log_group_header *)group->gather;
	uint32_t crc;

	group->gathered = pad(group->gather, group->gathered);
	group->bytes += group->gathered;
	*own = *header;
	memcpy(own->magic, LOG_GROUP_MAGIC, LOG_MAGIC_BYTES);
	own->bytes = group->bytes;
	own->n_entries = group->n_entries;
	own->csn_first = group->csn_first;
	own->csn_last = group->csn_last;
	own->crc32c = 0;
	crc = crc32c(0, group->gather, group->gathered);
	for (const struct log_chunk *chunk = group->in_place.head; chunk; chunk = chunk->next)
		crc = crc32c(crc, chunk->data, chunk->used);
	own->crc32c = crc;
}
