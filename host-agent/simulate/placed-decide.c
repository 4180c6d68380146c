/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/placed-decide.h"
#include "simulate/placed-oracle.h"
#include "util/random.h"

/* Long enough for growth and for the ages that VMs reach in a few weeks. */
#define EARLIER_STEPS	(56u * SIM_PLACE_DAY)
#define CALIBRATION	500u
#define RELIEVED	0.95

static const struct sim_place_placer placers[] = {
	{ "prv+mc+aru", SIM_PLACE_ANNEAL, true, true, true, false },
	{ "prv+mc", SIM_PLACE_ANNEAL, true, true, false, false },
	{ "prv+aru", SIM_PLACE_ANNEAL, true, false, true, false },
	{ "prv", SIM_PLACE_ANNEAL, true, false, false, false },
	{ "plb+mc+aru", SIM_PLACE_ANNEAL, false, true, true, false },
	{ "plb+mc", SIM_PLACE_ANNEAL, false, true, false, false },
	{ "plb+aru", SIM_PLACE_ANNEAL, false, false, true, false },
	{ "plb", SIM_PLACE_ANNEAL, false, false, false, false },
	{ "oracle+mc+aru", SIM_PLACE_ANNEAL, true, true, true, true },
	{ "first-fit", SIM_PLACE_FIRST_FIT, false, false, false, false },
	{ "best-fit", SIM_PLACE_BEST_FIT, false, false, false, false },
	{ "worst-fit", SIM_PLACE_WORST_FIT, false, false, false, false },
};

const struct sim_place_placer *sim_place_placer_at(uint32_t i)
{
	return i < sizeof(placers) / sizeof(placers[0]) ? &placers[i] : NULL;
}

const struct sim_place_placer *sim_place_placer_find(const char *name)
{
	for (uint32_t i = 0; sim_place_placer_at(i); i++)
		if (strcmp(placers[i].name, name) == 0)
			return &placers[i];
	return NULL;
}

/* ---- earlier VMs ---- */

struct sim_place_earlier {
	uint32_t window;		/* steps */
	struct place_traces *traces;
	struct place_move_cost cost;
	double reserve[SIM_PLACE_CLASSES][PLACE_N_ROLES][PLACE_N_RESOURCES];
};

static int fill_trace(const struct sim_place_database *db, const struct sim_place_traces *traces,
		      bool is_secondary, uint32_t born, struct place_trace *ret)
{
	const uint32_t steps = db->life < EARLIER_STEPS ? db->life : EARLIER_STEPS;
	float *demand = calloc((size_t)steps * PLACE_N_RESOURCES, sizeof(*demand));

	if (!demand)
		return -ENOMEM;
	for (uint32_t age = 0; age < steps; age++) {
		double use[PLACE_N_RESOURCES];

		sim_place_use(db, traces, is_secondary, born, age, use);
		for (unsigned int r = 0; r < PLACE_N_RESOURCES; r++)
			demand[age * PLACE_N_RESOURCES + r] = (float)use[r];
	}
	*ret = (struct place_trace){
		.class = db->class, .role = is_secondary ? PLACE_SECONDARY : PLACE_PRIMARY,
		.step_seconds = SIM_PLACE_STEP_S, .steps = steps,
		.was_deleted = steps == db->life, .demand = demand,
	};
	return 0;
}

static uint32_t roles_of(uint32_t class)
{
	return sim_place_classes[class].replicas > 1 ? PLACE_N_ROLES : 1;
}

static struct place_grid grid_of(uint32_t window_days)
{
	struct place_grid grid = place_grid_default();

	grid.slots = window_days * SIM_PLACE_DAY / grid.slot_steps;
	return grid;
}

