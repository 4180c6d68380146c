// SPDX-License-Identifier: GPL-2.0-or-later
/* See record_output.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "record_output.h"

static int write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			bytes -= (size_t)n;
		}
	}
	return 0;
}

int record_output_begin(int fd)
{
	static const char first[] = "oltp-history 1\n";

	return write_all(fd, first, strlen(first));
}

int record_output_write(void *ctx, const char *text, size_t bytes)
{
	struct record_output *output = ctx;
	int rc;

	pthread_mutex_lock(&output->lock);
	rc = write_all(output->fd, text, bytes);
	pthread_mutex_unlock(&output->lock);
	return rc;
}
