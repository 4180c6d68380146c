/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli/resp.h"

#define PATIENCE_SEC	10
#define MAX_REPLY	65536

/*
 * The error of a call that waited; the kernel says EAGAIN where the time was up. A call with a time
 * limit also ends, with EINTR, when the process is stopped and goes on: it is made again.
 */
static int waited_error(void)
{
	return errno == EAGAIN || errno == EINPROGRESS ? -ETIMEDOUT : -errno;
}

static int connect_at(const struct sockaddr *at, socklen_t len)
{
	const struct timeval patience = { .tv_sec = PATIENCE_SEC };
	int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (TEMP_FAILURE_RETRY(connect(fd, at, len)) == 0)
		return fd;
	rc = waited_error();
	close(fd);
	return rc;
}

static int connect_unix(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (!*path || strlen(path) >= sizeof(at.sun_path))
		return -EINVAL;
	strcpy(at.sun_path, path);
	return connect_at((struct sockaddr *)&at, sizeof(at));
}

/* Cuts HOST:PORT, and the brackets of HOST. */
static int connect_tcp(char *text)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char *colon = strrchr(text, ':'), *host = text;
	struct addrinfo *found;
	int rc = -EINVAL;
	size_t len;

	if (!colon || !colon[1] || colon == text)
		return -EINVAL;
	*colon = '\0';
	len = strlen(host);
	if (*host == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		host++;
	}
	if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
		return -EINVAL;
	for (const struct addrinfo *at = found; at && rc < 0; at = at->ai_next)
		rc = connect_at(at->ai_addr, at->ai_addrlen);
	freeaddrinfo(found);
	return rc;
}

int resp_connect(struct resp *resp, const char *address)
{
	char *text;
	int rc;

	*resp = (struct resp){ .fd = -1 };
	if (strncmp(address, "unix:", 5) == 0) {
		rc = connect_unix(address + 5);
	} else {
		text = strdup(address);
		rc = text ? connect_tcp(text) : -ENOMEM;
		free(text);
	}
	if (rc < 0)
		return rc;
	resp->fd = rc;
	return 0;
}

void resp_close(struct resp *resp)
{
	if (resp->fd >= 0)
		close(resp->fd);
	free(resp->reply);
	*resp = (struct resp){ .fd = -1 };
}

static int put(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = TEMP_FAILURE_RETRY(send(fd, data, len, MSG_NOSIGNAL));

		if (n < 0)
			return waited_error();
		data += n;
		len -= n;
	}
	return 0;
}

static int get(int fd, char *data, size_t len)
{
	while (len) {
		ssize_t n = TEMP_FAILURE_RETRY(recv(fd, data, len, 0));

		if (n < 0)
			return waited_error();
		if (n == 0)
			return -ECONNRESET;
		data += n;
		len -= n;
	}
	return 0;
}

/* Up to CR LF, which is left out. */
static int get_line(int fd, char *ret, size_t size)
{
	size_t len = 0;
	int rc;

	while (len < size) {
		rc = get(fd, ret + len, 1);
		if (rc < 0)
			return rc;
		if (len > 0 && ret[len] == '\n' && ret[len - 1] == '\r') {
			ret[len - 1] = '\0';
			return 0;
		}
		len++;
	}
	return -EPROTO;
}

static int send_words(int fd, const char *const *words, size_t num)
{
	char head[32];
	int rc = put(fd, head, (size_t)snprintf(head, sizeof(head), "*%zu\r\n", num));

	for (size_t i = 0; rc == 0 && i < num; i++) {
		rc = put(fd, head, (size_t)snprintf(head, sizeof(head), "$%zu\r\n",
						    strlen(words[i])));
		if (rc == 0)
			rc = put(fd, words[i], strlen(words[i]));
		if (rc == 0)
			rc = put(fd, "\r\n", 2);
	}
	return rc;
}

/* The bytes of a bulk string, whose length is text. */
static int get_bulk(struct resp *resp, const char *text)
{
	char *end;
	unsigned long len = strtoul(text, &end, 10);
	int rc;

	if (end == text || *end || len > MAX_REPLY)
		return -EPROTO;
	resp->reply = malloc(len + 2);
	if (!resp->reply)
		return -ENOMEM;
	rc = get(resp->fd, resp->reply, len + 2);
	if (rc == 0)
		resp->reply[len] = '\0';
	return rc;
}

int resp_ask(struct resp *resp, const char *const *words, size_t num)
{
	char line[1024];
	int rc = send_words(resp->fd, words, num);

	free(resp->reply);
	resp->reply = NULL;
	/* A server that has too many clients says so and closes before it is asked. */
	if (rc == 0 || rc == -EPIPE)
		rc = get_line(resp->fd, line, sizeof(line));
	if (rc < 0)
		return rc;
	if (line[0] == '$')
		return get_bulk(resp, line + 1);
	if (line[0] != '+' && line[0] != '-')
		return -EPROTO;
	resp->reply = strdup(line + 1);
	return !resp->reply ? -ENOMEM : line[0] == '-';
}
