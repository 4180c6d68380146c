// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The engine's programs used wrongly: the exit status is the one of the manual page, and the
 * message names what is wrong.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define USAGE	64

struct use {
	const char *command;	/* a shell's; the first word is the program */
	int status;
	const char *message;	/* a part of it */
};

static void run(const struct use *use)
{
	char self[PATH_MAX] = "", command[2 * PATH_MAX], text[4096] = "";
	FILE *pipe;
	int status;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	*strrchr(self, '/') = 0;
	snprintf(command, sizeof(command), "exec 2>&1 </dev/null; '%s/../bin/'%s", self,
		 use->command);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	text[fread(text, 1, sizeof(text) - 1, pipe)] = '\0';
	/* More than that is not kept, but has to be taken. */
	while (fgetc(pipe) != EOF)
		;
	status = pclose(pipe);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) != use->status || !strstr(text, use->message))
		fail_msg("%s: status %d, %s", use->command, WEXITSTATUS(status), text);
}

#define RUN(uses) do {								\
	(void)state;								\
	for (size_t i = 0; i < sizeof(uses) / sizeof(*(uses)); i++)		\
		run(&(uses)[i]);						\
} while (0)

static void test_bench(void **state)
{
	static const struct use uses[] = {
		{ "oltp-bench --seconds nan", USAGE, "--seconds: 'nan'" },
		{ "oltp-bench --threads 0", USAGE, "--threads: '0'" },
		{ "oltp-bench -w nothing", USAGE, "--workload: 'nothing'" },
		{ "oltp-bench -n 100 --cold-dir /nonexistent", 1,
		  "--cold-dir /nonexistent: No such" },
		{ "oltp-bench -n 2147483648 --warm-memory", 1,
		  "--warm-memory: the tables need 2" },
		{ "oltp-bench -n 100 -s 0.1 -q --memory-mib 1073741824", 1,
		  "--memory-mib, --mem-schedule: 1073741824 MiB are more than the " },
		{ "oltp-bench -n 100 -s 0.1 -q --memory-mib 8 --mem-schedule 0:8,9:1073741824", 1,
		  "--memory-mib, --mem-schedule: 1073741824 MiB are more than the " },
		{ "oltp-bench -n 100 --stats /nonexistent/x", 1, "/nonexistent/x: No such" },
		{ "oltp-bench -n 100 --durability commit --log-dir /nonexistent", 1,
		  "/nonexistent: No such" },
		{ "oltp-bench -n 100 -s 0.1 -q --json >/dev/full", 1, "No space" },
		{ "oltp-bench -n 100 -s 0.1 -q --no-pin --cpus 0,0", USAGE, "--cpus: '0,0'" },
	};

	RUN(uses);
}

static void test_a_database_needs_recover(void **state)
{
	static const char program[] = "oltp-bench -n 100 -s 0.1 -q --durability async --log-dir ";
	char dir[] = "/tmp/oltp-usage-XXXXXX", command[200];
	struct use use = { command, 0, "" };

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command), "%s%s", program, dir);
	run(&use);
	use.status = 1;
	use.message = "there is a database, which --recover goes on with";
	run(&use);
	snprintf(command, sizeof(command), "%s%s --recover", program, dir);
	use.status = 0;
	use.message = "";
	run(&use);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* Made, filled, shown, refused, gone on with, and made anew. */
static void test_volume(void **state)
{
	static const char bench[] = "oltp-bench -n 100 -s 0.1 -q --durability async --volume ";
	char path[] = "/var/tmp/oltp-usage-XXXXXX", command[300];
	static const struct {
		const char *before, *behind;
		int status;
		const char *message;
	} steps[] = {
		{ "oltp-volume ", "", 1, "it holds no volume" },
		{ bench, "", 1, "it holds no volume" },
		{ bench, " --volume-format", 0, "" },
		{ bench, "", 1, "there is a database, which --recover goes on with" },
		{ bench, " --volume-format", 1, "it holds a volume already; see --force" },
		{ bench, " --recover", 0, "" },
		{ "oltp-volume ", "", 0, "generation 3, 1024 MiB" },
		{ "oltp-volume ", "", 0, "log-0000000000000001" },
		{ "oltp-volume ", " >/dev/full", 1, "standard output: No space" },
		{ "oltp-volume --format ", "", 1, "it holds a volume already; see --force" },
		{ bench, " --volume-format --force", 0, "" },
		{ "oltp-volume --format --force ", "", 0, "" },
		{ "oltp-volume ", "", 0, "generation 0, 1024 MiB, 1023 MiB free" },
	};
	static const struct use uses[] = {
		{ "oltp-volume", USAGE, "which PATH?" },
		{ "oltp-volume -f /a", USAGE, "--force needs --format" },
		{ "oltp-volume /nonexistent", 1, "/nonexistent: No such" },
		{ "oltp-volume --format /nonexistent", 1, "/nonexistent: No such" },
		{ "oltp-volume --format /dev/null", 1, "shorter than 8 MiB" },
	};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 30), 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct use use = { command, steps[i].status, steps[i].message };

		snprintf(command, sizeof(command), "%s%s%s", steps[i].before, path,
			 steps[i].behind);
		run(&use);
	}
	assert_int_equal(pwrite(fd, "text", 4, 0), 4);
	assert_int_equal(pwrite(fd, "text", 4, 256 << 10), 4);
	snprintf(command, sizeof(command), "oltp-volume --format %s", path);
	run(&(struct use){ command, 1, "may hold something else; see --force" });
	close(fd);
	unlink(path);
	RUN(uses);
}

