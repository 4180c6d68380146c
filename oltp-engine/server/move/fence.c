// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A peer that is fenced: what it has on disk is read by an engine beside the node's own.
 *
 * On the move's thread, however long it takes: there is no peer to talk to, and all that waits for
 * this thread then are units that stay closed until the peer's are here. Commands on units that are
 * here run on other threads.
 *
 * Everything that can fail comes before units_peer_fenced: so after an error the node is as it was,
 * goes on with the units that it has, and tries again. The records that came are behind closed
 * gates, and a restart removes them, until ALONE is on disk.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/server/move/private.h"

#define PUT_BYTES	(1u << 16)	/* of records put at once; above the longest */

struct peer {
	struct oltp_engine *engine;
	struct kv *kv;
	struct facts facts;
	struct oltp_worker *worker;
};

static void peer_close(struct peer *peer)
{
	oltp_worker_destroy(peer->worker);
	kv_close(peer->kv);
	oltp_engine_close(peer->engine);
}

static int peer_open(struct move *m, struct peer *peer)
{
	const struct oltp_config *given = m->config.fence->peer_config(m->config.fence_ctx);
	struct oltp_config config;
	int rc;

	if (!given)
		return -EAGAIN;
	config = *given;
	kv_engine_config(&config);
	rc = oltp_engine_open(&config, &peer->engine);
	if (!rc)
		rc = kv_open_peer(m->kv, peer->engine, &peer->kv);
	if (!rc)
		rc = facts_open(&peer->facts, peer->engine, m->terms.n_units);
	if (!rc)
		rc = oltp_recover(peer->engine, NULL, NULL);
	if (!rc)
		rc = oltp_worker_create(peer->engine, &peer->worker);
	return rc;
}

/* What the peer had when it was fenced. */
static int read_table(struct move *m, struct peer *peer)
{
	struct unit *list = calloc(m->terms.n_units, sizeof(*list));
	struct facts_found found;
	int rc;

	if (!list)
		return -ENOMEM;
	rc = facts_read(&peer->facts, peer->worker, !m->config.is_target, list, &found);
	/*
	 * A peer writes its incarnation before it says anything. Without, or with an older one than
	 * was heard of, this is another place, or an old copy.
	 */
	if (!rc && (!found.incarnation || found.incarnation < m->units.peer))
		rc = -ENODATA;
	/* It had units of an earlier relocation; since then another node has them. */
	if (!rc && found.was != UNITS_WAS_ALONE &&
	    found.role.relocation != m->terms.relocation)
		rc = -ENODATA;
	for (uint32_t u = 0; !rc && u < m->terms.n_units; u++)
		m->table[u] = (struct units_entry){ list[u].gen,
						    list[u].is_mine ? UNITS_MINE : UNITS_NOT };
	free(list);
	return rc;
}

static bool is_told_quit(struct move *m)
{
	bool is_told;

	pthread_mutex_lock(&m->lock);
	is_told = m->is_told_quit;
	pthread_mutex_unlock(&m->lock);
	return is_told;
}

/* Records of the peer's engine on their way to this one's. */
struct copier {
	struct move *m;
	uint32_t unit;
	struct kv_unit_put put;
	uint32_t n;
	uint8_t bytes[PUT_BYTES];
};

static int copy_now(struct copier *c)
{
	int rc = kv_unit_put(c->m->kv, c->m->worker, c->unit, &c->put, c->bytes, c->n);

	c->n = 0;
	return rc;
}

static int copy_record(void *ctx, const uint8_t *record, uint32_t bytes)
{
	struct copier *c = ctx;
	int rc = 0;

	if (bytes > PUT_BYTES - c->n)
		rc = is_told_quit(c->m) ? -ECANCELED : copy_now(c);
	if (rc)
		return rc;
	memcpy(c->bytes + c->n, record, bytes);
	c->n += bytes;
	return 0;
}

