// SPDX-License-Identifier: GPL-2.0-or-later
/* The thread that makes checkpoints: see checkpoint.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "checkpoint_file.h"
#include "checkpoint_pace.h"
#include "oltp-engine/src/base/clock.h"
#include "lazy_load.h"
#include "oltp-engine/src/cold/cold_checkpoint.h"
#include "oltp-engine/src/log/log.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/txn/ordered.h"
#include "restore.h"

_Static_assert(OLTP_INDEXES_MAX == CHECKPOINT_SORTS_MAX, "the directory has all sort keys");

/* How often the thread looks how long the log is, and whether it is to stop. */
#define LOOK_NS		20000000ull

/* After rows could not be brought back. */
#define RESTORE_RETRY_NS	10000000000ull

/* After a checkpoint that the log's growth called for has failed: twice as long each time. */
#define CHECKPOINT_RETRY_NS	1000000000ull
#define CHECKPOINT_RETRY_MAX_NS	64000000000ull

/*
 * How much the log grows between two checkpoints, unless the tables are larger or the user has
 * said.
 */
#define LOG_BYTES_DEFAULT	(1024ull << 20)

/* A spare that is so much longer than the checkpoint will be is not written over. */
#define SPARE_TIMES_MAX		2u
#define SPARE_BYTES_MORE	(1ull << 20)

/* Holds buffers of a checkpoint back, as checkpoint_pace.h says. */
struct checkpoint_gate {
	struct log *log;
	const _Atomic bool *is_awaited, *is_stopping;
	uint64_t bytes_all, bytes_per_s, log_bytes_max;
	uint64_t start_ns, held_ns;
	uint64_t log_bytes;	/* when it began */
	uint64_t usual_ns;	/* of a group's write, before it began */
	uint64_t groups;	/* that were written before the last buffer was */
};

/* A checkpoint begins; the other arguments are as in struct checkpoint_pace_facts. */
static void gate_begin(struct checkpoint_gate *gate, struct log *log, uint64_t bytes_all,
		       uint64_t bytes_per_s, uint64_t log_bytes_max,
		       const _Atomic bool *is_awaited, const _Atomic bool *is_stopping)
{
	struct log_load load;

	log_load_read(log, &load);
	*gate = (struct checkpoint_gate){
		.log = log,
		.is_awaited = is_awaited,
		.is_stopping = is_stopping,
		.bytes_all = bytes_all,
		.bytes_per_s = bytes_per_s,
		.log_bytes_max = log_bytes_max,
		.start_ns = clock_now_ns(),
		.log_bytes = log_bytes_written(log),
		.usual_ns = load.usual_ns,
		.groups = load.groups,
	};
}

static struct checkpoint_pace pace_now(const struct checkpoint_gate *gate, uint64_t bytes,
				       uint64_t from_ns)
{
	uint64_t now_ns = clock_now_ns(), group_ns = 0;
	struct log_load load;

	log_load_read(gate->log, &load);
	/* The log thread's clock may be a little ahead. */
	if (load.start_ns)
		group_ns = now_ns > load.start_ns ? now_ns - load.start_ns : 0;
	else if (load.groups != gate->groups)
		group_ns = load.last_ns;
	return checkpoint_pace(&(struct checkpoint_pace_facts){
		.since_ns = now_ns - gate->start_ns,
		.bytes = bytes,
		.bytes_all = gate->bytes_all,
		.bytes_per_s = gate->bytes_per_s,
		.is_awaited = atomic_load_explicit(gate->is_awaited, memory_order_relaxed),
		.log_bytes = log_bytes_written(gate->log) - gate->log_bytes,
		.log_bytes_max = gate->log_bytes_max,
		.is_group_written = load.start_ns,
		.group_ns = group_ns,
		.usual_ns = gate->usual_ns,
		.held_ns = now_ns - from_ns,
	});
}

