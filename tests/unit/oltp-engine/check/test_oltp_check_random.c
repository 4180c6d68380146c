// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The checker against histories that a program makes up: whatever a model ran one after the other
 * is clean, whatever was turned round in it is found; and no text, however broken, brings it down.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "check_script.h"
#include "tests/lib/chance.h"

#define KEYS		6u
#define TXNS		60u
#define LIST_MAX	200u
#define OPS_BYTES	8192u

/* Rows and lists as they are now. */
struct model {
	uint64_t rows[KEYS];	/* 0: not there */
	uint64_t lists[KEYS][LIST_MAX];
	uint32_t n[KEYS];
	uint64_t values;
};

static void __attribute__((format(printf, 2, 3))) put(char *ops, const char *format, ...)
{
	size_t n = strlen(ops);
	va_list args;

	va_start(args, format);
	vsnprintf(ops + n, OPS_BYTES - n, format, args);
	va_end(args);
	assert_true(strlen(ops) < OPS_BYTES - 1);
}

static void run_list(struct model *m, char *ops)
{
	uint32_t key = roll(KEYS);

	if (roll(2)) {
		put(ops, " l:%u:", key);
		for (uint32_t i = 0; i < m->n[key]; i++)
			put(ops, "%s%" PRIu64, i ? "," : "", m->lists[key][i]);
		return;
	}
	m->lists[key][m->n[key]++] = ++m->values;
	put(ops, " a:%u:%" PRIu64, key, m->values);
}

static void run_scan(const struct model *m, char *ops)
{
	uint32_t from = roll(KEYS), to = roll(KEYS), n = 0;

	put(ops, " s:%u:%u:", from, to);
	for (uint32_t key = from; key <= to; key++) {
		if (m->rows[key])
			put(ops, "%s%u=%" PRIu64, n++ ? "," : "", key, m->rows[key]);
	}
}

static void run_row(struct model *m, char *ops)
{
	uint32_t key = roll(KEYS);

	switch (roll(4)) {
	case 0:
		if (m->rows[key])
			put(ops, " r:%u:%" PRIu64, key, m->rows[key]);
		else
			put(ops, " r:%u:-", key);
		break;
	case 1:
		put(ops, " %c:%u:%" PRIu64, m->rows[key] ? 'w' : 'i', key, m->values + 1);
		m->rows[key] = ++m->values;
		break;
	case 2:
		if (m->rows[key])
			put(ops, " d:%u:%" PRIu64, key, m->rows[key]);
		m->rows[key] = 0;
		break;
	default:
		run_scan(m, ops);
	}
}

static void make_txn(struct model *m, char *ops)
{
	*ops = '\0';
	for (uint32_t i = 1 + roll(5); i; i--)
		(roll(2) ? run_list : run_row)(m, ops);
}

/*
 * Each transaction took effect at time 100 * i; it was invoked up to spread before that and ended
 * up to spread after it. Of one in forgotten_every, if that is not 0, the outcome is not known.
 */
static void make_history(struct script *script, uint32_t spread, uint32_t forgotten_every)
{
	char *ops = malloc(OPS_BYTES);
	struct model *m = calloc(1, sizeof(*m));

	assert_non_null(ops);
	assert_non_null(m);
	script_begin(script);
	for (uint32_t i = 1; i <= TXNS; i++) {
		struct model before = *m;
		bool is_aborted = !roll(8);
		bool is_forgotten = forgotten_every && !roll(forgotten_every);

		make_txn(m, ops);
		script_txn(script, i, 100000 + 100 * i - roll(spread),
			   100000 + 100 * i + 1 + roll(spread),
			   is_forgotten ? "info" : is_aborted ? "fail" : "ok", ops + !!*ops);
		if (is_aborted) {
			uint64_t values = m->values;

			*m = before;
			m->values = values;
		}
	}
	*ops = '\0';
	for (uint32_t key = 0; key < KEYS; key++) {
		put(ops, " l:%u:", key);
		for (uint32_t i = 0; i < m->n[key]; i++)
			put(ops, "%s%" PRIu64, i ? "," : "", m->lists[key][i]);
	}
	script_txn(script, TXNS + 1, 900000, 900001, "ok", ops + 1);
	free(ops);
	free(m);
}

