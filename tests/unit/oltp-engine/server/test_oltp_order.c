// SPDX-License-Identifier: GPL-2.0-or-later
/* The words of RELOCATE and of the control socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/server/order.h"

#define WORDS_MAX	16

static const char *parse(const char *line, struct relocation_order *ret)
{
	char text[600], *words[WORDS_MAX + 1], *rest = NULL;
	uint32_t n = 0;

	assert_true(strlen(line) < sizeof(text));
	strcpy(text, line);
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		words[n++] = word;
	words[n] = NULL;
	return order_parse(words, n, ret);
}

static struct relocation_order good(const char *line)
{
	struct relocation_order order;

	assert_null(parse(line, &order));
	return order;
}

static void test_good(void **state)
{
	struct relocation_order o = good("TO 10.0.0.1:7");

	(void)state;
	assert_false(o.cancels || o.has_drain);
	assert_string_equal(o.node, "10.0.0.1:7");
	assert_string_equal(o.clients, "");
	/* Slower than before a failover, and only once. */
	assert_true(o.copies && !o.copy.pause_ns && o.copy.rounds_max == 1 && o.copy.is_in_order);
	assert_true(o.copy.bytes_per_s < good("TO n FAILOVER").copy.bytes_per_s);
	assert_false(good("TO n FAST").copies || good("TO n FIXED 5").copies ||
		     good("TO n LIMIT-S 0").copies || good("CANCEL TO n").copies);
	assert_true(o.drain.speed_percent == 100 && !o.drain.fixed_per_s &&
		    o.drain.limit_ns == 120000000000ull);
	o = good("to n clients c fixed 5 limit-s 7 speed 400");
	assert_string_equal(o.clients, "c");
	assert_true(o.has_drain && o.drain.fixed_per_s == 5 && o.drain.speed_percent == 400 &&
		    o.drain.limit_ns == 7000000000ull);
	o = good("To n Fast Limit-S 7");
	assert_true(o.drain.limit_ns == 0);
	o = good("TO n FIXED 5 ADAPTIVE");
	assert_true(o.drain.fixed_per_s == 0);
	o = good("TO n FAILOVER timeout-s 5 max-mib 7 mib-s 9");
	assert_true(o.is_failover && o.copies && !o.drain.limit_ns);
	assert_true(o.copy.timeout_ns == 5000000000ull &&
		    o.copy.bytes_max == 7 << 20 && o.copy.bytes_per_s == 9 << 20);
	o = good("CANCEL");
	assert_true(o.cancels && !o.has_drain && !*o.node);
	o = good("cancel to n clients c fast");
	assert_true(o.cancels && o.has_drain && *o.node && *o.clients);
	o = good("TO n LIMIT-S 0");
	assert_true(o.drain.limit_ns == 0);
}

static void test_bad(void **state)
{
	static const char *const lines[] = {
		"", "TO", "MOVE n", "CANCEL x", "TO n x", "TO n CLIENTS", "TO n FIXED",
		"TO n FIXED 0", "TO n FIXED 100001", "TO n FIXED 1x", "TO n FIXED -1",
		"TO n LIMIT-S 86401", "TO n LIMIT-S 99999999999999999999", "TO n SPEED 0",
		"TO n SPEED 10001", "TO n FAST 3", "TO n FASTER", "TO n FAS",
		"TO n MIB-S 5", "TO n FAILOVER MIB-S 0", "TO n FAILOVER FIXED 5",
		"TO n FAILOVER FAST", "CANCEL FAILOVER",
	};
	struct relocation_order before = good("TO n"), order = before;
	char line[400];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_non_null(parse(lines[i], &order));
		assert_memory_equal(&order, &before, sizeof(order));
	}
	strcpy(line, "TO ");
	memset(line + 3, 'a', 256);
	line[3 + 256] = '\0';
	assert_non_null(parse(line, &order));
	line[3 + 255] = '\0';
	assert_null(parse(line, &order));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
