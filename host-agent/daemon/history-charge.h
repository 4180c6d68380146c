/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What VMs have held, as the history keeps it: sums by run of a VM and minute, to which each record
 * (EBB_EVENT_CHARGE) adds.  A record is kept as a whole or not at all, so what is told is exact up
 * to the last one, however the daemon ended.
 */
#ifndef EBB_DAEMON_HISTORY_CHARGE_H
#define EBB_DAEMON_HISTORY_CHARGE_H

#include <sqlite3.h>
#include "daemon/history-db.h"

#define EBB_BOOT_ID_SIZE	64

/*
 * until_usec is the end of the last record on CLOCK_MONOTONIC, which starts anew with each boot, as
 * run does, which is the order of ebb_fact_vm_running.
 */
#define EBB_HISTORY_CHARGE_SCHEMA \
	"CREATE TABLE IF NOT EXISTS charges (" \
	" id INTEGER PRIMARY KEY, vm TEXT NOT NULL, uuid TEXT NOT NULL, boot TEXT NOT NULL," \
	" run INTEGER NOT NULL, minute INTEGER NOT NULL, first_ts REAL NOT NULL," \
	" last_ts REAL NOT NULL, until_usec INTEGER NOT NULL," \
	" reserved_core_usec INTEGER NOT NULL, spot_core_usec INTEGER NOT NULL," \
	" reserved_mib_msec INTEGER NOT NULL, spot_mib_msec INTEGER NOT NULL," \
	" UNIQUE (uuid, boot, run, minute));"

/* Of this boot of the host; "" where it can not be told. */
void ebb_history_boot_id(char ret[EBB_BOOT_ID_SIZE]);

/* For ebb_history_charge_insert(); NULL: see sqlite3_errmsg(). */
sqlite3_stmt *ebb_history_charge_prepare(sqlite3 *sql);
/* -EIO: see sqlite3_errmsg(). */
int ebb_history_charge_insert(sqlite3_stmt *s, const char *boot,
			      const struct ebb_history_entry *entry);

/* Columns as the control protocol tells them; ?1 to ?4 as of other questions, ?2 is not used. */
extern const char ebb_history_charge_select[];

/* Until when what runs of this boot held is known; -EIO, -ENOMEM. */
int ebb_history_charge_last(sqlite3 *sql, const char *boot, struct ebb_history_run **ret_runs,
			    size_t *ret_num);

#endif
