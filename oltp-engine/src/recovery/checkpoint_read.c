// SPDX-License-Identifier: GPL-2.0-or-later
/* See checkpoint_read.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_read.h"
#include "checkpoint_write.h"
#include "oltp-engine/src/base/crc32c.h"

static int open_file(const struct log_io *io, const char *path)
{
	const int flags = O_RDONLY | O_CLOEXEC;
	int fd = io->ops->open(io->ctx, path, flags | O_DIRECT, 0);

	return fd == -EINVAL ? io->ops->open(io->ctx, path, flags, 0) : fd;
}

/* All of it; a file that ends before is damaged. */
static int read_all(const struct log_io *io, int fd, void *buffer, size_t bytes, uint64_t offset)
{
	ssize_t n = io->ops->pread(io->ctx, fd, buffer, bytes, offset);

	if (n < 0)
		return (int)n;
	return (size_t)n == bytes ? 0 : -EUCLEAN;
}

static bool header_is_good(struct checkpoint_header *header, uint64_t number,
			   const uint8_t database[16])
{
	uint32_t crc = header->crc32c;
	bool is_good;

	header->crc32c = 0;
	is_good = !memcmp(header->magic, CHECKPOINT_MAGIC, LOG_MAGIC_BYTES) &&
		  header->version == CHECKPOINT_VERSION && header->number == number &&
		  !memcmp(header->database, database, sizeof(header->database)) &&
		  header->n_tables <= LOG_TABLES_MAX && header->start_group &&
		  crc32c(0, header, sizeof(*header)) == crc;
	header->crc32c = crc;
	return is_good;
}

static bool end_is_good(struct checkpoint_end *end, uint64_t number, const uint8_t database[16])
{
	uint32_t crc = end->crc32c;
	bool is_good;

	end->crc32c = 0;
	is_good = !memcmp(end->magic, CHECKPOINT_END_MAGIC, LOG_MAGIC_BYTES) &&
		  end->version == CHECKPOINT_VERSION && end->number == number &&
		  !memcmp(end->database, database, sizeof(end->database)) &&
		  crc32c(0, end, sizeof(*end)) == crc;
	end->crc32c = crc;
	return is_good;
}

static int look(const struct log_io *io, int fd, uint8_t *block, const uint8_t database[16],
		struct checkpoint_info *info)
{
	int rc = io->ops->size(io->ctx, fd, &info->bytes);

	if (rc || info->bytes < 2 * LOG_BLOCK_BYTES || info->bytes % LOG_BLOCK_BYTES)
		return rc;
	rc = read_all(io, fd, block, LOG_BLOCK_BYTES, 0);
	if (rc)
		return rc;
	memcpy(&info->header, block, sizeof(info->header));
	rc = read_all(io, fd, block, LOG_BLOCK_BYTES, info->bytes - LOG_BLOCK_BYTES);
	if (rc)
		return rc;
	memcpy(&info->end, block, sizeof(info->end));
	info->is_good = header_is_good(&info->header, info->number, database) &&
			end_is_good(&info->end, info->number, database);
	return 0;
}

int checkpoint_look(const struct log_io *io, const char *dir, uint64_t number,
		    const uint8_t database[16], struct checkpoint_info *ret_info)
{
	uint8_t *block = aligned_alloc(LOG_BLOCK_BYTES, LOG_BLOCK_BYTES);
	struct checkpoint_info info = { .number = number };
	char path[CHECKPOINT_PATH_BYTES];
	int rc, fd;

	if (!block)
		return -ENOMEM;
	rc = checkpoint_path(path, sizeof(path), dir, number, "");
	if (rc)
		goto out;
	fd = open_file(io, path);
	if (fd < 0) {
		rc = fd;
		goto out;
	}
	rc = look(io, fd, block, database, &info);
	io->ops->close(io->ctx, fd);
	if (!rc || rc == -EUCLEAN) {
		*ret_info = info;
		rc = 0;
	}
out:
	free(block);
	return rc;
}

struct reader {
	const struct log_io *io;
	const struct checkpoint_info *info;
	int fd;
	uint8_t *buffer;
	size_t room;
	uint64_t offset;	/* of the next block; then all of the file but the end */
	uint64_t n_blocks, n_rows;
};

static int make_room(struct reader *reader, size_t bytes)
{
	if (reader->room >= bytes)
		return 0;
	free(reader->buffer);
	reader->room = 0;
	reader->buffer = aligned_alloc(LOG_BLOCK_BYTES, bytes);
	if (!reader->buffer)
		return -ENOMEM;
	reader->room = bytes;
	return 0;
}

