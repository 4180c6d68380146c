// SPDX-License-Identifier: GPL-2.0-or-later
/* See lazy_load.h. */
#include <errno.h>
#include <stdlib.h>

#include "lazy_load.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/cold/admit.h"
#include "oltp-engine/src/cold/cold_checkpoint.h"
#include "oltp-engine/src/txn/engine.h"
#include "recover_redo.h"

/* A block of records that can be cold, and the sectors at both of its ends. */
#define BUFFER_BYTES	(COLD_EXTENT_BYTES + 2 * COLD_CHECKPOINT_ALIGN)
/* No worker or no memory for a buffer; no room for rows; records that were in use all the time. */
#define RETRY_NS	100000000ull
#define ROOM_NS		10000000ull
#define AGAIN_NS	100000000ull

void lazy_load_begin(struct lazy_load *load, struct oltp_engine *engine, uint64_t bytes_per_s)
{
	*load = (struct lazy_load){
		.engine = engine,
		.bytes_per_s = bytes_per_s ?: LAZY_LOAD_BYTES_PER_S,
	};
	load->next_ns = bytes_per_s == LAZY_LOAD_NOTHING ? UINT64_MAX :
			clock_now_ns() + BUFFER_BYTES * 1000000000ull / load->bytes_per_s;
}

void lazy_load_end(struct lazy_load *load)
{
	if (load->block)
		cold_unpin(load->block);
	oltp_worker_destroy(load->worker);
	free(load->buffer);
	*load = (struct lazy_load){ .engine = NULL };
}

static bool is_equipped(struct lazy_load *load)
{
	if (!load->buffer)
		load->buffer = cold_buffer_alloc(load->engine->cold, BUFFER_BYTES);
	return load->buffer &&
	       (load->worker || !redo_worker_create(load->engine, &load->worker));
}

static void unpin(struct lazy_load *load)
{
	cold_unpin(load->block);
	load->block = NULL;
}

static void pass_over(struct lazy_load *load)
{
	cold_read_failed(load->engine->cold);
	cold_checkpoint_pass_over(load->engine->cold, load->block);
	unpin(load);
}

static uint64_t fetches_now(const struct lazy_load *load)
{
	return atomic_load_explicit(&load->engine->io_meters.of[IO_FETCH].requests,
				    memory_order_relaxed);
}

/*
 * A block was read since then. Of a slow disk each read of a transaction, which may make a hundred
 * one after the other, would wait for the next block.
 */
static void make_way(struct lazy_load *load, uint64_t since_ns)
{
	uint64_t now_ns = clock_now_ns(), fetches = fetches_now(load);
	uint64_t next_ns = now_ns + (now_ns - since_ns) / LAZY_LOAD_TO_OTHERS;

	if (fetches != load->fetches && load->next_ns < next_ns)
		load->next_ns = next_ns;
	load->fetches = fetches;
}

/* The next block into memory. False: it has to wait, or there is none. */
static bool read_next(struct lazy_load *load)
{
	struct cold *cold = load->engine->cold;
	const struct io_file *file = &cold->checkpoint.file;
	uint64_t since_ns;
	ssize_t n;
	uint32_t bytes;

	load->block = cold_checkpoint_take(cold, &load->next);
	if (!load->block && !load->has_found) {
		lazy_load_end(load);
		return false;
	}
	if (!load->block) {
		load->next = 0;
		load->has_found = false;
		load->next_ns = clock_now_ns() + AGAIN_NS;
		return false;
	}
	load->has_found = true;
	bytes = cold_checkpoint_extent(load->block, &load->offset);
	since_ns = clock_now_ns();
	load->next_ns = since_ns + bytes * 1000000000ull / load->bytes_per_s;
	n = io_pread(&file->files, file->fd, load->buffer, bytes, load->offset);
	make_way(load, since_ns);
	if (n == (ssize_t)bytes)
		return true;
	pass_over(load);
	return false;
}

void lazy_load_step(struct lazy_load *load)
{
	struct admit_read read = { .skip = COLD_SLOTS_MAX, .is_ahead = true };
	struct admit_by by;
	uint32_t n_bad;
	int rc;

	if (!is_equipped(load)) {
		load->next_ns = clock_now_ns() + RETRY_NS;
		return;
	}
	if (!load->block && !read_next(load))
		return;
	by = admit_by_worker(load->worker);
	read.block = load->block;
	read.from = (int64_t)(load->offset - load->block->base);
	read.bytes = BUFFER_BYTES;
	read.buffer = load->buffer;
	rc = admit_all(load->engine->cold, &by, &read, &n_bad);
	if (n_bad) {
		pass_over(load);
	} else if (rc) {
		room_want(&load->engine->room, load->block->table);
		load->next_ns = clock_now_ns() + ROOM_NS;
	} else {
		unpin(load);
	}
}
