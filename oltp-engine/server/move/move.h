/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * move.h - moves a keyspace to another node unit by unit while both serve: carries out the
 * decisions of relocate/units.h between two nodes that have a stream socket ("Downtime-Free Live
 * Migration", 2.2 and 3). docs/relocation.md has the protocol.
 *
 *   move_create -> kv_open (gate: move_gate_ops, with the move as gate_ctx) -> move_open
 *     -> [oltp_recover] -> kv_start -> [move_read_begun, move_name] -> move_start
 *     move_connect	(whenever there is a connection to the peer, any number of times)
 *     move_name, move_share	(the source: from now on the peer may have units)
 *     [move_copy]		(the source: copies records ahead)
 *     move_leave		(gives all units: the source to finish, the target to go back)
 *     move_stay		(no more: the source takes move_leave back, to cancel)
 *   move_destroy		(after the last session and before kv_close)
 *
 * One thread, with a worker of its own, decides, sends, receives, puts and removes. Threads that
 * run commands meet gates only.
 *
 * Records of a unit that come are put behind its closed gate, but are not the node's until TAKEN is
 * on disk. Those of a unit that has gone are kept there, so that it can come back without them;
 * they are not the node's either. A start removes those of units that it does not have.
 */
#ifndef OLTP_MOVE_H
#define OLTP_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/relocate/drain.h"
#include "oltp-engine/relocate/precopy.h"
#include "oltp-engine/relocate/units.h"
#include "oltp-engine/server/kv/kv.h"
#include "oltp.h"

struct move;

enum move_fence {
	MOVE_FENCE_LATER = 0,	/* not known; asked again */
	MOVE_FENCE_WON,		/* no write of the peer reaches its log any more */
	MOVE_FENCE_LOST,	/* this node is the one that is fenced */
	MOVE_FENCE_NONE,	/* of is_fenced only: neither is */
};

/*
 * By the move's thread, which serves the peer's connection and units on their way: fence and
 * is_fenced shall answer within a few seconds (fence_remote_ops: 3.5 at most), LATER if need be.
 */
struct move_fence_ops {
	/*
	 * Which node is fenced, asked at the start until it is known: there is no message before.
	 * Changes nothing. WON and LOST also if it was decided in an earlier life of this node.
	 */
	enum move_fence (*is_fenced)(void *ctx);
	/*
	 * Fences the peer at what both write to. What peer_config opens shall be there for good,
	 * also if power is lost. LATER: called again after fence_ns.
	 */
	enum move_fence (*fence)(void *ctx);
	/*
	 * After WON: how to open what the peer has on disk, best with volume_read_only. The move
	 * opens an engine of its own on it, and closes it. Must stay until the next call. NULL: not
	 * now. Called again after fence_ns if there was none, or if it could not be read.
	 */
	const struct oltp_config *(*peer_config)(void *ctx);
};

/* As in struct units_config; 0: a default. */
struct move_config {
	uint32_t unit_bits;	/* 2^unit_bits units; that of the keyspace, and of the peer */
	uint64_t relocation;	/* the peer's is the same; 0: move_name tells it */
	/* A database without keys that is to get some, unless it has facts on disk already. */
	bool is_target;
	uint32_t push_max;	/* 4 */
	uint64_t hold_ns;	/* 1 ms */
	uint64_t repeat_ns;	/* 200 ms */
	uint64_t fence_ns;	/* 10 s */
	/*
	 * A peer that has sent no TIMES for so long counts as lost, and so does this node if its
	 * log was not written to for so long; both sides have to be told times once per second
	 * (move_tell_times). 0: only a connection that ends tells.
	 */
	uint64_t silence_ns;
	/*
	 * Where this node can read the volume of the peer, whose cold records then need not be
	 * sent; NULL: nowhere. Must outlive the move.
	 */
	const char *peer_volume;
	const struct move_fence_ops *fence;	/* NULL: a lost peer is waited for */
	void *fence_ctx;
};

/* Errors: -EINVAL (unit_bits), -ENOMEM, those of eventfd. */
int move_create(const struct move_config *config, struct move **ret_move);

extern const struct kv_gate_ops move_gate_ops;

/* Makes a table, after those of the keyspace. Errors: those of oltp_table_create. */
int move_open(struct move *move, struct oltp_engine *engine);

/* What an earlier process has left of a move, and so may have agreed on with the peer. */
struct move_begun {
	bool has_begun;		/* else all others are 0 */
	enum units_was was;
	uint64_t relocation;	/* the number of the last relocation; 0: there was none */
	bool is_source;		/* in that relocation */
};

/* After kv_start. Errors: as move_start. */
int move_read_begun(struct move *move, struct move_begun *ret_begun);

/*
 * The relocation's number, not 0. Before move_start, where the one on disk counts more, unless this
 * is a target that has not had a unit; afterwards before move_share, for a relocation that begins:
 * it is on disk with the first fact of that. Or of a target that has not had a unit, nor heard of
 * its source: then it is on disk once stats say so. Any thread.
 */
void move_name(struct move *move, uint64_t relocation);

/*
 * Reads what this node has, removes the rest, and starts the thread. Errors: -EUCLEAN (the facts on
 * disk are not of this program, or of another unit_bits), -ENOMEM, -ENOSPC (no worker), -EIO,
 * -EAGAIN (no thread). After an error it may be called again.
 */
int move_start(struct move *move, struct kv *kv);

/*
 * Takes over a connected stream socket, instead of one that is there. refers: the peer can read
 * this node's volume (its peer_volume), so values in it go as references. Any thread.
 */
void move_connect(struct move *move, int fd, bool refers);

/*
 * See units_share (this node is the source then), units_close and units_stay, which ends copying
 * ahead, too. Any thread; nothing happens in other modes. at_once: not push_max units at a time but
 * all, whose writers wait until all are at the peer.
 */
void move_share(struct move *move);
void move_leave(struct move *move, bool at_once);
void move_stay(struct move *move);

/*
 * Copies records ahead while this node owns their units (relocate/precopy.h), from when both nodes
 * share the database on; units that are given then come with what has changed since only. A
 * connection that is lost takes all copies with it: it begins anew with the next one, and so it
 * does if this is called again. Any thread.
 */
void move_copy(struct move *move, const struct precopy_config *config);

/*
 * Response times of the last second: of the target for the source's drain.h, and from either node
 * a sign of life. Sent once something is durable that was not yet, so they also say that the disk
 * answers; a log that has failed stops the move. Not sent if there is no connection. Any thread.
 */
void move_tell_times(struct move *move, const struct drain_times *times);

/*
 * Fences the peer now, as somebody else has decided: also one that is not lost, and also if this
 * node has no unit, which fences nobody by itself. Any thread; nothing happens without fence ops,
 * or if the mode is not SHARED.
 */
void move_take_over(struct move *move);

/* Of move_copy. */
struct move_copy_stats {
	bool is_copying;	/* was told to; also while it waits for a connection */
	bool has_stopped;	/* the copies are at the peer, and this connection still is */
	bool is_at_once;	/* once it has stopped: see struct precopy */
	enum precopy_reason reason;
	uint32_t rounds;	/* begun */
	uint64_t pages, bytes;	/* sent ahead; records and their frames */
	uint64_t stale_pages;	/* sent with their units, as they were not at the peer */
};

struct move_stats {
	struct move_copy_stats copy;
	uint64_t leave_ns;	/* from move_leave until all units were at the peer; 0: not yet */
	enum units_mode mode;
	uint32_t n_units, owned;
	uint32_t in_state[UNIT_GIVING + 1];	/* units, by enum unit_state */
	struct drain_times peer_times;	/* the last that came */
	uint64_t peer_times_ns;	/* when, CLOCK_MONOTONIC; 0: never */
	bool is_connected;
	uint64_t relocation;	/* its number */
	bool is_closing;	/* gives all units, and takes none */
	bool is_over;		/* all is given, and the peer knows */
	bool is_peer_fenced;	/* its units are being read, or that is tried again */
	enum move_fence fence;	/* the last answer of fence ops; LATER before the first */
	int error;		/* -errno of why it stopped or a connection was closed; 0: none */
	struct units_stats units;
	uint64_t recovered;	/* units that were read from what a fenced peer has on disk */
	uint64_t records_sent, records_received;
	uint64_t bytes_sent, bytes_received;	/* of records */
	/* Of these records: that went without their values, whose values were read at the peer's
	 * volume; units refused because one could not be read. */
	uint64_t references_sent, references_read, units_unread;
	/* Over the connections to the peer, frames included, without the greeting. */
	uint64_t link_sent_bytes, link_received_bytes;
	uint64_t backlog_max;	/* most bytes that waited for the socket at a time */
	uint32_t cold_units_max;	/* most units given that waited for the disk at a time */
};

/*
 * What a command waits for when it meets a unit of the other node. First at the node that takes the
 * unit, then, while that is in MOVE_ASKED, at the one that gives it.
 */
enum move_phase {
	MOVE_NOTICED = 0,	/* from when a command met the closed gate until ASK is sent */
	MOVE_ASKED,		/* until GIVE comes */
	MOVE_TAKEN,		/* until it is on disk that the unit is here; the gate opens */
	MOVE_HELD,		/* from ASK until the gate closes */
	MOVE_PINNED,		/* until the commands have ended that ran on the unit */
	MOVE_FORCED,		/* until what they did is on disk */
	MOVE_SENT,		/* until all records and GIVE are on their way */
	MOVE_ANSWERED,		/* until GOT comes */
	MOVE_PHASES,
};

struct move_times {
	uint64_t n;
	double p50_ns, p99_ns;	/* within 1/32 */
};

/* Of all units since the start, by phase. Any thread. */
void move_times_read(struct move *move, struct move_times ret_times[MOVE_PHASES]);

/* Any thread. */
void move_stats_read(struct move *move, struct move_stats *ret_stats);

/*
 * Stops the thread as a crash would: nothing is given. Waits while a fence op runs, or oltp_recover
 * of a peer that was fenced. Accepts NULL.
 */
void move_destroy(struct move *move);

#endif
