/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory without a host: the native provider of blocks under a limit that follows a schedule, so
 * that demands come and go at known times.
 */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include <stdint.h>

#include "options.h"

struct limits {
	const struct bench_options *options;
	struct oltp_blocks_native *blocks;
	uint32_t next;		/* step of the schedule */
};

/*
 * A bound above the memory of this machine is none: the kernel would kill the process before it is
 * reached. -ENOMEM, with a line on stderr: there is such a bound in the options.
 */
int limits_check(const struct bench_options *options);

/*
 * Errors: -ENOMEM. Zeroed, one that was never opened may be followed and closed: nothing happens.
 */
int limits_open(struct limits *limits, const struct bench_options *options);
void limits_close(struct limits *limits);

/*
 * Does what the schedule says up to now. Returns when it goes on, UINT64_MAX: not at all. Both in
 * ns of CLOCK_MONOTONIC, as start_ns, when the run began. on_step is told of each new limit.
 */
uint64_t limits_follow(struct limits *limits, uint64_t start_ns, uint64_t now_ns,
		       void (*on_step)(void *ctx, uint64_t limit_bytes), void *ctx);

#endif
