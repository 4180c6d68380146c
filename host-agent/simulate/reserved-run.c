/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A disk, its tenants and the server between them; see reserved.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/reserved.h"
#include "util/random.h"
#include "volumed/flow.h"

#define SEC		EBB_RATE_NSEC
#define RESPONSES	20000u		/* classes of 0.1 ms; the last has all above */
#define KEPT_PERCENT	97u
#define SHAPE		4u		/* of the gamma distribution: exponentials summed up */

struct tenant;

struct request {
	struct ebb_tags_request tags;
	struct ebb_meter_request meter;
	struct tenant *tenant;
	struct request *next;		/* free, in the server's queue, or inside the disk */
	uint64_t bytes;
};

struct queue {
	struct request *first, **last;
};

struct tenant {
	const struct sim_reserved_tenant *load;
	struct ebb_tags_promise promise;
	struct ebb_tags_volume volume;
	struct ebb_meter_volume meter;
	struct ebb_flow flow;
	struct request *requests, *free;
	struct queue queue;		/* without tags */
	uint64_t limited_until;
	uint64_t offset;
	double reserved;		/* units, so far */
	/* In the second that runs. */
	uint32_t waiting;
	uint64_t waiting_since, waited_nsec;
	double due;			/* units that the time in which it waited was worth */
	uint64_t got;
	uint32_t *responses;
};

enum event_kind { EVENT_SEND, EVENT_OPEN, EVENT_DONE, EVENT_WAKE, EVENT_CHANGE, EVENT_SECOND };

struct event {
	uint64_t at, order;		/* order: of those at the same time */
	enum event_kind kind;
	void *of;
};

struct run {
	const struct sim_reserved_options *o;
	struct sim_reserved_result *ret;
	struct ebb_tags *tags;
	struct ebb_meter meter;
	struct tenant *tenants;
	uint64_t seed, now, order, wake;
	struct event *events;		/* a heap */
	uint32_t num_events, max_events;
	uint32_t in_flight;		/* at the disk */
	uint32_t served;		/* of these, by the disk just now */
	struct queue disk;
};

static double exponential(struct run *r)
{
	return -log(ebb_random_unit(&r->seed));
}

/* ---- queues ---- */

