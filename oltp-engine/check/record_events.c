// SPDX-License-Identifier: GPL-2.0-or-later
/* Attempts and the events they leave: see record.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record_private.h"
#include "oltp-engine/src/base/clock.h"

/* A line: its head, and the operations of one transaction, all of which fit. */
#define HEAD_BYTES	96u
#define LINE_MAX	(LINE_BYTES / 2)

static void flush(struct recorder *r)
{
	const struct record_sink *sink = r->recording->sink;
	int rc = r->n_text ? sink->write(sink->ctx, r->text, r->n_text) : 0;
	int none = 0;

	if (rc)
		atomic_compare_exchange_strong(&r->recording->sink_rc, &none, rc);
	r->n_text = 0;
}

int recorder_create(struct recording *recording, struct oltp_worker *worker,
		    struct recorder **ret_recorder)
{
	const uint64_t most = recording->config->is_for_crash ? RECORD_JOURNALS : RECORD_ATTACHED;
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->recording = recording;
	r->worker = worker;
	r->number = atomic_fetch_add(&recording->shared->attached, 1);
	r->random.state = random64_mix(recording->config->seed) ^ (r->number + 1);
	r->bytes = calloc(1, recording->config->record_bytes);
	r->text = malloc(LINE_BYTES);
	if (!r->bytes || !r->text || r->number >= most) {
		int rc = r->bytes && r->text ? -EUSERS : -ENOMEM;

		free(r->bytes);
		free(r->text);
		free(r);
		return rc;
	}
	*ret_recorder = r;
	return 0;
}

void recorder_destroy(struct recorder *r)
{
	flush(r);
	history_finish(&r->seen);
	free(r->bytes);
	free(r->text);
	free(r);
}

static void put_head(struct recorder *r, uint64_t time, uint32_t slot, const char *event)
{
	if (LINE_BYTES - r->n_text < LINE_MAX)
		flush(r);
	r->n_text += (size_t)snprintf(r->text + r->n_text, HEAD_BYTES,
				      "%" PRIu64 " %" PRIu64 " %s", time,
				      r->number * OLTP_TICKETS + slot, event);
}

static void put_op(struct recorder *r, const struct history_op *op)
{
	r->text[r->n_text++] = ' ';
	r->n_text += history_op_print(&r->seen, op, r->text + r->n_text, LINE_BYTES - r->n_text);
}

/* Writes alone say enough of what has not ended; to a full list, or of a row, it may be less. */
static void put_invoke(struct recorder *r, uint32_t slot, const struct plan *plan)
{
	put_head(r, clock_now_ns(), slot, "invoke");
	for (uint32_t i = 0; i < plan->n; i++) {
		const struct plan_op *op = &plan->ops[i];
		struct history_op what = { .key = op->key, .value = op->value, .is_known = true };

		switch (op->kind) {
		case PLAN_APPEND:
			what.kind = HISTORY_APPEND;
			break;
		case PLAN_WRITE:
		case PLAN_WRITE_BLIND:
			what.kind = HISTORY_WRITE;
			what.key = REGISTER_KEY(op->key);
			break;
		case PLAN_ROW_PUT:
			what.kind = HISTORY_WRITE;
			break;
		case PLAN_ROW_DELETE:
			what.kind = HISTORY_DELETE;
			what.is_known = false;
			break;
		case PLAN_LIST_READ:
		case PLAN_READ:
		case PLAN_ROW_READ:
		case PLAN_SCAN:
		case PLAN_KINDS:
			continue;
		}
		put_op(r, &what);
	}
	r->text[r->n_text++] = '\n';
}

static void put_end(struct recorder *r, uint32_t slot, const char *event, bool with_ops)
{
	put_head(r, clock_now_ns(), slot, event);
	for (size_t i = 0; with_ops && i < r->seen.ops.n; i++)
		put_op(r, &r->seen.ops.at[i]);
	r->text[r->n_text++] = '\n';
}

/* In mode async it says of which epoch it is, from which follows whether a crash took it. */
static void put_ok(struct recorder *r, uint32_t slot)
{
	char event[32] = "ok";

	if (r->recording->config->engine.durability == OLTP_DURABILITY_ASYNC)
		snprintf(event, sizeof(event), "ok@%" PRIu64, oltp_worker_epoch(r->worker));
	put_end(r, slot, event, true);
}

/* Mode commit: it is acknowledged only once it is on disk. */
static bool is_acknowledged(struct recorder *r)
{
	if (r->recording->config->engine.durability != OLTP_DURABILITY_COMMIT)
		return true;
	return !oltp_durable_wait(r->recording->engine, oltp_worker_epoch(r->worker));
}

static void count_abort(struct recording *recording, enum oltp_rc rc)
{
	atomic_fetch_add_explicit(&recording->aborted, 1, memory_order_relaxed);
	if (rc == OLTP_CONFLICT)
		atomic_fetch_add_explicit(&recording->conflicts, 1, memory_order_relaxed);
	if (rc == OLTP_COLD)
		atomic_fetch_add_explicit(&recording->colds, 1, memory_order_relaxed);
}

int recorder_put_recovered(struct recording *recording, uint64_t epoch)
{
	const struct record_sink *sink = recording->sink;
	char line[HEAD_BYTES];
	int n = snprintf(line, sizeof(line), "%" PRIu64 " 0 recovered@%" PRIu64 "\n",
			 clock_now_ns(), epoch);

	return sink->write(sink->ctx, line, (size_t)n);
}

enum oltp_rc recorder_attempt(struct recorder *r, uint32_t slot)
{
	struct plan *plan = &r->plans[slot];
	bool gives_up = false;
	enum oltp_rc rc;

	for (uint32_t i = 0; i < plan->n; i++)
		plan->ops[i].value = r->number << 40 | ++r->n_values;
	r->seen.ops.n = r->seen.values.n = 0;
	put_invoke(r, slot, plan);
	if (r->recording->config->is_for_crash)
		flush(r);
	rc = oltp_txn_begin(r->worker);
	rc = rc ?: plan_execute(r, plan);
	gives_up = !rc && plan->gives_up;
	if (!rc && !gives_up)
		rc = oltp_txn_commit(r->worker);
	if (rc || gives_up) {
		oltp_txn_abort(r->worker);
		count_abort(r->recording, rc);
		put_end(r, slot, "fail", false);
		return rc;
	}
	if (!is_acknowledged(r)) {
		put_end(r, slot, "info", false);
		return OLTP_IO;
	}
	put_ok(r, slot);
	atomic_fetch_add_explicit(&r->recording->shared->committed, 1, memory_order_relaxed);
	return OLTP_OK;
}
