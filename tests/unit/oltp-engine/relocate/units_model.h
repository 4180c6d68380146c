/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two nodes with the decisions of oltp-engine/relocate/, an executor, disks and a network that a
 * test drives event by event. Values stand for records: each commit adds one to those of its units.
 *
 * The network keeps every message, so that a test may deliver it late, in any order, again, or
 * never. A disk has an image, which is safe, and records on their way to it: a crash leaves any
 * number of the first of them.
 */
#ifndef TESTS_UNITS_MODEL_H
#define TESTS_UNITS_MODEL_H

#include "oltp-engine/relocate/gate.h"
#include "oltp-engine/relocate/units.h"

#define MODEL_UNITS	3u
#define MODEL_TXNS	3u	/* per node, at a time */
#define MODEL_PENDING	12u
#define MODEL_MESSAGES	40u

enum { SOURCE, TARGET, NODES };

/* Rules that an executor may break; each must be found out. */
enum model_mutant {
	MUTANT_NONE,
	MUTANT_LOG_ORDER,	/* says that "taken" is on disk before it is */
	MUTANT_NO_DRAIN,	/* gives while a transaction runs on the unit */
	MUTANT_NO_FLUSH,	/* gives before the redo log is on disk */
	MUTANT_NO_SESSION,	/* passes messages of earlier lives off as new */
	MUTANT_NO_FENCE,	/* takes over without fencing */
	MUTANT_TAKE_BACK,	/* treats a timeout as a refusal */
	MUTANT_SERVE_AT_ONCE,	/* restarts as if it had never shared */
	MUTANT_NO_AGE,		/* breaks G3: gives units to whoever asks */
	MUTANT_RUNS_WAITING,	/* breaks G1: waits with what it has pinned */
	MUTANTS,
};

struct model_record {
	uint8_t what;		/* enum units_do, or MODEL_REDO */
	uint8_t unit;		/* REDO: a bit per unit */
	uint8_t gen;
	uint8_t values[MODEL_UNITS];
};
#define MODEL_REDO	200u

struct model_disk {
	uint8_t gen[MODEL_UNITS];
	uint8_t value[MODEL_UNITS];
	bool is_mine[MODEL_UNITS];
	uint8_t was;		/* enum units_was */
	uint8_t incarnation;
	uint8_t n;
	struct model_record pending[MODEL_PENDING];
};

struct model_txn {
	uint8_t units;		/* a bit each: those that it needs, 0: no transaction */
	uint8_t known;		/* those that it has met so far */
	uint8_t pinned;
	bool is_waiting;
};

struct model_node {
	struct units units;
	struct unit list[MODEL_UNITS];
	struct gate gates[MODEL_UNITS];
	struct model_disk disk;
	struct model_txn txns[MODEL_TXNS];
	uint8_t value[MODEL_UNITS];
	bool is_draining[MODEL_UNITS];
	bool is_up;
	bool is_fenced;
	bool wants_fence;
	bool is_over;
	bool has_failed;	/* its disk has */
};

struct model_message {
	uint8_t to_node;
	uint8_t kind;
	uint8_t unit;
	uint8_t gen;
	uint8_t from, to;
	bool flag;
	uint8_t birth;
	uint8_t value;			/* GIVE: the records beside it */
	uint8_t gens[MODEL_UNITS];	/* HELLO */
	uint8_t holds[MODEL_UNITS];
};

struct model {
	struct model_node nodes[NODES];
	uint8_t n_units;
	uint8_t acked[MODEL_UNITS];	/* the value that a client was told of */
	uint8_t n_messages;
	struct model_message messages[MODEL_MESSAGES];
	/* What a test may still do. */
	uint8_t txns_left, faults_left, closes_left;
	uint8_t mutant;			/* enum model_mutant */
	bool is_uniform;		/* every transaction has all units */
	bool is_target_older;		/* than the source's are its transactions */
	uint32_t failed;		/* transactions that were sent away, or whose node died */
	uint32_t done;
};

/* Of the calling thread: the first thing that went wrong, NULL: nothing. */
extern const char *model_wrong;

/* The source has all units and has just begun to share them; the target is new. */
void model_init(struct model *m, uint32_t n_units, enum model_mutant mutant);

/* Lets everything happen that has to, without faults, until nothing does. */
void model_run(struct model *m);

/* Events. Those that cannot happen now do nothing and return false. */
bool model_tick(struct model *m, uint32_t node);
bool model_begin(struct model *m, uint32_t node, uint8_t units);
bool model_commit(struct model *m, uint32_t node, uint32_t txn);
bool model_drained(struct model *m, uint32_t node, uint32_t unit);
bool model_sync(struct model *m, uint32_t node, bool is_on_disk);
bool model_crash(struct model *m, uint32_t node, uint32_t survive);
bool model_restart(struct model *m, uint32_t node);
bool model_fence(struct model *m, uint32_t by, uint32_t survive);
bool model_close(struct model *m, uint32_t node);
bool model_stay(struct model *m, uint32_t node);
bool model_full(struct model *m, uint32_t node, bool is_full);
bool model_lost(struct model *m, uint32_t node);
void model_deliver(struct model *m, uint32_t at);
void model_receive(struct model *m, const struct model_message *message);
void model_lose(struct model *m, uint32_t at);
/* Loses those that nobody will ever listen to, so that fewer worlds differ. */
void model_prune(struct model *m);
/* MUTANT_TAKE_BACK's own. */
bool model_give_up(struct model *m, uint32_t node, uint32_t unit);

/* For whoever looks for the reason. */
void model_print(const struct model *m);

/*
 * After each call of units.h. Worlds are copied and compared, so the state has no pointer between
 * events, and no times.
 */
void model_leave(struct model *m, uint32_t node);

/* Sets model_wrong if an invariant does not hold. */
void model_check(const struct model *m);

/*
 * U5: all messages are lost now, and no more faults come. Everything must end: transactions that
 * both nodes begin, hand-overs, a node that closes. dead: a node that does not come back, and is
 * fenced; NODES: none. Sets model_wrong if it does not end.
 */
void model_settle(const struct model *m, uint32_t dead);

#endif
