/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A unix socket that the program's owner alone may connect to. */
#ifndef BENCH_UNIX_LISTEN_H
#define BENCH_UNIX_LISTEN_H

/*
 * Listens at path, non-blocking; the owner of the descriptor removes the path when it closes it. A
 * socket there that nobody listens on any more, left by a program that has ended, is replaced.
 * Returns the descriptor or -errno: -ENAMETOOLONG, -EADDRINUSE (somebody listens, or it is no
 * socket), those of socket, bind and listen.
 */
int unix_listen(const char *path, int backlog);

#endif
