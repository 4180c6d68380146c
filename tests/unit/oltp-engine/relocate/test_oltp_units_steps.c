// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Single steps of the hand-over of units; test_oltp_units_model has all orders of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/relocate/units.h"

#define N	5u

static const struct units_config source_config = {
	.n_units = N, .push_max = 2, .hold_ns = 10, .repeat_ns = 100, .fence_ns = 1000,
};
static const struct units_config target_config = {
	.n_units = N, .push_max = 2, .is_target = true, .hold_ns = 10, .repeat_ns = 100,
	.fence_ns = 1000,
};

static struct units_action action_list[UNITS_ACTIONS_MAX(N)];
static struct units_actions actions = { .room = UNITS_ACTIONS_MAX(N), .list = action_list };

/* The peer's incarnation is 9, this node's 4. */
struct rig {
	struct units units;
	struct unit list[N];
};

static void has(uint32_t at, enum units_do what, uint32_t unit, uint64_t gen)
{
	assert_true(at < actions.n);
	assert_int_equal(action_list[at].what, what);
	assert_int_equal(action_list[at].unit, unit);
	assert_int_equal(action_list[at].gen, gen);
}

static void only(enum units_do what, uint32_t unit, uint64_t gen)
{
	assert_int_equal(actions.n, 1);
	has(0, what, unit, gen);
}

static void hear(struct rig *rig, enum units_kind kind, uint32_t unit, uint64_t gen, uint64_t now)
{
	const struct units_message message = {
		.from = 9, .to = 4, .gen = gen, .unit = unit, .kind = (uint8_t)kind,
	};

	units_receive(&rig->units, &message, NULL, now, &actions);
}

static void greet(struct rig *rig, uint64_t from, uint64_t to, bool flag, uint8_t holds,
		  uint64_t gen)
{
	const struct units_message message = {
		.from = from, .to = to, .kind = UNITS_HELLO, .flag = flag,
	};
	struct units_entry table[N];

	for (uint32_t u = 0; u < N; u++)
		table[u] = (struct units_entry){ gen, holds };
	units_receive(&rig->units, &message, table, 0, &actions);
}

/* Shares, knows the peer, and has all units by generation 1. */
static void start_source(struct rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	for (uint32_t u = 0; u < N; u++)
		rig->list[u] = (struct unit){ .gen = 1, .is_mine = true };
	units_start(&rig->units, &source_config, rig->list, UNITS_WAS_ALONE, 4, 0, &actions);
	assert_int_equal(actions.n, N);
	has(4, UNITS_OPEN, 4, 1);
	units_share(&rig->units, &actions);
	only(UNITS_LOG_SHARED, 0, 0);
	units_logged(&rig->units, UNITS_LOG_SHARED, 0, 0, true, 0, &actions);
	greet(rig, 9, 4, true, UNITS_NOT, 0);
	assert_true(rig->units.is_synced);
	assert_int_equal(actions.n, 0);
}

/* Knows the peer, which has all units by generation 1. */
static void start_target(struct rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	units_start(&rig->units, &target_config, rig->list, UNITS_WAS_SHARED, 4, 0, &actions);
	assert_int_equal(actions.n, 0);
	greet(rig, 9, 4, true, UNITS_MINE, 1);
}

/* Unit 3 is given by generation 2, and GOT is missing. */
static void give_three(struct rig *rig)
{
	start_source(rig);
	hear(rig, UNITS_ASK, 3, 1, 50);
	only(UNITS_DRAIN, 3, 1);
	units_drained(&rig->units, 3, 60, &actions);
	only(UNITS_SEND_GIVE, 3, 2);
}

