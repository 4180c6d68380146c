// SPDX-License-Identifier: GPL-2.0-or-later
/* The TPC-C-like workload of the load generator: what is drawn, loaded, and checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/load/decide/books.h"
#include "oltp-engine/load/run/commands.h"

#define DRAWS	50000u

static const struct load_tpcc tpcc = { .warehouses = 3, .customers = 130, .items = 250,
				       .seed = 5 };

static void test_draw_is_repeatable(void **state)
{
	(void)state;
	for (enum load_kind kind = LOAD_NEW_ORDER; kind <= LOAD_STOCK_LEVEL; kind++) {
		struct load_tpcc_call a, b;

		load_tpcc_draw(&tpcc, kind, 77, &a);
		load_tpcc_draw(&tpcc, kind, 77, &b);
		assert_int_equal(a.n, b.n);
		assert_memory_equal(a.numbers, b.numbers, a.n * sizeof(*a.numbers));
	}
}

static void test_new_orders(void **state)
{
	uint32_t unused = 0, remote = 0, lines = 0, customers[131] = { 0 }, most = 0;

	(void)state;
	for (uint64_t seed = 0; seed < DRAWS; seed++) {
		struct load_tpcc_call call;
		uint32_t n;

		load_tpcc_draw(&tpcc, LOAD_NEW_ORDER, seed, &call);
		n = (call.n - 3) / 3;
		assert_int_equal(call.n % 3, 0);
		assert_in_range(n, 5, 15);
		assert_in_range(call.numbers[0], 1, 3);
		assert_in_range(call.numbers[1], 1, 10);
		assert_in_range(call.numbers[2], 1, 130);
		customers[call.numbers[2]]++;
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t *line = &call.numbers[3 + 3 * i];

			if (line[0] == 251)
				assert_true(i == n - 1 && call.has_unused_item);
			else
				assert_in_range(line[0], 1, 250);
			assert_in_range(line[1], 1, 3);
			assert_in_range(line[2], 1, 10);
			remote += line[1] != call.numbers[0];
			lines++;
		}
		unused += call.has_unused_item;
	}
	assert_in_range(unused, DRAWS / 100 * 8 / 10, DRAWS / 100 * 12 / 10);
	assert_in_range(remote, lines / 100 * 9 / 10, lines / 100 * 11 / 10);
	for (uint32_t c = 1; c <= 130; c++)
		most = customers[c] > most ? customers[c] : most;
	/* Not uniform: some are drawn more often. */
	assert_true(most > DRAWS / 130 * 3 / 2);
}

static void test_payments(void **state)
{
	static const struct load_tpcc alone = { .warehouses = 1, .customers = 130, .items = 250 };
	uint32_t by_name = 0, remote = 0;
	struct load_tpcc_call call;

	(void)state;
	for (uint64_t seed = 0; seed < DRAWS; seed++) {
		load_tpcc_draw(&tpcc, LOAD_PAYMENT, seed, &call);
		assert_int_equal(call.n, 7);
		assert_in_range(call.numbers[3], 1, 10);
		assert_true(call.numbers[4] <= 130 && call.numbers[5] < 130);
		assert_in_range(call.numbers[6], 100, 500000);
		by_name += !call.numbers[4];
		remote += call.numbers[2] != call.numbers[0];
		load_tpcc_draw(&alone, LOAD_PAYMENT, seed, &call);
		assert_int_equal(call.numbers[2], 1);
		assert_int_equal(call.numbers[3], call.numbers[1]);
	}
	assert_in_range(by_name, DRAWS * 59 / 100, DRAWS * 61 / 100);
	assert_in_range(remote, DRAWS * 14 / 100, DRAWS * 16 / 100);
}

