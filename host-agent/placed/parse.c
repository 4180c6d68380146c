/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns the output of Pacemaker's tools into the JSON of cluster.h. */
#include <errno.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "placed/pacemaker.h"
#include "placed/rules.h"
#include "placed/xml.h"
#include "util/text.h"

static xmlDoc *parse(const char *text, const char *what, struct ebb_err *err)
{
	xmlDoc *doc = xmlReadMemory(text, (int)strlen(text), NULL, NULL,
				    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
				    XML_PARSE_HUGE);

	if (!doc)
		ebb_err_set(err, -EINVAL, "the output of %s is no XML", what);
	return doc;
}

static bool is_any(const char *text, const char *const *all)
{
	while (*all && strcmp(*all, text) != 0)
		all++;
	return *all;
}

struct reading {
	json_t *hosts, *resources;	/* of the cluster's JSON */
	json_t *attributes;		/* by host: its node attributes */
	json_t *complaints;
};

/* An object within another one, made where it is missing. */
static json_t *within(json_t *o, const char *key)
{
	if (!json_object_get(o, key))
		json_object_set_new(o, key, json_object());
	return json_object_get(o, key);
}

/* ---- crm_mon --------------------------------------------------------------- */

static void read_node(struct reading *r, const xmlNode *n)
{
	const bool is_up = pxml_true(n, "online") && !pxml_true(n, "unclean") &&
			   !pxml_true(n, "standby") && !pxml_true(n, "standby_onfail") &&
			   !pxml_true(n, "maintenance") && !pxml_true(n, "pending") &&
			   !pxml_true(n, "shutdown");

	if (strcmp(pxml_get(n, "type"), "member") == 0)
		json_object_set_new(within(r->hosts, pxml_get(n, "name")), "online",
				    json_boolean(is_up));
}

static void read_running(void *ctx, xmlNode *n)
{
	static const char *const busy[] = { "Starting", "Stopping", "Migrating", NULL };
	static const char *const quiet[] = { "", "Monitoring", NULL };
	struct reading *r = ctx;
	json_t *o = json_object_get(r->resources, pxml_get(n, "id"));
	xmlNode *host = pxml_child(n, "node");
	const bool is_one = strcmp(pxml_get(n, "nodes_running_on"), "1") == 0;
	bool is_busy;

	if (!o)
		return;
	is_busy = is_any(pxml_get(n, "role"), busy) || !is_any(pxml_get(n, "pending"), quiet) ||
		  (host && !is_one);
	json_object_set_new(o, "busy", json_boolean(is_busy));
	json_object_set_new(o, "settled", json_boolean(
		is_one && !is_busy && strcmp(pxml_get(n, "role"), "Started") == 0 &&
		!pxml_true(n, "failed") && !pxml_true(n, "blocked") && !pxml_true(n, "orphaned") &&
		pxml_true(n, "managed")));
	if (host)
		json_object_set_new(o, "host", json_string(pxml_get(host, "name")));
}

/* *ret_quorum: without a coordinator nobody knows, as while one is elected: null. */
static int read_mon(struct reading *r, const char *text, json_t **ret_quorum, struct ebb_err *err)
{
	xmlDoc *doc = parse(text, "crm_mon", err);
	xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL, *dc, *nodes;

	if (!doc)
		return -EINVAL;
	dc = pxml_child(pxml_child(root, "summary"), "current_dc");
	*ret_quorum = dc && pxml_true(dc, "present") ? json_boolean(pxml_true(dc, "with_quorum")) :
						     json_null();
	nodes = pxml_child(root, "nodes");
	for (xmlNode *n = nodes ? nodes->children : NULL; n; n = n->next)
		if (pxml_is(n, "node"))
			read_node(r, n);
	pxml_each(pxml_child(root, "resources"), "resource", read_running, r);
	xmlFreeDoc(doc);
	return 0;
}

/* ---- the CIB ---------------------------------------------------------------- */

