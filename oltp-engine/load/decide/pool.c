// SPDX-License-Identifier: GPL-2.0-or-later
/* See pool.h. */
#include <errno.h>
#include <stdlib.h>

#include "pool.h"

int load_pool_init(struct load_pool *pool, uint32_t n, uint32_t n_nodes,
		   const struct load_pool_bounds *bounds)
{
	*pool = (struct load_pool){
		.n = n,
		.n_down = n,
		.n_nodes = n_nodes,
		.bounds = *bounds,
		.first_idle = -1,
		.last_idle = -1,
	};
	for (uint32_t i = 0; i < LOAD_NODES_MAX; i++)
		pool->moved_to[i] = -1;
	pool->conns = calloc(n, sizeof(*pool->conns));
	return pool->conns ? 0 : -ENOMEM;
}

void load_pool_finish(struct load_pool *pool)
{
	free(pool->conns);
	pool->conns = NULL;
}

static void idle_add(struct load_pool *pool, int32_t conn)
{
	struct load_pool_conn *c = &pool->conns[conn];

	c->before = pool->last_idle;
	c->behind = -1;
	if (pool->last_idle >= 0)
		pool->conns[pool->last_idle].behind = conn;
	else
		pool->first_idle = conn;
	pool->last_idle = conn;
}

static void idle_remove(struct load_pool *pool, int32_t conn)
{
	const struct load_pool_conn *c = &pool->conns[conn];

	if (c->before >= 0)
		pool->conns[c->before].behind = c->behind;
	else
		pool->first_idle = c->behind;
	if (c->behind >= 0)
		pool->conns[c->behind].before = c->before;
	else
		pool->last_idle = c->before;
}

static void set_state(struct load_pool *pool, uint32_t conn, enum load_conn_state state,
		      uint64_t until_ns)
{
	struct load_pool_conn *c = &pool->conns[conn];

	if (c->state == LOAD_CONN_IDLE)
		idle_remove(pool, (int32_t)conn);
	pool->n_down -= c->state == LOAD_CONN_DOWN;
	c->state = state;
	c->until_ns = until_ns;
	pool->n_down += state == LOAD_CONN_DOWN;
	if (state == LOAD_CONN_IDLE)
		idle_add(pool, (int32_t)conn);
}

int32_t load_pool_next(struct load_pool *pool, uint64_t now_ns)
{
	for (uint32_t i = 0; pool->n_down && i < pool->n; i++) {
		const struct load_pool_conn *c = &pool->conns[i];

		if (c->state != LOAD_CONN_DOWN || c->until_ns > now_ns)
			continue;
		set_state(pool, i, LOAD_CONN_OPENING, now_ns + pool->bounds.open_ns);
		return (int32_t)i;
	}
	return -1;
}

uint64_t load_pool_wake(const struct load_pool *pool)
{
	uint64_t wake = UINT64_MAX;

	for (uint32_t i = 0; pool->n_down && i < pool->n; i++) {
		const struct load_pool_conn *c = &pool->conns[i];

		if (c->state == LOAD_CONN_DOWN && c->until_ns < wake)
			wake = c->until_ns;
	}
	return wake;
}

int32_t load_pool_overdue(const struct load_pool *pool, uint64_t now_ns)
{
	for (uint32_t i = 0; i < pool->n; i++) {
		const struct load_pool_conn *c = &pool->conns[i];

		if ((c->state == LOAD_CONN_OPENING || c->state == LOAD_CONN_BUSY) &&
		    c->until_ns <= now_ns)
			return (int32_t)i;
	}
	return -1;
}

int32_t load_pool_take(struct load_pool *pool, uint64_t now_ns)
{
	int32_t conn = pool->first_idle;

	if (conn >= 0)
		set_state(pool, (uint32_t)conn, LOAD_CONN_BUSY, now_ns + pool->bounds.answer_ns);
	return conn;
}

static void move(struct load_pool *pool, uint32_t conn, uint64_t now_ns)
{
	struct load_pool_conn *c = &pool->conns[conn];

	set_state(pool, conn, LOAD_CONN_DOWN, now_ns);
	c->node = (uint32_t)pool->moved_to[c->node];
	c->must_move = false;
	pool->moves++;
}

