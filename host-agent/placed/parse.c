/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns the output of Pacemaker's tools into the JSON of cluster.h. */
#include <errno.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "placed/pacemaker.h"

static xmlDoc *parse(const char *text, const char *what, struct ebb_err *err)
{
	xmlDoc *doc = xmlReadMemory(text, (int)strlen(text), NULL, NULL,
				    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
				    XML_PARSE_HUGE);

	if (!doc)
		ebb_err_set(err, -EINVAL, "the output of %s is no XML", what);
	return doc;
}

static bool is_named(const xmlNode *n, const char *name)
{
	return n->type == XML_ELEMENT_NODE && strcmp((const char *)n->name, name) == 0;
}

/* "" if it is not there; valid as long as the document. */
static const char *get(const xmlNode *n, const char *key)
{
	for (const xmlAttr *a = n->properties; a; a = a->next)
		if (strcmp((const char *)a->name, key) == 0)
			return a->children && a->children->content ?
			       (const char *)a->children->content : "";
	return "";
}

static bool is_true(const xmlNode *n, const char *key)
{
	return strcmp(get(n, key), "true") == 0;
}

static bool is_any(const char *text, const char *const *all)
{
	while (*all && strcmp(*all, text) != 0)
		all++;
	return *all;
}

/* Calls fn for each element of that name anywhere below. */
static void for_each(xmlNode *parent, const char *name, void (*fn)(void *ctx, xmlNode *n),
		     void *ctx)
{
	for (xmlNode *n = parent ? parent->children : NULL; n; n = n->next) {
		if (is_named(n, name))
			fn(ctx, n);
		for_each(n, name, fn, ctx);
	}
}

static xmlNode *child(xmlNode *parent, const char *name)
{
	for (xmlNode *n = parent ? parent->children : NULL; n; n = n->next)
		if (is_named(n, name))
			return n;
	return NULL;
}

struct reading {
	json_t *hosts, *resources;	/* of the cluster's JSON */
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
	const bool is_up = is_true(n, "online") && !is_true(n, "unclean") &&
			   !is_true(n, "standby") && !is_true(n, "standby_onfail") &&
			   !is_true(n, "maintenance") && !is_true(n, "pending") &&
			   !is_true(n, "shutdown");

	if (strcmp(get(n, "type"), "member") == 0)
		json_object_set_new(within(r->hosts, get(n, "name")), "online",
				    json_boolean(is_up));
}

static void read_running(void *ctx, xmlNode *n)
{
	static const char *const busy[] = { "Starting", "Stopping", "Migrating", NULL };
	static const char *const quiet[] = { "", "Monitoring", NULL };
	struct reading *r = ctx;
	json_t *o = json_object_get(r->resources, get(n, "id"));
	xmlNode *host = child(n, "node");
	const bool is_one = strcmp(get(n, "nodes_running_on"), "1") == 0;
	bool is_busy;

	if (!o)
		return;
	is_busy = is_any(get(n, "role"), busy) || !is_any(get(n, "pending"), quiet) ||
		  (host && !is_one);
	json_object_set_new(o, "busy", json_boolean(is_busy));
	json_object_set_new(o, "settled", json_boolean(
		is_one && !is_busy && strcmp(get(n, "role"), "Started") == 0 &&
		!is_true(n, "failed") && !is_true(n, "blocked") && !is_true(n, "orphaned") &&
		is_true(n, "managed")));
	if (host)
		json_object_set_new(o, "host", json_string(get(host, "name")));
}

/* *ret_quorum: without a coordinator nobody knows, as while one is elected: null. */
static int read_mon(struct reading *r, const char *text, json_t **ret_quorum, struct ebb_err *err)
{
	xmlDoc *doc = parse(text, "crm_mon", err);
	xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL, *dc;

	if (!doc)
		return -EINVAL;
	dc = child(child(root, "summary"), "current_dc");
	*ret_quorum = dc && is_true(dc, "present") ? json_boolean(is_true(dc, "with_quorum")) :
						     json_null();
	for (xmlNode *n = child(root, "nodes") ? child(root, "nodes")->children : NULL; n;
	     n = n->next)
		if (is_named(n, "node"))
			read_node(r, n);
	for_each(child(root, "resources"), "resource", read_running, r);
	xmlFreeDoc(doc);
	return 0;
}

/* ---- the CIB ---------------------------------------------------------------- */

