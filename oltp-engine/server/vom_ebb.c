// SPDX-License-Identifier: GPL-2.0-or-later
/* See vom_ebb.h. */
#include <errno.h>
#include <stdlib.h>

#include "vom_ebb.h"

#define MIB	(1ull << 20)

struct sums {
	double sampled[OLTP_NODES_MAX];	/* bytes that samples of the node stand for */
	double all, value;		/* of all nodes: bytes, and those times their value */
};

struct worth {
	const struct oltp_memory_sample *sample;
	uint64_t value;
};

static int nodes_read(const struct vom_ebb *vom, struct oltp_memory_node nodes[OLTP_NODES_MAX])
{
	for (uint32_t i = 0; i < OLTP_NODES_MAX; i++) {
		int rc = oltp_memory_node_read(vom->engine, i, &nodes[i]);

		if (rc)
			return rc;
	}
	return 0;
}

static int unused_read(void *arg, struct ebb_vom_object *ret, unsigned int max)
{
	struct oltp_memory_node nodes[OLTP_NODES_MAX];
	unsigned int n = 0;
	int rc = nodes_read(arg, nodes);

	/* Unused memory will fill with records then: records_read tells what it is worth. */
	if (oltp_memory_fills(((const struct vom_ebb *)arg)->engine))
		return 0;
	for (uint32_t i = 0; !rc && i < OLTP_NODES_MAX && n < max; i++) {
		if (nodes[i].held_bytes > nodes[i].resident_bytes)
			ret[n++] = (struct ebb_vom_object){
				.bytes = nodes[i].held_bytes - nodes[i].resident_bytes,
				.node = i,
			};
	}
	return rc ?: (int)n;
}

/* Errors: -EAGAIN, the value of a sample is not known. */
static int worth_read(const struct vom_ebb *vom, const struct oltp_memory_sample *samples,
		      uint32_t n, struct worth *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		ret[i] = (struct worth){
			.sample = &samples[i],
			.value = oltp_memory_sample_value(vom->engine, &samples[i]),
		};
		if (ret[i].value == OLTP_NOT_KNOWN)
			return -EAGAIN;
	}
	return 0;
}

static struct ebb_vom_object object_of(const struct worth *w, double stands_for, uint32_t node)
{
	const struct oltp_memory_sample *sample = w->sample;

	return (struct ebb_vom_object){
		.bytes = sample->bytes,
		.stands_for_bytes = (uint64_t)stands_for,
		.sts_ns = w->value != OLTP_WORTH_ALL ? sample->reread_ns : EBB_VOM_UNKNOWN,
		.last_ns = sample->last_ns,
		.before_ns = sample->before_ns,
		/* The engine knows for how long it has watched the record. */
		.rate = oltp_memory_sample_rate(sample),
		.node = node,
	};
}

static struct ebb_vom_object memory_of(uint64_t bytes, double value, uint32_t node)
{
	return (struct ebb_vom_object){ .bytes = MIB, .stands_for_bytes = bytes,
					.sts_ns = (uint64_t)value, .rate = 1, .node = node };
}

static int dearest_first(const void *a, const void *b)
{
	const struct worth *x = a, *y = b;

	return x->value != y->value ? (x->value < y->value ? 1 : -1) : 0;
}

/* The node of which the largest part is left. */
static uint32_t emptiest(const struct oltp_memory_node *nodes, const uint64_t *left)
{
	double most = 0;
	uint32_t best = 0;

	for (uint32_t i = 0; i < OLTP_NODES_MAX; i++)
		if (left[i] && (double)left[i] / (double)nodes[i].held_bytes > most) {
			most = (double)left[i] / (double)nodes[i].held_bytes;
			best = i;
		}
	return best;
}

/*
 * The memory of a working engine is worth the best records that it can hold, wherever those are
 * now: records that are read go where there is room. The records that were read last and will not
 * be used again are what memory holds when there is too little of it; by them, memory would be
 * taken from an engine that misses much.
 */
static int best_make(const struct oltp_memory_node *nodes, struct worth *worth, uint32_t n,
		     struct ebb_vom_object *ret, unsigned int max)
{
	uint64_t left[OLTP_NODES_MAX];
	unsigned int made = 0;

	for (uint32_t i = 0; i < OLTP_NODES_MAX; i++)
		left[i] = nodes[i].held_bytes;
	qsort(worth, n, sizeof(*worth), dearest_first);
	for (uint32_t i = 0; i < n && made < max; i++) {
		const uint32_t node = emptiest(nodes, left);
		const uint64_t bytes = worth[i].sample->stands_for_bytes;
		const uint64_t fits = bytes < left[node] ? bytes : left[node];

		/* For libebb 0 would say that the sample stands for itself alone. */
		if (!fits)
			continue;
		left[node] -= fits;
		ret[made++] = object_of(&worth[i], (double)fits, node);
	}
	/* Nothing was sampled yet; memory without any object would count as worth nothing. */
	return made ? (int)made : -EAGAIN;
}

