// SPDX-License-Identifier: GPL-2.0-or-later
/* A cluster: its hosts and VMs, and who is where in the plan. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "place/internal.h"

struct place_config place_config_default(void)
{
	return (struct place_config){
		.samples = 100,
		.look_ahead = true,
		.move_costs = true,
		.reserve_new = true,
		.weight = { 1, 1, 1 },
		.future = 1,
		.cost = {
			/*
			 * Until place_calibrate() has measured: an idle VM of 16 GiB disk and 1 GiB
			 * memory is the dearest LOW one, being active is as much as both together.
			 */
			.a = 1, .b = 1, .c = 24,
			.limit = { 24.5, 36 },
			.weight = { 1, 2, 4 },
		},
	};
}

/* ---- who is where ---- */

static void list_host(struct place *p, struct host *host, uint32_t i)
{
	struct item *item = &p->items[i];

	item->pos = host->n_items;
	host->items[host->n_items++] = i;
}

static void unlist_host(struct place *p, struct host *host, uint32_t i)
{
	uint32_t last = host->items[--host->n_items];

	host->items[p->items[i].pos] = last;
	p->items[last].pos = p->items[i].pos;
}

static void list_moved(struct place *p, uint32_t i)
{
	struct item *item = &p->items[i];
	bool is_moved = false;

	for (uint32_t vm = item->first; vm != PLACE_NONE; vm = p->vms[vm].next_member)
		is_moved = is_moved ||
			   (p->vms[vm].in.host >= 0 && p->vms[vm].in.host != item->host);
	if (is_moved && item->moved_pos == PLACE_NONE) {
		item->moved_pos = p->n_moved;
		p->moved[p->n_moved++] = i;
	} else if (!is_moved && item->moved_pos != PLACE_NONE) {
		uint32_t last = p->moved[--p->n_moved];

		p->moved[item->moved_pos] = last;
		p->items[last].moved_pos = item->moved_pos;
		item->moved_pos = PLACE_NONE;
	}
}

static void host_changes(struct place *p, struct host *host, const struct item *item, int sign)
{
	for (uint32_t vm = item->first; vm != PLACE_NONE; vm = p->vms[vm].next_member)
		if (p->n_samples)
			place_demand_add(p, host, vm, sign);
	host->n_vms += (uint32_t)sign * item->n;
	for (uint32_t b = 0; b < PLACE_N_COSTS; b++)
		host->n_bucket[b] += (uint32_t)sign * item->n_bucket[b];
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		host->load[r] += sign * item->load[r];
		host->needed[r] += sign * item->needed[r];
		host->likely[r] += sign * item->likely[r];
		host->floor[r] += sign * item->floor[r];
	}
	place_add_terms(&p->totals, &host->terms, -1);
	host->terms = place_terms(p, host, host->likely, host->needed, host->n_bad,
				  host->n_bucket);
	place_add_terms(&p->totals, &host->terms, 1);
}

void place_move_item(struct place *p, uint32_t i, int32_t to)
{
	struct item *item = &p->items[i];

	if (item->host == to)
		return;
	p->totals.moves += place_moves(p, item, to) - place_moves(p, item, item->host);
	if (item->host >= 0) {
		unlist_host(p, &p->hosts[item->host], i);
		host_changes(p, &p->hosts[item->host], item, -1);
	} else {
		p->totals.n_unplaced -= item->n;
	}
	item->host = to;
	if (to >= 0) {
		list_host(p, &p->hosts[to], i);
		host_changes(p, &p->hosts[to], item, 1);
	} else {
		p->totals.n_unplaced += item->n;
	}
	list_moved(p, i);
}

int place_put(struct place *p, uint32_t vm, int32_t host)
{
	const struct item *item;

	if (vm >= p->n_vms || host < -1 || host >= (int64_t)p->n_hosts)
		return -EINVAL;
	item = &p->items[p->vms[vm].item];
	/* The sums and the list of a host have room for PLACE_VMS_PER_HOST_MAX VMs only. */
	if (host >= 0 && host != item->host &&
	    p->hosts[host].n_vms + item->n > PLACE_VMS_PER_HOST_MAX)
		return -EINVAL;
	place_move_item(p, p->vms[vm].item, host);
	return 0;
}

