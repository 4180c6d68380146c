// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The clock of libebb and ebb-monitord in tests (instead of libebb/clock.c): see ebb_rig.h.  What
 * it shows is in memory that the test program shares with the processes it starts.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "ebb_rig.h"
#include "guest-monitor/libebb/link.h"

#define FD_VARIABLE	"EBB_RIG_CLOCK"
#define NS_PER_SEC	1000000000ull
#define NS_PER_MS	1000000ull
/* While time passes slowly, timers are looked at so often: it may be moved on meanwhile. */
#define LOOK_NS		(20 * NS_PER_MS)

/* It showed from_ns at real_ns.  Written by the test program alone; seq is odd meanwhile. */
struct shown {
	atomic_uint seq;
	_Atomic uint64_t real_ns, from_ns;
	atomic_uint divisor;
};

static struct shown *shown;
static pthread_once_t once = PTHREAD_ONCE_INIT;

uint64_t ebb_rig_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void shown_create(void)
{
	const char *inherited = getenv(FD_VARIABLE);
	int fd = inherited ? atoi(inherited) : memfd_create("ebb-rig-clock", 0);
	char text[16];

	if (fd < 0 || (!inherited && ftruncate(fd, sizeof(*shown)) < 0))
		abort();
	shown = mmap(NULL, sizeof(*shown), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shown == MAP_FAILED)
		abort();
	if (inherited)
		return;
	shown->divisor = 1;
	snprintf(text, sizeof(text), "%d", fd);
	setenv(FD_VARIABLE, text, 1);
}

uint64_t ebb_now_ns(void)
{
	uint64_t now_ns;
	unsigned int seq;

	pthread_once(&once, shown_create);
	do {
		seq = shown->seq;
		now_ns = shown->from_ns + (ebb_rig_now_ns() - shown->real_ns) / shown->divisor;
	} while (seq % 2 || seq != shown->seq);
	return now_ns;
}

static void shown_set(uint64_t add_ns, unsigned int divisor)
{
	uint64_t now_ns = ebb_now_ns();

	shown->seq++;
	shown->real_ns = ebb_rig_now_ns();
	shown->from_ns = now_ns + add_ns;
	shown->divisor = divisor;
	shown->seq++;
}

void ebb_rig_time_slow(unsigned int divisor)
{
	shown_set(0, divisor);
}

void ebb_rig_time_pass(unsigned int ms)
{
	pthread_once(&once, shown_create);
	shown_set(ms * NS_PER_MS, shown->divisor);
}

void ebb_timer_arm(int timer_fd, uint64_t due_ns)
{
	uint64_t now_ns = ebb_now_ns();
	uint64_t in_ns = due_ns > now_ns ? due_ns - now_ns : 1;
	struct itimerspec its = { 0 };

	if (due_ns != UINT64_MAX) {
		if (shown->divisor > 1 && in_ns > LOOK_NS)
			in_ns = LOOK_NS;
		its.it_value.tv_sec = (time_t)(in_ns / NS_PER_SEC);
		its.it_value.tv_nsec = (long)(in_ns % NS_PER_SEC);
	}
	timerfd_settime(timer_fd, 0, &its, NULL);
}