static void a_unit_goes_and_comes_back(void **state)
{
	struct rig rig;

	(void)state;
	give_three(&rig);
	assert_int_equal(units_want(&rig.units, 3, 70, &actions), UNITS_WAIT);
	assert_int_equal(actions.n, 0);
	hear(&rig, UNITS_GOT, 3, 2, 80);
	assert_int_equal(actions.n, 3);
	has(0, UNITS_DROP, 3, 2);
	has(1, UNITS_LOG_GAVE, 3, 2);
	has(2, UNITS_SEND_ASK, 3, 2);
	hear(&rig, UNITS_GIVE, 3, 3, 90);
	only(UNITS_LOG_TAKEN, 3, 3);
	assert_int_equal(units_want(&rig.units, 3, 91, &actions), UNITS_WAIT);
	units_logged(&rig.units, UNITS_LOG_TAKEN, 3, 3, true, 100, &actions);
	assert_int_equal(actions.n, 2);
	has(0, UNITS_SEND_GOT, 3, 3);
	has(1, UNITS_OPEN, 3, 3);
	assert_int_equal(units_want(&rig.units, 3, 101, &actions), UNITS_GO);
	assert_int_equal(rig.units.stats.given, 1);
	assert_int_equal(rig.units.stats.taken, 1);
	assert_int_equal(rig.units.stats.taken_back, 1);
}

static void what_came_stays_for_a_while(void **state)
{
	struct rig rig;

	(void)state;
	start_target(&rig);
	hear(&rig, UNITS_GIVE, 2, 2, 0);
	units_logged(&rig.units, UNITS_LOG_TAKEN, 2, 2, true, 100, &actions);
	assert_int_equal(rig.units.stats.taken_back, 0);
	hear(&rig, UNITS_ASK, 2, 2, 109);
	assert_int_equal(actions.n, 0);
	assert_int_equal(units_next_ns(&rig.units), 110);
	units_tick(&rig.units, 110, &actions);
	only(UNITS_DRAIN, 2, 2);
	/* One that has been there for long goes at once. */
	start_source(&rig);
	hear(&rig, UNITS_ASK, 2, 1, 0);
	only(UNITS_DRAIN, 2, 1);
}

static void what_is_not_answered_is_repeated(void **state)
{
	struct rig rig;

	(void)state;
	give_three(&rig);
	assert_int_equal(units_next_ns(&rig.units), 160);
	units_tick(&rig.units, 159, &actions);
	assert_int_equal(actions.n, 0);
	units_tick(&rig.units, 160, &actions);
	only(UNITS_SEND_GIVE, 3, 2);
	assert_int_equal(units_next_ns(&rig.units), 260);
	start_target(&rig);
	units_tick(&rig.units, 0, &actions);
	assert_int_equal(units_want(&rig.units, 1, 7, &actions), UNITS_WAIT);
	only(UNITS_SEND_ASK, 1, 1);
	/* Others that want it do not ask again. */
	assert_int_equal(units_want(&rig.units, 1, 8, &actions), UNITS_WAIT);
	assert_int_equal(actions.n, 0);
	assert_int_equal(units_next_ns(&rig.units), 107);
	units_tick(&rig.units, 107, &actions);
	only(UNITS_SEND_ASK, 1, 1);
}