/* Where an item begins: with the VM that may not leave its host, else the first that has one. */
static int32_t origin(const struct place *p, const struct item *item)
{
	if (item->pinned >= 0)
		return item->pinned;
	for (uint32_t vm = item->first; vm != PLACE_NONE; vm = p->vms[vm].next_member)
		if (p->vms[vm].in.host >= 0)
			return p->vms[vm].in.host;
	return -1;
}

/* ---- making it ---- */

static void fill_vm(struct place *p, struct vm *vm, const struct place_vm *in)
{
	*vm = (struct vm){ .in = *in, .item = PLACE_NONE, .next_member = PLACE_NONE,
			   .first_parted = PLACE_NONE, .first_banned = PLACE_NONE };
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		vm->load[r] = place_load_of(&p->config, in, r);
		vm->needed[r] = place_needed_of(in, r);
	}
	vm->bucket = place_cost_bucket(&p->config.cost,
				       place_move_cost(&p->config.cost, in->use[PLACE_DISK],
						       in->use[PLACE_MEMORY], in->is_active));
	vm->weight = p->config.move_costs ? p->config.cost.weight[vm->bucket] : 1;
}

/* A new item without members; returns its number. */
static uint32_t new_item(struct place *p)
{
	uint32_t i = p->n_items++;

	p->items[i] = (struct item){ .first = PLACE_NONE, .last = PLACE_NONE, .host = -1,
				     .pinned = -1, .moved_pos = PLACE_NONE };
	return i;
}

static int fault(struct place_problem *problem, enum place_fault what, uint32_t index)
{
	problem->fault = what;
	problem->index = index;
	return -EINVAL;
}

/* Whether a VM can be of an item at all, with those in it. */
static int check_join(const struct place *p, const struct item *item, uint32_t vm,
		      struct place_problem *problem)
{
	const struct place_vm *in = &p->vms[vm].in;

	if (item->n == PLACE_VMS_PER_HOST_MAX)
		return fault(problem, PLACE_FAULT_COUNT, vm);
	if (!in->may_move && in->host >= 0 && item->pinned >= 0 && item->pinned != in->host)
		return fault(problem, PLACE_FAULT_PINNED, vm);
	for (uint32_t m = item->first; in->anti_affinity && m != PLACE_NONE;
	     m = p->vms[m].next_member)
		if (p->vms[m].in.anti_affinity == in->anti_affinity)
			return fault(problem, PLACE_FAULT_AFFINITY, vm);
	return 0;
}

static void join(struct place *p, uint32_t i, uint32_t v)
{
	struct item *item = &p->items[i];
	struct vm *vm = &p->vms[v];

	vm->item = i;
	if (item->first == PLACE_NONE)
		item->first = v;
	else
		p->vms[item->last].next_member = v;
	item->last = v;
	item->n++;
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		item->load[r] += vm->load[r];
		item->needed[r] += vm->needed[r];
		item->floor[r] += vm->in.floor[r];
	}
	/* Also one that may not move now: what is expected comes later. */
	item->n_bucket[vm->bucket]++;
	if (!vm->in.may_move && vm->in.host >= 0)
		item->pinned = vm->in.host;
}

/* ---- sets ---- */

struct numbered {
	uint32_t number, vm;
};

static int compare_numbered(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->vm > y->vm) - (x->vm < y->vm);
}

/* Each anti-affinity set becomes a ring. */
static void link_anti(struct place *p, struct numbered *sorted)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < p->n_vms; i++)
		sorted[i] = (struct numbered){ p->vms[i].in.anti_affinity, i };
	qsort(sorted, p->n_vms, sizeof(*sorted), compare_numbered);
	for (uint32_t i = 0; i < p->n_vms; i++) {
		bool is_last = i + 1 == p->n_vms || sorted[i + 1].number != sorted[i].number;

		if (!sorted[i].number)
			p->vms[sorted[i].vm].next_anti = sorted[i].vm;
		else
			p->vms[sorted[i].vm].next_anti = sorted[is_last ? first : i + 1].vm;
		if (is_last)
			first = i + 1;
	}
}

