// SPDX-License-Identifier: GPL-2.0-or-later
/* See accept.h. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "accept.h"

int accept_or_pause(int listen_fd, int flags)
{
	int fd = accept4(listen_fd, NULL, NULL, flags), rc = -errno;

	if (fd >= 0)
		return fd;
	/* After these the listening socket is readable only if another connection waits. */
	if (rc != -EAGAIN && rc != -EINTR && rc != -ECONNABORTED)
		usleep(ACCEPT_PAUSE_MS * 1000);
	return rc;
}
