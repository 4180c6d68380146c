// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Watches: threads that are told of a durable epoch instead of waiting for it. See oltp_durable.h.
 * The log thread looks at the watches after each group, under the lock that it takes for threads
 * that wait; it writes to an eventfd only for an epoch that somebody asked for.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "log_private.h"
#include "oltp-engine/src/txn/engine.h"

struct oltp_durable_watch {
	struct log *log;		/* NULL: durability is off */
	int fd;
	struct oltp_durable_watch *next;	/* this and the epoch: under log.lock */
	uint64_t epoch;			/* that was asked for; 0: none */
};

int oltp_durable_watch_create(struct oltp_engine *engine, int fd,
			      struct oltp_durable_watch **ret_watch)
{
	struct oltp_durable_watch *watch = calloc(1, sizeof(*watch));
	struct log *log = engine->log;

	if (!watch)
		return -ENOMEM;
	watch->log = log;
	watch->fd = fd;
	if (log) {
		pthread_mutex_lock(&log->lock);
		watch->next = log->watches;
		log->watches = watch;
		pthread_mutex_unlock(&log->lock);
	}
	*ret_watch = watch;
	return 0;
}

void oltp_durable_watch_destroy(struct oltp_durable_watch *watch)
{
	struct oltp_durable_watch **at;
	struct log *log;

	if (!watch)
		return;
	log = watch->log;
	if (log) {
		pthread_mutex_lock(&log->lock);
		for (at = &log->watches; *at != watch;)
			at = &(*at)->next;
		*at = watch->next;
		pthread_mutex_unlock(&log->lock);
	}
	free(watch);
}

bool oltp_durable_watch_set(struct oltp_durable_watch *watch, uint64_t epoch)
{
	struct log *log = watch->log;
	bool is_awaited;

	if (!log || log_epoch_durable(log) >= epoch)
		return false;
	/* A thread that knows the epoch sees whether the log thread sleeps (set_idle). */
	log_wake(log);
	pthread_mutex_lock(&log->lock);
	/* The log thread says that an epoch is durable before it takes the lock to tell. */
	is_awaited = log_state(log) == LOG_RUNNING && log_epoch_durable(log) < epoch;
	watch->epoch = is_awaited ? epoch : 0;
	pthread_mutex_unlock(&log->lock);
	return is_awaited;
}

void oltp_durable_hurry(struct oltp_engine *engine)
{
	if (engine->log)
		log_call(engine->log);
}

void log_watches_tell(struct log *log)
{
	bool is_over = log_state(log) != LOG_RUNNING;
	uint64_t durable = log_epoch_durable(log);

	for (struct oltp_durable_watch *watch = log->watches; watch; watch = watch->next) {
		if (!watch->epoch || (!is_over && watch->epoch > durable))
			continue;
		watch->epoch = 0;
		/* Fails only if 2^64 - 2 is in there already: then the thread is awake anyway. */
		(void)eventfd_write(watch->fd, 1);
	}
}
