// SPDX-License-Identifier: GPL-2.0-or-later
/* The files of checkpoints: writes one, reads one, finds all. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_file.h"
#include "oltp-engine/src/base/checksum.h"

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
	rc = io_write_all(writer->io, writer->fd, block, LOG_BLOCK_BYTES, writer->offset);
	if (!rc)
		writer->offset += LOG_BLOCK_BYTES;
	free(block);
	return rc;
}

/*
 * The spare under the new name, to be written over. Nothing need be synced: should a crash bring a
 * name back that the file had as a checkpoint, there is a newer one.
 */
static int use_spare(struct checkpoint_writer *writer, const char *path,
		     const struct checkpoint_spare *spare)
{
	const struct io_files *io = writer->io;
	char from[CHECKPOINT_PATH_BYTES];
	int rc;

	rc = checkpoint_path(from, sizeof(from), writer->dir, spare->number,
			     CHECKPOINT_TEMP_SUFFIX) ?:
	     io->ops->rename(io->ctx, from, path);
	if (rc)
		return rc;
	writer->fd = io_open_direct(io, path, O_WRONLY | O_CLOEXEC, 0);
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

int checkpoint_writer_open(struct checkpoint_writer *writer, const struct io_files *io,
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
	/* A spare that cannot be used is made empty. */
	if (!spare || use_spare(writer, path, spare))
		writer->fd = io_open_direct(io, path,
					    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (writer->fd < 0)
		return writer->fd;
	rc = write_block(writer, &writer->header, sizeof(writer->header));
	writer->planned = writer->offset;
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

/* An empty block, the next one; NULL: out of memory. */
static struct checkpoint_buffer *block_begin(struct checkpoint_writer *writer, uint32_t table,
					     size_t room)
{
	struct checkpoint_buffer *buffer = buffer_get(writer, room);

	if (!buffer)
		return NULL;
	buffer->used = sizeof(*buffer->block);
	*buffer->block = (struct checkpoint_block){
		.number = writer->header.number,
		.block = writer->n_blocks++,
		.table = table,
	};
	memcpy(buffer->block->magic, CHECKPOINT_BLOCK_MAGIC, LOG_MAGIC_BYTES);
	memcpy(buffer->block->database, writer->header.database, sizeof(writer->header.database));
	return buffer;
}

/* It is to be written, behind all others. Returns where it will be. */
static uint64_t block_end(struct checkpoint_writer *writer, struct checkpoint_buffer *buffer)
{
	uint64_t offset = writer->planned;

	writer->planned += (buffer->used + LOG_BLOCK_BYTES - 1) & ~(uint64_t)(LOG_BLOCK_BYTES - 1);
	buffer->next = NULL;
	*writer->full_end = buffer;
	writer->full_end = &buffer->next;
	return offset;
}

/* What the directory has collected becomes a piece. */
static int piece_end(struct checkpoint_writer *writer)
{
	struct directory_builder *directory = &writer->directory;
	size_t bytes = directory_piece_bytes(directory);
	struct checkpoint_buffer *buffer = block_begin(writer, 0, sizeof(*buffer->block) + bytes);

	if (!buffer)
		return -ENOMEM;
	directory_piece_take(directory, (uint8_t *)buffer->block + buffer->used, writer->planned);
	buffer->used += bytes;
	buffer->is_piece = true;
	block_end(writer, buffer);
	return 0;
}

static int filling_ends(struct checkpoint_writer *writer)
{
	struct checkpoint_buffer *buffer = writer->filling;
	uint64_t offset;
	int rc;

	if (!buffer)
		return 0;
	writer->filling = NULL;
	offset = block_end(writer, buffer) + sizeof(*buffer->block);
	rc = directory_part_end(&writer->directory, offset, &writer->kind, buffer->block->n_rows);
	return !rc && directory_is_full(&writer->directory) ? piece_end(writer) : rc;
}

static int filling_begins(struct checkpoint_writer *writer, const struct checkpoint_kind *kind,
			  size_t row_bytes)
{
	size_t least = sizeof(struct checkpoint_block) + row_bytes;

	writer->kind = *kind;
	writer->filling = block_begin(writer, kind->table, least > CHECKPOINT_BLOCK_BYTES ?
							   least : CHECKPOINT_BLOCK_BYTES);
	return writer->filling ? 0 : -ENOMEM;
}

int checkpoint_writer_add(struct checkpoint_writer *writer, const struct checkpoint_kind *kind,
			  const struct checkpoint_row *row)
{
	const size_t row_bytes = checkpoint_row_bytes(row->record_bytes);
	const size_t used = sizeof(row->key) + row->record_bytes;
	struct checkpoint_buffer *buffer = writer->filling;
	uint8_t *at;
	int rc;

	if (!buffer || buffer->block->table != kind->table ||
	    buffer->room - buffer->used < row_bytes) {
		rc = filling_ends(writer) ?: filling_begins(writer, kind, row_bytes);
		if (rc)
			return rc;
		buffer = writer->filling;
	}
	at = (uint8_t *)buffer->block + buffer->used;
	memcpy(at, &row->key, sizeof(row->key));
	memcpy(at + sizeof(row->key), row->record, row->record_bytes);
	memset(at + used, 0, row_bytes - used);
	rc = directory_row_add(&writer->directory, row->key, row->sorts, kind->n_sorts,
			       crc32c(0, at, row_bytes));
	if (rc)
		return rc;
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
	rc = io_write_all(writer->io, writer->fd, buffer->block, bytes, writer->offset);
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
	if (buffer->is_piece) {
		buffer_free(buffer);
		return 0;
	}
	buffer->next = writer->free;
	writer->free = buffer;
	return 0;
}

int checkpoint_writer_finish(struct checkpoint_writer *writer, uint64_t end_group,
			     uint64_t end_csn, uint64_t end_epoch)
{
	struct {
		struct checkpoint_end end;
		struct checkpoint_directory_ref directory;
	} last = {
		.end = {
			.version = CHECKPOINT_VERSION,
			.number = writer->header.number,
			.n_rows = writer->n_rows,
			.end_group = end_group,
			.end_csn = end_csn,
			.end_epoch = end_epoch,
		},
	};
	int rc = filling_ends(writer);

	if (!rc && writer->directory.n_rows)
		rc = piece_end(writer);
	while (!rc && writer->full)
		rc = checkpoint_writer_write(writer);
	if (rc)
		return rc;
	last.end.n_blocks = writer->n_blocks;
	memcpy(last.end.magic, CHECKPOINT_END_MAGIC, LOG_MAGIC_BYTES);
	memcpy(last.end.database, writer->header.database, sizeof(last.end.database));
	last.end.crc32c = crc32c(0, &last.end, sizeof(last.end));
	directory_ref_fill(&writer->directory, &last.directory);
	/* The end is where the file ends, whatever lies before it in a file that was longer. */
	if (writer->offset + LOG_BLOCK_BYTES < writer->file_bytes)
		writer->offset = writer->file_bytes - LOG_BLOCK_BYTES;
	return write_block(writer, &last, sizeof(last)) ?:
	       writer->io->ops->fdatasync(writer->io->ctx, writer->fd);
}

int checkpoint_writer_publish(struct checkpoint_writer *writer)
{
	char from[CHECKPOINT_PATH_BYTES], to[CHECKPOINT_PATH_BYTES];
	const struct io_files *io = writer->io;
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

	buffer_free(writer->filling);
	buffers_free(writer->full);
	buffers_free(writer->free);
	if (writer->fd >= 0) {
		writer->io->ops->close(writer->io->ctx, writer->fd);
		if (!checkpoint_path(path, sizeof(path), writer->dir, writer->header.number,
				     CHECKPOINT_TEMP_SUFFIX))
			writer->io->ops->unlink(writer->io->ctx, path);
	}
	directory_builder_finish(&writer->directory);
	*writer = (struct checkpoint_writer){ .fd = -1 };
}

/* Reads all of it; -EUCLEAN: the file ends before. */
static int read_all(const struct io_files *io, int fd, void *buffer, size_t bytes, uint64_t offset)
{
	ssize_t n = io_pread(io, fd, buffer, bytes, offset);

	if (n < 0)
		return (int)n;
	return (size_t)n == bytes ? 0 : -EUCLEAN;
}

static bool header_is_good(const struct checkpoint_header *header, uint64_t number,
			   const uint8_t database[16])
{
	return !memcmp(header->magic, CHECKPOINT_MAGIC, LOG_MAGIC_BYTES) &&
	       header->version == CHECKPOINT_VERSION && header->number == number &&
	       !memcmp(header->database, database, sizeof(header->database)) &&
	       header->n_tables <= LOG_TABLES_MAX && header->start_group &&
	       header->crc32c == crc32c_without(header, sizeof(*header),
						offsetof(struct checkpoint_header, crc32c));
}

static bool end_is_good(const struct checkpoint_end *end, uint64_t number,
			const uint8_t database[16])
{
	return !memcmp(end->magic, CHECKPOINT_END_MAGIC, LOG_MAGIC_BYTES) &&
	       end->version == CHECKPOINT_VERSION && end->number == number &&
	       !memcmp(end->database, database, sizeof(end->database)) &&
	       end->crc32c == crc32c_without(end, sizeof(*end),
					     offsetof(struct checkpoint_end, crc32c));
}

static int look(const struct io_files *io, int fd, uint8_t *block, const uint8_t database[16],
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
	memcpy(&info->directory, block + sizeof(info->end), sizeof(info->directory));
	if (!directory_ref_is_good(&info->directory))
		info->directory.n_pieces = 0;
	info->is_good = header_is_good(&info->header, info->number, database) &&
			end_is_good(&info->end, info->number, database);
	return 0;
}

int checkpoint_look(const struct io_files *io, const char *dir, uint64_t number,
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
	fd = io_open_direct(io, path, O_RDONLY | O_CLOEXEC, 0);
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
	const struct io_files *io;
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

/* Does it begin like a block that is no longer than that? */
static bool block_is_sane(const struct checkpoint_block *block, uint64_t bytes_max,
			  const struct checkpoint_header *header)
{
	return !memcmp(block->magic, CHECKPOINT_BLOCK_MAGIC, LOG_MAGIC_BYTES) &&
	       block->bytes >= LOG_BLOCK_BYTES && block->bytes % LOG_BLOCK_BYTES == 0 &&
	       block->bytes <= bytes_max && block->table < header->n_tables;
}

bool checkpoint_block_is_good(const struct checkpoint_block *block, uint64_t bytes_max,
			      const struct checkpoint_header *header)
{
	return block_is_sane(block, bytes_max, header) && block->number == header->number &&
	       !memcmp(block->database, header->database, sizeof(block->database)) &&
	       block->crc32c == crc32c_without(block, block->bytes,
					       offsetof(struct checkpoint_block, crc32c));
}

/* Most blocks are of the same length, so that one read does for each. */
static int read_block(struct reader *reader, struct checkpoint_rows *ret_rows)
{
	uint64_t left = reader->info->bytes - LOG_BLOCK_BYTES - reader->offset;
	size_t first = left < CHECKPOINT_BLOCK_BYTES ? (size_t)left : CHECKPOINT_BLOCK_BYTES;
	const struct checkpoint_header *header = &reader->info->header;
	struct checkpoint_block *block;
	uint32_t row_bytes;
	int rc;

	rc = make_room(reader, first) ?:
	     read_all(reader->io, reader->fd, reader->buffer, first, reader->offset);
	if (rc)
		return rc;
	block = (struct checkpoint_block *)reader->buffer;
	if (!block_is_sane(block, left, header))
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
	if (block->block != reader->n_blocks || !checkpoint_block_is_good(block, left, header))
		return -EUCLEAN;
	row_bytes = checkpoint_row_bytes(header->tables[block->table].record_bytes);
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

int checkpoint_read(const struct io_files *io, const char *dir, const struct checkpoint_info *info,
		    int (*fn)(void *ctx, const struct checkpoint_rows *rows), void *ctx,
		    uint64_t *ret_offset)
{
	struct reader reader = { .io = io, .info = info, .offset = LOG_BLOCK_BYTES };
	char path[CHECKPOINT_PATH_BYTES];
	int rc = checkpoint_path(path, sizeof(path), dir, info->number, "");

	*ret_offset = 0;
	if (rc)
		return rc;
	reader.fd = io_open_direct(io, path, O_RDONLY | O_CLOEXEC, 0);
	if (reader.fd < 0)
		return reader.fd;
	rc = read_blocks(&reader, fn, ctx);
	*ret_offset = reader.offset;
	io->ops->close(io->ctx, reader.fd);
	free(reader.buffer);
	return rc;
}

int recover_files_list(const struct io_files *io, const char *dir, struct recover_files *ret_files)
{
	struct recover_files files = { .n_segments = 0 };
	int rc;

	rc = io_list_numbers(io, dir, LOG_SEGMENT_NAME, &files.segments, &files.n_segments) ?:
	     io_list_numbers(io, dir, CHECKPOINT_NAME, &files.checkpoints,
			     &files.n_checkpoints) ?:
	     io_list_numbers(io, dir, CHECKPOINT_NAME CHECKPOINT_TEMP_SUFFIX, &files.temps,
			     &files.n_temps);
	if (rc)
		recover_files_finish(&files);
	else
		*ret_files = files;
	return rc;
}

void recover_files_finish(struct recover_files *files)
{
	free(files->segments);
	free(files->checkpoints);
	free(files->temps);
	*files = (struct recover_files){ .n_segments = 0 };
}
