// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two servers with network clients whose elastic control (ADAPT) takes a CPU and gives it back
 * while the database moves from one to the other: nothing that was acknowledged is lost.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"
#include "oltp-engine/server/control.h"
#include "oltp-engine/server/serve_kv.h"

#define CLIENTS		6u
#define TURN_US		200000u
#define PATH_BYTES	100u

/*
 * A process of its own: in one process, a ring of one server is mapped where one of the other was,
 * and TSan, which does not see the mappings of liburing, takes that for a race.
 */
struct node {
	char dir[PATH_BYTES], clients[PATH_BYTES], control_path[PATH_BYTES], result[PATH_BYTES];
	const char *listen;	/* of a target; NULL: a source */
	pid_t pid;
};

/* In a node's process, where a failed assertion would go on with the tests. */
static void must(bool is_so)
{
	if (!is_so)
		_exit(EXIT_FAILURE);
}

struct turner {
	void *source;
	_Atomic bool is_over;
};

/* One CPU more is offered, and demanded back, again and again. */
static void *turn(void *ctx)
{
	struct turner *turner = ctx;

	for (uint32_t i = 0; !turner->is_over; i++) {
		oltp_source_fixed_set_limit(turner->source, 1 + i % 2);
		usleep(TURN_US);
	}
	return NULL;
}

/* From open to result. */
static void serve(const struct node *node)
{
	static const uint32_t cpus[] = { 0, 1 };
	struct session_config config = { .options = bench_options_default, .no_pin = true };
	struct serve_options options = serve_options_default;
	struct turner turner = { 0 };
	struct session *session;
	struct control *control;
	struct serve *serve = NULL;
	pthread_t thread;
	FILE *out = fopen(node->result, "w");

	options.unix_paths[options.n_unix++] = node->clients;
	options.keys = 1000;
	options.is_relocatable = !node->listen;
	options.relocate_listen = node->listen;
	config.options.log.durability = OLTP_DURABILITY_COMMIT;
	must(out);
	must(!serve_open(&options, &config.options, &serve));
	config.options.quiet = true;
	config.options.interval_ms = 20;
	config.options.elastic = BENCH_ELASTIC_ADAPT;
	config.options.workload = serve_workload(serve);
	config.options.log.dir = node->dir;
	must(!session_open(&config, &session));
	must(!oltp_source_fixed_create(cpus, 2, 1, &turner.source));
	must(!control_open(node->control_path, session, &control));
	control_set_relocation(control, serve_relocation(serve));
	must(!serve_watch(serve, session));
	session_set_source(session, &oltp_source_fixed_ops, turner.source);
	must(!pthread_create(&thread, NULL, turn, &turner));
	must(!session_run(session));
	must(session_finish(session, out, ""));
	turner.is_over = true;
	pthread_join(thread, NULL);
	control_close(control);
	session_stop(session);
	oltp_source_fixed_destroy(turner.source);
	session_close(session);
	serve_close(serve);
	must(!fclose(out));
}

static void node_start(struct node *node, const char *dir, const char *name, const char *listen)
{
	node->listen = listen;
	snprintf(node->dir, PATH_BYTES, "%s/%s", dir, name);
	snprintf(node->clients, PATH_BYTES, "%s/%s.sock", dir, name);
	snprintf(node->control_path, PATH_BYTES, "%s/%s.control", dir, name);
	snprintf(node->result, PATH_BYTES, "%s/%s.result", dir, name);
	assert_int_equal(mkdir(node->dir, 0700), 0);
	node->pid = fork();
	assert_true(node->pid >= 0);
	if (node->pid)
		return;
	serve(node);
	_exit(EXIT_SUCCESS);
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval limit = { .tv_sec = 30 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

/* Sends a line; the answer, one line, into ret. False: the connection is closed. */
static bool ask(int fd, const char *line, char *ret, size_t room)
{
	size_t n = 0;

	if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
		return false;
	do {
		ssize_t got = recv(fd, ret + n, room - 1 - n, 0);

		if (got <= 0)
			return false;
		n += (size_t)got;
		ret[n] = '\0';
	} while (ret[n - 1] != '\n');
	return true;
}

/* The node may still be starting. */
static void node_say(const struct node *node, const char *line, char *ret, size_t room)
{
	int fd;

	while ((fd = connect_to(node->control_path)) < 0)
		usleep(10000);
	assert_true(ask(fd, line, ret, room));
	close(fd);
}

static bool status_has(const struct node *node, const char *words)
{
	char status[RELOCATION_STATUS_BYTES];

	node_say(node, "relocate-status\n", status, sizeof(status));
	return strstr(status, words);
}

/* Its result is there then. */
static void node_stop(const struct node *node)
{
	char answer[64];
	int status;

	node_say(node, "stop\n", answer, sizeof(answer));
	assert_int_equal(waitpid(node->pid, &status, 0), node->pid);
	assert_int_equal(status, 0);
}

/* A number in the results of both, added up. */
static uint64_t sum_of(const struct node *nodes, const char *field)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 2; i++) {
		FILE *in = fopen(nodes[i].result, "r");
		char text[16384];
		const char *at;
		size_t n;

		assert_non_null(in);
		n = fread(text, 1, sizeof(text) - 1, in);
		fclose(in);
		text[n] = '\0';
		at = strstr(text, field);
		assert_non_null(at);
		sum += strtoull(at + strlen(field), NULL, 10);
	}
	return sum;
}

