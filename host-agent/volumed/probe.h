/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A load for calibration: a client of our own NBD server that keeps so many requests to read open.
 * Blocks for as long as it measures, and while the server is silent for `patience_usec` at most, so
 * it runs in a process of its own (calibrate.c).
 */
#ifndef EBB_VOLUMED_PROBE_H
#define EBB_VOLUMED_PROBE_H

#include <stdint.h>
#include "util/err.h"
#include "volumed/knee.h"

/* Requests that a server takes from one connection at a time; a deeper load needs several. */
#define EBB_PROBE_PER_CONNECTION	16
#define EBB_PROBE_MAX_DEPTH		256
#define EBB_PROBE_MIN_BLOCKS		16

struct ebb_probe {
	const char *path;		/* of the socket */
	const char *export;
	uint32_t depth;			/* 1 to EBB_PROBE_MAX_DEPTH */
	uint32_t bytes;			/* of each request, at places that are multiples of it */
	uint64_t usec;			/* how long to measure; a quarter more is not counted */
	uint64_t patience_usec;		/* the longest silence of a server that does not hang */
};

/*
 * -errno with a message; -ENOSPC: the volume holds less than EBB_PROBE_MIN_BLOCKS
 * requests; -ETIMEDOUT: the server was silent for longer than patience_usec; -ETIME: no request
 * ended while it was measured.
 */
int ebb_probe_run(const struct ebb_probe *p, struct ebb_knee_point *ret, struct ebb_err *err);

#endif
