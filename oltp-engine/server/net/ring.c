// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a worker has under way in its io_uring: at most one receive and one send of each connection,
 * and a read of its own eventfd. Entries collect until the worker has nothing else to do, so that
 * one system call begins many, and waits.
 */
#include <errno.h>

#include "front.h"
#include "oltp-engine/src/base/clock.h"

#define ENTRIES		1024u
#define COMPLETIONS_MAX	65536u

/* In the low bits of an entry's user data, beside the connection. */
enum op {
	OP_RECEIVE,
	OP_SEND,
	OP_EVENT,
	OP_CANCEL,
	OP_MASK = 3,
};

_Static_assert(_Alignof(struct conn) > OP_MASK, "an op must fit into the address of a connection");

/* Room for all that can be under way, so that none is ever put off. */
static uint32_t completions(uint32_t clients_max)
{
	uint32_t n = clients_max * 4 + ENTRIES;

	return n < COMPLETIONS_MAX ? n : COMPLETIONS_MAX;
}

int ring_init(struct net_worker *w)
{
	struct io_uring_params params = {
		/* Completions are worked on when this thread asks for them, and only then. */
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
		.cq_entries = completions(w->front->config.clients_max),
	};
	int rc = io_uring_queue_init_params(ENTRIES, &w->ring, &params);

	if (rc != -EINVAL)
		return rc;
	params = (struct io_uring_params){ .flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
					   .cq_entries = params.cq_entries };
	return io_uring_queue_init_params(ENTRIES, &w->ring, &params);
}

void ring_finish(struct net_worker *w)
{
	io_uring_queue_exit(&w->ring);
}

/* NULL: all entries are used, and the kernel takes none. */
static struct io_uring_sqe *next_entry(struct net_worker *w)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&w->ring);

	if (sqe)
		return sqe;
	io_uring_submit(&w->ring);
	return io_uring_get_sqe(&w->ring);
}

static void set_data(struct io_uring_sqe *sqe, const void *of, enum op op)
{
	io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)of | op);
}

bool ring_receive(struct conn *c)
{
	struct io_uring_sqe *sqe = next_entry(c->worker);

	if (!sqe)
		return false;
	io_uring_prep_recv(sqe, c->fd, c->in + c->in_to, c->in_room - c->in_to, 0);
	/* Most clients wait for their replies first: do not try in vain. */
	if (!c->has_filled)
		sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
	set_data(sqe, c, OP_RECEIVE);
	c->is_receiving = true;
	c->worker->under_way++;
	return true;
}

bool ring_send(struct conn *c)
{
	struct io_uring_sqe *sqe = next_entry(c->worker);

	if (!sqe)
		return false;
	io_uring_prep_send(sqe, c->fd, c->sending.bytes + c->sent, c->sending.n - c->sent,
			   MSG_NOSIGNAL);
	set_data(sqe, c, OP_SEND);
	c->is_sending = true;
	c->worker->under_way++;
	return true;
}

static void cancel(struct conn *c, enum op op)
{
	struct io_uring_sqe *sqe;

	/* Without one the connection could not leave; the kernel takes entries sooner or later. */
	while (!(sqe = next_entry(c->worker)))
		clock_sleep(100000);
	io_uring_prep_cancel64(sqe, (uint64_t)(uintptr_t)c | op, 0);
	set_data(sqe, NULL, OP_CANCEL);
}

void ring_cancel(struct conn *c)
{
	if (c->is_receiving)
		cancel(c, OP_RECEIVE);
	if (c->is_sending)
		cancel(c, OP_SEND);
}

/* So that a write to the eventfd ends a wait. */
static void listen_event(struct net_worker *w)
{
	struct io_uring_sqe *sqe;

	if (w->is_listening)
		return;
	sqe = next_entry(w);
	if (!sqe)
		return;
	io_uring_prep_read(sqe, w->event_fd, &w->event, sizeof(w->event), 0);
	set_data(sqe, NULL, OP_EVENT);
	w->is_listening = true;
}

static void ended(struct net_worker *w, uint64_t data, int32_t result)
{
	struct conn *c = (struct conn *)(uintptr_t)(data & ~(uint64_t)OP_MASK);

	switch (data & OP_MASK) {
	case OP_RECEIVE:
		w->under_way--;
		c->is_receiving = false;
		conn_received(c, result);
		break;
	case OP_SEND:
		w->under_way--;
		c->is_sending = false;
		conn_sent(c, result);
		break;
	case OP_EVENT:
		w->is_listening = false;
		break;
	case OP_CANCEL:
		break;
	}
}

static void take_ended(struct net_worker *w)
{
	struct io_uring_cqe *cqe;

	while (!io_uring_peek_cqe(&w->ring, &cqe)) {
		uint64_t data = io_uring_cqe_get_data64(cqe);
		int32_t result = cqe->res;

		io_uring_cqe_seen(&w->ring, cqe);
		ended(w, data, result);
	}
}

void ring_look(struct net_worker *w, bool enters)
{
	if (enters) {
		listen_event(w);
		io_uring_submit_and_get_events(&w->ring);
	}
	take_ended(w);
}

void ring_wait(struct net_worker *w, uint64_t until_ns)
{
	struct __kernel_timespec timeout;
	uint64_t now_ns, wait_ns;
	struct io_uring_cqe *cqe;

	listen_event(w);
	if (until_ns == UINT64_MAX) {
		io_uring_submit_and_wait(&w->ring, 1);
		return;
	}
	now_ns = clock_now_ns();
	wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	timeout = (struct __kernel_timespec){ (long long)(wait_ns / 1000000000),
					      (long long)(wait_ns % 1000000000) };
	io_uring_submit_and_wait_timeout(&w->ring, &cqe, 1, &timeout, NULL);
}
