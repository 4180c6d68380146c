/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A flag that one thread reads all the time, at the cost of a read, and that wakes it. */
#ifndef OLTP_STOP_FLAG_H
#define OLTP_STOP_FLAG_H

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef _Atomic uint32_t stop_flag;

static inline bool stop_flag_is_set(stop_flag *flag)
{
	return atomic_load_explicit(flag, memory_order_relaxed);
}

/* Nothing is handed over by it. */
static inline void stop_flag_set(stop_flag *flag)
{
	atomic_store(flag, 1);
	syscall(SYS_futex, flag, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Sleeps for so long, less than a second, or until the flag is set; true: it is, or may be. */
static inline bool stop_flag_wait(stop_flag *flag, long ns)
{
	const struct timespec time = { .tv_nsec = ns };

	return !syscall(SYS_futex, flag, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0) ||
	       errno != ETIMEDOUT;
}

#endif
