// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A simulation in which the core refuses one fact. A fact that a guest's device has sent over the
 * link closes that link and nothing else, as it does with the daemon; any other fact is the
 * simulation's own, so that it ends with an error. Both are tried for each type of fact.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backend/backend.h"
#include "core/core.h"
#include "simulate/simulate.h"

#define REFUSED_AT	(10 * EBB_USEC_PER_SEC)

/* What the simulated world reports to, and what the core was told. */
static struct ebb_sink world;
static struct ebb_fact refused;
static bool is_refused;			/* the core has had it */
static uint32_t num_links;		/* that came up since then */

struct ebb_fake *__real_ebb_fake_create(const struct ebb_fake_config *cfg, struct ebb_sink sink);
struct ebb_fake *__wrap_ebb_fake_create(const struct ebb_fake_config *cfg, struct ebb_sink sink);
void __real_ebb_fake_run(struct ebb_fake *f, usec_t now);
void __wrap_ebb_fake_run(struct ebb_fake *f, usec_t now);
int __real_ebb_state_report(struct ebb_state *s, usec_t now, const struct ebb_fact *fact);
int __wrap_ebb_state_report(struct ebb_state *s, usec_t now, const struct ebb_fact *fact);

struct ebb_fake *__wrap_ebb_fake_create(const struct ebb_fake_config *cfg, struct ebb_sink sink)
{
	world = sink;
	return __real_ebb_fake_create(cfg, sink);
}

void __wrap_ebb_fake_run(struct ebb_fake *f, usec_t now)
{
	__real_ebb_fake_run(f, now);
	if (now >= REFUSED_AT && !is_refused)
		world.report(world.ctx, now, &refused);
}

int __wrap_ebb_state_report(struct ebb_state *s, usec_t now, const struct ebb_fact *fact)
{
	if (fact == &refused) {
		is_refused = true;
		return -EINVAL;
	}
	if (fact->type == EBB_FACT_HELLO) {
		/* Of the only VM. */
		memcpy(refused.uuid, fact->uuid, sizeof(refused.uuid));
		num_links += is_refused && fact->u.hello.is_first;
	}
	return __real_ebb_state_report(s, now, fact);
}

/* One VM, which wants one CPU, and later four. */
static int simulate(enum ebb_fact_type type, struct sim_result *ret)
{
	struct sim_options options = { .seed = 1, .num_slots = 1 };
	struct sim_vm vm = {
		.name = "vm",
		.sla = {
			.class = EBB_CLASS_SPOT, .priority = EBB_PRIORITY_DEFAULT, .weight = 100,
			.deadline_ms = 500, .io = { .weight = 100, .penalty = 1 },
			.mem_weight = 100, .mem_deadline_ms = 500, .num_nodes = 1,
			.nodes = { { .startup = 1, .reserved = 1, .max = 4 } },
		},
	};
	struct sim_event events[] = {
		{ .at = 0, .type = SIM_START },
		{ .at = 2 * REFUSED_AT, .type = SIM_WANT, .cpus = 4 },
	};
	const struct sim_trace trace = {
		.length = 4 * REFUSED_AT, .vms = &vm, .num_vms = 1, .events = events,
		.num_events = 2,
	};
	struct ebb_err err = { "" };

	refused = (struct ebb_fact){ .type = type };
	is_refused = false;
	num_links = 0;
	assert_int_equal(ebb_host_emulate(1, 8, 1, 1000, &options.host), 0);
	return sim_run(&trace, &options, &ebb_policy_fair, ret, &err);
}

static void test_each_type(void **state)
{
	(void)state;
	for (int i = 0; i < EBB_FACT_MAX; i++) {
		const bool goes_on = ebb_fact_is_from_link((enum ebb_fact_type)i);
		struct sim_result result;
		const int rc = simulate((enum ebb_fact_type)i, &result);

		assert_true(is_refused);
		if (rc != (goes_on ? 0 : -EINVAL))
			fail_msg("%s: the simulation ended with %d",
				 ebb_fact_name((enum ebb_fact_type)i), rc);
		if (rc < 0)
			continue;
		if (num_links != 1)
			fail_msg("%s: %u new links", ebb_fact_name((enum ebb_fact_type)i),
				 num_links);
		/* What it wants afterwards it gets: three CPUs more for half of the time. */
		assert_true(result.vms[0].held_s > 40 + 3 * 20 - 1);
		sim_result_finish(&result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
