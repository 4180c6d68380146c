/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cold_reads.h - reads of cold records for several readers (or removers) of units that share a
 * worker. A reader that meets a cold record starts a read here and returns to its caller. The
 * caller serves other readers until the read has ended.
 *
 * The worker must run transactions of these readers only: oltp_cold_wait on it would take the end
 * of a read that belongs to a reader. All functions are for the thread that uses the worker.
 */
#ifndef OLTP_KV_COLD_READS_H
#define OLTP_KV_COLD_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

_Static_assert(OLTP_TICKETS == 64, "a bit of a word for each");

/* All 0 but worker at first. */
struct kv_cold_reads {
	struct oltp_worker *worker;
	/* A bit for each ticket: */
	uint64_t used;		/* a reader has it, or the engine still reads for it */
	uint64_t reading;	/* the engine reads for it */
	uint64_t orphaned;	/* reading, and its reader has ended */
	uint8_t rc[OLTP_TICKETS];	/* enum oltp_rc with which the last read ended */
	uint64_t n_released;	/* tickets that became free since the start */
};

/* Of one reader. All 0 at first. */
struct kv_cold_wait {
	uint32_t ticket;	/* 1 + its number; 0: none */
	bool is_refused;	/* the engine had no room for another read */
	uint64_t refused_at;	/* n_released then */
};

/* Collects the reads that have ended. Waits for nothing. */
void kv_cold_reads_poll(struct kv_cold_reads *reads);

/*
 * Right after the abort of a transaction that met OLTP_COLD: starts the reads of its cold records,
 * or notes that there is no room for them now. Errors: OLTP_IO, OLTP_NO_MEMORY.
 */
enum oltp_rc kv_cold_wait_begin(struct kv_cold_reads *reads, struct kv_cold_wait *wait);

/* False: the transaction may be run (again). */
bool kv_cold_waits(const struct kv_cold_reads *reads, const struct kv_cold_wait *wait);

/* Once it does not wait: how its last read has ended; OLTP_OK also if there was none. */
enum oltp_rc kv_cold_wait_result(const struct kv_cold_reads *reads,
				 const struct kv_cold_wait *wait);

/* The transaction was committed or given up; also while it waits. */
void kv_cold_wait_end(struct kv_cold_reads *reads, struct kv_cold_wait *wait);

#endif
