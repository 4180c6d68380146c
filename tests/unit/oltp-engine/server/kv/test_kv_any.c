// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any arguments for any command: each is answered by one whole reply of its version of the
 * protocol, and what was there before can still be read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/io/durable_rig.h"
#include "kv_audit.h"
#include "kv_rig.h"
#include "oltp-engine/server/kv/private.h"

#define COMMANDS	(40000u / DURABLE_FEWER)

/* Where the reply at this place ends; NULL: it is no whole reply. */
static const char *reply_end(const char *at, const char *end, uint8_t version, unsigned int depth)
{
	const char *line = memchr(at, '\n', (size_t)(end - at));
	char *number_end;
	long long n;

	if (!line || line == at || line[-1] != '\r' || depth > 8)
		return NULL;
	line++;
	if (strchr(version == 2 ? "+-" : "+-_#,", *at))
		return line;
	if (!strchr(version == 2 ? ":$*" : ":$*=%~", *at))
		return NULL;
	n = strtoll(at + 1, &number_end, 10);
	if (number_end != line - 2)
		return NULL;
	switch (*at) {
	case ':':
		return line;
	case '$':
	case '=':
		if (n == -1)
			return version == 2 ? line : NULL;
		if (n < 0 || end - line < n + 2 || memcmp(line + n, "\r\n", 2) != 0)
			return NULL;
		return line + n + 2;
	default:
		n *= *at == '%' ? 2 : 1;
		for (; line && n > 0; n--)
			line = reply_end(line, end, version, depth + 1);
		return line;
	}
}

/* A word that means something to some command, or nothing to any. */
static struct resp_arg draw_word(uint64_t *random, char *room)
{
	static const char *const words[] = {
		"a", "b", "c", "h", "1", "-1", "0", "5", "x", "*", "[a-", "\\", "NX", "XX", "GET",
		"EX", "MATCH", "COUNT", "TYPE", "hash", "string", "HELP", "LIST", "INFO", "SETNAME",
		"AUTH", "default", "3", "2", "9223372036854775807", "-9223372036854775808",
		"18446744073709551615", "1e4000", "-inf", "1.5", "ycsb_read", "ycsb_update",
		"ycsb_txn", "ru", "LIB-NAME", "save", "DOCS", "ID", "COUNT",
	};
	uint64_t kind = durable_draw(random, 10);
	struct resp_arg arg = { room, 0 };

	if (kind < 8) {
		arg.bytes = words[durable_draw(random, sizeof(words) / sizeof(words[0]))];
		arg.n = (uint32_t)strlen(arg.bytes);
		return arg;
	}
	arg.n = (uint32_t)durable_draw(random, kind == 8 ? 40 : 17000);
	for (uint32_t i = 0; i < arg.n; i++)
		room[i] = (char)durable_draw(random, 256);
	return arg;
}

static void test_any_arguments(void **state)
{
	(void)state;
	enum { ARGS = 8, ROOM = 17000 };
	static char rooms[ARGS][ROOM];
	uint64_t random = 88172645463325252ull;
	uint8_t version = 2;

	kv_rig_open(&rig, 8);
	for (uint32_t i = 0; i < COMMANDS; i++) {
		const struct command *command = &kv_commands[durable_draw(&random, kv_n_commands)];
		uint32_t n = 1 + (uint32_t)durable_draw(&random, ARGS - 1), session = i % 2;
		struct resp_arg args[ARGS] = { { command->name, (uint32_t)strlen(command->name) } };
		const char *end;

		/* As many as it takes, mostly. */
		if (command->arity > 0 && command->arity <= ARGS && i % 8)
			n = (uint32_t)command->arity;
		for (uint32_t k = 1; k < n; k++)
			args[k] = draw_word(&random, rooms[k]);
		kv_rig_run(&rig, session, args, n);
		version = rig.sessions[session]->version;
		/* A change of the version counts for the reply already. */
		end = reply_end(rig.out.bytes, rig.out.bytes + rig.out.n, version, 0);
		if (end != rig.out.bytes + rig.out.n)
			fail_msg("%s with %u arguments (command %u): \"%.*s\"", command->name, n, i,
				 (int)(rig.out.n < 200 ? rig.out.n : 200), rig.out.bytes);
		assert_true(rig.kv->meta.n_keys >= 0);
	}
	/* All keys that are counted are there, and all of their values can be read. */
	for (uint32_t session = 0; session < 2; session++)
		kv_rig_do(&rig, session, "RESET");
	int64_t n_keys = kv_rig_integer(&rig, "DBSIZE");
	char reply[32];

	snprintf(reply, sizeof(reply), "*%lld\r\n", (long long)n_keys);
	expect_begins(&rig, "KEYS *", reply);
	kv_audit(rig.kv);
	kv_rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
