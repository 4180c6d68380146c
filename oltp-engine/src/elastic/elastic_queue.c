// SPDX-License-Identifier: GPL-2.0-or-later
/* CPUs for what arrives: see elastic_queue.h. */
#include <string.h>

#include "elastic_queue.h"

#define MS		1000000ull
/* Arrival rate and queue are measured over this time. */
#define WINDOW_NS	(2 * QUEUE_LOOK_NS)
/*
 * A worker's rate is measured over this much time in which no worker lacked work. In less, work
 * runs out in fast moments, and only slow ones would be measured.
 */
#define MEASURE_S	0.1
/* Weight of a new measure. */
#define MEASURE_WEIGHT	0.3
/* Workers are to be busy for at most this part of their time. */
#define FILL		0.85
/* A queue that stands is to be gone within this time. */
#define DRAIN_S		0.05
#define HOLD_FIRST_NS	(100 * MS)
#define HOLD_MAX_NS	(10000 * MS)
/*
 * CPUs that have served a rate of arrivals for SERVED_NS, with workers idle at times, are enough
 * for SERVED_MORE times that rate, unless this proves wrong so often that the hold gets as long as
 * REFUTED_NS.
 */
#define SERVED_NS	(200 * MS)
#define SERVED_MORE	1.05
#define REFUTED_NS	(8 * HOLD_FIRST_NS)
/* A lower goal was right if it lasted for so many times the hold. */
#define PROVEN_HOLDS	20u
/* After so long without a queue one CPU fewer is tried: a slow moment may have been measured. */
#define TRY_FIRST_NS	(2000 * MS)
#define TRY_MAX_NS	(60000 * MS)
/* Arrivals that rose by more than this part are another load. */
#define SAME_RATE	1.1
/* A little above 1, so that a quotient that should be whole is not rounded up. */
#define ROUNDING	1.001

void queue_init(struct queue *q)
{
	*q = (struct queue){ .hold_ns = HOLD_FIRST_NS, .try_ns = TRY_FIRST_NS };
}

static void remember(struct queue *q, const struct queue_facts *f)
{
	if (q->n_looks == QUEUE_LOOKS) {
		memmove(&q->looks[0], &q->looks[1], sizeof(q->looks) - sizeof(q->looks[0]));
		q->n_looks--;
	}
	q->looks[q->n_looks++] = (struct queue_look){
		.at_ns = f->now_ns,
		.committed = f->committed,
		.arrived = f->arrived,
		.idles = f->idles,
		.n_cpus = f->is_moving ? 0 : f->n_cpus,
	};
}

/*
 * The look to compare the present one with: the newest that is a window old, else the oldest. NULL:
 * this is the first look.
 */
static const struct queue_look *window_start(const struct queue *q)
{
	uint64_t now_ns = q->looks[q->n_looks - 1].at_ns;

	if (q->n_looks < 2)
		return NULL;
	for (uint32_t i = q->n_looks - 1; i-- > 0;) {
		if (now_ns - q->looks[i].at_ns >= WINDOW_NS)
			return &q->looks[i];
	}
	return &q->looks[0];
}

/* Arrivals per second since a look, or since the look before this one if those are more. */
static double rate_since(const struct queue *q, const struct queue_look *since)
{
	const struct queue_look *now = &q->looks[q->n_looks - 1], *before = now - 1;
	double all = (double)(now->arrived - since->arrived) / (double)(now->at_ns - since->at_ns);
	double last = (double)(now->arrived - before->arrived) /
		      (double)(now->at_ns - before->at_ns);

	return (last > all ? last : all) * 1e9;
}

/*
 * Adds the time since the last look to the measurement of a worker's rate, if no worker lacked work
 * in it.
 */
static void measure(struct queue *q, const struct queue_facts *f)
{
	const struct queue_look *now = &q->looks[q->n_looks - 1], *before = now - 1;
	double rate;

	if (q->n_looks < 2)
		return;
	if (!f->is_unlimited && (now->idles != before->idles || f->waiting < f->n_cpus)) {
		q->busy_wall_s = q->busy_s = q->busy_committed = 0;
		return;
	}
	if (!now->n_cpus || now->n_cpus != before->n_cpus)
		return;
	q->busy_wall_s += (double)(now->at_ns - before->at_ns) / 1e9;
	q->busy_s += (double)(now->at_ns - before->at_ns) / 1e9 * now->n_cpus;
	q->busy_committed += (double)(now->committed - before->committed);
	if (q->busy_wall_s < MEASURE_S)
		return;
	rate = q->busy_committed / q->busy_s;
	q->per_worker = q->per_worker > 0 ?
				q->per_worker + MEASURE_WEIGHT * (rate - q->per_worker) : rate;
	q->busy_wall_s = q->busy_s = q->busy_committed = 0;
}

static uint32_t clamp(double need, const struct queue_facts *f)
{
	uint32_t most = f->n_max > f->n_min ? f->n_max : f->n_min;

	if (need >= most)
		return most;
	return need <= f->n_min ? f->n_min : (uint32_t)need;
}

static uint32_t round_up(double x)
{
	uint32_t whole;

	if (x >= UINT32_MAX)
		return UINT32_MAX;
	whole = (uint32_t)x;
	return whole < x ? whole + 1 : whole;
}

