/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections of the pool: which serves the next request, which moves to another node and when,
 * which address a lost one tries ("Downtime-Free Live Migration", 3.2). Only decisions: the caller
 * owns the sockets, tells the pool what happened to them, and opens what load_pool_next says.
 * Pure but for the memory.
 *
 *	DOWN     no socket, or one to be closed first; opened at until_ns   -> OPENING (pool_next)
 *	OPENING  until the greeting was answered                -> IDLE (opened), DOWN (lost)
 *	IDLE     between transactions                -> BUSY (take), DOWN (lost, relocated)
 *	BUSY     a request is under way             -> IDLE (freed), DOWN (lost; freed, to move)
 *
 * A connection moves only while it is IDLE, so no request is ever under way on one that moves.
 */
#ifndef LOAD_POOL_H
#define LOAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

/* Addresses that a pool can know: those given and those it was told of. */
#define LOAD_NODES_MAX		16u

/* A connection that could not be opened anywhere, or was lost at once, waits so long. */
#define LOAD_POOL_PAUSE_NS	100000000ull

/* As count of load_pool_relocate. */
#define LOAD_POOL_ALL		0u

enum load_conn_state {
	LOAD_CONN_DOWN,
	LOAD_CONN_OPENING,
	LOAD_CONN_IDLE,
	LOAD_CONN_BUSY,
};

struct load_pool_conn {
	enum load_conn_state state;
	uint32_t node;		/* where it is connected, or will be opened */
	uint32_t failures;	/* to open, since it last was open */
	bool must_move;		/* BUSY: told by name to move once it is idle */
	uint64_t until_ns;	/* DOWN: not opened before; OPENING, BUSY: overdue then */
	uint64_t opened_ns;
	int32_t before, behind;	/* neighbours in the list of IDLE ones, -1: none */
};

struct load_pool_bounds {
	uint64_t open_ns;	/* to connect and be greeted */
	uint64_t answer_ns;	/* from sending a request to the end of its answer */
};

struct load_pool {
	struct load_pool_conn *conns;
	uint32_t n;
	uint32_t n_down;
	uint32_t n_nodes;
	struct load_pool_bounds bounds;
	int32_t first_idle, last_idle;	/* idle longest, shortest */
	uint32_t owed[LOAD_NODES_MAX];	/* connections of the node that still have to move */
	int32_t moved_to[LOAD_NODES_MAX];	/* where the node sent some; -1: it did not */
	uint64_t moves;			/* connections that moved because a node said so */
};

/* n connections, DOWN, on node 0 of n_nodes. Errors: -ENOMEM. */
int load_pool_init(struct load_pool *pool, uint32_t n, uint32_t n_nodes,
		   const struct load_pool_bounds *bounds);
void load_pool_finish(struct load_pool *pool);

/*
 * The connection to open next; it is OPENING from now on, and is to go to the node of its
 * struct; its old socket, if it has one, has to be closed first. -1: nothing now.
 */
int32_t load_pool_next(struct load_pool *pool, uint64_t now_ns);

/* When load_pool_next may have something; UINT64_MAX: not before something else happens. */
uint64_t load_pool_wake(const struct load_pool *pool);

/* The next OPENING or BUSY connection that is overdue; the caller closes it and says lost. */
int32_t load_pool_overdue(const struct load_pool *pool, uint64_t now_ns);

/* The one that is idle longest, which becomes BUSY. So all get the same share. -1: none. */
int32_t load_pool_take(struct load_pool *pool, uint64_t now_ns);

/* An OPENING connection was greeted. */
void load_pool_opened(struct load_pool *pool, uint32_t conn, uint64_t now_ns);

/* The request of a BUSY one was answered. It becomes IDLE, or DOWN if it has to move. */
void load_pool_freed(struct load_pool *pool, uint32_t conn, uint64_t now_ns);

/*
 * The socket of one that is not DOWN has failed or was closed. It tries the node to which its node
 * has sent connections, else the next one in the order of the list.
 */
void load_pool_lost(struct load_pool *pool, uint32_t conn, uint64_t now_ns);

/*
 * The node of conn said: move count connections to node `to`, this one first. LOAD_POOL_ALL: all.
 * Idle ones move now, others as they become idle. Those beyond the connections of that node are
 * not owed. Returns false, and does nothing, if `to` is that node.
 */
bool load_pool_relocate(struct load_pool *pool, uint32_t conn, uint32_t to, uint32_t count,
			uint64_t now_ns);

/* IDLE and BUSY connections of a node. */
uint32_t load_pool_connected(const struct load_pool *pool, uint32_t node);

#endif
