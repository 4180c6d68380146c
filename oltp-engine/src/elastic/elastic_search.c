// SPDX-License-Identifier: GPL-2.0-or-later
/* Finding the number of CPUs that pays: see elastic_search.h. */
#include "elastic_search.h"

#define MS		1000000ull
#define SLICE_NS	SEARCH_LOOK_NS
/* After a move caches and queues are not yet what they will be. */
#define SKIP_SLICES	2u
#define WINDOW_SLICES	10u
#define WINDOWS		(SERIES_SLICES / WINDOW_SLICES)
/*
 * The machine, or all workers, stood still during a slice that took longer, or that committed less
 * than this part of what is usual; unless so many in a row do.
 */
#define STILL_NS	(3 * SLICE_NS)
#define STILL_SHARE	0.05
#define STILL_IN_A_ROW	20u
/* Weight of the latest difference between two windows, and the most that they tell. */
#define UNREST_WEIGHT	0.2
#define UNREST_FIRST	(0.05 * 0.05)
#define UNREST_MAX	(0.2 * 0.2)
/* More CPUs are not kept for what may be noise: with many probes some of it looks like a gain. */
#define CLEAR_ERRORS	3.0
#define TAKE_ERRORS	1.5
#define SHIFT_ERRORS	4.0
/* Smaller shifts than these are left to the probes. */
#define SHIFT_RATE	0.12
#define SHIFT_WASTE	0.06
/* Of what the average CPU brings: a CPU given up may have brought so much, one taken must. */
#define GIVE_SHARE	0.1
#define TAKE_SHARE	0.2
/* CPUs that bring at least this much tell that fewer of them would be missed as well. */
#define CONCAVE_SHARE	0.5
#define MOVE_PATIENCE_NS	(5000 * MS)
#define TRY_PATIENCE_NS	(10000 * MS)
#define PROBE_FIRST_NS	(2000 * MS)
#define PROBE_MAX_NS	(60000 * MS)
#define BLIND_FIRST_NS	(30000 * MS)
#define BLIND_MAX_NS	(600000 * MS)
/* Left out of a series at either end: one part in so many. */
#define TRIM		4u
/* Single transactions are too few to trim: slices with so many, on average, are not. */
#define COMMITS_ENOUGH	25u

/* How many slices are left out at either end. */
static uint32_t n_trimmed(const struct series *series)
{
	return series->committed < (uint64_t)COMMITS_ENOUGH * series->n ? 0 : series->n / TRIM;
}

