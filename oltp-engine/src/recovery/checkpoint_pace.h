/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How fast a checkpoint is written. The log goes first: transactions wait for its groups, and a
 * group that is synced waits for all that the disk has taken before it. Nobody waits for a
 * checkpoint; but until it is written the log grows, and once it has grown by log_bytes_max the
 * next checkpoint is due.
 *
 *	 written
 *	  all |      target ___________		above: waits (K3)
 *	      |           /         __/		between: writes when no group is (K2)
 *	      |         /       __/
 *	      |       /     __/  urgent		below: writes (K1)
 *	      |     /   __/
 *	      |___/_ _/________________
 *	      0      1/4   1/2         1	the log has grown, of what it may
 *
 *   K1  Below the urgent line, and when the next one is due, a buffer is written at once: so a log
 *       that grows faster than checkpoints are written stays bounded, as far as the disk goes.
 *   K2  Else a buffer waits for a group that is being written, and while groups take much longer
 *       than they did before the checkpoint; each buffer only for some time.
 *   K3  Above the target line, by which all is written within half of that growth, it waits for the
 *       log to grow, or for what a small rate allows (an idle log does not grow). There is no such
 *       line for a checkpoint that somebody waits for; a rate that the user has set takes its
 *       place.
 *
 * Pure: no clock, no disk.
 */
#ifndef OLTP_CHECKPOINT_PACE_H
#define OLTP_CHECKPOINT_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* The target line rises by at least so much. */
#define CHECKPOINT_PACE_BYTES_PER_S	(32ull << 20)

/* How much may be written ahead of any line or rate. */
#define CHECKPOINT_PACE_AHEAD_BYTES	(1ull << 20)

/* K2, for each buffer: for groups as they come, and while they are slow. */
#define CHECKPOINT_PACE_GROUP_NS	4000000ull
#define CHECKPOINT_PACE_SLOW_NS		20000000ull

/* Groups are slow if they take so many times as long as usual. */
#define CHECKPOINT_PACE_SLOW_TIMES	4u

/* The most that is waited before the facts are looked at again. */
#define CHECKPOINT_PACE_LOOK_NS		5000000ull

struct checkpoint_pace_facts {
	uint64_t since_ns;	/* since the checkpoint was begun */
	uint64_t bytes;		/* it has written */
	uint64_t bytes_all;	/* it will have written in the end, about; 0: not known */
	uint64_t bytes_per_s;	/* at most; 0: no such bound */
	bool is_awaited;	/* somebody waits for it */
	uint64_t log_bytes;	/* the log has grown by so much since it was begun */
	uint64_t log_bytes_max;	/* with that the next one is due; > 0 */
	bool is_group_written;	/* a group is being written now */
	/* That took so long up to now, or the last one did; 0: none since the buffer before. */
	uint64_t group_ns;
	uint64_t usual_ns;	/* the groups before the checkpoint took so long; 0: not known */
	uint64_t held_ns;	/* the buffer at hand has been held back for so long */
};

enum checkpoint_pace_what {
	CHECKPOINT_PACE_WRITE,	/* the buffer at hand, now */
	CHECKPOINT_PACE_GROUP,	/* wait until a group is written, or for ns, and ask again */
	CHECKPOINT_PACE_TIME,	/* wait for ns, and ask again */
};

struct checkpoint_pace {
	enum checkpoint_pace_what what;
	uint64_t ns;
};

struct checkpoint_pace checkpoint_pace(const struct checkpoint_pace_facts *facts);

#endif
