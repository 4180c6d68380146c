/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Visits each busy CPU of an emulated guest again and again, for scenarios that compare throughput
 * per CPU.  QEMU's emulation remembers where pages are in a table of each CPU's, which begins with
 * 256 entries and grows only when the guest flushes it.  A CPU with nothing but a worker of a
 * database switches address spaces so rarely that it is half as fast as the others for 10 to 30 s
 * after it was plugged.  Each visit makes it switch; a real CPU has no such table, so elsewhere
 * nothing is done.  An idle CPU is left alone, since waking it takes time from those that work.
 */
#include <cpuid.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ebb-guest.h"

#define MAX_CPUS	CPU_SETSIZE

static bool is_emulated(void)
{
	uint32_t eax, name[3];

	__cpuid(0x40000000, eax, name[0], name[1], name[2]);
	return !memcmp(name, "TCGTCGTCGTCG", sizeof(name));
}

static void visit(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* Returns there; refused if the CPU is offline. */
	sched_setaffinity(0, sizeof(set), &set);
}

/* Those that spent time in programs since the round before, by proc_stat(5). */
static void visit_busy(void)
{
	static unsigned long long user_before[MAX_CPUS];
	bool is_busy[MAX_CPUS] = { false };
	char line[256];
	FILE *stat = fopen("/proc/stat", "r");

	if (!stat)
		return;
	while (fgets(line, sizeof(line), stat)) {
		unsigned long long user;
		unsigned int cpu;

		if (sscanf(line, "cpu%u %llu", &cpu, &user) != 2 || cpu >= MAX_CPUS)
			continue;
		is_busy[cpu] = user != user_before[cpu];
		user_before[cpu] = user;
	}
	fclose(stat);
	for (unsigned int cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (is_busy[cpu])
			visit(cpu);
	}
}

int main(int argc, char **argv)
{
	const uint64_t round_ns = argc == 2 ? strtoul(argv[1], NULL, 10) * UINT64_C(1000000) : 0;
	uint64_t next_ns = now_ns();

	if (!round_ns) {
		fputs("usage: ebbt-tour MS    each busy CPU once in so many ms\n", stderr);
		return 2;
	}
	while (is_emulated()) {
		struct timespec next;

		visit_busy();
		next_ns += round_ns;
		next.tv_sec = (time_t)(next_ns / UINT64_C(1000000000));
		next.tv_nsec = (long)(next_ns % UINT64_C(1000000000));
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return 0;
}
