// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The worker pool: starts and stops pinned workers. The thread of one that was stopped stays, idle
 * and holding nothing of the engine, until there is work on its CPU again or the pool ends: it is
 * woken in less time than a thread is made and joined.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "worker_pool.h"

#define LATENCY_EVERY_DEFAULT	64u

static bool is_valid(const struct oltp_pool_config *config)
{
	const struct oltp_workload *workload = config->workload;
	const struct oltp_feed *feed = config->feed;

	if (!config->engine || !workload || !workload->attach || !workload->run ||
	    !workload->detach)
		return false;
	return !feed || (!config->arrivals && feed->ready && feed->wait && feed->wake &&
			 feed->stop && feed->give_up);
}

int oltp_pool_create(const struct oltp_pool_config *config, struct oltp_pool **ret_pool)
{
	uint32_t every = config->latency_every ?: LATENCY_EVERY_DEFAULT;
	struct oltp_pool *pool;

	if (!is_valid(config) || (every & (every - 1)))
		return -EINVAL;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->engine = config->engine;
	pool->workload = *config->workload;
	pool->latency_every = every;
	pool->no_pin = config->no_pin;
	pool->arrivals = config->arrivals;
	pool->feed = config->feed;
	*ret_pool = pool;
	return 0;
}

/* Index of the worker, or n_workers. */
static uint32_t find(const struct oltp_pool *pool, uint32_t cpu)
{
	uint32_t i = 0;

	while (i < pool->n_workers && pool->workers[i]->cpu != cpu)
		i++;
	return i;
}

/* The CPU as a set, for CPU_FREE; NULL: out of memory. */
static cpu_set_t *set_of(uint32_t cpu, size_t *ret_bytes)
{
	cpu_set_t *set = CPU_ALLOC(cpu + 1);

	*ret_bytes = CPU_ALLOC_SIZE(cpu + 1);
	if (set) {
		CPU_ZERO_S(*ret_bytes, set);
		CPU_SET_S(cpu, *ret_bytes, set);
	}
	return set;
}

/* The thread is born on its CPU, so it never runs, or touches memory, anywhere else. */
static int thread_create(struct pool_worker *pw)
{
	pthread_attr_t attr;
	cpu_set_t *set;
	size_t bytes;
	int rc;

	rc = pthread_attr_init(&attr);
	if (rc)
		return -rc;
	if (!pw->pool->no_pin) {
		set = set_of(pw->cpu, &bytes);
		rc = set ? pthread_attr_setaffinity_np(&attr, bytes, set) : ENOMEM;
		CPU_FREE(set);
		if (rc)
			goto out_attr;
	}
	rc = pthread_create(&pw->thread, &attr, pool_worker_main, pw);
out_attr:
	pthread_attr_destroy(&attr);
	return -rc;
}

/*
 * While its CPU was offline Linux may have allowed the thread all others. Pinned again before it
 * is woken, it wakes in its place.
 */
static int thread_pin(const struct pool_worker *pw)
{
	cpu_set_t *set;
	size_t bytes;
	int rc;

	if (pw->pool->no_pin)
		return 0;
	set = set_of(pw->cpu, &bytes);
	rc = set ? pthread_setaffinity_np(pw->thread, bytes, set) : ENOMEM;
	CPU_FREE(set);
	return -rc;
}

/* The thread has ended or was never started. */
static void worker_free(struct pool_worker *pw)
{
	pthread_cond_destroy(&pw->reported);
	pthread_cond_destroy(&pw->ordered);
	pthread_mutex_destroy(&pw->lock);
	free(pw);
}

static void order(struct pool_worker *pw, enum pool_worker_state state)
{
	pthread_mutex_lock(&pw->lock);
	pw->state = state;
	pthread_mutex_unlock(&pw->lock);
	/* After the unlock: a thread that is woken earlier waits for the lock at once. */
	pthread_cond_signal(&pw->ordered);
}

