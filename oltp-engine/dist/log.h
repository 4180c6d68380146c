/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A node's log: the state that two-phase commit must not lose, and no more. One file, records one
 * after the other, each with a checksum. It only grows, since apart from memory it is the only
 * place with a node's committed distributed transactions.
 *
 *	record		forced	payload
 *	START		yes	-			the node began; gtid.incarnation counts
 *	PREPARE		yes	writes			participant: voted yes
 *	COMMIT		yes	-			participant: was told so
 *	ABORT		no	-			participant: was told so
 *	DECIDED		yes	writes of its own	coordinator: the transaction is committed
 *	END		no	-			coordinator: all participants know
 *
 * Appending order is the order of the writes on each record: a transaction's outcome is appended
 * before its locks are released. A tail that was torn by a crash is cut off when the log is opened.
 */
#ifndef DIST_LOG_H
#define DIST_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "message.h"

#define DIST_LOG_PAYLOAD_MAX	32768u

enum dist_record {
	DIST_RECORD_START = 1,
	DIST_RECORD_PREPARE = 2,
	DIST_RECORD_COMMIT = 3,
	DIST_RECORD_ABORT = 4,
	DIST_RECORD_DECIDED = 5,
	DIST_RECORD_END = 6,
};

struct dist_log;

/* payload is valid during the call. A non-zero return ends the opening with that error. */
typedef int (*dist_log_fn)(void *ctx, enum dist_record kind, const struct dist_gtid *gtid,
			   const void *payload, size_t bytes);

/*
 * Opens or creates, shows what is there in order, and cuts a torn tail off. Errors: those of files,
 * -EBUSY (another process has it), -ENOMEM, what fn returned.
 */
int dist_log_open(const char *path, dist_log_fn fn, void *ctx, struct dist_log **ret_log);

/* Accepts NULL. */
void dist_log_close(struct dist_log *log);

/*
 * Any thread. *ret_end: to be handed to dist_log_force. After an error the log takes no more: what
 * is on disk is then not known before it is opened again. Errors: -EIO and those of writing.
 */
int dist_log_append(struct dist_log *log, enum dist_record kind, const struct dist_gtid *gtid,
		    const void *payload, size_t bytes, uint64_t *ret_end);

/* Waits until all up to end is on disk. Threads that wait at the same time share one sync. */
int dist_log_force(struct dist_log *log, uint64_t end);

#endif
