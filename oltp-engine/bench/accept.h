/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Taking connections in a loop that must not spin. */
#ifndef BENCH_ACCEPT_H
#define BENCH_ACCEPT_H

/* How long one failed call waits. */
#define ACCEPT_PAUSE_MS		5u

/*
 * accept4() without the peer's address; flags: its SOCK_ flags. Returns the file descriptor or
 * -errno. If no file descriptor or memory is free, the connection stays where it is and the
 * listening socket readable, so a caller that polls would do nothing but try again: the call
 * then waits for ACCEPT_PAUSE_MS before it returns.
 */
int accept_or_pause(int listen_fd, int flags);

#endif