static void old_messages_change_nothing(void **state)
{
	static const struct units_message others[] = {
		{ .from = 8, .to = 4, .gen = 2, .unit = 3, .kind = UNITS_GOT },
		{ .from = 9, .to = 3, .gen = 2, .unit = 3, .kind = UNITS_GOT },
		{ .from = 9, .to = 4, .gen = 1, .unit = 3, .kind = UNITS_GOT },
		{ .from = 9, .to = 4, .gen = 3, .unit = 3, .kind = UNITS_REFUSE },
		{ .from = 9, .to = 4, .gen = 1, .unit = 3, .kind = UNITS_ASK },
		{ .from = 9, .to = 4, .gen = 2, .unit = 3, .kind = UNITS_GIVE },
		{ .from = 9, .to = 4, .gen = 2, .unit = N, .kind = UNITS_GOT },
		{ .from = 9, .to = 4, .gen = 2, .unit = 3, .kind = 99 },
		{ .from = 9, .to = 4, .kind = UNITS_BYE_GOT },
	};
	struct rig rig;

	(void)state;
	give_three(&rig);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		units_receive(&rig.units, &others[i], NULL, 70, &actions);
		assert_int_equal(actions.n, 0);
	}
	assert_int_equal(rig.list[3].state, UNIT_GIVING);
	hear(&rig, UNITS_ASK, 1, 7, 70);
	assert_int_equal(actions.n, 0);
	hear(&rig, UNITS_GOT, 3, 2, 80);
	hear(&rig, UNITS_GOT, 3, 2, 80);
	assert_int_equal(actions.n, 0);
	/* Generations that are gone are refused, one that is here is confirmed. */
	hear(&rig, UNITS_GIVE, 3, 2, 80);
	only(UNITS_SEND_REFUSE, 3, 2);
	start_target(&rig);
	hear(&rig, UNITS_GIVE, 2, 2, 0);
	hear(&rig, UNITS_GIVE, 2, 2, 0);
	assert_int_equal(actions.n, 0);
	units_logged(&rig.units, UNITS_LOG_TAKEN, 2, 2, true, 100, &actions);
	hear(&rig, UNITS_GIVE, 2, 2, 0);
	only(UNITS_SEND_GOT, 2, 2);
}

static void a_full_node_refuses_and_asks_later(void **state)
{
	struct rig rig;

	(void)state;
	start_target(&rig);
	units_full(&rig.units, true, 0, &actions);
	assert_int_equal(units_want(&rig.units, 1, 0, &actions), UNITS_WAIT);
	assert_int_equal(actions.n, 0);
	hear(&rig, UNITS_GIVE, 2, 2, 0);
	only(UNITS_SEND_REFUSE, 2, 2);
	units_full(&rig.units, false, 0, &actions);
	only(UNITS_SEND_ASK, 1, 1);
	/* U4: refused once is refused for ever, and the peer is told so if it asks. */
	hear(&rig, UNITS_GIVE, 2, 2, 0);
	only(UNITS_SEND_REFUSE, 2, 2);
	assert_int_equal(units_entry(&rig.units, 2).gen, 2);
	assert_int_equal(units_entry(&rig.units, 2).holds, UNITS_NOT);
	/* What it asks for is the generation that the peer has. */
	assert_int_equal(units_want(&rig.units, 2, 0, &actions), UNITS_WAIT);
	only(UNITS_SEND_ASK, 2, 1);
	hear(&rig, UNITS_GIVE, 2, 3, 0);
	only(UNITS_LOG_TAKEN, 2, 3);
}

static void what_is_spoilt_is_refused(void **state)
{
	struct rig rig;

	(void)state;
	start_target(&rig);
	assert_int_equal(units_want(&rig.units, 2, 0, &actions), UNITS_WAIT);
	only(UNITS_SEND_ASK, 2, 1);
	units_spoil(&rig.units, 2, 2);
	hear(&rig, UNITS_GIVE, 2, 2, 0);
	only(UNITS_SEND_REFUSE, 2, 2);
	hear(&rig, UNITS_GIVE, 2, 3, 0);
	only(UNITS_LOG_TAKEN, 2, 3);
	/* Not any more: it is on its way to the disk. */
	units_spoil(&rig.units, 2, 9);
	assert_int_equal(units_entry(&rig.units, 2).holds, UNITS_TAKES);
	units_logged(&rig.units, UNITS_LOG_TAKEN, 2, 3, true, 0, &actions);
	has(1, UNITS_OPEN, 2, 3);
	assert_int_equal(rig.list[2].offer, 2);
}

static void who_is_refused_goes_on(void **state)
{
	struct rig rig;

	(void)state;
	give_three(&rig);
	hear(&rig, UNITS_REFUSE, 3, 2, 80);
	only(UNITS_OPEN, 3, 1);
	assert_int_equal(rig.units.stats.refused, 1);
	/* Asked again it takes a new number, and its time. */
	hear(&rig, UNITS_ASK, 3, 1, 90);
	assert_int_equal(actions.n, 0);
	units_tick(&rig.units, 180, &actions);
	only(UNITS_DRAIN, 3, 1);
	units_drained(&rig.units, 3, 190, &actions);
	only(UNITS_SEND_GIVE, 3, 3);
}

