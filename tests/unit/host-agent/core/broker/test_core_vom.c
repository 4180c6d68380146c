// SPDX-License-Identifier: GPL-2.0-or-later
/* Histograms of memory: when guests are asked for them, and what is kept of the answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/broker/broker_rig.h"

/* ---- asking ---------------------------------------------------------------- */

static void test_ask(void **state)
{
	struct script *s = *state;
	const uint32_t seq = (uint32_t)(s->now / EBB_USEC_PER_MSEC) + 1;
	char a[64], b[64];

	snprintf(a, sizeof(a), "limits a 1/1 m400/400 v%u", seq);
	snprintf(b, sizeof(b), "limits b 1/1 m400/400 v%u", seq);
	told.asks = true;
	rig_decide_again(s);
	script_expect(s, a, b);
	assert_int_equal(seq, rig_seq(s));
	assert_int_equal(told.num_decided, 1);
	told.asks = false;
	/* It is decided again when the last answer is there, and not before. */
	s->now += MSEC(5);
	assert_int_equal(script_vom(s, 'a', seq, "0:50/400"), 0);
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, 1);
	s->now += MSEC(5);
	assert_int_equal(script_vom(s, 'b', seq, "0:60/400"), 0);
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, 2);
	assert_false(told.is_open);
	assert_int_equal(told.asked_at, s->now - MSEC(10));
	assert_int_equal(told.vom_at[0], s->now - MSEC(5));
	assert_int_equal(told.vom_at[1], s->now);
	assert_string_equal(told.buckets[0], "50/400");
	assert_string_equal(told.buckets[1], "60/400");
	assert_true(s->wake_at > s->now + SEC(10));
	/* The level stays in the limits; a second answer is taken and no news. */
	assert_int_equal(script_vom(s, 'b', seq, "0:70/400"), 0);
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, 2);
	assert_int_equal(script_vm(s, 'b')->vom.num_asks, 1);
	assert_int_equal(script_vm(s, 'b')->vom.num_answers, 1);
}

static void test_ask_cool_down(void **state)
{
	struct script *s = *state;
	const usec_t cool = s->cfg.pressure.cool_down_s * EBB_USEC_PER_SEC;
	usec_t asked_at;
	uint32_t seq;

	told.asks = true;
	rig_decide_again(s);
	script_settle(s);
	asked_at = ebb_state_broker(s->state)->asked_at;
	seq = rig_seq(s);
	/* It goes on asking: nothing comes of it until the cool-down is over, and then at once. */
	script_vom(s, 'a', seq, "0:50/400");
	script_vom(s, 'b', seq, "0:50/400");
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, 2);
	assert_int_equal(s->wake_at, asked_at + cool);
	s->now = asked_at + cool - 1;
	rig_decide_again(s);
	s->now = asked_at + cool - 1;
	script_expect_nothing(s);
	assert_int_equal(rig_seq(s), seq);
	s->now = asked_at + cool;
	script_settle(s);
	assert_int_equal(rig_seq(s), seq + 1);
	assert_int_equal(script_vm(s, 'a')->vom.told, seq + 1);
	assert_int_equal(script_vm(s, 'a')->vom.num_asks, 2);
}

static void test_ask_in_vain(void **state)
{
	struct script *s = *state;
	usec_t asked_at;
	unsigned before;

	rig_ask(s);
	asked_at = ebb_state_broker(s->state)->asked_at;
	before = told.num_decided;
	script_vom(s, 'a', rig_seq(s), "0:50/400");
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, before);
	assert_int_equal(s->wake_at, asked_at + SEC(2));
	s->now = asked_at + SEC(2) - 1;
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, before);
	s->now = asked_at + SEC(2);
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, before + 1);
	assert_false(told.is_open);
	/* What never told is taken for an average one. */
	assert_int_equal(told.vom_at[1], 0);
	assert_string_equal(told.buckets[1], "48/400");
	/* An answer that is late is news all the same. */
	s->now += SEC(1);
	script_vom(s, 'b', rig_seq(s), "0:9/400");
	assert_int_equal(script_vm(s, 'b')->vom.at, s->now);
}

