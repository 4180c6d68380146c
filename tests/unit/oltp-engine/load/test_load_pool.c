// SPDX-License-Identifier: GPL-2.0-or-later
/* The pool of the load generator: which connections serve, move and come back, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "oltp-engine/load/decide/pool.h"

#define OPEN_NS		1000u
#define ANSWER_NS	5000u

static const struct load_pool_bounds bounds = { OPEN_NS, ANSWER_NS };

static uint32_t open_all(struct load_pool *pool, uint64_t now_ns)
{
	uint32_t n = 0;
	int32_t i;

	for (; (i = load_pool_next(pool, now_ns)) >= 0; n++)
		load_pool_opened(pool, (uint32_t)i, now_ns);
	return n;
}

/* n connections, all idle on node 0 of n_nodes, opened at 0; what follows is from T on. */
static void start(struct load_pool *pool, uint32_t n, uint32_t n_nodes)
{
	assert_int_equal(load_pool_init(pool, n, n_nodes, &bounds), 0);
	assert_int_equal(load_pool_wake(pool), 0);
	assert_int_equal(open_all(pool, 0), n);
	assert_int_equal(load_pool_connected(pool, 0), n);
	assert_int_equal(load_pool_wake(pool), UINT64_MAX);
}

#define T	(10 * LOAD_POOL_PAUSE_NS)

static void test_all_serve_in_turn(void **state)
{
	struct load_pool pool;

	(void)state;
	start(&pool, 3, 1);
	for (int32_t i = 0; i < 9; i++) {
		assert_int_equal(load_pool_take(&pool, T), i % 3);
		load_pool_freed(&pool, (uint32_t)i % 3, T);
	}
	for (int32_t i = 0; i < 3; i++)
		assert_int_equal(load_pool_take(&pool, T), i);
	assert_int_equal(load_pool_take(&pool, T), -1);
	load_pool_freed(&pool, 1, T);
	assert_int_equal(load_pool_take(&pool, T), 1);
	load_pool_finish(&pool);
}

static void test_told_to_move_some(void **state)
{
	struct load_pool pool;

	(void)state;
	start(&pool, 10, 2);
	for (int32_t i = 0; i < 4; i++)
		load_pool_take(&pool, T);	/* 0 to 3 are busy */
	/* By name 2, which is busy, and two more, which are idle. */
	assert_true(load_pool_relocate(&pool, 2, 1, 3, T));
	assert_int_equal(pool.moves, 2);
	assert_int_equal(load_pool_connected(&pool, 0), 8);
	assert_int_equal(open_all(&pool, T), 2);
	assert_int_equal(load_pool_connected(&pool, 1), 2);
	/* Others that become idle stay, the one that was named goes. */
	load_pool_freed(&pool, 0, T);
	assert_int_equal(pool.moves, 2);
	load_pool_freed(&pool, 2, T);
	assert_int_equal(pool.moves, 3);
	assert_int_equal(pool.conns[2].state, LOAD_CONN_DOWN);
	assert_int_equal(open_all(&pool, T), 1);
	assert_int_equal(load_pool_connected(&pool, 1), 3);
	load_pool_freed(&pool, 1, T);
	load_pool_freed(&pool, 3, T);
	assert_int_equal(load_pool_connected(&pool, 0), 7);
	assert_int_equal(pool.moves, 3);
	load_pool_finish(&pool);
}

static void test_told_to_move_all(void **state)
{
	struct load_pool pool;

	(void)state;
	start(&pool, 6, 2);
	for (int32_t i = 0; i < 6; i++)
		load_pool_take(&pool, T);
	assert_true(load_pool_relocate(&pool, 0, 1, LOAD_POOL_ALL, T));
	assert_true(load_pool_relocate(&pool, 0, 1, LOAD_POOL_ALL, T));
	assert_int_equal(pool.moves, 0);
	for (uint32_t i = 0; i < 6; i++)
		load_pool_freed(&pool, i, T);
	assert_int_equal(open_all(&pool, T), 6);
	assert_int_equal(load_pool_connected(&pool, 1), 6);
	assert_int_equal(pool.moves, 6);
	/* Nothing is owed any more: those that come back later may stay. */
	assert_int_equal(pool.owed[0], 0);
	/* And back again, of which some are under way. */
	load_pool_take(&pool, T);
	assert_true(load_pool_relocate(&pool, 5, 0, LOAD_POOL_ALL, T));
	assert_int_equal(open_all(&pool, T), 5);
	load_pool_freed(&pool, 0, T);
	assert_int_equal(open_all(&pool, T), 1);
	assert_int_equal(load_pool_connected(&pool, 0), 6);
	load_pool_finish(&pool);
}

