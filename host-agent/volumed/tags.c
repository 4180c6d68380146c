/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of requests; tags.h has the rules. */
#include <errno.h>
#include <string.h>
#include "volumed/tags.h"

/* Spare capacity is counted in 1/2^20 of a unit, so that a high weight still moves it. */
#define SPARE_SHIFT	20

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* a - b, or 0. */
static uint64_t back(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t reserve_step(const struct ebb_tags_promise *p, uint64_t bytes)
{
	return ebb_rate_step(p->reserve_iops, p->reserve_bytes, bytes);
}

static uint64_t max_step(const struct ebb_tags_promise *p, uint64_t bytes)
{
	return ebb_rate_step(p->max_iops, p->max_bytes, bytes);
}

static bool has_reserve(const struct ebb_tags_volume *v)
{
	return v->promise.reserve_iops || v->promise.reserve_bytes;
}

static bool has_max(const struct ebb_tags_volume *v)
{
	return v->promise.max_iops || v->promise.max_bytes;
}

/* ---- maxima ---- */

/* The limit that counts for a flow (rule 4). */
static uint64_t *limit_of(struct ebb_tags_volume *v, unsigned int flow)
{
	return flow == EBB_TAGS_FLUSHES ? &v->flushes_limited_until : &v->limited_until;
}

/* When the maximum lets the first of the requests go that wait. */
static uint64_t limited_until(const struct ebb_tags_volume *v)
{
	uint64_t until = EBB_TAGS_NEVER;

	if (v->waiting > v->flushes)
		until = v->limited_until;
	if (v->flushes)
		until = min64(until, v->flushes_limited_until);
	return until;
}

/* ---- heaps ---- */

/* Of volumes with the same key that with the earlier slot is first. */
static bool is_before(const struct ebb_tags_entry *a, const struct ebb_tags_entry *b)
{
	return a->key != b->key ? a->key < b->key : a->volume->slot < b->volume->slot;
}

static void put(struct ebb_tags *t, enum ebb_tags_heap_id id, unsigned int i,
		struct ebb_tags_entry e)
{
	t->heaps[id].entries[i] = e;
	e.volume->at[id] = i + 1;
}

/* Place i is free: the entry belongs there, or further up or down. */
static void sift(struct ebb_tags *t, enum ebb_tags_heap_id id, unsigned int i,
		 struct ebb_tags_entry e)
{
	struct ebb_tags_heap *h = &t->heaps[id];
	unsigned int child;

	for (; i && is_before(&e, &h->entries[(i - 1) / 2]); i = (i - 1) / 2)
		put(t, id, i, h->entries[(i - 1) / 2]);
	for (; (child = 2 * i + 1) < h->num; i = child) {
		if (child + 1 < h->num && is_before(&h->entries[child + 1], &h->entries[child]))
			child++;
		if (!is_before(&h->entries[child], &e))
			break;
		put(t, id, i, h->entries[child]);
	}
	put(t, id, i, e);
}

static void heap_remove(struct ebb_tags *t, enum ebb_tags_heap_id id, struct ebb_tags_volume *v)
{
	struct ebb_tags_heap *h = &t->heaps[id];
	const unsigned int at = v->at[id];

	if (!at)
		return;
	v->at[id] = 0;
	h->num--;
	if (at - 1 < h->num)
		sift(t, id, at - 1, h->entries[h->num]);
}

/* The volume is in the heap with this key, or in it no more. */
static void heap_set(struct ebb_tags *t, enum ebb_tags_heap_id id, struct ebb_tags_volume *v,
		     bool is_in, uint64_t key)
{
	struct ebb_tags_heap *h = &t->heaps[id];

	if (!is_in)
		heap_remove(t, id, v);
	else if (!v->at[id])
		sift(t, id, h->num++, (struct ebb_tags_entry){ .key = key, .volume = v });
	else if (h->entries[v->at[id] - 1].key != key)
		sift(t, id, v->at[id] - 1, (struct ebb_tags_entry){ .key = key, .volume = v });
}

/* NULL: it is empty. */
static const struct ebb_tags_entry *heap_first(const struct ebb_tags *t, enum ebb_tags_heap_id id)
{
	return t->heaps[id].num ? &t->heaps[id].entries[0] : NULL;
}

/* Put a volume into the heaps in which it belongs now. */
static void place(struct ebb_tags *t, struct ebb_tags_volume *v, uint64_t now)
{
	const bool is_drained = v->waiting && v->drained;
	const uint64_t until = limited_until(v);
	const bool is_limited = v->waiting && !v->drained && has_max(v) && until > now;
	const bool is_eligible = v->waiting && !is_drained && !is_limited;

	/* Out of READY first: its key does not say where it belongs by its slot. */
	heap_remove(t, EBB_TAGS_HEAP_READY, v);
	heap_set(t, EBB_TAGS_HEAP_DUE, v, is_eligible && has_reserve(v), v->slot);
	heap_set(t, EBB_TAGS_HEAP_SPARE, v, is_eligible, v->spare);
	heap_set(t, EBB_TAGS_HEAP_LIMITED, v, is_limited, until);
	heap_set(t, EBB_TAGS_HEAP_DRAIN, v, is_drained, 0);
}

/* ---- clocks ---- */

/* No slot before this counts. */
static uint64_t oldest_slot(const struct ebb_tags *t)
{
	return back(t->clock, EBB_TAGS_LAG_NSEC);
}

/* The clock of the slots (rule 6), and the volumes whose maximum allows a request again. */
static void advance(struct ebb_tags *t, uint64_t now)
{
	const struct ebb_tags_entry *e = heap_first(t, EBB_TAGS_HEAP_DUE);
	uint64_t clock = t->clock + back(now, t->clock_at);

	if (e && t->config.policy == EBB_TAGS_PROPORTIONAL)
		clock = min64(clock, e->key + EBB_TAGS_LAG_NSEC);
	t->clock = max64(t->clock, clock);
	t->clock_at = max64(t->clock_at, now);
	while ((e = heap_first(t, EBB_TAGS_HEAP_LIMITED)) && e->key <= now) {
		/* It was late because of its own maximum, which must not stop the clock. */
		e->volume->slot = max64(e->volume->slot, t->clock);
		place(t, e->volume, now);
	}
}

/*
 * A volume has requests again: its slot has not come before now.  While others are late, it is as
 * late as the latest of them.  Otherwise it would wait until they have caught up, and a volume that
 * pauses for a moment would lose what the others are behind.
 */
static void awake(struct ebb_tags *t, struct ebb_tags_volume *v)
{
	const struct ebb_tags_entry *e = heap_first(t, EBB_TAGS_HEAP_DUE);

	v->slot = max64(v->slot, e ? min64(e->key, t->clock) : t->clock);
	v->spare = max64(v->spare, t->spare);
}

/* ---- configuration ---- */

static int check_config(const struct ebb_tags_config *c)
{
	if (c->depth < 1 || c->depth > EBB_TAGS_MAX_DEPTH ||
	    (c->policy != EBB_TAGS_PROPORTIONAL && c->policy != EBB_TAGS_PENALTY) ||
	    c->overbook_percent < 1 || c->overbook_percent > EBB_TAGS_MAX_OVERBOOK ||
	    c->capacity_iops > EBB_TAGS_MAX_CAPACITY || c->capacity_bytes > EBB_TAGS_MAX_CAPACITY)
		return -EINVAL;
	return 0;
}

int ebb_tags_init(struct ebb_tags *t, const struct ebb_tags_config *config)
{
	int r = check_config(config);

	if (r < 0)
		return r;
	memset(t, 0, sizeof(*t));
	t->config = *config;
	return 0;
}

int ebb_tags_configure(struct ebb_tags *t, const struct ebb_tags_config *config, uint64_t now)
{
	const struct ebb_tags_entry *e;
	int r = check_config(config);

	if (r < 0)
		return r;
	advance(t, now);
	t->config = *config;
	/* Back to where they are found by their slots, none of which is older than allowed. */
	while ((e = heap_first(t, EBB_TAGS_HEAP_READY))) {
		e->volume->slot = max64(e->volume->slot, oldest_slot(t));
		place(t, e->volume, now);
	}
	return 0;
}

static bool is_admitted(uint64_t promised, uint64_t reserve, uint64_t capacity,
			unsigned int percent)
{
	/* At most 4096 volumes of 2^40 and 2^46 times 10^5: all within 64 bits. */
	return !reserve || !capacity || promised + reserve <= capacity * percent / 100;
}

/* old: what the volume was promised until now. */
static int check_promise(const struct ebb_tags *t, const struct ebb_tags_promise *p,
			 const struct ebb_tags_promise *old)
{
	const struct ebb_tags_config *c = &t->config;
	const uint64_t iops = t->promised_iops - old->reserve_iops;
	const uint64_t bytes = t->promised_bytes - old->reserve_bytes;

	if (p->reserve_iops > EBB_RATE_MAX_IOPS || p->max_iops > EBB_RATE_MAX_IOPS ||
	    p->reserve_bytes > EBB_RATE_MAX_BYTES || p->max_bytes > EBB_RATE_MAX_BYTES ||
	    p->weight < 1 || p->weight > EBB_TAGS_MAX_WEIGHT || p->penalty > EBB_TAGS_MAX_PENALTY ||
	    (p->max_iops && p->max_iops < p->reserve_iops) ||
	    (p->max_bytes && p->max_bytes < p->reserve_bytes))
		return -EINVAL;
	if ((p->reserve_iops > old->reserve_iops &&
	     !is_admitted(iops, p->reserve_iops, c->capacity_iops, c->overbook_percent)) ||
	    (p->reserve_bytes > old->reserve_bytes &&
	     !is_admitted(bytes, p->reserve_bytes, c->capacity_bytes, c->overbook_percent)))
		return -ENOSPC;
	return 0;
}

static void promise(struct ebb_tags *t, struct ebb_tags_volume *v,
		    const struct ebb_tags_promise *p)
{
	t->promised_iops += p->reserve_iops - v->promise.reserve_iops;
	t->promised_bytes += p->reserve_bytes - v->promise.reserve_bytes;
	v->promise = *p;
}

int ebb_tags_volume_add(struct ebb_tags *t, struct ebb_tags_volume *v,
			const struct ebb_tags_promise *p)
{
	static const struct ebb_tags_promise none;
	int r = check_promise(t, p, &none);

	if (r < 0)
		return r;
	if (t->num_volumes == EBB_TAGS_MAX_VOLUMES)
		return -ENFILE;
	t->num_volumes++;
	memset(v, 0, sizeof(*v));
	for (unsigned int i = 0; i < EBB_TAGS_FLOWS; i++)
		v->flows[i].last = &v->flows[i].first;
	promise(t, v, p);
	return 0;
}

int ebb_tags_volume_set(struct ebb_tags *t, struct ebb_tags_volume *v,
			const struct ebb_tags_promise *p, uint64_t now)
{
	const bool had_reserve = has_reserve(v);
	const uint32_t old_weight = v->promise.weight;
	int r = check_promise(t, p, &v->promise);

	if (r < 0)
		return r;
	advance(t, now);
	promise(t, v, p);
	/*
	 * An old promise of a few requests per second, or a low old weight, may have put the
	 * volume's next turn far ahead.  From now on it waits for one request at the new rate, at
	 * most.
	 */
	v->slot = had_reserve ? min64(v->slot, t->clock + reserve_step(p, 1)) : t->clock;
	if (p->weight > old_weight)
		v->spare = min64(v->spare, t->spare + (1ull << SPARE_SHIFT) / p->weight);
	v->limited_until = min64(v->limited_until, now + max_step(p, 1));
	v->flushes_limited_until = min64(v->flushes_limited_until, now + max_step(p, 0));
	place(t, v, now);
	return 0;
}

int ebb_tags_volume_remove(struct ebb_tags *t, struct ebb_tags_volume *v)
{
	static const struct ebb_tags_promise none;

	if (v->waiting || v->in_flight)
		return -EBUSY;
	promise(t, v, &none);
	t->num_volumes--;
	return 0;
}

/* ---- requests ---- */

int ebb_tags_arrive(struct ebb_tags *t, struct ebb_tags_volume *v, struct ebb_tags_request *r,
		    uint64_t bytes, uint64_t now)
{
	struct ebb_tags_flow *f;

	if (bytes > EBB_RATE_MAX_REQUEST || r->flow >= EBB_TAGS_FLOWS)
		return -EINVAL;
	advance(t, now);
	r->next = NULL;
	r->volume = v;
	r->bytes = bytes;
	r->arrived = now;
	r->is_due = false;
	f = &v->flows[r->flow];
	if (!f->first)
		f->served = max64(f->served, v->flow_served);
	*f->last = r;
	f->last = &r->next;
	t->waiting++;
	if (r->flow == EBB_TAGS_FLUSHES)
		v->flushes++;
	if (v->waiting++ == 0) {
		awake(t, v);
		place(t, v, now);
	} else if (v->at[EBB_TAGS_HEAP_LIMITED]) {
		/*
		 * The maximum held back all requests that waited.  It may let this one go, as
		 * flushes have a maximum of their own.  As in advance(), the time in which its own
		 * maximum held the volume back does not make it late.
		 */
		v->slot = max64(v->slot, t->clock);
		place(t, v, now);
	}
	return 0;
}

static void remove_first(struct ebb_tags_flow *f)
{
	f->first = f->first->next;
	if (!f->first)
		f->last = &f->first;
}

/* The request waits no more. */
static void count_out(struct ebb_tags *t, struct ebb_tags_volume *v,
		      const struct ebb_tags_request *r)
{
	t->waiting--;
	v->waiting--;
	if (r->flow == EBB_TAGS_FLUSHES)
		v->flushes--;
}

/* Take the request out that the volume sends next (rules 4 and 7). */
static struct ebb_tags_request *take(const struct ebb_tags *t, struct ebb_tags_volume *v)
{
	const bool is_limited = has_max(v) && !v->drained;
	struct ebb_tags_flow *f = NULL;
	struct ebb_tags_request *r;

	for (unsigned int i = 0; i < EBB_TAGS_FLOWS; i++) {
		struct ebb_tags_flow *other = &v->flows[i];

		/* place() has seen to it that at least one flow may go. */
		if (!other->first || (is_limited && *limit_of(v, i) > t->clock_at))
			continue;
		if (!f || other->served < f->served)
			f = other;
	}
	r = f->first;
	remove_first(f);
	v->flow_served = f->served;
	f->served += ebb_rate_units(r->bytes);
	return r;
}

/* A request of the volume goes to the disk. */
static struct ebb_tags_request *issue(struct ebb_tags *t, struct ebb_tags_volume *v, bool is_due,
				      uint64_t now)
{
	struct ebb_tags_request *r = take(t, v);
	uint64_t *limit = limit_of(v, r->flow);

	count_out(t, v, r);
	v->in_flight++;
	t->in_flight++;
	t->in_flight_bytes += r->bytes;
	r->is_due = is_due;
	if (is_due) {
		v->slot = max64(v->slot, oldest_slot(t)) + reserve_step(&v->promise, r->bytes);
	} else {
		t->spare = max64(t->spare, v->spare);
		v->spare += (ebb_rate_units(r->bytes) << SPARE_SHIFT) / v->promise.weight;
	}
	if (has_max(v))
		*limit = max64(*limit, back(now, EBB_TAGS_BURST_NSEC)) +
			 max_step(&v->promise, r->bytes);
	place(t, v, now);
	return r;
}

struct ebb_tags_request *ebb_tags_cancel(struct ebb_tags *t, struct ebb_tags_volume *v,
					 uint64_t now)
{
	struct ebb_tags_flow *f = v->flows;
	struct ebb_tags_request *r;

	if (!v->waiting)
		return NULL;
	advance(t, now);
	while (!f->first)
		f++;
	r = f->first;
	remove_first(f);
	count_out(t, v, r);
	place(t, v, now);
	return r;
}

void ebb_tags_done(struct ebb_tags *t, struct ebb_tags_request *r)
{
	r->volume->in_flight--;
	t->in_flight--;
	t->in_flight_bytes -= r->bytes;
}

void ebb_tags_drain_begin(struct ebb_tags *t, struct ebb_tags_volume *v, uint64_t now)
{
	advance(t, now);
	v->drained++;
	place(t, v, now);
}

void ebb_tags_drain_end(struct ebb_tags *t, struct ebb_tags_volume *v, uint64_t now)
{
	advance(t, now);
	v->drained--;
	place(t, v, now);
}

/* ---- the decision ---- */

/* The volume whose request is due and goes first; NULL: none is due. */
static struct ebb_tags_volume *first_due(struct ebb_tags *t)
{
	const struct ebb_tags_entry *e;

	while ((e = heap_first(t, EBB_TAGS_HEAP_DUE)) && e->key <= t->clock) {
		struct ebb_tags_volume *v = e->volume;

		if (t->config.policy == EBB_TAGS_PROPORTIONAL)
			return v;
		heap_remove(t, EBB_TAGS_HEAP_DUE, v);
		heap_set(t, EBB_TAGS_HEAP_READY, v, true, UINT32_MAX - v->promise.penalty);
	}
	e = heap_first(t, EBB_TAGS_HEAP_READY);
	return e ? e->volume : NULL;
}

static bool has_room(const struct ebb_tags *t)
{
	const struct ebb_tags_config *c = &t->config;

	return t->in_flight < c->depth &&
	       (!c->depth_bytes || t->in_flight_bytes < c->depth_bytes);
}

static bool has_room_for_due(const struct ebb_tags *t)
{
	return t->in_flight < t->config.depth + (t->config.depth + 7) / 8;
}

struct ebb_tags_request *ebb_tags_next(struct ebb_tags *t, uint64_t now, uint64_t *ret_wake)
{
	const struct ebb_tags_entry *e, *due;
	struct ebb_tags_volume *v;

	*ret_wake = EBB_TAGS_NEVER;
	if (!t->waiting)
		return NULL;
	advance(t, now);
	e = heap_first(t, EBB_TAGS_HEAP_DRAIN);
	if (e)
		return issue(t, e->volume, has_reserve(e->volume) && e->volume->slot <= t->clock,
			     now);
	if (!has_room_for_due(t))
		return NULL;
	v = first_due(t);
	if (v)
		return issue(t, v, true, now);
	e = heap_first(t, EBB_TAGS_HEAP_SPARE);
	if (e && has_room(t))
		return issue(t, e->volume, false, now);
	e = heap_first(t, EBB_TAGS_HEAP_LIMITED);
	if (e)
		*ret_wake = e->key;
	due = heap_first(t, EBB_TAGS_HEAP_DUE);
	if (due)
		*ret_wake = min64(*ret_wake, now + (due->key - t->clock));
	return NULL;
}

struct ebb_tags_volume *ebb_tags_waits(const struct ebb_tags *t)
{
	const struct ebb_tags_entry *e = heap_first(t, EBB_TAGS_HEAP_LIMITED);

	return e ? e->volume : heap_first(t, EBB_TAGS_HEAP_DUE)->volume;
}
