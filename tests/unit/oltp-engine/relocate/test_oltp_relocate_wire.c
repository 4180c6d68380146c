// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames between the nodes of a relocation: what is sent comes back, what is malformed does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oltp-engine/relocate/wire.h"

#define N	3u
#define ROOM	(WIRE_HEADER_BYTES + WIRE_PAYLOAD_MAX)

static const struct wire_terms terms = { .relocation = 77, .n_units = N };
static uint8_t *buffer;

static int set_up(void **state)
{
	(void)state;
	buffer = calloc(1, ROOM + 8);
	return buffer ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(buffer);
	return 0;
}

static struct units_message message_of(enum units_kind kind)
{
	struct units_message message = { .from = 4, .to = 9, .kind = (uint8_t)kind };

	if (kind >= UNITS_ASK && kind <= UNITS_REFUSE) {
		message.gen = 12;
		message.unit = 2;
	}
	message.birth = kind == UNITS_ASK ? WIRE_NUMBER_MAX : 0;
	return message;
}

static uint32_t payload_of(enum units_kind kind)
{
	return kind == UNITS_ASK ? sizeof(struct wire_ask) : 0;
}

static void assert_same(const struct units_message *a, const struct units_message *b)
{
	assert_true(a->from == b->from && a->to == b->to && a->gen == b->gen);
	assert_true(a->unit == b->unit && a->kind == b->kind && a->flag == b->flag);
	assert_true(a->birth == b->birth);
}

/* Any part of a frame is no frame yet; then all of it is. */
static void arrives_in_any_pieces(uint32_t length, struct wire_message *ret_message)
{
	for (uint32_t n = 0; n < length; n++)
		assert_int_equal(wire_parse(&terms, buffer, n, ret_message), 0);
	assert_int_equal(wire_parse(&terms, buffer, length, ret_message), length);
	assert_int_equal(wire_parse(&terms, buffer, length + 8, ret_message), length);
}

static void messages_come_back(void **state)
{
	struct wire_message wire;

	(void)state;
	for (uint32_t kind = UNITS_ASK; kind <= UNITS_BYE_GOT; kind++) {
		for (uint32_t flag = 0; flag <= (kind == UNITS_GIVE); flag++) {
			struct units_message message = message_of(kind), back;
			uint32_t length;

			message.flag = flag;
			length = wire_put_message(&terms, NULL, &message, 5, 0, buffer);
			assert_int_equal(length, WIRE_HEADER_BYTES + payload_of(kind));
			arrives_in_any_pieces(length, &wire);
			assert_int_equal(wire.header.n, kind == UNITS_GIVE ? 5 : 0);
			back = wire_units_message(&wire, NULL);
			assert_same(&message, &back);
		}
	}
}

static void refuse_may_want_values(void **state)
{
	struct units_message message = message_of(UNITS_REFUSE);
	struct wire_message wire;

	(void)state;
	arrives_in_any_pieces(wire_put_message(&terms, NULL, &message, 0, WIRE_FLAG_VALUES, buffer),
			      &wire);
	assert_int_equal(wire.header.flags, WIRE_FLAG_VALUES);
	assert_false(wire_units_message(&wire, NULL).flag);
}

static void hello_has_all_entries(void **state)
{
	static const struct units_config config = { .n_units = N };
	struct unit list[N] = { { .gen = 5, .state = UNIT_OWNED },
				{ .gen = 6, .offer = 8, .state = UNIT_AWAY },
				{ .gen = 7, .state = UNIT_TAKING } };
	struct units units = { .config = &config, .list = list };
	struct units_message message = message_of(UNITS_HELLO), back;
	struct units_entry table[N];
	struct wire_message wire;
	uint32_t length;

	(void)state;
	message.to = 0;
	message.flag = true;
	length = wire_put_message(&terms, &units, &message, 0, 0, buffer);
	assert_int_equal(length, WIRE_MESSAGE_MAX(N));
	arrives_in_any_pieces(length, &wire);
	back = wire_units_message(&wire, table);
	assert_same(&message, &back);
	assert_true(table[0].gen == 5 && table[0].holds == UNITS_MINE);
	assert_true(table[1].gen == 8 && table[1].holds == UNITS_NOT);
	assert_true(table[2].gen == 7 && table[2].holds == UNITS_TAKES);
}

