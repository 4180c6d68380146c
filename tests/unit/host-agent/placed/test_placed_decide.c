/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Description: what ebb-placed publishes, when a VM is moved, and what is never done (decide.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "placed/decide.h"

#define SEC(n)	((uint64_t)(n) * 1000000)

/* Host h1 runs a (1 CPU) and should part with it, h2 runs b, h3 nothing. */
struct rig {
	json_t *all;
	struct placed_cluster c;
	struct placed_policy policy;
	struct placed_state state;
	uint64_t now;
	double risk[8];
	struct placed_action items[32];
	struct placed_actions out;
};

static json_t *host(const char *vms, const char *scores)
{
	json_t *facts = json_pack("{s:i, s:[iii], s:b, s:s, s:o}", "v", PLACED_VERSION, "cap", 4000,
				  2048, 0, "ready", 1, "moving", "", "vms",
				  json_loads(vms, 0, NULL));

	assert_non_null(facts);
	return json_pack("{s:b, s:o, s:o, s:{s:i, s:i}}", "online", 1, "facts", facts, "scores",
			 json_loads(scores, 0, NULL), "utilization", "ebb-cpu", 4000, "ebb-memory",
			 2048);
}

static json_t *resource(const char *on)
{
	return json_pack("{s:s, s:b, s:b, s:b, s:b, s:i, s:{s:i, s:i}}", "host", on, "settled", 1,
			 "busy", 0, "migrates", 1, "rule", 1, "stickiness", 100, "utilization",
			 "ebb-cpu", 1000, "ebb-memory", 256);
}

#define VM(more)	"{\"c\":\"x\",\"s\":0,\"a\":0,\"u\":[500,256,0],\"p\":[500,256,0]," \
			"\"f\":[1000,256,0],\"on\":false" more "}"

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	r->all = json_pack("{s:b, s:{s:o, s:o, s:o}, s:{s:o, s:o}}", "quorum", 1, "hosts", "h1",
			   host("{\"a\":" VM(",\"mv\":\"relieves node 0\"") "}",
				"{\"a\":1000,\"b\":500}"),
			   "h2", host("{\"b\":" VM("") "}", "{\"a\":700,\"b\":1000}"),
			   "h3", host("{}", "{\"a\":900,\"b\":500}"),
			   "resources", "a", resource("h1"), "b", resource("h2"));
	assert_non_null(r->all);
	r->policy = (struct placed_policy){
		.stickiness = { 100, 200, 300 }, .score_step = 20, .move_usec = SEC(60),
		.retry_usec = SEC(300),
		.cost = { .a = 1, .b = 1, .c = 24, .limit = { 24.5, 36 } },
	};
	r->now = SEC(1000);
	r->risk[0] = r->risk[1] = 0.5;
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	placed_cluster_finish(&r->c);
	json_decref(r->all);
	free(r);
	return 0;
}

static json_t *at(struct rig *r, const char *part, const char *name)
{
	return json_object_get(json_object_get(r->all, part), name);
}

static json_t *facts_of(struct rig *r, const char *name)
{
	return json_object_get(at(r, "hosts", name), "facts");
}

static void decide(struct rig *r, const char *self)
{
	struct placed_view view = { .cluster = &r->c, .risk = r->risk };
	struct ebb_err err = { "" };

	placed_cluster_finish(&r->c);
	assert_int_equal(placed_cluster_read(r->all, &r->c, &err), 0);
	view.self = placed_host_find(&r->c, self);
	r->out = (struct placed_actions){ .items = r->items, .capacity = 32 };
	placed_decide(&r->policy, &view, r->now, &r->state, &r->out);
}

/* The action of that type about the VM; NULL: there is none. */
static const struct placed_action *find(const struct rig *r, enum placed_action_type type,
					const char *vm)
{
	for (size_t i = 0; i < r->out.count; i++)
		if (r->items[i].type == type && strcmp(r->items[i].vm, vm) == 0)
			return &r->items[i];
	return NULL;
}