/* Makes the items, in the order of their first VMs. */
static int link_items(struct place *p, struct numbered *sorted, struct place_problem *problem)
{
	uint32_t *leader;
	int rc = 0;

	leader = calloc((size_t)p->n_vms + 1, sizeof(*leader));
	if (!leader)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_vms; i++)
		sorted[i] = (struct numbered){ p->vms[i].in.affinity, i };
	qsort(sorted, p->n_vms, sizeof(*sorted), compare_numbered);
	for (uint32_t i = 0; i < p->n_vms; i++) {
		bool is_follower = i && sorted[i].number &&
				   sorted[i].number == sorted[i - 1].number;

		leader[sorted[i].vm] = is_follower ? leader[sorted[i - 1].vm] : sorted[i].vm;
	}
	for (uint32_t vm = 0; vm < p->n_vms && !rc; vm++) {
		uint32_t i = leader[vm] == vm ? new_item(p) : p->vms[leader[vm]].item;

		rc = check_join(p, &p->items[i], vm, problem);
		if (!rc)
			join(p, i, vm);
	}
	free(leader);
	return rc;
}

/* Room for `max` VMs and items. */
static int reserve(struct place *p, uint32_t max)
{
	struct vm *vms = realloc(p->vms, max * sizeof(*vms));
	struct item *items;
	uint32_t *moved, *starts;

	if (!vms)
		return -ENOMEM;
	p->vms = vms;
	/* Vectors in it: malloc() aligns to 16, as they need. */
	items = realloc(p->items, max * sizeof(*items));
	if (!items)
		return -ENOMEM;
	p->items = items;
	moved = realloc(p->moved, max * sizeof(*moved));
	if (!moved)
		return -ENOMEM;
	p->moved = moved;
	starts = realloc(p->starts, ((size_t)max * p->n_samples + 1) * sizeof(*starts));
	if (!starts)
		return -ENOMEM;
	p->starts = starts;
	p->max = max;
	return 0;
}

static int create_hosts(struct place *p, const struct place_host *hosts, uint32_t n_hosts)
{
	size_t n_sums = (size_t)p->n_samples * p->n_slots;

	p->hosts = calloc(n_hosts, sizeof(*p->hosts));
	p->host_items = calloc((size_t)n_hosts * PLACE_VMS_PER_HOST_MAX, sizeof(*p->host_items));
	p->sums = calloc(n_hosts * n_sums + 1, sizeof(*p->sums));
	p->rows = calloc(3 * (size_t)p->n_slots + 1, sizeof(*p->rows));
	if (!p->hosts || !p->host_items || !p->sums || !p->rows)
		return -ENOMEM;
	p->n_hosts = n_hosts;
	for (uint32_t h = 0; h < n_hosts; h++) {
		struct host *host = &p->hosts[h];

		host->in = hosts[h];
		host->items = &p->host_items[(size_t)h * PLACE_VMS_PER_HOST_MAX];
		host->sums = &p->sums[h * n_sums];
		for (uint32_t r = 0; r < PLACE_LANES; r++) {
			double units = INT32_MAX;

			if (p->n_samples && r < PLACE_N_RESOURCES)
				units = hosts[h].capacity[r] / p->traces->unit[r];
			host->capacity[r] = units < INT32_MAX ? (int32_t)units : INT32_MAX;
		}
	}
	return 0;
}