static void read_utilization(json_t *o, xmlNode *owner)
{
	for (xmlNode *set = owner->children; set; set = set->next)
		for (xmlNode *n = pxml_is(set, "utilization") ? set->children : NULL; n;
		     n = n->next)
			if (pxml_is(n, "nvpair"))
				json_object_set_new(within(o, "utilization"), pxml_get(n, "name"),
						    json_integer(atoll(pxml_get(n, "value"))));
}

static void read_primitive(void *ctx, xmlNode *primitive)
{
	struct reading *r = ctx;
	json_t *o;

	if (strcmp(pxml_get(primitive, "type"), "VirtualDomain") != 0)
		return;
	o = within(r->resources, pxml_get(primitive, "id"));
	read_utilization(o, primitive);
	for (xmlNode *set = primitive->children; set; set = set->next)
		for (xmlNode *n = pxml_is(set, "meta_attributes") ? set->children : NULL; n;
		     n = n->next) {
			const char *name = pxml_is(n, "nvpair") ? pxml_get(n, "name") : "";

			if (strcmp(name, "resource-stickiness") == 0)
				json_object_set_new(o, "stickiness",
						    json_integer(atoll(pxml_get(n, "value"))));
			else if (strcmp(name, "allow-migrate") == 0)
				json_object_set_new(o, "migrates",
						    json_boolean(pxml_true(n, "value")));
			else if (strcmp(name, "ebb-class") == 0)
				json_object_set_new(o, "class", json_string(pxml_get(n, "value")));
		}
}

static void read_location(void *ctx, xmlNode *location)
{
	struct reading *r = ctx;
	json_t *o = json_object_get(r->resources, pxml_get(location, "rsc"));
	char wanted[PLACED_NAME_SIZE + 32];

	snprintf(wanted, sizeof(wanted), PLACED_SCORE "%.63s", pxml_get(location, "rsc"));
	for (xmlNode *n = o ? location->children : NULL; n; n = n->next)
		if (pxml_is(n, "rule") && strcmp(pxml_get(n, "score-attribute"), wanted) == 0)
			json_object_set_new(o, "rule", json_true());
}

/* Attributes of one host: those for ever from <nodes>, then those until it leaves, which win. */
struct attributes {
	json_t *host, *all;
};

static void read_attribute(void *ctx, xmlNode *n)
{
	const struct attributes *a = ctx;
	const char *name = pxml_get(n, "name"), *value = pxml_get(n, "value");

	json_object_set_new(a->all, name, json_string(value));
	for (int i = 0; i < PLACED_N_DOMAINS; i++)
		if (strcmp(name, placed_domains[i]) == 0)
			json_object_set_new(within(a->host, "domains"), name, json_string(value));
}

static void read_score(void *ctx, xmlNode *n)
{
	const struct attributes *a = ctx;
	const char *name = pxml_get(n, "name");

	read_attribute(ctx, n);
	if (strncmp(name, PLACED_SCORE, strlen(PLACED_SCORE)) == 0)
		json_object_set_new(within(a->host, "scores"), name + strlen(PLACED_SCORE),
				    json_string(pxml_get(n, "value")));
}

static void read_cib_node(void *ctx, xmlNode *n)
{
	struct reading *r = ctx;
	struct attributes a = { .host = json_object_get(r->hosts, pxml_get(n, "uname")) };

	/* Elements of this name are in other parts of the CIB, too. */
	if (!a.host)
		return;
	a.all = within(r->attributes, pxml_get(n, "uname"));
	read_utilization(a.host, n);
	pxml_each(pxml_child(n, "instance_attributes"), "nvpair", read_attribute, &a);
}

static void read_state(void *ctx, xmlNode *n)
{
	struct reading *r = ctx;
	struct attributes a = { .host = json_object_get(r->hosts, pxml_get(n, "uname")) };

	if (!a.host)
		return;
	a.all = within(r->attributes, pxml_get(n, "uname"));
	pxml_each(pxml_child(n, "transient_attributes"), "nvpair", read_score, &a);
}