static void test_no_more_than_there_are(void **state)
{
	struct load_pool pool;

	(void)state;
	start(&pool, 3, 2);
	assert_false(load_pool_relocate(&pool, 0, 0, 1, T));
	for (int32_t i = 0; i < 3; i++)
		load_pool_take(&pool, T);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(load_pool_relocate(&pool, 0, 1, UINT32_MAX, T));
	for (uint32_t i = 0; i < 3; i++)
		load_pool_freed(&pool, i, T);
	assert_int_equal(open_all(&pool, T), 3);
	assert_int_equal(pool.moves, 3);
	assert_int_equal(pool.owed[0], 0);
	load_pool_finish(&pool);
}

/* The node that connections were to move to sends them back before all have left. */
static void test_told_to_stay(void **state)
{
	struct load_pool pool;

	(void)state;
	start(&pool, 4, 3);
	for (int32_t i = 0; i < 3; i++)
		load_pool_take(&pool, T);
	load_pool_relocate(&pool, 0, 2, LOAD_POOL_ALL, T);
	assert_int_equal(open_all(&pool, T), 1);		/* number 3 */
	load_pool_relocate(&pool, 3, 0, LOAD_POOL_ALL, T);
	assert_int_equal(open_all(&pool, T), 1);
	for (uint32_t i = 0; i < 3; i++)
		load_pool_freed(&pool, i, T);
	assert_int_equal(load_pool_connected(&pool, 0), 4);
	assert_int_equal(pool.moves, 2);
	/* Node 0 is no longer one that sends connections away: the next in the list. */
	load_pool_lost(&pool, 0, T);
	assert_int_equal(pool.conns[0].node, 1);
	load_pool_finish(&pool);
}

static void test_lost_ones_try_the_next_address(void **state)
{
	struct load_pool pool;
	uint64_t now = T;

	(void)state;
	start(&pool, 1, 3);
	load_pool_lost(&pool, 0, now);
	/* 1, 2 and 0 refuse: no pause in between, but one after all three. */
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(load_pool_next(&pool, now), 0);
		assert_int_equal(pool.conns[0].node, i % 3);
		load_pool_lost(&pool, 0, now);
	}
	assert_int_equal(load_pool_next(&pool, now), -1);
	assert_int_equal(load_pool_wake(&pool), now + LOAD_POOL_PAUSE_NS);
	now += LOAD_POOL_PAUSE_NS;
	assert_int_equal(load_pool_next(&pool, now), 0);
	assert_int_equal(pool.conns[0].node, 1);
	load_pool_opened(&pool, 0, now);
	/* Closed as soon as it was opened: not again at once. */
	load_pool_lost(&pool, 0, now + 1);
	assert_int_equal(load_pool_next(&pool, now + 1), -1);
	load_pool_finish(&pool);
}

static void test_lost_ones_follow_the_relocation(void **state)
{
	struct load_pool pool;

	(void)state;
	start(&pool, 3, 3);
	load_pool_relocate(&pool, 0, 2, 1, T);
	assert_int_equal(pool.conns[0].node, 2);
	/* Not node 1, which is next in the list: the source has said where the database goes. */
	load_pool_take(&pool, T);
	load_pool_lost(&pool, 1, T);
	assert_int_equal(pool.conns[1].node, 2);
	/* The target fails: the next in the list, which is the source, and there it stays. */
	assert_int_equal(load_pool_next(&pool, T), 0);
	load_pool_lost(&pool, 0, T);
	assert_int_equal(pool.conns[0].node, 0);
	assert_int_equal(load_pool_next(&pool, T), 0);
	load_pool_opened(&pool, 0, T);
	assert_int_equal(load_pool_connected(&pool, 0), 2);
	load_pool_finish(&pool);
}

/* All refuse: each is tried, though one of them says that the database is at another. */
static void test_lost_ones_try_every_address(void **state)
{
	static const uint32_t order[] = { 2, 0, 1, 2 };
	struct load_pool pool;

	(void)state;
	start(&pool, 2, 3);
	load_pool_relocate(&pool, 0, 2, 1, T);
	load_pool_lost(&pool, 1, T);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(pool.conns[1].node, order[i]);
		while (load_pool_next(&pool, T + i * LOAD_POOL_PAUSE_NS) >= 0)
			;
		load_pool_lost(&pool, 1, T + i * LOAD_POOL_PAUSE_NS);
	}
	load_pool_finish(&pool);
}

