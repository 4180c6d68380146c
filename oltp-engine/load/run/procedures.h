/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of the TPC-C-like workload as FCALL, and whether the answers are right: for commands.c.
 * Pure but for memory.
 */
#ifndef LOAD_PROCEDURES_H
#define LOAD_PROCEDURES_H

#include "commands.h"
#include "oltp-engine/load/wire/reply.h"

static inline bool procedures_has(enum load_kind kind)
{
	return (kind >= LOAD_NEW_ORDER && kind <= LOAD_STOCK_LEVEL) || kind == LOAD_TPCC_FILL ||
	       kind == LOAD_TPCC_CHECK;
}

/* Errors: -ENOMEM. */
int procedures_write(struct wire_bytes *out, const struct load_request *request,
		     const struct load_shape *shape);

/* Of a reply that is no error: bytes[0..n), of which item is the first element, ends at *at. */
enum load_verdict procedures_judge(const struct load_request *request,
				   const struct load_shape *shape, const struct reply_item *item,
				   const char *bytes, size_t n, size_t at,
				   struct load_answer *ret_answer);

#endif