static void times_come_back(void **state)
{
	const struct drain_times times = { 123, UINT64_MAX };
	struct wire_message wire;
	struct drain_times back;

	(void)state;
	arrives_in_any_pieces(wire_put_times(&terms, 4, 9, &times, buffer), &wire);
	back = wire_drain_times(&wire);
	assert_true(back.requests == 123 && back.total_ns == UINT64_MAX);
}

static void records_come_back(void **state)
{
	static uint8_t bytes[WIRE_RECORD_MAX];
	static const uint32_t sizes[] = { 1, 7, 8, 9, 1000 };
	const struct units_message give = message_of(UNITS_GIVE);
	struct wire_record record;
	struct wire_message wire;
	const uint8_t *at_bytes;
	uint32_t length = 0, at = 0;

	(void)state;
	memset(bytes, 0x5a, sizeof(bytes));
	wire_records_begin(&terms, &give, 0, buffer);
	for (uint32_t i = 0; i < 5; i++) {
		record = (struct wire_record){ .key = 100 + i, .table = i, .bytes = sizes[i] };
		length = wire_records_add(buffer, &record, bytes);
		assert_true(length && length % 8 == 0);
	}
	arrives_in_any_pieces(length, &wire);
	assert_true(wire.header.gen == 12 && wire.header.unit == 2 && wire.header.n == 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_true(wire_record_next(&wire, &at, &record, &at_bytes));
		assert_true(record.key == 100 + i && record.table == i && record.bytes == sizes[i]);
		assert_memory_equal(at_bytes, bytes, record.bytes);
	}
	assert_false(wire_record_next(&wire, &at, &record, &at_bytes));
	/* As many as there is room for, and not one more. */
	record.bytes = WIRE_RECORD_MAX;
	wire_records_begin(&terms, &give, 0, buffer);
	for (uint32_t i = 0; i < 3; i++)
		length = wire_records_add(buffer, &record, bytes);
	assert_int_equal(wire_records_add(buffer, &record, bytes), 0);
	assert_int_equal(wire_parse(&terms, buffer, length, &wire), length);
	assert_int_equal(wire.header.n, 3);
}

/* Records that go ahead, pages that are forgotten, a GIVE of what has changed since. */
static void copies_come_back(void **state)
{
	static const uint32_t pages[] = { 0, 1023, WIRE_CLEAR_ALL };
	const struct units_message give = message_of(UNITS_GIVE);
	const struct wire_record record = { .bytes = 3 };
	struct wire_message wire;

	(void)state;
	for (uint32_t flag = WIRE_FLAG_AHEAD; flag <= WIRE_FLAG_DELTA; flag++) {
		wire_records_begin(&terms, &give, flag, buffer);
		arrives_in_any_pieces(wire_records_add(buffer, &record, (const uint8_t *)"abc"),
				      &wire);
		assert_true(wire.header.flags == flag && wire.header.gen == 12);
		for (uint32_t i = 0; i < (flag == WIRE_FLAG_AHEAD ? 3 : 2); i++) {
			arrives_in_any_pieces(wire_put_clear(&terms, &give, flag, pages[i], buffer),
					      &wire);
			assert_int_equal(wire.header.type, WIRE_CLEAR);
			assert_true(wire.header.flags == flag && wire.header.n == pages[i]);
			assert_true(wire.header.gen == 12 && wire.header.unit == 2);
		}
	}
	for (uint32_t flag = 0; flag <= WIRE_FLAG_COPY; flag++) {
		struct units_message message = message_of(UNITS_ASK), back;

		wire_put_message(&terms, NULL, &message, 5, flag, buffer);
		arrives_in_any_pieces(WIRE_HEADER_BYTES + payload_of(UNITS_ASK), &wire);
		assert_int_equal(wire.header.flags, flag);
		back = wire_units_message(&wire, NULL);
		assert_same(&message, &back);
	}
	for (uint32_t closes = 0; closes < 2; closes++) {
		struct units_message message = give, back;

		message.flag = closes;
		wire_put_message(&terms, NULL, &message, 5, WIRE_FLAG_DELTA, buffer);
		arrives_in_any_pieces(WIRE_HEADER_BYTES, &wire);
		assert_true(wire.header.flags & WIRE_FLAG_DELTA);
		back = wire_units_message(&wire, NULL);
		assert_same(&message, &back);
	}
}

