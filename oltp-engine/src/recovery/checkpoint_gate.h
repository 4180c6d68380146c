/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does what checkpoint_pace.h says: holds buffers of a checkpoint back. */
#ifndef OLTP_CHECKPOINT_GATE_H
#define OLTP_CHECKPOINT_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct log;

struct checkpoint_gate {
	struct log *log;
	const _Atomic bool *is_awaited, *is_stopping;
	uint64_t bytes_all, bytes_per_s, log_bytes_max;
	uint64_t start_ns, held_ns;
	uint64_t log_bytes;	/* when it began */
	uint64_t usual_ns;	/* of a group's write, before it began */
	uint64_t groups;	/* that were written before the last buffer was */
};

/* A checkpoint begins; the other arguments are as in struct checkpoint_pace_facts. */
void checkpoint_gate_begin(struct checkpoint_gate *gate, struct log *log, uint64_t bytes_all,
			   uint64_t bytes_per_s, uint64_t log_bytes_max,
			   const _Atomic bool *is_awaited, const _Atomic bool *is_stopping);

/*
 * With so many bytes of it written: returns when the next buffer may be. Errors: -ECANCELED (it is
 * to stop), those of the log.
 */
int checkpoint_gate_wait(struct checkpoint_gate *gate, uint64_t bytes);

#endif
