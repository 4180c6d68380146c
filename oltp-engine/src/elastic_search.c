// SPDX-License-Identifier: GPL-2.0-or-later
/* Finding the number of CPUs that pays: see elastic_search.h. */
#include "elastic_search.h"

#define MS		1000000ull
#define SLICE_NS	SEARCH_LOOK_NS
/* After a move caches and queues are not yet what they will be. */
#define SKIP_SLICES	2u
#define SLICES_EARLY	6u
#define SLICES_ENOUGH	10u
#define COMMITS_ENOUGH	1000u
#define WATCH_SLICES	10u
/* Left out of a series at either end: one part in so many. */
#define TRIM		4u
/* Enough slices: the mean is known to within this part of itself (one standard error). */
#define PRECISION	0.02
/* A comparison is clear, and a shift is one, beyond so many standard errors. */
#define CLEAR_ERRORS	3.0
/* More CPUs are not kept for what may be noise: with many probes some of it looks like a gain. */
#define TAKE_ERRORS	1.0
#define SHIFT_ERRORS	4.0
/* Smaller shifts than these are left to the probes. */
#define SHIFT_RATE	0.12
#define SHIFT_WASTE	0.06
/* Of what the average CPU brings: a CPU given up may have brought so much, one taken must. */
#define GIVE_SHARE	0.1
#define TAKE_SHARE	0.35
/* CPUs that bring at least this much tell that fewer of them would be missed as well. */
#define CONCAVE_SHARE	0.5
#define MOVE_PATIENCE_NS	(5000 * MS)
#define TRY_PATIENCE_NS	(10000 * MS)
#define PROBE_FIRST_NS	(2000 * MS)
#define PROBE_MAX_NS	(60000 * MS)
#define BLIND_FIRST_NS	(30000 * MS)
#define BLIND_MAX_NS	(600000 * MS)

void search_init(struct search *s, uint64_t now_ns)
{
	*s = (struct search){
		.phase = S_BASE,
		.goal = UINT32_MAX,
		.probe_length_ns = PROBE_FIRST_NS,
		.blind_ns = now_ns + BLIND_FIRST_NS,
		.blind_length_ns = BLIND_FIRST_NS,
	};
}

/* How many slices are left out at either end. Single transactions are too few to trim. */
static uint32_t n_trimmed(const struct search_series *series)
{
	return series->committed < COMMITS_ENOUGH ? 0 : series->n / TRIM;
}

static double mean(const struct search_series *series)
{
	uint32_t cut = n_trimmed(series), n = series->n - 2 * cut;
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += series->rates[cut + i];
	return n ? sum / n : 0;
}

static double mean_waste(const struct search_series *series)
{
	return series->n ? series->waste / series->n : 0;
}

/* Variance of the mean of n values. */
static double variance_of_mean(uint32_t n, double sum, double squares)
{
	double variance;

	if (n < 2)
		return 0;
	variance = (squares - sum * sum / n) / (n - 1);
	return variance > 0 ? variance / n : 0;
}

/* Of the trimmed mean: what was cut off counts as the last value that was not (winsorized). */
static double rate_variance(const struct search_series *series)
{
	uint32_t cut = n_trimmed(series), n = series->n;
	double sum = 0, squares = 0, kept;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i < cut ? cut : i >= n - cut ? n - cut - 1 : i;

		sum += series->rates[at];
		squares += series->rates[at] * series->rates[at];
	}
	kept = n ? (double)(n - 2 * cut) / n : 1;
	return variance_of_mean(n, sum, squares) / (kept * kept);
}

static double waste_variance(const struct search_series *series)
{
	return variance_of_mean(series->n, series->waste, series->waste_squares);
}

/* Is the difference more than so many standard errors? Without a root: both sides squared. */
static bool is_beyond(double difference, double errors, double variance)
{
	return difference * difference > errors * errors * variance;
}

static bool is_enough(const struct search_series *series)
{
	double allowed = PRECISION * mean(series);

	if (series->n >= SEARCH_SLICES)
		return true;
	return series->n >= SLICES_ENOUGH && series->committed >= COMMITS_ENOUGH &&
	       rate_variance(series) <= allowed * allowed;
}

static void series_reset(struct search *s, uint32_t skip)
{
	s->now = (struct search_series){ 0 };
	s->is_measuring = false;
	s->skip = skip;
}

/* waste: share of time; a stall is counted when it ends, and may have begun slices ago. */
static void series_add(struct search_series *series, double seconds, uint64_t committed,
		       double waste)
{
	double rate = (double)committed / seconds;
	uint32_t at = series->n++;

	for (; at && series->rates[at - 1] > rate; at--)
		series->rates[at] = series->rates[at - 1];
	series->rates[at] = rate;
	series->committed += committed;
	series->waste += waste;
	series->waste_squares += waste * waste;
}

