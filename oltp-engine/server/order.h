/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * order.h - the words by which a relocation is ordered, over RESP (RELOCATE ...) and on the control
 * socket (relocate ...). Pure.
 *
 *	TO node [CLIENTS address] [FAST | FIXED n | ADAPTIVE] [LIMIT-S s] [SPEED percent]
 *	TO node [CLIENTS address] FAILOVER [TIMEOUT-S s] [MAX-MIB n] [MIB-S n]
 *	CANCEL [TO node] [CLIENTS address] [FAST | ...]
 */
#ifndef OLTP_ORDER_H
#define OLTP_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/relocate/drain.h"
#include "oltp-engine/relocate/precopy.h"

#define ORDER_ADDRESS_BYTES	256u	/* 0 included */
#define ORDER_WORDS_MAX		12u

struct relocation_order {
	bool cancels;
	char node[ORDER_ADDRESS_BYTES];	/* the other node's --relocate-listen; "": CANCEL only */
	/* What clients are told: the target's, of CANCEL the source's; "": what that node says. */
	char clients[ORDER_ADDRESS_BYTES];
	bool has_drain;		/* it was said how fast clients go */
	struct drain_config drain;
	/* Records go ahead before clients do: ADAPTIVE, and a failover, whose clients then go all
	 * at once (drain.limit_ns is 0). */
	bool copies;
	bool is_failover;
	struct precopy_config copy;
};

/* words[n] is NULL. Returns NULL; or what is wrong, for a person, and *ret_order is as before. */
const char *order_parse(char *const *words, uint32_t n, struct relocation_order *ret_order);

#endif
