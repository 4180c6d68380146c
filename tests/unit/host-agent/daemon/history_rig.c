// SPDX-License-Identifier: GPL-2.0-or-later
/* See history_rig.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "tests/unit/host-agent/daemon/history_rig.h"
#include "util/clock.h"
#include "util/log.h"

#define MAX_ROWS	100000

char history_path[96];
static char folder[64];

int history_folder_make(void **state)
{
	(void)state;
	ebb_log_set_level(LOG_CRIT);
	strcpy(folder, "/tmp/history_rig.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(history_path, sizeof(history_path), "%s/history.db", folder);
	return 0;
}

int history_folder_remove(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

struct ebb_history_db *history_open_db(void)
{
	struct ebb_history_db *db;
	struct ebb_err err = { "" };

	assert_int_equal(ebb_history_db_open(history_path, MAX_ROWS, &db, &err), 0);
	assert_string_equal(err.text, "");
	return db;
}

uint64_t history_charged(const char *vm, const char *key)
{
	struct ebb_history_query q = { .what = EBB_HISTORY_CHARGE, .limit = 10 };
	struct ebb_history_db *db = history_open_db();
	double sum = 0;
	json_t *rows, *row;
	size_t i;

	snprintf(q.vm, sizeof(q.vm), "%s", vm);
	assert_int_equal(ebb_history_db_select(db, &q, &rows, NULL), 0);
	json_array_foreach(rows, i, row)
		sum += json_number_value(json_object_get(row, key));
	json_decref(rows);
	ebb_history_db_close(db);
	return (uint64_t)llround(1e6 * sum);
}

void history_rig_open(struct history_rig *r)
{
	struct ebb_err err = { "" };

	assert_true(sd_event_new(&r->event) >= 0);
	assert_int_equal(ebb_workers_create(r->event, 2, &r->workers), 0);
	assert_int_equal(ebb_history_open(history_path, MAX_ROWS, r->workers, r->event,
					  &r->history, &err), 0);
	assert_string_equal(err.text, "");
}

void history_rig_close(struct history_rig *r)
{
	if (!r->history)
		return;
	assert_int_equal(ebb_workers_destroy(r->workers, HISTORY_PATIENCE_USEC), 0);
	ebb_history_close(r->history);
	sd_event_unref(r->event);
	r->history = NULL;
}

static void take_answer(void *ctx, json_t *rows, int err)
{
	struct history_rig *r = ctx;

	r->rows = rows;
	r->err = err;
	r->is_answered = true;
}

void history_rig_ask(struct history_rig *r, enum ebb_history_what what)
{
	const struct ebb_history_query q = { .what = what, .limit = MAX_ROWS };

	r->is_answered = false;
	ebb_history_ask(r->history, &q, take_answer, r);
}

json_t *history_rig_wait(struct history_rig *r)
{
	const uint64_t begun = ebb_clock_mono_usec();

	while (!r->is_answered && ebb_clock_mono_usec() - begun < HISTORY_PATIENCE_USEC)
		sd_event_run(r->event, 50000);
	assert_true(r->is_answered);
	return r->rows;
}