static void closing_gives_a_few_at_a_time(void **state)
{
	struct rig rig;

	(void)state;
	start_source(&rig);
	units_close(&rig.units, 50, &actions);
	assert_int_equal(actions.n, 2);
	has(0, UNITS_DRAIN, 0, 1);
	has(1, UNITS_DRAIN, 1, 1);
	/* One that is asked for does not wait for its turn. */
	hear(&rig, UNITS_ASK, 4, 1, 50);
	only(UNITS_DRAIN, 4, 1);
	assert_int_equal(units_want(&rig.units, 0, 50, &actions), UNITS_GONE);
	assert_int_equal(units_want(&rig.units, 3, 50, &actions), UNITS_GO);
	for (uint32_t u = 0; u < N; u++) {
		struct units_message give;

		units_drained(&rig.units, u, 60, &actions);
		only(UNITS_SEND_GIVE, u, 2);
		give = units_message(&rig.units, &action_list[0]);
		assert_true(give.flag && give.kind == UNITS_GIVE && give.from == 4 && give.to == 9);
		hear(&rig, UNITS_GOT, u, 2, 60);
	}
	assert_int_equal(actions.n, 3);
	has(2, UNITS_LOG_CLOSED, 0, 0);
	hear(&rig, UNITS_GIVE, 1, 3, 60);
	only(UNITS_SEND_REFUSE, 1, 3);
	units_logged(&rig.units, UNITS_LOG_CLOSED, 0, 0, true, 70, &actions);
	for (uint64_t now = 70; now <= 270; now += 100) {
		assert_int_equal(units_next_ns(&rig.units), now);
		units_tick(&rig.units, now, &actions);
		only(UNITS_SEND_BYE, 0, 0);
	}
	hear(&rig, UNITS_BYE_GOT, 0, 0, 280);
	only(UNITS_OVER, 0, 0);
	units_tick(&rig.units, 1000, &actions);
	assert_int_equal(actions.n, 0);
	assert_int_equal(units_next_ns(&rig.units), UINT64_MAX);
}

static void closing_fails_those_who_wait(void **state)
{
	struct rig rig;

	(void)state;
	start_target(&rig);
	units_want(&rig.units, 1, 0, &actions);
	hear(&rig, UNITS_GIVE, 2, 2, 0);
	units_want(&rig.units, 2, 0, &actions);
	units_close(&rig.units, 0, &actions);
	/* Unit 2 is on its way to disk: they still run on it. */
	only(UNITS_FAIL, 1, 0);
	assert_int_equal(units_want(&rig.units, 0, 0, &actions), UNITS_GONE);
	units_logged(&rig.units, UNITS_LOG_TAKEN, 2, 2, true, 5, &actions);
	has(1, UNITS_OPEN, 2, 2);
	assert_int_equal(units_next_ns(&rig.units), 15);
	units_tick(&rig.units, 15, &actions);
	only(UNITS_DRAIN, 2, 2);
}

