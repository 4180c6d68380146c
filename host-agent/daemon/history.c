/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The history: batching and jobs.  SQL is in history-db.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/history-db.h"
#include "daemon/history.h"
#include "util/clock.h"
#include "util/log.h"

/* Records are written together, this long after the first. */
#define FLUSH_USEC	(200 * EBB_USEC_PER_MSEC)
/* Kept at most while nothing can be written: of decisions and of charges each, of the ledger. */
#define MAX_PENDING	65536
#define MAX_LEDGER	8192
#define ASK_TIMEOUT	(10 * EBB_USEC_PER_SEC)

struct batch {
	struct ebb_history_entry *items;
	size_t num, size;
};

/* Records to be written: a decision is tried once, counters until they have been written. */
struct pending {
	struct batch decisions, charges, ledger;
};

struct ebb_history {
	struct ebb_history_db *db;	/* of one job at a time */
	struct ebb_workers *workers;
	sd_event_source *timer;
	struct pending pending;
	size_t num_dropped;
	size_t num_writing;		/* jobs that write and were not released yet */
	struct ebb_history_run *runs;	/* as they were when it was opened */
	size_t num_runs;
};

struct history_job {
	struct ebb_job job;
	struct ebb_history *history;
	struct pending pending;		/* records not written (yet) */
	bool is_question;
	struct ebb_history_query query;
	json_t *rows;
	void (*done)(void *ctx, json_t *rows, int err);
	void *ctx;
	struct ebb_err err;
};

/* ---- batches ---- */

static void free_pending(struct pending *p)
{
	free(p->decisions.items);
	free(p->charges.items);
	free(p->ledger.items);
	*p = (struct pending){ 0 };
}

static bool is_same_count(const struct ebb_record *a, const struct ebb_record *b)
{
	return memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0 &&
	       a->ledger.promise == b->ledger.promise &&
	       strcmp(a->ledger.volume, b->ledger.volume) == 0 &&
	       a->at - a->total_usec == b->at - b->total_usec;
}

/* By VM, by what is counted, by when its counters were 0, the newest first. */
static int compare_counts(const void *left, const void *right)
{
	const struct ebb_record *a = &((const struct ebb_history_entry *)left)->record;
	const struct ebb_record *b = &((const struct ebb_history_entry *)right)->record;
	const usec_t a_since = a->at - a->total_usec, b_since = b->at - b->total_usec;
	int r = memcmp(a->uuid, b->uuid, sizeof(a->uuid));

	if (r == 0)
		r = strcmp(a->ledger.volume, b->ledger.volume);
	if (r != 0)
		return r;
	if (a_since != b_since)
		return a_since < b_since ? -1 : 1;
	if (a->ledger.promise != b->ledger.promise)
		return a->ledger.promise < b->ledger.promise ? -1 : 1;
	return a->at > b->at ? -1 : a->at < b->at;
}

/* Of counters that go on from each other only the newest has to be written. */
static void keep_newest(struct batch *b)
{
	size_t num = 0;

	qsort(b->items, b->num, sizeof(b->items[0]), compare_counts);
	for (size_t i = 0; i < b->num; i++)
		if (num == 0 || !is_same_count(&b->items[num - 1].record, &b->items[i].record))
			b->items[num++] = b->items[i];
	b->num = num;
}

static bool grow(struct batch *b, size_t most)
{
	const size_t size = b->size ? b->size * 2 : 64;
	struct ebb_history_entry *items;

	if (size > most)
		return false;
	items = reallocarray(b->items, size, sizeof(*items));
	if (!items)
		return false;
	b->items = items;
	b->size = size;
	return true;
}

static void make_room(struct batch *b, enum ebb_event event)
{
	const bool is_ledger = event == EBB_EVENT_LEDGER;
	const size_t most = is_ledger ? MAX_LEDGER : MAX_PENDING;

	/* An interval of the ledger has a row of its own, while there is room for it. */
	if (is_ledger && grow(b, most))
		return;
	if ((is_ledger || event == EBB_EVENT_CHARGE) && b->num > 0)
		keep_newest(b);
	/* If only little is free, it would have to be sorted again soon. */
	if (b->num >= b->size / 2)
		grow(b, most);
}

