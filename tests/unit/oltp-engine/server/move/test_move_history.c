// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What clients of two nodes saw while units went back and forth is strictly serializable, and the
 * checker finds it if it is not: if gates let in who has not all units, and if a node acknowledges
 * what is not on its disk.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "move_history.h"

#define BITS		3u
#define RUN_US		300000u
/* Broken, until it shows. */
#define ROUNDS_MAX	20u

static bool acknowledges_early;

int __real_oltp_durable_wait(struct oltp_engine *engine, uint64_t epoch);

int __wrap_oltp_durable_wait(struct oltp_engine *engine, uint64_t epoch)
{
	return acknowledges_early ? 0 : __real_oltp_durable_wait(engine, epoch);
}

/* Lets everybody in, wherever the unit is. */
static enum kv_gate enter_anyhow(void *ctx, struct kv_pins *pins)
{
	(void)ctx;
	pins->state = KV_GATE_IN;
	return KV_GATE_IN;
}

/* Waits for the first unit alone. */
static enum kv_gate enter_by_one(void *ctx, struct kv_pins *pins)
{
	if (pins->n)
		pins->n = 1;
	return move_gate_ops.enter(ctx, pins);
}

static bool pin(void *ctx, struct kv_pins *pins)
{
	return move_gate_ops.pin(ctx, pins);
}

static void leave(void *ctx, struct kv_pins *pins)
{
	if (pins->n_pinned || pins->state == KV_GATE_WAIT)
		move_gate_ops.leave(ctx, pins);
	pins->state = KV_GATE_OUT;
}

static bool is_whole(void *ctx)
{
	return move_gate_ops.is_whole(ctx);
}

static const struct kv_gate_ops open_gates = { enter_anyhow, pin, leave, is_whole };
static const struct kv_gate_ops one_gate = { enter_by_one, pin, leave, is_whole };

/* The target has got a key that it had put itself, behind an open gate, and has stopped. */
static bool finds_out(struct move_rig *rig)
{
	struct move_stats stats;

	do {
		usleep(1000);
		move_stats_read(rig->nodes[1].move, &stats);
	} while (stats.mode != UNITS_ALONE && !stats.error);
	return stats.error == -EEXIST;
}

/* Both run for a while, the target loses power if it shall; how many anomalies there are. */
static uint64_t run(const struct kv_gate_ops *gates, bool loses_power, uint32_t seed)
{
	struct move_history *history = calloc(1, sizeof(*history));
	struct move_rig rig;
	uint64_t n;

	assert_non_null(history);
	move_history_init(history);
	move_rig_init(&rig, BITS);
	rig.gates = gates;
	if (acknowledges_early)
		rig.nodes[1].group_interval_us = 20000;
	move_rig_open_both(&rig);
	move_history_begin(history, &rig, seed);
	usleep(RUN_US);
	if (loses_power)
		fault_disk_lose_power_at(rig.nodes[1].disk, 0);
	move_history_end(history);
	if (loses_power) {
		move_rig_close(&rig, 1, true);
		move_rig_open(&rig, 1);
		move_rig_connect(&rig);
	}
	move_leave(rig.nodes[0].move, false);
	if (gates && finds_out(&rig)) {
		n = 1;
	} else {
		move_rig_wait_mode(&rig, 1, UNITS_ALONE);
		n = move_history_check(history, &rig, 1, !gates && !acknowledges_early);
	}
	move_rig_close(&rig, 0, false);
	move_rig_close(&rig, 1, false);
	move_rig_finish(&rig);
	move_history_finish(history);
	free(history);
	return n;
}

static void test_serializable(void **state)
{
	(void)state;
	run(NULL, false, 1);
	run(NULL, true, 2);
}

static void expect_found(const struct kv_gate_ops *gates, bool loses_power)
{
	uint64_t n = 0;

	for (uint32_t seed = 1; !n && seed <= ROUNDS_MAX; seed++)
		n = run(gates, loses_power, seed);
	assert_true(n > 0);
}

static void test_open_gates_are_found(void **state)
{
	(void)state;
	expect_found(&open_gates, false);
}

static void test_one_gate_of_several_is_found(void **state)
{
	(void)state;
	expect_found(&one_gate, false);
}

static void test_early_acknowledgement_is_found(void **state)
{
	(void)state;
	acknowledges_early = true;
	expect_found(NULL, true);
	acknowledges_early = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_serializable),
		cmocka_unit_test(test_open_gates_are_found),
		cmocka_unit_test(test_one_gate_of_several_is_found),
		cmocka_unit_test(test_early_acknowledgement_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
