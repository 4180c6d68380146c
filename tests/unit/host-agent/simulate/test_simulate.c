// SPDX-License-Identifier: GPL-2.0-or-later
/* Simulations: traces that are made up, written by hand or read from a history; what is counted. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>
#include "simulate/simulate.h"

static struct sim_options options;

static void set_host(uint32_t sockets, uint32_t cores, uint32_t threads)
{
	options = (struct sim_options){ .seed = 1, .num_slots = 10 };
	assert_int_equal(ebb_host_emulate(sockets, cores, threads, 1000, &options.host), 0);
}

/* A trace of so many seconds without VMs. */
static void trace_init(struct sim_trace *t, uint32_t seconds, uint32_t vms)
{
	*t = (struct sim_trace){
		.length = seconds * EBB_USEC_PER_SEC, .num_vms = vms,
		.vms = calloc(vms, sizeof(*t->vms)),
	};
	assert_non_null(t->vms);
}

/* On one node; reserved 0: class spot. */
static void trace_vm(struct sim_trace *t, uint32_t vm, uint16_t host_node, uint16_t startup,
		     uint16_t reserved, uint16_t max)
{
	snprintf(t->vms[vm].name, sizeof(t->vms[vm].name), "vm%u", vm);
	t->vms[vm].sla = (struct ebb_sla){
		.class = reserved ? EBB_CLASS_RESERVED : EBB_CLASS_SPOT,
		.priority = EBB_PRIORITY_DEFAULT, .weight = 100, .deadline_ms = 500,
		.io = { .weight = 100, .penalty = 1 },
		.mem_weight = 100, .mem_deadline_ms = 500, .num_nodes = 1,
		.nodes = { { .startup = startup, .reserved = reserved ? reserved : startup,
			     .max = max, .host_node = host_node } },
	};
}

static void trace_event(struct sim_trace *t, double at_s, enum sim_event_type type, uint32_t vm,
			uint16_t cpus)
{
	const struct sim_event e = {
		.at = (usec_t)(at_s * EBB_USEC_PER_SEC), .type = type, .vm = vm, .cpus = cpus,
	};

	assert_int_equal(sim_trace_add(t, &e), 0);
}

static void run(const struct sim_trace *t, const struct ebb_policy_ops *policy,
		struct sim_result *ret)
{
	struct ebb_err err = { "" };

	if (sim_run(t, &options, policy, ret, &err) < 0)
		fail_msg("%s: %s", policy->name, err.text);
}

static double held(const struct sim_result *r, uint32_t vm, double from_s)
{
	return r->vms[vm].held_s - from_s;
}

