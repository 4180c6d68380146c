/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See volume-conn.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "backend/volumes/volume-conn.h"
#include "util/clock.h"
#include "util/log.h"

#define STEP	65536u

struct request {
	struct request *next;
	char *line;
	ebb_volume_answered *answered;
	uint64_t tag;
};

struct buffer {
	char *data;
	size_t len, size;
	size_t searched;		/* bytes without a newline */
};

struct ebb_volume_conn {
	sd_event *event;
	struct ebb_volume_conn_config cfg;
	struct sockaddr_un addr;
	int fd;				/* -1: not connected */
	unsigned int attempts;		/* in a row that led to nothing */
	struct request *first, **last;	/* the first one is at the peer, the others wait */
	size_t num_sent;		/* bytes of the first one's line */
	usec_t sent_at;			/* when the first one's turn came */
	struct buffer in;
	sd_event_source *io;
	sd_event_source *soon;		/* there are new requests */
	sd_event_source *timer;		/* to connect, or the patience with the first request */
};

static void arm(struct ebb_volume_conn *c, usec_t wait)
{
	sd_event_source_set_time_relative(c->timer, wait);
	sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

/* ---- requests ------------------------------------------------------------------ */

static void request_free(struct request *r)
{
	free(r->line);
	free(r);
}

/* Takes the first request off the queue; the next one's turn begins. */
static struct request *take_first(struct ebb_volume_conn *c)
{
	struct request *r = c->first;

	c->first = r->next;
	if (!c->first)
		c->last = &c->first;
	c->num_sent = 0;
	c->sent_at = ebb_clock_mono_usec();
	return r;
}

static bool end_first(struct ebb_volume_conn *c, const json_t *answer, const char *why)
{
	struct request *r = take_first(c);
	const bool is_good = r->answered(c->cfg.ctx, r->tag, answer, why);

	request_free(r);
	return is_good;
}

void ebb_volume_conn_send(struct ebb_volume_conn *c, char *line, ebb_volume_answered *answered,
			  uint64_t tag)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r || !line) {
		ebb_log(LOG_CRIT, "out_of_memory", EBB_KS("for", "the volume server"));
		free(r);
		free(line);
		sd_event_exit(c->event, -ENOMEM);
		return;
	}
	*r = (struct request){ .line = line, .answered = answered, .tag = tag };
	if (!c->first)
		c->sent_at = ebb_clock_mono_usec();
	*c->last = r;
	c->last = &r->next;
	sd_event_source_set_enabled(c->soon, SD_EVENT_ONESHOT);
}

/* ---- the connection -------------------------------------------------------------- */

static void hang_up(struct ebb_volume_conn *c)
{
	c->io = sd_event_source_disable_unref(c->io);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->in.len = c->in.searched = 0;
}

static void lose(struct ebb_volume_conn *c, const char *why)
{
	usec_t wait = c->cfg.retry_usec[0];

	hang_up(c);
	for (unsigned int i = 0; i < c->attempts && wait < c->cfg.retry_usec[1]; i++)
		wait *= 2;
	c->attempts++;
	arm(c, wait < c->cfg.retry_usec[1] ? wait : c->cfg.retry_usec[1]);
	c->cfg.lost(c->cfg.ctx, why);
	while (c->first)
		end_first(c, NULL, why);
}

static bool handle(struct ebb_volume_conn *c, const char *line, size_t len)
{
	json_t *message = json_loadb(line, len, 0, NULL);
	/* Nobody has asked: no answer either. */
	const bool is_good = message && c->first && end_first(c, message, NULL);

	json_decref(message);
	return is_good;
}

/* Returns why the connection is to be closed, or NULL. */
static const char *take_lines(struct ebb_volume_conn *c)
{
	struct buffer *b = &c->in;
	size_t begin = 0;
	char *end;

	while ((end = memchr(b->data + b->searched, '\n', b->len - b->searched))) {
		const size_t next = (size_t)(end - b->data) + 1;

		if (!handle(c, b->data + begin, next - 1 - begin))
			return EBB_VOLUME_NO_SERVER;
		begin = b->searched = next;
	}
	b->len -= begin;
	memmove(b->data, b->data + begin, b->len);
	b->searched = b->len;
	return NULL;
}