static void read_option(void *ctx, xmlNode *n)
{
	if (strcmp(pxml_get(n, "name"), "placement-strategy") == 0)
		*(bool *)ctx = strcmp(pxml_get(n, "value"), "default") != 0;
}

static void read_cib(struct reading *r, xmlNode *root)
{
	xmlNode *configuration = pxml_child(root, "configuration");
	bool counts = false;

	pxml_each(pxml_child(configuration, "crm_config"), "nvpair", read_option, &counts);
	if (!counts)
		json_array_append_new(r->complaints, json_string(
			"the cluster's property placement-strategy is not set to utilization: "
			"Pacemaker does not look at what must not be oversold"));
	pxml_each(pxml_child(configuration, "resources"), "primitive", read_primitive, r);
	pxml_each(pxml_child(configuration, "constraints"), "rsc_location", read_location, r);
}

/* ---- facts ------------------------------------------------------------------ */

static void read_fact(void *ctx, xmlNode *n)
{
	struct reading *r = ctx;
	json_t *host = json_object_get(r->hosts, pxml_get(n, "host")), *facts;
	json_error_t e;

	if (!host || strcmp(pxml_get(n, "name"), PLACED_FACTS) != 0 || !*pxml_get(n, "value"))
		return;
	facts = json_loads(pxml_get(n, "value"), 0, &e);
	/* cluster.c complains about what is no object. */
	json_object_set_new(host, "facts", facts ? facts : json_string("?"));
}

static void read_facts(struct reading *r, const char *text)
{
	struct ebb_err err = { "" };
	xmlDoc *doc = *text ? parse(text, "attrd_updater", &err) : NULL;

	if (*text && !doc)
		json_array_append_new(r->complaints, json_string(err.text));
	if (!doc)
		return;
	pxml_each((xmlNode *)doc, "attribute", read_fact, r);
	xmlFreeDoc(doc);
}

json_t *placed_pacemaker_parse(const char *mon, const char *cib, const char *facts,
			       json_t *complaints, struct ebb_err *err)
{
	struct reading r = { .complaints = complaints };
	xmlDoc *doc = parse(cib, "cibadmin", err);
	json_t *all;
	json_t *quorum;
	int rc;

	if (!doc)
		return NULL;
	all = json_pack("{s:{}, s:{}}", "hosts", "resources");
	r.hosts = json_object_get(all, "hosts");
	r.resources = json_object_get(all, "resources");
	/* The resources that there are first, then where they run. */
	read_cib(&r, xmlDocGetRootElement(doc));
	rc = read_mon(&r, mon, &quorum, err);
	if (rc == 0) {
		xmlNode *root = xmlDocGetRootElement(doc);

		r.attributes = json_object();
		pxml_each(pxml_child(pxml_child(root, "configuration"), "nodes"), "node",
			  read_cib_node, &r);
		pxml_each(pxml_child(root, "status"), "node_state", read_state, &r);
		json_object_set_new(all, "rules", placed_rules_parse(
			pxml_child(pxml_child(root, "configuration"), "constraints"),
			r.attributes, r.resources, complaints));
		json_decref(r.attributes);
		read_facts(&r, facts);
		json_object_set_new(all, "quorum", quorum);
	}
	xmlFreeDoc(doc);
	if (rc < 0) {
		json_decref(all);
		return NULL;
	}
	return all;
}

struct failure {
	char *text;
	size_t size;
};

static void take_failure(void *ctx, xmlNode *n)
{
	const struct failure *f = ctx;
	xmlChar *text = xmlNodeGetContent(n);

	if (text)
		ebb_text_copy(f->text, f->size, (const char *)text);
	xmlFree(text);
}

void placed_pacemaker_failure(const char *output, char *ret, size_t size)
{
	struct ebb_err err;
	/* The last one is the tool's own, those before are the library's. */
	struct failure f = { .text = ret, .size = size };
	xmlDoc *doc = parse(output, "a tool", &err);

	*ret = '\0';
	if (doc)
		pxml_each(xmlDocGetRootElement(doc), "error", take_failure, &f);
	xmlFreeDoc(doc);
}
