// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two nodes as real processes, killed in the middle of distributed transactions. Every transaction
 * writes as many records here as there, so that after recovery both tables must have been counted
 * up alike: no update lost on one side, none half done. Each kill comes at a random moment; a test
 * goes on until one of them has hit a transaction in doubt, so that it cannot pass without having
 * seen one. (The program's log is real, forced to the disk of the test's folder.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ANSWER_MS	60000
#define ROUNDS_MAX	40
#define REMOTE		2	/* of the four operations of a transaction, all updates */

struct node {
	int id;
	pid_t pid;	/* 0: it does not run */
	int in, out;
	char text[4096];
	size_t used;
	char line[1024];
};

struct pair {
	char dir[64];
	char program[PATH_MAX];
	struct node nodes[2];
	uint32_t random;
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static uint32_t random_below(struct pair *pair, uint32_t n)
{
	pair->random = pair->random * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)pair->random * n) >> 32);
}

static void exec_node(const struct pair *pair, int id, int in, int out)
{
	char listen[96], peer[96], log[96], number[8];

	snprintf(number, sizeof(number), "%d", id);
	snprintf(listen, sizeof(listen), "unix:%s/%d.sock", pair->dir, id);
	snprintf(peer, sizeof(peer), "unix:%s/%d.sock", pair->dir, 3 - id);
	snprintf(log, sizeof(log), "%s/%d.log", pair->dir, id);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	execl(pair->program, pair->program, "--id", number, "--listen", listen, "--peer", peer,
	      "--log", log, "--records", "2000", "--operations", "4", "--update", "1", "--threads",
	      "2", "--timeout-ms", "300", "--progress", (char *)NULL);
	_exit(127);
}

/* The next line that begins with prefix; others are dropped. */
static const char *expect(struct node *node, const char *prefix)
{
	uint64_t end_ms = now_ms() + ANSWER_MS;

	for (;;) {
		struct pollfd fd = { .fd = node->out, .events = POLLIN };
		char *end = memchr(node->text, '\n', node->used);
		ssize_t n;

		if (end) {
			size_t bytes = (size_t)(end - node->text);

			assert_true(bytes < sizeof(node->line));
			memcpy(node->line, node->text, bytes);
			node->line[bytes] = '\0';
			node->used -= bytes + 1;
			memmove(node->text, end + 1, node->used);
			if (!strncmp(node->line, prefix, strlen(prefix)))
				return node->line;
			continue;
		}
		if (now_ms() > end_ms || poll(&fd, 1, 1000) < 0)
			fail_msg("node %d does not say %s", node->id, prefix);
		if (!fd.revents)
			continue;
		n = read(node->out, node->text + node->used, sizeof(node->text) - node->used);
		if (n <= 0)
			fail_msg("node %d ended before it said %s", node->id, prefix);
		node->used += (size_t)n;
	}
}

static void start(struct pair *pair, int id)
{
	struct node *node = &pair->nodes[id - 1];
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	node->id = id;
	node->used = 0;
	node->pid = fork();
	if (!node->pid)
		exec_node(pair, id, in[0], out[1]);
	assert_true(node->pid > 0);
	close(in[0]);
	close(out[1]);
	node->in = in[1];
	node->out = out[0];
	expect(node, "oltp-node: ready");
}

static int wait_end(struct node *node)
{
	int status;

	assert_int_equal(waitpid(node->pid, &status, 0), node->pid);
	close(node->in);
	close(node->out);
	node->pid = 0;
	return status;
}

static void kill_now(struct node *node)
{
	kill(node->pid, SIGKILL);
	wait_end(node);
}

static void tell(struct node *node, const char *line)
{
	assert_int_equal(write(node->in, line, strlen(line)), strlen(line));
}

