// SPDX-License-Identifier: GPL-2.0-or-later
/* A connection: the two automata of front.h, and the memory that they need. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "front.h"
#include "oltp-engine/src/base/clock.h"

#define IN_BYTES_MIN	4096u
/* An input buffer that requests fill grows up to there; beyond it, for one large request alone. */
#define IN_BYTES_KEPT	65536u
/* Memory of output buffers beyond this is given back. */
#define OUT_BYTES_KEPT	65536u

static _Atomic uint32_t *counter_of(struct net_front *front, bool is_restricted)
{
	return is_restricted ? &front->n_restricted : &front->n_clients;
}

struct conn *conn_create(struct net_front *front, int fd, const char *peer, const char *own,
			 bool is_restricted)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->session = kv_session_create(front->kv);
	c->in = malloc(IN_BYTES_MIN);
	if (!c->session || !c->in) {
		kv_session_destroy(c->session);
		free(c->in);
		free(c);
		return NULL;
	}
	kv_session_set_peer(c->session, peer, own, fd);
	kv_session_set_ready(c->session, place_conn_wake, c);
	link_init(&c->all);
	link_init(&c->queue);
	link_init(&c->held);
	link_init(&c->woken);
	c->front = front;
	c->fd = fd;
	c->in_room = IN_BYTES_MIN;
	resp_parser_init(&c->parser, &front->limits);
	resp_out_init(&c->out, front->config.output_bytes_max);
	resp_out_init(&c->sending, front->config.output_bytes_max);
	c->is_restricted = is_restricted;
	if (is_restricted)
		kv_session_restrict(c->session);
	atomic_fetch_add(counter_of(front, is_restricted), 1);
	return c;
}

void conn_destroy(struct conn *c)
{
	atomic_fetch_sub(counter_of(c->front, c->is_restricted), 1);
	if (c->is_observer)
		atomic_fetch_sub(&c->front->n_observers, 1);
	if (c->told_ns && !c->is_restricted)
		atomic_fetch_sub(&c->front->n_told, 1);
	kv_session_destroy(c->session);
	resp_parser_finish(&c->parser);
	resp_out_finish(&c->out);
	resp_out_finish(&c->sending);
	free(c->in);
	close(c->fd);
	free(c);
}

static bool is_under_way(const struct conn *c)
{
	return c->is_receiving || c->is_sending || c->input == CONN_RUNNING;
}

static void unlink_all(struct conn *c)
{
	link_remove(&c->all);
	link_remove(&c->queue);
	link_remove(&c->held);
}

/* When the oldest request came that is not answered; 0: there is none. */
static void set_open(struct conn *c, uint64_t came_ns)
{
	struct net_counts *counts = &c->worker->counts;

	counts->open += (came_ns != 0) - (uint64_t)(c->open_ns != 0);
	counts->open_came_ns += came_ns - c->open_ns;
	c->open_ns = came_ns;
}

/* It waits for no unit any more; its request begins anew if it is run again. */
static void stop_waiting(struct conn *c)
{
	if (c->input != CONN_WAITING)
		return;
	kv_session_stop_waiting(c->session);
	place_conn_unwake(c);
	c->input = CONN_QUEUED;
}

/* A dead or leaving connection goes, if nothing of it is under way. */
static void settle(struct conn *c)
{
	struct net_worker *w = c->worker;

	if (is_under_way(c) || !(c->is_dead || c->is_leaving))
		return;
	unlink_all(c);
	place_conn_gone(w);
	c->worker = NULL;
	if (c->is_dead) {
		conn_destroy(c);
		return;
	}
	c->is_leaving = false;
	w->counts.moved++;
	place_conn(c->front, c);
}

void conn_kill(struct conn *c)
{
	if (!c->is_dead) {
		c->is_dead = true;
		set_open(c, 0);
		stop_waiting(c);
		link_remove(&c->queue);
		link_remove(&c->held);
		/* Ends what is under way. */
		shutdown(c->fd, SHUT_RDWR);
	}
	settle(c);
}

