// SPDX-License-Identifier: GPL-2.0-or-later
/* Histograms of memory, asking for them, and what is told and noted of a brokering. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/explain.h"
#include "tests/unit/core_script.h"

#define VMS		4
#define REVIEW_USEC	MSEC(100)

/* A policy that does what the test says, by VM in order of arrival, and shows what it saw. */
static struct {
	bool asks;
	uint32_t target_mib[VMS];
	uint64_t cutoff[VMS];
	unsigned num_decided;
	usec_t asked_at;
	bool is_open;
	usec_t vom_at[VMS];
	uint32_t held_mib[VMS];
	char buckets[VMS][512];
} told;

static int told_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	(void)st;
	told.num_decided++;
	told.asked_at = view->vom_asked_at;
	told.is_open = view->vom_is_open;
	ret_plan->asks_vom = told.asks;
	for (uint32_t v = 0; v < view->num_vms && v < VMS; v++) {
		const struct ebb_view_mem *m = &view->vms[v].nodes[0].mem;
		char *text = told.buckets[v];
		size_t n = 0;

		ret_plan->targets[v].nodes[0] = view->vms[v].nodes[0].floor;
		ret_plan->targets[v].mem[0] = told.target_mib[v] / EBB_BLOCK_MIB;
		ret_plan->targets[v].mem_cutoff[0] = told.cutoff[v];
		told.vom_at[v] = m->vom_at;
		told.held_mib[v] = m->held * EBB_BLOCK_MIB;
		text[0] = '\0';
		for (uint32_t i = 0; i < m->num_buckets && n < sizeof(told.buckets[v]) - 40; i++)
			n += (size_t)snprintf(text + n, sizeof(told.buckets[v]) - n, "%s%llu/%u",
					      i ? " " : "",
					      (unsigned long long)m->buckets[i].value,
					      m->buckets[i].kib >> 10);
	}
	return 0;
}

#define TOLD_POLICY { \
	.abi = EBB_POLICY_ABI, .size = sizeof(struct ebb_policy_ops), .name = "told", \
	.decide = told_decide, .mem_review_usec = REVIEW_USEC, \
}

/* Twice the same: exchanged for each other they decide anew. */
static const struct ebb_policy_ops told_policies[2] = { TOLD_POLICY, TOLD_POLICY };

/* The guest has plugged or unplugged, and the device says so. */
static void holds(struct script *s, char vm, uint32_t held_mib)
{
	script_pool(s, vm, 0, (uint32_t)(s->pools[vm - 'a'][0].requested_bytes >> 20), held_mib,
		    0);
	assert_int_equal(script_mem(s, vm), 0);
}

/* Settled, and what devices were told is taken over. */
static void settle(struct script *s)
{
	for (int i = 0; i < 4; i++) {
		script_settle(s);
		for (char vm = 'a'; vm < 'a' + VMS; vm++)
			if (script_vm(s, vm)) {
				struct ebb_pool_fact *p = &s->pools[vm - 'a'][0];

				p->requested_bytes = script_vm(s, vm)->nodes[0].pool.told *
						     EBB_BLOCK_BYTES;
				if (script_vm(s, vm)->link_up)
					assert_int_equal(script_mem(s, vm), 0);
			}
	}
	script_settle(s);
}

/* a and b hold 400 MiB each of 1024. */
static int setup(void **state)
{
	struct script *s = calloc(1, sizeof(*s));

	memset(&told, 0, sizeof(told));
	told.target_mib[0] = told.target_mib[1] = 400;
	script_init(s, 1, 8, 1, false);
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &told_policies[0]), 0);
	s->can_vom = true;
	script_boot(s, 'a', 1, "1/1m0-1024");
	script_boot(s, 'b', 2, "1/1m0-1024");
	settle(s);
	holds(s, 'a', 400);
	holds(s, 'b', 400);
	s->now += SEC(5);
	settle(s);
	s->now += SEC(5);
	settle(s);
	assert_int_equal(told.held_mib[0], 400);
	assert_int_equal(told.held_mib[1], 400);
	told.num_decided = 0;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	script_finish(*state);
	free(*state);
	return 0;
}

/* Something that makes the policy decide again, and nothing else. */
static void decide_again(struct script *s)
{
	const struct ebb_policy_ops *other =
		&told_policies[ebb_state_policy(s->state) == &told_policies[0]];

	s->now += MSEC(1);
	assert_int_equal(ebb_state_policy_set(s->state, s->now, other), 0);
}

static void ask(struct script *s)
{
	told.asks = true;
	decide_again(s);
	script_settle(s);
	told.asks = false;
}

static uint32_t seq_of(const struct script *s)
{
	return ebb_state_broker(s->state)->seq;
}

/* ---- asking ---------------------------------------------------------------- */

