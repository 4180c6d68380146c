/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding hosts and VMs of a cluster by name, and the rules about them; pure. */
#include <string.h>
#include "placed/cluster.h"

const char *const placed_utilization[PLACE_N_RESOURCES] = {
	[PLACE_CPU] = "ebb-cpu", [PLACE_MEMORY] = "ebb-memory", [PLACE_DISK] = NULL,
};

const char *const placed_domains[PLACED_N_DOMAINS] = {
	[PLACED_FAULT] = PLACED_FAULT_DOMAIN, [PLACED_UPGRADE] = PLACED_UPGRADE_DOMAIN,
};

int placed_host_find(const struct placed_cluster *c, const char *name)
{
	for (int i = 0; i < c->num_hosts; i++)
		if (strcmp(c->hosts[i].name, name) == 0)
			return i;
	return -1;
}

int placed_vm_place(const struct placed_cluster *c, const char *name)
{
	int low = 0, high = c->num_vms;

	while (low < high) {
		const int mid = (low + high) / 2;

		if (strcmp(c->vms[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int placed_vm_find(const struct placed_cluster *c, const char *name)
{
	const int i = placed_vm_place(c, name);

	return i < c->num_vms && strcmp(c->vms[i].name, name) == 0 ? i : -1;
}

bool placed_rule_joins(const struct placed_cluster *c, const struct placed_rule *rule, int a, int b)
{
	const enum placed_domain domain = rule->scope == PLACE_WITHIN_FAULT_DOMAIN ? PLACED_FAULT :
										     PLACED_UPGRADE;

	return a == b || (rule->scope != PLACE_WITHIN_HOST &&
			  c->hosts[a].domains[domain] == c->hosts[b].domains[domain]);
}

const struct placed_rule *placed_rule_against(const struct placed_cluster *c,
					      const struct placed_vm *vm, int host,
					      const int *where)
{
	for (int i = 0; i < c->num_rules; i++) {
		const struct placed_rule *rule = &c->rules[i];
		const bool is_one = c->vms[rule->vm].set == vm->set;
		int other, its;

		if (rule->type == PLACED_BAN && is_one && rule->other == host)
			return rule;
		if (rule->type != PLACED_APART || (!is_one && c->vms[rule->other].set != vm->set))
			continue;
		other = is_one ? rule->other : rule->vm;
		its = where ? where[other] : c->vms[other].started_on;
		if (its >= 0 && placed_rule_joins(c, rule, its, host))
			return rule;
	}
	return NULL;
}
