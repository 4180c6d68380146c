/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests and answers over the control socket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "util/client.h"

/* Longer than the longest that ebbd works on a request: writing an SLA through libvirt. */
#define PATIENCE_SEC	20
#define MAX_ANSWER	(256u << 20)

/*
 * The error of a call that waited; the kernel says EAGAIN where the time was up. A call with a time
 * limit also ends, with EINTR, when the process is stopped and goes on: it is made again.
 */
static int waited_error(int rc)
{
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

static int connect_to(const char *path, unsigned patience_s)
{
	const struct timeval patience = { .tv_sec = patience_s ? patience_s : PATIENCE_SEC };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, rc;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (TEMP_FAILURE_RETRY(connect(fd, (struct sockaddr *)&addr, sizeof(addr))) < 0) {
		rc = -errno;
		close(fd);
		return waited_error(rc);
	}
	return fd;
}

static int send_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = TEMP_FAILURE_RETRY(send(fd, data, len, MSG_NOSIGNAL));

		if (n < 0)
			return waited_error(-errno);
		data += n;
		len -= n;
	}
	return 0;
}

/* One line; the caller frees. */
static int receive_line(int fd, char **ret, size_t *ret_len)
{
	size_t len = 0, size = 0;
	char *buf = NULL;

	for (;;) {
		ssize_t n;

		if (len == size) {
			char *more = size < MAX_ANSWER ? realloc(buf, size ? size * 2 : 65536)
						       : NULL;

			if (!more) {
				free(buf);
				return -EMSGSIZE;
			}
			buf = more;
			size = size ? size * 2 : 65536;
		}
		n = TEMP_FAILURE_RETRY(recv(fd, buf + len, size - len, 0));
		if (n <= 0) {
			int rc = n < 0 ? -errno : -ECONNRESET;

			free(buf);
			return waited_error(rc);
		}
		len += n;
		if (buf[len - 1] == '\n') {
			*ret = buf;
			*ret_len = len;
			return 0;
		}
	}
}

void client_close(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

json_t *client_ask(struct client *c, json_t *request, int *ret_errno)
{
	char *text = json_dumps(request, JSON_COMPACT), *line = NULL;
	json_t *answer = NULL;
	size_t len = 0;
	int rc = 0;

	json_decref(request);
	if (!text) {
		*ret_errno = ENOMEM;
		return NULL;
	}
	if (c->fd < 0)
		c->fd = connect_to(c->path, c->patience_s);
	if (c->fd < 0)
		rc = c->fd;
	/* The NUL at the end gives its place to the newline. */
	len = strlen(text);
	text[len] = '\n';
	if (rc == 0)
		rc = send_all(c->fd, text, len + 1);
	free(text);
	/* A server that has too many clients says so and closes before it is asked. */
	if (rc == 0 || rc == -EPIPE)
		rc = receive_line(c->fd, &line, &len);
	if (rc == 0)
		answer = json_loadb(line, len, 0, NULL);
	free(line);
	if (!answer) {
		client_close(c);
		*ret_errno = rc < 0 ? -rc : EPROTO;
	}
	return answer;
}