static int wait(const struct checkpoint_gate *gate, const struct checkpoint_pace *pace)
{
	int rc;

	if (pace->what == CHECKPOINT_PACE_TIME) {
		clock_sleep(pace->ns);
		return 0;
	}
	rc = log_wait(gate->log, log_epoch_durable(gate->log) + 1,
		      clock_now_ns() + pace->ns);
	return rc == -ETIMEDOUT ? 0 : rc;
}

/*
 * Returns when the next buffer may be written, with so many bytes written so far. Errors:
 * -ECANCELED (it is to stop), those of the log.
 */
static int gate_wait(struct checkpoint_gate *gate, uint64_t bytes)
{
	uint64_t from_ns = clock_now_ns();
	struct log_load load;
	int rc = 0;

	while (!rc) {
		struct checkpoint_pace pace = pace_now(gate, bytes, from_ns);

		if (pace.what == CHECKPOINT_PACE_WRITE)
			break;
		rc = atomic_load_explicit(gate->is_stopping, memory_order_relaxed) ?
			     -ECANCELED : wait(gate, &pace);
	}
	gate->held_ns += clock_now_ns() - from_ns;
	log_load_read(gate->log, &load);
	gate->groups = load.groups;
	return rc;
}

struct checkpointer {
	struct oltp_engine *engine;
	uint64_t log_bytes_max;		/* of log between two; 0: see log_bytes_allowed */
	uint64_t bytes_per_s;		/* of a checkpoint, at most; 0: no such bound */
	pthread_t thread;
	_Atomic bool is_stopping;
	_Atomic bool is_recovered;	/* oltp_recover was called, with or without success */
	_Atomic bool is_awaited;	/* wanted > done; set under the lock */
	pthread_mutex_t lock;		/* everything below */
	pthread_cond_t changed;		/* CLOCK_MONOTONIC */
	uint64_t wanted, done;		/* calls of oltp_checkpoint, and those that are served */
	int rc;				/* of the last one */
	uint64_t log_bytes_done;	/* of log when the last one began */
	uint64_t log_bytes_before;	/* that recovery read, until there is one */
	uint64_t retry_wait_ns;		/* 0: the last one did not fail */
	uint64_t retry_ns;		/* not before, unless somebody asks */
	struct oltp_checkpoint_stats stats;
	struct restore_progress restoring;
	struct oltp_restore_stats restored;
	uint64_t restore_retry_ns;	/* the last time it failed: not before; 0: it did not */
	struct lazy_load load;		/* once it has begun the thread's alone, without the lock */
};

/* One checkpoint in the making. */
struct making {
	struct io_files io;	/* of the checkpoint's class */
	struct checkpointer *checkpointer;
	struct checkpoint_writer writer;
	const struct oltp_table *table;
	struct checkpoint_gate gate;
};

static int add_row(void *ctx, uint64_t key, const void *record)
{
	struct making *making = ctx;
	const struct oltp_table *table = making->table;
	uint64_t sorts[OLTP_INDEXES_MAX];

	ordered_sort_keys(table, key, record, sorts);
	return checkpoint_writer_add(&making->writer, &(struct checkpoint_kind){
		.table = table->id,
		.n_sorts = table->n_keyed,
		.sorts_check = table->keyed_check,
	}, &(struct checkpoint_row){
		.key = key,
		.record = record,
		.record_bytes = table->record_bytes,
		.sorts = sorts,
	});
}

/* About how many bytes a checkpoint made now takes. */
static uint64_t bytes_expected(struct oltp_engine *engine)
{
	uint64_t rows = 0, bytes = 0, one_of_each = 0;

	for (uint32_t i = 0; i < tables_count(engine); i++) {
		uint64_t n = storage_used_slots(engine->tables[i]);

		rows += n;
		bytes += n * (sizeof(uint64_t) + engine->tables[i]->record_bytes);
	}
	/*
	 * Which tables the cold records are of is not known: they are taken to be like the others,
	 * or, after a lazy recovery, like one of each table.
	 */
	for (uint32_t i = 0; !rows && i < tables_count(engine); i++)
		one_of_each += sizeof(uint64_t) + engine->tables[i]->record_bytes;
	if (engine->cold && (rows || one_of_each))
		bytes += (uint64_t)((rows ? (double)bytes / (double)rows :
					    (double)one_of_each / tables_count(engine)) *
				    (double)counter_read(&engine->cold->counters.records));
	return bytes;
}