/* Transactions per second; 0 if it is empty. */
static double series_rate(const struct series *series)
{
	uint32_t cut = n_trimmed(series), n = series->n - 2 * cut;
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += series->rates[cut + i];
	return n ? sum / n : 0;
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

/*
 * Of what series_rate returns, as far as it follows from the differences between slices. What was
 * cut off counts as the last value that was not (winsorized).
 */
static double series_rate_variance(const struct series *series)
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

static double series_waste(const struct series *series)
{
	return series->n ? series->waste / series->n : 0;
}

static double series_waste_variance(const struct series *series)
{
	return variance_of_mean(series->n, series->waste, series->waste_squares);
}

static void series_insert(struct series *series, double rate)
{
	uint32_t at = series->n++;

	for (; at && series->rates[at - 1] > rate; at--)
		series->rates[at] = series->rates[at - 1];
	series->rates[at] = rate;
}

/*
 * The series has room. waste: share of time; a stall is counted when it ends, and may have begun
 * slices ago.
 */
static void series_add(struct series *series, double seconds, uint64_t committed, double waste)
{
	series_insert(series, (double)committed / seconds);
	series->committed += committed;
	series->waste += waste;
	series->waste_squares += waste * waste;
}

/* Adds the slices of `more`; both together are at most SERIES_SLICES. */
static void series_merge(struct series *series, const struct series *more)
{
	for (uint32_t i = 0; i < more->n; i++)
		series_insert(series, more->rates[i]);
	series->committed += more->committed;
	series->waste += more->waste;
	series->waste_squares += more->waste_squares;
}

void search_init(struct search *s, uint64_t now_ns)
{
	*s = (struct search){
		.phase = S_BASE,
		.goal = UINT32_MAX,
		.unrest = UNREST_FIRST,
		.probe_length_ns = PROBE_FIRST_NS,
		.blind_ns = now_ns + BLIND_FIRST_NS,
		.blind_length_ns = BLIND_FIRST_NS,
	};
}

/* Is the difference more than so many standard errors? Without a root: both sides squared. */
static bool is_beyond(double difference, double errors, double variance)
{
	return difference * difference > errors * errors * variance;
}

/* Of the rate of a side, by its slices and by how windows differ. */
static double side_variance(const struct search *s, const struct search_side *side)
{
	double by_slices = series_rate_variance(&side->series), rate = series_rate(&side->series);
	double by_windows = s->unrest * rate * rate / side->windows;

	return by_slices > by_windows ? by_slices : by_windows;
}

static void side_add(struct search_side *side, uint32_t cpus, const struct series *window)
{
	side->cpus = cpus;
	side->windows++;
	side->latest = *window;
	series_merge(&side->series, window);
}

static void side_begin(struct search_side *side, uint32_t cpus, const struct series *window)
{
	*side = (struct search_side){ .cpus = cpus, .windows = 1, .series = *window,
				      .latest = *window };
}

/* Older windows are from too long ago to be compared with what is measured next. */
static void side_keep_latest(struct search_side *side)
{
	side->windows = 1;
	side->series = side->latest;
}

/* Another window with as many CPUs as those of the side. */
static void note_unrest(struct search *s, const struct search_side *side)
{
	double now = series_rate(&s->window), before = series_rate(&side->series);
	double difference, variance;

	if (now + before <= 0)
		return;
	difference = 2 * (now - before) / (now + before);
	variance = difference * difference / (1 + 1.0 / side->windows);
	if (variance > UNREST_MAX)
		variance = UNREST_MAX;
	s->unrest += UNREST_WEIGHT * (variance - s->unrest);
}

static void window_begin(struct search *s, uint32_t skip)
{
	s->window = (struct series){ 0 };
	s->is_measuring = false;
	s->skip = skip;
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
	series_add(&s->window, (double)slice_ns / 1e9, committed,
		   stalled_ns / ((double)slice_ns * f->n_cpus));
	if (s->window.n < WINDOW_SLICES)
		return false;
	s->usual_rate = series_rate(&s->window);
	return true;
}

/* Closes the slice if it is due. True: the window is full. */
static bool take_slice(struct search *s, const struct search_facts *f)
{
	bool is_full = false;

	if (s->is_measuring && (f->is_moving || !f->is_busy || f->n_cpus != s->slice_cpus))
		s->is_measuring = false;
	if (s->is_measuring) {
		if (f->now_ns - s->slice_ns < SLICE_NS)
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

static void enter_base(struct search *s)
{
	s->phase = S_BASE;
	window_begin(s, 0);
}

static void move_to(struct search *s, const struct search_facts *f, uint32_t goal,
		    enum search_phase phase)
{
	s->goal = goal;
	s->phase = phase;
	s->phase_ns = f->now_ns;
	window_begin(s, SKIP_SLICES);
}

/* Nothing more to try: the goal that was found stands. */
static void enter_watch(struct search *s, const struct search_facts *f)
{
	s->phase = S_WATCH;
	s->is_blind = false;
	window_begin(s, SKIP_SLICES);
	s->probe_ns = f->now_ns + s->probe_length_ns;
	/* Not at once after a search, though it may be long due. */
	if (s->blind_ns < f->now_ns + BLIND_FIRST_NS)
		s->blind_ns = f->now_ns + BLIND_FIRST_NS;
	s->probe_length_ns *= 2;
	if (s->probe_length_ns > PROBE_MAX_NS)
		s->probe_length_ns = PROBE_MAX_NS;
}

/* Could throughput with k CPUs fewer be worth it? At best the others waste no time at all. */
static bool can_pay(const struct search_side *side, uint32_t k)
{
	double n = side->cpus;

	return (n - k) / n >= (1 - series_waste(&side->series)) * (1 - GIVE_SHARE * k / n);
}

static uint32_t step_down(const struct search *s, const struct search_facts *f)
{
	uint32_t most = f->n_cpus > f->n_min ? f->n_cpus - f->n_min : 0;
	uint32_t step = s->step < most ? s->step : most;

	while (step && !s->is_blind && !can_pay(&s->base, step))
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
	side_keep_latest(&s->base);
	move_to(s, f, s->is_up ? f->n_cpus + s->step : f->n_cpus - s->step, S_MOVE);
}

/* How far what was tried is from what it must bring; negative: it is not worth it. */
static double surplus(const struct search *s)
{
	uint32_t k = s->is_up ? s->other.cpus - s->base.cpus : s->base.cpus - s->other.cpus;
	double base = series_rate(&s->base.series), average = base / s->base.cpus;

	return series_rate(&s->other.series) - base +
	       (s->is_up ? -TAKE_SHARE : GIVE_SHARE) * k * average;
}

static void keep(struct search *s, const struct search_facts *f)
{
	s->base = s->other;
	s->other = (struct search_side){ 0 };
	s->is_blind = s->is_check = false;
	if (s->is_up)
		s->step *= 2;
	else if (f->n_spare && f->n_spare < s->step)
		s->step = f->n_spare;
	next_try(s, f);
}

/* The step that was tried is not to be kept: what to try instead. */
static void shorten_step(struct search *s)
{
	double base = series_rate(&s->base.series);
	double lost = base - series_rate(&s->other.series), average = base / s->base.cpus;

	if (s->is_check || (!s->is_up && lost > CONCAVE_SHARE * s->step * average))
		s->step = 0;
	else
		s->step /= 2;
	s->other = (struct search_side){ 0 };
}

static void begin_search(struct search *s, bool is_up, uint32_t step)
{
	s->is_up = is_up;
	s->step = step;
	s->has_turned = s->is_check = false;
	enter_base(s);
}

/* Work ran out in the middle: what was measured before is old by the time there is some again. */
static void forget(struct search *s)
{
	s->goal = UINT32_MAX;
	begin_search(s, false, 0);
}

enum verdict {
	V_UNCLEAR,
	V_KEEP,
	V_UNDO,
};

/* What the windows of both sides say. The more there are, the less is to be won by another one. */
static enum verdict compare(const struct search *s)
{
	static const double errors[WINDOWS] = { CLEAR_ERRORS, 2, 1.5, 0 };
	double above = surplus(s), variance = side_variance(s, &s->base) +
					      side_variance(s, &s->other);
	double lost = series_rate(&s->base.series) - series_rate(&s->other.series);
	double bound = errors[s->other.windows - 1];

	/* What it could not pay to give back is taken, unless that clearly costs something. */
	if (s->is_up && !can_pay(&s->other, s->other.cpus - s->base.cpus) &&
	    (lost < 0 || !is_beyond(lost, CLEAR_ERRORS, variance)))
		return V_KEEP;
	if (!is_beyond(above, bound, variance) && s->other.windows < WINDOWS)
		return V_UNCLEAR;
	return above >= 0 && (!s->is_up || is_beyond(above, TAKE_ERRORS, variance)) ? V_KEEP :
										      V_UNDO;
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

/* Is the window another workload than the side? *ret_is_better: as if scaling improved. */
static bool has_shifted(const struct search *s, const struct search_side *side, bool *ret_is_better)
{
	struct search_side window = { .windows = 1, .series = s->window };
	double before = series_rate(&side->series);
	double rate = series_rate(&s->window) - before;
	double waste = series_waste(&s->window) - series_waste(&side->series);
	double least = SHIFT_RATE * before;
	bool is_rate = rate * rate > least * least &&
		       is_beyond(rate, SHIFT_ERRORS,
				 side_variance(s, side) + side_variance(s, &window));
	bool is_waste = waste * waste > SHIFT_WASTE * SHIFT_WASTE &&
			is_beyond(waste, SHIFT_ERRORS,
				  series_waste_variance(&side->series) +
					  series_waste_variance(&s->window));

	/* Waste says more of scaling than a machine that got slower or faster. */
	*ret_is_better = is_waste ? waste < 0 : rate > 0;
	return is_rate || is_waste;
}

/* After a shift, from what is held now. */
static void search_anew(struct search *s, const struct search_facts *f, bool is_better)
{
	bool is_up = is_better && f->n_cpus < f->n_max;

	s->probe_length_ns = PROBE_FIRST_NS;
	s->has_checked = false;
	s->base.windows = 0;
	s->goal = f->n_cpus < f->n_max ? f->n_cpus : UINT32_MAX;
	begin_search(s, is_up, is_up ? f->n_max - f->n_cpus : f->n_spare);
}

/* The same, when it was fewer CPUs that were tried: nothing was decided for them. */
static void go_back_for_anew(struct search *s, const struct search_facts *f)
{
	s->probe_length_ns = PROBE_FIRST_NS;
	s->has_checked = false;
	move_to(s, f, s->base.cpus, S_RETURN);
}

/*
 * The first window of a search is. It may show what the watch would have seen, had it not been time
 * to look again just then.
 */
static void base_done(struct search *s, const struct search_facts *f)
{
	bool is_better;

	if (s->base.windows && s->base.cpus == f->n_cpus && has_shifted(s, &s->base, &is_better)) {
		search_anew(s, f, is_better);
		return;
	}
	side_begin(&s->base, f->n_cpus, &s->window);
	s->other = (struct search_side){ 0 };
	next_try(s, f);
}

/* A window of what is tried is full. */
static void judge_other(struct search *s, const struct search_facts *f)
{
	bool is_better;

	if (s->other.windows && has_shifted(s, &s->other, &is_better)) {
		if (s->is_up)
			search_anew(s, f, is_better);
		else
			go_back_for_anew(s, f);
		return;
	}
	if (s->other.windows)
		note_unrest(s, &s->other);
	side_add(&s->other, f->n_cpus, &s->window);
	switch (compare(s)) {
	case V_KEEP:
		keep(s, f);
		break;
	case V_UNDO:
		shorten_step(s);
		move_to(s, f, s->base.cpus, S_UNDO);
		break;
	case V_UNCLEAR:
		move_to(s, f, s->base.cpus, S_BACK);
		break;
	}
}

/* Another window of the base is. */
static void judge_base(struct search *s, const struct search_facts *f)
{
	bool is_better;

	if (has_shifted(s, &s->base, &is_better)) {
		search_anew(s, f, is_better);
		return;
	}
	note_unrest(s, &s->base);
	side_add(&s->base, f->n_cpus, &s->window);
	if (compare(s) == V_UNDO) {
		shorten_step(s);
		next_try(s, f);
	} else {
		/* That it is to be kept is for a window there to say. */
		move_to(s, f, s->other.cpus, S_MOVE);
	}
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
	/* Was it right to give up so many? One bad moment may have said so. */
	if (!is_full && !s->has_checked) {
		s->has_checked = true;
		s->probe_length_ns = PROBE_FIRST_NS;
		begin_search(s, true, f->n_max - f->n_cpus);
		s->has_turned = s->is_check = true;
		return;
	}
	/* One direction at a time, in turns where there are two. */
	s->has_probed_up = !is_full && (!s->has_probed_up || !f->n_spare);
	begin_search(s, s->has_probed_up, s->has_probed_up ? 1 : f->n_spare);
	s->has_turned = true;
}

static void watch(struct search *s, const struct search_facts *f, bool is_full)
{
	bool is_better;

	if (is_full) {
		if (has_shifted(s, &s->base, &is_better)) {
			search_anew(s, f, is_better);
			return;
		}
		note_unrest(s, &s->base);
		window_begin(s, 0);
	}
	if (f->now_ns >= s->probe_ns && s->is_measuring)
		probe(s, f);
}

/* S_MOVE, S_BACK, S_UNDO and S_RETURN: are the CPUs there, or was that long enough to wait? */
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

static void begin_measure(struct search *s, const struct search_facts *f, enum search_phase phase)
{
	s->phase = phase;
	s->phase_ns = f->now_ns;
	window_begin(s, SKIP_SLICES);
}

/* Are the CPUs not those that are being measured? Then somebody else has decided. */
static bool is_disturbed(const struct search *s, const struct search_facts *f)
{
	switch (s->phase) {
	case S_TRY:
		return f->n_cpus != s->goal;
	case S_AGAIN:
	case S_WATCH:
		return f->n_cpus != s->base.cpus;
	default:
		return false;
	}
}

uint32_t search_next(struct search *s, const struct search_facts *f)
{
	bool is_full;

	if (is_disturbed(s, f))
		give_up(s, f);
	else if (s->phase == S_BASE && s->window.n && f->n_cpus != s->slice_cpus)
		window_begin(s, SKIP_SLICES);
	is_full = take_slice(s, f);
	switch (s->phase) {
	case S_BASE:
		if (!s->step && !s->has_turned)
			s->step = f->n_spare;	/* the very first search */
		if (is_full)
			base_done(s, f);
		break;
	case S_MOVE:
		if (has_arrived(s, f))
			begin_measure(s, f, S_TRY);
		break;
	case S_BACK:
		if (has_arrived(s, f))
			begin_measure(s, f, S_AGAIN);
		break;
	case S_TRY:
	case S_AGAIN:
		if (!is_full && f->now_ns - s->phase_ns >= TRY_PATIENCE_NS)
			forget(s);
		else if (is_full && s->phase == S_TRY)
			judge_other(s, f);
		else if (is_full)
			judge_base(s, f);
		break;
	case S_UNDO:
		if (has_arrived(s, f))
			next_try(s, f);
		break;
	case S_RETURN:
		if (has_arrived(s, f)) {
			search_anew(s, f, false);
			window_begin(s, SKIP_SLICES);
		}
		break;
	case S_WATCH:
		watch(s, f, is_full);
		break;
	}
	return s->goal;
}
