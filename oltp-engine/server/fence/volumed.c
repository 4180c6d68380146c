// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/fence/volumed.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS	1000
#define ANSWER_MAX	65536u	/* two attachments are some hundred bytes */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || !connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

/* The answer up to its newline; 0: none came in time. */
static size_t receive_line(int fd, char *line)
{
	int64_t until = now_ms() + PATIENCE_MS;
	size_t n = 0;

	while (n < ANSWER_MAX) {
		struct pollfd at = { .fd = fd, .events = POLLIN };
		int64_t left = until - now_ms();
		ssize_t got;

		if (left <= 0 || poll(&at, 1, (int)left) <= 0)
			return 0;
		got = recv(fd, line + n, ANSWER_MAX - n, 0);
		if (got <= 0)
			return 0;
		n += (size_t)got;
		if (line[n - 1] == '\n')
			return n;
	}
	return 0;
}

/* Takes the request. NULL: no answer. */
static json_t *ask(const struct fence_volumed *f, json_t *request)
{
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	char *line = malloc(ANSWER_MAX);
	json_t *answer = NULL;
	int fd = connect_to(f->socket);
	size_t n = 0;

	json_decref(request);
	if (text && line && fd >= 0) {
		size_t length = strlen(text);

		/* The NUL at the end gives its place to the newline. A request fits in a socket. */
		text[length++] = '\n';
		if (send(fd, text, length, MSG_NOSIGNAL) == (ssize_t)length)
			n = receive_line(fd, line);
	}
	if (n)
		answer = json_loadb(line, n, 0, NULL);
	if (fd >= 0)
		close(fd);
	free(line);
	free(text);
	return answer;
}

static bool is_ok(const json_t *answer)
{
	return json_is_true(json_object_get(answer, "ok"));
}

/* The state of an attachment; "": the volume has none of that name. */
static const char *state_of(const json_t *answer, const char *name)
{
	const json_t *list = json_object_get(json_object_get(answer, "access"), "attachments");
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one) {
		const char *is = json_string_value(json_object_get(one, "name"));
		const char *state = json_string_value(json_object_get(one, "state"));

		if (is && state && !strcmp(is, name))
			return state;
	}
	return "";
}

static bool is_shut(const char *state)
{
	return !*state || !strcmp(state, "fencing") || !strcmp(state, "fenced") ||
	       !strcmp(state, "detaching");
}

/* Which node is fenced, by the server's answer. A node that is shut can write nothing more. */
static enum move_fence judge(const struct fence_volumed *f, const json_t *answer)
{
	const char *peer = state_of(answer, f->peer);

	if (!is_ok(answer) ||
	    !json_is_array(json_object_get(json_object_get(answer, "access"), "attachments")))
		return MOVE_FENCE_LATER;
	if (is_shut(state_of(answer, f->own)))
		return MOVE_FENCE_LOST;
	if (!strcmp(peer, "fenced"))
		return MOVE_FENCE_WON;
	/* Requests of the peer may not have ended. */
	return strcmp(peer, "fencing") ? MOVE_FENCE_NONE : MOVE_FENCE_LATER;
}

static json_t *ask_attachments(const struct fence_volumed *f)
{
	return ask(f, json_pack("{s:s, s:s}", "cmd", "attachments", "volume", f->volume));
}

static enum move_fence is_fenced(void *ctx)
{
	const struct fence_volumed *f = ctx;
	json_t *answer = ask_attachments(f);
	enum move_fence rc = judge(f, answer);

	json_decref(answer);
	return rc;
}

/*
 * Only if nobody has changed anything since the generation was read. Also what is fenced, or being
 * fenced, is fenced again: the answer comes when it counts.
 */
static enum move_fence fence(void *ctx)
{
	const struct fence_volumed *f = ctx;
	json_t *answer = ask_attachments(f);
	json_t *generation = json_object_get(json_object_get(answer, "access"), "generation");
	enum move_fence rc = json_is_integer(generation) ? judge(f, answer) : MOVE_FENCE_LATER;
	bool is_being_fenced = !strcmp(state_of(answer, f->peer), "fencing");
	const char *code;

	if (rc == MOVE_FENCE_NONE || (rc == MOVE_FENCE_LATER && is_being_fenced)) {
		json_t *request = json_pack("{s:s, s:s, s:s, s:s, s:O}", "cmd", "fence", "volume",
					    f->volume, "attachment", f->peer, "by", f->own,
					    "generation", generation);

		json_decref(answer);
		answer = ask(f, request);
		code = json_string_value(json_object_get(json_object_get(answer, "error"), "code"));
		rc = judge(f, answer);
		if (code && !strcmp(code, "fenced"))
			rc = MOVE_FENCE_LOST;
		else if (rc == MOVE_FENCE_NONE)
			rc = MOVE_FENCE_LATER;
	}
	json_decref(answer);
	return rc;
}

static const struct oltp_config *peer_config(void *ctx)
{
	return ((struct fence_volumed *)ctx)->peer_config;
}

const struct move_fence_ops fence_volumed_ops = { is_fenced, fence, peer_config };
