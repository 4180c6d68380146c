// SPDX-License-Identifier: GPL-2.0-or-later
/* See precopy.h. */
#include "precopy.h"

#define SECOND_NS	1000000000ull
#define CATCH_UP_NS	50000000ull
#define STEP_NS		1000000ull
/* A round that leaves 7 pages for 8 that it sent does not gain enough to be worth another. */
#define STEADY_LEFT	7u
#define STEADY_SENT	8u

void precopy_start(struct precopy *p, uint64_t now_ns)
{
	*p = (struct precopy){ .start_ns = now_ns, .paced_ns = now_ns, .round_ns = now_ns,
			       .rounds = 1 };
}

uint64_t precopy_allowed(struct precopy *p, const struct precopy_config *config, uint64_t now_ns)
{
	uint64_t passed = now_ns > p->paced_ns ? now_ns - p->paced_ns : 0;
	int64_t most = (int64_t)((double)config->bytes_per_s * CATCH_UP_NS / SECOND_NS);

	/* Rounded down each time: a call too soon would lose a large part of what it is due. */
	if (passed >= STEP_NS) {
		p->allowed += (int64_t)((double)config->bytes_per_s * (double)passed / SECOND_NS);
		p->paced_ns = now_ns;
	}
	if (p->allowed > most)
		p->allowed = most;
	return p->allowed > 0 ? (uint64_t)p->allowed : 0;
}

void precopy_sent(struct precopy *p, uint64_t bytes)
{
	p->pages++;
	p->round_pages++;
	p->bytes += bytes;
	p->allowed -= (int64_t)bytes;
}

static bool is_late(const struct precopy *p, const struct precopy_config *config, uint64_t now_ns)
{
	return now_ns > p->start_ns && now_ns - p->start_ns >= config->timeout_ns;
}

bool precopy_cuts_round(const struct precopy *p, const struct precopy_config *config,
			uint64_t now_ns)
{
	return is_late(p, config, now_ns) ||
	       (p->rounds == 1 && config->bytes_max && p->bytes >= config->bytes_max);
}

/* Whether so many pages can be sent within the pause. */
static bool fits(const struct precopy *p, const struct precopy_config *config, uint64_t pages,
		 uint64_t now_ns)
{
	uint64_t passed = now_ns > p->round_ns ? now_ns - p->round_ns : 0;

	/* How long a page takes is not known before one was sent. */
	return !pages || (p->round_pages && (double)pages * (double)passed <=
					    (double)p->round_pages * (double)config->pause_ns);
}

static enum precopy_reason decide(const struct precopy *p, const struct precopy_config *config,
				  const struct precopy_facts *facts, uint64_t now_ns)
{
	if (is_late(p, config, now_ns))
		return fits(p, config, facts->written + facts->never_sent, now_ns) ?
		       PRECOPY_FEW : PRECOPY_TIMEOUT;
	if (!facts->written || (p->rounds > 1 && fits(p, config, facts->written, now_ns)))
		return PRECOPY_FEW;
	if (facts->written * STEADY_SENT >= p->round_pages * STEADY_LEFT)
		return PRECOPY_STEADY;
	return p->rounds >= config->rounds_max ? PRECOPY_ROUNDS : PRECOPY_GOES_ON;
}

enum precopy_reason precopy_end_round(struct precopy *p, const struct precopy_config *config,
				      const struct precopy_facts *facts, uint64_t now_ns)
{
	enum precopy_reason reason = decide(p, config, facts, now_ns);

	p->reason = (uint8_t)reason;
	if (reason) {
		p->is_at_once = fits(p, config, facts->written + facts->never_sent, now_ns);
		return reason;
	}
	p->rounds++;
	p->round_ns = now_ns;
	p->round_pages = 0;
	return PRECOPY_GOES_ON;
}

const char *precopy_reason_name(enum precopy_reason reason)
{
	static const char *const names[PRECOPY_REASONS] = {
		[PRECOPY_GOES_ON] = "", [PRECOPY_FEW] = "few", [PRECOPY_TIMEOUT] = "timeout",
		[PRECOPY_STEADY] = "steady", [PRECOPY_ROUNDS] = "rounds",
	};

	return reason < PRECOPY_REASONS ? names[reason] : "";
}
