/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/placed.h"
#include "util/random.h"

#define FAILOVER_S	30.0
#define DISK_MIB_S	250.0
#define MEMORY_MIB_S	1000.0
#define MAX_DAYS	366u
#define MAX_RATIO	10.0

struct run {
	struct sim_place_world w;
	struct sim_place_result *result;
	/* Apart, so that the k-th database is the same whenever it comes. */
	uint64_t arrivals, databases;
	uint64_t num_databases;		/* that were admitted or refused */
	double capacity;		/* of all hosts, thousandths of a CPU */
	double reserved;		/* of that, maxima of VMs that are there */
	double rate;			/* databases that arrive in a step */
	bool is_waiting;
	struct sim_place_database waiting;
	int32_t *hosts;			/* for decisions: max_vms */
};

/* ---- facts ---- */

uint32_t sim_place_age(const struct sim_place_world *w, const struct sim_place_vm *vm)
{
	return w->step - vm->born;
}

double sim_place_failover_s(double disk, double memory)
{
	return FAILOVER_S + disk / DISK_MIB_S + memory / MEMORY_MIB_S;
}

static void use_of(const struct sim_place_world *w, const struct sim_place_vm *vm, uint32_t age,
		   double ret[PLACE_N_RESOURCES])
{
	sim_place_use(&vm->of, w->options->traces, vm->is_secondary, vm->born, age, ret);
}

void sim_place_peak(const struct sim_place_world *w, const struct sim_place_vm *vm,
		    double ret[PLACE_N_RESOURCES])
{
	const uint32_t age = sim_place_age(w, vm);

	memcpy(ret, vm->use, sizeof(vm->use));
	for (uint32_t back = 1; back < SIM_PLACE_DAY && back <= age; back++) {
		double use[PLACE_N_RESOURCES];

		use_of(w, vm, age - back, use);
		for (unsigned int r = 0; r < PLACE_N_RESOURCES; r++)
			ret[r] = fmax(ret[r], use[r]);
	}
}

static bool is_exceeded(const struct sim_place_world *w, uint32_t host, unsigned int r)
{
	/* Sums of the same amounts in another order may differ in their last bits. */
	return w->load[host][r] > w->hosts[host].capacity[r] * (1 + 1e-9);
}

bool sim_place_is_over(const struct sim_place_world *w, uint32_t host)
{
	for (unsigned int r = 0; r < PLACE_N_RESOURCES; r++)
		if (is_exceeded(w, host, r))
			return true;
	return false;
}

/* Secondaries are active with their primary, however little they use. */
static bool is_active(const struct sim_place_world *w, const struct sim_place_vm *vm)
{
	return sim_place_is_active(&vm->of, w->options->traces, vm->born, sim_place_age(w, vm));
}

/* What the VMs use in this step. */
static void look(struct sim_place_world *w)
{
	for (uint32_t i = 0; i < w->num_vms; i++) {
		struct sim_place_vm *vm = &w->vms[i];

		use_of(w, vm, sim_place_age(w, vm), vm->use);
		for (unsigned int r = 0; r < PLACE_N_RESOURCES; r++)
			vm->most[r] = fmax(vm->most[r], vm->use[r]);
		vm->is_active = is_active(w, vm);
	}
}

static void add_up(struct sim_place_world *w)
{
	memset(w->load, 0, w->options->num_hosts * sizeof(w->load[0]));
	for (uint32_t i = 0; i < w->num_vms; i++)
		for (unsigned int r = 0; r < PLACE_N_RESOURCES && w->vms[i].host >= 0; r++)
			w->load[w->vms[i].host][r] += w->vms[i].use[r];
}

static struct sim_place_counts *today(struct run *run)
{
	return &run->result->days[run->w.step / SIM_PLACE_DAY];
}

/* ---- coming and going ---- */

static double maximum(const struct sim_place_vm *vm)
{
	return 1000.0 * sim_place_classes[vm->of.class].vcpus;
}

static bool is_dead(const struct sim_place_world *w, const struct sim_place_vm *vm)
{
	return sim_place_age(w, vm) >= vm->of.life;
}

