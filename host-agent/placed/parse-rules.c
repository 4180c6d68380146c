/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the operator's constraints from the CIB; see rules.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "placed/rules.h"
#include "placed/xml.h"

struct reading {
	const json_t *hosts, *resources;
	json_t *rules, *complaints;
};

static bool is_vm(const struct reading *r, const char *name)
{
	return json_object_get(r->resources, name) != NULL;
}

/* Once, though a constraint may make several rules.  Takes the text. */
static void complain(const struct reading *r, json_t *text)
{
	const size_t n = json_array_size(r->complaints);

	if (n > 0 && json_equal(json_array_get(r->complaints, n - 1), text))
		json_decref(text);
	else
		json_array_append_new(r->complaints, text);
}

static void give_up(const struct reading *r, const xmlNode *constraint, const char *what)
{
	complain(r, json_sprintf(
		"constraint %.64s: %s is not understood: scores and plans do not know of it",
		pxml_get(constraint, "id"), what));
}

/* 1: INFINITY, -1: -INFINITY, 0: something between, which leaves Pacemaker a choice. */
static int must(const char *score)
{
	if (strcasecmp(score, "INFINITY") == 0 || strcasecmp(score, "+INFINITY") == 0)
		return 1;
	if (strcasecmp(score, "-INFINITY") == 0)
		return -1;
	if (atoll(score) >= -PLACED_SCORE_NEVER)
		return 1;
	return atoll(score) <= PLACED_SCORE_NEVER ? -1 : 0;
}

static bool is_running(const char *role)
{
	return !*role || strcasecmp(role, "Started") == 0;
}

/* ---- colocation ------------------------------------------------------------- */

/* The VMs of a set, in its order. */
static json_t *vms_of(const struct reading *r, const xmlNode *set)
{
	json_t *vms = json_array();

	for (xmlNode *n = set->children; n; n = n->next)
		if (pxml_is(n, "resource_ref") && is_vm(r, pxml_get(n, "id")))
			json_array_append_new(vms, json_string(pxml_get(n, "id")));
	return vms;
}

static void add_colocation(struct reading *r, const xmlNode *n, const char *score, json_t *vms,
			   const char *why_not)
{
	const char *within = pxml_get(n, "node-attribute");
	const bool is_by_host = !*within || strcmp(within, "#uname") == 0;
	const int direction = must(score);
	json_t *rule;

	if (json_array_size(vms) < 2 || direction == 0) {
		json_decref(vms);
		return;
	}
	if (!is_by_host && (direction > 0 || (strcmp(within, PLACED_FAULT_DOMAIN) != 0 &&
					      strcmp(within, PLACED_UPGRADE_DOMAIN) != 0)))
		why_not = "its node-attribute";
	if (why_not) {
		give_up(r, n, why_not);
		json_decref(vms);
		return;
	}
	rule = json_pack("{s:s, s:s, s:o}", "id", pxml_get(n, "id"), "type",
			 direction > 0 ? "together" : "apart", "vms", vms);
	if (!is_by_host)
		json_object_set_new(rule, "within", json_string(within));
	if (direction < 0 && strcmp(pxml_get(n, "influence"), "false") == 0)
		json_object_set_new(rule, "influence", json_false());
	else if (direction < 0)
		complain(r, json_sprintf(
			"constraint %.64s: without influence=\"false\" Pacemaker counts what the "
			"last of its VMs prefer against moves of the first ones",
			pxml_get(n, "id")));
	json_array_append_new(r->rules, rule);
}

static bool is_sequential(const xmlNode *set)
{
	return strcmp(pxml_get(set, "sequential"), "false") != 0;
}

/*
 * Pacemaker places the VMs of a set with regard to those of the next set: of a sequential set the
 * VM that is next to the other set, of another one each VM.
 */
