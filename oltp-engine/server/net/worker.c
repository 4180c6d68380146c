// SPDX-License-Identifier: GPL-2.0-or-later
/* A worker of the pool as the front sees it: the hooks of the pool (oltp.h), and their state. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "front.h"
#include "oltp-engine/src/base/clock.h"

/* A worker whose queue never gets empty looks at its ring after that many requests. */
#define RUNS_PER_LOOK	256u

#define SWEEP_NS	1000000000ull

void worker_queue(struct net_worker *w, struct conn *c)
{
	link_remove(&c->queue);
	link_add(&w->queue, &c->queue);
}

void worker_hold(struct net_worker *w, struct conn *c)
{
	if (link_is_empty(&w->held) || c->sending_epoch < w->held_epoch)
		w->held_epoch = c->sending_epoch;
	link_add(&w->held, &c->held);
}

static int attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	struct net_front *front = ctx;
	struct net_worker *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	w->front = front;
	w->worker = worker;
	link_init(&w->all);
	link_init(&w->queue);
	link_init(&w->held);
	link_init(&w->inbox);
	link_init(&w->woken);
	w->event_fd = eventfd(0, EFD_CLOEXEC);
	if (w->event_fd < 0) {
		rc = -errno;
		goto out_free;
	}
	rc = oltp_durable_watch_create(front->engine, w->event_fd, &w->watch);
	if (rc)
		goto out_close;
	rc = ring_init(w);
	if (rc)
		goto out_watch;
	w->now_ns = clock_now_ns();
	place_worker_add(w);
	*ret_local = w;
	return 0;
out_watch:
	oltp_durable_watch_destroy(w->watch);
out_close:
	close(w->event_fd);
out_free:
	free(w);
	return rc;
}

static void add(_Atomic uint64_t *to, uint64_t *from)
{
	if (*from)
		atomic_fetch_add_explicit(to, *from, memory_order_relaxed);
	*from = 0;
}

/* Together, so that nobody sees the one without the other. */
static void publish_open(struct net_worker *w)
{
	if (!w->counts.open && !w->counts.open_came_ns)
		return;
	pthread_mutex_lock(&w->front->lock);
	w->front->open += w->counts.open;
	w->front->open_came_ns += w->counts.open_came_ns;
	pthread_mutex_unlock(&w->front->lock);
	w->counts.open = w->counts.open_came_ns = 0;
}

static void publish_counts(struct net_worker *w)
{
	struct net_front *front = w->front;

	add(&front->received_bytes, &w->counts.received_bytes);
	add(&front->sent_bytes, &w->counts.sent_bytes);
	add(&front->requests, &w->counts.requests);
	add(&front->moved, &w->counts.moved);
	add(&front->protocol_errors, &w->counts.protocol_errors);
	add(&front->overflows, &w->counts.overflows);
	add(&front->idle_closed, &w->counts.idle_closed);
	add(&front->replied, &w->counts.replied);
	add(&front->reply_ns, &w->counts.reply_ns);
	publish_open(w);
}

static void take_mail(struct net_worker *w)
{
	struct place_mail mail;
	struct link list;

	if (!atomic_load_explicit(&w->has_mail, memory_order_acquire))
		return;
	link_init(&list);
	mail = place_take(w, &list);
	for (struct conn *c = place_woken(w); c; c = place_woken(w)) {
		if (c->input == CONN_WAITING)
			conn_requeue(c);
	}
	while (!link_is_empty(&list)) {
		struct conn *c = link_entry(list.next, struct conn, all);

		link_remove(&c->all);
		link_add(&w->all, &c->all);
		c->worker = w;
		drain_adopt(c);
		conn_adopted(c);
	}
	for (struct link *at = w->all.next, *next; mail.n_surplus && at != &w->all; at = next) {
		next = at->next;
		conn_leave(link_entry(at, struct conn, all));
		mail.n_surplus--;
	}
	if (mail.has_drain)
		drain_look(w);
}

/* Sends what is durable by now. Once the log has failed, the rest will never be. */
static void release_held(struct net_worker *w)
{
	struct oltp_durable_stats stats = { .has_failed = false };
	struct link *at, *next;
	uint64_t durable;

	if (link_is_empty(&w->held))
		return;
	durable = oltp_durable_epoch(w->front->engine);
	if (durable < w->held_epoch) {
		if (oltp_durable_watch_set(w->watch, w->held_epoch))
			return;
		/* It is durable, or the log does not run; the last group may have come since. */
		oltp_durable_stats_read(w->front->engine, &stats);
		durable = oltp_durable_epoch(w->front->engine);
	}
	w->held_epoch = UINT64_MAX;
	for (at = w->held.next; at != &w->held; at = next) {
		struct conn *c = link_entry(at, struct conn, held);

		next = at->next;
		if (c->sending_epoch <= durable)
			conn_release(c);
		else if (stats.has_failed)
			conn_kill(c);
		else if (c->sending_epoch < w->held_epoch)
			w->held_epoch = c->sending_epoch;
	}
}

