/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger of promises, as the history keeps it.  Every record (EBB_EVENT_LEDGER) has counters
 * that began at 0 when the VM, or the agent, started.  The records of one such start are a "count":
 * they have in common the uuid, the boot of the host, that moment on CLOCK_MONOTONIC, and the
 * resource.  The sum of a time is the difference of two rows of a count, added up over the counts,
 * so a record may come late, twice or never.
 *
 *   ledger            newest counters of each count, and its last broken interval; never deleted
 *   ledger_minutes    newest counters of each minute; the newest history_rows of them stay
 *   ledger_intervals  counters at the end of each interval; they stay for ledger_hours
 */
#ifndef EBB_DAEMON_HISTORY_LEDGER_H
#define EBB_DAEMON_HISTORY_LEDGER_H

#include <sqlite3.h>
#include "daemon/history-db.h"

#define EBB_LEDGER_COUNTERS_SCHEMA \
	" metered_usec INTEGER NOT NULL, wanted INTEGER NOT NULL, promised INTEGER NOT NULL," \
	" got INTEGER NOT NULL, violated INTEGER NOT NULL, unclear INTEGER NOT NULL," \
	" num_intervals INTEGER NOT NULL, num_violations INTEGER NOT NULL," \
	" num_unclear INTEGER NOT NULL,"

/* count: id of the ledger's row; slot: the minute, or the end on CLOCK_MONOTONIC. */
#define EBB_HISTORY_LEDGER_SCHEMA \
	"CREATE TABLE IF NOT EXISTS ledger (id INTEGER PRIMARY KEY, vm TEXT NOT NULL," \
	" uuid TEXT NOT NULL, boot TEXT NOT NULL, since_usec INTEGER NOT NULL," \
	" resource TEXT NOT NULL, unit TEXT NOT NULL, rate INTEGER NOT NULL," \
	" first_ts REAL NOT NULL, last_ts REAL NOT NULL," EBB_LEDGER_COUNTERS_SCHEMA \
	" cause TEXT NOT NULL, reason TEXT NOT NULL, broken_ts REAL," \
	" UNIQUE (uuid, boot, since_usec, resource));" \
	"CREATE TABLE IF NOT EXISTS ledger_minutes (id INTEGER PRIMARY KEY," \
	" count INTEGER NOT NULL, slot INTEGER NOT NULL, ts REAL NOT NULL," \
	EBB_LEDGER_COUNTERS_SCHEMA " UNIQUE (count, slot));" \
	"CREATE TABLE IF NOT EXISTS ledger_intervals (id INTEGER PRIMARY KEY," \
	" count INTEGER NOT NULL, slot INTEGER NOT NULL, ts REAL NOT NULL," \
	EBB_LEDGER_COUNTERS_SCHEMA " rate INTEGER NOT NULL, cause TEXT NOT NULL," \
	" reason TEXT NOT NULL, UNIQUE (count, slot));" \
	"CREATE INDEX IF NOT EXISTS ledger_intervals_ts ON ledger_intervals (ts);"

/* The statements of one transaction. */
struct ebb_ledger_writer {
	sqlite3_stmt *total, *minute, *interval;
};

/* -EIO: see sqlite3_errmsg(); to be finished in any case. */
int ebb_ledger_writer_init(struct ebb_ledger_writer *w, sqlite3 *sql);
void ebb_ledger_writer_finish(struct ebb_ledger_writer *w);

/* -EIO: see sqlite3_errmsg(). */
int ebb_history_ledger_insert(struct ebb_ledger_writer *w, const char *boot,
			      const struct ebb_history_entry *entry);

/* Deletes intervals of before that time and the oldest minutes; -EIO: see sqlite3_errmsg(). */
int ebb_history_ledger_trim(sqlite3 *sql, double oldest_ts, uint32_t max_rows);

/*
 * Columns as the control protocol tells them; ?1 to ?4 as of other questions.  By VM and resource;
 * or each interval.
 */
extern const char ebb_history_ledger_select[];
extern const char ebb_history_intervals_select[];

#endif