static void test_index_bench(void **state)
{
	static const struct use uses[] = {
		{ "oltp-index-bench -t 4294967297", USAGE, "--threads: '4294967297'" },
		{ "oltp-index-bench -n -5", USAGE, "--rows: '-5'" },
		{ "oltp-index-bench -n ''", USAGE, "--rows: ''" },
		{ "oltp-index-bench -b 2000000", USAGE, "--record-bytes: '2000000'" },
		{ "oltp-index-bench -s inf", USAGE, "--seconds: 'inf'" },
		{ "oltp-index-bench -n 12800 -s 0.001 >/dev/full", 1, "standard output: No space" },
	};

	RUN(uses);
}

static void test_miss_bound(void **state)
{
	static const struct use uses[] = {
		{ "oltp-miss-bound -a 65", USAGE, "--accesses: '65'" },
		{ "oltp-miss-bound -n 1000 -s 0.001 >/dev/full", 1, "standard output: No space" },
	};

	RUN(uses);
}

static void test_vom_cost(void **state)
{
	static const struct use uses[] = {
		{ "vom-cost -t 65", USAGE, "--threads: '65'" },
		{ "vom-cost -p x", USAGE, "--pairs: 'x'" },
		{ "vom-cost --promise 10", USAGE, "--promise needs --cold-dir" },
	};

	RUN(uses);
}

static void test_node(void **state)
{
	static const struct use uses[] = {
		{ "oltp-node --id 1", USAGE, "a node needs --id, --listen, --peer and --log" },
		{ "oltp-node --id 1 --listen tcp:1.2.3:4 --peer unix:/a --log /b", USAGE,
		  "--listen: 'tcp:1.2.3:4'" },
		{ "oltp-node --id 1 --listen unix:/a --peer b --log /c", USAGE, "--peer: 'b'" },
		{ "oltp-node --second-cpu 1", USAGE, "--second-cpu needs --two-tables" },
		{ "oltp-node --records 100 --id 1 --listen unix:/a --peer unix:/b "
		  "--log /nonexistent/log", 1, "--log /nonexistent/log: No such" },
		{ "oltp-node --records 100 --two-tables <<E\nrun 1 x\nE\n", 0,
		  "oltp-node-error not possible here: run 1 x" },
		{ "oltp-node --records 100 >/dev/full", 1, "standard output: No space" },
	};

	RUN(uses);
}

static void test_check(void **state)
{
	static const struct use uses[] = {
		{ "oltp-check", USAGE, "no FILE" },
		{ "oltp-check -m some x", USAGE, "--model: 'some'" },
		{ "oltp-check /nonexistent", 66, "/nonexistent: No such" },
		{ "oltp-check /dev/null", 65, "/dev/null" },
		{ "oltp-check oltp-engine/man/oltp-check.1", 65, "line 1:" },
	};

	RUN(uses);
}

static void test_history(void **state)
{
	static const struct use uses[] = {
		{ "oltp-history --do ''", USAGE, "--do: ''" },
		{ "oltp-history --do lists,", USAGE, "--do: ''" },
		{ "oltp-history --kills 2 --log-dir /a -o /b --seconds 1", USAGE,
		  "--kills and --seconds" },
		{ "oltp-history --memory-mib 8 --cold-dir /nonexistent", 1,
		  "--cold-dir: /nonexistent: No such" },
		{ "oltp-history --log-dir /dev/null", 1, "--log-dir: /dev/null: Not a dir" },
		{ "oltp-history -o /nonexistent/x", 1, "/nonexistent/x: No such" },
		{ "oltp-history -t 10 -q >/dev/full", 1, "standard output: No space" },
	};

	RUN(uses);
}

static void test_server(void **state)
{
	static const struct use uses[] = {
		{ "oltp-server --tier none", USAGE, "--tier: 'none'" },
		{ "oltp-server --device /nonexistent", 1, "/nonexistent: No such" },
	};

	RUN(uses);
}

static void test_load(void **state)
{
	static const struct use uses[] = {
		{ "oltp-load --connect nowhere", USAGE, "--connect: 'nowhere'" },
		{ "oltp-load --connect unix:/a,,unix:/b", USAGE, "--connect: ''" },
		{ "oltp-load --connect no-such-host.invalid:1", 1, "no-such-host.invalid" },
		{ "oltp-load --connections 0", USAGE, "--connections: '0'" },
		{ "oltp-load --resp 4", USAGE, "--resp: '4'" },
		{ "oltp-load --mix all=1", USAGE, "--mix: 'all=1'" },
		{ "oltp-load --rate nan", USAGE, "--rate: 'nan'" },
		{ "oltp-load --rate-schedule 5", USAGE, "--rate-schedule: '5'" },
		{ "oltp-load --rows 4", USAGE, "--rows: '4'" },
		{ "oltp-load --wait-ms 0", USAGE, "--wait-ms: '0'" },
		{ "oltp-load --value-bytes 16385", USAGE, "--value-bytes: '16385'" },
		{ "oltp-load --password-file /nonexistent", 1, "/nonexistent: No such" },
	};

	RUN(uses);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bench),
		cmocka_unit_test(test_a_database_needs_recover),
		cmocka_unit_test(test_index_bench),
		cmocka_unit_test(test_miss_bound),
		cmocka_unit_test(test_vom_cost),
		cmocka_unit_test(test_node),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_volume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
