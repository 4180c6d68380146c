// SPDX-License-Identifier: GPL-2.0-or-later
/* See log_rig.h. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "log_rig.h"

/* ---- between engine and disk ---- */

static int fake_open(void *ctx, const char *path, int flags, mode_t mode)
{
	struct log_fake *fake = ctx;
	int error = 0;

	pthread_mutex_lock(&fake->lock);
	if (flags & O_CREAT) {
		fake->n_files++;
		error = fake->open_error;
		if (strstr(path, "checkpoint"))
			error = fake->checkpoint_error ?: error;
	}
	if (flags & O_DIRECT) {
		fake->n_direct++;
		error = fake->no_direct ? -EINVAL : error;
	}
	pthread_mutex_unlock(&fake->lock);
	return error ?: fake->real.ops->open(fake->real.ctx, path, flags, mode);
}

static void fake_close(void *ctx, int fd)
{
	struct log_fake *fake = ctx;

	fake->real.ops->close(fake->real.ctx, fd);
}

static int fake_lock(void *ctx, int fd)
{
	struct log_fake *fake = ctx;

	return fake->real.ops->lock(fake->real.ctx, fd);
}

static int fake_size(void *ctx, int fd, uint64_t *ret_bytes)
{
	struct log_fake *fake = ctx;

	return fake->real.ops->size(fake->real.ctx, fd, ret_bytes);
}

static ssize_t fake_pread(void *ctx, int fd, void *buffer, size_t size, uint64_t offset)
{
	struct log_fake *fake = ctx;

	atomic_fetch_add(&fake->read_bytes, size);
	return fake->real.ops->pread(fake->real.ctx, fd, buffer, size, offset);
}

static ssize_t fake_pwritev(void *ctx, int fd, const struct iovec *iov, int n, uint64_t offset)
{
	struct log_fake *fake = ctx;

	return fake->real.ops->pwritev(fake->real.ctx, fd, iov, n, offset);
}

static ssize_t fake_pwritev_sync(void *ctx, int fd, const struct iovec *iov, int n, uint64_t offset)
{
	struct iovec block = { iov[0].iov_base, LOG_BLOCK_BYTES };
	struct log_fake *fake = ctx;
	enum log_fake_mode mode;
	ssize_t done;

	pthread_mutex_lock(&fake->lock);
	fake->n_writes++;
	while (fake->mode == LOG_FAKE_HOLD) {
		fake->n_held++;
		pthread_cond_broadcast(&fake->changed);
		pthread_cond_wait(&fake->changed, &fake->lock);
		fake->n_held--;
	}
	mode = fake->mode;
	pthread_mutex_unlock(&fake->lock);
	switch (mode) {
	case LOG_FAKE_SHORT:
	case LOG_FAKE_SPLIT:
		done = fake->real.ops->pwritev_sync(fake->real.ctx, fd, &block, 1, offset);
		return done == LOG_BLOCK_BYTES && mode == LOG_FAKE_SPLIT && n > 1 ? done + 512 :
										    done;
	case LOG_FAKE_NOTHING:
		return 0;
	case LOG_FAKE_ENOSPC:
		return -ENOSPC;
	case LOG_FAKE_EIO:
		fake->real.ops->pwritev(fake->real.ctx, fd, iov, n, offset);
		return -EIO;
	case LOG_FAKE_WRITE:
	case LOG_FAKE_HOLD:
		break;
	}
	return fake->real.ops->pwritev_sync(fake->real.ctx, fd, iov, n, offset);
}

static int fake_fdatasync(void *ctx, int fd)
{
	struct log_fake *fake = ctx;

	return fake->real.ops->fdatasync(fake->real.ctx, fd);
}

static int fake_fallocate(void *ctx, int fd, uint64_t bytes)
{
	struct log_fake *fake = ctx;

	return fake->real.ops->fallocate(fake->real.ctx, fd, bytes);
}

static int fake_rename(void *ctx, const char *from, const char *to)
{
	struct log_fake *fake = ctx;

	return fake->real.ops->rename(fake->real.ctx, from, to);
}

static int fake_unlink(void *ctx, const char *path)
{
	struct log_fake *fake = ctx;

	return fake->real.ops->unlink(fake->real.ctx, path);
}

static int fake_sync_dir(void *ctx, const char *dir)
{
	struct log_fake *fake = ctx;

	return fake->real.ops->sync_dir(fake->real.ctx, dir);
}

static int fake_list(void *ctx, const char *dir, void (*fn)(void *fn_ctx, const char *name),
		     void *fn_ctx)
{
	struct log_fake *fake = ctx;

	return fake->real.ops->list(fake->real.ctx, dir, fn, fn_ctx);
}

static const struct io_ops fake_ops = {
	.open = fake_open,
	.close = fake_close,
	.lock = fake_lock,
	.size = fake_size,
	.pread = fake_pread,
	.pwritev = fake_pwritev,
	.pwritev_sync = fake_pwritev_sync,
	.fdatasync = fake_fdatasync,
	.fallocate = fake_fallocate,
	.rename = fake_rename,
	.unlink = fake_unlink,
	.sync_dir = fake_sync_dir,
	.list = fake_list,
};