static int check_input(const struct place_config *config, const struct place_traces *traces,
		       const struct place_host *hosts, uint32_t n_hosts,
		       const struct place_vm *vms, uint32_t n_vms, struct place_problem *problem)
{
	int rc = place_check_config(config, problem);

	if (!rc && config->look_ahead && !traces)
		rc = fault(problem, PLACE_FAULT_SETTING, 0);
	if (!rc && n_hosts == 0)
		rc = fault(problem, PLACE_FAULT_HOST, 0);
	if (!rc && (n_hosts > PLACE_HOSTS_MAX || n_vms > PLACE_VMS_MAX))
		rc = fault(problem, PLACE_FAULT_COUNT, 0);
	for (uint32_t i = 0; !rc && i < n_hosts; i++) {
		problem->index = i;
		rc = place_check_host(&hosts[i], problem);
	}
	for (uint32_t i = 0; !rc && i < n_vms; i++) {
		problem->index = i;
		rc = place_check_vm(config->look_ahead ? traces : NULL, &vms[i], n_hosts, problem);
	}
	return rc;
}

int place_create(const struct place_config *config, const struct place_traces *traces,
		 const struct place_host *hosts, uint32_t n_hosts, const struct place_vm *vms,
		 uint32_t n_vms, struct place **ret, struct place_problem *ret_problem)
{
	struct numbered *sorted = NULL;
	struct place *p;
	int rc;

	*ret_problem = (struct place_problem){ 0 };
	rc = check_input(config, traces, hosts, n_hosts, vms, n_vms, ret_problem);
	if (rc)
		return rc;
	*ret_problem = (struct place_problem){ 0 };
	rc = -ENOMEM;
	p = calloc(1, sizeof(*p));
	if (!p)
		return rc;
	p->config = *config;
	p->traces = traces;
	if (config->look_ahead) {
		p->n_samples = config->samples;
		p->n_slots = traces->grid.slots;
	}
	sorted = calloc((size_t)n_vms + 1, sizeof(*sorted));
	if (!sorted || create_hosts(p, hosts, n_hosts) || reserve(p, n_vms + 1))
		goto out_destroy;
	p->n_vms = n_vms;
	for (uint32_t vm = 0; vm < n_vms; vm++)
		fill_vm(p, &p->vms[vm], &vms[vm]);
	link_anti(p, sorted);
	rc = link_items(p, sorted, ret_problem);
	for (uint32_t vm = 0; vm < n_vms && !rc; vm++)
		rc = place_demand_draw(p, vm);
	if (rc)
		goto out_destroy;
	for (uint32_t i = 0; i < p->n_items; i++) {
		place_demand_peak(p, &p->items[i]);
		p->totals.n_unplaced += p->items[i].n;
		p->totals.moves += place_moves(p, &p->items[i], -1);
	}
	for (uint32_t i = 0; i < p->n_items; i++) {
		int32_t host = origin(p, &p->items[i]);

		/* More than the sums have room for: the host is too full for them all. */
		if (host >= 0 && p->hosts[host].n_vms + p->items[i].n > PLACE_VMS_PER_HOST_MAX) {
			rc = fault(ret_problem, PLACE_FAULT_COUNT, p->items[i].first);
			goto out_destroy;
		}
		list_moved(p, i);
		place_move_item(p, i, host);
	}
	place_totals(p);
	free(sorted);
	*ret = p;
	return 0;

out_destroy:
	free(sorted);
	place_destroy(p);
	return rc;
}

void place_destroy(struct place *p)
{
	if (!p)
		return;
	free(p->hosts);
	free(p->host_items);
	free(p->sums);
	free(p->rows);
	free(p->vms);
	free(p->items);
	free(p->moved);
	free(p->starts);
	free(p->rules);
	free(p);
}

/* ---- one more VM ---- */

static uint32_t find_anti(const struct place *p, uint32_t number)
{
	for (uint32_t vm = 0; number && vm < p->n_vms; vm++)
		if (p->vms[vm].in.anti_affinity == number)
			return vm;
	return PLACE_NONE;
}

static uint32_t find_affine(const struct place *p, uint32_t number)
{
	for (uint32_t vm = 0; number && vm < p->n_vms; vm++)
		if (p->vms[vm].in.affinity == number)
			return p->vms[vm].item;
	return PLACE_NONE;
}

