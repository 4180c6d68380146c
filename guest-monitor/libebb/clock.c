// SPDX-License-Identifier: BSD-3-Clause
/*
 * What time it is, and timers by that time: link.h.  A file of its own, so that tests can
 * put another clock in its place.
 */
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>

#include "link.h"

#define NS_PER_SEC	1000000000ull

uint64_t ebb_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

void ebb_timer_arm(int timer_fd, uint64_t due_ns)
{
	struct itimerspec its = { 0 };

	if (due_ns != UINT64_MAX) {
		/* All zeroes would disarm it. */
		due_ns = due_ns ? due_ns : 1;
		its.it_value.tv_sec = (time_t)(due_ns / NS_PER_SEC);
		its.it_value.tv_nsec = (long)(due_ns % NS_PER_SEC);
	}
	timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
}
