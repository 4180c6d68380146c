/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ring of decision records; core/room.h has what writes into it. */
#ifndef EBB_CORE_JOURNAL_H
#define EBB_CORE_JOURNAL_H

#include <stddef.h>

#include "core/vm.h"
#include "model/types.h"

struct core_env;

#define EBB_RECORDS	4096u

struct core_journal {
	struct ebb_record records[EBB_RECORDS];
	size_t first, num;
	uint64_t num_lost;		/* overwritten unread, and not yet reported as lost */
};

/* Oldest record that was not fetched yet; false if there is none. */
bool core_journal_pop(struct core_journal *l, struct ebb_record *ret_record);

/* ---- journal-sum.c: requests that are too many to be recorded one by one -- */

/* When core_gather_end() has something to record, or EBB_TIME_NEVER. */
usec_t core_gather_until(const struct ebb_vm *vm);
/* Records what was counted. */
void core_gather_end(const struct core_env *e, const struct ebb_vm *vm, usec_t now);

#endif /* EBB_CORE_JOURNAL_H */
