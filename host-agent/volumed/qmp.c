/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The client of QMP. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "util/clock.h"
#include "util/log.h"
#include "volumed/qmp.h"

#define MAX_ANSWER	(64u << 20)
#define STEP		65536

struct command {
	struct command *next;
	ebb_qmp_done done;
	void *ctx;
};

struct buffer {
	char *data;
	size_t len, size;
};

struct ebb_qmp {
	struct ebb_qmp_config cfg;
	sd_event_source *source;
	struct command *first, **last;	/* sent and not answered */
	struct buffer in, out;
	size_t searched;		/* bytes of `in` without a newline */
	uint64_t since;			/* last answer, or first command after it; monotonic */
	bool is_lost;
};

static bool reserve(struct buffer *b, size_t more)
{
	size_t size = b->size;
	char *data;

	if (b->size - b->len >= more)
		return true;
	while (size - b->len < more)
		size = size ? 2 * size : STEP;
	data = size <= MAX_ANSWER ? realloc(b->data, size) : NULL;
	if (!data)
		return false;
	b->data = data;
	b->size = size;
	return true;
}

static void consume(struct buffer *b, size_t len)
{
	b->len -= len;
	memmove(b->data, b->data + len, b->len);
}

static void lose(struct ebb_qmp *q)
{
	q->is_lost = true;
	sd_event_source_set_enabled(q->source, SD_EVENT_OFF);
	q->cfg.lost(q->cfg.ctx);
}

static void answer(struct ebb_qmp *q, const json_t *result, const char *error)
{
	struct command *c = q->first;

	if (!c)
		return;
	q->first = c->next;
	q->since = ebb_clock_mono_usec();
	if (!q->first)
		q->last = &q->first;
	if (c->done)
		c->done(c->ctx, result, error);
	else if (error)
		ebb_log(LOG_WARNING, "storage_daemon_refused", EBB_KS("error", error));
	free(c);
}

static void handle(struct ebb_qmp *q, const json_t *message)
{
	const json_t *result = json_object_get(message, "return");
	const json_t *error = json_object_get(message, "error");
	const char *event = json_string_value(json_object_get(message, "event")), *why;

	if (event) {
		if (q->cfg.event)
			q->cfg.event(q->cfg.ctx, event, json_object_get(message, "data"));
	} else if (result) {
		answer(q, result, NULL);
	} else if (error) {
		why = json_string_value(json_object_get(error, "desc"));
		answer(q, NULL, why ? why : "unknown error");
	}
	/* The only other message is the greeting, which needs no answer. */
}

/* False: it makes no sense. */
static bool handle_line(struct ebb_qmp *q, const char *line, size_t len)
{
	const bool is_answer = q->first;
	json_error_t error;
	json_t *message = json_loadb(line, len, 0, &error);

	if (message) {
		handle(q, message);
		json_decref(message);
		return true;
	}
	/* It may be a number that jansson can not hold: no reason to end the storage daemon. */
	ebb_log(LOG_ERR, "storage_daemon_unreadable", EBB_KS("error", error.text));
	answer(q, NULL, "the storage daemon's answer can not be read");
	return is_answer;
}

/* A long answer comes in many pieces: each is searched for its end once. */
static bool take_lines(struct ebb_qmp *q)
{
	struct buffer *b = &q->in;
	bool is_good = true;
	size_t begin = 0;
	char *end;

	while (is_good && (end = memchr(b->data + q->searched, '\n', b->len - q->searched))) {
		const size_t next = (size_t)(end - b->data) + 1;

		is_good = handle_line(q, b->data + begin, next - 1 - begin);
		begin = q->searched = next;
	}
	if (begin > 0)
		consume(b, begin);
	q->searched = b->len;
	return is_good;
}

static bool receive(struct ebb_qmp *q)
{
	ssize_t n;

	if (!reserve(&q->in, STEP))
		return false;
	n = recv(q->cfg.fd, q->in.data + q->in.len, q->in.size - q->in.len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	q->in.len += n;
	return take_lines(q);
}

static bool transmit(struct ebb_qmp *q)
{
	while (q->out.len) {
		ssize_t n = send(q->cfg.fd, q->out.data, q->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		consume(&q->out, n);
	}
	return true;
}

static void watch(struct ebb_qmp *q)
{
	sd_event_source_set_io_events(q->source, EPOLLIN | (q->out.len ? EPOLLOUT : 0));
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct ebb_qmp *q = arg;
	bool is_good = true;

	(void)s;
	(void)fd;
	if (revents & EPOLLOUT)
		is_good = transmit(q);
	if (is_good && revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
		is_good = receive(q);
	if (is_good)
		watch(q);
	else
		lose(q);
	return 0;
}

void ebb_qmp_send(struct ebb_qmp *q, const char *command, json_t *arguments, ebb_qmp_done done,
		  void *ctx)
{
	json_t *message = json_pack("{s:s}", "execute", command);
	struct command *c = calloc(1, sizeof(*c));
	char *text;
	size_t len;

	if (arguments)
		json_object_set_new(message, "arguments", arguments);
	text = json_dumps(message, JSON_COMPACT);
	json_decref(message);
	len = text ? strlen(text) : 0;
	if (!c || !text || q->is_lost || !reserve(&q->out, len + 1)) {
		free(text);
		free(c);
		if (done)
			done(ctx, NULL, q->is_lost ? "the storage daemon is gone" :
			     "out of memory");
		return;
	}
	c->done = done;
	c->ctx = ctx;
	if (!q->first)
		q->since = ebb_clock_mono_usec();
	*q->last = c;
	q->last = &c->next;
	memcpy(q->out.data + q->out.len, text, len);
	q->out.data[q->out.len + len] = '\n';
	q->out.len += len + 1;
	free(text);
	if (transmit(q))
		watch(q);
	else
		lose(q);
}

uint64_t ebb_qmp_silence(const struct ebb_qmp *q)
{
	return q->first ? ebb_clock_mono_usec() - q->since : 0;
}

int ebb_qmp_create(sd_event *event, const struct ebb_qmp_config *cfg, struct ebb_qmp **ret)
{
	struct ebb_qmp *q = calloc(1, sizeof(*q));
	int rc;

	if (!q) {
		close(cfg->fd);
		return -ENOMEM;
	}
	q->cfg = *cfg;
	q->last = &q->first;
	rc = sd_event_add_io(event, &q->source, cfg->fd, EPOLLIN, on_io, q);
	if (rc < 0) {
		ebb_qmp_destroy(q);
		return rc;
	}
	*ret = q;
	return 0;
}

void ebb_qmp_destroy(struct ebb_qmp *q)
{
	if (!q)
		return;
	q->is_lost = true;
	while (q->first)
		answer(q, NULL, "the storage daemon is gone");
	sd_event_source_disable_unref(q->source);
	close(q->cfg.fd);
	free(q->in.data);
	free(q->out.data);
	free(q);
}
