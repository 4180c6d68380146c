// SPDX-License-Identifier: GPL-2.0-or-later
/* See exchange.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "exchange.h"
#include "oltp-engine/load/decide/queue.h"
#include "oltp-engine/load/wire/conn.h"
#include "oltp-engine/load/wire/push.h"
#include "oltp-engine/src/base/clock.h"

#define EVENTS_MAX	64
/* How often connections are looked over for overdue ones. */
#define OVERDUE_NS	10000000ull
/* Begins an error reply of a server whose database has moved: the request was not executed. */
#define TRY_AGAIN	"-TRYAGAIN"

/* A connection and what is under way on it. */
struct line {
	struct wire_conn conn;
	struct load_request request;	/* BUSY: whose answer is awaited */
	uint32_t replies;		/* of it, so far */
	enum load_verdict verdict;	/* the worst of them */
	struct load_answer answer;
	bool is_try_again;		/* the last one says so */
	uint64_t sent_ns;
	uint32_t generation;		/* of the socket: events of an older one are void */
};

struct exchange {
	struct exchange_config config;
	struct wire_address nodes[LOAD_NODES_MAX];
	struct load_pool pool;
	struct load_queue *queue;
	struct load_figures figures;
	struct line *lines;
	int epoll_fd;
	int error;			/* what ends the exchange: no memory */
	uint32_t under_way;
	uint64_t pushes, bad_pushes;
	uint64_t look_ns;		/* when overdue connections are looked for again */
	bool has_error_reply;		/* error_text is the server's, and stays */
	char error_text[EXCHANGE_ERROR_BYTES];
};

int exchange_create(const struct exchange_config *config, struct exchange **ret_exchange)
{
	struct exchange *x = calloc(1, sizeof(*x));
	int rc;

	if (!x)
		return -ENOMEM;
	x->config = *config;
	memcpy(x->nodes, config->nodes, config->n_nodes * sizeof(*x->nodes));
	x->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	rc = x->epoll_fd < 0 ? -errno : 0;
	if (!rc)
		rc = load_pool_init(&x->pool, config->connections, config->n_nodes,
				    &config->bounds);
	x->queue = load_queue_create(config->queue_room, config->wait_ns);
	x->lines = calloc(config->connections, sizeof(*x->lines));
	if (!rc && (!x->queue || !x->lines))
		rc = -ENOMEM;
	for (uint32_t i = 0; x->lines && i < config->connections; i++)
		x->lines[i].conn.fd = -1;
	if (rc)
		exchange_destroy(x);
	else
		*ret_exchange = x;
	return rc;
}

void exchange_destroy(struct exchange *x)
{
	if (!x)
		return;
	for (uint32_t i = 0; x->lines && i < x->config.connections; i++)
		wire_conn_free(&x->lines[i].conn);
	free(x->lines);
	load_queue_destroy(x->queue);
	load_pool_finish(&x->pool);
	if (x->epoll_fd >= 0)
		close(x->epoll_fd);
	free(x);
}

/* The first error reply is kept; until there is one, what was last in the way of connecting. */
static void note_error(struct exchange *x, bool is_reply, const char *text, size_t n)
{
	if (x->has_error_reply)
		return;
	x->has_error_reply = is_reply;
	snprintf(x->error_text, sizeof(x->error_text), "%.*s", (int)n, text);
}

/* node: where it was sent, or LOAD_NO_NODE. */
static void fail(struct exchange *x, const struct load_request *request, uint32_t node,
		 enum load_failure why, bool may_be_executed)
{
	load_figures_fail(&x->figures, node, request->kind, why);
	x->config.on_failed(x->config.ctx, request, why, may_be_executed);
}

void exchange_add(struct exchange *x, const struct load_request *request)
{
	x->figures.arrived++;
	if (!load_queue_add(x->queue, request))
		fail(x, request, LOAD_NO_NODE, LOAD_FAIL_QUEUE, false);
}

/* Sends a request again that was not answered, if there is time. */
static bool repeat(struct exchange *x, const struct load_request *request, uint64_t now_ns)
{
	if (now_ns - request->arrived_ns >= x->config.wait_ns ||
	    !load_queue_return(x->queue, request))
		return false;
	x->figures.repeated++;
	return true;
}

/* The request under way on a connection that broke: sent again if that is safe and in time. */
static void break_off(struct exchange *x, uint32_t i, bool is_timeout, uint64_t now_ns)
{
	struct line *line = &x->lines[i];
	const struct load_request *request = &line->request;
	bool is_all_sent = line->conn.out.first == line->conn.out.end;

	x->under_way--;
	if (load_may_repeat(request, is_all_sent) && !is_timeout && repeat(x, request, now_ns))
		return;
	fail(x, request, x->pool.conns[i].node, is_timeout ? LOAD_FAIL_TIMEOUT : LOAD_FAIL_BROKEN,
	     is_all_sent);
}

