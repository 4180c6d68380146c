/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small database on a disk that fails, and a book of what was done to it. Each worker changes
 * rows of its own. Some of its transactions also count up a row that all workers share, so that
 * those have one order. What is found after a crash is checked against the book:
 *
 *   P1  Of the shared series, all up to some number are there, and none after.
 *   P2  Of each worker's transactions, all up to some one are there, and none after; that agrees
 *       with P1.
 *   P3  What was acknowledged is there.
 *   P4  Each row, wherever it is looked up, is as those left it, to the last byte.
 */
#ifndef DURABLE_RIG_H
#define DURABLE_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "log_faults.h"
#include "oltp-engine/src/txn/engine.h"
#include "tests/lib/sanitizers.h"

/* Under a sanitizer everything takes so much longer that one of so many must do. */
#define DURABLE_FEWER		(HAS_ASAN || HAS_TSAN ? 8u : 1u)

#define DURABLE_WORKERS		2u
#define DURABLE_KEYS		16u	/* rows of each worker */
#define DURABLE_TXNS_MAX	1024u	/* of each worker between two recoveries */
#define DURABLE_CHANGES_MAX	4u	/* of one transaction */
#define DURABLE_RECORD_BYTES	6000u

/* Both halves are made from the number of a transaction; a put sets both, an update the second. */
struct durable_row {
	bool is_there;
	uint32_t first, second;
};

struct durable_change {
	uint32_t key;
	struct durable_row row;	/* after it */
};

struct durable_txn {
	uint64_t shared;	/* its number in the shared series; 0: not of it */
	uint64_t own;		/* how many transactions of the worker there are with it */
	uint32_t n_changes;
	struct durable_change changes[DURABLE_CHANGES_MAX];
};

/* Since the last recovery; what that found is behind the numbers. */
struct durable_worker {
	uint32_t n;
	struct durable_txn txns[DURABLE_TXNS_MAX];
	uint64_t own_found, own_acknowledged;
	uint64_t shared_last;	/* the worker's last one in the shared series */
	struct durable_row found[DURABLE_KEYS];	/* rows as recovery left them */
	struct durable_row rows[DURABLE_KEYS];	/* and as after all since */
};

/* Where the database is: in the folder /disk, or in a volume that is its only file. */
enum durable_place {
	DURABLE_IN_FOLDER,
	DURABLE_IN_VOLUME,
};

struct durable_rig {
	enum durable_place place;
	struct fault_disk *disk;
	struct oltp_config config;
	struct oltp_engine *engine;
	struct oltp_table *counters, *rows;
	struct oltp_index *by_key, *by_number;
	struct oltp_recovery recovery;
	uint64_t rng;
	pthread_mutex_t lock;	/* the next two, while workers run */
	uint64_t n_shared;
	uint64_t shared_acknowledged;
	uint64_t shared_found;
	uint64_t csn_found;
	struct durable_worker workers[DURABLE_WORKERS];
};

/* Where durable_init has it, and set-ups of a test that say so. */
extern enum durable_place durable_place;
int durable_in_folder(void **state);
int durable_in_volume(void **state);

/* The test in each place, for an array of struct CMUnitTest. */
#define DURABLE_TEST(test) \
	{ #test, test, durable_in_folder, NULL, NULL }, \
	{ #test " in a volume", test, durable_in_volume, NULL, NULL }

/* With an empty disk, or an empty volume. */
void durable_init(struct durable_rig *rig, uint64_t seed);
void durable_finish(struct durable_rig *rig);

/* The engine on the disk with its tables, not recovered. 0 or -errno: it is not open. */
int durable_open(struct durable_rig *rig);
void durable_close(struct durable_rig *rig);

/*
 * Opens, recovers, and checks P1 to P4. What is not there is struck from the book, what is there
 * counts as acknowledged. 0 or -errno: it is not open, the book is as before.
 */
int durable_recover(struct durable_rig *rig);

/*
 * Runs up to n transactions on each of n_workers threads, until something fails, and checkpoints
 * meanwhile. Returns how many were committed.
 */
uint32_t durable_run(struct durable_rig *rig, uint32_t n_workers, uint32_t n,
		     uint32_t checkpoints);

int durable_checkpoint(struct durable_rig *rig);

/*
 * As fault_disk_count, fault_disk_damage, fault_disk_remove and fault_disk_set_room, of the
 * database's files wherever they are. Damaging and removing: with the engine closed.
 */
uint32_t durable_count(struct durable_rig *rig, const char *prefix);
void durable_damage(struct durable_rig *rig, const char *prefix, uint32_t nth, uint64_t offset);
void durable_remove(struct durable_rig *rig, const char *prefix, uint32_t nth);
void durable_set_room(struct durable_rig *rig, uint64_t bytes);

/* Goes on with a copy of the disk. */
void durable_copy(struct durable_rig *rig, const struct durable_rig *from, uint64_t seed);

uint64_t durable_draw(uint64_t *rng, uint64_t below);

#endif