static const char *receive(struct ebb_volume_conn *c)
{
	struct buffer *b = &c->in;
	ssize_t n;

	if (b->len >= EBB_VOLUME_MAX_ANSWER)
		return "an answer of the volume server is too long";
	if (b->size - b->len < STEP) {
		const size_t size = 2 * b->size + STEP;
		char *data = realloc(b->data, size);

		if (!data)
			return strerror(ENOMEM);
		b->data = data;
		b->size = size;
	}
	n = recv(c->fd, b->data + b->len, b->size - b->len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? NULL : strerror(errno);
	if (n == 0)
		return "the volume server has closed the connection";
	b->len += (size_t)n;
	return take_lines(c);
}

static const char *transmit(struct ebb_volume_conn *c)
{
	const size_t len = c->first ? strlen(c->first->line) : 0;

	while (c->num_sent < len) {
		const ssize_t n = send(c->fd, c->first->line + c->num_sent, len - c->num_sent,
				       MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return strerror(errno);
		if (n < 0)
			break;
		c->num_sent += (size_t)n;
	}
	sd_event_source_set_io_events(c->io, EPOLLIN | (c->num_sent < len ? EPOLLOUT : 0));
	return NULL;
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct ebb_volume_conn *c = arg;
	const char *why = NULL;

	(void)s;
	(void)fd;
	if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
		why = receive(c);
	if (!why)
		why = transmit(c);
	if (why)
		lose(c, why);
	return 0;
}

static void dial(struct ebb_volume_conn *c)
{
	char why[EBB_TEXT_SIZE];

	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* A unix socket connects at once or not at all. */
	if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&c->addr, sizeof(c->addr)) < 0 ||
	    sd_event_add_io(c->event, &c->io, c->fd, EPOLLIN, on_io, c) < 0) {
		snprintf(why, sizeof(why), "%.100s: %s", c->addr.sun_path, strerror(errno));
		lose(c, why);
		return;
	}
	arm(c, c->cfg.patience_usec);
	c->cfg.connected(c->cfg.ctx);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct ebb_volume_conn *c = arg;
	const usec_t now = ebb_clock_mono_usec();

	(void)s;
	(void)usec;
	if (c->fd < 0)
		dial(c);
	else if (!c->first)
		arm(c, c->cfg.patience_usec);
	else if (now < c->sent_at + c->cfg.patience_usec)
		arm(c, c->sent_at + c->cfg.patience_usec - now);
	else
		lose(c, "the volume server does not answer");
	return 0;
}

/* Not within ebb_volume_conn_send(), whose caller may not be ready for the end of its request. */
static int on_soon(sd_event_source *s, void *arg)
{
	struct ebb_volume_conn *c = arg;
	const char *why;

	(void)s;
	while (c->fd < 0 && c->first)
		end_first(c, NULL, "the volume server is not connected");
	why = c->fd >= 0 ? transmit(c) : NULL;
	if (why)
		lose(c, why);
	return 0;
}

/* ---- life -------------------------------------------------------------------------- */

void ebb_volume_conn_good(struct ebb_volume_conn *c)
{
	c->attempts = 0;
}

int ebb_volume_conn_create(sd_event *event, const struct ebb_volume_conn_config *cfg,
			   struct ebb_volume_conn **ret)
{
	struct ebb_volume_conn *c;
	int rc;

	if (strlen(cfg->path) >= sizeof(c->addr.sun_path))
		return -ENAMETOOLONG;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->event = sd_event_ref(event);
	c->cfg = *cfg;
	c->fd = -1;
	c->last = &c->first;
	c->addr.sun_family = AF_UNIX;
	strcpy(c->addr.sun_path, cfg->path);
	c->cfg.path = c->addr.sun_path;
	rc = sd_event_add_time_relative(event, &c->timer, CLOCK_MONOTONIC, 0, 1, on_timer, c);
	if (rc >= 0)
		rc = sd_event_add_defer(event, &c->soon, on_soon, c);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(c->soon, SD_EVENT_OFF);
	if (rc < 0) {
		ebb_volume_conn_destroy(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void ebb_volume_conn_destroy(struct ebb_volume_conn *c)
{
	if (!c)
		return;
	hang_up(c);
	while (c->first)
		request_free(take_first(c));
	sd_event_source_disable_unref(c->timer);
	sd_event_source_disable_unref(c->soon);
	sd_event_unref(c->event);
	free(c->in.data);
	free(c);
}