/* Each row is loaded once. */
static void test_parts(void **state)
{
	uint32_t warehouses = 0, districts = 0;
	static uint8_t stock[4][251], customers[4][11][131], orders[4][11][131];

	(void)state;
	for (uint64_t i = 0; i < load_tpcc_parts(&tpcc); i++) {
		struct load_tpcc_part part = load_tpcc_part(&tpcc, i);

		assert_in_range(part.w, 1, 3);
		assert_in_range(part.d, 1, 10);
		warehouses += !strcmp(part.name, "warehouse");
		districts += !strcmp(part.name, "district");
		for (uint32_t k = part.from; k < part.from + part.n; k++) {
			if (!strcmp(part.name, "stock"))
				stock[part.w][k]++;
			else if (!strcmp(part.name, "customers"))
				customers[part.w][part.d][k]++;
			else
				orders[part.w][part.d][k]++;
		}
	}
	assert_int_equal(warehouses, 3);
	assert_int_equal(districts, 30);
	for (uint32_t w = 1; w <= 3; w++) {
		for (uint32_t k = 1; k <= 250; k++)
			assert_int_equal(stock[w][k], 1);
		for (uint32_t k = 1; k <= 1300; k++) {
			uint32_t d = (k - 1) / 130 + 1, row = (k - 1) % 130 + 1;

			assert_int_equal(customers[w][d][row], 1);
			assert_int_equal(orders[w][d][row], 1);
		}
	}
}

/* What the server would answer of tables in which each number is right. */
static void answer(const struct load_tpcc_part *part, uint32_t next_o, int64_t *numbers)
{
	memset(numbers, 0, LOAD_TPCC_ANSWER * sizeof(*numbers));
	if (!strcmp(part->name, "warehouse")) {
		numbers[1] = 1300 * 10;
	} else if (!strcmp(part->name, "district")) {
		numbers[1] = next_o;
	} else if (!strcmp(part->name, "customers")) {
		numbers[1] = part->n;
		numbers[2] = part->n * 7;
		numbers[3] = part->n * 10;
		numbers[4] = part->n;
	} else {
		numbers[2] = part->from == 1 ? 130 * 7 : 0;
	}
}

static struct load_tpcc_sums look(uint32_t more_orders)
{
	struct load_tpcc_sums sums = { 0 };
	uint32_t next_o[30] = { 0 };

	for (uint32_t round = 0; round < 2; round++) {
		uint64_t n = load_tpcc_check_parts(&tpcc, round, next_o);

		for (uint64_t i = 0; i < n; i++) {
			struct load_tpcc_part part = load_tpcc_check_part(&tpcc, round, next_o, i);
			int64_t numbers[LOAD_TPCC_ANSWER];

			assert_true(!part.n || (part.from && part.n <= 200));
			answer(&part, 131 + more_orders + part.d, numbers);
			load_tpcc_check_add(&sums, next_o, &part, numbers);
		}
	}
	load_tpcc_check_end(&sums);
	return sums;
}

static void test_books(void **state)
{
	struct load_books books = { .before = look(0), .after = look(2) };
	struct load_books_verdict verdict;

	(void)state;
	assert_int_equal(books.before.violations, 0);
	assert_int_equal(books.before.orders, 30 * 130 + 3 * 55);
	assert_int_equal(books.before.payments, 3900);
	assert_int_equal(books.after.orders - books.before.orders, 60);
	for (uint32_t i = 0; i < 59; i++)
		load_books_done(&books, LOAD_NEW_ORDER, 1);
	load_books_done(&books, LOAD_NEW_ORDER, 0);
	load_books_unknown(&books, LOAD_NEW_ORDER);
	load_books_unknown(&books, LOAD_DELIVERY);
	load_books_unknown(&books, LOAD_SELECT);
	assert_int_equal(books.rolled_back, 1);
	load_books_judge(&books, &verdict);
	assert_true(load_books_are_good(&verdict));
	assert_int_equal(verdict.books[LOAD_BOOK_DELIVERIES].unknown, 10);
	/* One payment that is in no table; two orders more than were sent. */
	load_books_done(&books, LOAD_PAYMENT, 1);
	books.after.orders += 2;
	load_books_judge(&books, &verdict);
	assert_int_equal(verdict.books[LOAD_BOOK_PAYMENTS].lost, 1);
	assert_int_equal(verdict.books[LOAD_BOOK_ORDERS].extra, 2);
	assert_false(load_books_are_good(&verdict));
	books = (struct load_books){ .before = look(0), .after = look(0) };
	books.after.balances++;
	load_tpcc_check_end(&books.after);
	load_books_judge(&books, &verdict);
	assert_int_equal(verdict.violations, 1);
	books.after.customers_ytd++;
	load_tpcc_check_end(&books.after);
	load_books_judge(&books, &verdict);
	assert_int_equal(verdict.violations, 3);
	assert_false(load_books_are_good(&verdict));
}

