// SPDX-License-Identifier: GPL-2.0-or-later
/* RESP as the load generator speaks and hears it: replies, pushes, commands, addresses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/load/run/commands.h"
#include "oltp-engine/load/wire/address.h"
#include "oltp-engine/load/wire/push.h"
#include "oltp-engine/load/wire/info.h"
#include "oltp-engine/load/wire/reply.h"

/* One reply of each kind, and of several in each other. */
static const char *const replies[] = {
	"+OK\r\n", "-ERR no\r\n", ":-12\r\n", "$0\r\n\r\n", "$5\r\na\r\nbc\r\n", "$-1\r\n", "_\r\n",
	"#t\r\n", ",1.5\r\n", "(123456789012345678901\r\n", "!3\r\nERR\r\n", "=7\r\ntxt:abc\r\n",
	"*0\r\n", "*-1\r\n",
	"*2\r\n:1\r\n*2\r\n$1\r\nx\r\n_\r\n", "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n",
	"~1\r\n+x\r\n",
	">2\r\n+kind\r\n%1\r\n+a\r\n+b\r\n", "|1\r\n+ttl\r\n:3\r\n$2\r\nhi\r\n",
	"*1\r\n|1\r\n+a\r\n+b\r\n:1\r\n",
};

#define N(array)	(sizeof(array) / sizeof(*(array)))

/* Whole only with the last byte, in one piece or byte by byte, whatever follows. */
static void test_scan_ends_where_the_reply_ends(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(replies); i++) {
		struct reply_scan bytewise = { 0 };
		size_t n = strlen(replies[i]), length = 0;
		char text[200];

		snprintf(text, sizeof(text), "%s:7\r\n", replies[i]);
		for (size_t have = 0; have < n; have++) {
			struct reply_scan fresh = { 0 };

			assert_int_equal(reply_scan(&bytewise, text, have, &length), 0);
			assert_int_equal(reply_scan(&fresh, text, have, &length), 0);
		}
		assert_int_equal(reply_scan(&bytewise, text, n, &length), 1);
		assert_int_equal(length, n);
		assert_int_equal(reply_scan(&bytewise, text + n, 4, &length), 1);
		assert_int_equal(length, 4);
	}
}

static void test_scan_refuses(void **state)
{
	static const char *const bad[] = {
		"?\r\n", "$x\r\n", "$-2\r\n", "$99999999999999999999\r\n", "$16777217\r\n",
		"$1\r\nabc",
		"*1048577\r\n", ":\r\n", ":1x\r\n", ":9223372036854775808\r\n", "+a\rb", "%-2\r\n",
		"*1\r\n?\r\n", "$1\r\na\nb",
	};

	(void)state;
	for (size_t i = 0; i < N(bad); i++) {
		struct reply_scan scan = { 0 };
		size_t length;

		if (reply_scan(&scan, bad[i], strlen(bad[i]), &length) != -EPROTO)
			fail_msg("'%s' was taken", bad[i]);
	}
}

/* A line without an end is not kept for ever. */
static void test_scan_refuses_a_long_line(void **state)
{
	static char text[100000];
	struct reply_scan scan = { 0 };
	size_t length;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '+';
	assert_int_equal(reply_scan(&scan, text, sizeof(text), &length), -EPROTO);
}

/* No byte makes it read what is not there; the sanitizer looks on. */
static void test_scan_of_noise(void **state)
{
	static const char alphabet[] = "+-:$*_,#(!=%~>|0123\r\n\r\n\r\nx";

	(void)state;
	srand(1);
	for (uint32_t i = 0; i < 100000; i++) {
		size_t n = (size_t)rand() % 40, length = 0, at = 0;
		char *text = malloc(n + 1);
		struct reply_scan scan = { 0 };
		struct reply_item item;
		struct push_relocate push;

		for (size_t b = 0; b < n; b++)
			text[b] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
		/* Exactly as much memory as there are bytes. */
		text = realloc(text, n ? n : 1);
		if (reply_scan(&scan, text, n, &length) > 0) {
			assert_in_range(length, 3, n);
			while (at < length)
				assert_int_equal(reply_item(text, length, &at, &item), 1);
			push_parse(text, length, &push);
		}
		free(text);
	}
}

