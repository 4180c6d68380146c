/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control socket: framing, garbage, limits, late answers. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include "service/ctl.h"
#include "util/log.h"

struct fixture {
	sd_event *event;
	struct ebb_ctl *ctl;
	char folder[64], path[96];
	struct ebb_ctl_request *late;	/* a request that is not answered yet */
	int num_handled;
};

/* "echo" answers at once, "late" when the test says, "big" with much. */
static void handle(void *ctx, struct ebb_ctl_request *r)
{
	struct fixture *f = ctx;

	f->num_handled++;
	assert_true(r->may_change);
	if (strcmp(r->cmd, "late") == 0) {
		assert_null(f->late);
		f->late = r;
	} else if (strcmp(r->cmd, "big") == 0) {
		char *text = calloc(1, 4 << 20);

		memset(text, 'x', (4 << 20) - 1);
		ebb_ctl_reply(r, json_pack("{s:s}", "text", text));
		free(text);
	} else if (strcmp(r->cmd, "echo") == 0) {
		ebb_ctl_reply(r, json_pack("{s:O}", "said", json_object_get(r->body, "say")));
	} else {
		ebb_ctl_fail(r, "unknown-command", "try echo", "there is no \"%s\"", r->cmd);
	}
}

static int setup_idle(void **state, usec_t idle_usec)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct ebb_ctl_config cfg = {
		.path = f->path, .group = -1, .idle_usec = idle_usec, .handle = handle, .ctx = f,
	};

	ebb_log_set_level(LOG_ERR);
	strcpy(f->folder, "/tmp/test_ctl_server.XXXXXX");
	if (!mkdtemp(f->folder))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/control.sock", f->folder);
	if (sd_event_new(&f->event) < 0 || ebb_ctl_create(f->event, &cfg, &f->ctl, NULL) < 0)
		return -1;
	*state = f;
	return 0;
}

/* No client is ever idle, however slow the machine is. */
static int setup(void **state)
{
	return setup_idle(state, 3600 * EBB_USEC_PER_SEC);
}

/* A client is idle as soon as it does nothing. */
static int setup_impatient(void **state)
{
	return setup_idle(state, 0);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	ebb_ctl_destroy(f->ctl);
	if (f->late)
		ebb_ctl_fail(f->late, "ended", NULL, "too late");
	if (stat(f->path, &st) == 0 || rmdir(f->folder) < 0)
		return -1;
	sd_event_unref(f->event);
	free(f);
	return 0;
}

static void pump(struct fixture *f)
{
	while (sd_event_run(f->event, 20000) > 0)
		;
}

static int connect_client(struct fixture *f)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, f->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void say(struct fixture *f, int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	pump(f);
}

/* What there is to read now, as text; "" when closed. */
static const char *hear(struct fixture *f, int fd)
{
	static char buf[8192];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	pump(f);
	if (poll(&p, 1, 0) == 0)
		return "nothing";
	n = recv(fd, buf, sizeof(buf) - 1, 0);
	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

static void test_echo(void **state)
{
	struct fixture *f = *state;
	int fd = connect_client(f);

	say(f, fd, "{\"cmd\":\"echo\",\"say\":[1,\"\xc3\xa4\"]}\n");
	assert_string_equal(hear(f, fd), "{\"ok\":true,\"said\":[1,\"\xc3\xa4\"]}\n");
	/* In pieces. */
	say(f, fd, "{\"cmd\":\"ec");
	assert_string_equal(hear(f, fd), "nothing");
	say(f, fd, "ho\",\"say\":2}\n");
	assert_string_equal(hear(f, fd), "{\"ok\":true,\"said\":2}\n");
	/* Several at once are answered in order. */
	say(f, fd, "{\"cmd\":\"echo\",\"say\":1}\n{\"cmd\":\"echo\",\"say\":2}\n");
	assert_string_equal(hear(f, fd), "{\"ok\":true,\"said\":1}\n{\"ok\":true,\"said\":2}\n");
	close(fd);
}

static void test_garbage(void **state)
{
	static const char *const lines[] = {
		"garbage\n",
		"\n",
		"[]\n",
		"1\n",
		"{}\n",
		"{\"cmd\":1}\n",
		"{\"cmd\":\"echo\"\n",
		"{\"cmd\":\"a\",\"cmd\":\"b\"}\n",
		"\xff\xfe\xfd\n",
		"{\"cmd\":\"echo\"} trailing\n",
		"{\"cmd\":\"\\u0000\"}\n",
	};
	struct fixture *f = *state;
	int fd = connect_client(f);

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *answer;

		say(f, fd, lines[i]);
		answer = hear(f, fd);
		if (!strstr(answer, "\"ok\":false") || !strstr(answer, "\"code\":\"bad-request\""))
			fail_msg("line %zu was answered with %s", i, answer);
	}
	assert_int_equal(f->num_handled, 0);
	/* The connection has survived. */
	say(f, fd, "{\"cmd\":\"echo\",\"say\":3}\n");
	assert_string_equal(hear(f, fd), "{\"ok\":true,\"said\":3}\n");
	say(f, fd, "{\"cmd\":\"nope\"}\n");
	assert_string_equal(hear(f, fd), "{\"ok\":false,\"error\":{\"code\":\"unknown-command\","
			    "\"message\":\"there is no \\\"nope\\\"\",\"hint\":\"try echo\"}}\n");
	close(fd);
}

