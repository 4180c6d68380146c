// SPDX-License-Identifier: GPL-2.0-or-later
/* See restore_rig.h. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "restore_rig.h"

/* At a call from the checkpoint's thread, or another that reads files. */
static struct {
	pthread_mutex_t lock;
	uint32_t calls_left;
	void (*fn)(void *ctx);
	void *ctx;
} event = { .lock = PTHREAD_MUTEX_INITIALIZER };

void event_set(uint32_t call, void (*fn)(void *ctx), void *ctx)
{
	pthread_mutex_lock(&event.lock);
	event.calls_left = call;
	event.ctx = ctx;
	event.fn = fn;
	pthread_mutex_unlock(&event.lock);
}

static void event_call(void)
{
	void (*fn)(void *ctx) = NULL;

	pthread_mutex_lock(&event.lock);
	if (event.fn && !--event.calls_left) {
		fn = event.fn;
		event.fn = NULL;
	}
	pthread_mutex_unlock(&event.lock);
	if (fn)
		fn(event.ctx);
}

bool event_has_come(void)
{
	bool has;

	pthread_mutex_lock(&event.lock);
	has = !event.fn;
	pthread_mutex_unlock(&event.lock);
	return has;
}

static ssize_t pread_event(void *ctx, int fd, void *buffer, size_t size, uint64_t offset)
{
	event_call();
	return fault_disk_ops.pread(ctx, fd, buffer, size, offset);
}

/* Of checkpoints: the log thread writes with pwritev_sync. */
static ssize_t pwritev_event(void *ctx, int fd, const struct iovec *iov, int n, uint64_t offset)
{
	event_call();
	return fault_disk_ops.pwritev(ctx, fd, iov, n, offset);
}

static struct io_ops event_ops;

void restore_open_empty(struct taker *t, struct rig *rig, const struct restore_setup *setup)
{
	event_ops = fault_disk_ops;
	event_ops.pread = pread_event;
	event_ops.pwritev = pwritev_event;
	taker_open(t, rig, setup->n_blocks, &(struct oltp_config){
		.durability = setup->durability,
		.log_dir = "/disk",
		.log_segment_mib = 2,
		.log_io = &event_ops,
		.log_io_ctx = setup->disk,
		.cold_dir = setup->with_disk ? rig_dir() : NULL,
	});
	assert_int_equal(oltp_table_create(rig->engine, RIG_RECORD_BYTES,
					   setup->is_small ? 64 : ROWS, &rig->table), 0);
}

void restore_open(struct taker *t, struct rig *rig, const struct restore_setup *setup)
{
	restore_open_empty(t, rig, setup);
	assert_int_equal(oltp_recover(rig->engine, NULL, NULL), 0);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->w), 0);
}

void restore_take(struct taker *t, struct rig *rig, uint32_t block)
{
	taker_take(t, block);
	taker_tell(t, rig, block);
}

struct oltp_restore_stats restore_stats(struct rig *rig)
{
	struct oltp_restore_stats stats;

	oltp_restore_stats_read(rig->engine, &stats);
	return stats;
}