void log_fake_set(struct log_fake *fake, enum log_fake_mode mode)
{
	pthread_mutex_lock(&fake->lock);
	fake->mode = mode;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
}

uint32_t log_fake_files(struct log_fake *fake)
{
	uint32_t n;

	pthread_mutex_lock(&fake->lock);
	n = fake->n_files;
	pthread_mutex_unlock(&fake->lock);
	return n;
}

void log_fake_wait_held(struct log_fake *fake)
{
	pthread_mutex_lock(&fake->lock);
	while (!fake->n_held)
		pthread_cond_wait(&fake->changed, &fake->lock);
	pthread_mutex_unlock(&fake->lock);
}

/* ---- the engine ---- */

int log_rig_setup(void **state)
{
	const char *tmp = getenv("TMPDIR") ?: "/var/tmp";
	struct log_rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	snprintf(rig->dir, sizeof(rig->dir), "%s/oltp-log-XXXXXX", tmp);
	assert_non_null(mkdtemp(rig->dir));
	rig->fake.real = io_files_real(IO_LOG, NULL);
	pthread_mutex_init(&rig->fake.lock, NULL);
	pthread_cond_init(&rig->fake.changed, NULL);
	rig->config = (struct oltp_config){
		.node = -1,
		.durability = OLTP_DURABILITY_COMMIT,
		.log_dir = rig->dir,
		.log_segment_mib = 1,
		.log_io = &fake_ops,
		.log_io_ctx = &rig->fake,
	};
	*state = rig;
	return 0;
}

void log_rig_open(struct log_rig *rig)
{
	assert_int_equal(oltp_engine_open(&rig->config, &rig->engine), 0);
	assert_int_equal(oltp_table_create(rig->engine, LOG_RIG_RECORD_BYTES, LOG_MODEL_KEYS,
					   &rig->table), 0);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->w), 0);
}

