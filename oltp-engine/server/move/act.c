// SPDX-License-Identifier: GPL-2.0-or-later
/* Carries out actions of units.h, and reports when what takes longer is done. */
#include <errno.h>

#include "oltp-engine/server/move/private.h"

void move_note_error(struct move *m, int error)
{
	pthread_mutex_lock(&m->lock);
	m->stats.error = error;
	pthread_mutex_unlock(&m->lock);
}

void move_stop(struct move *m, int error)
{
	move_note_error(m, error);
	units_stop(&m->units, &m->actions);
	move_act(m);
}

void move_mark_junk(struct move *m, uint32_t unit)
{
	m->n_junk += !m->places[unit].has_junk;
	m->places[unit].has_junk = true;
	m->places[unit].came_gen = 0;
}

void move_unmark_junk(struct move *m, uint32_t unit)
{
	m->n_junk -= m->places[unit].has_junk;
	m->places[unit].has_junk = false;
}

int move_remove_part(struct move *m, uint32_t unit)
{
	struct place *place = &m->places[unit];
	int rc = kv_unit_remove_part(m->kv, m->worker, unit);

	place->came_gen = 0;
	if (!rc)
		move_unmark_junk(m, unit);
	return rc;
}

int move_remove(struct move *m, uint32_t unit)
{
	int rc;

	do
		rc = move_remove_part(m, unit);
	while (rc > 0);
	return rc;
}

static void force(struct move *m, const struct units_action *action)
{
	struct forced forced = { .action = *action };
	int rc = facts_write(&m->facts, m->worker, (enum units_do)action->what, action->unit,
			     action->gen, m->list, m->terms.relocation, &forced.epoch);

	if (rc) {
		move_note_error(m, rc);
		forced.has_failed = true;
	}
	/* GAVE need not be on disk, but a log that has failed is to be noticed. */
	if (action->what == UNITS_LOG_GAVE && !rc)
		return;
	if (m->n_forced < m->forced_room)
		m->forced[(m->forced_at + m->n_forced++) % m->forced_room] = forced;
}

static void set_drain(struct move *m, uint32_t unit, enum draining drain)
{
	struct place *place = &m->places[unit];

	if (drain != DRAIN_NONE && place->drain == DRAIN_NONE) {
		place->drain_at = m->n_drains;
		m->draining[m->n_drains++] = unit;
		m->has_new_drains = true;
	} else if (drain == DRAIN_NONE && place->drain != DRAIN_NONE) {
		uint32_t last = m->draining[--m->n_drains];

		m->draining[place->drain_at] = last;
		m->places[last].drain_at = place->drain_at;
	}
	place->drain = drain;
}

static void carry_out(struct move *m, const struct units_action *action)
{
	switch (action->what) {
	case UNITS_SEND_REFUSE:
		move_mark_junk(m, action->unit);
		move_send(m, action);
		break;
	case UNITS_SEND_HELLO:
	case UNITS_SEND_ASK:
	case UNITS_SEND_GIVE:
	case UNITS_SEND_GOT:
	case UNITS_SEND_BYE:
	case UNITS_SEND_BYE_GOT:
		move_send(m, action);
		break;
	case UNITS_LOG_TAKEN:
		move_end_taking(m, action->unit, MOVE_ASKED);
		move_copy_came(m, action->unit, action->gen);
		force(m, action);
		break;
	case UNITS_LOG_GAVE:
	case UNITS_LOG_SHARED:
	case UNITS_LOG_ALONE:
	case UNITS_LOG_CLOSED:
		force(m, action);
		break;
	case UNITS_OPEN:
		set_drain(m, action->unit, DRAIN_NONE);
		move_send_stop(m, action->unit);
		kv_unit_returns(m->kv, action->unit);
		gates_open(&m->gates, action->unit);
		move_end_taking(m, action->unit, MOVE_TAKEN);
		trace_stop(&m->places[action->unit].taking);
		trace_stop(&m->places[action->unit].giving);
		break;
	case UNITS_DRAIN:
		move_end_giving(m, action->unit, MOVE_HELD);
		gates_close(&m->gates, action->unit);
		set_drain(m, action->unit, DRAIN_PINS);
		break;
	case UNITS_FAIL:
		gates_fail(&m->gates, action->unit);
		break;
	case UNITS_DROP:
		move_send_stop(m, action->unit);
		move_end_giving(m, action->unit, MOVE_ANSWERED);
		trace_stop(&m->places[action->unit].giving);
		move_copy_keep(m, action->unit, action->gen);
		break;
	case UNITS_RECOVER:
		/* Its records were put here before the fence was reported: fence.c. */
		break;
	case UNITS_FENCE:
		/* Once it is fenced, that is tried again which failed after it. */
		if (m->config.fence && !m->is_peer_fenced)
			m->fence_ns = 0;
		break;
	case UNITS_STOP:
		for (uint32_t u = 0; u < m->terms.n_units; u++)
			move_send_stop(m, u);
		gates_stop(&m->gates);
		break;
	case UNITS_OVER:
		pthread_mutex_lock(&m->lock);
		m->stats.is_over = true;
		pthread_mutex_unlock(&m->lock);
		break;
	}
}