static const struct load_shape shape = { .value_bytes = 64, .tpcc = &tpcc };

static void assert_judged(enum load_kind kind, uint64_t seed, const char *text,
			  enum load_verdict verdict, int64_t value)
{
	const struct load_request request = { .kind = kind, .first = seed, .n = 1 };
	struct load_answer answer = { .value = -1 };

	assert_int_equal(load_replies(&request), 1);
	if (load_judge(&request, &shape, 0, text, strlen(text), &answer) != verdict)
		fail_msg("kind %d: '%s'", kind, text);
	if (verdict == LOAD_GOOD && value >= 0)
		assert_int_equal(answer.value, value);
}

static void test_calls_and_answers(void **state)
{
	uint64_t good = 0, unused = 0;
	struct load_tpcc_call call;
	struct wire_bytes out = { 0 };
	char head[64];

	(void)state;
	for (load_tpcc_draw(&tpcc, LOAD_NEW_ORDER, unused, &call); !call.has_unused_item;)
		load_tpcc_draw(&tpcc, LOAD_NEW_ORDER, ++unused, &call);
	for (load_tpcc_draw(&tpcc, LOAD_NEW_ORDER, good, &call); call.has_unused_item;)
		load_tpcc_draw(&tpcc, LOAD_NEW_ORDER, ++good, &call);
	assert_judged(LOAD_NEW_ORDER, good, "*2\r\n:8\r\n:9\r\n", LOAD_GOOD, 1);
	assert_judged(LOAD_NEW_ORDER, good, "_\r\n", LOAD_WRONG, 0);
	assert_judged(LOAD_NEW_ORDER, unused, "_\r\n", LOAD_GOOD, 0);
	assert_judged(LOAD_NEW_ORDER, unused, "$-1\r\n", LOAD_GOOD, 0);
	assert_judged(LOAD_NEW_ORDER, unused, "*2\r\n:8\r\n:9\r\n", LOAD_WRONG, 0);
	assert_judged(LOAD_NEW_ORDER, good, "-ERR\r\n", LOAD_REFUSED, 0);
	assert_judged(LOAD_PAYMENT, 1, "*2\r\n:8\r\n:-9\r\n", LOAD_GOOD, 1);
	assert_judged(LOAD_PAYMENT, 1, "*2\r\n:8\r\n+x\r\n", LOAD_WRONG, 0);
	assert_judged(LOAD_DELIVERY, 1, ":10\r\n", LOAD_GOOD, 10);
	assert_judged(LOAD_STOCK_LEVEL, 1, "*0\r\n", LOAD_WRONG, 0);
	assert_judged(LOAD_ORDER_STATUS, 1, "*2\r\n:8\r\n:9\r\n", LOAD_WRONG, 0);
	assert_judged(LOAD_TPCC_FILL, 1, "+OK\r\n", LOAD_GOOD, -1);
	assert_judged(LOAD_TPCC_CHECK, 1, "*5\r\n:0\r\n:1\r\n:2\r\n:3\r\n:4\r\n", LOAD_GOOD, -1);
	assert_judged(LOAD_TPCC_CHECK, 1, "*1\r\n:0\r\n", LOAD_WRONG, 0);
	/* Keys that are known: warehouse, district, customer, stock. */
	assert_int_equal(load_write_request(&out, &(struct load_request){ .kind = LOAD_NEW_ORDER,
									  .first = good, .n = 1 },
					    &shape), 0);
	snprintf(head, sizeof(head), "*%u\r\n$5\r\nFCALL\r\n$14\r\ntpcc_new_order\r\n",
		 3 + 3 + (call.n - 3) / 3 + call.n);
	assert_memory_equal(out.bytes, head, strlen(head));
	wire_bytes_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_draw_is_repeatable),
		cmocka_unit_test(test_new_orders),
		cmocka_unit_test(test_payments),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_books),
		cmocka_unit_test(test_calls_and_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
