// SPDX-License-Identifier: GPL-2.0-or-later
/* The serializability checker against histories made by hand, one for each thing it knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "check_script.h"

#define STRICT	CHECK_STRICT_SERIALIZABLE
#define ANY	CHECK_SERIALIZABLE

struct txn {
	const char *ops;
	const char *outcome;	/* NULL: ok */
	uint64_t from, to;	/* both 0: all at once */
	uint64_t process;	/* 0: one of its own */
};

/* Operations, outcome, from, to, process. */
#define T(...)	{ .ops = __VA_ARGS__ }

static void build(struct script *script, const struct txn *txns, size_t n)
{
	script_begin(script);
	for (size_t i = 0; i < n; i++) {
		bool at_once = !txns[i].from && !txns[i].to;

		script_txn(script, txns[i].process ? txns[i].process : 1000 + i,
			   at_once ? 1 : txns[i].from, at_once ? 100 : txns[i].to,
			   txns[i].outcome ? txns[i].outcome : "ok", txns[i].ops);
	}
}

#define N(txns)	(sizeof(txns) / sizeof(*(txns)))

#define CLEAN(model, ...) do {							\
	static const struct txn txns[] = { __VA_ARGS__ };			\
	struct script script;							\
										\
	build(&script, txns, N(txns));						\
	script_expect_clean(&script, model);					\
	script_finish(&script);							\
} while (0)

#define FINDS(model, kind, ...) do {						\
	static const struct txn txns[] = { __VA_ARGS__ };			\
	struct script script;							\
										\
	build(&script, txns, N(txns));						\
	script_expect(&script, model, kind, 1);					\
	script_finish(&script);							\
} while (0)

static void test_clean_histories(void **state)
{
	(void)state;
	CLEAN(STRICT, T(""));
	CLEAN(STRICT, T("a:1:1"), T("a:1:2 l:1:1,2"), T("l:1:1"), T("l:1:"));
	/* The second one comes first, although it is later in the file. */
	CLEAN(STRICT, T("r:1:5 w:1:6 r:2:-"), T("r:1:- w:1:5"), T("r:1:6 r:2:- i:2:9"));
	/* Its own appends and writes. */
	CLEAN(STRICT, T("l:1: a:1:1 l:1:1 a:1:2 l:1:1,2 w:3:1 r:3:1 w:3:2 r:3:2 d:3:2 r:3:-"));
	CLEAN(STRICT, T("i:7:1"), T("d:7:1 i:7:2 s:0:9:7=2"), T("s:0:9:7=2"), T("s:0:9:"));
}

static void test_g0_writes_alternate(void **state)
{
	(void)state;
	FINDS(STRICT, CHECK_G0, T("a:1:1 a:2:1"), T("a:1:2 a:2:2"), T("l:1:1,2"),
	      T("l:2:2,1"));
	FINDS(STRICT, CHECK_G0, T("a:1:1 a:1:3"), T("a:1:2"), T("l:1:1,2,3"));
}

static void test_g1a_aborted_read(void **state)
{
	(void)state;
	FINDS(STRICT, CHECK_G1A, T("a:1:1", "fail"), T("l:1:1"));
	FINDS(STRICT, CHECK_G1A, T("w:1:1", "fail"), T("r:1:1"));
	FINDS(STRICT, CHECK_G1A, T("i:1:1", "fail"), T("s:0:5:1=1"));
	FINDS(STRICT, CHECK_G1A, T("i:1:1", "fail"), T("d:1:1"));
	/* Of an aborted transaction nothing is asked. */
	CLEAN(STRICT, T("a:1:1", "fail"), T("l:1:"), T("w:2:1", "fail"), T("r:2:-"));
}