/* NULL: there is no room. */
static struct ebb_history_entry *new_entry(struct ebb_history *h, enum ebb_event event)
{
	struct batch *b = event == EBB_EVENT_CHARGE ? &h->pending.charges :
			  event == EBB_EVENT_LEDGER ? &h->pending.ledger : &h->pending.decisions;

	if (b->num == b->size)
		make_room(b, event);
	if (b->num < b->size)
		return &b->items[b->num++];
	if (h->num_dropped++ == 0)
		ebb_log(LOG_ERR, "history", EBB_KS("error", "too slow: records are dropped"));
	return NULL;
}

static void arm(struct ebb_history *h, usec_t at)
{
	sd_event_source_set_time(h->timer, at);
	sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT);
}

static bool is_empty(const struct pending *p)
{
	return p->decisions.num == 0 && p->charges.num == 0 && p->ledger.num == 0;
}

static void append(struct ebb_history *h, const struct batch *from)
{
	for (size_t i = 0; i < from->num; i++) {
		struct ebb_history_entry *e = new_entry(h, from->items[i].record.event);

		if (e)
			*e = from->items[i];
	}
}

/* Records that were not written go before those that came since. */
static void put_back(struct ebb_history *h, struct pending *older)
{
	struct pending newer = h->pending;

	h->pending = *older;
	*older = (struct pending){ 0 };
	append(h, &newer.decisions);
	append(h, &newer.charges);
	append(h, &newer.ledger);
	free_pending(&newer);
}

/* ---- jobs ---- */

static int insert(struct ebb_history_db *db, struct batch *b, struct ebb_err *err)
{
	const int rc = b->num > 0 ? ebb_history_db_insert(db, b->items, b->num, err) : 0;

	if (rc == 0)
		b->num = 0;
	return rc;
}

/* Decisions that are refused are not tried again, so that none can be in the way for ever. */
static int write_pending(struct ebb_history_db *db, struct pending *p, struct ebb_err *err)
{
	const int rc = insert(db, &p->decisions, err);
	const int charge_rc = insert(db, &p->charges, err);
	const int ledger_rc = insert(db, &p->ledger, err);

	p->decisions.num = 0;
	return rc < 0 ? rc : charge_rc < 0 ? charge_rc : ledger_rc;
}

static int run_job(struct ebb_job *job)
{
	struct history_job *j = (struct history_job *)job;

	if (j->is_question)
		return ebb_history_db_select(j->history->db, &j->query, &j->rows, &j->err);
	return write_pending(j->history->db, &j->pending, &j->err);
}

static void job_done(struct ebb_job *job, int err)
{
	struct history_job *j = (struct history_job *)job;

	if (err < 0)
		ebb_log(LOG_ERR, "history", EBB_KS("doing", j->is_question ? "read" : "write"),
			EBB_KS("error", j->err.text[0] ? j->err.text : strerror(-err)));
	if (!j->is_question)
		return;
	j->done(j->ctx, err < 0 ? NULL : j->rows, err);
	j->done = NULL;
	if (err == 0)
		j->rows = NULL;
}

/* Written, failed, or dropped when the daemon ends, and then written by ebb_history_close(). */
static void release_write(struct history_job *j)
{
	struct ebb_history *h = j->history;

	h->num_writing--;
	if (!is_empty(&j->pending))
		put_back(h, &j->pending);
	if (!is_empty(&h->pending))
		arm(h, ebb_clock_mono_usec() + FLUSH_USEC);
}