/* Replies wait for the log. */
static bool is_held(const struct conn *c)
{
	return !link_is_empty(&c->held);
}

static size_t output_soft_max(const struct conn *c)
{
	return c->front->config.output_bytes_max / 2;
}

static void queue(struct conn *c)
{
	c->input = CONN_QUEUED;
	if (!c->is_leaving && !c->is_dead)
		worker_queue(c->worker, c);
}

static bool has_unanswered(const struct conn *c)
{
	return c->out_requests || c->input == CONN_QUEUED || c->input == CONN_RUNNING ||
	       c->input == CONN_WAITING;
}

/*
 * Begins to send, unless the connection is leaving. False: it is gone. Requests count as answered
 * when their replies begin to be sent: a client that does not read is not slow service.
 */
static bool begin_send(struct conn *c)
{
	if (c->is_leaving || c->is_dead)
		return true;
	set_open(c, has_unanswered(c) ? c->out_came_ns : 0);
	if (ring_send(c))
		return true;
	conn_kill(c);
	return false;
}

/* Gives the memory of a large reply back. */
static void empty(struct resp_out *out, size_t max)
{
	uint8_t version = out->version;

	if (out->room <= OUT_BYTES_KEPT) {
		resp_out_reset(out);
		return;
	}
	resp_out_finish(out);
	resp_out_init(out, max);
	out->version = version;
}

/* The sending buffer has replies: it is held, or sent. False: the connection is gone. */
static bool hold_or_send(struct conn *c)
{
	if (c->sending_epoch && c->sending_epoch > oltp_durable_epoch(c->front->engine)) {
		if (!c->is_leaving)
			worker_hold(c->worker, c);
		return true;
	}
	return begin_send(c);
}

/*
 * Sends the replies that were collected, if those before them have been sent. False: the connection
 * is gone.
 */
static bool flush(struct conn *c)
{
	struct resp_out swap = c->sending;

	if (c->sending.n || !c->out.n)
		return true;
	c->sending = c->out;
	c->out = swap;
	c->out.version = c->sending.version;
	c->sent = 0;
	c->sending_epoch = c->out_epoch;
	c->out_epoch = 0;
	c->sending_requests = c->out_requests;
	c->sending_came_ns = c->out_came_ns;
	c->out_requests = 0;
	c->out_came_ns = c->worker->now_ns;
	return hold_or_send(c);
}

void conn_push(struct conn *c, const char *text, size_t n)
{
	resp_out_raw(&c->out, text, n);
	if (c->out.has_failed)
		conn_kill(c);
	else if (c->input != CONN_QUEUED)
		flush(c);
}

static bool is_idle(const struct conn *c)
{
	return c->input == CONN_READING && c->in_from == c->in_to && !c->sending.n && !c->out.n &&
	       !kv_session_is_busy(c->session);
}

/* True: it is gone. */
static bool close_if_idle(struct conn *c)
{
	if (!c->closes_when_idle || c->is_dead || !is_idle(c))
		return false;
	conn_kill(c);
	return true;
}

void conn_close_when_idle(struct conn *c)
{
	c->closes_when_idle = true;
	close_if_idle(c);
}

void conn_release(struct conn *c)
{
	link_remove(&c->held);
	begin_send(c);
}

/*
 * Makes room for more input: moves the unread rest to the start of the buffer. False: no memory.
 */
static bool make_room(struct conn *c)
{
	uint32_t left = c->in_to - c->in_from, room = c->in_room;
	char *in;

	if (c->in_from)
		memmove(c->in, c->in + c->in_from, left);
	c->in_from = 0;
	c->in_to = left;
	/* A request that has all the room that it may have is refused by the parser. */
	if (left == room || (c->has_filled && room < IN_BYTES_KEPT))
		room *= 2;
	else if (room > IN_BYTES_KEPT && left < IN_BYTES_MIN)
		room = IN_BYTES_MIN;
	if (room > c->front->config.request_bytes_max)
		room = c->front->config.request_bytes_max;
	if (room == c->in_room)
		return true;
	in = realloc(c->in, room);
	if (!in)
		return false;
	c->in = in;
	c->in_room = room;
	return true;
}

