// SPDX-License-Identifier: GPL-2.0-or-later
/* See blocks_ebb.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "blocks_ebb.h"
#include "vom_ebb.h"

struct blocks_ebb {
	struct ebb *ebb;
	uint64_t max_bytes;
	/* Of the thread that dispatches. */
	struct oltp_engine *engine;
	struct ebb_shares shares;	/* as last heard */
	struct vom_ebb vom;
	bool has_pump;
	pthread_t pump;
	int stop_fd;
	atomic_uint promise_mib;	/* the memory that the engine simulates; 0: none */
};

static int ebb_add(void *ctx, uint64_t bytes, uint32_t node, void **ret_addr, uint64_t *ret_bytes)
{
	struct blocks_ebb *blocks = ctx;
	struct ebb_lease lease;
	int rc = ebb_mem_add(blocks->ebb, bytes, node, &lease);

	if (rc)
		return rc;
	*ret_addr = lease.addr;
	*ret_bytes = lease.bytes;
	return 0;
}

static void ebb_release(void *ctx, void *addr, uint64_t bytes)
{
	struct blocks_ebb *blocks = ctx;

	if (ebb_mem_release(blocks->ebb, addr, bytes) != -ENOENT)
		return;
	/* One of the blocks was revoked just now; the others are still to be given back. */
	for (uint64_t at = 0; at < bytes; at += OLTP_MEM_BLOCK_BYTES)
		ebb_mem_release(blocks->ebb, (uint8_t *)addr + at, OLTP_MEM_BLOCK_BYTES);
}

const struct oltp_block_ops blocks_ebb_ops = {
	.add = ebb_add,
	.release = ebb_release,
};

static void tell_limits(struct blocks_ebb *blocks)
{
	uint64_t left = blocks->max_bytes ?: UINT64_MAX;

	for (unsigned int i = 0; blocks->engine && i < blocks->shares.num_nodes; i++) {
		const struct ebb_node_share *node = &blocks->shares.nodes[i];
		uint64_t limit = node->mem_owned_bytes + node->mem_offered_bytes;

		/* The cut-off comes before the demand that it is for. */
		oltp_memory_cutoff(blocks->engine, node->node, node->mem_cutoff);
		limit -= node->mem_demanded_bytes < limit ? node->mem_demanded_bytes : limit;
		limit = limit < left ? limit : left;
		left -= limit;
		/*
		 * Shares and blocks that are added meanwhile are not of the same moment: a limit
		 * below what is held is no demand unless the host says so.
		 */
		oltp_memory_limit(blocks->engine, node->node, limit,
				  node->mem_demanded_bytes ?
					  node->mem_deadline_ns : OLTP_NO_DEMAND);
	}
}

/*
 * An engine without a cold file, or without memory for it, goes on as before: then the host hears
 * that it simulates no memory, or one of another size, and keeps its promise by memory.
 */
static void tell_promise(struct blocks_ebb *blocks)
{
	const unsigned int mib = ebb_mem_promise(blocks->ebb);

	if (blocks->engine && mib != blocks->promise_mib &&
	    !oltp_set_mem_promise(blocks->engine, mib))
		blocks->promise_mib = mib;
}

static void on_shares(void *arg, const struct ebb_shares *shares)
{
	struct blocks_ebb *blocks = arg;

	blocks->shares = *shares;
	tell_limits(blocks);
	tell_promise(blocks);
}

uint32_t blocks_ebb_count_ios(struct blocks_ebb *blocks)
{
	const uint32_t mib = blocks->promise_mib;
	struct oltp_memory_stats stats;

	oltp_memory_stats_read(blocks->engine, &stats);
	ebb_baseline_set(blocks->ebb, mib, stats.baseline_ios, stats.actual_ios);
	return mib;
}

static void on_revoked(void *arg, void *addr, uint64_t bytes)
{
	struct blocks_ebb *blocks = arg;

	if (blocks->engine)
		oltp_memory_revoked(blocks->engine, addr, bytes);
}

static void *pump_main(void *arg)
{
	struct blocks_ebb *blocks = arg;
	struct pollfd fds[2] = {
		{ .fd = blocks->stop_fd, .events = POLLIN },
		{ .fd = ebb_fd(blocks->ebb), .events = POLLIN },
	};

	/* The session sees and reports errors of the device itself. */
	while (ebb_dispatch(blocks->ebb) >= 0) {
		if ((poll(fds, 2, -1) < 0 && errno != EINTR) || fds[0].revents)
			break;
	}
	return NULL;
}

void blocks_ebb_pump_start(struct blocks_ebb *blocks)
{
	if (blocks->has_pump)
		return;
	blocks->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (blocks->stop_fd < 0)
		return;
	blocks->has_pump = !pthread_create(&blocks->pump, NULL, pump_main, blocks);
	if (!blocks->has_pump)
		close(blocks->stop_fd);
}

void blocks_ebb_pump_stop(struct blocks_ebb *blocks)
{
	if (!blocks->has_pump)
		return;
	eventfd_write(blocks->stop_fd, 1);
	pthread_join(blocks->pump, NULL);
	close(blocks->stop_fd);
	blocks->has_pump = false;
}

int blocks_ebb_create(struct ebb *ebb, uint64_t max_bytes, struct blocks_ebb **ret_blocks)
{
	struct blocks_ebb *blocks = calloc(1, sizeof(*blocks));

	if (!blocks)
		return -ENOMEM;
	blocks->ebb = ebb;
	blocks->max_bytes = max_bytes;
	ebb_set_shares_callback(ebb, on_shares, blocks);
	ebb_set_revoked_callback(ebb, on_revoked, blocks);
	*ret_blocks = blocks;
	return 0;
}

void blocks_ebb_destroy(struct blocks_ebb *blocks)
{
	if (!blocks)
		return;
	blocks_ebb_pump_stop(blocks);
	vom_ebb_end(&blocks->vom);
	ebb_set_shares_callback(blocks->ebb, NULL, NULL);
	ebb_set_revoked_callback(blocks->ebb, NULL, NULL);
	free(blocks);
}

void blocks_ebb_attach(void *opaque, struct oltp_engine *engine)
{
	struct blocks_ebb *blocks = opaque;

	blocks_ebb_pump_stop(blocks);
	vom_ebb_end(&blocks->vom);
	blocks->engine = engine;
	blocks->promise_mib = 0;
	if (!engine)
		return;
	/* If this fails the host knows nothing of values, as with other engines. */
	vom_ebb_begin(&blocks->vom, blocks->ebb, engine);
	oltp_memory_catch_revokes(engine);
	tell_limits(blocks);
	tell_promise(blocks);
	/*
	 * If this fails limits stay as they are until session_run, which is better than not to
	 * start.
	 */
	blocks_ebb_pump_start(blocks);
}

static bool has_memory(const struct blocks_ebb *blocks)
{
	for (unsigned int i = 0; i < blocks->shares.num_nodes; i++) {
		if (blocks->shares.nodes[i].mem_offered_bytes)
			return true;
	}
	return false;
}

int blocks_ebb_wait(struct blocks_ebb *blocks, uint32_t timeout_ms)
{
	for (uint32_t ms = 0;; ms += 10) {
		struct pollfd fd = { .fd = ebb_fd(blocks->ebb), .events = POLLIN };
		int rc = ebb_dispatch(blocks->ebb);

		if (rc < 0 || has_memory(blocks))
			return rc < 0 ? rc : 0;
		if (ms >= timeout_ms)
			return -ETIME;
		if (poll(&fd, 1, 10) < 0 && errno != EINTR)
			return -errno;
	}
}
