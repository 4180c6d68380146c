// SPDX-License-Identifier: GPL-2.0-or-later
/* See recover_lazy.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_directory.h"
#include "checkpoint_file.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/cold/cold_checkpoint.h"
#include "oltp-engine/src/txn/engine.h"
#include "recover_lazy.h"

struct lazy {
	struct recover_read *read;
	const struct checkpoint_info *info;
	int fd;
	uint8_t *buffer;
	size_t room;
	uint64_t offset;	/* of the part at hand */
};

static bool can_stay(const struct oltp_table *table)
{
	return !table->n_ordered && cold_slots(table);
}

static bool can_any_stay(const struct lazy *lazy)
{
	for (uint32_t i = 0; i < lazy->info->header.n_tables; i++) {
		if (can_stay(lazy->read->engine->tables[i]))
			return true;
	}
	return false;
}

/* *ret_at: the first row of the part, in memory. */
static int read_part(struct lazy *lazy, uint64_t offset, uint64_t bytes, const uint8_t **ret_at)
{
	const struct io_files *io = lazy->read->io;
	uint64_t from = offset & ~(uint64_t)(LOG_BLOCK_BYTES - 1);
	uint64_t end = (offset + bytes + LOG_BLOCK_BYTES - 1) & ~(uint64_t)(LOG_BLOCK_BYTES - 1);
	ssize_t n;

	if (lazy->room < end - from) {
		free(lazy->buffer);
		lazy->room = 0;
		lazy->buffer = aligned_alloc(LOG_BLOCK_BYTES, end - from);
		if (!lazy->buffer)
			return -ENOMEM;
		lazy->room = end - from;
	}
	n = io_pread(io, lazy->fd, lazy->buffer, end - from, from);
	if (n < 0)
		return (int)n;
	if ((uint64_t)n != end - from)
		return -EIO;
	lazy->read->figures.checkpoint_bytes += end - from;
	*ret_at = lazy->buffer + (offset - from);
	return 0;
}

static int load_part(struct lazy *lazy, const struct checkpoint_part *part, const uint64_t *keys,
		     const uint32_t *checks)
{
	struct recover_read *read = lazy->read;
	struct oltp_table *table = read->engine->tables[part->table];
	const uint32_t row_bytes = checkpoint_row_bytes(table->record_bytes);
	const uint8_t *row = NULL;
	int rc = read_part(lazy, part->offset, (uint64_t)part->n_rows * row_bytes, &row);

	for (uint32_t i = 0; !rc && i < part->n_rows; i++, row += row_bytes) {
		if (crc32c(0, row, row_bytes) != checks[i] || memcmp(row, &keys[i], sizeof(*keys)))
			return -EUCLEAN;
		rc = read->sink->put(read->ctx, table, keys[i], row + sizeof(*keys));
	}
	return rc ?: read->sink->flush(read->ctx);
}

static int part(void *ctx, const struct checkpoint_part *part, const uint64_t *keys,
		const uint32_t *checks)
{
	struct lazy *lazy = ctx;
	struct oltp_table *table = lazy->read->engine->tables[part->table];

	lazy->offset = part->offset;
	if (!can_stay(table))
		return load_part(lazy, part, keys, checks);
	lazy->read->figures.lazy_rows += part->n_rows;
	return cold_checkpoint_add(lazy->read->engine->cold, &(struct cold_checkpoint_rows){
		.table = table,
		.offset = part->offset,
		.row_bytes = checkpoint_row_bytes(table->record_bytes),
		.n = part->n_rows,
		.keys = keys,
		.checks = checks,
	});
}

static int refuse(struct lazy *lazy, const char *why)
{
	lazy->read->figures.not_lazy = why;
	return 1;
}

static int open_and_add(struct lazy *lazy, const char *path)
{
	struct recover_read *read = lazy->read;
	struct cold *cold = read->engine->cold;
	struct checkpoint_directory directory;
	int rc;

	rc = checkpoint_directory_read(read->io, lazy->fd, lazy->info, &directory);
	if (rc == -EUCLEAN)
		return refuse(lazy, "the directory of the checkpoint is damaged");
	if (rc)
		return rc;
	read->figures.checkpoint_bytes += directory.bytes;
	rc = cold_checkpoint_open(cold, read->io, path, lazy->info->number);
	if (!rc) {
		rc = checkpoint_directory_each(&directory, part, lazy);
		cold_checkpoint_added(cold);
	}
	checkpoint_directory_finish(&directory);
	return rc;
}

int recover_lazy(struct recover_read *read)
{
	struct lazy lazy = { .read = read, .info = recover_read_planned(read) };
	char path[CHECKPOINT_PATH_BYTES];
	int rc;

	if (!read->engine->cold)
		return refuse(&lazy, "there is no cold_dir");
	if (!lazy.info)
		return refuse(&lazy, "there is no checkpoint");
	if (!lazy.info->directory.n_pieces)
		return refuse(&lazy, "the checkpoint has no directory");
	if (!can_any_stay(&lazy))
		return refuse(&lazy, "all tables have ordered indexes or too long records");
	rc = checkpoint_path(path, sizeof(path), read->dir, lazy.info->number, "");
	if (!rc) {
		lazy.fd = io_open_direct(read->io, path, O_RDONLY | O_CLOEXEC, 0);
		rc = lazy.fd < 0 ? lazy.fd : open_and_add(&lazy, path);
		if (lazy.fd >= 0)
			read->io->ops->close(read->io->ctx, lazy.fd);
	}
	free(lazy.buffer);
	if (rc < 0)
		return recover_complain(read, rc, CHECKPOINT_NAME ", offset %" PRIu64 ": %s",
					(unsigned long long)lazy.info->number, lazy.offset,
					rc == -EUCLEAN ? "damaged" : strerror(-rc));
	if (rc)
		return rc;
	read->figures.csn = lazy.info->end.end_csn - 1;
	read->figures.epoch = lazy.info->end.end_epoch;
	return 0;
}