/* Begins to receive, unless the connection is leaving. False: it is gone. */
static bool receive(struct conn *c)
{
	c->input = CONN_READING;
	if (c->is_leaving || c->is_dead || (make_room(c) && ring_receive(c)))
		return true;
	conn_kill(c);
	return false;
}

/* No more requests; closed at once if nothing is to be sent. */
static void end_input(struct conn *c)
{
	link_remove(&c->queue);
	c->input = CONN_ENDED;
	if (!flush(c))
		return;
	if (c->sending.n)
		settle(c);
	else
		conn_kill(c);
}

void conn_received(struct conn *c, int32_t result)
{
	if (c->is_dead) {
		settle(c);
		return;
	}
	if (result > 0) {
		c->has_filled = (uint32_t)result == c->in_room - c->in_to;
		c->in_to += (uint32_t)result;
		if (c->in_to - c->in_from == (uint32_t)result && !c->out.n)
			c->out_came_ns = c->worker->now_ns;
		if (!c->open_ns)
			set_open(c, c->worker->now_ns);
		c->active_ns = c->worker->now_ns;
		c->worker->counts.received_bytes += (uint32_t)result;
		queue(c);
		settle(c);
	} else if (!result) {
		end_input(c);
	} else if (result == -ECANCELED || result == -EINTR || result == -EAGAIN) {
		if (receive(c))
			settle(c);
	} else {
		conn_kill(c);
	}
}

/* After replies were sent: what waits for that. */
static void after_sent(struct conn *c)
{
	if (!flush(c))
		return;
	if (c->input == CONN_PAUSED && c->out.n < output_soft_max(c))
		queue(c);
	if (c->input == CONN_ENDED && !c->sending.n && !c->out.n)
		conn_kill(c);
	else if (!close_if_idle(c))
		settle(c);
}

void conn_sent(struct conn *c, int32_t result)
{
	if (c->is_dead) {
		settle(c);
		return;
	}
	if (result == -ECANCELED || result == -EINTR || result == -EAGAIN)
		result = 0;
	if (result < 0) {
		conn_kill(c);
		return;
	}
	c->sent += (uint32_t)result;
	c->worker->counts.sent_bytes += (uint32_t)result;
	c->active_ns = c->worker->now_ns;
	if (c->sent < c->sending.n) {
		if (begin_send(c))
			settle(c);
		return;
	}
	c->worker->counts.replied += c->sending_requests;
	c->worker->counts.reply_ns += c->sending_requests *
				      (c->worker->now_ns - c->sending_came_ns);
	c->sending_requests = 0;
	empty(&c->sending, c->front->config.output_bytes_max);
	after_sent(c);
}

void conn_leave(struct conn *c)
{
	if (c->is_dead || c->is_leaving)
		return;
	c->is_leaving = true;
	stop_waiting(c);
	link_remove(&c->queue);
	link_remove(&c->held);
	ring_cancel(c);
	settle(c);
}

void conn_adopted(struct conn *c)
{
	c->active_ns = c->worker->now_ns;
	switch (c->input) {
	case CONN_QUEUED:
		queue(c);
		break;
	case CONN_READING:
		if (!receive(c))
			return;
		break;
	case CONN_RUNNING:
	case CONN_PAUSED:
	case CONN_WAITING:
	case CONN_ENDED:
		break;
	}
	if (c->sending.n)
		hold_or_send(c);
	else
		after_sent(c);
}

void conn_requeue(struct conn *c)
{
	c->is_retry = true;
	queue(c);
	settle(c);
}

/* The next whole request, if there is one. False: there is none, and the state is another. */
static bool parse(struct conn *c)
{
	for (;;) {
		size_t used;

		switch (resp_parse(&c->parser, c->in + c->in_from, c->in_to - c->in_from, &used)) {
		case RESP_REQUEST:
			c->request_bytes = (uint32_t)used;
			c->has_request = c->parser.n_args;
			if (c->has_request)
				return true;
			c->in_from += c->request_bytes;
			break;
		case RESP_MORE:
			link_remove(&c->queue);
			c->turn = 0;
			if (!flush(c) || !receive(c))
				return false;
			/* Half a request is none. */
			if (!c->out_requests && !is_held(c))
				set_open(c, 0);
			close_if_idle(c);
			return false;
		case RESP_ERROR:
			c->worker->counts.protocol_errors++;
			resp_out_error(&c->out, c->parser.error);
			end_input(c);
			return false;
		}
	}
}

