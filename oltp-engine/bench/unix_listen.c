// SPDX-License-Identifier: GPL-2.0-or-later
/* See unix_listen.h. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "unix_listen.h"

/* Was the socket left by a program that has ended? Such a socket refuses connections. */
static bool is_stale(const struct sockaddr_un *address)
{
	struct stat st;
	bool stale;
	int fd;

	/* Connecting to an ordinary file is refused as well, but that is not ours to remove. */
	if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	stale = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
		errno == ECONNREFUSED;
	close(fd);
	return stale;
}

static int bind_private(int fd, const struct sockaddr_un *address)
{
	mode_t mask = umask(0177);
	int rc = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

	umask(mask);
	return rc;
}

int unix_listen(const char *path, int backlog)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, rc;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	rc = bind_private(fd, &address);
	if (rc == -EADDRINUSE && is_stale(&address)) {
		unlink(path);
		rc = bind_private(fd, &address);
	}
	if (rc)
		goto out_close;
	if (!listen(fd, backlog))
		return fd;
	rc = -errno;
	unlink(path);
out_close:
	close(fd);
	return rc;
}
