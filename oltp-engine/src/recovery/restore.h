/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bringing back records whose memory was revoked (taken by force), while transactions run. Where a
 * record was, the index says INDEX_REVOKED (revoked.h), which hides its key, but not its hash. The
 * rows that are missing are what checkpoint and log have and the index has not:
 *
 *   1. All that was taken is dealt with (revoked.h), and every transaction has ended that began
 *      before that. Nothing changes a revoked row from now on: a transaction that asks for it, or
 *      that would add or delete a key that looks like a revoked one (the same bucket and tag), is
 *      told OLTP_LOST. What transactions committed before is in the log; once that is on disk the
 *      log is read up to there, and no further (end_group).
 *   2. Checkpoint and log are read as a recovery reads them (recover_read.h). Whatever they say of
 *      keys that look like a revoked one and are not in the index is kept (restore.c); the last of
 *      it is the row. A key that is in the index stays there (1), so nothing is kept of it.
 *   3. Each row gets a record again, and the index points to it in place of an INDEX_REVOKED. If
 *      there is no room for it, others go to disk, or it waits. Ordered indexes still have the row.
 *
 * If more is taken meanwhile, all is done again for what is still missing then. In step 3 rows are
 * whole already: they are put back all the same, or are found missing the next time.
 *
 * Restarting the engine within the process instead would do with what recovery has, but all
 * transactions would stand still, and all rows be read and put, for a few that are missing.
 *
 * Rows take ordinary memory between steps 2 and 3, of which there may be little: 64 MiB at most; if
 * more is missing the files are read several times, each time for some of the keys. Nothing on disk
 * is changed, so a crash at any moment finds what it would have found before. The checkpoint's
 * thread does it: meanwhile none is made, and no file goes that is read.
 */
#ifndef OLTP_RESTORE_H
#define OLTP_RESTORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

/* Is any row missing, or may be? Any thread. */
bool restore_is_due(const struct oltp_engine *engine);

struct restore_progress {
	const _Atomic bool *is_stopping;
	_Atomic bool lacks_room;	/* no row could be put back for a second */
	_Atomic uint64_t records;	/* put back; counted on */
};

/*
 * Works until nothing is missing. *ret_ns: since when something was. Errors: -ECANCELED (it is to
 * stop), -EUCLEAN (files are damaged, or do not have all that is missing), -ENOMEM, -ENOSPC (no
 * worker free), those of files and of the log. Rows that were put back by then stay.
 */
int restore_revoked(struct oltp_engine *engine, struct restore_progress *progress,
		    uint64_t *ret_ns);

#endif
