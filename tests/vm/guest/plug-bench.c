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
#include <time.h>
#include <unistd.h>

#include <linux/ebb_ioctl.h>

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

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

/* Waits up to 10 s for a CPU to be there, then switches it on or off through sysfs. */
static int do_sysfs(const char *cpu, const char *value)
{
	uint64_t begin_ns = now_ns(), found_ns;
	char path[96];
	int rc;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%s/online", cpu);
	/* What is still being taken down, or not yet set up, is not there. */
	do {
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		found_ns = now_ns();
		rc = 0;
		if (fd < 0 || (write(fd, value, strlen(value)) < 0 && errno != EINVAL))
			rc = -errno;
		if (fd >= 0)
			close(fd);
		if (rc)
			usleep(1000);
	} while ((rc == -ENOENT || rc == -ENODEV) && now_ns() - begin_ns < UINT64_C(10000000000));
	errno = -rc;
	if (rc)
		return fail(path);
	printf("{\"wait_ns\":%" PRIu64 ",\"switch_ns\":%" PRIu64 "}\n", found_ns - begin_ns,
	       now_ns() - found_ns);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "ping"))
		return do_ping(strtoul(argv[2], NULL, 10));
	if (argc == 4 && !strcmp(argv[1], "sysfs"))
		return do_sysfs(argv[2], argv[3]);
	fputs("usage: ebbt-plug ping ROUNDS | sysfs CPU 0|1\n", stderr);
	return 2;
}
