// SPDX-License-Identifier: GPL-2.0-or-later
/* Move costs, and how they are found from measured moves. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "place/place.h"
#include "util/random.h"

#define N	300u

static void measure(struct place_disruption *moves, double a, double b, double c, double noise)
{
	uint64_t random = 5;

	for (uint32_t i = 0; i < N; i++) {
		double cost;

		moves[i].disk = exp2(10 + 10 * ebb_random_unit(&random));
		moves[i].memory = exp2(8 + 8 * ebb_random_unit(&random));
		moves[i].is_active = ebb_random(&random) % 2;
		cost = a * log2(moves[i].disk) + b * log2(moves[i].memory) +
		       c * moves[i].is_active + noise * (ebb_random_unit(&random) - 0.5);
		moves[i].cost = cost > 0 ? exp2(cost) - 1 : 0;
	}
}

static void test_cost_is_the_formula(void **state)
{
	const struct place_move_cost cost = { .a = 2, .b = 3, .c = 50, .limit = { 40, 60 } };

	(void)state;
	assert_float_equal(place_move_cost(&cost, 1024, 256, false), 44, 1e-9);
	assert_float_equal(place_move_cost(&cost, 1024, 256, true), 94, 1e-9);
	/* A VM that has nothing yet costs nothing, and no less. */
	assert_float_equal(place_move_cost(&cost, 0, 0, false), 0, 1e-9);
	assert_float_equal(place_move_cost(&cost, 0.5, 1, true), 50, 1e-9);
	assert_int_equal(place_cost_bucket(&cost, 39.9), PLACE_COST_LOW);
	assert_int_equal(place_cost_bucket(&cost, 40), PLACE_COST_MEDIUM);
	assert_int_equal(place_cost_bucket(&cost, 60), PLACE_COST_HIGH);
}

static void test_calibration_finds_the_constants(void **state)
{
	struct place_disruption moves[N];
	struct place_move_cost cost;
	uint32_t in[PLACE_N_COSTS] = { 0 };
	double error;

	(void)state;
	measure(moves, 0.5, 0.2, 6, 0);
	assert_int_equal(place_calibrate(moves, N, &cost, &error), 0);
	assert_float_equal(cost.a, 0.5, 1e-6);
	assert_float_equal(cost.b, 0.2, 1e-6);
	assert_float_equal(cost.c, 6, 1e-6);
	assert_float_equal(error, 0, 1e-6);
	for (uint32_t i = 0; i < N; i++)
		in[place_cost_bucket(&cost, place_move_cost(&cost, moves[i].disk, moves[i].memory,
							    moves[i].is_active))]++;
	assert_int_equal(in[0], N / 3);
	assert_int_equal(in[1], N / 3);
	assert_int_equal(in[2], N / 3);
	assert_true(cost.weight[0] == 1 && cost.weight[1] > 1 && cost.weight[2] > cost.weight[1]);

	measure(moves, 0.5, 0.2, 6, 1);
	assert_int_equal(place_calibrate(moves, N, &cost, &error), 0);
	assert_float_equal(cost.a, 0.5, 0.025);
	assert_float_equal(cost.b, 0.2, 0.025);
	assert_float_equal(cost.c, 6, 0.15);
	/* That of numbers that are even over 1 is 1 / sqrt(12). */
	assert_float_equal(error, 0.29, 0.04);
}

/* A copy takes as long as the disk is large, and disturbs nobody while the VM is idle. */
static void test_calibration_tells_idle_vms_from_active_ones(void **state)
{
	struct place_disruption moves[N];
	struct place_move_cost cost;
	double error;

	(void)state;
	measure(moves, 0, 0, 0, 0);
	for (uint32_t i = 0; i < N; i++)
		moves[i].cost = moves[i].is_active ? 30 + moves[i].disk / 250 : 0;
	assert_int_equal(place_calibrate(moves, N, &cost, &error), 0);
	assert_true(cost.c > 0);
	/* The smallest that is active costs more than the largest that is not. */
	assert_true(place_move_cost(&cost, 1 << 10, 1 << 8, true) >
		    place_move_cost(&cost, 1 << 20, 1 << 16, false));
}

/* More memory cannot make a move cheaper, whatever noise says. */
static void test_calibration_has_no_negative_constants(void **state)
{
	struct place_disruption moves[N];
	struct place_move_cost cost;
	double error;

	(void)state;
	measure(moves, 1, -0.5, 6, 0);
	assert_int_equal(place_calibrate(moves, N, &cost, &error), 0);
	assert_true(cost.a > 0 && cost.b == 0 && cost.c > 0 && error > 0.1);
	/* Moves that cost nothing. */
	for (uint32_t i = 0; i < N; i++)
		moves[i].cost = 0;
	assert_int_equal(place_calibrate(moves, N, &cost, &error), 0);
	assert_true(cost.a == 0 && cost.b == 0 && cost.c == 0);
	assert_true(cost.weight[0] == 1 && cost.weight[1] == 1 && cost.weight[2] == 1);
}

static void test_calibration_refuses(void **state)
{
	struct place_move_cost cost = { .a = 7 };
	struct place_disruption moves[N];
	double error = 7;

	(void)state;
	measure(moves, 0.5, 0.5, 6, 0);
	assert_int_equal(place_calibrate(moves, 5, &cost, &error), -ENODATA);
	for (int i = 0; i < 4; i++) {
		double *at = i == 0 ? &moves[9].disk : i == 1 ? &moves[9].memory : &moves[9].cost;
		double kept = *at;

		*at = i == 3 ? NAN : -1;
		assert_int_equal(place_calibrate(moves, N, &cost, &error), -EINVAL);
		*at = kept;
	}
	assert_int_equal(place_calibrate(moves, N, &cost, &error), 0);
	/* Nobody was active: what that costs was not measured. */
	for (uint32_t i = 0; i < N; i++)
		moves[i].is_active = false;
	cost.a = error = 7;
	assert_int_equal(place_calibrate(moves, N, &cost, &error), -ENODATA);
	for (uint32_t i = 0; i < N; i++)
		moves[i] = moves[0];
	assert_int_equal(place_calibrate(moves, N, &cost, &error), -ENODATA);
	assert_true(cost.a == 7 && error == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost_is_the_formula),
		cmocka_unit_test(test_calibration_finds_the_constants),
		cmocka_unit_test(test_calibration_tells_idle_vms_from_active_ones),
		cmocka_unit_test(test_calibration_has_no_negative_constants),
		cmocka_unit_test(test_calibration_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
