// SPDX-License-Identifier: BSD-3-Clause
/*
 * The connection to ebb-monitord: states and messages, see link.h.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"

#define NS_PER_MS	1000000ull

void ebb_wake(int fd)
{
	eventfd_write(fd, 1);
}

int ebb_link_init(struct ebb_link *link, const char *name, const char *path, int epoll_fd,
		  int wake_fd, int is_off)
{
	memset(link, 0, sizeof(*link));
	if (strlen(path) >= sizeof(link->addr.sun_path))
		return -EINVAL;
	link->addr.sun_family = AF_UNIX;
	strcpy(link->addr.sun_path, path);
	strcpy(link->name, name);
	link->epoll_fd = epoll_fd;
	link->wake_fd = wake_fd;
	link->fd = -1;
	link->state = is_off ? EBB_LINK_OFF : EBB_LINK_DOWN;
	link->retry_ms = EBB_LINK_RETRY_MIN_MS;
	return -pthread_mutex_init(&link->lock, NULL);
}

static void lost_locked(struct ebb_link *link)
{
	if (link->state != EBB_LINK_HELLO && link->state != EBB_LINK_UP)
		return;
	link->state = EBB_LINK_LOST;
	link->has_shares = 0;
	for (struct ebb_link_waiter *w = link->waiters; w; w = w->next)
		ebb_wake(w->wake_fd);
	ebb_wake(link->wake_fd);
}

static void retry_later_locked(struct ebb_link *link, uint64_t now_ns)
{
	link->state = EBB_LINK_DOWN;
	link->retry_at_ns = now_ns + link->retry_ms * NS_PER_MS;
	link->retry_ms *= 2;
	if (link->retry_ms > EBB_LINK_RETRY_MAX_MS)
		link->retry_ms = EBB_LINK_RETRY_MAX_MS;
}

/* LOST to DOWN, if nobody polls the socket any more. */
static void close_locked(struct ebb_link *link, uint64_t now_ns)
{
	/* Its hang-up would keep the epoll readable as long as a user is left. */
	if (link->is_polled) {
		epoll_ctl(link->epoll_fd, EPOLL_CTL_DEL, link->fd, NULL);
		link->is_polled = 0;
	}
	if (link->num_users > 0)
		return;
	close(link->fd);
	link->fd = -1;
	retry_later_locked(link, now_ns);
}

/* -EAGAIN: the socket is full.  On other errors the connection is lost. */
static int send_locked(struct ebb_link *link, const void *msg, size_t bytes)
{
	ssize_t n = send(link->fd, msg, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n == (ssize_t)bytes)
		return 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
		return -EAGAIN;
	lost_locked(link);
	return -ENOTCONN;
}

