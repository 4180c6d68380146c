/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See rules.h.  From the cluster's JSON; parse-rules.c makes it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "placed/rules.h"
#include "util/text.h"

struct reading {
	struct placed_cluster *c;
	int max;
	char *complaint;		/* of size bytes */
	size_t size;
};

static int add(struct reading *r, const json_t *from, struct placed_rule rule)
{
	struct placed_cluster *c = r->c;
	const char *id = json_string_value(json_object_get(from, "id"));

	if (c->num_rules == PLACED_MAX_RULES) {
		snprintf(r->complaint, r->size, "constraint %.64s: there are more than %d pairs of "
			 "VMs in all constraints: scores and plans do not know the rest",
			 id ? id : "", PLACED_MAX_RULES);
		return 0;
	}
	if (c->num_rules == r->max) {
		const int max = 2 * r->max + 16;
		struct placed_rule *more = reallocarray(c->rules, (size_t)max, sizeof(*more));

		if (!more)
			return -ENOMEM;
		c->rules = more;
		r->max = max;
	}
	ebb_text_copy(rule.id, sizeof(rule.id), id ? id : "");
	c->rules[c->num_rules++] = rule;
	return 0;
}

static int vm_at(const struct placed_cluster *c, const json_t *names, size_t i)
{
	const char *name = json_string_value(json_array_get(names, i));
	const int vm = name ? placed_vm_find(c, name) : -1;

	return vm >= 0 && c->vms[vm].is_resource ? vm : -1;
}

static void join(struct placed_cluster *c, int a, int b)
{
	const int low = c->vms[a].set < c->vms[b].set ? c->vms[a].set : c->vms[b].set;
	const int high = c->vms[a].set + c->vms[b].set - low;

	for (int i = 0; i < c->num_vms; i++)
		if (c->vms[i].set == high)
			c->vms[i].set = low;
}

static int read_together(struct reading *r, const json_t *from)
{
	const json_t *names = json_object_get(from, "vms");
	int first = -1, rc = 0;

	for (size_t i = 0; rc == 0 && i < json_array_size(names); i++) {
		const int vm = vm_at(r->c, names, i);

		if (vm < 0)
			continue;
		if (first < 0)
			first = vm;
		else if (vm != first)
			rc = add(r, from, (struct placed_rule){ .type = PLACED_TOGETHER, .vm = vm,
								.other = first });
		join(r->c, first, vm);
	}
	return rc;
}

static int read_apart(struct reading *r, const json_t *from)
{
	const json_t *names = json_object_get(from, "vms");
	const char *within = json_string_value(json_object_get(from, "within"));
	struct placed_rule rule = { .type = PLACED_APART, .scope = PLACE_WITHIN_HOST };
	int rc = 0;

	if (within && strcmp(within, PLACED_FAULT_DOMAIN) == 0)
		rule.scope = PLACE_WITHIN_FAULT_DOMAIN;
	else if (within && strcmp(within, PLACED_UPGRADE_DOMAIN) == 0)
		rule.scope = PLACE_WITHIN_UPGRADE_DOMAIN;
	rule.has_influence = !json_is_false(json_object_get(from, "influence"));
	for (size_t i = 0; i < json_array_size(names); i++)
		for (size_t k = 0; rc == 0 && k < i; k++) {
			rule.vm = vm_at(r->c, names, i);
			rule.other = vm_at(r->c, names, k);
			if (rule.vm < 0 || rule.other < 0 || rule.vm == rule.other)
				continue;
			if (r->c->vms[rule.vm].set != r->c->vms[rule.other].set)
				rc = add(r, from, rule);
			else
				snprintf(r->complaint, r->size, "constraint %.64s: VMs %s and %s "
					 "must be together by another one: it is ignored here, and "
					 "Pacemaker will run but one of them",
					 json_string_value(json_object_get(from, "id")),
					 r->c->vms[rule.other].name, r->c->vms[rule.vm].name);
		}
	return rc;
}

static int read_ban(struct reading *r, const json_t *from)
{
	const json_t *names = json_object_get(from, "vms"), *hosts = json_object_get(from, "hosts");
	struct placed_rule rule = { .type = PLACED_BAN };
	const json_t *host;
	int rc = 0;
	size_t k;

	for (size_t i = 0; i < json_array_size(names); i++)
		json_array_foreach(hosts, k, host) {
			const char *name = json_string_value(host);

			rule.vm = vm_at(r->c, names, i);
			rule.other = name ? placed_host_find(r->c, name) : -1;
			if (rc == 0 && rule.vm >= 0 && rule.other >= 0)
				rc = add(r, from, rule);
		}
	return rc;
}

static int compare(const void *a, const void *b)
{
	const struct placed_rule *x = a, *y = b;
	const int names = strcmp(x->id, y->id);

	return names ? names : x->vm != y->vm ? x->vm - y->vm : x->other - y->other;
}

static void link_sets(struct placed_cluster *c)
{
	for (int vm = 0; vm < c->num_vms; vm++)
		c->vms[vm].next = -1;
	/* From the last one on, as each comes to stand behind the first of its set. */
	for (int vm = c->num_vms - 1; vm >= 0; vm--) {
		struct placed_vm *first = &c->vms[c->vms[vm].set];

		if (first == &c->vms[vm])
			continue;
		c->vms[vm].next = first->next;
		first->next = vm;
	}
}

int placed_rules_read(struct placed_cluster *c, const json_t *from, char *ret_complaint,
		      size_t size)
{
	static const struct {
		const char *type;
		int (*read)(struct reading *r, const json_t *from);
	} kinds[] = {
		/* Sets first: which VMs are apart from themselves is known only then. */
		{ "together", read_together }, { "apart", read_apart }, { "ban", read_ban },
	};
	struct reading r = { .c = c, .complaint = ret_complaint, .size = size };
	const json_t *rule;
	int rc = 0;
	size_t i;

	ret_complaint[0] = '\0';
	for (int vm = 0; vm < c->num_vms; vm++)
		c->vms[vm].set = vm;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		json_array_foreach(from, i, rule) {
			const char *type = json_string_value(json_object_get(rule, "type"));

			if (rc == 0 && type && strcmp(type, kinds[k].type) == 0)
				rc = kinds[k].read(&r, rule);
		}
	link_sets(c);
	/* Pacemaker takes them in the order of their names. */
	if (rc == 0 && c->num_rules > 0)
		qsort(c->rules, (size_t)c->num_rules, sizeof(*c->rules), compare);
	return rc;
}
