/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests as commands of RESP, and whether the answers are right. Pure but for memory.
 *
 * Row ID is the string "row:ID", whose value begins with that name and a bar, so that a value of
 * another row is noticed. Counter K is "counter:K". Record ID of YCSB is the hash "user:ID" with
 * the fields field0 to field9, whose values begin like those of rows.
 */
#ifndef LOAD_COMMANDS_H
#define LOAD_COMMANDS_H

#include "oltp-engine/load/decide/request.h"
#include "oltp-engine/load/decide/tpcc_check.h"
#include "oltp-engine/load/wire/bytes.h"

#define LOAD_VALUE_MIN	32u
#define LOAD_VALUE_MAX	16384u

enum load_verdict {
	LOAD_GOOD,
	LOAD_REFUSED,	/* an error, or a transaction that was not executed */
	LOAD_WRONG,	/* no value, that of another row, or a reply of another kind */
};

#define LOAD_CLIENT_NAME	"oltp-load"
/* Servers do not count those, nor send them away: docs/relocation-client.md. */
#define LOAD_OBSERVER_NAME	"ebb-observer"

/*
 * The first request of a new connection; it gets one reply. version 3: HELLO with the name of the
 * connection, with AUTH if password is not NULL; 2: AUTH, or PING. Errors: -ENOMEM.
 */
int load_write_greeting(struct wire_bytes *out, uint32_t version, const char *password,
			const char *name);

/* INFO, which an observer sends once per second; it has one reply. Errors: -ENOMEM. */
int load_write_info(struct wire_bytes *out);

/* The rows and tables that requests read and write. */
struct load_shape {
	uint32_t value_bytes;		/* of rows: LOAD_VALUE_MIN to LOAD_VALUE_MAX */
	const struct load_tpcc *tpcc;
	const uint32_t *next_o;		/* of LOAD_TPCC_CHECK; see tpcc_check.h */
};

/* Errors: -ENOMEM. */
int load_write_request(struct wire_bytes *out, const struct load_request *request,
		       const struct load_shape *shape);

uint32_t load_replies(const struct load_request *request);

struct load_answer {
	/*
	 * The counter's value, of LOAD_COUNT and LOAD_READ_COUNTER. What was done: orders added
	 * (0: rolled back) or delivered, payments.
	 */
	int64_t value;
	int64_t numbers[LOAD_TPCC_ANSWER];	/* of LOAD_TPCC_CHECK */
};

/*
 * The reply number index, from 0, to the request; bytes[0..n) is a whole one. ret_answer: with
 * LOAD_GOOD only.
 */
enum load_verdict load_judge(const struct load_request *request, const struct load_shape *shape,
			     uint32_t index, const char *bytes, size_t n,
			     struct load_answer *ret_answer);

#endif