static int copy_unit(struct move *m, struct peer *peer, struct copier *c, uint32_t unit)
{
	int rc = move_remove(m, unit);

	c->m = m;
	c->unit = unit;
	c->put = (struct kv_unit_put){ 0 };
	c->n = 0;
	/* Should this fail, what was put is removed. */
	move_mark_junk(m, unit);
	if (!rc)
		rc = kv_unit_read(peer->kv, peer->worker, unit, copy_record, c);
	if (!rc)
		rc = copy_now(c);
	if (!rc && c->put.fields_left)
		rc = -EUCLEAN;
	return rc;
}

static int copy_units(struct move *m, struct peer *peer, uint64_t *ret_n)
{
	struct copier *c = NULL;
	int rc = 0;

	*ret_n = 0;
	for (uint32_t u = 0; !rc && u < m->terms.n_units; u++) {
		if (!units_is_theirs(&m->units, u, &m->table[u]))
			continue;
		if (!c) {
			c = malloc(sizeof(*c));
			rc = c ? kv_start_peer(peer->kv, peer->worker, m->kv) : -ENOMEM;
		}
		if (!rc)
			rc = copy_unit(m, peer, c, u);
		++*ret_n;
	}
	free(c);
	return rc;
}

/* All records of the peer's units are here now, and stay. */
static void keep_units(struct move *m)
{
	for (uint32_t u = 0; u < m->terms.n_units; u++) {
		m->places[u].is_left = false;
		if (!units_is_theirs(&m->units, u, &m->table[u]))
			continue;
		m->n_junk -= m->places[u].has_junk;
		m->places[u].has_junk = false;
	}
}

static void take_over(struct move *m)
{
	struct peer peer = { 0 };
	uint64_t n = 0;
	int rc;

	rc = peer_open(m, &peer);
	if (!rc)
		rc = read_table(m, &peer);
	if (!rc)
		rc = copy_units(m, &peer, &n);
	peer_close(&peer);
	if (rc) {
		move_note_error(m, rc);
		m->fence_ns = move_now_ns() + m->units_config.fence_ns;
		return;
	}
	keep_units(m);
	pthread_mutex_lock(&m->lock);
	m->stats.recovered += n;
	m->stats.error = 0;
	pthread_mutex_unlock(&m->lock);
	units_peer_fenced(&m->units, m->table, &m->actions);
	move_act(m);
	if (m->units.mode == UNITS_STOPPED)
		move_note_error(m, -EUCLEAN);	/* a unit that neither node has */
}

static void obey_fence(struct move *m, enum move_fence answer)
{
	if (answer == MOVE_FENCE_LOST)
		move_stop(m, -EPERM);
	if (answer != MOVE_FENCE_WON || m->units.mode != UNITS_SHARED)
		return;
	m->is_peer_fenced = true;
	if (m->channel.fd >= 0)
		move_lost(m, 0);
	take_over(m);
}

static enum move_fence note_answer(struct move *m, enum move_fence answer)
{
	pthread_mutex_lock(&m->lock);
	m->stats.fence = answer;
	pthread_mutex_unlock(&m->lock);
	return answer;
}

void move_fence(struct move *m)
{
	const struct move_fence_ops *ops = m->config.fence;
	enum move_fence answer;

	if (m->units.mode == UNITS_STOPPED)
		return;
	if (m->units.mode == UNITS_ALONE)
		m->is_peer_fenced = false;
	if (move_now_ns() >= m->check_ns) {
		answer = note_answer(m, ops->is_fenced(m->config.fence_ctx));
		m->check_ns = answer == MOVE_FENCE_LATER ?
			      move_now_ns() + m->units_config.repeat_ns : NEVER;
		obey_fence(m, answer);
	}
	if (move_now_ns() >= m->fence_ns && move_is_stalled(m)) {
		m->fence_ns = move_now_ns() + m->units_config.repeat_ns;
	} else if (move_now_ns() >= m->fence_ns) {
		m->fence_ns = NEVER;
		if (m->units.mode == UNITS_SHARED)
			obey_fence(m, note_answer(m, ops->fence(m->config.fence_ctx)));
	}
}
