// SPDX-License-Identifier: GPL-2.0-or-later
/* Gates: what a command that waits asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/server/move/gates.h"

#define UNITS	8u

static int setup(void **state)
{
	static struct gates gates;
	int fd = eventfd(0, EFD_NONBLOCK);

	*state = &gates;
	return fd < 0 || gates_init(&gates, UNITS, fd);
}

static int teardown(void **state)
{
	struct gates *gates = *state;

	close(gates->event_fd);
	gates_finish(gates);
	return 0;
}

/* All units that are not here are asked for at once, and each of them once. */
static void test_asks_for_all(void **state)
{
	uint32_t ours[] = { 1, 2, 4, 6 }, theirs[] = { 4, 5 }, at;
	struct kv_pins a = { .units = ours, .n = 4 }, b = { .units = theirs, .n = 2 };
	struct gates *gates = *state;
	uint64_t since_ns = 0, epoch;

	gates_open(gates, 1);
	gates_open(gates, 4);
	assert_int_equal(gates_enter(gates, &a), KV_GATE_WAIT);
	at = 0;
	assert_true(gates_wanted(gates, &at, &since_ns));
	assert_int_equal(at, 2);
	assert_true(since_ns > 0);
	assert_true(gates_wanted(gates, &at, &since_ns));
	assert_int_equal(at, 6);
	assert_false(gates_wanted(gates, &at, &since_ns));
	/* It keeps none of those that are here (G2), and needs one anew that goes meanwhile. */
	gates_close(gates, 1);
	gates_close(gates, 4);
	assert_true(gates_is_idle(gates, 1, &epoch));
	assert_true(gates_is_idle(gates, 4, &epoch));
	at = 0;
	assert_true(gates_wanted(gates, &at, &since_ns));
	assert_int_equal(at, 1);
	assert_true(gates_wanted(gates, &at, &since_ns));
	assert_int_equal(at, 4);
	assert_int_equal(gates_enter(gates, &b), KV_GATE_WAIT);
	gates_open(gates, 6);
	gates_open(gates, 2);
	gates_open(gates, 1);
	assert_int_equal(a.state, KV_GATE_WAIT);
	gates_open(gates, 4);
	assert_int_equal(a.state, KV_GATE_IN);
	assert_int_equal(b.state, KV_GATE_WAIT);
	gates_close(gates, 1);
	assert_false(gates_is_idle(gates, 1, &epoch));
	gates_leave(gates, &a);
	gates_leave(gates, &b);
	for (uint32_t u = 0; u < UNITS; u++)
		assert_true(gates_is_idle(gates, u, &epoch));
}

/* A command begins to wait for unit 2 while a scan has got to unit 5: the next scan finds it. */
static void test_wanted_meanwhile(void **state)
{
	uint32_t first[] = { 5 }, second[] = { 2 }, at = 0;
	struct kv_pins a = { .units = first, .n = 1 }, b = { .units = second, .n = 1 };
	struct gates *gates = *state;
	uint64_t since_ns;

	assert_int_equal(gates_enter(gates, &a), KV_GATE_WAIT);
	assert_true(gates_wanted(gates, &at, &since_ns));
	assert_int_equal(at, 5);
	assert_int_equal(gates_enter(gates, &b), KV_GATE_WAIT);
	assert_false(gates_wanted(gates, &at, &since_ns));
	at = 0;
	assert_true(gates_wanted(gates, &at, &since_ns));
	assert_int_equal(at, 2);
	assert_false(gates_wanted(gates, &at, &since_ns));
	gates_leave(gates, &a);
	gates_leave(gates, &b);
}

