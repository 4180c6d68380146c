// SPDX-License-Identifier: GPL-2.0-or-later
/* Finding the number of CPUs that pays: see elastic_search.h. */
#include <math.h>

#include "elastic_search.h"

#define MS		1000000ull
/* After a move caches and queues are not yet what they will be. */
#define SKIP_SLICES	2u
/* The most windows with each number before a comparison is decided. */
#define WINDOWS		4u
/*
 * The machine, or all workers, stood still during a slice that took longer, or that committed less
 * than this part of what is usual; unless STILL_IN_A_ROW slices do.
 */
#define STILL_NS	(3 * SEARCH_LOOK_NS)
#define STILL_SHARE	0.05
#define STILL_IN_A_ROW	20u
/* The best and the worst slices of a window are left out: one part in TRIM at either end. */
#define TRIM		4u
/* With fewer commits per slice on average, single transactions decide, and none are left out. */
#define COMMITS_ENOUGH	25u
/* Noise: what is assumed first, the most, and the weight of the latest difference. */
#define RATE_NOISE_FIRST	(0.05 * 0.05)
#define RATE_NOISE_MAX	(0.2 * 0.2)
#define WASTE_NOISE_FIRST	(0.005 * 0.005)
#define NOISE_WEIGHT	0.2
/* A difference is clear if it is so many times the noise. */
#define CLEAR_ERRORS	2.0
/*
 * Another workload: what windows are off by more than SLACK_ERRORS, each, adds up to SUM_ERRORS
 * (Page 1954). So one of six errors is enough, and some of two are.
 */
#define SLACK_ERRORS	1.0
#define SUM_ERRORS	5.0
/* Smaller shifts than these are left to probes. */
#define SHIFT_RATE	0.12
#define SHIFT_WASTE	0.06
/* Parts of what the average CPU brings: a CPU given up brought no more, one taken brings that. */
#define GIVE_SHARE	0.1
#define TAKE_SHARE	0.2
#define PATIENCE_NS	(10000 * MS)
#define PROBE_FIRST_NS	(3000 * MS)
#define PROBE_DOUBLINGS	4u
#define BLIND_FIRST_NS	(30000 * MS)
#define BLIND_MAX_NS	(600000 * MS)

static double square(double x)
{
	return x * x;
}

/* Is the difference more than so many standard errors? Without a root: both sides squared. */
static bool is_beyond(double difference, double errors, double variance)
{
	return square(difference) > square(errors) * variance;
}

static void window_add(struct search_window *window, double rate, uint64_t committed, double waste)
{
	uint32_t at = window->n++;

	for (; at && window->rates[at - 1] > rate; at--)
		window->rates[at] = window->rates[at - 1];
	window->rates[at] = rate;
	window->committed += committed;
	window->waste += waste;
}

/*
 * Of a full window: a trimmed mean, and the variance of that by the winsorized slices (Tukey and
 * McLaughlin 1963): those that are left out count as the nearest that is not.
 */
static struct search_figures window_figures(const struct search_window *window)
{
	uint32_t n = window->n, cut = window->committed < COMMITS_ENOUGH * n ? 0 : n / TRIM;
	uint32_t kept = n - 2 * cut;
	const double *rates = window->rates + cut;
	double mean = 0, winsorized, squares = 0;

	for (uint32_t i = 0; i < kept; i++)
		mean += rates[i] / kept;
	winsorized = (mean * kept + cut * (rates[0] + rates[kept - 1])) / n;
	for (uint32_t i = 0; i < kept; i++)
		squares += square(rates[i] - winsorized);
	squares += cut * (square(rates[0] - winsorized) + square(rates[kept - 1] - winsorized));
	return (struct search_figures){
		.rate = mean,
		.waste = window->waste / n,
		.rate_variance = squares * n / ((double)(n - 1) * kept * kept),
	};
}

static void side_add(struct search_side *side, uint32_t cpus, struct search_figures window)
{
	side->cpus = cpus;
	side->windows++;
	side->latest = window;
	side->mean.rate += (window.rate - side->mean.rate) / side->windows;
	side->mean.waste += (window.waste - side->mean.waste) / side->windows;
	side->mean.rate_variance +=
		(window.rate_variance - side->mean.rate_variance) / side->windows;
}