static void test_g1b_intermediate_read(void **state)
{
	(void)state;
	/* Whoever reads in between is also in a cycle with the writer. */
	static const char *const reads[] = { "l:1:1", "r:2:1" };

	for (size_t i = 0; i < 2; i++) {
		struct check_result result = { 0 };
		struct script script;

		script_begin(&script);
		script_txn(&script, 1, 1, 9, "ok", "a:1:1 a:1:2 w:2:1 w:2:2");
		script_txn(&script, 2, 1, 9, "ok", reads[i]);
		script_txn(&script, 3, 1, 9, "ok", "l:1:1,2");
		assert_int_equal(script_check(&script, STRICT, &result), 0);
		assert_int_equal(result.n_kind[CHECK_G1B], 1);
		assert_int_equal(result.n_anomalies - result.n_kind[CHECK_G_SINGLE], 1);
		check_result_finish(&result);
		script_finish(&script);
	}
}

static void test_g1c_circular_information(void **state)
{
	(void)state;
	FINDS(STRICT, CHECK_G1C, T("a:1:1 r:2:1"), T("l:1:1 w:2:1"));
	FINDS(STRICT, CHECK_G1C, T("w:1:1 r:2:1"), T("r:1:1 w:2:1"));
}

static void test_g_single_read_skew(void **state)
{
	(void)state;
	FINDS(STRICT, CHECK_G_SINGLE, T("a:1:1 a:2:1"), T("l:1: l:2:1"), T("l:1:1"));
	FINDS(ANY, CHECK_G_SINGLE, T("r:1:- w:1:1 w:2:1"), T("r:1:- r:2:1"));
	/* Both read the empty list, both append. */
	FINDS(STRICT, CHECK_G_SINGLE, T("l:1: a:1:1"), T("l:1: a:1:2"), T("l:1:1,2"));
	/* A scan that misses one of two rows added together. */
	FINDS(STRICT, CHECK_G_SINGLE, T("i:1:1 i:2:1"), T("s:0:5:2=1"));
}

static void test_g2_item_write_skew(void **state)
{
	(void)state;
	FINDS(STRICT, CHECK_G2_ITEM, T("r:1:- r:2:- w:1:1"), T("r:1:- r:2:- w:2:1"));
	FINDS(STRICT, CHECK_G2_ITEM, T("l:1: a:2:1"), T("l:2: a:1:1"), T("l:1:1"), T("l:2:1"));
	/* Appends that nobody read are after all reads, too. */
	FINDS(STRICT, CHECK_G2_ITEM, T("l:1: a:2:1"), T("l:2: a:1:1"));
	/* Three. */
	FINDS(STRICT, CHECK_G2_ITEM, T("r:1:- r:2:- w:2:1"), T("r:2:- r:3:- w:3:1"),
	      T("r:3:- r:1:- w:1:1"));
	CLEAN(STRICT, T("r:1:- r:2:- w:2:1"), T("r:2:- r:3:- w:3:1"), T("r:1:- w:1:1"));
}

static void test_g2_phantom(void **state)
{
	(void)state;
	FINDS(STRICT, CHECK_G2, T("s:0:9: i:10:1"), T("s:10:19: i:5:1"));
	FINDS(STRICT, CHECK_G2, T("s:0:9:3=1 i:10:1"), T("s:10:19: i:5:1"), T("i:3:1"));
	/* Outside of the range. */
	CLEAN(STRICT, T("s:0:9: i:10:1"), T("s:11:19: i:5:1"));
	/* Empty ranges, and the last key there is. */
	CLEAN(STRICT, T("s:9:0: i:10:1"), T("s:10:19: i:5:1"));
	FINDS(STRICT, CHECK_G2, T("s:0:18446744073709551615: i:10:1"),
	      T("r:10:- i:18446744073709551615:1"));
}

static void test_scan_of_own_rows(void **state)
{
	(void)state;
	CLEAN(STRICT, T("i:1:1 s:0:9:1=1 d:1:1 s:0:9:"));
	FINDS(STRICT, CHECK_INTERNAL, T("i:1:1 s:0:9:"));
	FINDS(STRICT, CHECK_INTERNAL, T("i:1:1"), T("s:0:9: r:1:1"));
	FINDS(STRICT, CHECK_INTERNAL, T("i:1:1"), T("d:1:1 s:0:9:1=1"));
}