static void quit(struct node *node)
{
	int status;

	tell(node, "quit\n");
	status = wait_end(node);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static uint64_t number_of(const char *line, const char *name)
{
	char wanted[64];
	const char *at;

	snprintf(wanted, sizeof(wanted), "\"%s\":", name);
	at = strstr(line, wanted);
	if (!at)
		fail_msg("no %s in %s", name, line);
	return strtoull(at + strlen(wanted), NULL, 10);
}

static uint64_t stat_of(struct node *node, const char *name)
{
	tell(node, "stats\n");
	return number_of(expect(node, "oltp-node-stats"), name);
}

/* D5, with real clocks: nothing stays in doubt or unconfirmed when both run. */
static void wait_settled(struct pair *pair)
{
	uint64_t end_ms = now_ms() + ANSWER_MS;

	while (stat_of(&pair->nodes[0], "in_doubt") || stat_of(&pair->nodes[1], "in_doubt") ||
	       stat_of(&pair->nodes[0], "unconfirmed") || stat_of(&pair->nodes[1], "unconfirmed")) {
		if (now_ms() > end_ms)
			fail_msg("transactions stay in doubt or unconfirmed");
		usleep(20000);
	}
}

static uint64_t updates_found(struct node *node)
{
	const char *line;

	tell(node, "audit\n");
	line = expect(node, "oltp-node-audit");
	assert_non_null(strstr(line, "\"complete\":true"));
	assert_int_equal(number_of(line, "damaged"), 0);
	return number_of(line, "updates");
}

static int set_up(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	char self[PATH_MAX] = { 0 };

	if (!pair || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -1;
	snprintf(pair->program, sizeof(pair->program), "%.*s/../bin/oltp-node", PATH_MAX - 32,
		 dirname(self));
	strcpy(pair->dir, "/tmp/ebb-dist-XXXXXX");
	if (!mkdtemp(pair->dir))
		return -1;
	pair->random = (uint32_t)now_ms();
	signal(SIGPIPE, SIG_IGN);
	*state = pair;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *pair = *state;
	char path[96];

	for (int id = 1; id <= 2; id++) {
		if (pair->nodes[id - 1].pid)
			kill_now(&pair->nodes[id - 1]);
		snprintf(path, sizeof(path), "%s/%d.log", pair->dir, id);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%d.sock", pair->dir, id);
		unlink(path);
	}
	rmdir(pair->dir);
	free(pair);
	return 0;
}

/*
 * Has the node run transactions until at least one has gone through, and then some random time.
 * On a busy machine that may take more than one run.
 */
static uint64_t let_it_run(struct pair *pair, struct node *node, const char *run)
{
	uint64_t committed = 0;

	tell(node, run);
	while (!committed) {
		const char *line = expect(node, "oltp-node");

		if (!strncmp(line, "oltp-node-result", 16))
			tell(node, run);
		else if (!strncmp(line, "oltp-node: committed=", 21))
			committed = strtoull(line + 21, NULL, 10);
	}
	usleep(random_below(pair, 150000));
	return committed;
}

static void participant_killed(void **state)
{
	struct pair *pair = *state;
	struct node *a = &pair->nodes[0], *b = &pair->nodes[1];
	uint64_t in_doubt = 0, recovered = 0;
	int round;

	start(pair, 1);
	start(pair, 2);
	for (round = 0; !in_doubt && round < ROUNDS_MAX; round++) {
		const char *line;
		uint64_t own, other;

		let_it_run(pair, a, "run 2 2\n");
		kill_now(b);
		usleep(random_below(pair, 100000));
		start(pair, 2);
		line = expect(a, "oltp-node-result");
		own = number_of(line, "own_updates");
		other = number_of(line, "other_updates");
		wait_settled(pair);
		in_doubt = stat_of(b, "recovered_in_doubt");
		recovered = stat_of(b, "recovered");
		/* The coordinator's books know it all. */
		assert_int_equal(updates_found(a), own);
		assert_int_equal(updates_found(b), other);
		assert_true(other > 0);
	}
	print_message("%d kills; the last found %llu transactions in the log, %llu in doubt\n",
		      round, (unsigned long long)recovered, (unsigned long long)in_doubt);
	assert_true(in_doubt > 0);
	quit(a);
	quit(b);
}

static void coordinator_killed(void **state)
{
	struct pair *pair = *state;
	struct node *a = &pair->nodes[0], *b = &pair->nodes[1];
	uint64_t asked = 0, before = 0;
	int round;

	start(pair, 1);
	start(pair, 2);
	for (round = 0; !asked && round < ROUNDS_MAX; round++) {
		uint64_t told, found;

		told = let_it_run(pair, a, "run 10 2\n");
		kill_now(a);
		usleep(random_below(pair, 100000));
		start(pair, 1);
		wait_settled(pair);
		asked = stat_of(b, "asked_commits") + stat_of(b, "asked_aborts");
		found = updates_found(b);
		assert_int_equal(updates_found(a), found);
		/* What was said to be committed is there. */
		assert_true(found >= before + REMOTE * told);
		before = found;
	}
	print_message("%d kills; the last left %llu transactions in doubt\n", round,
		      (unsigned long long)asked);
	assert_true(asked > 0);
	quit(a);
	quit(b);
}

static void both_killed_while_both_coordinate(void **state)
{
	struct pair *pair = *state;
	struct node *a = &pair->nodes[0], *b = &pair->nodes[1];
	uint64_t in_doubt = 0;
	int round;

	start(pair, 1);
	start(pair, 2);
	for (round = 0; !in_doubt && round < ROUNDS_MAX; round++) {
		let_it_run(pair, a, "run 10 2\n");
		let_it_run(pair, b, "run 10 2\n");
		kill_now(a);
		kill_now(b);
		start(pair, 2);
		start(pair, 1);
		in_doubt = stat_of(a, "recovered_in_doubt") + stat_of(b, "recovered_in_doubt");
		wait_settled(pair);
		assert_int_equal(updates_found(a), updates_found(b));
	}
	print_message("%d kills; the last left %llu transactions in doubt\n", round,
		      (unsigned long long)in_doubt);
	assert_true(in_doubt > 0);
	quit(a);
	quit(b);
}

/* It neither dies nor answers: the connection holds, and the participant waits in doubt. */
static void coordinator_stopped_for_a_while(void **state)
{
	struct pair *pair = *state;
	struct node *a = &pair->nodes[0], *b = &pair->nodes[1];
	const char *line;
	uint64_t own, other;

	start(pair, 1);
	start(pair, 2);
	let_it_run(pair, a, "run 2.5 2\n");
	kill(a->pid, SIGSTOP);
	usleep(700000);
	kill(a->pid, SIGCONT);
	line = expect(a, "oltp-node-result");
	own = number_of(line, "own_updates");
	other = number_of(line, "other_updates");
	wait_settled(pair);
	assert_int_equal(updates_found(a), own);
	assert_int_equal(updates_found(b), other);
	quit(a);
	quit(b);
}

static void without_a_peer_nothing_happens(void **state)
{
	struct pair *pair = *state;
	struct node *a = &pair->nodes[0];
	const char *line;

	start(pair, 1);
	do {
		tell(a, "run 0.3 2\n");
		line = expect(a, "oltp-node-result");
		assert_int_equal(number_of(line, "committed"), 0);
	} while (number_of(line, "failed") == 0);
	assert_int_equal(updates_found(a), 0);
	quit(a);
}

/* Restarted without a crash: committed writes come back from the log, too. */
static void quiet_restart_keeps_everything(void **state)
{
	struct pair *pair = *state;
	struct node *a = &pair->nodes[0], *b = &pair->nodes[1];
	uint64_t own, other;
	const char *line;

	start(pair, 1);
	start(pair, 2);
	tell(a, "run 0.5 2\n");
	line = expect(a, "oltp-node-result");
	own = number_of(line, "own_updates");
	other = number_of(line, "other_updates");
	wait_settled(pair);
	quit(a);
	quit(b);
	start(pair, 1);
	start(pair, 2);
	assert_int_equal(stat_of(b, "recovered_in_doubt"), 0);
	assert_int_equal(updates_found(a), own);
	assert_int_equal(updates_found(b), other);
	quit(a);
	quit(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_a_peer_nothing_happens, set_up, tear_down),
		cmocka_unit_test_setup_teardown(quiet_restart_keeps_everything, set_up, tear_down),
		cmocka_unit_test_setup_teardown(coordinator_stopped_for_a_while, set_up, tear_down),
		cmocka_unit_test_setup_teardown(participant_killed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(coordinator_killed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(both_killed_while_both_coordinate, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