void search_init(struct search *s, uint64_t now_ns)
{
	*s = (struct search){
		.goal = UINT32_MAX,
		.rate_noise = RATE_NOISE_FIRST,
		.waste_noise = WASTE_NOISE_FIRST,
		.phase_ns = now_ns,
		.blind_ns = now_ns + BLIND_FIRST_NS,
		.blind_length_ns = BLIND_FIRST_NS,
	};
}

/* The side has got another window with the same CPUs. */
static void note_noise(struct search *s, const struct search_side *side,
		       struct search_figures window)
{
	double sum = window.rate + side->mean.rate, scale = 1 + 1.0 / side->windows;
	double rate, waste = square(window.waste - side->mean.waste) / scale;

	s->waste_noise += NOISE_WEIGHT * (waste - s->waste_noise);
	if (sum <= 0)
		return;
	rate = square(2 * (window.rate - side->mean.rate) / sum) / scale;
	if (rate > RATE_NOISE_MAX)
		rate = RATE_NOISE_MAX;
	s->rate_noise += NOISE_WEIGHT * (rate - s->rate_noise);
}

static bool is_still(struct search *s, uint64_t slice_ns, uint64_t committed)
{
	double least = STILL_SHARE * s->usual_rate * (double)slice_ns / 1e9;

	if (slice_ns < STILL_NS && (double)committed >= least) {
		s->n_still = 0;
		return false;
	}
	if (s->n_still == STILL_IN_A_ROW)
		return false;
	s->n_still++;
	return true;
}

/* True: the window has got its last one. */
static bool end_slice(struct search *s, const struct search_facts *f)
{
	uint64_t slice_ns = f->now_ns - s->slice_ns;
	uint64_t committed = f->committed - s->slice_committed;
	double stalled_ns = (double)(f->stalled_ns - s->slice_stalled_ns);

	if (is_still(s, slice_ns, committed)) {
		/* The next one is not whole either. */
		s->skip = s->skip ?: 1;
		return false;
	}
	if (s->skip) {
		s->skip--;
		return false;
	}
	/* A stall is counted when it ends, and may have begun slices ago. */
	window_add(&s->window, (double)committed * 1e9 / (double)slice_ns, committed,
		   stalled_ns / ((double)slice_ns * f->n_cpus));
	if (s->window.n < SEARCH_SLICES)
		return false;
	s->usual_rate = window_figures(&s->window).rate;
	return true;
}

/* Closes the slice if it is due. True: the window is full. */
static bool take_slice(struct search *s, const struct search_facts *f)
{
	bool is_full = false;

	if (s->is_measuring && (f->is_moving || !f->is_busy || f->n_cpus != s->slice_cpus))
		s->is_measuring = false;
	if (s->is_measuring) {
		if (f->now_ns - s->slice_ns < SEARCH_LOOK_NS)
			return false;
		is_full = end_slice(s, f);
	}
	if (!f->is_moving) {
		s->is_measuring = true;
		s->slice_cpus = f->n_cpus;
		s->slice_ns = f->now_ns;
		s->slice_committed = f->committed;
		s->slice_stalled_ns = f->stalled_ns;
	}
	return is_full;
}

static void enter(struct search *s, const struct search_facts *f, enum search_phase phase,
		  uint32_t skip)
{
	s->phase = phase;
	s->phase_ns = f->now_ns;
	s->window = (struct search_window){ 0 };
	s->sums = (struct search_sums){ 0 };
	s->is_measuring = false;
	s->skip = skip;
}

static void move_to(struct search *s, const struct search_facts *f, uint32_t goal,
		    enum search_then then)
{
	s->goal = goal;
	s->then = then;
	s->is_other = goal != s->base.cpus;
	enter(s, f, S_MOVE, SKIP_SLICES);
}

