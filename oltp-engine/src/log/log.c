// SPDX-License-Identifier: GPL-2.0-or-later
/* Opening and closing the log, and what others ask it: see log.h, oltp_durable.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "log_private.h"
#include "oltp-engine/src/txn/engine.h"

#define INTERVAL_US_DEFAULT	1000u
#define INTERVAL_US_MAX		1000000u
#define SEGMENT_MIB_DEFAULT	64u
#define SEGMENT_MIB_MAX		65536u

static void sync_init(struct log *log)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&log->called, &monotonic);
	pthread_cond_init(&log->written, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&log->lock, NULL);
	pthread_mutex_init(&log->chunks_lock, NULL);
}

static struct log *log_alloc(struct oltp_engine *engine, const struct oltp_config *config)
{
	struct log *log = aligned_alloc(CACHE_PAD_BYTES, sizeof(*log));

	if (!log)
		return NULL;
	memset(log, 0, sizeof(*log));
	log->engine = engine;
	log->dir_fd = -1;
	log->interval_ns = (config->group_interval_us ?: INTERVAL_US_DEFAULT) * 1000ull;
	log->is_reader = config->volume_read_only;
	log->is_commit = config->durability == OLTP_DURABILITY_COMMIT;
	atomic_init(&log->state, LOG_UNREAD);
	sync_init(log);
	return log;
}

/* A folder that no database is in: it gets a name, and the log begins. */
static int database_create(struct log *log)
{
	static const struct log_position first = { 1, 1, 1, 1 };
	struct log_catalog catalog = { 0 };
	uint64_t *numbers;
	size_t n;
	int rc;

	/* Without a catalogue nobody can tell which database the segments are of. */
	rc = io_list_numbers(&log->io, log->dir, LOG_SEGMENT_NAME, &numbers, &n);
	if (rc)
		return rc;
	free(numbers);
	if (n)
		return -EBADMSG;
	if (getrandom(catalog.database, sizeof(catalog.database), 0) != sizeof(catalog.database))
		return -EIO;
	rc = log_catalog_write(log, &catalog);
	return rc ?: log_start(log, &first, NULL, NULL, 0);
}

int log_open(struct oltp_engine *engine, const struct oltp_config *config,
	     const struct io_files *io, const char *dir, struct log **ret_log)
{
	struct log *log;
	int rc;

	if (config->durability > OLTP_DURABILITY_COMMIT || !dir ||
	    config->group_interval_us > INTERVAL_US_MAX ||
	    config->log_segment_mib > SEGMENT_MIB_MAX)
		return -EINVAL;
	log = log_alloc(engine, config);
	if (!log)
		return -ENOMEM;
	log->dir = strdup(dir);
	rc = log->dir ? 0 : -ENOMEM;
	log->io = *io;
	log->checked = config->volume_checks ? engine->volume : NULL;
	if (!rc)
		rc = log_group_init(&log->group);
	if (!rc)
		rc = log_segments_init(&log->segments,
				       (uint64_t)(config->log_segment_mib ?:
						  SEGMENT_MIB_DEFAULT) << 20);
	if (!rc)
		rc = log_dir_open(log);
	if (!rc)
		rc = log->is_reader ? -ENOENT : database_create(log);
	if (rc < 0) {
		log_close(log);
		return rc;
	}
	*ret_log = log;
	return 0;
}

int log_start(struct log *log, const struct log_position *position, const uint64_t *segments,
	      const uint64_t *first_groups, uint32_t n)
{
	int rc;

	if (!position->segment || !position->group || !position->csn || !position->epoch ||
	    log_state(log) != LOG_UNREAD)
		return -EINVAL;
	memcpy(log->database, log->catalog.database, sizeof(log->database));
	atomic_store(&log->epoch, position->epoch);
	atomic_store(&log->durable, position->epoch - 1);
	atomic_store(&log->csn, position->csn);
	atomic_store(&log->n_group, position->group);
	atomic_store(&log->durable_group, position->group - 1);
	if (log->is_reader) {
		atomic_store(&log->state, LOG_READ_ONLY);
		return 0;
	}
	rc = log_segments_begin(log, position->segment, segments, first_groups, n);
	return rc ?: log_thread_start(log);
}

void log_close(struct log *log)
{
	if (!log)
		return;
	log_thread_stop(log);
	while (log->buffers) {
		struct log_buffer *buffer = log->buffers;

		log->buffers = buffer->next;
		log_buffer_free(buffer);
	}
	log_chunks_finish(log);
	log_segments_finish(log);
	log_group_finish(&log->group);
	log_dir_close(log);
	pthread_cond_destroy(&log->called);
	pthread_cond_destroy(&log->written);
	pthread_mutex_destroy(&log->lock);
	pthread_mutex_destroy(&log->chunks_lock);
	free(log->dir);
	free(log);
}

enum log_state log_state(const struct log *log)
{
	return (enum log_state)atomic_load_explicit(&log->state, memory_order_acquire);
}

bool log_is_commit(const struct log *log)
{
	return log && log->is_commit;
}