/* It is not worth it to make a checkpoint for a log that is shorter than the checkpoint. */
static uint64_t log_bytes_allowed(const struct checkpointer *checkpointer)
{
	uint64_t bytes;

	if (checkpointer->log_bytes_max)
		return checkpointer->log_bytes_max;
	bytes = bytes_expected(checkpointer->engine);
	return bytes > LOG_BYTES_DEFAULT ? bytes : LOG_BYTES_DEFAULT;
}

/* No rows are locked here: this is the time to write. */
static int drain(void *ctx)
{
	struct making *making = ctx;
	int rc = 0;

	if (atomic_load_explicit(&making->checkpointer->is_stopping, memory_order_relaxed))
		return -ECANCELED;
	/* The checkpoint would lack rows. */
	if (restore_is_due(making->checkpointer->engine))
		return -EOWNERDEAD;
	while (!rc && checkpoint_writer_is_full(&making->writer))
		rc = gate_wait(&making->gate,
					  checkpoint_writer_bytes(&making->writer)) ?:
		     checkpoint_writer_write(&making->writer);
	return rc;
}

/*
 * Waits until the log is on disk up to the epoch, in steps, so that the engine can be closed
 * meanwhile.
 */
static int wait_log(struct checkpointer *checkpointer, uint64_t epoch)
{
	int rc;

	do {
		if (atomic_load_explicit(&checkpointer->is_stopping, memory_order_relaxed))
			return -ECANCELED;
		rc = log_wait(checkpointer->engine->log, epoch, clock_now_ns() + LOOK_NS);
	} while (rc == -ETIMEDOUT);
	return rc;
}

static int write_tables(struct checkpointer *checkpointer, struct making *making)
{
	struct oltp_engine *engine = checkpointer->engine;
	uint32_t n = making->writer.header.n_tables;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < n; i++) {
		making->table = engine->tables[i];
		rc = table_scan(engine->tables[i], add_row, drain, making);
	}
	return rc;
}

/*
 * First where the log is to begin: rows of a table that the catalogue does not have yet are added
 * behind that.
 */
static void fill_header(struct oltp_engine *engine, struct checkpoint_header *header)
{
	struct log_catalog catalog;

	header->start_csn = log_csn_now(engine->log);
	header->start_group = log_group_now(engine->log);
	log_catalog_get(engine->log, &catalog);
	memcpy(header->database, catalog.database, sizeof(header->database));
	header->n_tables = catalog.n_tables;
	memcpy(header->tables, catalog.tables, sizeof(header->tables));
	/* The last one may not be among the engine's yet: all of its rows come later. */
	if (header->n_tables > tables_count(engine))
		header->n_tables = tables_count(engine);
}

/* Steps 1 to 3, and the first half of 4. */
static int make(struct checkpointer *checkpointer, uint64_t number,
		const struct checkpoint_spare *spare, struct making *making)
{
	struct log *log = checkpointer->engine->log;
	struct checkpoint_header header = { .number = number };
	uint64_t epoch, csn;
	int rc;

	fill_header(checkpointer->engine, &header);
	making->io = io_files_as(log_io(log), IO_CHECKPOINT);
	rc = checkpoint_writer_open(&making->writer, &making->io, log_dir(log), &header, spare);
	if (rc)
		return rc;
	rc = write_tables(checkpointer, making);
	if (rc)
		return rc;
	epoch = log_epoch_now(log);
	csn = log_csn_now(log);
	return wait_log(checkpointer, epoch) ?:
	       checkpoint_writer_finish(&making->writer, log_group_durable(log), csn, epoch) ?:
	       checkpoint_writer_publish(&making->writer);
}