#define assert_near(value, expected, tolerance)                                          \
	do {                                                                             \
		const double v_ = (value), e_ = (expected);                              \
		if (v_ < e_ - (tolerance) || v_ > e_ + (tolerance))                      \
			fail_msg("%s is %g, expected %g", #value, v_, e_);               \
	} while (0)

/* One VM, which wants three more for ten seconds of thirty. */
static void test_alone(void **state)
{
	struct sim_result r;
	struct sim_trace t;

	(void)state;
	set_host(1, 8, 1);
	trace_init(&t, 30, 1);
	trace_vm(&t, 0, 0, 1, 0, 6);
	trace_event(&t, 0, SIM_START, 0, 0);
	trace_event(&t, 10, SIM_WANT, 0, 4);
	trace_event(&t, 20, SIM_WANT, 0, 1);
	trace_event(&t, 25, SIM_STOP, 0, 0);
	run(&t, &ebb_policy_fair, &r);
	assert_int_equal(r.capacity, 8);
	assert_near(r.vms[0].run_s, 25, 1e-6);
	assert_near(r.vms[0].wanted_s, 15 + 4 * 10, 1e-3);
	assert_near(held(&r, 0, 0), 15 + 4 * 10, 0.5);
	/* Plugged within some tens of milliseconds, while the cores idle. */
	assert_int_equal(r.num_waits, 3);
	assert_in_range(sim_wait_percentile(&r, 50), 1, 200);
	assert_in_range(sim_wait_percentile(&r, 100), 1, 200);
	assert_near(r.vms[0].missed_s, r.wasted_s, 1e-9);
	assert_true(r.wasted_s > 0 && r.wasted_s < 0.6);
	assert_int_equal(r.num_unmet, 0);
	assert_int_equal(r.num_moves, 0);
	assert_int_equal(r.num_forced, 0);
	/* By time: three seconds each. */
	assert_near(r.slots[2].by_class[EBB_CLASS_SPOT], 3, 1e-6);
	assert_near(r.slots[4].by_class[EBB_CLASS_SPOT], 12, 1e-6);
	assert_near(r.slots[9].by_class[EBB_CLASS_SPOT], 0, 1e-6);
	assert_near(r.slots[4].by_class[EBB_CLASS_RESERVED], 0, 1e-6);
	sim_result_finish(&r);
	sim_trace_finish(&t);
}

/* A VM of class spot has all that is reserved for another one, until that wants it. */
static void test_policies_differ(void **state)
{
	struct sim_result spot, strict;
	struct sim_trace t;

	(void)state;
	set_host(1, 8, 1);
	trace_init(&t, 60, 2);
	trace_vm(&t, 0, 0, 1, 0, 8);
	trace_vm(&t, 1, 0, 1, 6, 6);
	trace_event(&t, 0, SIM_START, 0, 0);
	trace_event(&t, 0, SIM_START, 1, 0);
	trace_event(&t, 0, SIM_WANT, 1, 1);
	trace_event(&t, 5, SIM_WANT, 0, 8);
	trace_event(&t, 40, SIM_WANT, 1, 6);
	run(&t, &ebb_policy_spot, &spot);
	run(&t, &ebb_policy_strict, &strict);
	/* One core is kept at hand for the reserved VM. */
	assert_near(spot.slots[4].by_class[EBB_CLASS_SPOT], 6 * 6, 0.1);
	assert_near(spot.slots[4].by_class[EBB_CLASS_RESERVED], 6, 0.1);
	assert_near(spot.slots[8].by_class[EBB_CLASS_SPOT], 2 * 6, 0.1);
	assert_near(spot.slots[8].by_class[EBB_CLASS_RESERVED], 6 * 6, 0.1);
	assert_int_equal(spot.num_moves, 4);
	/* First come, first served: the second has one core in addition to its own. */
	assert_near(strict.slots[8].by_class[EBB_CLASS_SPOT], 7 * 6, 0.1);
	assert_near(strict.slots[8].by_class[EBB_CLASS_RESERVED], 6, 0.1);
	assert_near(strict.vms[1].missed_s, 20 * 5, 0.5);
	/* The spot VM misses one, the reserved five. */
	assert_int_equal(strict.num_unmet, 1 + 5);
	sim_result_finish(&spot);
	sim_result_finish(&strict);
	sim_trace_finish(&t);
}

/* What is taken from a VM that goes on wanting it is waited for again. */
static void test_taken_away(void **state)
{
	struct sim_result r;
	struct sim_trace t;

	(void)state;
	set_host(1, 4, 1);
	trace_init(&t, 40, 2);
	trace_vm(&t, 0, 0, 1, 0, 4);
	trace_vm(&t, 1, 0, 1, 0, 4);
	trace_event(&t, 0, SIM_START, 0, 0);
	trace_event(&t, 5, SIM_WANT, 0, 4);
	trace_event(&t, 10, SIM_START, 1, 0);
	trace_event(&t, 10, SIM_WANT, 1, 2);
	trace_event(&t, 30, SIM_STOP, 1, 0);
	run(&t, &ebb_policy_fair, &r);
	assert_near(r.slots[6].by_class[EBB_CLASS_SPOT], 16, 0.1);
	assert_int_equal(r.num_unmet, 0);
	/* Two for twenty seconds, and one at once twice. */
	assert_in_range(sim_wait_percentile(&r, 100), 19000, 21000);
	assert_near(r.vms[0].missed_s, 2 * 20, 1.5);
	sim_result_finish(&r);
	sim_trace_finish(&t);
}

static void test_not_admitted(void **state)
{
	struct sim_result r;
	struct sim_trace t;

	(void)state;
	set_host(1, 4, 1);
	trace_init(&t, 20, 2);
	trace_vm(&t, 0, 0, 3, 0, 4);
	trace_vm(&t, 1, 0, 2, 0, 2);
	trace_event(&t, 0, SIM_START, 0, 0);
	trace_event(&t, 1, SIM_START, 1, 0);
	trace_event(&t, 10, SIM_STOP, 0, 0);
	run(&t, &ebb_policy_fair, &r);
	assert_int_equal(r.num_not_admitted, 1);
	assert_near(held(&r, 1, 0), 2 * 10, 0.5);
	sim_result_finish(&r);
	sim_trace_finish(&t);
}

static void test_wrong_host(void **state)
{
	struct ebb_err err = { "" };
	struct sim_result r;
	struct sim_trace t;

	(void)state;
	set_host(1, 4, 1);
	trace_init(&t, 20, 1);
	trace_vm(&t, 0, 1, 1, 0, 4);
	trace_event(&t, 0, SIM_START, 0, 0);
	assert_int_equal(sim_run(&t, &options, &ebb_policy_fair, &r, &err), -EINVAL);
	assert_string_equal(err.text, "vm0: node 0 host is 1, allowed are 0 to 0");
	sim_trace_finish(&t);
}

/* ---- made-up traces ---- */

static void test_generated(void **state)
{
	struct sim_plan plan = { .seed = 3, .num_vms = 24, .seconds = 60, .spot_percent = 50 };
	struct sim_result first, second;
	struct sim_trace a, b;

	(void)state;
	set_host(4, 6, 2);
	assert_int_equal(sim_trace_generate(&plan, &options.host, &a), 0);
	assert_int_equal(sim_trace_generate(&plan, &options.host, &b), 0);
	assert_int_equal(a.num_events, b.num_events);
	for (size_t i = 0; i < a.num_events; i++) {
		assert_int_equal(a.events[i].at, b.events[i].at);
		assert_int_equal(a.events[i].vm, b.events[i].vm);
		assert_true(i == 0 || a.events[i].at >= a.events[i - 1].at);
		assert_true(a.events[i].at < a.length);
	}
	for (uint32_t v = 0; v < a.num_vms; v++) {
		char text[EBB_TEXT_SIZE];

		assert_int_equal(ebb_sla_check(&a.vms[v].sla, &options.host, text), 0);
	}
	/* Each policy comes to the same end twice, and breaks no rule on the way. */
	for (size_t p = 0; ebb_policy_at(p); p++) {
		run(&a, ebb_policy_at(p), &first);
		run(&b, ebb_policy_at(p), &second);
		assert_int_equal(first.num_waits, second.num_waits);
		assert_memory_equal(first.waits_ms, second.waits_ms,
				    first.num_waits * sizeof(first.waits_ms[0]));
		assert_memory_equal(first.vms, second.vms, a.num_vms * sizeof(first.vms[0]));
		assert_int_equal(first.num_moves, second.num_moves);
		assert_true(first.num_waits > 0);
		sim_result_finish(&first);
		sim_result_finish(&second);
	}
	sim_trace_finish(&b);
	plan.seed = 4;
	assert_int_equal(sim_trace_generate(&plan, &options.host, &b), 0);
	assert_true(a.num_events != b.num_events || a.events[0].at != b.events[0].at);
	sim_trace_finish(&a);
	sim_trace_finish(&b);
}

/* Sums agree with each other, whatever happens. */
static void test_sums(void **state)
{
	(void)state;
	for (uint64_t seed = 10; seed < 16; seed++) {
		const struct sim_plan plan = {
			.seed = seed, .num_vms = 20, .seconds = 40,
			.spot_percent = (uint32_t)(20 * (seed - 10)),
		};
		struct sim_result r;
		struct sim_trace t;

		set_host(2, 5, 1 + seed % 2);
		options.count_threads = seed % 4 == 1;
		assert_int_equal(sim_trace_generate(&plan, &options.host, &t), 0);
		for (size_t p = 0; ebb_policy_at(p); p++) {
			double by_slot = 0, by_vm = 0, missed = 0, by_vm_missed = 0, wasted = 0;

			run(&t, ebb_policy_at(p), &r);
			for (uint32_t i = 0; i < options.num_slots; i++) {
				by_slot += r.slots[i].by_class[EBB_CLASS_RESERVED] +
					   r.slots[i].by_class[EBB_CLASS_SPOT];
				missed += r.slots[i].missed;
				wasted += r.slots[i].wasted;
			}
			for (uint32_t v = 0; v < t.num_vms; v++) {
				by_vm += r.vms[v].held_s;
				by_vm_missed += r.vms[v].missed_s;
			}
			assert_near(by_slot, by_vm, 1e-6);
			assert_near(missed, by_vm_missed, 1e-6);
			assert_near(wasted, r.wasted_s, 1e-6);
			assert_true(wasted <= missed + 1e-6);
			assert_true(by_slot <= options.host.num_threads * 40.0);
			sim_result_finish(&r);
		}
		sim_trace_finish(&t);
	}
}

/* ---- histories ---- */

static char path[] = "/tmp/test_simulate.XXXXXX";

static void make_history(const char *sql)
{
	static const char schema[] =
		"DROP TABLE IF EXISTS decisions; CREATE TABLE decisions ("
		" id INTEGER PRIMARY KEY, ts REAL, vm TEXT, uuid TEXT NOT NULL DEFAULT '',"
		" event TEXT, node INTEGER,"
		" cpus INTEGER, asked INTEGER, reason TEXT,"
		" code TEXT NOT NULL DEFAULT 'none'); PRAGMA user_version = 2;"
		/* Where nothing else is said, each name is of one VM. */
		"CREATE TRIGGER alone AFTER INSERT ON decisions WHEN new.uuid = '' BEGIN"
		" UPDATE decisions SET uuid = vm WHERE id = new.id; END;";
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, schema, NULL, NULL, NULL), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	sqlite3_close(db);
}

