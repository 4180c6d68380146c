/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of requests. */
#include <string.h>
#include "volumed/order.h"

#define NSEC		1000000000ull
/* Spare capacity is counted in 1/2^20 of a unit, so that a high weight still moves it. */
#define SPARE_SHIFT	20

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t units_of(uint64_t bytes)
{
	return bytes ? (bytes + EBB_ORDER_UNIT - 1) / EBB_ORDER_UNIT : 1;
}

/* Time that a request takes of a rate, in nanoseconds; of two rates the slower counts. */
static uint64_t step(uint64_t iops, uint64_t rate_bytes, uint64_t bytes)
{
	const uint64_t by_iops = iops ? units_of(bytes) * NSEC / iops : 0;
	/* A request is at most 2 GiB, so this fits. */
	const uint64_t by_bytes = rate_bytes ? bytes * NSEC / rate_bytes : 0;

	return max64(by_iops, by_bytes);
}

static bool has_reserve(const struct ebb_order_volume *v)
{
	return v->promise.reserve_iops || v->promise.reserve_bytes;
}

static bool has_max(const struct ebb_order_volume *v)
{
	return v->promise.max_iops || v->promise.max_bytes;
}

void ebb_order_init(struct ebb_order *o, unsigned int depth)
{
	memset(o, 0, sizeof(*o));
	o->depth = depth;
}

void ebb_order_volume_init(struct ebb_order_volume *v, const struct ebb_order_promise *p)
{
	memset(v, 0, sizeof(*v));
	v->promise = *p;
	v->last = &v->first;
}

/* ---- heaps ---- */