static int remove_one(struct log *log, uint64_t number, const char *suffix)
{
	const struct io_files *io = log_io(log);
	char path[CHECKPOINT_PATH_BYTES];
	int rc;

	rc = checkpoint_path(path, sizeof(path), log_dir(log), number, suffix) ?:
	     io->ops->unlink(io->ctx, path);
	return rc == -ENOENT ? 0 : rc;
}

static int keep_as_spare(struct log *log, uint64_t number)
{
	char from[CHECKPOINT_PATH_BYTES], to[CHECKPOINT_PATH_BYTES];
	const struct io_files *io = log_io(log);

	return checkpoint_path(from, sizeof(from), log_dir(log), number, "") ?:
	       checkpoint_path(to, sizeof(to), log_dir(log), number, CHECKPOINT_TEMP_SUFFIX) ?:
	       io->ops->rename(io->ctx, from, to);
}

/*
 * Removes all older checkpoints, whole or not, but for one file that is kept as a spare: removing a
 * large file takes the disk some time, and so does making it again. The one with the number lazy
 * stays: rows are still read from it. A later checkpoint, of this process or the next, removes it.
 */
static int remove_others(struct log *log, const struct recover_files *files, uint64_t lazy)
{
	bool has_spare = false;
	int rc = 0;

	for (size_t i = 0; i < files->n_checkpoints; i++) {
		if (files->checkpoints[i] == lazy)
			continue;
		rc = (has_spare ? remove_one(log, files->checkpoints[i], "") :
				  keep_as_spare(log, files->checkpoints[i])) ?: rc;
		has_spare = true;
	}
	/* One of them may have become the new one. */
	for (size_t i = 0; i < files->n_temps; i++)
		rc = remove_one(log, files->temps[i], CHECKPOINT_TEMP_SUFFIX) ?: rc;
	return rc;
}

static uint64_t next_number(const struct recover_files *files)
{
	uint64_t number = 0;

	for (size_t i = 0; i < files->n_checkpoints; i++)
		number = files->checkpoints[i] > number ? files->checkpoints[i] : number;
	for (size_t i = 0; i < files->n_temps; i++)
		number = files->temps[i] > number ? files->temps[i] : number;
	return number + 1;
}

static int run(struct checkpointer *checkpointer, struct oltp_checkpoint_stats *figures)
{
	struct log *log = checkpointer->engine->log;
	struct making making = { .checkpointer = checkpointer, .writer = { .fd = -1 } };
	/* Before the files are listed: what is not needed by now need not stay. */
	const struct cold *cold = checkpointer->engine->cold;
	const uint64_t lazy_number = cold ? cold_checkpoint_number(cold) : 0;
	struct checkpoint_spare spare;
	struct recover_files files;
	int rc;

	gate_begin(&making.gate, log, bytes_expected(checkpointer->engine),
		   checkpointer->bytes_per_s, log_bytes_allowed(checkpointer),
		   &checkpointer->is_awaited, &checkpointer->is_stopping);
	rc = recover_files_list(log_io(log), log_dir(log), &files);
	if (rc)
		return rc;
	spare = (struct checkpoint_spare){
		.number = files.n_temps ? files.temps[0] : 0,
		.bytes_max = SPARE_TIMES_MAX * making.gate.bytes_all + SPARE_BYTES_MORE,
	};
	rc = make(checkpointer, next_number(&files), files.n_temps ? &spare : NULL, &making);
	if (!rc) {
		figures->last_rows = making.writer.n_rows;
		figures->last_bytes = checkpoint_writer_bytes(&making.writer);
		figures->last_ms = (double)(clock_now_ns() - making.gate.start_ns) / 1e6;
		figures->last_held_ms = (double)making.gate.held_ns / 1e6;
		/*
		 * The checkpoint is there: an error in removing what it replaces is only reported.
		 */
		figures->last_clean_error = remove_others(log, &files, lazy_number) ?:
			log_recycle_before(log, making.writer.header.start_group);
	}
	checkpoint_writer_close(&making.writer);
	recover_files_finish(&files);
	return rc;
}

