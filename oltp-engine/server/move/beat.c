// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Signs of life: the TIMES that each node sends once per second, and what a node makes of a peer
 * whose signs stay away.
 *
 * A node sends them only after an epoch of its log has become durable that was open when they were
 * due. So they also say that its disk answers: a node whose disk is gone looks lost to its peer,
 * though the two can talk. Such a node drops the connection by itself, takes no other one, and
 * fences nobody, until the disk answers: the peer, which works, shall win.
 */
#include <errno.h>

#include "oltp-engine/server/move/private.h"

void move_beat_begin(struct move *m, const struct drain_times *times)
{
	struct oltp_durable_stats log;

	m->beat_times = *times;
	if (m->beat_epoch)
		return;
	oltp_durable_stats_read(m->engine, &log);
	m->beat_epoch = log.epoch;
	m->beat_ns = move_now_ns();
}

bool move_is_stalled(const struct move *m)
{
	return m->config.silence_ns && m->beat_epoch &&
	       move_now_ns() >= m->beat_ns + m->config.silence_ns;
}

static void send_times(struct move *m)
{
	uint8_t *at;

	if (m->channel.fd < 0 || !m->units.is_synced)
		return;
	at = channel_reserve(&m->channel, WIRE_HEADER_BYTES + sizeof(struct wire_times));
	if (at)
		channel_add(&m->channel, wire_put_times(&m->terms, m->units.incarnation,
							m->units.peer, &m->beat_times, at));
}

/* The epoch is durable, or never will be. */
static void end_beat(struct move *m)
{
	struct oltp_durable_stats log;

	if (oltp_durable_epoch(m->engine) >= m->beat_epoch) {
		m->beat_epoch = 0;
		send_times(m);
		return;
	}
	oltp_durable_stats_read(m->engine, &log);
	if (!log.has_failed)
		return;
	m->beat_epoch = 0;
	if (m->units.mode != UNITS_STOPPED)
		move_stop(m, log.error);
}

void move_beat(struct move *m)
{
	if (m->beat_epoch)
		end_beat(m);
	if (m->channel.fd < 0)
		return;
	if (m->units.mode == UNITS_STOPPED)
		channel_close(&m->channel);
	else if (move_is_stalled(m) ||
		 (m->config.silence_ns && m->units.mode == UNITS_SHARED &&
		  move_now_ns() >= m->heard_ns + m->config.silence_ns))
		move_lost(m, -ETIMEDOUT);
}
