/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two-phase commit with presumed abort, as decisions: what a coordinator and a participant do next,
 * given what they know, what happened and what time it is. Both are functions of state, event and
 * now that fill a list of actions; nothing here sends, writes, locks or reads a clock.
 *
 *	coordinator				participant
 *	PREPARING				IDLE
 *	  | --------- PREPARE (operations) ------>  | executes them under locks
 *	  |					LOGGING   writes: PREPARE record forced
 *	  | <-------- VOTE yes | read | no --------   |   (no: undone at once, nothing kept)
 *	  v					PREPARED  in doubt: asks after a while
 *	DECIDING  COMMIT record forced, unless all votes are "read"
 *	  | --------- COMMIT --------------------->   |
 *	  v					COMMITTING  COMMIT record forced, locks released
 *	COMMITTING  until all have answered	  |
 *	  | <-------- ACK -------------------------   v
 *	DONE  END record, may be forgotten	DONE
 *
 * Whoever is asked about a transaction that it does not know answers ABORT: a coordinator keeps
 * (in memory, and in its log if it has written COMMIT there) every transaction for which that would
 * be wrong. Hence nothing is logged for an abort, and an abort needs no ACK.
 *
 * Invariants, by number (the tests name them):
 *   D1  Atomicity: no two of coordinator and participants end differently, a "read" vote excepted,
 *	 whose participant has nothing to lose.
 *   D2  COMMIT is sent only after all votes were yes or read and, if there was a yes, after the
 *	 record of the decision is on disk.
 *   D3  A participant votes yes only after its writes are on disk, and then neither commits nor
 *	 aborts before it is told to.
 *   D4  A coordinator forgets a commit only when every participant that voted yes has it on disk.
 *   D5  Every wait has an end: when a vote does not come the coordinator aborts; a participant that
 *	 hears nothing asks until it is answered, a coordinator repeats COMMIT until it is
 *	 confirmed. So when both run and messages get through, no lock is held for ever.
 */
#ifndef DIST_TWOPHASE_H
#define DIST_TWOPHASE_H

#include <stdbool.h>
#include <stdint.h>

#define DIST_PEERS_MAX		8u	/* participants of one transaction, the coordinator's own
					 * engine not counted */

enum dist_vote {
	DIST_VOTE_NO = 0,
	DIST_VOTE_YES = 1,
	DIST_VOTE_READ = 2,	/* nothing was written: either outcome will do */
};

enum dist_do {
	/* coordinator; each to the participant named */
	DIST_SEND_PREPARE,
	DIST_SEND_COMMIT,
	DIST_SEND_ABORT,
	DIST_SEND_PENDING,	/* answer to a question: not decided, ask again */
	/* participant, to the coordinator */
	DIST_SEND_VOTE,		/* the vote is in the machine */
	DIST_SEND_ACK,
	DIST_SEND_QUERY,
	/* The log. FORCE ones are reported by ..._logged once they are on disk. */
	DIST_LOG_PREPARE,	/* force; with the writes */
	DIST_LOG_COMMIT,	/* force; the coordinator's with the writes of its own engine */
	DIST_LOG_ABORT,		/* need not be forced */
	DIST_LOG_END,		/* need not be forced */
	/* The engine's transaction of this side. */
	DIST_ENGINE_EXECUTE,	/* then call dist_part_executed */
	DIST_ENGINE_COMMIT,
	DIST_ENGINE_ABORT,
};

struct dist_action {
	uint8_t what;		/* enum dist_do */
	uint8_t peer;		/* coordinator's SEND_ only */
};

#define DIST_ACTIONS_MAX	(2 * DIST_PEERS_MAX + 4)

/* To be carried out in order. */
struct dist_actions {
	uint32_t n;
	struct dist_action list[DIST_ACTIONS_MAX];
};

/* In ns; all above 0. */
struct dist_times {
	uint64_t vote_ns;	/* coordinator: longest wait for votes */
	uint64_t ask_ns;	/* participant: between two questions while in doubt */
	uint64_t repeat_ns;	/* coordinator: between two COMMITs that are not confirmed */
};

