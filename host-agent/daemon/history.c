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
/* Kept at most when the disk is slow; more are dropped, and counted. */
#define MAX_PENDING	65536
#define FLUSH_TIMEOUT	(60 * EBB_USEC_PER_SEC)
#define ASK_TIMEOUT	(10 * EBB_USEC_PER_SEC)

struct ebb_history {
	struct ebb_history_db *db;	/* of one job at a time */
	struct ebb_workers *workers;
	sd_event_source *timer;
	struct ebb_history_entry *pending;
	size_t num_pending, size_pending, num_dropped;
	struct ebb_history_run *runs;	/* as they were when it was opened */
	size_t num_runs;
};

struct history_job {
	struct ebb_job job;
	struct ebb_history *history;
	struct ebb_history_entry *entries;
	size_t num_entries;
	bool is_question;
	struct ebb_history_query query;
	json_t *rows;
	void (*done)(void *ctx, json_t *rows, int err);
	void *ctx;
	struct ebb_err err;
};

static int run_job(struct ebb_job *job)
{
	struct history_job *j = (struct history_job *)job;

	if (j->is_question)
		return ebb_history_db_select(j->history->db, &j->query, &j->rows, &j->err);
	return ebb_history_db_insert(j->history->db, j->entries, j->num_entries, &j->err);
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

static void release_job(struct ebb_job *job)
{
	struct history_job *j = (struct history_job *)job;

	/* Dropped when the daemon ends: whoever asked must still let go of the request. */
	if (j->done)
		j->done(j->ctx, NULL, -ECANCELED);
	json_decref(j->rows);
	free(j->entries);
	free(j);
}

static struct history_job *new_job(struct ebb_history *h, usec_t timeout)
{
	struct history_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->history = h;
	memcpy(j->job.lane, "history", 8);
	j->job.deadline = ebb_clock_mono_usec() + timeout;
	j->job.run = run_job;
	j->job.done = job_done;
	j->job.release = release_job;
	return j;
}

static void flush(struct ebb_history *h)
{
	struct history_job *j;

	sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
	if (h->num_pending == 0)
		return;
	j = new_job(h, FLUSH_TIMEOUT);
	if (!j)
		return;
	j->entries = h->pending;
	j->num_entries = h->num_pending;
	h->pending = NULL;
	h->num_pending = h->size_pending = 0;
	ebb_workers_submit(h->workers, &j->job);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	(void)s;
	(void)usec;
	flush(arg);
	return 0;
}

static bool reserve(struct ebb_history *h)
{
	size_t size = h->size_pending ? h->size_pending * 2 : 64;
	struct ebb_history_entry *e;

	if (h->num_pending < h->size_pending)
		return true;
	if (size > MAX_PENDING)
		return false;
	e = reallocarray(h->pending, size, sizeof(*e));
	if (!e)
		return false;
	h->pending = e;
	h->size_pending = size;
	return true;
}

void ebb_history_add(struct ebb_history *h, const struct ebb_record *record, usec_t now)
{
	struct ebb_history_entry *e;

	if (!reserve(h)) {
		if (h->num_dropped++ == 0)
			ebb_log(LOG_ERR, "history",
				EBB_KS("error", "too slow: records are dropped"));
		return;
	}
	e = &h->pending[h->num_pending++];
	e->record = *record;
	/* The record's time is monotonic: the same moment on the wall clock. */
	e->ts = ((double)ebb_clock_real_usec() - (double)(now - record->at)) / EBB_USEC_PER_SEC;
	if (h->num_pending == 1) {
		sd_event_source_set_time(h->timer, now + FLUSH_USEC);
		sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT);
	}
}

usec_t ebb_history_charged(const struct ebb_history *h, const uint8_t *uuid, uint64_t order)
{
	for (size_t i = 0; i < h->num_runs; i++)
		if (h->runs[i].order == order && memcmp(h->runs[i].uuid, uuid, 16) == 0)
			return h->runs[i].until;
	return 0;
}

void ebb_history_ask(struct ebb_history *h, const struct ebb_history_query *query,
		     void (*done)(void *ctx, json_t *rows, int err), void *ctx)
{
	struct history_job *j = new_job(h, ASK_TIMEOUT);

	if (!j) {
		done(ctx, NULL, -ENOMEM);
		return;
	}
	flush(h);
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
	if (rc == 0)
		rc = ebb_history_db_runs(h->db, &h->runs, &h->num_runs, err);
	if (rc == 0)
		rc = sd_event_add_time(event, &h->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_timer,
				       h);
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
	if (h->num_pending && ebb_history_db_insert(h->db, h->pending, h->num_pending, &err) < 0)
		ebb_log(LOG_ERR, "history", EBB_KS("error", err.text));
	sd_event_source_disable_unref(h->timer);
	ebb_history_db_close(h->db);
	free(h->pending);
	free(h->runs);
	free(h);
}
