/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workload's state, shared by running (ycsb.c and others), loading and verifying. */
#ifndef BENCH_YCSB_PRIVATE_H
#define BENCH_YCSB_PRIVATE_H

#include <pthread.h>
#include <stddef.h>

#include "growth.h"
#include "oltp-engine/bench/classes.h"
#include "ycsb.h"
#include "zipf.h"

/* What committed transactions did. */
struct ycsb_books {
	uint64_t updates;
	uint64_t weighted_updates;
	uint64_t inserts;
	uint64_t inserted_keys;		/* sum of their weights */
	uint64_t inconsistent_reads;
};

/* A class with its shares added up: an operation is the first kind whose bound is above a draw. */
struct ycsb_mix {
	uint32_t operations;
	uint64_t bounds[YCSB_READ];	/* of 32 random bits; none is below the one before */
	bool by_transaction;
	uint8_t whole;		/* a bit for each kind that touches all fields */
	uint32_t work;
};

struct ycsb {
	struct ycsb_config config;
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_index *index;	/* NULL: no scans */
	struct growth *growth;		/* NULL: no inserts */
	uint32_t n_mixes;
	struct ycsb_mix mixes[YCSB_CLASSES_MAX];
	_Atomic uint32_t weights[YCSB_CLASSES_MAX];	/* in 2^-12 */
	struct classes *classes;	/* NULL: one mix */
	/* Of the hot part, or of all; the newest one counts, older ones may still be in use. */
	struct zipf zipfs[YCSB_THETAS_MAX];
	_Atomic uint32_t n_zipfs;
	struct zipf spread;		/* puts ranks of both parts all over the keys */
	uint64_t hot;			/* records that are not of the cold part */
	uint64_t cold_share;		/* of accesses, in 2^-32; 0: there is no cold part */
	_Atomic uint64_t window_first, window_records;
	_Atomic uint64_t attached;	/* workers ever, for their seeds */
	pthread_mutex_t lock;		/* books: workers add theirs when they detach */
	struct ycsb_books books;
};

struct ycsb_operation {
	uint8_t kind;		/* enum ycsb_op */
	uint8_t field;
	uint16_t rows;		/* of a scan */
};

/* Keys are drawn once per transaction, so that a retry is the same one. */
struct ycsb_txn {
	uint32_t class;
	const struct ycsb_mix *mix;
	struct oltp_hint hints[YCSB_OPERATIONS_MAX];
	struct ycsb_operation operations[YCSB_OPERATIONS_MAX];
	uint64_t numbers[YCSB_OPERATIONS_MAX];	/* of inserts */
};

/* One worker's side. */
struct ycsb_worker {
	struct ycsb *ycsb;
	struct oltp_worker *worker;
	struct class_worker *classes;	/* NULL: one mix */
	struct random64 random;
	struct ycsb_books books;
	uint64_t computed;		/* so that nobody finds the work useless */
	uint8_t read_buffer[sizeof(struct ycsb_record)];
	struct ycsb_txn *txn_of[OLTP_TICKETS];	/* by slot */
	struct ycsb_txn *next;			/* of no slot yet */
	bool has_next;				/* next is drawn already: see look_ahead */
	struct ycsb_txn txns[OLTP_TICKETS + 1];
};

static inline uint32_t ycsb_field_offset(uint32_t field)
{
	return (uint32_t)offsetof(struct ycsb_record, fields) + field * YCSB_FIELD_BYTES;
}

/* The key of the record with a number; one to one. */
static inline uint64_t ycsb_key(const struct ycsb *ycsb, uint64_t number)
{
	return ycsb->config.is_hashed ? random64_mix(number + 1) : number;
}

static inline uint64_t ycsb_number(const struct ycsb *ycsb, uint64_t key)
{
	return ycsb->config.is_hashed ? random64_unmix(key) - 1 : key;
}

/* Inserts the records with numbers first to end - 1. Errors: -ENOMEM, -EIO. */
int ycsb_load_range(struct ycsb *ycsb, uint64_t first, uint64_t end);

/* Makes up a new transaction. */
void ycsb_draw(struct ycsb_worker *yw, struct ycsb_txn *txn);

/* Runs its operations; the caller begins and ends. */
enum oltp_rc ycsb_run(struct ycsb_worker *yw, const struct ycsb_txn *txn);

#endif