struct client {
	pthread_t thread;
	const struct node *nodes;
	uint32_t number;
	uint64_t seen, sent;	/* increments that were acknowledged, and all */
	_Atomic bool is_away;	/* at the target */
	_Atomic bool *is_over;
};

/* Counts a key up, at whichever node lets it in. */
static void *count_up(void *ctx)
{
	struct client *c = ctx;
	char line[32], reply[128];

	snprintf(line, sizeof(line), "INCR n%u\r\n", c->number);
	while (!*c->is_over) {
		for (uint32_t i = 0; i < 2; i++) {
			int fd = connect_to(c->nodes[i].clients);

			while (fd >= 0 && !*c->is_over) {
				c->sent++;
				if (!ask(fd, line, reply, sizeof(reply)) || reply[0] != ':')
					break;
				c->seen = strtoull(reply + 1, NULL, 10);
				c->is_away = i == 1;
			}
			if (fd >= 0)
				close(fd);
		}
	}
	return NULL;
}

static bool all_away(const struct client *clients)
{
	for (uint32_t i = 0; i < CLIENTS; i++) {
		if (!clients[i].is_away)
			return false;
	}
	return true;
}

static void check(const struct node *node, const struct client *clients)
{
	int fd = connect_to(node->clients);

	assert_true(fd >= 0);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		char line[32], reply[64];
		uint64_t n;

		snprintf(line, sizeof(line), "INCRBY n%u 0\r\n", i);
		assert_true(ask(fd, line, reply, sizeof(reply)));
		n = strtoull(reply + 1, NULL, 10);
		assert_true(clients[i].seen > 0);
		assert_in_range(n, clients[i].seen, clients[i].sent);
	}
	close(fd);
}

static void test_cpus_come_and_go(void **state)
{
	struct client clients[CLIENTS] = { 0 };
	struct node nodes[2] = { 0 };
	char dir[PATH_BYTES / 2], link[PATH_BYTES], command[3 * PATH_BYTES], answer[512];
	_Atomic bool is_over = false;

	(void)state;
	snprintf(dir, sizeof(dir), "%s/oltp-serve.XXXXXX", rig_dir());
	assert_non_null(mkdtemp(dir));
	snprintf(link, sizeof(link), "unix:%s/link", dir);
	node_start(&nodes[0], dir, "source", NULL);
	node_start(&nodes[1], dir, "target", link);
	/* The answer of one that serves. */
	assert_true(status_has(&nodes[1], "\"waiting\""));
	assert_true(status_has(&nodes[0], "\"serving\""));
	for (uint32_t i = 0; i < CLIENTS; i++) {
		clients[i].nodes = nodes;
		clients[i].number = i;
		clients[i].is_over = &is_over;
		pthread_create(&clients[i].thread, NULL, count_up, &clients[i]);
	}
	usleep(2 * TURN_US);
	snprintf(command, sizeof(command), "relocate %s unix:%s fixed 2 limit-s 20\n", link,
		 nodes[1].clients);
	/* A greeting has a second for each message: on a machine that is too busy, once more. */
	do {
		node_say(&nodes[0], command, answer, sizeof(answer));
	} while (strstr(answer, strerror(ETIMEDOUT)));
	assert_string_equal(answer, "ok\n");
	while (!all_away(clients) || !status_has(&nodes[0], "\"over\""))
		usleep(TURN_US / 4);
	is_over = true;
	for (uint32_t i = 0; i < CLIENTS; i++)
		pthread_join(clients[i].thread, NULL);
	check(&nodes[1], clients);
	node_stop(&nodes[0]);
	node_stop(&nodes[1]);
	assert_true(sum_of(nodes, "\"cpus_added\":") > 0);
	assert_true(sum_of(nodes, "\"cpus_removed\":") > 0);
	print_message("%llu CPUs added, %llu connections moved between workers\n",
		      (unsigned long long)sum_of(nodes, "\"cpus_added\":"),
		      (unsigned long long)sum_of(nodes, "\"moved\":"));
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpus_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
