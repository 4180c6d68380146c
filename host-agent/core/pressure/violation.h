/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resources of the host that are in use beyond their thresholds (model/pressure.h).
 *
 * A violation begins when the level has been above the threshold for the window without a break.
 * It ends when the level has been at or below the target for the window, or at or below the
 * threshold for a whole cool-down.  It calls for a move when the level has been above the failover
 * threshold for the window, or above the threshold for a cool-down since the violation began; after
 * that at most once in a cool-down.
 */
#ifndef EBB_CORE_VIOLATION_H
#define EBB_CORE_VIOLATION_H

#include "model/pressure.h"
#include "model/record.h"

enum ebb_pressed {
	EBB_PRESSED_MEMORY,		/* pool memory of a node of the host; blocks */
	EBB_PRESSED_CPU,		/* time of the CPUs of a node; thousandths of a real CPU */
	EBB_PRESSED_CORE,		/* time of a core that VMs share, used or waited for;
					 * thousandths of it */
	EBB_PRESSED_MAX,
};

struct ebb_violation {
	bool is_on;
	uint64_t level, peak;		/* now; highest since it began */
	uint64_t capacity;
	uint64_t count;			/* how many have begun */
	uint64_t num_moves;		/* how many moves were recommended */
	usec_t since;			/* when it began or ended; 0: there was none */
	/*
	 * Since when, without a break, the level has been above the threshold; above the failover
	 * threshold; at or below the target; at or below the threshold.  EBB_TIME_NEVER: it is not.
	 */
	usec_t above_since, beyond_since, low_since, not_above_since;
	usec_t moved_at;		/* the last move was called for; 0: never */
	char text[EBB_TEXT_SIZE];	/* the cause of the last one */
};

struct ebb_violation_rule {
	uint64_t threshold, target;
	uint64_t failover;		/* UINT64_MAX: none */
	usec_t window, cooldown;
};

/* Takes note of a new level.  1: the violation begins, -1: it ends, 0: neither. */
int ebb_violation_step(struct ebb_violation *v, const struct ebb_violation_rule *rule,
		       uint64_t level, usec_t now);
bool ebb_violation_calls_move(const struct ebb_violation *v, const struct ebb_violation_rule *rule,
			      usec_t now);
/*
 * When it begins, ends or calls for a move if the level stays as it is, or EBB_TIME_NEVER.
 */
usec_t ebb_violation_until(const struct ebb_violation *v, const struct ebb_violation_rule *rule,
			   usec_t now);
void ebb_violation_clear(struct ebb_violation *v);

/* A move that is recommended for a VM. */
struct ebb_vm_move {
	bool is_on;
	enum ebb_pressed pressed;	/* what it relieves */
	uint16_t host_node;
	usec_t at;			/* when it was last recommended; 0: never */
	uint64_t relief;		/* what it used of the resource then */
	char text[EBB_TEXT_SIZE];	/* why, and why this VM */
};

/* "memory", "cpu", "core" */
const char *ebb_pressed_name(enum ebb_pressed pressed);

/*
 * The code of a record of a violation or move: the resource, and whether it begins or ends
 * ("memory-begin", "core-end", ...).
 */
uint16_t ebb_pressed_code(enum ebb_pressed pressed, bool ends);
const char *ebb_pressed_code_name(uint16_t code);
/* ebb_pressed_code_name() or ebb_reason_name(), depending on the event. */
const char *ebb_code_name(enum ebb_event event, uint16_t code);

#endif /* EBB_CORE_VIOLATION_H */
