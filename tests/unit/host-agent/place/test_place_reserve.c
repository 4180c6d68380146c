// SPDX-License-Identifier: GPL-2.0-or-later
/* Reserves: room for new VMs to grow into. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/host-agent/place/place_rig.h"

/* A reserve counts while a VM is placed; once it has a host, its use is known. */
static void test_reserves_of_vms_without_a_host(void **state)
{
	struct place_config config = plain_config();
	const struct place_host host = plain_host(1000, 1000, 1000);
	struct place_vm vms[] = { plain_vm(0, 1, 100, 0), plain_vm(1, 1, 200, 0) };
	struct place_refusal refusal;
	double load[PLACE_N_RESOURCES];

	(void)state;
	vms[0].reserve[PLACE_MEMORY] = 900;
	for (int i = 0; i < 3; i++) {
		struct place *p;
		bool is_kept = i == 0;

		vms[0].host = i == 1 ? 0 : -1;
		config.reserve_new = i != 2;
		p = plain_create(&config, NULL, &host, 1, vms, 2);
		/* Rules that do not know of giving way say what is in the way. */
		assert_int_equal(place_first_fit(p, &refusal), is_kept ? -EBUSY : 0);
		place_host_load(p, 0, load);
		assert_float_equal(load[PLACE_MEMORY], is_kept ? 900 : 300, 1e-9);
		if (is_kept) {
			assert_int_equal(refusal.vm, 1);
			assert_int_equal(refusal.constraint, PLACE_RESERVE);
			assert_int_equal(refusal.resource, PLACE_MEMORY);
			assert_string_equal(place_constraint_name(PLACE_RESERVE), "reserve");
		}
		place_destroy(p);
	}
}

/* Balance is by what is likely; only to who does not look ahead the reserve is that. */
static void test_a_reserve_is_not_likely(void **state)
{
	static const struct {
		float trace;
		bool look_ahead;
		double likely;
	} cases[] = { { 300, true, 300 }, { 50, true, 100 }, { 300, false, 900 } };
	const struct place_host hosts[] = { plain_host(1000, 1000, 1000),
					    plain_host(1000, 1000, 1000) };
	struct place_vm vm = plain_vm(0, 0, 100, 0);

	(void)state;
	vm.reserve[PLACE_MEMORY] = 900;
	for (uint32_t i = 0; i < 3; i++) {
		struct place_config config = place_config_default();
		struct hand hand = { 0 };
		struct place_traces *traces;
		struct place_score score;
		struct place *p;

		hand_add(&hand, 0, PLACE_PRIMARY, 2 * RIG_DAY, 0, 0, cases[i].trace, 0);
		traces = hand_traces(&hand, 1);
		config.look_ahead = cases[i].look_ahead;
		p = plain_create(&config, traces, hosts, 2, &vm, 1);
		assert_int_equal(place_put(p, 0, 0), 0);
		place_score(p, &score);
		assert_float_equal(score.deviation, cases[i].likely / 1000 / 2, 1e-6);
		place_destroy(p);
		place_traces_destroy(traces);
	}
}

static int new_or_anneal(struct place *p, uint32_t vm, bool is_new, struct place_refusal *refusal)
{
	const struct place_limit limit = { .seed = 1, .steps = 200 };

	return is_new ? place_new(p, vm, refusal) : place_anneal(p, &limit, NULL, refusal);
}

/* Of a VM placed before, and its own: a VM that fits without them is not refused. */
static void test_reserves_give_way(void **state)
{
	struct place_config config = plain_config();
	struct place_host hosts[] = { plain_host(1000, 1000, 1000), plain_host(1000, 1000, 1000) };
	struct place_vm vms[] = { plain_vm(0, 1, 100, 0), plain_vm(1, 1, 950, 0),
				  plain_vm(2, 1, 200, 0) };
	struct place_refusal refusal;
	struct place_reason reasons[2];

	(void)state;
	vms[1].host = 1;
	vms[1].may_move = false;
	for (int i = 0; i < 4; i++) {
		const bool is_new = i % 2, is_own = i / 2;
		struct place_score score;
		struct place *p;

		vms[0].host = is_own ? 0 : -1;
		vms[0].reserve[PLACE_MEMORY] = is_own ? 0 : 900;
		vms[2].reserve[PLACE_MEMORY] = is_own ? 950 : 0;
		p = plain_create(&config, NULL, hosts, 2, vms, 3);
		assert_int_equal(place_put(p, 0, 0), 0);
		assert_int_equal(new_or_anneal(p, 2, is_new, &refusal), 0);
		assert_int_equal(place_host_of(p, 2), 0);
		/* It is said, and nobody has to leave for it. */
		assert_int_equal(place_explain(p, 2, reasons), 0);
		assert_true(reasons[0].is_chosen);
		assert_int_equal(reasons[0].constraints, 1u << PLACE_RESERVE);
		assert_true(reasons[1].constraints & (1u << PLACE_CAPACITY));
		place_score(p, &score);
		assert_float_equal(score.excess, 0, 1e-9);
		place_destroy(p);
	}
	/* A VM that does not fit is refused, and not because of a reserve. */
	for (int i = 0; i < 2; i++) {
		struct place *p;

		vms[2].use[PLACE_MEMORY] = 901;
		p = plain_create(&config, NULL, hosts, 2, vms, 3);
		assert_int_equal(new_or_anneal(p, 2, i, &refusal), -EBUSY);
		assert_int_equal(refusal.constraint, PLACE_CAPACITY);
		assert_int_equal(refusal.hosts[PLACE_RESERVE], 0);
		place_destroy(p);
	}
}

/* A host that has room for the reserve comes before one that is better but for it. */
static void test_reserves_are_kept_where_they_can_be(void **state)
{
	struct place_config config = plain_config();
	struct place_host hosts[] = { plain_host(1000, 1000, 1000), plain_host(1000, 1000, 1000) };
	struct place_vm vms[] = { plain_vm(0, 100, 100, 0), plain_vm(1, 500, 500, 0),
				  plain_vm(2, 1, 200, 0) };
	struct place_refusal refusal;

	(void)state;
	vms[1].host = 1;
	for (int i = 0; i < 2; i++) {
		struct place *p;

		vms[0].reserve[PLACE_MEMORY] = i ? 900 : 0;
		p = plain_create(&config, NULL, hosts, 2, vms, 3);
		assert_int_equal(place_put(p, 0, 0), 0);
		assert_int_equal(place_new(p, 2, &refusal), 0);
		assert_int_equal(place_host_of(p, 2), i);
		place_destroy(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserves_of_vms_without_a_host),
		cmocka_unit_test(test_a_reserve_is_not_likely),
		cmocka_unit_test(test_reserves_give_way),
		cmocka_unit_test(test_reserves_are_kept_where_they_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
