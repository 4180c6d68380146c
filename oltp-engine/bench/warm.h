/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A memory source for the engine (struct oltp_mem_ops) that was written to before anything is
 * loaded, so that what a load is measured by is not how fast the system supplies memory.
 */
#ifndef BENCH_WARM_H
#define BENCH_WARM_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

struct warm {
	uint8_t *base;
	uint64_t bytes;		/* address space: more than was written to */
	uint64_t used;
};

/*
 * Bytes that can be written to now without swapping, as Linux estimates it (MemAvailable);
 * UINT64_MAX: it does not say.
 */
uint64_t warm_available(void);

/*
 * Maps much more than bytes, and writes to so many of them: that takes long, and unless quiet it
 * says every GiB how far it is. Errors: -ENOMEM.
 */
int warm_open(struct warm *warm, uint64_t bytes, bool quiet);

/* After the engine was closed. Zeroed, one that was never opened may be closed. */
void warm_close(struct warm *warm);

/* ctx: the struct warm. Memory that the engine frees is not used again. */
extern const struct oltp_mem_ops warm_mem_ops;

#endif