static void test_ask_whom(void **state)
{
	struct script *s = *state;
	uint32_t seq;

	/* c holds nothing, d can not tell. */
	told.target_mib[2] = told.target_mib[3] = 100;
	script_boot(s, 'c', 3, "1/1m0-1024");
	s->can_vom = false;
	script_boot(s, 'd', 4, "1/1m0-1024");
	rig_settle(s);
	rig_holds(s, 'd', 100);
	rig_ask(s);
	seq = rig_seq(s);
	assert_int_equal(script_vm(s, 'a')->vom.told, seq);
	assert_int_equal(script_vm(s, 'c')->vom.told, 0);
	assert_int_equal(script_vm(s, 'd')->vom.told, 0);
	/* Whoever goes is not waited for. */
	script_vom(s, 'a', seq, "0:50/400");
	script_expect_nothing(s);
	assert_true(ebb_state_broker(s->state)->is_open);
	assert_int_equal(script_simple(s, 'b', EBB_FACT_LINK_LOST), 0);
	script_settle(s);
	assert_false(ebb_state_broker(s->state)->is_open);
}

/* Nobody can tell: it is decided again at once. */
static void test_ask_nobody(void **state)
{
	struct script *s = *state;
	unsigned before;

	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	assert_int_equal(script_simple(s, 'b', EBB_FACT_LINK_LOST), 0);
	script_settle(s);
	told.asks = true;
	told.target_mib[2] = 0;
	before = told.num_decided;
	script_boot(s, 'c', 3, "1/1m0-1024");
	told.asks = false;
	script_settle(s);
	assert_true(told.num_decided > before + 1);
	assert_true(told.asked_at > 0);
	assert_false(told.is_open);
}

/* ---- histograms ------------------------------------------------------------ */

static void test_fit(void **state)
{
	struct script *s = *state;
	uint32_t seq;

	rig_ask(s);
	seq = rig_seq(s);
	/* It claims more than it holds: cut from the top. */
	script_vom(s, 'a', seq, "0:0/10 0:5/100 0:7/200 0:9/500");
	/* And less: the rest is as what is in the middle. */
	script_vom(s, 'b', seq, "0:0/10 0:5/100 0:9/50");
	script_settle(s);
	assert_string_equal(told.buckets[0], "0/10 5/100 7/200 9/90");
	assert_string_equal(told.buckets[1], "0/10 5/340 9/50");
	/* What was given back since was worth least, and what was taken since is in the middle. */
	rig_holds(s, 'a', 270);
	rig_holds(s, 'b', 402);
	s->now += RIG_REVIEW_USEC;
	script_settle(s);
	assert_string_equal(told.buckets[0], "7/180 9/90");
	assert_string_equal(told.buckets[1], "0/10 5/342 9/50");
	rig_holds(s, 'a', 300);
	rig_holds(s, 'b', 130);
	s->now += RIG_REVIEW_USEC;
	script_settle(s);
	assert_string_equal(told.buckets[0], "7/210 9/90");
	assert_string_equal(told.buckets[1], "5/80 9/50");
	rig_holds(s, 'b', 0);
	s->now += RIG_REVIEW_USEC;
	script_settle(s);
	assert_string_equal(told.buckets[1], "");
}

/* However often a guest takes and gives, there are no more buckets of it. */
static void test_grows_often(void **state)
{
	struct script *s = *state;

	rig_ask(s);
	script_vom(s, 'a', rig_seq(s), "0:0/10 0:5/100 0:7/200 0:9/90");
	for (int i = 0; i < 20; i++) {
		rig_holds(s, 'a', 400 + 2 * (i % 2));
		s->now += RIG_REVIEW_USEC;
		script_settle(s);
	}
	assert_string_equal(told.buckets[0], "5/92 7/220 9/90");
	rig_holds(s, 'a', 0);
	s->now += RIG_REVIEW_USEC;
	script_settle(s);
	/* Of nothing, nothing is the middle. */
	rig_holds(s, 'a', 2);
	s->now += RIG_REVIEW_USEC;
	script_settle(s);
	assert_string_equal(told.buckets[0], "0/2");
}

