// SPDX-License-Identifier: GPL-2.0-or-later
/* Making up transactions: which class, which operations, on which records. */
#include <errno.h>
#include <math.h>

#include "ycsb_private.h"
#include "ycsb_record.h"

#define WEIGHT_ONE	4096u
#define WEIGHT_MAX	1e6

int ycsb_set_theta(struct ycsb *ycsb, double theta)
{
	uint32_t n = atomic_load_explicit(&ycsb->n_zipfs, memory_order_relaxed);
	int rc;

	if (n == YCSB_THETAS_MAX)
		return -ENOSPC;
	rc = zipf_init(&ycsb->zipfs[n], ycsb->hot, theta,
		       ycsb->config.is_scrambled && !ycsb->cold_share &&
		       ycsb->config.keys != YCSB_KEYS_LATEST);
	/* Pairs with the acquire in newest_zipf. */
	if (!rc)
		atomic_store_explicit(&ycsb->n_zipfs, n + 1, memory_order_release);
	return rc;
}

static const struct zipf *newest_zipf(const struct ycsb *ycsb)
{
	/* Pairs with the release in ycsb_set_theta. */
	uint32_t n = atomic_load_explicit(&ycsb->n_zipfs, memory_order_acquire);

	return &ycsb->zipfs[n - 1];
}

double ycsb_theta(const struct ycsb *ycsb)
{
	return newest_zipf(ycsb)->theta;
}

int ycsb_set_window(struct ycsb *ycsb, uint64_t first, uint64_t records)
{
	if (!records)
		return -EINVAL;
	/* A draw in between takes one of the old and one of the new: harmless. */
	atomic_store_explicit(&ycsb->window_first, first % ycsb->config.records,
			      memory_order_relaxed);
	atomic_store_explicit(&ycsb->window_records,
			      records < ycsb->config.records ? records : ycsb->config.records,
			      memory_order_relaxed);
	return 0;
}

void ycsb_window(const struct ycsb *ycsb, uint64_t *ret_first, uint64_t *ret_records)
{
	*ret_first = atomic_load_explicit(&ycsb->window_first, memory_order_relaxed);
	*ret_records = atomic_load_explicit(&ycsb->window_records, memory_order_relaxed);
}

int ycsb_set_weight(struct ycsb *ycsb, uint32_t class, double weight)
{
	if (class >= ycsb->n_mixes || !(weight >= 0 && weight <= WEIGHT_MAX))
		return -EINVAL;
	/* A small one is not none. */
	atomic_store_explicit(&ycsb->weights[class], (uint32_t)ceil(weight * WEIGHT_ONE),
			      memory_order_relaxed);
	return 0;
}

double ycsb_weight(const struct ycsb *ycsb, uint32_t class)
{
	return atomic_load_explicit(&ycsb->weights[class], memory_order_relaxed) /
	       (double)WEIGHT_ONE;
}

static uint32_t draw_class(const struct ycsb *ycsb, struct random64 *random)
{
	uint32_t weights[YCSB_CLASSES_MAX];
	uint64_t sum = 0, drawn;

	for (uint32_t i = 0; i < ycsb->n_mixes; i++) {
		weights[i] = atomic_load_explicit(&ycsb->weights[i], memory_order_relaxed);
		sum += weights[i];
	}
	if (!sum)
		return (uint32_t)random64_below(random, ycsb->n_mixes);
	drawn = random64_below(random, sum);
	for (uint32_t i = 0;; i++) {
		if (drawn < weights[i])
			return i;
		drawn -= weights[i];
	}
}

static uint64_t draw_window(const struct ycsb *ycsb, struct random64 *random)
{
	uint64_t first, records, number;

	ycsb_window(ycsb, &first, &records);
	number = (first + random64_below(random, records)) % ycsb->config.records;
	return ycsb->config.is_scrambled ? zipf_scramble(&ycsb->spread, number) : number;
}