static int64_t score(const struct rig *r, const char *vm)
{
	const struct placed_action *a = find(r, PLACED_SET_SCORE, vm);

	return a ? a->value : -1;
}

/* Such a probability, and any order of hosts. */
static void assert_score(const struct rig *r, const char *vm, int64_t least)
{
	assert_in_range(score(r, vm), least, least + 9);
}

static bool says(const struct rig *r, const char *vm, const char *text)
{
	const struct placed_action *a = find(r, PLACED_SAY, vm);

	return a && strstr(a->text, text);
}

static void test_move_lowers_the_home_alone(void **state)
{
	struct rig *r = *state;

	decide(r, "h1");
	assert_int_equal(score(r, "a"), 0);
	assert_non_null(strstr(find(r, PLACED_SET_SCORE, "a")->text, "moves to h3"));
	assert_string_equal(r->state.moving, "a");
	assert_int_equal(score(r, "b"), -1);
	/* The target has nothing to do. */
	r->state = (struct placed_state){ .moving = "" };
	r->risk[0] = 0.1;
	decide(r, "h3");
	assert_int_equal(score(r, "a"), -1);
}

static void test_move_ends_when_it_has_left(void **state)
{
	struct rig *r = *state;

	decide(r, "h1");
	json_object_set_new(at(r, "resources", "a"), "busy", json_true());
	r->now += SEC(100);
	decide(r, "h1");
	assert_string_equal(r->state.moving, "a");
	assert_int_equal(score(r, "a"), -1);
	json_object_set_new(at(r, "resources", "a"), "busy", json_false());
	json_object_set_new(at(r, "resources", "a"), "host", json_string("h3"));
	json_object_set(json_object_get(facts_of(r, "h3"), "vms"), "a",
			json_object_get(json_object_get(facts_of(r, "h1"), "vms"), "a"));
	json_object_del(json_object_get(facts_of(r, "h1"), "vms"), "a");
	decide(r, "h1");
	assert_string_equal(r->state.moving, "");
	assert_true(says(r, "a", "has left this host for h3 after 100.0 s"));
	assert_score(r, "a", 500);
}

static void test_move_that_does_not_begin_is_given_up(void **state)
{
	struct rig *r = *state;

	decide(r, "h1");
	json_object_set_new(json_object_get(at(r, "hosts", "h1"), "scores"), "a", json_integer(0));
	r->now += SEC(59);
	decide(r, "h1");
	assert_int_equal(score(r, "a"), -1);
	r->now += SEC(1);
	decide(r, "h1");
	assert_int_equal(score(r, "a"), PLACED_SCORE_MOST);
	assert_true(placed_waits(&r->state, "a", r->now + SEC(299)));
	assert_false(placed_waits(&r->state, "a", r->now + SEC(300)));
	/* And nothing else is tried with it until then. */
	decide(r, "h1");
	assert_string_equal(r->state.moving, "");
}

static void test_move_needs_a_gain_above_its_cost(void **state)
{
	struct rig *r = *state;

	json_object_set_new(json_object_get(at(r, "hosts", "h3"), "scores"), "a",
			    json_integer(100));
	json_object_set_new(json_object_get(at(r, "hosts", "h2"), "scores"), "a", json_integer(90));
	decide(r, "h1");
	assert_true(says(r, "a", "h3, has a score of 100, and moving it costs 100"));
	assert_int_equal(score(r, "a"), -1);
}

/* D2: each case makes h3, the best other host, unfit; Pacemaker would still take it. */
static void test_move_needs_a_host_that_is_believed(void **state)
{
	struct rig *r = *state;

	json_object_set_new(facts_of(r, "h3"), "ready", json_false());
	decide(r, "h1");
	assert_true(says(r, "a", "host h3 has an ebbd or libvirtd that does not answer"));
	json_object_set_new(facts_of(r, "h3"), "v", json_integer(2));
	decide(r, "h1");
	assert_true(says(r, "a", "host h3 has an ebb-placed of another version"));
	json_object_set_new(json_object_get(at(r, "hosts", "h3"), "scores"), "a",
			    json_integer(4000));
	decide(r, "h1");
	assert_true(says(r, "a", "host h3 has a score that is not believed"));
	/* One on which the floors do not fit is passed over by Pacemaker, too. */
	json_object_set_new(at(r, "hosts", "h3"), "utilization",
			    json_pack("{s:i, s:i}", "ebb-cpu", 999, "ebb-memory", 2048));
	decide(r, "h1");
	assert_non_null(strstr(find(r, PLACED_SET_SCORE, "a")->text, "moves to h2"));
}

