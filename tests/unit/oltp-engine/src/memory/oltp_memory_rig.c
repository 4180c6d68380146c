// SPDX-License-Identifier: GPL-2.0-or-later
/* See oltp_memory_rig.h. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/io/volume.h"
#include "oltp-engine/src/memory/manager.h"
#include "oltp_memory_rig.h"

#define VOLUME_BYTES	(256ull << 20)

const char *rig_dir(void)
{
	const char *const dirs[] = { getenv("TMPDIR"), "/var/tmp", "/tmp", "." };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		int fd = dirs[i] ? open(dirs[i], O_TMPFILE | O_RDWR | O_DIRECT, 0600) : -1;

		if (fd >= 0) {
			close(fd);
			return dirs[i];
		}
	}
	fail_msg("no folder allows direct I/O");
	return NULL;
}

uint32_t rig_idle_half_ms;
bool rig_in_volume;

int rig_use_folder(void **state)
{
	(void)state;
	rig_in_volume = false;
	return 0;
}

int rig_use_volume(void **state)
{
	(void)state;
	rig_in_volume = true;
	return 0;
}

/* Every other unit is taken, so that no two extents of cold records are in a row. */
static void volume_make(struct rig *rig)
{
	struct io_files io = io_files_real(IO_LOG, NULL);
	struct volume *volume;
	uint32_t n = 0;
	char name[16];
	int fd;

	snprintf(rig->volume, sizeof(rig->volume), "%s/oltp-cold-XXXXXX", rig_dir());
	fd = mkstemp(rig->volume);
	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, VOLUME_BYTES), 0);
	close(fd);
	assert_int_equal(oltp_volume_format(rig->volume, false), 0);
	assert_int_equal(volume_open(&io, rig->volume, true, &volume), 0);
	for (bool is_full = false; !is_full; n++) {
		snprintf(name, sizeof(name), "%u", n);
		fd = volume_ops.open(volume, name, O_RDWR | O_CREAT, 0600);
		is_full = volume_ops.fallocate(volume, fd, COLD_EXTENT_BYTES);
		volume_ops.close(volume, fd);
	}
	for (uint32_t i = 0; i < n; i += 2) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(volume_ops.unlink(volume, name), 0);
	}
	volume_close(volume);
}

void rig_sleep_ms(uint32_t ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000l }, NULL);
}

void rig_age(struct rig *rig)
{
	const uint64_t epoch = epoch_now(&rig->engine->epoch);

	while (epoch_now(&rig->engine->epoch) < epoch + 2)
		rig_sleep_ms(1);
}

static void engine_open(struct rig *rig, struct oltp_config *config)
{
	config->node = -1;
	config->blocks = &oltp_blocks_native_ops;
	config->blocks_ctx = rig->blocks;
	config->idle_half_ms = rig_idle_half_ms;
	if (rig->volume[0]) {
		config->volume = rig->volume;
		config->volume_cold = true;
	}
	assert_int_equal(oltp_engine_open(config, &rig->engine), 0);
	oltp_blocks_native_attach(rig->blocks, rig->engine);
	assert_int_equal(oltp_table_create(rig->engine, RIG_RECORD_BYTES, 20000, &rig->table), 0);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->w), 0);
}

void rig_open(struct rig *rig, enum oltp_cc cc, uint64_t limit_bytes, bool with_disk,
	      uint64_t cold_bytes)
{
	struct oltp_config config = {
		.cc = cc,
		.cold_dir = with_disk && !rig_in_volume ? rig_dir() : NULL,
		.cold_bytes_max = cold_bytes,
	};

	*rig = (struct rig){ 0 };
	if (with_disk && rig_in_volume)
		volume_make(rig);
	assert_int_equal(oltp_blocks_native_create(limit_bytes, 0, &rig->blocks), 0);
	engine_open(rig, &config);
}

void rig_reopen(struct rig *rig)
{
	engine_open(rig, &(struct oltp_config){ 0 });
}

void rig_close(struct rig *rig)
{
	oltp_worker_destroy(rig->w);
	oltp_engine_close(rig->engine);
	assert_int_equal(oltp_blocks_native_held(rig->blocks), 0);
	oltp_blocks_native_destroy(rig->blocks);
	if (rig->volume[0])
		unlink(rig->volume);
}

void rig_hook(struct rig *rig, int32_t (*result)(void *, const struct io_request *, int32_t),
	      void *ctx)
{
	rig->hook = (struct io_hook){ result, ctx };
	rig->engine->cold->hook = &rig->hook;
	rig->engine->manager->evict.io.hook = &rig->hook;
}

void rig_fill_record(uint8_t *record, uint64_t key, uint64_t counter)
{
	memset(record, (int)(key * 31 + counter), RIG_RECORD_BYTES);
	memcpy(record, &counter, sizeof(counter));
	memcpy(record + 8, &key, sizeof(key));
	memcpy(record + RIG_RECORD_BYTES - 8, &counter, sizeof(counter));
}

bool rig_record_is(const uint8_t *record, uint64_t key, uint64_t counter)
{
	uint8_t expected[RIG_RECORD_BYTES];

	rig_fill_record(expected, key, counter);
	return !memcmp(expected, record, sizeof(expected));
}

