/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log as transactions and workers see it. */
#ifndef OLTP_LOG_APPEND_H
#define OLTP_LOG_APPEND_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

struct log;
struct log_buffer;

/* The worker's buffer. Errors: -ENOMEM. */
int log_buffer_create(struct log *log, struct log_buffer **ret_buffer);

/* The worker is gone; what it committed is still written. Accepts NULL. */
void log_buffer_leave(struct log_buffer *buffer);

/*
 * True if log_begin will not wait: the worker's buffer has room, or its log does not run. Waits so
 * long for that (0: without end).
 */
bool log_room_wait(const struct oltp_worker *worker, uint64_t wait_ns);

/*
 * Before a transaction takes any lock: waits while too much of what the worker has committed is not
 * written. OLTP_INVALID, OLTP_IO: see log_core.h. This and the next one do nothing for a worker
 * that redoes what is logged already.
 */
enum oltp_rc log_begin(const struct oltp_worker *worker);

/*
 * Right before the transaction commits, with all its locks held and everything as it will be: logs
 * what it has changed, or only notes the epoch if that is nothing. Nothing can stop the transaction
 * afterwards. OLTP_IO, OLTP_NO_MEMORY, OLTP_LOST (memory was taken before all was copied): nothing
 * was logged, it has to be aborted.
 */
enum oltp_rc log_append(struct oltp_worker *worker);

#endif