const char *log_dir(const struct log *log)
{
	return log->dir;
}

const struct io_files *log_io(const struct log *log)
{
	return &log->io;
}

void log_catalog_get(struct log *log, struct log_catalog *ret_catalog)
{
	pthread_mutex_lock(&log->lock);
	*ret_catalog = log->catalog;
	pthread_mutex_unlock(&log->lock);
}

int log_table_created(struct log *log, uint32_t number, uint32_t record_bytes)
{
	struct log_catalog catalog;
	int rc = 0;

	pthread_mutex_lock(&log->lock);
	catalog = log->catalog;
	if (number < catalog.n_tables) {
		rc = catalog.tables[number].record_bytes == record_bytes ? 0 : -EINVAL;
	} else if (log->is_reader) {
		rc = -EROFS;
	} else {
		catalog.tables[number] = (struct log_catalog_table){ number, record_bytes };
		catalog.n_tables = number + 1;
		rc = log_catalog_write(log, &catalog);
	}
	pthread_mutex_unlock(&log->lock);
	return rc;
}

uint64_t log_group_durable(const struct log *log)
{
	return atomic_load_explicit(&log->durable_group, memory_order_acquire);
}

uint64_t log_group_now(const struct log *log)
{
	return atomic_load_explicit(&log->n_group, memory_order_acquire);
}

uint64_t log_csn_now(const struct log *log)
{
	return atomic_load_explicit(&log->csn, memory_order_acquire);
}

uint64_t log_epoch_now(const struct log *log)
{
	return atomic_load_explicit(&log->epoch, memory_order_acquire);
}

uint64_t log_epoch_durable(const struct log *log)
{
	return atomic_load_explicit(&log->durable, memory_order_acquire);
}

uint64_t log_bytes_written(const struct log *log)
{
	return counter_read(&log->n_bytes);
}

void log_load_read(const struct log *log, struct log_load *ret_load)
{
	*ret_load = (struct log_load){
		.groups = counter_read(&log->n_groups),
		.start_ns = counter_read(&log->write_start_ns),
		.last_ns = counter_read(&log->write_ns),
		.usual_ns = counter_read(&log->usual_ns),
	};
}

const char *oltp_durability_name(enum oltp_durability durability)
{
	switch (durability) {
	case OLTP_DURABILITY_OFF:
		return "off";
	case OLTP_DURABILITY_ASYNC:
		return "async";
	case OLTP_DURABILITY_COMMIT:
		return "commit";
	}
	return "unknown";
}

int oltp_durability_parse(const char *name, enum oltp_durability *ret_durability)
{
	for (int i = OLTP_DURABILITY_OFF; i <= OLTP_DURABILITY_COMMIT; i++) {
		if (!strcmp(name, oltp_durability_name((enum oltp_durability)i))) {
			*ret_durability = (enum oltp_durability)i;
			return 0;
		}
	}
	return -EINVAL;
}

uint64_t oltp_worker_epoch(const struct oltp_worker *worker)
{
	return worker->log ? worker->log->epoch : 0;
}

void oltp_volume_checks_set(struct oltp_engine *engine, bool is_on)
{
	if (engine->log)
		atomic_store(&engine->log->is_unchecked, !is_on);
}

uint64_t oltp_durable_epoch(const struct oltp_engine *engine)
{
	return engine->log ? log_epoch_durable(engine->log) : UINT64_MAX;
}

int oltp_durable_wait(struct oltp_engine *engine, uint64_t epoch)
{
	struct log *log = engine->log;

	if (!log)
		return 0;
	/* log_wait() takes an epoch before the first one, such as 0, as one that is on disk. */
	return log_state(log) == LOG_UNREAD ? -EINVAL : log_wait(log, epoch, 0);
}

void oltp_durable_stats_read(struct oltp_engine *engine, struct oltp_durable_stats *ret_stats)
{
	struct hist_view writes = { 0 };
	struct log *log = engine->log;

	*ret_stats = (struct oltp_durable_stats){ 0 };
	if (!log)
		return;
	hist_view_add(&writes, &log->writes);
	*ret_stats = (struct oltp_durable_stats){
		.has_failed = log_state(log) == LOG_FAILED,
		.error = atomic_load_explicit(&log->error, memory_order_relaxed),
		.is_direct = log->has_direct,
		.epoch = log_epoch_now(log),
		.durable_epoch = log_epoch_durable(log),
		.groups = counter_read(&log->n_groups),
		.bytes = counter_read(&log->n_bytes),
		.entries = counter_read(&log->n_entries),
		.waits = counter_read(&log->n_waits),
		.cpu_seconds = (double)counter_read(&log->cpu_ns) / 1e9,
		.write_p50_us = hist_view_quantile_ns(&writes, 0.50) / 1e3,
		.write_p99_us = hist_view_quantile_ns(&writes, 0.99) / 1e3,
	};
	pthread_mutex_lock(&log->segments.lock);
	ret_stats->segments = log->segments.n;
	pthread_mutex_unlock(&log->segments.lock);
}
