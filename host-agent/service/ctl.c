/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control socket. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "service/ctl.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

/* Connections that are taken in a second; more wait. */
#define CONNECTS_PER_SEC	1000
/* Clients that may change nothing. */
#define MAX_LOOKERS		(EBB_CTL_MAX_CLIENTS - EBB_CTL_RESERVED)

struct client;

/* The handler sees its beginning only. */
struct open_request {
	struct ebb_ctl_request request;
	struct client *client;		/* NULL: it has gone */
};

struct client {
	struct ebb_ctl *ctl;
	struct client *next;
	uint64_t number;		/* unique */
	int fd;
	sd_event_source *source;
	bool may_change;
	bool has_ended;			/* the client sends nothing more */
	struct open_request *open;	/* waits for its answer */
	usec_t active_at;		/* when it connected, sent, read or was answered last */
	char in[EBB_CTL_MAX_LINE];
	size_t in_len;
	char *out;			/* of the last answer; NULL: all sent */
	size_t out_at, out_len;
};

struct ebb_ctl {
	sd_event *event;
	struct ebb_ctl_config cfg;
	struct sockaddr_un addr;
	int fd;
	sd_event_source *source;
	struct client *clients;
	unsigned int num_clients;
	unsigned int num_lookers;	/* of these, clients that may change nothing */
	uint64_t last_number;
};

static void client_close(struct client *c)
{
	struct client **at = &c->ctl->clients;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->ctl->num_clients--;
	c->ctl->num_lookers -= !c->may_change;
	if (c->open)
		c->open->client = NULL;
	sd_event_source_disable_unref(c->source);
	close(c->fd);
	free(c->out);
	free(c);
}

static void watch(struct client *c)
{
	uint32_t events = 0;

	if (c->out)
		events = EPOLLOUT;
	else if (!c->open)
		events = EPOLLIN;
	/* With nothing to wait for, epoll still tells when the peer has gone. */
	sd_event_source_set_io_events(c->source, events);
}

static void answer(struct ebb_ctl_request *request, json_t *o)
{
	struct open_request *r = (struct open_request *)request;
	struct client *c = r->client;

	if (c) {
		char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(16));
		size_t len = text ? strlen(text) : 0;

		c->open = NULL;
		c->active_at = ebb_clock_mono_usec();
		c->out_at = 0;
		/* The NUL at the end gives its place to the newline. */
		if (text)
			text[len] = '\n';
		c->out = text;
		c->out_len = len + 1;
		c->has_ended |= !text;
		watch(c);
	}
	json_decref(o);
	json_decref(request->body);
	free(r);
}

void ebb_ctl_reply(struct ebb_ctl_request *request, json_t *o)
{
	json_t *whole = json_object();

	json_object_set_new(whole, "ok", json_true());
	json_object_update(whole, o);
	json_decref(o);
	answer(request, whole);
}

void ebb_ctl_fail(struct ebb_ctl_request *request, const char *code, const char *hint,
		  const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ebb_text_clean(text);
	answer(request, json_pack("{s:b, s:{s:s, s:s, s:s}}", "ok", 0, "error", "code", code,
				  "message", text, "hint", hint ? hint : ""));
}

