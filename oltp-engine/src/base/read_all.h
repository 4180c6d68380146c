/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading a piece of a file whole. */
#ifndef OLTP_READ_ALL_H
#define OLTP_READ_ALL_H

#include <errno.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

/* Returns how many bytes were read: all, or fewer at the end of the file; or -errno. */
static inline ssize_t read_all(int fd, void *buffer, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(fd, (uint8_t *)buffer + done, bytes - done,
				  (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

#endif