/* What is on its way gets there; what was only to be given is not. */
static void closing_is_taken_back(void **state)
{
	struct rig rig;

	(void)state;
	start_source(&rig);
	units_close(&rig.units, 50, &actions);
	units_drained(&rig.units, 0, 60, &actions);
	only(UNITS_SEND_GIVE, 0, 2);
	units_stay(&rig.units, &actions);
	assert_int_equal(actions.n, 0);
	units_drained(&rig.units, 1, 60, &actions);
	only(UNITS_OPEN, 1, 1);
	hear(&rig, UNITS_GOT, 0, 2, 60);
	assert_int_equal(actions.n, 2);
	units_tick(&rig.units, 60, &actions);
	assert_int_equal(actions.n, 0);
	/* It takes units again. */
	assert_int_equal(units_want(&rig.units, 0, 70, &actions), UNITS_WAIT);
	only(UNITS_SEND_ASK, 0, 2);
	hear(&rig, UNITS_GIVE, 0, 3, 80);
	only(UNITS_LOG_TAKEN, 0, 3);
	/* Who has given all cannot stay. */
	start_source(&rig);
	units_close(&rig.units, 50, &actions);
	for (uint32_t u = 0; u < N; u++) {
		units_drained(&rig.units, u, 60, &actions);
		hear(&rig, UNITS_GOT, u, 2, 60);
	}
	units_stay(&rig.units, &actions);
	assert_true(rig.units.is_closing);
	assert_int_equal(units_want(&rig.units, 0, 70, &actions), UNITS_GONE);
}

static void the_sources_wish_counts(void **state)
{
	struct units_message give = {
		.from = 9, .to = 4, .gen = 2, .unit = 0, .kind = UNITS_GIVE, .flag = true,
	};
	struct rig rig;

	(void)state;
	start_target(&rig);
	hear(&rig, UNITS_GIVE, 1, 2, 0);
	units_logged(&rig.units, UNITS_LOG_TAKEN, 1, 2, true, 0, &actions);
	units_close(&rig.units, 0, &actions);
	units_receive(&rig.units, &give, NULL, 0, &actions);
	only(UNITS_LOG_TAKEN, 0, 2);
	assert_false(rig.units.is_closing);
	start_source(&rig);
	hear(&rig, UNITS_ASK, 0, 1, 50);
	units_drained(&rig.units, 0, 50, &actions);
	hear(&rig, UNITS_GOT, 0, 2, 50);
	units_close(&rig.units, 50, &actions);
	give.gen = 3;
	units_receive(&rig.units, &give, NULL, 50, &actions);
	only(UNITS_SEND_REFUSE, 0, 3);
	assert_true(rig.units.is_closing);
}

static void bye_leaves_all_here(void **state)
{
	struct rig rig;

	(void)state;
	start_target(&rig);
	for (uint32_t u = 0; u < N; u++) {
		hear(&rig, UNITS_GIVE, u, 2 + u, 0);
		units_logged(&rig.units, UNITS_LOG_TAKEN, u, 2 + u, true, 0, &actions);
	}
	/* What it was giving back will not be taken. */
	hear(&rig, UNITS_ASK, 1, 3, 10);
	units_drained(&rig.units, 1, 10, &actions);
	only(UNITS_SEND_GIVE, 1, 4);
	hear(&rig, UNITS_BYE, 0, 0, 10);
	only(UNITS_LOG_ALONE, 0, 7);
	hear(&rig, UNITS_BYE, 0, 0, 11);
	assert_int_equal(actions.n, 0);
	units_logged(&rig.units, UNITS_LOG_ALONE, 0, 7, true, 12, &actions);
	assert_int_equal(actions.n, 2);
	has(0, UNITS_OPEN, 1, 7);
	has(1, UNITS_SEND_BYE_GOT, 0, 0);
	assert_int_equal(rig.units.mode, UNITS_ALONE);
	assert_int_equal(rig.list[0].gen, 7);
	hear(&rig, UNITS_BYE, 0, 0, 13);
	only(UNITS_SEND_BYE_GOT, 0, 0);
	assert_int_equal(units_next_ns(&rig.units), UINT64_MAX);
	/* The next relocation is with somebody else, who has started less often. */
	units_share(&rig.units, &actions);
	only(UNITS_LOG_SHARED, 0, 0);
	greet(&rig, 1, 4, true, UNITS_NOT, 0);
	assert_false(rig.units.is_synced);
	units_logged(&rig.units, UNITS_LOG_SHARED, 0, 0, true, 20, &actions);
	greet(&rig, 1, 4, true, UNITS_NOT, 0);
	assert_true(rig.units.is_synced && rig.units.peer == 1);
}

