// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows of the table of charges are lost, late or never written: what a VM is charged stays exact,
 * because each row has all that the VM has held since it was started.
 */
#include <errno.h>
#include <math.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "daemon/history-db.h"
#include "tests/unit/host-agent/core_script.h"
#include "util/clock.h"
#include "util/log.h"

#define PATIENCE_USEC	SEC(60)		/* a hang, not slowness */
/* More decisions than the history keeps while the disk is slow. */
#define MANY		70000

struct rig {
	struct script s;
	usec_t held;			/* for how long VM "a" has had one core, reserved */
	sd_event *event;
	struct ebb_workers *workers;
	struct ebb_history *history;
	sqlite3 *lock;			/* the connection that keeps others from writing */
	struct ebb_job blocker;
	sem_t blocked, go;
	bool is_answered;
};

static char folder[64], path[96];

/* ---- the history, its disk and its thread ---- */

static void open_history(struct rig *r)
{
	struct ebb_err err = { "" };

	assert_true(sd_event_new(&r->event) >= 0);
	assert_int_equal(ebb_workers_create(r->event, 2, &r->workers), 0);
	assert_int_equal(ebb_history_open(path, 100000, r->workers, r->event, &r->history, &err),
			 0);
	assert_string_equal(err.text, "");
}

static void close_history(struct rig *r)
{
	if (!r->history)
		return;
	assert_int_equal(ebb_workers_destroy(r->workers, PATIENCE_USEC), 0);
	ebb_history_close(r->history);
	sd_event_unref(r->event);
	r->history = NULL;
}

/* What is asked is answered when everything before was written, or could not be. */
static void answered(void *ctx, json_t *rows, int err)
{
	struct rig *r = ctx;

	(void)err;
	json_decref(rows);
	r->is_answered = true;
}

static void ask(struct rig *r)
{
	const struct ebb_history_query q = { .limit = 1 };

	r->is_answered = false;
	ebb_history_ask(r->history, &q, answered, r);
}

static void wait_written(struct rig *r)
{
	const usec_t begun = ebb_clock_mono_usec();

	ask(r);
	while (!r->is_answered && ebb_clock_mono_usec() - begun < PATIENCE_USEC)
		sd_event_run(r->event, 50000);
	assert_true(r->is_answered);
}

