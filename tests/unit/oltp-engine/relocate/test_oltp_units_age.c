// SPDX-License-Identifier: GPL-2.0-or-later
/* Who gets a unit first, by age; and gates. test_oltp_units_model shows that it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/relocate/gate.h"
#include "oltp-engine/relocate/units.h"

#define N	2u

static const struct units_config config = {
	.n_units = N, .push_max = N, .hold_ns = 10, .repeat_ns = 100, .fence_ns = 1000,
};

static struct units_action action_list[UNITS_ACTIONS_MAX(N)];
static struct units_actions actions = { .room = UNITS_ACTIONS_MAX(N), .list = action_list };

/* The peer's incarnation is 9, this node's 4. */
struct rig {
	struct units units;
	struct unit list[N];
};

static void only(enum units_do what, uint32_t unit)
{
	assert_int_equal(actions.n, 1);
	assert_int_equal(action_list[0].what, what);
	assert_int_equal(action_list[0].unit, unit);
}

static void hear(struct rig *rig, enum units_kind kind, uint64_t gen, uint64_t birth, uint64_t now)
{
	const struct units_message message = {
		.from = 9, .to = 4, .gen = gen, .unit = 1, .kind = (uint8_t)kind, .birth = birth,
	};

	units_receive(&rig->units, &message, NULL, now, &actions);
}

/* Has all units by generation 1. */
static void start(struct rig *rig)
{
	const struct units_message hello = { .from = 9, .to = 4, .kind = UNITS_HELLO,
					     .flag = true };
	const struct units_entry none[N] = { { 0, UNITS_NOT } };

	memset(rig, 0, sizeof(*rig));
	for (uint32_t u = 0; u < N; u++)
		rig->list[u] = (struct unit){ .gen = 1, .is_mine = true };
	units_start(&rig->units, &config, rig->list, UNITS_WAS_ALONE, 4, 0, &actions);
	units_share(&rig->units, &actions);
	units_logged(&rig->units, UNITS_LOG_SHARED, 0, 0, true, 0, &actions);
	units_receive(&rig->units, &hello, none, 0, &actions);
	assert_true(rig->units.is_synced);
}

static void a_unit_is_kept_for_who_is_older(void **state)
{
	struct rig rig;

	(void)state;
	start(&rig);
	units_here(&rig.units, 1, 50, 0, &actions);
	hear(&rig, UNITS_ASK, 1, 51, 20);
	assert_int_equal(actions.n, 0);
	/* No time changes that. */
	assert_true(rig.list[1].due_ns == UINT64_MAX);
	units_tick(&rig.units, 500, &actions);
	assert_int_equal(rig.list[1].state, UNIT_OWNED);
	units_here(&rig.units, 1, 50, 500, &actions);
	assert_int_equal(actions.n, 0);
	/* It has run, and who waits now is younger. */
	units_here(&rig.units, 1, 60, 501, &actions);
	only(UNITS_DRAIN, 1);
	/* Another unit is another matter. */
	start(&rig);
	units_here(&rig.units, 0, 50, 0, &actions);
	hear(&rig, UNITS_ASK, 1, 51, 20);
	only(UNITS_DRAIN, 1);
	/* The peer's is older, at once or by and by. */
	start(&rig);
	units_here(&rig.units, 1, 50, 0, &actions);
	hear(&rig, UNITS_ASK, 1, 51, 20);
	assert_int_equal(actions.n, 0);
	hear(&rig, UNITS_ASK, 1, 49, 21);
	only(UNITS_DRAIN, 1);
}

static void a_node_that_closes_keeps_nothing(void **state)
{
	struct rig rig;

	(void)state;
	start(&rig);
	units_here(&rig.units, 1, 50, 0, &actions);
	units_close(&rig.units, 20, &actions);
	assert_int_equal(actions.n, N);
	assert_int_equal(rig.list[1].state, UNIT_DRAINING);
}

/* Unit 1 has gone, and is asked for by who was born at 50. */
static void go_and_ask(struct rig *rig)
{
	start(rig);
	hear(rig, UNITS_ASK, 1, 30, 20);
	units_drained(&rig->units, 1, 20, &actions);
	hear(rig, UNITS_GOT, 2, 0, 30);
	assert_int_equal(rig->list[1].state, UNIT_AWAY);
	units_here(&rig->units, 1, 50, 40, &actions);
	assert_int_equal(units_want(&rig->units, 1, 40, &actions), UNITS_WAIT);
	only(UNITS_SEND_ASK, 1);
	assert_int_equal(units_message(&rig->units, &action_list[0]).birth, 50);
}

static void who_is_older_is_asked_for_anew(void **state)
{
	struct rig rig;

	(void)state;
	go_and_ask(&rig);
	units_here(&rig.units, 1, 50, 41, &actions);
	assert_int_equal(units_want(&rig.units, 1, 41, &actions), UNITS_WAIT);
	assert_int_equal(actions.n, 0);
	units_here(&rig.units, 1, 45, 42, &actions);
	assert_int_equal(units_want(&rig.units, 1, 42, &actions), UNITS_WAIT);
	only(UNITS_SEND_ASK, 1);
	assert_int_equal(units_message(&rig.units, &action_list[0]).birth, 45);
}

static void nobody_is_asked_for(void **state)
{
	struct rig rig;

	(void)state;
	go_and_ask(&rig);
	units_tick(&rig.units, 140, &actions);
	assert_true(actions.n > 0);
	/* Its client has gone. */
	units_here(&rig.units, 1, 0, 200, &actions);
	rig.units.greet_ns = UINT64_MAX;
	units_tick(&rig.units, 300, &actions);
	assert_int_equal(actions.n, 0);
}

static void births_have_an_order(void **state)
{
	uint64_t first = gate_birth(0, false), second = gate_birth(0, true);

	(void)state;
	assert_true(first && second && first != second);
	assert_true(gate_is_older(first, second) != gate_is_older(second, first));
	assert_true(gate_is_older(second, gate_birth(1, false)));
	assert_true(gate_is_older(gate_birth(7, true), gate_birth(8, false)));
	assert_false(gate_is_older(first, first));
	assert_true(gate_is_older(first, 0));
	assert_false(gate_is_older(0, first));
	assert_false(gate_is_older(0, 0));
}

static void gates_let_in_and_count(void **state)
{
	struct gate gates[4] = { { 0, true }, { 0, true }, { 0, false }, { 0, true } };
	static const uint32_t units[] = { 0, 2, 3 };

	(void)state;
	assert_int_equal(gates_pin(gates, units, 3), 1);
	assert_int_equal(gates[0].pins, 0);
	gate_open(&gates[2]);
	assert_int_equal(gates_pin(gates, units, 3), 3);
	assert_int_equal(gates[0].pins, 1);
	assert_int_equal(gates[1].pins, 0);
	assert_false(gate_close(&gates[2]));
	assert_false(gate_pin(&gates[2]));
	assert_true(gate_unpin(&gates[2]));
	assert_false(gate_unpin(&gates[3]));
	assert_true(gate_close(&gates[3]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unit_is_kept_for_who_is_older),
		cmocka_unit_test(a_node_that_closes_keeps_nothing),
		cmocka_unit_test(who_is_older_is_asked_for_anew),
		cmocka_unit_test(nobody_is_asked_for),
		cmocka_unit_test(births_have_an_order),
		cmocka_unit_test(gates_let_in_and_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
