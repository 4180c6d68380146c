/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resources of the host that are beyond their thresholds, and VMs that should move to another host
 * for it.  Levels are what the host measures (held blocks as devices report them, CPU time of the
 * threads of vCPUs), never what guests say of themselves.
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
	usec_t next_at;			/* something changes by itself then */
	struct ebb_move_candidate candidates[EBB_MAX_VMS]; /* scratch */
};

void pressure_create(struct pressure_room *s);

/* A level may have changed. */
void pressure_changed(struct pressure_room *s);
/* CPU times of the VM have been taken over. */
void pressure_report_times(struct pressure_room *s, usec_t as_of, const struct ebb_vm *vm);
/*
 * Of a core that several VMs share: thousandths of its time that were used over the last
 * hot_window_s, and who used them, for people ("a 60%, b 37%").  0 if VMs share it no more.
 */
void pressure_report_core(struct pressure_room *s, usec_t now, uint16_t core, uint32_t permille,
			  const char *who);
/* No assignment of VMs to the cores of a node helps, and they are throttled; or that is over. */
void pressure_report_throttle(struct pressure_room *s, uint16_t host_node, bool is_throttled);
/* A run of the VM is over; a move that was recommended for it is, too. */
void pressure_stop(struct pressure_room *s, usec_t now, const struct ebb_vm *vm);

/* Records what begins and ends; returns when that changes by itself. */
usec_t pressure_settle(struct pressure_room *s, usec_t now);

/* Of a node of the host (MEMORY, CPU) or of a core; NULL beyond the last. */
const struct ebb_violation *pressure_violation(const struct pressure_room *s,
					       enum ebb_pressed pressed, uint16_t i);

#endif /* EBB_CORE_PRESSURE_H */