/* Clears all that the thread wrote while it worked: the structure from stop_by_ns on. */
static void worker_reset(struct pool_worker *pw)
{
	const size_t from = offsetof(struct pool_worker, stop_by_ns);

	memset((char *)pw + from, 0, sizeof(*pw) - from);
}

/* Both lists have room for all workers, idle or not. */
static int make_room(struct oltp_pool *pool)
{
	uint32_t room = pool->room ? pool->room * 2 : 16;
	struct pool_worker **list;

	if (pool->n_workers + pool->n_idle < pool->room)
		return 0;
	list = realloc(pool->workers, room * sizeof(struct pool_worker *));
	if (!list)
		return -ENOMEM;
	pool->workers = list;
	list = realloc(pool->idle, room * sizeof(struct pool_worker *));
	if (!list)
		return -ENOMEM;
	pool->idle = list;
	pool->room = room;
	return 0;
}

/* A worker with a new thread, idle, in no list. */
static int worker_create(struct oltp_pool *pool, uint32_t cpu, struct pool_worker **ret_worker)
{
	struct pool_worker *pw;
	int rc = make_room(pool);

	if (rc)
		return rc;
	pw = aligned_alloc(CACHE_PAD_BYTES, sizeof(*pw));
	if (!pw)
		return -ENOMEM;
	memset(pw, 0, sizeof(*pw));
	pw->pool = pool;
	pw->cpu = cpu;
	pw->state = POOL_WORKER_IDLE;
	pthread_mutex_init(&pw->lock, NULL);
	pthread_cond_init(&pw->ordered, NULL);
	pthread_cond_init(&pw->reported, NULL);
	rc = thread_create(pw);
	if (rc)
		worker_free(pw);
	else
		*ret_worker = pw;
	return rc;
}

/* Takes an idle thread. -ENOENT: there is none for that CPU; else why it cannot be pinned. */
static int worker_reuse(struct oltp_pool *pool, uint32_t cpu, struct pool_worker **ret_worker)
{
	uint32_t i = 0;
	int rc;

	/* Threads that are not pinned are all the same. */
	while (i < pool->n_idle && !pool->no_pin && pool->idle[i]->cpu != cpu)
		i++;
	if (i == pool->n_idle)
		return -ENOENT;
	rc = thread_pin(pool->idle[i]);
	if (rc)
		return rc;
	*ret_worker = pool->idle[i];
	pool->idle[i] = pool->idle[--pool->n_idle];
	(*ret_worker)->cpu = cpu;
	worker_reset(*ret_worker);
	return 0;
}

/* Starts and lists the worker, attached or not; wait_worker must follow. */
static int begin_worker(struct oltp_pool *pool, uint32_t cpu)
{
	struct pool_worker *pw;
	int rc;

	if (find(pool, cpu) < pool->n_workers)
		return -EEXIST;
	rc = worker_reuse(pool, cpu, &pw);
	if (rc == -ENOENT)
		rc = worker_create(pool, cpu, &pw);
	if (rc)
		return rc;
	pool->workers[pool->n_workers++] = pw;
	order(pw, POOL_WORKER_STARTING);
	return 0;
}

/* Moves a worker that is idle now to the list of the idle ones. */
static void end_worker(struct oltp_pool *pool, uint32_t i)
{
	struct pool_worker *pw = pool->workers[i];

	oltp_worker_destroy(pw->worker);
	pw->worker = NULL;
	pool_acks_adopt(pool, pw->acks);
	pw->acks = NULL;
	pool->workers[i] = pool->workers[--pool->n_workers];
	pool->idle[pool->n_idle++] = pw;
}