static void test_values_are_bounded(void **state)
{
	struct script *s = *state;

	rig_ask(s);
	script_vom(s, 'a', rig_seq(s), "0:18446744073709551615/400");
	script_vom(s, 'b', rig_seq(s), "0:1/400");
	script_settle(s);
	assert_string_equal(told.buckets[0], "1099511627776/400");
}

static void test_malformed(void **state)
{
	static const char *const bad[] = {
		"0:5/100 0:4/100",		/* values fall */
		"1:5/100",			/* no such node */
		"0:5/0",			/* empty */
	};
	struct ebb_vom_bucket many[EBB_MAX_VOM_BUCKETS + 1];
	struct ebb_fact fact = {
		.type = EBB_FACT_VOM, .uuid = { 'a' },
		.u.vom = { .num_buckets = EBB_MAX_VOM_BUCKETS + 1, .buckets = many },
	};
	struct script *s = *state;

	rig_ask(s);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(script_vom(s, 'a', rig_seq(s), bad[i]), 0);
		assert_int_equal(script_vm(s, 'a')->vom.at, 0);
		assert_int_equal(script_vm(s, 'a')->vom.num_refused, i + 1);
	}
	for (size_t i = 0; i <= EBB_MAX_VOM_BUCKETS; i++)
		many[i] = (struct ebb_vom_bucket){ .value = i, .kib = 1 };
	fact.u.vom.seq = rig_seq(s);
	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
	assert_int_equal(script_vm(s, 'a')->vom.num_refused, 4);
	/* Said once; its link is not to blame. */
	assert_true(script_find_record(s, 'a', EBB_EVENT_ERROR));
	assert_non_null(strstr(s->record.text, "is not in order"));
	assert_false(script_find_record(s, 'a', EBB_EVENT_ERROR));
	assert_true(script_vm(s, 'a')->link_up);
	/* As many as there may be. */
	fact.u.vom.num_buckets = EBB_MAX_VOM_BUCKETS;
	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
	assert_int_equal(script_vm(s, 'a')->vom.at, s->now);
	assert_int_equal(script_vm(s, 'a')->vom.first[EBB_MAX_GUEST_NODES], EBB_MAX_VOM_BUCKETS);
}

static void test_unasked(void **state)
{
	struct script *s = *state;
	uint32_t seq;

	/* Nobody asked, neither for this number nor for none. */
	assert_int_equal(script_vom(s, 'a', 0, "0:5/400"), 0);
	assert_int_equal(script_vom(s, 'a', 7, "0:5/400"), 0);
	assert_int_equal(script_vm(s, 'a')->vom.at, 0);
	rig_ask(s);
	seq = rig_seq(s);
	assert_int_equal(script_vom(s, 'a', seq - 1, "0:5/400"), 0);
	assert_int_equal(script_vom(s, 'a', seq + 1, "0:5/400"), 0);
	assert_int_equal(script_vm(s, 'a')->vom.at, 0);
	/* Over a link that is not there, or of a VM that does not run. */
	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	assert_int_equal(script_vom(s, 'a', seq, "0:5/400"), -ENOENT);
	assert_int_equal(script_simple(s, 'b', EBB_FACT_VM_STOPPED), 0);
	assert_int_equal(script_vom(s, 'b', seq, "0:5/400"), -ENOENT);
}

