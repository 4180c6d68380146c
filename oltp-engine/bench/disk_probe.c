// SPDX-License-Identifier: GPL-2.0-or-later
/* See disk_probe.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "disk_probe.h"
#include "oltp-engine/src/base/clock.h"

#define PIECE_BYTES	(1u << 20)
#define PIECES		128u
#define SYNC_BYTES	4096u
#define SYNCS		200u

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static int write_at(int fd, void *data, size_t bytes, off_t offset, int flags)
{
	struct iovec iov = { data, bytes };
	ssize_t n = pwritev2(fd, &iov, 1, offset, flags);

	if (n < 0)
		return -errno;
	return (size_t)n == bytes ? 0 : -EIO;
}

/* Over what was written before, as a log that uses its segments again. */
static int measure(int fd, void *data, struct disk_probe *probe)
{
	uint64_t took_ns[SYNCS], start_ns;
	int rc = 0;

	for (int pass = 0; !rc && pass < 2; pass++) {
		start_ns = clock_now_ns();
		for (uint32_t i = 0; !rc && i < PIECES; i++)
			rc = write_at(fd, data, PIECE_BYTES, (off_t)i * PIECE_BYTES, 0);
		if (!rc && fdatasync(fd))
			rc = -errno;
		probe->write_mb_per_s = (double)PIECES * PIECE_BYTES * 1e3 /
					(double)(clock_now_ns() - start_ns);
	}
	for (uint32_t i = 0; !rc && i < SYNCS; i++) {
		start_ns = clock_now_ns();
		rc = write_at(fd, data, SYNC_BYTES, (off_t)i * SYNC_BYTES, RWF_DSYNC);
		took_ns[i] = clock_now_ns() - start_ns;
	}
	if (rc)
		return rc;
	qsort(took_ns, SYNCS, sizeof(*took_ns), compare);
	probe->sync_p50_us = (double)took_ns[SYNCS / 2] / 1e3;
	probe->sync_p99_us = (double)took_ns[SYNCS * 99 / 100] / 1e3;
	return 0;
}

int disk_probe_run(const char *dir, struct disk_probe *ret_probe)
{
	struct disk_probe probe = { .is_direct = true };
	void *data;
	int rc, fd;

	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
	if (fd < 0 && errno == EINVAL) {
		probe.is_direct = false;
		fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		return -errno;
	data = aligned_alloc(SYNC_BYTES, PIECE_BYTES);
	rc = data ? 0 : -ENOMEM;
	if (!rc) {
		memset(data, 0x5a, PIECE_BYTES);
		rc = measure(fd, data, &probe);
	}
	free(data);
	close(fd);
	if (!rc)
		*ret_probe = probe;
	return rc;
}
