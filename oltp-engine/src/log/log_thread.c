// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The log thread: closes epochs, writes groups, wakes waiting threads. See log_private.h, L1, for
 * why an epoch that is closed stays so.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "log_private.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/io/volume.h"
#include "oltp-engine/src/txn/engine.h"

/* With nothing to write for so many epochs, the thread sleeps until it is called. */
#define IDLE_EPOCHS	64u

#define SPINS_MAX	200u

/* The usual time of a write is an average over about so many groups. */
#define USUAL_GROUPS	64u

static int wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns)
{
	const struct timespec until = clock_timespec(deadline_ns);

	return pthread_cond_timedwait(cond, lock, &until);
}

void log_call(struct log *log)
{
	pthread_mutex_lock(&log->lock);
	log->is_called = true;
	pthread_cond_signal(&log->called);
	pthread_mutex_unlock(&log->lock);
}

void log_wake(struct log *log)
{
	if (unlikely(atomic_load_explicit(&log->is_idle, memory_order_relaxed)))
		log_call(log);
}

/*
 * A write that took longer than the interval is followed by the next one at once. One that somebody
 * has called for came before its time: the interval begins anew, or many calls would put the next
 * one off for long.
 */
static uint64_t next_tick(uint64_t tick_ns, uint64_t interval_ns)
{
	uint64_t now = clock_now_ns();

	tick_ns += interval_ns;
	if (tick_ns > now + interval_ns)
		return now + interval_ns;
	return tick_ns > now ? tick_ns : now;
}

/*
 * Waits until tick_ns, when the next epoch is closed, or for a call; UINT64_MAX: for a call only.
 * True: the log is to be closed.
 */
static bool wait_tick(struct log *log, uint64_t tick_ns)
{
	bool is_stopping;

	pthread_mutex_lock(&log->lock);
	while (!log->is_called && !log->is_stopping) {
		if (tick_ns == UINT64_MAX)
			pthread_cond_wait(&log->called, &log->lock);
		else if (wait_until(&log->called, &log->lock, tick_ns) == ETIMEDOUT)
			break;
	}
	log->is_called = false;
	is_stopping = log->is_stopping;
	pthread_mutex_unlock(&log->lock);
	return is_stopping;
}

/*
 * Waits for an append under way. It takes no locks and does not wait, so it is over soon if its
 * thread runs. If not, the group is late by the interval, counted from since_ns, and no more.
 */
static void wait_append(const struct log_buffer *buffer, uint64_t epoch, uint64_t since_ns)
{
	for (uint32_t spins = 0;; spins++) {
		uint64_t announced = atomic_load_explicit(&buffer->announced,
							  memory_order_acquire);

		if (!announced || announced > epoch)
			return;
		if (spins < SPINS_MAX) {
			cpu_relax();
			continue;
		}
		if (clock_now_ns() - since_ns >= (counter_read(&buffer->patience_ns) ?:
						  buffer->log->interval_ns))
			return;
		sched_yield();
	}
}

/* Frees the buffers of workers that are gone, once all in them is written. */
static void drop_orphans(struct log *log)
{
	struct log_buffer **at, *buffer;

	pthread_mutex_lock(&log->lock);
	for (at = &log->buffers; (buffer = *at);) {
		if (buffer->is_orphan && log_buffer_is_empty(buffer)) {
			*at = buffer->next;
			log_buffer_free(buffer);
		} else {
			at = &buffer->next;
		}
	}
	pthread_mutex_unlock(&log->lock);
}

/*
 * Closes the open epoch, which is returned, and moves the chunks of all epochs up to it into the
 * list.
 */
static uint64_t close_epoch(struct log *log, struct log_chunk_list *list)
{
	uint64_t epoch = atomic_load_explicit(&log->epoch, memory_order_relaxed);
	uint64_t since_ns = clock_now_ns();
	struct log_buffer *buffer;

	atomic_store_explicit(&log->epoch, epoch + 1, memory_order_release);
	atomic_fetch_add_explicit(&log->csn, 0, memory_order_acq_rel);
	log_chunks_init(list);
	/*
	 * Only this thread removes buffers, and a buffer that is added now is of a later epoch. So
	 * nobody has to wait for the lock while this thread waits for workers.
	 */
	pthread_mutex_lock(&log->lock);
	buffer = log->buffers;
	pthread_mutex_unlock(&log->lock);
	for (; buffer; buffer = buffer->next) {
		wait_append(buffer, epoch, since_ns);
		while (unlikely(!log_buffer_take(buffer, epoch, list)))
			sched_yield();
	}
	drop_orphans(log);
	return epoch;
}

