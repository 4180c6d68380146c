/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lines.h - the lines of talk.h on a stream socket, with a limit of time. */
#ifndef OLTP_FENCE_LINES_H
#define OLTP_FENCE_LINES_H

#include <stdint.h>

#include "oltp-engine/server/fence/talk.h"

/* CLOCK_MONOTONIC. */
int64_t fence_now_ms(void);

/*
 * Reads a line and takes its end away. Nothing may come behind it: each side waits for the other.
 * Errors: -ETIMEDOUT (not before until_ms), -EPIPE (the connection has ended), -E2BIG (longer than
 * FENCE_LINE_MAX), -EPROTO (a NUL in it, or more behind it), those of recv.
 */
int fence_read_line(int fd, int64_t until_ms, char ret_line[FENCE_LINE_MAX + 1]);

/* Errors: -EPIPE; a line fits in the buffer of a new socket, so nothing waits. */
int fence_write_line(int fd, const char *line);

#endif