/* VMs keep their order, so that the decisions stay the same. */
static void delete_dead(struct run *run)
{
	struct sim_place_world *w = &run->w;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->num_vms; i++) {
		if (is_dead(w, &w->vms[i])) {
			run->reserved -= maximum(&w->vms[i]);
			today(run)->deleted += !w->vms[i].is_secondary;
		} else {
			w->vms[kept++] = w->vms[i];
		}
	}
	w->num_vms = kept;
}

/* Knuth's; the rate is a few. */
static uint32_t poisson(uint64_t *random, double rate)
{
	const double least = exp(-rate);
	double product = ebb_random_unit(random);
	uint32_t count = 0;

	for (; product > least; count++)
		product *= ebb_random_unit(random);
	return count;
}

static int reserve_room(struct run *run)
{
	struct sim_place_world *w = &run->w;
	const uint32_t max = 2 * w->max_vms + 64;
	struct sim_place_vm *vms;
	int32_t *hosts;

	if (w->num_vms + SIM_PLACE_MAX_REPLICAS <= w->max_vms)
		return 0;
	vms = reallocarray(w->vms, max, sizeof(*vms));
	if (!vms)
		return -ENOMEM;
	w->vms = vms;
	hosts = reallocarray(run->hosts, max, sizeof(*hosts));
	if (!hosts)
		return -ENOMEM;
	run->hosts = hosts;
	w->max_vms = max;
	return 0;
}

static int add_database(struct run *run, const struct sim_place_database *db)
{
	struct sim_place_world *w = &run->w;
	const int rc = reserve_room(run);

	if (rc < 0)
		return rc;
	run->num_databases++;
	for (uint32_t i = 0; i < sim_place_classes[db->class].replicas; i++) {
		struct sim_place_vm *vm = &w->vms[w->num_vms++];

		*vm = (struct sim_place_vm){
			.id = run->num_databases * SIM_PLACE_MAX_REPLICAS + i,
			.database = run->num_databases, .of = *db, .is_secondary = i > 0,
			.born = w->step, .host = -1,
		};
		use_of(w, vm, 0, vm->use);
		memcpy(vm->most, vm->use, sizeof(vm->most));
		vm->is_active = is_active(w, vm);
		run->reserved += maximum(vm);
	}
	return 0;
}

/* Host, fault and upgrade domain that a VM would share with other replicas of its database. */
static uint32_t count_shared(const struct sim_place_world *w, const struct sim_place_vm *vm,
			     uint32_t h)
{
	const struct place_host *to = &w->hosts[h];
	uint32_t count = 0;

	for (uint32_t i = 0; i < w->num_vms; i++) {
		const struct place_host *at;

		if (w->vms[i].database != vm->database || w->vms[i].host < 0)
			continue;
		at = &w->hosts[w->vms[i].host];
		count += (at == to) + (at->fault_domain == to->fault_domain) +
			 (at->upgrade_domain == to->upgrade_domain);
	}
	return count;
}

/* How much of the resource that is then scarcest is used with the VM there. */
static double fullness(const struct sim_place_world *w, const struct sim_place_vm *vm, uint32_t h)
{
	double most = 0;

	for (unsigned int r = 0; r < PLACE_N_RESOURCES; r++)
		most = fmax(most, (w->load[h][r] + vm->use[r]) / w->hosts[h].capacity[r]);
	return most;
}

static uint32_t least_bad_host(const struct sim_place_world *w, const struct sim_place_vm *vm)
{
	uint32_t best = 0, least = UINT32_MAX;

	for (uint32_t h = 0; h < w->options->num_hosts; h++) {
		const uint32_t shared = count_shared(w, vm, h);

		if (shared < least ||
		    (shared == least && fullness(w, vm, h) < fullness(w, vm, best))) {
			best = h;
			least = shared;
		}
	}
	return best;
}

/*
 * All decisions are compared on the same databases, so those that one of them refuses are counted
 * and placed nevertheless, where it is least bad.
 */
static void place_refused(struct run *run)
{
	struct sim_place_world *w = &run->w;
	uint64_t refused = 0;

	for (uint32_t i = 0; i < w->num_vms; i++) {
		struct sim_place_vm *vm = &w->vms[i];

		if (vm->host >= 0)
			continue;
		today(run)->refused += vm->database != refused;
		refused = vm->database;
		vm->host = (int32_t)least_bad_host(w, vm);
		add_up(w);
	}
}

