// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows of the table of charges are lost, late or never written: what a VM is charged stays exact,
 * because each row has all that the VM has held since it was started.
 */
#include <errno.h>
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
#include "tests/unit/host-agent/core/core_script.h"
#include "tests/unit/host-agent/daemon/history_rig.h"
#include "util/clock.h"
#include "util/log.h"

/* More decisions, and more charges, than the history keeps while the disk is slow. */
#define MANY		70000

struct rig {
	struct script s;
	usec_t held;			/* for how long VM "a" has had one core, reserved */
	struct history_rig h;
	sqlite3 *lock;			/* the connection that keeps others from writing */
	struct ebb_job blocker;
	sem_t blocked, go;
};

static void ask(struct rig *r)
{
	history_rig_ask(&r->h, EBB_HISTORY_CHARGE);
}

static void wait_written(struct rig *r)
{
	ask(r);
	json_decref(history_rig_wait(&r->h));
}

/* Writing fails from now on: another program writes and does not end. */
static void lock_file(struct rig *r)
{
	assert_int_equal(sqlite3_open(history_path, &r->lock), SQLITE_OK);
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
	ebb_workers_submit(r->h.workers, &r->blocker);
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
			ebb_history_add(r->h.history, &record, r->s.now);
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

static void expect_exact(struct rig *r)
{
	history_rig_close(&r->h);
	assert_int_equal(history_charged("", "reserved_core_s"), r->held);
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	if (!r || history_folder_make(state) < 0)
		return -1;
	sem_init(&r->blocked, 0, 0);
	sem_init(&r->go, 0, 0);
	script_init(&r->s, 1, 8, 1, false);
	r->s.now = ebb_clock_mono_usec();
	start_vm(r);
	history_rig_open(&r->h);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	if (r->lock)
		unlock_file(r);
	history_rig_close(&r->h);
	script_finish(&r->s);
	free(r);
	return history_folder_remove(state);
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
		ebb_history_add(r->h.history, &offer, r->s.now);
	}
	stop_vm(r, MSEC(20));
	release_disk(r);
	expect_exact(r);
}

/* More charges than are kept: the newest of a run says all that those before it did. */
static void test_queue_full_of_charges(void **state)
{
	struct rig *r = *state;

	hang_disk(r);
	for (int i = 0; i < MANY; i++)
		pass(r, MSEC(1), true);
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
	assert_int_equal(ebb_workers_destroy(r->h.workers, 0), -EBUSY);
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
		TEST(queue_full_of_charges), TEST(queued_at_the_end), TEST(counted_anew),
	};

	return cmocka_run_group_tests_name("charges of which rows are lost", tests, NULL, NULL);
}