/* Under the lock: is one due? */
static bool is_due(const struct checkpointer *checkpointer)
{
	const struct log *log = checkpointer->engine->log;

	if (log_state(log) != LOG_RUNNING)
		return false;
	if (checkpointer->wanted > checkpointer->done)
		return true;
	return clock_now_ns() >= checkpointer->retry_ns &&
	       checkpointer->log_bytes_before + log_bytes_written(log) -
	       checkpointer->log_bytes_done >= log_bytes_allowed(checkpointer);
}

static void wait_until(struct checkpointer *checkpointer, uint64_t until_ns)
{
	const struct timespec until = clock_timespec(until_ns);

	pthread_cond_timedwait(&checkpointer->changed, &checkpointer->lock, &until);
}

static void wait_look(struct checkpointer *checkpointer)
{
	wait_until(checkpointer, clock_now_ns() + LOOK_NS);
}

/* Under the lock: rows are to be brought back, and that has not failed just now. */
static bool is_restore_due(const struct checkpointer *checkpointer)
{
	return restore_is_due(checkpointer->engine) &&
	       log_state(checkpointer->engine->log) == LOG_RUNNING &&
	       clock_now_ns() >= checkpointer->restore_retry_ns;
}

/* Under the lock, which is given up meanwhile. */
static void restore(struct checkpointer *checkpointer)
{
	struct oltp_restore_stats *figures = &checkpointer->restored;
	uint64_t took_ns = 0;
	int rc;

	figures->is_running = true;
	pthread_mutex_unlock(&checkpointer->lock);
	rc = restore_revoked(checkpointer->engine, &checkpointer->restoring, &took_ns);
	pthread_mutex_lock(&checkpointer->lock);
	figures->is_running = false;
	figures->restores += !rc;
	figures->failed += rc != 0;
	figures->last_error = rc;
	if (!rc) {
		figures->last_ms = (double)took_ns / 1e6;
		figures->max_ms = figures->last_ms > figures->max_ms ? figures->last_ms :
								      figures->max_ms;
	}
	checkpointer->restore_retry_ns = rc ? clock_now_ns() + RESTORE_RETRY_NS : 0;
	pthread_cond_broadcast(&checkpointer->changed);
}

/* Under the lock. The disk may be full, say, and stay so: the time between tries doubles. */
static void set_retry(struct checkpointer *checkpointer, bool has_failed)
{
	uint64_t wait_ns = 2 * checkpointer->retry_wait_ns ?: CHECKPOINT_RETRY_NS;

	if (wait_ns > CHECKPOINT_RETRY_MAX_NS)
		wait_ns = CHECKPOINT_RETRY_MAX_NS;
	checkpointer->retry_wait_ns = has_failed ? wait_ns : 0;
	checkpointer->retry_ns = has_failed ? clock_now_ns() + wait_ns : 0;
}

