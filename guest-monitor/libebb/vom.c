// SPDX-License-Identifier: BSD-3-Clause
/*
 * Values and histograms: see vom.h.
 */
#include <string.h>

#include "vom.h"

#define KIB		1024ull
#define MIB		(1024 * KIB)

/* No object is used more often. */
#define RATE_MAX	1e6

double ebb_vom_rate(uint64_t last_ns, uint64_t before_ns)
{
	double age_ns, rate;

	if (before_ns != EBB_VOM_AGE_UNKNOWN)
		age_ns = (double)before_ns;
	else if (last_ns != EBB_VOM_AGE_UNKNOWN)
		age_ns = 2 * (double)last_ns;
	else
		return 0;
	rate = age_ns > 0 ? 1e9 / age_ns : RATE_MAX;
	return rate < RATE_MAX ? rate : RATE_MAX;
}

uint64_t ebb_vom_value(uint64_t bytes, uint64_t sts_ns, double rate)
{
	double value;

	if (sts_ns == EBB_VOM_AGE_UNKNOWN)
		return EBB_VOM_VALUE_MAX;
	/* Also what is not a number. */
	if (!(rate > 0))
		return 1;
	value = (double)sts_ns * (rate < RATE_MAX ? rate : RATE_MAX) * (double)MIB /
		(bytes ? (double)bytes : 1);
	if (value < 1)
		return 1;
	return value < (double)EBB_VOM_VALUE_MAX ? (uint64_t)value : EBB_VOM_VALUE_MAX;
}

/* ---- sorting: by hand, as no allocator is to be called behind a lock or in a pure file ---- */

static int is_before(const struct ebb_vom_item *a, const struct ebb_vom_item *b)
{
	return a->node != b->node ? a->node < b->node : a->value < b->value;
}

static void sink(struct ebb_vom_item *items, size_t at, size_t n)
{
	struct ebb_vom_item item = items[at];

	for (size_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && is_before(&items[child], &items[child + 1]))
			child++;
		if (!is_before(&item, &items[child]))
			break;
		items[at] = items[child];
	}
	items[at] = item;
}

static void sort(struct ebb_vom_item *items, size_t n)
{
	for (size_t i = n / 2; i-- > 0;)
		sink(items, i, n);
	for (size_t end = n; end-- > 1;) {
		struct ebb_vom_item last = items[end];

		items[end] = items[0];
		items[0] = last;
		sink(items, 0, end);
	}
}

/* ---- histograms ---- */

static void clip(struct ebb_vom_item *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (items[i].bytes > EBB_VOM_BYTES_MAX)
			items[i].bytes = EBB_VOM_BYTES_MAX;
		if (items[i].value > EBB_VOM_VALUE_MAX)
			items[i].value = EBB_VOM_VALUE_MAX;
	}
}

/*
 * Sorted items of the same node and value become one; those of nothing go, as does what is more
 * than a node can have.  Returns how many are left.
 */
static size_t unite(struct ebb_vom_item *items, size_t n)
{
	uint32_t node = n ? items[0].node : 0;
	uint64_t room = EBB_VOM_BYTES_MAX;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct ebb_vom_item *last = &items[kept ? kept - 1 : 0], item = items[i];

		if (item.node != node)
			room = EBB_VOM_BYTES_MAX;
		node = item.node;
		if (item.bytes > room)
			item.bytes = room;
		room -= item.bytes;
		if (item.bytes == 0)
			continue;
		if (kept && last->node == item.node && last->value == item.value)
			last->bytes += item.bytes;
		else
			items[kept++] = item;
	}
	return kept;
}

static uint64_t sum(const struct ebb_vom_item *items, size_t n)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += items[i].bytes;
	return bytes;
}

static size_t node_end(const struct ebb_vom_item *items, size_t from, size_t n)
{
	size_t end = from;

	while (end < n && items[end].node == items[from].node)
		end++;
	return end;
}

static uint64_t whole_kib(double bytes)
{
	return (uint64_t)(bytes / (double)KIB + 0.5);
}

/*
 * Buckets of one node, written where ret is, which is not behind the items.  What ends a bucket is
 * the last item of one value, so none is cut in two.  Returns how many.
 */
static size_t node_make(struct ebb_vom_item *ret, const struct ebb_vom_item *items, size_t n,
			size_t max)
{
	double all = (double)sum(items, n), seen = 0, unused = 0;
	uint64_t told_kib = 0;
	size_t made = 0, ended = 0;

	/* It is no part of what is divided into equal ones. */
	if (n && items[0].value == 0)
		unused = (double)items[0].bytes;
	for (size_t i = 0; i < n; i++) {
		struct ebb_vom_item item = items[i];
		uint64_t kib;

		seen += (double)item.bytes;
		/* The next one begins where so many of the equal parts have ended. */
		if (item.value && i + 1 < n &&
		    (seen - unused) * (double)max < (all - unused) * (double)(ended + 1))
			continue;
		ended += item.value != 0;
		kib = whole_kib(seen);
		/* Too little to be told of: it counts with what is worth more. */
		if (kib == told_kib)
			continue;
		ret[made++] = (struct ebb_vom_item){ item.value, (kib - told_kib) * KIB,
						     item.node };
		told_kib = kib;
	}
	return made;
}

size_t ebb_vom_histogram(struct ebb_vom_item *items, size_t n, size_t max)
{
	size_t made = 0, num_nodes = 0, left;
	double all, given = 0;

	clip(items, n);
	sort(items, n);
	n = unite(items, n);
	for (size_t i = 0; i < n; i = node_end(items, i, n))
		num_nodes++;
	/* Two for each node, the rest by their bytes. */
	left = max > 2 * num_nodes ? max - 2 * num_nodes : 0;
	all = 0;
	for (size_t i = 0; i < n; i++)
		all += (double)items[i].bytes;
	for (size_t i = 0, end; i < n; i = end) {
		size_t before = (size_t)((double)left * given / all), room;

		end = node_end(items, i, n);
		given += (double)sum(items + i, end - i);
		room = 2 + (size_t)((double)left * given / all) - before;
		/* One may go to what is worth nothing. */
		made += node_make(items + made, items + i, end - i, room - 1);
	}
	return made;
}

size_t ebb_vom_fit(struct ebb_vom_item *items, size_t n, uint32_t node, uint64_t held_bytes)
{
	uint64_t bytes = 0, half = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t room = held_bytes - bytes;

		if (items[i].bytes >= room) {
			items[i].bytes = room;
			return room ? i + 1 : i;
		}
		bytes += items[i].bytes;
	}
	if (bytes == held_bytes)
		return n;
	for (size_t i = 0; i < n; i++) {
		half += items[i].bytes;
		if (2 * half < bytes)
			continue;
		items[i].bytes += held_bytes - bytes;
		return n;
	}
	items[0] = (struct ebb_vom_item){ 0, held_bytes - bytes, node };
	return 1;
}

struct ebb_vom_bucket ebb_vom_bucket_of(const struct ebb_vom_item *item)
{
	uint64_t kib = item->bytes / KIB;

	return (struct ebb_vom_bucket){
		.value = item->value,
		.kib = kib < UINT32_MAX ? (uint32_t)kib : UINT32_MAX,
		.node = (uint16_t)item->node,
	};
}
