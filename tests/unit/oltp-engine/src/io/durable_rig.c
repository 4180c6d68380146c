// SPDX-License-Identifier: GPL-2.0-or-later
/* See durable_rig.h. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "durable_rig.h"
#include "log_faults_disk.h"
#include "oltp-engine/src/io/volume.h"
#include "oltp-engine/src/io/volume_format.h"

#define VOLUME		"/disk/volume"
#define VOLUME_BYTES	(64ull << 20)

#define HALF	(DURABLE_RECORD_BYTES / 2)

/* What takes milliseconds may take so long on a busy machine under a sanitizer. */
#define LIMIT_S	300u

/* What is in front of each half. */
struct half {
	uint64_t number;	/* of the first: the sort key */
	uint32_t made_from;
	uint32_t key;
};

struct runner {
	struct durable_rig *rig;
	uint32_t number;
	uint32_t n, n_done;
	uint64_t rng;
	struct oltp_worker *w;
	pthread_t thread;
};

static const char *volatile awaited;

static void on_alarm(int signo)
{
	static const char head[] = "durable_rig: no end within 300 s of ";

	(void)signo;
	if (write(STDERR_FILENO, head, sizeof(head) - 1) < 0 ||
	    write(STDERR_FILENO, awaited, strlen(awaited)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
		_exit(2);
	_exit(1);
}

/*
 * From here to the next call is for that: if it takes longer than LIMIT_S the program ends and says
 * so. NULL: nothing is waited for.
 */
static void await(const char *what)
{
	alarm(0);
	awaited = what;
	if (!what)
		return;
	signal(SIGALRM, on_alarm);
	alarm(LIMIT_S);
}

uint64_t durable_draw(uint64_t *rng, uint64_t below)
{
	*rng ^= *rng << 13;
	*rng ^= *rng >> 7;
	*rng ^= *rng << 17;
	return *rng % below;
}

static uint64_t number_of(void *ctx, uint64_t primary_key, const void *record)
{
	(void)ctx;
	(void)primary_key;
	return ((const struct half *)record)->number;
}

static void fill_half(uint8_t *at, uint32_t key, uint32_t made_from)
{
	struct half half = { (uint64_t)made_from << 16 | key, made_from, key };

	memset(at, (int)(made_from * 7 + key), HALF);
	memcpy(at, &half, sizeof(half));
}

static void fill_row(uint8_t *record, uint32_t key, const struct durable_row *row)
{
	fill_half(record, key, row->first);
	fill_half(record + HALF, key, row->second);
}

enum durable_place durable_place;

int durable_in_folder(void **state)
{
	(void)state;
	durable_place = DURABLE_IN_FOLDER;
	return 0;
}

int durable_in_volume(void **state)
{
	(void)state;
	durable_place = DURABLE_IN_VOLUME;
	return 0;
}

static struct io_files device_files(const struct durable_rig *rig)
{
	return (struct io_files){ &fault_disk_ops, rig->disk, IO_LOG, NULL };
}

static void volume_make(struct durable_rig *rig)
{
	struct io_files io = device_files(rig);
	int fd = fault_disk_ops.open(rig->disk, VOLUME, O_RDWR | O_CREAT, 0600);

	assert_int_equal(fault_disk_ops.fallocate(rig->disk, fd, VOLUME_BYTES), 0);
	assert_int_equal(fault_disk_ops.fdatasync(rig->disk, fd), 0);
	assert_int_equal(fault_disk_ops.sync_dir(rig->disk, "/disk"), 0);
	fault_disk_ops.close(rig->disk, fd);
	assert_int_equal(volume_format(&io, VOLUME, false), 0);
	fault_disk_calm(rig->disk);
	rig->config.log_dir = NULL;
	rig->config.volume = VOLUME;
}

void durable_init(struct durable_rig *rig, uint64_t seed)
{
	/* A test that failed may have left it on. */
	await(NULL);
	memset(rig, 0, sizeof(*rig));
	rig->disk = fault_disk_create(seed);
	rig->rng = seed * 0x9e3779b97f4a7c15ull + 7;
	rig->config = (struct oltp_config){
		.node = -1,
		.durability = OLTP_DURABILITY_COMMIT,
		.log_dir = "/disk",
		.group_interval_us = 50,
		.log_segment_mib = 1,
		.log_io = &fault_disk_ops,
		.log_io_ctx = rig->disk,
	};
	rig->place = durable_place;
	if (rig->place == DURABLE_IN_VOLUME)
		volume_make(rig);
	pthread_mutex_init(&rig->lock, NULL);
}

void durable_copy(struct durable_rig *rig, const struct durable_rig *from, uint64_t seed)
{
	*rig = *from;
	rig->disk = fault_disk_copy(from->disk, seed);
	rig->config.log_io_ctx = rig->disk;
}

void durable_finish(struct durable_rig *rig)
{
	durable_close(rig);
	pthread_mutex_destroy(&rig->lock);
	fault_disk_destroy(rig->disk);
}

int durable_open(struct durable_rig *rig)
{
	const struct oltp_index_config by_number = {
		.key_of = number_of,
		.key_spans = { { 0, sizeof(struct half) } },
		.n_key_spans = 1,
		.is_unique = true,
	};
	int rc;

	rc = oltp_engine_open(&rig->config, &rig->engine);
	if (rc) {
		rig->engine = NULL;
		return rc;
	}
	rc = oltp_table_create(rig->engine, sizeof(uint64_t), 16, &rig->counters) ?:
	     oltp_table_create(rig->engine, DURABLE_RECORD_BYTES, 256, &rig->rows) ?:
	     oltp_index_create(rig->rows, NULL, &rig->by_key) ?:
	     oltp_index_create(rig->rows, &by_number, &rig->by_number);
	if (rc)
		durable_close(rig);
	return rc;
}

void durable_close(struct durable_rig *rig)
{
	await("closing the engine");
	oltp_engine_close(rig->engine);
	await(NULL);
	rig->engine = NULL;
}

int durable_checkpoint(struct durable_rig *rig)
{
	int rc;

	await("a checkpoint");
	rc = oltp_checkpoint(rig->engine);
	await(NULL);
	return rc;
}

/* ---- the files ---- */

struct names {
	const char *prefix;
	uint32_t n;
	char texts[256][VOLUME_NAME_BYTES];
};

static void add_name(void *ctx, const char *name)
{
	struct names *names = ctx;

	if (strncmp(name, names->prefix, strlen(names->prefix)) || strchr(name, '.'))
		return;
	assert_true(names->n < 256);
	strcpy(names->texts[names->n++], name);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Those that begin so, without those that have a suffix, in order. */
static void names_read(struct volume *volume, const char *prefix, struct names *ret_names)
{
	*ret_names = (struct names){ .prefix = prefix };
	volume_ops.list(volume, "/", add_name, ret_names);
	qsort(ret_names->texts, ret_names->n, sizeof(ret_names->texts[0]), by_text);
}

/* With the engine closed. The calls that this makes of the disk are not counted. */
static struct volume *volume_get(const struct durable_rig *rig, bool is_owner)
{
	struct io_files io = device_files(rig);
	uint64_t calls = rig->disk->calls;
	struct volume *volume;

	assert_null(rig->engine);
	assert_int_equal(volume_open(&io, VOLUME, is_owner, &volume), 0);
	rig->disk->calls = calls;
	return volume;
}

uint32_t durable_count(struct durable_rig *rig, const char *prefix)
{
	static struct names names;
	struct volume *volume;

	if (rig->place == DURABLE_IN_FOLDER)
		return fault_disk_count(rig->disk, prefix);
	volume = rig->engine ? rig->engine->volume : volume_get(rig, false);
	names_read(volume, prefix, &names);
	if (!rig->engine)
		volume_close(volume);
	return names.n;
}

void durable_damage(struct durable_rig *rig, const char *prefix, uint32_t nth, uint64_t offset)
{
	static struct names names;
	struct volume *volume;
	uint64_t at;
	int fd;

	if (rig->place == DURABLE_IN_FOLDER) {
		fault_disk_damage(rig->disk, prefix, nth, offset);
		return;
	}
	volume = volume_get(rig, false);
	names_read(volume, prefix, &names);
	fd = volume_ops.open(volume, names.texts[nth], O_RDONLY, 0);
	assert_int_equal(volume_device_offset(volume, fd, offset, &at), 0);
	volume_ops.close(volume, fd);
	volume_close(volume);
	fault_disk_damage(rig->disk, "volume", 0, at);
}

void durable_remove(struct durable_rig *rig, const char *prefix, uint32_t nth)
{
	static struct names names;
	struct volume *volume;

	if (rig->place == DURABLE_IN_FOLDER) {
		fault_disk_remove(rig->disk, prefix, nth);
		return;
	}
	volume = volume_get(rig, true);
	names_read(volume, prefix, &names);
	assert_int_equal(volume_ops.unlink(volume, names.texts[nth]), 0);
	assert_int_equal(volume_ops.sync_dir(volume, "/"), 0);
	volume_close(volume);
}

/* A file of somebody else takes the rest; it may have gone with a loss of power. */
void durable_set_room(struct durable_rig *rig, uint64_t bytes)
{
	struct oltp_volume_info info;
	struct volume *volume;
	int fd;

	if (rig->place == DURABLE_IN_FOLDER) {
		fault_disk_set_room(rig->disk, bytes);
		return;
	}
	volume = rig->engine ? rig->engine->volume : volume_get(rig, true);
	if (bytes) {
		volume_info_read(volume, &info);
		bytes -= bytes % info.unit_bytes;
		fd = volume_ops.open(volume, "filler", O_RDWR | O_CREAT, 0600);
		assert_int_equal(volume_ops.fallocate(volume, fd, info.free_bytes - bytes), 0);
		volume_ops.close(volume, fd);
	} else {
		volume_ops.unlink(volume, "filler");
	}
	if (!rig->engine)
		volume_close(volume);
}

/* ---- checking ---- */

static uint64_t counter_now(struct oltp_worker *w, struct durable_rig *rig, uint64_t key)
{
	const void *record;
	uint64_t value = 0;
	enum oltp_rc rc = oltp_txn_read(w, rig->counters, key, &record);

	assert_true(rc == OLTP_OK || rc == OLTP_NOT_FOUND);
	if (!rc)
		memcpy(&value, record, sizeof(value));
	return value;
}

/* P1 to P3 for a worker; its rows as they must be. How many of its transactions are there? */
static uint32_t find_worker(const struct durable_worker *worker, uint64_t shared, uint64_t own,
			    struct durable_row rows[DURABLE_KEYS])
{
	uint32_t n = 0;

	assert_true(own >= worker->own_acknowledged);
	memcpy(rows, worker->found, sizeof(worker->found));
	while (n < worker->n && worker->txns[n].own <= own) {
		const struct durable_txn *txn = &worker->txns[n++];

		assert_true(txn->shared <= shared);
		for (uint32_t i = 0; i < txn->n_changes; i++)
			rows[txn->changes[i].key] = txn->changes[i].row;
	}
	assert_int_equal(own, worker->own_found + n);
	/* None of the others may be there. */
	for (uint32_t i = n; i < worker->n; i++)
		assert_true(!worker->txns[i].shared || worker->txns[i].shared > shared);
	return n;
}

struct seen {
	uint32_t n;
	const struct durable_row (*rows)[DURABLE_KEYS];
};

static int see(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record)
{
	struct seen *seen = ctx;
	uint32_t worker = (uint32_t)(primary_key / DURABLE_KEYS);
	uint8_t expected[DURABLE_RECORD_BYTES];
	const struct durable_row *row;

	(void)sort_key;
	assert_true(worker < DURABLE_WORKERS);
	row = &seen->rows[worker][primary_key % DURABLE_KEYS];
	assert_true(row->is_there);
	fill_row(expected, (uint32_t)primary_key, row);
	assert_memory_equal(record, expected, sizeof(expected));
	seen->n++;
	return 0;
}

static uint32_t check_scan(struct oltp_worker *w, struct oltp_index *index,
			   const struct durable_row (*rows)[DURABLE_KEYS])
{
	const struct oltp_range all = { .from = 0, .to = UINT64_MAX };
	struct seen seen = { 0, rows };

	assert_int_equal(oltp_txn_scan(w, index, &all, see, &seen), OLTP_OK);
	return seen.n;
}

/* P4. */
static void check_rows(struct durable_rig *rig, struct oltp_worker *w,
		       const struct durable_row (*rows)[DURABLE_KEYS])
{
	uint8_t expected[DURABLE_RECORD_BYTES];
	uint32_t n = 0;

	for (uint32_t key = 0; key < DURABLE_WORKERS * DURABLE_KEYS; key++) {
		const struct durable_row *row = &rows[key / DURABLE_KEYS][key % DURABLE_KEYS];
		const void *record;

		assert_int_equal(oltp_txn_read(w, rig->rows, key, &record),
				 row->is_there ? OLTP_OK : OLTP_NOT_FOUND);
		if (!row->is_there)
			continue;
		fill_row(expected, key, row);
		assert_memory_equal(record, expected, sizeof(expected));
		n++;
	}
	assert_int_equal(check_scan(w, rig->by_key, rows), n);
	assert_int_equal(check_scan(w, rig->by_number, rows), n);
}

/* 0, or -EIO: the log has failed in the meantime, so that nothing can be looked at. */
static int check(struct durable_rig *rig)
{
	static struct durable_row rows[DURABLE_WORKERS][DURABLE_KEYS];
	uint64_t shared, own, n_shared = rig->shared_found;
	struct oltp_worker *w;

	assert_int_equal(oltp_worker_create(rig->engine, &w), 0);
	if (oltp_txn_begin(w) == OLTP_IO) {
		oltp_worker_destroy(w);
		return -EIO;
	}
	shared = counter_now(w, rig, 0);
	assert_true(shared >= rig->shared_acknowledged && shared <= rig->n_shared);
	for (uint32_t i = 0; i < DURABLE_WORKERS; i++) {
		struct durable_worker *worker = &rig->workers[i];
		uint32_t n;

		own = counter_now(w, rig, i + 1);
		n = find_worker(worker, shared, own, rows[i]);
		for (uint32_t t = 0; t < n; t++)
			n_shared += worker->txns[t].shared != 0;
		worker->own_found = worker->own_acknowledged = own;
		worker->n = 0;
		worker->shared_last = 0;
		memcpy(worker->found, rows[i], sizeof(rows[i]));
		memcpy(worker->rows, rows[i], sizeof(rows[i]));
	}
	assert_int_equal(n_shared, shared);
	rig->shared_found = rig->shared_acknowledged = rig->n_shared = shared;
	check_rows(rig, w, (const struct durable_row (*)[DURABLE_KEYS])rows);
	oltp_txn_abort(w);
	oltp_worker_destroy(w);
	return 0;
}

int durable_recover(struct durable_rig *rig)
{
	int rc = durable_open(rig);

	if (rc)
		return rc;
	await("a recovery");
	rc = oltp_recover(rig->engine, NULL, &rig->recovery);
	await("looking at what was recovered");
	rc = rc ?: check(rig);
	await(NULL);
	if (rc) {
		durable_close(rig);
		return rc;
	}
	/* They go on from where they were. */
	assert_true(rig->recovery.csn >= rig->csn_found);
	rig->csn_found = rig->recovery.csn;
	return 0;
}

/* ---- running ---- */

/* Counts it up; *ret_value is what it is then. */
static enum oltp_rc count_up(struct runner *runner, uint64_t key, uint64_t *ret_value)
{
	const struct oltp_span span = { 0, sizeof(uint64_t) };
	struct oltp_table *table = runner->rig->counters;
	void *record;
	enum oltp_rc rc = oltp_txn_update(runner->w, table, key, &span, 1, &record);

	*ret_value = 1;
	if (rc == OLTP_NOT_FOUND)
		return oltp_txn_insert(runner->w, table, key, ret_value);
	if (rc)
		return rc;
	memcpy(ret_value, record, sizeof(*ret_value));
	++*ret_value;
	memcpy(record, ret_value, sizeof(*ret_value));
	return OLTP_OK;
}

/* From row to what it is to be. */
static enum oltp_rc change_row(struct runner *runner, uint32_t key, const struct durable_row *from,
			       const struct durable_row *to)
{
	const struct oltp_span span = { HALF, HALF };
	struct oltp_table *table = runner->rig->rows;
	uint8_t record[DURABLE_RECORD_BYTES];
	enum oltp_rc rc = OLTP_OK;
	void *at;

	if (from->is_there && to->is_there && from->first == to->first) {
		rc = oltp_txn_update(runner->w, table, key, &span, 1, &at);
		if (!rc)
			fill_half((uint8_t *)at + HALF, key, to->second);
		return rc;
	}
	if (from->is_there)
		rc = oltp_txn_delete(runner->w, table, key);
	if (rc || !to->is_there)
		return rc;
	fill_row(record, key, to);
	return oltp_txn_insert(runner->w, table, key, record);
}

static void plan_change(struct runner *runner, const struct durable_row *row, uint32_t made_from,
			struct durable_row *ret_row)
{
	uint64_t what = durable_draw(&runner->rng, 8);

	*ret_row = *row;
	if (!row->is_there || what == 0)
		*ret_row = (struct durable_row){ true, made_from, made_from };
	else if (what == 1)
		*ret_row = (struct durable_row){ false, 0, 0 };
	else
		ret_row->second = made_from;
}

static enum oltp_rc run_once(struct runner *runner, struct durable_txn *txn,
			     struct durable_row rows[DURABLE_KEYS], bool is_shared)
{
	struct durable_worker *worker = &runner->rig->workers[runner->number];
	enum oltp_rc rc;

	*txn = (struct durable_txn){ .n_changes = 1 + (uint32_t)durable_draw(
						&runner->rng, DURABLE_CHANGES_MAX) };
	memcpy(rows, worker->rows, sizeof(worker->rows));
	rc = oltp_txn_begin(runner->w);
	if (rc)
		return rc;
	rc = count_up(runner, runner->number + 1, &txn->own);
	if (!rc && is_shared)
		rc = count_up(runner, 0, &txn->shared);
	for (uint32_t i = 0; !rc && i < txn->n_changes; i++) {
		struct durable_change *change = &txn->changes[i];
		struct durable_row *row;

		change->key = (uint32_t)durable_draw(&runner->rng, DURABLE_KEYS);
		row = &rows[change->key];
		plan_change(runner, row, (uint32_t)txn->own, &change->row);
		rc = change_row(runner, runner->number * DURABLE_KEYS + change->key, row,
				&change->row);
		*row = change->row;
	}
	if (!rc)
		rc = oltp_txn_commit(runner->w);
	if (rc)
		oltp_txn_abort(runner->w);
	return rc;
}

/* Committed: into the book. */
static void note(struct runner *runner, const struct durable_txn *txn,
		 const struct durable_row rows[DURABLE_KEYS])
{
	struct durable_rig *rig = runner->rig;
	struct durable_worker *worker = &rig->workers[runner->number];

	worker->txns[worker->n++] = *txn;
	memcpy(worker->rows, rows, sizeof(worker->rows));
	runner->n_done++;
	if (!txn->shared)
		return;
	worker->shared_last = txn->shared;
	pthread_mutex_lock(&rig->lock);
	if (txn->shared > rig->n_shared)
		rig->n_shared = txn->shared;
	pthread_mutex_unlock(&rig->lock);
}

/* Waits until all that the worker has done is on disk. False: it is not. */
static bool acknowledge(struct runner *runner)
{
	struct durable_rig *rig = runner->rig;
	struct durable_worker *worker = &rig->workers[runner->number];

	if (oltp_durable_wait(rig->engine, oltp_worker_epoch(runner->w)))
		return false;
	worker->own_acknowledged = worker->own_found + worker->n;
	pthread_mutex_lock(&rig->lock);
	if (worker->shared_last > rig->shared_acknowledged)
		rig->shared_acknowledged = worker->shared_last;
	pthread_mutex_unlock(&rig->lock);
	return true;
}

static void *runner_main(void *arg)
{
	struct runner *runner = arg;
	struct durable_worker *worker = &runner->rig->workers[runner->number];

	while (runner->n_done < runner->n && worker->n < DURABLE_TXNS_MAX) {
		bool is_shared = durable_draw(&runner->rng, 2);
		struct durable_row rows[DURABLE_KEYS];
		struct durable_txn txn;
		enum oltp_rc rc = run_once(runner, &txn, rows, is_shared);

		if (rc == OLTP_CONFLICT)
			continue;
		if (rc)
			break;
		note(runner, &txn, rows);
		if (!durable_draw(&runner->rng, 3) && !acknowledge(runner))
			break;
	}
	return NULL;
}

uint32_t durable_run(struct durable_rig *rig, uint32_t n_workers, uint32_t n,
		     uint32_t checkpoints)
{
	struct runner runners[DURABLE_WORKERS];
	uint32_t n_done = 0;

	for (uint32_t i = 0; i < n_workers; i++) {
		runners[i] = (struct runner){ .rig = rig, .number = i, .n = n,
					      .rng = rig->rng + i * 977 + 1 };
		durable_draw(&rig->rng, 2);
		if (oltp_worker_create(rig->engine, &runners[i].w))
			runners[i].w = NULL;
		else
			assert_int_equal(pthread_create(&runners[i].thread, NULL, runner_main,
							&runners[i]), 0);
	}
	for (uint32_t i = 0; i < checkpoints; i++) {
		uint64_t us = durable_draw(&rig->rng, 500);

		nanosleep(&(struct timespec){ 0, (long)us * 1000 }, NULL);
		durable_checkpoint(rig);
	}
	for (uint32_t i = 0; i < n_workers; i++) {
		if (!runners[i].w)
			continue;
		await("the transactions of a worker");
		pthread_join(runners[i].thread, NULL);
		await(NULL);
		oltp_worker_destroy(runners[i].w);
		n_done += runners[i].n_done;
	}
	return n_done;
}