/* Writes the group to disk, and notes how long that took. */
static int write_sealed(struct log *log, const struct log_group *group, uint64_t number)
{
	uint64_t start_ns = clock_now_ns(), usual_ns = counter_read(&log->usual_ns), took_ns;
	int rc;

	atomic_store_explicit(&log->write_start_ns, start_ns, memory_order_relaxed);
	rc = log_segment_write(log, group, number);
	took_ns = clock_now_ns() - start_ns;
	atomic_store_explicit(&log->write_start_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&log->write_ns, took_ns, memory_order_relaxed);
	atomic_store_explicit(&log->usual_ns,
			      usual_ns ? usual_ns - usual_ns / USUAL_GROUPS +
						 took_ns / USUAL_GROUPS : took_ns,
			      memory_order_relaxed);
	hist_record(&log->writes, took_ns);
	return rc;
}

static int write_group(struct log *log, struct log_chunk_list *list, uint64_t epoch)
{
	uint64_t number = atomic_load_explicit(&log->n_group, memory_order_relaxed);
	struct log_group_header header = {
		.group = number,
		.epoch_from = atomic_load_explicit(&log->durable, memory_order_relaxed) + 1,
		.epoch_to = epoch,
	};
	struct log_group *group = &log->group;
	struct log_chunk *chunk;
	int rc;

	/* From here on what commits is in the next one: this one's epochs are closed. */
	atomic_store_explicit(&log->n_group, number + 1, memory_order_release);
	log_group_begin(group);
	while ((chunk = list->head)) {
		list->head = chunk->next;
		log_group_add(group, chunk);
	}
	memcpy(header.database, log->database, sizeof(header.database));
	rc = log_segment_reserve(log, number, group->bytes + group->gathered + LOG_BLOCK_BYTES);
	header.segment = log->segments.number;
	if (!rc) {
		log_group_seal(group, &header);
		rc = write_sealed(log, group, number);
	}
	if (!rc) {
		/* Release: pairs with log_group_durable, after the epoch was seen durable. */
		atomic_store_explicit(&log->durable_group, number, memory_order_release);
		counter_add(&log->n_groups, 1);
		counter_add(&log->n_bytes, group->bytes);
		counter_add(&log->n_entries, group->n_entries);
		atomic_store_explicit(&log->cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID),
				      memory_order_relaxed);
	}
	log_chunks_release(log, &group->copied);
	log_chunks_release(log, &group->in_place);
	return rc;
}

static void wake_waiters(struct log *log)
{
	pthread_mutex_lock(&log->lock);
	if (log->n_waiters)
		pthread_cond_broadcast(&log->written);
	if (log->watches)
		log_watches_tell(log);
	pthread_mutex_unlock(&log->lock);
}

static void fail(struct log *log, int rc)
{
	atomic_store_explicit(&log->error, rc, memory_order_relaxed);
	atomic_store_explicit(&log->state, LOG_FAILED, memory_order_release);
	wake_waiters(log);
}

static void note_durable(struct log *log, uint64_t epoch)
{
	atomic_store_explicit(&log->durable, epoch, memory_order_release);
	wake_waiters(log);
}

/*
 * Says whether the thread is going to sleep until it is called. The flag is set before an epoch is
 * closed. So a worker that commits either was seen when the epoch was closed (L1), or sees the flag
 * and calls. If that epoch was empty all the same, all who commit from then on see the flag.
 */
static void set_idle(struct log *log, bool is_idle)
{
	if (atomic_load_explicit(&log->is_idle, memory_order_relaxed) != is_idle)
		atomic_store_explicit(&log->is_idle, is_idle, memory_order_relaxed);
}

static void *log_main(void *arg)
{
	uint64_t tick_ns = clock_now_ns();
	struct log *log = arg;
	uint32_t n_empty = 0;
	int rc = 0;

	for (bool is_last = false; !rc && !is_last;) {
		struct log_chunk_list list;
		uint64_t epoch;

		/* Now, while there is nothing to be written. */
		rc = log_segment_prepare(log);
		if (rc)
			break;
		tick_ns = next_tick(tick_ns, log->interval_ns);
		is_last = wait_tick(log, n_empty > IDLE_EPOCHS ? UINT64_MAX : tick_ns);
		set_idle(log, n_empty >= IDLE_EPOCHS);
		epoch = close_epoch(log, &list);
		n_empty = list.head ? 0 : n_empty + 1;
		if (list.head) {
			set_idle(log, false);
			rc = write_group(log, &list, epoch);
		} else if (log->checked && !atomic_load(&log->is_unchecked)) {
			/*
			 * Transactions of this epoch have read at most. A read of the device that
			 * begins after the epoch was closed shows that nobody had taken the
			 * volume when they ended.
			 */
			rc = volume_check_owner(log->checked);
		}
		if (!rc)
			note_durable(log, epoch);
	}
	if (rc)
		fail(log, rc);
	return NULL;
}

