/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Description: the operator's constraints: what is read of them, and what they do to decisions. */
#include <errno.h>
#include <libxml/parser.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "placed/decide.h"
#include "placed/rules.h"

/* Hosts h1 (rack r1), h2 (R1), h3; VMs a, b, c, d, e. */
static json_t *parse(const char *constraints, json_t *complaints)
{
	json_t *hosts = json_pack("{s:{s:s, s:s}, s:{s:s}, s:{s:s}}", "h1", PLACED_FAULT_DOMAIN,
				  "r1", "ssd", "yes", "h2", PLACED_FAULT_DOMAIN, "R1", "h3", "ssd",
				  "no");
	json_t *resources = json_pack("{s:{}, s:{}, s:{}, s:{}, s:{}}", "a", "b", "c", "d", "e");
	json_t *rules;
	xmlDoc *doc = xmlReadMemory(constraints, (int)strlen(constraints), NULL, NULL, 0);

	assert_non_null(doc);
	rules = placed_rules_parse(xmlDocGetRootElement(doc), hosts, resources, complaints);
	xmlFreeDoc(doc);
	json_decref(hosts);
	json_decref(resources);
	return rules;
}

#define PAIR(score, more) "<rsc_colocation id='c' rsc='b' with-rsc='a' score='" score "'" more "/>"
#define SET(score, more) \
	"<rsc_colocation id='c' score='" score "'><resource_set id='s'" more ">" \
	"<resource_ref id='a'/><resource_ref id='ip'/><resource_ref id='b'/>" \
	"<resource_ref id='c'/></resource_set>"
#define NEXT(more, one, two) \
	"<resource_set id='t'" more "><resource_ref id='" one "'/><resource_ref id='" two "'/>" \
	"</resource_set>"
#define RULE(more, inner) \
	"<rsc_location id='c' rsc='a'><rule id='r' score='-INFINITY'" more ">" inner \
	"</rule></rsc_location>"
#define IS(attribute, operation, value) \
	"<expression id='e' attribute='" attribute "' operation='" operation "' value='" value "'/>"
#define QUIET " influence='false'"
#define BAN(hosts) "[{'id':'c','type':'ban','vms':['a'],'hosts':[" hosts "]}]"