/* Nothing more to try: the goal that was found stands. */
static void enter_watch(struct search *s, const struct search_facts *f)
{
	uint32_t doublings = s->n_probes < PROBE_DOUBLINGS ? s->n_probes : PROBE_DOUBLINGS;

	enter(s, f, S_WATCH, SKIP_SLICES);
	s->probe_ns = f->now_ns + (PROBE_FIRST_NS << doublings);
	/* A blind probe does not follow at once, though it may be long due. */
	if (s->blind_ns < f->now_ns + BLIND_FIRST_NS)
		s->blind_ns = f->now_ns + BLIND_FIRST_NS;
}

static void begin_search(struct search *s, const struct search_facts *f, bool is_up, uint32_t step)
{
	s->other = (struct search_side){ 0 };
	s->is_other = s->has_turned = s->is_probe = s->is_blind = false;
	s->is_up = is_up;
	s->step = step;
	enter(s, f, S_MEASURE, 0);
}

/* The workload has shifted: searches from the CPUs that are held now. */
static void restart(struct search *s, const struct search_facts *f)
{
	bool is_up = s->is_better && f->n_cpus < f->n_max;

	s->n_probes = 0;
	s->base.windows = 0;
	s->goal = f->n_cpus < f->n_max ? f->n_cpus : UINT32_MAX;
	begin_search(s, f, is_up, is_up ? f->n_max - f->n_cpus : f->n_spare);
}

/* The host decided otherwise, or does not answer: begins with the CPUs there are. */
static void give_up(struct search *s, const struct search_facts *f)
{
	if (s->goal != UINT32_MAX)
		s->goal = f->n_cpus >= f->n_max ? UINT32_MAX : f->n_cpus;
	begin_search(s, f, true, 0);
	s->has_turned = true;
}

/* Could throughput with k CPUs fewer be worth it? At best the others waste no time at all. */
static bool can_pay(const struct search_side *side, uint32_t k)
{
	double n = side->cpus;

	return (n - k) / n >= (1 - side->mean.waste) * (1 - GIVE_SHARE * k / n);
}

/* The step as far as there are CPUs for it, and as it can pay. */
static uint32_t step_bounded(const struct search *s, const struct search_facts *f)
{
	uint32_t from = s->is_up ? f->n_cpus : f->n_min, to = s->is_up ? f->n_max : f->n_cpus;
	uint32_t most = to > from ? to - from : 0, step = s->step < most ? s->step : most;

	while (step && !s->is_up && !s->is_blind && !can_pay(&s->base, step))
		step /= 2;
	return step;
}

static void next_try(struct search *s, const struct search_facts *f)
{
	s->other = (struct search_side){ 0 };
	while (!(s->step = step_bounded(s, f))) {
		if (s->has_turned) {
			if (f->n_cpus >= f->n_max)
				s->goal = UINT32_MAX;
			enter_watch(s, f);
			return;
		}
		s->has_turned = true;
		s->is_up = !s->is_up;
		s->step = s->is_up ? 1 : f->n_spare;
	}
	/* Older windows are from too long ago to be compared with those that come. */
	s->base.windows = 1;
	s->base.mean = s->base.latest;
	move_to(s, f, s->is_up ? f->n_cpus + s->step : f->n_cpus - s->step, THEN_MEASURE);
}

enum verdict {
	V_UNCLEAR,
	V_KEEP,
	V_UNDO,
};

/*
 * Of the mean rate of a side. Windows differ by what changes within seconds, too, which slices of
 * one do not show; but how they did so with another load says nothing of one that is less even.
 */
static double side_variance(const struct search *s, const struct search_side *side)
{
	double between = s->rate_noise * square(side->mean.rate);
	double within = side->mean.rate_variance;

	return (between > within ? between : within) / side->windows;
}

/*
 * Compares the windows with the old and with the new number of CPUs. That is done after each
 * window, and each time noise may look like a difference. So early ones must be clearer: by the
 * root of what is measured of all that may be (O'Brien and Fleming 1979).
 */