static json_t *vms_next_to(const struct reading *r, const xmlNode *n, const xmlNode *set,
			   bool is_first)
{
	json_t *vms = vms_of(r, set);
	const xmlNode *end = NULL;

	if (!is_sequential(set))
		return vms;
	for (xmlNode *ref = set->children; ref; ref = ref->next)
		if (pxml_is(ref, "resource_ref") && !(is_first && end))
			end = ref;
	json_array_clear(vms);
	if (is_vm(r, pxml_get(end, "id")))
		json_array_append_new(vms, json_string(pxml_get(end, "id")));
	else
		give_up(r, n, "that a set begins or ends with a resource that is no VM");
	return vms;
}

static bool has_vm(const struct reading *r, const xmlNode *set)
{
	json_t *vms = vms_of(r, set);
	const bool has = json_array_size(vms) > 0;

	json_decref(vms);
	return has;
}

static void read_neighbours(struct reading *r, const xmlNode *n, const xmlNode *first,
			    const xmlNode *second, const char *why_not)
{
	json_t *dependents, *primaries, *vm, *with;
	size_t i, k;

	/* Pacemaker alone sees to preferences, and to what is not between two VMs. */
	if (must(pxml_get(n, "score")) == 0 || !has_vm(r, first) || !has_vm(r, second))
		return;
	dependents = vms_next_to(r, n, first, true);
	primaries = vms_next_to(r, n, second, false);
	json_array_foreach(dependents, i, vm)
		json_array_foreach(primaries, k, with)
			add_colocation(r, n, pxml_get(n, "score"),
				       json_pack("[O, O]", with, vm), why_not);
	json_decref(dependents);
	json_decref(primaries);
}

static void read_sets(struct reading *r, const xmlNode *n)
{
	const char *why_not = NULL;
	const xmlNode *last = NULL;

	for (xmlNode *set = n->children; set; set = set->next)
		if (pxml_is(set, "resource_set") && !is_running(pxml_get(set, "role")))
			why_not = "a role in it";
	for (xmlNode *set = n->children; set; set = set->next) {
		const char *score = pxml_get(set, "score");

		if (!pxml_is(set, "resource_set"))
			continue;
		/* The members of one that is not sequential may be anywhere. */
		if (is_sequential(set))
			add_colocation(r, n, *score ? score : pxml_get(n, "score"), vms_of(r, set),
				       why_not);
		if (last)
			read_neighbours(r, n, last, set, why_not);
		last = set;
	}
}

static void read_pair(struct reading *r, const xmlNode *n)
{
	const bool has_role = !is_running(pxml_get(n, "rsc-role")) ||
			      !is_running(pxml_get(n, "with-rsc-role"));
	json_t *vms = json_array();

	if (is_vm(r, pxml_get(n, "rsc")) && is_vm(r, pxml_get(n, "with-rsc"))) {
		json_array_append_new(vms, json_string(pxml_get(n, "with-rsc")));
		json_array_append_new(vms, json_string(pxml_get(n, "rsc")));
	}
	add_colocation(r, n, pxml_get(n, "score"), vms, has_role ? "a role in it" : NULL);
}

static void read_colocation(void *ctx, xmlNode *n)
{
	if (pxml_child(n, "resource_set"))
		read_sets(ctx, n);
	else
		read_pair(ctx, n);
}

/* ---- location ----------------------------------------------------------------- */

/* Whether an expression holds on a host; *ok = false: it is not understood. */
static bool holds(const xmlNode *n, const char *host, const json_t *attributes, bool *ok)
{
	const char *attribute = pxml_get(n, "attribute"), *operation = pxml_get(n, "operation");
	const char *value = strcmp(attribute, "#uname") == 0 ? host :
		json_string_value(json_object_get(attributes, attribute));
	const bool is_same = value && strcasecmp(value, pxml_get(n, "value")) == 0;

	if (!pxml_is(n, "expression") || (*attribute == '#' && strcmp(attribute, "#uname") != 0) ||
	    *pxml_get(n, "value-source"))
		*ok = false;
	else if (strcmp(operation, "defined") == 0)
		return value;
	else if (strcmp(operation, "not_defined") == 0)
		return !value;
	else if (strcmp(operation, "eq") == 0)
		return is_same;
	else if (strcmp(operation, "ne") == 0)
		return !is_same;
	else
		*ok = false;
	return false;
}