/* Waits until the worker has attached. If it could not, it is idle again afterwards. */
static int wait_worker(struct oltp_pool *pool, uint32_t cpu)
{
	uint32_t i = find(pool, cpu);
	struct pool_worker *pw = pool->workers[i];
	int rc;

	pthread_mutex_lock(&pw->lock);
	while (pw->state == POOL_WORKER_STARTING)
		pthread_cond_wait(&pw->reported, &pw->lock);
	rc = pw->start_rc;
	pthread_mutex_unlock(&pw->lock);
	if (rc)
		end_worker(pool, i);
	return rc;
}

static void wait_idle(struct pool_worker *pw)
{
	pthread_mutex_lock(&pw->lock);
	while (pw->state != POOL_WORKER_IDLE)
		pthread_cond_wait(&pw->reported, &pw->lock);
	pthread_mutex_unlock(&pw->lock);
}

int oltp_pool_add(struct oltp_pool *pool, uint32_t cpu)
{
	int rc;

	oltp_pool_add_all(pool, &cpu, 1, &rc);
	return rc;
}

void oltp_pool_add_all(struct oltp_pool *pool, const uint32_t *cpus, uint32_t n, int *ret_rcs)
{
	for (uint32_t i = 0; i < n; i++)
		ret_rcs[i] = begin_worker(pool, cpus[i]);
	for (uint32_t i = 0; i < n; i++) {
		if (!ret_rcs[i])
			ret_rcs[i] = wait_worker(pool, cpus[i]);
	}
}

int oltp_pool_stop(struct oltp_pool *pool, uint32_t cpu)
{
	return oltp_pool_stop_by(pool, cpu, UINT64_MAX);
}

/* Not after it has detached: what it woke then would be gone. */
static void worker_wake(struct pool_worker *pw)
{
	pthread_mutex_lock(&pw->lock);
	if (pw->local)
		pw->pool->feed->wake(pw->local);
	pthread_mutex_unlock(&pw->lock);
}

int oltp_pool_stop_by(struct oltp_pool *pool, uint32_t cpu, uint64_t deadline_ns)
{
	uint32_t i = find(pool, cpu);
	_Atomic uint64_t *stop_by_ns;

	if (i == pool->n_workers)
		return -ENOENT;
	stop_by_ns = &pool->workers[i]->stop_by_ns;
	/* Relaxed: no data depends on it. The wait in oltp_pool_remove orders the rest. */
	if (!counter_read(stop_by_ns) || deadline_ns < counter_read(stop_by_ns))
		atomic_store_explicit(stop_by_ns, deadline_ns ?: 1, memory_order_relaxed);
	if (pool->arrivals)
		arrivals_wake(pool->arrivals);
	if (pool->feed)
		worker_wake(pool->workers[i]);
	return 0;
}

int oltp_pool_remove(struct oltp_pool *pool, uint32_t cpu, struct oltp_totals *ret_totals)
{
	uint32_t i = find(pool, cpu);
	struct pool_worker *pw;

	if (i == pool->n_workers)
		return -ENOENT;
	oltp_pool_stop(pool, cpu);
	pw = pool->workers[i];
	wait_idle(pw);
	pool_figures_keep(pool, pw, ret_totals);
	end_worker(pool, i);
	return 0;
}

void oltp_pool_destroy(struct oltp_pool *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; i < pool->n_workers; i++)
		oltp_pool_stop(pool, pool->workers[i]->cpu);
	while (pool->n_workers)
		oltp_pool_remove(pool, pool->workers[pool->n_workers - 1]->cpu, NULL);
	while (pool->orphans) {
		struct acks *acks = pool->orphans;

		pool->orphans = acks->next;
		free(acks);
	}
	for (uint32_t i = 0; i < pool->n_idle; i++)
		order(pool->idle[i], POOL_WORKER_QUIT);
	for (uint32_t i = 0; i < pool->n_idle; i++) {
		pthread_join(pool->idle[i]->thread, NULL);
		worker_free(pool->idle[i]);
	}
	free(pool->idle);
	free(pool->workers);
	free(pool);
}

uint32_t oltp_pool_count(const struct oltp_pool *pool)
{
	return pool->n_workers;
}