static void test_parse(void **state)
{
	static const struct {
		const char *xml, *rules, *complaint;	/* NULL: none */
	} cases[] = {
		{ PAIR("INFINITY", ""), "[{'id':'c','type':'together','vms':['a','b']}]", NULL },
		{ PAIR("-INFINITY", QUIET),
		  "[{'id':'c','type':'apart','vms':['a','b'],'influence':false}]", NULL },
		{ PAIR("-1000000", ""), "[{'id':'c','type':'apart','vms':['a','b']}]",
		  "without influence=\"false\"" },
		{ PAIR("-INFINITY", QUIET " node-attribute='ebb-fault-domain'"),
		  "[{'id':'c','type':'apart','vms':['a','b'],'within':'ebb-fault-domain',"
		  "'influence':false}]", NULL },
		/* Preferences are left to Pacemaker. */
		{ PAIR("500", ""), "[]", NULL }, { PAIR("-999999", ""), "[]", NULL },
		{ PAIR("-INFINITY", " node-attribute='rack'"), "[]", "its node-attribute" },
		{ PAIR("INFINITY", " node-attribute='ebb-fault-domain'"), "[]",
		  "its node-attribute" },
		{ PAIR("INFINITY", " rsc-role='Stopped'"), "[]", "a role" },
		{ "<rsc_colocation id='c' rsc='a' with-rsc='ip' score='INFINITY'/>", "[]", NULL },
		{ SET("INFINITY", "") "</rsc_colocation>",
		  "[{'id':'c','type':'together','vms':['a','b','c']}]", NULL },
		{ SET("INFINITY", " sequential='false'") "</rsc_colocation>", "[]", NULL },
		/* Between two sets stand the first one's first and the second one's last. */
		{ SET("INFINITY", "") NEXT("", "d", "e") "</rsc_colocation>",
		  "[{'id':'c','type':'together','vms':['a','b','c']},"
		  "{'id':'c','type':'together','vms':['d','e']},"
		  "{'id':'c','type':'together','vms':['e','a']}]", NULL },
		{ SET("-INFINITY", " score='0'") NEXT(" sequential='false'", "d", "e")
		  "</rsc_colocation>",
		  "[{'id':'c','type':'apart','vms':['d','a']},"
		  "{'id':'c','type':'apart','vms':['e','a']}]",
		  "without influence=\"false\"" },
		{ SET("INFINITY", " sequential='false'") NEXT(" sequential='false'", "ip", "d")
		  "</rsc_colocation>",
		  "[{'id':'c','type':'together','vms':['d','a']},"
		  "{'id':'c','type':'together','vms':['d','b']},"
		  "{'id':'c','type':'together','vms':['d','c']}]", NULL },
		{ SET("INFINITY", "") NEXT(" score='0'", "d", "ip") "</rsc_colocation>",
		  "[{'id':'c','type':'together','vms':['a','b','c']}]", "a resource that is no" },
		{ SET("INFINITY", "") NEXT("", "ip", "fs") "</rsc_colocation>",
		  "[{'id':'c','type':'together','vms':['a','b','c']}]", NULL },
		{ SET("500", "") NEXT("", "d", "ip") "</rsc_colocation>", "[]", NULL },
		{ "<rsc_colocation id='c' score='INFINITY'>" NEXT("", "ip", "d")
		  NEXT("", "fs", "nfs") "</rsc_colocation>", "[]", NULL },
		{ SET("INFINITY", "") NEXT(" role='Stopped'", "d", "e") "</rsc_colocation>", "[]",
		  "a role" },
		{ "<rsc_location id='c' node='h2' score='-INFINITY'>" NEXT("", "a", "ip")
		  NEXT("", "b", "c") "</rsc_location>",
		  "[{'id':'c','type':'ban','vms':['a','b','c'],'hosts':['h2']}]", NULL },
		{ "<rsc_location id='c' rsc='a' node='h2' score='-INFINITY'/>", BAN("'h2'"), NULL },
		{ "<rsc_location id='c' rsc='a' node='h2' score='INFINITY'/>", "[]", NULL },
		{ "<rsc_location id='c' rsc='ip' node='h2' score='-INFINITY'/>", "[]", NULL },
		{ "<rsc_location id='c' rsc-pattern='.' node='h2' score='-INFINITY'/>", "[]",
		  "its rsc-pattern" },
		{ RULE("", IS("#uname", "eq", "H2")), BAN("'h2'"), NULL },
		{ RULE("", IS("#uname", "ne", "h2")), BAN("'h1','h3'"), NULL },
		{ RULE("", IS("ssd", "ne", "yes")), BAN("'h2','h3'"), NULL },
		{ RULE("", IS("ssd", "not_defined", "")), BAN("'h2'"), NULL },
		{ RULE("", IS("ssd", "defined", "") IS("#uname", "eq", "h1")), BAN("'h1'"), NULL },
		{ RULE(" boolean-op='or'", IS("ssd", "eq", "no") IS("#uname", "eq", "h1")),
		  BAN("'h1','h3'"), NULL },
		{ RULE("", IS("ssd", "eq", "nvme")), "[]", NULL },
		{ RULE("", IS("ssd", "gt", "5")), "[]", "its rule" },
		{ RULE("", "<date_expression id='d' operation='gt' start='2020-01-01'/>"), "[]",
		  "its rule" },
		/* A rule that placers made, or that goes by scores, is nobody's ban. */
		{ "<rsc_location id='ebb-score-a' rsc='a'><rule id='r' "
		  "score-attribute='ebb-score-a'>" IS("ebb-score-a", "defined", "")
		  "</rule></rsc_location>", "[]", NULL },
		{ RULE("", IS("ebb-score-a", "not_defined", "")), "[]", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *complaints = json_array(), *found, *expected;
		char xml[1024], text[512];

		snprintf(xml, sizeof(xml), "<constraints>%s</constraints>", cases[i].xml);
		snprintf(text, sizeof(text), "%s", cases[i].rules);
		for (char *c = text; *c; c++)
			*c = *c == '\'' ? '"' : *c;
		found = parse(xml, complaints);
		expected = json_loads(text, 0, NULL);
		if (!json_equal(found, expected))
			fail_msg("%s: %s", xml, json_dumps(found, 0));
		assert_int_equal(json_array_size(complaints), cases[i].complaint ? 1 : 0);
		if (cases[i].complaint)
			assert_non_null(strstr(json_string_value(json_array_get(complaints, 0)),
					       cases[i].complaint));
		json_decref(found);
		json_decref(expected);
		json_decref(complaints);
	}
}

/* a is on h1, b on h2, c on h3 or with a; each other score is 800. */
static void read_cluster(struct placed_cluster *ret, const char *c_on, const char *rules)
{
	static const char *const names[] = { "a", "b", "c" };
	json_t *all = json_pack("{s:b, s:{}, s:{}, s:o}", "quorum", 1, "hosts", "resources",
				"rules", json_loads(rules, 0, NULL));
	struct ebb_err err = { "" };

	for (int h = 0; h < 4; h++) {
		char name[] = "h1", rack[] = "r0";

		name[1] = (char)('1' + h);
		rack[1] = (char)('0' + h / 2);
		json_object_set_new(json_object_get(all, "hosts"), name, json_pack(
			"{s:b, s:{s:i, s:[iii], s:b}, s:{s:i, s:i, s:i}, s:{s:s}, s:{s:i}}",
			"online", 1, "facts", "v", 1, "cap", 4000, 0, 0, "ready", 1, "scores", "a",
			800 + h, "b", 800 + h, "c", 800 + h, "domains", PLACED_FAULT_DOMAIN, rack,
			"utilization", "ebb-cpu", 4000));
	}
	for (int i = 0; i < 3; i++) {
		const char *on = i == 2 ? c_on : i == 1 ? "h2" : "h1";

		json_object_set_new(json_object_get(all, "resources"), names[i], json_pack(
			"{s:s, s:b, s:b, s:b, s:i, s:{s:i}}", "host", on, "settled", 1, "migrates",
			1, "rule", 1, "stickiness", 100, "utilization", "ebb-cpu", 1500));
		json_object_set_new(json_object_get(json_object_get(json_object_get(
			all, "hosts"), on), "scores"), names[i], json_integer(PLACED_SCORE_MOST));
	}
	assert_int_equal(placed_cluster_read(all, ret, &err), 0);
	json_decref(all);
}

static int best(const struct placed_cluster *c, int vm, char *why)
{
	return placed_best(c, &c->vms[vm], c->vms[vm].started_on, why, PLACED_WHY_SIZE);
}

#define APART(vms, more) "{\"id\":\"k\",\"type\":\"apart\",\"vms\":" vms more "}"
#define TOGETHER(vms) "{\"id\":\"t\",\"type\":\"together\",\"vms\":" vms "}"

static void test_best(void **state)
{
	char why[PLACED_WHY_SIZE];
	struct placed_cluster c;

	(void)state;
	read_cluster(&c, "h3", "[]");
	assert_int_equal(best(&c, 0, why), 3);
	placed_cluster_finish(&c);
	/* Where b is a may not go; what b wants counts against a: 803 - 803 of h4, 802 of h3. */
	read_cluster(&c, "h3", "[" APART("[\"a\",\"b\"]", "") "]");
	assert_ptr_equal(placed_rule_against(&c, &c.vms[0], 1, NULL), &c.rules[0]);
	assert_null(placed_rule_against(&c, &c.vms[0], 2, NULL));
	c.vms[1].scores[3] = 500;
	assert_int_equal(best(&c, 0, why), 3);
	c.vms[1].scores[3] = 803;
	c.vms[1].scores[2] = 500;
	assert_int_equal(best(&c, 0, why), 2);
	/* If that leaves no host, it does not count. */
	c.vms[1].scores[2] = c.vms[1].scores[3] = 999;
	assert_int_equal(best(&c, 0, why), 3);
	placed_cluster_finish(&c);
	/* Racks h1, h2 and h3, h4: b may go where h1 dies, or stay in its own. */
	read_cluster(&c, "h3", "[" APART("[\"b\",\"c\"]", ",\"within\":\"ebb-fault-domain\"") "]");
	assert_int_equal(best(&c, 1, why), 0);
	c.hosts[0].is_online = false;
	assert_int_equal(best(&c, 1, why), -1);
	assert_string_equal(why, "no other host can take it, also by constraint k");
	placed_cluster_finish(&c);
	/* a and c need 3 of 4 CPUs: only h4 has them; the sum of scores decides. */
	read_cluster(&c, "h1", "[" TOGETHER("[\"a\",\"c\"]") "]");
	assert_int_equal(c.vms[2].set, 0);
	assert_int_equal(best(&c, 2, why), 3);
	c.vms[2].scores[3] = 0;
	assert_int_equal(best(&c, 0, why), 2);
	c.vms[2].scores[2] = PLACED_SCORE_NEVER;
	assert_int_equal(best(&c, 0, why), 3);
	c.vms[0].scores[3] = PLACED_SCORE_NEVER;
	assert_int_equal(best(&c, 2, why), -1);
	assert_string_equal(why, "its floors fit on no other host");
	placed_cluster_finish(&c);
}

static void test_contradiction(void **state)
{
	struct placed_cluster c;
	const char *text;

	(void)state;
	read_cluster(&c, "h1", "[" APART("[\"a\",\"b\",\"c\"]", "") ","
		     TOGETHER("[\"c\",\"a\"]") "]");
	assert_int_equal(json_array_size(c.complaints), 1);
	text = json_string_value(json_array_get(c.complaints, 0));
	assert_non_null(strstr(text, "constraint k: VMs a and c must be together by another one"));
	assert_int_equal(c.num_rules, 3);
	placed_cluster_finish(&c);
	/* VMs, hosts and kinds that are not there. */
	read_cluster(&c, "h1", "[" APART("[\"a\",\"x\"]", "") ",7,{\"type\":\"near\"},"
		     "{\"type\":\"ban\",\"vms\":[\"a\"],\"hosts\":[\"h9\",5]}]");
	assert_int_equal(c.num_rules, 0);
	assert_int_equal(json_array_size(c.complaints), 0);
	placed_cluster_finish(&c);
}

/* 200 VMs, each apart from each, are 19,900 pairs: what is too much is said, the rest is read. */
static void test_too_many(void **state)
{
	json_t *vms = json_array(), *resources = json_object(), *all;
	struct ebb_err err = { "" };
	struct placed_cluster c;

	(void)state;
	for (int i = 0; i < 200; i++) {
		char name[16];

		snprintf(name, sizeof(name), "vm%d", i);
		json_object_set_new(resources, name, json_object());
		json_array_append_new(vms, json_string(name));
	}
	all = json_pack("{s:{s:{}}, s:o, s:[{s:s, s:s, s:o}]}", "hosts", "h1", "resources",
			resources, "rules", "id", "k", "type", "apart", "vms", vms);
	assert_int_equal(placed_cluster_read(all, &c, &err), 0);
	assert_int_equal(c.num_rules, PLACED_MAX_RULES);
	assert_int_equal(json_array_size(c.complaints), 1);
	assert_non_null(strstr(json_string_value(json_array_get(c.complaints, 0)),
			       "do not know the rest"));
	placed_cluster_finish(&c);
	json_decref(all);
}

static void test_scores(void **state)
{
	const struct placed_policy policy = { .stickiness = { 100, 200, 300 }, .score_step = 20 };
	const double risk[] = { 0.1, 0.1, 0.1 };
	struct placed_action items[32];
	struct placed_actions out = { .items = items, .capacity = 32 };
	struct placed_state s = { .moving = "" };
	struct placed_cluster c;
	int num_never = 0;

	(void)state;
	read_cluster(&c, "h3", "[" APART("[\"b\",\"a\"]", "") "]");
	placed_decide(&policy, &(struct placed_view){ .cluster = &c, .self = 0, .risk = risk }, 0,
		      &s, &out);
	for (size_t i = 0; i < out.count; i++)
		if (items[i].type == PLACED_SET_SCORE && items[i].value == PLACED_SCORE_NEVER) {
			assert_string_equal(items[i].vm, "b");
			assert_string_equal(items[i].text, "constraint k");
			num_never++;
		}
	assert_int_equal(num_never, 1);
	placed_cluster_finish(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_best),
		cmocka_unit_test(test_contradiction),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_scores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