/* Under the lock, which is given up meanwhile. */
static void serve(struct checkpointer *checkpointer)
{
	struct oltp_checkpoint_stats figures = checkpointer->stats;
	uint64_t wanted = checkpointer->wanted;
	uint64_t log_bytes_done = checkpointer->log_bytes_done;
	uint64_t log_bytes_before = checkpointer->log_bytes_before;
	int rc;

	checkpointer->log_bytes_done = log_bytes_written(checkpointer->engine->log);
	checkpointer->log_bytes_before = 0;
	checkpointer->stats.is_running = true;
	pthread_mutex_unlock(&checkpointer->lock);
	rc = run(checkpointer, &figures);
	pthread_mutex_lock(&checkpointer->lock);
	/* The log before it is still needed: a checkpoint is as due as before. */
	if (rc) {
		checkpointer->log_bytes_done = log_bytes_done;
		checkpointer->log_bytes_before = log_bytes_before;
	}
	/* Memory was taken meanwhile: it is made once that is brought back. */
	if (rc == -EOWNERDEAD && is_restore_due(checkpointer)) {
		checkpointer->stats.is_running = false;
		return;
	}
	set_retry(checkpointer, rc);
	figures.is_running = false;
	figures.checkpoints += !rc;
	figures.failed += rc != 0;
	figures.last_error = rc;
	checkpointer->stats = figures;
	checkpointer->rc = rc;
	checkpointer->done = wanted;
	atomic_store_explicit(&checkpointer->is_awaited, checkpointer->wanted > wanted,
			      memory_order_relaxed);
	pthread_cond_broadcast(&checkpointer->changed);
}

/* Under the lock, which is given up meanwhile. */
static void load(struct checkpointer *checkpointer)
{
	pthread_mutex_unlock(&checkpointer->lock);
	lazy_load_step(&checkpointer->load);
	pthread_mutex_lock(&checkpointer->lock);
}

/* Under the lock. Nothing is due: until something may be. */
static void wait_due(struct checkpointer *checkpointer)
{
	const struct lazy_load *load = &checkpointer->load;
	uint64_t until_ns = clock_now_ns() + LOOK_NS;

	if (load->engine && load->next_ns < until_ns)
		until_ns = load->next_ns;
	wait_until(checkpointer, until_ns);
}

static void *checkpointer_main(void *arg)
{
	struct checkpointer *checkpointer = arg;

	pthread_mutex_lock(&checkpointer->lock);
	while (!atomic_load_explicit(&checkpointer->is_stopping, memory_order_relaxed)) {
		if (is_restore_due(checkpointer))
			restore(checkpointer);
		else if (is_due(checkpointer))
			serve(checkpointer);
		else if (lazy_load_is_due(&checkpointer->load, clock_now_ns()))
			load(checkpointer);
		else
			wait_due(checkpointer);
	}
	pthread_mutex_unlock(&checkpointer->lock);
	return NULL;
}

int checkpointer_create(struct oltp_engine *engine, const struct oltp_config *config,
			struct checkpointer **ret_checkpointer)
{
	struct checkpointer *checkpointer = calloc(1, sizeof(*checkpointer));
	pthread_condattr_t attr;
	int rc;

