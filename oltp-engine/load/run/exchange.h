/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests over the connections of a pool: queue, connections, answers, and what is counted of
 * them. Carries out what decide/ says. One thread; never waits but in exchange_turn.
 */
#ifndef LOAD_EXCHANGE_H
#define LOAD_EXCHANGE_H

#include "commands.h"
#include "oltp-engine/load/decide/figures.h"
#include "oltp-engine/load/decide/pool.h"
#include "oltp-engine/load/decide/request.h"
#include "oltp-engine/load/wire/address.h"

#define EXCHANGE_ERROR_BYTES	160u

struct exchange_config {
	const struct wire_address *nodes;	/* in the order in which they are tried */
	uint32_t n_nodes;			/* 1 to LOAD_NODES_MAX */
	uint32_t connections;
	uint32_t version;			/* of RESP: 2 or 3 */
	const char *password;			/* NULL: none */
	struct load_shape shape;
	uint32_t queue_room;			/* requests */
	uint64_t wait_ns;			/* longest time in the queue */
	struct load_pool_bounds bounds;
	/* Called from exchange_turn and exchange_add, which may then be called for new requests. */
	void (*on_done)(void *ctx, const struct load_request *request,
			const struct load_answer *answer);
	/* may_be_executed: the server may have done it, or not. */
	void (*on_failed)(void *ctx, const struct load_request *request, enum load_failure why,
			  bool may_be_executed);
	void *ctx;
};

struct exchange_state {
	uint32_t queue;			/* requests that wait */
	uint32_t under_way;
	uint32_t n_nodes;
	uint32_t connected[LOAD_NODES_MAX];
	bool was_refused;		/* a server answered with an error since the start */
	uint64_t moves;			/* since the start: connections that moved when told */
	uint64_t pushes;		/* relocations that servers told of */
	uint64_t bad_pushes;		/* of the wrong form, or with an address of no use */
};

struct exchange;

/* Errors: -errno. */
int exchange_create(const struct exchange_config *config, struct exchange **ret_exchange);
void exchange_destroy(struct exchange *exchange);

/* A request has arrived. */
void exchange_add(struct exchange *exchange, const struct load_request *request);

/*
 * Does what is to be done now, then waits for something to happen, until until_ns of
 * CLOCK_MONOTONIC at most, and deals with that. Errors: -EINTR (a signal), -errno (no memory).
 */
int exchange_turn(struct exchange *exchange, uint64_t until_ns);

/* Requests that wait or are under way. */
uint32_t exchange_pending(const struct exchange *exchange);

void exchange_state(const struct exchange *exchange, struct exchange_state *ret_state);
const struct wire_address *exchange_address(const struct exchange *exchange, uint32_t node);

/* The counts since the last call; counting begins anew. */
void exchange_figures(struct exchange *exchange, struct load_figures *ret_figures);

/* The first error that a server answered with, or why the last try to connect failed; "": none. */
const char *exchange_error(const struct exchange *exchange);

#endif