static bool is_before(const struct ebb_order_entry *a, const struct ebb_order_entry *b)
{
	return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

static void put(struct ebb_order *o, enum ebb_order_heap_id id, unsigned int i,
		const struct ebb_order_entry *e)
{
	o->heaps[id].entries[i] = *e;
	e->volume->at[id] = i + 1;
}

/* Place i is free: put the entry there, or where it belongs. */
static void sift(struct ebb_order *o, enum ebb_order_heap_id id, unsigned int i,
		 const struct ebb_order_entry *e)
{
	struct ebb_order_heap *h = &o->heaps[id];
	const struct ebb_order_entry entry = *e;
	unsigned int child;

	while (i && is_before(&entry, &h->entries[(i - 1) / 2])) {
		put(o, id, i, &h->entries[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	for (; (child = 2 * i + 1) < h->num; i = child) {
		if (child + 1 < h->num && is_before(&h->entries[child + 1], &h->entries[child]))
			child++;
		if (!is_before(&h->entries[child], &entry))
			break;
		put(o, id, i, &h->entries[child]);
	}
	put(o, id, i, &entry);
}

/* Insert, or change the key. */
static void heap_set(struct ebb_order *o, enum ebb_order_heap_id id, struct ebb_order_volume *v,
		     uint64_t key, uint64_t tie)
{
	const struct ebb_order_entry e = { .key = key, .tie = tie, .volume = v };

	sift(o, id, v->at[id] ? v->at[id] - 1 : o->heaps[id].num++, &e);
}

static void heap_remove(struct ebb_order *o, enum ebb_order_heap_id id,
			struct ebb_order_volume *v)
{
	struct ebb_order_heap *h = &o->heaps[id];
	const unsigned int at = v->at[id];

	if (!at)
		return;
	v->at[id] = 0;
	h->num--;
	if (at - 1 < h->num)
		sift(o, id, at - 1, &h->entries[h->num]);
}

/* NULL: it is empty. */
static struct ebb_order_entry *heap_first(struct ebb_order *o, enum ebb_order_heap_id id)
{
	return o->heaps[id].num ? &o->heaps[id].entries[0] : NULL;
}

/* Put a volume into the heaps where it belongs now. */
static void place(struct ebb_order *o, struct ebb_order_volume *v, uint64_t now)
{
	const bool is_limited = v->queued && has_max(v) && v->limited_until > now;
	const bool is_eligible = v->queued && !is_limited;

	heap_remove(o, EBB_ORDER_HEAP_READY, v);
	if (is_limited)
		heap_set(o, EBB_ORDER_HEAP_LIMITED, v, v->limited_until, 0);
	else
		heap_remove(o, EBB_ORDER_HEAP_LIMITED, v);
	if (is_eligible)
		heap_set(o, EBB_ORDER_HEAP_SPARE, v, v->spare, 0);
	else
		heap_remove(o, EBB_ORDER_HEAP_SPARE, v);
	if (is_eligible && has_reserve(v))
		heap_set(o, EBB_ORDER_HEAP_DUE, v, v->first->due, 0);
	else
		heap_remove(o, EBB_ORDER_HEAP_DUE, v);
}

/* ---- clocks ---- */

static uint64_t oldest(const struct ebb_order *o)
{
	return o->clock > EBB_ORDER_LAG_NSEC ? o->clock - EBB_ORDER_LAG_NSEC : 0;
}

/* The clock of the reservations (rule 6), and the volumes whose maximum allows a request again. */
static void advance(struct ebb_order *o, uint64_t now)
{
	const struct ebb_order_entry *e = heap_first(o, EBB_ORDER_HEAP_DUE);
	uint64_t clock = o->clock + (now > o->clock_at ? now - o->clock_at : 0);

	if (e && o->policy == EBB_ORDER_PROPORTIONAL && clock > e->key + EBB_ORDER_LAG_NSEC)
		clock = e->key + EBB_ORDER_LAG_NSEC;
	o->clock = max64(o->clock, clock);
	o->clock_at = max64(now, o->clock_at);
	while ((e = heap_first(o, EBB_ORDER_HEAP_LIMITED)) && e->key <= now) {
		/* It was late by its own maximum, which is to hold up nobody else. */
		e->volume->first->due = max64(e->volume->first->due, oldest(o));
		place(o, e->volume, now);
	}
}

void ebb_order_meter_at(struct ebb_order_volume *v, uint64_t now)
{
	uint64_t usec;

	if ((v->queued || v->in_flight) && now > v->busy_since) {
		usec = (now - v->busy_since) / 1000;
		v->meter.busy_usec += usec;
		v->meter.promised_microunits += usec * v->promise.reserve_iops;
		/* What is less than a microsecond counts the next time. */
		v->busy_since += usec * 1000;
	} else {
		v->busy_since = now;
	}
}

/*
 * When the first request of a volume is due that had none: at once.  While others are late it is as
 * late as the latest of them, or it would wait until they have caught up, and a volume whose client
 * pauses for a moment would lose what it is behind.
 */
static uint64_t due_of(struct ebb_order *o, const struct ebb_order_volume *v)
{
	const struct ebb_order_entry *e = heap_first(o, EBB_ORDER_HEAP_DUE);

	if (!has_reserve(v))
		return EBB_ORDER_NEVER;
	return max64(v->reserved_until, e && e->key < o->clock ? e->key : o->clock);
}

void ebb_order_set_promise(struct ebb_order *o, struct ebb_order_volume *v,
			   const struct ebb_order_promise *p, uint64_t now)
{
	advance(o, now);
	ebb_order_meter_at(v, now);
	v->promise = *p;
	/* Steps of the old promise may be far longer than those of the new one. */
	v->reserved_until = o->clock;
	v->limited_until = now;
	if (v->first)
		v->first->due = due_of(o, v);
	place(o, v, now);
}

void ebb_order_set_policy(struct ebb_order *o, enum ebb_order_policy policy)
{
	const struct ebb_order_entry *e;

	o->policy = policy;
	while ((e = heap_first(o, EBB_ORDER_HEAP_READY))) {
		struct ebb_order_volume *v = e->volume;

		heap_remove(o, EBB_ORDER_HEAP_READY, v);
		v->first->due = max64(v->first->due, oldest(o));
		heap_set(o, EBB_ORDER_HEAP_DUE, v, v->first->due, 0);
	}
}

/* ---- coming and going ---- */

void ebb_order_arrive(struct ebb_order *o, struct ebb_order_volume *v,
		      struct ebb_order_request *r, uint64_t bytes, uint64_t now)
{
	advance(o, now);
	ebb_order_meter_at(v, now);
	r->next = NULL;
	r->volume = v;
	r->bytes = bytes;
	r->arrived = now;
	r->due = EBB_ORDER_NEVER;
	*v->last = r;
	v->last = &r->next;
	if (v->queued++ == 0) {
		r->due = due_of(o, v);
		/* No credit for the time in which it wanted nothing. */
		v->spare = max64(v->spare, o->spare);
		place(o, v, now);
	}
	v->meter.arrived++;
	v->meter.arrived_units += units_of(bytes);
}

static void meter_delay(struct ebb_order_volume *v, const struct ebb_order_request *r,
			uint64_t clock, uint64_t now)
{
	uint64_t delay = clock > r->due ? clock - r->due : 0;
	unsigned int class = 0;

	/* Nothing is promised before it is asked for. */
	if (delay > now - r->arrived)
		delay = now - r->arrived;

	for (uint64_t usec = delay / 1000; usec && class < EBB_ORDER_DELAYS - 1; usec >>= 1)
		class++;
	v->meter.delays[class]++;
	if (!delay)
		return;
	v->meter.late_units += units_of(r->bytes);
	v->meter.late_nsec += delay;
	v->meter.late_max_nsec = max64(v->meter.late_max_nsec, delay);
}

/* The first request of a volume goes to the disk. */
static struct ebb_order_request *issue(struct ebb_order *o, struct ebb_order_volume *v,
				       bool is_due, uint64_t now)
{
	struct ebb_order_request *r = v->first;
	const struct ebb_order_promise *p = &v->promise;
	const uint64_t units = units_of(r->bytes);

	ebb_order_meter_at(v, now);
	v->first = r->next;
	if (!v->first)
		v->last = &v->first;
	v->queued--;
	v->in_flight++;
	o->in_flight++;
	if (is_due) {
		meter_delay(v, r, o->clock, now);
		v->meter.due_units += units;
		v->reserved_until = max64(r->due, oldest(o)) +
				    step(p->reserve_iops, p->reserve_bytes, r->bytes);
	} else {
		o->spare = v->spare;
		v->spare += (units << SPARE_SHIFT) / p->weight;
	}
	if (has_max(v))
		v->limited_until =
			max64(v->limited_until,
			      now > EBB_ORDER_BURST_NSEC ? now - EBB_ORDER_BURST_NSEC : 0) +
			step(p->max_iops, p->max_bytes, r->bytes);
	/* The next one is as late as this one was: a volume that always has work loses nothing. */
	if (v->first)
		v->first->due = has_reserve(v) ? v->reserved_until : EBB_ORDER_NEVER;
	place(o, v, now);
	v->meter.issued++;
	v->meter.issued_units += units;
	v->meter.waited_nsec += now - r->arrived;
	return r;
}

void ebb_order_complete(struct ebb_order *o, struct ebb_order_volume *v, uint64_t now)
{
	ebb_order_meter_at(v, now);
	v->in_flight--;
	o->in_flight--;
	v->meter.completed++;
}

struct ebb_order_request *ebb_order_force(struct ebb_order *o, struct ebb_order_volume *v,
					  uint64_t now)
{
	advance(o, now);
	return v->first ? issue(o, v, v->first->due <= o->clock, now) : NULL;
}

/* ---- the decision ---- */

/* The volume whose request is due and goes first; NULL: none is due. */
static struct ebb_order_volume *first_due(struct ebb_order *o)
{
	const struct ebb_order_entry *e;

	while ((e = heap_first(o, EBB_ORDER_HEAP_DUE)) && e->key <= o->clock) {
		struct ebb_order_volume *v = e->volume;

		if (o->policy == EBB_ORDER_PROPORTIONAL)
			return v;
		heap_remove(o, EBB_ORDER_HEAP_DUE, v);
		heap_set(o, EBB_ORDER_HEAP_READY, v, UINT64_MAX - v->promise.penalty,
			 v->first->due);
	}
	e = heap_first(o, EBB_ORDER_HEAP_READY);
	return e ? e->volume : NULL;
}

struct ebb_order_request *ebb_order_next(struct ebb_order *o, uint64_t now, uint64_t *ret_wake)
{
	const struct ebb_order_entry *e;
	struct ebb_order_volume *v;

	*ret_wake = EBB_ORDER_NEVER;
	if (o->in_flight >= o->depth)
		return NULL;
	advance(o, now);
	v = first_due(o);
	if (v)
		return issue(o, v, true, now);
	e = heap_first(o, EBB_ORDER_HEAP_SPARE);
	if (e)
		return issue(o, e->volume, false, now);
	e = heap_first(o, EBB_ORDER_HEAP_LIMITED);
	if (e)
		*ret_wake = e->key;
	return NULL;
}

struct ebb_order_volume *ebb_order_waiting(const struct ebb_order *o)
{
	return o->heaps[EBB_ORDER_HEAP_LIMITED].entries[0].volume;
}
