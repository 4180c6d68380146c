/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See model.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "placed/decide.h"
#include "placed/model.h"

/* The trace of a VM without class: a day and a half, longer than what is looked at. */
#define FLAT_STEPS	216u
#define FLAT_STEP_S	600u

/* FNV-1a: the same VM has the same number on each host. */
static uint64_t id_of(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
	return hash;
}

int placed_model_class(const struct placed_traces *traces, const char *name)
{
	for (uint32_t i = 0; i < traces->num_classes; i++)
		if (strcmp(traces->classes[i], name) == 0)
			return (int)i;
	return -1;
}

static double most(const struct placed_vm *vm, int r)
{
	const double a = vm->use[r] > vm->peak[r] ? vm->use[r] : vm->peak[r];

	return a > vm->floor[r] ? a : vm->floor[r];
}

static float *flat_demand(const struct placed_vm *vm)
{
	float *demand = calloc((size_t)FLAT_STEPS * PLACE_N_RESOURCES, sizeof(*demand));

	for (uint32_t s = 0; demand && s < FLAT_STEPS; s++)
		for (int r = 0; r < PLACE_N_RESOURCES; r++)
			demand[s * PLACE_N_RESOURCES + r] = (float)most(vm, r);
	return demand;
}

/* Fills class of each VM; the traces of the classes that are read, and one for each other VM. */
static int make_traces(const struct placed_cluster *c, const struct placed_traces *from,
		       struct place_vm *vms, struct place_traces **ret, struct ebb_err *err)
{
	struct place_trace *all = calloc(from->num_traces + (size_t)c->num_vms + 1, sizeof(*all));
	const struct place_grid grid = place_grid_default();
	uint32_t n = from->num_traces, n_classes = from->num_classes;
	struct place_problem problem;
	int rc = all ? 0 : -ENOMEM;

	if (rc == 0 && n > 0)
		memcpy(all, from->traces, n * sizeof(*all));
	for (int i = 0; rc == 0 && i < c->num_vms; i++) {
		const int class = placed_model_class(from, c->vms[i].class);

		vms[i].class = class >= 0 ? (uint32_t)class : n_classes++;
		if (class >= 0)
			continue;
		all[n] = (struct place_trace){
			.class = vms[i].class, .role = vms[i].role, .steps = FLAT_STEPS,
			.step_seconds = FLAT_STEP_S, .demand = flat_demand(&c->vms[i]),
		};
		if (!all[n++].demand)
			rc = -ENOMEM;
	}
	if (rc == 0) {
		rc = place_traces_create(&grid, n_classes, all, n, ret, &problem);
		if (rc < 0)
			ebb_err_set(err, rc, "trace %u, step %u: %s", problem.index, problem.step,
				    rc == -ENOMEM ? "out of memory" :
						    place_fault_name(problem.fault));
	}
	for (uint32_t i = from->num_traces; all && i < n; i++)
		free((void *)all[i].demand);
	free(all);
	return rc;
}

static enum place_host_state state_of(const struct placed_host *h)
{
	if (h->version != 0 && h->version != PLACED_VERSION)
		return PLACE_HOST_OTHER_VERSION;
	return h->has_facts && h->is_ready ? PLACE_HOST_OPEN : PLACE_HOST_SILENT;
}

static void fill_vm(const struct placed_model *m, const struct placed_vm *from,
		    struct place_vm *ret)
{
	const int host = from->started_on >= 0 ? from->started_on : from->host;

	ret->id = id_of(from->name);
	ret->role = from->role;
	ret->age = from->age_s / place_grid_default().step_seconds;
	memcpy(ret->use, from->use, sizeof(ret->use));
	memcpy(ret->peak, from->peak, sizeof(ret->peak));
	memcpy(ret->most, from->most, sizeof(ret->most));
	memcpy(ret->floor, from->floor, sizeof(ret->floor));
	ret->host = host >= 0 ? m->index[host] : -1;
	ret->may_move = from->is_resource && from->is_settled && from->can_migrate;
	ret->is_active = from->is_active;
}

/*
 * VMs that must be together are placed as one set, except VMs that can not come to the host where
 * another VM of the set has to stay. Where only the risks of one host are asked for, a set that is
 * on several hosts now counts as single VMs.
 */
static void fill_sets(const struct placed_cluster *c, bool is_plan, struct place_vm *vms)
{
	for (int first = 0; first < c->num_vms; first++) {
		int32_t pinned = -1;
		bool is_one = true;

		for (int i = first; i >= 0; i = c->vms[i].next)
			is_one = is_one && vms[i].host == vms[first].host;
		if (c->vms[first].set != first || c->vms[first].next < 0 || (!is_one && !is_plan))
			continue;
		for (int i = first; i >= 0; i = c->vms[i].next) {
			const bool stays = !vms[i].may_move && vms[i].host >= 0;

			if (stays && pinned < 0)
				pinned = vms[i].host;
			if (!stays || vms[i].host == pinned)
				vms[i].affinity = (uint32_t)first + 1;
		}
	}
}