/* rc: why, -errno. */
static void lose(struct exchange *x, uint32_t i, int rc, uint64_t now_ns)
{
	struct line *line = &x->lines[i];
	enum load_conn_state state = x->pool.conns[i].state;

	if (rc == -ENOMEM)
		x->error = rc;
	if (state == LOAD_CONN_OPENING) {
		char text[EXCHANGE_ERROR_BYTES];
		int n = snprintf(text, sizeof(text), "%.100s: %s",
				 x->nodes[x->pool.conns[i].node].text, strerror(-rc));

		note_error(x, false, text, (size_t)n);
	}
	if (state == LOAD_CONN_BUSY)
		break_off(x, i, rc == -ETIMEDOUT, now_ns);
	wire_conn_close(&line->conn);
	load_pool_lost(&x->pool, i, now_ns);
}

static void open_all(struct exchange *x, uint64_t now_ns)
{
	int32_t i;

	while ((i = load_pool_next(&x->pool, now_ns)) >= 0) {
		struct line *line = &x->lines[i];
		int rc;

		/* One that moves still has the socket to its old node. */
		wire_conn_close(&line->conn);
		line->generation++;
		rc = load_write_greeting(&line->conn.out, x->config.version, x->config.password,
					 LOAD_CLIENT_NAME);
		if (!rc)
			rc = wire_conn_open(&line->conn, &x->nodes[x->pool.conns[i].node],
					    x->epoll_fd,
					    (uint64_t)line->generation << 32 | (uint32_t)i);
		if (rc)
			lose(x, (uint32_t)i, rc, now_ns);
	}
}

static void dispatch(struct exchange *x, uint64_t now_ns)
{
	struct load_request request;
	int32_t i;

	while (load_queue_drop(x->queue, now_ns, &request))
		fail(x, &request, LOAD_NO_NODE, LOAD_FAIL_QUEUE, false);
	while (load_queue_length(x->queue) && (i = load_pool_take(&x->pool, now_ns)) >= 0) {
		struct line *line = &x->lines[i];
		int rc;

		load_queue_take(x->queue, &line->request);
		line->replies = 0;
		line->verdict = LOAD_GOOD;
		line->answer = (struct load_answer){ 0 };
		line->sent_ns = now_ns;
		x->under_way++;
		x->figures.sent++;
		rc = load_write_request(&line->conn.out, &line->request, &x->config.shape);
		if (!rc)
			rc = wire_conn_send(&line->conn);
		if (rc)
			lose(x, (uint32_t)i, rc, now_ns);
	}
}

static void overdue(struct exchange *x, uint64_t now_ns)
{
	int32_t i;

	if (now_ns < x->look_ns)
		return;
	x->look_ns = now_ns + OVERDUE_NS;
	while ((i = load_pool_overdue(&x->pool, now_ns)) >= 0)
		lose(x, (uint32_t)i, -ETIMEDOUT, now_ns);
}

/* The number of that node, which is added if it is new; -1: too many. */
static int32_t node_of(struct exchange *x, const struct wire_address *address)
{
	for (uint32_t i = 0; i < x->pool.n_nodes; i++) {
		if (wire_address_equal(&x->nodes[i], address))
			return (int32_t)i;
	}
	if (x->pool.n_nodes == LOAD_NODES_MAX)
		return -1;
	x->nodes[x->pool.n_nodes] = *address;
	return (int32_t)x->pool.n_nodes++;
}

static void hear_push(struct exchange *x, uint32_t i, const char *bytes, size_t n,
		      uint64_t now_ns)
{
	struct push_relocate push;
	struct wire_address address;
	int32_t node = -1;
	int rc = push_parse(bytes, n, &push);

	if (!rc)
		return;
	if (rc > 0 && !wire_address_parse(push.address, true, &address))
		node = node_of(x, &address);
	if (node >= 0 && load_pool_relocate(&x->pool, i, (uint32_t)node, push.count, now_ns))
		x->pushes++;
	else
		x->bad_pushes++;
}

/* Returns 0 or why the connection is of no use. */
static int hear_greeting(struct exchange *x, uint32_t i, const char *bytes, size_t n,
			 uint64_t now_ns)
{
	if (*bytes == '-') {
		note_error(x, true, bytes + 1, n - 3);
		return -EACCES;
	}
	load_pool_opened(&x->pool, i, now_ns);
	return 0;
}