static void read_utilization(json_t *o, xmlNode *owner)
{
	for (xmlNode *set = owner->children; set; set = set->next)
		for (xmlNode *n = is_named(set, "utilization") ? set->children : NULL; n;
		     n = n->next)
			if (is_named(n, "nvpair"))
				json_object_set_new(within(o, "utilization"), get(n, "name"),
						    json_integer(atoll(get(n, "value"))));
}

static void read_primitive(void *ctx, xmlNode *primitive)
{
	struct reading *r = ctx;
	json_t *o;

	if (strcmp(get(primitive, "type"), "VirtualDomain") != 0)
		return;
	o = within(r->resources, get(primitive, "id"));
	read_utilization(o, primitive);
	for (xmlNode *set = primitive->children; set; set = set->next)
		for (xmlNode *n = is_named(set, "meta_attributes") ? set->children : NULL; n;
		     n = n->next) {
			const char *name = is_named(n, "nvpair") ? get(n, "name") : "";

			if (strcmp(name, "resource-stickiness") == 0)
				json_object_set_new(o, "stickiness",
						    json_integer(atoll(get(n, "value"))));
			else if (strcmp(name, "allow-migrate") == 0)
				json_object_set_new(o, "migrates",
						    json_boolean(is_true(n, "value")));
			else if (strcmp(name, "ebb-class") == 0)
				json_object_set_new(o, "class", json_string(get(n, "value")));
		}
}

static void read_location(void *ctx, xmlNode *location)
{
	struct reading *r = ctx;
	json_t *o = json_object_get(r->resources, get(location, "rsc"));
	char wanted[PLACED_NAME_SIZE + 32];

	snprintf(wanted, sizeof(wanted), PLACED_SCORE "%.63s", get(location, "rsc"));
	for (xmlNode *n = o ? location->children : NULL; n; n = n->next)
		if (is_named(n, "rule") && strcmp(get(n, "score-attribute"), wanted) == 0)
			json_object_set_new(o, "rule", json_true());
}

static void read_cib_node(void *ctx, xmlNode *n)
{
	struct reading *r = ctx;

	/* Elements of this name are in other parts of the CIB, too. */
	if (json_object_get(r->hosts, get(n, "uname")))
		read_utilization(json_object_get(r->hosts, get(n, "uname")), n);
}

struct scores {
	json_t *host;
};

static void read_score(void *ctx, xmlNode *n)
{
	const struct scores *s = ctx;
	const char *name = get(n, "name");

	if (strncmp(name, PLACED_SCORE, strlen(PLACED_SCORE)) == 0)
		json_object_set_new(within(s->host, "scores"), name + strlen(PLACED_SCORE),
				    json_string(get(n, "value")));
}

static void read_state(void *ctx, xmlNode *n)
{
	struct reading *r = ctx;
	struct scores s = { .host = json_object_get(r->hosts, get(n, "uname")) };

	if (s.host)
		for_each(child(n, "transient_attributes"), "nvpair", read_score, &s);
}

static void read_option(void *ctx, xmlNode *n)
{
	if (strcmp(get(n, "name"), "placement-strategy") == 0)
		*(bool *)ctx = strcmp(get(n, "value"), "default") != 0;
}

static void read_cib(struct reading *r, xmlNode *root)
{
	xmlNode *configuration = child(root, "configuration");
	bool counts = false;

	for_each(child(configuration, "crm_config"), "nvpair", read_option, &counts);
	if (!counts)
		json_array_append_new(r->complaints, json_string(
			"the cluster's property placement-strategy is not set to utilization: "
			"Pacemaker does not look at what must not be oversold"));
	for_each(child(configuration, "resources"), "primitive", read_primitive, r);
	for_each(child(configuration, "constraints"), "rsc_location", read_location, r);
}

/* ---- facts ------------------------------------------------------------------ */

static void read_fact(void *ctx, xmlNode *n)
{
	struct reading *r = ctx;
	json_t *host = json_object_get(r->hosts, get(n, "host")), *facts;
	json_error_t e;

	if (!host || strcmp(get(n, "name"), PLACED_FACTS) != 0 || !*get(n, "value"))
		return;
	facts = json_loads(get(n, "value"), 0, &e);
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
	for_each((xmlNode *)doc, "attribute", read_fact, r);
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

		for_each(child(child(root, "configuration"), "nodes"), "node", read_cib_node, &r);
		for_each(child(root, "status"), "node_state", read_state, &r);
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
