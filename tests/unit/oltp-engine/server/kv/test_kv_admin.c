// SPDX-License-Identifier: GPL-2.0-or-later
/* Connections and what the server says of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kv_rig.h"
#include "oltp-engine/server/kv/match.h"
#include "oltp-engine/server/kv/private.h"
#include "oltp-engine/server/kv/siphash.h"

static void front_info(void *ctx, const char *section, struct resp_out *text)
{
	assert_ptr_equal(ctx, &rig);
	if (!strcmp(section, "clients"))
		resp_out_raw(text, "blocked_clients:0\r\n", 19);
}

static bool front_config(void *ctx, uint32_t i, const char **ret_name, char *ret_value, uint32_t n)
{
	assert_ptr_equal(ctx, &rig);
	*ret_name = "maxclients";
	snprintf(ret_value, n, "%u", 77u);
	return i == 0;
}

static const struct kv_front_ops front = { front_info, front_config };

/* Says its words: refuses those that begin with "no". */
static const char *relocate_order(void *ctx, char *const *words, uint32_t n)
{
	assert_ptr_equal(ctx, &rig);
	assert_null(words[n]);
	return strncmp(words[0], "no", 2) ? NULL : "not now";
}

static void relocate_status(void *ctx, struct resp_out *out)
{
	assert_ptr_equal(ctx, &rig);
	resp_out_text(out, "{}");
}

static const struct kv_relocate_ops relocate = { relocate_order, relocate_status };

static int set_up(void **state)
{
	rig = (struct kv_rig){ .config = { .password = *state, .front = &front,
					   .front_ctx = &rig } };
	kv_rig_open_with(&rig);
	return 0;
}