static void test_random_bytes(void **state)
{
	struct fixture *f = *state;
	unsigned int seed = 7;

	for (int round = 0; round < 50; round++) {
		int fd = connect_client(f);
		char buf[300];

		for (size_t i = 0; i < sizeof(buf); i++)
			buf[i] = rand_r(&seed) % 5 ? rand_r(&seed) : "{}\"\n:"[rand_r(&seed) % 5];
		if (send(fd, buf, sizeof(buf), MSG_NOSIGNAL) < 0)
			assert_int_equal(errno, EPIPE);
		while (sd_event_run(f->event, 0) > 0)
			;
		close(fd);
	}
	pump(f);
	assert_int_equal(f->num_handled, 0);
}

static void test_too_long(void **state)
{
	struct fixture *f = *state;
	int fd = connect_client(f), other = connect_client(f);
	char *line = malloc(EBB_CTL_MAX_LINE + 1);

	memset(line, ' ', EBB_CTL_MAX_LINE);
	line[EBB_CTL_MAX_LINE] = '\0';
	say(f, fd, line);
	assert_string_equal(hear(f, fd), "");
	say(f, other, "{\"cmd\":\"echo\",\"say\":4}\n");
	assert_string_equal(hear(f, other), "{\"ok\":true,\"said\":4}\n");
	free(line);
	close(fd);
	close(other);
}

/* A late answer holds up its own client only. */
static void test_late(void **state)
{
	struct fixture *f = *state;
	int fd = connect_client(f), other = connect_client(f);

	say(f, fd, "{\"cmd\":\"late\"}\n{\"cmd\":\"echo\",\"say\":1}\n");
	assert_string_equal(hear(f, fd), "nothing");
	assert_int_equal(f->num_handled, 1);
	say(f, other, "{\"cmd\":\"echo\",\"say\":2}\n");
	assert_string_equal(hear(f, other), "{\"ok\":true,\"said\":2}\n");
	ebb_ctl_reply(f->late, json_object());
	f->late = NULL;
	assert_string_equal(hear(f, fd), "{\"ok\":true}\n{\"ok\":true,\"said\":1}\n");
	close(fd);
	close(other);
}

static void test_gone_before_the_answer(void **state)
{
	struct fixture *f = *state;
	int fd = connect_client(f);

	say(f, fd, "{\"cmd\":\"late\"}\n");
	close(fd);
	pump(f);
	assert_non_null(f->late);
	ebb_ctl_reply(f->late, json_object());
	f->late = NULL;
	pump(f);
}

static void test_slow_reader(void **state)
{
	struct fixture *f = *state;
	int fd = connect_client(f), other = connect_client(f);
	size_t total = 0;
	char buf[65536];

	say(f, fd, "{\"cmd\":\"big\"}\n");
	say(f, other, "{\"cmd\":\"echo\",\"say\":5}\n");
	assert_string_equal(hear(f, other), "{\"ok\":true,\"said\":5}\n");
	while (total < (4 << 20)) {
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

		if (n > 0)
			total += n;
		else
			sd_event_run(f->event, 1000);
	}
	pump(f);
	say(f, fd, "{\"cmd\":\"echo\",\"say\":6}\n");
	close(fd);
	close(other);
}

static void test_too_many(void **state)
{
	struct fixture *f = *state;
	int fds[EBB_CTL_MAX_CLIENTS + 1];

	for (int i = 0; i <= EBB_CTL_MAX_CLIENTS; i++) {
		fds[i] = connect_client(f);
		pump(f);
	}
	assert_string_equal(hear(f, fds[EBB_CTL_MAX_CLIENTS]),
			    "{\"ok\":false,\"error\":{\"code\":\"too-many-clients\","
			    "\"message\":\"all 32 connections are in use\","
			    "\"hint\":\"try again, or end a client\"}}\n");
	assert_string_equal(hear(f, fds[EBB_CTL_MAX_CLIENTS]), "");
	say(f, fds[0], "{\"cmd\":\"echo\",\"say\":7}\n");
	assert_string_equal(hear(f, fds[0]), "{\"ok\":true,\"said\":7}\n");
	for (int i = 0; i <= EBB_CTL_MAX_CLIENTS; i++)
		close(fds[i]);
	pump(f);
	fds[0] = connect_client(f);
	say(f, fds[0], "{\"cmd\":\"echo\",\"say\":8}\n");
	assert_string_equal(hear(f, fds[0]), "{\"ok\":true,\"said\":8}\n");
	close(fds[0]);
}

