// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Histories that are recorded and replayed: under the same policy every VM is given the same
 * limits, with the same goals, in the same order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/history-db.h"
#include "simulate/simulate.h"

#define NUM_VMS		5
#define NUM_EVENTS	60
#define LIMITS		1024
#define ENTRIES		20000

static char path[] = "/tmp/test_simulate_replay.XXXXXX";

/* Limits of a guest node of a VM: pairs of limit and goal. */
struct line {
	size_t count;
	char text[LIMITS][32];
};

struct recording {
	struct ebb_history_entry *entries;	/* NULL: nothing is kept */
	size_t num_entries;
	struct line lines[NUM_VMS][2];
};

static void note(void *ctx, const struct ebb_record *r)
{
	struct ebb_history_entry e = {
		.ts = (double)r->at / EBB_USEC_PER_SEC, .record = *r,
	};
	struct recording *rec = ctx;
	const char *goal = strstr(r->text, "goal ");
	unsigned vm;

	/* The simulation makes each run another VM: here it is always the one that has the name. */
	memset(e.record.uuid, 0, sizeof(e.record.uuid));
	memcpy(e.record.uuid, r->name, strnlen(r->name, sizeof(e.record.uuid)));
	if (rec->entries) {
		assert_true(rec->num_entries < ENTRIES);
		rec->entries[rec->num_entries++] = e;
	}
	if ((r->event != EBB_EVENT_OFFER && r->event != EBB_EVENT_DEMAND) || !goal)
		return;
	if (sscanf(r->name, "vm%u", &vm) == 1 && vm < NUM_VMS && r->node < 2) {
		struct line *l = &rec->lines[vm][r->node];

		assert_true(l->count < LIMITS);
		snprintf(l->text[l->count++], sizeof(l->text[0]), "%u, %.20s", r->cpus, goal);
	}
}

/* ---- traces whose events do not overlap ---- */

static uint64_t chance_state;

static uint32_t chance(uint32_t below)
{
	uint64_t x = chance_state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	return (uint32_t)((x ^ (x >> 27)) >> 16) % below;
}

static void make_sla(uint32_t i, struct ebb_sla *sla)
{
	static const uint16_t priorities[] = { 50, 100, 700 };
	const bool is_spot = i % 2;

	*sla = (struct ebb_sla){
		.class = is_spot ? EBB_CLASS_SPOT : EBB_CLASS_RESERVED,
		.priority = priorities[chance(3)], .weight = 50 + 50 * chance(3),
		.deadline_ms = 500, .penalty = EBB_PENALTY_DEFAULT,
		.mem_weight = EBB_WEIGHT_DEFAULT,
		.io = { .weight = 100, .penalty = 1 },
		.mem_deadline_ms = EBB_DEADLINE_MS_DEFAULT, .num_nodes = 2,
	};
	for (uint16_t g = 0; g < 2; g++) {
		struct ebb_sla_node *n = &sla->nodes[g];

		/* On either socket, and what is reserved is neither floor nor ceiling. */
		n->host_node = (uint16_t)((i + g) % 2);
		n->startup = g == 0;
		n->max = (uint16_t)(3 + chance(5));
		n->reserved = is_spot ? n->startup : (uint16_t)(n->startup + 1 + chance(2));
	}
}

static void add(struct sim_trace *t, usec_t at, enum sim_event_type type, uint32_t vm,
		uint16_t node, uint16_t cpus)
{
	const struct sim_event e = {
		.at = at, .type = type, .vm = vm, .node = node, .cpus = cpus,
	};

	assert_int_equal(sim_trace_add(t, &e), 0);
}

static void begin_vm(struct sim_trace *t, usec_t at, uint32_t vm)
{
	add(t, at, SIM_START, vm, 0, 0);
	for (uint16_t g = 0; g < 2; g++)
		add(t, at, SIM_WANT, vm, g, t->vms[vm].sla.nodes[g].startup);
}

