/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's half of scripts/bench-plug: times what a guest can do with CPUs
 * without Ebb, and how long a request takes that the agent answers at once.
 * Prints one JSON object per line, times in ns.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/ebb_ioctl.h>

#include "ebb-guest.h"

static int fail(const char *what)
{
	fprintf(stderr, "ebbt-plug: %s: %s\n", what, strerrorname_np(errno));
	return 1;
}

/*
 * A request that the agent refuses needs no CPU and changes nothing: guest,
 * device, agent and back is all there is to it.
 */
static int do_ping(unsigned long rounds)
{
	int fd = open("/dev/ebb", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return fail("/dev/ebb");
	for (unsigned long i = 0; i < rounds; i++) {
		struct ebb_cpu_add a = {
			.size = sizeof(a),
			.count = 1,
			.node = EBB_NODE_ANY,
		};
		uint64_t start_ns = now_ns();

		if (ioctl(fd, EBB_IOC_CPU_ADD, &a) == 0 || (errno != EDQUOT && errno != ERANGE))
			return fail("not refused");
		printf("{\"round_trip_ns\":%" PRIu64 "}\n", now_ns() - start_ns);
	}
	return 0;
}

static int do_sysfs(unsigned int cpu, const char *value)
{
	uint64_t begin_ns = now_ns(), found_ns;

	errno = -cpu_switch(cpu, value, UINT64_C(10000000000), &found_ns);
	if (errno)
		return fail("CPU");
	printf("{\"wait_ns\":%" PRIu64 ",\"switch_ns\":%" PRIu64 "}\n", found_ns - begin_ns,
	       now_ns() - found_ns);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "ping"))
		return do_ping(strtoul(argv[2], NULL, 10));
	if (argc == 4 && !strcmp(argv[1], "sysfs"))
		return do_sysfs((unsigned int)strtoul(argv[2], NULL, 10), argv[3]);
	fputs("usage: ebbt-plug ping ROUNDS | sysfs CPU 0|1\n", stderr);
	return 2;
}
