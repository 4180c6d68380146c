// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading histories: see history.h. Every byte of the text is somebody else's. */
#include <string.h>

#include "history.h"
#include "map.h"

#define HEADER		"oltp-history 1"
#define PROGRESS_BYTES	(1u << 20)
#define NO_TXN		UINT32_MAX

struct process {
	uint32_t pending;	/* transaction that has not ended, or NO_TXN */
	uint64_t time;		/* of its last event */
	const char *ops, *ops_end;	/* of the invocation */
};

/* What recovery found. */
struct recovered {
	uint64_t time, epoch;
	uint64_t lost_first, lost_last;	/* epochs; 0: none */
};

struct parser {
	struct history *history;
	size_t first_txn;	/* of the file */
	const char *at, *end;	/* of the line */
	uint64_t line;
	const char *what;	/* is wrong */
	struct map numbers;	/* of processes: where in processes */
	VEC(struct process) processes;
	VEC(struct recovered) recovered;
};

void history_finish(struct history *history)
{
	vec_free(&history->txns);
	vec_free(&history->ops);
	vec_free(&history->values);
	history->torn_lines = history->n_lost = history->lost_epochs = 0;
	history->n_files = 0;
}

static int bad(struct parser *p, const char *what)
{
	p->what = what;
	return -EBADMSG;
}

static bool take_char(struct parser *p, char c)
{
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

static int take_number(struct parser *p, uint64_t *ret_number)
{
	const char *start = p->at;
	uint64_t number = 0;

	for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
		if (__builtin_mul_overflow(number, 10u, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*p->at - '0'), &number))
			return bad(p, "a number above 18446744073709551615");
	}
	if (p->at == start)
		return bad(p, "a number is missing");
	*ret_number = number;
	return 0;
}

static int take_value(struct parser *p, uint64_t *ret_value)
{
	int rc = take_number(p, ret_value);

	if (!rc && *ret_value == HISTORY_ABSENT)
		return bad(p, "a value above 18446744073709551614");
	return rc;
}

static bool at_op_end(const struct parser *p)
{
	return p->at == p->end || *p->at == ' ';
}

/* What a read saw: ":" and values, or nothing, which is not known. */
static int take_list(struct parser *p, struct history_op *op)
{
	int rc = 0;

	op->is_known = take_char(p, ':');
	op->at = p->history->values.n;
	if (!op->is_known || at_op_end(p))
		return 0;
	do {
		uint64_t value;

		rc = take_value(p, &value);
		if (!rc)
			rc = vec_push(&p->history->values, value);
		if (++op->n == UINT32_MAX)
			return bad(p, "a list too long");
	} while (!rc && take_char(p, ','));
	return rc;
}

static int take_rows(struct parser *p, struct history_op *op)
{
	uint64_t last = 0;
	int rc = 0;

	op->is_known = take_char(p, ':');
	op->at = p->history->values.n;
	if (!op->is_known || at_op_end(p))
		return 0;
	do {
		uint64_t key, value;

		rc = take_number(p, &key);
		if (!rc && !take_char(p, '='))
			return bad(p, "a row that is not KEY=VALUE");
		rc = rc ?: take_value(p, &value);
		if (rc)
			return rc;
		if (key < op->key || key > op->value)
			return bad(p, "a row outside of the range that was scanned");
		if (op->n && key <= last)
			return bad(p, "rows of a scan that are not in the order of their keys");
		last = key;
		rc = vec_push(&p->history->values, key) ?:
		     vec_push(&p->history->values, value);
		if (++op->n == UINT32_MAX)
			return bad(p, "a scan too long");
	} while (!rc && take_char(p, ','));
	return rc;
}

/* One value or, of a read, "-" for what is not there; none at all: not known. */
static int take_seen(struct parser *p, struct history_op *op)
{
	op->is_known = take_char(p, ':');
	op->value = HISTORY_ABSENT;
	if (!op->is_known || (op->kind == HISTORY_READ && take_char(p, '-')))
		return 0;
	return take_value(p, &op->value);
}

static int take_op(struct parser *p, struct history_op *ret_op)
{
	static const char letters[] = { [HISTORY_APPEND] = 'a', [HISTORY_LIST] = 'l',
					[HISTORY_WRITE] = 'w', [HISTORY_READ] = 'r',
					[HISTORY_INSERT] = 'i', [HISTORY_DELETE] = 'd',
					[HISTORY_SCAN] = 's' };
	const char *letter = memchr(letters, *p->at, sizeof(letters));
	struct history_op op = { 0 };
	int rc;

	if (!letter)
		return bad(p, "an operation that is none of a, l, w, r, i, d and s");
	op.kind = (enum history_op_kind)(letter - letters);
	p->at++;
	if (!take_char(p, ':'))
		return bad(p, "an operation without a key");
	rc = take_number(p, &op.key);
	if (rc)
		return rc;
	switch (op.kind) {
	case HISTORY_APPEND:
	case HISTORY_WRITE:
	case HISTORY_INSERT:
		op.is_known = true;
		rc = take_char(p, ':') ? take_value(p, &op.value) :
					 bad(p, "a write without a value");
		break;
	case HISTORY_LIST:
		rc = take_list(p, &op);
		break;
	case HISTORY_READ:
	case HISTORY_DELETE:
		rc = take_seen(p, &op);
		break;
	case HISTORY_SCAN:
		rc = take_char(p, ':') ? take_number(p, &op.value) :
					 bad(p, "a scan without the end of its range");
		rc = rc ?: take_rows(p, &op);
		break;
	}
	if (!rc && !at_op_end(p))
		return bad(p, "an operation that does not end where it should");
	*ret_op = op;
	return rc;
}

