/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the parts of the checker: lists and rows (objects), the values written to them
 * (versions), and which transaction read which version.
 *
 *   versions.c	objects and versions of all transactions; which of unknown outcome were seen
 *   touches.c	what one transaction did, object by object
 *   lists.c	the order of appends, from the reads; edges of lists
 *   rows.c	which version a write overwrote, from what its transaction had read
 *   lives.c	rows added, deleted and added again: which absence a read saw
 *   row_edges.c edges of rows and scans
 *   order.c	edges of time and of processes
 *   cycles.c	the cycles, and what to call them
 *   check.c	one after the other
 */
#ifndef OLTP_CHECK_VERSIONS_H
#define OLTP_CHECK_VERSIONS_H

#include "check.h"
#include "graph.h"
#include "map.h"

#define NO_TXN		UINT32_MAX
#define NO_VERSION	UINT32_MAX
/* As version.prev: missing, but before it was ever there, or after which delete? See lives.c. */
#define ABSENT_VERSION	(UINT32_MAX - 1)
/* Writers that are connected with one reader at most, so that edges do not grow with the square. */
#define FAN_MAX		16u

/* The first version of every object is that of nothing being there; nobody wrote it. */
struct version {
	uint64_t value;		/* HISTORY_ABSENT: nothing there */
	uint32_t object;
	uint32_t txn;		/* NO_TXN: the first */
	uint32_t op;		/* of the history */
	uint32_t of_object;	/* the one of the same object before this one in the history */
	/* Rows: the version overwritten; NO_VERSION: not known. Lists: the one before it. */
	uint32_t prev;
	/* Rows: those with this one as prev, and others that are known to be later. */
	uint32_t first_next, sibling;
	uint32_t position;	/* lists: in the longest read; NO_VERSION: in none */
	bool is_final;		/* of its transaction on this object */
};

struct object {
	uint64_t key;
	bool is_list;
	bool is_undecided;	/* rows: the order of its lives is not known, see lives.c */
	uint32_t initial;	/* version */
	uint32_t last;		/* version, in the order of the history */
	uint32_t n_deletes;	/* committed, or of unknown outcome */
	/* Lists: the longest read, in history.values, and whose it is. */
	size_t longest_at;
	uint32_t longest_n, longest_txn;
	size_t order;		/* lists: where in checker.orders; rows: in checker.lives */
	uint32_t n_lives;
};

/* Of a list's longest read. */
struct order {
	uint32_t version;	/* NO_VERSION: nobody wrote it */
	uint32_t next;		/* place of the next one that was committed; longest_n: none */
};

/* A row from being added to being deleted. */
struct life {
	uint32_t insert, remove;	/* versions; remove: NO_VERSION */
};

struct checker {
	const struct history *history;
	const struct check_options *options;
	struct check_result *result;
	struct map objects_by_key;	/* (key, is_list) */
	struct map versions_by_value;	/* (object, value), and (DELETES | object, operation) */
	VEC(struct object) objects;
	VEC(struct version) versions;
	VEC(struct order) orders;
	VEC(struct life) lives;
	/* Rows, by key. */
	VEC(struct sorted_row {
		uint64_t key;
		uint32_t object;
	}) rows;
	bool *is_committed;	/* by transaction; also those of unknown outcome that were seen */
	struct graph graph;
};

/* Tells how far a phase is, now and then; i is what is done of total. */
void checker_progress(const struct checker *c, const char *phase, uint64_t i, uint64_t total);

/* Counts it, and keeps it if there are not too many. Error: -ENOMEM. */
int checker_report(struct checker *c, const struct check_anomaly *anomaly);

/* A read of txn in an object that is wrong by itself. */
int checker_report_read(struct checker *c, enum check_kind kind, uint32_t txn, uint32_t other,
			uint32_t object, uint64_t value);

/* from has to come before to: version and next say why, NO_VERSION where none does. -ENOMEM. */
static inline int edge_add(struct checker *c, uint32_t from, uint32_t to, uint32_t version,
			   uint32_t next, enum check_edge kind)
{
	return graph_add(&c->graph, &(struct graph_edge){ from, to, version, next, kind });
}

int versions_index(struct checker *c);
/* After lists_order. Whether those of unknown outcome were committed. */
int versions_observe(struct checker *c);
/* NO_VERSION, if that is not there. */
uint32_t object_find(const struct checker *c, uint64_t key, bool is_list);
uint32_t version_find(const struct checker *c, uint32_t object, uint64_t value);
uint32_t version_find_delete(const struct checker *c, uint32_t object, size_t op);

static inline bool version_is_committed(const struct checker *c, uint32_t version)
{
	uint32_t txn = c->versions.at[version].txn;

	return txn != NO_TXN && c->is_committed[txn];
}

int lists_order(struct checker *c);
int lists_edges(struct checker *c);
int rows_order(struct checker *c);
int lives_find(struct checker *c);
/*
 * The version that a transaction saw which found nothing; NO_VERSION: nothing follows from it, or
 * it could be one or another (*ret_is_unknown).
 */
uint32_t lives_absent(const struct checker *c, uint32_t object, uint32_t txn,
		      bool *ret_is_unknown);
int row_edges(struct checker *c);
int order_edges(struct checker *c);
int cycles_find(struct checker *c);

/* ---- touches.c ---- */

enum touch_kind {
	TOUCH_LIST,
	TOUCH_APPEND,
	TOUCH_READ,	/* of a row */
	TOUCH_MISS,	/* a scan that did not find a row which the transaction touches elsewhere */
	TOUCH_WRITE,
	TOUCH_INSERT,
	TOUCH_DELETE,
};

struct touch {
	uint32_t object;
	uint32_t op;		/* of the history */
	uint32_t version;	/* writes */
	enum touch_kind kind;
	bool is_scan;
	uint64_t value;		/* READ, DELETE: what it saw; MISS: HISTORY_ABSENT */
};

struct touches {
	VEC(struct touch) touches;
};

/* Those of a transaction, by object, those of one in the order they were made. Error: -ENOMEM. */
int touches_of(const struct checker *c, uint32_t txn, struct touches *touches);

/*
 * Calls fn for each row known to the history that the scan did not find. Non-zero ends it and is
 * returned.
 */
int touches_missed(const struct checker *c, const struct history_op *scan,
		   int (*fn)(void *ctx, uint32_t object), void *ctx);

/* Whether the transaction touches the object. */
bool touches_have(const struct touches *touches, uint32_t object);

#endif
