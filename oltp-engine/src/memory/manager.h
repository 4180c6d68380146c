/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread that moves memory: answers demands, keeps some room for records that come back, reads
 * cold ones back while there is memory for them, compacts the file that they are in, and lets time
 * pass (epochs). There is none in an engine whose memory neither comes nor goes.
 */
#ifndef OLTP_MANAGER_H
#define OLTP_MANAGER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "evict.h"
#include "idle.h"
#include "oltp-engine/src/cold/cold_compact.h"
#include "oltp-engine/src/txn/engine.h"
#include "recency.h"
#include "shrink.h"

/* What is demanded of a node. Only the manager's thread knows of it. */
struct demand {
	uint64_t n_limits;	/* of the node, as of the last look at the demand */
	bool is_given_up;	/* it could not be met by its deadline */
	uint64_t retry_ns;	/* when to try again to meet it */
	uint64_t start_ns;	/* since when it is worked on; 0: it is not */
};

struct manager {
	struct oltp_engine *engine;
	struct evict evict;
	struct shrink shrink;
	struct recency_sampler *recency;
	struct demand demand[OLTP_NODES_MAX];
	uint64_t ticks;
	uint32_t n_workers;		/* as of the last one */
	pthread_t thread;
	_Atomic bool quit;
	uint64_t fill_next;		/* extent to go on with */
	uint64_t n_reads, read_ns;	/* read for transactions; when there were some last */
	uint64_t disk_retry_ns;		/* no records are evicted to make room before that */
	uint8_t *fill_buffer;
	struct compact compact;
	bool is_compacting;		/* the last turn gained something, or it is time for one */
	uint64_t compact_retry_ns;	/* after an error */
	pthread_mutex_t lock;		/* everything below */
	struct idle idle;
	uint64_t demands, answered_bytes, unanswered_bytes, unanswered_demands, last_demand_ns;
};

/* Errors: -ENOMEM, -EAGAIN, those of io_uring. */
int manager_create(struct oltp_engine *engine, struct manager **ret_manager);
void manager_destroy(struct manager *manager);

/* The clock by which ages are counted, and idle_expected (both: idle.h). Any thread. */
uint64_t manager_busy_ns(struct manager *manager);
double manager_expected(struct manager *manager);

/* Records there are, wherever they are. Any thread. */
uint64_t manager_records(struct oltp_engine *engine);

/*
 * Bytes of records that a memory of so many MiB holds if it is divided among the tables as this
 * one is. Free slots are kept in each, and as blocks are of one table, half of a block is vacant in
 * the mean in all tables but one, as half of a page is at the end of a segment. Any thread.
 */
uint64_t memory_promise_bytes(struct oltp_engine *engine, uint32_t mib);

/* Are cold records read into memory that is not used? Any thread. */
bool manager_fills(struct manager *manager);

#endif