void log_rig_close(struct log_rig *rig)
{
	oltp_worker_destroy(rig->w);
	oltp_engine_close(rig->engine);
	rig->w = NULL;
	rig->engine = NULL;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

int log_rig_teardown(void **state)
{
	struct log_rig *rig = *state;

	log_rig_close(rig);
	assert_int_equal(nftw(rig->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(rig);
	return 0;
}

enum oltp_rc log_rig_insert(struct log_rig *rig, uint64_t key, uint64_t counter)
{
	struct log_rig_row row = { .counter = counter };
	enum oltp_rc rc = oltp_txn_begin(rig->w);

	memset(row.bytes, (int)key, sizeof(row.bytes));
	rc = rc ?: oltp_txn_insert(rig->w, rig->table, key, &row);
	rc = rc ?: oltp_txn_commit(rig->w);
	if (rc)
		oltp_txn_abort(rig->w);
	return rc;
}

enum oltp_rc log_rig_count_up(struct oltp_worker *w, struct oltp_table *table, uint64_t key)
{
	static const struct oltp_span span = { 0, sizeof(uint64_t) };
	enum oltp_rc rc = oltp_txn_begin(w);
	void *record;

	rc = rc ?: oltp_txn_update(w, table, key, &span, 1, &record);
	if (!rc) {
		((struct log_rig_row *)record)->counter++;
		rc = oltp_txn_commit(w);
	}
	if (rc)
		oltp_txn_abort(w);
	return rc;
}

/* ---- what the log says ---- */

struct reader {
	uint8_t *bytes;
	size_t n_bytes;
	struct log_seen seen;
	void (*fn)(void *ctx, const struct log_group_header *group, const struct log_entry *entry,
		   const struct log_op *op);
	void *ctx;
	uint8_t database[16];
};

static int by_csn(const void *a, const void *b)
{
	const struct log_entry *left = *(const struct log_entry *const *)a;
	const struct log_entry *right = *(const struct log_entry *const *)b;

	return left->csn < right->csn ? -1 : left->csn > right->csn;
}

static void read_entry(struct reader *r, const struct log_group_header *group,
		       const struct log_entry *entry)
{
	struct log_cursor cursor;
	const struct log_op *op;
	int rc;

	assert_true(entry->csn >= group->csn_first && entry->csn <= group->csn_last);
	log_ops_begin(&cursor, entry);
	while ((rc = log_ops_next(&cursor, &op)) > 0) {
		struct log_cursor spans;
		const struct log_span *span;

		log_spans_begin(&spans, op);
		while ((rc = log_spans_next(&spans, &span)) > 0)
			assert_true(span->bytes);
		assert_int_equal(rc, 0);
		r->seen.ops++;
		if (r->fn)
			r->fn(r->ctx, group, entry, op);
	}
	assert_int_equal(rc, 0);
}

static void read_group(struct reader *r, const struct log_group_header *group)
{
	const struct log_entry **entries = calloc(group->n_entries, sizeof(*entries)), *entry;
	struct log_cursor cursor;
	uint32_t n = 0;
	int rc;

	assert_true(group->n_entries);
	assert_non_null(entries);
	assert_int_equal(group->group, r->seen.group_last + 1);
	assert_true(group->epoch_from > r->seen.epoch_last);
	assert_true(group->epoch_to >= group->epoch_from);
	assert_memory_equal(group->database, r->database, sizeof(r->database));
	log_entries_begin(&cursor, group);
	while ((rc = log_entries_next(&cursor, &entry)) > 0) {
		assert_true(n < group->n_entries);
		entries[n++] = entry;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(n, group->n_entries);
	qsort(entries, n, sizeof(*entries), by_csn);
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			assert_true(entries[i]->csn > entries[i - 1]->csn);
		read_entry(r, group, entries[i]);
	}
	assert_int_equal(entries[0]->csn, group->csn_first);
	assert_int_equal(entries[n - 1]->csn, group->csn_last);
	free(entries);
	r->seen.group_last = group->group;
	r->seen.epoch_last = group->epoch_to;
	r->seen.entries += n;
	r->seen.bytes += group->bytes;
	r->seen.groups++;
}

static void read_segment(struct reader *r, uint64_t number)
{
	const struct log_segment_header *header = (const struct log_segment_header *)r->bytes;
	const struct log_reach *reach =
		(const struct log_reach *)(r->bytes + r->n_bytes - LOG_BLOCK_BYTES);
	size_t at = LOG_BLOCK_BYTES;

	if (!log_segment_header_is_valid(header) || header->segment != number)
		return;
	assert_int_equal(header->bytes, r->n_bytes);
	if (!r->seen.segments) {
		r->seen.group_last = header->first_group - 1;
		memcpy(r->database, header->database, sizeof(r->database));
	}
	assert_memory_equal(header->database, r->database, sizeof(r->database));
	assert_int_equal(header->first_group, r->seen.group_last + 1);
	r->seen.segments++;
	while (at < r->n_bytes) {
		const struct log_group_header *group =
			(const struct log_group_header *)(r->bytes + at);

		if (!log_group_is_valid(group, r->n_bytes - at) || group->segment != number)
			break;
		if (!r->seen.groups)
			r->seen.epoch_last = group->epoch_from - 1;
		read_group(r, group);
		at += group->bytes;
	}
	assert_true(log_reach_is_valid(reach));
	assert_int_equal(reach->segment, number);
	assert_in_range(reach->end, at, r->n_bytes - LOG_BLOCK_BYTES);
}

struct log_seen log_rig_read(const char *dir,
			     void (*fn)(void *ctx, const struct log_group_header *group,
					const struct log_entry *entry, const struct log_op *op),
			     void *ctx)
{
	struct reader reader = { .fn = fn, .ctx = ctx };

	for (uint64_t number = 1, missing = 0; missing < 64; number++) {
		char path[128], name[64];
		struct stat st;
		int fd;

		snprintf(name, sizeof(name), LOG_SEGMENT_NAME, (unsigned long long)number);
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			missing++;
			continue;
		}
		missing = 0;
		assert_int_equal(fstat(fd, &st), 0);
		reader.n_bytes = (size_t)st.st_size;
		reader.bytes = malloc(reader.n_bytes);
		assert_non_null(reader.bytes);
		assert_int_equal(read(fd, reader.bytes, reader.n_bytes), reader.n_bytes);
		close(fd);
		read_segment(&reader, number);
		free(reader.bytes);
	}
	return reader.seen;
}

void log_model_redo(void *ctx, const struct log_group_header *group, const struct log_entry *entry,
		    const struct log_op *op)
{
	struct log_model *model = ctx;
	struct log_cursor cursor;
	const struct log_span *span;

	(void)group;
	(void)entry;
	if (op->table != model->table)
		return;
	assert_true(op->key < LOG_MODEL_KEYS);
	if (op->kind == LOG_OP_UPDATE)
		assert_true(model->rows[op->key].is_there);
	model->rows[op->key].is_there = op->kind != LOG_OP_DELETE;
	log_spans_begin(&cursor, op);
	while (log_spans_next(&cursor, &span) > 0) {
		assert_true(span->offset + span->bytes <= LOG_RIG_RECORD_BYTES);
		if (op->kind == LOG_OP_PUT)
			assert_int_equal(span->bytes, LOG_RIG_RECORD_BYTES);
		memcpy((uint8_t *)&model->rows[op->key].row + span->offset, log_span_data(span),
		       span->bytes);
	}
}

struct compare {
	const struct log_model *model;
	uint32_t n;
};

static int compare_row(void *ctx, uint64_t key, const void *record)
{
	struct compare *compare = ctx;

	assert_true(key < LOG_MODEL_KEYS);
	assert_true(compare->model->rows[key].is_there);
	assert_memory_equal(&compare->model->rows[key].row, record, LOG_RIG_RECORD_BYTES);
	compare->n++;
	return 0;
}

void log_model_is(const struct log_model *model, struct oltp_table *table)
{
	struct compare compare = { .model = model };
	uint32_t n = 0;

	assert_int_equal(oltp_table_scan(table, compare_row, &compare), 0);
	for (uint32_t key = 0; key < LOG_MODEL_KEYS; key++)
		n += model->rows[key].is_there;
	assert_int_equal(n, compare.n);
}
