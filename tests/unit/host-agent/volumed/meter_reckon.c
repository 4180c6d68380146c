// SPDX-License-Identifier: GPL-2.0-or-later
/* An independent reckoning of violations, from a trace. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/host-agent/volumed/meter_reckon.h"

#define UNIT	65536u

static uint64_t units(const struct reckon_request *r)
{
	return r->bytes <= UNIT ? 1 : (r->bytes + UNIT - 1) / UNIT;
}

static uint64_t request_nsec(const struct reckon_volume *v, const struct reckon_request *r)
{
	return units(r) * 1000000000u / v->iops;
}

static uint64_t unit_nsec(const struct reckon_volume *v)
{
	return 1000000000u / v->iops;
}

/* Time in which at least one request was pending, or waited. */
static uint64_t time_of(const struct reckon_volume *v, bool is_pending)
{
	uint64_t sum = 0, until = 0;

	for (size_t i = 0; i < v->num; i++) {
		const struct reckon_request *r = &v->requests[i];
		uint64_t from = r->arrived, to = is_pending ? r->completed : r->issued;

		if (to > v->end)
			to = v->end;
		/* In the order of arrival: what is before `until` is counted. */
		if (from < until)
			from = until;
		if (to > from) {
			sum += to - from;
			until = to;
		}
	}
	return sum;
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static int compare(const void *a, const void *b)
{
	const struct reckon_request *x = *(struct reckon_request *const *)a;
	const struct reckon_request *y = *(struct reckon_request *const *)b;

	return (x->issued_nth > y->issued_nth) - (x->issued_nth < y->issued_nth);
}

static int compare_delays(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct walk {
	const struct reckon_volume *v;
	const struct reckon_request **issues;	/* in their order; those that never were last */
	bool *is_issued;
	size_t oldest;			/* all before it are issued */
	uint64_t slot, deadline;
	uint64_t interval_end;
	uint64_t missed, early;		/* in this interval */
	struct reckon_outcome *ret;
};

/* Each unit that could have been issued by now, one by one. */
static void miss(struct walk *w, uint64_t now)
{
	for (; w->slot + unit_nsec(w->v) <= now; w->slot += unit_nsec(w->v)) {
		w->missed++;
		w->ret->missed++;
	}
}

/* What waits, with the deadlines that it would have. */
static void count_overdue(struct walk *w)
{
	const struct reckon_volume *v = w->v;
	uint64_t deadline = w->deadline;

	for (size_t i = w->oldest; i < v->num && v->requests[i].arrived < w->interval_end; i++) {
		const struct reckon_request *r = &v->requests[i];

		if (w->is_issued[i])
			continue;
		if (deadline < r->arrived)
			deadline = r->arrived;
		if (deadline >= w->interval_end - v->interval && deadline < w->interval_end)
			w->ret->overdue += units(r);
		deadline += request_nsec(v, r);
	}
}

static void end_interval(struct walk *w, bool is_waiting)
{
	if (is_waiting)
		miss(w, w->interval_end);
	count_overdue(w);
	if (w->missed > w->early) {
		w->ret->violated += w->missed - w->early;
		w->ret->violated_intervals++;
	}
	w->missed = w->early = 0;
	w->interval_end += w->v->interval;
}

static void issue(struct walk *w, const struct reckon_request *r)
{
	const uint64_t first = w->v->requests[w->oldest].arrived, now = r->issued;
	const uint64_t due = w->deadline > first ? w->deadline : first;

	w->ret->waited_nsec += now - r->arrived;
	if (due <= now) {
		const uint64_t delay = now - (due > r->arrived ? due : r->arrived);

		w->deadline = due + request_nsec(w->v, r);
		w->ret->delays[w->ret->due_requests++] = delay;
		w->ret->late_nsec += delay;
		w->ret->late_units += delay ? units(r) : 0;
		if (delay > w->ret->late_max_nsec)
			w->ret->late_max_nsec = delay;
	}
	if (w->slot <= now) {
		w->slot += request_nsec(w->v, r);
		w->ret->charged += units(r);
	} else {
		w->early += units(r);
		w->ret->early += units(r);
	}
	w->is_issued[r - w->v->requests] = true;
	while (w->oldest < w->v->num && w->is_issued[w->oldest])
		w->oldest++;
}

/* A time with requests that wait: from the arrival of `first` to the issue at until_nth. */
static void walk_spell(struct walk *w, size_t first, uint64_t until_nth, size_t *next)
{
	const uint64_t from = w->v->requests[first].arrived;
	uint64_t now = from;

	while (w->interval_end <= from)
		end_interval(w, false);
	if (w->slot < from)
		w->slot = from;
	for (; *next < w->v->num && w->issues[*next]->issued_nth <= until_nth &&
	       w->issues[*next]->issued != RECKON_NEVER; (*next)++) {
		now = w->issues[*next]->issued;
		while (w->interval_end <= now)
			end_interval(w, true);
		issue(w, w->issues[*next]);
	}
	if (until_nth != RECKON_NEVER)
		miss(w, now);
	else
		while (w->interval_end <= w->v->end)
			end_interval(w, true);
}

void reckon(const struct reckon_volume *v, struct reckon_outcome *ret)
{
	struct walk w = { .v = v, .interval_end = v->interval, .ret = ret };
	size_t next = 0;

	memset(ret, 0, sizeof(*ret));
	w.issues = must(calloc(v->num + 1, sizeof(*w.issues)));
	w.is_issued = must(calloc(v->num + 1, sizeof(*w.is_issued)));
	ret->delays = must(calloc(v->num + 1, sizeof(*ret->delays)));
	for (size_t i = 0; i < v->num; i++)
		w.issues[i] = &v->requests[i];
	qsort(w.issues, v->num, sizeof(*w.issues), compare);
	for (size_t i = 0; i < v->num;) {
		const size_t first = i;
		uint64_t until = v->requests[i].issued_nth;

		for (i++; i < v->num && v->requests[i].arrived_nth < until; i++)
			if (v->requests[i].issued_nth > until)
				until = v->requests[i].issued_nth;
		walk_spell(&w, first, until, &next);
	}
	while (w.interval_end <= v->end)
		end_interval(&w, false);
	ret->waiting_nsec = time_of(v, false);
	ret->pending_nsec = time_of(v, true);
	qsort(ret->delays, ret->due_requests, sizeof(*ret->delays), compare_delays);
	free(w.issues);
	free(w.is_issued);
}
