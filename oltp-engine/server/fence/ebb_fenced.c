// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ebb-fenced: asks at ebb-volumed on behalf of the nodes of one database that are in guests, who
 * is fenced, and fences one for the other. Guests have the volume alone, not the control socket.
 *
 * A thread for each connection, which has one question, a few seconds, and nothing that it shares
 * with others but the count of connections.
 */
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "oltp-engine/bench/accept.h"
#include "oltp-engine/server/fence/desk.h"
#include "oltp-engine/server/fence/volumed.h"
#include "oltp-engine/server/link.h"

#define CONNECTIONS_MAX	32
#define LISTEN_MAX	8u
#define PATIENCE_MS	2000u
#define EXIT_USAGE	64

const char *argp_program_version = "ebb-fenced 1 (Ebb)";

struct arguments {
	const char *listen[LISTEN_MAX];
	uint32_t n_listen;
	const char *control, *volume, *secret;
};

static struct {
	struct arguments args;
	struct fence_desk desk;
	_Atomic int n_connections;
	_Atomic int64_t said_s;	/* when somebody was last said to be refused */
} server = {
	.args.control = "/run/ebb-volumed/control.sock",
};

static const struct argp_option options[] = {
	{ "listen", 'l', "ADDRESS", 0,
	  "answer nodes there: tcp:A.B.C.D:PORT, tcp:[IPV6]:PORT or unix:PATH; may be given "
	  "several times", 0 },
	{ "volume", 'v', "NAME", 0, "the shared volume of the database at ebb-volumed", 0 },
	{ "secret", 's', "FILE", 0,
	  "nodes must know what is in FILE, 16 to 512 bytes; its mode must be 0600", 0 },
	{ "control", 'c', "PATH", 0,
	  "control socket of ebb-volumed (/run/ebb-volumed/control.sock)", 0 },
	{ 0 },
};

static void check(struct argp_state *state, const struct arguments *a)
{
	if (!a->n_listen || !a->volume || !a->secret)
		argp_error(state, "--listen, --volume and --secret are needed");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'l':
		if (a->n_listen == LISTEN_MAX)
			argp_error(state, "--listen: given more than %u times", LISTEN_MAX);
		else
			a->listen[a->n_listen++] = arg;
		break;
	case 'v':
		a->volume = arg;
		break;
	case 's':
		a->secret = arg;
		break;
	case 'c':
		a->control = arg;
		break;
	case ARGP_KEY_END:
		check(state, a);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static enum move_fence ask(void *ctx, const struct fence_question *question)
{
	const struct arguments *a = ctx;
	struct fence_volumed f = { a->control, a->volume, question->own, question->peer, NULL };

	return question->fences ? fence_volumed_ops.fence(&f) : fence_volumed_ops.is_fenced(&f);
}

/* At most once per second: strangers shall not fill the log. */
static void say_refused(int rc)
{
	int64_t now = (int64_t)time(NULL), last = atomic_load(&server.said_s);

	if (now != last && atomic_compare_exchange_strong(&server.said_s, &last, now))
		fprintf(stderr, "ebb-fenced: a client was refused: %s\n", strerror(-rc));
}

static void *serve(void *ctx)
{
	int fd = (int)(intptr_t)ctx;
	struct fence_question question;
	enum move_fence answer;
	int rc = fence_desk_serve(&server.desk, fd, &question, &answer);

	close(fd);
	if (rc)
		say_refused(rc);
	else if (question.fences)
		fprintf(stderr, "ebb-fenced: volume %s: %s asks to fence %s: %s\n",
			server.args.volume, question.own, question.peer,
			fence_answer_name(answer));
	atomic_fetch_sub(&server.n_connections, 1);
	return NULL;
}

static void receive(int listen_fd)
{
	int fd = accept_or_pause(listen_fd, SOCK_CLOEXEC);
	pthread_attr_t detached;
	pthread_t thread;

	if (fd < 0)
		return;
	if (atomic_fetch_add(&server.n_connections, 1) < CONNECTIONS_MAX) {
		pthread_attr_init(&detached);
		pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
		if (!pthread_create(&thread, &detached, serve, (void *)(intptr_t)fd))
			return;
	}
	atomic_fetch_sub(&server.n_connections, 1);
	fence_desk_turn_away(fd);
	close(fd);
}

static const char *bare(const char *address)
{
	return strncmp(address, "tcp:", 4) ? address : address + 4;
}

/* Returns how many are open; the rest have failed. */
static uint32_t listen_all(const struct arguments *a, struct pollfd *ret_fds)
{
	for (uint32_t i = 0; i < a->n_listen; i++) {
		bool has_kind = !strncmp(a->listen[i], "tcp:", 4) ||
				!strncmp(a->listen[i], "unix:", 5);
		int fd = has_kind ? server_link_listen(bare(a->listen[i])) : -EINVAL;

		if (fd < 0) {
			fprintf(stderr, "ebb-fenced: --listen %s: %s\n", a->listen[i],
				strerror(-fd));
			return i;
		}
		ret_fds[i] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	return a->n_listen;
}

static int signals_open(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void run(struct pollfd *fds, uint32_t n)
{
	while (poll(fds, n + 1, -1) >= 0 || errno == EINTR) {
		if (fds[n].revents)
			return;
		for (uint32_t i = 0; i < n; i++) {
			if (fds[i].revents)
				receive(fds[i].fd);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Asks at ebb-volumed who is fenced, and fences, for nodes of one database "
		       "that are in guests.",
	};
	struct pollfd fds[LISTEN_MAX + 1];
	struct arguments *a = &server.args;
	uint32_t n;
	int rc;

	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, a);
	rc = secret_file_read(a->secret, &server.desk.secret);
	if (rc) {
		fprintf(stderr, "ebb-fenced: --secret %s: %s\n", a->secret,
			secret_file_strerror(rc));
		return EXIT_FAILURE;
	}
	server.desk.patience_ms = PATIENCE_MS;
	server.desk.ask = ask;
	server.desk.ctx = a;
	n = listen_all(a, fds);
	fds[n] = (struct pollfd){ .fd = signals_open(), .events = POLLIN };
	if (n == a->n_listen)
		run(fds, n);
	for (uint32_t i = 0; i < n; i++) {
		close(fds[i].fd);
		if (!strncmp(a->listen[i], "unix:", 5))
			unlink(a->listen[i] + 5);
	}
	return n == a->n_listen ? EXIT_SUCCESS : EXIT_FAILURE;
}
