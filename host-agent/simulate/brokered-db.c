// SPDX-License-Identifier: GPL-2.0-or-later
/* A database as the broker experiment models it: see brokered.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "simulate/brokered.h"
#include "util/random.h"

#define PAGES_PER_BLOCK	256.0		/* of 8 KiB */
#define PAGES_PER_MIB	128.0
/* Of a read from disk. */
#define STS_NS		1e6
/* Accesses a second that its CPUs can do. */
#define CPU_ACCESSES	400000.0
/* Part of the data in which the use of a TPC-C-like database falls to 1/e, and what is even. */
#define TPCC_FALLS	0.12
#define TPCC_EVEN	0.05

double brokered_db_chance(struct brokered_db *db)
{
	return ebb_random_unit(&db->chance);
}

/* Accesses to the most used part x of the data, of all. */
static double used_within(double theta, double x)
{
	if (theta > 0)
		return pow(x, 1 - theta);
	return TPCC_EVEN * x + (1 - TPCC_EVEN) * (1 - exp(-x / TPCC_FALLS)) /
			       (1 - exp(-1 / TPCC_FALLS));
}

void brokered_db_init(struct brokered_db *db, double blocks, double theta, double reads,
		      double keeps_blocks, uint64_t seed)
{
	*db = (struct brokered_db){
		.part_blocks = blocks / BROKERED_PARTS, .reads = reads, .chance = seed,
	};
	for (unsigned k = 0; k < BROKERED_PARTS; k++) {
		const double room = keeps_blocks - db->sum_held;

		db->share[k] = used_within(theta, (k + 1.0) / BROKERED_PARTS) -
			       used_within(theta, (double)k / BROKERED_PARTS);
		db->held[k] = fmin(room, db->part_blocks);
		db->sum_held += db->held[k];
	}
}

void brokered_db_give(struct brokered_db *db, double blocks)
{
	for (unsigned k = BROKERED_PARTS; k > 0 && blocks > 0; k--) {
		const double part = fmin(blocks, db->held[k - 1]);

		db->held[k - 1] -= part;
		db->sum_held -= part;
		blocks -= part;
	}
}

double brokered_db_missed(const struct brokered_db *db)
{
	double missed = 0;

	for (unsigned k = 0; k < BROKERED_PARTS; k++)
		missed += db->share[k] * (1 - db->held[k] / db->part_blocks);
	return missed;
}

void brokered_db_access(struct brokered_db *db, double accesses, double may_hold)
{
	for (unsigned k = 0; k < BROKERED_PARTS; k++) {
		const double out = db->part_blocks - db->held[k];
		const double read = accesses * db->share[k] * out / db->part_blocks /
				    PAGES_PER_BLOCK;

		db->held[k] += fmin(read, out);
		db->sum_held += fmin(read, out);
	}
	if (db->sum_held > may_hold)
		brokered_db_give(db, db->sum_held - may_hold);
}

double brokered_db_run(struct brokered_db *db, double may_hold)
{
	const double missed = brokered_db_missed(db);
	const double most = missed > 0 ? db->reads / missed : CPU_ACCESSES;
	const double accesses = fmin(CPU_ACCESSES, most) * db->load;

	if (db->load <= 0)
		return 0;
	brokered_db_access(db, accesses, may_hold);
	db->did[db->ran_s] = accesses + (db->ran_s > 0 ? db->did[db->ran_s - 1] : 0);
	db->ran_s++;
	db->pause_s = 0;
	return accesses;
}

static double did_until(const struct brokered_db *db, uint32_t second)
{
	return second > 0 ? db->did[second - 1] : 0;
}

void brokered_db_settle(struct brokered_db *db, double seconds)
{
	db->before = did_until(db, db->ran_s) - did_until(db, db->ran_s - 1);
	db->before_s = seconds;
	db->ran_s = 0;
}

void brokered_db_pause(struct brokered_db *db, double seconds)
{
	db->pause_s += seconds;
}

/* Time in which the database ran since that many accesses ago. */
static double age_of(const struct brokered_db *db, double accesses)
{
	const double all = did_until(db, db->ran_s);
	uint32_t low = 0, high = db->ran_s;

	if (accesses > all)
		return db->ran_s + (db->before > 0 ?
				    fmin((accesses - all) / db->before, db->before_s) : 0);
	/* The second in which that was. */
	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;

		if (all - did_until(db, mid + 1) < accesses)
			high = mid;
		else
			low = mid + 1;
	}
	return db->ran_s - low - 0.5;
}

static int by_value(const void *x, const void *y)
{
	const struct ebb_vom_bucket *a = x, *b = y;

	return a->value != b->value ? (a->value < b->value ? -1 : 1) : 0;
}

uint32_t brokered_db_tell(struct brokered_db *db, double idle_half_s, struct ebb_vom_bucket *ret)
{
	const double expected = sqrt(idle_half_s / (idle_half_s + 3 * db->pause_s));
	const double kib = db->sum_held * (double)(EBB_BLOCK_BYTES >> 10);

	if (kib < BROKERED_SAMPLES)
		return 0;
	for (uint32_t i = 0; i < BROKERED_SAMPLES; i++) {
		double at = brokered_db_chance(db) * db->sum_held, ago, age;
		unsigned k = 0;

		for (; k < BROKERED_PARTS - 1 && at >= db->held[k]; k++)
			at -= db->held[k];
		/* Uses are random: accesses since the last but one have a gamma distribution. */
		ago = -log(brokered_db_chance(db) * brokered_db_chance(db)) *
		      db->part_blocks * PAGES_PER_BLOCK / db->share[k];
		age = fmax(age_of(db, ago), 0.5);
		ret[i] = (struct ebb_vom_bucket){
			.value = (uint64_t)(expected * STS_NS * PAGES_PER_MIB / age),
			.kib = (uint32_t)(kib / BROKERED_SAMPLES),
		};
	}
	qsort(ret, BROKERED_SAMPLES, sizeof(*ret), by_value);
	return BROKERED_SAMPLES;
}
