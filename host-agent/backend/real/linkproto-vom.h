/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histograms of the value of memory; private to linkproto*.c. */
#ifndef EBB_IO_LINKPROTO_VOM_H
#define EBB_IO_LINKPROTO_VOM_H

#include "backend/real/linkproto.h"

/* Whether a telemetry frame can be so long because it is a histogram. */
bool ebb_linkproto_is_vom_len(size_t len);

/*
 * The payload of a telemetry frame of this type, len bytes, at least as long as its fixed part.
 * The buckets of ret are where the payload was.  0 or -EPROTO with err.
 */
int ebb_linkproto_decode_vom(void *payload, size_t len, uint16_t num_nodes,
			     struct ebb_fact_vom *ret, struct ebb_err *err);

#endif