/* Writing fails from now on: another program writes and does not end. */
static void lock_file(struct rig *r)
{
	assert_int_equal(sqlite3_open(path, &r->lock), SQLITE_OK);
	assert_int_equal(sqlite3_exec(r->lock, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
}

static void unlock_file(struct rig *r)
{
	sqlite3_close(r->lock);
	r->lock = NULL;
}

static int wait_for_go(struct ebb_job *job)
{
	struct rig *r = (struct rig *)((char *)job - offsetof(struct rig, blocker));

	sem_post(&r->blocked);
	while (sem_wait(&r->go) < 0)
		;
	return 0;
}

static void ignore_done(struct ebb_job *job, int err)
{
	(void)job;
	(void)err;
}

static void ignore_release(struct ebb_job *job)
{
	(void)job;
}

/* The disk hangs from now on: what is to be written waits until release_disk(). */
static void hang_disk(struct rig *r)
{
	r->blocker = (struct ebb_job){
		.deadline = EBB_TIME_NEVER, .run = wait_for_go, .done = ignore_done,
		.release = ignore_release,
	};
	memcpy(r->blocker.lane, "history", 8);
	ebb_workers_submit(r->workers, &r->blocker);
	while (sem_wait(&r->blocked) < 0)
		;
}

static void release_disk(struct rig *r)
{
	sem_post(&r->go);
}

/* ---- the VM ---- */

/* It gets its core with the first decision, which script_settle() makes 100 us later. */
static void start_vm(struct rig *r)
{
	const usec_t began = r->s.now;

	script_boot(&r->s, 'a', 7, "1/4");
	r->held += r->s.now - began - 100;
}

static void take_records(struct rig *r, bool keep)
{
	struct ebb_record record;

	while (ebb_state_record_pop(r->s.state, &record))
		if (keep)
			ebb_history_add(r->history, &record, r->s.now);
}

static void pass(struct rig *r, usec_t usec, bool keep)
{
	r->s.now += usec;
	r->held += usec;
	ebb_state_charge_all(r->s.state, r->s.now);
	take_records(r, keep);
}

/* So much later, with a last record. */
static void stop_vm(struct rig *r, usec_t usec)
{
	r->s.now += usec;
	r->held += usec;
	assert_int_equal(script_simple(&r->s, 'a', EBB_FACT_VM_STOPPED), 0);
	take_records(r, true);
}

static uint64_t charged(void)
{
	struct ebb_history_query q = { .what = EBB_HISTORY_CHARGE, .limit = 10 };
	struct ebb_history_db *db;
	struct ebb_err err = { "" };
	double sum = 0;
	json_t *rows, *row;
	size_t i;

	assert_int_equal(ebb_history_db_open(path, 100000, &db, &err), 0);
	assert_string_equal(err.text, "");
	assert_int_equal(ebb_history_db_select(db, &q, &rows, NULL), 0);
	json_array_foreach(rows, i, row)
		sum += json_number_value(json_object_get(row, "reserved_core_s"));
	json_decref(rows);
	ebb_history_db_close(db);
	return (uint64_t)llround(1e6 * sum);
}

static void expect_exact(struct rig *r)
{
	close_history(r);
	assert_int_equal(charged(), r->held);
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	strcpy(folder, "/tmp/test_ctl_charge_lost.XXXXXX");
	if (!r || !mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/history.db", folder);
	ebb_log_set_level(LOG_CRIT);
	sem_init(&r->blocked, 0, 0);
	sem_init(&r->go, 0, 0);
	script_init(&r->s, 1, 8, 1, false);
	r->s.now = ebb_clock_mono_usec();
	start_vm(r);
	open_history(r);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;
	char command[128];

	if (r->lock)
		unlock_file(r);
	close_history(r);
	script_finish(&r->s);
	free(r);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* ---- tests ---- */

/* A record that nobody kept: the next one has what it said. */
static void test_record_lost(void **state)
{
	struct rig *r = *state;

	pass(r, MSEC(10), true);
	wait_written(r);
	pass(r, MSEC(20), false);
	pass(r, MSEC(40), true);
	expect_exact(r);
}

static void test_write_fails(void **state)
{
	struct rig *r = *state;

	pass(r, MSEC(10), true);
	wait_written(r);
	lock_file(r);
	pass(r, MSEC(20), true);
	wait_written(r);
	unlock_file(r);
	pass(r, MSEC(40), true);
	expect_exact(r);
}

/* No row follows the last one of a VM: that one is written as soon as writing works again. */
static void test_last_write_fails(void **state)
{
	struct rig *r = *state;

	pass(r, MSEC(10), true);
	wait_written(r);
	lock_file(r);
	pass(r, MSEC(20), true);
	wait_written(r);
	stop_vm(r, MSEC(40));
	wait_written(r);
	unlock_file(r);
	expect_exact(r);
}

/* More decisions than are kept: of charges none is lost. */
static void test_queue_full(void **state)
{
	struct rig *r = *state;
	struct ebb_record offer = { .event = EBB_EVENT_OFFER, .name = "b", .text = "because" };

	hang_disk(r);
	pass(r, MSEC(10), true);
	for (int i = 0; i < MANY; i++) {
		offer.at = r->s.now;
		ebb_history_add(r->history, &offer, r->s.now);
	}
	stop_vm(r, MSEC(20));
	release_disk(r);
	expect_exact(r);
}

/* The agent ends while the disk hangs, with rows that were to be written. */
static void test_queued_at_the_end(void **state)
{
	struct rig *r = *state;

	pass(r, MSEC(10), true);
	wait_written(r);
	hang_disk(r);
	pass(r, MSEC(20), true);
	ask(r);
	pass(r, MSEC(40), true);
	ask(r);
	/* What has not begun does not begin any more. */
	assert_int_equal(ebb_workers_destroy(r->workers, 0), -EBUSY);
	release_disk(r);
	expect_exact(r);
}

/* The agent forgets a VM that runs on, and counts anew when it finds it again. */
static void test_counted_anew(void **state)
{
	struct rig *r = *state;

	pass(r, MSEC(30), true);
	stop_vm(r, MSEC(1));
	assert_int_equal(script_simple(&r->s, 'a', EBB_FACT_VM_REMOVED), 0);
	start_vm(r);
	pass(r, MSEC(20), true);
	expect_exact(r);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(record_lost), TEST(write_fails), TEST(last_write_fails), TEST(queue_full),
		TEST(queued_at_the_end), TEST(counted_anew),
	};

	return cmocka_run_group_tests_name("charges of which rows are lost", tests, NULL, NULL);
}
