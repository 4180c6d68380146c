/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queues of VMs that share cores; see shared.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/shared-promise.h"
#include "util/random.h"

#define STEP_USEC	4000u
#define STEPS_PER_S	(1000000u / STEP_USEC)
#define MEASURED_S	15u		/* of hot cores; first: not counted */
#define SEGMENT_S	300u
#define THINK_USEC	120000.0
#define QUEUE		128u		/* of a vCPU; a VM has fewer connections for each */
#define LATENCIES	20000u		/* buckets of 1 ms; the last: all above */
#define HOT		950u

struct job {
	double left;			/* microseconds of a core */
	double came;			/* when, in microseconds */
};

struct queue {
	struct job jobs[QUEUE];
	uint32_t first, count;
	double debt;			/* caches that are cold: to be paid first */
	double used, waited;		/* in the window */
	double used_here;		/* since hot cores were last counted */
};

struct vm {
	uint32_t connections;		/* as many as there are to be */
	uint32_t there, thinking;
	uint32_t row;
	bool is_busy;			/* skew: its latencies count */
	usec_t moved_at;
	uint32_t moved_connections;
};

struct run {
	const struct sim_shared_options *o;
	struct sim_shared_result *ret;
	struct ebb_share share;
	struct vm *vms;
	struct queue *queues;
	uint16_t *next;			/* by vCPU: the next one on the same core */
	uint16_t *first;		/* by core */
	uint32_t *latencies;
	struct sim_promises promises;
	double service_usec;
	double *core_used;		/* in the last half */
	double *look_usec;		/* by look */
	uint64_t seed;
	uint32_t boosted;
};

static uint32_t roll(struct run *r, uint32_t below)
{
	return (uint32_t)(ebb_random_unit(&r->seed) * below);
}

/* ---- who has how many connections ---------------------------------------- */

static uint32_t connections_for(const struct run *r, uint32_t num_vcpus, double percent)
{
	/* A transaction takes a little longer than its service; what is lost by that is little. */
	const double each = r->service_usec / (THINK_USEC + 1.5 * r->service_usec);

	return (uint32_t)(percent / 100 * num_vcpus / each + 0.5);
}

static void set_connections(struct run *r, uint32_t second)
{
	for (uint32_t m = 0; m < r->share.num_vms; m++) {
		struct vm *vm = &r->vms[m];
		const uint32_t vcpus = r->share.vms[m].num_vcpus;

		if (r->o->kind == SIM_SHARED_SKEW)
			vm->connections = vm->is_busy ? 6 * vcpus : 1;
		else if (r->o->kind == SIM_SHARED_BURST)
			vm->connections = (m == r->boosted && second % 1200 < 900 ? 8 : 2) * vcpus;
		else
			vm->connections = connections_for(
				r, vcpus,
				r->o->demand->percent[(size_t)vm->row * r->o->demand->num_columns +
						      second / SEGMENT_S %
							      r->o->demand->num_columns]);
		if (vm->connections > (QUEUE - 1) * vcpus / 2)
			vm->connections = (QUEUE - 1) * vcpus / 2;
		for (; vm->there < vm->connections; vm->there++)
			vm->thinking++;
		for (; vm->there > vm->connections && vm->thinking > 0; vm->there--)
			vm->thinking--;
	}
}

/* ---- queues -------------------------------------------------------------- */

static void arrive(struct run *r, uint32_t m, double now)
{
	const struct ebb_share_vm *vm = &r->share.vms[m];
	const uint32_t start = roll(r, vm->num_vcpus);
	uint32_t best = vm->first + start;
	struct queue *q;

	for (uint32_t i = 0; i < vm->num_vcpus; i++) {
		const uint32_t k = vm->first + (start + i) % vm->num_vcpus;

		if (r->queues[k].count < r->queues[best].count)
			best = k;
	}
	q = &r->queues[best];
	if (q->count == QUEUE)
		return;
	r->vms[m].thinking--;
	q->jobs[(q->first + q->count++) % QUEUE] = (struct job){
		.left = -r->service_usec * log(ebb_random_unit(&r->seed)), .came = now,
	};
}

