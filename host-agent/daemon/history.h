/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The history of decisions: a SQLite database that is written and read on a worker thread, one
 * lane, so that no disk holds up the loop.  It is for people and reports; nothing is decided from
 * it.
 */
#ifndef EBB_DAEMON_HISTORY_H
#define EBB_DAEMON_HISTORY_H

#include <jansson.h>
#include <systemd/sd-event.h>
#include "core/core.h"
#include "backend/real/workers.h"
#include "util/err.h"
#include "util/uuid.h"

struct ebb_history;

/*
 * Open or create the database; blocks (at start only).  A file that is damaged or of another
 * version than this and the last is set aside as PATH.old, which err tells although 0 is returned.
 * One that can not be read or written now (-EIO) is left where it is.  path NULL: in memory.
 */
int ebb_history_open(const char *path, uint32_t max_rows, struct ebb_workers *workers,
		     sd_event *event, struct ebb_history **ret, struct ebb_err *err);

/* Write what is left, blocking, and close; after the workers have ended.  NULL is fine. */
void ebb_history_close(struct ebb_history *h);

/*
 * The charge of a run of a VM (order of ebb_fact_vm_running) that the last agent of this boot has
 * recorded, as of when the file was opened; NULL: none.
 */
const struct ebb_vm_charge *ebb_history_charge_of(const struct ebb_history *h, const uint8_t *uuid,
						  uint64_t order);

/*
 * How long the intervals of the ledger are kept, 24 hours by default; its totals stay for ever.
 * To be called before the event loop runs.
 */
void ebb_history_keep(struct ebb_history *h, uint32_t ledger_hours);

/*
 * Keep a record; it is written soon.  While nothing can be written, 65536 decisions are kept and
 * later ones dropped, of charges the newest of each VM's run, and 8192 records of the ledger; when
 * there are more, the newest of each count.
 */
void ebb_history_add(struct ebb_history *h, const struct ebb_record *record, usec_t now);

enum ebb_history_what {
	EBB_HISTORY_DECISIONS,
	EBB_HISTORY_CHARGE,		/* sums by VM, to the minute */
	EBB_HISTORY_LEDGER,		/* sums by VM and resource */
	EBB_HISTORY_INTERVALS,		/* each interval of the ledger */
};

struct ebb_history_query {
	enum ebb_history_what what;
	/* VMs that had this name or have this UUID, as text; both "": all. */
	char vm[EBB_NAME_SIZE];
	char uuid[EBB_UUID_TEXT_SIZE];
	char event[24];			/* of decisions; "": all */
	double since_ts;		/* unix seconds; 0: from the beginning */
	uint32_t limit;			/* newest so many, listed oldest first */
};

/*
 * Calls done() once on the loop with an array of rows (a new reference), or with NULL and -errno.
 * Everything that was added before is in it.
 */
void ebb_history_ask(struct ebb_history *h, const struct ebb_history_query *query,
		     void (*done)(void *ctx, json_t *rows, int err), void *ctx);

#endif
