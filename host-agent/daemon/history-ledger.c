/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See history-ledger.h. */
#include <errno.h>
#include <stdio.h>
#include "daemon/history-ledger.h"
#include "util/uuid.h"

#define SECONDS_OF_ROW	60

/* X(column) for each counter, in the order of bind_counters(). */
#define COUNTERS(X) \
	X(metered_usec) X(wanted) X(promised) X(got) X(violated) X(unclear) \
	X(num_intervals) X(num_violations) X(num_unclear)

#define NUM_COUNTERS	9
#define NAME(c)		#c ", "
#define MARK(c)		"?, "
#define LARGER(c)	#c " = max(" #c ", excluded." #c "), "

static int prepare(sqlite3 *sql, const char *text, sqlite3_stmt **ret)
{
	return sqlite3_prepare_v2(sql, text, -1, ret, NULL) == SQLITE_OK ? 0 : -EIO;
}

int ebb_ledger_writer_init(struct ebb_ledger_writer *w, sqlite3 *sql)
{
	/* Counters only grow, so the larger ones are the newer ones, whatever comes late. */
	static const char total[] =
		"INSERT INTO ledger (" COUNTERS(NAME) "vm, uuid, boot, since_usec, resource, unit,"
		" rate, first_ts, last_ts, cause, reason, broken_ts)"
		" VALUES (" COUNTERS(MARK) "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
		" ON CONFLICT (uuid, boot, since_usec, resource) DO UPDATE SET "
		COUNTERS(LARGER)
		" first_ts = min(first_ts, excluded.first_ts),"
		" vm = iif(excluded.last_ts >= last_ts, excluded.vm, vm),"
		" rate = iif(excluded.last_ts >= last_ts, excluded.rate, rate),"
		" cause = iif(excluded.broken_ts >= coalesce(broken_ts, 0), excluded.cause, cause),"
		" reason = iif(excluded.broken_ts >= coalesce(broken_ts, 0), excluded.reason,"
		" reason),"
		" broken_ts = nullif(max(coalesce(broken_ts, 0), coalesce(excluded.broken_ts, 0)),"
		" 0),"
		" last_ts = max(last_ts, excluded.last_ts) RETURNING id";
	static const char minute[] =
		"INSERT INTO ledger_minutes (" COUNTERS(NAME) "count, slot, ts)"
		" VALUES (" COUNTERS(MARK) "?, ?, ?) ON CONFLICT (count, slot) DO UPDATE SET "
		COUNTERS(LARGER) "ts = max(ts, excluded.ts)";
	static const char interval[] =
		"INSERT OR IGNORE INTO ledger_intervals (" COUNTERS(NAME)
		"count, slot, ts, rate, cause, reason) VALUES (" COUNTERS(MARK)
		"?, ?, ?, ?, ?, ?)";

	*w = (struct ebb_ledger_writer){ 0 };
	if (prepare(sql, total, &w->total) < 0 || prepare(sql, minute, &w->minute) < 0)
		return -EIO;
	return prepare(sql, interval, &w->interval);
}

void ebb_ledger_writer_finish(struct ebb_ledger_writer *w)
{
	sqlite3_finalize(w->total);
	sqlite3_finalize(w->minute);
	sqlite3_finalize(w->interval);
}

static void bind_counters(sqlite3_stmt *s, const struct ebb_ledger *sum)
{
	const uint64_t counters[NUM_COUNTERS] = {
		sum->metered_usec, sum->wanted, sum->promised, sum->got, sum->violated,
		sum->unclear, sum->num_intervals, sum->num_violations, sum->num_unclear,
	};

	for (int i = 0; i < NUM_COUNTERS; i++)
		sqlite3_bind_int64(s, 1 + i, (int64_t)counters[i]);
}

static int run(sqlite3_stmt *s)
{
	return sqlite3_step(s) == SQLITE_DONE && sqlite3_reset(s) == SQLITE_OK ? 0 : -EIO;
}

