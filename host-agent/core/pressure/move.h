/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which VM should leave a host that is under pressure: one that relieves it and whose move costs
 * least.  After "Flexible resource allocation for relational database-as-a-service", section 6: the
 * cost depends on whether the VM is in use, and on the logarithm of the memory to be copied.
 */
#ifndef EBB_CORE_MOVE_H
#define EBB_CORE_MOVE_H

#include <stddef.h>
#include <stdint.h>

struct ebb_move_candidate {
	uint64_t relief;		/* how much of the resource it uses; 0: is no help */
	uint32_t weight;		/* of its SLA, for this resource */
	uint32_t cpu_permille;		/* what it uses of CPUs of the host */
	uint64_t state_bytes;		/* memory to take along */
	uint64_t order;			/* smaller: arrived earlier; unique */
};

/* Why one was chosen and not the next best: the first criterion in which they differ. */
enum ebb_move_why {
	EBB_MOVE_ALONE,			/* there is no other */
	EBB_MOVE_RELIEF,		/* it relieves enough by itself, or more than others */
	EBB_MOVE_WEIGHT,		/* it weighs less */
	EBB_MOVE_IDLE,			/* it is not in use */
	EBB_MOVE_STATE,			/* it has less to take along, by a power of two */
	EBB_MOVE_ACTIVITY,		/* it computes less */
	EBB_MOVE_NEWEST,		/* it came last */
	EBB_MOVE_WHY_MAX,
};

/* A VM that uses less than this is idle: ticks, and what else runs on an idle guest. */
#define EBB_MOVE_IDLE_PERMILLE	100u

/* Index of the one to move so that `needed` less is used (at least 1), or -1 if none helps. */
int ebb_move_choose(const struct ebb_move_candidate *c, size_t count, uint64_t needed,
		    enum ebb_move_why *ret_why);

/* "the only one that helps", ... for people. */
const char *ebb_move_why_text(enum ebb_move_why why);

#endif /* EBB_CORE_MOVE_H */
