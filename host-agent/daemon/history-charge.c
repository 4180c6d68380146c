/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See history-charge.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/history-charge.h"
#include "util/fs.h"
#include "util/uuid.h"

#define SECONDS_OF_ROW	60

void ebb_history_boot_id(char ret[EBB_BOOT_ID_SIZE])
{
	size_t len = 0;

	if (ebb_fs_read("/proc/sys/kernel/random/boot_id", ret, EBB_BOOT_ID_SIZE, &len) < 0)
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

sqlite3_stmt *ebb_history_charge_prepare(sqlite3 *sql)
{
	static const char text[] =
		"INSERT INTO charges (vm, uuid, boot, run, minute, first_ts, last_ts, until_usec, "
		"reserved_core_usec, spot_core_usec, reserved_mib_msec, spot_mib_msec, since_usec) "
		"VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?) "
		"ON CONFLICT (uuid, boot, since_usec, minute) DO UPDATE SET vm = excluded.vm,"
		" first_ts = min(first_ts, excluded.first_ts),"
		" last_ts = max(last_ts, excluded.last_ts),"
		" until_usec = max(until_usec, excluded.until_usec),"
		" reserved_core_usec = max(reserved_core_usec, excluded.reserved_core_usec),"
		" spot_core_usec = max(spot_core_usec, excluded.spot_core_usec),"
		" reserved_mib_msec = max(reserved_mib_msec, excluded.reserved_mib_msec),"
		" spot_mib_msec = max(spot_mib_msec, excluded.spot_mib_msec)";
	sqlite3_stmt *s = NULL;

	sqlite3_prepare_v2(sql, text, -1, &s, NULL);
	return s;
}

int ebb_history_charge_insert(sqlite3_stmt *s, const char *boot,
			      const struct ebb_history_entry *e)
{
	const struct ebb_record *r = &e->record;
	char uuid[EBB_UUID_TEXT_SIZE];

	ebb_uuid_format(r->uuid, uuid);
	sqlite3_bind_text(s, 1, r->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 2, uuid, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(s, 3, boot, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 4, (int64_t)r->order);
	sqlite3_bind_int64(s, 5, (int64_t)(e->ts / SECONDS_OF_ROW));
	sqlite3_bind_double(s, 6, e->ts - (double)r->total_usec / EBB_USEC_PER_SEC);
	sqlite3_bind_double(s, 7, e->ts);
	sqlite3_bind_int64(s, 8, (int64_t)r->at);
	sqlite3_bind_int64(s, 13, (int64_t)(r->at - r->total_usec));
	for (int k = 0; k < EBB_CLASS_MAX; k++) {
		sqlite3_bind_int64(s, 9 + k, (int64_t)r->charge[k].core_usec);
		sqlite3_bind_int64(s, 9 + EBB_CLASS_MAX + k, (int64_t)r->charge[k].mib_msec);
	}
	if (sqlite3_step(s) != SQLITE_DONE || sqlite3_reset(s) != SQLITE_OK)
		return -EIO;
	return 0;
}

/* How far a counter came beyond the last row of before the time that is asked for. */
#define COUNTED(counter) \
	"max(" counter ") - coalesce(max(" counter ") FILTER (WHERE last_ts < ?3), 0) AS " counter

const char ebb_history_charge_select[] =
	"WITH counted AS (SELECT uuid, max(id) AS newest, max(last_ts) AS last_ts,"
	" coalesce(max(last_ts) FILTER (WHERE last_ts < ?3), min(first_ts)) AS first_ts,"
	COUNTED("reserved_core_usec") "," COUNTED("spot_core_usec") ","
	COUNTED("reserved_mib_msec") "," COUNTED("spot_mib_msec")
	" FROM charges WHERE (?1 = '' AND ?2 = '') OR (?2 != '' AND uuid = ?2)"
	" OR (?1 != '' AND uuid IN (SELECT uuid FROM charges WHERE vm = ?1))"
	" GROUP BY uuid, boot, since_usec HAVING max(last_ts) >= ?3)"
	" SELECT charges.vm, charges.uuid, total.first_ts, total.last_ts,"
	" reserved_core_s, spot_core_s, reserved_mib_s, spot_mib_s FROM"
	" (SELECT max(newest) AS newest, min(first_ts) AS first_ts, max(last_ts) AS last_ts,"
	" sum(reserved_core_usec) / 1e6 AS reserved_core_s,"
	" sum(spot_core_usec) / 1e6 AS spot_core_s,"
	" sum(reserved_mib_msec) / 1e3 AS reserved_mib_s, sum(spot_mib_msec) / 1e3 AS spot_mib_s"
	" FROM counted GROUP BY uuid) AS total JOIN charges ON charges.id = total.newest"
	" ORDER BY charges.vm, total.first_ts LIMIT ?4";

int ebb_history_charge_last(sqlite3 *sql, const char *boot, struct ebb_history_run **ret_runs,
			    size_t *ret_num)
{
	/* With max() SQLite takes the other columns from the row that has the maximum. */
	static const char text[] =
		"SELECT uuid, run, max(until_usec), since_usec, reserved_core_usec, "
		"spot_core_usec, reserved_mib_msec, spot_mib_msec FROM charges "
		"WHERE boot = ?1 AND boot != '' GROUP BY uuid, run";
	struct ebb_history_run *runs = NULL;
	sqlite3_stmt *s = NULL;
	size_t num = 0, size = 0;
	int rc = 0, step = SQLITE_ERROR;

	if (sqlite3_prepare_v2(sql, text, -1, &s, NULL) == SQLITE_OK)
		sqlite3_bind_text(s, 1, boot, -1, SQLITE_STATIC);
	while (rc == 0 && s && (step = sqlite3_step(s)) == SQLITE_ROW) {
		const char *uuid = (const char *)sqlite3_column_text(s, 0);
		struct ebb_history_run run = {
			.order = (uint64_t)sqlite3_column_int64(s, 1),
			.charge.at = (usec_t)sqlite3_column_int64(s, 2),
			.charge.since = (usec_t)sqlite3_column_int64(s, 3),
		};

		for (int k = 0; k < EBB_CLASS_MAX; k++) {
			run.charge.core_usec[k] = (uint64_t)sqlite3_column_int64(s, 4 + k);
			run.charge.mib_usec[k] = EBB_USEC_PER_MSEC *
				(uint64_t)sqlite3_column_int64(s, 4 + EBB_CLASS_MAX + k);
		}

		if (!uuid || ebb_uuid_parse(uuid, run.uuid) < 0)
			continue;
		if (num == size) {
			struct ebb_history_run *more;

			size = size ? 2 * size : 64;
			more = reallocarray(runs, size, sizeof(*more));
			if (!more) {
				rc = -ENOMEM;
				break;
			}
			runs = more;
		}
		runs[num++] = run;
	}
	sqlite3_finalize(s);
	if (rc == 0 && step != SQLITE_DONE)
		rc = -EIO;
	if (rc < 0) {
		free(runs);
		return rc;
	}
	*ret_runs = runs;
	*ret_num = num;
	return 0;
}
