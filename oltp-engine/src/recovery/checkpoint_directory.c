// SPDX-License-Identifier: GPL-2.0-or-later
/* See checkpoint_directory.h: first what writes it, then what reads it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_directory.h"
#include "checkpoint_file.h"
#include "oltp-engine/src/base/checksum.h"

/* A piece is made of so many rows, or parts, and those of the block in which they were reached. */
#define PIECE_ROWS	65536u
#define PIECE_PARTS	4096u

/* Room for one more in an array with n of so many bytes each. */
static int reserve(void *array, size_t *room, size_t n, size_t bytes)
{
	size_t more = *room ? 2 * *room : 1024;
	void **at = array, *larger;

	if (n < *room)
		return 0;
	larger = realloc(*at, more * bytes);
	if (!larger)
		return -ENOMEM;
	*at = larger;
	*room = more;
	return 0;
}

int directory_row_add(struct directory_builder *d, uint64_t key, const uint64_t *sorts,
		      uint32_t n_sorts, uint32_t check)
{
	int rc = reserve(&d->keys, &d->keys_room, d->n_rows, sizeof(*d->keys)) ?:
		 reserve(&d->checks, &d->checks_room, d->n_rows, sizeof(*d->checks));

	for (uint32_t i = 0; !rc && i < n_sorts; i++) {
		rc = reserve(&d->sorts, &d->sorts_room, d->n_sorts, sizeof(*d->sorts));
		if (!rc)
			d->sorts[d->n_sorts++] = sorts[i];
	}
	if (rc)
		return rc;
	d->keys[d->n_rows] = key;
	d->checks[d->n_rows++] = check;
	return 0;
}

int directory_part_end(struct directory_builder *d, uint64_t offset,
		       const struct checkpoint_kind *kind, uint32_t n_rows)
{
	int rc = reserve(&d->parts, &d->parts_room, d->n_parts, sizeof(*d->parts));

	if (!rc)
		d->parts[d->n_parts++] = (struct checkpoint_part){ offset, n_rows, *kind };
	return rc;
}

bool directory_is_full(const struct directory_builder *d)
{
	return d->n_rows >= PIECE_ROWS || d->n_parts >= PIECE_PARTS;
}

/* UINT64_MAX: more than a block can be. */
static uint64_t piece_bytes(uint64_t n_parts, uint64_t n_rows, uint64_t n_sorts)
{
	if (n_parts > UINT32_MAX / 64 || n_rows > UINT32_MAX / 64 || n_sorts > UINT32_MAX / 64)
		return UINT64_MAX;
	return sizeof(struct checkpoint_piece) + n_parts * sizeof(struct checkpoint_part) +
	       n_sorts * sizeof(uint64_t) + n_rows * (sizeof(uint64_t) + sizeof(uint32_t));
}

size_t directory_piece_bytes(const struct directory_builder *d)
{
	return (size_t)piece_bytes(d->n_parts, d->n_rows, d->n_sorts);
}

static uint8_t *append(uint8_t *at, const void *data, size_t bytes)
{
	memcpy(at, data, bytes);
	return at + bytes;
}

void directory_piece_take(struct directory_builder *d, uint8_t *at, uint64_t offset)
{
	size_t bytes = sizeof(struct checkpoint_block) + directory_piece_bytes(d);
	struct checkpoint_piece piece = {
		.before = d->last,
		.before_bytes = d->last_bytes,
		.n_parts = d->n_parts,
		.n_rows = d->n_rows,
		.n_sorts = d->n_sorts,
	};

	memcpy(piece.magic, CHECKPOINT_PIECE_MAGIC, LOG_MAGIC_BYTES);
	at = append(at, &piece, sizeof(piece));
	at = append(at, d->parts, d->n_parts * sizeof(*d->parts));
	at = append(at, d->keys, d->n_rows * sizeof(*d->keys));
	if (d->n_sorts)
		at = append(at, d->sorts, d->n_sorts * sizeof(*d->sorts));
	append(at, d->checks, d->n_rows * sizeof(*d->checks));
	d->last = offset;
	d->last_bytes = (uint32_t)((bytes + LOG_BLOCK_BYTES - 1) & ~(size_t)(LOG_BLOCK_BYTES - 1));
	d->n_pieces++;
	d->n_parts = 0;
	d->n_rows = d->n_sorts = 0;
}

static uint32_t ref_crc(const struct checkpoint_directory_ref *ref)
{
	return crc32c_without(ref, sizeof(*ref), offsetof(struct checkpoint_directory_ref, crc32c));
}

void directory_ref_fill(const struct directory_builder *d, struct checkpoint_directory_ref *ret_ref)
{
	*ret_ref = (struct checkpoint_directory_ref){
		.last = d->last, .last_bytes = d->last_bytes, .n_pieces = d->n_pieces,
	};
	memcpy(ret_ref->magic, CHECKPOINT_DIRECTORY_MAGIC, LOG_MAGIC_BYTES);
	ret_ref->crc32c = ref_crc(ret_ref);
}

bool directory_ref_is_good(const struct checkpoint_directory_ref *ref)
{
	return !memcmp(ref->magic, CHECKPOINT_DIRECTORY_MAGIC, LOG_MAGIC_BYTES) &&
	       ref->crc32c == ref_crc(ref);
}

void directory_builder_finish(struct directory_builder *d)
{
	free(d->parts);
	free(d->keys);
	free(d->sorts);
	free(d->checks);
	*d = (struct directory_builder){ 0 };
}

static const struct checkpoint_piece *piece_of(const uint8_t *block)
{
	return (const struct checkpoint_piece *)(block + sizeof(struct checkpoint_block));
}

static const struct checkpoint_part *parts_of(const struct checkpoint_piece *piece)
{
	return (const struct checkpoint_part *)(piece + 1);
}