static void release_job(struct ebb_job *job)
{
	struct history_job *j = (struct history_job *)job;

	/* Dropped when the daemon ends: the caller must still let go of the request. */
	if (j->done)
		j->done(j->ctx, NULL, -ECANCELED);
	if (!j->is_question)
		release_write(j);
	json_decref(j->rows);
	free_pending(&j->pending);
	free(j);
}

static struct history_job *new_job(struct ebb_history *h)
{
	struct history_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->history = h;
	memcpy(j->job.lane, "history", 8);
	j->job.deadline = EBB_TIME_NEVER;
	j->job.run = run_job;
	j->job.done = job_done;
	j->job.release = release_job;
	return j;
}

static void flush(struct ebb_history *h)
{
	struct history_job *j;

	sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
	if (is_empty(&h->pending))
		return;
	j = new_job(h);
	if (!j) {
		arm(h, ebb_clock_mono_usec() + FLUSH_USEC);
		return;
	}
	j->pending = h->pending;
	h->pending = (struct pending){ 0 };
	h->num_writing++;
	ebb_workers_submit(h->workers, &j->job);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct ebb_history *h = arg;

	(void)s;
	(void)usec;
	/* While the disk is slow, what comes waits here, where there is a limit. */
	if (h->num_writing == 0)
		flush(h);
	return 0;
}

void ebb_history_add(struct ebb_history *h, const struct ebb_record *record, usec_t now)
{
	const bool was_empty = is_empty(&h->pending);
	struct ebb_history_entry *e;

	e = new_entry(h, record->event);
	if (!e)
		return;
	e->record = *record;
	/* The record's time is monotonic: the same moment on the wall clock. */
	e->ts = ((double)ebb_clock_real_usec() - (double)(now - record->at)) / EBB_USEC_PER_SEC;
	if (was_empty)
		arm(h, now + FLUSH_USEC);
}

void ebb_history_keep(struct ebb_history *h, uint32_t ledger_hours)
{
	ebb_history_db_keep(h->db, ledger_hours);
}

const struct ebb_vm_charge *ebb_history_charge_of(const struct ebb_history *h, const uint8_t *uuid,
						  uint64_t order)
{
	for (size_t i = 0; i < h->num_runs; i++)
		if (h->runs[i].order == order && memcmp(h->runs[i].uuid, uuid, 16) == 0)
			return &h->runs[i].charge;
	return NULL;
}

void ebb_history_ask(struct ebb_history *h, const struct ebb_history_query *query,
		     void (*done)(void *ctx, json_t *rows, int err), void *ctx)
{
	struct history_job *j = new_job(h);

	if (!j) {
		done(ctx, NULL, -ENOMEM);
		return;
	}
	flush(h);
	j->job.deadline = ebb_clock_mono_usec() + ASK_TIMEOUT;
	j->is_question = true;
	j->query = *query;
	j->done = done;
	j->ctx = ctx;
	ebb_workers_submit(h->workers, &j->job);
}

int ebb_history_open(const char *path, uint32_t max_rows, struct ebb_workers *workers,
		     sd_event *event, struct ebb_history **ret, struct ebb_err *err)
{
	struct ebb_history *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return -ENOMEM;
	h->workers = workers;
	rc = ebb_history_db_open(path, max_rows, &h->db, err);
	if (rc == 0) {
		ebb_history_db_runs(h->db, &h->runs, &h->num_runs);
		rc = sd_event_add_time(event, &h->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_timer,
				       h);
	}
	if (rc >= 0)
		rc = sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
	if (rc < 0) {
		ebb_history_close(h);
		return rc;
	}
	*ret = h;
	return 0;
}

void ebb_history_close(struct ebb_history *h)
{
	struct ebb_err err;

	if (!h)
		return;
	if (!is_empty(&h->pending) && write_pending(h->db, &h->pending, &err) < 0)
		ebb_log(LOG_ERR, "history", EBB_KS("error", err.text));
	sd_event_source_disable_unref(h->timer);
	ebb_history_db_close(h->db);
	free_pending(&h->pending);
	free(h->runs);
	free(h);
}