/* Who waits is born once, and the oldest counts: until it has got in. */
static void test_oldest(void **state)
{
	uint32_t ours[] = { 1, 2, 4 }, theirs[] = { 2, 5 }, at = 0;
	struct kv_pins a = { .units = ours, .n = 3 }, b = { .units = theirs, .n = 2 };
	struct gates *gates = *state;
	uint64_t since_ns, first;

	gates_open(gates, 1);
	assert_int_equal(gates_enter(gates, &a), KV_GATE_WAIT);
	first = a.birth;
	assert_true(first > 0);
	assert_int_equal(gates_oldest(gates, 1), first);
	assert_int_equal(gates_oldest(gates, 4), first);
	assert_int_equal(gates_oldest(gates, 5), 0);
	while (gates_wanted(gates, &at, &since_ns))
		;
	/* One that is older makes the unit be asked for again. */
	b.birth = first - 2;
	assert_int_equal(gates_enter(gates, &b), KV_GATE_WAIT);
	assert_int_equal(gates_oldest(gates, 2), first - 2);
	assert_int_equal(gates_oldest(gates, 4), first);
	at = 0;
	assert_true(gates_wanted(gates, &at, &since_ns));
	assert_int_equal(at, 2);
	assert_false(gates_take_ended(gates, false));
	gates_leave(gates, &b);
	assert_true(gates_take_ended(gates, false));
	assert_false(gates_take_ended(gates, false));
	assert_int_equal(gates_oldest(gates, 2), first);
	gates_open(gates, 2);
	gates_open(gates, 4);
	assert_int_equal(a.state, KV_GATE_IN);
	assert_int_equal(gates_oldest(gates, 2), 0);
	/* If it meets more, it is as old as it was. */
	gates_leave(gates, &a);
	gates_close(gates, 4);
	assert_int_equal(gates_enter(gates, &a), KV_GATE_WAIT);
	assert_int_equal(a.birth, first);
	gates_leave(gates, &a);
}

/* A node whose clock is ahead does not wait behind all that begin to wait on the other. */
static void test_clocks_differ(void **state)
{
	uint32_t units[] = { 1 };
	struct kv_pins a = { .units = units, .n = 1 };
	struct gates *gates = *state;
	const uint64_t hour = 2ull * 3600 * 1000000;
	uint64_t birth;

	assert_int_equal(gates_enter(gates, &a), KV_GATE_WAIT);
	birth = a.birth + hour;
	gates_leave(gates, &a);
	gates_heard(gates, birth);
	a.birth = 0;
	assert_int_equal(gates_enter(gates, &a), KV_GATE_WAIT);
	assert_true(a.birth > birth && a.birth < birth + hour);
	birth = a.birth;
	gates_leave(gates, &a);
	/* What was long ago changes nothing. */
	gates_heard(gates, birth - hour);
	a.birth = 0;
	assert_int_equal(gates_enter(gates, &a), KV_GATE_WAIT);
	assert_true(a.birth >= birth && a.birth < birth + hour);
	gates_leave(gates, &a);
}

/* A unit that nobody has written to for long need not be forced before it is given. */
static void test_epoch_of_unit(void **state)
{
	uint32_t both[] = { 1, 2 }, one[] = { 1 };
	struct kv_pins a = { .units = both, .n = 2 }, b = { .units = one, .n = 1 };
	struct gates *gates = *state;
	uint64_t epoch = 99;

	for (uint32_t u = 0; u < UNITS; u++)
		gates_open(gates, u);
	assert_int_equal(gates_enter(gates, &a), KV_GATE_IN);
	assert_int_equal(gates_enter(gates, &b), KV_GATE_IN);
	b.epoch = 8;
	gates_leave(gates, &b);
	assert_false(gates_is_idle(gates, 1, &epoch));
	a.epoch = 7;
	gates_leave(gates, &a);
	assert_true(gates_is_idle(gates, 1, &epoch));
	assert_int_equal(epoch, 8);
	assert_true(gates_is_idle(gates, 2, &epoch));
	assert_int_equal(epoch, 7);
	assert_true(gates_is_idle(gates, 3, &epoch));
	assert_int_equal(epoch, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_asks_for_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wanted_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_oldest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clocks_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(test_epoch_of_unit, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