static bool block_is_good(const struct reader *reader, struct checkpoint_block *block)
{
	const struct checkpoint_header *header = &reader->info->header;
	uint32_t crc = block->crc32c;

	if (block->block != reader->n_blocks || block->number != reader->info->number ||
	    memcmp(block->database, header->database, sizeof(block->database)))
		return false;
	block->crc32c = 0;
	return crc32c(0, block, block->bytes) == crc;
}

/* Is it one, as far as its begin says, and what of it is there? */
static bool block_is_sane(const struct reader *reader, const struct checkpoint_block *block)
{
	uint64_t left = reader->info->bytes - LOG_BLOCK_BYTES - reader->offset;

	return !memcmp(block->magic, CHECKPOINT_BLOCK_MAGIC, LOG_MAGIC_BYTES) &&
	       block->bytes >= LOG_BLOCK_BYTES && block->bytes % LOG_BLOCK_BYTES == 0 &&
	       block->bytes <= left && block->table < reader->info->header.n_tables;
}

/* Most blocks are as long as each other, so that one read does for each. */
static int read_block(struct reader *reader, struct checkpoint_rows *ret_rows)
{
	uint64_t left = reader->info->bytes - LOG_BLOCK_BYTES - reader->offset;
	size_t first = left < CHECKPOINT_BLOCK_BYTES ? (size_t)left : CHECKPOINT_BLOCK_BYTES;
	struct checkpoint_block *block;
	uint32_t row_bytes;
	int rc;

	rc = make_room(reader, first) ?:
	     read_all(reader->io, reader->fd, reader->buffer, first, reader->offset);
	if (rc)
		return rc;
	block = (struct checkpoint_block *)reader->buffer;
	if (!block_is_sane(reader, block))
		return -EUCLEAN;
	if (block->bytes > first) {
		size_t bytes = block->bytes;

		rc = make_room(reader, bytes) ?:
		     read_all(reader->io, reader->fd, reader->buffer, bytes, reader->offset);
		if (rc)
			return rc;
		block = (struct checkpoint_block *)reader->buffer;
		if (block->bytes != bytes)
			return -EUCLEAN;
	}
	if (!block_is_good(reader, block))
		return -EUCLEAN;
	row_bytes = 8 + ((reader->info->header.tables[block->table].record_bytes + 7) & ~7u);
	if (block->n_rows > (block->bytes - sizeof(*block)) / row_bytes)
		return -EUCLEAN;
	*ret_rows = (struct checkpoint_rows){
		.table = block->table,
		.n_rows = block->n_rows,
		.row_bytes = row_bytes,
		.rows = reader->buffer + sizeof(*block),
		.offset = reader->offset + block->bytes,
	};
	return 0;
}

static int read_blocks(struct reader *reader,
		       int (*fn)(void *ctx, const struct checkpoint_rows *rows), void *ctx)
{
	while (reader->n_blocks < reader->info->end.n_blocks &&
	       reader->offset < reader->info->bytes - LOG_BLOCK_BYTES) {
		struct checkpoint_rows rows;
		int rc = read_block(reader, &rows);

		if (rc)
			return rc;
		rc = fn(ctx, &rows);
		if (rc)
			return rc;
		reader->offset = rows.offset;
		reader->n_blocks++;
		reader->n_rows += rows.n_rows;
	}
	return reader->n_blocks == reader->info->end.n_blocks &&
	       reader->n_rows == reader->info->end.n_rows ? 0 : -EUCLEAN;
}

int checkpoint_read(const struct log_io *io, const char *dir, const struct checkpoint_info *info,
		    int (*fn)(void *ctx, const struct checkpoint_rows *rows), void *ctx,
		    uint64_t *ret_offset)
{
	struct reader reader = { .io = io, .info = info, .offset = LOG_BLOCK_BYTES };
	char path[CHECKPOINT_PATH_BYTES];
	int rc = checkpoint_path(path, sizeof(path), dir, info->number, "");

	*ret_offset = 0;
	if (rc)
		return rc;
	reader.fd = open_file(io, path);
	if (reader.fd < 0)
		return reader.fd;
	rc = read_blocks(&reader, fn, ctx);
	*ret_offset = reader.offset;
	io->ops->close(io->ctx, reader.fd);
	free(reader.buffer);
	return rc;
}