/* A client that died may not have been looked at yet. */
static bool has_gone(const struct client *c)
{
	struct pollfd p = { .fd = c->fd };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

bool ebb_ctl_is_connected(const struct ebb_ctl_request *request, uint64_t connection)
{
	const struct client *c = ((const struct open_request *)request)->client;

	for (c = c ? c->ctl->clients : NULL; c; c = c->next)
		if (c->number == connection)
			return !has_gone(c);
	return false;
}

static void handle_line(struct client *c, const char *line, size_t len)
{
	struct open_request *r = calloc(1, sizeof(*r));
	json_error_t error;
	json_t *cmd;

	if (!r) {
		c->has_ended = true;
		return;
	}
	r->client = c;
	r->request.may_change = c->may_change;
	r->request.connection = c->number;
	c->open = r;
	r->request.body = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
	if (!r->request.body) {
		ebb_ctl_fail(&r->request, "bad-request", "send one JSON object per line",
			     "the request is no JSON: %s", error.text);
		return;
	}
	cmd = json_object_get(r->request.body, "cmd");
	if (!json_is_string(cmd)) {
		ebb_ctl_fail(&r->request, "bad-request", "see docs/control-protocol.md",
			     "the request has no string \"cmd\"");
		return;
	}
	r->request.cmd = json_string_value(cmd);
	c->ctl->cfg.handle(c->ctl->cfg.ctx, &r->request);
}

/* Handle complete lines until one is not answered at once; false: close. */
static bool handle_input(struct client *c)
{
	while (!c->open && !c->out) {
		char *end = memchr(c->in, '\n', c->in_len);
		size_t len;

		if (!end) {
			if (c->in_len < sizeof(c->in))
				return !c->has_ended;
			ebb_log(LOG_NOTICE, "control_refused",
				EBB_KS("reason", "request too long"));
			return false;
		}
		len = end - c->in;
		handle_line(c, c->in, len);
		c->in_len -= len + 1;
		memmove(c->in, end + 1, c->in_len);
	}
	return true;
}

static bool send_output(struct client *c)
{
	while (c->out_at < c->out_len) {
		ssize_t n = send(c->fd, c->out + c->out_at, c->out_len - c->out_at,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		c->active_at = ebb_clock_mono_usec();
		c->out_at += n;
	}
	free(c->out);
	c->out = NULL;
	return true;
}

static bool receive(struct client *c)
{
	ssize_t n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->active_at = ebb_clock_mono_usec();
	c->in_len += n;
	c->has_ended |= n == 0;
	return true;
}

static int on_client(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct client *c = arg;
	bool is_good = true;

	(void)s;
	(void)fd;
	if (c->out)
		is_good = send_output(c);
	else if (c->open)
		is_good = !(revents & (EPOLLHUP | EPOLLERR));
	else
		is_good = receive(c);
	if (is_good)
		is_good = handle_input(c);
	if (!is_good)
		client_close(c);
	else
		watch(c);
	return 0;
}

/*
 * Closes the client that has been idle for longest, so that one more can be served.  Not one that
 * waits for its answer: how long that takes is not up to it.  False: none has been idle for
 * idle_usec.
 */
static bool drop_idle(struct ebb_ctl *ctl, bool only_lookers)
{
	struct client *idlest = NULL;

	for (struct client *c = ctl->clients; c; c = c->next)
		if (!c->open && !(only_lookers && c->may_change) &&
		    (!idlest || c->active_at < idlest->active_at))
			idlest = c;
	if (!idlest || ebb_clock_mono_usec() - idlest->active_at < ctl->cfg.idle_usec)
		return false;
	ebb_log(LOG_NOTICE, "control_dropped", EBB_KS("reason", "idle, and another connects"));
	client_close(idlest);
	return true;
}

/* False: there is none for one more client of the kind. */
static bool make_place(struct ebb_ctl *ctl, bool may_change)
{
	const bool is_full = ctl->num_clients == EBB_CTL_MAX_CLIENTS;

	if (!may_change && ctl->num_lookers == MAX_LOOKERS)
		return drop_idle(ctl, true);
	return !is_full || drop_idle(ctl, false);
}

static bool may_change(const struct ucred *peer)
{
	return peer->uid == 0 || peer->uid == geteuid();
}

/* Says why, and closes. The one line fits in the empty buffer of a new connection. */
static void turn_away(int fd, unsigned int most)
{
	char line[256];
	const int len = snprintf(line, sizeof(line),
				 "{\"ok\":false,\"error\":{\"code\":\"too-many-clients\","
				 "\"message\":\"all %u connections are in use\","
				 "\"hint\":\"try again, or end a client\"}}\n",
				 most);

	ebb_log(LOG_NOTICE, "control_refused", EBB_KS("reason", "too many clients"));
	/* A client that has gone already needs no answer. */
	(void)send(fd, line, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static int on_connect(sd_event_source *s, int listen_fd, uint32_t revents, void *arg)
{
	struct ebb_ctl *ctl = arg;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	socklen_t len = sizeof(struct ucred);
	struct ucred peer;
	struct client *c;

	(void)s;
	(void)revents;
	if (fd < 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
		ebb_log(LOG_NOTICE, "control_refused", EBB_KS("reason", strerror(errno)));
		close(fd);
		return 0;
	}
	if (!make_place(ctl, may_change(&peer))) {
		turn_away(fd, may_change(&peer) ? EBB_CTL_MAX_CLIENTS : MAX_LOOKERS);
		return 0;
	}
	c = calloc(1, sizeof(*c));
	if (!c || sd_event_add_io(ctl->event, &c->source, fd, EPOLLIN, on_client, c) < 0) {
		free(c);
		close(fd);
		return 0;
	}
	c->ctl = ctl;
	c->number = ++ctl->last_number;
	c->fd = fd;
	c->active_at = ebb_clock_mono_usec();
	c->may_change = may_change(&peer);
	c->next = ctl->clients;
	ctl->clients = c;
	ctl->num_clients++;
	ctl->num_lookers += !c->may_change;
	return 0;
}

static int open_socket(struct ebb_ctl *c, struct ebb_err *err)
{
	const char *path = c->cfg.path;
	int rc;

	c->addr.sun_family = AF_UNIX;
	if ((size_t)snprintf(c->addr.sun_path, sizeof(c->addr.sun_path), "%s", path) >=
	    sizeof(c->addr.sun_path))
		return ebb_err_set(err, -ENAMETOOLONG, "%s is too long for a unix socket", path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return ebb_err_set(err, -errno, "socket: %s", strerror(errno));
	/* Left by an instance that was killed; the lock of the run folder says that it is dead. */
	unlink(path);
	if (bind(c->fd, (struct sockaddr *)&c->addr, sizeof(c->addr)) < 0 ||
	    chmod(path, c->cfg.group == (gid_t)-1 ? 0600 : 0660) < 0 ||
	    chown(path, -1, c->cfg.group) < 0 || listen(c->fd, 16) < 0) {
		rc = -errno;
		return ebb_err_set(err, rc, "can not listen on %s: %s", path, strerror(-rc));
	}
	return 0;
}

int ebb_ctl_create(sd_event *event, const struct ebb_ctl_config *cfg, struct ebb_ctl **ret,
		   struct ebb_err *err)
{
	struct ebb_ctl *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->event = sd_event_ref(event);
	c->cfg = *cfg;
	c->fd = -1;
	rc = open_socket(c, err);
	c->cfg.path = c->addr.sun_path;
	if (rc == 0)
		rc = sd_event_add_io(event, &c->source, c->fd, EPOLLIN, on_connect, c);
	/*
	 * A connection that can not be accepted, since no file descriptor is free, stays readable:
	 * without a limit the loop would do nothing else.
	 */
	if (rc >= 0)
		rc = sd_event_source_set_ratelimit(c->source, 1000000, CONNECTS_PER_SEC);
	if (rc < 0) {
		ebb_ctl_destroy(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void ebb_ctl_destroy(struct ebb_ctl *c)
{
	if (!c)
		return;
	while (c->clients)
		client_close(c->clients);
	sd_event_source_disable_unref(c->source);
	if (c->fd >= 0) {
		close(c->fd);
		unlink(c->addr.sun_path);
	}
	sd_event_unref(c->event);
	free(c);
}