static void arrivals(struct run *r, double now)
{
	for (uint32_t m = 0; m < r->share.num_vms; m++) {
		struct vm *vm = &r->vms[m];
		const double mean = vm->thinking * STEP_USEC / THINK_USEC;
		double t = 0;

		/* A Poisson process within the step. */
		while (vm->thinking > 0 && (t -= log(ebb_random_unit(&r->seed)) / mean) < 1)
			arrive(r, m, now + t * STEP_USEC);
	}
}

static void complete(struct run *r, uint32_t vcpu, double at)
{
	struct queue *q = &r->queues[vcpu];
	struct vm *vm = &r->vms[r->share.vcpus[vcpu].vm];
	const double ms = (at - q->jobs[q->first].came) / 1000;

	if (vm->is_busy) {
		r->ret->committed++;
		r->latencies[ms < 0 ? 0 : ms < LATENCIES - 1 ? (uint32_t)ms : LATENCIES - 1]++;
	}
	q->first = (q->first + 1) % QUEUE;
	q->count--;
	if (vm->there > vm->connections)
		vm->there--;
	else
		vm->thinking++;
}

/* Up to so much for a vCPU; returns what it took.  speed: its part of the core. */
static double serve(struct run *r, uint32_t vcpu, double most, double begin, double speed)
{
	struct queue *q = &r->queues[vcpu];
	double took = q->debt < most ? q->debt : most;

	q->debt -= took;
	while (q->count > 0 && took < most) {
		struct job *job = &q->jobs[q->first];

		if (job->left > most - took) {
			job->left -= most - took;
			took = most;
			break;
		}
		took += job->left;
		complete(r, vcpu, begin + took / speed);
	}
	return took;
}

/* The vCPU is to be served and has not had all that its throttle allows in this step. */
static bool is_wanting(const struct run *r, uint32_t vcpu, double had)
{
	const uint16_t limit = r->share.vms[r->share.vcpus[vcpu].vm].throttle;

	return r->queues[vcpu].count > 0 && (!limit || had + 1 < limit * (STEP_USEC / 1000.0));
}

/* Sum of the weights of those that are wanting; *ret_rest: those of them without a promise. */
static double weigh(const struct run *r, const uint16_t *busy, const double *had, uint32_t count,
		    uint32_t *ret_rest)
{
	double sum = 0;

	*ret_rest = 0;
	for (uint32_t k = 0; k < count; k++)
		*ret_rest += is_wanting(r, busy[k], had[k]) && !r->share.vcpus[busy[k]].reserve;
	for (uint32_t k = 0; k < count; k++)
		if (is_wanting(r, busy[k], had[k]))
			sum += sim_promises_weight(&r->promises, busy[k], *ret_rest);
	return sum;
}

/*
 * Divides the step among the vCPUs of a core: each gets its part of the rest, until none wants
 * more.
 */
static void run_core(struct run *r, uint16_t core, double now)
{
	uint16_t busy[EBB_SHARE_MAX_VCPUS / 16];
	double had[EBB_SHARE_MAX_VCPUS / 16], ready[EBB_SHARE_MAX_VCPUS / 16];
	double left = STEP_USEC, sum;
	uint32_t count = 0, num_rest;

	for (uint32_t i = r->first[core]; i != EBB_SHARE_NONE; i = r->next[i])
		if (r->queues[i].count > 0 && count < EBB_SHARE_MAX_VCPUS / 16) {
			had[count] = ready[count] = 0;
			busy[count++] = (uint16_t)i;
		}
	while (left > 1 && (sum = weigh(r, busy, had, count, &num_rest)) > 0) {
		const double begin = now + STEP_USEC - left, all = left;

		for (uint32_t k = 0; k < count; k++) {
			const uint16_t limit = r->share.vms[r->share.vcpus[busy[k]].vm].throttle;
			const double most = limit ? limit * (STEP_USEC / 1000.0) - had[k] :
						    STEP_USEC;
			double speed, part, took;

			if (!is_wanting(r, busy[k], had[k]))
				continue;
			speed = sim_promises_weight(&r->promises, busy[k], num_rest) / sum;
			part = all * speed;
			took = serve(r, busy[k], part < most ? part : most, begin, speed);
			had[k] += took;
			ready[k] += took / speed;
			left -= took;
		}
	}
	for (uint32_t k = 0; k < count; k++) {
		struct queue *q = &r->queues[busy[k]];
		/* If it is done, it waited while the others had as much as it. */
		const double alone = STEP_USEC - had[k];
		const double shared = had[k] * (count - 1);

		q->used += had[k];
		q->used_here += had[k];
		q->waited += q->count > 0 || shared > alone ? alone : shared;
		r->promises.ran[busy[k]] += had[k];
		r->promises.ready[busy[k]] += q->count > 0 || ready[k] > STEP_USEC ? STEP_USEC :
										    ready[k];
	}
}