/* A peer that says what cannot be, or a log that failed: only a restart helps. */
static void what_cannot_be_stops_the_node(void **state)
{
	struct rig rig;

	(void)state;
	start_target(&rig);
	hear(&rig, UNITS_BYE, 0, 0, 10);
	only(UNITS_STOP, 0, 0);
	assert_int_equal(units_want(&rig.units, 0, 0, &actions), UNITS_GONE);
	assert_int_equal(units_next_ns(&rig.units), UINT64_MAX);
	hear(&rig, UNITS_GIVE, 0, 2, 0);
	assert_int_equal(actions.n, 0);
	start_target(&rig);
	hear(&rig, UNITS_GIVE, 0, 2, 0);
	units_logged(&rig.units, UNITS_LOG_TAKEN, 0, 2, false, 0, &actions);
	only(UNITS_STOP, 0, 0);
	/* Neither has them. */
	memset(&rig, 0, sizeof(rig));
	units_start(&rig.units, &target_config, rig.list, UNITS_WAS_SHARED, 4, 0, &actions);
	greet(&rig, 9, 4, true, UNITS_NOT, 0);
	only(UNITS_STOP, 0, 0);
	/* The peer took over. */
	start_source(&rig);
	greet(&rig, 10, 4, true, UNITS_MINE, 5);
	has(actions.n - 1, UNITS_STOP, 0, 0);
	start_source(&rig);
	units_stop(&rig.units, &actions);
	only(UNITS_STOP, 0, 0);
	units_stop(&rig.units, &actions);
	assert_int_equal(actions.n, 0);
}

static void a_lost_peer_is_fenced(void **state)
{
	struct units_entry table[N] = { { 0, UNITS_NOT }, { 0, UNITS_NOT }, { 0, UNITS_NOT },
					{ 2, UNITS_MINE }, { 0, UNITS_NOT } };
	struct rig rig;

	(void)state;
	give_three(&rig);
	units_peer_lost(&rig.units, 500);
	units_peer_lost(&rig.units, 600);
	assert_int_equal(units_want(&rig.units, 3, 0, &actions), UNITS_WAIT);
	units_tick(&rig.units, 1499, &actions);
	only(UNITS_SEND_GIVE, 3, 2);
	/* Heard of again. */
	hear(&rig, UNITS_ASK, 3, 1, 1499);
	units_tick(&rig.units, 1500, &actions);
	assert_int_equal(actions.n, 0);
	units_peer_lost(&rig.units, 1500);
	for (uint64_t now = 2500; now < 5000; now += 1000) {
		units_tick(&rig.units, now, &actions);
		assert_true(actions.n);
		has(0, UNITS_FENCE, 0, 0);
	}
	/* It had got unit 3. */
	units_peer_fenced(&rig.units, table, &actions);
	assert_int_equal(actions.n, 2);
	has(0, UNITS_RECOVER, 3, 2);
	has(1, UNITS_LOG_ALONE, 0, 3);
	assert_int_equal(units_want(&rig.units, 3, 0, &actions), UNITS_WAIT);
	assert_int_equal(units_want(&rig.units, 2, 0, &actions), UNITS_GO);
	/* Once is enough. */
	assert_int_equal(units_next_ns(&rig.units), UINT64_MAX);
	units_tick(&rig.units, 9000, &actions);
	assert_int_equal(actions.n, 0);
	units_logged(&rig.units, UNITS_LOG_ALONE, 0, 3, true, 5000, &actions);
	only(UNITS_OPEN, 3, 3);
	/* Or it had not. */
	give_three(&rig);
	table[3] = (struct units_entry){ 0, UNITS_NOT };
	units_peer_fenced(&rig.units, table, &actions);
	only(UNITS_LOG_ALONE, 0, 3);
}

