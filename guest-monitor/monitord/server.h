/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The socket that applications connect to.
 */
#ifndef EBB_SERVER_H
#define EBB_SERVER_H

#include <sys/types.h>

struct ebb_server {
	int listen_fd;
	int lock_fd;			/* on PATH.lock: at most one monitor serves a path */
	char path[108];
	char lock_path[sizeof("/.lock") + 108];
};

/*
 * Makes missing folders, takes the lock, removes what a dead monitor left and
 * listens; mode 0660, group gid ((gid_t)-1: leave).  Logs what fails.
 *   -EADDRINUSE    another monitor serves that path
 *   -EEXIST        something that is not a socket is in the way
 *   -ENAMETOOLONG  the path does not fit into a socket address
 */
int ebb_server_open(struct ebb_server *server, const char *path, gid_t gid);

/* Removes the socket.  The lock file stays: removing it would race with the next monitor. */
void ebb_server_close(struct ebb_server *server);

/*
 * A number, or a name in path (normally /etc/group).  -ENOENT: no such group.
 * Not getgrnam(): a static program must not need shared libraries at run time.
 */
int ebb_server_group_find(const char *path, const char *group, gid_t *ret);

#endif /* EBB_SERVER_H */
