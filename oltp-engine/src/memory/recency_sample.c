// SPDX-License-Identifier: GPL-2.0-or-later
/* See recency_sample.h and, for samples and classes, oltp_memory.h. */
#include <stddef.h>
#include <stdlib.h>

#include "oltp.h"
#include "recency_sample.h"

/* Uses closer together than a look at the sample cannot be told apart. */
#define RATE_MAX	50.0

void recency_clock_tick(struct recency_clock *clock, uint64_t epoch, uint64_t ns)
{
	for (uint32_t level = 0; level < RECENCY_LEVELS; level++) {
		if (clock->n & ((1ull << level) - 1))
			break;
		clock->ticks[level][(clock->n >> level) % RECENCY_LEVEL_TICKS] =
			(struct recency_tick){ epoch, ns };
	}
	clock->n++;
}

uint64_t recency_clock_ns(const struct recency_clock *clock, uint64_t epoch)
{
	for (uint32_t level = 0; clock->n && level < RECENCY_LEVELS; level++) {
		uint64_t newest = (clock->n - 1) >> level;

		for (uint32_t i = 0; i < RECENCY_LEVEL_TICKS && i <= newest; i++) {
			const struct recency_tick *tick =
				&clock->ticks[level][(newest - i) % RECENCY_LEVEL_TICKS];

			if (tick->epoch <= epoch)
				return tick->ns;
		}
	}
	return 0;
}

uint64_t recency_clock_epoch(const struct recency_clock *clock, uint64_t ns)
{
	for (uint32_t level = 0; clock->n && level < RECENCY_LEVELS; level++) {
		uint64_t newest = (clock->n - 1) >> level;

		for (uint32_t i = 0; i < RECENCY_LEVEL_TICKS && i <= newest; i++) {
			const struct recency_tick *tick =
				&clock->ticks[level][(newest - i) % RECENCY_LEVEL_TICKS];

			if (tick->ns <= ns)
				return tick->epoch;
		}
	}
	return 0;
}

void recency_begin(struct recency *recency, uint64_t stamp, uint64_t stamp_ns, uint64_t now_ns)
{
	*recency = (struct recency){ .since_ns = now_ns };
	recency_look(recency, stamp, stamp_ns);
}

void recency_look(struct recency *recency, uint64_t stamp, uint64_t stamp_ns)
{
	if (stamp <= recency->stamp)
		return;
	recency->stamp = stamp;
	if (stamp_ns <= recency->used_ns[0])
		return;
	recency->used_ns[1] = recency->used_ns[0];
	recency->used_ns[0] = stamp_ns;
}

uint32_t recency_members_wanted(const struct recency_facts *f, uint64_t all_resident_bytes)
{
	double share = all_resident_bytes ?
			       (double)f->resident_bytes / (double)all_resident_bytes : 0;
	uint32_t n = (uint32_t)(share * RECENCY_SAMPLES);

	return n > RECENCY_TABLE_MIN ? n : RECENCY_TABLE_MIN;
}

uint32_t recency_buckets_wanted(const struct recency_facts *f, uint64_t all_resident_bytes)
{
	double members = recency_members_wanted(f, all_resident_bytes);
	double max = f->n_buckets < RECENCY_BUCKETS_MAX ? (double)f->n_buckets :
							  RECENCY_BUCKETS_MAX;
	double n = f->n_watched ? f->n_watched : max;

	if (f->resident_records)
		n = members * (double)f->n_buckets / (double)f->resident_records + 1;
	if (n > max)
		n = max;
	/*
	 * With nearly all records on disk, too many of those would be watched to find some in
	 * memory.
	 */
	if (f->n_members > 0 && n * f->n_members > RECENCY_SLACK * members * f->n_watched)
		n = RECENCY_SLACK * members * f->n_watched / f->n_members;
	if (n < 1)
		n = 1;
	/*
	 * The uses of a record that is no longer watched are forgotten: small changes are not made.
	 */
	if (n < 1.5 * f->n_watched && 1.5 * n > f->n_watched)
		return f->n_watched;
	return (uint32_t)n;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

uint64_t recency_step(uint64_t n)
{
	/* The golden ratio leaves no large gaps, wherever one stops. */
	uint64_t step = (uint64_t)((double)n * 0.6180339887498949);

	if (!step)
		step = 1;
	while (common_divisor(step, n) != 1)
		step++;
	return step;
}

double oltp_memory_sample_rate(const struct oltp_memory_sample *sample)
{
	double age_ns = 2 * (double)sample->watched_ns, rate;

	if (sample->before_ns != OLTP_NOT_KNOWN)
		age_ns = (double)sample->before_ns;
	else if (sample->last_ns != OLTP_NOT_KNOWN)
		age_ns = 2 * (double)sample->last_ns;
	rate = 1e9 / age_ns;
	return sample->expected * (rate < RATE_MAX ? rate : RATE_MAX);
}

/* Resident ones first, the youngest of those first. */
static int compare_samples(const void *a, const void *b)
{
	const struct oltp_memory_sample *x = a, *y = b;

	if (x->is_resident != y->is_resident)
		return y->is_resident - x->is_resident;
	return (x->last_ns > y->last_ns) - (x->last_ns < y->last_ns);
}

static void class_add(struct oltp_memory_class *class, const struct oltp_memory_sample *sample)
{
	double uses = oltp_memory_sample_rate(sample) * (double)sample->stands_for_bytes /
		      sample->bytes;

	class->last_ns_max = sample->last_ns;
	class->bytes += sample->stands_for_bytes;
	class->samples++;
	class->uses_ps += uses;
	/* A sum over the class until the class is complete; then it is divided by its size. */
	class->value += uses * (double)sample->reread_ns;
}

uint32_t oltp_memory_classes_make(struct oltp_memory_sample *samples, uint32_t n,
				  struct oltp_memory_class *ret_classes, uint32_t max)
{
	uint32_t n_resident = 0, n_classes = 0;
	double all = 0, before = 0;

	qsort(samples, n, sizeof(*samples), compare_samples);
	while (n_resident < n && samples[n_resident].is_resident)
		all += (double)samples[n_resident++].stands_for_bytes;
	for (uint32_t i = 0; max && i < n_resident; i++) {
		bool is_same_age = i && samples[i].last_ns == samples[i - 1].last_ns;

		/*
		 * The next class begins when the ones before have their equal parts of the bytes.
		 */
		if (!n_classes ||
		    (n_classes < max && !is_same_age && before * max >= all * n_classes))
			ret_classes[n_classes++] = (struct oltp_memory_class){ 0 };
		class_add(&ret_classes[n_classes - 1], &samples[i]);
		before += (double)samples[i].stands_for_bytes;
	}
	for (uint32_t i = 0; i < n_classes; i++)
		ret_classes[i].value /= (double)ret_classes[i].bytes / (1 << 20);
	if (n_classes)
		ret_classes[n_classes - 1].last_ns_max = OLTP_NOT_KNOWN;
	return n_classes;
}
