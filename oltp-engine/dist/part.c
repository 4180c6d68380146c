// SPDX-License-Identifier: GPL-2.0-or-later
/* The participant's decisions: see twophase.h. */
#include <string.h>

#include "twophase.h"

static void act(struct dist_actions *ret, enum dist_do what)
{
	ret->list[ret->n++] = (struct dist_action){ .what = (uint8_t)what };
}

void dist_part_prepare(struct dist_part *part, struct dist_actions *ret)
{
	ret->n = 0;
	/* A PREPARE that comes again must not be executed again. */
	if (part->state != DIST_PART_IDLE)
		return;
	part->state = DIST_PART_EXECUTING;
	part->deadline_ns = UINT64_MAX;
	act(ret, DIST_ENGINE_EXECUTE);
}

static void become_prepared(struct dist_part *part, uint64_t ask_at_ns)
{
	part->state = DIST_PART_PREPARED;
	part->deadline_ns = ask_at_ns;
}

void dist_part_executed(struct dist_part *part, enum dist_vote vote, const struct dist_times *times,
			uint64_t now_ns, struct dist_actions *ret)
{
	ret->n = 0;
	if (part->state != DIST_PART_EXECUTING)
		return;
	part->vote = (uint8_t)vote;
	switch (vote) {
	case DIST_VOTE_YES:
		part->state = DIST_PART_LOGGING;
		act(ret, DIST_LOG_PREPARE);
		return;
	case DIST_VOTE_READ:
		become_prepared(part, now_ns + times->ask_ns);
		act(ret, DIST_SEND_VOTE);
		return;
	case DIST_VOTE_NO:
		break;
	}
	part->state = DIST_PART_ABORTED;
	act(ret, DIST_ENGINE_ABORT);
	act(ret, DIST_SEND_VOTE);
}

void dist_part_restart(struct dist_part *part, uint64_t now_ns, struct dist_actions *ret)
{
	memset(part, 0, sizeof(*part));
	part->vote = DIST_VOTE_YES;
	become_prepared(part, now_ns);
	ret->n = 0;
}

void dist_part_logged(struct dist_part *part, bool is_on_disk, const struct dist_times *times,
		      uint64_t now_ns, struct dist_actions *ret)
{
	ret->n = 0;
	if (part->state != DIST_PART_LOGGING && part->state != DIST_PART_COMMITTING)
		return;
	if (!is_on_disk) {
		part->state = DIST_PART_UNKNOWN;
		part->deadline_ns = UINT64_MAX;
	} else if (part->state == DIST_PART_LOGGING) {
		become_prepared(part, now_ns + times->ask_ns);
		act(ret, DIST_SEND_VOTE);
	} else {
		part->state = DIST_PART_COMMITTED;
		act(ret, DIST_SEND_ACK);
	}
}

void dist_part_commit(struct dist_part *part, struct dist_actions *ret)
{
	ret->n = 0;
	switch (part->state) {
	case DIST_PART_PREPARED:
		part->deadline_ns = UINT64_MAX;
		if (part->vote == DIST_VOTE_READ) {
			part->state = DIST_PART_COMMITTED;
			act(ret, DIST_ENGINE_COMMIT);
			return;
		}
		part->state = DIST_PART_COMMITTING;
		/*
		 * Locks are released as soon as the record is appended: the record of a transaction
		 * that builds on these writes comes behind it, and the decision is on the
		 * coordinator's disk already.
		 */
		act(ret, DIST_LOG_COMMIT);
		act(ret, DIST_ENGINE_COMMIT);
		return;
	case DIST_PART_ABORTED:
		/* Only readers may have heard so, and a restarted coordinator waits for all. */
		if (part->vote != DIST_VOTE_READ)
			return;
		/* fallthrough */
	case DIST_PART_IDLE:
	case DIST_PART_COMMITTED:
		/* It was done and forgotten, or the ACK was lost. */
		act(ret, DIST_SEND_ACK);
		return;
	default:
		return;
	}
}

void dist_part_abort(struct dist_part *part, struct dist_actions *ret)
{
	ret->n = 0;
	if (part->state != DIST_PART_PREPARED && part->state != DIST_PART_LOGGING)
		return;
	part->state = DIST_PART_ABORTED;
	part->deadline_ns = UINT64_MAX;
	act(ret, DIST_ENGINE_ABORT);
	if (part->vote == DIST_VOTE_YES)
		act(ret, DIST_LOG_ABORT);
}

void dist_part_lost(struct dist_part *part, uint64_t now_ns)
{
	if (part->state == DIST_PART_PREPARED)
		part->deadline_ns = now_ns;
}

void dist_part_tick(struct dist_part *part, const struct dist_times *times, uint64_t now_ns,
		    struct dist_actions *ret)
{
	ret->n = 0;
	if (part->state != DIST_PART_PREPARED || now_ns < part->deadline_ns)
		return;
	part->deadline_ns = now_ns + times->ask_ns;
	act(ret, DIST_SEND_QUERY);
}

bool dist_part_is_done(const struct dist_part *part)
{
	return part->state == DIST_PART_COMMITTED || part->state == DIST_PART_ABORTED;
}