static void test_push(void **state)
{
	static const char *const others[] = {
		">1\r\n+pong\r\n", ">3\r\n$7\r\nmessage\r\n+a\r\n+b\r\n", ">2\r\n:1\r\n:2\r\n",
	};
	static const char *const bad[] = {
		">1\r\n$12\r\nebb-relocate\r\n", ">2\r\n$12\r\nebb-relocate\r\n+a:1\r\n",
		">3\r\n$12\r\nebb-relocate\r\n+a:1\r\n+1\r\n",
		">3\r\n$12\r\nebb-relocate\r\n:1\r\n:1\r\n",
		">3\r\n$12\r\nebb-relocate\r\n$0\r\n\r\n:1\r\n",
		">3\r\n$12\r\nebb-relocate\r\n+a:1\r\n:-1\r\n",
		">3\r\n$12\r\nebb-relocate\r\n+a:1\r\n:4294967296\r\n", "*1\r\n+a\r\n", ">0\r\n",
	};
	static const char good[] = ">3\r\n$12\r\nebb-relocate\r\n$9\r\n[::1]:7000\r\n:5\r\n";
	struct push_relocate push = { .count = 99 };
	char text[600], address[400];

	(void)state;
	for (size_t i = 0; i < N(others); i++)
		assert_int_equal(push_parse(others[i], strlen(others[i]), &push), 0);
	for (size_t i = 0; i < N(bad); i++) {
		if (push_parse(bad[i], strlen(bad[i]), &push) != -EPROTO)
			fail_msg("'%s' was taken", bad[i]);
	}
	assert_int_equal(push.count, 99);
	/* The length says 9, so this one is cut short. */
	assert_int_equal(push_parse(good, strlen(good), &push), -EPROTO);
	snprintf(text, sizeof(text), ">3\r\n$12\r\nebb-relocate\r\n$10\r\n[::1]:7000\r\n:5\r\n");
	assert_int_equal(push_parse(text, strlen(text), &push), 1);
	assert_string_equal(push.address, "[::1]:7000");
	assert_int_equal(push.count, 5);
	/* What a later version adds is ignored. */
	snprintf(text, sizeof(text), ">4\r\n+ebb-relocate\r\n+b:2\r\n:0\r\n:77\r\n");
	assert_int_equal(push_parse(text, strlen(text), &push), 1);
	assert_string_equal(push.address, "b:2");
	assert_int_equal(push.count, 0);
	memset(address, 'a', sizeof(address) - 1);
	address[sizeof(address) - 1] = 0;
	snprintf(text, sizeof(text), ">3\r\n+ebb-relocate\r\n+%s\r\n:1\r\n", address);
	assert_int_equal(push_parse(text, strlen(text), &push), -EPROTO);
}

static const struct load_tpcc tpcc = { .warehouses = 2, .customers = 30, .items = 50, .seed = 9 };
static const uint32_t next_o[2 * TPCC_DISTRICTS] = { 31, 82 };
static const struct load_shape shape = { .value_bytes = LOAD_VALUE_MIN, .tpcc = &tpcc,
					 .next_o = next_o };

static void assert_written(const struct load_request *request, const char *text)
{
	struct wire_bytes out = { 0 };

	assert_int_equal(load_write_request(&out, request, &shape), 0);
	assert_int_equal(out.end - out.first, strlen(text));
	assert_memory_equal(out.bytes + out.first, text, strlen(text));
	wire_bytes_free(&out);
}