/* It is no longer a connection of its node: one that had to move less. */
static bool pay(struct load_pool *pool, struct load_pool_conn *c)
{
	if (c->must_move)
		return true;
	if (!pool->owed[c->node])
		return false;
	pool->owed[c->node]--;
	return true;
}

static void become_idle(struct load_pool *pool, uint32_t conn, uint64_t now_ns)
{
	set_state(pool, conn, LOAD_CONN_IDLE, 0);
	if (pay(pool, &pool->conns[conn]))
		move(pool, conn, now_ns);
}

void load_pool_opened(struct load_pool *pool, uint32_t conn, uint64_t now_ns)
{
	struct load_pool_conn *c = &pool->conns[conn];

	c->failures = 0;
	c->opened_ns = now_ns;
	become_idle(pool, conn, now_ns);
}

void load_pool_freed(struct load_pool *pool, uint32_t conn, uint64_t now_ns)
{
	become_idle(pool, conn, now_ns);
}

void load_pool_lost(struct load_pool *pool, uint32_t conn, uint64_t now_ns)
{
	struct load_pool_conn *c = &pool->conns[conn];
	int32_t moved_to = pool->moved_to[c->node];
	bool has_to_wait;

	if (c->state == LOAD_CONN_OPENING) {
		/* A pause after each round of all nodes: there may be one that lets it in. */
		c->failures++;
		has_to_wait = c->failures % pool->n_nodes == 0;
	} else {
		/* A server that greets and then closes would be asked without end. */
		has_to_wait = now_ns - c->opened_ns < LOAD_POOL_PAUSE_NS;
	}
	pay(pool, c);
	c->must_move = false;
	set_state(pool, conn, LOAD_CONN_DOWN, now_ns + (has_to_wait ? LOAD_POOL_PAUSE_NS : 0));
	/* A node that could not be reached may itself have sent connections on: not in circles. */
	if (moved_to >= 0 && !c->failures)
		c->node = (uint32_t)moved_to;
	else
		c->node = (c->node + 1) % pool->n_nodes;
}

bool load_pool_relocate(struct load_pool *pool, uint32_t conn, uint32_t to, uint32_t count,
			uint64_t now_ns)
{
	uint32_t from = pool->conns[conn].node, most = 0;
	int32_t at, next;

	if (from == to)
		return false;
	pool->moved_to[from] = (int32_t)to;
	/* The push of `to` no longer counts, or connections would go back and forth. */
	pool->moved_to[to] = -1;
	pool->owed[to] = 0;
	for (uint32_t i = 0; i < pool->n; i++) {
		struct load_pool_conn *c = &pool->conns[i];

		if (c->node == to)
			c->must_move = false;
		most += c->node == from && c->state != LOAD_CONN_DOWN && !c->must_move;
	}
	if (count == LOAD_POOL_ALL || count > most - pool->owed[from])
		pool->owed[from] = most;
	else
		pool->owed[from] += count;
	if (pool->conns[conn].state == LOAD_CONN_IDLE && pay(pool, &pool->conns[conn])) {
		move(pool, conn, now_ns);
	} else if (pool->conns[conn].state == LOAD_CONN_BUSY && !pool->conns[conn].must_move &&
		   pay(pool, &pool->conns[conn])) {
		pool->conns[conn].must_move = true;
	}
	for (at = pool->first_idle; at >= 0 && pool->owed[from]; at = next) {
		next = pool->conns[at].behind;
		if (pool->conns[at].node == from && pay(pool, &pool->conns[at]))
			move(pool, (uint32_t)at, now_ns);
	}
	return true;
}

uint32_t load_pool_connected(const struct load_pool *pool, uint32_t node)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < pool->n; i++) {
		const struct load_pool_conn *c = &pool->conns[i];

		n += c->node == node &&
		     (c->state == LOAD_CONN_IDLE || c->state == LOAD_CONN_BUSY);
	}
	return n;
}
