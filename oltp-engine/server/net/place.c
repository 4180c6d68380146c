// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which worker a connection belongs to: the one that has the fewest. When a worker is added, those
 * that have more than the average hand the surplus on.
 */
#include <sys/eventfd.h>

#include "front.h"

/* Under the lock, so the worker is there. */
void place_tell(struct net_worker *w)
{
	atomic_store_explicit(&w->has_mail, true, memory_order_release);
	(void)eventfd_write(w->event_fd, 1);
}

static struct net_worker *with_fewest(struct net_front *front)
{
	struct net_worker *best = NULL;

	for (struct link *at = front->workers.next; at != &front->workers; at = at->next) {
		struct net_worker *w = link_entry(at, struct net_worker, workers);

		if (!best || w->n_conns < best->n_conns)
			best = w;
	}
	return best;
}

static void give(struct net_worker *w, struct conn *c)
{
	link_add(&w->inbox, &c->all);
	w->n_conns++;
	place_tell(w);
}

static void place_locked(struct net_front *front, struct conn *c)
{
	struct net_worker *w = with_fewest(front);

	if (w) {
		give(w, c);
		return;
	}
	link_add(&front->waiting, &c->all);
	front->n_waiting++;
}

void place_conn(struct net_front *front, struct conn *c)
{
	pthread_mutex_lock(&front->lock);
	place_locked(front, c);
	pthread_mutex_unlock(&front->lock);
}

/* Each of the others hands on what it has beyond the average. */
static void even_out(struct net_front *front)
{
	uint32_t n_workers = 0, n_conns = 0, most;

	for (struct link *at = front->workers.next; at != &front->workers; at = at->next) {
		n_workers++;
		n_conns += link_entry(at, struct net_worker, workers)->n_conns;
	}
	most = (n_conns + n_workers - 1) / n_workers;
	for (struct link *at = front->workers.next; at != &front->workers; at = at->next) {
		struct net_worker *w = link_entry(at, struct net_worker, workers);

		if (w->n_conns <= most)
			continue;
		w->n_surplus = w->n_conns - most;
		place_tell(w);
	}
}

void place_worker_add(struct net_worker *w)
{
	struct net_front *front = w->front;

	pthread_mutex_lock(&front->lock);
	link_add(&front->workers, &w->workers);
	while (!link_is_empty(&front->waiting)) {
		struct conn *c = link_entry(front->waiting.next, struct conn, all);

		link_remove(&c->all);
		give(w, c);
	}
	front->n_waiting = 0;
	even_out(front);
	pthread_mutex_unlock(&front->lock);
}

void place_worker_remove(struct net_worker *w)
{
	struct net_front *front = w->front;

	pthread_mutex_lock(&front->lock);
	link_remove(&w->workers);
	while (!link_is_empty(&w->inbox)) {
		struct conn *c = link_entry(w->inbox.next, struct conn, all);

		link_remove(&c->all);
		w->n_conns--;
		place_locked(front, c);
	}
	pthread_mutex_unlock(&front->lock);
}

void place_conn_gone(struct net_worker *w)
{
	pthread_mutex_lock(&w->front->lock);
	w->n_conns--;
	pthread_mutex_unlock(&w->front->lock);
}

struct place_mail place_take(struct net_worker *w, struct link *ret_list)
{
	struct place_mail mail;

	pthread_mutex_lock(&w->front->lock);
	atomic_store_explicit(&w->has_mail, false, memory_order_relaxed);
	link_splice(ret_list, &w->inbox);
	mail = (struct place_mail){ w->n_surplus, w->has_drain };
	w->n_surplus = 0;
	w->has_drain = false;
	pthread_mutex_unlock(&w->front->lock);
	return mail;
}

void place_conn_wake(void *conn)
{
	struct conn *c = conn;

	pthread_mutex_lock(&c->front->lock);
	if (link_is_empty(&c->woken))
		link_add(&c->worker->woken, &c->woken);
	place_tell(c->worker);
	pthread_mutex_unlock(&c->front->lock);
}

void place_conn_unwake(struct conn *c)
{
	pthread_mutex_lock(&c->front->lock);
	link_remove(&c->woken);
	pthread_mutex_unlock(&c->front->lock);
}

struct conn *place_woken(struct net_worker *w)
{
	struct conn *c = NULL;

	pthread_mutex_lock(&w->front->lock);
	if (!link_is_empty(&w->woken)) {
		c = link_entry(w->woken.next, struct conn, woken);
		link_remove(&c->woken);
	}
	pthread_mutex_unlock(&w->front->lock);
	return c;
}