static const uint64_t *keys_of(const struct checkpoint_piece *piece)
{
	return (const uint64_t *)(parts_of(piece) + piece->n_parts);
}

static const uint64_t *sorts_of(const struct checkpoint_piece *piece)
{
	return keys_of(piece) + piece->n_rows;
}

static const uint32_t *checks_of(const struct checkpoint_piece *piece)
{
	return (const uint32_t *)(sorts_of(piece) + piece->n_sorts);
}

/* Are all rows of the part where rows can be? */
static bool part_is_good(const struct checkpoint_part *part, const struct checkpoint_info *info)
{
	uint64_t row_bytes, end = info->bytes - LOG_BLOCK_BYTES;

	if (part->kind.table >= info->header.n_tables ||
	    part->kind.n_sorts > CHECKPOINT_SORTS_MAX || part->offset % sizeof(uint64_t) ||
	    part->offset < LOG_BLOCK_BYTES + sizeof(struct checkpoint_block) || part->offset > end)
		return false;
	row_bytes = checkpoint_row_bytes(info->header.tables[part->kind.table].record_bytes);
	return part->n_rows <= (end - part->offset) / row_bytes;
}

static bool piece_is_good(const uint8_t *at, uint32_t bytes, const struct checkpoint_info *info)
{
	const struct checkpoint_block *block = (const struct checkpoint_block *)at;
	const struct checkpoint_piece *piece = piece_of(at);
	uint64_t n_rows = 0, n_sorts = 0;

	if (!checkpoint_block_is_good(block, bytes, &info->header) || block->bytes != bytes ||
	    block->n_rows || memcmp(piece->magic, CHECKPOINT_PIECE_MAGIC, LOG_MAGIC_BYTES) ||
	    piece_bytes(piece->n_parts, piece->n_rows, piece->n_sorts) > bytes - sizeof(*block))
		return false;
	for (uint32_t i = 0; i < piece->n_parts; i++) {
		const struct checkpoint_part *part = &parts_of(piece)[i];

		if (!part_is_good(part, info))
			return false;
		n_rows += part->n_rows;
		n_sorts += (uint64_t)part->n_rows * part->kind.n_sorts;
	}
	return n_rows == piece->n_rows && n_sorts == piece->n_sorts;
}

static int read_piece(const struct io_files *io, int fd, const struct checkpoint_info *info,
		      uint64_t offset, uint32_t bytes, uint8_t **ret_block)
{
	uint8_t *block;
	ssize_t n;

	if (!bytes || bytes % LOG_BLOCK_BYTES || offset % LOG_BLOCK_BYTES ||
	    offset < LOG_BLOCK_BYTES || offset > info->bytes || bytes > info->bytes - offset)
		return -EUCLEAN;
	block = aligned_alloc(LOG_BLOCK_BYTES, bytes);
	if (!block)
		return -ENOMEM;
	*ret_block = block;
	n = io_pread(io, fd, block, bytes, offset);
	if (n < 0)
		return (int)n;
	return n == bytes && piece_is_good(block, bytes, info) ? 0 : -EUCLEAN;
}

static int read_pieces(const struct io_files *io, int fd, const struct checkpoint_info *info,
		       struct checkpoint_directory *directory)
{
	uint64_t offset = info->directory.last, n_rows = 0;
	uint32_t bytes = info->directory.last_bytes;

	for (uint32_t i = directory->n; i--;) {
		const struct checkpoint_piece *piece;
		int rc = read_piece(io, fd, info, offset, bytes, &directory->blocks[i]);

		if (rc)
			return rc;
		piece = piece_of(directory->blocks[i]);
		directory->bytes += bytes;
		n_rows += piece->n_rows;
		offset = piece->before;
		bytes = piece->before_bytes;
	}
	return bytes || n_rows != info->end.n_rows ? -EUCLEAN : 0;
}

int checkpoint_directory_read(const struct io_files *io, int fd, const struct checkpoint_info *info,
			      struct checkpoint_directory *ret_directory)
{
	struct checkpoint_directory directory = { .n = info->directory.n_pieces };
	int rc;

	if (directory.n > info->bytes / LOG_BLOCK_BYTES)
		return -EUCLEAN;
	directory.blocks = calloc(directory.n + 1ul, sizeof(*directory.blocks));
	if (!directory.blocks)
		return -ENOMEM;
	rc = read_pieces(io, fd, info, &directory);
	if (rc)
		checkpoint_directory_finish(&directory);
	else
		*ret_directory = directory;
	return rc;
}

int checkpoint_directory_each(const struct checkpoint_directory *directory,
			      int (*fn)(void *ctx, const struct checkpoint_part *part,
					const struct checkpoint_keys *keys), void *ctx)
{
	int rc = 0;

	for (uint32_t b = 0; !rc && b < directory->n; b++) {
		const struct checkpoint_piece *piece = piece_of(directory->blocks[b]);
		struct checkpoint_keys keys = {
			.keys = keys_of(piece),
			.sorts = sorts_of(piece),
			.checks = checks_of(piece),
		};

		for (uint32_t i = 0; !rc && i < piece->n_parts; i++) {
			const struct checkpoint_part *part = &parts_of(piece)[i];

			rc = fn(ctx, part, &keys);
			keys.keys += part->n_rows;
			keys.sorts += (uint64_t)part->n_rows * part->kind.n_sorts;
			keys.checks += part->n_rows;
		}
	}
	return rc;
}

void checkpoint_directory_finish(struct checkpoint_directory *directory)
{
	for (uint32_t i = 0; directory->blocks && i < directory->n; i++)
		free(directory->blocks[i]);
	free(directory->blocks);
	*directory = (struct checkpoint_directory){ 0 };
}
