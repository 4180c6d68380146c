// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/fence/lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

int64_t fence_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int fence_read_line(int fd, int64_t until_ms, char ret_line[FENCE_LINE_MAX + 1])
{
	size_t n = 0;

	while (n < FENCE_LINE_MAX) {
		struct pollfd at = { .fd = fd, .events = POLLIN };
		int64_t left = until_ms - fence_now_ms();
		char *end;
		ssize_t got;

		if (left <= 0 || poll(&at, 1, (int)left) <= 0)
			return -ETIMEDOUT;
		got = recv(fd, ret_line + n, FENCE_LINE_MAX - n, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return got ? -errno : -EPIPE;
		n += (size_t)got;
		end = memchr(ret_line, '\n', n);
		if (!end)
			continue;
		if (end != ret_line + n - 1 || memchr(ret_line, '\0', n))
			return -EPROTO;
		*end = '\0';
		return 0;
	}
	return -E2BIG;
}

int fence_write_line(int fd, const char *line)
{
	size_t n = strlen(line);

	return send(fd, line, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n ? 0 : -EPIPE;
}
