/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The resources that VMs have held, as the history keeps them: the counters of each record
 * (EBB_EVENT_CHARGE), of each minute the last ones.  The difference of two rows is the amount held
 * in the time between them.  A record may come late, twice or never: sums are exact up to the last
 * one that was written, however the daemon ended.
 */
#ifndef EBB_DAEMON_HISTORY_CHARGE_H
#define EBB_DAEMON_HISTORY_CHARGE_H

#include <sqlite3.h>
#include "daemon/history-db.h"

#define EBB_BOOT_ID_SIZE	64

/*
 * The counters were 0 at first_ts and are as of last_ts; on CLOCK_MONOTONIC that is since_usec and
 * until_usec.  Counters that begin at 0 have a since_usec of their own, so rows of one uuid, boot
 * and since_usec go on from each other.  run is the order of ebb_fact_vm_running; CLOCK_MONOTONIC
 * and run begin anew with each boot.
 */
#define EBB_HISTORY_CHARGE_SCHEMA \
	"CREATE TABLE IF NOT EXISTS charges (" \
	" id INTEGER PRIMARY KEY, vm TEXT NOT NULL, uuid TEXT NOT NULL, boot TEXT NOT NULL," \
	" run INTEGER NOT NULL, since_usec INTEGER NOT NULL, minute INTEGER NOT NULL," \
	" first_ts REAL NOT NULL, last_ts REAL NOT NULL, until_usec INTEGER NOT NULL," \
	" reserved_core_usec INTEGER NOT NULL, spot_core_usec INTEGER NOT NULL," \
	" reserved_mib_msec INTEGER NOT NULL, spot_mib_msec INTEGER NOT NULL," \
	" UNIQUE (uuid, boot, since_usec, minute));"

/* From version 4, in which a row had what was held in its minute. */
#define EBB_HISTORY_CHARGE_CONVERT \
	"ALTER TABLE charges RENAME TO charges_4;" \
	EBB_HISTORY_CHARGE_SCHEMA \
	"INSERT INTO charges (vm, uuid, boot, run, since_usec, minute, first_ts, last_ts," \
	" until_usec, reserved_core_usec, spot_core_usec, reserved_mib_msec, spot_mib_msec)" \
	" SELECT vm, uuid, boot, run," \
	" min(CAST(until_usec - round(1e6 * (last_ts - first_ts)) AS INTEGER)) OVER whole," \
	" minute, min(first_ts) OVER whole, last_ts, until_usec," \
	" sum(reserved_core_usec) OVER so_far, sum(spot_core_usec) OVER so_far," \
	" sum(reserved_mib_msec) OVER so_far, sum(spot_mib_msec) OVER so_far FROM charges_4" \
	" WINDOW whole AS (PARTITION BY uuid, boot, run)," \
	" so_far AS (PARTITION BY uuid, boot, run ORDER BY minute) ORDER BY id;" \
	"DROP TABLE charges_4;"

/* Of this boot of the host; "" where it can not be told. */
void ebb_history_boot_id(char ret[EBB_BOOT_ID_SIZE]);

/* For ebb_history_charge_insert(); NULL: see sqlite3_errmsg(). */
sqlite3_stmt *ebb_history_charge_prepare(sqlite3 *sql);
/* -EIO: see sqlite3_errmsg(). */
int ebb_history_charge_insert(sqlite3_stmt *s, const char *boot,
			      const struct ebb_history_entry *entry);

/* Columns as the control protocol tells them; ?1 to ?4 as of other questions. */
extern const char ebb_history_charge_select[];

/* The last known counters of the runs of this boot; -EIO, -ENOMEM. */
int ebb_history_charge_last(sqlite3 *sql, const char *boot, struct ebb_history_run **ret_runs,
			    size_t *ret_num);

#endif
