// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/move/trace.h"

void trace_begin(struct trace *trace, enum move_phase phase, uint64_t now_ns)
{
	*trace = (struct trace){ now_ns, (uint8_t)phase };
}

void trace_end(struct trace *trace, struct hist *phases, enum move_phase phase, uint64_t now_ns)
{
	if (trace->now != phase)
		return;
	hist_record(&phases[phase], now_ns - trace->since_ns);
	trace_begin(trace, (enum move_phase)(phase + 1), now_ns);
}

void trace_stop(struct trace *trace)
{
	trace->now = MOVE_PHASES;
}
