/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See http.h.  HTTP itself is libmicrohttpd's; time limits and their clock are ours. */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "daemon/http.h"
#include "util/clock.h"
#include "util/log.h"

#define TYPE_METRICS	"application/openmetrics-text; version=1.0.0; charset=utf-8"
#define TYPE_TEXT	"text/plain; charset=utf-8"
/* For the head of a request, and what is sent of the head of an answer. */
#define CLIENT_BYTES	8192
#define BACKLOG		64

struct client {
	struct ebb_http *http;
	struct client *prev, *next;	/* by age, the oldest first */
	int fd;
	uint64_t end_usec;
	bool is_cut;			/* its time is over; libmicrohttpd will find that out */
};

struct ebb_http {
	struct ebb_http_config cfg;
	struct MHD_Daemon *mhd;
	sd_event_source *io, *timer;
	struct client *first, *last;
	unsigned int num_clients;
	uint16_t port;
	struct MHD_Response *metrics;	/* NULL: not made yet, or too old */
	uint64_t metrics_usec;
};

/* ---- address ---- */

static int bad_address(const char *text, struct ebb_err *err)
{
	return ebb_err_set(err, -EINVAL,
			   "\"%.64s\" is no address with a port, such as 127.0.0.1:9750 or "
			   "[::1]:9750", text);
}

static int read_port(const char *text, uint16_t *ret)
{
	char *end;
	unsigned long n;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *end || n > UINT16_MAX)
		return -EINVAL;
	*ret = n;
	return 0;
}

int ebb_http_address(const char *text, struct sockaddr_storage *ret, struct ebb_err *err)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	const char *colon = strrchr(text, ':');
	bool is_v6 = text[0] == '[';
	char host[INET6_ADDRSTRLEN];
	size_t len;
	uint16_t port;

	memset(ret, 0, sizeof(*ret));
	if (!colon || read_port(colon + 1, &port) < 0)
		return bad_address(text, err);
	len = colon - text;
	if (is_v6 && (len < 2 || colon[-1] != ']'))
		return bad_address(text, err);
	if (is_v6) {
		text++;
		len -= 2;
	}
	if (len >= sizeof(host))
		return bad_address(text - is_v6, err);
	memcpy(host, text, len);
	host[len] = '\0';
	if (is_v6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	}
	if (inet_pton(ret->ss_family, host, is_v6 ? (void *)&in6->sin6_addr : &in->sin_addr) != 1)
		return bad_address(text - is_v6, err);
	return 0;
}

static socklen_t address_len(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static int open_socket(struct ebb_http *h, struct ebb_err *err)
{
	const int fd = socket(h->cfg.addr.ss_family,
			      SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	const int yes = 1;
	int rc;

	if (fd < 0)
		return ebb_err_set(err, -errno, "socket: %s", strerror(errno));
	/* Connections of an ebbd that has just ended do not keep the next one from listening. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    bind(fd, (struct sockaddr *)&h->cfg.addr, address_len(&h->cfg.addr)) < 0 ||
	    listen(fd, BACKLOG) < 0 || getsockname(fd, (struct sockaddr *)&bound, &len) < 0) {
		rc = -errno;
		close(fd);
		return ebb_err_set(err, rc, "can not listen for HTTP: %s", strerror(-rc));
	}
	h->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port :
			((struct sockaddr_in *)&bound)->sin_port);
	return fd;
}

/* ---- answers ---- */

static struct MHD_Response *make_response(char *text, enum MHD_ResponseMemoryMode mode,
					  const char *type)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), text, mode);

	if (!r) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return NULL;
	}
	if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_NO ||
	    MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_NO) {
		MHD_destroy_response(r);
		return NULL;
	}
	return r;
}

static enum MHD_Result refuse(struct MHD_Connection *conn, unsigned int status, const char *text)
{
	struct MHD_Response *r = make_response((char *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT,
					       TYPE_TEXT);
	enum MHD_Result result = MHD_NO;

	if (!r)
		return MHD_NO;
	if (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
	    MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES)
		result = MHD_queue_response(conn, status, r);
	MHD_destroy_response(r);
	return result;
}

/* Requests that come within fresh_usec get the same text: writing one takes time and memory. */
static struct MHD_Response *metrics_now(struct ebb_http *h)
{
	uint64_t now = ebb_clock_mono_usec();
	char *text;

	if (h->metrics && now - h->metrics_usec < h->cfg.fresh_usec)
		return h->metrics;
	if (h->metrics)
		MHD_destroy_response(h->metrics);
	text = h->cfg.text(h->cfg.ctx);
	h->metrics = text ? make_response(text, MHD_RESPMEM_MUST_FREE, TYPE_METRICS) : NULL;
	h->metrics_usec = now;
	return h->metrics;
}

/* Once the head of a request is there; of what may follow it nothing is read. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *conn, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_len, void **request)
{
	struct MHD_Response *r;

	(void)version;
	(void)body;
	(void)body_len;
	(void)request;
	if (strcmp(url, "/metrics") != 0)
		return refuse(conn, MHD_HTTP_NOT_FOUND, "There is only /metrics.\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(conn, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
	r = metrics_now(arg);
	if (!r)
		return refuse(conn, MHD_HTTP_SERVICE_UNAVAILABLE, "Out of memory.\n");
	return MHD_queue_response(conn, MHD_HTTP_OK, r);
}

/* ---- connections and time ---- */

static void add_client(struct ebb_http *h, struct MHD_Connection *conn, void **slot)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct client *c = calloc(1, sizeof(*c));