static void test_commands(void **state)
{
	(void)state;
	assert_written(&(struct load_request){ .kind = LOAD_SELECT, .first = 9, .n = 2 },
		       "*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nGET\r\n$5\r\nrow:9\r\n"
		       "*2\r\n$3\r\nGET\r\n$6\r\nrow:10\r\n*1\r\n$4\r\nEXEC\r\n");
	assert_written(&(struct load_request){ .kind = LOAD_DELETE, .first = 1, .n = 1 },
		       "*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nDEL\r\n$5\r\nrow:1\r\n"
		       "*1\r\n$4\r\nEXEC\r\n");
	assert_written(&(struct load_request){ .kind = LOAD_SET, .first = 1, .n = 1 },
		       "*3\r\n$3\r\nSET\r\n$5\r\nrow:1\r\n"
		       "$32\r\nrow:1|..........................\r\n");
	assert_written(&(struct load_request){ .kind = LOAD_COUNT, .first = 3, .n = 1 },
		       "*2\r\n$4\r\nINCR\r\n$9\r\ncounter:3\r\n");
	assert_written(&(struct load_request){ .kind = LOAD_YCSB_READ, .first = 3, .n = 1 },
		       "*4\r\n$5\r\nFCALL\r\n$9\r\nycsb_read\r\n$1\r\n1\r\n$6\r\nuser:3\r\n");
	assert_written(&(struct load_request){ .kind = LOAD_YCSB_UPDATE, .first = 3, .n = 1,
					       .field = 7 },
		       "*6\r\n$5\r\nFCALL\r\n$11\r\nycsb_update\r\n$1\r\n1\r\n$6\r\nuser:3\r\n"
		       "$6\r\nfield7\r\n$100\r\nuser:3|......................................"
		       ".......................................................\r\n");
	assert_written(&(struct load_request){ .kind = LOAD_READ_COUNTER, .first = 3, .n = 1 },
		       "*2\r\n$3\r\nGET\r\n$9\r\ncounter:3\r\n");
}

static void test_greeting(void **state)
{
	static const char *const greetings[] = {
		"*1\r\n$4\r\nPING\r\n", "*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n",
		"*4\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$7\r\nSETNAME\r\n$9\r\noltp-load\r\n",
		("*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$1\r\nx\r\n"
		 "$7\r\nSETNAME\r\n$9\r\noltp-load\r\n"),
	};

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct wire_bytes out = { 0 };

		assert_int_equal(load_write_greeting(&out, 2 + i / 2, i % 2 ? "x" : NULL,
						     "oltp-load"), 0);
		assert_int_equal(out.end, strlen(greetings[i]));
		assert_memory_equal(out.bytes, greetings[i], out.end);
		wire_bytes_free(&out);
	}
}

static void test_info(void **state)
{
	static const char text[] = "txt:# CPU\r\nused_cpu_sys:1.250000\r\nused:7\r\nbad:1.2.3\r\n"
				   "no:\r\nneg:-1\r\nword:up\r\nlast:12";
	struct wire_bytes out = { 0 };
	double value = 0;

	(void)state;
	assert_true(info_number(text, strlen(text), "used_cpu_sys", &value) && value == 1.25);
	assert_true(info_number(text, strlen(text), "used", &value) && value == 7);
	assert_true(info_number(text, strlen(text), "last", &value) && value == 12);
	for (const char *name = "bad\0no\0neg\0word\0use\0sed\0other\0"; *name;
	     name += strlen(name) + 1)
		assert_false(info_number(text, strlen(text), name, &value));
	assert_false(info_number(text, 0, "used", &value));
	assert_int_equal(load_write_info(&out), 0);
	assert_int_equal(out.bytes[1], '4');
	wire_bytes_free(&out);
}

struct answer {
	uint32_t index;
	const char *text;
	enum load_verdict verdict;
};

static void assert_judged(const struct load_request *request, const struct answer *answers,
			  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct load_answer answer;
		enum load_verdict verdict = load_judge(request, &shape, answers[i].index,
						       answers[i].text, strlen(answers[i].text),
						       &answer);

		if (verdict != answers[i].verdict)
			fail_msg("kind %d: '%s' is judged %d", request->kind, answers[i].text,
				 verdict);
	}
}

