/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A history: what transactions were asked to do and what they were told, as docs/history-format.md
 * describes it. In memory; nothing here reads or writes a file.
 */
#ifndef OLTP_CHECK_HISTORY_H
#define OLTP_CHECK_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vec.h"

/* Of a read: nothing is there. No value of a history. */
#define HISTORY_ABSENT		UINT64_MAX
/* Of a transaction that is not known to have ended. */
#define HISTORY_NEVER		UINT64_MAX

enum history_op_kind {
	HISTORY_APPEND,		/* value to the end of list key */
	HISTORY_LIST,		/* all of list key */
	HISTORY_WRITE,		/* value to row key */
	HISTORY_READ,		/* row key */
	HISTORY_INSERT,		/* row key, which was not there */
	HISTORY_DELETE,		/* row key; value: what was there, if that is known */
	HISTORY_SCAN,		/* all rows from key to value */
};

struct history_op {
	enum history_op_kind kind;
	bool is_known;		/* LIST, READ, DELETE, SCAN: what it saw is */
	uint32_t n;		/* LIST: values; SCAN: rows */
	uint64_t key;
	uint64_t value;
	size_t at;		/* in history.values: the list, or a key and a value of each row */
};

enum history_outcome {
	HISTORY_OK,		/* committed */
	HISTORY_FAIL,		/* aborted */
	HISTORY_INFO,		/* not known */
};

struct history_txn {
	uint64_t invoke_time, end_time;	/* INFO: HISTORY_NEVER */
	uint64_t process;
	uint64_t epoch;		/* OK, or lost: the one it was said to be of; 0: of none */
	size_t first_op;
	uint32_t n_ops;
	uint32_t file, line;	/* of its invocation; files count from 0, lines from 1 */
	enum history_outcome outcome;
	bool is_lost;		/* FAIL: it was OK, and a crash took it (docs/history-format.md) */
};

struct history {
	VEC(struct history_txn) txns;	/* at most UINT32_MAX - 1 */
	VEC(struct history_op) ops;
	VEC(uint64_t) values;
	uint32_t n_files;
	uint64_t torn_lines;	/* last lines without an end, left out */
	uint64_t n_lost;	/* transactions that crashes took */
	uint64_t lost_epochs;	/* of how many epochs, at most, one crash took any */
};

/* All zero is an empty history. Accepts one. */
void history_finish(struct history *history);

struct history_error {
	uint64_t line;
	const char *what;
};

/* Called now and then; done of total bytes. May be NULL. */
typedef void (*history_progress)(void *ctx, uint64_t done, uint64_t total);

/*
 * Adds what a file says. Errors: -ENOMEM; -EBADMSG: *ret_error says where and what, and the history
 * is good only for history_finish.
 */
int history_parse(struct history *history, const char *text, size_t bytes,
		  history_progress progress, void *ctx, struct history_error *ret_error);

/* Into text, as snprintf does: at most room bytes with the end; returns how many it takes. */
size_t history_op_print(const struct history *history, const struct history_op *op, char *text,
			size_t room);

#endif