static void sweep_idle(struct net_worker *w)
{
	uint64_t most_ns = w->front->config.idle_seconds_max * 1000000000ull;

	if (!most_ns || w->now_ns < w->sweep_ns)
		return;
	w->sweep_ns = w->now_ns + SWEEP_NS;
	for (struct link *at = w->all.next, *next; at != &w->all; at = next) {
		struct conn *c = link_entry(at, struct conn, all);

		next = at->next;
		/* One that waits for the engine is not idle. */
		if (w->now_ns - c->active_ns < most_ns || c->input == CONN_RUNNING ||
		    c->input == CONN_WAITING ||
		    c->input == CONN_QUEUED || !link_is_empty(&c->held))
			continue;
		w->counts.idle_closed++;
		conn_kill(c);
	}
}

/*
 * The ring without a system call, unless there is no other chance for one: the queue is long, or
 * the pool has something else to do than to wait.
 */
static void look(struct net_worker *w)
{
	bool enters = !link_is_empty(&w->queue) || w->has_looked;

	w->runs = 0;
	w->has_looked = true;
	w->now_ns = clock_now_ns();
	ring_look(w, enters);
	take_mail(w);
	release_held(w);
	sweep_idle(w);
	publish_counts(w);
}

static bool ready(void *local)
{
	struct net_worker *w = local;

	if (link_is_empty(&w->queue) || w->runs >= RUNS_PER_LOOK)
		look(w);
	while (!link_is_empty(&w->queue)) {
		if (conn_next(link_entry(w->queue.next, struct conn, queue)))
			return true;
	}
	return false;
}

static void wait(void *local, uint64_t until_ns)
{
	struct net_worker *w = local;

	w->has_looked = false;
	if (!link_is_empty(&w->queue))
		return;
	/* What was held since ready looked: the log may have written it by now. */
	if (!link_is_empty(&w->held) && !oltp_durable_watch_set(w->watch, w->held_epoch))
		return;
	if (w->front->config.idle_seconds_max && !link_is_empty(&w->all) && w->sweep_ns < until_ns)
		until_ns = w->sweep_ns;
	/* It may sleep for long, and so may what is open now. */
	publish_open(w);
	ring_wait(w, until_ns);
}

static void wake(void *local)
{
	struct net_worker *w = local;

	(void)eventfd_write(w->event_fd, 1);
}

static enum oltp_rc run(void *local, uint32_t slot, bool retry)
{
	struct net_worker *w = local;
	struct conn *c = retry ? w->slots[slot] : link_entry(w->queue.next, struct conn, queue);
	enum kv_after after = KV_GO_ON;
	uint64_t epoch = 0;
	enum oltp_rc rc;

	w->runs++;
	rc = kv_run(c->session, w->worker, c->parser.args, c->parser.n_args, c->is_retry, &c->out,
		    &epoch, &after);
	if (rc == OLTP_CONFLICT || rc == OLTP_COLD) {
		c->is_retry = true;
		c->input = CONN_RUNNING;
		link_remove(&c->queue);
		w->slots[slot] = c;
		return rc;
	}
	w->slots[slot] = NULL;
	conn_answered(c, epoch, after);
	return OLTP_OK;
}

static void give_up(void *local, uint32_t slot, enum oltp_rc rc)
{
	struct net_worker *w = local;
	struct conn *c = w->slots[slot];

	w->slots[slot] = NULL;
	if (rc == OLTP_COLD) {
		conn_requeue(c);
		return;
	}
	kv_give_up(c->session, rc, &c->out);
	conn_answered(c, 0, KV_GO_ON);
}

static void stop(void *local)
{
	struct net_worker *w = local;

	place_worker_remove(w);
	for (struct link *at = w->all.next, *next; at != &w->all; at = next) {
		next = at->next;
		conn_leave(link_entry(at, struct conn, all));
	}
	while (w->under_way) {
		ring_wait(w, UINT64_MAX);
		ring_look(w, false);
	}
}

/* Requests that were RUNNING have ended, and their connections left: nothing is here. */
static void detach(void *local)
{
	struct net_worker *w = local;

	publish_counts(w);
	ring_finish(w);
	oltp_durable_watch_destroy(w->watch);
	close(w->event_fd);
	free(w);
}

struct oltp_workload net_workload(struct net_front *front)
{
	return (struct oltp_workload){ .attach = attach, .run = run, .detach = detach,
				       .ctx = front };
}

const struct oltp_feed net_feed = {
	.ready = ready, .wait = wait, .wake = wake, .stop = stop, .give_up = give_up,
};