/* A record of YCSB with so many fields, all of the record user:ID. */
static void assert_record_judged(char type, uint32_t fields, uint32_t id,
				 enum load_verdict verdict)
{
	static const struct load_request read = { .kind = LOAD_YCSB_READ, .first = 9, .n = 1 };
	uint32_t elements = type == '%' ? fields : 2 * fields;
	char text[4096];
	struct load_answer answer;
	int n = snprintf(text, sizeof(text), "%c%u\r\n", type, elements);

	for (uint32_t i = 0; i < fields; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "$6\r\nfield%u\r\n$100\r\nuser:%u|%093d\r\n", i, id, 0);
	assert_int_equal(load_judge(&read, &shape, 0, text, (size_t)n, &answer), verdict);
}

static void test_judge_record(void **state)
{
	(void)state;
	assert_record_judged('%', LOAD_YCSB_FIELDS, 9, LOAD_GOOD);
	assert_record_judged('*', LOAD_YCSB_FIELDS, 9, LOAD_GOOD);
	assert_record_judged('%', LOAD_YCSB_FIELDS, 8, LOAD_WRONG);
	assert_record_judged('%', LOAD_YCSB_FIELDS - 1, 9, LOAD_WRONG);
	assert_record_judged('%', 0, 9, LOAD_WRONG);
}

static void test_judge(void **state)
{
	static const struct load_request select = { .kind = LOAD_SELECT, .first = 9, .n = 2 };
	static const struct load_request erase = { .kind = LOAD_DELETE, .first = 9, .n = 2 };
	static const struct load_request update = { .kind = LOAD_UPDATE, .first = 9, .n = 2 };
	static const struct load_request get = { .kind = LOAD_GET, .first = 9, .n = 1 };
	static const struct answer of_select[] = {
		{ 0, "+OK\r\n", LOAD_GOOD }, { 0, "+QUEUED\r\n", LOAD_WRONG },
		{ 0, "-ERR\r\n", LOAD_REFUSED }, { 1, "+QUEUED\r\n", LOAD_GOOD },
		{ 2, "+OK\r\n", LOAD_WRONG }, { 3, "+OK\r\n", LOAD_WRONG },
		{ 3, "*2\r\n$7\r\nrow:9|x\r\n$7\r\nrow:10|\r\n", LOAD_GOOD },
		{ 3, "*2\r\n$7\r\nrow:9|x\r\n$7\r\nrow:11|\r\n", LOAD_WRONG },
		{ 3, "*2\r\n$7\r\nrow:9|x\r\n_\r\n", LOAD_WRONG },
		{ 3, "*2\r\n$7\r\nrow:9|x\r\n$-1\r\n", LOAD_WRONG },
		{ 3, "*2\r\n$7\r\nrow:9|x\r\n-ERR\r\n", LOAD_REFUSED },
		{ 3, "*1\r\n$7\r\nrow:9|x\r\n", LOAD_WRONG },
		{ 3, "*-1\r\n", LOAD_REFUSED }, { 3, "_\r\n", LOAD_REFUSED },
		{ 3, "-EXECABORT\r\n", LOAD_REFUSED }, { 3, "!3\r\nERR\r\n", LOAD_REFUSED },
	};
	static const struct answer of_delete[] = {
		{ 3, "*2\r\n:0\r\n:1\r\n", LOAD_GOOD }, { 3, "*2\r\n:0\r\n:2\r\n", LOAD_WRONG },
	};
	static const struct answer of_update[] = {
		{ 3, "*2\r\n+OK\r\n+OK\r\n", LOAD_GOOD }, { 3, "*2\r\n+OK\r\n+NO\r\n", LOAD_WRONG },
	};
	static const struct answer of_get[] = {
		{ 0, "$6\r\nrow:9|\r\n", LOAD_GOOD }, { 0, "$5\r\nrow:9\r\n", LOAD_WRONG },
		{ 0, "$7\r\nrow:90|\r\n", LOAD_WRONG }, { 0, "_\r\n", LOAD_WRONG },
	};

	(void)state;
	assert_int_equal(load_replies(&select), 4);
	assert_int_equal(load_replies(&get), 1);
	assert_judged(&select, of_select, N(of_select));
	assert_judged(&erase, of_delete, N(of_delete));
	assert_judged(&update, of_update, N(of_update));
	assert_judged(&get, of_get, N(of_get));
}

