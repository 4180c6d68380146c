/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The SQL of the history. */
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/pressure/violation.h"
#include "daemon/history-charge.h"
#include "daemon/history-db.h"
#include "daemon/history-ledger.h"
#include "util/uuid.h"

/* Grows when a table changes; a file of another version than this and the last is set aside. */
#define VERSION		5
#define BUSY_MSEC	2000
#define LEDGER_HOURS	24
#define SECONDS_OF_HOUR	3600.0

static const char schema[] =
	"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
	"CREATE TABLE IF NOT EXISTS decisions ("
	" id INTEGER PRIMARY KEY, ts REAL NOT NULL, mono_s REAL NOT NULL, vm TEXT NOT NULL,"
	" uuid TEXT NOT NULL, event TEXT NOT NULL, node INTEGER, cpus INTEGER NOT NULL,"
	" asked INTEGER NOT NULL, bytes INTEGER NOT NULL, code TEXT NOT NULL, agent_ms REAL,"
	" libvirt_ms REAL, place_ms REAL, total_ms REAL, reason TEXT NOT NULL, sla TEXT);"
	"CREATE INDEX IF NOT EXISTS decisions_vm ON decisions (vm, id);"
	"CREATE INDEX IF NOT EXISTS decisions_uuid ON decisions (uuid, id);"
	EBB_HISTORY_CHARGE_SCHEMA
	EBB_HISTORY_LEDGER_SCHEMA
	"PRAGMA user_version = 5;";

static const char convert[] =
	"BEGIN IMMEDIATE;"
	EBB_HISTORY_CHARGE_CONVERT
	"PRAGMA user_version = 5;"
	"COMMIT;";

struct ebb_history_db {
	sqlite3 *sql;
	uint32_t max_rows;
	uint32_t ledger_hours;
	char boot[EBB_BOOT_ID_SIZE];
	struct ebb_history_run *runs;	/* until ebb_history_db_runs() */
	size_t num_runs;
};

static int fail(struct ebb_history_db *db, struct ebb_err *err, const char *what)
{
	return ebb_err_set(err, -EIO, "%s: %s", what, sqlite3_errmsg(db->sql));
}

/*
 * -EPROTO: the file is no history of this version.  -EIO: it may be a good one that can not be
 * opened now, because the disk is full, say, or another process has locked it.
 */
static int fail_to_open(struct ebb_history_db *db, struct ebb_err *err, const char *path)
{
	const int code = sqlite3_errcode(db->sql);

	fail(db, err, path ? path : "history in memory");
	/* SQLITE_ERROR: a table or column is missing. */
	return code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR ? -EPROTO :
											  -EIO;
}

static int read_version(struct ebb_history_db *db, int *ret)
{
	sqlite3_stmt *s = NULL;
	int rc = -EIO;

	if (sqlite3_prepare_v2(db->sql, "PRAGMA user_version", -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW) {
		*ret = sqlite3_column_int(s, 0);
		rc = 0;
	}
	sqlite3_finalize(s);
	return rc;
}

static int prepare(struct ebb_history_db *db, const char *path, struct ebb_err *err)
{
	int version, rc;

	sqlite3_busy_timeout(db->sql, BUSY_MSEC);
	if (read_version(db, &version) < 0)
		return fail_to_open(db, err, path);
	if (version == VERSION - 1) {
		if (sqlite3_exec(db->sql, convert, NULL, NULL, NULL) != SQLITE_OK)
			return fail_to_open(db, err, path);
		version = VERSION;
	}
	if (version != 0 && version != VERSION)
		return ebb_err_set(err, -EPROTO, "%s is of version %d, not %d", path, version,
				   VERSION);
	if (sqlite3_exec(db->sql, schema, NULL, NULL, NULL) != SQLITE_OK)
		return fail_to_open(db, err, path);
	/* The first time that rows are read: damage may show only here. */
	rc = ebb_history_charge_last(db->sql, db->boot, &db->runs, &db->num_runs);
	return rc == -EIO ? fail_to_open(db, err, path) : rc;
}

static int open_file(struct ebb_history_db *db, const char *path, struct ebb_err *err)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	int rc;

	if (sqlite3_open_v2(path ? path : ":memory:", &db->sql, flags, NULL) == SQLITE_OK)
		rc = prepare(db, path, err);
	else
		rc = fail_to_open(db, err, path);
	if (rc < 0) {
		sqlite3_close(db->sql);
		db->sql = NULL;
	}
	return rc;
}