static void test_forgotten(void **state)
{
	struct script *s = *state;
	uint32_t seq;

	rig_ask(s);
	seq = rig_seq(s);
	script_vom(s, 'a', seq, "0:5/400");
	script_vom(s, 'b', seq, "0:6/400");
	script_settle(s);
	/* A link that comes back is told the number again; the histogram stays. */
	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	assert_int_equal(script_hello(s, 'a', true, true, script_vm(s, 'a')->resets, ""), 0);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->vom.told, seq);
	assert_true(script_vm(s, 'a')->vom.at > 0);
	/* Another boot knows nothing of the last one's. */
	assert_int_equal(script_hello(s, 'a', false, true, script_vm(s, 'a')->resets + 1, ""), 0);
	assert_int_equal(script_vm(s, 'a')->vom.at, 0);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->vom.told, seq);
	/* Its driver does not know of histograms: no number for it. */
	s->can_vom = false;
	assert_int_equal(script_hello(s, 'a', false, true, script_vm(s, 'a')->resets + 1, ""), 0);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->vom.told, 0);
	/* Nor does another run. */
	assert_int_equal(script_simple(s, 'b', EBB_FACT_VM_STOPPED), 0);
	script_settle(s);
	assert_int_equal(script_running(s, 'b', 9), 0);
	assert_int_equal(script_vm(s, 'b')->vom.at, 0);
	assert_int_equal(script_vm(s, 'b')->vom.asked, 0);
}

/* Half of what others hold is worth nothing: so is half of what the silent one holds. */
static void test_guess(void **state)
{
	struct script *s = *state;

	told.target_mib[2] = 160;
	s->can_vom = false;
	script_boot(s, 'c', 3, "1/1m0-1024");
	rig_settle(s);
	rig_holds(s, 'c', 160);
	rig_ask(s);
	script_vom(s, 'a', rig_seq(s), "0:0/400");
	script_vom(s, 'b', rig_seq(s), "0:64/200 0:4096/200");
	script_settle(s);
	assert_string_equal(told.buckets[2],
			    "0/80 64/40 4096/40");
}

/* ---- when it is decided again ---------------------------------------------- */

static void test_review(void **state)
{
	struct script *s = *state;
	const unsigned before = told.num_decided;
	usec_t decided_at;

	rig_holds(s, 'a', 398);
	s->now += MSEC(1000);
	script_settle(s);
	assert_int_equal(told.num_decided, before + 1);
	decided_at = s->now;
	/* Not as often as something changes. */
	rig_holds(s, 'a', 396);
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, before + 1);
	assert_int_equal(s->wake_at, decided_at + RIG_REVIEW_USEC);
	s->now = decided_at + RIG_REVIEW_USEC;
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, before + 2);
	/* And not where nothing does. */
	rig_holds(s, 'a', 396);
	s->now += SEC(5);
	script_settle(s);
	assert_int_equal(told.num_decided, before + 2);
}

static void test_review_while_short(void **state)
{
	struct script *s = *state;
	unsigned before;
	usec_t at;

	told.target_mib[0] = 550;
	rig_decide_again(s);
	rig_settle(s);
	rig_holds(s, 'a', 550);
	s->now += SEC(5);
	rig_settle(s);
	before = told.num_decided;
	at = ebb_state_broker(s->state)->planned_at + SEC(1);
	assert_true(s->wake_at <= at);
	s->now = at - 1;
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, before);
	s->now = at;
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, before + 1);
	assert_true(s->wake_at <= at + SEC(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_CASE(test_ask),
		RIG_CASE(test_ask_cool_down),
		RIG_CASE(test_ask_in_vain),
		RIG_CASE(test_ask_whom),
		RIG_CASE(test_ask_nobody),
		RIG_CASE(test_fit),
		RIG_CASE(test_grows_often),
		RIG_CASE(test_values_are_bounded),
		RIG_CASE(test_malformed),
		RIG_CASE(test_unasked),
		RIG_CASE(test_forgotten),
		RIG_CASE(test_guess),
		RIG_CASE(test_review),
		RIG_CASE(test_review_while_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
