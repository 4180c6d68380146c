// SPDX-License-Identifier: GPL-2.0-or-later
/* Chance and the queue of what is to happen in the simulated world. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake.h"
#include "util/random.h"

uint64_t fake_chance(struct ebb_fake *f, uint64_t below)
{
	const uint64_t x = ebb_random(&f->chance);

	return below ? x % below : 0;
}

bool fake_permille(struct ebb_fake *f, uint32_t permille)
{
	return f->cfg.is_even ? permille >= 500 : fake_chance(f, 1000) < permille;
}

usec_t fake_between(struct ebb_fake *f, const usec_t *range)
{
	if (f->cfg.is_even)
		return range[0] + (range[1] - range[0]) / 2;
	return range[0] + fake_chance(f, range[1] - range[0] + 1);
}

static bool is_before(const struct fake_event *a, const struct fake_event *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void swap(struct fake_event *a, struct fake_event *b)
{
	const struct fake_event t = *a;

	*a = *b;
	*b = t;
}

static size_t sift_up(struct ebb_fake *f, size_t i)
{
	for (; i > 0 && is_before(&f->events[i], &f->events[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&f->events[i], &f->events[(i - 1) / 2]);
	return i;
}

static void sift_down(struct ebb_fake *f, size_t i)
{
	for (;;) {
		size_t first = i;

		for (size_t c = 2 * i + 1; c <= 2 * i + 2 && c < f->num_events; c++)
			if (is_before(&f->events[c], &f->events[first]))
				first = c;
		if (first == i)
			return;
		swap(&f->events[i], &f->events[first]);
		i = first;
	}
}

struct fake_event *fake_event_add(struct ebb_fake *f, usec_t at, enum fake_event_type type,
				  struct fake_vm *vm)
{
	if (f->num_events == f->max_events) {
		const size_t max = f->max_events ? 2 * f->max_events : 64;
		struct fake_event *events = realloc(f->events, max * sizeof(*events));

		if (!events)
			return NULL;
		f->events = events;
		f->max_events = max;
	}
	f->events[f->num_events] = (struct fake_event){
		.at = at, .seq = f->next_seq++, .type = type, .vm = vm, .run = vm->run,
		.connection = vm->connection,
	};
	return &f->events[sift_up(f, f->num_events++)];
}

static void take(struct ebb_fake *f, size_t i, struct fake_event *ret_event)
{
	*ret_event = f->events[i];
	f->events[i] = f->events[--f->num_events];
	if (i < f->num_events) {
		sift_down(f, i);
		sift_up(f, i);
	}
}

void fake_event_finish(struct fake_event *e)
{
	free(e->hello);
	free(e->vom);
	e->hello = NULL;
	e->vom = NULL;
}

bool fake_event_pop(struct ebb_fake *f, usec_t now, struct fake_event *ret_event)
{
	if (f->num_events == 0 || f->events[0].at > now)
		return false;
	take(f, 0, ret_event);
	return true;
}

bool fake_event_take(struct ebb_fake *f, enum fake_event_type type, struct fake_event *ret_event)
{
	size_t first = f->num_events;

	for (size_t i = 0; i < f->num_events; i++)
		if (f->events[i].type == type &&
		    (first == f->num_events || is_before(&f->events[i], &f->events[first])))
			first = i;
	if (first == f->num_events)
		return false;
	take(f, first, ret_event);
	return true;
}

void fake_event_forget(struct ebb_fake *f, const struct fake_vm *vm)
{
	struct fake_event gone;

	for (size_t i = 0; i < f->num_events;) {
		if (f->events[i].vm == vm) {
			take(f, i, &gone);
			fake_event_finish(&gone);
			i = 0;
		} else {
			i++;
		}
	}
}

void fake_violate(struct ebb_fake *f, const struct fake_vm *vm, const char *format, ...)
{
	va_list args;
	int n;

	if (f->violation[0])
		return;
	n = snprintf(f->violation, sizeof(f->violation), "%s: ", vm->name);
	va_start(args, format);
	vsnprintf(f->violation + n, sizeof(f->violation) - (size_t)n, format, args);
	va_end(args);
}
