/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listening sockets and connections of the links. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "backend/real/link.h"
#include "backend/real/linkproto.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"
#include "util/uuid.h"

/* A device that reads is never this far behind: it is hundreds of messages. */
#define QUEUE_BYTES		(128u << 10)
/* Read from one link at a time, so that none starves the others. */
#define READ_BYTES		(16u << 10)
/* After a violation the peer waits this long, so that it can not flood the log. */
#define PENALTY_USEC		EBB_USEC_PER_SEC
/* Connections of other processes in a second, after which nobody may connect for PENALTY_USEC. */
#define MAX_STRANGERS		100

struct link {
	struct ebb_links *links;
	struct link *next;
	uint8_t uuid[16];
	char name[EBB_NAME_SIZE];
	char last_error[EBB_TEXT_SIZE];
	struct sockaddr_un addr;
	int listen_fd, fd;		/* -1: none */
	sd_event_source *listen_source, *source, *penalty;
	usec_t strangers_since;		/* beginning of the second that num_strangers is about */
	unsigned int num_strangers;
	struct ebb_linkproto_parser parser;
	bool is_enabled;		/* connections are taken */
	bool is_punished;		/* not before the penalty is over */
	bool has_hello;			/* this connection's HELLO was reported */
	bool close_when_sent;		/* nothing more is read or queued */
	char close_reason[64];		/* "" or why to close without sending */
	uint8_t *queue;			/* QUEUE_BYTES while connected */
	size_t queue_at, queue_end;	/* unsent bytes are between */
};

struct ebb_links {
	sd_event *event;
	struct ebb_links_config cfg;
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct link *list;
};

static struct link *find(struct ebb_links *l, const uint8_t uuid[16])
{
	for (struct link *k = l->list; k; k = k->next)
		if (memcmp(k->uuid, uuid, 16) == 0)
			return k;
	return NULL;
}

static void report(struct link *k, struct ebb_fact *fact)
{
	memcpy(fact->uuid, k->uuid, 16);
	k->links->cfg.sink.report(k->links->cfg.sink.ctx, ebb_clock_mono_usec(), fact);
}

static void disconnect(struct link *k)
{
	if (k->fd < 0)
		return;
	k->source = sd_event_source_disable_unref(k->source);
	close(k->fd);
	k->fd = -1;
	ebb_linkproto_parser_finish(&k->parser);
	free(k->queue);
	k->queue = NULL;
}

/* Close and tell the core; from the event loop only, never from submit. */
static void lose(struct link *k, const char *why)
{
	struct ebb_fact fact = { .type = EBB_FACT_LINK_LOST };
	bool had_hello = k->has_hello;

	disconnect(k);
	ebb_log(LOG_INFO, "link_down", EBB_KS("vm", k->name), EBB_KS("reason", why));
	k->has_hello = false;
	if (had_hello)
		report(k, &fact);
}

static void update_listening(struct link *k)
{
	sd_event_source_set_enabled(k->listen_source, k->is_enabled && !k->is_punished ?
				    SD_EVENT_ON : SD_EVENT_OFF);
}

void ebb_links_enable(struct ebb_links *l, const uint8_t uuid[16], bool enable)
{
	struct link *k = find(l, uuid);

	if (!k)
		return;
	k->is_enabled = enable;
	update_listening(k);
}

static int on_penalty_over(sd_event_source *s, uint64_t usec, void *arg)
{
	struct link *k = arg;

	(void)s;
	(void)usec;
	k->is_punished = false;
	update_listening(k);
	return 0;
}

static void punish(struct link *k, const char *what)
{
	ebb_text_copy(k->last_error, sizeof(k->last_error), what);
	ebb_log(LOG_WARNING, "link_refused", EBB_KS("vm", k->name), EBB_KS("reason", what));
	if (k->is_punished || sd_event_source_set_time_relative(k->penalty, PENALTY_USEC) < 0 ||
	    sd_event_source_set_enabled(k->penalty, SD_EVENT_ONESHOT) < 0)
		return;
	k->is_punished = true;
	update_listening(k);
}