static void test_internal_contradictions(void **state)
{
	(void)state;
	FINDS(STRICT, CHECK_INTERNAL, T("w:1:1 w:2:7 r:1:2"), T("w:1:2"));
	FINDS(STRICT, CHECK_INTERNAL, T("w:1:1 r:1:-"));
	FINDS(STRICT, CHECK_INTERNAL, T("d:1 r:1:4"), T("w:1:4"));
	FINDS(STRICT, CHECK_INTERNAL, T("a:1:1 l:1:"));
	FINDS(STRICT, CHECK_INTERNAL, T("i:1:1 i:1:2"));
	FINDS(STRICT, CHECK_INTERNAL, T("a:1:1 a:1:2"), T("a:1:3"), T("l:1:2,1,3"));
}

static void test_reads_that_nothing_explains(void **state)
{
	(void)state;
	FINDS(STRICT, CHECK_UNWRITTEN, T("r:1:5"));
	FINDS(STRICT, CHECK_UNWRITTEN, T("l:1:5"));
	FINDS(STRICT, CHECK_UNWRITTEN, T("s:0:9:5=5"));
	FINDS(STRICT, CHECK_UNWRITTEN, T("w:2:5"), T("r:1:5"));
	FINDS(STRICT, CHECK_DUPLICATE, T("a:1:1"), T("l:1:1,1"));
	FINDS(STRICT, CHECK_ORDER, T("a:1:1"), T("a:1:2"), T("l:1:1,2"), T("l:1:2"));
}

static void test_lost_updates(void **state)
{
	(void)state;
	FINDS(STRICT, CHECK_LOST_UPDATE, T("w:1:1"), T("r:1:1 w:2:1 w:1:2"), T("r:1:1 w:1:3"));
	FINDS(STRICT, CHECK_LOST_UPDATE, T("i:1:1"), T("i:1:2"));
	FINDS(STRICT, CHECK_LOST_UPDATE, T("i:1:1"), T("d:1:1"), T("d:1:1"));
}

static void test_a_lost_update_says_who_was_first(void **state)
{
	static const struct txn txns[] = { T("w:1:1"), T("r:1:1 w:1:2"), T("r:1:1 w:1:3") };
	struct check_result result = { 0 };
	struct script script;

	(void)state;
	build(&script, txns, N(txns));
	assert_int_equal(script_check(&script, STRICT, &result), 0);
	assert_int_equal(result.anomalies.n, 1);
	assert_int_equal(result.anomalies.at[0].other, 1);
	assert_int_equal(result.anomalies.at[0].txn, 2);
	check_result_finish(&result);
	script_finish(&script);
}

static void test_order_of_time(void **state)
{
	(void)state;
	/* 2 began after 1 had ended, and did not see its write. */
	FINDS(STRICT, CHECK_G_SINGLE, T("w:1:1", NULL, 1, 2), T("r:1:-", NULL, 3, 4));
	FINDS(STRICT, CHECK_G_SINGLE, T("a:1:1", NULL, 1, 2), T("l:1:", NULL, 3, 4));
	FINDS(STRICT, CHECK_G_SINGLE, T("i:1:1", NULL, 1, 2), T("s:0:9:", NULL, 3, 4));
	FINDS(STRICT, CHECK_G1C, T("r:1:1", NULL, 1, 2), T("w:1:1", NULL, 3, 4));
	FINDS(STRICT, CHECK_G_SINGLE, T("w:1:1", NULL, 1, 2), T("r:1:- w:1:2", NULL, 3, 4));
	/* At the same time is not before. */
	CLEAN(STRICT, T("w:1:1", NULL, 1, 3), T("r:1:-", NULL, 3, 4));
	CLEAN(ANY, T("w:1:1", NULL, 1, 2), T("r:1:-", NULL, 3, 4));
	CLEAN(CHECK_STRONG_SESSION, T("w:1:1", NULL, 1, 2), T("r:1:-", NULL, 3, 4));
	/* By the same process. */
	FINDS(CHECK_STRONG_SESSION, CHECK_G_SINGLE, T("w:1:1", NULL, 1, 2, 7),
	      T("r:1:-", NULL, 3, 4, 7));
	/* With one of unknown outcome in between, which was seen. */
	FINDS(CHECK_STRONG_SESSION, CHECK_G_SINGLE, T("w:1:1", NULL, 1, 2, 7),
	      T("w:2:1", "info", 3, 4, 7), T("r:1:-", NULL, 5, 6, 7), T("r:2:1", NULL, 7, 8));
}

