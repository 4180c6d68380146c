/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resources of the host that are beyond their thresholds, and VMs that should therefore move to
 * another host.  Levels are measured by the host (blocks held, as devices report them; CPU time of
 * the threads of vCPUs).  What guests say of themselves plays no part.
 */
#ifndef EBB_CORE_PRESSURE_H
#define EBB_CORE_PRESSURE_H

#include "core/pressure/move.h"
#include "core/pressure/violation.h"
#include "core/room.h"

struct pressure_room {
	const struct core_env *env;
	struct ebb_violation violations[EBB_PRESSED_CORE][EBB_MAX_NODES];
	struct ebb_violation core_violations[EBB_MAX_THREADS];
	bool is_throttled[EBB_MAX_NODES];
	bool is_stale;			/* a level may have changed */
	usec_t next_at;			/* a violation may begin or end then without a new level */
	struct ebb_move_candidate candidates[EBB_MAX_VMS]; /* scratch */
};

void pressure_create(struct pressure_room *s);

/* A level may have changed. */
void pressure_changed(struct pressure_room *s);
/* CPU times of the VM were reported. */
void pressure_report_times(struct pressure_room *s, usec_t as_of, const struct ebb_vm *vm);
/*
 * A core that several VMs share, in thousandths of its time in the last hot_window_s: the level
 * that balancing judges by (core/shared/balance.h) and how much was used.  The level is higher
 * than the use if other programs or throttles kept VMs waiting; both are 0 if VMs do not share the
 * core any more.  who: the VMs that used it, for people ("a 60%, b 37%").
 */
void pressure_report_core(struct pressure_room *s, usec_t now, uint16_t core, uint32_t level,
			  uint32_t used, const char *who);
/* VMs of the node are throttled because no change of places helps; or they are not any more. */
void pressure_report_throttle(struct pressure_room *s, uint16_t host_node, bool is_throttled);
/* A run of the VM is over, and with it a move that was recommended for it. */
void pressure_stop(struct pressure_room *s, usec_t now, const struct ebb_vm *vm);

/* Records violations and moves that begin or end; returns next_at. */
usec_t pressure_settle(struct pressure_room *s, usec_t now);

/* i: node of the host (MEMORY, CPU), or core; NULL beyond the last. */
const struct ebb_violation *pressure_violation(const struct pressure_room *s,
					       enum ebb_pressed pressed, uint16_t i);

#endif /* EBB_CORE_PRESSURE_H */