static void test_ask(void **state)
{
	struct script *s = *state;
	const uint32_t seq = (uint32_t)(s->now / EBB_USEC_PER_MSEC) + 1;
	char a[64], b[64];

	snprintf(a, sizeof(a), "limits a 1/1 m400/400 v%u", seq);
	snprintf(b, sizeof(b), "limits b 1/1 m400/400 v%u", seq);
	told.asks = true;
	decide_again(s);
	script_expect(s, a, b);
	assert_int_equal(seq, seq_of(s));
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
	decide_again(s);
	script_settle(s);
	asked_at = ebb_state_broker(s->state)->asked_at;
	seq = seq_of(s);
	/* It goes on asking: nothing comes of it until the cool-down is over, and then at once. */
	script_vom(s, 'a', seq, "0:50/400");
	script_vom(s, 'b', seq, "0:50/400");
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, 2);
	assert_int_equal(s->wake_at, asked_at + cool);
	s->now = asked_at + cool - 1;
	decide_again(s);
	s->now = asked_at + cool - 1;
	script_expect_nothing(s);
	assert_int_equal(seq_of(s), seq);
	s->now = asked_at + cool;
	script_settle(s);
	assert_int_equal(seq_of(s), seq + 1);
	assert_int_equal(script_vm(s, 'a')->vom.told, seq + 1);
	assert_int_equal(script_vm(s, 'a')->vom.num_asks, 2);
}

static void test_ask_in_vain(void **state)
{
	struct script *s = *state;
	usec_t asked_at;
	unsigned before;

	ask(s);
	asked_at = ebb_state_broker(s->state)->asked_at;
	before = told.num_decided;
	script_vom(s, 'a', seq_of(s), "0:50/400");
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
	assert_string_equal(told.buckets[1], "48/50 48/50 48/50 48/50 48/50 48/50 48/50 48/50");
	/* An answer that is late is news all the same. */
	s->now += SEC(1);
	script_vom(s, 'b', seq_of(s), "0:9/400");
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
	settle(s);
	holds(s, 'd', 100);
	ask(s);
	seq = seq_of(s);
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

	ask(s);
	seq = seq_of(s);
	/* It claims more than it holds: cut from the top. */
	script_vom(s, 'a', seq, "0:0/10 0:5/100 0:7/200 0:9/500");
	/* And less: the rest is unused. */
	script_vom(s, 'b', seq, "0:0/10 0:5/100 0:9/50");
	script_settle(s);
	assert_string_equal(told.buckets[0], "0/10 5/100 7/200 9/90");
	assert_string_equal(told.buckets[1], "0/250 5/100 9/50");
	/* What was given back since was worth least, what was taken since is unused. */
	holds(s, 'a', 270);
	holds(s, 'b', 402);
	s->now += REVIEW_USEC;
	script_settle(s);
	assert_string_equal(told.buckets[0], "7/180 9/90");
	assert_string_equal(told.buckets[1], "0/252 5/100 9/50");
	holds(s, 'a', 300);
	holds(s, 'b', 130);
	s->now += REVIEW_USEC;
	script_settle(s);
	assert_string_equal(told.buckets[0], "0/30 7/180 9/90");
	assert_string_equal(told.buckets[1], "5/80 9/50");
	holds(s, 'b', 0);
	s->now += REVIEW_USEC;
	script_settle(s);
	assert_string_equal(told.buckets[1], "");
}

static void test_values_are_bounded(void **state)
{
	struct script *s = *state;

	ask(s);
	script_vom(s, 'a', seq_of(s), "0:18446744073709551615/400");
	script_vom(s, 'b', seq_of(s), "0:1/400");
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

	ask(s);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(script_vom(s, 'a', seq_of(s), bad[i]), 0);
		assert_int_equal(script_vm(s, 'a')->vom.at, 0);
		assert_int_equal(script_vm(s, 'a')->vom.num_refused, i + 1);
	}
	for (size_t i = 0; i <= EBB_MAX_VOM_BUCKETS; i++)
		many[i] = (struct ebb_vom_bucket){ .value = i, .kib = 1 };
	fact.u.vom.seq = seq_of(s);
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
	ask(s);
	seq = seq_of(s);
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

	ask(s);
	seq = seq_of(s);
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
	settle(s);
	holds(s, 'c', 160);
	ask(s);
	script_vom(s, 'a', seq_of(s), "0:0/400");
	script_vom(s, 'b', seq_of(s), "0:64/200 0:4096/200");
	script_settle(s);
	assert_string_equal(told.buckets[2],
			    "0/20 0/20 0/20 0/20 64/20 64/20 4096/20 4096/20");
}

/* ---- what is told and noted ------------------------------------------------ */