static void finish(struct exchange *x, uint32_t i, uint64_t now_ns)
{
	struct line *line = &x->lines[i];
	const struct load_request request = line->request;
	uint32_t node = x->pool.conns[i].node;

	x->under_way--;
	load_pool_freed(&x->pool, i, now_ns);
	if (line->verdict == LOAD_REFUSED && line->is_try_again && repeat(x, &request, now_ns))
		return;
	if (line->verdict != LOAD_GOOD) {
		fail(x, &request, node,
		     line->verdict == LOAD_REFUSED ? LOAD_FAIL_ERROR : LOAD_FAIL_WRONG, false);
		return;
	}
	load_figures_done(&x->figures, node, request.kind, now_ns - request.arrived_ns,
			  now_ns - line->sent_ns);
	x->config.on_done(x->config.ctx, &request, &line->answer);
}

static void hear_answer(struct exchange *x, uint32_t i, const char *bytes, size_t n,
			uint64_t now_ns)
{
	struct line *line = &x->lines[i];
	enum load_verdict verdict = load_judge(&line->request, &x->config.shape,
					       line->replies, bytes, n, &line->answer);

	line->is_try_again = n > sizeof(TRY_AGAIN) &&
			     !memcmp(bytes, TRY_AGAIN, sizeof(TRY_AGAIN) - 1);
	if (*bytes == '-' && !line->is_try_again)
		note_error(x, true, bytes + 1, n - 3);
	if (verdict > line->verdict)
		line->verdict = verdict;
	if (++line->replies == load_replies(&line->request))
		finish(x, i, now_ns);
}

/* Returns 0 or why the connection is of no use. */
static int hear(struct exchange *x, uint32_t i, const char *bytes, size_t n, uint64_t now_ns)
{
	if (*bytes == '>') {
		hear_push(x, i, bytes, n, now_ns);
		return 0;
	}
	switch (x->pool.conns[i].state) {
	case LOAD_CONN_OPENING:
		return hear_greeting(x, i, bytes, n, now_ns);
	case LOAD_CONN_BUSY:
		hear_answer(x, i, bytes, n, now_ns);
		return 0;
	default:
		/* Nothing was asked. A server that is full says so before it closes. */
		return -EPROTO;
	}
}

static void serve(struct exchange *x, uint32_t i, uint32_t events)
{
	struct wire_conn *conn = &x->lines[i].conn;
	uint64_t now_ns;
	int rc = wire_conn_serve(conn, events), broken = 0;
	const char *bytes;
	size_t n;

	now_ns = clock_now_ns();
	/* One that moves is DOWN: its old node has nothing more to say. */
	while (!broken && x->pool.conns[i].state != LOAD_CONN_DOWN) {
		int found = wire_conn_reply(conn, &bytes, &n);

		if (found > 0) {
			broken = hear(x, i, bytes, n, now_ns);
			wire_conn_consume(conn, n);
		} else {
			broken = found ? found : rc;
			break;
		}
	}
	if (broken && x->pool.conns[i].state != LOAD_CONN_DOWN)
		lose(x, i, broken, now_ns);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int wait_for_events(struct exchange *x, uint64_t until_ns)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t now_ns = clock_now_ns();
	struct timespec time = clock_timespec(until_ns > now_ns ? until_ns - now_ns : 0);
	int n = epoll_pwait2(x->epoll_fd, events, EVENTS_MAX, &time, NULL);

	if (n < 0)
		return -errno;
	for (int e = 0; e < n; e++) {
		uint32_t i = (uint32_t)events[e].data.u64;

		if (x->lines[i].generation == events[e].data.u64 >> 32 && x->lines[i].conn.fd >= 0)
			serve(x, i, events[e].events);
	}
	return x->error;
}

int exchange_turn(struct exchange *x, uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	overdue(x, now_ns);
	open_all(x, now_ns);
	dispatch(x, now_ns);
	if (x->error)
		return x->error;
	until_ns = least(until_ns, load_queue_expires(x->queue));
	until_ns = least(until_ns, load_pool_wake(&x->pool));
	return wait_for_events(x, least(until_ns, x->look_ns));
}

uint32_t exchange_pending(const struct exchange *x)
{
	return load_queue_length(x->queue) + x->under_way;
}

void exchange_state(const struct exchange *x, struct exchange_state *ret_state)
{
	*ret_state = (struct exchange_state){
		.queue = load_queue_length(x->queue),
		.under_way = x->under_way,
		.n_nodes = x->pool.n_nodes,
		.was_refused = x->has_error_reply,
		.moves = x->pool.moves,
		.pushes = x->pushes,
		.bad_pushes = x->bad_pushes,
	};
	for (uint32_t i = 0; i < x->pool.n_nodes; i++)
		ret_state->connected[i] = load_pool_connected(&x->pool, i);
}

const struct wire_address *exchange_address(const struct exchange *x, uint32_t node)
{
	return &x->nodes[node];
}

void exchange_figures(struct exchange *x, struct load_figures *ret_figures)
{
	*ret_figures = x->figures;
	x->figures = (struct load_figures){ 0 };
}

const char *exchange_error(const struct exchange *x)
{
	return x->error_text;
}
