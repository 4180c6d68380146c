/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The SQL of the history.  Everything blocks; one thread at a time. */
#ifndef EBB_DAEMON_HISTORY_DB_H
#define EBB_DAEMON_HISTORY_DB_H

#include "daemon/history.h"

struct ebb_history_db;

struct ebb_history_entry {
	double ts;			/* unix seconds */
	struct ebb_record record;
};

/* A run of a VM in this boot of the host, and what the history says that it held. */
struct ebb_history_run {
	uint8_t uuid[16];
	uint64_t order;
	struct ebb_vm_charge charge;
};

/* As ebb_history_open(); a file of the version before this one is converted. */
int ebb_history_db_open(const char *path, uint32_t max_rows, struct ebb_history_db **ret,
			struct ebb_err *err);
/* As ebb_history_keep(). */
void ebb_history_db_keep(struct ebb_history_db *db, uint32_t ledger_hours);
void ebb_history_db_close(struct ebb_history_db *db);

/*
 * All in one transaction.  Also deletes the oldest rows beyond max_rows of each of the tables of
 * decisions, charges and minutes of the ledger, and intervals of the ledger that are too old.
 */
int ebb_history_db_insert(struct ebb_history_db *db, const struct ebb_history_entry *entries,
			  size_t num, struct ebb_err *err);

int ebb_history_db_select(struct ebb_history_db *db, const struct ebb_history_query *query,
			  json_t **ret_rows, struct ebb_err *err);

/* Runs of this boot as they were when the file was opened; once.  The caller frees *ret_runs. */
void ebb_history_db_runs(struct ebb_history_db *db, struct ebb_history_run **ret_runs,
			 size_t *ret_num);

#endif