static int take_message(struct link *k, struct ebb_linkproto_msg *msg, struct ebb_err *err)
{
	struct ebb_fact fact = { .type = EBB_FACT_TELEMETRY };

	switch (msg->type) {
	case VIRTIO_EBB_LINK_HELLO:
		if (memcmp(msg->uuid, k->uuid, 16) != 0)
			return ebb_err_set(err, -EPROTO, "HELLO has the uuid of another VM");
		fact.type = EBB_FACT_HELLO;
		fact.u.hello = msg->u.hello;
		fact.u.hello.is_first = !k->has_hello;
		k->has_hello = true;
		k->last_error[0] = '\0';
		break;
	case VIRTIO_EBB_LINK_REQUEST:
		fact.type = EBB_FACT_REQUEST;
		fact.u.request = msg->u.request;
		break;
	case VIRTIO_EBB_LINK_ACCOUNT:
		fact.type = EBB_FACT_ACCOUNT;
		fact.u.account = msg->u.account;
		break;
	case VIRTIO_EBB_LINK_MEM:
		fact.type = EBB_FACT_MEM;
		fact.u.mem = msg->u.mem;
		break;
	default:
		if (msg->is_vom) {
			fact.type = EBB_FACT_VOM;
			fact.u.vom = msg->u.vom;
		} else {
			fact.u.telemetry = msg->u.telemetry;
		}
	}
	report(k, &fact);
	return 0;
}

/* Returns 0, or -errno with err: the connection must end. */
static int receive(struct link *k, struct ebb_err *err)
{
	uint8_t buf[READ_BYTES];
	ssize_t len = recv(k->fd, buf, sizeof(buf), MSG_DONTWAIT);
	size_t at = 0;

	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 :
		       ebb_err_set(err, -errno, "%s", strerror(errno));
	if (len == 0)
		return ebb_err_set(err, -ECONNRESET, "%s", ebb_linkproto_is_idle(&k->parser) ?
				   "closed by the device" : "closed within a frame");
	while (at < (size_t)len && !k->close_when_sent && !k->close_reason[0]) {
		struct ebb_linkproto_msg msg;
		size_t used;
		int rc = ebb_linkproto_parse(&k->parser, buf + at, len - at, &used, &msg, err);

		if (rc == 1)
			rc = take_message(k, &msg, err);
		if (rc < 0)
			return rc;
		at += used;
	}
	return 0;
}