static void test_order_of_time_through_others(void **state)
{
	(void)state;
	/* 1 ends before 2 is invoked, 2 before 3: 1 is no longer in the frontier then. */
	FINDS(STRICT, CHECK_G_SINGLE, T("w:1:1", NULL, 1, 2), T("r:9:-", NULL, 3, 4),
	      T("r:1:-", NULL, 5, 6));
}

/* More at once than the frontier holds, and one that is before or after all of them. */
static void test_order_of_time_of_many(void **state)
{
	(void)state;
	for (int is_late = 0; is_late < 2; is_late++) {
		struct script script;

		script_begin(&script);
		script_txn(&script, 1, 1, 2, "ok", "w:1:1");
		for (uint64_t i = 0; i < 500; i++)
			script_txn(&script, 10 + i, 10 + i / 2, 1000 + i, "ok", "r:1:1");
		script_txn(&script, 2, is_late ? 2000 : 1400, 2001, "ok", "r:1:1 w:1:2");
		script_txn(&script, 3, 3000, 3001, "ok", is_late ? "r:1:1" : "r:1:2");
		if (is_late)
			script_expect(&script, STRICT, CHECK_G_SINGLE, 1);
		else
			script_expect_clean(&script, STRICT);
		script_finish(&script);
	}
}

static void test_unknown_outcomes(void **state)
{
	(void)state;
	/* Seen or not, both are fine. */
	CLEAN(STRICT, T("a:1:1 a:2:1", "info"), T("l:1:1 l:2:1"));
	CLEAN(STRICT, T("a:1:1 a:2:1", ""), T("l:1: l:2:"));
	CLEAN(STRICT, T("w:1:1 w:2:1", ""), T("r:1:1 r:2:1"));
	/* But not one half. */
	FINDS(STRICT, CHECK_G_SINGLE, T("a:1:1 a:2:1", "info"), T("l:1:1 l:2:"), T("l:2:1"));
	/* It may take effect long after. */
	CLEAN(STRICT, T("a:1:1", "info", 1, 2), T("l:1:", NULL, 5, 6), T("l:1:1", NULL, 7, 8));
	FINDS(STRICT, CHECK_G1C, T("l:1:1", NULL, 1, 2), T("a:1:1", "info", 5, 6));
}

/* No read shows a delete: after one that may have committed its row may be gone, or be there. */
static void test_deletes_of_unknown_outcome(void **state)
{
	(void)state;
	CLEAN(STRICT, T("i:1:1", NULL, 1, 2), T("d:1", "info", 3, 4), T("r:1:-", NULL, 5, 6));
	CLEAN(STRICT, T("i:1:1", NULL, 1, 2), T("d:1:1", "", 3, 4), T("s:0:9:", NULL, 5, 6));
	CLEAN(STRICT, T("i:1:1", NULL, 1, 2), T("d:1", "info", 3, 4), T("r:1:1", NULL, 5, 6));
	CLEAN(STRICT, T("i:1:1", NULL, 1, 2), T("d:1", "info", 3, 4), T("i:1:2", NULL, 5, 6),
	      T("s:0:9:1=2", NULL, 7, 8));
	/* One that was taken back did nothing. */
	FINDS(STRICT, CHECK_G_SINGLE, T("i:1:1", NULL, 1, 2), T("d:1", "fail", 3, 4),
	      T("r:1:-", NULL, 5, 6));
	/* The values that were read are in the order of their writes all the same. */
	FINDS(STRICT, CHECK_G_SINGLE, T("i:1:1", NULL, 1, 2), T("d:1", "info", 3, 4),
	      T("r:1:1 w:1:2", NULL, 5, 6), T("r:1:1", NULL, 7, 8));
}