static void test_cutoff(void **state)
{
	struct script *s = *state;

	/* One that nothing is demanded of is told none. */
	told.cutoff[0] = told.cutoff[1] = 55;
	told.target_mib[0] = 300;
	decide_again(s);
	script_expect(s, "limits a 1/1 m400/300!300<55");
	/* The demand stays as it is although the next plan says nothing of values. */
	told.cutoff[0] = told.cutoff[1] = 0;
	script_took(s, 'a');
	decide_again(s);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].pool.told_cutoff, 55);
	/* Another plan may say something else. */
	told.cutoff[0] = 70;
	decide_again(s);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].pool.told_cutoff, 70);
	/* Met: nothing is to go any more. */
	holds(s, 'a', 300);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].pool.told_cutoff, 0);
	s->now += REVIEW_USEC;
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].pool.cutoff, 0);
}

static void test_record(void **state)
{
	struct script *s = *state;
	const struct ebb_brokered *b;
	usec_t told_at;

	/* 970 of 1024 MiB are in use, the threshold is at 920. */
	told.target_mib[2] = 170;
	s->can_vom = false;
	script_boot(s, 'c', 3, "1/1m0-1024");
	settle(s);
	holds(s, 'c', 170);
	ask(s);
	told_at = s->now;
	script_vom(s, 'a', seq_of(s), "0:1000/150 0:5000000/250");
	script_vom(s, 'b', seq_of(s), "0:40000000/400");
	script_settle(s);
	while (script_find_record(s, 'a', EBB_EVENT_BROKER))
		;
	told.target_mib[0] = 250;
	told.cutoff[0] = 5000000;
	s->now += SEC(3);
	decide_again(s);
	script_settle(s);
	assert_true(script_find_record(s, 'a', EBB_EVENT_BROKER));
	assert_int_equal(s->record.bytes, 150 << 20);
	assert_int_equal(s->record.node, 0);
	assert_int_equal(s->record.broker.cutoff, 5000000);
	assert_int_equal(s->record.broker.num_others, 2);
	assert_int_equal(s->record.broker.age, s->record.at - told_at);
	assert_int_equal(s->record.broker.high, 40000000);
	assert_true(s->record.broker.low <= 40000000);
	assert_string_equal(s->record.text,
			    "asked for 150 of 400 MiB, what is worth less than 5.00 ms/s per MiB "
			    "first (as it says); 2 others on host node 0 keep what is worth from "
			    "960 ns/s per MiB to 40.00 ms/s per MiB on");
	b = &script_vm(s, 'a')->nodes[0].pool.brokered;
	assert_int_equal(b->at, s->record.at);
	assert_int_equal(b->asked, 75);
	assert_int_equal(b->held, 200);
	assert_int_equal(b->keeps_from, 5000000);
	b = &script_vm(s, 'b')->nodes[0].pool.brokered;
	assert_int_equal(b->at, s->record.at);
	assert_int_equal(b->asked, 0);
	assert_int_equal(b->keeps_from, 40000000);
	assert_int_equal(ebb_state_broker(s->state)->num_brokered[0], 1);
	/* The same plan once more is no other brokering. */
	decide_again(s);
	script_settle(s);
	assert_false(script_find_record(s, 'a', EBB_EVENT_BROKER));
	assert_int_equal(ebb_state_broker(s->state)->num_brokered[0], 1);
	/* Asked for by size alone, and only because there is too little. */
	told.target_mib[0] = 240;
	told.cutoff[0] = 0;
	holds(s, 'a', 250);
	s->now += REVIEW_USEC;
	script_settle(s);
	assert_false(script_find_record(s, 'a', EBB_EVENT_BROKER));
}

static bool says(const struct ebb_explain *e, const char *text)
{
	for (uint32_t i = 0; i < e->num_lines; i++)
		if (strstr(e->lines[i], text))
			return true;
	return false;
}

static struct ebb_explain explain(const struct script *s, char vm)
{
	struct ebb_explain e;

	ebb_explain_vm(s->state, script_vm(s, vm), s->now, &e);
	return e;
}