static void test_one_vm_moves_at_a_time(void **state)
{
	struct rig *r = *state;

	json_object_set_new(json_object_get(json_object_get(facts_of(r, "h2"), "vms"), "b"), "mv",
			    json_string("relieves node 0"));
	decide(r, "h2");
	assert_int_equal(score(r, "b"), -1);
	decide(r, "h1");
	assert_int_equal(score(r, "a"), 0);
	/* Where the first one can not move, it does not keep the others from it. */
	r->state = (struct placed_state){ .moving = "" };
	json_object_set_new(at(r, "resources", "a"), "migrates", json_false());
	decide(r, "h2");
	assert_int_equal(score(r, "b"), 0);
	/* Nor where its host does not act, as its ebbd does not answer. */
	r->state = (struct placed_state){ .moving = "" };
	json_object_set_new(at(r, "resources", "a"), "migrates", json_true());
	json_object_set_new(facts_of(r, "h1"), "ready", json_false());
	json_object_set_new(json_object_get(at(r, "hosts", "h1"), "scores"), "b",
			    json_integer(PLACED_SCORE_NEVER));
	decide(r, "h2");
	assert_int_equal(score(r, "b"), 0);
	r->state = (struct placed_state){ .moving = "" };
	json_object_set_new(facts_of(r, "h1"), "moving", json_string("a"));
	decide(r, "h2");
	assert_int_equal(score(r, "b"), -1);
}

/* What a placer that has died, or lies, goes on telling keeps no other host from its moves. */
static void test_word_of_a_dead_placer(void **state)
{
	struct rig *r = *state;

	json_object_set_new(json_object_get(json_object_get(facts_of(r, "h2"), "vms"), "b"), "mv",
			    json_string("relieves node 0"));
	/* It moves a VM that has left, or that there is not. */
	json_object_del(json_object_get(json_object_get(facts_of(r, "h1"), "vms"), "a"), "mv");
	json_object_set_new(facts_of(r, "h1"), "moving", json_string("b"));
	decide(r, "h2");
	assert_int_equal(score(r, "b"), 0);
	r->state = (struct placed_state){ .moving = "" };
	json_object_set_new(facts_of(r, "h1"), "moving", json_string("ghost"));
	decide(r, "h2");
	assert_int_equal(score(r, "b"), 0);
	/* A VM of its should move, which comes first, and does not. */
	r->state = (struct placed_state){ .moving = "" };
	json_object_set_new(facts_of(r, "h1"), "moving", json_string(""));
	json_object_set_new(json_object_get(json_object_get(facts_of(r, "h1"), "vms"), "a"), "mv",
			    json_string("relieves node 0"));
	decide(r, "h2");
	assert_int_equal(score(r, "b"), -1);
	/* While another one moves its host has no chance to. */
	r->now += r->policy.move_usec;
	json_object_set_new(at(r, "resources", "b"), "busy", json_true());
	decide(r, "h2");
	json_object_set_new(at(r, "resources", "b"), "busy", json_false());
	decide(r, "h2");
	assert_int_equal(score(r, "b"), -1);
	r->now += r->policy.move_usec - 1;
	decide(r, "h2");
	assert_int_equal(score(r, "b"), -1);
	r->now += 1;
	decide(r, "h2");
	assert_int_equal(score(r, "b"), 0);
}