/* Closes the slice if it is due. True: the series has got one more. */
static bool take_slice(struct search *s, const struct search_facts *f)
{
	bool is_added = false;

	if (s->is_measuring && (f->is_moving || !f->is_busy || f->n_cpus != s->slice_cpus))
		s->is_measuring = false;
	if (s->is_measuring) {
		if (f->now_ns - s->slice_ns < SLICE_NS)
			return false;
		if (s->skip) {
			s->skip--;
		} else {
			double ns = (double)(f->now_ns - s->slice_ns);

			series_add(&s->now, ns / 1e9, f->committed - s->slice_committed,
				   (double)(f->stalled_ns - s->slice_stalled_ns) /
					   (ns * f->n_cpus));
			is_added = true;
		}
	}
	if (!f->is_moving) {
		s->is_measuring = true;
		s->slice_cpus = f->n_cpus;
		s->slice_ns = f->now_ns;
		s->slice_committed = f->committed;
		s->slice_stalled_ns = f->stalled_ns;
	}
	return is_added;
}

static void enter_base(struct search *s)
{
	s->phase = S_BASE;
	series_reset(s, 0);
}

/* Nothing more to try: the goal that was found stands. */
static void enter_watch(struct search *s, const struct search_facts *f)
{
	s->phase = S_WATCH;
	s->is_blind = false;
	series_reset(s, SKIP_SLICES);
	s->probe_ns = f->now_ns + s->probe_length_ns;
	/* Not at once after a search, though it may be long due. */
	if (s->blind_ns < f->now_ns + BLIND_FIRST_NS)
		s->blind_ns = f->now_ns + BLIND_FIRST_NS;
	s->probe_length_ns *= 2;
	if (s->probe_length_ns > PROBE_MAX_NS)
		s->probe_length_ns = PROBE_MAX_NS;
}

/* Could throughput without k of the CPUs be worth it? At best the others waste no time at all. */
static bool can_pay(const struct search *s, uint32_t k)
{
	double n = s->base_cpus;

	return (n - k) / n >= (1 - mean_waste(&s->base)) * (1 - GIVE_SHARE * k / n);
}

static uint32_t step_down(const struct search *s, const struct search_facts *f)
{
	uint32_t most = f->n_cpus > f->n_min ? f->n_cpus - f->n_min : 0;
	uint32_t step = s->step < most ? s->step : most;

	while (step && !s->is_blind && !can_pay(s, step))
		step /= 2;
	return step;
}

static uint32_t step_up(const struct search *s, const struct search_facts *f)
{
	uint32_t most = f->n_max > f->n_cpus ? f->n_max - f->n_cpus : 0;

	return s->step < most ? s->step : most;
}

static void next_try(struct search *s, const struct search_facts *f)
{
	for (;;) {
		s->step = s->is_up ? step_up(s, f) : step_down(s, f);
		if (s->step)
			break;
		/* What was tried by the way with one CPU is not tried the other way, too. */
		if (s->has_turned || s->is_blind) {
			if (f->n_cpus >= f->n_max)
				s->goal = UINT32_MAX;
			enter_watch(s, f);
			return;
		}
		s->has_turned = true;
		s->is_up = !s->is_up;
		s->step = s->is_up ? 1 : f->n_spare;
	}
	s->goal = s->is_up ? f->n_cpus + s->step : f->n_cpus - s->step;
	s->phase = S_MOVE;
	s->phase_ns = f->now_ns;
	series_reset(s, SKIP_SLICES);
}

static void base_done(struct search *s, const struct search_facts *f)
{
	s->base = s->now;
	s->base_cpus = s->slice_cpus;
	next_try(s, f);
}

/* How far what was tried is from what it must bring; negative: it is not worth it. */
static double surplus(const struct search *s)
{
	uint32_t k = s->is_up ? s->slice_cpus - s->base_cpus : s->base_cpus - s->slice_cpus;
	double average = mean(&s->base) / s->base_cpus;

	return mean(&s->now) - mean(&s->base) +
	       (s->is_up ? -TAKE_SHARE : GIVE_SHARE) * k * average;
}

static void keep(struct search *s, const struct search_facts *f)
{
	s->base = s->now;
	s->base_cpus = s->slice_cpus;
	s->is_blind = false;
	if (s->is_up)
		s->step *= 2;
	else if (f->n_spare && f->n_spare < s->step)
		s->step = f->n_spare;
	next_try(s, f);
}

static void undo(struct search *s, const struct search_facts *f)
{
	double lost = mean(&s->base) - mean(&s->now);
	double average = mean(&s->base) / s->base_cpus;

	if (!s->is_up && lost > CONCAVE_SHARE * s->step * average)
		s->step = 0;
	else
		s->step /= 2;
	s->goal = s->base_cpus;
	s->phase = S_UNDO;
	s->phase_ns = f->now_ns;
	series_reset(s, SKIP_SLICES);
}

static void begin_search(struct search *s, bool is_up, uint32_t step)
{
	s->is_up = is_up;
	s->step = step;
	s->has_turned = false;
	enter_base(s);
}

