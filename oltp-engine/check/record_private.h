/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the recorder's files share: one run, its workers, its transactions. */
#ifndef OLTP_CHECK_RECORD_PRIVATE_H
#define OLTP_CHECK_RECORD_PRIVATE_H

#include "history.h"
#include "record.h"
#include "oltp-engine/src/base/random.h"

#define LIST_VALUES	24u	/* that a record has room for; then the list gets another key */
#define WINDOW_KEYS	32u
#define WINDOW_PUTS	96u	/* then the window gets other keys */
#define PLAN_OPS	40u
#define LINE_BYTES	(1u << 17)

/* Keys of lists: slot and generation; journals: worker and generation. */
#define LIST_KEY(slot, generation)	((uint64_t)(slot) << 32 | (generation))
#define JOURNAL_KEY(worker, generation)	(1ull << 62 | (uint64_t)(worker) << 32 | (generation))
/* Rows of an ordered index; registers are rows of another table, apart from them in a history. */
#define ROW_KEY(window, generation, i)	\
	((uint64_t)(window) << 32 | (generation) * WINDOW_KEYS | (i))
#define REGISTER_KEY(key)		(1ull << 62 | (key))

struct list_record {
	uint64_t n;
	uint64_t values[LIST_VALUES];
};

struct row_record {
	uint64_t value;
};

enum plan_kind {
	PLAN_LIST_READ,
	PLAN_APPEND,
	PLAN_READ,		/* register */
	PLAN_WRITE,		/* that reads first */
	PLAN_WRITE_BLIND,
	PLAN_ROW_READ,
	PLAN_ROW_PUT,		/* insert, or update what is there */
	PLAN_ROW_DELETE,
	PLAN_SCAN,
	PLAN_KINDS,
};

/* What a transaction is to do. The same is tried again after a conflict, with other values. */
struct plan {
	uint32_t n;
	struct plan_op {
		enum plan_kind kind;
		uint64_t key, to;	/* to: PLAN_SCAN */
		uint64_t value;		/* to be written, new for each attempt */
	} ops[PLAN_OPS];
	bool gives_up;		/* aborts in the end of its own accord */
};

struct recording {
	const struct record_config *config;
	struct record_shared *shared;
	const struct record_sink *sink;
	struct oltp_engine *engine;
	struct oltp_table *lists, *registers, *rows;
	struct oltp_index *by_key;
	_Atomic bool is_done;
	_Atomic int sink_rc;
	_Atomic uint64_t aborted, conflicts, colds;
};

/* One worker while it is attached. */
struct recorder {
	struct recording *recording;
	struct oltp_worker *worker;
	uint64_t number;	/* of all that ever attached */
	uint64_t n_values;	/* written by it so far */
	struct random64 random;
	struct plan plans[OLTP_TICKETS];
	struct history seen;	/* operations of the present attempt */
	uint8_t *bytes;		/* a record to be inserted */
	char *text;		/* LINE_BYTES, not yet given to the sink */
	size_t n_text;
};

int recorder_create(struct recording *recording, struct oltp_worker *worker,
		    struct recorder **ret_recorder);
/* Gives its last lines to the sink. */
void recorder_destroy(struct recorder *r);

/* One attempt, with its events. slot tells processes of a worker apart. */
enum oltp_rc recorder_attempt(struct recorder *r, uint32_t slot);

/* Of a process that was killed, all up to the epoch is there. Errors: those of the sink. */
int recorder_put_recovered(struct recording *recording, uint64_t epoch);

/* Makes up a transaction. */
void plan_make(struct recorder *r, struct plan *plan);
void plan_add(struct plan *plan, enum plan_kind kind, uint64_t key, uint64_t to);

/* What an attempt does between begin and commit, and what it saw into r->seen. */
enum oltp_rc plan_execute(struct recorder *r, struct plan *plan);

#endif