/* What was being taken is the peer's no more, whatever happens to it; it opens with the rest. */
static void fenced_while_a_unit_was_on_its_way(void **state)
{
	static const struct units_entry table[N] = { { 1, UNITS_MINE }, { 1, UNITS_MINE },
						     { 1, UNITS_MINE }, { 1, UNITS_MINE },
						     { 1, UNITS_MINE } };
	struct rig rig;

	(void)state;
	start_target(&rig);
	hear(&rig, UNITS_GIVE, 2, 2, 0);
	units_peer_fenced(&rig.units, table, &actions);
	assert_int_equal(actions.n, N);
	has(2, UNITS_RECOVER, 3, 1);
	has(4, UNITS_LOG_ALONE, 0, 3);
	units_logged(&rig.units, UNITS_LOG_TAKEN, 2, 2, true, 10, &actions);
	assert_int_equal(actions.n, 0);
	units_logged(&rig.units, UNITS_LOG_ALONE, 0, 3, true, 10, &actions);
	assert_int_equal(actions.n, N);
	has(2, UNITS_OPEN, 2, 3);
}

/* It would take a database away that works. */
static void who_has_nothing_fences_nobody(void **state)
{
	struct rig rig;

	(void)state;
	start_target(&rig);
	units_tick(&rig.units, 0, &actions);
	units_peer_lost(&rig.units, 0);
	units_tick(&rig.units, 1000, &actions);
	assert_int_equal(actions.n, 0);
	hear(&rig, UNITS_GIVE, 0, 2, 1001);
	units_logged(&rig.units, UNITS_LOG_TAKEN, 0, 2, true, 1001, &actions);
	units_peer_lost(&rig.units, 1001);
	units_tick(&rig.units, 2001, &actions);
	only(UNITS_FENCE, 0, 0);
}

static void greetings_are_repeated_and_answered(void **state)
{
	struct rig rig;
	struct units_message hello;

	(void)state;
	memset(&rig, 0, sizeof(rig));
	units_start(&rig.units, &target_config, rig.list, UNITS_WAS_SHARED, 4, 50, &actions);
	for (uint64_t now = 50; now < 300; now += 100) {
		assert_int_equal(units_next_ns(&rig.units), now);
		units_tick(&rig.units, now, &actions);
		only(UNITS_SEND_HELLO, 0, 0);
		hello = units_message(&rig.units, &action_list[0]);
		assert_true(hello.from == 4 && hello.to == 0 && !hello.flag);
	}
	/* To an earlier life, or to nobody: no table counts, and the answer says who is here. */
	greet(&rig, 9, 3, true, UNITS_MINE, 1);
	only(UNITS_SEND_HELLO, 0, 0);
	greet(&rig, 9, 0, false, UNITS_MINE, 1);
	only(UNITS_SEND_HELLO, 0, 0);
	assert_false(rig.units.is_synced);
	greet(&rig, 8, 4, false, UNITS_MINE, 1);
	assert_int_equal(actions.n, 0);
	greet(&rig, 9, 4, false, UNITS_MINE, 1);
	only(UNITS_SEND_HELLO, 0, 0);
	hello = units_message(&rig.units, &action_list[0]);
	assert_true(hello.from == 4 && hello.to == 9 && hello.flag);
	assert_int_equal(rig.list[0].state, UNIT_AWAY);
	units_tick(&rig.units, 1000, &actions);
	assert_int_equal(actions.n, 0);
	assert_int_equal(units_next_ns(&rig.units), UINT64_MAX);
}