static uint32_t cpus_needed(const struct queue *q, const struct queue_facts *f, double rate,
			    double standing)
{
	double rate_wanted = (rate + standing / DRAIN_S) / FILL;
	double need = standing > 0 ? 2.0 * f->n_cpus : f->n_cpus - 1.0, served;

	if (q->per_worker > 0)
		need = round_up(rate_wanted / q->per_worker);
	if (q->served_per_worker > 0 && standing <= 0) {
		served = round_up(rate / (q->served_per_worker * SERVED_MORE));
		need = served < need ? served : need;
	}
	return clamp(need, f);
}

/*
 * Notes the rate per CPU while the CPUs kept up. measure() sees workers only when they are busy
 * without a pause: in slow moments, in which they do less than they mostly do.
 */
static void note_served(struct queue *q, const struct queue_facts *f,
			const struct queue_look *since)
{
	double per_worker;

	if (f->is_moving || f->n_cpus != q->served_cpus || f->idles == since->idles) {
		q->served_cpus = f->is_moving ? 0 : f->n_cpus;
		q->served_since_ns = f->now_ns;
		q->served_arrived = f->arrived;
		return;
	}
	if (f->now_ns - q->served_since_ns < SERVED_NS)
		return;
	per_worker = (double)(f->arrived - q->served_arrived) * 1e9 /
		     (double)(f->now_ns - q->served_since_ns) / f->n_cpus;
	if (per_worker > q->served_per_worker)
		q->served_per_worker = per_worker;
	q->served_since_ns = f->now_ns;
	q->served_arrived = f->arrived;
}

/*
 * More CPUs are needed. If the load is the same as when CPUs were given back, these were needed:
 * wait longer the next time.
 */
static void grow(struct queue *q, uint64_t now_ns, uint32_t need, double rate)
{
	uint64_t proven_ns = q->shrunk_ns + PROVEN_HOLDS * q->hold_ns;

	if (q->shrunk_ns && now_ns < proven_ns && rate <= q->shrunk_rate * SAME_RATE) {
		q->hold_ns *= 2;
		if (q->hold_ns > HOLD_MAX_NS)
			q->hold_ns = HOLD_MAX_NS;
		q->try_ns *= 2;
		if (q->try_ns > TRY_MAX_NS)
			q->try_ns = TRY_MAX_NS;
		if (q->hold_ns >= REFUTED_NS)
			q->served_per_worker = 0;
	} else if (rate > q->shrunk_rate * SAME_RATE) {
		q->hold_ns = HOLD_FIRST_NS;
		q->try_ns = TRY_FIRST_NS;
	}
	q->shrunk_ns = 0;
	q->goal = need;
}

static void shrink_if_it_lasts(struct queue *q, uint64_t now_ns, uint32_t need, double rate)
{
	if (!q->low_since_ns) {
		q->low_since_ns = now_ns;
		q->low_most = need;
	}
	if (need > q->low_most)
		q->low_most = need;
	if (now_ns - q->low_since_ns < q->hold_ns)
		return;
	q->goal = q->low_most;
	q->low_since_ns = 0;
	q->shrunk_ns = now_ns;
	q->shrunk_rate = rate;
}

/*
 * After a calm time the measured rate is doubted. A worker is then taken to be as fast as it must
 * be for one CPU fewer to do. If it is not, a queue will show that, and the next measurement
 * corrects the rate.
 */
static void doubt_if_it_lasts(struct queue *q, const struct queue_facts *f, double rate,
			      bool is_calm)
{
	if (!is_calm || q->goal <= f->n_min || !q->calm_since_ns) {
		q->calm_since_ns = f->now_ns;
		return;
	}
	if (f->now_ns - q->calm_since_ns < q->try_ns)
		return;
	q->per_worker = rate / FILL / (q->goal - 1.0) * ROUNDING;
	q->calm_since_ns = f->now_ns;
}

uint32_t queue_next(struct queue *q, const struct queue_facts *f)
{
	const struct queue_look *since;
	double rate, standing;
	uint32_t need;

	if (q->n_looks && f->now_ns - q->looks[q->n_looks - 1].at_ns < QUEUE_LOOK_NS)
		return clamp(q->goal, f);
	remember(q, f);
	measure(q, f);
	since = window_start(q);
	if (!since || f->is_unlimited) {
		/* Unlimited work does not say how many CPUs arrivals will need. */
		q->goal = q->goal ?: f->n_min;
		return clamp(q->goal, f);
	}
	rate = rate_since(q, since);
	/*
	 * Transactions that arrived within one look are no queue yet: workers and cores pause at
	 * times.
	 */
	standing = f->idles == since->idles && (double)f->waiting > rate * QUEUE_LOOK_NS / 1e9 &&
				   f->waiting > f->n_cpus ? (double)f->waiting : 0;
	note_served(q, f, since);
	need = cpus_needed(q, f, rate, standing);
	doubt_if_it_lasts(q, f, rate, need == q->goal && standing <= 0 && q->per_worker > 0);
	if (need < q->goal) {
		q->is_rising = false;
		shrink_if_it_lasts(q, f->now_ns, need, rate);
		return clamp(q->goal, f);
	}
	q->low_since_ns = 0;
	/*
	 * More CPUs are asked for one look later, when the rise is seen in full: one move instead
	 * of several.
	 */
	if (need > q->goal && q->is_rising)
		grow(q, f->now_ns, need, rate);
	q->is_rising = need > q->goal;
	return clamp(q->goal, f);
}