enum dist_coord_state {
	DIST_COORD_PREPARING,
	DIST_COORD_DECIDING,
	DIST_COORD_COMMITTING,
	DIST_COORD_UNKNOWN,	/* the log failed: only a restart can tell what is in it */
	DIST_COORD_COMMITTED,	/* done */
	DIST_COORD_ABORTED,	/* done */
};

struct dist_coord {
	uint8_t state;		/* enum dist_coord_state */
	uint8_t n_peers;
	uint8_t voted;		/* a bit per participant: yes or read */
	uint8_t writers;	/* those among them that voted yes */
	uint8_t acked;
	uint64_t deadline_ns;	/* call dist_coord_tick then; UINT64_MAX: no need */
};

/* The local operations have been executed. n_peers: 1 to DIST_PEERS_MAX. */
void dist_coord_start(struct dist_coord *coord, uint32_t n_peers, const struct dist_times *times,
		      uint64_t now_ns, struct dist_actions *ret);

/* After a restart: COMMIT is in the log, END is not. */
void dist_coord_restart(struct dist_coord *coord, uint32_t n_peers, uint64_t now_ns,
			struct dist_actions *ret);

void dist_coord_vote(struct dist_coord *coord, uint32_t peer, enum dist_vote vote,
		     struct dist_actions *ret);
/* The connection to a participant has broken: a vote that is missing will not come. */
void dist_coord_lost(struct dist_coord *coord, uint32_t peer, struct dist_actions *ret);
void dist_coord_logged(struct dist_coord *coord, bool is_on_disk, const struct dist_times *times,
		       uint64_t now_ns, struct dist_actions *ret);
void dist_coord_ack(struct dist_coord *coord, uint32_t peer, struct dist_actions *ret);
/* A participant asks. */
void dist_coord_query(const struct dist_coord *coord, uint32_t peer, struct dist_actions *ret);
void dist_coord_tick(struct dist_coord *coord, const struct dist_times *times, uint64_t now_ns,
		     struct dist_actions *ret);

/* Nobody needs to remember it any more. */
bool dist_coord_is_done(const struct dist_coord *coord);

enum dist_part_state {
	DIST_PART_IDLE,		/* never heard of it */
	DIST_PART_EXECUTING,
	DIST_PART_LOGGING,
	DIST_PART_PREPARED,	/* in doubt */
	DIST_PART_COMMITTING,
	DIST_PART_COMMITTED,	/* done */
	DIST_PART_ABORTED,	/* done */
	DIST_PART_UNKNOWN,	/* the log failed */
};

struct dist_part {
	uint8_t state;		/* enum dist_part_state */
	uint8_t vote;		/* enum dist_vote */
	uint64_t deadline_ns;	/* call dist_part_tick then; UINT64_MAX: no need */
};

/* Zeroed, a participant is IDLE. */
void dist_part_prepare(struct dist_part *part, struct dist_actions *ret);

/*
 * vote: the result of the operations. NO: the engine's transaction is still to be aborted, which
 * the actions say.
 */
void dist_part_executed(struct dist_part *part, enum dist_vote vote, const struct dist_times *times,
			uint64_t now_ns, struct dist_actions *ret);

/* After a restart: PREPARE is in the log, no outcome is. The writes are made and locked again. */
void dist_part_restart(struct dist_part *part, uint64_t now_ns, struct dist_actions *ret);

void dist_part_logged(struct dist_part *part, bool is_on_disk, const struct dist_times *times,
		      uint64_t now_ns, struct dist_actions *ret);
void dist_part_commit(struct dist_part *part, struct dist_actions *ret);
void dist_part_abort(struct dist_part *part, struct dist_actions *ret);
/* The connection has broken: the decision must be asked for. */
void dist_part_lost(struct dist_part *part, uint64_t now_ns);
void dist_part_tick(struct dist_part *part, const struct dist_times *times, uint64_t now_ns,
		    struct dist_actions *ret);

/* The engine's transaction has ended, and nothing is left to be sent. */
bool dist_part_is_done(const struct dist_part *part);

#endif
