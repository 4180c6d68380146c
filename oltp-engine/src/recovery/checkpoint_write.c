// SPDX-License-Identifier: GPL-2.0-or-later
/* See checkpoint_write.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_write.h"
#include "oltp-engine/src/base/crc32c.h"

int checkpoint_path(char *path, size_t room, const char *dir, uint64_t number, const char *suffix)
{
	int n = snprintf(path, room, "%s/" CHECKPOINT_NAME "%s", dir, (unsigned long long)number,
			 suffix);

	return n < 0 || (size_t)n >= room ? -ENAMETOOLONG : 0;
}

/* A structure at the begin of a block of its own. */
static int write_block(struct checkpoint_writer *writer, const void *data, size_t bytes)
{
	uint8_t *block = aligned_alloc(LOG_BLOCK_BYTES, LOG_BLOCK_BYTES);
	int rc;

	if (!block)
		return -ENOMEM;
	memset(block, 0, LOG_BLOCK_BYTES);
	memcpy(block, data, bytes);
	rc = log_io_write_all(writer->io, writer->fd, block, LOG_BLOCK_BYTES, writer->offset);
	if (!rc)
		writer->offset += LOG_BLOCK_BYTES;
	free(block);
	return rc;
}

static int open_file(const struct log_io *io, const char *path, int flags)
{
	int fd;

	flags |= O_WRONLY | O_CLOEXEC;
	fd = io->ops->open(io->ctx, path, flags | O_DIRECT, 0600);
	return fd == -EINVAL ? io->ops->open(io->ctx, path, flags, 0600) : fd;
}

/*
 * The spare under the new name, to be written over. Nothing need be synced: should a crash bring a
 * name back that the file had as a checkpoint, there is a newer one.
 */
static int use_spare(struct checkpoint_writer *writer, const char *path,
		     const struct checkpoint_spare *spare)
{
	const struct log_io *io = writer->io;
	char from[CHECKPOINT_PATH_BYTES];
	int rc;

	rc = checkpoint_path(from, sizeof(from), writer->dir, spare->number,
			     CHECKPOINT_TEMP_SUFFIX) ?:
	     io->ops->rename(io->ctx, from, path);
	if (rc)
		return rc;
	writer->fd = open_file(io, path, 0);
	if (writer->fd < 0)
		return writer->fd;
	rc = io->ops->size(io->ctx, writer->fd, &writer->file_bytes);
	if (!rc && writer->file_bytes <= spare->bytes_max &&
	    writer->file_bytes % LOG_BLOCK_BYTES == 0)
		return 0;
	io->ops->close(io->ctx, writer->fd);
	writer->fd = -1;
	writer->file_bytes = 0;
	return rc ?: -EFBIG;
}

int checkpoint_writer_open(struct checkpoint_writer *writer, const struct log_io *io,
			   const char *dir, const struct checkpoint_header *header,
			   const struct checkpoint_spare *spare)
{
	char path[CHECKPOINT_PATH_BYTES];
	int rc;

	*writer = (struct checkpoint_writer){ .io = io, .dir = dir, .header = *header, .fd = -1 };
	writer->full_end = &writer->full;
	memcpy(writer->header.magic, CHECKPOINT_MAGIC, LOG_MAGIC_BYTES);
	writer->header.version = CHECKPOINT_VERSION;
	writer->header.crc32c = 0;
	writer->header.crc32c = crc32c(0, &writer->header, sizeof(writer->header));
	rc = checkpoint_path(path, sizeof(path), dir, header->number, CHECKPOINT_TEMP_SUFFIX);
	if (rc)
		return rc;
	/* A spare that is of no use is made empty. */
	if (!spare || use_spare(writer, path, spare))
		writer->fd = open_file(io, path, O_CREAT | O_TRUNC);
	if (writer->fd < 0)
		return writer->fd;
	rc = write_block(writer, &writer->header, sizeof(writer->header));
	if (rc)
		checkpoint_writer_close(writer);
	return rc;
}

static void buffer_free(struct checkpoint_buffer *buffer)
{
	if (buffer)
		free(buffer->block);
	free(buffer);
}

static struct checkpoint_buffer *buffer_get(struct checkpoint_writer *writer, size_t room)
{
	struct checkpoint_buffer *buffer = writer->free;

	room = (room + LOG_BLOCK_BYTES - 1) & ~(size_t)(LOG_BLOCK_BYTES - 1);
	if (buffer && buffer->room >= room) {
		writer->free = buffer->next;
		return buffer;
	}
	buffer = calloc(1, sizeof(*buffer));
	if (!buffer)
		return NULL;
	buffer->block = aligned_alloc(LOG_BLOCK_BYTES, room);
	buffer->room = room;
	if (!buffer->block) {
		free(buffer);
		return NULL;
	}
	return buffer;
}

static void filling_ends(struct checkpoint_writer *writer)
{
	if (!writer->filling)
		return;
	writer->filling->next = NULL;
	*writer->full_end = writer->filling;
	writer->full_end = &writer->filling->next;
	writer->filling = NULL;
}

