// SPDX-License-Identifier: GPL-2.0-or-later
/* See cold_reads.h. */
#include "oltp-engine/server/kv/cold_reads.h"

#define POLL_MAX	8u
/*
 * Transactions that the engine reads for at a time. One may hold some 150 records, and the engine
 * keeps at most 768 without room in memory (fetch.h): with many, each would release what the others
 * have read. The reads of two keep a disk busy.
 */
#define TICKETS_MAX	2u

static uint64_t bit_of(const struct kv_cold_wait *wait)
{
	return wait->ticket ? 1ull << (wait->ticket - 1) : 0;
}

static void release(struct kv_cold_reads *reads, uint32_t ticket)
{
	oltp_cold_end(reads->worker, ticket);
	reads->used &= ~(1ull << ticket);
	reads->orphaned &= ~(1ull << ticket);
	reads->n_released++;
}

void kv_cold_reads_poll(struct kv_cold_reads *reads)
{
	struct oltp_cold_done done[POLL_MAX];
	int n = 0;

	/*
	 * The engine submits reads when a poll finds that no transaction was begun since the last
	 * poll. So poll twice: the first call may come after a transaction.
	 */
	for (uint32_t i = 0; reads->reading && (i < 2 || n > 0); i++) {
		n = oltp_cold_poll(reads->worker, done, POLL_MAX, false);
		for (int j = 0; j < n; j++) {
			uint64_t bit = 1ull << done[j].ticket;

			reads->reading &= ~bit;
			reads->rc[done[j].ticket] = (uint8_t)done[j].rc;
			if (reads->orphaned & bit)
				release(reads, done[j].ticket);
		}
	}
}

enum oltp_rc kv_cold_wait_begin(struct kv_cold_reads *reads, struct kv_cold_wait *wait)
{
	uint32_t ticket = wait->ticket - 1;
	enum oltp_rc rc = OLTP_FULL;

	if (!wait->ticket)
		ticket = (uint32_t)__builtin_ctzll(~reads->used);
	if (ticket < TICKETS_MAX)
		rc = oltp_cold_fetch(reads->worker, ticket);
	wait->is_refused = rc == OLTP_FULL;
	wait->refused_at = reads->n_released;
	if (!rc) {
		wait->ticket = ticket + 1;
		reads->used |= bit_of(wait);
		reads->reading |= bit_of(wait);
		reads->rc[ticket] = OLTP_OK;
	} else if (!wait->ticket && ticket < TICKETS_MAX) {
		/* The ticket's next reader must not get the end of this read. */
		oltp_cold_end(reads->worker, ticket);
	}
	return rc == OLTP_FULL ? OLTP_OK : rc;
}

bool kv_cold_waits(const struct kv_cold_reads *reads, const struct kv_cold_wait *wait)
{
	if (reads->reading & bit_of(wait))
		return true;
	/* If no other reader has a ticket, none will be released: try again right away. */
	return wait->is_refused && wait->refused_at == reads->n_released &&
	       reads->used & ~bit_of(wait);
}

enum oltp_rc kv_cold_wait_result(const struct kv_cold_reads *reads,
				 const struct kv_cold_wait *wait)
{
	return wait->ticket ? (enum oltp_rc)reads->rc[wait->ticket - 1] : OLTP_OK;
}

void kv_cold_wait_end(struct kv_cold_reads *reads, struct kv_cold_wait *wait)
{
	if (reads->reading & bit_of(wait))
		reads->orphaned |= bit_of(wait);
	else if (wait->ticket)
		release(reads, wait->ticket - 1);
	*wait = (struct kv_cold_wait){ 0 };
}