/*
 * The memory of an engine at rest is worth the records that are in it. Samples stand for the whole
 * engine's memory; on each node they are scaled to what records take there. A node with many
 * records has samples; one without any is taken to be worth the average of the others.
 */
static int resident_make(const struct oltp_memory_node *nodes, const struct worth *worth,
			 uint32_t n, struct ebb_vom_object *ret, unsigned int max)
{
	struct sums sums = { .all = 0 };
	unsigned int made = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct oltp_memory_sample *s = worth[i].sample;

		if (!s->is_resident || s->node >= OLTP_NODES_MAX)
			continue;
		sums.sampled[s->node] += (double)s->stands_for_bytes;
		sums.all += (double)s->stands_for_bytes;
		sums.value += (double)s->stands_for_bytes * (double)worth[i].value;
	}
	for (uint32_t i = 0; i < n && made < max; i++) {
		const struct oltp_memory_sample *s = worth[i].sample;

		if (s->is_resident && s->node < OLTP_NODES_MAX)
			ret[made++] = object_of(&worth[i], (double)s->stands_for_bytes *
						(double)nodes[s->node].resident_bytes /
						sums.sampled[s->node], s->node);
	}
	for (uint32_t i = 0; i < OLTP_NODES_MAX && made < max; i++) {
		if (!nodes[i].resident_bytes || sums.sampled[i] > 0)
			continue;
		/* Nothing was sampled yet. */
		if (!(sums.all > 0))
			return -EAGAIN;
		ret[made++] = memory_of(nodes[i].resident_bytes, sums.value / sums.all, i);
	}
	return (int)made;
}

static int objects_make(const struct vom_ebb *vom, const struct oltp_memory_sample *samples,
			struct worth *worth, uint32_t n, struct ebb_vom_object *ret,
			unsigned int max)
{
	struct oltp_memory_node nodes[OLTP_NODES_MAX];
	int rc = nodes_read(vom, nodes);

	if (!rc)
		rc = worth_read(vom, samples, n, worth);
	if (rc)
		return rc;
	return oltp_memory_fills(vom->engine) ? best_make(nodes, worth, n, ret, max) :
						resident_make(nodes, worth, n, ret, max);
}

static int records_read(void *arg, struct ebb_vom_object *ret, unsigned int max)
{
	struct oltp_memory_sample *samples = calloc(OLTP_MEMORY_SAMPLES_MAX, sizeof(*samples));
	struct worth *worth = calloc(OLTP_MEMORY_SAMPLES_MAX, sizeof(*worth));
	const struct vom_ebb *vom = arg;
	int rc = -ENOMEM;

	if (samples && worth)
		rc = objects_make(vom, samples, worth,
				  oltp_memory_sample_read(vom->engine, samples,
							  OLTP_MEMORY_SAMPLES_MAX), ret, max);
	free(worth);
	free(samples);
	return rc;
}

int vom_ebb_begin(struct vom_ebb *vom, struct ebb *ebb, struct oltp_engine *engine)
{
	const struct ebb_vom_cache records = { .kind = EBB_VOM_SAMPLED, .node = EBB_NODE_ANY,
					       .read = records_read, .arg = vom };
	const struct ebb_vom_cache unused = { .kind = EBB_VOM_FREE, .node = EBB_NODE_ANY,
					      .read = unused_read, .arg = vom };
	int rc;

	*vom = (struct vom_ebb){ .ebb = ebb, .engine = engine };
	rc = ebb_vom_register(ebb, &records, &vom->records);
	if (!rc) {
		rc = ebb_vom_register(ebb, &unused, &vom->unused);
		if (rc)
			ebb_vom_unregister(ebb, vom->records);
	}
	if (rc)
		vom->engine = NULL;
	else
		/*
		 * Asks for the cost of reading, so that it is measured now and not when the host
		 * asks.
		 */
		oltp_memory_sample_value(engine, &(struct oltp_memory_sample){ .bytes = 1 });
	return rc;
}

void vom_ebb_end(struct vom_ebb *vom)
{
	if (!vom->engine)
		return;
	ebb_vom_unregister(vom->ebb, vom->records);
	ebb_vom_unregister(vom->ebb, vom->unused);
	vom->engine = NULL;
}