static int make_traces(const struct sim_place_traces *from, uint32_t window_days,
		       uint64_t *random, struct place_traces **ret)
{
	const uint32_t max = SIM_PLACE_CLASSES * SIM_PLACE_EARLIER_VMS * PLACE_N_ROLES;
	const struct place_grid grid = grid_of(window_days);
	struct place_trace *traces = calloc(max, sizeof(*traces));
	struct place_problem problem;
	uint32_t count = 0;
	int rc = traces ? 0 : -ENOMEM;

	for (uint32_t i = 0; rc == 0 && i < SIM_PLACE_CLASSES * SIM_PLACE_EARLIER_VMS; i++) {
		const uint32_t class = i / SIM_PLACE_EARLIER_VMS;
		const uint32_t born = (uint32_t)(ebb_random(random) % SIM_PLACE_DAY);
		struct sim_place_database db;

		sim_place_draw(random, from, SIM_PLACE_EARLIER, (int32_t)class, &db);
		for (uint32_t role = 0; rc == 0 && role < roles_of(class); role++) {
			rc = fill_trace(&db, from, role == PLACE_SECONDARY, born, &traces[count]);
			count += rc == 0;
		}
	}
	if (rc == 0)
		rc = place_traces_create(&grid, SIM_PLACE_CLASSES, traces, count, ret, &problem);
	for (uint32_t i = 0; i < count; i++)
		free((void *)traces[i].demand);
	free(traces);
	return rc;
}

/* Failovers of earlier VMs at random moments of the part of their life in which they have grown. */
static int calibrate(const struct sim_place_traces *from, uint64_t *random,
		     struct place_move_cost *ret)
{
	struct place_disruption moves[CALIBRATION];
	double rms;

	for (uint32_t i = 0; i < CALIBRATION; i++) {
		double use[PLACE_N_RESOURCES];
		struct sim_place_database db;
		uint32_t age;

		sim_place_draw(random, from, SIM_PLACE_EARLIER, -1, &db);
		age = (uint32_t)(ebb_random(random) % db.life);
		sim_place_use(&db, from, false, 0, age, use);
		moves[i] = (struct place_disruption){
			.disk = use[PLACE_DISK], .memory = use[PLACE_MEMORY],
			.is_active = sim_place_is_active(&db, from, 0, age),
		};
		/* Copying an idle database disturbs no client. */
		moves[i].cost = moves[i].is_active ?
			sim_place_failover_s(moves[i].disk, moves[i].memory) : 0;
	}
	return place_calibrate(moves, CALIBRATION, ret, &rms);
}

int sim_place_earlier_create(const struct sim_place_traces *traces, uint32_t window_days,
			     uint64_t seed, struct sim_place_earlier **ret)
{
	struct sim_place_earlier *e = calloc(1, sizeof(*e));
	int rc = e ? make_traces(traces, window_days, &seed, &e->traces) : -ENOMEM;

	if (rc == 0)
		e->window = window_days * SIM_PLACE_DAY;
	if (rc == 0)
		rc = calibrate(traces, &seed, &e->cost);
	for (uint32_t c = 0; rc == 0 && c < SIM_PLACE_CLASSES; c++)
		for (uint32_t role = 0; rc == 0 && role < PLACE_N_ROLES; role++)
			rc = place_reserve(e->traces, c, role, e->reserve[c][role]);
	if (rc < 0) {
		sim_place_earlier_destroy(e);
		return rc;
	}
	*ret = e;
	return 0;
}

void sim_place_earlier_destroy(struct sim_place_earlier *e)
{
	if (e)
		place_traces_destroy(e->traces);
	free(e);
}

/* ---- decisions ---- */

static struct place_config config_of(const struct sim_place_decider *d)
{
	struct place_config config = place_config_default();
	double weight[PLACE_N_COSTS];

	config.seed = d->seed;
	config.samples = d->placer->is_oracle ? 1 : d->samples;
	config.look_ahead = d->placer->look_ahead;
	config.move_costs = d->placer->move_costs;
	config.reserve_new = d->placer->reserve_new;
	/*
	 * The paper calibrates the constants of the cost; how much a bucket weighs is given by its
	 * cluster manager.
	 */
	memcpy(weight, config.cost.weight, sizeof(weight));
	config.cost = d->earlier->cost;
	memcpy(config.cost.weight, weight, sizeof(weight));
	return config;
}