/* One more takes the place of the client that has done nothing for longest. */
static void test_idle_makes_way(void **state)
{
	struct fixture *f = *state;
	int fds[EBB_CTL_MAX_CLIENTS + 2];

	for (int i = 0; i < EBB_CTL_MAX_CLIENTS; i++) {
		fds[i] = connect_client(f);
		pump(f);
	}
	/* The first waits for an answer, the second is active, the third sent half a request. */
	say(f, fds[2], "{\"cmd\":");
	say(f, fds[0], "{\"cmd\":\"late\"}\n");
	say(f, fds[1], "{\"cmd\":\"echo\",\"say\":1}\n");
	assert_string_equal(hear(f, fds[1]), "{\"ok\":true,\"said\":1}\n");
	for (int i = EBB_CTL_MAX_CLIENTS; i < EBB_CTL_MAX_CLIENTS + 2; i++) {
		fds[i] = connect_client(f);
		say(f, fds[i], "{\"cmd\":\"echo\",\"say\":2}\n");
		assert_string_equal(hear(f, fds[i]), "{\"ok\":true,\"said\":2}\n");
	}
	assert_string_equal(hear(f, fds[3]), "");
	assert_string_equal(hear(f, fds[4]), "");
	for (int i = 5; i < EBB_CTL_MAX_CLIENTS; i++)
		assert_string_equal(hear(f, fds[i]), "nothing");
	/* Half a request does not keep a place, one that waits for its answer does. */
	for (int i = 5; i < EBB_CTL_MAX_CLIENTS; i++)
		say(f, fds[i], " ");
	close(connect_client(f));
	pump(f);
	assert_string_equal(hear(f, fds[2]), "");
	ebb_ctl_reply(f->late, json_object());
	f->late = NULL;
	assert_string_equal(hear(f, fds[0]), "{\"ok\":true}\n");
	for (int i = 0; i < EBB_CTL_MAX_CLIENTS + 2; i++)
		close(fds[i]);
}

/* A client that says what it has to say and closes its half is answered. */
/* Those who may only look can not keep out whoever may change things, such as ebb-placed. */
static void test_places_of_root(void **state)
{
	enum { LOOKERS = EBB_CTL_MAX_CLIENTS - EBB_CTL_RESERVED, NOBODY = 65534 };
	struct fixture *f = *state;
	int fds[EBB_CTL_MAX_CLIENTS + 1];

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(f->folder, 0755), 0);
	assert_int_equal(chmod(f->path, 0666), 0);
	for (int i = 0; i <= EBB_CTL_MAX_CLIENTS; i++) {
		/* The kernel notes who connects. */
		assert_int_equal(seteuid(i <= LOOKERS ? NOBODY : 0), 0);
		fds[i] = connect_client(f);
		assert_int_equal(seteuid(0), 0);
		pump(f);
	}
	assert_string_equal(hear(f, fds[0]), "nothing");
	assert_non_null(strstr(hear(f, fds[LOOKERS]), "too-many-clients"));
	for (int i = LOOKERS + 1; i <= EBB_CTL_MAX_CLIENTS; i++) {
		say(f, fds[i], "{\"cmd\":\"echo\",\"say\":1}\n");
		assert_string_equal(hear(f, fds[i]), "{\"ok\":true,\"said\":1}\n");
	}
	for (int i = 0; i <= EBB_CTL_MAX_CLIENTS; i++)
		close(fds[i]);
	pump(f);
}

static void test_half_closed(void **state)
{
	struct fixture *f = *state;
	int fd = connect_client(f);

	assert_int_equal(send(fd, "{\"cmd\":\"echo\",\"say\":9}\n", 23, 0), 23);
	shutdown(fd, SHUT_WR);
	assert_string_equal(hear(f, fd), "{\"ok\":true,\"said\":9}\n");
	assert_string_equal(hear(f, fd), "");
	close(fd);
}

/* No file descriptor is left: the client waits until there is one, and the loop does not spin. */
static void test_no_descriptors(void **state)
{
	struct fixture *f = *state;
	int fd = connect_client(f), spare = dup(0), rounds = 0;
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	/* Each connection that can not be accepted is an event; a round without one takes 20 ms. */
	while (rounds < 100000 && sd_event_run(f->event, 20000) > 0)
		rounds++;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(spare);
	assert_true(rounds < 100000);
	for (int i = 0; i < 3000 && strcmp(hear(f, fd), "nothing") == 0; i++)
		if (i == 0)
			say(f, fd, "{\"cmd\":\"echo\",\"say\":10}\n");
	assert_int_equal(f->num_handled, 1);
	close(fd);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(echo), TEST(garbage), TEST(random_bytes), TEST(too_long), TEST(late),
		TEST(gone_before_the_answer), TEST(slow_reader), TEST(too_many), TEST(half_closed),
		TEST(places_of_root),
		TEST(no_descriptors),
		cmocka_unit_test_setup_teardown(test_idle_makes_way, setup_impatient, teardown),
	};

	return cmocka_run_group_tests_name("daemon/ctl", tests, NULL, NULL);
}
