/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See virt-pool.h. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "backend/real/virt-pool.h"
#include "util/clock.h"

struct slot {
	struct slot *next;
	virConnectPtr conn;
	uint64_t era;		/* of the pool when the connection was opened */
	usec_t lent_at;
};

struct ebb_virt_pool {
	char *uri;
	usec_t longest_usec;
	pthread_mutex_t lock;
	/* Under the lock. */
	struct slot *idle, *lent;
	bool is_open;
	uint64_t era;		/* changes when the pool is shut */
};

static void discard(struct slot *s)
{
	if (s && s->conn)
		virConnectClose(s->conn);
	free(s);
}

struct ebb_virt_pool *ebb_virt_pool_create(const char *uri, usec_t longest_usec)
{
	struct ebb_virt_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->uri = strdup(uri);
	if (!p->uri) {
		free(p);
		return NULL;
	}
	p->longest_usec = longest_usec;
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void ebb_virt_pool_destroy(struct ebb_virt_pool *p)
{
	if (!p)
		return;
	ebb_virt_pool_shut(p);
	pthread_mutex_destroy(&p->lock);
	free(p->uri);
	free(p);
}

void ebb_virt_pool_open(struct ebb_virt_pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->is_open = true;
	pthread_mutex_unlock(&p->lock);
}

void ebb_virt_pool_shut(struct ebb_virt_pool *p)
{
	struct slot *s;

	pthread_mutex_lock(&p->lock);
	p->is_open = false;
	p->era++;
	s = p->idle;
	p->idle = NULL;
	pthread_mutex_unlock(&p->lock);
	while (s) {
		struct slot *next = s->next;

		discard(s);
		s = next;
	}
}

/* An idle connection, a slot without one, or NULL if the pool is shut. */
static struct slot *take(struct ebb_virt_pool *p)
{
	struct slot *s = NULL;

	pthread_mutex_lock(&p->lock);
	if (p->is_open) {
		s = p->idle;
		if (s)
			p->idle = s->next;
		else
			s = calloc(1, sizeof(*s));
		if (s && !s->conn)
			s->era = p->era;
	}
	pthread_mutex_unlock(&p->lock);
	return s;
}

static void connect_slot(struct ebb_virt_pool *p, struct slot *s)
{
	s->conn = virConnectOpen(p->uri);
	/* Not every driver has keepalive (the test driver has none): then it needs none. */
	if (s->conn)
		virConnectSetKeepAlive(s->conn, EBB_VIRT_KEEPALIVE_SEC, EBB_VIRT_KEEPALIVE_COUNT);
}

virConnectPtr ebb_virt_pool_get(struct ebb_virt_pool *p)
{
	struct slot *s = take(p);

	while (s && s->conn && virConnectIsAlive(s->conn) <= 0) {
		discard(s);
		s = take(p);
	}
	if (s && !s->conn)
		connect_slot(p, s);
	if (!s || !s->conn) {
		discard(s);
		return NULL;
	}
	s->lent_at = ebb_clock_mono_usec();
	pthread_mutex_lock(&p->lock);
	s->next = p->lent;
	p->lent = s;
	pthread_mutex_unlock(&p->lock);
	return s->conn;
}

void ebb_virt_pool_put(struct ebb_virt_pool *p, virConnectPtr conn)
{
	const usec_t now = ebb_clock_mono_usec();
	struct slot **at, *s;
	bool is_kept;

	pthread_mutex_lock(&p->lock);
	for (at = &p->lent; (*at)->conn != conn; at = &(*at)->next)
		;
	s = *at;
	*at = s->next;
	is_kept = p->is_open && s->era == p->era && now - s->lent_at < p->longest_usec;
	if (is_kept) {
		s->next = p->idle;
		p->idle = s;
	}
	pthread_mutex_unlock(&p->lock);
	if (!is_kept)
		discard(s);
}
