// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Elastic control: performs what elastic_policy.c decides. Per CPU:
 *
 *   (not held) --add ends--> worker runs --asked to stop, joined--> remove runs --> (not held)
 *                               ^                                       |
 *                               `------- the source refuses, kept ------'
 *
 * One move is in flight at a time, on the mover's thread; everything else happens on the thread
 * that calls oltp_elastic_run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "elastic_policy.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/base/util.h"
#include "oltp-engine/src/pool/worker_pool.h"
#include "worker_mover.h"

#define CPUS_MAX	OLTP_WORKERS_MAX

/* Durations of the calls of one kind that succeeded. */
struct durations {
	double *ms;
	size_t n, room;
};

struct oltp_elastic {
	struct oltp_pool *pool;
	const struct oltp_cpu_source_ops *ops;
	void *source;
	void (*on_move)(void *ctx, const struct oltp_move *move);
	void *on_move_ctx;
	struct elastic_config policy;
	struct elastic_state state;
	struct mover mover;
	struct elastic_cpu cpus[CPUS_MAX];	/* in the order in which they were added */
	uint32_t n_cpus;
	uint64_t cpus_added, cpus_removed;
	uint64_t adds_failed, removes_failed;
	/* By tier; those of all tiers together under OLTP_TIER_NONE. */
	struct durations add_ms[OLTP_TIERS], remove_ms[OLTP_TIERS];
};

/* Out of memory costs one figure, not the run. */
static void durations_add(struct durations *d, uint64_t ns)
{
	if (d->n == d->room) {
		size_t room = d->room ? d->room * 2 : 64;
		double *ms = realloc(d->ms, room * sizeof(*ms));

		if (!ms)
			return;
		d->ms = ms;
		d->room = room;
	}
	d->ms[d->n++] = (double)ns / 1e6;
}

static void durations_note(struct durations of[OLTP_TIERS], const struct oltp_move *move)
{
	durations_add(&of[OLTP_TIER_NONE], move->call_ns);
	if (move->times.tier != OLTP_TIER_NONE && (uint32_t)move->times.tier < OLTP_TIERS)
		durations_add(&of[move->times.tier], move->call_ns);
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct oltp_latency_summary durations_summary(const struct durations *d)
{
	struct oltp_latency_summary summary = { .n = d->n };
	double *sorted;

	if (!d->n)
		return summary;
	sorted = malloc(d->n * sizeof(*sorted));
	if (!sorted)
		return (struct oltp_latency_summary){ 0 };
	memcpy(sorted, d->ms, d->n * sizeof(*sorted));
	qsort(sorted, d->n, sizeof(*sorted), compare_double);
	summary.median_ms = (sorted[(d->n - 1) / 2] + sorted[d->n / 2]) / 2;
	/* Nearest rank. */
	summary.p95_ms = sorted[(d->n * 95 + 99) / 100 - 1];
	free(sorted);
	return summary;
}

static int startup_begin(struct oltp_elastic *e)
{
	struct oltp_cpu cpus[CPUS_MAX];
	int n = e->ops->startup(e->source, cpus, CPUS_MAX);

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		int rc = oltp_pool_add(e->pool, cpus[i].cpu);

		if (rc)
			return rc;
		e->cpus[e->n_cpus++] = (struct elastic_cpu){ .cpu = cpus[i].cpu,
							     .node = cpus[i].node,
							     .is_startup = true };
	}
	return 0;
}

static void stop_pool(struct oltp_elastic *e)
{
	for (uint32_t i = 0; i < e->n_cpus; i++)
		oltp_pool_stop(e->pool, e->cpus[i].cpu);
	for (uint32_t i = 0; i < e->n_cpus; i++)
		oltp_pool_remove(e->pool, e->cpus[i].cpu, NULL);
}

int oltp_elastic_create(const struct oltp_elastic_config *config,
			struct oltp_elastic **ret_elastic)
{
	const struct oltp_cpu_source_ops *ops = config->ops;
	struct oltp_elastic *e;
	int rc;

	if (!config->pool || !ops || !ops->startup || !ops->fd || !ops->view || !ops->add ||
	    !ops->remove || !ops->publish || config->mode > OLTP_ELASTIC_ADAPT ||
	    (config->mode == OLTP_ELASTIC_STEP && !config->step_ns))
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->pool = config->pool;
	e->ops = ops;
	e->source = config->source;
	e->on_move = config->on_move;
	e->on_move_ctx = config->on_move_ctx;
	e->policy = (struct elastic_config){ config->mode, config->max_cpus, config->step_ns };
	rc = mover_start(&e->mover, ops, e->source);
	if (rc)
		goto out_free;
	rc = startup_begin(e);
	if (rc)
		goto out_stop;
	elastic_policy_init(&e->state, &e->policy, clock_now_ns());
	*ret_elastic = e;
	return 0;

out_stop:
	stop_pool(e);
	mover_finish(&e->mover);
out_free:
	free(e);
	return rc;
}

static struct elastic_cpu *find_cpu(struct oltp_elastic *e, uint32_t cpu)
{
	for (uint32_t i = 0; i < e->n_cpus; i++) {
		if (e->cpus[i].cpu == cpu)
			return &e->cpus[i];
	}
	return NULL;
}

static void forget_cpu(struct oltp_elastic *e, struct elastic_cpu *cpu)
{
	size_t at = (size_t)(cpu - e->cpus);

	e->n_cpus--;
	memmove(cpu, cpu + 1, (e->n_cpus - at) * sizeof(*cpu));
}

static void finish_add(struct oltp_elastic *e, struct oltp_move *move)
{
	uint64_t start_ns = clock_now_ns();
	int rcs[OLTP_MOVE_MAX];

	if (move->rc) {
		e->adds_failed++;
		return;
	}
	durations_note(e->add_ms, move);
	e->cpus_added += move->n_cpus;
	oltp_pool_add_all(e->pool, move->cpus, move->n_cpus, rcs);
	/* A CPU that takes no worker is kept in the books and given back (P2). */
	for (uint32_t i = 0; i < move->n_cpus && e->n_cpus < CPUS_MAX; i++)
		e->cpus[e->n_cpus++] = (struct elastic_cpu){ .cpu = move->cpus[i],
							     .node = move->node,
							     .is_idle = rcs[i] };
	move->start_workers_ns = clock_now_ns() - start_ns;
}

/* is_ending: no worker is to be started again on a CPU that could not be given back. */
static void finish_remove(struct oltp_elastic *e, struct oltp_move *move, bool is_ending)
{
	struct elastic_cpu *cpu = find_cpu(e, move->cpus[0]);

	if (!cpu)
		return;
	move->node = cpu->node;
	switch (move->rc) {
	case 0:
	case -EINPROGRESS:
		durations_note(e->remove_ms, move);
		e->cpus_removed++;
		forget_cpu(e, cpu);
		break;
	case -ENOENT:
	case -EACCES:
	case -EPERM:
	case -ENODEV:
		/* Not ours, or not any more: asking again would not help. */
		e->removes_failed++;
		forget_cpu(e, cpu);
		break;
	default:
		e->removes_failed++;
		cpu->is_idle = !is_ending && oltp_pool_add(e->pool, cpu->cpu);
	}
}

static void finish_moves(struct oltp_elastic *e, struct mover_result *result, bool is_ending)
{
	bool is_success = false;

	for (uint32_t i = 0; i < result->n_moves; i++) {
		struct oltp_move *move = &result->moves[i];

		if (move->is_add)
			finish_add(e, move);
		else
			finish_remove(e, move, is_ending);
		is_success |= !move->rc || move->rc == -EINPROGRESS;
		if (e->on_move)
			e->on_move(e->on_move_ctx, move);
	}
	elastic_policy_finished(&e->state,
				result->moves[0].is_add ? ELASTIC_ADD : ELASTIC_REMOVE, is_success,
				clock_now_ns());
}

/* All are asked to stop before the first is waited for. */
static void stop_workers(struct oltp_elastic *e, const struct elastic_action *action,
			 struct mover_job *job)
{
	uint64_t start_ns = clock_now_ns();

	for (uint32_t i = 0; i < job->n_cpus; i++)
		oltp_pool_stop_by(e->pool, job->cpus[i], action->stop_by_ns[i]);
	for (uint32_t i = 0; i < job->n_cpus; i++) {
		/* An idle CPU has no worker to remove. */
		oltp_pool_remove(e->pool, job->cpus[i], NULL);
		job->stop_ns[i] = clock_now_ns() - start_ns;
	}
}

static void start_move(struct oltp_elastic *e, const struct elastic_action *action, uint64_t now_ns)
{
	struct mover_job job = {
		.is_add = action->kind == ELASTIC_ADD,
		.node = action->node,
		.n_cpus = action->n_cpus,
	};

	if (!job.is_add) {
		memcpy(job.cpus, action->cpus, sizeof(job.cpus));
		stop_workers(e, action, &job);
	}
	elastic_policy_started(&e->policy, &e->state, action, now_ns);
	mover_submit(&e->mover, &job);
}

static struct elastic_load look_at_load(const struct oltp_elastic *e, uint64_t now_ns)
{
	struct arrivals_count count = { 0 };
	struct pool_progress progress;

	pool_progress_read(e->pool, &progress);
	if (e->pool->arrivals)
		arrivals_count(e->pool->arrivals, now_ns, &count);
	return (struct elastic_load){
		.committed = progress.committed,
		.stalled_ns = progress.stalled_ns,
		.idles = progress.idles,
		.is_open = e->pool->arrivals,
		.is_unlimited = count.is_unlimited,
		.arrived = count.arrived,
		.waiting = count.waiting,
	};
}

int oltp_elastic_run(struct oltp_elastic *e, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	struct elastic_action action;
	struct elastic_load load;
	struct mover_result result;
	struct oltp_cpu_view view;
	int rc;

	if (mover_collect(&e->mover, &result))
		finish_moves(e, &result, false);
	/* After the collecting, so that the view knows what the move changed. */
	rc = e->ops->view(e->source, &view);
	if (rc)
		return rc;
	load = look_at_load(e, now_ns);
	elastic_policy_next(&e->policy, &e->state,
			    &(struct elastic_facts){ now_ns, e->cpus, e->n_cpus, &view, &load },
			    &action);
	if (action.kind != ELASTIC_NONE)
		start_move(e, &action, now_ns);
	*ret_wake_ns = action.wake_ns;
	return 0;
}

void oltp_elastic_stop(struct oltp_elastic *e)
{
	struct mover_job job = { 0 };
	struct mover_result result;

	stop_pool(e);
	if (e->state.is_in_flight) {
		mover_wait(&e->mover, &result);
		finish_moves(e, &result, true);
		stop_pool(e);
	}
	for (;;) {
		job.n_cpus = 0;
		for (uint32_t i = e->n_cpus; i-- > 0 && job.n_cpus < OLTP_MOVE_MAX;) {
			if (!e->cpus[i].is_startup)
				job.cpus[job.n_cpus++] = e->cpus[i].cpu;
		}
		if (!job.n_cpus)
			return;
		mover_submit(&e->mover, &job);
		mover_wait(&e->mover, &result);
		finish_moves(e, &result, true);
		/*
		 * CPUs that the source does not take now go back to the host when the source is
		 * closed.
		 */
		for (uint32_t i = 0; i < job.n_cpus; i++) {
			struct elastic_cpu *cpu = find_cpu(e, job.cpus[i]);

			if (cpu)
				forget_cpu(e, cpu);
		}
	}
}

void oltp_elastic_destroy(struct oltp_elastic *e)
{
	if (!e)
		return;
	oltp_elastic_stop(e);
	mover_finish(&e->mover);
	for (uint32_t tier = 0; tier < OLTP_TIERS; tier++) {
		free(e->add_ms[tier].ms);
		free(e->remove_ms[tier].ms);
	}
	free(e);
}

void oltp_elastic_fds(const struct oltp_elastic *e, int ret_fds[2])
{
	ret_fds[0] = e->ops->fd(e->source);
	ret_fds[1] = e->mover.event_fd;
}

void oltp_elastic_figures_get(const struct oltp_elastic *e,
			      struct oltp_elastic_figures *ret_figures)
{
	*ret_figures = (struct oltp_elastic_figures){
		.cpus_added = e->cpus_added,
		.cpus_removed = e->cpus_removed,
		.adds_failed = e->adds_failed,
		.removes_failed = e->removes_failed,
		.add = durations_summary(&e->add_ms[OLTP_TIER_NONE]),
		.remove = durations_summary(&e->remove_ms[OLTP_TIER_NONE]),
		.is_step_done = e->state.direction == ELASTIC_DONE,
	};
	for (uint32_t tier = OLTP_TIER_LEND; tier < OLTP_TIERS; tier++) {
		ret_figures->tier_add[tier] = durations_summary(&e->add_ms[tier]);
		ret_figures->tier_remove[tier] = durations_summary(&e->remove_ms[tier]);
	}
}

static const char *const tier_names[OLTP_TIERS] = { "none", "lend", "park", "unplug" };

const char *oltp_tier_name(enum oltp_tier tier)
{
	return (uint32_t)tier < OLTP_TIERS ? tier_names[tier] : tier_names[OLTP_TIER_NONE];
}

int oltp_tier_parse(const char *name, enum oltp_tier *ret_tier)
{
	for (uint32_t tier = OLTP_TIER_LEND; tier < OLTP_TIERS; tier++) {
		if (!strcmp(name, tier_names[tier])) {
			*ret_tier = (enum oltp_tier)tier;
			return 0;
		}
	}
	return -EINVAL;
}