static int take_ops(struct parser *p, size_t *ret_first, uint32_t *ret_n)
{
	size_t first = p->history->ops.n;

	while (p->at < p->end) {
		struct history_op op;
		int rc;

		if (!take_char(p, ' ') || p->at == p->end)
			return bad(p, "operations that are not separated by one blank each");
		rc = take_op(p, &op);
		if (!rc)
			rc = vec_push(&p->history->ops, op);
		if (rc)
			return rc;
	}
	if (p->history->ops.n - first >= UINT32_MAX || p->history->ops.n >= UINT32_MAX)
		return bad(p, "too many operations");
	*ret_first = first;
	*ret_n = (uint32_t)(p->history->ops.n - first);
	return 0;
}

static int process_of(struct parser *p, uint64_t number, struct process **ret_process)
{
	uint32_t *index = map_get(&p->numbers, number, 0);
	int rc;

	if (!index) {
		if (p->processes.n >= UINT32_MAX)
			return bad(p, "too many processes");
		rc = vec_push(&p->processes, (struct process){ .pending = NO_TXN });
		if (!rc)
			rc = map_put(&p->numbers, number, 0, (uint32_t)(p->processes.n - 1),
				     &index);
		if (rc)
			return rc;
	}
	*ret_process = &p->processes.at[*index];
	return 0;
}

/* Operations are looked at now, for errors, and kept only if the end does not bring them. */
static int invoke(struct parser *p, struct process *process, uint64_t number, uint64_t time)
{
	struct history *history = p->history;
	size_t n_ops = history->ops.n, n_values = history->values.n, first;
	uint32_t n;
	int rc;

	if (process->pending != NO_TXN)
		return bad(p, "a process whose transaction before has not ended");
	if (history->txns.n >= UINT32_MAX - 1)
		return bad(p, "too many transactions");
	process->ops = p->at;
	process->ops_end = p->end;
	rc = take_ops(p, &first, &n);
	history->ops.n = n_ops;
	history->values.n = n_values;
	if (rc)
		return rc;
	process->pending = (uint32_t)history->txns.n;
	return vec_push(&history->txns, (struct history_txn){
		.invoke_time = time,
		.end_time = HISTORY_NEVER,
		.process = number,
		.outcome = HISTORY_INFO,
		.line = p->line < UINT32_MAX ? (uint32_t)p->line : UINT32_MAX,
		.file = history->n_files - 1,
	});
}

/* With the operations of the invocation. */
static int end_as_invoked(struct parser *p, struct process *process)
{
	struct history_txn *txn = &p->history->txns.at[process->pending];

	p->at = process->ops;
	p->end = process->ops_end;
	return take_ops(p, &txn->first_op, &txn->n_ops);
}

static int end(struct parser *p, struct process *process, enum history_outcome outcome,
	       uint64_t time, uint64_t epoch)
{
	struct history_txn *txn;
	int rc = 0;

	if (process->pending == NO_TXN)
		return bad(p, "the end of a transaction that was not invoked");
	txn = &p->history->txns.at[process->pending];
	txn->outcome = outcome;
	txn->end_time = outcome == HISTORY_INFO ? HISTORY_NEVER : time;
	txn->epoch = epoch;
	if (p->at < p->end)
		rc = take_ops(p, &txn->first_op, &txn->n_ops);
	else
		rc = end_as_invoked(p, process);
	process->pending = NO_TXN;
	return rc;
}

static bool take_word(struct parser *p, const char *word)
{
	size_t bytes = strlen(word);

	if ((size_t)(p->end - p->at) < bytes || memcmp(p->at, word, bytes))
		return false;
	if ((size_t)(p->end - p->at) > bytes && p->at[bytes] != ' ')
		return false;
	p->at += bytes;
	return true;
}

/* A word with an epoch behind it. */
static int take_epoch(struct parser *p, const char *word, bool *ret_is_it, uint64_t *ret_epoch)
{
	size_t bytes = strlen(word);
	int rc;

	*ret_is_it = (size_t)(p->end - p->at) > bytes && !memcmp(p->at, word, bytes) &&
		     p->at[bytes] == '@';
	if (!*ret_is_it)
		return 0;
	p->at += bytes + 1;
	rc = take_number(p, ret_epoch);
	if (!rc && p->at < p->end && *p->at != ' ')
		return bad(p, "an epoch that is no number");
	return rc;
}

