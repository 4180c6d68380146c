/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What test programs for guests have in common. */
#ifndef TESTS_VM_GUEST_EBB_GUEST_H
#define TESTS_VM_GUEST_EBB_GUEST_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* CLOCK_MONOTONIC */
static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/*
 * Waits up to wait_ns for a CPU to be there, then switches it on ("1") or off ("0") through sysfs.
 * *found_ns, if not NULL: when it was there.  Returns 0 or -errno.
 */
static inline int cpu_switch(unsigned int cpu, const char *value, uint64_t wait_ns,
			     uint64_t *found_ns)
{
	uint64_t end_ns = now_ns() + wait_ns;
	char path[64];
	int rc;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	/* What is still being taken down, or not yet set up, is not there. */
	do {
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		if (found_ns)
			*found_ns = now_ns();
		rc = 0;
		/* EINVAL: it is as wished already. */
		if (fd < 0 || (write(fd, value, strlen(value)) < 0 && errno != EINVAL))
			rc = -errno;
		if (fd >= 0)
			close(fd);
		if (rc)
			usleep(200);
	} while ((rc == -ENOENT || rc == -ENODEV) && now_ns() < end_ns);
	return rc;
}

#endif /* TESTS_VM_GUEST_EBB_GUEST_H */
