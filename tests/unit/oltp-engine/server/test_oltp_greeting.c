// SPDX-License-Identifier: GPL-2.0-or-later
/* What two nodes of a relocation agree on: each wrong field is found, and each wrong proof. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/server/greeting.h"

static const uint8_t key[20] = "a secret of the link";
static const struct greeting_link open_link = { .nonces = { { 1 }, { 2 } } };
static const struct greeting_link link = { .key = key, .key_bytes = sizeof(key),
					   .nonces = { { 1 }, { 2 } } };

static struct greeting_offer good_offer(void)
{
	return (struct greeting_offer){ .unit_bits = 8, .flags = GREETING_RESUMES,
					.secret = { 5, 1ull << 63 }, .relocation = 7,
					.speed_percent = 100, .clients = "unix:/a" };
}

static void test_head(void **state)
{
	struct greeting_head head, wrong;

	(void)state;
	for (int i = 0; i < GREETING_STATUSES; i++) {
		head = greeting_head((enum greeting_status)i);
		assert_int_equal(greeting_check_head(&head), i);
		assert_non_null(greeting_status_text((enum greeting_status)i));
	}
	wrong = head;
	wrong.status = GREETING_STATUSES;
	assert_int_equal(greeting_check_head(&wrong), -EPROTO);
	wrong.version = 1;
	assert_int_equal(greeting_check_head(&wrong), GREETING_OTHER_VERSION);
	wrong.magic[7] ^= 1;
	assert_int_equal(greeting_check_head(&wrong), -EPROTO);
}

static void test_hello(void **state)
{
	struct greeting_hello hello = { .head = greeting_head(GREETING_WELCOME) };

	(void)state;
	assert_int_equal(greeting_check_hello(&hello, &open_link), GREETING_WELCOME);
	assert_int_equal(greeting_check_hello(&hello, &link), GREETING_OTHER_SECRET);
	hello.has_secret = 1;
	assert_int_equal(greeting_check_hello(&hello, &link), GREETING_WELCOME);
	assert_int_equal(greeting_check_hello(&hello, &open_link), GREETING_OTHER_SECRET);
	hello.has_secret = 2;
	assert_int_equal(greeting_check_hello(&hello, &link), -EPROTO);
	hello = (struct greeting_hello){ .head = greeting_head(GREETING_FULL) };
	assert_int_equal(greeting_check_hello(&hello, &open_link), -EPROTO);
	hello = (struct greeting_hello){ .head = greeting_head(GREETING_WELCOME), .reserved = 1 };
	assert_int_equal(greeting_check_hello(&hello, &open_link), -EPROTO);
}

static void expect_offer(struct greeting_offer offer, int rc)
{
	greeting_seal_offer(&offer, &link);
	assert_int_equal(greeting_open_offer(&offer, &link, 8), rc);
}

static void test_offer(void **state)
{
	struct greeting_offer offer = good_offer(), sealed, wrong;

	(void)state;
	expect_offer(offer, GREETING_WELCOME);
#define EXPECT_WRONG(field, value, rc)	\
	do {				\
		wrong = offer;		\
		wrong.field = value;	\
		expect_offer(wrong, rc);	\
	} while (0)
	EXPECT_WRONG(unit_bits, 7, GREETING_OTHER_UNITS);
	EXPECT_WRONG(flags, 4, -EPROTO);
	EXPECT_WRONG(relocation, 0, -EPROTO);
	EXPECT_WRONG(relocation, 1ull << 63, -EPROTO);
	EXPECT_WRONG(speed_percent, 0, -EPROTO);
	EXPECT_WRONG(speed_percent, 10001, -EPROTO);
	wrong = offer;
	memset(wrong.clients, 'a', sizeof(wrong.clients));
	expect_offer(wrong, -EPROTO);
	/* With a secret of the link the database's does not go over it; without, it does. */
	sealed = offer;
	greeting_seal_offer(&sealed, &link);
	assert_true(sealed.secret[0] != 5 && sealed.secret[1] != 1ull << 63);
	assert_int_equal(greeting_open_offer(&sealed, &link, 8), GREETING_WELCOME);
	assert_true(sealed.secret[0] == 5 && sealed.secret[1] == 1ull << 63);
	sealed = offer;
	greeting_seal_offer(&sealed, &open_link);
	assert_true(sealed.secret[0] == 5);
}

/* A proof counts for these bytes, this key, this connection and this message. */
static void test_proofs(void **state)
{
	struct greeting_offer offer = good_offer(), changed;
	struct greeting_welcome welcome = { .head = greeting_head(GREETING_WELCOME) };
	struct greeting_answer answer = { .head = greeting_head(GREETING_WELCOME) };
	struct greeting_link other = link;

	(void)state;
	greeting_seal_offer(&offer, &link);
	for (size_t i = 0; i < sizeof(offer); i++) {
		changed = offer;
		((uint8_t *)&changed)[i] ^= 1;
		assert_int_equal(greeting_open_offer(&changed, &link, 8), GREETING_OTHER_SECRET);
	}
	changed = offer;
	other.nonces[1][31] = 1;
	assert_int_equal(greeting_open_offer(&changed, &other, 8), GREETING_OTHER_SECRET);
	assert_int_equal(greeting_open_offer(&changed, &open_link, 8), GREETING_OTHER_SECRET);
	other = link;
	other.key_bytes--;
	assert_int_equal(greeting_open_offer(&changed, &other, 8), GREETING_OTHER_SECRET);

	greeting_seal_welcome(&welcome, &link);
	assert_int_equal(greeting_open_welcome(&welcome, &link), GREETING_WELCOME);
	assert_int_equal(greeting_open_welcome(&welcome, &other), GREETING_OTHER_SECRET);
	greeting_seal_answer(&answer, &link);
	assert_int_equal(greeting_open_answer(&answer, &link), GREETING_WELCOME);
	assert_int_equal(greeting_open_answer(&answer, &other), GREETING_OTHER_SECRET);
	answer.clients[0] = 'x';
	assert_int_equal(greeting_open_answer(&answer, &link), GREETING_OTHER_SECRET);
	/* The target's first proof is not one that a source could use. */
	memcpy(answer.proof, welcome.proof, sizeof(answer.proof));
	assert_int_equal(greeting_open_answer(&answer, &link), GREETING_OTHER_SECRET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_hello),
		cmocka_unit_test(test_offer),
		cmocka_unit_test(test_proofs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