#define ROWS	"INSERT INTO decisions (ts, vm, event, node, cpus, asked, reason) VALUES "

/* One VM is renamed, and another gets its name. */
static void test_names(void **state)
{
	struct ebb_host host;
	struct sim_trace t;
	struct ebb_err err = { "" };

	(void)state;
	assert_int_equal(ebb_host_emulate(1, 8, 1, 1000, &host), 0);
	make_history(
		"INSERT INTO decisions (ts, vm, uuid, event, node, cpus, asked, reason) VALUES "
		"(100, 'web', '1', 'join', NULL, 0, 0, 'started with 1 CPUs'),"
		"(101, 'web', '1', 'offer', 0, 3, 0, 'limit 0 -> 3: 1 used, goal 3 of policy'),"
		"(110, 'web', '2', 'join', NULL, 0, 0, 'started with 1 CPUs'),"
		"(111, 'web', '2', 'offer', 0, 2, 0, 'limit 0 -> 2: 1 used, goal 2 of policy'),"
		"(112, 'old', '1', 'demand', 0, 1, 0, 'limit 3 -> 1'),"
		"(120, 'old', '1', 'leave', NULL, 1, 0, 'stopped'),"
		"(130, 'web', '2', 'leave', NULL, 1, 0, 'stopped')");
	if (sim_trace_load(path, &host, &t, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(t.num_vms, 2);
	assert_string_equal(t.vms[0].name, "old");
	assert_int_equal(t.vms[0].sla.nodes[0].max, 3);
	assert_string_equal(t.vms[1].name, "web");
	assert_int_equal(t.vms[1].sla.nodes[0].max, 2);
	sim_trace_finish(&t);
}

static void test_history(void **state)
{
	static const struct {
		double at_s;
		enum sim_event_type type;
		uint16_t node, cpus;
	} expected[] = {
		{ 0, SIM_START, 0, 0 },
		{ 0, SIM_WANT, 0, 1 },
		{ 0, SIM_WANT, 1, 0 },
		{ 10, SIM_WANT, 1, 3 },		/* asked for two, then had three */
		{ 40, SIM_WANT, 1, 1 },		/* gave one back that was not demanded */
		{ 60, SIM_STOP, 0, 0 },
	};
	struct ebb_err err = { "" };
	struct sim_result r;
	struct sim_trace t;

	(void)state;
	make_history(ROWS
		"(100, '', 'policy', NULL, 0, 0, 'policy fair'),"
		"(100, 'web', 'sla', NULL, 0, 0, 'defined: class spot, weight 70, deadline 900 ms, "
		"1 to 6 CPUs on 2 nodes, 0 to 0 MiB of pool memory'),"
		"(100, 'web', 'join', NULL, 0, 0, 'started with 1 CPUs'),"
		"(100, 'web', 'offer', 0, 1, 0, 'limit 0 -> 1: 1 used, goal 1 of policy fair'),"
		"(105, 'web', 'offer', 1, 3, 0, 'limit 0 -> 3: 0 used, goal 3 of policy fair'),"
		"(110, 'web', 'request', 1, 3, 3, 'asks for 3 CPUs'),"
		"(110, 'web', 'grant', 1, 3, 3, '3 of 3'),"
		/* Two are demanded, and wanted all the same. */
		"(120, 'web', 'demand', 1, 1, 0, 'limit 3 -> 1'),"
		"(121, 'web', 'lend', 1, 1, 1, 'lent'),"
		"(122, 'web', 'release', 1, 1, 1, 'gave back'),"
		"(130, 'web', 'offer', 1, 2, 0, 'limit 1 -> 2'),"
		"(131, 'web', 'request', NULL, 1, 1, 'asks for 1 CPUs'),"
		"(131, 'web', 'refuse', NULL, 0, 1, 'no'),"
		"(135, 'web', 'request', 1, 1, 1, 'asks for 1 CPUs'),"
		"(135, 'web', 'grant', 1, 1, 1, '1 of 1'),"
		"(138, 'web', 'join', NULL, 0, 0, 'found running with 3 CPUs'),"
		"(140, 'web', 'release', 1, 1, 1, 'gave back'),"
		"(160, 'web', 'leave', NULL, 1, 0, 'stopped')");
	set_host(2, 8, 1);
	if (sim_trace_load(path, &options.host, &t, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(t.num_vms, 1);
	assert_string_equal(t.vms[0].name, "web");
	assert_int_equal(t.vms[0].sla.class, EBB_CLASS_SPOT);
	assert_int_equal(t.vms[0].sla.weight, 70);
	assert_int_equal(t.vms[0].sla.deadline_ms, 900);
	assert_int_equal(t.vms[0].sla.num_nodes, 2);
	assert_int_equal(t.vms[0].sla.nodes[0].startup, 1);
	assert_int_equal(t.vms[0].sla.nodes[0].max, 2);
	assert_int_equal(t.vms[0].sla.nodes[1].max, 4);
	assert_in_range(t.length, 60 * EBB_USEC_PER_SEC, 60 * EBB_USEC_PER_SEC + 1);
	for (size_t i = 0, e = 0; i < t.num_events; i++) {
		/* Node 0 was asked for once, when any would have done. */
		if (t.events[i].type == SIM_WANT && t.events[i].node == 0 && t.events[i].at > 0)
			continue;
		assert_true(e < sizeof(expected) / sizeof(expected[0]));
		assert_int_equal(t.events[i].at, expected[e].at_s * EBB_USEC_PER_SEC);
		assert_int_equal(t.events[i].type, expected[e].type);
		if (t.events[i].type == SIM_WANT) {
			assert_int_equal(t.events[i].node, expected[e].node);
			assert_int_equal(t.events[i].cpus, expected[e].cpus);
		}
		e++;
	}
	run(&t, &ebb_policy_fair, &r);
	assert_near(r.vms[0].run_s, 60, 1e-3);
	sim_result_finish(&r);
	sim_trace_finish(&t);
}

static void expect_bad(const char *file, int rc, const char *words)
{
	struct ebb_err err = { "" };
	struct sim_trace t;

	set_host(2, 8, 1);
	assert_int_equal(sim_trace_load(file, &options.host, &t, &err), rc);
	if (!strstr(err.text, file) || !strstr(err.text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.text);
}

static void test_bad_history(void **state)
{
	FILE *f;

	(void)state;
	expect_bad("/nowhere/history.db", -EIO, "unable to open database file");
	make_history(ROWS "(1, 'web', 'offer', 0, 1, 0, 'limit')");
	expect_bad(path, -ENODATA, "no VM has started in it");
	/* Rows that say what cannot be: the node, the number of CPUs. */
	make_history(ROWS "(1, 'web', 'join', NULL, 0, 0, ''), (2, 'web', 'offer', 99, 5, 0, ''),"
			  "(3, 'web', 'grant', 0, -7, 70000, NULL),"
			  "(4, 'a', 'join', 1, 1, 1, 'x')");
	{
		struct ebb_err err = { "" };
		struct sim_result r;
		struct sim_trace t;

		assert_int_equal(sim_trace_load(path, &options.host, &t, &err), 0);
		run(&t, &ebb_policy_fair, &r);
		sim_result_finish(&r);
		sim_trace_finish(&t);
	}
	make_history("PRAGMA user_version = 1;");
	expect_bad(path, -EPROTO, "its version is 1, 2 is needed");
	make_history("DROP TABLE decisions;");
	expect_bad(path, -EIO, "no such table");
	f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < 1000; i++)
		fputs("this is no database", f);
	fclose(f);
	expect_bad(path, -EIO, "not a database");
}

static int make_path(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_policies_differ),
		cmocka_unit_test(test_taken_away),
		cmocka_unit_test(test_not_admitted),
		cmocka_unit_test(test_wrong_host),
		cmocka_unit_test(test_generated),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_bad_history),
	};

	return cmocka_run_group_tests_name("simulate", tests, make_path, remove_path);
}
