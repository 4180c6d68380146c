/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters of volumes as JSON: their sum over storage daemons, and what follows from them.  Members
 * are those of QEMU's query-ebb-volumes.  No I/O, no state.
 */
#ifndef EBB_VOLUMED_VMETER_H
#define EBB_VOLUMED_VMETER_H

#include <jansson.h>

/*
 * to += from, member by member; arrays likewise, and the longer one counts.  Of "late-max-ns", a
 * maximum, the greater one is kept.  from may be NULL.
 */
void ebb_vmeter_add(json_t *to, const json_t *from);

/*
 * Adds "delays" to counters with "delay-classes": the same in 24 classes, less than 1, 2, 4, ...
 * microseconds, the last with all that were later.
 */
void ebb_vmeter_add_delays(json_t *counters);

/*
 * Of the counters those from which the agent makes its ledger, as a new object: "intervals",
 * "violated-intervals", "charged", "early", "missed", "violated", "others-early",
 * "others-promised", "slow", "overdue".
 */
json_t *ebb_vmeter_brief(const json_t *counters);

/*
 * Delays of requests after their deadlines in nanoseconds, as a new object: "mean-ns", "p50-ns",
 * "p90-ns", "p99-ns", "p999-ns", "max-ns".  A percentile is the upper bound of its class, which is
 * a quarter beyond the delay at most, and never more than the maximum.  All 0: no request had a
 * deadline.
 */
json_t *ebb_vmeter_delay(const json_t *counters);

#endif
