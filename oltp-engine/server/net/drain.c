// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connections that go to another node (docs/relocation-client.md): clients that speak RESP3 are
 * told, the others are closed between two transactions, and so are clients that were told and stay.
 * Observers want to see the end, so they are left alone. A client that comes meanwhile may speak of
 * the relocation only, and is closed soon.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "front.h"

/* Time for a client to end its transaction and to move by itself. */
#define PATIENCE_NS	3000000000ull

int net_drain(struct net_front *front, const char *to, uint32_t n)
{
	size_t length = to ? strlen(to) : 0;

	if (length > NET_ADDRESS_MAX || (to && !length))
		return -EINVAL;
	pthread_mutex_lock(&front->lock);
	front->is_draining = to;
	front->n_to_tell = n;
	if (to)
		snprintf(front->push, sizeof(front->push),
			 ">3\r\n$12\r\nebb-relocate\r\n$%zu\r\n%s\r\n:1\r\n", length, to);
	for (struct link *at = front->workers.next; at != &front->workers; at = at->next) {
		struct net_worker *w = link_entry(at, struct net_worker, workers);

		w->has_drain = true;
		place_tell(w);
	}
	pthread_mutex_unlock(&front->lock);
	return 0;
}

/* True: one more is to be told. */
static bool take_one(struct net_front *front, char ret_push[NET_PUSH_MAX])
{
	bool is_one;

	pthread_mutex_lock(&front->lock);
	is_one = front->n_to_tell > 0;
	if (is_one) {
		front->n_to_tell--;
		memcpy(ret_push, front->push, NET_PUSH_MAX);
	}
	pthread_mutex_unlock(&front->lock);
	return is_one;
}

/*
 * A client that was told and is still there stays, and may be told anew; one that came meanwhile is
 * closed and has to connect again.
 */
static void forget(struct conn *c)
{
	if (c->is_restricted) {
		c->closes_when_idle = true;
		return;
	}
	if (c->told_ns)
		atomic_fetch_sub(&c->front->n_told, 1);
	c->told_ns = 0;
	c->closes_when_idle = false;
}

void drain_adopt(struct conn *c)
{
	if (!atomic_load(&c->front->is_draining))
		forget(c);
}

static void forget_told(struct net_worker *w)
{
	for (struct link *at = w->all.next, *next; at != &w->all; at = next) {
		struct conn *c = link_entry(at, struct conn, all);

		next = at->next;
		if (c->is_dead || c->is_leaving)
			continue;
		forget(c);
		if (c->is_restricted)
			conn_close_when_idle(c);
	}
}

void drain_look(struct net_worker *w)
{
	char push[NET_PUSH_MAX];

	if (!atomic_load(&w->front->is_draining)) {
		forget_told(w);
		return;
	}
	for (struct link *at = w->all.next, *next; at != &w->all; at = next) {
		struct conn *c = link_entry(at, struct conn, all);

		next = at->next;
		if (c->is_dead || c->is_leaving || c->is_observer)
			continue;
		if (c->is_restricted && !c->told_ns) {
			/* It had better say at once what it wants. */
			c->told_ns = w->now_ns;
		} else if (!c->told_ns && take_one(w->front, push)) {
			c->told_ns = w->now_ns;
			atomic_fetch_add(&w->front->n_told, 1);
			if (c->out.version == 3)
				conn_push(c, push, strlen(push));
			else
				conn_close_when_idle(c);
		} else if (c->told_ns && w->now_ns - c->told_ns >= PATIENCE_NS) {
			conn_close_when_idle(c);
		}
	}
}
