/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What volumes were promised, wanted and got; meter.h has the definitions. */
#include <errno.h>
#include <string.h>
#include "volumed/meter.h"

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* a - b, or 0. */
static uint64_t over(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static bool has_reserve(const struct ebb_meter_volume *v)
{
	return v->unit_nsec;
}

static uint64_t step(const struct ebb_meter_volume *v, uint64_t bytes)
{
	return ebb_rate_step(v->reserve_iops, v->reserve_bytes, bytes);
}

/* unit_nsec is not 0 with a reservation: the least is a unit at EBB_RATE_MAX_IOPS, 1 ns. */
static void reserve(struct ebb_meter_volume *v, uint64_t iops, uint64_t bytes)
{
	v->reserve_iops = iops;
	v->reserve_bytes = bytes;
	v->unit_nsec = step(v, EBB_RATE_UNIT);
}

/* ---- delays ---- */

/* Lower bound of a class. */
static uint64_t class_begin(unsigned int class)
{
	const unsigned int doubling = (class - 1) / 4;

	return class ? ((uint64_t)(4 + (class - 1) % 4) << doubling) * 1000 / 4 : 0;
}

static unsigned int class_of(uint64_t nsec)
{
	unsigned int class = 0;

	/* First by doublings, then within the last one. */
	while (class + 4 < EBB_METER_DELAYS && nsec >= class_begin(class ? class + 4 : 1))
		class += class ? 4 : 1;
	while (class + 1 < EBB_METER_DELAYS && nsec >= class_begin(class + 1))
		class++;
	return class;
}

uint64_t ebb_meter_percentile(const uint64_t *delays, unsigned int permille)
{
	uint64_t all = 0, seen = 0;

	for (unsigned int i = 0; i < EBB_METER_DELAYS; i++)
		all += delays[i];
	for (unsigned int i = 0; i < EBB_METER_DELAYS; i++) {
		seen += delays[i];
		if (seen && seen * 1000 >= all * permille)
			return class_begin(i + 1 < EBB_METER_DELAYS ? i + 1 : i);
	}
	return 0;
}

/* ---- time ---- */

/* Time in millionths of units of a volume with a reservation. */
static uint64_t microunits(const struct ebb_meter_volume *v, uint64_t nsec)
{
	const uint64_t unit = v->unit_nsec;
	/* A unit may take up to 18 hours; in nanoseconds the product would exceed 64 bits then. */
	const uint64_t scale = unit > EBB_METER_MAX_NSEC ? 1000 : 1;

	return nsec / unit * 1000000 + nsec % unit / scale * 1000000 / (unit / scale);
}

/*
 * Reckoned from the time at which the promise was made, not from the last look: otherwise each look
 * would lose what is less than a millionth.
 */
static void count_microunits(struct ebb_meter_volume *v)
{
	struct ebb_meter_counters *c = &v->counters;

	c->promised_microunits = v->old_microunits;
	if (has_reserve(v))
		c->promised_microunits += microunits(v, c->pending_nsec - v->old_pending_nsec);
}

static void count_times(struct ebb_meter_volume *v, uint64_t now)
{
	if (v->waiting)
		v->counters.waiting_nsec += now - v->counted_at;
	if (v->pending)
		v->counters.pending_nsec += now - v->counted_at;
	v->counted_at = now;
}

/* Not at each request: it takes a division. */
static void count_promised(struct ebb_meter_volume *v, uint64_t now)
{
	uint64_t units;

	if (!has_reserve(v))
		return;
	units = (now - v->promised_since) / v->unit_nsec;
	v->counters.promised += units;
	v->promised_since += units * v->unit_nsec;
}

/* Units that are due and were not issued: they are missed from now on. */
static void count_missed(struct ebb_meter_volume *v, uint64_t now)
{
	uint64_t units;

	if (!has_reserve(v) || now <= v->slot)
		return;
	/* A part of a unit is not missed yet: it stays due. */
	units = (now - v->slot) / v->unit_nsec;
	v->slot += units * v->unit_nsec;
	v->counters.missed += units;
}

static void begin_wait(const struct ebb_meter *m, struct ebb_meter_volume *v)
{
	v->wait_all = m->took;
	v->wait_own = v->took;
}

static void end_wait(const struct ebb_meter *m, struct ebb_meter_volume *v)
{
	v->others.early += m->took.early - v->wait_all.early - (v->took.early - v->wait_own.early);
	v->others.charged += m->took.charged - v->wait_all.charged -
			     (v->took.charged - v->wait_own.charged);
}

/* ---- the end of an interval ---- */

/* Deadlines in the interval that ended. */
static uint64_t overdue(const struct ebb_meter *m, const struct ebb_meter_volume *v)
{
	uint64_t deadline = v->deadline, units = 0;

	if (!has_reserve(v))
		return 0;
	for (const struct ebb_meter_request *r = v->first; r; r = r->next) {
		deadline = max64(deadline, r->arrived);
		if (deadline >= m->end)
			break;
		if (deadline >= m->end - m->interval_nsec)
			units += ebb_rate_units(r->bytes);
		deadline += step(v, r->bytes);
	}
	return units;
}

/* own: units that the volume got itself. */
static void find_reasons(const struct ebb_meter *m, const struct ebb_meter_volume *v, uint64_t own,
			 struct ebb_meter_interval *i)
{
	const uint64_t all = v->others.early + v->others.charged + own;
	/* An hour and EBB_RATE_MAX_IOPS at most. */
	const uint64_t could = m->capacity_iops * (i->waiting_nsec / 1000) / 1000000;
	uint64_t rest = i->violated;

	i->others_early = min64(rest, v->others.early);
	rest -= i->others_early;
	i->slow = m->capacity_iops ? min64(rest, over(could, all)) : 0;
	rest -= i->slow;
	i->others_promised = min64(rest, v->others.charged);
	i->slow += rest - i->others_promised;
}

static void end_interval_of(const struct ebb_meter *m, struct ebb_meter_volume *v)
{
	struct ebb_meter_counters *c = &v->counters;
	struct ebb_meter_interval *i = &v->last;

	count_times(v, m->end);
	count_promised(v, m->end);
	if (v->waiting) {
		count_missed(v, m->end);
		end_wait(m, v);
		begin_wait(m, v);
	}
	*i = (struct ebb_meter_interval){
		.end = m->end,
		.promised = c->promised - v->begin.promised,
		.got = c->charged - v->begin.charged + c->early - v->begin.early,
		.violated = over(c->missed - v->begin.missed, c->early - v->begin.early),
		.overdue = overdue(m, v),
		.waiting_nsec = c->waiting_nsec - v->begin.waiting_nsec,
		.pending_nsec = c->pending_nsec - v->begin.pending_nsec,
		.late_max_nsec = v->late_max_nsec,
		.taker = EBB_METER_NOBODY,
	};
	i->wanted = c->charged - v->begin.charged + i->violated;
	find_reasons(m, v, v->took.early - v->begin.took.early + v->took.charged -
		     v->begin.took.charged, i);
	c->intervals++;
	c->violated_intervals += i->violated > 0;
	c->violated += i->violated;
	c->others_early += i->others_early;
	c->others_promised += i->others_promised;
	c->slow += i->slow;
	c->overdue += i->overdue;
}

static void begin_interval_of(struct ebb_meter_volume *v)
{
	const struct ebb_meter_counters *c = &v->counters;

	v->begin.promised = c->promised;
	v->begin.charged = c->charged;
	v->begin.early = c->early;
	v->begin.missed = c->missed;
	v->begin.waiting_nsec = c->waiting_nsec;
	v->begin.pending_nsec = c->pending_nsec;
	v->begin.took = v->took;
	v->others = (struct ebb_meter_taken){ 0 };
	v->late_max_nsec = 0;
}

/* The two volumes that took most, so that each volume finds the first that it is not itself. */
struct takers {
	uint64_t units[2];
	uint64_t ids[2];
};

static void find_takers(struct takers *t, uint64_t units, uint64_t id)
{
	if (units > t->units[0]) {
		t->units[1] = t->units[0];
		t->ids[1] = t->ids[0];
		t->units[0] = units;
		t->ids[0] = id;
	} else if (units > t->units[1]) {
		t->units[1] = units;
		t->ids[1] = id;
	}
}

static void end_interval(struct ebb_meter *m)
{
	struct takers early = { .ids = { EBB_METER_NOBODY, EBB_METER_NOBODY } }, charged = early;

	for (struct ebb_meter_volume *v = m->volumes; v; v = v->next) {
		end_interval_of(m, v);
		find_takers(&early, v->took.early - v->begin.took.early, v->id);
		find_takers(&charged, v->took.charged - v->begin.took.charged, v->id);
	}
	for (struct ebb_meter_volume *v = m->volumes; v; v = v->next) {
		const struct takers *t = v->last.others_early ? &early : &charged;

		if (v->last.others_early || v->last.others_promised)
			v->last.taker = t->ids[t->ids[0] == v->id];
		begin_interval_of(v);
	}
	m->end += m->interval_nsec;
}

/* Nothing is due to anybody in these intervals. */
static void skip_intervals(struct ebb_meter *m, uint64_t num)
{
	m->end += num * m->interval_nsec;
	for (struct ebb_meter_volume *v = m->volumes; v; v = v->next) {
		count_times(v, m->end - m->interval_nsec);
		count_promised(v, m->end - m->interval_nsec);
		v->counters.intervals += num;
		begin_interval_of(v);
	}
}

void ebb_meter_advance(struct ebb_meter *m, uint64_t now)
{
	m->now = max64(m->now, now);
	while (m->now >= m->end) {
		end_interval(m);
		if (!m->waiting && m->now >= m->end)
			skip_intervals(m, (m->now - m->end) / m->interval_nsec);
	}
}

/* ---- volumes ---- */

int ebb_meter_init(struct ebb_meter *m, uint64_t interval_nsec, uint64_t now)
{
	if (interval_nsec < EBB_METER_MIN_NSEC || interval_nsec > EBB_METER_MAX_NSEC)
		return -EINVAL;
	memset(m, 0, sizeof(*m));
	m->interval_nsec = interval_nsec;
	m->now = now;
	m->end = now + interval_nsec;
	return 0;
}

void ebb_meter_capacity(struct ebb_meter *m, uint64_t iops)
{
	m->capacity_iops = min64(iops, EBB_RATE_MAX_IOPS);
}

static bool is_rate(uint64_t iops, uint64_t bytes)
{
	return iops <= EBB_RATE_MAX_IOPS && bytes <= EBB_RATE_MAX_BYTES;
}

int ebb_meter_volume_add(struct ebb_meter *m, struct ebb_meter_volume *v, uint64_t id,
			 uint64_t reserve_iops, uint64_t reserve_bytes, uint64_t now)
{
	if (!is_rate(reserve_iops, reserve_bytes))
		return -EINVAL;
	ebb_meter_advance(m, now);
	memset(v, 0, sizeof(*v));
	v->id = id;
	reserve(v, reserve_iops, reserve_bytes);
	v->promised_since = v->counted_at = m->now;
	v->last.taker = EBB_METER_NOBODY;
	v->next = m->volumes;
	m->volumes = v;
	return 0;
}

int ebb_meter_volume_remove(struct ebb_meter *m, struct ebb_meter_volume *v, uint64_t now)
{
	struct ebb_meter_volume **at = &m->volumes;

	if (v->pending || v->first)
		return -EBUSY;
	ebb_meter_advance(m, now);
	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	return 0;
}

int ebb_meter_promise(struct ebb_meter *m, struct ebb_meter_volume *v, uint64_t reserve_iops,
		      uint64_t reserve_bytes, uint64_t now)
{
	const bool had_reserve = has_reserve(v);

	if (!is_rate(reserve_iops, reserve_bytes))
		return -EINVAL;
	ebb_meter_advance(m, now);
	count_times(v, m->now);
	count_promised(v, m->now);
	if (v->waiting)
		count_missed(v, m->now);
	count_microunits(v);
	v->old_microunits = v->counters.promised_microunits;
	v->old_pending_nsec = v->counters.pending_nsec;
	reserve(v, reserve_iops, reserve_bytes);
	if (!has_reserve(v))
		return 0;
	/* What was paid in advance was paid at the old rate: a unit of the new one at most. */
	v->slot = had_reserve ? min64(v->slot, m->now + v->unit_nsec) : m->now;
	v->deadline = had_reserve ? min64(v->deadline, m->now + v->unit_nsec) : m->now;
	v->promised_since = m->now;
	v->charged_nsec = v->early_nsec = 0;
	return 0;
}

/* ---- requests ---- */

static void link_waiting(struct ebb_meter_volume *v, struct ebb_meter_request *r)
{
	r->next = NULL;
	r->prev = v->last_waiting;
	*(v->last_waiting ? &v->last_waiting->next : &v->first) = r;
	v->last_waiting = r;
}

static void unlink_waiting(struct ebb_meter_volume *v, struct ebb_meter_request *r)
{
	*(r->prev ? &r->prev->next : &v->first) = r->next;
	*(r->next ? &r->next->prev : &v->last_waiting) = r->prev;
}

int ebb_meter_arrive(struct ebb_meter *m, struct ebb_meter_volume *v, struct ebb_meter_request *r,
		     uint64_t bytes, uint64_t now)
{
	if (bytes > EBB_RATE_MAX_REQUEST)
		return -EINVAL;
	ebb_meter_advance(m, now);
	r->arrived = m->now;
	r->bytes = bytes;
	v->counters.arrived++;
	v->counters.arrived_units += ebb_rate_units(bytes);
	count_times(v, m->now);
	link_waiting(v, r);
	v->pending++;
	if (v->waiting++ == 0) {
		m->waiting++;
		v->slot = max64(v->slot, m->now);
		begin_wait(m, v);
	}
	return 0;
}

static void count_delay(struct ebb_meter_volume *v, const struct ebb_meter_request *r, uint64_t now)
{
	struct ebb_meter_counters *c = &v->counters;
	const uint64_t due = max64(v->deadline, v->first->arrived);
	uint64_t delay;

	if (due > now)
		return;
	/* A request that overtook others of its volume was not late before it came. */
	delay = now - max64(due, r->arrived);
	v->deadline = due + step(v, r->bytes);
	c->due_requests++;
	c->late_nsec += delay;
	if (delay)
		c->late_units += ebb_rate_units(r->bytes);
	c->late_max_nsec = max64(c->late_max_nsec, delay);
	c->delays[class_of(delay)]++;
	v->late_max_nsec = max64(v->late_max_nsec, delay);
}

/* Units of the volume; what is less than one is kept in *rest, as time. */
static void add_units(const struct ebb_meter_volume *v, uint64_t *sum, uint64_t *rest,
		      uint64_t bytes)
{
	if (!has_reserve(v)) {
		*sum += ebb_rate_units(bytes);
		return;
	}
	*rest += step(v, bytes);
	*sum += *rest / v->unit_nsec;
	*rest %= v->unit_nsec;
}

static void end_waiting(struct ebb_meter *m, struct ebb_meter_volume *v,
			struct ebb_meter_request *r)
{
	unlink_waiting(v, r);
	if (--v->waiting == 0) {
		m->waiting--;
		count_missed(v, m->now);
		end_wait(m, v);
	}
}

void ebb_meter_issue(struct ebb_meter *m, struct ebb_meter_volume *v, struct ebb_meter_request *r,
		     uint64_t now)
{
	struct ebb_meter_counters *c = &v->counters;
	const uint64_t units = ebb_rate_units(r->bytes);

	ebb_meter_advance(m, now);
	c->issued++;
	c->issued_units += units;
	c->issued_bytes += r->bytes;
	count_times(v, m->now);
	c->waited_nsec += m->now - r->arrived;
	if (has_reserve(v))
		count_delay(v, r, m->now);
	if (has_reserve(v) && v->slot <= m->now) {
		v->slot += step(v, r->bytes);
		add_units(v, &c->charged, &v->charged_nsec, r->bytes);
		v->took.charged += units;
		m->took.charged += units;
	} else {
		add_units(v, &c->early, &v->early_nsec, r->bytes);
		v->took.early += units;
		m->took.early += units;
	}
	end_waiting(m, v, r);
}

void ebb_meter_cancel(struct ebb_meter *m, struct ebb_meter_volume *v, struct ebb_meter_request *r,
		      uint64_t now)
{
	ebb_meter_advance(m, now);
	count_times(v, m->now);
	v->pending--;
	end_waiting(m, v, r);
}

void ebb_meter_complete(struct ebb_meter *m, struct ebb_meter_volume *v, uint64_t now)
{
	ebb_meter_advance(m, now);
	v->counters.completed++;
	count_times(v, m->now);
	v->pending--;
}

const struct ebb_meter_counters *ebb_meter_read(struct ebb_meter *m, struct ebb_meter_volume *v,
						uint64_t now)
{
	ebb_meter_advance(m, now);
	count_times(v, m->now);
	count_promised(v, m->now);
	count_microunits(v);
	return &v->counters;
}
