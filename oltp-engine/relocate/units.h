/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of two nodes owns which unit of a database while it is handed over ("Downtime-Free Live
 * Migration", 2.2 and 3: cache fusion, but exclusive), as decisions: functions of state, event and
 * now that fill a list of actions. Nothing here sends, writes, waits or reads a clock. The records
 * travel beside the messages; this says when.
 *
 *	the node that has it (giver)		the node that needs it (taker)
 *	OWNED					AWAY
 *	  | <------------- ASK g ----------------  |  a transaction needs it, aborts and waits
 *	  v					   |
 *	DRAINING  gate closed, running		   |
 *	  |	  transactions end, their redo	   |
 *	  v	  is forced			   |
 *	GIVING	  in doubt			   |
 *	  | -------- records, GIVE p ----------->  v
 *	  |					TAKING  what came is forced to disk with p
 *	  | <------------- GOT p ----------------  v
 *	  v					OWNED  gate open, who waits runs
 *	AWAY	  "gave p" logged
 *
 * A generation is a number per unit that grows with each hand-over. g is the one by which the
 * giver owns the unit, p one above all that both nodes have seen of it. A taker that will not have
 * the unit answers REFUSE p, and takes p no more; the giver owns it by g as before. GIVE may come
 * without ASK: a node that closes gives all it has, the source to finish and the target to go back.
 *
 * Both nodes have the same code, and each takes and gives; a unit is asked back like any other.
 *
 * Restarts. A node that starts counts up its incarnation on disk. Messages name the incarnations of
 * both ends, and all but HELLO are dropped unless they are the current ones and the tables of units
 * have been exchanged. So nothing sent to or from an earlier life counts. HELLO brings what its
 * sender has of each unit; a node that restarted serves none before it came:
 *
 *	mine, by my log	  the peer's entry		then the unit is
 *	generation g	  has it by p > g		AWAY: "gave" was lost
 *	generation g	  is taking it by p > g		GIVING p: it may or may not get it on disk
 *	generation g	  otherwise			OWNED
 *	none		  has it			AWAY
 *
 * A peer that restarted has lost what it was about to take, and will never take it: units in GIVING
 * that its entry does not have are OWNED again.
 *
 * Without the peer. One that stays lost is fenced at the volume server: the first one wins, the
 * other can write nothing more and stops. Then the winner reads the loser's log from the shared
 * volume, and the same table of generations decides whose records count. One forced record says
 * that all units are here. Giving everything ends like that, too: BYE, the same record, BYE_GOT.
 *
 * Invariants, by number (the tests name them):
 *   U1	No two nodes that can still write to the volume have a unit's gate open or pinned.
 *   U2	Whoever reads both logs, at any moment, finds all that was acknowledged of a unit at the
 *	node that has it by the higher generation.
 *   U3	"Taken by p" is on disk at the taker before GOT p is sent, so before the giver logs
 *	"gave p". GIVE is sent only after what ran on the unit is on disk.
 *   U4	A generation is taken at most once, and never one that was refused.
 *   U5	Every wait has an end: ASK, GIVE, HELLO and BYE are repeated until they are answered. A gate
 *	is closed for as long as transactions that run take (gate.h: none of them waits), and a node
 *	keeps a unit until those have run that are older than who asks for it, and for hold_ns.
 */
#ifndef RELOCATE_UNITS_H
#define RELOCATE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define UNITS_MAX	4096u

enum units_do {
	/* Messages to the peer: units_message gives their fields. */
	UNITS_SEND_HELLO,	/* with units_entry of every unit, as it is now */
	UNITS_SEND_ASK,
	UNITS_SEND_GIVE,	/* after the resident records of the unit, which stay until DROP */
	UNITS_SEND_GOT,
	UNITS_SEND_REFUSE,	/* records that came beside it are thrown away */
	UNITS_SEND_BYE,
	UNITS_SEND_BYE_GOT,
	/* Facts for the log. All but GAVE are forced, and then reported by units_logged. */
	UNITS_LOG_TAKEN,	/* unit, gen; with the records that came, which are put in place */
	UNITS_LOG_GAVE,		/* unit, gen: need not be forced */
	UNITS_LOG_SHARED,	/* from now on the peer may have units */
	UNITS_LOG_ALONE,	/* gen: all units are here by it, with what RECOVER read */
	UNITS_LOG_CLOSED,	/* none is here, nor will be */
	/* The unit's gate and records. */
	UNITS_OPEN,		/* open the gate, let those in that wait (G3); ends a DRAIN */
	UNITS_DRAIN,		/* close the gate; when no pin is left and the redo log is on disk
				 * up to all that was committed on it: units_drained */
	UNITS_FAIL,		/* who waits for it shall go to the other node */
	UNITS_DROP,		/* the peer has it: its records are not this node's any more */
	UNITS_RECOVER,		/* its records are those on the volume and in the peer's log */
	/* The node. */
	UNITS_FENCE,		/* fence the peer, then units_peer_fenced or units_stop; or neither,
				 * and it comes again */
	UNITS_STOP,		/* fenced, or the log failed: close all gates, answer no more; only
				 * a restart can tell what is on disk */
	UNITS_OVER,		/* all is given and the peer knows: this node may end */
};

struct units_action {
	uint64_t gen;
	uint32_t unit;
	uint8_t what;		/* enum units_do */
};

/* Enough for any event. */
#define UNITS_ACTIONS_MAX(n_units)	(4u * (n_units) + 8u)

/* To be carried out in order, before the next event is reported. */
struct units_actions {
	uint32_t n;
	uint32_t room;		/* set by the caller: UNITS_ACTIONS_MAX of the units */
	struct units_action *list;
};

enum units_kind {
	UNITS_HELLO = 1,
	UNITS_ASK = 2,
	UNITS_GIVE = 3,
	UNITS_GOT = 4,
	UNITS_REFUSE = 5,
	UNITS_BYE = 6,
	UNITS_BYE_GOT = 7,
};

struct units_message {
	uint64_t from, to;	/* incarnations; HELLO: to is 0 while unknown */
	uint64_t gen;		/* ASK: of the owner; GIVE, GOT, REFUSE: the new one; else 0 */
	uint32_t unit;		/* ASK, GIVE, GOT, REFUSE; else 0 */
	uint8_t kind;		/* enum units_kind */
	bool flag;		/* HELLO: the sender has the receiver's table.
				 * GIVE: the sender closes. Else false. */
	uint64_t birth;		/* ASK: of the oldest that waits for it (gate.h, G3); else 0 */
};

enum units_holds {
	UNITS_NOT = 0,
	UNITS_MINE = 1,
	UNITS_TAKES = 2,	/* is getting it on disk */
};

/* What a node has of a unit. */
struct units_entry {
	uint64_t gen;		/* NOT: the highest that it has seen */
	uint8_t holds;		/* enum units_holds */
};

/* Times in ns, above 0 but for hold_ns. */
struct units_config {
	uint32_t n_units;	/* 1 to UNITS_MAX; the same on both nodes */
	uint32_t push_max;	/* units given at a time by a node that closes; above 0 */
	bool is_target;		/* when both close, the source's wish counts */
	uint64_t hold_ns;	/* a unit that came stays for this long */
	uint64_t repeat_ns;	/* between two messages that are not answered; after a refusal */
	uint64_t fence_ns;	/* a peer that is lost for so long is fenced */
};

enum unit_state {
	UNIT_UNKNOWN = 0,	/* restarted, the peer's table has not come */
	UNIT_AWAY,		/* the peer has it by gen */
	UNIT_TAKING,		/* gen is being forced */
	UNIT_OWNED,		/* by gen; the only state with an open gate */
	UNIT_DRAINING,		/* owned by gen */
	UNIT_GIVING,		/* owned by gen, unless the peer has taken `offer` */
};

struct unit {
	uint64_t gen;
	uint64_t offer;		/* the highest that was offered or refused here or there */
	uint64_t ready_ns;	/* OWNED: not given before */
	uint64_t due_ns;	/* call units_tick then; UINT64_MAX: no need */
	/* Births of the oldest that need it: see units_here; of the peer's ASK; of the last ASK. */
	uint64_t here, asked_for, said;
	uint8_t state;		/* enum unit_state */
	bool is_mine;		/* UNKNOWN: by this node's log */
	bool is_wanted;		/* transactions wait for it here */
	bool is_asked;		/* the peer has asked for it */
	bool has_left;		/* was given by this node before */
};

enum units_mode {
	UNITS_ALONE = 0,	/* all units are here */
	UNITS_SHARING,		/* SHARED is being forced */
	UNITS_SHARED,
	UNITS_SETTLING,		/* ALONE is being forced */
	UNITS_LEAVING,		/* CLOSED is being forced */
	UNITS_CLOSED,		/* says BYE until it is answered */
	UNITS_ENDED,		/* BYE was answered */
	UNITS_STOPPED,
};

/* Counts since the start of this incarnation. */
struct units_stats {
	uint64_t given;		/* GOT came, or it was clear without */
	uint64_t taken;
	uint64_t taken_back;	/* of those taken: had been given by this node (ping-pong) */
	uint64_t refused;	/* the peer did not take them */
};

struct units {
	const struct units_config *config;
	struct unit *list;	/* n_units, the caller's memory */
	uint32_t in_state[UNIT_GIVING + 1];	/* units of the list */
	uint64_t due_ns;	/* no unit is due before */
	uint64_t incarnation;
	uint64_t peer;		/* its incarnation, 0: none known */
	uint64_t top;		/* SETTLING: the generation of ALONE */
	uint64_t greet_ns;	/* next HELLO or, synced, BYE; UINT64_MAX: none */
	uint64_t fence_ns;	/* UINT64_MAX: the peer is not lost */
	uint8_t mode;		/* enum units_mode */
	bool is_synced;		/* the peer's table has come, of this incarnation of both */
	bool is_closing;
	bool is_full;
	struct units_stats stats;
};

/* What the log says at the start of a node. A new target is SHARED, and has no unit. */
enum units_was {
	UNITS_WAS_ALONE,
	UNITS_WAS_SHARED,
	UNITS_WAS_CLOSED,
};

/*
 * Starts a node. list: gen and is_mine of each unit by the log, all else 0; ALONE: all are mine.
 * incarnation: above all earlier ones, and on disk.
 */
void units_start(struct units *units, const struct units_config *config, struct unit *list,
		 enum units_was was, uint64_t incarnation, uint64_t now_ns,
		 struct units_actions *ret);

/* Begins a relocation with a new peer: ALONE only, else nothing happens. All goes on meanwhile. */
void units_share(struct units *units, struct units_actions *ret);

/*
 * Gives all units of this node to the peer, and takes none any more; no effect unless the mode is
 * SHARED. So a source finishes, and a target goes back. A restart forgets it, so the caller calls
 * it again.
 */
void units_close(struct units *units, uint64_t now_ns, struct units_actions *ret);

/*
 * Takes units_close back, of this node's only: units that are on their way to the peer get there,
 * no others. Nothing happens unless the mode is SHARED: a node that has given all is not stopped.
 */
void units_stay(struct units *units, struct units_actions *ret);

/* There is no room for more units: those that come are refused, and none is asked for. */
void units_full(struct units *units, bool is_full, uint64_t now_ns, struct units_actions *ret);

/*
 * The records that came for this generation of the unit cannot be used: a GIVE with gen will be
 * refused, and the giver asked again. Nothing happens unless the unit is AWAY.
 */
void units_spoil(struct units *units, uint32_t unit, uint64_t gen);

enum units_answer {
	UNITS_GO,		/* its gate is open */
	UNITS_WAIT,		/* OPEN or FAIL will follow */
	UNITS_GONE,		/* this node will not have it again */
};

/*
 * The birth of the oldest transaction that waits here and needs the unit; 0: nobody does, and it is
 * not asked for any more. To be said before units_want, before a message about the unit is
 * received and before units_tick, as far as it has changed; and when it changes while the peer
 * asks for the unit, which may go then. Without this call the unit goes to a peer that asks.
 */
void units_here(struct units *units, uint32_t unit, uint64_t birth, uint64_t now_ns,
		struct units_actions *ret);

/* A transaction met the unit's closed gate. */
enum units_answer units_want(struct units *units, uint32_t unit, uint64_t now_ns,
			     struct units_actions *ret);

/* What DRAIN waits for is there. */
void units_drained(struct units *units, uint32_t unit, uint64_t now_ns, struct units_actions *ret);

/*
 * A LOG_ action is on disk. what, unit, gen: those of the action. !is_on_disk: it may be there or
 * not, and the node stops.
 */
void units_logged(struct units *units, enum units_do what, uint32_t unit, uint64_t gen,
		  bool is_on_disk, uint64_t now_ns, struct units_actions *ret);

/*
 * A message came, in whatever order and however often. table: of HELLO, n_units entries. A peer
 * that sends what no peer should is as bad as a log that fails: the node stops.
 */
void units_receive(struct units *units, const struct units_message *message,
		   const struct units_entry *table, uint64_t now_ns, struct units_actions *ret);

/* The peer cannot be reached; any message from it takes that back. */
void units_peer_lost(struct units *units, uint64_t now_ns);

/*
 * The peer is fenced: no write of it will reach the volume, nor any answer that it gives count.
 * table: what its log says, read after that. May be reported without FENCE, when somebody else
 * decided, and must be after each start, before any message, if the volume server has the peer
 * fenced. Nothing happens unless the mode is SHARED.
 */
void units_peer_fenced(struct units *units, const struct units_entry *table,
		       struct units_actions *ret);

/*
 * Whether units_peer_fenced with this entry of the unit will RECOVER it. Changes nothing: so the
 * executor of RECOVER can read the peer's log first, and try again if that fails.
 */
bool units_is_theirs(const struct units *units, uint32_t unit, const struct units_entry *theirs);

/* This node was fenced, or cannot go on. */
void units_stop(struct units *units, struct units_actions *ret);

void units_tick(struct units *units, uint64_t now_ns, struct units_actions *ret);

/* Before that units_tick has nothing to do. */
uint64_t units_next_ns(const struct units *units);

/* The message of a SEND_ action, as it is sent now. */
struct units_message units_message(const struct units *units, const struct units_action *action);

/* What HELLO says of a unit. */
struct units_entry units_entry(const struct units *units, uint32_t unit);

#endif