/* May the new VM be where the item is?  It is looked at as an item of its own. */
static int check_beside(struct place *p, uint32_t vm, int32_t host, struct place_refusal *refusal)
{
	struct place_refusal found;
	uint32_t i = new_item(p), mask;
	enum place_resource resource = PLACE_CPU;

	join(p, i, vm);
	/* It can be nowhere else, so reserves give way. */
	mask = place_check(p, &p->items[i], (uint32_t)host, NULL, &resource) &
	       ~(1u << PLACE_RESERVE);
	p->n_items--;
	p->vms[vm].item = PLACE_NONE;
	if (!mask)
		return 0;
	found = (struct place_refusal){ .vm = vm, .resource = resource };
	for (uint32_t c = PLACE_N_CONSTRAINTS; c-- > 1;) {
		if (mask & (1u << c)) {
			found.constraint = c;
			found.hosts[c] = 1;
		}
	}
	*refusal = found;
	return -EBUSY;
}

int place_add(struct place *p, const struct place_vm *in, uint32_t *ret_index,
	      struct place_problem *ret_problem, struct place_refusal *ret_refusal)
{
	uint32_t v = p->n_vms, i, anti = find_anti(p, in->anti_affinity);
	int32_t host;
	int rc;

	*ret_problem = (struct place_problem){ 0 };
	rc = place_check_vm(p->n_samples ? p->traces : NULL, in, p->n_hosts, ret_problem);
	if (rc)
		return rc;
	if (v == PLACE_VMS_MAX)
		return fault(ret_problem, PLACE_FAULT_COUNT, v);
	if (v + 1 >= p->max) {
		rc = reserve(p, p->max * 2 + 2);
		if (rc)
			return rc;
	}
	fill_vm(p, &p->vms[v], in);
	p->vms[v].next_anti = v;
	rc = place_demand_draw(p, v);
	if (rc)
		return rc;
	if (anti != PLACE_NONE) {
		p->vms[v].next_anti = p->vms[anti].next_anti;
		p->vms[anti].next_anti = v;
	}
	i = find_affine(p, in->affinity);
	if (i != PLACE_NONE) {
		rc = check_join(p, &p->items[i], v, ret_problem);
		host = p->items[i].host;
		if (!rc && host >= 0)
			rc = check_beside(p, v, host, ret_refusal);
		if (rc)
			goto out_unlink;
		/* Off its host and back: all sums of the host are then right. */
		place_move_item(p, i, -1);
		p->totals.moves -= place_moves(p, &p->items[i], -1);
		p->totals.n_unplaced -= p->items[i].n;
	} else {
		i = new_item(p);
		host = in->host;
		if (host >= 0 && p->hosts[host].n_vms >= PLACE_VMS_PER_HOST_MAX) {
			p->n_items--;
			rc = fault(ret_problem, PLACE_FAULT_COUNT, v);
			goto out_unlink;
		}
	}
	join(p, i, v);
	p->n_vms++;
	place_demand_peak(p, &p->items[i]);
	p->totals.moves += place_moves(p, &p->items[i], -1);
	p->totals.n_unplaced += p->items[i].n;
	list_moved(p, i);
	place_move_item(p, i, host);
	*ret_index = v;
	return 0;

out_unlink:
	if (anti != PLACE_NONE)
		p->vms[anti].next_anti = p->vms[v].next_anti;
	return rc;
}

/* ---- what others may know ---- */

uint32_t place_n_hosts(const struct place *p)
{
	return p->n_hosts;
}

uint32_t place_n_vms(const struct place *p)
{
	return p->n_vms;
}

int32_t place_host_of(const struct place *p, uint32_t vm)
{
	return vm < p->n_vms ? p->items[p->vms[vm].item].host : -1;
}

int32_t place_origin_of(const struct place *p, uint32_t vm)
{
	return vm < p->n_vms ? p->vms[vm].in.host : -1;
}

double place_host_risk(const struct place *p, uint32_t host)
{
	return host < p->n_hosts ? p->hosts[host].terms.violations : 0;
}

void place_host_load(const struct place *p, uint32_t host, double ret[PLACE_N_RESOURCES])
{
	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++)
		ret[r] = host < p->n_hosts ? p->hosts[host].load[r] : 0;
}