static void test_judge_counters(void **state)
{
	static const struct load_request count = { .kind = LOAD_COUNT, .n = 1 };
	static const struct load_request read = { .kind = LOAD_READ_COUNTER, .n = 1 };
	struct load_answer answer = { .value = 0 };

	(void)state;
	assert_int_equal(load_judge(&count, &shape, 0, ":7\r\n", 4, &answer), LOAD_GOOD);
	assert_int_equal(answer.value, 7);
	assert_int_equal(load_judge(&count, &shape, 0, "+7\r\n", 4, &answer), LOAD_WRONG);
	assert_int_equal(load_judge(&read, &shape, 0, "$2\r\n42\r\n", 8, &answer), LOAD_GOOD);
	assert_int_equal(answer.value, 42);
	assert_int_equal(load_judge(&read, &shape, 0, "_\r\n", 3, &answer), LOAD_GOOD);
	assert_int_equal(answer.value, 0);
	assert_int_equal(load_judge(&read, &shape, 0, "$2\r\n4x\r\n", 8, &answer), LOAD_WRONG);
}

/* Added at the end and taken from the front for long: the memory does not grow with the sum. */
static void test_bytes(void **state)
{
	struct wire_bytes b = { 0 };
	uint8_t next_in = 0, next_out = 0;

	(void)state;
	srand(1);
	for (uint32_t i = 0; i < 20000; i++) {
		size_t n = (size_t)rand() % 3000, have;
		char *to = wire_bytes_reserve(&b, n);

		assert_non_null(to);
		for (size_t k = 0; k < n; k++)
			to[k] = (char)next_in++;
		b.end += n;
		have = b.end - b.first;
		n = have > 8000 ? have : (size_t)rand() % (have + 1);
		for (size_t k = 0; k < n; k++)
			assert_int_equal((uint8_t)b.bytes[b.first + k], next_out++);
		wire_bytes_take(&b, n);
	}
	assert_true(b.room <= 65536);
	wire_bytes_free(&b);
}

static void test_addresses(void **state)
{
	static const char *const good[] = {
		"127.0.0.1:1", "[::1]:65535", "unix:/run/x", "127.0.0.1:6379",
	};
	static const char *const bad[] = {
		"", ":1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
		"127.0.0.1:1x",
		"127.0.0.1:-1", "::1:80", "[]:1", "[::1:80", "unix:", "a.invalid:80", "1:2:3",
		"[]:",
	};
	struct wire_address address, other;
	char path[300];

	(void)state;
	for (size_t i = 0; i < N(good); i++) {
		if (wire_address_parse(good[i], true, &address))
			fail_msg("'%s' was refused", good[i]);
		assert_string_equal(address.text, good[i]);
	}
	for (size_t i = 0; i < N(bad); i++) {
		if (wire_address_parse(bad[i], true, &address) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
	}
	assert_string_equal(address.text, "127.0.0.1:6379");
	assert_int_equal(wire_address_parse("127.0.0.1:6379", true, &other), 0);
	assert_true(wire_address_equal(&address, &other));
	assert_int_equal(wire_address_parse("127.0.0.2:6379", true, &other), 0);
	assert_false(wire_address_equal(&address, &other));
	assert_int_equal(wire_address_parse("unix:/a", true, &other), 0);
	assert_false(wire_address_equal(&address, &other));
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(wire_address_parse(path, true, &other), -ENAMETOOLONG);
	memcpy(path, "unix:", 5);
	path[200] = 0;
	assert_int_equal(wire_address_parse(path, true, &other), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan_ends_where_the_reply_ends),
		cmocka_unit_test(test_scan_refuses),
		cmocka_unit_test(test_scan_refuses_a_long_line),
		cmocka_unit_test(test_scan_of_noise),
		cmocka_unit_test(test_push),
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_greeting),
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_judge_record),
		cmocka_unit_test(test_judge_counters),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