static enum verdict compare(const struct search *s)
{
	double base = s->base.mean.rate, other = s->other.mean.rate;
	double measured = 2.0 / WINDOWS / (1.0 / s->base.windows + 1.0 / s->other.windows);
	double variance = (side_variance(s, &s->base) + side_variance(s, &s->other)) / measured;
	double added = (double)s->other.cpus - (double)s->base.cpus;
	double must_add = (s->is_up ? TAKE_SHARE : GIVE_SHARE) * added * base / s->base.cpus;
	double above = other - base - must_add;
	bool is_clear = is_beyond(above, CLEAR_ERRORS, variance);

	/* CPUs that it could not pay to give back are taken, unless they clearly cost something. */
	if (s->is_up && !can_pay(&s->other, s->other.cpus - s->base.cpus) &&
	    (other > base || !is_beyond(base - other, CLEAR_ERRORS, variance)))
		return V_KEEP;
	if (!is_clear && s->other.windows < WINDOWS)
		return V_UNCLEAR;
	/* In the end, more CPUs are not taken for what may be noise. */
	return above >= 0 && (!s->is_up || is_clear) ? V_KEEP : V_UNDO;
}

static void keep(struct search *s, const struct search_facts *f)
{
	/* A probe that pays: the load is no longer that of the search. Soon all CPUs are tried. */
	if (s->is_probe && s->other.mean.rate >= s->base.mean.rate)
		s->n_probes = 0;
	s->base = s->other;
	s->is_probe = s->is_blind = false;
	if (s->is_up)
		s->step *= 2;
	else if (f->n_spare && f->n_spare < s->step)
		s->step = f->n_spare;
	next_try(s, f);
}

static void undo(struct search *s, const struct search_facts *f)
{
	s->step = s->is_probe ? 0 : s->step / 2;
	if (s->is_other)
		move_to(s, f, s->base.cpus, THEN_TRY);
	else
		next_try(s, f);
}

/* Adds what goes beyond the slack. True: that is another workload. */
static bool sum_up(double *sum, double difference, double error, double least_shift)
{
	double slack = fmax(SLACK_ERRORS * error, least_shift / 2);

	*sum = fmax(*sum + difference - slack, 0);
	return *sum > fmax(SUM_ERRORS * error, least_shift / 2);
}

/* Is the window another workload than the side? *ret_is_better: as if scaling improved. */
static bool has_shifted(struct search *s, const struct search_side *side,
			struct search_figures window, bool *ret_is_better)
{
	double rate = window.rate - side->mean.rate, waste = window.waste - side->mean.waste;
	double least_rate = SHIFT_RATE * side->mean.rate, rate_error, waste_error;
	struct search_side alone = { .windows = 1, .mean = window };
	bool is_more, is_less, is_worse, is_better;

	/* With the same workload its rate would be expected to be the same, too. */
	alone.mean.rate = side->mean.rate;
	rate_error = sqrt(side_variance(s, side) + side_variance(s, &alone));
	waste_error = sqrt((1 + 1.0 / side->windows) * s->waste_noise);
	is_more = sum_up(&s->sums.more, rate, rate_error, least_rate);
	is_less = sum_up(&s->sums.less, -rate, rate_error, least_rate);
	is_worse = sum_up(&s->sums.worse, waste, waste_error, SHIFT_WASTE);
	is_better = sum_up(&s->sums.better, -waste, waste_error, SHIFT_WASTE);
	/* Waste says more of scaling than a machine that got slower or faster. */
	*ret_is_better = is_worse || is_better ? is_better : is_more;
	return is_more || is_less || is_worse || is_better;
}

/* True: the search begins anew. */
static bool restart_if_shifted(struct search *s, const struct search_facts *f,
			       const struct search_side *side, struct search_figures window)
{
	bool is_better;

	if (!side->windows || side->cpus != f->n_cpus ||
	    !has_shifted(s, side, window, &is_better))
		return false;
	s->is_better = is_better;
	/* Nothing was decided for fewer CPUs that are on trial. */
	if (s->is_other && !s->is_up)
		move_to(s, f, s->base.cpus, THEN_RESTART);
	else
		restart(s, f);
	return true;
}