static int insert_total(sqlite3_stmt *s, const char *boot, const struct ebb_history_entry *e,
			int64_t *ret_id)
{
	const struct ebb_record *r = &e->record;
	char uuid[EBB_UUID_TEXT_SIZE], resource[EBB_RESOURCE_SIZE];
	int at = NUM_COUNTERS + 1;

	ebb_uuid_format(r->uuid, uuid);
	ebb_record_resource(r, resource);
	bind_counters(s, &r->ledger.sum);
	sqlite3_bind_text(s, at++, r->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, at++, uuid, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(s, at++, boot, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, at++, (int64_t)(r->at - r->total_usec));
	sqlite3_bind_text(s, at++, resource, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(s, at++, ebb_promise_unit(r->ledger.promise), -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, at++, (int64_t)r->ledger.rate);
	sqlite3_bind_double(s, at++, e->ts - (double)r->total_usec / EBB_USEC_PER_SEC);
	sqlite3_bind_double(s, at++, e->ts);
	sqlite3_bind_text(s, at++, ebb_cause_name(r->code), -1, SQLITE_STATIC);
	sqlite3_bind_text(s, at++, r->text, -1, SQLITE_STATIC);
	if (r->code == EBB_CAUSE_NONE)
		sqlite3_bind_null(s, at);
	else
		sqlite3_bind_double(s, at, e->ts);
	if (sqlite3_step(s) != SQLITE_ROW)
		return -EIO;
	*ret_id = sqlite3_column_int64(s, 0);
	return run(s);
}

static int insert_row(sqlite3_stmt *s, int64_t count, int64_t slot, bool is_interval,
		      const struct ebb_history_entry *e)
{
	const struct ebb_record *r = &e->record;

	bind_counters(s, &r->ledger.sum);
	sqlite3_bind_int64(s, NUM_COUNTERS + 1, count);
	sqlite3_bind_int64(s, NUM_COUNTERS + 2, slot);
	sqlite3_bind_double(s, NUM_COUNTERS + 3, e->ts);
	if (is_interval) {
		sqlite3_bind_int64(s, NUM_COUNTERS + 4, (int64_t)r->ledger.rate);
		sqlite3_bind_text(s, NUM_COUNTERS + 5, ebb_cause_name(r->code), -1, SQLITE_STATIC);
		sqlite3_bind_text(s, NUM_COUNTERS + 6, r->text, -1, SQLITE_STATIC);
	}
	return run(s);
}

int ebb_history_ledger_insert(struct ebb_ledger_writer *w, const char *boot,
			      const struct ebb_history_entry *e)
{
	int64_t count;

	if (insert_total(w->total, boot, e, &count) < 0 ||
	    insert_row(w->minute, count, (int64_t)(e->ts / SECONDS_OF_ROW), false, e) < 0)
		return -EIO;
	return insert_row(w->interval, count, (int64_t)e->record.at, true, e);
}

int ebb_history_ledger_trim(sqlite3 *sql, double oldest_ts, uint32_t max_rows)
{
	char text[256];

	snprintf(text, sizeof(text), "DELETE FROM ledger_intervals WHERE ts < %.6f; "
		 "DELETE FROM ledger_minutes WHERE id <= "
		 "(SELECT max(id) FROM ledger_minutes) - %u", oldest_ts, max_rows);
	return sqlite3_exec(sql, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
}

#define ASKED_FOR \
	"(?1 = '' AND ?2 = '') OR (?2 != '' AND uuid = ?2)" \
	" OR (?1 != '' AND uuid IN (SELECT uuid FROM ledger WHERE vm = ?1))"

/* Of the promise of a cache: I/Os that were too many, in parts of those of the cache. */
#define RELATIVE_IO \
	" iif(resource = 'memory' AND promised > 0, (got - promised) * 1.0 / promised, NULL)" \
	" AS relative_io,"

/* How far a counter came beyond the last row of before the time that is asked for. */
#define COUNTED(c)	"l." #c " - max(coalesce(m." #c ", 0), coalesce(i." #c ", 0)) AS " #c ", "
#define SUMMED(c)	"sum(" #c ") AS " #c ", "

/*
 * A minute's newest row is certain to be of before ?3 only if the whole minute is.  Intervals are
 * sought by time, from ?3 back: a count that is going on has a row shortly before it.
 */
const char ebb_history_ledger_select[] =
	"WITH counted AS (SELECT " COUNTERS(COUNTED)
	" l.id, l.vm, l.uuid, l.resource, l.unit, l.rate, l.last_ts,"
	" max(l.first_ts, coalesce(m.ts, 0), coalesce(i.ts, 0)) AS first_ts,"
	" iif(l.broken_ts >= ?3, l.broken_ts, NULL) AS broken_ts, l.cause, l.reason"
	" FROM ledger AS l"
	" LEFT JOIN ledger_minutes AS m ON m.id = (SELECT id FROM ledger_minutes"
	"  WHERE count = l.id AND slot < CAST(?3 / 60 AS INTEGER) ORDER BY slot DESC LIMIT 1)"
	" LEFT JOIN ledger_intervals AS i ON i.id = (SELECT id"
	"  FROM ledger_intervals INDEXED BY ledger_intervals_ts"
	"  WHERE l.first_ts < ?3 AND ts < ?3 AND count = l.id ORDER BY ts DESC LIMIT 1)"
	" WHERE l.last_ts >= ?3 AND (" ASKED_FOR "))"
	/* With max() SQLite takes the other columns from the row that has the maximum. */
	" SELECT vm, uuid, resource, unit, rate, first_ts, last_ts,"
	" metered_usec / 1e6 AS metered_s, wanted, promised, got, violated, unclear,"
	" num_intervals, num_violations, num_unclear," RELATIVE_IO
	" broken_ts, coalesce(b.cause, 'none') AS cause, coalesce(b.reason, '') AS reason"
	" FROM (SELECT " COUNTERS(SUMMED) " max(last_ts) AS last_ts, min(first_ts) AS first_ts,"
	"  vm, uuid, resource, unit, rate FROM counted GROUP BY uuid, resource)"
	" LEFT JOIN (SELECT max(broken_ts) AS broken_ts, cause, reason, uuid, resource FROM counted"
	"  WHERE broken_ts NOT NULL GROUP BY uuid, resource) AS b USING (uuid, resource)"
	" ORDER BY vm, first_ts, resource LIMIT ?4";

/* Of the first interval of a count all; unknown where the row before has been deleted. */
#define STEP(c)	"i." #c " - coalesce(p." #c ", iif(i.num_intervals = 1, 0, NULL)) AS " #c ", "

/* Since the row before: of an interval whose row was lost, the next row tells. */
const char ebb_history_intervals_select[] =
	"SELECT vm, uuid, resource, unit, ts, rate, metered_usec / 1e6 AS metered_s,"
	" wanted, promised, got, violated, unclear, num_intervals, num_violations, num_unclear,"
	RELATIVE_IO " cause, reason FROM (SELECT " COUNTERS(STEP)
	" i.ts, i.rate, i.cause, i.reason, i.vm, i.uuid, i.resource, i.unit FROM"
	" (SELECT r.*, l.vm, l.uuid, l.resource, l.unit"
	"  FROM ledger_intervals AS r JOIN ledger AS l ON l.id = r.count"
	"  WHERE r.ts >= ?3 AND (" ASKED_FOR ") ORDER BY r.ts DESC LIMIT ?4) AS i"
	" LEFT JOIN ledger_intervals AS p ON p.id = (SELECT id FROM ledger_intervals"
	"  WHERE count = i.count AND slot < i.slot ORDER BY slot DESC LIMIT 1))"
	" WHERE metered_usec NOT NULL ORDER BY ts, vm";
