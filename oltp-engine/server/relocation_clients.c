// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Clients and units that leave this node: from the source to the target, and back from the target
 * if the relocation is cancelled.
 */
#include <stdio.h>

#include "oltp-engine/server/relocation_private.h"
#include "oltp-engine/src/base/clock.h"

/* In this time after the limit of time the clients that are left are closed. */
#define LAST_NS	(5 * RELOCATION_SECOND_NS)

void clients_start(struct relocation *r, const char *to, const struct drain_config *drain,
		   enum relocation_stage stage)
{
	struct net_stats stats;

	net_stats_read(r->front, &stats);
	r->drain_config = *drain;
	drain_start(&r->drain, stats.clients, clock_now_ns());
	pthread_mutex_lock(&r->lock);
	/* An address that is not known is none that clients can go to. */
	snprintf(r->clients, sizeof(r->clients), "%s", *to ? to : "unknown");
	pthread_mutex_unlock(&r->lock);
	r->is_at_once = false;
	relocation_set_stage(r, stage);
}

void clients_stay(struct relocation *r)
{
	net_drain(r->front, NULL, 0);
}

static void send_clients(struct relocation *r, const struct move_stats *stats)
{
	uint64_t now = clock_now_ns();
	struct drain_facts facts = { .source = r->times, .left = r->last.clients,
				     .leaving = r->last.told,
				     .target = stats->peer_times };

	/* It has told nothing for longer than a second: that counts as a request of this age. */
	if (stats->peer_times_ns && stats->peer_times_ns + 2 * RELOCATION_SECOND_NS < now)
		facts.target = (struct drain_times){ 1, now - stats->peer_times_ns };
	/* Nobody is sent to a node that cannot get any unit. */
	if (stats->mode != UNITS_SHARED || !stats->is_connected)
		return;
	net_drain(r->front, r->clients, drain_step(&r->drain, &r->drain_config, &facts, now));
	atomic_store(&r->drain_percent, r->drain.percent);
	if (facts.left && (!drain_is_over(&r->drain, &r->drain_config, now) ||
			   now < r->drain.start_ns + r->drain_config.limit_ns + LAST_NS))
		return;
	relocation_set_stage(r, STAGE_UNITS);
}

/*
 * A failover: writers wait from here on if all units go together; else each unit's for that unit
 * only. Clients are told to go at the same time: what they ask the target for waits there.
 */
static void fail_over(struct relocation *r, bool is_at_once, uint32_t n_clients)
{
	r->is_at_once = is_at_once;
	if (is_at_once)
		move_leave(r->move, true);
	relocation_set_stage(r, is_at_once ? STAGE_UNITS : STAGE_CLIENTS);
	net_drain(r->front, r->clients, n_clients);
}

void clients_look_at_copies(struct relocation *r)
{
	struct move_stats stats;
	struct net_stats net;

	move_stats_read(r->move, &stats);
	if (!stats.copy.has_stopped)
		return;
	net_stats_read(r->front, &net);
	drain_start(&r->drain, net.clients, clock_now_ns());
	if (r->drain_config.limit_ns)
		relocation_set_stage(r, STAGE_CLIENTS);
	else
		fail_over(r, stats.copy.is_at_once, net.clients);
}

void clients_look(struct relocation *r, const struct move_stats *stats)
{
	/* Clients that come now are closed after a while, too. */
	if (r->stage == STAGE_UNITS || r->stage == STAGE_OVER)
		net_drain(r->front, *r->clients ? r->clients : "closed", 0);
	if (r->stage != STAGE_COPYING && r->stage != STAGE_CLIENTS && r->stage != STAGE_UNITS)
		return;
	if (stats->is_over) {
		relocation_set_stage(r, STAGE_OVER);
		return;
	}
	/* The other node has given everything back, or was fenced. */
	if (r->is_shared && stats->mode == UNITS_ALONE) {
		clients_stay(r);
		relocation_set_error(r, stats->fence == MOVE_FENCE_WON ? "" :
				     "the other node has given all units back");
		relocation_set_stage(r, STAGE_SERVING);
		return;
	}
	if (r->stage == STAGE_CLIENTS && stats->mode >= UNITS_LEAVING)
		relocation_set_stage(r, STAGE_UNITS);
	else if (r->stage == STAGE_CLIENTS)
		send_clients(r, stats);
	/* Said again: nothing happens if it leaves already. */
	if (r->stage == STAGE_UNITS && stats->mode == UNITS_SHARED)
		move_leave(r->move, r->is_at_once);
}
