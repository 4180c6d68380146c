// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Making and removing the monitor's socket: see server.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "server.h"

#define BACKLOG	32

/* All folders above path. */
static int folders_make(const char *path)
{
	char folder[sizeof(((struct ebb_server *)0)->path)];

	strcpy(folder, path);
	for (char *p = strchr(folder + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (mkdir(folder, 0755) < 0 && errno != EEXIST) {
			int r = -errno;

			ebb_log("cannot make folder %s: %s", folder, strerror(-r));
			return r;
		}
		*p = '/';
	}
	return 0;
}

/* The kernel lets go of the lock when its holder dies, however that happens. */
static int lock_take(struct ebb_server *server)
{
	char pid[16] = "";
	int r;

	server->lock_fd = open(server->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (server->lock_fd < 0) {
		r = -errno;
		ebb_log("cannot open %s: %s", server->lock_path, strerror(-r));
		return r;
	}
	if (flock(server->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
		if (r == -EADDRINUSE && read(server->lock_fd, pid, sizeof(pid) - 1) > 0)
			ebb_log("%s is served by another monitor, process %d", server->path,
				atoi(pid));
		else
			ebb_log("cannot lock %s: %s", server->lock_path, strerror(-r));
		return r;
	}
	/* For people who look into the file, and for the message above. */
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(server->lock_fd, 0) < 0 ||
	    write(server->lock_fd, pid, strlen(pid)) != (ssize_t)strlen(pid)) {
		r = -errno;
		ebb_log("cannot write %s: %s", server->lock_path, strerror(errno));
		return r;
	}
	return 0;
}

/* With the lock held a socket at that path belongs to nobody. */
static int stale_remove(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		ebb_log("%s is in the way and not a socket: remove it", path);
		return -EEXIST;
	}
	return unlink(path) < 0 ? -errno : 0;
}

static int socket_listen(struct ebb_server *server, gid_t gid)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t old_umask;
	int r;

	strcpy(addr.sun_path, server->path);
	server->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listen_fd < 0)
		return -errno;
	/* Closed to everybody until it has its group. */
	old_umask = umask(0177);
	r = bind(server->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	umask(old_umask);
	if (r < 0)
		return r;
	if ((gid != (gid_t)-1 && chown(server->path, (uid_t)-1, gid) < 0) ||
	    chmod(server->path, 0660) < 0 || listen(server->listen_fd, BACKLOG) < 0) {
		r = -errno;
		unlink(server->path);
	}
	return r;
}

int ebb_server_open(struct ebb_server *server, const char *path, gid_t gid)
{
	int r;

	server->listen_fd = server->lock_fd = -1;
	if (strlen(path) == 0 || strlen(path) >= sizeof(server->path)) {
		ebb_log("socket path %s: 1 to %zu bytes", path, sizeof(server->path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(server->path, path);
	snprintf(server->lock_path, sizeof(server->lock_path), "%s.lock", path);
	r = folders_make(path);
	if (r < 0)
		return r;
	r = lock_take(server);
	if (r < 0)
		goto out_lock;
	r = stale_remove(path);
	if (r == 0)
		r = socket_listen(server, gid);
	if (r == 0)
		return 0;
	ebb_log("cannot listen on %s: %s", path, strerror(-r));
	if (server->listen_fd >= 0)
		close(server->listen_fd);
out_lock:
	if (server->lock_fd >= 0)
		close(server->lock_fd);
	server->listen_fd = server->lock_fd = -1;
	return r;
}

void ebb_server_close(struct ebb_server *server)
{
	if (server->listen_fd < 0)
		return;
	unlink(server->path);
	close(server->listen_fd);
	close(server->lock_fd);
	server->listen_fd = server->lock_fd = -1;
}

int ebb_server_group_find(const char *path, const char *group, gid_t *ret)
{
	struct group *entry;
	unsigned long number;
	int r = -ENOENT;
	char *end;
	FILE *f;

	errno = 0;
	number = strtoul(group, &end, 10);
	/* (gid_t)-1 means no group at all. */
	if (group[0] >= '0' && group[0] <= '9' && *end == 0 && errno == 0 &&
	    number < (gid_t)-1) {
		*ret = (gid_t)number;
		return 0;
	}
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (r < 0 && (entry = fgetgrent(f)))
		if (strcmp(entry->gr_name, group) == 0) {
			*ret = entry->gr_gid;
			r = 0;
		}
	fclose(f);
	return r;
}