/* Devices, folders and the like are no damaged histories: they are left where they are. */
static bool can_be_set_aside(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static void set_aside(const char *path)
{
	static const char *const tails[] = { "", "-wal", "-shm" };

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		char from[PATH_MAX], to[PATH_MAX];

		snprintf(from, sizeof(from), "%s%s", path, tails[i]);
		snprintf(to, sizeof(to), "%s.old%s", path, tails[i]);
		/* SQLite would take the log of an earlier file for that of this one. */
		if (rename(from, to) < 0 && errno == ENOENT)
			unlink(to);
	}
}

int ebb_history_db_open(const char *path, uint32_t max_rows, struct ebb_history_db **ret,
			struct ebb_err *err)
{
	struct ebb_history_db *db = calloc(1, sizeof(*db));
	struct ebb_err second;
	int rc;

	if (!db)
		return -ENOMEM;
	db->max_rows = max_rows;
	db->ledger_hours = LEDGER_HOURS;
	ebb_history_boot_id(db->boot);
	rc = open_file(db, path, err);
	if (rc == -EPROTO && path && can_be_set_aside(path)) {
		set_aside(path);
		rc = open_file(db, path, &second);
		if (rc < 0)
			*err = second;
	}
	if (rc < 0) {
		free(db);
		return rc;
	}
	*ret = db;
	return 0;
}

void ebb_history_db_keep(struct ebb_history_db *db, uint32_t ledger_hours)
{
	db->ledger_hours = ledger_hours;
}

void ebb_history_db_close(struct ebb_history_db *db)
{
	if (!db)
		return;
	sqlite3_close(db->sql);
	free(db->runs);
	free(db);
}

static void bind_ms(sqlite3_stmt *s, int at, const struct ebb_record *r, usec_t usec)
{
	const bool has_phases = r->event != EBB_EVENT_VIOLATION && r->event != EBB_EVENT_MOVE;

	/* Phases are there for what was timed as a whole. */
	if (r->total_usec && (has_phases || usec))
		sqlite3_bind_double(s, at, (double)usec / EBB_USEC_PER_MSEC);
	else
		sqlite3_bind_null(s, at);
}

/* The SLA of a VM (ebb_sla_print()), which a replay needs. */
static void bind_sla(sqlite3_stmt *s, int at, const struct ebb_record *r)
{
	char text[EBB_SLA_TEXT_SIZE];

	if (r->event != EBB_EVENT_SLA || r->sla.num_nodes == 0) {
		sqlite3_bind_null(s, at);
		return;
	}
	ebb_sla_print(&r->sla, text);
	sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT);
}