static void test_rows_that_come_back(void **state)
{
	(void)state;
	/* In every gap between two lives nothing is there, and in no other place. */
	CLEAN(STRICT, T("r:1:-", NULL, 1, 2), T("i:1:1", NULL, 3, 4), T("d:1:1", NULL, 5, 6),
	      T("s:0:9:", NULL, 7, 8), T("i:1:2", NULL, 9, 10), T("r:1:2", NULL, 11, 12));
	FINDS(STRICT, CHECK_G_SINGLE, T("i:1:1", NULL, 3, 4), T("r:1:-", NULL, 5, 6),
	      T("d:1:1", NULL, 7, 8), T("i:1:2", NULL, 9, 10), T("d:1:2", NULL, 11, 12));
	FINDS(STRICT, CHECK_G_SINGLE, T("i:1:1", NULL, 3, 4), T("d:1:1", NULL, 5, 6),
	      T("i:1:2", NULL, 7, 8), T("r:1:-", NULL, 9, 10), T("d:1:2", NULL, 11, 12));
	/* Two lives at once. */
	FINDS(STRICT, CHECK_LOST_UPDATE, T("i:1:1", NULL, 1, 2), T("i:1:2", NULL, 3, 4),
	      T("d:1:1", NULL, 5, 6), T("d:1:2", NULL, 7, 8));
	/* A phantom in the second life. */
	FINDS(STRICT, CHECK_G2, T("i:1:1", NULL, 1, 2), T("d:1:1", NULL, 3, 4),
	      T("s:0:5: i:10:1", NULL, 10, 20), T("s:10:15: i:1:2", NULL, 10, 20));
}

static void test_what_is_not_known_is_counted(void **state)
{
	static const struct txn txns[] = {
		T("i:1:1", NULL, 1, 20), T("d:1:1", NULL, 1, 20), T("r:1:-", NULL, 1, 20),
		T("w:2:1", NULL, 1, 20), T("a:3:1", "info", 1, 20),
		T("i:4:1", NULL, 1, 20), T("d:4:1", NULL, 1, 20), T("i:4:2", NULL, 1, 20),
		T("d:4:2", NULL, 1, 20),
	};
	struct check_result result = { 0 };
	struct script script;

	(void)state;
	build(&script, txns, N(txns));
	assert_int_equal(script_check(&script, STRICT, &result), 0);
	assert_int_equal(result.n_anomalies, 0);
	assert_int_equal(result.unknown.absent_reads, 1);
	assert_int_equal(result.unknown.writes, 1);
	assert_int_equal(result.unknown.outcomes, 1);
	assert_int_equal(result.unknown.rows, 1);
	check_result_finish(&result);
	script_finish(&script);
}

static void test_a_cycle_is_explained(void **state)
{
	static const struct txn txns[] = {
		T("l:1: a:2:5"), T("l:2: a:1:6"), T("l:1:6 l:2:5"), T("r:9:-"),
	};
	struct check_result result = { 0 };
	const struct check_step *steps;
	struct script script;

	(void)state;
	build(&script, txns, N(txns));
	assert_int_equal(script_check(&script, STRICT, &result), 0);
	assert_int_equal(result.anomalies.n, 1);
	assert_int_equal(result.anomalies.at[0].n_steps, 2);
	steps = result.steps.at + result.anomalies.at[0].first_step;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(steps[i].edge, CHECK_RW);
		assert_true(steps[i].is_list);
		assert_int_equal(steps[i].to, steps[1 - i].from);
		assert_int_equal(steps[i].key, steps[i].from == 0 ? 1 : 2);
		assert_int_equal(steps[i].next_value, steps[i].from == 0 ? 6 : 5);
		assert_true(steps[i].value == HISTORY_ABSENT);
	}
	check_result_finish(&result);
	script_finish(&script);
}

/* The shortest one is shown, also if a long one was there first. */
static void test_a_short_cycle_is_shown(void **state)
{
	struct check_result result = { 0 };
	struct script script;
	char ops[100];

	(void)state;
	script_begin(&script);
	for (unsigned int i = 0; i < 50; i++) {
		snprintf(ops, sizeof(ops), "r:%u:- r:%u:- w:%u:1", i, (i + 1) % 50, i);
		script_txn(&script, i, 1, 9, "ok", ops);
	}
	script_txn(&script, 60, 1, 9, "ok", "r:0:- r:100:- w:101:1");
	script_txn(&script, 61, 1, 9, "ok", "r:101:- r:1:- w:100:1");
	assert_int_equal(script_check(&script, STRICT, &result), 0);
	assert_int_equal(result.n_kind[CHECK_G2_ITEM], 2);
	assert_int_equal(result.n_anomalies, 2);
	assert_int_equal(result.anomalies.at[0].n_steps + result.anomalies.at[1].n_steps, 52);
	check_result_finish(&result);
	script_finish(&script);
}

