// SPDX-License-Identifier: GPL-2.0-or-later
/* The constraints that keep a VM off a host. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "place/internal.h"

/* Sums of fractions may come out a little above a capacity that they fill exactly. */
#define SLACK	1e-9

#define BIT(constraint)	(1u << (constraint))

static bool is_over(double amount, double capacity)
{
	return amount > capacity * (1 + SLACK);
}

static uint32_t check_amounts(const struct item *item, const struct host *host, bool is_there,
			      const struct item *without, enum place_resource *ret_resource)
{
	double scarcest = -1;
	uint32_t found = 0;

	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		double capacity = host->in.capacity[r];
		double load = host->load[r] + (is_there ? 0 : item->load[r]) -
			      (without ? without->load[r] : 0);
		double needed = host->needed[r] + (is_there ? 0 : item->needed[r]) -
				(without ? without->needed[r] : 0);
		double floor = host->floor[r] + (is_there ? 0 : item->floor[r]) -
			       (without ? without->floor[r] : 0);

		if (is_over(needed, capacity))
			found |= BIT(PLACE_CAPACITY);
		else if (is_over(load, capacity))
			found |= BIT(PLACE_RESERVE);
		if (is_over(floor, capacity))
			found |= BIT(PLACE_FLOOR);
		if (load / capacity > scarcest) {
			scarcest = load / capacity;
			if (ret_resource)
				*ret_resource = r;
		}
	}
	return found;
}

static bool is_same_domain(int32_t a, int32_t b)
{
	return a >= 0 && a == b;
}

/* A VM would be on `to` that must not be within `scopes` of one that is `there`. */
static uint32_t check_scopes(const struct place *p, uint32_t there, uint32_t to, uint32_t scopes)
{
	const struct place_host *a = &p->hosts[there].in, *b = &p->hosts[to].in;
	uint32_t found = 0;

	if (there == to && scopes & PLACE_WITHIN_HOST)
		found |= BIT(PLACE_ANTI_AFFINITY);
	if (scopes & PLACE_WITHIN_FAULT_DOMAIN &&
	    (is_same_domain(a->fault_domain, b->fault_domain) ||
	     (there == to && !found)))
		found |= BIT(PLACE_FAULT_DOMAIN);
	if (scopes & PLACE_WITHIN_UPGRADE_DOMAIN &&
	    (is_same_domain(a->upgrade_domain, b->upgrade_domain) ||
	     (there == to && !found)))
		found |= BIT(PLACE_UPGRADE_DOMAIN);
	return found;
}

/* The rules of place_part() and place_ban(). */
static uint32_t check_rules(const struct place *p, const struct item *item, uint32_t vm,
			    uint32_t to, const struct item *without)
{
	const struct rule *rule;
	uint32_t found = 0, i;

	for (i = p->vms[vm].first_banned; i != PLACE_NONE; i = p->rules[i].next)
		if (p->rules[i].other == to)
			found |= BIT(PLACE_BANNED);
	for (i = p->vms[vm].first_parted; i != PLACE_NONE; i = rule->next) {
		const struct item *its;

		rule = &p->rules[i];
		its = &p->items[p->vms[rule->other].item];
		if (its->host >= 0 && its != without && its != item)
			found |= check_scopes(p, (uint32_t)its->host, to, rule->scopes);
	}
	return found;
}

/* Where the others of the anti-affinity sets of the members are. */
static uint32_t check_sets(const struct place *p, const struct item *item, uint32_t to,
			   const struct item *without)
{
	uint32_t found = 0, vm, other;

	for (vm = item->first; vm != PLACE_NONE; vm = p->vms[vm].next_member) {
		for (other = p->vms[vm].next_anti; other != vm; other = p->vms[other].next_anti) {
			const struct item *its = &p->items[p->vms[other].item];

			if (its->host >= 0 && its != without)
				found |= check_scopes(p, (uint32_t)its->host, to, PLACE_ALL_SCOPES);
		}
		found |= check_rules(p, item, vm, to, without);
	}
	return found;
}