/* Something happens every other second, when the last thing has come to its end. */
static void make_trace(struct sim_trace *t, uint64_t seed)
{
	uint16_t wants[NUM_VMS][2] = { { 0 } };
	bool runs[NUM_VMS] = { false };
	usec_t at = 0;

	chance_state = seed;
	*t = (struct sim_trace){ .num_vms = NUM_VMS, .vms = calloc(NUM_VMS, sizeof(*t->vms)) };
	assert_non_null(t->vms);
	for (uint32_t i = 0; i < NUM_VMS; i++) {
		snprintf(t->vms[i].name, sizeof(t->vms[i].name), "vm%u", i);
		make_sla(i, &t->vms[i].sla);
	}
	for (int k = 0; k < NUM_EVENTS; k++, at += 2300 * EBB_USEC_PER_MSEC) {
		const uint32_t vm = k ? chance(NUM_VMS) : 0;
		const uint16_t g = (uint16_t)chance(2);
		const struct ebb_sla_node *n = &t->vms[vm].sla.nodes[g];

		if (!runs[vm]) {
			begin_vm(t, at, vm);
			runs[vm] = true;
			wants[vm][0] = t->vms[vm].sla.nodes[0].startup;
			wants[vm][1] = t->vms[vm].sla.nodes[1].startup;
		} else if (k > 10 && chance(12) == 0) {
			add(t, at, SIM_STOP, vm, 0, 0);
			runs[vm] = false;
		} else {
			/*
			 * More, or all the way down: a history does not tell when somebody who
			 * could not have them wants a few CPUs less.
			 */
			wants[vm][g] = wants[vm][g] == n->max || chance(2) ? n->startup :
				(uint16_t)(wants[vm][g] + 1 + chance(n->max - wants[vm][g]));
			add(t, at, SIM_WANT, vm, g, wants[vm][g]);
		}
	}
	/* Nothing is under way when it ends. */
	for (uint32_t vm = 0; vm < NUM_VMS; vm++)
		if (runs[vm])
			add(t, at, SIM_STOP, vm, 0, 0);
	t->length = at + EBB_USEC_PER_SEC;
}

/* ---- the test ---- */

static void run(const struct sim_trace *t, const struct sim_options *options,
		const struct ebb_policy_ops *policy)
{
	struct ebb_err err = { "" };
	struct sim_result result;

	if (sim_run(t, options, policy, &result, &err) < 0)
		fail_msg("%s", err.text);
	sim_result_finish(&result);
}

static size_t expect_same(const struct recording *a, const struct recording *b,
			  const char *policy, uint64_t seed)
{
	size_t sum = 0;

	for (unsigned vm = 0; vm < NUM_VMS; vm++)
		for (unsigned g = 0; g < 2; g++) {
			const struct line *x = &a->lines[vm][g], *y = &b->lines[vm][g];

			for (size_t i = 0; i < x->count && i < y->count; i++)
				if (strcmp(x->text[i], y->text[i]) != 0)
					fail_msg("%s, seed %llu, vm%u node %u: change %zu was to "
						 "%s, replayed to %s", policy,
						 (unsigned long long)seed, vm, g, i, x->text[i],
						 y->text[i]);
			if (x->count != y->count)
				fail_msg("%s, seed %llu, vm%u node %u: %zu changes, replayed %zu",
					 policy, (unsigned long long)seed, vm, g, x->count,
					 y->count);
			sum += x->count;
		}
	return sum;
}

/* Returns how many changes there were. */
static size_t replay(const struct ebb_policy_ops *policy, uint64_t seed)
{
	struct recording *first = calloc(1, sizeof(*first)), *second = calloc(1, sizeof(*second));
	struct sim_options options = { .is_even = true, .num_slots = 10, .note = note };
	struct ebb_err err = { "" };
	struct sim_trace made, loaded;
	struct ebb_history_db *db;
	size_t sum;

	assert_non_null(first);
	assert_non_null(second);
	assert_int_equal(ebb_host_emulate(2, 6, 2, 1000, &options.host), 0);
	make_trace(&made, seed);
	first->entries = calloc(ENTRIES, sizeof(*first->entries));
	assert_non_null(first->entries);
	options.note_ctx = first;
	run(&made, &options, policy);
	unlink(path);
	assert_int_equal(ebb_history_db_open(path, 100000, &db, &err), 0);
	assert_int_equal(ebb_history_db_insert(db, first->entries, first->num_entries, &err), 0);
	ebb_history_db_close(db);

	if (sim_trace_load(path, &options.host, &loaded, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(loaded.num_vms, NUM_VMS);
	for (uint32_t i = 0; i < NUM_VMS; i++) {
		uint32_t k = 0;

		while (k < NUM_VMS && strcmp(loaded.vms[i].name, made.vms[k].name) != 0)
			k++;
		assert_true(k < NUM_VMS);
		assert_memory_equal(&loaded.vms[i].sla, &made.vms[k].sla, sizeof(struct ebb_sla));
	}
	options.note_ctx = second;
	run(&loaded, &options, policy);
	sum = expect_same(first, second, policy->name, seed);
	sim_trace_finish(&made);
	sim_trace_finish(&loaded);
	free(first->entries);
	free(first);
	free(second);
	return sum;
}

static void test_same(void **state)
{
	(void)state;
	for (size_t p = 0; ebb_policy_at(p); p++) {
		size_t sum = 0;

		for (uint64_t seed = 1; seed <= 12; seed++)
			sum += replay(ebb_policy_at(p), seed);
		print_message("%s: %zu changes of limits, replayed the same\n",
			      ebb_policy_at(p)->name, sum);
		assert_true(sum > 50);
	}
}

static int make_path(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -f %s %s-wal %s-shm", path, path, path);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_same) };

	return cmocka_run_group_tests_name("replays", tests, make_path, remove_path);
}