/* Connects to a listening socket at once or not at all; never waits. */
static int connect_locked(struct ebb_link *link, uint64_t now_ns)
{
	struct epoll_event ev = { .events = EPOLLIN };
	union ebb_msg msg;
	size_t bytes;
	int fd, r;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&link->addr, sizeof(link->addr)) < 0) {
		r = -errno;
		goto out_close;
	}
	bytes = ebb_msg_init(&msg, EBB_MSG_HELLO, 0);
	strcpy(msg.hello.name, link->name);
	msg.hello.counters = link->counters;
	if (send(fd, &msg, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		r = -errno;
		goto out_close;
	}
	ev.data.fd = fd;
	if (epoll_ctl(link->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		r = -errno;
		goto out_close;
	}
	link->fd = fd;
	link->is_polled = 1;
	link->state = EBB_LINK_HELLO;
	link->hello_by_ns = now_ns + EBB_MSG_HELLO_TIMEOUT_MS * NS_PER_MS;
	link->refusal = 0;
	link->has_shares = 0;
	link->is_ack_due = 0;
	link->vom_seq = 0;
	return 0;

out_close:
	close(fd);
	return r;
}

static void welcome_locked(struct ebb_link *link, const struct ebb_msg_welcome *welcome)
{
	if (link->state != EBB_LINK_HELLO || welcome->error) {
		link->refusal = welcome->error == 0 || welcome->error > 4095 ?
				-EPROTO : -(int)welcome->error;
		lost_locked(link);
		return;
	}
	link->state = EBB_LINK_UP;
	link->retry_ms = EBB_LINK_RETRY_MIN_MS;
	link->is_owned_due = 1;
}

static void stats_locked(struct ebb_link *link, const struct ebb_msg_stats *stats)
{
	/* An answer that nobody waits for any more came too late: dropped. */
	for (struct ebb_link_waiter *w = link->waiters; w; w = w->next) {
		if (w->id != stats->hdr.id)
			continue;
		w->reply = *stats;
		w->is_done = 1;
		ebb_wake(w->wake_fd);
		return;
	}
}

static void received_locked(struct ebb_link *link, const union ebb_msg *msg, size_t bytes)
{
	const char *what;
	int r = ebb_msg_check(msg, bytes, &what);

	if (r == 0 && msg->hdr.type == EBB_MSG_WELCOME) {
		welcome_locked(link, &msg->welcome);
	} else if (r == 0 && link->state == EBB_LINK_UP && msg->hdr.type == EBB_MSG_SHARES) {
		link->shares = msg->shares;
		link->has_shares = 1;
		link->is_ack_due = 1;
		/* The thread that reads need not be the one that tells the application. */
		ebb_wake(link->wake_fd);
	} else if (r == 0 && link->state == EBB_LINK_UP && msg->hdr.type == EBB_MSG_STATS) {
		stats_locked(link, &msg->stats);
	} else {
		link->refusal = -EPROTO;
		lost_locked(link);
	}
}

static void receive_locked(struct ebb_link *link)
{
	while (link->state == EBB_LINK_HELLO || link->state == EBB_LINK_UP) {
		union ebb_msg msg;
		/* MSG_TRUNC: the true size also of a message that is too long. */
		ssize_t n = recv(link->fd, &msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			lost_locked(link);
		else
			received_locked(link, &msg, (size_t)n);
	}
}

static void owned_send_locked(struct ebb_link *link)
{
	union ebb_msg msg;
	size_t bytes;

	if (link->state != EBB_LINK_UP || !link->is_owned_due)
		return;
	bytes = ebb_msg_init(&msg, EBB_MSG_OWNED, 0);
	msg.owned.num_nodes = link->owned.num_nodes;
	msg.owned.flags = (link->num_adding ? EBB_MSG_OWNED_ADDING : 0) |
			  (link->has_values ? EBB_MSG_OWNED_VALUES : 0);
	memcpy(msg.owned.nodes, link->owned.nodes, sizeof(msg.owned.nodes));
	if (send_locked(link, &msg, bytes) == 0)
		link->is_owned_due = 0;
}

static void ack_send_locked(struct ebb_link *link)
{
	union ebb_msg msg;
	size_t bytes;

	if (link->state != EBB_LINK_UP || !link->is_ack_due)
		return;
	bytes = ebb_msg_init(&msg, EBB_MSG_ACK, 0);
	msg.ack.seq = link->shares.seq;
	if (send_locked(link, &msg, bytes) == 0)
		link->is_ack_due = 0;
}

static uint64_t due_locked(const struct ebb_link *link, uint64_t now_ns)
{
	switch (link->state) {
	case EBB_LINK_DOWN:
		return link->retry_at_ns;
	case EBB_LINK_HELLO:
		return link->hello_by_ns;
	case EBB_LINK_UP:
		if (link->is_owned_due || link->is_ack_due)
			return now_ns + EBB_LINK_RESEND_MS * NS_PER_MS;
		return UINT64_MAX;
	default:
		return UINT64_MAX;
	}
}

static void step_locked(struct ebb_link *link, uint64_t now_ns)
{
	receive_locked(link);
	if (link->state == EBB_LINK_HELLO && now_ns >= link->hello_by_ns)
		lost_locked(link);
	owned_send_locked(link);
	if (link->state == EBB_LINK_LOST)
		close_locked(link, now_ns);
	if (link->state == EBB_LINK_DOWN && now_ns >= link->retry_at_ns &&
	    connect_locked(link, now_ns) < 0)
		retry_later_locked(link, now_ns);
}

void ebb_link_step(struct ebb_link *link, uint64_t now_ns)
{
	pthread_mutex_lock(&link->lock);
	step_locked(link, now_ns);
	pthread_mutex_unlock(&link->lock);
}

uint64_t ebb_link_acknowledge(struct ebb_link *link, uint64_t now_ns)
{
	uint64_t due_ns;

	pthread_mutex_lock(&link->lock);
	ack_send_locked(link);
	due_ns = due_locked(link, now_ns);
	pthread_mutex_unlock(&link->lock);
	return due_ns;
}

static int open_locked(struct ebb_link *link)
{
	uint64_t now_ns = ebb_now_ns();
	int r;

	r = connect_locked(link, now_ns);
	if (r == -EACCES || r == -EPERM)
		return -EACCES;
	if (r < 0)
		return 0;
	while (link->state == EBB_LINK_HELLO && now_ns < link->hello_by_ns) {
		struct pollfd p = { .fd = link->fd, .events = POLLIN };

		poll(&p, 1, (int)((link->hello_by_ns - now_ns) / NS_PER_MS) + 1);
		receive_locked(link);
		now_ns = ebb_now_ns();
	}
	return link->refusal;
}

int ebb_link_open(struct ebb_link *link)
{
	int r = 0;

	pthread_mutex_lock(&link->lock);
	if (link->state == EBB_LINK_DOWN)
		r = open_locked(link);
	pthread_mutex_unlock(&link->lock);
	return r;
}

void ebb_link_finish(struct ebb_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	pthread_mutex_destroy(&link->lock);
}

int ebb_link_is_up(struct ebb_link *link)
{
	int is_up;

	pthread_mutex_lock(&link->lock);
	is_up = link->state == EBB_LINK_UP;
	pthread_mutex_unlock(&link->lock);
	return is_up;
}

int ebb_link_shares(struct ebb_link *link, struct ebb_msg_shares *ret)
{
	int has_shares;

	pthread_mutex_lock(&link->lock);
	has_shares = link->state == EBB_LINK_UP && link->has_shares;
	if (has_shares)
		*ret = link->shares;
	pthread_mutex_unlock(&link->lock);
	return has_shares;
}

void ebb_link_set_owned(struct ebb_link *link, const struct ebb_msg_owned *owned)
{
	pthread_mutex_lock(&link->lock);
	if (link->owned.num_nodes != owned->num_nodes ||
	    memcmp(link->owned.nodes, owned->nodes, sizeof(owned->nodes)) != 0) {
		link->owned = *owned;
		link->is_owned_due = 1;
	}
	pthread_mutex_unlock(&link->lock);
}

void ebb_link_adding(struct ebb_link *link, int is_adding)
{
	pthread_mutex_lock(&link->lock);
	link->num_adding += is_adding ? 1u : -1u;
	link->is_owned_due = 1;
	/*
	 * Its end goes out with what was added, in the next dispatch: work is waiting for that.
	 * Its begin is news only where others could be given what this one does not take; it
	 * would wake the monitor, on a CPU that the request may need.
	 */
	if (is_adding && !(link->has_shares && link->shares.flags & EBB_MSG_SHARES_ALONE)) {
		owned_send_locked(link);
		ack_send_locked(link);
	}
	pthread_mutex_unlock(&link->lock);
}

void ebb_link_set_values(struct ebb_link *link, int has_values)
{
	pthread_mutex_lock(&link->lock);
	if (link->has_values != has_values) {
		link->has_values = has_values;
		link->is_owned_due = 1;
	}
	pthread_mutex_unlock(&link->lock);
}

static int vom_send_locked(struct ebb_link *link, uint32_t seq,
			   const struct ebb_vom_bucket *buckets, uint32_t num_buckets)
{
	union ebb_msg msg;

	ebb_msg_init(&msg, EBB_MSG_VOM, 0);
	msg.vom.seq = seq;
	msg.vom.num_buckets = num_buckets;
	memcpy(msg.vom.buckets, buckets, num_buckets * sizeof(*buckets));
	msg.hdr.size = (uint32_t)ebb_msg_vom_bytes(num_buckets);
	return send_locked(link, &msg, msg.hdr.size);
}

int ebb_link_vom(struct ebb_link *link, uint32_t seq, const struct ebb_vom_bucket *buckets,
		 uint32_t num_buckets)
{
	int r = -ENOTCONN;

	pthread_mutex_lock(&link->lock);
	if (link->state == EBB_LINK_UP)
		r = link->vom_seq == seq ? 0 : vom_send_locked(link, seq, buckets, num_buckets);
	if (r == 0)
		link->vom_seq = seq;
	pthread_mutex_unlock(&link->lock);
	return r;
}

int ebb_link_report(struct ebb_link *link, const struct ebb_msg_report *report)
{
	int r = -ENOTCONN;

	pthread_mutex_lock(&link->lock);
	if (link->state == EBB_LINK_UP)
		r = send_locked(link, report, sizeof(*report));
	if (r == 0)
		link->counters = report->counters;
	pthread_mutex_unlock(&link->lock);
	return r;
}

static void waiter_add_locked(struct ebb_link *link, struct ebb_link_waiter *waiter)
{
	waiter->next = link->waiters;
	link->waiters = waiter;
	link->num_users++;
}

static void waiter_remove_locked(struct ebb_link *link, struct ebb_link_waiter *waiter)
{
	struct ebb_link_waiter **p = &link->waiters;

	while (*p != waiter)
		p = &(*p)->next;
	*p = waiter->next;
	link->num_users--;
	/* The dispatching thread waits for the last user before it closes the socket. */
	if (link->state == EBB_LINK_LOST && link->num_users == 0)
		ebb_wake(link->wake_fd);
}

/* Polls without the lock: the thread that reads the answer writes the waiter's eventfd. */
static int waiter_wait_locked(struct ebb_link *link, struct ebb_link_waiter *waiter,
			      uint64_t until_ns)
{
	for (;;) {
		struct pollfd p[2] = {
			{ .fd = link->fd, .events = POLLIN },
			{ .fd = waiter->wake_fd, .events = POLLIN },
		};
		uint64_t now_ns;

		receive_locked(link);
		if (waiter->is_done)
			return 0;
		if (link->state != EBB_LINK_UP)
			return -ENOTCONN;
		now_ns = ebb_now_ns();
		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		pthread_mutex_unlock(&link->lock);
		poll(p, 2, (int)((until_ns - now_ns) / NS_PER_MS) + 1);
		pthread_mutex_lock(&link->lock);
	}
}

int ebb_link_stats(struct ebb_link *link, const char *name, unsigned int timeout_ms,
		   struct ebb_msg_stats *ret)
{
	uint64_t until_ns = ebb_now_ns() + timeout_ms * NS_PER_MS;
	struct ebb_link_waiter waiter = { 0 };
	union ebb_msg msg;
	size_t bytes;
	int r;

	waiter.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (waiter.wake_fd < 0)
		return -errno;
	pthread_mutex_lock(&link->lock);
	if (link->state != EBB_LINK_UP) {
		r = -ENOTCONN;
		goto out_unlock;
	}
	waiter.id = ++link->next_id;
	bytes = ebb_msg_init(&msg, EBB_MSG_STATS_GET, waiter.id);
	strcpy(msg.stats_get.name, name);
	r = send_locked(link, &msg, bytes);
	if (r < 0)
		goto out_unlock;
	waiter_add_locked(link, &waiter);
	r = waiter_wait_locked(link, &waiter, until_ns);
	waiter_remove_locked(link, &waiter);
	if (r == 0 && waiter.reply.error)
		r = waiter.reply.error == ENOENT ? -ENOENT : -EPROTO;
	if (r == 0)
		*ret = waiter.reply;
out_unlock:
	pthread_mutex_unlock(&link->lock);
	close(waiter.wake_fd);
	return r;
}
