/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When to stop copying records ahead of a failover, and how fast to copy ("Flexible Resource
 * Allocation", section 7; the rounds are those of live VM migration). A function of state, facts
 * and now; the caller reads and sends.
 *
 * Pages are copied: small fixed parts of the keys. Round 1 sends all pages that are worth
 * it, those used last first. Clients go on writing meanwhile, so each further round sends the pages
 * that were written since they were sent. At the end of a round, in this order:
 *
 *	timeout_ns is over, and all pages that are not at the target
 *	cannot be sent within pause_ns					stop, PRECOPY_TIMEOUT
 *	those that were written since they were sent can be, by		stop, PRECOPY_FEW
 *	what a further round has shown, or there are none
 *	as many were written as the round has sent, or nearly		stop, PRECOPY_STEADY
 *	it was the last of rounds_max					stop, PRECOPY_ROUNDS
 *	otherwise							another round
 *
 * A round that takes past timeout_ns ends then.
 *
 * After that all remaining pages are sent while writers wait, if that takes pause_ns at most
 * (is_at_once). If it takes longer, units go one by one, and writers of a unit wait for its own
 * pages only. A page is expected to take as long as in the last round: in later rounds, and in the
 * pause, it replaces an older copy at the target, which is more work than in the first round.
 */
#ifndef RELOCATE_PRECOPY_H
#define RELOCATE_PRECOPY_H

#include <stdbool.h>
#include <stdint.h>

struct precopy_config {
	uint64_t bytes_per_s;	/* sent at most, so that clients are not hurt; above 0 */
	uint64_t bytes_max;	/* room for records at the target; 0: no bound */
	uint64_t timeout_ns;
	uint64_t pause_ns;	/* that writers may wait for what is left */
	uint32_t rounds_max;	/* above 0 */
	/* Unit by unit, which is cheaper: for when all goes. Else pages that were used last go
	 * first. */
	bool is_in_order;
};

enum precopy_reason {
	PRECOPY_GOES_ON = 0,
	PRECOPY_FEW,
	PRECOPY_TIMEOUT,
	PRECOPY_STEADY,		/* the rate of change does not fall any more */
	PRECOPY_ROUNDS,
	PRECOPY_REASONS,
};

struct precopy {
	uint64_t start_ns;
	uint64_t paced_ns;	/* allowed has grown until then */
	int64_t allowed;	/* bytes that may be sent now; below 0: too many were */
	uint64_t pages, bytes;	/* sent, in all */
	uint64_t round_ns;	/* when this round began */
	uint64_t round_pages;	/* sent in it */
	uint32_t rounds;	/* begun */
	uint8_t reason;		/* enum precopy_reason */
	bool is_at_once;	/* once it has stopped */
};

/* At the end of a round: pages that are not at the target as they are now. */
struct precopy_facts {
	uint64_t written;	/* sent before, and written since */
	uint64_t never_sent;	/* the others */
};

void precopy_start(struct precopy *p, uint64_t now_ns);

/*
 * Bytes that may be sent now; 0: wait. Time in which nothing could be sent is made up for by 50 ms
 * of the rate at most.
 */
uint64_t precopy_allowed(struct precopy *p, const struct precopy_config *config, uint64_t now_ns);

/* A page was sent. May be more than was allowed; the rest is paid off by waiting. */
void precopy_sent(struct precopy *p, uint64_t bytes);

/* The round ends without its other pages: no time is left, or in round 1 no room. */
bool precopy_cuts_round(const struct precopy *p, const struct precopy_config *config,
			uint64_t now_ns);

/* A round has ended. PRECOPY_GOES_ON: the next one has begun. */
enum precopy_reason precopy_end_round(struct precopy *p, const struct precopy_config *config,
				      const struct precopy_facts *facts, uint64_t now_ns);

/* "few", ...; "" for PRECOPY_GOES_ON. */
const char *precopy_reason_name(enum precopy_reason reason);

#endif
