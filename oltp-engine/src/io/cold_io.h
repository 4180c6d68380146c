/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads and writes of the file with cold records: an io_uring of one thread. What comes back short
 * or interrupted is done again a few times here; what is handed out is all or an error.
 */
#ifndef OLTP_COLD_IO_H
#define OLTP_COLD_IO_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

struct cold_request {
	bool is_write;
	uint8_t tries;
	uint32_t bytes;
	uint64_t offset;
	void *buffer;
	int result;		/* 0 or -errno */
};

/* For tests: stands between the disk and the engine. Returns what the request came to. */
struct cold_hook {
	int32_t (*result)(void *ctx, const struct cold_request *request, int32_t result);
	void *ctx;
};

struct cold_io {
	struct io_uring ring;
	int fd;
	const struct cold_hook *hook;	/* may be NULL */
	uint32_t depth;
	uint32_t in_flight;	/* handed in and not yet handed out */
	uint32_t unsent;	/* among them, not yet given to the kernel */
};

/* Errors: those of io_uring_setup(2). */
int cold_io_init(struct cold_io *io, int fd, uint32_t depth, const struct cold_hook *hook);

/* Nothing may be in flight. */
void cold_io_finish(struct cold_io *io);

/* Room for one more must be there (depth). */
void cold_io_add(struct cold_io *io, struct cold_request *request);

/* Gives the kernel what it has not got. Errors: those of io_uring_enter(2). */
int cold_io_flush(struct cold_io *io);

/* The next request that has ended, or NULL. */
struct cold_request *cold_io_next(struct cold_io *io);

/* Waits until one has ended, or timeout_ns. Nothing in flight: returns at once. */
void cold_io_wait(struct cold_io *io, uint64_t timeout_ns);

#endif
