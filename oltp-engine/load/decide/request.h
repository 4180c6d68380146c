/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The requests of the load generator. Plain data: no sockets, no RESP. */
#ifndef LOAD_REQUEST_H
#define LOAD_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

/* Of a record of YCSB ("Benchmarking Cloud Serving Systems with YCSB", 4.1). */
#define LOAD_YCSB_FIELDS	10u
#define LOAD_YCSB_FIELD_BYTES	100u

/* Rows of one CRUD request ("Downtime-Free Live Migration", 4.2). */
#define LOAD_CRUD_ROWS	5u

enum load_kind {
	/* Those of a mix. CRUD: MULTI, a command for each row, EXEC. */
	LOAD_SELECT,
	LOAD_UPDATE,
	LOAD_INSERT,
	LOAD_DELETE,
	LOAD_GET,
	LOAD_SET,
	LOAD_COUNT,		/* INCR of a counter */
	LOAD_YCSB_READ,		/* FCALL on one record, all its fields */
	LOAD_YCSB_UPDATE,	/* one of its fields */
	/* FCALL of the procedure of that name; first: seed of its arguments. */
	LOAD_NEW_ORDER,
	LOAD_PAYMENT,
	LOAD_ORDER_STATUS,
	LOAD_DELIVERY,
	LOAD_STOCK_LEVEL,
	LOAD_MIX_KINDS,
	/* Before and after the run. */
	LOAD_FILL = LOAD_MIX_KINDS,	/* SET of n rows */
	LOAD_READ_COUNTER,
	LOAD_YCSB_FILL,		/* HSET of n records */
	LOAD_TPCC_FILL,		/* part number first */
	LOAD_TPCC_CHECK,	/* part number first of round field */
	LOAD_KINDS,
};

struct load_request {
	uint64_t arrived_ns;	/* CLOCK_MONOTONIC; response times begin here */
	uint64_t first;		/* ID of the first row, or of the counter; or see load_kind */
	uint32_t n;		/* rows or records; 1 for a counter */
	enum load_kind kind;
	uint32_t field;		/* LOAD_YCSB_UPDATE: its number; LOAD_TPCC_CHECK: round */
};

/*
 * Whether a request that was under way on a connection that broke may be sent again. It may if it
 * changes nothing, or if the server cannot have executed it: a server executes a request after its
 * last byte (EXEC ends those of several commands), and not all bytes had left. Loading and reading
 * counters may always be repeated: nobody else writes meanwhile.
 */
static inline bool load_may_repeat(const struct load_request *request, bool is_all_sent)
{
	switch (request->kind) {
	case LOAD_SELECT:
	case LOAD_GET:
	case LOAD_YCSB_READ:
	case LOAD_FILL:
	case LOAD_YCSB_FILL:
	case LOAD_ORDER_STATUS:
	case LOAD_STOCK_LEVEL:
	case LOAD_TPCC_FILL:
	case LOAD_TPCC_CHECK:
	case LOAD_READ_COUNTER:
		return true;
	default:
		return !is_all_sent;
	}
}

#endif
