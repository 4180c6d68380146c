/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clocks, read at the edges only: decisions get the time as an argument. */
#ifndef EBB_UTIL_CLOCK_H
#define EBB_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t ebb_clock_usec(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Monotonic time, microseconds. */
static inline uint64_t ebb_clock_mono_usec(void)
{
	return ebb_clock_usec(CLOCK_MONOTONIC);
}

/* Time since the epoch, microseconds. */
static inline uint64_t ebb_clock_real_usec(void)
{
	return ebb_clock_usec(CLOCK_REALTIME);
}

#endif
