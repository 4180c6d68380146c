/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gates between transactions and units: a transaction that runs on a unit has it pinned, and a
 * closed gate lets no more in. Plain data; callers that use gates from several threads lock them.
 *
 * Rules that keep two nodes from waiting for each other for ever (wound-wait, with units for locks:
 * "System Level Concurrency Control for Distributed Database Systems", Rosenkrantz and others):
 *   G1	A transaction that runs never waits for a gate. When it meets a closed one it aborts, lets
 *	go of all its pins, remembers the units that it needed so far, and waits as in G2.
 *   G2	A transaction that waits holds no locks of the engine, and no pins. It runs again at a
 *	moment when the gates of all units that it remembers are open, and pins all of them then.
 *   G3	When a transaction first waits it is born: gate_birth. A node gives a unit that the peer
 *	asks for only if no transaction that waits here and remembers the unit is older than the
 *	oldest transaction that waits for it there. ASK says how old that one is.
 *
 * Why this ends: take the oldest of all transactions that wait on both nodes. Its own node gives
 * away none of its units. The peer has no older one, so it gives the units that this one remembers
 * as soon as the transactions that run on them have ended; by G1 and G2 no others have pins. So the
 * oldest runs and ends, or it remembers one more unit, of which there are finitely many. Then the
 * next one is the oldest.
 */
#ifndef RELOCATE_GATE_H
#define RELOCATE_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct gate {
	uint32_t pins;
	bool is_open;
};

void gate_open(struct gate *gate);

/* Returns whether nobody has it pinned. */
bool gate_close(struct gate *gate);

/* Returns false if it is closed. */
bool gate_pin(struct gate *gate);

/* Returns whether it is closed and this was the last pin. */
bool gate_unpin(struct gate *gate);

/*
 * G2: pins all of units[0..n-1], or none. Returns n, or the place of the first whose gate is
 * closed.
 */
uint32_t gates_pin(struct gate *gates, const uint32_t *units, uint32_t n);

/*
 * Of a transaction that begins to wait now, in microseconds of a clock that both nodes have, more
 * or less. No two nodes give the same one; never 0.
 */
uint64_t gate_birth(uint64_t now_us, bool is_target);

/* Of two births; 0: of nobody. */
bool gate_is_older(uint64_t birth, uint64_t other);

#endif