static void fill_vm(const struct sim_place_decider *d, const struct sim_place_world *w,
		    const struct sim_place_vm *vm, struct place_vm *ret)
{
	const enum place_role role = vm->is_secondary ? PLACE_SECONDARY : PLACE_PRIMARY;

	*ret = (struct place_vm){
		.id = vm->id, .class = vm->of.class, .role = role, .age = sim_place_age(w, vm),
		.anti_affinity = sim_place_classes[vm->of.class].replicas > 1 ?
					 (uint32_t)vm->database : 0,
		.host = vm->host, .may_move = true, .is_active = vm->is_active,
	};
	memcpy(ret->use, vm->use, sizeof(ret->use));
	memcpy(ret->most, vm->most, sizeof(ret->most));
	if (d->placer->look_ahead)
		sim_place_peak(w, vm, ret->peak);
	memcpy(ret->reserve, d->earlier->reserve[vm->of.class][role], sizeof(ret->reserve));
}

/*
 * A host that was over its capacity is relieved to 95% of it: at 100%, the next bit of growth would
 * be the next violation.
 */
static struct place_host *hosts_for(const struct sim_place_world *w, enum sim_place_task task)
{
	struct place_host *hosts = calloc(w->options->num_hosts, sizeof(*hosts));

	for (uint32_t h = 0; hosts && h < w->options->num_hosts; h++) {
		hosts[h] = w->hosts[h];
		for (unsigned int r = 0; task == SIM_PLACE_RESOLVE && sim_place_is_over(w, h) &&
					 r < PLACE_N_RESOURCES; r++)
			hosts[h].capacity[r] *= RELIEVED;
	}
	return hosts;
}

static int fit(const struct sim_place_decider *d, struct place *place)
{
	struct place_refusal refusal;
	const int rc = d->placer->search == SIM_PLACE_FIRST_FIT ?
			       place_first_fit(place, &refusal) :
		       d->placer->search == SIM_PLACE_BEST_FIT ?
			       place_best_fit(place, &refusal) : place_worst_fit(place, &refusal);

	/* What stays on no host is refused, or stays where it was. */
	return rc == -EBUSY ? 0 : rc;
}

static int place_each(struct place *place)
{
	struct place_refusal refusal;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < place_n_vms(place); i++) {
		if (place_host_of(place, i) >= 0)
			continue;
		rc = place_new(place, i, &refusal);
		rc = rc == -EBUSY ? 0 : rc;
	}
	return rc;
}

static int anneal(const struct sim_place_decider *d, const struct sim_place_world *w,
		  struct place *place)
{
	const struct place_limit limit = {
		.seed = d->seed + w->step, .steps = d->candidates,
	};
	struct place_refusal refusal;
	const int rc = place_anneal(place, &limit, NULL, &refusal);

	return rc == -EBUSY ? 0 : rc;
}

/* How much the host is over its capacity in the resource that is shortest; ret: which that is. */
static double over(const struct place_host *host, const double load[PLACE_N_RESOURCES],
		   unsigned int *ret)
{
	double most = 0, missing = 0;

	for (unsigned int r = 0; r < PLACE_N_RESOURCES; r++) {
		const double capacity = host->capacity[r];

		if (load[r] / capacity - 1 > most) {
			most = load[r] / capacity - 1;
			missing = load[r] - capacity;
			*ret = r;
		}
	}
	return most > 1e-9 ? missing : 0;
}

/* -1: no VM of the host has something of the resource. */
static int64_t choose(const struct place_vm *vms, uint32_t count, uint32_t host, unsigned int r,
		      double missing)
{
	int64_t best = -1;

	for (uint32_t i = 0; i < count; i++) {
		const double use = vms[i].use[r];
		double than;

		if (vms[i].host != (int32_t)host || use <= 0)
			continue;
		than = best < 0 ? -1 : vms[best].use[r];
		if (best < 0 || (use >= missing ? than < missing || use < than :
						  than < missing && use > than))
			best = i;
	}
	return best;
}