static void test_explain(void **state)
{
	struct script *s = *state;
	struct ebb_explain e;

	e = explain(s, 'a');
	assert_true(says(&e, "host node 0: 800 of 1024 MiB are in use; above 920 policy told "
			 "takes memory back down to 818"));
	told.target_mib[2] = 170;
	s->can_vom = false;
	script_boot(s, 'c', 3, "1/1m170-1024");
	settle(s);
	holds(s, 'c', 170);
	ask(s);
	e = explain(s, 'a');
	assert_true(says(&e, "; guests are being asked now"));
	script_vom(s, 'a', seq_of(s), "0:0/50 0:1000/100 0:5000000/250");
	script_vom(s, 'b', seq_of(s), "0:40000000/400");
	script_settle(s);
	told.target_mib[0] = 250;
	told.cutoff[0] = 5000000;
	decide_again(s);
	script_settle(s);
	holds(s, 'a', 360);
	s->now += SEC(3);
	script_settle(s);
	e = explain(s, 'a');
	assert_true(says(&e, "s ago memory of host node 0 was short; asked for 150 of 400 MiB, "
			 "what is worth less than 5.00 ms/s per MiB first; it has given 40"));
	assert_true(says(&e, "  b was asked for 0 of 400 MiB: it keeps what is worth from "
			 "40.00 ms/s per MiB on (weight 100)"));
	assert_true(says(&e, "  c was asked for 0 of 170 MiB, its minimum: it keeps"));
	assert_true(says(&e, "of its 360 MiB 10 are unused, half are worth at most "
			 "5.00 ms/s per MiB, all at most 5.00 ms/s per MiB, as it said"));
	assert_true(says(&e, "930 of 1024 MiB are in use"));
	assert_true(says(&e, "; not before 5"));
	assert_int_equal(ebb_vm_given(script_vm(s, 'a'), 0), 20);
	e = explain(s, 'b');
	assert_true(says(&e, "not asked for any of its 400 MiB, worth from 40.00 ms/s per MiB"));
	assert_true(says(&e, "  a was asked for 150 of 400 MiB: it keeps what is worth from "
			 "5.00 ms/s per MiB on"));
	e = explain(s, 'c');
	assert_true(says(&e, "not asked for any of its 170 MiB, which is its minimum"));
	assert_true(says(&e, "its guest has not said what its 170 MiB are worth and can not"));
	/* More than was asked for is not to be thanked for. */
	holds(s, 'a', 100);
	assert_int_equal(ebb_vm_given(script_vm(s, 'a'), 0), 75);
	/* Where the policy does not go by it nothing is said of it. */
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &ebb_policy_fair), 0);
	e = explain(s, 'a');
	assert_false(says(&e, "are in use"));
}

static void test_record_without_values(void **state)
{
	struct script *s = *state;

	told.target_mib[0] = 550;
	decide_again(s);
	settle(s);
	holds(s, 'a', 550);
	s->now += REVIEW_USEC;
	script_settle(s);
	told.target_mib[0] = 500;
	decide_again(s);
	script_settle(s);
	assert_true(script_find_record(s, 'a', EBB_EVENT_BROKER));
	assert_int_equal(s->record.bytes, 50 << 20);
	assert_int_equal(s->record.broker.cutoff, 0);
	assert_int_equal(s->record.broker.age, EBB_TIME_NEVER);
	assert_string_equal(s->record.text,
			    "asked for 50 of 550 MiB by policy told, by size alone; 1 others hold "
			    "memory of host node 0");
	/* A policy that does not go by what is used does not broker. */
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &ebb_policy_fair), 0);
	script_settle(s);
	assert_false(script_find_record(s, 'a', EBB_EVENT_BROKER));
}

/* ---- when it is decided again ---------------------------------------------- */

static void test_review(void **state)
{
	struct script *s = *state;
	const unsigned before = told.num_decided;
	usec_t decided_at;

	holds(s, 'a', 398);
	s->now += MSEC(1000);
	script_settle(s);
	assert_int_equal(told.num_decided, before + 1);
	decided_at = s->now;
	/* Not as often as something changes. */
	holds(s, 'a', 396);
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, before + 1);
	assert_int_equal(s->wake_at, decided_at + REVIEW_USEC);
	s->now = decided_at + REVIEW_USEC;
	script_expect_nothing(s);
	assert_int_equal(told.num_decided, before + 2);
	/* And not where nothing does. */
	holds(s, 'a', 396);
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
	decide_again(s);
	settle(s);
	holds(s, 'a', 550);
	s->now += SEC(5);
	settle(s);
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

static void test_values_for_people(void **state)
{
	static const struct {
		uint64_t value;
		const char *text;
	} cases[] = {
		{ 0, "nothing" }, { 1, "1 ns/s per MiB" }, { 999, "999 ns/s per MiB" },
		{ 1000, "1.00 us/s per MiB" }, { 3200000, "3.20 ms/s per MiB" },
		{ 1500000000, "1.50 s/s per MiB" }, { EBB_VOM_VALUE_MAX, "1099.51 s/s per MiB" },
	};
	char text[EBB_VALUE_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ebb_value_print(cases[i].value, text);
		assert_string_equal(text, cases[i].text);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_ask),
		CASE(test_ask_cool_down),
		CASE(test_ask_in_vain),
		CASE(test_ask_whom),
		CASE(test_ask_nobody),
		CASE(test_fit),
		CASE(test_values_are_bounded),
		CASE(test_malformed),
		CASE(test_unasked),
		CASE(test_forgotten),
		CASE(test_guess),
		CASE(test_cutoff),
		CASE(test_record),
		CASE(test_explain),
		CASE(test_record_without_values),
		CASE(test_review),
		CASE(test_review_while_short),
		cmocka_unit_test(test_values_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
