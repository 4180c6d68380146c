// SPDX-License-Identifier: GPL-2.0-or-later
/* What nodes and ebb-fenced say to each other: seals, lines, and all that is no such line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/server/fence/talk.h"

static const struct secret secret = { "a secret of the database", 24 };
static const struct secret other = { "a secret of another one.", 24 };
static const struct fence_question asked = { true, "node-a", "node.b_2" };

static struct fence_nonces nonces_new(void)
{
	struct fence_nonces nonces;

	assert_int_equal(fence_nonce(nonces.server), 0);
	assert_int_equal(fence_nonce(nonces.client), 0);
	assert_string_not_equal(nonces.server, nonces.client);
	return nonces;
}

static void chomp(char *line)
{
	size_t n = strlen(line);

	assert_true(n && n <= FENCE_LINE_MAX);
	assert_int_equal(line[n - 1], '\n');
	line[n - 1] = '\0';
}

/* Test case 2 of RFC 4231. */
static void test_hmac(void **state)
{
	const struct secret jefe = { "Jefe", 4 };
	char seal[FENCE_HEX + 1];

	(void)state;
	fence_seal(&jefe, "what do ya want for nothing?", seal);
	assert_string_equal(seal,
			    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	assert_true(fence_seal_fits(&jefe, "what do ya want for nothing?", seal));
	assert_false(fence_seal_fits(&jefe, "what do ya want for nothing!", seal));
	seal[63] = '4';
	assert_false(fence_seal_fits(&jefe, "what do ya want for nothing?", seal));
	seal[63] = '\0';
	assert_false(fence_seal_fits(&jefe, "what do ya want for nothing?", seal));
}

static void test_greeting(void **state)
{
	char line[FENCE_LINE_MAX + 1], nonce[FENCE_HEX + 1];
	struct fence_nonces nonces = nonces_new();

	(void)state;
	fence_put_greeting(nonces.server, line);
	chomp(line);
	assert_int_equal(fence_get_greeting(line, nonce), 0);
	assert_string_equal(nonce, nonces.server);
	line[9] = '2';
	assert_int_equal(fence_get_greeting(line, nonce), -EPROTO);
	assert_int_equal(fence_get_greeting("", nonce), -EPROTO);
	assert_int_equal(fence_get_greeting("EBBFENCE 1 12", nonce), -EPROTO);
}

static int get_question(const struct secret *with, const struct fence_nonces *nonces,
			const char *line)
{
	struct fence_nonces there = { 0 };
	struct fence_question question = { 0 };
	int rc;

	strcpy(there.server, nonces->server);
	rc = fence_get_question(with, line, &there, &question);
	if (!rc) {
		assert_string_equal(there.client, nonces->client);
		assert_int_equal(question.fences, asked.fences);
		assert_string_equal(question.own, asked.own);
		assert_string_equal(question.peer, asked.peer);
	}
	return rc;
}

/* Any byte that is another one makes it no question, or one whose seal does not fit. */
static void test_question(void **state)
{
	char line[FENCE_LINE_MAX + 1];
	struct fence_nonces nonces = nonces_new(), later = nonces;
	size_t n;

	(void)state;
	fence_put_question(&secret, &nonces, &asked, line);
	chomp(line);
	n = strlen(line);
	assert_int_equal(get_question(&secret, &nonces, line), 0);
	assert_int_equal(get_question(&other, &nonces, line), -EACCES);
	/* A replay, to a server that has greeted with another nonce. */
	assert_int_equal(fence_nonce(later.server), 0);
	assert_int_equal(get_question(&secret, &later, line), -EACCES);
	for (size_t i = 0; i < n; i++) {
		for (int c = 1; c < 256; c++) {
			char was = line[i];
			int rc;

			if ((char)c == was)
				continue;
			line[i] = (char)c;
			rc = get_question(&secret, &nonces, line);
			assert_true(rc == -EPROTO || rc == -EACCES);
			line[i] = was;
		}
	}
	for (size_t i = 0; i < n; i++) {
		char was = line[i];

		line[i] = '\0';
		assert_int_equal(get_question(&secret, &nonces, line), -EPROTO);
		line[i] = was;
	}
	strcpy(line + n, " ");
	assert_int_equal(get_question(&secret, &nonces, line), -EPROTO);
}

static void test_names(void **state)
{
	char name[FENCE_NAME_MAX + 2] = "";
	struct fence_nonces nonces = nonces_new();
	struct fence_question question = { false, "a", "a" };
	char line[FENCE_LINE_MAX + 1];

	(void)state;
	assert_false(fence_is_name(""));
	assert_false(fence_is_name("a b"));
	assert_false(fence_is_name("a\"b"));
	memset(name, 'x', FENCE_NAME_MAX);
	assert_true(fence_is_name(name));
	name[FENCE_NAME_MAX] = 'x';
	assert_false(fence_is_name(name));
	/* Nobody fences itself. */
	fence_put_question(&secret, &nonces, &question, line);
	chomp(line);
	assert_int_equal(get_question(&secret, &nonces, line), -EPROTO);
	/* The longest question is a line. */
	name[FENCE_NAME_MAX] = '\0';
	strcpy(question.own, name);
	name[0] = 'y';
	strcpy(question.peer, name);
	fence_put_question(&secret, &nonces, &question, line);
	chomp(line);
	assert_int_equal(fence_get_question(&secret, line, &nonces, &question), 0);
	assert_string_equal(question.peer, name);
}

static void test_answer(void **state)
{
	struct fence_nonces nonces = nonces_new(), later = nonces_new();
	struct fence_question other_asked = { true, "node.b_2", "node-a" };
	char line[FENCE_LINE_MAX + 1];
	enum move_fence answer;

	(void)state;
	for (int i = MOVE_FENCE_LATER; i <= MOVE_FENCE_NONE; i++) {
		fence_put_answer(&secret, &nonces, &asked, (enum move_fence)i, line);
		chomp(line);
		assert_int_equal(fence_get_answer(&secret, &nonces, &asked, line, &answer), 0);
		assert_int_equal(answer, i);
		assert_int_equal(fence_get_answer(&other, &nonces, &asked, line, &answer),
				 -EACCES);
		assert_int_equal(fence_get_answer(&secret, &later, &asked, line, &answer),
				 -EACCES);
		assert_int_equal(fence_get_answer(&secret, &nonces, &other_asked, line, &answer),
				 -EACCES);
	}
	fence_put_answer(&secret, &nonces, &asked, MOVE_FENCE_LOST, line);
	chomp(line);
	memcpy(line, "none", 4);
	assert_int_equal(fence_get_answer(&secret, &nonces, &asked, line, &answer), -EACCES);
	assert_int_equal(fence_get_answer(&secret, &nonces, &asked, "won", &answer), -EPROTO);
	assert_int_equal(fence_get_answer(&secret, &nonces, &asked, "", &answer), -EPROTO);
	assert_int_equal(fence_get_answer(&secret, &nonces, &asked, "error x", &answer), -EREMOTE);
}

static int read_secret(const char *text, size_t n, mode_t mode, struct secret *ret)
{
	char path[] = "/tmp/fence-secret-XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	rc = secret_file_read(path, ret);
	unlink(path);
	return rc;
}

static void test_secret(void **state)
{
	static char text[SECRET_BYTES_MAX + 3];
	struct secret found;

	(void)state;
	memset(text, 's', sizeof(text));
	assert_int_equal(read_secret("0123456789abcdef\r\n", 18, 0600, &found), 0);
	assert_int_equal(found.n, 16);
	assert_memory_equal(found.bytes, "0123456789abcdef", 16);
	assert_int_equal(read_secret("0123456789abcde\n", 16, 0600, &found), -ENODATA);
	assert_int_equal(read_secret("", 0, 0600, &found), -ENODATA);
	assert_int_equal(read_secret("0123456789abcdef", 16, 0640, &found), -EPERM);
	assert_int_equal(read_secret("0123456789abcdef", 16, 0604, &found), -EPERM);
	assert_int_equal(read_secret("0123456789abcdef", 16, 0400, &found), 0);
	assert_int_equal(read_secret(text, SECRET_BYTES_MAX, 0600, &found), 0);
	assert_int_equal(found.n, SECRET_BYTES_MAX);
	assert_int_equal(read_secret(text, SECRET_BYTES_MAX + 1, 0600, &found), -E2BIG);
	assert_int_equal(read_secret(text, sizeof(text), 0600, &found), -E2BIG);
	assert_int_equal(secret_file_read("/dev/null", &found), -EPERM);
	assert_int_equal(secret_file_read("/tmp", &found), -EPERM);
	assert_int_equal(secret_file_read("/nowhere/secret", &found), -ENOENT);
	for (int rc = -EPERM; rc; rc = rc == -EPERM ? -ENODATA : rc == -ENODATA ? -E2BIG : 0)
		assert_true(strlen(secret_file_strerror(rc)) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hmac),
		cmocka_unit_test(test_greeting),
		cmocka_unit_test(test_question),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
