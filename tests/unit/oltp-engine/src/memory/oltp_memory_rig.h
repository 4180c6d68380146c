/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An engine under a memory limit with a disk below it, for tests of memory that moves. */
#ifndef OLTP_MEMORY_RIG_H
#define OLTP_MEMORY_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oltp-engine/src/cold/cold.h"
#include "oltp-engine/src/txn/engine.h"

#define RIG_RECORD_BYTES	1008u	/* 2048 of them fill a block of 2 MiB, 256 an extent */
#define RIG_PER_BLOCK		2048u
#define MIB			(1ull << 20)

/* Where cold records go: a file in rig_dir(), or a volume whose free space is in small pieces. */
extern bool rig_in_volume;
int rig_use_folder(void **state);
int rig_use_volume(void **state);

/* The test with each, for an array of struct CMUnitTest. */
#define RIG_TEST(test) \
	{ #test, test, rig_use_folder, NULL, NULL }, \
	{ #test " in a volume", test, rig_use_volume, NULL, NULL }

struct rig {
	struct oltp_blocks_native *blocks;
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w;
	struct io_hook hook;
	char volume[64];	/* its path; "": none */
};

/* A folder in which files can be opened for direct I/O. */
const char *rig_dir(void);

/* oltp_config.idle_half_ms of engines opened from now on. */
extern uint32_t rig_idle_half_ms;

/* with_disk: anti-caching into rig_dir() or a volume there, of at most cold_bytes (0: no bound). */
void rig_open(struct rig *rig, enum oltp_cc cc, uint64_t limit_bytes, bool with_disk,
	      uint64_t cold_bytes);

/* Once more, with the volume of before, and all else new. The engine and the worker are gone. */
void rig_reopen(struct rig *rig);

/* Everything was given back to the provider. */
void rig_close(struct rig *rig);

/* Before the first record is cold. */
void rig_hook(struct rig *rig, int32_t (*result)(void *, const struct io_request *, int32_t),
	      void *ctx);

/* The record's counter is stored twice, its other bytes follow from key and counter. */
void rig_fill_record(uint8_t *record, uint64_t key, uint64_t counter);
bool rig_record_is(const uint8_t *record, uint64_t key, uint64_t counter);

/* Keys first to end - 1 with counter 0. */
void rig_insert(struct rig *rig, uint64_t first, uint64_t end);

/* One transaction, run until it goes through; what it ends with otherwise. */
enum oltp_rc rig_read(struct rig *rig, uint64_t key, uint64_t counter);
enum oltp_rc rig_update(struct rig *rig, uint64_t key, uint64_t counter);

/* Is the record on disk now? */
bool rig_is_cold(struct rig *rig, uint64_t key);

/* For demands that must be met, however busy the machine is; longer is a hang. */
#define RIG_DEADLINE_MS		60000u

/* Sets the limit and waits until the demand has been met, or given up. */
struct oltp_memory_stats rig_demand(struct rig *rig, uint64_t limit_bytes, uint32_t deadline_ms);

/* Sets a limit that leaves room for all, and works until no record is on disk any more. */
struct oltp_memory_stats rig_read_back(struct rig *rig, uint64_t limit_bytes);

struct oltp_memory_stats rig_stats(struct rig *rig);
/* Once each of them is counted once: what is on its way to disk counts twice. */
struct oltp_memory_stats rig_stats_of(struct rig *rig, uint64_t n_records);

/* Looks over all of keys 0 to n - 1, which must have these counters (NULL: all 0). */
int rig_scan(struct rig *rig, uint64_t n, const uint64_t *counters);

void rig_sleep_ms(uint32_t ms);

/* A transaction that does nothing: only while there are any, records are read back ahead. */
void rig_work(struct rig *rig);

/* Until what was used up to now counts as older than what is used from now on. */
void rig_age(struct rig *rig);

#endif