static void queue_init(struct queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static void queue_put(struct queue *q, struct request *request)
{
	request->next = NULL;
	*q->last = request;
	q->last = &request->next;
}

static struct request *queue_take(struct queue *q)
{
	struct request *request = q->first;

	q->first = request->next;
	if (!q->first)
		q->last = &q->first;
	return request;
}

/* ---- events ---- */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void event_add(struct run *r, uint64_t at, enum event_kind kind, void *of)
{
	const struct event e = { .at = at, .order = r->order++, .kind = kind, .of = of };
	uint32_t i = r->num_events++;

	for (; i && is_before(&e, &r->events[(i - 1) / 2]); i = (i - 1) / 2)
		r->events[i] = r->events[(i - 1) / 2];
	r->events[i] = e;
}

static struct event event_take(struct run *r)
{
	const struct event first = r->events[0], e = r->events[--r->num_events];
	uint32_t i = 0, child;

	for (; (child = 2 * i + 1) < r->num_events; i = child) {
		if (child + 1 < r->num_events &&
		    is_before(&r->events[child + 1], &r->events[child]))
			child++;
		if (!is_before(&r->events[child], &e))
			break;
		r->events[i] = r->events[child];
	}
	r->events[i] = e;
	return first;
}

static void trace(struct run *r, enum sim_reserved_what what, const struct tenant *t,
		  const struct request *request)
{
	const struct sim_reserved_event e = {
		.what = what, .now = r->now, .tenant = (uint32_t)(t - r->tenants),
		.request = request ? (uint32_t)(request - t->requests) : 0,
		.bytes = request ? request->bytes : 0,
	};

	if (r->o->trace)
		r->o->trace(r->o->ctx, &e);
}

/* ---- what a tenant got, reckoned without the meter ---- */

static uint64_t unit_time(const struct tenant *t)
{
	return ebb_rate_step(t->promise.reserve_iops, t->promise.reserve_bytes, EBB_RATE_UNIT);
}

static void count_waiting(struct run *r, struct tenant *t)
{
	if (t->waiting) {
		t->waited_nsec += r->now - t->waiting_since;
		if (unit_time(t))
			t->due += (double)(r->now - t->waiting_since) / (double)unit_time(t);
	}
	t->waiting_since = r->now;
}

static void end_second(struct run *r)
{
	for (uint32_t i = 0; i < r->o->num_tenants; i++) {
		struct tenant *t = &r->tenants[i];

		count_waiting(r, t);
		if (t->waited_nsec) {
			r->ret[i].intervals++;
			r->ret[i].kept += (double)t->got >= floor(t->due * KEPT_PERCENT / 100);
		}
		if (unit_time(t))
			t->reserved += (double)SEC / (double)unit_time(t);
		r->ret[i].mean += (double)t->got;
		t->waited_nsec = t->got = 0;
		t->due = 0;
	}
	event_add(r, r->now + SEC, EVENT_SECOND, NULL);
}

/* ---- the disk ---- */

static void serve(struct run *r, struct request *request)
{
	const double pages = (double)request->bytes / EBB_RATE_UNIT;
	const double mean = r->o->parallel / r->o->disk_iops * SEC * (pages > 1 ? pages : 1);
	double time = 0;

	for (uint32_t i = 0; i < SHAPE; i++)
		time += exponential(r);
	r->served++;
	event_add(r, r->now + (uint64_t)(mean * time / SHAPE) + 1, EVENT_DONE, request);
}

static void issue(struct run *r, struct request *request)
{
	struct tenant *t = request->tenant;

	trace(r, SIM_RESERVED_ISSUED, t, request);
	ebb_meter_issue(&r->meter, &t->meter, &request->meter, r->now);
	count_waiting(r, t);
	t->waiting--;
	t->got += ebb_rate_units(request->bytes);
	r->in_flight++;
	if (r->served < r->o->parallel)
		serve(r, request);
	else
		queue_put(&r->disk, request);
}

/* ---- the server ---- */

static uint64_t limit_step(const struct tenant *t, const struct request *request)
{
	return ebb_rate_step(t->load->limit_iops, 0, request->bytes);
}

/* Without tags: the request that came first, of those that no maximum holds back. */
static struct request *next_in_order(struct run *r, uint64_t *ret_wake)
{
	struct tenant *first = NULL;

	*ret_wake = EBB_TAGS_NEVER;
	for (uint32_t i = 0; r->in_flight < r->o->depth && i < r->o->num_tenants; i++) {
		struct tenant *t = &r->tenants[i];

		if (!t->queue.first)
			continue;
		if (t->limited_until > r->now)
			*ret_wake = t->limited_until < *ret_wake ? t->limited_until : *ret_wake;
		else if (!first ||
			 t->queue.first->meter.arrived < first->queue.first->meter.arrived)
			first = t;
	}
	if (!first)
		return NULL;
	if (r->o->policy == SIM_RESERVED_MAX_ONLY && first->load->limit_iops) {
		const uint64_t since = r->now > EBB_TAGS_BURST_NSEC ?
				       r->now - EBB_TAGS_BURST_NSEC : 0;

		if (first->limited_until < since)
			first->limited_until = since;
		first->limited_until += limit_step(first, first->queue.first);
	}
	return queue_take(&first->queue);
}

static struct request *next(struct run *r, uint64_t *ret_wake)
{
	struct ebb_tags_request *tags;

	if (r->o->policy != SIM_RESERVED_TAGS)
		return next_in_order(r, ret_wake);
	tags = ebb_tags_next(r->tags, r->now, ret_wake);
	return tags ? (struct request *)((char *)tags - offsetof(struct request, tags)) : NULL;
}

static void dispatch(struct run *r)
{
	struct request *request;
	uint64_t wake;

	while ((request = next(r, &wake)))
		issue(r, request);
	if (wake != EBB_TAGS_NEVER && (r->wake <= r->now || wake < r->wake)) {
		r->wake = wake;
		event_add(r, wake, EVENT_WAKE, NULL);
	}
}

static int arrive(struct run *r, struct tenant *t)
{
	struct request *request = t->free;
	uint64_t offset = t->offset;

	/* An open load beyond all bounds: the client cannot send more. */
	if (!request)
		return 0;
	t->free = request->next;
	request->bytes = t->load->bytes;
	if (!t->load->is_scan)
		offset = ebb_random(&r->seed) >> 8 << 4;
	t->offset += request->bytes;
	count_waiting(r, t);
	t->waiting++;
	trace(r, SIM_RESERVED_ARRIVED, t, request);
	ebb_meter_arrive(&r->meter, &t->meter, &request->meter, request->bytes, r->now);
	if (r->o->policy != SIM_RESERVED_TAGS) {
		queue_put(&t->queue, request);
		return 0;
	}
	request->tags.flow = ebb_flow_of(&t->flow, offset, request->bytes);
	return ebb_tags_arrive(r->tags, &t->volume, &request->tags, request->bytes, r->now);
}

static void complete(struct run *r, struct request *request)
{
	struct tenant *t = request->tenant;
	const uint64_t response = (r->now - request->meter.arrived) / 100000;

	trace(r, SIM_RESERVED_COMPLETED, t, request);
	ebb_meter_complete(&r->meter, &t->meter, r->now);
	if (r->o->policy == SIM_RESERVED_TAGS)
		ebb_tags_done(r->tags, &request->tags);
	t->responses[response < RESPONSES ? response : RESPONSES - 1]++;
	r->in_flight--;
	r->served--;
	if (r->disk.first)
		serve(r, queue_take(&r->disk));
	request->next = t->free;
	t->free = request;
}

/* ---- loads ---- */

/* When the tenant works next: now, or at the end of its pause. */
static uint64_t when_on(const struct run *r, const struct tenant *t)
{
	const uint64_t turn = t->load->on_nsec + t->load->off_nsec;
	const uint64_t at = r->now % (turn ? turn : 1);

	if (r->now < t->load->start_nsec)
		return t->load->start_nsec;
	return t->load->off_nsec && at >= t->load->on_nsec ? r->now - at + turn : r->now;
}

static void send_later(struct run *r, struct tenant *t)
{
	const double pause = t->load->think_nsec ?
			     exponential(r) * (double)t->load->think_nsec : 0;

	event_add(r, r->now + (uint64_t)pause, EVENT_SEND, t);
}

static int send(struct run *r, struct tenant *t)
{
	const uint64_t on = when_on(r, t);

	if (on == r->now)
		return arrive(r, t);
	event_add(r, on, EVENT_SEND, t);
	return 0;
}

static int send_open(struct run *r, struct tenant *t)
{
	const uint64_t on = when_on(r, t);

	if (on > r->now) {
		event_add(r, on, EVENT_OPEN, t);
		return 0;
	}
	event_add(r, r->now + 1 + (uint64_t)(exponential(r) / t->load->rate * SEC), EVENT_OPEN, t);
	return arrive(r, t);
}

static int change(struct run *r, const struct sim_reserved_change *c)
{
	struct tenant *t = &r->tenants[c->tenant];
	int rc = 0;

	count_waiting(r, t);
	t->promise = c->promise;
	trace(r, SIM_RESERVED_CHANGED, t, NULL);
	if (r->o->policy == SIM_RESERVED_TAGS)
		rc = ebb_tags_volume_set(r->tags, &t->volume, &c->promise, r->now);
	if (rc == 0)
		rc = ebb_meter_promise(&r->meter, &t->meter, c->promise.reserve_iops,
				       c->promise.reserve_bytes, r->now);
	return rc;
}

/* ---- the whole ---- */

static int handle(struct run *r, const struct event *e)
{
	struct request *request = e->of;
	struct tenant *t;
	int rc = 0;

	switch (e->kind) {
	case EVENT_SEND:
		rc = send(r, e->of);
		break;
	case EVENT_OPEN:
		rc = send_open(r, e->of);
		break;
	case EVENT_DONE:
		t = request->tenant;
		complete(r, request);
		if (t->load->rate <= 0)
			send_later(r, t);
		break;
	case EVENT_CHANGE:
		rc = change(r, e->of);
		break;
	case EVENT_SECOND:
		end_second(r);
		return 0;
	case EVENT_WAKE:
		break;
	}
	dispatch(r);
	return rc;
}

static bool is_sane(const struct sim_reserved_options *o)
{
	bool is_sane = o->num_tenants >= 1 && o->num_tenants <= SIM_RESERVED_TENANTS &&
		       o->disk_iops > 0 && o->parallel >= 1 && o->parallel <= EBB_TAGS_MAX_DEPTH &&
		       o->depth >= 1 && o->depth <= EBB_TAGS_MAX_DEPTH && o->seconds >= 1 &&
		       (unsigned int)o->policy < SIM_RESERVED_POLICIES;

	for (uint32_t i = 0; is_sane && i < o->num_tenants; i++) {
		const struct sim_reserved_tenant *t = &o->tenants[i];

		is_sane = t->outstanding <= SIM_RESERVED_REQUESTS && t->rate >= 0 &&
			  (t->outstanding > 0) != (t->rate > 0) &&
			  t->bytes <= EBB_RATE_MAX_REQUEST && !(t->off_nsec && !t->on_nsec);
	}
	for (uint32_t i = 0; is_sane && i < o->num_changes; i++)
		is_sane = o->changes[i].tenant < o->num_tenants;
	return is_sane;
}

static int tenant_init(struct run *r, uint32_t i)
{
	struct tenant *t = &r->tenants[i];
	uint32_t num;
	int rc;

	t->load = &r->o->tenants[i];
	t->promise = t->load->promise;
	queue_init(&t->queue);
	num = t->load->outstanding ? t->load->outstanding : SIM_RESERVED_REQUESTS;
	t->requests = calloc(num, sizeof(*t->requests));
	t->responses = calloc(RESPONSES, sizeof(*t->responses));
	if (!t->requests || !t->responses)
		return -ENOMEM;
	for (uint32_t k = 0; k < num; k++) {
		t->requests[k].tenant = t;
		t->requests[k].next = t->free;
		t->free = &t->requests[k];
	}
	rc = ebb_tags_volume_add(r->tags, &t->volume, &t->promise);
	if (rc == 0)
		rc = ebb_meter_volume_add(&r->meter, &t->meter, i, t->promise.reserve_iops,
					  t->promise.reserve_bytes, 0);
	for (uint32_t k = 0; k < t->load->outstanding; k++)
		event_add(r, 0, EVENT_SEND, t);
	if (t->load->rate > 0)
		event_add(r, 0, EVENT_OPEN, t);
	return rc;
}

static int run_init(struct run *r)
{
	const struct sim_reserved_options *o = r->o;
	const struct ebb_tags_config config = {
		.depth = o->depth, .policy = o->overbooked, .overbook_percent = 100,
	};
	int rc;

	r->seed = o->seed;
	queue_init(&r->disk);
	/* One for each request, open load, change, wake and second; wakes are few at a time. */
	r->max_events = 1024 + o->num_tenants + o->num_changes;
	for (uint32_t i = 0; i < o->num_tenants; i++)
		r->max_events += o->tenants[i].rate > 0 ? SIM_RESERVED_REQUESTS :
							  o->tenants[i].outstanding;
	r->events = calloc(r->max_events, sizeof(*r->events));
	r->tenants = calloc(o->num_tenants, sizeof(*r->tenants));
	r->tags = malloc(sizeof(*r->tags));
	if (!r->events || !r->tenants || !r->tags)
		return -ENOMEM;
	rc = ebb_tags_init(r->tags, &config);
	if (rc == 0)
		rc = ebb_meter_init(&r->meter, EBB_METER_INTERVAL_NSEC, 0);
	ebb_meter_capacity(&r->meter, (uint64_t)o->disk_iops);
	for (uint32_t i = 0; rc == 0 && i < o->num_tenants; i++)
		rc = tenant_init(r, i);
	for (uint32_t i = 0; i < o->num_changes; i++)
		event_add(r, o->changes[i].at_nsec, EVENT_CHANGE, (void *)&o->changes[i]);
	event_add(r, SEC, EVENT_SECOND, NULL);
	return rc;
}

static double percentile_ms(const uint32_t *responses, double part)
{
	uint64_t all = 0, seen = 0;

	for (uint32_t i = 0; i < RESPONSES; i++)
		all += responses[i];
	for (uint32_t i = 0; i < RESPONSES; i++) {
		seen += responses[i];
		if (seen && (double)seen >= part * (double)all)
			return (i + 1) / 10.0;
	}
	return 0;
}

static void tell(struct run *r)
{
	for (uint32_t i = 0; i < r->o->num_tenants; i++) {
		struct sim_reserved_result *ret = &r->ret[i];
		struct tenant *t = &r->tenants[i];

		ret->mean /= r->o->seconds;
		ret->reserved = t->reserved / r->o->seconds;
		ret->meter = *ebb_meter_read(&r->meter, &t->meter, r->now);
		ret->p50_ms = (double)ebb_meter_percentile(ret->meter.delays, 500) / 1e6;
		ret->p99_ms = (double)ebb_meter_percentile(ret->meter.delays, 990) / 1e6;
		ret->response_p99_ms = percentile_ms(t->responses, 0.99);
	}
}

int sim_reserved_run(const struct sim_reserved_options *o, struct sim_reserved_result *ret)
{
	struct run r = { .o = o, .ret = ret };
	int rc;

	if (!is_sane(o))
		return -EINVAL;
	memset(ret, 0, o->num_tenants * sizeof(*ret));
	rc = run_init(&r);
	while (rc == 0 && r.events[0].at <= o->seconds * SEC) {
		const struct event e = event_take(&r);

		r.now = e.at;
		rc = handle(&r, &e);
	}
	r.now = o->seconds * SEC;
	if (rc == 0)
		tell(&r);
	for (uint32_t i = 0; r.tenants && i < o->num_tenants; i++) {
		free(r.tenants[i].requests);
		free(r.tenants[i].responses);
	}
	free(r.tenants);
	free(r.events);
	free(r.tags);
	return rc;
}