static int send_queue(struct link *k, struct ebb_err *err)
{
	while (k->queue_at < k->queue_end) {
		ssize_t n = send(k->fd, k->queue + k->queue_at, k->queue_end - k->queue_at,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 :
			       ebb_err_set(err, -errno, "%s", strerror(errno));
		k->queue_at += n;
	}
	k->queue_at = k->queue_end = 0;
	if (k->close_when_sent)
		return ebb_err_set(err, -ECONNABORTED, "closed by the agent");
	sd_event_source_set_io_events(k->source, EPOLLIN);
	return 0;
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct link *k = arg;
	struct ebb_err err = { "" };
	int rc = 0;

	(void)s;
	(void)fd;
	if (k->close_reason[0]) {
		lose(k, k->close_reason);
		return 0;
	}
	if ((revents & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !k->close_when_sent)
		rc = receive(k, &err);
	/* The core may have answered the report with the order to close. */
	if (rc == 0 && !k->close_reason[0] && k->queue_at < k->queue_end)
		rc = send_queue(k, &err);
	if (rc < 0)
		lose(k, err.text);
	if (rc == -EPROTO)
		punish(k, err.text);
	return 0;
}

/*
 * Somebody else than the VM's QEMU.  Normally the VM itself must not suffer from that; but a flood
 * of strangers must not cost the agent its time either.
 */
static void turn_away(struct link *k, const char *what)
{
	usec_t now = ebb_clock_mono_usec();

	if (now - k->strangers_since > PENALTY_USEC) {
		k->strangers_since = now;
		k->num_strangers = 0;
	}
	if (++k->num_strangers == 1) {
		ebb_text_copy(k->last_error, sizeof(k->last_error), what);
		ebb_log(LOG_WARNING, "link_refused", EBB_KS("vm", k->name), EBB_KS("reason", what));
	} else if (k->num_strangers == MAX_STRANGERS) {
		punish(k, "too many connections of other processes");
	}
}

static int check_peer(struct link *k, int fd, struct ebb_err *err)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	pid_t want;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return ebb_err_set(err, -errno, "SO_PEERCRED: %s", strerror(errno));
	want = k->links->cfg.qemu_pid(k->links->cfg.ctx, k->uuid);
	if (want < 0)
		return ebb_err_set(err, -EPERM,
				   "process %d connected, and the QEMU of the VM can not be "
				   "found: %s",
				   peer.pid, strerror(-want));
	if (want != peer.pid)
		return ebb_err_set(err, -EPERM, "process %d connected, the QEMU of the VM is %d",
				   peer.pid, want);
	return 0;
}

static int connect_link(struct link *k, int fd)
{
	int rc;

	k->queue = malloc(QUEUE_BYTES);
	if (!k->queue)
		return -ENOMEM;
	rc = sd_event_add_io(k->links->event, &k->source, fd, EPOLLIN, on_io, k);
	if (rc < 0) {
		free(k->queue);
		k->queue = NULL;
		return rc;
	}
	k->fd = fd;
	k->has_hello = k->close_when_sent = false;
	k->close_reason[0] = '\0';
	k->queue_at = k->queue_end = 0;
	ebb_linkproto_parser_init(&k->parser);
	return 0;
}

static int on_connect(sd_event_source *s, int listen_fd, uint32_t revents, void *arg)
{
	struct link *k = arg;
	struct ebb_err err = { "" };
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int rc;

	(void)s;
	(void)revents;
	if (fd < 0) {
		const int error = errno;

		if (error == EAGAIN || error == EINTR || error == ECONNABORTED)
			return 0;
		/* The connection stays readable: without a pause the loop would do nothing else. */
		ebb_err_set(&err, -error, "a connection can not be accepted: %s", strerror(error));
		punish(k, err.text);
		return 0;
	}
	if (check_peer(k, fd, &err) < 0) {
		close(fd);
		turn_away(k, err.text);
		return 0;
	}
	/* The same QEMU connects again: it knows better than we do that the old one is dead. */
	if (k->fd >= 0)
		lose(k, "replaced by a new connection");
	rc = connect_link(k, fd);
	if (rc < 0) {
		close(fd);
		punish(k, strerror(-rc));
	}
	return 0;
}

static int open_socket(struct link *k, gid_t group, struct ebb_err *err)
{
	const char *path = k->addr.sun_path;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc;

	if (fd < 0)
		return ebb_err_set(err, -errno, "socket: %s", strerror(errno));
	/* Left by an instance that was killed; the lock of the run folder says that it is dead. */
	unlink(path);
	if (bind(fd, (struct sockaddr *)&k->addr, sizeof(k->addr)) < 0 ||
	    chmod(path, group == (gid_t)-1 ? 0600 : 0660) < 0 || chown(path, -1, group) < 0 ||
	    listen(fd, 4) < 0) {
		rc = -errno;
		close(fd);
		unlink(path);
		return ebb_err_set(err, rc, "can not listen on %s: %s", path, strerror(-rc));
	}
	k->listen_fd = fd;
	return 0;
}

static void link_free(struct link *k)
{
	disconnect(k);
	sd_event_source_disable_unref(k->penalty);
	sd_event_source_disable_unref(k->listen_source);
	if (k->listen_fd >= 0) {
		close(k->listen_fd);
		unlink(k->addr.sun_path);
	}
	free(k);
}

int ebb_links_listen(struct ebb_links *l, const uint8_t uuid[16], const char *name,
		     struct ebb_err *err)
{
	struct link *k = find(l, uuid);
	char text[EBB_UUID_TEXT_SIZE];
	int rc;

	if (k) {
		ebb_text_copy(k->name, sizeof(k->name), name);
		return 0;
	}
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->links = l;
	k->fd = k->listen_fd = -1;
	k->addr.sun_family = AF_UNIX;
	memcpy(k->uuid, uuid, 16);
	ebb_text_copy(k->name, sizeof(k->name), name);
	ebb_uuid_format(uuid, text);
	if ((size_t)snprintf(k->addr.sun_path, sizeof(k->addr.sun_path), "%s/%s.sock", l->folder,
			     text) >= sizeof(k->addr.sun_path)) {
		rc = ebb_err_set(err, -ENAMETOOLONG, "%s/%s.sock is too long for a unix socket",
				 l->folder, text);
		goto out_free;
	}
	rc = open_socket(k, l->cfg.group, err);
	if (rc < 0)
		goto out_free;
	rc = sd_event_add_io(l->event, &k->listen_source, k->listen_fd, EPOLLIN, on_connect, k);
	/* Now, since a timer may need a file descriptor, and none may be left when it is needed. */
	if (rc >= 0)
		rc = sd_event_add_time(l->event, &k->penalty, CLOCK_MONOTONIC, UINT64_MAX, 0,
				       on_penalty_over, k);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(k->penalty, SD_EVENT_OFF);
	if (rc < 0) {
		ebb_err_set(err, rc, "can not watch %s: %s", k->addr.sun_path, strerror(-rc));
		goto out_free;
	}
	update_listening(k);
	k->next = l->list;
	l->list = k;
	return 0;

out_free:
	link_free(k);
	return rc;
}

void ebb_links_forget(struct ebb_links *l, const uint8_t uuid[16])
{
	for (struct link **at = &l->list; *at; at = &(*at)->next) {
		struct link *k = *at;

		if (memcmp(k->uuid, uuid, 16) != 0)
			continue;
		*at = k->next;
		link_free(k);
		return;
	}
}

static void close_soon(struct link *k, const char *why)
{
	snprintf(k->close_reason, sizeof(k->close_reason), "%s", why);
	/* A socket is as good as always writable: this calls on_io. */
	shutdown(k->fd, SHUT_RDWR);
	sd_event_source_set_io_events(k->source, EPOLLIN | EPOLLOUT);
}

void ebb_links_submit(struct ebb_links *l, const struct ebb_action *action)
{
	struct link *k = find(l, action->uuid);
	_Alignas(8) uint8_t frame[EBB_LINKPROTO_MAX_OUT];
	size_t len;

	if (!k || k->fd < 0 || k->close_when_sent || k->close_reason[0])
		return;
	switch (action->type) {
	case EBB_ACTION_WELCOME:
		len = ebb_linkproto_welcome(frame, &action->u.welcome);
		k->close_when_sent = action->u.welcome.status != VIRTIO_EBB_ACK;
		break;
	case EBB_ACTION_RESPONSE:
		len = ebb_linkproto_response(frame, &action->u.response);
		break;
	case EBB_ACTION_LIMITS:
		len = ebb_linkproto_limits(frame, &action->u.limits);
		break;
	case EBB_ACTION_CPU_FLAGS:
		len = ebb_linkproto_cpu_flags(frame, &action->u.cpu_flags);
		break;
	case EBB_ACTION_ACCOUNT:
		len = ebb_linkproto_account(frame, &action->u.account);
		break;
	case EBB_ACTION_REVOKE:
		len = ebb_linkproto_revoke(frame, &action->u.pool);
		break;
	default:
		close_soon(k, "closed to hear a new HELLO");
		return;
	}
	if (k->queue_end + len > QUEUE_BYTES && k->queue_at) {
		memmove(k->queue, k->queue + k->queue_at, k->queue_end - k->queue_at);
		k->queue_end -= k->queue_at;
		k->queue_at = 0;
	}
	if (k->queue_end + len > QUEUE_BYTES) {
		close_soon(k, "the device does not read");
		return;
	}
	memcpy(k->queue + k->queue_end, frame, len);
	k->queue_end += len;
	sd_event_source_set_io_events(k->source, EPOLLIN | EPOLLOUT);
}

const char *ebb_links_last_error(struct ebb_links *l, const uint8_t uuid[16])
{
	struct link *k = find(l, uuid);

	return k ? k->last_error : "";
}

int ebb_links_create(sd_event *event, const struct ebb_links_config *cfg, struct ebb_links **ret)
{
	struct ebb_links *l;

	if (strlen(cfg->folder) >= sizeof(l->folder))
		return -ENAMETOOLONG;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->event = sd_event_ref(event);
	l->cfg = *cfg;
	strcpy(l->folder, cfg->folder);
	l->cfg.folder = l->folder;
	*ret = l;
	return 0;
}

void ebb_links_destroy(struct ebb_links *l)
{
	if (!l)
		return;
	while (l->list) {
		struct link *k = l->list;

		l->list = k->next;
		link_free(k);
	}
	sd_event_unref(l->event);
	free(l);
}
