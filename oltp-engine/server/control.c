// SPDX-License-Identifier: GPL-2.0-or-later
/* The server's control channel: see control.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"
#include "oltp-engine/bench/accept.h"

#define CLIENTS_MAX	4u
#define LINE_MAX_BYTES	128u
#define RATE_MAX	1e9

struct client {
	struct control *control;
	int fd;			/* -1: free */
	bool has_answers;
	size_t used;
	char line[LINE_MAX_BYTES];
};

struct control {
	struct session *session;
	int listen_fd;		/* -1: standard input only */
	struct sockaddr_un address;
	struct client clients[CLIENTS_MAX];
};

static void client_close(struct client *client)
{
	session_unwatch(client->control->session, client->fd);
	if (client->has_answers)
		close(client->fd);
	client->fd = -1;
}

/* A client that does not read its answers loses them. */
static void answer(const struct client *client, const char *text)
{
	if (client->has_answers && send(client->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return;
}

/* Returns the answer. */
static const char *set_rate(struct session *session, const char *text)
{
	char *end;
	double rate = strtod(text, &end);

	/* Negated: not a number is no rate either. */
	if (end == text || *end || !(rate >= 0 && rate <= RATE_MAX))
		return "error: a rate is 0 to 1e9 transactions per second\n";
	switch (session_set_rate(session, rate)) {
	case 0:
		return "ok\n";
	case -EBUSY:
		return "error: --rate-schedule sets the rate\n";
	default:
		return "error: the rate cannot be set\n";
	}
}

/* Returns the answer. */
static const char *begin_audit(struct session *session)
{
	switch (session_audit(session)) {
	case 0:
		return "ok\n";
	case -EBUSY:
		return "error: one is going on\n";
	case -EOPNOTSUPP:
		return "error: this workload cannot be looked over while it runs\n";
	default:
		return "error: there is no thread for it\n";
	}
}

static bool obey(const struct client *client, const char *line)
{
	if (!strcmp(line, "stop")) {
		answer(client, "ok\n");
		return true;
	}
	if (!strcmp(line, "audit")) {
		answer(client, begin_audit(client->control->session));
		return false;
	}
	if (!strncmp(line, "rate ", 5)) {
		answer(client, set_rate(client->control->session, line + 5));
		return false;
	}
	answer(client, "error: unknown command; there are: stop, audit, rate R\n");
	return false;
}

/* Obeys every whole line in the buffer; the rest moves to its start. True: to stop. */
static bool take_lines(struct client *client)
{
	char *start = client->line, *end;
	bool stop = false;

	while ((end = memchr(start, '\n', client->used))) {
		*end = '\0';
		stop |= obey(client, start);
		client->used -= (size_t)(end + 1 - start);
		start = end + 1;
	}
	memmove(client->line, start, client->used);
	return stop;
}

static bool client_readable(void *ctx, int fd)
{
	struct client *client = ctx;
	ssize_t n = read(fd, client->line + client->used, LINE_MAX_BYTES - client->used);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		client_close(client);
		return false;
	}
	client->used += (size_t)n;
	if (take_lines(client))
		return true;
	if (client->used == LINE_MAX_BYTES) {
		answer(client, "error: line too long\n");
		client_close(client);
	}
	return false;
}

static int client_open(struct control *control, int fd, bool has_answers)
{
	for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &control->clients[i];

		if (client->fd >= 0)
			continue;
		*client = (struct client){ .control = control, .fd = fd,
					   .has_answers = has_answers };
		if (!session_watch(control->session, fd, client_readable, client))
			return 0;
		client->fd = -1;
		break;
	}
	return -ENOSPC;
}

static bool listener_readable(void *ctx, int listen_fd)
{
	int fd = accept_or_pause(listen_fd, SOCK_CLOEXEC | SOCK_NONBLOCK);

	/* A client too many, or one that has gone again, is not worth a message. */
	if (fd >= 0 && client_open(ctx, fd, true))
		close(fd);
	return false;
}

/* Was the socket left by a program that has ended? Such a socket refuses connections. */
static bool is_stale(const struct sockaddr_un *address)
{
	struct stat st;
	bool stale;
	int fd;

	/* Connecting to an ordinary file is refused as well, but that is not ours to remove. */
	if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	stale = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
		errno == ECONNREFUSED;
	close(fd);
	return stale;
}

static int bind_private(int fd, const struct sockaddr_un *address)
{
	mode_t mask = umask(0177);
	int rc = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

	umask(mask);
	return rc;
}

static int listener_open(struct control *control, const char *path)
{
	struct sockaddr_un *address = &control->address;
	int rc;

	address->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	strcpy(address->sun_path, path);
	control->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (control->listen_fd < 0)
		return -errno;
	rc = bind_private(control->listen_fd, address);
	if (rc == -EADDRINUSE && is_stale(address)) {
		unlink(path);
		rc = bind_private(control->listen_fd, address);
	}
	if (rc)
		goto out_close;
	if (listen(control->listen_fd, CLIENTS_MAX) < 0)
		rc = -errno;
	if (!rc)
		rc = session_watch(control->session, control->listen_fd, listener_readable,
				   control);
	if (!rc)
		return 0;
	unlink(path);
out_close:
	close(control->listen_fd);
	control->listen_fd = -1;
	return rc;
}

int control_open(const char *path, struct session *session, struct control **ret_control)
{
	struct control *control = calloc(1, sizeof(*control));
	int rc;

	if (!control)
		return -ENOMEM;
	control->session = session;
	control->listen_fd = -1;
	for (uint32_t i = 0; i < CLIENTS_MAX; i++)
		control->clients[i].fd = -1;
	if (!strcmp(path, "-"))
		rc = client_open(control, STDIN_FILENO, false);
	else
		rc = listener_open(control, path);
	if (rc) {
		free(control);
		return rc;
	}
	*ret_control = control;
	return 0;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
		if (control->clients[i].fd >= 0)
			client_close(&control->clients[i]);
	}
	if (control->listen_fd >= 0) {
		session_unwatch(control->session, control->listen_fd);
		close(control->listen_fd);
		unlink(control->address.sun_path);
	}
	free(control);
}