void move_act(struct move *m)
{
	for (uint32_t i = 0; i < m->actions.n; i++)
		carry_out(m, &m->actions.list[i]);
	m->actions.n = 0;
	atomic_store(&m->is_whole, m->units.mode == UNITS_ALONE);
	/* Nobody fences a node that has all. Before the peer can have anything this is on again. */
	oltp_volume_checks_set(m->engine, m->units.mode != UNITS_ALONE);
}

void move_here(struct move *m, uint32_t unit)
{
	units_here(&m->units, unit, gates_oldest(&m->gates, unit), move_now_ns(), &m->actions);
	move_act(m);
}

static void settle_drains(struct move *m)
{
	m->has_new_drains = false;
	/* Backwards: one that has ended is replaced by one that was looked at. */
	for (uint32_t i = m->n_drains; i-- > 0;) {
		struct place *place;
		uint32_t u;

		/* Actions that followed from one drain have ended others. */
		if (i >= m->n_drains)
			continue;
		u = m->draining[i];
		place = &m->places[u];
		if (place->drain == DRAIN_PINS && gates_is_idle(&m->gates, u, &place->epoch)) {
			set_drain(m, u, DRAIN_LOG);
			move_end_giving(m, u, MOVE_PINNED);
		}
		if (place->drain != DRAIN_LOG || oltp_durable_epoch(m->engine) < place->epoch)
			continue;
		set_drain(m, u, DRAIN_NONE);
		move_end_giving(m, u, MOVE_FORCED);
		units_drained(&m->units, u, move_now_ns(), &m->actions);
		move_act(m);
	}
}

uint64_t move_awaited_epoch(const struct move *m)
{
	uint64_t first = m->n_forced ? m->forced[m->forced_at].epoch : UINT64_MAX;

	if (m->beat_epoch && m->beat_epoch < first)
		first = m->beat_epoch;
	for (uint32_t i = 0; i < m->n_drains; i++) {
		const struct place *place = &m->places[m->draining[i]];

		if (place->drain == DRAIN_LOG && place->epoch < first)
			first = place->epoch;
	}
	return first == UINT64_MAX ? 0 : first;
}

/* Whether it is on disk, or never will be; else the watch is set. */
static bool is_settled(struct move *m, struct forced *forced)
{
	struct oltp_durable_stats log;

	if (forced->has_failed || oltp_durable_epoch(m->engine) >= forced->epoch)
		return true;
	if (oltp_durable_watch_set(m->watch, forced->epoch))
		return false;
	forced->has_failed = oltp_durable_epoch(m->engine) < forced->epoch;
	if (forced->has_failed) {
		oltp_durable_stats_read(m->engine, &log);
		move_note_error(m, log.error);
	}
	return true;
}

void move_settle(struct move *m)
{
	settle_drains(m);
	while (m->n_forced > 0 && is_settled(m, &m->forced[m->forced_at])) {
		struct forced first = m->forced[m->forced_at];

		m->n_forced--;
		m->forced_at = (m->forced_at + 1) % m->forced_room;
		units_logged(&m->units, (enum units_do)first.action.what, first.action.unit,
			     first.action.gen, !first.has_failed, move_now_ns(), &m->actions);
		move_act(m);
	}
}
