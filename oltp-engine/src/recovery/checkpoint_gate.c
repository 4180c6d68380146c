// SPDX-License-Identifier: GPL-2.0-or-later
/* See checkpoint_gate.h. */
#include <errno.h>
#include <time.h>

#include "checkpoint_gate.h"
#include "checkpoint_pace.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/log/log.h"

void checkpoint_gate_begin(struct checkpoint_gate *gate, struct log *log, uint64_t bytes_all,
			   uint64_t bytes_per_s, uint64_t log_bytes_max,
			   const _Atomic bool *is_awaited, const _Atomic bool *is_stopping)
{
	struct log_load load;

	log_load_read(log, &load);
	*gate = (struct checkpoint_gate){
		.log = log,
		.is_awaited = is_awaited,
		.is_stopping = is_stopping,
		.bytes_all = bytes_all,
		.bytes_per_s = bytes_per_s,
		.log_bytes_max = log_bytes_max,
		.start_ns = clock_ns(CLOCK_MONOTONIC),
		.log_bytes = log_bytes_written(log),
		.usual_ns = load.usual_ns,
		.groups = load.groups,
	};
}

static struct checkpoint_pace pace_now(const struct checkpoint_gate *gate, uint64_t bytes,
				       uint64_t from_ns)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), group_ns = 0;
	struct log_load load;

	log_load_read(gate->log, &load);
	/* The log thread's clock may be a little ahead. */
	if (load.start_ns)
		group_ns = now_ns > load.start_ns ? now_ns - load.start_ns : 0;
	else if (load.groups != gate->groups)
		group_ns = load.last_ns;
	return checkpoint_pace(&(struct checkpoint_pace_facts){
		.since_ns = now_ns - gate->start_ns,
		.bytes = bytes,
		.bytes_all = gate->bytes_all,
		.bytes_per_s = gate->bytes_per_s,
		.is_awaited = atomic_load_explicit(gate->is_awaited, memory_order_relaxed),
		.log_bytes = log_bytes_written(gate->log) - gate->log_bytes,
		.log_bytes_max = gate->log_bytes_max,
		.is_group_written = load.start_ns,
		.group_ns = group_ns,
		.usual_ns = gate->usual_ns,
		.held_ns = now_ns - from_ns,
	});
}

static int wait(const struct checkpoint_gate *gate, const struct checkpoint_pace *pace)
{
	int rc;

	if (pace->what == CHECKPOINT_PACE_TIME) {
		nanosleep(&(struct timespec){ .tv_nsec = (long)pace->ns }, NULL);
		return 0;
	}
	rc = log_wait(gate->log, log_epoch_durable(gate->log) + 1,
		      clock_ns(CLOCK_MONOTONIC) + pace->ns);
	return rc == -ETIMEDOUT ? 0 : rc;
}

int checkpoint_gate_wait(struct checkpoint_gate *gate, uint64_t bytes)
{
	uint64_t from_ns = clock_ns(CLOCK_MONOTONIC);
	struct log_load load;
	int rc = 0;

	while (!rc) {
		struct checkpoint_pace pace = pace_now(gate, bytes, from_ns);

		if (pace.what == CHECKPOINT_PACE_WRITE)
			break;
		rc = atomic_load_explicit(gate->is_stopping, memory_order_relaxed) ?
			     -ECANCELED : wait(gate, &pace);
	}
	gate->held_ns += clock_ns(CLOCK_MONOTONIC) - from_ns;
	log_load_read(gate->log, &load);
	gate->groups = load.groups;
	return rc;
}