static void rebuild(struct run *r)
{
	for (uint16_t c = 0; c < r->share.num_cores; c++)
		r->first[c] = EBB_SHARE_NONE;
	for (uint32_t i = r->share.num_vcpus; i-- > 0;) {
		const uint16_t c = r->share.vcpus[i].core;

		r->next[i] = r->first[c];
		r->first[c] = (uint16_t)i;
	}
	sim_promises_divide(&r->promises);
}

/* ---- looks --------------------------------------------------------------- */

static void take_loads(struct run *r, double window_usec)
{
	for (uint32_t i = 0; i < r->share.num_vcpus; i++) {
		struct queue *q = &r->queues[i];
		const double wait = q->waited * 1000 / window_usec;

		r->share.vcpus[i].use = (uint16_t)(q->used * 1000 / window_usec + 0.5);
		r->share.vcpus[i].wait = (uint16_t)(wait < 1000 ? wait : 1000);
		q->used = q->waited = 0;
	}
}

static void time_look(struct run *r, usec_t now)
{
	const uint64_t before = r->o->clock ? r->o->clock() : 0;

	ebb_share_look(&r->share, now);
	if (r->o->clock)
		r->look_usec[r->ret->num_looks] = (double)(r->o->clock() - before) / 1000;
	r->ret->num_looks++;
}

static void look(struct run *r, uint32_t second)
{
	struct ebb_share *s = &r->share;
	const usec_t now = (second + 1) * EBB_USEC_PER_SEC;

	take_loads(r, (double)s->cfg.window);
	if (r->o->is_static)
		return;
	time_look(r, now);
	r->ret->num_moves += s->num_moves;
	r->ret->num_vm_moves += s->num_moved_vms;
	r->ret->cost_usec += s->cost_usec;
	for (uint32_t i = 0; i < s->num_vcpus; i++)
		if (s->vcpus[i].core != s->vcpus[i].from)
			r->queues[i].debt += (double)s->cfg.move_usec;
	for (uint32_t m = 0; m < s->num_vms; m++) {
		struct vm *vm = &r->vms[m];

		r->ret->num_throttled += s->vms[m].throttle > 0;
		if (!s->vms[m].is_moved)
			continue;
		r->ret->num_early += vm->moved_at && now <= vm->moved_at + s->cfg.window &&
				     vm->moved_connections == vm->connections;
		vm->moved_at = now;
		vm->moved_connections = vm->connections;
	}
	rebuild(r);
}

static void count_hot(struct run *r, uint32_t second)
{
	const double all = MEASURED_S * 1e6;
	bool is_any = false;

	for (uint16_t c = 0; c < r->share.num_cores; c++) {
		double used = 0;
		uint32_t active = 0;

		/* No VM has two vCPUs on a core here. */
		for (uint32_t i = r->first[c]; i != EBB_SHARE_NONE; i = r->next[i]) {
			used += r->queues[i].used_here;
			active += r->queues[i].used_here >= all * r->share.cfg.active / 1000;
		}
		r->ret->use += used;
		if (second >= r->o->seconds / 2)
			r->core_used[c] += used;
		if (second < 2 * MEASURED_S || used * 1000 < HOT * all || active < 2)
			continue;
		r->ret->num_hot++;
		is_any = true;
	}
	for (uint32_t i = 0; i < r->share.num_vcpus; i++)
		r->queues[i].used_here = 0;
	r->ret->num_intervals += second >= 2 * MEASURED_S;
	r->ret->num_hot_intervals += is_any;
}