/* Of a crash, which no process has part in. */
static int recovered(struct parser *p, uint64_t time, uint64_t epoch)
{
	if (p->at < p->end)
		return bad(p, "operations of a recovery");
	if (p->recovered.n && p->recovered.at[p->recovered.n - 1].time > time)
		return bad(p, "a recovery before the one that precedes it");
	return vec_push(&p->recovered, (struct recovered){ .time = time, .epoch = epoch });
}

static int parse_event(struct parser *p)
{
	struct process *process;
	uint64_t time, number, epoch;
	bool is_it;
	int rc = take_number(p, &time);

	if (!rc && time == HISTORY_NEVER)
		return bad(p, "a time above 18446744073709551614");
	if (!rc && !take_char(p, ' '))
		return bad(p, "an event that is not TIME PROCESS TYPE OPERATIONS");
	rc = rc ?: take_number(p, &number);
	if (!rc && !take_char(p, ' '))
		return bad(p, "an event that is not TIME PROCESS TYPE OPERATIONS");
	rc = rc ?: take_epoch(p, "recovered", &is_it, &epoch);
	if (!rc && is_it)
		return recovered(p, time, epoch);
	rc = rc ?: process_of(p, number, &process);
	if (rc)
		return rc;
	if (time < process->time)
		return bad(p, "an event of a process before the one that precedes it");
	process->time = time;
	if (take_word(p, "invoke"))
		return invoke(p, process, number, time);
	rc = take_epoch(p, "ok", &is_it, &epoch);
	if (rc || is_it)
		return rc ?: end(p, process, HISTORY_OK, time, epoch);
	if (take_word(p, "ok"))
		return end(p, process, HISTORY_OK, time, 0);
	if (take_word(p, "fail"))
		return end(p, process, HISTORY_FAIL, time, 0);
	if (take_word(p, "info"))
		return end(p, process, HISTORY_INFO, time, 0);
	return bad(p, "an event that is none of invoke, ok, fail, info and recovered@");
}

static int parse_line(struct parser *p, bool *has_header)
{
	if (p->at == p->end || *p->at == '#')
		return 0;
	if (*has_header)
		return parse_event(p);
	*has_header = true;
	if ((size_t)(p->end - p->at) != strlen(HEADER) || memcmp(p->at, HEADER, strlen(HEADER)))
		return bad(p, "the first line is not \"" HEADER "\"");
	return 0;
}

static int parse_lines(struct parser *p, const char *text, size_t bytes,
		       history_progress progress, void *ctx)
{
	const char *end = text + bytes;
	size_t told = 0;
	bool has_header = false;

	for (const char *at = text; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		int rc;

		p->line++;
		if (!newline) {
			p->history->torn_lines++;
			break;
		}
		p->at = at;
		p->end = newline;
		rc = parse_line(p, &has_header);
		if (rc)
			return rc;
		at = newline + 1;
		if (progress && (size_t)(at - text) - told >= PROGRESS_BYTES) {
			told = (size_t)(at - text);
			progress(ctx, told, bytes);
		}
	}
	return has_header ? 0 : bad(p, "there is no line \"" HEADER "\"");
}

/* The crash that came after its end has taken what was of a later epoch than was found. */
static void lose(struct parser *p, struct history_txn *txn)
{
	struct recovered *r = p->recovered.at, *end = r + p->recovered.n;

	while (r < end && r->time < txn->end_time)
		r++;
	if (r == end || txn->outcome != HISTORY_OK || txn->epoch <= r->epoch)
		return;
	txn->outcome = HISTORY_FAIL;
	txn->is_lost = true;
	p->history->n_lost++;
	if (!r->lost_first || txn->epoch < r->lost_first)
		r->lost_first = txn->epoch;
	if (txn->epoch > r->lost_last)
		r->lost_last = txn->epoch;
	if (r->lost_last - r->lost_first >= p->history->lost_epochs)
		p->history->lost_epochs = r->lost_last - r->lost_first + 1;
}

int history_parse(struct history *history, const char *text, size_t bytes,
		  history_progress progress, void *ctx, struct history_error *ret_error)
{
	struct parser p = { .history = history, .first_txn = history->txns.n };
	int rc;

	history->n_files++;
	rc = parse_lines(&p, text, bytes, progress, ctx);
	for (size_t i = 0; !rc && i < p.processes.n; i++) {
		if (p.processes.at[i].pending != NO_TXN)
			rc = end_as_invoked(&p, &p.processes.at[i]);
	}
	for (size_t i = p.first_txn; !rc && p.recovered.n && i < history->txns.n; i++)
		lose(&p, &history->txns.at[i]);
	if (rc == -EBADMSG)
		*ret_error = (struct history_error){ p.line, p.what };
	map_free(&p.numbers);
	vec_free(&p.processes);
	vec_free(&p.recovered);
	return rc;
}