bool conn_next(struct conn *c)
{
	/* A command that was tried before may have keys that the other node waits for. */
	if (!c->is_retry && c->out.n >= output_soft_max(c)) {
		if (!flush(c))
			return false;
		if (c->out.n >= output_soft_max(c)) {
			link_remove(&c->queue);
			c->input = CONN_PAUSED;
			return false;
		}
	}
	if (c->turn >= NET_TURN_REQUESTS) {
		c->turn = 0;
		if (!flush(c))
			return false;
		worker_queue(c->worker, c);
		return false;
	}
	return c->has_request || parse(c);
}

/*
 * From when it met keys of another node until it was answered. The log's interval began anew when
 * they came, so that the whole of it would be added to the pause.
 */
static void end_pause(struct conn *c, uint64_t epoch)
{
	uint64_t pause_ns, most;

	if (!c->waited_ns)
		return;
	if (c->front->config.holds_replies && epoch > oltp_durable_epoch(c->front->engine))
		oltp_durable_hurry(c->front->engine);
	pause_ns = clock_now_ns() - c->waited_ns;
	c->waited_ns = 0;
	hist_add(&c->front->pauses, pause_ns, 1);
	most = atomic_load(&c->front->pause_max_ns);
	while (most < pause_ns &&
	       !atomic_compare_exchange_weak(&c->front->pause_max_ns, &most, pause_ns))
		;
}

/* Its last request may have given it that name, or another. */
static void count_observer(struct conn *c)
{
	bool is_observer = kv_session_is_observer(c->session);

	if (is_observer == c->is_observer)
		return;
	c->is_observer = is_observer;
	if (is_observer)
		atomic_fetch_add(&c->front->n_observers, 1);
	else
		atomic_fetch_sub(&c->front->n_observers, 1);
}

/* Nobody reads from the connection while its request waits, so its end is not seen otherwise. */
static bool has_hung_up(const struct conn *c)
{
	struct pollfd look = { .fd = c->fd, .events = POLLRDHUP };

	return poll(&look, 1, 0) == 1 && look.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

void conn_answered(struct conn *c, uint64_t epoch, enum kv_after after)
{
	bool was_running = c->input == CONN_RUNNING;

	if (after == KV_WAIT) {
		bool is_again = c->waited_ns;

		if (!is_again)
			c->waited_ns = clock_now_ns();
		link_remove(&c->queue);
		c->is_retry = true;
		c->input = CONN_WAITING;
		/* It was killed while it ran: before it is gone nobody may wake it any more. */
		if (was_running && (c->is_leaving || c->is_dead)) {
			stop_waiting(c);
			settle(c);
		} else if (is_again && has_hung_up(c)) {
			/* It would call units from the other node for nobody. */
			conn_kill(c);
		} else {
			/* Replies to the requests before it need not wait with it. */
			flush(c);
		}
		return;
	}
	c->input = CONN_QUEUED;
	if (after == KV_AGAIN) {
		c->is_retry = true;
		c->turn = NET_TURN_REQUESTS;
	} else {
		c->has_request = c->is_retry = false;
		c->in_from += c->request_bytes;
		c->turn++;
		c->worker->counts.requests++;
		c->out_requests++;
		end_pause(c, epoch);
		count_observer(c);
	}
	if (c->front->config.holds_replies && epoch > c->out_epoch)
		c->out_epoch = epoch;
	if (c->out.has_failed) {
		c->worker->counts.overflows++;
		conn_kill(c);
	} else if (after == KV_CLOSE) {
		end_input(c);
	} else if (was_running) {
		queue(c);
		settle(c);
	}
}