static void test_values_written_twice(void **state)
{
	static const struct txn txns[] = { T("a:1:5"), T("a:1:5", "fail") };
	struct check_result result = { 0 };
	struct script script;

	(void)state;
	build(&script, txns, N(txns));
	assert_int_equal(script_check(&script, STRICT, &result), -EBADMSG);
	assert_true(result.twice_is_list);
	assert_int_equal(result.twice_key, 1);
	assert_int_equal(result.twice_value, 5);
	check_result_finish(&result);
	script_finish(&script);
}

static void load(const char *text, struct history *history, int rc)
{
	struct history_error error = { 0 };

	assert_int_equal(history_parse(history, text, strlen(text), NULL, NULL, &error), rc);
}

static uint64_t anomalies(const char *text, struct history *history)
{
	const struct check_options options = { .model = CHECK_STRICT_SERIALIZABLE };
	struct check_result result = { 0 };
	uint64_t n;

	load(text, history, 0);
	assert_int_equal(check_history(history, &options, &result), 0);
	n = result.n_anomalies;
	check_result_finish(&result);
	history_finish(history);
	return n;
}

#define HISTORY(lines)	"oltp-history 1\n" lines

/* What was acknowledged too early is lost from some epoch on, or something is wrong. */
static void test_lost_in_crashes(void **state)
{
	(void)state;
	struct history history = { 0 };

	load(HISTORY("1 1 invoke a:1:1\n2 1 ok@3 a:1:1\n3 1 invoke a:1:2\n4 1 ok@5 a:1:2\n"
		     "5 0 recovered@4\n6 2 invoke l:1\n7 2 ok l:1:1\n"
		     "8 2 invoke a:1:3\n9 2 ok@6 a:1:3\n10 0 recovered@5\n"), &history, 0);
	assert_int_equal(history.n_lost, 2);
	assert_int_equal(history.lost_epochs, 1);
	assert_true(history.txns.at[1].is_lost && history.txns.at[3].is_lost);
	assert_int_equal(history.txns.at[1].outcome, HISTORY_FAIL);
	history_finish(&history);
	/* The end is lost. */
	assert_int_equal(anomalies(HISTORY("1 1 invoke a:1:1\n2 1 ok@3 a:1:1\n3 1 invoke a:1:2\n"
					   "4 1 ok@5 a:1:2\n5 0 recovered@4\n6 2 invoke l:1\n"
					   "7 2 ok l:1:1\n"), &history), 0);
	/* Something before it; all of it is there; who is there has seen it. */
	assert_true(anomalies(HISTORY("1 1 invoke a:1:1\n2 1 ok@3 a:1:1\n3 1 invoke a:1:2\n"
				      "4 1 ok@4 a:1:2\n5 0 recovered@4\n6 2 invoke l:1\n"
				      "7 2 ok l:1:1\n"), &history) > 0);
	assert_true(anomalies(HISTORY("1 1 invoke a:1:1\n2 1 ok@5 a:1:1\n5 0 recovered@4\n"
				      "6 2 invoke l:1\n7 2 ok l:1:1\n"), &history) > 0);
	assert_true(anomalies(HISTORY("1 1 invoke a:1:1\n2 1 ok@5 a:1:1\n3 1 invoke l:1\n"
				      "4 1 ok@4 l:1:1\n5 0 recovered@4\n"), &history) > 0);
	/* Not what the format has. */
	load(HISTORY("1 1 invoke a:1:1\n2 1 ok@ a:1:1\n"), &history, -EBADMSG);
	history_finish(&history);
	load(HISTORY("1 1 invoke a:1:1\n2 1 ok@3a:1:1\n"), &history, -EBADMSG);
	history_finish(&history);
	load(HISTORY("1 1 recovered@3 l:1:\n"), &history, -EBADMSG);
	history_finish(&history);
	load(HISTORY("2 1 recovered@3\n1 1 recovered@3\n"), &history, -EBADMSG);
	history_finish(&history);
}

