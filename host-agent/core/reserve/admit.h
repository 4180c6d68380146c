/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Promises of CPU time ("SQLVM", section 2.1), pure: which of them are made.  What is kept of each
 * where cores are overbooked says model/shortage.h.  Amounts are thousandths of a core.
 */
#ifndef EBB_CORE_RESERVE_ADMIT_H
#define EBB_CORE_RESERVE_ADMIT_H

#include <stddef.h>

#include "model/types.h"

/* A VM that asks for a promise, all of it or nothing. */
struct ebb_promise_ask {
	uint32_t permille[EBB_MAX_NODES]; /* by node of the host */
	bool is_held;			/* in: this, or more, was promised before */
	uint32_t before[EBB_MAX_NODES];	/* in: less was, which holds if this is refused; 0: none */
	bool is_promised;		/* out */
	bool is_kept;			/* out, if not promised: `before` still is */
	uint16_t short_node;		/* out, if not promised: the node that has too little, */
	uint32_t short_left;		/* and how much it had left */
};

/*
 * First promises that were made before are kept, then new and higher ones are made, both in the
 * given order, as far as nodes have enough: promising something to one VM takes nothing from
 * another.  A VM to which more is refused keeps what it was promised before.
 * capacity: what may be promised on each node; ret_promised: what is.
 */
void ebb_promise_admit(struct ebb_promise_ask *asks, size_t num,
		       const uint64_t capacity[EBB_MAX_NODES],
		       uint64_t ret_promised[EBB_MAX_NODES]);

#endif /* EBB_CORE_RESERVE_ADMIT_H */