static void test_lost_ones_owe_nothing(void **state)
{
	struct load_pool pool;

	(void)state;
	start(&pool, 4, 2);
	for (int32_t i = 0; i < 4; i++)
		load_pool_take(&pool, T);
	load_pool_relocate(&pool, 0, 1, 2, T);
	/* Both that had to move are lost; they go there anyway, and no others do. */
	load_pool_lost(&pool, 0, T);
	load_pool_lost(&pool, 1, T);
	load_pool_freed(&pool, 2, T);
	load_pool_freed(&pool, 3, T);
	open_all(&pool, T);
	assert_int_equal(load_pool_connected(&pool, 0), 2);
	assert_int_equal(load_pool_connected(&pool, 1), 2);
	load_pool_finish(&pool);
}

static void test_overdue(void **state)
{
	struct load_pool pool;

	(void)state;
	assert_int_equal(load_pool_init(&pool, 2, 1, &bounds), 0);
	assert_int_equal(load_pool_next(&pool, 0), 0);
	assert_int_equal(load_pool_next(&pool, 10), 1);
	assert_int_equal(load_pool_overdue(&pool, OPEN_NS - 1), -1);
	assert_int_equal(load_pool_overdue(&pool, OPEN_NS), 0);
	load_pool_opened(&pool, 0, OPEN_NS);
	assert_int_equal(load_pool_overdue(&pool, OPEN_NS), -1);
	load_pool_opened(&pool, 1, OPEN_NS);
	assert_int_equal(load_pool_take(&pool, T), 0);
	assert_int_equal(load_pool_overdue(&pool, T + ANSWER_NS - 1), -1);
	assert_int_equal(load_pool_overdue(&pool, T + ANSWER_NS), 0);
	load_pool_lost(&pool, 0, T + ANSWER_NS);
	assert_int_equal(load_pool_overdue(&pool, UINT64_MAX), -1);
	load_pool_finish(&pool);
}

/* Whatever happens in whatever order, the lists and sums agree with the states. */
static void test_anything(void **state)
{
	struct load_pool pool;

	(void)state;
	srand(1);
	start(&pool, 8, 3);
	for (uint64_t step = 0; step < 200000; step++) {
		uint64_t now = T + step * 1000;
		uint32_t conn = (uint32_t)rand() % 8, idle = 0, down = 0, live[3] = { 0 };
		enum load_conn_state was = pool.conns[conn].state;

		switch (rand() % 6) {
		case 0:
			load_pool_next(&pool, now);
			break;
		case 1:
			load_pool_take(&pool, now);
			break;
		case 2:
			if (was == LOAD_CONN_OPENING)
				load_pool_opened(&pool, conn, now);
			break;
		case 3:
			if (was == LOAD_CONN_BUSY)
				load_pool_freed(&pool, conn, now);
			break;
		case 4:
			if (was != LOAD_CONN_DOWN)
				load_pool_lost(&pool, conn, now);
			break;
		default:
			if (was == LOAD_CONN_IDLE || was == LOAD_CONN_BUSY)
				load_pool_relocate(&pool, conn, (uint32_t)rand() % 3,
						   (uint32_t)rand() % 4, now);
		}
		for (uint32_t i = 0; i < 8; i++) {
			idle += pool.conns[i].state == LOAD_CONN_IDLE;
			down += pool.conns[i].state == LOAD_CONN_DOWN;
			assert_true(pool.conns[i].node < 3);
			live[pool.conns[i].node] += pool.conns[i].state != LOAD_CONN_DOWN &&
						    !pool.conns[i].must_move;
			assert_true(!pool.conns[i].must_move ||
				    (pool.conns[i].state == LOAD_CONN_BUSY &&
				     pool.moved_to[pool.conns[i].node] >= 0));
		}
		for (uint32_t i = 0; i < 3; i++)
			assert_true(pool.owed[i] <= live[i]);
		assert_int_equal(pool.n_down, down);
		for (int32_t i = pool.first_idle; i >= 0; i = pool.conns[i].behind) {
			assert_int_equal(pool.conns[i].state, LOAD_CONN_IDLE);
			/* One that owes a move is never left idle. */
			assert_int_equal(pool.owed[pool.conns[i].node], 0);
			idle--;
		}
		assert_int_equal(idle, 0);
	}
	load_pool_finish(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_serve_in_turn),
		cmocka_unit_test(test_told_to_move_some),
		cmocka_unit_test(test_told_to_move_all),
		cmocka_unit_test(test_no_more_than_there_are),
		cmocka_unit_test(test_told_to_stay),
		cmocka_unit_test(test_lost_ones_try_the_next_address),
		cmocka_unit_test(test_lost_ones_follow_the_relocation),
		cmocka_unit_test(test_lost_ones_try_every_address),
		cmocka_unit_test(test_lost_ones_owe_nothing),
		cmocka_unit_test(test_overdue),
		cmocka_unit_test(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