static int decide(struct run *run, enum sim_place_task task)
{
	struct sim_place_world *w = &run->w;
	const struct sim_place_options *o = w->options;
	int rc;

	for (uint32_t i = 0; i < w->num_vms; i++)
		run->hosts[i] = w->vms[i].host;
	rc = o->decide(o->ctx, task, w, run->hosts);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < w->num_vms; i++) {
		const int32_t was = w->vms[i].host, is = run->hosts[i];

		if (is >= (int32_t)o->num_hosts || is < -1 || (is < 0 && was >= 0) ||
		    (task == SIM_PLACE_NEW && was >= 0 && is != was))
			return -EINVAL;
	}
	return 0;
}

static int arrive(struct run *run)
{
	struct sim_place_world *w = &run->w;
	const uint32_t before = w->num_vms;
	const double limit = run->capacity * w->options->ratio;
	int rc = 0;

	for (uint32_t n = poisson(&run->arrivals, run->rate); rc == 0 && n; n--) {
		const struct sim_place_class *c;

		if (!run->is_waiting)
			sim_place_draw(&run->databases, w->options->traces, SIM_PLACE_SIMULATED,
				       -1, &run->waiting);
		c = &sim_place_classes[run->waiting.class];
		run->is_waiting = run->reserved + 1000.0 * c->vcpus * c->replicas > limit;
		if (run->is_waiting)
			break;
		rc = add_database(run, &run->waiting);
		today(run)->admitted++;
	}
	if (rc < 0 || w->num_vms == before)
		return rc;
	rc = decide(run, SIM_PLACE_NEW);
	for (uint32_t i = before; rc == 0 && i < w->num_vms; i++)
		w->vms[i].host = run->hosts[i];
	add_up(w);
	if (rc == 0)
		place_refused(run);
	return rc;
}

/* ---- failovers ---- */

static int move(struct run *run, enum sim_place_task task)
{
	struct sim_place_world *w = &run->w;
	struct sim_place_counts *c = today(run);
	const int rc = decide(run, task);

	for (uint32_t i = 0; rc == 0 && i < w->num_vms; i++) {
		struct sim_place_vm *vm = &w->vms[i];
		const double s = sim_place_failover_s(vm->use[PLACE_DISK], vm->use[PLACE_MEMORY]);

		if (vm->host == run->hosts[i])
			continue;
		vm->host = run->hosts[i];
		c->failovers++;
		c->failovers_new += sim_place_age(w, vm) < SIM_PLACE_DAY;
		c->failover_s += s;
		c->disruption_s += vm->is_active ? s : 0;
	}
	add_up(w);
	return rc;
}

static uint64_t count_violations(const struct sim_place_world *w)
{
	uint64_t count = 0;

	for (uint32_t h = 0; h < w->options->num_hosts; h++)
		for (unsigned int r = 0; r < PLACE_N_RESOURCES; r++)
			count += is_exceeded(w, h, r);
	return count;
}

/* ---- all steps ---- */

static void note_use(struct run *run)
{
	const struct sim_place_world *w = &run->w;
	struct sim_place_counts *c = today(run);

	c->reserved += run->reserved / run->capacity / SIM_PLACE_DAY;
	for (uint32_t h = 0; h < w->options->num_hosts; h++)
		for (unsigned int r = 0; r < PLACE_N_RESOURCES; r++)
			c->used[r] += w->load[h][r] / w->hosts[h].capacity[r] /
				      w->options->num_hosts / SIM_PLACE_DAY;
}

static int step(struct run *run)
{
	struct sim_place_world *w = &run->w;
	const uint32_t balance = w->options->balance_steps;
	uint64_t violations;
	int rc = 0;

	delete_dead(run);
	look(w);
	add_up(w);
	violations = count_violations(w);
	today(run)->violations += violations;
	if (violations)
		rc = move(run, SIM_PLACE_RESOLVE);
	if (rc == 0)
		rc = arrive(run);
	if (rc == 0 && balance && w->step % balance == 0 && w->num_vms)
		rc = move(run, SIM_PLACE_BALANCE);
	note_use(run);
	return rc;
}