static void test_scores_of_others(void **state)
{
	struct rig *r = *state;

	decide(r, "h3");
	assert_score(r, "a", 500);
	/* Within a step of what stands: nothing. */
	assert_int_equal(score(r, "b"), -1);
	r->risk[0] = 0;
	decide(r, "h3");
	assert_score(r, "a", 990);
	r->risk[0] = 1;
	decide(r, "h3");
	assert_score(r, "a", 0);
	json_object_set_new(facts_of(r, "h3"), "ready", json_false());
	decide(r, "h3");
	assert_int_equal(score(r, "a"), PLACED_SCORE_NEVER);
	r->risk[0] = r->risk[1] = -1;
	json_object_set_new(facts_of(r, "h3"), "ready", json_true());
	decide(r, "h3");
	assert_int_equal(r->out.count, 0);
}

/* Also where all are as good: Pacemaker must not choose by itself. */
/* Scores that stand are not changed under Pacemaker's hands; one that is missing is published. */
static void test_scores_hold_while_pacemaker_works(void **state)
{
	struct rig *r = *state;

	json_object_del(json_object_get(json_object_get(facts_of(r, "h1"), "vms"), "a"), "mv");
	decide(r, "h3");
	assert_score(r, "a", 500);
	json_object_set_new(at(r, "resources", "b"), "busy", json_true());
	decide(r, "h3");
	assert_null(find(r, PLACED_SET_SCORE, "a"));
	json_object_set_new(at(r, "resources", "b"), "busy", json_false());
	json_object_set_new(at(r, "hosts", "h2"), "online", json_false());
	decide(r, "h3");
	assert_null(find(r, PLACED_SET_SCORE, "a"));
	json_object_del(json_object_get(at(r, "hosts", "h3"), "scores"), "a");
	decide(r, "h3");
	assert_score(r, "a", 500);
}

static void test_no_two_hosts_are_equal(void **state)
{
	struct rig *r = *state;
	int64_t of_h2, of_h3;

	r->risk[0] = r->risk[1] = 0;
	for (int h = 1; h <= 3; h++) {
		char name[] = { 'h', (char)('0' + h), 0 };

		json_object_set_new(at(r, "hosts", name), "scores", json_object());
	}
	decide(r, "h2");
	of_h2 = score(r, "a");
	decide(r, "h3");
	of_h3 = score(r, "a");
	assert_true(of_h2 >= 990 && of_h3 >= 990 && of_h2 != of_h3);
	assert_true(of_h2 < PLACED_SCORE_MOST && of_h3 < PLACED_SCORE_MOST);
}

/* A VM that runs on a host without libvirtd must not be tried elsewhere. */
static void test_home_holds_without_libvirtd(void **state)
{
	struct rig *r = *state;

	json_object_set_new(facts_of(r, "h1"), "ready", json_false());
	json_object_set_new(json_object_get(at(r, "hosts", "h1"), "scores"), "a", json_integer(3));
	decide(r, "h1");
	assert_int_equal(score(r, "a"), PLACED_SCORE_MOST);
	assert_string_equal(r->state.moving, "");
}

static void test_d1_without_quorum_nothing(void **state)
{
	struct rig *r = *state;

	decide(r, "h1");
	json_object_set_new(r->all, "quorum", json_null());
	decide(r, "h1");
	assert_int_equal(r->out.count, 0);
	assert_string_equal(r->state.moving, "a");
	json_object_set_new(r->all, "quorum", json_false());
	decide(r, "h1");
	assert_int_equal(r->out.count, 0);
	assert_string_equal(r->state.moving, "");
}