int log_thread_start(struct log *log)
{
	int rc;

	atomic_store_explicit(&log->state, LOG_RUNNING, memory_order_release);
	rc = pthread_create(&log->thread, NULL, log_main, log);
	if (rc) {
		atomic_store_explicit(&log->state, LOG_UNREAD, memory_order_release);
		return -rc;
	}
	log->has_thread = true;
	return 0;
}

void log_thread_stop(struct log *log)
{
	if (!log->has_thread)
		return;
	pthread_mutex_lock(&log->lock);
	log->is_stopping = true;
	pthread_cond_signal(&log->called);
	pthread_mutex_unlock(&log->lock);
	pthread_join(log->thread, NULL);
	log->has_thread = false;
}

/* 0: the epoch may get durable; 1: it is; -errno: it will not. */
static int wait_verdict(const struct log *log, uint64_t epoch)
{
	if (log_epoch_durable(log) >= epoch)
		return 1;
	switch (log_state(log)) {
	case LOG_RUNNING:
		return 0;
	case LOG_FAILED:
		return atomic_load_explicit(&log->error, memory_order_relaxed);
	case LOG_READ_ONLY:
		return 1;
	case LOG_UNREAD:
		break;
	}
	return -EINVAL;
}

int log_wait(struct log *log, uint64_t epoch, uint64_t deadline_ns)
{
	int verdict = wait_verdict(log, epoch);

	if (verdict)
		return verdict < 0 ? verdict : 0;
	/* A thread that knows the epoch sees whether the log thread sleeps (set_idle). */
	log_wake(log);
	pthread_mutex_lock(&log->lock);
	log->n_waiters++;
	while (!(verdict = wait_verdict(log, epoch))) {
		if (!deadline_ns)
			pthread_cond_wait(&log->written, &log->lock);
		else if (wait_until(&log->written, &log->lock, deadline_ns) == ETIMEDOUT)
			verdict = -ETIMEDOUT;
		if (verdict)
			break;
	}
	log->n_waiters--;
	pthread_mutex_unlock(&log->lock);
	return verdict < 0 ? verdict : 0;
}

static bool is_without_room(const struct log_buffer *buffer)
{
	return log_is_running(buffer->log) &&
	       atomic_load_explicit(&buffer->outstanding, memory_order_relaxed) >=
		       LOG_OUTSTANDING_MAX;
}

bool log_room_wait(const struct oltp_worker *worker, uint64_t wait_ns)
{
	struct log_buffer *buffer = worker->log;
	struct log *log = buffer->log;
	bool is_late = false;
	uint64_t deadline_ns;

	if (likely(!buffer->is_full))
		return true;
	deadline_ns = wait_ns ? clock_now_ns() + wait_ns : 0;
	atomic_fetch_add_explicit(&log->n_waits, 1, memory_order_relaxed);
	pthread_mutex_lock(&log->lock);
	log->n_waiters++;
	/* Chunks are freed before the threads that wait are woken. */
	while (is_without_room(buffer) && !is_late) {
		if (!deadline_ns)
			pthread_cond_wait(&log->written, &log->lock);
		else
			is_late = wait_until(&log->written, &log->lock, deadline_ns) == ETIMEDOUT;
	}
	buffer->is_full = is_without_room(buffer);
	log->n_waiters--;
	pthread_mutex_unlock(&log->lock);
	return !buffer->is_full;
}

enum oltp_rc log_begin(const struct oltp_worker *worker)
{
	struct log *log = worker->log->log;

	if (likely(log_is_running(log)))
		log_room_wait(worker, 0);
	if (likely(log_is_running(log)))
		return OLTP_OK;
	switch (log_state(log)) {
	case LOG_READ_ONLY:
		return OLTP_OK;
	case LOG_UNREAD:
		return OLTP_INVALID;
	case LOG_RUNNING:
	case LOG_FAILED:
		break;
	}
	return OLTP_IO;
}