static int filling_begins(struct checkpoint_writer *writer, uint32_t table, size_t row_bytes)
{
	size_t least = sizeof(struct checkpoint_block) + row_bytes;
	struct checkpoint_buffer *buffer =
		buffer_get(writer, least > CHECKPOINT_BLOCK_BYTES ? least : CHECKPOINT_BLOCK_BYTES);

	if (!buffer)
		return -ENOMEM;
	buffer->used = sizeof(*buffer->block);
	*buffer->block = (struct checkpoint_block){
		.number = writer->header.number,
		.block = writer->n_blocks++,
		.table = table,
	};
	memcpy(buffer->block->magic, CHECKPOINT_BLOCK_MAGIC, LOG_MAGIC_BYTES);
	memcpy(buffer->block->database, writer->header.database, sizeof(writer->header.database));
	writer->filling = buffer;
	return 0;
}

int checkpoint_writer_add(struct checkpoint_writer *writer, uint32_t table, uint32_t record_bytes,
			  uint64_t key, const void *record)
{
	size_t padded = ((size_t)record_bytes + 7) & ~(size_t)7;
	size_t row_bytes = sizeof(key) + padded;
	struct checkpoint_buffer *buffer = writer->filling;
	uint8_t *at;

	if (!buffer || buffer->block->table != table || buffer->room - buffer->used < row_bytes) {
		int rc;

		filling_ends(writer);
		rc = filling_begins(writer, table, row_bytes);
		if (rc)
			return rc;
		buffer = writer->filling;
	}
	at = (uint8_t *)buffer->block + buffer->used;
	memcpy(at, &key, sizeof(key));
	memcpy(at + sizeof(key), record, record_bytes);
	memset(at + sizeof(key) + record_bytes, 0, padded - record_bytes);
	buffer->used += row_bytes;
	buffer->block->n_rows++;
	writer->n_rows++;
	return 0;
}

static int write_buffer(struct checkpoint_writer *writer, const struct checkpoint_buffer *buffer)
{
	size_t bytes = (buffer->used + LOG_BLOCK_BYTES - 1) & ~(size_t)(LOG_BLOCK_BYTES - 1);
	int rc;

	memset((uint8_t *)buffer->block + buffer->used, 0, bytes - buffer->used);
	buffer->block->bytes = (uint32_t)bytes;
	buffer->block->crc32c = 0;
	buffer->block->crc32c = crc32c(0, buffer->block, bytes);
	rc = log_io_write_all(writer->io, writer->fd, buffer->block, bytes, writer->offset);
	if (!rc)
		writer->offset += bytes;
	return rc;
}

int checkpoint_writer_write(struct checkpoint_writer *writer)
{
	struct checkpoint_buffer *buffer = writer->full;
	int rc = write_buffer(writer, buffer);

	if (rc)
		return rc;
	writer->full = buffer->next;
	if (!writer->full)
		writer->full_end = &writer->full;
	buffer->next = writer->free;
	writer->free = buffer;
	return 0;
}

int checkpoint_writer_finish(struct checkpoint_writer *writer, uint64_t end_group,
			     uint64_t end_csn, uint64_t end_epoch)
{
	struct checkpoint_end end = {
		.version = CHECKPOINT_VERSION,
		.number = writer->header.number,
		.n_blocks = writer->n_blocks,
		.n_rows = writer->n_rows,
		.end_group = end_group,
		.end_csn = end_csn,
		.end_epoch = end_epoch,
	};
	int rc = 0;

	filling_ends(writer);
	while (!rc && writer->full)
		rc = checkpoint_writer_write(writer);
	if (rc)
		return rc;
	memcpy(end.magic, CHECKPOINT_END_MAGIC, LOG_MAGIC_BYTES);
	memcpy(end.database, writer->header.database, sizeof(end.database));
	end.crc32c = crc32c(0, &end, sizeof(end));
	/* The end is where the file ends, whatever lies before it in a file that was longer. */
	if (writer->offset + LOG_BLOCK_BYTES < writer->file_bytes)
		writer->offset = writer->file_bytes - LOG_BLOCK_BYTES;
	return write_block(writer, &end, sizeof(end)) ?:
	       writer->io->ops->fdatasync(writer->io->ctx, writer->fd);
}

int checkpoint_writer_publish(struct checkpoint_writer *writer)
{
	char from[CHECKPOINT_PATH_BYTES], to[CHECKPOINT_PATH_BYTES];
	const struct log_io *io = writer->io;
	int rc;

	rc = checkpoint_path(from, sizeof(from), writer->dir, writer->header.number,
			     CHECKPOINT_TEMP_SUFFIX) ?:
	     checkpoint_path(to, sizeof(to), writer->dir, writer->header.number, "");
	if (rc)
		return rc;
	io->ops->close(io->ctx, writer->fd);
	writer->fd = -1;
	rc = io->ops->rename(io->ctx, from, to);
	if (rc) {
		io->ops->unlink(io->ctx, from);
		return rc;
	}
	return io->ops->sync_dir(io->ctx, writer->dir);
}

static void buffers_free(struct checkpoint_buffer *buffer)
{
	while (buffer) {
		struct checkpoint_buffer *next = buffer->next;

		buffer_free(buffer);
		buffer = next;
	}
}

void checkpoint_writer_close(struct checkpoint_writer *writer)
{
	char path[CHECKPOINT_PATH_BYTES];

	filling_ends(writer);
	buffers_free(writer->full);
	buffers_free(writer->free);
	if (writer->fd >= 0) {
		writer->io->ops->close(writer->io->ctx, writer->fd);
		if (!checkpoint_path(path, sizeof(path), writer->dir, writer->header.number,
				     CHECKPOINT_TEMP_SUFFIX))
			writer->io->ops->unlink(writer->io->ctx, path);
	}
	*writer = (struct checkpoint_writer){ .fd = -1 };
}