/* S_MEASURE: a window is full. */
static void take_window(struct search *s, const struct search_facts *f)
{
	struct search_side *side = s->is_other ? &s->other : &s->base;
	struct search_figures window = window_figures(&s->window);
	enum verdict verdict;

	if (restart_if_shifted(s, f, side, window))
		return;
	if (!s->is_other && !s->other.windows) {
		/* The first one of a search. */
		s->base = (struct search_side){ 0 };
		side_add(&s->base, f->n_cpus, window);
		next_try(s, f);
		return;
	}
	if (side->windows)
		note_noise(s, side, window);
	side_add(side, f->n_cpus, window);
	verdict = compare(s);
	if (verdict == V_UNDO)
		undo(s, f);
	else if (verdict == V_KEEP && s->is_other)
		keep(s, f);
	else
		/* To be kept, the other one must be good in a window that is measured there. */
		move_to(s, f, s->is_other ? s->base.cpus : s->other.cpus, THEN_MEASURE);
}

static void probe(struct search *s, const struct search_facts *f)
{
	bool is_full = f->n_cpus >= f->n_max;
	bool is_up = !is_full && (s->n_probes % 2 == 0 || !f->n_spare);
	/* The first time all CPUs: one bad moment may have said that so few pay. */
	uint32_t up = s->n_probes ? 1 : f->n_max - f->n_cpus;

	if (is_full && f->now_ns >= s->blind_ns) {
		s->blind_ns = f->now_ns + s->blind_length_ns;
		if (s->blind_length_ns < BLIND_MAX_NS)
			s->blind_length_ns *= 2;
		begin_search(s, f, false, 1);
		s->is_blind = true;
	} else {
		begin_search(s, f, is_up, is_up ? up : f->n_spare);
		s->n_probes++;
	}
	s->has_turned = s->is_probe = true;
}

static void watch(struct search *s, const struct search_facts *f, bool is_full)
{
	struct search_figures window;

	if (is_full) {
		window = window_figures(&s->window);
		if (restart_if_shifted(s, f, &s->base, window))
			return;
		note_noise(s, &s->base, window);
		s->window = (struct search_window){ 0 };
	}
	if (f->now_ns >= s->probe_ns && s->is_measuring)
		probe(s, f);
}

/* S_MOVE: the CPUs are there. */
static void arrive(struct search *s, const struct search_facts *f)
{
	switch (s->then) {
	case THEN_MEASURE:
		enter(s, f, S_MEASURE, SKIP_SLICES);
		break;
	case THEN_TRY:
		next_try(s, f);
		break;
	case THEN_RESTART:
		restart(s, f);
		s->skip = SKIP_SLICES;
		break;
	}
}

/* Are the CPUs not those that are to be measured? Then the host has decided. */
static bool is_disturbed(const struct search *s, const struct search_facts *f)
{
	if (s->phase == S_MOVE)
		return false;
	if (s->is_other)
		return f->n_cpus != s->goal;
	return (s->phase == S_WATCH || s->other.windows) && f->n_cpus != s->base.cpus;
}

uint32_t search_next(struct search *s, const struct search_facts *f)
{
	bool is_late = f->now_ns - s->phase_ns >= PATIENCE_NS, is_full;

	if (is_disturbed(s, f))
		give_up(s, f);
	else if (s->phase == S_MEASURE && s->window.n && f->n_cpus != s->slice_cpus)
		enter(s, f, S_MEASURE, SKIP_SLICES);
	is_full = take_slice(s, f);
	switch (s->phase) {
	case S_MEASURE:
		if (!s->step && !s->has_turned)
			s->step = f->n_spare;	/* the very first search */
		if (is_full) {
			take_window(s, f);
		} else if (is_late && (s->is_other || s->other.windows)) {
			/* Work ran out: the windows are too old by the time there is more. */
			s->goal = UINT32_MAX;
			begin_search(s, f, false, 0);
		}
		break;
	case S_MOVE:
		if (!f->is_moving && f->n_cpus == s->goal)
			arrive(s, f);
		else if (!f->is_moving && is_late)
			give_up(s, f);
		break;
	case S_WATCH:
		watch(s, f, is_full);
		break;
	}
	return s->goal;
}