/* OLTP_CONFLICT: once more; what was on disk has been read by then. */
static enum oltp_rc attempt_end(struct rig *rig, enum oltp_rc rc)
{
	if (!rc)
		rc = oltp_txn_commit(rig->w);
	if (rc)
		oltp_txn_abort(rig->w);
	return rc == OLTP_COLD ? oltp_cold_wait(rig->w) ?: OLTP_CONFLICT : rc;
}

void rig_insert(struct rig *rig, uint64_t first, uint64_t end)
{
	uint8_t record[RIG_RECORD_BYTES];

	for (uint64_t key = first; key < end; key++) {
		enum oltp_rc rc;

		rig_fill_record(record, key, 0);
		do {
			oltp_txn_begin(rig->w);
			rc = attempt_end(rig, oltp_txn_insert(rig->w, rig->table, key, record));
		} while (rc == OLTP_CONFLICT);
		assert_int_equal(rc, OLTP_OK);
	}
}

static enum oltp_rc run(struct rig *rig, uint64_t key, uint64_t counter, bool update)
{
	const struct oltp_span all = { 0, RIG_RECORD_BYTES };
	enum oltp_rc rc;

	do {
		const void *found = NULL;
		void *record = NULL;

		oltp_txn_begin(rig->w);
		rc = update ? oltp_txn_update(rig->w, rig->table, key, &all, 1, &record) :
			      oltp_txn_read(rig->w, rig->table, key, &found);
		if (!rc && update)
			rig_fill_record(record, key, counter);
		if (!rc && !update)
			assert_true(rig_record_is(found, key, counter));
		rc = attempt_end(rig, rc);
	} while (rc == OLTP_CONFLICT);
	return rc;
}

enum oltp_rc rig_read(struct rig *rig, uint64_t key, uint64_t counter)
{
	return run(rig, key, counter, false);
}

enum oltp_rc rig_update(struct rig *rig, uint64_t key, uint64_t counter)
{
	return run(rig, key, counter, true);
}

bool rig_is_cold(struct rig *rig, uint64_t key)
{
	const void *found;
	enum oltp_rc rc;

	do {
		oltp_txn_begin(rig->w);
		rc = oltp_txn_read(rig->w, rig->table, key, &found);
		oltp_txn_abort(rig->w);
	} while (rc == OLTP_CONFLICT);
	assert_true(rc == OLTP_OK || rc == OLTP_COLD);
	return rc == OLTP_COLD;
}

struct oltp_memory_stats rig_stats(struct rig *rig)
{
	struct oltp_memory_stats stats;

	oltp_memory_stats_read(rig->engine, &stats);
	return stats;
}

struct oltp_memory_stats rig_stats_of(struct rig *rig, uint64_t n_records)
{
	struct oltp_memory_stats stats = rig_stats(rig);

	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS &&
	     stats.resident_records + stats.cold_records != n_records; ms++) {
		rig_sleep_ms(1);
		stats = rig_stats(rig);
	}
	assert_int_equal(stats.resident_records + stats.cold_records, n_records);
	return stats;
}

struct oltp_memory_stats rig_demand(struct rig *rig, uint64_t limit_bytes, uint32_t deadline_ms)
{
	struct oltp_memory_stats stats = rig_stats(rig);
	uint64_t demands = stats.demands;

	if (stats.held_bytes > limit_bytes)
		demands++;
	oltp_blocks_native_set_limit(rig->blocks, limit_bytes,
				     clock_now_ns() + deadline_ms * 1000000ull);
	/* Somewhat longer than the deadline: it is the engine that has to give up. */
	for (uint32_t ms = 0; ms < deadline_ms + 20000; ms++) {
		stats = rig_stats(rig);
		/* The figures are not of one moment: what was read before the end is older. */
		if (stats.demands >= demands)
			return rig_stats(rig);
		rig_sleep_ms(1);
	}
	fail_msg("the demand was neither met nor given up");
	return stats;
}

struct scan {
	uint64_t n;
	const uint64_t *counters;
	uint64_t seen;
	uint64_t keys;
};

static int check_record(void *ctx, uint64_t key, const void *record)
{
	struct scan *scan = ctx;

	scan->seen++;
	scan->keys += key * key;
	if (key >= scan->n || !rig_record_is(record, key, scan->counters ? scan->counters[key] : 0))
		return -1;
	return 0;
}

int rig_scan(struct rig *rig, uint64_t n, const uint64_t *counters)
{
	struct scan scan = { .n = n, .counters = counters };
	uint64_t keys = 0;
	int rc = oltp_table_scan(rig->table, check_record, &scan);

	for (uint64_t key = 0; key < n; key++)
		keys += key * key;
	if (!rc && (scan.seen != n || scan.keys != keys))
		return -2;
	return rc;
}

void rig_work(struct rig *rig)
{
	oltp_txn_begin(rig->w);
	oltp_txn_abort(rig->w);
}

struct oltp_memory_stats rig_read_back(struct rig *rig, uint64_t limit_bytes)
{
	struct oltp_memory_stats stats = rig_demand(rig, limit_bytes, 0);

	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS &&
	     (stats.cold_records || stats.file_used_bytes); ms++) {
		/* While there are no transactions, nothing is read back. */
		rig_work(rig);
		rig_sleep_ms(1);
		stats = rig_stats(rig);
	}
	assert_int_equal(stats.cold_records, 0);
	assert_int_equal(stats.file_used_bytes, 0);
	return stats;
}