static void test_what_ran_one_after_the_other_is_clean(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 200; i++) {
		struct script script;

		chance = i * 99991;
		make_history(&script, 1 + roll(2000), i % 2 ? 5 : 0);
		script_expect_clean(&script, CHECK_STRICT_SERIALIZABLE);
		script_expect_clean(&script, CHECK_STRONG_SESSION);
		script_expect_clean(&script, CHECK_SERIALIZABLE);
		script_finish(&script);
	}
}

/* What an aborted transaction was told does not count. */
static bool is_committed(const struct script *script, const char *at)
{
	while (at > script->text && at[-1] != '\n')
		at--;
	return strstr(at, " ok ") && strstr(at, " ok ") < strchr(at, '\n');
}

/* Swaps two neighbours in one read of a list. */
static bool swap_in_a_list(struct script *script)
{
	char *comma = strchr(script->text + roll((uint32_t)script->n), ',');
	char first[24], second[24];
	size_t a, b;

	if (!comma || !is_committed(script, comma))
		return false;
	for (a = 0; comma[-(ptrdiff_t)a - 1] >= '0' && comma[-(ptrdiff_t)a - 1] <= '9';)
		a++;
	b = strspn(comma + 1, "0123456789");
	/* Rows of scans have a key. */
	if (!a || !b || comma[1 + b] == '=' || comma[-(ptrdiff_t)a - 1] == '=')
		return false;
	memcpy(first, comma - a, a);
	memcpy(second, comma + 1, b);
	memcpy(comma - a, second, b);
	comma[b - a] = ',';
	memcpy(comma - a + b + 1, first, a);
	return true;
}

static void test_what_was_swapped_is_found(void **state)
{
	uint32_t n_swapped = 0;

	(void)state;
	for (uint64_t i = 1; i <= 200; i++) {
		struct check_result result = { 0 };
		struct script script;

		chance = i * 77777;
		/* None at the same time as another: any two could have been the other way round. */
		make_history(&script, 1, 0);
		if (swap_in_a_list(&script)) {
			n_swapped++;
			assert_int_equal(script_check(&script, CHECK_STRICT_SERIALIZABLE, &result),
					 0);
			assert_true(result.n_anomalies > 0);
		}
		check_result_finish(&result);
		script_finish(&script);
	}
	assert_true(n_swapped > 40);
}

static void parse_and_check(const char *text, size_t bytes, uint32_t *n_good)
{
	const struct check_options options = { .model = roll(3), .anomalies_max = roll(3) };
	/* A copy of just that size: a look beyond it is seen by the sanitizers. */
	char *copy = malloc(bytes ? bytes : 1);
	struct history_error error = { 0 };
	struct check_result result = { 0 };
	struct history history = { 0 };
	int rc;

	assert_non_null(copy);
	memcpy(copy, text, bytes);
	rc = history_parse(&history, copy, bytes, NULL, NULL, &error);
	assert_true(!rc || (rc == -EBADMSG && error.what));
	if (!rc) {
		rc = check_history(&history, &options, &result);
		assert_true(!rc || rc == -EBADMSG);
		*n_good += !rc;
	}
	check_result_finish(&result);
	history_finish(&history);
	free(copy);
}