/* VMs leave hosts until these are within their capacity; they are on no host then. */
static void relieve(const struct sim_place_world *w, const struct place_host *hosts,
		    struct place_vm *vms)
{
	for (uint32_t h = 0; h < w->options->num_hosts; h++) {
		double load[PLACE_N_RESOURCES], missing;
		unsigned int r = 0;

		if (!sim_place_is_over(w, h))
			continue;
		memcpy(load, w->load[h], sizeof(load));
		while ((missing = over(&hosts[h], load, &r)) > 0) {
			const int64_t i = choose(vms, w->num_vms, h, r, missing);

			if (i < 0)
				break;
			vms[i].host = -1;
			for (unsigned int k = 0; k < PLACE_N_RESOURCES; k++)
				load[k] -= vms[i].use[k];
		}
	}
}

static void take_over(const struct sim_place_world *w, const struct place *place, int32_t *hosts)
{
	for (uint32_t i = 0; i < w->num_vms; i++) {
		const int32_t host = place_host_of(place, i);

		if (host >= 0)
			hosts[i] = host;
	}
}

/* What is asked of a placer. */
struct question {
	enum sim_place_task task;
	const struct sim_place_world *w;
	const struct place_host *hosts;
	struct place_vm *vms;
	const struct place_traces *traces; /* that it looks ahead by */
};

static int decide(const struct sim_place_decider *d, const struct question *q, int32_t *hosts)
{
	const struct place_config config = config_of(d);
	const uint32_t num_hosts = q->w->options->num_hosts;
	struct place_problem problem;
	struct place *place;
	int rc = place_create(&config, q->traces, q->hosts, num_hosts, q->vms, q->w->num_vms,
			      &place, &problem);

	if (rc < 0)
		return rc;
	if (d->placer->search != SIM_PLACE_ANNEAL)
		/* They have no way to balance: then no VM is on no host. */
		rc = fit(d, place);
	else
		rc = q->task == SIM_PLACE_NEW ? place_each(place) : anneal(d, q->w, place);
	if (rc == 0)
		take_over(q->w, place, hosts);
	place_destroy(place);
	return rc;
}

static int fill_and_decide(const struct sim_place_decider *d, struct question *q, int32_t *hosts)
{
	const struct sim_place_world *w = q->w;
	struct place_traces *known = NULL;
	int rc = 0;

	for (uint32_t i = 0; i < w->num_vms; i++) {
		fill_vm(d, w, &w->vms[i], &q->vms[i]);
		if (q->task == SIM_PLACE_RESOLVE)
			/* Only VMs of a host that is over its capacity. */
			q->vms[i].may_move = sim_place_is_over(w, (uint32_t)w->vms[i].host);
	}
	if (q->task == SIM_PLACE_RESOLVE && d->placer->search != SIM_PLACE_ANNEAL)
		relieve(w, q->hosts, q->vms);
	if (d->placer->is_oracle)
		rc = sim_place_oracle(w, d->earlier->window, q->vms, &known);
	q->traces = known ? known : d->earlier->traces;
	if (rc == 0)
		rc = decide(d, q, hosts);
	place_traces_destroy(known);
	return rc;
}

int sim_place_decision(void *ctx, enum sim_place_task task, const struct sim_place_world *w,
		       int32_t *hosts)
{
	struct place_host *in = hosts_for(w, task);
	struct place_vm *vms = calloc(w->num_vms, sizeof(*vms));
	struct question question = { .task = task, .w = w, .hosts = in, .vms = vms };
	const int rc = in && vms ? fill_and_decide(ctx, &question, hosts) : -ENOMEM;

	free(in);
	free(vms);
	return rc;
}
