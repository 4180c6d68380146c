// SPDX-License-Identifier: BSD-3-Clause
/*
 * Registered caches, and the histogram of what they are worth: see values.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "vom.h"

#define NS_PER_MS	1000000ull

static unsigned int kind_max(enum ebb_vom_kind kind)
{
	switch (kind) {
	case EBB_VOM_SAMPLED:
		return EBB_VOM_MAX_SAMPLES;
	case EBB_VOM_SWEPT:
		return EBB_VOM_MAX_OBJECTS;
	case EBB_VOM_FREE:
		return EBB_MAX_NODES;
	default:
		return 0;
	}
}

int ebb_values_init(struct ebb_values *values)
{
	int r = -pthread_mutex_init(&values->lock, NULL);

	if (r < 0)
		return r;
	r = -pthread_cond_init(&values->has_ended, NULL);
	if (r < 0)
		pthread_mutex_destroy(&values->lock);
	return r;
}

void ebb_values_finish(struct ebb_values *values)
{
	pthread_cond_destroy(&values->has_ended);
	pthread_mutex_destroy(&values->lock);
}

int ebb_values_exist(struct ebb_values *values)
{
	int exist;

	pthread_mutex_lock(&values->lock);
	exist = values->num > 0;
	pthread_mutex_unlock(&values->lock);
	return exist;
}

/* ---- registration ---- */

static int cache_check(const struct ebb_vom_cache *cache)
{
	unsigned int max = kind_max(cache->kind);

	if (max == 0 || !cache->read || cache->max_objects > max || cache->reserved)
		return -EINVAL;
	if (cache->node != EBB_NODE_ANY && cache->node >= EBB_MAX_NODES)
		return -ENXIO;
	return 0;
}

int ebb_vom_register(struct ebb *ebb, const struct ebb_vom_cache *cache, unsigned int *ret_id)
{
	struct ebb_values *values = &ebb->values;
	int r = cache_check(cache);

	if (r < 0)
		return r;
	pthread_mutex_lock(&values->lock);
	r = -ENOSPC;
	for (unsigned int i = 0; i < EBB_VOM_MAX_CACHES; i++) {
		/* A number is not used again while somebody waits for the end of the one before. */
		if (values->caches[i].read || values->reading == i + 1)
			continue;
		values->caches[i] = *cache;
		if (cache->max_objects == 0)
			values->caches[i].max_objects = cache->kind == EBB_VOM_SWEPT ?
							EBB_VOM_MAX_SAMPLES : kind_max(cache->kind);
		values->num++;
		*ret_id = i;
		r = 0;
		break;
	}
	pthread_mutex_unlock(&values->lock);
	if (r == 0)
		ebb_wake(ebb->wake_fd);
	return r;
}

int ebb_vom_unregister(struct ebb *ebb, unsigned int id)
{
	struct ebb_values *values = &ebb->values;
	int r = 0;

	pthread_mutex_lock(&values->lock);
	if (id >= EBB_VOM_MAX_CACHES || !values->caches[id].read) {
		r = -ENOENT;
	} else if (values->reading == id + 1 && pthread_equal(values->reader, pthread_self())) {
		/* It would wait for itself. */
		r = -EDEADLK;
	} else {
		memset(&values->caches[id], 0, sizeof(values->caches[id]));
		values->num--;
		while (values->reading == id + 1)
			pthread_cond_wait(&values->has_ended, &values->lock);
	}
	pthread_mutex_unlock(&values->lock);
	if (r == 0)
		ebb_wake(ebb->wake_fd);
	return r;
}

/* ---- reading ---- */

struct items {
	struct ebb_vom_item *items;
	size_t num;
};

/* num is not 0. */
static int objects_add(struct items *all, const struct ebb_vom_cache *cache,
		       const struct ebb_vom_object *objects, size_t num)
{
	struct ebb_vom_item *items = realloc(all->items, (all->num + num) * sizeof(*items));

	if (!items)
		return -ENOMEM;
	all->items = items;
	for (size_t i = 0; i < num; i++) {
		const struct ebb_vom_object *o = &objects[i];
		uint32_t node = cache->node == EBB_NODE_ANY ? o->node : cache->node;
		double rate = o->rate > 0 ? o->rate : ebb_vom_rate(o->last_ns, o->before_ns);

		if (node >= EBB_MAX_NODES)
			return -ENXIO;
		all->items[all->num++] = (struct ebb_vom_item){
			.value = cache->kind == EBB_VOM_FREE ? 0 :
				 ebb_vom_value(o->bytes, o->sts_ns, rate),
			.bytes = o->stands_for_bytes ? o->stands_for_bytes : o->bytes,
			.node = node,
		};
	}
	return 0;
}

static int cache_read(struct items *all, const struct ebb_vom_cache *cache)
{
	struct ebb_vom_object *objects = calloc(cache->max_objects, sizeof(*objects));
	int r = objects ? cache->read(cache->arg, objects, cache->max_objects) : -ENOMEM;

	/* One that writes past its end can not be helped; one that only says so can. */
	if (r > (int)cache->max_objects)
		r = -ERANGE;
	if (r > 0)
		r = objects_add(all, cache, objects, (size_t)r);
	free(objects);
	return r;
}

static int all_read(struct ebb_values *values, struct items *all)
{
	int r = 0;

	pthread_mutex_lock(&values->lock);
	for (unsigned int i = 0; i < EBB_VOM_MAX_CACHES && r == 0; i++) {
		struct ebb_vom_cache cache = values->caches[i];

		if (!cache.read)
			continue;
		values->reading = i + 1;
		values->reader = pthread_self();
		pthread_mutex_unlock(&values->lock);
		r = cache_read(all, &cache);
		pthread_mutex_lock(&values->lock);
		values->reading = 0;
		pthread_cond_broadcast(&values->has_ended);
	}
	pthread_mutex_unlock(&values->lock);
	return r;
}

uint64_t ebb_values_make(struct ebb_values *values, uint32_t seq, uint64_t now_ns)
{
	struct items all = { 0 };
	uint64_t due_ns = values->made_ns + EBB_VALUES_INTERVAL_MS * NS_PER_MS;

	if (seq == values->seq)
		return 0;
	if (values->made_ns && now_ns < due_ns)
		return due_ns;
	values->seq = seq;
	values->made_ns = now_ns;
	values->num_buckets = 0;
	values->has_buckets = all_read(values, &all) == 0;
	if (values->has_buckets)
		values->num_buckets = (uint32_t)ebb_vom_histogram(all.items, all.num,
								  EBB_VOM_MAX_BUCKETS);
	for (uint32_t i = 0; i < values->num_buckets; i++)
		values->buckets[i] = ebb_vom_bucket_of(&all.items[i]);
	free(all.items);
	return 0;
}