/* Work ran out in the middle: what was measured before is old by the time there is some again. */
static void forget(struct search *s)
{
	s->goal = UINT32_MAX;
	begin_search(s, false, 0);
}

static void judge(struct search *s, const struct search_facts *f)
{
	double above = surplus(s), variance = rate_variance(&s->base) + rate_variance(&s->now);
	bool is_clear = s->now.n >= SLICES_EARLY && is_beyond(above, CLEAR_ERRORS, variance);

	if (!is_clear && s->now.n < SEARCH_SLICES)
		return;
	if (above >= 0 && (!s->is_up || is_beyond(above, TAKE_ERRORS, variance)))
		keep(s, f);
	else
		undo(s, f);
}

/* The host decided otherwise, or does not answer: begin with what there is. */
static void give_up(struct search *s, const struct search_facts *f)
{
	if (s->goal != UINT32_MAX)
		s->goal = f->n_cpus >= f->n_max ? UINT32_MAX : f->n_cpus;
	s->has_turned = true;
	s->is_up = true;
	s->step = 0;
	enter_base(s);
}

/* Did throughput or waste change by more than noise? *ret_is_better: as if scaling improved. */
static bool has_shifted(const struct search *s, bool *ret_is_better)
{
	double rate = mean(&s->now) - mean(&s->base);
	double waste = mean_waste(&s->now) - mean_waste(&s->base);
	double least = SHIFT_RATE * mean(&s->base);
	bool is_rate = rate * rate > least * least &&
		       is_beyond(rate, SHIFT_ERRORS,
				 rate_variance(&s->base) + rate_variance(&s->now));
	bool is_waste = waste * waste > SHIFT_WASTE * SHIFT_WASTE &&
			is_beyond(waste, SHIFT_ERRORS,
				  waste_variance(&s->base) + waste_variance(&s->now));

	/* Waste says more of scaling than a machine that got slower or faster. */
	*ret_is_better = is_waste ? waste < 0 : rate > 0;
	return is_rate || is_waste;
}

static void probe(struct search *s, const struct search_facts *f)
{
	bool is_full = f->n_cpus >= f->n_max;

	if (is_full && f->now_ns >= s->blind_ns) {
		s->blind_ns = f->now_ns + s->blind_length_ns;
		if (s->blind_length_ns < BLIND_MAX_NS)
			s->blind_length_ns *= 2;
		s->is_blind = true;
		begin_search(s, false, 1);
		return;
	}
	/* One direction at a time, in turns where there are two. */
	s->has_probed_up = !is_full && !s->has_probed_up;
	begin_search(s, s->has_probed_up, s->has_probed_up ? 1 : f->n_spare);
	s->has_turned = true;
}

static void watch(struct search *s, const struct search_facts *f)
{
	bool is_better;

	if (s->now.n >= WATCH_SLICES) {
		if (has_shifted(s, &is_better)) {
			s->probe_length_ns = PROBE_FIRST_NS;
			begin_search(s, is_better && f->n_cpus < f->n_max,
				     is_better && f->n_cpus < f->n_max ? f->n_max - f->n_cpus :
									 f->n_spare);
			return;
		}
		series_reset(s, 0);
	}
	if (f->now_ns >= s->probe_ns && s->is_measuring)
		probe(s, f);
}

/* S_MOVE and S_UNDO: are the CPUs there, or was that long enough to wait? */
static bool has_arrived(struct search *s, const struct search_facts *f)
{
	if (f->is_moving)
		return false;
	if (f->n_cpus == s->goal)
		return true;
	if (f->now_ns - s->phase_ns >= MOVE_PATIENCE_NS)
		give_up(s, f);
	return false;
}

uint32_t search_next(struct search *s, const struct search_facts *f)
{
	bool is_added;

	/* Those CPUs are not the ones that were measured: somebody else decided. */
	if ((s->phase == S_TRY || s->phase == S_WATCH || s->phase == S_BASE) && s->now.n &&
	    f->n_cpus != s->slice_cpus) {
		if (s->phase == S_BASE)
			series_reset(s, SKIP_SLICES);
		else
			give_up(s, f);
	}
	is_added = take_slice(s, f);
	switch (s->phase) {
	case S_BASE:
		if (!s->step && !s->has_turned)
			s->step = f->n_spare;	/* the very first search */
		if (is_added && is_enough(&s->now))
			base_done(s, f);
		break;
	case S_MOVE:
		if (has_arrived(s, f)) {
			s->phase = S_TRY;
			s->phase_ns = f->now_ns;
			series_reset(s, SKIP_SLICES);
		}
		break;
	case S_TRY:
		if (is_added)
			judge(s, f);
		else if (f->now_ns - s->phase_ns >= TRY_PATIENCE_NS)
			forget(s);
		break;
	case S_UNDO:
		if (has_arrived(s, f))
			next_try(s, f);
		break;
	case S_WATCH:
		watch(s, f);
		break;
	}
	return s->goal;
}
