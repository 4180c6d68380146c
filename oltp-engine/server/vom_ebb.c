// SPDX-License-Identifier: GPL-2.0-or-later
/* See vom_ebb.h. */
#include <errno.h>
#include <stdlib.h>

#include "vom_ebb.h"

#define MIB	(1ull << 20)

struct sums {
	double sampled[OLTP_NODES_MAX];	/* bytes that samples of the node stand for */
	double all, value;		/* of all nodes: bytes, and those times their value */
	double cold, cold_value;	/* of what is on disk, the same */
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

	/* Then records_read tells what it is worth. */
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

/* Resident samples only, moved to the front. Errors: -EAGAIN, what they are worth is not known. */
static int resident_pick(const struct vom_ebb *vom, struct oltp_memory_sample *samples, uint32_t n,
			 struct sums *sums)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t value;

		value = oltp_memory_sample_value(vom->engine, &samples[i]);
		if (value == OLTP_NOT_KNOWN)
			return -EAGAIN;
		if (!samples[i].is_resident) {
			sums->cold += (double)samples[i].stands_for_bytes;
			sums->cold_value += (double)samples[i].stands_for_bytes * (double)value;
		}
		if (!samples[i].is_resident || samples[i].node >= OLTP_NODES_MAX)
			continue;
		sums->sampled[samples[i].node] += (double)samples[i].stands_for_bytes;
		sums->all += (double)samples[i].stands_for_bytes;
		sums->value += (double)samples[i].stands_for_bytes * (double)value;
		samples[kept++] = samples[i];
	}
	return (int)kept;
}

static struct ebb_vom_object object_of(const struct vom_ebb *vom,
				       const struct oltp_memory_sample *sample, double scale)
{
	bool can_go = oltp_memory_sample_value(vom->engine, sample) != OLTP_WORTH_ALL;

	return (struct ebb_vom_object){
		.bytes = sample->bytes,
		.stands_for_bytes = (uint64_t)((double)sample->stands_for_bytes * scale),
		.sts_ns = can_go ? sample->reread_ns : EBB_VOM_UNKNOWN,
		.last_ns = sample->last_ns,
		.before_ns = sample->before_ns,
		/* It knows for how long it has watched. */
		.rate = oltp_memory_sample_rate(sample),
		.node = sample->node,
	};
}

static struct ebb_vom_object memory_of(uint64_t bytes, double value, uint32_t node)
{
	return (struct ebb_vom_object){ .bytes = MIB, .stands_for_bytes = bytes,
					.sts_ns = (uint64_t)value, .rate = 1, .node = node };
}

/*
 * What records will be read into is worth what those on disk are on average, or those of an engine
 * that grows would be taken from it before they are there.
 */
static unsigned int filling_make(const struct vom_ebb *vom, const struct oltp_memory_node *nodes,
				 const struct sums *sums, struct ebb_vom_object *ret,
				 unsigned int made, unsigned int max)
{
	if (!oltp_memory_fills(vom->engine) || !(sums->cold > 0))
		return made;
	for (uint32_t i = 0; i < OLTP_NODES_MAX && made < max; i++) {
		if (nodes[i].held_bytes > nodes[i].resident_bytes)
			ret[made++] = memory_of(nodes[i].held_bytes - nodes[i].resident_bytes,
						sums->cold_value / sums->cold, i);
	}
	return made;
}

/*
 * Samples stand for the whole engine's memory; on each node they are made to stand for what records
 * take there. Where there is much, there are samples; what has none is taken to be worth what the
 * rest is on average.
 */
static int objects_make(const struct vom_ebb *vom, struct oltp_memory_sample *samples, uint32_t n,
			struct ebb_vom_object *ret, unsigned int max)
{
	struct oltp_memory_node nodes[OLTP_NODES_MAX];
	struct sums sums = { .all = 0 };
	int rc = nodes_read(vom, nodes), kept;
	unsigned int made = 0;

	kept = rc ?: resident_pick(vom, samples, n, &sums);
	if (kept < 0)
		return kept;
	for (int i = 0; i < kept && made < max; i++) {
		uint32_t node = samples[i].node;

		ret[made++] = object_of(vom, &samples[i], (double)nodes[node].resident_bytes /
							  sums.sampled[node]);
	}
	for (uint32_t i = 0; i < OLTP_NODES_MAX && made < max; i++) {
		if (!nodes[i].resident_bytes || sums.sampled[i] > 0)
			continue;
		/* It was not looked at yet. */
		if (!(sums.all > 0))
			return -EAGAIN;
		ret[made++] = memory_of(nodes[i].resident_bytes, sums.value / sums.all, i);
	}
	return (int)filling_make(vom, nodes, &sums, ret, made, max);
}

static int records_read(void *arg, struct ebb_vom_object *ret, unsigned int max)
{
	struct oltp_memory_sample *samples = calloc(OLTP_MEMORY_SAMPLES_MAX, sizeof(*samples));
	const struct vom_ebb *vom = arg;
	int rc = -ENOMEM;

	if (samples)
		rc = objects_make(vom, samples,
				  oltp_memory_sample_read(vom->engine, samples,
							  OLTP_MEMORY_SAMPLES_MAX), ret, max);
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
		/* What reading costs is found out now, not when the host asks. */
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