	*slot = c;
	if (!c || !info) {
		/* It is closed at once, since there would be nothing to end it. */
		if (info)
			shutdown(info->connect_fd, SHUT_RDWR);
		free(c);
		*slot = NULL;
		return;
	}
	c->http = h;
	c->fd = info->connect_fd;
	c->end_usec = ebb_clock_mono_usec() + h->cfg.life_usec;
	c->prev = h->last;
	*(h->last ? &h->last->next : &h->first) = c;
	h->last = c;
	h->num_clients++;
}

static void remove_client(struct client *c)
{
	struct ebb_http *h = c->http;

	*(c->prev ? &c->prev->next : &h->first) = c->next;
	*(c->next ? &c->next->prev : &h->last) = c->prev;
	h->num_clients--;
	free(c);
}

static void on_connection(void *arg, struct MHD_Connection *conn, void **slot,
			  enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		add_client(arg, conn, slot);
	else if (*slot)
		remove_client(*slot);
}

/*
 * A bound on the whole life, unlike one on idle time, also ends clients that send or take a byte
 * now and then.
 */
static void cut_old(struct ebb_http *h, uint64_t now)
{
	for (struct client *c = h->first; c && c->end_usec <= now; c = c->next) {
		if (!c->is_cut)
			shutdown(c->fd, SHUT_RDWR);
		c->is_cut = true;
	}
}

static uint64_t next_end(const struct ebb_http *h)
{
	const struct client *c = h->first;

	while (c && c->is_cut)
		c = c->next;
	return c ? c->end_usec : UINT64_MAX;
}

/* One round: libmicrohttpd does with each connection what can be done without waiting. */
static int run(struct ebb_http *h)
{
	uint64_t now = ebb_clock_mono_usec(), next;
	unsigned int num_before = h->num_clients;
	MHD_UNSIGNED_LONG_LONG wait_ms;

	cut_old(h, now);
	MHD_run(h->mhd);
	/* When a client has left, libmicrohttpd accepts a waiting one only in the next round. */
	next = h->num_clients < num_before ? now : next_end(h);
	if (MHD_get_timeout(h->mhd, &wait_ms) == MHD_YES && now + wait_ms * 1000 < next)
		next = now + wait_ms * 1000;
	if (next == UINT64_MAX)
		return sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
	sd_event_source_set_time(h->timer, next);
	return sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT);
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	(void)s;
	(void)fd;
	(void)revents;
	run(arg);
	return 0;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	(void)s;
	(void)usec;
	run(arg);
	return 0;
}

/* ---- start and end ---- */

static int start_mhd(struct ebb_http *h, int fd, struct ebb_err *err)
{
	h->mhd = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL,
				  on_request, h,
				  MHD_OPTION_LISTEN_SOCKET, fd,
				  MHD_OPTION_CONNECTION_LIMIT, EBB_HTTP_MAX_CLIENTS,
				  MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CLIENT_BYTES,
				  MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
				  MHD_OPTION_END);
	return h->mhd ? 0 : ebb_err_set(err, -EIO, "libmicrohttpd can not be started");
}

static int watch(struct ebb_http *h, sd_event *event)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	int rc;

	if (!info)
		return -EIO;
	rc = sd_event_add_io(event, &h->io, info->epoll_fd, EPOLLIN, on_io, h);
	if (rc >= 0)
		rc = sd_event_source_set_priority(h->io, SD_EVENT_PRIORITY_IDLE);
	if (rc >= 0)
		rc = sd_event_add_time(event, &h->timer, CLOCK_MONOTONIC, 0, 1, on_timer, h);
	if (rc >= 0)
		rc = sd_event_source_set_priority(h->timer, SD_EVENT_PRIORITY_IDLE);
	return rc < 0 ? rc : sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
}

int ebb_http_create(sd_event *event, const struct ebb_http_config *cfg, struct ebb_http **ret,
		    struct ebb_err *err)
{
	struct ebb_http *h = calloc(1, sizeof(*h));
	int fd, rc;

	if (!h)
		return -ENOMEM;
	h->cfg = *cfg;
	fd = open_socket(h, err);
	rc = fd < 0 ? fd : start_mhd(h, fd, err);
	/* From its start on, it is libmicrohttpd that closes it. */
	if (fd >= 0 && !h->mhd)
		close(fd);
	if (rc == 0)
		rc = watch(h, event);
	if (rc < 0) {
		ebb_http_destroy(h);
		return rc;
	}
	*ret = h;
	return 0;
}

void ebb_http_destroy(struct ebb_http *h)
{
	if (!h)
		return;
	sd_event_source_disable_unref(h->io);
	sd_event_source_disable_unref(h->timer);
	if (h->mhd)
		MHD_stop_daemon(h->mhd);
	if (h->metrics)
		MHD_destroy_response(h->metrics);
	free(h);
}

uint16_t ebb_http_port(const struct ebb_http *h)
{
	return h->port;
}

unsigned int ebb_http_num_clients(const struct ebb_http *h)
{
	return h->num_clients;
}
