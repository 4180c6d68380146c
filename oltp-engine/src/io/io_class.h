/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Classes of requests. Every read and write of the engine goes through io_queue.h or io_files.h and
 * carries a class, which says what it is for. Requests are counted by class here; a limit for a
 * class belongs here, too.
 */
#ifndef OLTP_IO_CLASS_H
#define OLTP_IO_CLASS_H

#include <stdatomic.h>
#include <stdint.h>

enum io_class {
	IO_LOG,		/* groups, and the files of the log; commits may wait for it */
	IO_FETCH,	/* a cold record that a transaction waits for */
	IO_SCAN,	/* cold records for a scan of a table: a checkpoint's, or the user's */
	IO_CHECKPOINT,	/* the file of a checkpoint is written */
	IO_RECOVERY,	/* checkpoint and log are read, also to bring revoked records back */
	IO_EVICT,	/* records go to disk */
	IO_FILL,	/* cold records are read before a transaction asks for them */
	IO_COMPACT,	/* extents with few records left are read, and written together */
	IO_MEASURE,	/* to measure how long reading a record takes */
	IO_CLASSES,
};

/* Written by any thread; both only grow. */
struct io_meter {
	_Atomic uint64_t requests;	/* handed in; one that is tried again counts once */
	_Atomic uint64_t bytes;		/* asked for */
};

struct io_meters {
	struct io_meter of[IO_CLASSES];
};

/* meters: NULL counts nothing. */
static inline void io_count(struct io_meters *meters, enum io_class class, uint64_t bytes)
{
	if (!meters)
		return;
	atomic_fetch_add_explicit(&meters->of[class].requests, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&meters->of[class].bytes, bytes, memory_order_relaxed);
}

#endif
