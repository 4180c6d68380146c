/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plays a database that lies about its I/Os, for whole-VM tests: reports counters of a simulated
 * cache (EBB_IOC_TELEMETRY) until it is killed.  Errors go to stderr with the name of the errno and
 * give exit status 1.
 */
#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <linux/ebb_ioctl.h>

#include "ebb-guest.h"

#define GOES_BACK_BY	UINT64_C(1000000)

static const char usage[] =
	"usage: ebbt-baseline MIB BASELINE ACTUAL    a cache of so many MiB; in each second so\n"
	"                                            many I/Os of that cache, and of the database\n"
	"       ebbt-baseline MIB back               counters that go back all the time\n";

static int report(int fd, uint32_t mib, uint64_t baseline, uint64_t actual)
{
	struct ebb_telemetry t = { .size = sizeof(t) };

	t.report.type = htole16(VIRTIO_EBB_TELEMETRY_TOTALS);
	t.report.baseline_mib = htole32(mib);
	t.report.baseline_ios = htole64(baseline);
	t.report.actual_ios = htole64(actual);
	/* The queue is full: the next report says the same, and more. */
	if (!ioctl(fd, EBB_IOC_TELEMETRY, &t) || errno == EAGAIN)
		return 0;
	fprintf(stderr, "ebbt-baseline: %s\n", strerrorname_np(errno));
	return 1;
}

int main(int argc, char **argv)
{
	const bool goes_back = argc == 3 && !strcmp(argv[2], "back");
	uint64_t baseline_ps = 0, actual_ps = 0;
	uint32_t mib;
	int fd, rc = 0;

	if (argc != 4 && !goes_back) {
		fputs(usage, stderr);
		return 2;
	}
	mib = (uint32_t)strtoul(argv[1], NULL, 0);
	if (!goes_back) {
		baseline_ps = strtoull(argv[2], NULL, 0);
		actual_ps = strtoull(argv[3], NULL, 0);
	}
	fd = open("/dev/ebb", O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "ebbt-baseline: /dev/ebb: %s\n", strerrorname_np(errno));
		return 1;
	}
	for (uint64_t seconds = 0; !rc; seconds++) {
		/* Half of the reports say more than the one before, and half say less. */
		rc = goes_back ? report(fd, mib, seconds % 2 * GOES_BACK_BY,
					seconds % 2 * GOES_BACK_BY) :
				 report(fd, mib, baseline_ps * seconds, actual_ps * seconds);
		sleep(1);
	}
	return rc;
}
