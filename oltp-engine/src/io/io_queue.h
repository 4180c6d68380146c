/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests to one file, many at a time: an io_uring of one thread. A request that comes back short
 * or interrupted is repeated a few times here, so the caller sees a whole transfer or an error.
 * A request may name another file (io_file) and is then a read of that one.
 */
#ifndef OLTP_IO_QUEUE_H
#define OLTP_IO_QUEUE_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#include "io_files.h"

/*
 * A file that belongs to hooks (io_files.h). One of the machine's own is read through the ring;
 * another one's hook is called, and the calling thread waits for it.
 */
struct io_file {
	struct io_files files;
	int fd;
};

struct io_request {
	enum io_class class;
	bool is_write;
	uint8_t tries;
	const struct io_file *file;	/* NULL: the queue's own */
	struct io_request *next_read;	/* read by a hook, and not handed out yet */
	uint32_t bytes;
	uint64_t offset;
	void *buffer;
	int result;		/* 0 or -errno */
};

/* For tests: may change the result of a request. Returns the result that the engine sees. */
struct io_hook {
	int32_t (*result)(void *ctx, const struct io_request *request, int32_t result);
	void *ctx;
};

struct io_queue {
	struct io_uring ring;
	int fd;
	const struct io_hook *hook;	/* may be NULL */
	struct io_meters *meters;	/* may be NULL */
	uint32_t depth;
	uint32_t in_flight;	/* handed in and not yet handed out */
	uint32_t unsent;	/* among them, not yet given to the kernel */
	struct io_request *read;	/* among them, read by a hook: newest first */
};

/* Errors: those of io_uring_setup(2). */
int io_queue_init(struct io_queue *io, int fd, uint32_t depth, const struct io_hook *hook,
		  struct io_meters *meters);

/* Nothing may be in flight. */
void io_queue_finish(struct io_queue *io);

/* Fewer than depth requests may be in flight. */
void io_queue_add(struct io_queue *io, struct io_request *request);

/* Submits the requests that the kernel has not got. Errors: those of io_uring_enter(2). */
int io_queue_flush(struct io_queue *io);

/* The next request that has ended, or NULL. */
struct io_request *io_queue_next(struct io_queue *io);

/* Hands the request in and waits for it; nothing else may be in flight. Returns its result. */
int io_queue_run(struct io_queue *io, struct io_request *request);

/* Waits until one has ended, or timeout_ns. Nothing in flight: returns at once. */
void io_queue_wait(struct io_queue *io, uint64_t timeout_ns);

#endif