static void sum_up(struct sim_place_result *r)
{
	for (uint32_t d = 0; d < r->num_days; d++) {
		const struct sim_place_counts *c = &r->days[d];

		r->all.violations += c->violations;
		r->all.failovers += c->failovers;
		r->all.failovers_new += c->failovers_new;
		r->all.disruption_s += c->disruption_s;
		r->all.failover_s += c->failover_s;
		r->all.admitted += c->admitted;
		r->all.refused += c->refused;
		r->all.deleted += c->deleted;
		r->all.reserved += c->reserved / r->num_days;
		for (unsigned int i = 0; i < PLACE_N_RESOURCES; i++)
			r->all.used[i] += c->used[i] / r->num_days;
	}
}

static bool is_possible(const struct sim_place_options *o)
{
	return o->num_hosts >= 1 && o->num_hosts <= PLACE_HOSTS_MAX && o->upgrade_domains >= 1 &&
	       o->upgrade_domains <= o->num_hosts && o->fault_domains >= 1 &&
	       o->fault_domains <= o->num_hosts && o->days >= 1 && o->days <= MAX_DAYS &&
	       o->ratio > 0 && o->ratio <= MAX_RATIO && o->traces && o->traces->num_rows >= 2 &&
	       o->decide;
}

/*
 * Neighbours are in different fault domains, and upgrade domains are of neighbours: the two cross
 * each other as in a table.
 */
static void make_hosts(struct sim_place_world *w)
{
	const struct sim_place_options *o = w->options;

	for (uint32_t h = 0; h < o->num_hosts; h++)
		w->hosts[h] = (struct place_host){
			.capacity = {
				[PLACE_CPU] = 1000.0 * SIM_PLACE_HOST_VCPUS,
				[PLACE_MEMORY] = (double)SIM_PLACE_MEM_MIB * SIM_PLACE_HOST_VCPUS,
				[PLACE_DISK] = (double)SIM_PLACE_DISK_MIB * SIM_PLACE_HOST_VCPUS,
			},
			.fault_domain = (int32_t)(h % o->fault_domains),
			.upgrade_domain = (int32_t)(h * o->upgrade_domains / o->num_hosts),
			.state = PLACE_HOST_OPEN,
		};
}

static double vcpus_of_database(void)
{
	double sum = 0;

	for (uint32_t i = 0; i < SIM_PLACE_CLASSES; i++)
		sum += sim_place_classes[i].fraction * sim_place_classes[i].vcpus *
		       sim_place_classes[i].replicas;
	return sum;
}

int sim_place_run(const struct sim_place_options *o, struct sim_place_result *ret)
{
	struct run run = { .w.options = o, .result = ret };
	int rc = 0;

	*ret = (struct sim_place_result){ 0 };
	if (!is_possible(o))
		return -EINVAL;
	run.arrivals = o->seed;
	/* Two seeds that follow each other must not have sequences in common. */
	run.databases = ebb_random(&run.arrivals);
	run.capacity = 1000.0 * SIM_PLACE_HOST_VCPUS * o->num_hosts;
	run.rate = run.capacity * o->ratio / 1000 / vcpus_of_database() / (1 - SIM_PLACE_BRIEF) /
		   (SIM_PLACE_FILL_DAYS * SIM_PLACE_DAY);
	run.w.hosts = calloc(o->num_hosts, sizeof(*run.w.hosts));
	run.w.load = calloc(o->num_hosts, sizeof(*run.w.load));
	ret->days = calloc(o->days, sizeof(*ret->days));
	ret->num_days = o->days;
	if (!run.w.hosts || !run.w.load || !ret->days)
		rc = -ENOMEM;
	else
		make_hosts(&run.w);
	for (; rc == 0 && run.w.step < o->days * SIM_PLACE_DAY; run.w.step++)
		rc = step(&run);
	if (rc == 0)
		sum_up(ret);
	else
		sim_place_result_finish(ret);
	free(run.w.hosts);
	free(run.w.load);
	free(run.w.vms);
	free(run.hosts);
	return rc;
}

void sim_place_result_finish(struct sim_place_result *r)
{
	free(r->days);
	*r = (struct sim_place_result){ 0 };
}
