// SPDX-License-Identifier: GPL-2.0-or-later
/* The coordinator's decisions: see twophase.h. */
#include <string.h>

#include "twophase.h"

static void act(struct dist_actions *ret, enum dist_do what, uint32_t peer)
{
	ret->list[ret->n++] = (struct dist_action){ .what = (uint8_t)what, .peer = (uint8_t)peer };
}

static uint8_t everyone(const struct dist_coord *coord)
{
	return (uint8_t)((1u << coord->n_peers) - 1);
}

static void send_to(const struct dist_coord *coord, uint8_t peers, enum dist_do what,
		    struct dist_actions *ret)
{
	for (uint32_t i = 0; i < coord->n_peers; i++) {
		if (peers & 1u << i)
			act(ret, what, i);
	}
}

void dist_coord_start(struct dist_coord *coord, uint32_t n_peers, const struct dist_times *times,
		      uint64_t now_ns, struct dist_actions *ret)
{
	memset(coord, 0, sizeof(*coord));
	coord->state = DIST_COORD_PREPARING;
	coord->n_peers = (uint8_t)n_peers;
	coord->deadline_ns = now_ns + times->vote_ns;
	ret->n = 0;
	send_to(coord, everyone(coord), DIST_SEND_PREPARE, ret);
}

void dist_coord_restart(struct dist_coord *coord, uint32_t n_peers, uint64_t now_ns,
			struct dist_actions *ret)
{
	memset(coord, 0, sizeof(*coord));
	coord->state = DIST_COORD_COMMITTING;
	coord->n_peers = (uint8_t)n_peers;
	coord->voted = everyone(coord);
	/* The log does not say which of them only read; those confirm like the others. */
	coord->writers = coord->voted;
	coord->deadline_ns = now_ns;
	ret->n = 0;
}

/* Tells all: participants whose yes is still on its way are prepared, too. */
static void give_up(struct dist_coord *coord, uint8_t but, struct dist_actions *ret)
{
	coord->state = DIST_COORD_ABORTED;
	coord->deadline_ns = UINT64_MAX;
	act(ret, DIST_ENGINE_ABORT, 0);
	send_to(coord, (uint8_t)(everyone(coord) & ~but), DIST_SEND_ABORT, ret);
}

void dist_coord_vote(struct dist_coord *coord, uint32_t peer, enum dist_vote vote,
		     struct dist_actions *ret)
{
	ret->n = 0;
	if (peer >= coord->n_peers)
		return;
	if (coord->state == DIST_COORD_ABORTED && vote != DIST_VOTE_NO) {
		/* The vote came too late, and the participant may have got ABORT before PREPARE. */
		act(ret, DIST_SEND_ABORT, peer);
		return;
	}
	if (coord->state != DIST_COORD_PREPARING)
		return;
	if (vote == DIST_VOTE_NO) {
		give_up(coord, (uint8_t)(1u << peer), ret);
		return;
	}
	coord->voted |= (uint8_t)(1u << peer);
	if (vote == DIST_VOTE_YES)
		coord->writers |= (uint8_t)(1u << peer);
	if (coord->voted != everyone(coord))
		return;
	coord->deadline_ns = UINT64_MAX;
	if (coord->writers) {
		coord->state = DIST_COORD_DECIDING;
		act(ret, DIST_LOG_COMMIT, 0);
		return;
	}
	/* No participant needs the decision twice, so nothing has to be remembered. */
	coord->state = DIST_COORD_COMMITTED;
	act(ret, DIST_ENGINE_COMMIT, 0);
	send_to(coord, everyone(coord), DIST_SEND_COMMIT, ret);
}

void dist_coord_lost(struct dist_coord *coord, uint32_t peer, struct dist_actions *ret)
{
	ret->n = 0;
	if (coord->state == DIST_COORD_PREPARING && peer < coord->n_peers)
		give_up(coord, 0, ret);
}

void dist_coord_logged(struct dist_coord *coord, bool is_on_disk, const struct dist_times *times,
		       uint64_t now_ns, struct dist_actions *ret)
{
	ret->n = 0;
	if (coord->state != DIST_COORD_DECIDING)
		return;
	if (!is_on_disk) {
		coord->state = DIST_COORD_UNKNOWN;
		return;
	}
	coord->state = DIST_COORD_COMMITTING;
	coord->deadline_ns = now_ns + times->repeat_ns;
	act(ret, DIST_ENGINE_COMMIT, 0);
	send_to(coord, everyone(coord), DIST_SEND_COMMIT, ret);
}

void dist_coord_ack(struct dist_coord *coord, uint32_t peer, struct dist_actions *ret)
{
	ret->n = 0;
	if (coord->state != DIST_COORD_COMMITTING || peer >= coord->n_peers)
		return;
	coord->acked |= (uint8_t)(1u << peer);
	if ((coord->acked & coord->writers) != coord->writers)
		return;
	coord->state = DIST_COORD_COMMITTED;
	coord->deadline_ns = UINT64_MAX;
	act(ret, DIST_LOG_END, 0);
}

void dist_coord_query(const struct dist_coord *coord, uint32_t peer, struct dist_actions *ret)
{
	ret->n = 0;
	switch (coord->state) {
	case DIST_COORD_PREPARING:
	case DIST_COORD_DECIDING:
	case DIST_COORD_UNKNOWN:
		act(ret, DIST_SEND_PENDING, peer);
		break;
	case DIST_COORD_COMMITTING:
		act(ret, DIST_SEND_COMMIT, peer);
		break;
	default:
		/*
		 * Committed, and confirmed by all writers: a participant that still asks has only
		 * read.
		 */
		act(ret, DIST_SEND_ABORT, peer);
		break;
	}
}

void dist_coord_tick(struct dist_coord *coord, const struct dist_times *times, uint64_t now_ns,
		     struct dist_actions *ret)
{
	ret->n = 0;
	if (now_ns < coord->deadline_ns)
		return;
	if (coord->state == DIST_COORD_PREPARING) {
		give_up(coord, 0, ret);
	} else if (coord->state == DIST_COORD_COMMITTING) {
		coord->deadline_ns = now_ns + times->repeat_ns;
		send_to(coord, (uint8_t)(coord->writers & ~coord->acked), DIST_SEND_COMMIT, ret);
	}
}

bool dist_coord_is_done(const struct dist_coord *coord)
{
	return coord->state == DIST_COORD_COMMITTED || coord->state == DIST_COORD_ABORTED;
}