static uint64_t draw_latest(const struct ycsb *ycsb, struct random64 *random)
{
	uint64_t n = ycsb->growth ? growth_frontier(ycsb->growth) : ycsb->config.records;

	return n - 1 - zipf_next(newest_zipf(ycsb), random);
}

static uint64_t draw_hot_or_cold(const struct ycsb *ycsb, struct random64 *random)
{
	uint64_t rank;

	/* The ranks behind those of the distribution are the cold part. */
	if (random64_next(random) >> 32 < ycsb->cold_share)
		rank = ycsb->hot + random64_below(random, ycsb->config.records - ycsb->hot);
	else
		rank = zipf_next(newest_zipf(ycsb), random);
	return ycsb->config.is_scrambled ? zipf_scramble(&ycsb->spread, rank) : rank;
}

/* Of the ways to draw those that the main workload does not take: it is to be a short one. */
__attribute__((noinline)) static uint64_t draw_otherwise(const struct ycsb *ycsb,
							 struct random64 *random)
{
	switch (ycsb->config.keys) {
	case YCSB_KEYS_WINDOW:
		return draw_window(ycsb, random);
	case YCSB_KEYS_LATEST:
		return draw_latest(ycsb, random);
	default:
		return draw_hot_or_cold(ycsb, random);
	}
}

/* The number of a record that is there. */
static inline uint64_t draw_number(const struct ycsb *ycsb, struct random64 *random)
{
	if (ycsb->config.keys != YCSB_KEYS_ZIPF || ycsb->cold_share)
		return draw_otherwise(ycsb, random);
	return zipf_next(newest_zipf(ycsb), random);
}

/* Counts the bounds, since a jump at the first one above would be predicted wrong half the time. */
static inline enum ycsb_op draw_kind(const struct ycsb_mix *mix, uint64_t bits)
{
	uint32_t kind = 0;

	for (uint32_t i = 0; i < YCSB_READ; i++)
		kind += bits >= mix->bounds[i];
	return (enum ycsb_op)kind;
}

void ycsb_draw(struct ycsb_worker *yw, struct ycsb_txn *txn)
{
	const struct ycsb *ycsb = yw->ycsb;
	struct random64 random = yw->random;	/* in registers */
	uint32_t class = ycsb->n_mixes == 1 ? 0 : draw_class(ycsb, &random);
	const struct ycsb_mix *mix = &ycsb->mixes[class];
	enum ycsb_op of_all = draw_kind(mix, random64_next(&random) >> 32);

	txn->class = class;
	txn->mix = mix;
	for (uint32_t i = 0; i < mix->operations; i++) {
		uint64_t bits = random64_next(&random), number;
		uint32_t field = (uint32_t)(((bits & 0xffffffff) * YCSB_FIELDS) >> 32);
		enum ycsb_op kind = mix->by_transaction ? of_all : draw_kind(mix, bits >> 32);
		struct oltp_hint *hint = &txn->hints[i];
		uint16_t rows = 0;

		/* With no number to be had, one of the reads that make up most of such mixes. */
		if (kind == YCSB_INSERT && !growth_take(ycsb->growth, &txn->numbers[i]))
			kind = YCSB_READ;
		if (kind == YCSB_SCAN)
			rows = (uint16_t)(1 + random64_below(&random, ycsb->config.scan_rows));
		number = kind == YCSB_INSERT ? txn->numbers[i] : draw_number(ycsb, &random);
		txn->operations[i] = (struct ycsb_operation){ (uint8_t)kind, (uint8_t)field, rows };
		hint->key = ycsb_key(ycsb, number);
		hint->offset = ycsb_field_offset(field);
		hint->bytes = YCSB_FIELD_BYTES;
		if (mix->whole >> kind & 1) {
			hint->offset = 0;
			hint->bytes = sizeof(struct ycsb_record);
		}
	}
	yw->random = random;
}