uint32_t place_check(const struct place *p, const struct item *item, uint32_t to,
		     const struct item *without, enum place_resource *ret_resource)
{
	const struct host *host = &p->hosts[to];
	bool is_there = item->host == (int32_t)to;
	uint32_t found = check_amounts(item, host, is_there, without, ret_resource);

	/* VMs that were on a closed host may stay there, and so may come back. */
	if (host->in.state != PLACE_HOST_OPEN)
		for (uint32_t vm = item->first; vm != PLACE_NONE; vm = p->vms[vm].next_member)
			if (p->vms[vm].in.host != (int32_t)to)
				found |= BIT(PLACE_HOST_CLOSED);
	if (!is_there &&
	    host->n_vms + item->n - (without ? without->n : 0) > PLACE_VMS_PER_HOST_MAX)
		found |= BIT(PLACE_HOST_FULL);
	if (item->pinned >= 0 && item->pinned != (int32_t)to)
		found |= BIT(PLACE_PINNED);
	return found | check_sets(p, item, to, without);
}

static int add_rule(struct place *p, uint32_t other, uint32_t scopes, uint32_t *first)
{
	if (p->n_rules == p->max_rules) {
		const uint32_t max = 2 * p->max_rules + 16;
		struct rule *rules = realloc(p->rules, max * sizeof(*rules));

		if (!rules)
			return -ENOMEM;
		p->rules = rules;
		p->max_rules = max;
	}
	p->rules[p->n_rules] = (struct rule){ .other = other, .scopes = scopes, .next = *first };
	*first = p->n_rules++;
	return 0;
}

int place_part(struct place *p, uint32_t a, uint32_t b, uint32_t scopes)
{
	int rc;

	if (a >= p->n_vms || b >= p->n_vms || !scopes || scopes & ~PLACE_ALL_SCOPES ||
	    p->vms[a].item == p->vms[b].item)
		return -EINVAL;
	rc = add_rule(p, b, scopes, &p->vms[a].first_parted);
	return rc ? rc : add_rule(p, a, scopes, &p->vms[b].first_parted);
}

int place_ban(struct place *p, uint32_t vm, uint32_t host)
{
	if (vm >= p->n_vms || host >= p->n_hosts)
		return -EINVAL;
	return add_rule(p, host, 0, &p->vms[vm].first_banned);
}

void place_refuse(const struct place *p, uint32_t vm, struct place_refusal *ret)
{
	const struct item *item = &p->items[p->vms[vm].item];
	uint32_t alone[PLACE_N_CONSTRAINTS] = { 0 };
	uint32_t scarce[PLACE_N_CONSTRAINTS][PLACE_N_RESOURCES] = { 0 };
	bool is_any_alone = false;

	*ret = (struct place_refusal){ .vm = vm };
	for (uint32_t h = 0; h < p->n_hosts; h++) {
		enum place_resource resource = PLACE_CPU;
		uint32_t found = place_check(p, item, h, NULL, &resource);

		/* Floors count as load, too: where they do not fit, that is what to say. */
		if (found & BIT(PLACE_FLOOR))
			found &= ~BIT(PLACE_CAPACITY);
		if (found & (BIT(PLACE_FLOOR) | BIT(PLACE_CAPACITY)))
			found &= ~BIT(PLACE_RESERVE);
		/* A host shares its domains with itself. */
		if (found & BIT(PLACE_ANTI_AFFINITY))
			found &= ~(BIT(PLACE_FAULT_DOMAIN) | BIT(PLACE_UPGRADE_DOMAIN));
		for (uint32_t c = 0; c < PLACE_N_CONSTRAINTS; c++) {
			if (!(found & BIT(c)))
				continue;
			ret->hosts[c]++;
			scarce[c][resource]++;
			if (found == BIT(c)) {
				alone[c]++;
				is_any_alone = true;
			}
		}
	}
	for (uint32_t c = 1; c < PLACE_N_CONSTRAINTS; c++) {
		const uint32_t *by = is_any_alone ? alone : ret->hosts;

		if (by[c] > by[ret->constraint])
			ret->constraint = c;
	}
	for (uint32_t r = 1; r < PLACE_N_RESOURCES; r++)
		if (scarce[ret->constraint][r] > scarce[ret->constraint][ret->resource])
			ret->resource = r;
}
