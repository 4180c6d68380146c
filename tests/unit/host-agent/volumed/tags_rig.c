// SPDX-License-Identifier: GPL-2.0-or-later
/* Clients and a disk for the tests of volumed/tags.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/volumed/tags_rig.h"

const struct ebb_tags_config usual = { .depth = DEPTH, .overbook_percent = 100 };

struct world *world_new(uint64_t iops)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(ebb_tags_init(&w->tags, &usual), 0);
	w->service = SEC / iops;
	w->now = SEC;
	return w;
}

struct client *add(struct world *w, unsigned int outstanding, struct ebb_tags_promise p)
{
	struct client *c = &w->clients[w->num_clients++];

	p.weight = p.weight ? p.weight : 100;
	p.penalty = p.penalty ? p.penalty : 1;
	assert_int_equal(ebb_tags_volume_add(&w->tags, &c->volume, &p), 0);
	c->bytes = 4096;
	c->outstanding = outstanding;
	return c;
}

void set_policy(struct world *w, enum ebb_tags_policy policy)
{
	struct ebb_tags_config config = w->tags.config;

	config.policy = policy;
	assert_int_equal(ebb_tags_configure(&w->tags, &config, w->now), 0);
}

static bool is_on(const struct world *w, const struct client *c)
{
	const uint64_t usec = w->now / 1000;

	return !c->off_usec || usec % (c->on_usec + c->off_usec) < c->on_usec;
}

void submit(struct world *w, struct client *c, struct request *r)
{
	r->client = c;
	r->tags.flow = c->flow;
	if (is_on(w, c))
		assert_int_equal(ebb_tags_arrive(&w->tags, &c->volume, &r->tags, c->bytes,
						 w->now), 0);
	else
		w->idle[w->num_idle++] = r;
}

struct request *new_request(struct world *w)
{
	assert_true(w->num_requests < MAX_REQUESTS);
	return &w->requests[w->num_requests++];
}

void open_requests(struct world *w)
{
	for (size_t i = 0; i < w->num_clients; i++)
		for (; w->clients[i].outstanding; w->clients[i].outstanding--)
			submit(w, &w->clients[i], new_request(w));
}

struct request *next(struct world *w, uint64_t *ret_wake)
{
	struct ebb_tags_request *tags = ebb_tags_next(&w->tags, w->now, ret_wake);
	struct request *r = (struct request *)tags;

	if (!tags)
		return NULL;
	r->issued_at = w->now;
	r->client->issued++;
	r->client->due += tags->is_due;
	return r;
}

uint64_t dispatch(struct world *w)
{
	struct request *r;
	uint64_t wake;

	while ((r = next(w, &wake))) {
		if (w->disk_free_at < w->now)
			w->disk_free_at = w->now;
		w->disk_free_at += w->service * ebb_rate_units(r->tags.bytes);
		w->ends[w->num_at_disk] = w->disk_free_at;
		w->at_disk[w->num_at_disk++] = r;
		if (w->num_at_disk > w->most_at_disk)
			w->most_at_disk = w->num_at_disk;
		assert_int_equal(w->num_at_disk, w->tags.in_flight);
	}
	return wake;
}

static void complete_first(struct world *w)
{
	struct request *r = w->at_disk[0];

	w->num_at_disk--;
	memmove(w->at_disk, w->at_disk + 1, w->num_at_disk * sizeof(w->at_disk[0]));
	memmove(w->ends, w->ends + 1, w->num_at_disk * sizeof(w->ends[0]));
	ebb_tags_done(&w->tags, &r->tags);
	submit(w, r->client, r);
}

static void resume_idle(struct world *w)
{
	for (size_t i = 0; i < w->num_idle;) {
		struct request *r = w->idle[i];

		if (!is_on(w, r->client)) {
			i++;
			continue;
		}
		w->idle[i] = w->idle[--w->num_idle];
		submit(w, r->client, r);
	}
}

void run(struct world *w, uint64_t nsec)
{
	const uint64_t end = w->now + nsec;

	open_requests(w);
	while (w->now < end) {
		uint64_t next = dispatch(w);

		if (w->num_at_disk && w->ends[0] < next)
			next = w->ends[0];
		if (w->num_idle && next > w->now + MSEC / 10)
			next = w->now + MSEC / 10;
		w->now = next < end ? next : end;
		while (w->num_at_disk && w->ends[0] <= w->now)
			complete_first(w);
		resume_idle(w);
	}
}

void assert_about(uint64_t got, uint64_t want, unsigned int percent)
{
	const uint64_t off = want * percent / 100;

	if (got + off < want || got > want + off)
		fail_msg("got %lu, want %lu within %u%%", (unsigned long)got, (unsigned long)want,
			 percent);
}