static void test_d3_capacity_first_and_never_too_small(void **state)
{
	struct rig *r = *state;
	json_t *a = at(r, "resources", "a");

	json_object_del(a, "utilization");
	json_object_del(at(r, "hosts", "h1"), "utilization");
	decide(r, "h1");
	assert_int_equal(find(r, PLACED_SET_CAPACITY, "")->value, 4000);
	assert_null(find(r, PLACED_SET_UTILIZATION, "a"));
	json_object_set_new(at(r, "hosts", "h1"), "utilization",
			    json_pack("{s:i, s:i}", "ebb-cpu", 4000, "ebb-memory", 2048));
	r->state = (struct placed_state){ .moving = "" };
	json_object_del(json_object_get(json_object_get(facts_of(r, "h1"), "vms"), "a"), "mv");
	decide(r, "h1");
	assert_null(find(r, PLACED_SET_CAPACITY, ""));
	assert_int_equal(find(r, PLACED_SET_UTILIZATION, "a")->value, 1000);
	/* The host has shrunk below the floors. */
	json_object_set_new(facts_of(r, "h1"), "cap", json_pack("[iii]", 900, 2048, 0));
	decide(r, "h1");
	assert_true(says(r, "", "add up to more cpu than the host has"));
	assert_null(find(r, PLACED_SET_CAPACITY, ""));
	assert_null(find(r, PLACED_SET_UTILIZATION, "a"));
}

static void test_d4_disputed_vms_are_left(void **state)
{
	struct rig *r = *state;

	json_object_set(json_object_get(facts_of(r, "h2"), "vms"), "a",
			json_object_get(json_object_get(facts_of(r, "h1"), "vms"), "a"));
	decide(r, "h1");
	assert_int_equal(r->out.count, 0);
	assert_non_null(strstr(json_string_value(json_array_get(r->c.complaints, 0)),
			       "hosts h1 and h2 both say that it runs there"));
	json_object_del(json_object_get(facts_of(r, "h2"), "vms"), "a");
	json_object_set_new(at(r, "resources", "a"), "host", json_string("h3"));
	decide(r, "h1");
	assert_true(says(r, "a", "Pacemaker has it on h3"));
	assert_int_equal(score(r, "a"), -1);
	/* Another host lies about b: its home goes by what Pacemaker has of it. */
	json_object_set_new(json_object_get(facts_of(r, "h1"), "vms"), "b", json_loads(
		"{\"c\":\"x\",\"a\":0,\"u\":[0,0,0],\"p\":[0,0,0],\"f\":[90000,1,0]}", 0, NULL));
	decide(r, "h2");
	assert_false(says(r, "", "add up to more cpu than the host has"));
}

static void test_costs_and_rule(void **state)
{
	struct rig *r = *state;
	json_t *vm = json_object_get(json_object_get(facts_of(r, "h2"), "vms"), "b");

	json_object_set_new(at(r, "resources", "b"), "rule", json_false());
	json_object_set_new(vm, "on", json_true());
	json_object_del(json_object_get(json_object_get(facts_of(r, "h1"), "vms"), "a"), "mv");
	decide(r, "h2");
	assert_non_null(find(r, PLACED_ADD_RULE, "b"));
	/* log2(256) + 24 for an active one is a move of medium cost. */
	assert_int_equal(find(r, PLACED_SET_STICKINESS, "b")->value, 200);
	decide(r, "h1");
	assert_null(find(r, PLACED_ADD_RULE, "b"));
	assert_null(find(r, PLACED_SET_STICKINESS, "b"));
}

static void test_strays_are_dropped_by_their_host(void **state)
{
	struct rig *r = *state;

	json_object_set_new(json_object_get(at(r, "hosts", "h1"), "scores"), "gone",
			    json_string("5"));
	decide(r, "h1");
	assert_non_null(find(r, PLACED_DROP_SCORE, "gone"));
	decide(r, "h2");
	assert_null(find(r, PLACED_DROP_SCORE, "gone"));
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(move_lowers_the_home_alone), TEST(move_ends_when_it_has_left),
		TEST(move_that_does_not_begin_is_given_up),
		TEST(move_needs_a_gain_above_its_cost), TEST(move_needs_a_host_that_is_believed),
		TEST(one_vm_moves_at_a_time), TEST(word_of_a_dead_placer), TEST(scores_of_others),
		TEST(scores_hold_while_pacemaker_works),
		TEST(home_holds_without_libvirtd), TEST(no_two_hosts_are_equal),
		TEST(d1_without_quorum_nothing),
		TEST(d3_capacity_first_and_never_too_small), TEST(d4_disputed_vms_are_left),
		TEST(costs_and_rule), TEST(strays_are_dropped_by_their_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