/* ---- what must not pass ---- */

static struct wire_header good(enum units_kind kind)
{
	struct units_message message = message_of(kind);
	struct wire_header header;

	wire_put_message(&terms, NULL, &message, 0, 0, buffer);
	memcpy(&header, buffer, sizeof(header));
	return header;
}

static int parse(const struct wire_header *header)
{
	struct wire_message wire;

	memcpy(buffer, header, sizeof(*header));
	return wire_parse(&terms, buffer, ROOM, &wire);
}

#define REFUSED(kind, field, value) do { \
	struct wire_header header_ = good(kind); \
	assert_true(parse(&header_) > 0); \
	header_.field = (value); \
	assert_int_equal(parse(&header_), -EPROTO); \
} while (0)

static void each_wrong_field_is_refused(void **state)
{
	struct wire_header header;

	(void)state;
	for (uint32_t kind = UNITS_ASK; kind <= UNITS_BYE_GOT; kind++) {
		REFUSED(kind, bytes, 0);
		REFUSED(kind, bytes, WIRE_HEADER_BYTES - 8);
		REFUSED(kind, bytes, WIRE_HEADER_BYTES + 4);
		REFUSED(kind, bytes, WIRE_HEADER_BYTES + payload_of(kind) + 8);
		if (payload_of(kind))
			REFUSED(kind, bytes, WIRE_HEADER_BYTES);
		REFUSED(kind, bytes, UINT32_MAX - 7);
		REFUSED(kind, type, 0);
		REFUSED(kind, type, WIRE_CLEAR);
		REFUSED(kind, type, 11);
		REFUSED(kind, type, UNITS_HELLO);
		REFUSED(kind, type, WIRE_RECORDS);
		REFUSED(kind, type, WIRE_TIMES);
		REFUSED(kind, from, 0);
		REFUSED(kind, from, WIRE_NUMBER_MAX + 1);
		REFUSED(kind, to, 0);
		REFUSED(kind, to, WIRE_NUMBER_MAX + 1);
		REFUSED(kind, flags, 4);
		REFUSED(kind, reserved, 1);
		if (kind != UNITS_GIVE && kind != UNITS_ASK && kind != UNITS_REFUSE)
			REFUSED(kind, flags, 1);
		if (kind != UNITS_GIVE) {
			REFUSED(kind, flags, 2);
			REFUSED(kind, n, 1);
		}
		if (kind <= UNITS_REFUSE) {
			REFUSED(kind, unit, N);
			REFUSED(kind, gen, 0);
			REFUSED(kind, gen, WIRE_NUMBER_MAX + 1);
		} else {
			REFUSED(kind, unit, 1);
			REFUSED(kind, gen, 1);
		}
	}
	header = good(UNITS_ASK);
	memcpy(buffer + WIRE_HEADER_BYTES, &(uint64_t){ WIRE_NUMBER_MAX + 1 }, 8);
	assert_int_equal(parse(&header), -EPROTO);
	header = good(UNITS_ASK);
	header.version++;
	assert_int_equal(parse(&header), -EPROTONOSUPPORT);
	header = good(UNITS_ASK);
	header.relocation++;
	assert_int_equal(parse(&header), -ESTALE);
}