static void test_connection(void **state)
{
	(void)state;
	expect_reply(&rig, "PING", "+PONG\r\n");
	expect_reply(&rig, "PING x", "$1\r\nx\r\n");
	expect_reply(&rig, "PING x y", "-ERR wrong number of arguments for 'ping' command\r\n");
	expect_reply(&rig, "ECHO x", "$1\r\nx\r\n");
	expect_reply(&rig, "SELECT 0", "+OK\r\n");
	expect_reply(&rig, "SELECT 1", "-ERR DB index is out of range\r\n");
	expect_reply(&rig, "SELECT x", "-ERR value is not an integer or out of range\r\n");
	expect_reply(&rig, "FOO a b",
		     "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' \r\n");
	expect_reply(&rig, "FOO", "-ERR unknown command 'FOO', with args beginning with: \r\n");
	expect_reply(&rig, "HELLO 4", "-NOPROTO unsupported protocol version\r\n");
	expect_reply(&rig, "HELLO x",
		     "-ERR Protocol version is not an integer or out of range\r\n");
	expect_reply(&rig, "HELLO 2 FOO", "-ERR Syntax error in HELLO option 'FOO'\r\n");
	expect_begins(&rig, "HELLO", "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n");
	expect_begins(&rig, "HELLO 3 SETNAME me", "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n");
	expect_reply(&rig, "CLIENT GETNAME", "$2\r\nme\r\n");
	expect_reply(&rig, "GET a", "_\r\n");
	expect_reply(&rig, "RESET", "+RESET\r\n");
	expect_reply(&rig, "GET a", "$-1\r\n");
	expect_reply(&rig, "CLIENT GETNAME", "$-1\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "RESET", "+RESET\r\n");
	expect_reply(&rig, "EXEC", "-ERR EXEC without MULTI\r\n");
	assert_int_equal(rig.after, KV_GO_ON);
	expect_reply(&rig, "QUIT", "+OK\r\n");
	assert_int_equal(rig.after, KV_CLOSE);
	expect_begins(&rig, "AUTH x", "-ERR AUTH <password> called without any password");
	expect_reply(&rig, "AUTH default x", "+OK\r\n");
	expect_begins(&rig, "AUTH other x", "-WRONGPASS ");
	expect_begins(&rig, "TIME", "*2\r\n$10\r\n");
}

static void test_password(void **state)
{
	(void)state;
	const char *const refused[] = { "GET a", "PING", "MULTI", "INFO", "COMMAND", "SELECT 0",
					"CLIENT ID" };

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		expect_reply(&rig, refused[i], "-NOAUTH Authentication required.\r\n");
	expect_begins(&rig, "HELLO 3", "-NOAUTH HELLO must be called");
	expect_begins(&rig, "AUTH wrong", "-WRONGPASS ");
	expect_begins(&rig, "AUTH secretsecret", "-WRONGPASS ");
	expect_begins(&rig, "AUTH secre", "-WRONGPASS ");
	expect_begins(&rig, "AUTH \"\"", "-WRONGPASS ");
	expect_begins(&rig, "AUTH other secret", "-WRONGPASS ");
	expect_begins(&rig, "HELLO 3 AUTH default wrong", "-WRONGPASS ");
	expect_reply(&rig, "GET a", "-NOAUTH Authentication required.\r\n");
	expect_reply(&rig, "AUTH secret", "+OK\r\n");
	expect_reply(&rig, "GET a", "$-1\r\n");
	expect_reply(&rig, "RESET", "+RESET\r\n");
	expect_reply(&rig, "GET a", "-NOAUTH Authentication required.\r\n");
	expect_begins(&rig, "HELLO 3 AUTH default secret", "%7\r\n");
	expect_reply(&rig, "GET a", "_\r\n");
	/* That of one session only. */
	expect_reply_of(&rig, 1, "GET a", "-NOAUTH Authentication required.\r\n");
}

/* A pattern that takes long to compare is refused, as that of SCAN is. */
static void test_long_pattern(void **state)
{
	(void)state;
	expect_begins(&rig, "CONFIG GET $1024", "*0\r\n");
	expect_reply(&rig, "CONFIG GET maxclients $1025",
		     "-ERR pattern exceeds maximum allowed size (1024 bytes)\r\n");
	expect_reply(&rig, "KEYS $1025",
		     "-ERR pattern exceeds maximum allowed size (1024 bytes)\r\n");
}

static const char *text_of(const char *line)
{
	kv_rig_do(&rig, 0, line);
	*resp_out_reserve(&rig.out, 1) = '\0';
	return rig.out.bytes;
}

static void test_client(void **state)
{
	(void)state;
	const char *text;

	kv_session_set_peer(rig.sessions[0], "10.1.2.3:99", "10.1.2.4:6379", 12);
	expect_reply(&rig, "CLIENT ID", ":1\r\n");
	expect_reply_of(&rig, 2, "CLIENT ID", ":3\r\n");
	expect_reply(&rig, "CLIENT SETNAME worker", "+OK\r\n");
	expect_begins(&rig, "CLIENT SETNAME a\nb", "-ERR Client names cannot contain spaces");
	expect_begins(&rig, "CLIENT SETNAME $128", "-ERR Client names are limited");
	expect_reply(&rig, "CLIENT GETNAME", "$6\r\nworker\r\n");
	assert_false(kv_session_is_observer(rig.sessions[0]));
	expect_reply(&rig, "CLIENT SETNAME ebb-observer", "+OK\r\n");
	assert_true(kv_session_is_observer(rig.sessions[0]));
	expect_reply(&rig, "CLIENT SETNAME ebb-observers", "+OK\r\n");
	assert_false(kv_session_is_observer(rig.sessions[0]));
	expect_reply(&rig, "CLIENT SETNAME worker", "+OK\r\n");
	expect_reply(&rig, "CLIENT SETINFO LIB-NAME redis-py", "+OK\r\n");
	expect_reply(&rig, "CLIENT SETINFO lib-ver 5.0", "+OK\r\n");
	expect_reply(&rig, "CLIENT SETINFO foo 5.0", "-ERR Unrecognized option 'foo'\r\n");
	text = text_of("CLIENT LIST");
	assert_non_null(strstr(text, "id=1 addr=10.1.2.3:99 laddr=10.1.2.4:6379 fd=12 "
				     "name=worker "));
	assert_non_null(strstr(text, "cmd=client user=default resp=2 lib-name=redis-py "
				     "lib-ver=5.0\n"));
	assert_non_null(strstr(text, "id=4 "));
	text = text_of("CLIENT INFO");
	assert_non_null(strstr(text, "id=1 "));
	assert_null(strstr(text, "id=4 "));
	expect_reply(&rig, "CLIENT NO-EVICT on",
		     "-ERR unknown subcommand 'NO-EVICT'. Try CLIENT HELP.\r\n");
	expect_reply(&rig, "CLIENT SETNAME",
		     "-ERR wrong number of arguments for 'client|setname' command\r\n");
	kv_session_destroy(rig.sessions[3]);
	rig.sessions[3] = NULL;
	assert_null(strstr(text_of("CLIENT LIST"), "id=4 "));
}

static void test_info(void **state)
{
	(void)state;
	const char *text;

	kv_rig_do(&rig, 0, "SET a 1");
	text = text_of("INFO");
	assert_non_null(strstr(text, "# Server\r\nredis_version:7.0.15\r\n"));
	assert_non_null(strstr(text, "# Clients\r\nconnected_clients:4\r\nblocked_clients:0\r\n"));
	assert_non_null(strstr(text, "# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\n"));
	assert_non_null(strstr(text, "total_commands_processed:2\r\n"));
	text = text_of("INFO clients Keyspace");
	assert_non_null(strstr(text, "# Clients\r\n"));
	assert_non_null(strstr(text, "# Keyspace\r\n"));
	assert_null(strstr(text, "# Server\r\n"));
	expect_reply(&rig, "INFO relocation", "$29\r\n# Relocation\r\nrelocatable:0\r\n\r\n");
	text = text_of("INFO memory cpu");
	assert_non_null(strstr(text, "resident_bytes:"));
	assert_non_null(strstr(text, "cold_bytes:0\r\n"));
	assert_non_null(strstr(text, "used_cpu_user:"));
	expect_reply(&rig, "INFO nosuch", "$0\r\n\r\n");
	assert_non_null(strstr(text_of("INFO everything"), "# Server\r\n"));
	kv_rig_do(&rig, 0, "HELLO 3");
	expect_begins(&rig, "INFO keyspace", "=48\r\ntxt:# Keyspace\r\ndb0:keys=1,");
}

static void test_relocate(void **state)
{
	char line[320] = "RELOCATE ";

	(void)state;
	expect_begins(&rig, "RELOCATE STATUS", "-ERR the server was started without --relocatable");
	kv_rig_close(&rig);
	rig = (struct kv_rig){ .config = { .relocate = &relocate, .relocate_ctx = &rig } };
	kv_rig_open_with(&rig);
	expect_reply(&rig, "RELOCATE STATUS", "$2\r\n{}\r\n");
	expect_begins(&rig, "RELOCATE status x", "-ERR wrong number of arguments");
	expect_begins(&rig, "RELOCATE", "-ERR wrong number of arguments");
	expect_reply(&rig, "RELOCATE TO a", "+OK\r\n");
	expect_reply(&rig, "RELOCATE no", "-ERR not now\r\n");
	expect_reply(&rig, "RELOCATE 1 2 3 4 5 6 7 8 9 10 11 12", "+OK\r\n");
	expect_begins(&rig, "RELOCATE 1 2 3 4 5 6 7 8 9 10 11 12 13", "-ERR wrong number");
	memset(line + 9, 'a', 256);
	expect_begins(&rig, line, "-ERR an argument of RELOCATE has at most 255 bytes");
	line[9 + 255] = '\0';
	expect_reply(&rig, line, "+OK\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_begins(&rig, "RELOCATE TO a", "-ERR Command not allowed inside a transaction");
}

/* What came while others were told to go. */
static void test_restricted(void **state)
{
	const char *const refused[] = { "GET a", "PING", "MULTI", "INFO", "HELLO 3", "FOO" };

	(void)state;
	kv_session_restrict(rig.sessions[0]);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		expect_reply(&rig, refused[i], "-ERR this database moves to another node\r\n");
		assert_int_equal(rig.after, KV_CLOSE);
	}
	expect_reply(&rig, "RELOCATE TO a", "-NOAUTH Authentication required.\r\n");
	assert_int_equal(rig.after, KV_GO_ON);
	expect_reply(&rig, "AUTH secret", "+OK\r\n");
	expect_begins(&rig, "RELOCATE TO a", "-ERR the server was started without");
	assert_int_equal(rig.after, KV_GO_ON);
	expect_reply(&rig, "QUIT", "+OK\r\n");
	/* One session only. */
	expect_reply_of(&rig, 1, "GET a", "-NOAUTH Authentication required.\r\n");
}

static void test_config(void **state)
{
	(void)state;
	expect_reply(&rig, "CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
	expect_reply(&rig, "CONFIG GET appendonly", "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
	expect_reply(&rig, "CONFIG GET MAXCLIENTS", "*2\r\n$10\r\nmaxclients\r\n$2\r\n77\r\n");
	expect_reply(&rig, "CONFIG GET maxc* save nosuch",
		     "*4\r\n$4\r\nsave\r\n$0\r\n\r\n$10\r\nmaxclients\r\n$2\r\n77\r\n");
	expect_reply(&rig, "CONFIG GET nosuch", "*0\r\n");
	expect_begins(&rig, "CONFIG SET maxclients 5", "-ERR options are set on the command line");
	expect_begins(&rig, "CONFIG RESETSTAT", "-ERR unknown subcommand 'RESETSTAT'");
	kv_rig_do(&rig, 0, "HELLO 3");
	expect_reply(&rig, "CONFIG GET databases", "%1\r\n$9\r\ndatabases\r\n$1\r\n1\r\n");
}

static void test_command(void **state)
{
	(void)state;
	char line[64], reply[128], name[32];

	snprintf(reply, sizeof(reply), ":%u\r\n", kv_n_commands);
	expect_reply(&rig, "COMMAND COUNT", reply);
	snprintf(reply, sizeof(reply), "*%u\r\n", kv_n_commands);
	expect_begins(&rig, "COMMAND", reply);
	expect_begins(&rig, "COMMAND LIST", reply);
	snprintf(reply, sizeof(reply), "*%u\r\n", 2 * kv_n_commands);
	expect_begins(&rig, "COMMAND DOCS", reply);
	expect_begins(&rig, "COMMAND DOCS get nosuch",
		      "*2\r\n$3\r\nget\r\n*6\r\n$7\r\nsummary\r\n");
	expect_reply(&rig, "COMMAND INFO get nosuch",
		     "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n"
		     ":1\r\n:1\r\n:1\r\n"
		     "*2\r\n+@string\r\n+@fast\r\n*0\r\n*0\r\n*0\r\n*-1\r\n");
	expect_begins(&rig, "COMMAND FOO", "-ERR unknown subcommand 'FOO'. Try COMMAND HELP.");
	/* Every command is found, whatever the case of its name; and refuses no arguments. */
	for (uint32_t i = 0; i < kv_n_commands; i++) {
		struct resp_arg arg = { name, 0 };

		command_lower(&kv_commands[i], name);
		arg.n = (uint32_t)strlen(name);
		assert_ptr_equal(command_find(rig.kv, &arg), &kv_commands[i]);
		arg.bytes = kv_commands[i].name;
		assert_ptr_equal(command_find(rig.kv, &arg), &kv_commands[i]);
		arg.n--;
		assert_ptr_not_equal(command_find(rig.kv, &arg), &kv_commands[i]);
		arg.n += 2;	/* a zero more */
		assert_null(command_find(rig.kv, &arg));
		if (kv_commands[i].arity < -1 || kv_commands[i].arity > 1) {
			snprintf(line, sizeof(line), "%s", name);
			snprintf(reply, sizeof(reply),
				 "-ERR wrong number of arguments for '%s' command\r\n", name);
			expect_reply(&rig, line, reply);
		}
	}
}

static bool matches(const char *pattern, const char *text)
{
	return match_pattern(pattern, (uint32_t)strlen(pattern), text, (uint32_t)strlen(text));
}

static void test_patterns(void **state)
{
	(void)state;
	assert_true(matches("*", ""));
	assert_true(matches("", ""));
	assert_false(matches("", "a"));
	assert_true(matches("a*c", "abbbc"));
	assert_true(matches("a*b*c", "a1b2b3c"));
	assert_false(matches("a*b*c", "a1c2b3"));
	assert_true(matches("h?llo", "hello"));
	assert_false(matches("h?llo", "hllo"));
	assert_true(matches("h[ae]llo", "hallo"));
	assert_false(matches("h[ae]llo", "hillo"));
	assert_true(matches("h[^e]llo", "hallo"));
	assert_false(matches("h[^e]llo", "hello"));
	assert_true(matches("h[a-c]llo", "hbllo"));
	assert_true(matches("h[c-a]llo", "hbllo"));
	assert_false(matches("h[a-c]llo", "hdllo"));
	assert_true(matches("a\\*b", "a*b"));
	assert_false(matches("a\\*b", "axb"));
	assert_true(matches("a\\", "a\\"));
	assert_true(matches("[\\]]", "]"));
	assert_true(matches("[a", "a"));
	assert_false(matches("[", "a"));
	/* Steps that only grow with the product of both lengths. */
	assert_false(matches("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
			     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

/* The example of the paper's appendix: the bytes 0 to 14 under the key of bytes 0 to 15. */
static void test_siphash(void **state)
{
	(void)state;
	const uint64_t secret[2] = { 0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull };
	uint8_t bytes[15];
	struct siphash s;

	for (uint8_t i = 0; i < 15; i++)
		bytes[i] = i;
	siphash_begin(&s, secret);
	assert_true(siphash_end(&s, bytes, 15, 0) == 0xa129ca6149be45e5ull);
	siphash_begin(&s, secret);
	siphash_word(&s, 0x0706050403020100ull);
	assert_true(siphash_end(&s, bytes + 8, 7, 1) == 0xa129ca6149be45e5ull);
}

int main(void)
{
#define TEST(name)	cmocka_unit_test_setup_teardown(name, set_up, kv_rig_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_connection),
		{ "test_password", test_password, set_up, kv_rig_tear_down, (void *)"secret" },
		TEST(test_client),
		TEST(test_info),
		TEST(test_relocate),
		{ "test_restricted", test_restricted, set_up, kv_rig_tear_down, (void *)"secret" },
		TEST(test_config),
		TEST(test_long_pattern),
		TEST(test_command),
		TEST(test_patterns),
		TEST(test_siphash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
