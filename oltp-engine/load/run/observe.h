/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looks on at each node, over a connection of its own that is no client of the database: CPU time,
 * records in memory and on disk, traffic between the nodes (INFO). Such a connection stays where it
 * is while the database moves. One thread; never waits.
 */
#ifndef LOAD_OBSERVE_H
#define LOAD_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/load/decide/pool.h"
#include "oltp-engine/load/wire/address.h"

/* Since the server's start, but for the two of records, which are of now. -1: it does not say. */
struct observation {
	double cpu_s;			/* user and system time of its process */
	double resident_bytes, cold_bytes;	/* records in memory, on disk */
	double link_sent_bytes, link_received_bytes;	/* over the link to the other node */
};

struct observe;

/* password: NULL: none; must live as long. NULL: no memory, or no descriptor. */
struct observe *observe_create(const char *password);

/* Accepts NULL. */
void observe_destroy(struct observe *observe);

/* Node number n is this one, if there are n so far. Copied. */
void observe_node(struct observe *observe, uint32_t n, const struct wire_address *address);

/* Asks all nodes; connects to those to which there is no connection. */
void observe_ask(struct observe *observe);

/* Takes what has been answered. */
void observe_turn(struct observe *observe);

/* The answer to the last observe_ask. false: there is none yet. */
bool observe_read(const struct observe *observe, uint32_t node, struct observation *ret);

#endif