/* ---- the whole ----------------------------------------------------------- */

static uint16_t vcpus_of(struct run *r)
{
	const uint16_t v = r->o->vcpus;

	if (r->o->kind != SIM_SHARED_TRACE)
		return v;
	switch (roll(r, 3)) {
	case 0:
		return v > 1 ? v / 2 : 1;
	case 1:
		return v;
	default:
		return v * 2;
	}
}

/* Where VMs are at first: placed one after the other by what those before them use. */
static void start(struct run *r)
{
	struct ebb_share *s = &r->share;
	const uint16_t half = s->num_cores / 2;

	for (uint32_t m = 0; m < r->o->num_vms; m++) {
		struct ebb_share_vm *vm = &s->vms[m];
		const uint16_t vcpus = vcpus_of(r);

		*vm = (struct ebb_share_vm){
			.weight = EBB_WEIGHT_DEFAULT, .first = s->num_vcpus, .num_vcpus = vcpus,
			.num_groups = ebb_share_groups(s, vcpus),
		};
		for (uint16_t g = 0; g < EBB_MAX_GUEST_NODES; g++)
			vm->nodes[g] = EBB_NODE_ANY;
		r->vms[m].is_busy = r->o->kind != SIM_SHARED_SKEW || m < r->o->num_vms / 2;
		r->vms[m].row = r->o->demand ? roll(r, r->o->demand->num_rows) : 0;
		s->num_vms++;
		for (uint16_t i = 0; i < vcpus; i++)
			s->vcpus[s->num_vcpus++] = (struct ebb_share_vcpu){
				.vm = (uint16_t)m, .group = i % vm->num_groups,
				.core = EBB_SHARE_NONE, .use = 0,
				.reserve = r->o->is_kept && sim_promises_wants(r->o, m) ?
						   r->promises.each : 0,
			};
		/* Skew: the busy ones on the first half of the cores, the others on the second. */
		for (uint16_t i = 0; r->o->kind == SIM_SHARED_SKEW && i < vcpus; i++) {
			const uint32_t first = m < r->o->num_vms / 2 ? 0 : r->o->num_vms / 2;

			s->vcpus[vm->first + i].core = (uint16_t)(
				(first ? half : 0) + ((m - first) * vcpus + i) % half);
			vm->nodes[0] = s->cores[s->vcpus[vm->first + i].core].node;
		}
		ebb_share_place(s);
		set_connections(r, 0);
		for (uint32_t i = vm->first; i < s->num_vcpus; i++)
			s->vcpus[i].use = (uint16_t)(r->vms[m].connections * r->service_usec *
						     1000 / (THINK_USEC + r->service_usec) /
						     vcpus);
	}
	rebuild(r);
}

static double percentile(const struct run *r, double part)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < LATENCIES; i++) {
		sum += r->latencies[i];
		if ((double)sum >= part * (double)r->ret->committed)
			return i + 1;
	}
	return LATENCIES;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sum_up(struct run *r)
{
	struct sim_shared_result *ret = r->ret;

	ret->p50_ms = percentile(r, 0.5);
	ret->p95_ms = percentile(r, 0.95);
	ret->p99_ms = percentile(r, 0.99);
	ret->use /= (double)r->share.num_cores * r->o->seconds * 1e6;
	ret->num_cores = r->share.num_cores;
	for (uint16_t c = 0; c < r->share.num_cores; c++)
		ret->heat[c] = (uint16_t)(r->core_used[c] * 2000 / (r->o->seconds * 1e6));
	if (ret->num_looks == 0)
		return;
	ret->moves_per_window = (double)ret->num_vm_moves / (double)ret->num_looks /
				r->share.num_vms;
	qsort(r->look_usec, ret->num_looks, sizeof(*r->look_usec), compare);
	ret->look_median_usec = r->look_usec[ret->num_looks / 2];
	ret->look_max_usec = r->look_usec[ret->num_looks - 1];
}