static bool rule_holds(const xmlNode *rule, const char *host, const json_t *attributes, bool *ok)
{
	const bool is_or = strcmp(pxml_get(rule, "boolean-op"), "or") == 0;
	bool all = true, any = false;

	for (xmlNode *n = rule->children; n; n = n->next) {
		bool is;

		if (n->type != XML_ELEMENT_NODE)
			continue;
		is = pxml_is(n, "rule") ? rule_holds(n, host, attributes, ok) :
					  holds(n, host, attributes, ok);
		all = all && is;
		any = any || is;
	}
	return is_or ? any : all;
}

/* Whether it is about scores: which hosts have one is for the placers to say. */
static bool is_about_scores(const xmlNode *rule)
{
	for (xmlNode *n = rule->children; n; n = n->next)
		if (n->type == XML_ELEMENT_NODE &&
		    (strncmp(pxml_get(n, "attribute"), PLACED_SCORE, strlen(PLACED_SCORE)) == 0 ||
		     is_about_scores(n)))
			return true;
	return false;
}

static void ban(struct reading *r, const xmlNode *n, json_t *vms, json_t *hosts)
{
	if (json_array_size(hosts) > 0)
		json_array_append_new(r->rules, json_pack(
			"{s:s, s:s, s:O, s:O}", "id", pxml_get(n, "id"), "type", "ban", "vms", vms,
			"hosts", hosts));
	json_decref(hosts);
}

static void ban_by_rule(struct reading *r, const xmlNode *n, const xmlNode *rule, json_t *vms)
{
	json_t *hosts = json_array();
	const char *name;
	json_t *attributes;
	bool ok = true;

	json_object_foreach((json_t *)r->hosts, name, attributes)
		if (rule_holds(rule, name, attributes, &ok))
			json_array_append_new(hosts, json_string(name));
	if (!ok || !is_running(pxml_get(rule, "role"))) {
		give_up(r, n, "its rule");
		json_array_clear(hosts);
	}
	ban(r, n, vms, hosts);
}

static void read_location(void *ctx, xmlNode *n)
{
	struct reading *r = ctx;
	const bool is_ban = must(pxml_get(n, "score")) < 0;
	json_t *vms = json_array();

	if (is_vm(r, pxml_get(n, "rsc")))
		json_array_append_new(vms, json_string(pxml_get(n, "rsc")));
	for (xmlNode *set = n->children; set; set = set->next) {
		json_t *more = pxml_is(set, "resource_set") ? vms_of(r, set) : NULL;

		if (more)
			json_array_extend(vms, more);
		json_decref(more);
	}
	if (*pxml_get(n, "rsc-pattern") && (is_ban || pxml_child(n, "rule")))
		give_up(r, n, "its rsc-pattern");
	if (json_array_size(vms) > 0 && is_ban && *pxml_get(n, "node")) {
		if (is_running(pxml_get(n, "role")))
			ban(r, n, vms, json_pack("[s]", pxml_get(n, "node")));
		else
			give_up(r, n, "its role");
	}
	/* A rule that takes a score from an attribute, as ebb-placed adds them, bans nothing. */
	for (xmlNode *rule = n->children; json_array_size(vms) > 0 && rule; rule = rule->next)
		if (pxml_is(rule, "rule") && must(pxml_get(rule, "score")) < 0 &&
		    !is_about_scores(rule))
			ban_by_rule(r, n, rule, vms);
	json_decref(vms);
}

json_t *placed_rules_parse(xmlNode *constraints, const json_t *hosts, const json_t *resources,
			   json_t *complaints)
{
	struct reading r = { .hosts = hosts, .resources = resources, .rules = json_array(),
			     .complaints = complaints };

	pxml_each(constraints, "rsc_colocation", read_colocation, &r);
	pxml_each(constraints, "rsc_location", read_location, &r);
	return r.rules;
}