static void clear_is_checked(void **state)
{
	static const struct {
		uint32_t flags, page, bytes;
		bool is_good;
	} cases[] = {
		{ WIRE_FLAG_AHEAD, WIRE_CLEAR_ALL, 0, true },
		{ WIRE_FLAG_DELTA, 7, 0, true },
		{ WIRE_FLAG_DELTA, WIRE_CLEAR_ALL, 0, false },
		{ 0, 7, 0, false },
		{ WIRE_FLAG_AHEAD | WIRE_FLAG_DELTA, 7, 0, false },
		{ 4, 7, 0, false },
		{ WIRE_FLAG_AHEAD, 7, 8, false },
	};
	const struct units_message give = message_of(UNITS_GIVE);
	struct wire_header header;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wire_put_clear(&terms, &give, cases[i].flags, cases[i].page, buffer);
		memcpy(&header, buffer, sizeof(header));
		header.bytes += cases[i].bytes;
		assert_int_equal(parse(&header), cases[i].is_good ? (int)header.bytes : -EPROTO);
	}
}

static void entries_are_checked(void **state)
{
	static const struct wire_entry bad[] = {
		{ .gen = WIRE_NUMBER_MAX + 1 }, { .holds = UNITS_TAKES + 1 }, { .reserved = 1 },
	};
	struct wire_header header = good(UNITS_BYE);
	struct wire_message wire;

	(void)state;
	header.type = UNITS_HELLO;
	header.n = N;
	header.bytes = WIRE_MESSAGE_MAX(N);
	memset(buffer, 0, ROOM);
	assert_int_equal(parse(&header), header.bytes);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(buffer + header.bytes - sizeof(bad[i]), &bad[i], sizeof(bad[i]));
		assert_int_equal(wire_parse(&terms, buffer, header.bytes, &wire), -EPROTO);
	}
	/* Of another number of units: known without the payload. */
	header.n = N + 1;
	header.bytes += 16;
	memcpy(buffer, &header, sizeof(header));
	assert_int_equal(wire_parse(&terms, buffer, WIRE_HEADER_BYTES, &wire), -EPROTO);
}

static void records_are_checked(void **state)
{
	const struct units_message give = message_of(UNITS_GIVE);
	const struct wire_record record = { .key = 1, .bytes = 5 };
	const uint32_t lengths[] = { 0, 9, 17, WIRE_RECORD_MAX + 1, UINT32_MAX };
	struct wire_header header;
	struct wire_message wire;
	uint8_t *second = buffer + WIRE_HEADER_BYTES + 24;
	uint32_t length;

	(void)state;
	wire_records_begin(&terms, &give, 0, buffer);
	/* One with nothing in it. */
	assert_int_equal(wire_parse(&terms, buffer, WIRE_HEADER_BYTES, &wire), -EPROTO);
	wire_records_add(buffer, &record, (const uint8_t *)"hello");
	length = wire_records_add(buffer, &record, (const uint8_t *)"world");
	assert_int_equal(wire_parse(&terms, buffer, length, &wire), length);
	for (uint32_t at = 0; at < sizeof(lengths) / sizeof(lengths[0]); at++) {
		memcpy(second + offsetof(struct wire_record, bytes), &lengths[at], 4);
		assert_int_equal(wire_parse(&terms, buffer, length, &wire), -EPROTO);
	}
	memcpy(second, &record, sizeof(record));
	assert_int_equal(wire_parse(&terms, buffer, length, &wire), length);
	buffer[length - 1] = 1;
	assert_int_equal(wire_parse(&terms, buffer, length, &wire), -EPROTO);
	buffer[length - 1] = 0;
	memcpy(&header, buffer, sizeof(header));
	for (uint32_t n = 0; n < 5; n++) {
		header.n = n;
		memcpy(buffer, &header, sizeof(header));
		assert_int_equal(wire_parse(&terms, buffer, length, &wire),
				 n == 2 ? (int)length : -EPROTO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refuse_may_want_values, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hello_has_all_entries, set_up, tear_down),
		cmocka_unit_test_setup_teardown(times_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(copies_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(clear_is_checked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_wrong_field_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(entries_are_checked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records_are_checked, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