static void run_all(struct run *r)
{
	const uint32_t window = (uint32_t)(r->share.cfg.window / EBB_USEC_PER_SEC);

	for (uint32_t second = 0; second < r->o->seconds; second++) {
		if (second % 1200 == 0)
			r->boosted = roll(r, r->share.num_vms);
		if (second % SEGMENT_S == 0)
			set_connections(r, second);
		for (uint32_t step = 0; step < STEPS_PER_S; step++) {
			const double now = second * 1e6 + step * STEP_USEC;

			arrivals(r, now);
			for (uint16_t c = 0; c < r->share.num_cores; c++)
				run_core(r, c, now);
		}
		sim_promises_judge(&r->promises, EBB_USEC_PER_SEC, r->ret);
		if ((second + 1) % MEASURED_S == 0)
			count_hot(r, second);
		if ((second + 1) % window == 0)
			look(r, second);
	}
	sum_up(r);
}

static int check(const struct sim_shared_options *o)
{
	const uint32_t cores = (uint32_t)o->num_nodes * o->cores_per_node;

	return o->num_nodes < 1 || o->num_nodes > EBB_MAX_NODES || cores < 2 ||
			       cores > EBB_MAX_THREADS || o->num_vms < 2 ||
			       o->num_vms > EBB_MAX_VMS || o->vcpus < 1 ||
			       (uint32_t)o->vcpus * (o->kind == SIM_SHARED_TRACE ? 2 : 1) >
				       (o->kind == SIM_SHARED_TRACE ? cores : cores / 2) ||
			       2u * o->vcpus * o->num_vms > EBB_SHARE_MAX_VCPUS ||
			       o->seconds < 3 * MEASURED_S ||
			       o->config.window < EBB_USEC_PER_SEC ||
			       o->reserve_percent > 100 ||
			       (o->kind == SIM_SHARED_TRACE) != !!o->demand ?
		       -EINVAL : 0;
}

int sim_shared_run(const struct sim_shared_options *o, struct sim_shared_result *ret)
{
	const uint32_t cores = (uint32_t)o->num_nodes * o->cores_per_node;
	const uint32_t most = 2u * o->vcpus * o->num_vms;
	/* Not the numbers from which the demands of this seed were made up. */
	struct run r = { .o = o, .ret = ret, .seed = ~o->seed };
	int rc = check(o);

	*ret = (struct sim_shared_result){ 0 };
	if (rc < 0)
		return rc;
	/* Busy: 0.7 of a core each in bursts, 0.6 where all that are busy overlap. */
	r.service_usec = o->kind == SIM_SHARED_SKEW ? 14300 : 18000;
	r.share.cfg = o->config;
	r.share.num_cores = (uint16_t)cores;
	r.share.cores = calloc(cores, sizeof(*r.share.cores));
	r.share.vms = calloc(o->num_vms, sizeof(*r.share.vms));
	r.share.vcpus = calloc(most, sizeof(*r.share.vcpus));
	r.vms = calloc(o->num_vms, sizeof(*r.vms));
	r.queues = calloc(most, sizeof(*r.queues));
	r.next = calloc(most, sizeof(*r.next));
	r.first = calloc(cores, sizeof(*r.first));
	r.latencies = calloc(LATENCIES, sizeof(*r.latencies));
	r.core_used = calloc(cores, sizeof(*r.core_used));
	r.look_usec = calloc(o->seconds, sizeof(*r.look_usec));
	if (!r.share.cores || !r.share.vms || !r.share.vcpus || !r.vms || !r.queues || !r.next ||
	    !r.first || !r.latencies || !r.core_used || !r.look_usec)
		rc = -ENOMEM;
	for (uint32_t c = 0; rc == 0 && c < cores; c++)
		r.share.cores[c].node = (uint16_t)(c / o->cores_per_node);
	if (rc == 0)
		rc = sim_promises_init(&r.promises, &r.share, o);
	if (rc == 0) {
		start(&r);
		rc = sim_promises_admit(&r.promises, o, ret);
	}
	if (rc == 0)
		run_all(&r);
	sim_promises_finish(&r.promises);
	free(r.share.cores);
	free(r.share.vms);
	free(r.share.vcpus);
	free(r.vms);
	free(r.queues);
	free(r.next);
	free(r.first);
	free(r.latencies);
	free(r.core_used);
	free(r.look_usec);
	return rc;
}
