/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs from the host, through libebb: an implementation of struct oltp_cpu_source_ops. */
#ifndef OLTP_SOURCE_EBB_H
#define OLTP_SOURCE_EBB_H

#include <stdbool.h>

#include "ebb.h"
#include "blocks_ebb.h"
#include "oltp.h"

struct source_ebb_config {
	struct ebb *ebb;	/* stays the caller's */
	struct blocks_ebb *blocks;	/* its memory, with an engine; likewise; NULL: none */
	bool no_ht;		/* do not take hardware threads whose sibling is in use */
	enum oltp_tier tier;	/* how to give CPUs back; NONE: as the host likes */
	uint32_t interval_ms;	/* between two samples that are published */
	/* Told once when the device is gone: from then on there are no offers and no demands. */
	void (*on_gone)(void *ctx, int rc);
	void *ctx;
};

extern const struct oltp_cpu_source_ops source_ebb_ops;

/* Error: -ENOMEM. */
int source_ebb_create(const struct source_ebb_config *config, void **ret_source);

/* Accepts NULL. */
void source_ebb_destroy(void *source);

#endif
