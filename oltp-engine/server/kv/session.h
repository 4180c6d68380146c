/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session.h - what is known of a connection: what it has queued and watches, how it presents
 * itself. Sessions of one kv are in a list for CLIENT LIST.
 */
#ifndef OLTP_KV_SESSION_H
#define OLTP_KV_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/server/kv/kv.h"
#include "oltp-engine/server/resp/parse.h"

#define SESSION_NAME_MAX	128u	/* bytes of a client's name and the like, 0 included */

struct command;

/* One command between MULTI and EXEC; its arguments follow, then their bytes. */
struct queued {
	struct queued *next;
	const struct command *command;
	uint32_t n_args;
	struct resp_arg args[];
};

struct watched {
	uint64_t stamp;		/* of the key when it was watched; 0: it was not there */
	uint32_t removals;	/* before that: see keyspace_removals */
	uint32_t n;
	char name[KV_NAME_MAX];
};

struct kv_session {
	struct kv *kv;
	uint64_t id;
	uint64_t created_ns;
	int fd;
	char address[SESSION_NAME_MAX], own_address[SESSION_NAME_MAX];
	/* In the list, and what CLIENT sets: under the kv's lock of sessions. */
	struct kv_session *next, *prev;
	char name[SESSION_NAME_MAX], lib_name[SESSION_NAME_MAX], lib_version[SESSION_NAME_MAX];
	_Atomic(const struct command *) last;	/* command; NULL: none yet */
	_Atomic uint8_t version;		/* of the protocol */
	_Atomic uint64_t n_commands;		/* run */
	bool is_authenticated;
	bool is_restricted;
	/* MULTI. */
	bool in_multi;
	bool is_dirty;			/* a command was refused: EXEC is to fail */
	struct queued *first, *end;
	uint32_t n_queued, queued_bytes;
	/* WATCH. */
	struct watched *watched;
	uint32_t n_watched, watched_room;
	/* Stamps of writes, taken from meta many at a time. */
	uint64_t next_stamp, stamps_end;
	struct kv_pins pins;		/* of the request that runs, or waits */
	bool pins_all;			/* of all units */
	bool has_met;			/* pins.units are some that the request needs, too */
	uint64_t flush_from;		/* FLUSHALL: the position that was reached */
};

/* Drops what was queued and leaves MULTI; the watched keys stay. */
void session_end_multi(struct kv_session *s);

/* 0, -E2BIG (KV_QUEUE_COMMANDS or KV_QUEUE_BYTES), -ENOMEM; bytes are copied. */
int session_queue(struct kv_session *s, const struct command *command,
		  const struct resp_arg *args, uint32_t n_args);

/* Room for n more watched keys. 0, -E2BIG (KV_WATCHES_MAX), -ENOMEM. */
int session_watch_room(struct kv_session *s, uint32_t n);
void kv_session_unwatch(struct kv_session *s);

/* As a new session, but for its id, its peer and its place in the list. */
void session_reset(struct kv_session *s);

/* One that no other write of this database has or had. */
uint64_t session_stamp(struct kv_session *s);

#endif
