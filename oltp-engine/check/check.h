/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The serializability checker: is there an order of the transactions of a history, one after the
 * other, that explains everything they were told?
 *
 * What one transaction read or wrote because of another one makes edges of a graph (after A. Adya,
 * "Weak Consistency", MIT 1999; lists, whose contents tell the order of their versions, after
 * Kingsbury and Alvaro, "Elle", VLDB 2020):
 *
 *	ww	its write follows the other one's write of the same list or row
 *	wr	it read what the other one wrote
 *	rw	it read what was there before the other one wrote
 *
 * and, as the model demands, one that a process ran before (session), or that had ended before it
 * was invoked (time). A cycle is an anomaly; so is a read that no such graph could explain.
 *
 * What cannot be known from a history is not guessed at: struct check_unknown counts it.
 */
#ifndef OLTP_CHECK_H
#define OLTP_CHECK_H

#include "history.h"

enum check_model {
	CHECK_SERIALIZABLE,		/* any order */
	CHECK_STRONG_SESSION,		/* that keeps the order of each process */
	CHECK_STRICT_SERIALIZABLE,	/* that keeps the order of time, too */
};

enum check_edge {
	CHECK_WW,
	CHECK_WR,
	CHECK_RW,
	CHECK_RW_PREDICATE,	/* a scan missed a row that the other one added */
	CHECK_SESSION,
	CHECK_TIME,
};
#define CHECK_EDGES	6u

enum check_kind {
	/* Cycles. */
	CHECK_G0,		/* ww alone: writes of two transactions alternate */
	CHECK_G1C,		/* ww and wr: circular information flow */
	CHECK_G_SINGLE,		/* one rw: read skew, lost update */
	CHECK_G2_ITEM,		/* more than one rw: write skew */
	CHECK_G2,		/* and one of them of a scan: phantom */
	/* Reads that are wrong by themselves. */
	CHECK_G1A,		/* of what an aborted transaction wrote */
	CHECK_G1B,		/* of what its transaction overwrote, or added to, later */
	CHECK_UNWRITTEN,	/* of what nobody wrote */
	CHECK_INTERNAL,		/* that contradicts what one transaction read or wrote, by itself */
	CHECK_DUPLICATE,	/* of a list that has a value twice */
	CHECK_ORDER,		/* of a list that is no beginning of a longer one */
	/* Two that both changed the same version of a row, or added the same row. */
	CHECK_LOST_UPDATE,
};
#define CHECK_KINDS	12u

/* from has to come before to; what says so: a version of a row or list, and the next one. */
struct check_step {
	uint32_t from, to;	/* transactions of the history */
	enum check_edge edge;
	bool is_list;
	uint64_t key;
	uint64_t value;		/* HISTORY_ABSENT: the row, or any value of the list, is missing */
	uint64_t next_value;	/* ww, rw; HISTORY_ABSENT: deleted */
};

struct check_anomaly {
	enum check_kind kind;
	/* Of a cycle: it needs edges of time (is_timed) or session to be one. */
	bool is_timed, is_in_session;
	size_t first_step;	/* of a cycle */
	uint32_t n_steps;
	/* Of the others. */
	uint32_t txn;		/* who read, or was second */
	uint32_t other;		/* who wrote, or was first; UINT32_MAX: nobody */
	bool is_list;
	uint64_t key, value;	/* value: what was read, or that both changed */
};

/* What the history does not tell, so that nothing was concluded from it. */
struct check_unknown {
	uint64_t writes;	/* of rows, where what they overwrote is not known */
	uint64_t absent_reads;	/* of rows: before it was added, or after it was deleted? */
	uint64_t rows;		/* added more than once, in an order that is not known */
	uint64_t appends;	/* that no read saw, too many to order each after the reads */
	uint64_t outcomes;	/* transactions of unknown outcome, none of whose writes was seen */
};

struct check_result {
	uint64_t n_kind[CHECK_KINDS];	/* anomalies found */
	uint64_t n_anomalies;
	VEC(struct check_anomaly) anomalies;	/* at most check_options.anomalies_max of a kind */
	VEC(struct check_step) steps;
	struct check_unknown unknown;
	uint64_t n_txns[3];	/* by outcome */
	uint64_t n_edges[CHECK_EDGES];
	/* With -EBADMSG: the value that two transactions wrote. */
	bool twice_is_list;
	uint64_t twice_key, twice_value;
};

struct check_options {
	enum check_model model;
	uint32_t anomalies_max;	/* to be kept of each kind; all are counted */
	/* Called now and then, phase: what is being done. May be NULL. */
	void (*progress)(void *ctx, const char *phase, uint64_t done, uint64_t total);
	void *ctx;
};

/*
 * ret_result is all zero before, and for check_result_finish afterwards, whatever was returned.
 * Errors: -ENOMEM; -EBADMSG: a value was written twice to one key, see ret_result; -E2BIG.
 */
int check_history(const struct history *history, const struct check_options *options,
		  struct check_result *ret_result);

void check_result_finish(struct check_result *result);

/* Never NULL. Kinds: "G-single" and so on, and what that means; edges: "ww" and so on. */
const char *check_kind_name(enum check_kind kind);
const char *check_kind_text(enum check_kind kind);
const char *check_edge_name(enum check_edge edge);
const char *check_model_name(enum check_model model);

/* Error: -EINVAL. */
int check_model_parse(const char *name, enum check_model *ret_model);

#endif
