/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions for traces of every kind. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "simulate/simulate.h"

int sim_trace_add(struct sim_trace *t, const struct sim_event *event)
{
	if (t->num_events == t->max_events) {
		const size_t max = t->max_events ? 2 * t->max_events : 256;
		struct sim_event *events = reallocarray(t->events, max, sizeof(*events));

		if (!events)
			return -ENOMEM;
		t->events = events;
		t->max_events = max;
	}
	t->events[t->num_events++] = *event;
	return 0;
}

struct ranked {
	struct sim_event event;
	size_t rank;
};

static int compare(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;

	if (a->event.at != b->event.at)
		return a->event.at < b->event.at ? -1 : 1;
	return a->rank < b->rank ? -1 : 1;
}

int sim_trace_sort(struct sim_trace *t)
{
	struct ranked *all = calloc(t->num_events + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < t->num_events; i++)
		all[i] = (struct ranked){ t->events[i], i };
	qsort(all, t->num_events, sizeof(*all), compare);
	for (size_t i = 0; i < t->num_events; i++)
		t->events[i] = all[i].event;
	free(all);
	return 0;
}

void sim_trace_finish(struct sim_trace *t)
{
	free(t->vms);
	free(t->events);
	memset(t, 0, sizeof(*t));
}
