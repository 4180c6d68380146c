/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef OLTP_CLOCK_H
#define OLTP_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}

/* A signal may end it early. */
static inline void clock_sleep(uint64_t ns)
{
	const struct timespec time = clock_timespec(ns);

	nanosleep(&time, NULL);
}

#endif
