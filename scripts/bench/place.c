// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What placement takes as a cluster grows: CPU time of one thread, and memory, for made-up VMs
 * (tests/unit/host-agent/place_rig.h), 20 on each host.  Each size runs in a process of its own.
 *
 * usage: ebb-bench-place [SECONDS [HOSTSxVMS...]]
 * SECONDS of CPU time for each search: 0.1 to 600 (5).  HOSTS: 1 to 4096, VMS: 1 to 131000.
 *
 *   create   the state from hosts and VMs, with the sums of all samples
 *   new      one more VM: its samples, and the best host for it; median and highest of 50
 *   all      all VMs from no host to a plan, without a search
 *   plan     a search from the plan that stands, of SECONDS
 *   risk     hosts with a violation within the window that are expected: before, after that search
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/host-agent/place/place_rig.h"

#define N_NEW	50u

static uint64_t cpu_usec(void *ctx)
{
	struct timespec t;

	(void)ctx;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void fail(const char *what)
{
	fprintf(stderr, "ebb-bench-place: %s\n", what);
	exit(1);
}

static int compare_usec(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* VMs that have just been created; each leaves before the next: so small clusters have room. */
static void add_new(struct place *p, uint64_t *usec)
{
	for (uint32_t i = 0; i < N_NEW; i++) {
		struct place_vm vm = rig_vm(999, 1000000 + i, 0);
		struct place_refusal refusal;
		struct place_problem problem;
		uint64_t begin = cpu_usec(NULL);
		uint32_t index;

		if (place_add(p, &vm, &index, &problem, &refusal))
			fail("a new VM is refused");
		/* In a full cluster none is found: that takes its time, too. */
		place_new(p, index, &refusal);
		usec[i] = cpu_usec(NULL) - begin;
		place_put(p, index, -1);
	}
	qsort(usec, N_NEW, sizeof(*usec), compare_usec);
}

static void measure(uint32_t n_hosts, uint32_t n_vms, double seconds)
{
	struct place_limit limit = { .seed = 1, .usec = (uint64_t)(seconds * 1e6),
				     .now = cpu_usec };
	struct rig *rig = rig_create(n_hosts, n_vms, 1.05 * n_vms / n_hosts, 1);
	struct place_score before, after;
	struct place_refusal refusal;
	struct rusage used;
	uint64_t at[6], new[N_NEW], steps;
	struct place *p;

	at[0] = cpu_usec(NULL);
	p = rig_place(rig);
	at[1] = cpu_usec(NULL);
	place_score(p, &before);
	/* VMs may be left on no host, or hosts too full: the numbers show it. */
	place_anneal(p, &limit, &steps, &refusal);
	at[2] = cpu_usec(NULL);
	place_score(p, &after);
	add_new(p, new);
	place_destroy(p);
	for (uint32_t vm = 0; vm < n_vms; vm++)
		rig->vms[vm].host = -1;
	p = rig_place(rig);
	at[3] = cpu_usec(NULL);
	limit = (struct place_limit){ .seed = 1, .steps = 1 };
	place_anneal(p, &limit, NULL, &refusal);
	at[4] = cpu_usec(NULL);
	getrusage(RUSAGE_SELF, &used);
	printf("%6u %7u %9.1f %7.2f %7.2f %8.2f %8.2f %9" PRIu64 " %7.1f %7.1f %6.0f\n", n_hosts,
	       n_vms, (double)(at[1] - at[0]) / 1e3, (double)new[N_NEW / 2] / 1e3,
	       (double)new[N_NEW - 1] / 1e3, (double)(at[4] - at[3]) / 1e6,
	       (double)(at[2] - at[1]) / 1e6, steps, before.violations, after.violations,
	       (double)used.ru_maxrss / 1024);
	place_destroy(p);
	rig_destroy(rig);
}

int main(int argc, char **argv)
{
	static char *sizes[] = { "10x200", "40x800", "100x2000", "300x6000", "1000x20000" };
	double seconds = argc > 1 ? atof(argv[1]) : 5;
	char **size = argc > 2 ? argv + 2 : sizes;
	int n_sizes = argc > 2 ? argc - 2 : (int)(sizeof(sizes) / sizeof(sizes[0]));

	if (!(seconds >= 0.1 && seconds <= 600))
		fail("SECONDS is 0.1 to 600");
	printf("%6s %7s %9s %7s %7s %8s %8s %9s %7s %7s %6s\n", "hosts", "VMs", "create ms",
	       "new ms", "highest", "all s", "plan s", "steps", "risk", "after", "MiB");
	for (int i = 0; i < n_sizes; i++) {
		unsigned int n_hosts, n_vms;
		int status;
		pid_t pid;

		if (sscanf(size[i], "%ux%u", &n_hosts, &n_vms) != 2 || n_hosts < 1 ||
		    n_hosts > PLACE_HOSTS_MAX || n_vms < 1 || n_vms > 131000)
			fail("a size is HOSTSxVMS, of 1 to 4096 and 1 to 131000");
		fflush(stdout);
		pid = fork();
		if (pid < 0)
			fail("fork failed");
		if (!pid) {
			measure(n_hosts, n_vms, seconds);
			return 0;
		}
		if (waitpid(pid, &status, 0) != pid || status)
			fail("a size was not measured");
	}
	return 0;
}