/* What a node finds when it restarts: see the table in units.h. */
static void a_restart_asks_who_has_what(void **state)
{
	struct units_entry theirs[N] = { { 3, UNITS_MINE }, { 3, UNITS_TAKES }, { 3, UNITS_NOT },
					 { 3, UNITS_MINE }, { 1, UNITS_MINE } };
	const struct units_message hello = { .from = 9, .to = 4, .kind = UNITS_HELLO };
	struct rig rig;

	(void)state;
	memset(&rig, 0, sizeof(rig));
	for (uint32_t u = 0; u < N; u++)
		rig.list[u] = (struct unit){ .gen = 2, .is_mine = u != 3 };
	units_start(&rig.units, &source_config, rig.list, UNITS_WAS_SHARED, 4, 0, &actions);
	assert_int_equal(actions.n, 0);
	assert_int_equal(units_want(&rig.units, 0, 0, &actions), UNITS_WAIT);
	assert_int_equal(actions.n, 0);
	units_receive(&rig.units, &hello, theirs, 0, &actions);
	assert_int_equal(actions.n, 4);
	has(0, UNITS_SEND_ASK, 0, 3);
	has(1, UNITS_OPEN, 2, 2);
	has(2, UNITS_OPEN, 4, 2);
	has(3, UNITS_SEND_HELLO, 0, 0);
	assert_int_equal(rig.list[1].state, UNIT_GIVING);
	assert_int_equal(rig.list[1].offer, 3);
	assert_int_equal(rig.list[3].state, UNIT_AWAY);
	units_tick(&rig.units, 100, &actions);
	has(0, UNITS_SEND_ASK, 0, 3);
	has(1, UNITS_SEND_GIVE, 1, 3);
	/* What it offers next is above all that the peer has seen. */
	hear(&rig, UNITS_ASK, 2, 2, 100);
	units_drained(&rig.units, 2, 100, &actions);
	only(UNITS_SEND_GIVE, 2, 4);
}

static void the_peer_restarts(void **state)
{
	const struct units_message hello = {
		.from = 10, .to = 4, .kind = UNITS_HELLO, .flag = true,
	};
	struct units_entry theirs[N] = { { 0, UNITS_NOT } };
	struct rig rig;

	(void)state;
	/* It had not got what it was given, and never will. */
	give_three(&rig);
	hear(&rig, UNITS_ASK, 2, 1, 0);
	greet(&rig, 10, 0, false, UNITS_NOT, 0);
	assert_false(rig.units.is_synced);
	/* Nobody to give it to. */
	units_drained(&rig.units, 2, 0, &actions);
	only(UNITS_OPEN, 2, 1);
	greet(&rig, 10, 4, true, UNITS_NOT, 0);
	only(UNITS_OPEN, 3, 1);
	/* As long as it says that it is getting it, it may. */
	give_three(&rig);
	theirs[3] = (struct units_entry){ 2, UNITS_TAKES };
	units_receive(&rig.units, &hello, theirs, 0, &actions);
	assert_int_equal(actions.n, 0);
	assert_int_equal(rig.list[3].state, UNIT_GIVING);
	/* It had. */
	give_three(&rig);
	theirs[3] = (struct units_entry){ 2, UNITS_MINE };
	units_receive(&rig.units, &hello, theirs, 0, &actions);
	assert_int_equal(actions.n, 2);
	has(0, UNITS_DROP, 3, 2);
	has(1, UNITS_LOG_GAVE, 3, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unit_goes_and_comes_back),
		cmocka_unit_test(what_came_stays_for_a_while),
		cmocka_unit_test(what_is_not_answered_is_repeated),
		cmocka_unit_test(old_messages_change_nothing),
		cmocka_unit_test(a_full_node_refuses_and_asks_later),
		cmocka_unit_test(what_is_spoilt_is_refused),
		cmocka_unit_test(who_is_refused_goes_on),
		cmocka_unit_test(closing_gives_a_few_at_a_time),
		cmocka_unit_test(closing_fails_those_who_wait),
		cmocka_unit_test(closing_is_taken_back),
		cmocka_unit_test(the_sources_wish_counts),
		cmocka_unit_test(bye_leaves_all_here),
		cmocka_unit_test(what_cannot_be_stops_the_node),
		cmocka_unit_test(a_lost_peer_is_fenced),
		cmocka_unit_test(fenced_while_a_unit_was_on_its_way),
		cmocka_unit_test(who_has_nothing_fences_nobody),
		cmocka_unit_test(greetings_are_repeated_and_answered),
		cmocka_unit_test(a_restart_asks_who_has_what),
		cmocka_unit_test(the_peer_restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
