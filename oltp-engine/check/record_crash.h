/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histories over crashes: the process that runs transactions is killed, the next one goes on. */
#ifndef OLTP_CHECK_RECORD_CRASH_H
#define OLTP_CHECK_RECORD_CRASH_H

#include "record.h"

/*
 * Records into fd, an empty regular file opened for reading and appending, header included: so
 * many processes are killed at some moment after they have committed what config.transactions says,
 * a last one recovers and reads everything. The engine needs a log_dir. The caller has no other
 * threads. No bound of seconds. Errors: those of record_run; -ECHILD: a process ended otherwise.
 */
int record_with_kills(const struct record_config *config, uint32_t kills, int fd,
		      void (*tell)(void *ctx, uint64_t committed), void *ctx);

#endif