/* Histories of two nodes, one file each. */
static void expect_of_both(const char *source, const char *target, enum check_kind kind, uint64_t n)
{
	const struct check_options options = { .model = CHECK_STRICT_SERIALIZABLE };
	struct check_result result = { 0 };
	struct history history = { 0 };

	load(source, &history, 0);
	load(target, &history, 0);
	assert_int_equal(check_history(&history, &options, &result), 0);
	assert_int_equal(result.n_anomalies, n);
	assert_int_equal(result.n_kind[kind], n);
	check_result_finish(&result);
	history_finish(&history);
}

static void test_two_nodes(void **state)
{
	(void)state;
	/* Row 1 was handed over between the two. */
	expect_of_both(HISTORY("1 1 invoke r:1 w:1:5\n2 1 ok r:1:- w:1:5\n"),
		       HISTORY("3 2 invoke r:1 w:1:6\n4 2 ok r:1:5 w:1:6\n"
			       "5 2 invoke r:1\n6 2 ok r:1:6\n"), CHECK_G_SINGLE, 0);
	/* Write skew: each reads the row that the other writes. */
	expect_of_both(HISTORY("1 1 invoke r:1 r:2 w:2:5\n9 1 ok r:1:- r:2:- w:2:5\n"),
		       HISTORY("1 2 invoke r:2 r:1 w:1:6\n9 2 ok r:2:- r:1:- w:1:6\n"),
		       CHECK_G2_ITEM, 1);
	/* Lost update: both nodes changed the same version. */
	expect_of_both(HISTORY("1 1 invoke r:1 w:1:5\n9 1 ok r:1:- w:1:5\n"),
		       HISTORY("1 2 invoke r:1 w:1:7\n9 2 ok r:1:- w:1:7\n"),
		       CHECK_LOST_UPDATE, 1);
	/* Stale read: a node that has given the unit answers with what it had. */
	expect_of_both(HISTORY("1 1 invoke a:1:5\n2 1 ok a:1:5\n5 1 invoke l:1\n6 1 ok l:1:5\n"),
		       HISTORY("3 2 invoke a:1:6\n4 2 ok a:1:6\n"), CHECK_G_SINGLE, 1);
	/* An acknowledged append is gone when the other node has taken over. */
	expect_of_both(HISTORY("1 1 invoke a:1:5\n2 1 ok a:1:5\n"),
		       HISTORY("3 2 invoke l:1\n4 2 ok l:1:\n"), CHECK_G_SINGLE, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean_histories),
		cmocka_unit_test(test_lost_in_crashes),
		cmocka_unit_test(test_g0_writes_alternate),
		cmocka_unit_test(test_g1a_aborted_read),
		cmocka_unit_test(test_g1b_intermediate_read),
		cmocka_unit_test(test_g1c_circular_information),
		cmocka_unit_test(test_g_single_read_skew),
		cmocka_unit_test(test_g2_item_write_skew),
		cmocka_unit_test(test_g2_phantom),
		cmocka_unit_test(test_scan_of_own_rows),
		cmocka_unit_test(test_internal_contradictions),
		cmocka_unit_test(test_reads_that_nothing_explains),
		cmocka_unit_test(test_lost_updates),
		cmocka_unit_test(test_a_lost_update_says_who_was_first),
		cmocka_unit_test(test_order_of_time),
		cmocka_unit_test(test_order_of_time_through_others),
		cmocka_unit_test(test_order_of_time_of_many),
		cmocka_unit_test(test_unknown_outcomes),
		cmocka_unit_test(test_deletes_of_unknown_outcome),
		cmocka_unit_test(test_rows_that_come_back),
		cmocka_unit_test(test_what_is_not_known_is_counted),
		cmocka_unit_test(test_a_cycle_is_explained),
		cmocka_unit_test(test_a_short_cycle_is_shown),
		cmocka_unit_test(test_values_written_twice),
		cmocka_unit_test(test_two_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