static int add_rules(const struct placed_cluster *c, const struct placed_model *m)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < c->num_rules; i++) {
		const struct placed_rule *rule = &c->rules[i];

		if (rule->type == PLACED_APART)
			rc = place_part(m->place, (uint32_t)rule->vm, (uint32_t)rule->other,
					rule->scope);
		else if (rule->type == PLACED_BAN && m->index[rule->other] >= 0)
			rc = place_ban(m->place, (uint32_t)rule->vm,
				       (uint32_t)m->index[rule->other]);
	}
	return rc;
}

static int make_place(const struct placed_cluster *c, const struct place_config *config,
		      struct place_vm *vms, int n_hosts, struct placed_model *m,
		      struct ebb_err *err)
{
	struct place_host hosts[PLACED_MAX_HOSTS] = { 0 };
	struct place_problem problem = { 0 };
	int rc;

	for (int i = 0; i < n_hosts; i++) {
		const struct placed_host *from = &c->hosts[m->hosts[i]];

		hosts[i].state = state_of(from);
		hosts[i].fault_domain = from->domains[PLACED_FAULT];
		hosts[i].upgrade_domain = from->domains[PLACED_UPGRADE];
		for (int r = 0; r < PLACE_N_RESOURCES; r++)
			hosts[i].capacity[r] = from->capacity[r] > 0 ? from->capacity[r] :
								       PLACE_AMOUNT_MAX;
	}
	rc = place_create(config, m->traces, hosts, (uint32_t)n_hosts, vms, (uint32_t)c->num_vms,
			  &m->place, &problem);
	if (rc == 0)
		rc = add_rules(c, m);
	if (rc < 0)
		ebb_err_set(err, rc, "host or VM %u: %s", problem.index, rc == -ENOMEM ?
			    "out of memory" : place_fault_name(problem.fault));
	return rc;
}

int placed_model_create(const struct placed_cluster *c, const struct placed_traces *traces,
			const struct place_config *config, int only, int lost,
			struct placed_model *ret, struct ebb_err *err)
{
	struct place_vm *vms = calloc((size_t)c->num_vms + 1, sizeof(*vms));
	struct placed_model m = { 0 };
	int n_hosts = 0, rc;

	if (!vms)
		return ebb_err_set(err, -ENOMEM, "out of memory");
	for (int h = 0; h < c->num_hosts; h++) {
		m.index[h] = -1;
		if (h == lost || (only == PLACED_ALL_HOSTS ? !c->hosts[h].is_online : h != only))
			continue;
		m.hosts[n_hosts] = h;
		m.index[h] = n_hosts++;
	}
	for (int i = 0; i < c->num_vms; i++)
		fill_vm(&m, &c->vms[i], &vms[i]);
	fill_sets(c, only == PLACED_ALL_HOSTS, vms);
	rc = make_traces(c, traces, vms, &m.traces, err);
	if (rc == 0)
		rc = make_place(c, config, vms, n_hosts, &m, err);
	free(vms);
	if (rc < 0) {
		placed_model_finish(&m);
		return rc;
	}
	*ret = m;
	return 0;
}

void placed_model_finish(struct placed_model *m)
{
	if (m->place)
		place_destroy(m->place);
	if (m->traces)
		place_traces_destroy(m->traces);
	*m = (struct placed_model){ 0 };
}

/* The VMs of one home, -1: of those that run nowhere; `others` says which stayed on the host. */
static int risks_of_home(const struct placed_cluster *c, const struct placed_model *m, int host,
			 int home, bool *others, double *ret)
{
	char why[PLACED_WHY_SIZE];
	int rc = 0;

	for (int i = 0; rc == 0 && i < c->num_vms; i++) {
		const struct placed_vm *vm = &c->vms[i];

		others[i] = false;
		if ((vm->started_on >= 0 ? vm->started_on : vm->host) != home)
			continue;
		rc = place_put(m->place, (uint32_t)i, 0);
		ret[i] = place_host_risk(m->place, 0);
		others[i] = vm->is_resource &&
			    placed_best(c, vm, home, why, sizeof(why)) == host;
		if (rc == 0 && !others[i])
			rc = place_put(m->place, (uint32_t)i, -1);
	}
	for (int i = 0; rc == 0 && i < c->num_vms; i++)
		if (others[i])
			rc = place_put(m->place, (uint32_t)i, -1);
	return rc;
}

int placed_model_risks(const struct placed_cluster *c, const struct placed_traces *traces,
		       const struct place_config *config, int host, double *ret,
		       struct ebb_err *err)
{
	bool *others = calloc((size_t)c->num_vms + 1, sizeof(*others));
	struct placed_model m = { 0 };
	int rc = others ? placed_model_create(c, traces, config, host, -1, &m, err) : -ENOMEM;

	for (int i = 0; rc == 0 && i < c->num_vms; i++)
		ret[i] = place_host_risk(m.place, 0);
	for (int home = -1; rc == 0 && home < c->num_hosts; home++)
		if (home != host)
			rc = risks_of_home(c, &m, host, home, others, ret);
	placed_model_finish(&m);
	free(others);
	return rc;
}