/* Bytes turned, digits changed, pieces taken out or doubled. */
static size_t mutate(char *text, size_t bytes)
{
	static const char likely[] = "0123456789:,=- \nalwrids";

	for (uint32_t i = 1 + roll(4); i && bytes > 40; i--) {
		size_t at = roll((uint32_t)bytes), n = roll(20);

		if (at + n > bytes)
			n = bytes - at;
		switch (roll(4)) {
		case 0:
			text[at] = (char)roll(256);
			break;
		case 1:
			text[at] = likely[roll(sizeof(likely) - 1)];
			break;
		case 2:
			memmove(text + at, text + at + n, bytes - at - n);
			bytes -= n;
			break;
		default:
			memmove(text + roll((uint32_t)(bytes - n + 1)), text + at, n);
		}
	}
	return bytes;
}

static void test_no_text_brings_it_down(void **state)
{
	uint32_t n_good = 0;

	(void)state;
	for (uint64_t i = 1; i <= 1000; i++) {
		struct script script;

		chance = i * 1000003;
		make_history(&script, 1 + roll(1000), 8);
		parse_and_check(script.text, mutate(script.text, script.n), &n_good);
		script_finish(&script);
	}
	/* Not all were refused at the first line. */
	assert_true(n_good > 20);
}

static void test_malformed_lines_are_named(void **state)
{
	static const char *const lines[] = {
		"", "x", "1", "1 ", "1 2", "1 2 ", "1 2 begin", "1 2 ok", "1 2 fail", "-1 2 invoke",
		"18446744073709551615 2 invoke", "18446744073709551616 2 invoke",
		"1 2 invokea:1:1",
		"1 2 invoke ", "1 2 invoke  a:1:1", "1 2 invoke a", "1 2 invoke a:",
		"1 2 invoke a:1",
		"1 2 invoke a:1:", "1 2 invoke a:1:18446744073709551615", "1 2 invoke q:1:1",
		"1 2 invoke l:1:,", "1 2 invoke l:1:1,", "1 2 invoke l:1:-", "1 2 invoke r:1:--",
		"1 2 invoke w:1:-", "1 2 invoke s:1", "1 2 invoke s:1:9:5", "1 2 invoke s:1:9:10=1",
		"1 2 invoke s:1:9:3=1,3=2", "1 2 invoke s:1:9:3=1,2=2", "1 2 invoke d:1:-",
		"1 2 invoke a:1:1\n1 2 invoke", "5 2 invoke\n4 2 ok", "1 2 invoke a:1:1 ",
	};

	(void)state;
	for (size_t i = 1; i < sizeof(lines) / sizeof(*lines); i++) {
		struct history_error error = { 0 };
		struct history history = { 0 };
		char text[200];

		snprintf(text, sizeof(text), "oltp-history 1\n%s\n", lines[i]);
		if (history_parse(&history, text, strlen(text), NULL, NULL, &error) !=
		    -EBADMSG)
			fail_msg("'%s' is taken", lines[i]);
		assert_int_equal(error.line, strchr(lines[i], '\n') ? 3 : 2);
		history_finish(&history);
		/* Without the header it is none either. */
		assert_int_equal(history_parse(&history, lines[i], strlen(lines[i]), NULL, NULL,
					       &error), -EBADMSG);
		history_finish(&history);
	}
}

static void test_a_torn_last_line_is_left_out(void **state)
{
	static const char text[] = "oltp-history 1\n1 1 invoke a:1:1\n2 1 ok a:1:1 l:1:";
	struct history_error error = { 0 };
	struct history history = { 0 };

	(void)state;
	assert_int_equal(history_parse(&history, text, strlen(text), NULL, NULL, &error), 0);
	assert_int_equal(history.torn_lines, 1);
	assert_int_equal(history.txns.n, 1);
	assert_int_equal(history.txns.at[0].outcome, HISTORY_INFO);
	assert_int_equal(history.txns.at[0].n_ops, 1);
	history_finish(&history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_ran_one_after_the_other_is_clean),
		cmocka_unit_test(test_what_was_swapped_is_found),
		cmocka_unit_test(test_no_text_brings_it_down),
		cmocka_unit_test(test_malformed_lines_are_named),
		cmocka_unit_test(test_a_torn_last_line_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