	if (!checkpointer)
		return -ENOMEM;
	checkpointer->engine = engine;
	checkpointer->log_bytes_max = (uint64_t)config->checkpoint_mib << 20;
	checkpointer->bytes_per_s = (uint64_t)config->checkpoint_mib_s << 20;
	checkpointer->restoring.is_stopping = &checkpointer->is_stopping;
	pthread_mutex_init(&checkpointer->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&checkpointer->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = pthread_create(&checkpointer->thread, NULL, checkpointer_main, checkpointer);
	if (rc) {
		pthread_cond_destroy(&checkpointer->changed);
		pthread_mutex_destroy(&checkpointer->lock);
		free(checkpointer);
		return -rc;
	}
	*ret_checkpointer = checkpointer;
	return 0;
}

void checkpointer_destroy(struct checkpointer *checkpointer)
{
	if (!checkpointer)
		return;
	pthread_mutex_lock(&checkpointer->lock);
	atomic_store_explicit(&checkpointer->is_stopping, true, memory_order_relaxed);
	pthread_cond_broadcast(&checkpointer->changed);
	pthread_mutex_unlock(&checkpointer->lock);
	pthread_join(checkpointer->thread, NULL);
	lazy_load_end(&checkpointer->load);
	pthread_cond_destroy(&checkpointer->changed);
	pthread_mutex_destroy(&checkpointer->lock);
	free(checkpointer);
}

bool checkpointer_recover(struct checkpointer *checkpointer)
{
	return !atomic_exchange_explicit(&checkpointer->is_recovered, true, memory_order_relaxed);
}

void checkpointer_recovered(struct checkpointer *checkpointer, uint64_t log_bytes, bool is_lazy,
			    uint64_t lazy_bytes_per_s)
{
	pthread_mutex_lock(&checkpointer->lock);
	checkpointer->log_bytes_before = log_bytes;
	if (is_lazy)
		lazy_load_begin(&checkpointer->load, checkpointer->engine, lazy_bytes_per_s);
	pthread_mutex_unlock(&checkpointer->lock);
}

int oltp_checkpoint(struct oltp_engine *engine)
{
	struct checkpointer *checkpointer = engine->checkpointer;
	uint64_t mine;
	int rc = 0;

	if (!checkpointer || log_state(engine->log) == LOG_UNREAD)
		return -EINVAL;
	if (log_state(engine->log) == LOG_READ_ONLY)
		return -EROFS;
	pthread_mutex_lock(&checkpointer->lock);
	mine = ++checkpointer->wanted;
	atomic_store_explicit(&checkpointer->is_awaited, true, memory_order_relaxed);
	pthread_cond_broadcast(&checkpointer->changed);
	while (!rc && checkpointer->done < mine) {
		wait_look(checkpointer);
		/* A checkpoint that is being made ends by itself. */
		if (!checkpointer->stats.is_running && log_state(engine->log) == LOG_FAILED)
			rc = -EIO;
		/* That may last for ever. */
		if (atomic_load_explicit(&checkpointer->restoring.lacks_room, memory_order_relaxed))
			rc = -EOWNERDEAD;
	}
	rc = rc ?: checkpointer->rc;
	pthread_mutex_unlock(&checkpointer->lock);
	return rc;
}

void oltp_checkpoint_stats_read(struct oltp_engine *engine,
				struct oltp_checkpoint_stats *ret_stats)
{
	struct checkpointer *checkpointer = engine->checkpointer;

	*ret_stats = (struct oltp_checkpoint_stats){ 0 };
	if (!checkpointer)
		return;
	pthread_mutex_lock(&checkpointer->lock);
	*ret_stats = checkpointer->stats;
	pthread_mutex_unlock(&checkpointer->lock);
}

int oltp_restore_wait(struct oltp_engine *engine)
{
	struct checkpointer *checkpointer = engine->checkpointer;
	uint64_t failed;
	int rc = 0;

	if (!checkpointer || log_state(engine->log) == LOG_UNREAD)
		return restore_is_due(engine) ? -EINVAL : 0;
	if (log_state(engine->log) == LOG_READ_ONLY)
		return restore_is_due(engine) ? -EROFS : 0;
	pthread_mutex_lock(&checkpointer->lock);
	failed = checkpointer->restored.failed;
	while (!rc && restore_is_due(engine)) {
		wait_look(checkpointer);
		if (checkpointer->restored.failed != failed)
			rc = checkpointer->restored.last_error;
		else if (log_state(engine->log) == LOG_FAILED)
			rc = -EIO;
		else if (atomic_load_explicit(&checkpointer->restoring.lacks_room,
					      memory_order_relaxed))
			rc = -ENOMEM;
	}
	pthread_mutex_unlock(&checkpointer->lock);
	return rc;
}

void oltp_restore_stats_read(struct oltp_engine *engine, struct oltp_restore_stats *ret_stats)
{
	struct checkpointer *checkpointer = engine->checkpointer;

	*ret_stats = (struct oltp_restore_stats){ 0 };
	if (!checkpointer)
		return;
	pthread_mutex_lock(&checkpointer->lock);
	*ret_stats = checkpointer->restored;
	pthread_mutex_unlock(&checkpointer->lock);
	ret_stats->lacks_room = atomic_load_explicit(&checkpointer->restoring.lacks_room,
						     memory_order_relaxed);
	ret_stats->records = counter_read(&checkpointer->restoring.records);
}
