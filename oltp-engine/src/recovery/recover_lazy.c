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
#include "oltp-engine/src/txn/ordered.h"
#include "recover_lazy.h"
#include "recover_redo.h"

struct lazy {
	struct recover_read *read;
	const struct checkpoint_info *info;
	struct checkpoint_directory directory;
	struct oltp_worker *worker;	/* for the epoch, in which nodes of indexes stay */
	uint32_t n_parts[OLTP_TABLES_MAX];
	bool must_load[OLTP_TABLES_MAX];	/* not all of its parts can stay */
	int fd;
	uint8_t *buffer;
	size_t room;
	uint64_t offset;	/* of the part at hand */
};

/* A table whose indexes need other sort keys than the directory has is loaded. */
static int look_at(void *ctx, const struct checkpoint_part *part,
		   const struct checkpoint_keys *keys)
{
	struct lazy *lazy = ctx;
	const struct oltp_table *table = lazy->read->engine->tables[part->kind.table];

	(void)keys;
	lazy->n_parts[table->id]++;
	if (!cold_slots(table) || part->kind.n_sorts != table->n_keyed ||
	    part->kind.sorts_check != table->keyed_check)
		lazy->must_load[table->id] = true;
	return 0;
}

static bool can_any_stay(struct lazy *lazy)
{
	checkpoint_directory_each(&lazy->directory, look_at, lazy);
	for (uint32_t i = 0; i < OLTP_TABLES_MAX; i++) {
		if (lazy->n_parts[i] && !lazy->must_load[i])
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

static int load_part(struct lazy *lazy, const struct checkpoint_part *part,
		     const struct checkpoint_keys *keys)
{
	struct recover_read *read = lazy->read;
	struct oltp_table *table = read->engine->tables[part->kind.table];
	const uint32_t row_bytes = checkpoint_row_bytes(table->record_bytes);
	const uint8_t *row = NULL;
	int rc = read_part(lazy, part->offset, (uint64_t)part->n_rows * row_bytes, &row);

	for (uint32_t i = 0; !rc && i < part->n_rows; i++, row += row_bytes) {
		uint64_t key = keys->keys[i];

		if (crc32c(0, row, row_bytes) != keys->checks[i] || memcmp(row, &key, sizeof(key)))
			return -EUCLEAN;
		rc = read->sink->put(read->ctx, table, key, row + sizeof(key));
	}
	return rc ?: read->sink->flush(read->ctx);
}

/*
 * A later row of a key takes the place of one that is in the indexes already. The later one may be
 * there, too, and both may have the same sort keys, so those go in once more.
 */
static int replaced(struct oltp_table *table, uint64_t key, const uint64_t *before,
		    const uint64_t *sorts)
{
	ordered_take(table, key, before);
	return ordered_add(table, key, sorts);
}

/* Its rows into the ordered indexes, and stubs for them into the index by primary key. */
static int leave_part(struct lazy *lazy, const struct checkpoint_part *part,
		      const struct checkpoint_keys *keys)
{
	struct oltp_table *table = lazy->read->engine->tables[part->kind.table];
	const uint64_t *sorts = keys->sorts;
	int rc = 0;

	lazy->read->figures.lazy_rows += part->n_rows;
	oltp_txn_begin(lazy->worker);
	for (uint32_t i = 0; table->n_ordered && !rc && i < part->n_rows; i++) {
		rc = ordered_add(table, keys->keys[i], sorts);
		sorts += table->n_keyed;
	}
	rc = rc ?: cold_checkpoint_add(lazy->read->engine->cold, &(struct cold_checkpoint_rows){
		.table = table,
		.offset = part->offset,
		.row_bytes = checkpoint_row_bytes(table->record_bytes),
		.n = part->n_rows,
		.keys = keys->keys,
		.sorts = keys->sorts,
		.checks = keys->checks,
		.replaced = replaced,
	});
	oltp_txn_abort(lazy->worker);
	return rc;
}

static int take_part(void *ctx, const struct checkpoint_part *part,
		     const struct checkpoint_keys *keys)
{
	struct lazy *lazy = ctx;

	lazy->offset = part->offset;
	return lazy->must_load[part->kind.table] ? load_part(lazy, part, keys) :
						   leave_part(lazy, part, keys);
}

static int refuse(struct lazy *lazy, const char *why)
{
	lazy->read->figures.not_lazy = why;
	return 1;
}

static int add(struct lazy *lazy, const char *path)
{
	struct recover_read *read = lazy->read;
	struct cold *cold = read->engine->cold;
	int rc;

	if (lazy->info->end.n_rows && !can_any_stay(lazy))
		return refuse(lazy, "all tables have too long records, or indexes of which the "
				    "checkpoint has no keys");
	rc = redo_worker_create(read->engine, &lazy->worker);
	if (rc)
		return rc;
	rc = cold_checkpoint_open(cold, read->io, path, lazy->info->number);
	if (!rc) {
		rc = checkpoint_directory_each(&lazy->directory, take_part, lazy);
		cold_checkpoint_added(cold);
	}
	oltp_worker_destroy(lazy->worker);
	return rc;
}

static int open_and_add(struct lazy *lazy, const char *path)
{
	struct recover_read *read = lazy->read;
	int rc;

	rc = checkpoint_directory_read(read->io, lazy->fd, lazy->info, &lazy->directory);
	if (rc == -EUCLEAN)
		return refuse(lazy, "the directory of the checkpoint is damaged");
	if (rc)
		return rc;
	read->figures.checkpoint_bytes += lazy->directory.bytes;
	rc = add(lazy, path);
	checkpoint_directory_finish(&lazy->directory);
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
