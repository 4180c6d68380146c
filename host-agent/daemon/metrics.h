/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measurements of the host and its VMs, as OpenMetrics text. */
#ifndef EBB_DAEMON_METRICS_H
#define EBB_DAEMON_METRICS_H

#include "core/core.h"

/* To be freed; NULL when out of memory. */
char *ebb_metrics_text(const struct ebb_state *s, usec_t now);

#endif