static int insert_one(sqlite3_stmt *s, const struct ebb_history_entry *e)
{
	const struct ebb_record *r = &e->record;
	char uuid[EBB_UUID_TEXT_SIZE];

	ebb_uuid_format(r->uuid, uuid);
	sqlite3_bind_double(s, 1, e->ts);
	sqlite3_bind_double(s, 2, (double)r->at / EBB_USEC_PER_SEC);
	sqlite3_bind_text(s, 3, r->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 4, r->name[0] ? uuid : "", -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(s, 5, ebb_event_name(r->event), -1, SQLITE_STATIC);
	if (r->node == EBB_NODE_ANY)
		sqlite3_bind_null(s, 6);
	else
		sqlite3_bind_int(s, 6, r->node);
	sqlite3_bind_int(s, 7, r->cpus);
	sqlite3_bind_int(s, 8, r->asked);
	sqlite3_bind_text(s, 9, ebb_code_name(r->event, r->code), -1, SQLITE_STATIC);
	bind_ms(s, 10, r, r->agent_usec);
	bind_ms(s, 11, r, r->libvirt_usec);
	bind_ms(s, 12, r, r->place_usec);
	bind_ms(s, 13, r, r->total_usec);
	sqlite3_bind_text(s, 14, r->text, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 15, (int64_t)r->bytes);
	bind_sla(s, 16, r);
	if (sqlite3_step(s) != SQLITE_DONE || sqlite3_reset(s) != SQLITE_OK)
		return -EIO;
	return 0;
}

/* The newest entry is written now. */
static int trim(struct ebb_history_db *db, double now_ts)
{
	char text[256];

	snprintf(text, sizeof(text), "DELETE FROM decisions WHERE id <= "
		 "(SELECT max(id) FROM decisions) - %u; DELETE FROM charges WHERE id <= "
		 "(SELECT max(id) FROM charges) - %u", db->max_rows, db->max_rows);
	if (sqlite3_exec(db->sql, text, NULL, NULL, NULL) != SQLITE_OK)
		return -EIO;
	return ebb_history_ledger_trim(db->sql, now_ts - db->ledger_hours * SECONDS_OF_HOUR,
				       db->max_rows);
}

/* The statements of one transaction, one for each kind of record. */
struct writer {
	sqlite3_stmt *decision, *charge;
	struct ebb_ledger_writer ledger;
};

static int write_one(struct writer *w, const char *boot, const struct ebb_history_entry *e)
{
	switch (e->record.event) {
	case EBB_EVENT_CHARGE:
		return ebb_history_charge_insert(w->charge, boot, e);
	case EBB_EVENT_LEDGER:
		return ebb_history_ledger_insert(&w->ledger, boot, e);
	default:
		return insert_one(w->decision, e);
	}
}

int ebb_history_db_insert(struct ebb_history_db *db, const struct ebb_history_entry *entries,
			  size_t num, struct ebb_err *err)
{
	static const char text[] =
		"INSERT INTO decisions (ts, mono_s, vm, uuid, event, node, cpus, asked, code, "
		"agent_ms, libvirt_ms, place_ms, total_ms, reason, bytes, sla) "
		"VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
	struct writer w = { 0 };
	int rc = 0;

	if (sqlite3_exec(db->sql, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return fail(db, err, "BEGIN");
	w.charge = ebb_history_charge_prepare(db->sql);
	if (!w.charge || ebb_ledger_writer_init(&w.ledger, db->sql) < 0 ||
	    sqlite3_prepare_v2(db->sql, text, -1, &w.decision, NULL) != SQLITE_OK)
		rc = -EIO;
	for (size_t i = 0; rc == 0 && i < num; i++)
		rc = write_one(&w, db->boot, &entries[i]);
	if (rc == 0)
		rc = trim(db, num > 0 ? entries[num - 1].ts : 0);
	if (rc < 0)
		fail(db, err, "INSERT");
	sqlite3_finalize(w.decision);
	sqlite3_finalize(w.charge);
	ebb_ledger_writer_finish(&w.ledger);
	if (rc == 0 && sqlite3_exec(db->sql, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		rc = fail(db, err, "COMMIT");
	if (rc < 0)
		sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

static json_t *column(sqlite3_stmt *s, int i)
{
	switch (sqlite3_column_type(s, i)) {
	case SQLITE_NULL:
		return json_null();
	case SQLITE_INTEGER:
		return json_integer(sqlite3_column_int64(s, i));
	case SQLITE_FLOAT:
		return json_real(sqlite3_column_double(s, i));
	default:
		return json_string((const char *)sqlite3_column_text(s, i));
	}
}

int ebb_history_db_select(struct ebb_history_db *db, const struct ebb_history_query *q,
			  json_t **ret_rows, struct ebb_err *err)
{
	static const char rows_text[] =
		"SELECT ts, mono_s, vm, uuid, event, node, cpus, asked, bytes, code, agent_ms, "
		"libvirt_ms, "
		"place_ms,"
		" total_ms, reason FROM (SELECT * FROM decisions WHERE"
		" ((?1 = '' AND ?2 = '') OR (?1 != '' AND vm = ?1) OR (?2 != '' AND uuid = ?2))"
		" AND (?5 = '' OR event = ?5) AND ts >= ?3 ORDER BY id DESC LIMIT ?4) ORDER BY id";
	static const char *const texts[] = {
		[EBB_HISTORY_DECISIONS] = rows_text,
		[EBB_HISTORY_CHARGE] = ebb_history_charge_select,
		[EBB_HISTORY_LEDGER] = ebb_history_ledger_select,
		[EBB_HISTORY_INTERVALS] = ebb_history_intervals_select,
	};
	json_t *rows = json_array();
	sqlite3_stmt *s = NULL;
	int rc;

	if (!rows)
		return -ENOMEM;
	if (sqlite3_prepare_v2(db->sql, texts[q->what], -1, &s, NULL) != SQLITE_OK) {
		json_decref(rows);
		return fail(db, err, "SELECT");
	}
	sqlite3_bind_text(s, 1, q->vm, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 2, q->uuid, -1, SQLITE_STATIC);
	sqlite3_bind_double(s, 3, q->since_ts);
	sqlite3_bind_int64(s, 4, q->limit);
	if (q->what == EBB_HISTORY_DECISIONS)
		sqlite3_bind_text(s, 5, q->event, -1, SQLITE_STATIC);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		json_t *row = json_object();

		for (int i = 0; i < sqlite3_column_count(s); i++)
			json_object_set_new(row, sqlite3_column_name(s, i), column(s, i));
		json_array_append_new(rows, row);
	}
	rc = rc == SQLITE_DONE ? 0 : fail(db, err, "SELECT");
	sqlite3_finalize(s);
	if (rc < 0)
		json_decref(rows);
	else
		*ret_rows = rows;
	return rc;
}

void ebb_history_db_runs(struct ebb_history_db *db, struct ebb_history_run **ret_runs,
			 size_t *ret_num)
{
	*ret_runs = db->runs;
	*ret_num = db->num_runs;
	db->runs = NULL;
	db->num_runs = 0;
}
