// SPDX-License-Identifier: GPL-2.0-or-later
/* Promises of I/O: what the volume server is told and when, who owns a volume, what is shown. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/explain.h"
#include "core/io/io.h"
#include "core/io/table.h"
#include "model/sla-io.h"
#include "tests/unit/host-agent/core/core_script.h"
#include "tests/unit/host-agent/core/io/io_script.h"

static void test_told_when_the_server_is_there(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	io_boot(&s, 'a', 1, "x", "y");
	io_promise(&s, 'a', 300);
	script_expect_nothing(&s);
	io_assert_view(&s, 'a', 0, EBB_IO_WAITING, "not answered yet");
	script_volumes_up(&s);
	script_expect(&s, "volume a x 300/0", "volume a y 300/0");
	io_assert_view(&s, 'a', 0, EBB_IO_SETTING, "");
	script_volume_done(&s, "x", 0, NULL);
	io_assert_view(&s, 'a', 0, EBB_IO_SET, "");
	io_assert_view(&s, 'a', 1, EBB_IO_SETTING, "");
	assert_true(script_find_record(&s, 'a', EBB_EVENT_VOLUME));
	assert_non_null(strstr(s.record.text, "volume x: 300 requests/s and 0 bytes/s"));
	script_volume_done(&s, "y", 0, NULL);
	script_expect_nothing(&s);
	assert_true(s.wake_at > s.now + SEC(1));
	script_finish(&s);
}

/* One action for each volume at a time; a change meanwhile is told afterwards. */
static void test_change_while_it_is_told(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_promise(&s, 'a', 300);
	script_expect(&s, "volume a x 300/0");
	io_set(&s, 'a', (struct ebb_sla_io){ .reserve_iops = 1, .reserve_bytes = 2, .max_iops = 3,
					     .max_bytes = 4, .weight = 9, .penalty = 7 });
	script_expect_nothing(&s);
	script_volume_done(&s, "x", 0, NULL);
	script_expect(&s, "volume a x 1/2 max 3/4 weight 9 penalty 7");
	script_volume_done(&s, "x", 0, NULL);
	script_expect_nothing(&s);
	script_finish(&s);
}

/* What no SLA speaks of stays as somebody else has set it. */
static void test_volumes_without_a_promise_are_left_alone(void **state)
{
	struct ebb_fact fact = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' } };
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", "y");
	script_expect_nothing(&s);
	io_assert_view(&s, 'a', 0, EBB_IO_NONE, "");
	/* One volume by its name. */
	fact.u.sla_set = script_vm(&s, 'a')->sla;
	ebb_sla_volume_put(ebb_sla_volume_get(&fact.u.sla_set, "y"),
			   ebb_sla_key_find("io.weight"), 7);
	assert_int_equal(ebb_state_report(s.state, s.now, &fact), 0);
	script_expect(&s, "volume a y 0/0 weight 7");
	io_assert_view(&s, 'a', 0, EBB_IO_NONE, "");
	script_finish(&s);
}

static void test_refused(void **state)
{
	struct script s;
	int num = 0;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", "y");
	io_promise(&s, 'a', 300);
	script_expect(&s, "volume a x 300/0", "volume a y 300/0");
	script_volume_done(&s, "y", 0, NULL);
	script_volume_done(&s, "x", -ENOENT, "there is no volume \"x\"");
	script_expect_nothing(&s);
	io_assert_view(&s, 'a', 0, EBB_IO_REFUSED, "there is no volume \"x\"");
	io_assert_view(&s, 'a', 1, EBB_IO_SET, "");
	io_assert_explained(&s, 'a', "volume x: its promise is not in force (refused): there");
	/* Tried again, with growing pauses, and recorded once. */
	assert_int_equal(s.wake_at, s.now + s.cfg.retry_usec[0]);
	s.now = s.wake_at;
	script_expect(&s, "volume a x 300/0");
	script_volume_done(&s, "x", -ENOENT, "there is no volume \"x\"");
	script_expect_nothing(&s);
	assert_int_equal(s.wake_at, s.now + 2 * s.cfg.retry_usec[0]);
	while (script_find_record(&s, 'a', EBB_EVENT_ERROR))
		num++;
	assert_int_equal(num, 1);
	/* An error without words. */
	s.now = s.wake_at;
	script_expect(&s, "volume a x 300/0");
	script_volume_done(&s, "x", -EACCES, NULL);
	io_assert_view(&s, 'a', 0, EBB_IO_REFUSED, strerror(EACCES));
	/* Another promise is tried at once. */
	io_promise(&s, 'a', 200);
	script_expect(&s, "volume a y 200/0", "volume a x 200/0");
	script_finish(&s);
}

/* A promise that falls makes room for one that rises: it goes first. */
static void test_lower_before_higher(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_boot(&s, 'b', 2, "y", NULL);
	io_promise(&s, 'a', 100);
	io_promise(&s, 'b', 300);
	script_settle(&s);
	io_promise(&s, 'a', 300);
	io_promise(&s, 'b', 100);
	script_expect(&s, "volume b y 100/0", "volume a x 300/0");
	script_volume_done(&s, "x", -EDQUOT, "overbooked");
	script_expect_nothing(&s);
	script_volume_done(&s, "y", 0, NULL);
	script_expect(&s, "volume a x 300/0");
	script_volume_done(&s, "x", 0, NULL);
	script_expect_nothing(&s);
	script_finish(&s);
}

static void test_one_volume_two_vms(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_boot(&s, 'b', 2, "x", NULL);
	/* The one that came first claims it second. */
	io_promise(&s, 'b', 200);
	script_settle(&s);
	io_promise(&s, 'a', 300);
	script_expect_nothing(&s);
	io_assert_view(&s, 'a', 0, EBB_IO_TAKEN, "promised to b");
	io_assert_view(&s, 'b', 0, EBB_IO_SET, "");
	assert_true(script_find_record(&s, 'a', EBB_EVENT_ERROR));
	assert_non_null(strstr(s.record.text, "volume x is promised to b already"));
	io_promise(&s, 'a', 250);
	script_expect_nothing(&s);
	assert_false(script_find_record(&s, 'a', EBB_EVENT_ERROR));
	/* It gets the volume when the other one stops. */
	assert_int_equal(script_simple(&s, 'b', EBB_FACT_VM_STOPPED), 0);
	script_expect(&s, "volume a x 250/0");
	assert_int_equal(script_simple(&s, 'b', EBB_FACT_VM_REMOVED), 0);
	script_volume_done(&s, "x", 0, NULL);
	io_assert_view(&s, 'a', 0, EBB_IO_SET, "");
	script_finish(&s);
}

static void test_taken_back(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_promise(&s, 'a', 300);
	script_settle(&s);
	/* The SLA says nothing any more. */
	io_promise(&s, 'a', 0);
	script_expect(&s, "volume - x 0/0");
	/* And again something, while it is taken back. */
	io_promise(&s, 'a', 100);
	script_expect_nothing(&s);
	script_volume_done(&s, "x", 0, NULL);
	script_expect(&s, "volume a x 100/0");
	script_volume_done(&s, "x", 0, NULL);
	/* The VM goes while the server is away, for good. */
	script_volumes_lost(&s, "gone");
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_REMOVED), 0);
	script_expect_nothing(&s);
	script_volumes_up(&s);
	script_expect(&s, "volume - x 0/0");
	script_volume_done(&s, "x", 0, NULL);
	script_expect_nothing(&s);
	assert_true(script_find_record(&s, '\0', EBB_EVENT_VOLUME));
	/* Nothing is left of it. */
	script_volumes_lost(&s, "gone");
	script_volumes_up(&s);
	script_expect_nothing(&s);
	script_finish(&s);
}

/* What was never set is not taken back; nor what the server does not have any more. */
static void test_nothing_to_take_back(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_promise(&s, 'a', 300);
	script_expect(&s, "volume a x 300/0");
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
	script_volume_done(&s, "x", -EDQUOT, "overbooked");
	script_expect_nothing(&s);
	assert_int_equal(script_running(&s, 'a', 2), 0);
	script_settle(&s);
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
	script_expect(&s, "volume - x 0/0");
	script_volume_done(&s, "x", -ENOENT, "gone");
	script_expect_nothing(&s);
	assert_true(s.wake_at > s.now + SEC(60));
	script_finish(&s);
}

/* Nobody knows whether the server got it: it is taken back all the same. */
static void test_taken_back_if_in_doubt(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_promise(&s, 'a', 300);
	script_expect(&s, "volume a x 300/0");
	script_volumes_lost(&s, "gone");
	script_volume_done(&s, "x", -ENOTCONN, "gone");
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
	script_expect_nothing(&s);
	script_volumes_up(&s);
	script_expect(&s, "volume - x 0/0");
	script_finish(&s);
}

/* The server's storage daemon hung when it was told, and may do it yet. */
static void test_taken_back_after_no_answer(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_promise(&s, 'a', 300);
	script_expect(&s, "volume a x 300/0");
	script_volume_done(&s, "x", -ETIMEDOUT, "the storage daemon does not answer");
	io_assert_view(&s, 'a', 0, EBB_IO_REFUSED, "does not answer");
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
	script_expect(&s, "volume - x 0/0");
	script_finish(&s);
	/* What is wanted again is told again: the server may have the other one by now. */
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_promise(&s, 'a', 300);
	script_expect(&s, "volume a x 300/0");
	script_volume_done(&s, "x", 0, NULL);
	io_promise(&s, 'a', 400);
	script_expect(&s, "volume a x 400/0");
	script_volume_done(&s, "x", -ETIMEDOUT, "the storage daemon does not answer");
	io_promise(&s, 'a', 300);
	script_expect(&s, "volume a x 300/0");
	script_finish(&s);
}

/* An agent set it, and the VM went away while no agent ran. */
static void test_promise_of_an_earlier_agent(void **state)
{
	struct ebb_sla sla = script_sla(IO_NODES);
	struct script s;

	(void)state;
	script_init_loading(&s, 1, 4, 1, false);
	script_volumes_up_with(&s, "x");
	/* Not before all VMs are known. */
	script_expect_nothing(&s);
	script_loaded(&s);
	script_expect(&s, "volume - x 0/0");
	script_volume_done(&s, "x", 0, NULL);
	assert_true(script_find_record(&s, '\0', EBB_EVENT_VOLUME));
	assert_non_null(strstr(s.record.text, "volume x: its promise is taken back"));
	/* The server has been told, and says so. */
	script_volumes_lost(&s, "gone");
	script_volumes_up(&s);
	script_expect_nothing(&s);
	script_finish(&s);
	/* A VM has it now. */
	script_init_loading(&s, 1, 4, 1, false);
	script_volumes_up_with(&s, "x");
	sla.io.reserve_iops = 5;
	s.volumes.num = 1;
	ebb_volume_name_copy(s.volumes.names[0], "x");
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@0"), 0);
	script_loaded(&s);
	script_expect(&s, "volume a x 5/0");
	script_volume_done(&s, "x", 0, NULL);
	script_expect_nothing(&s);
	script_finish(&s);
}

/* Disks come and go while a VM runs. */
static void test_disk_is_detached(void **state)
{
	struct ebb_sla sla;
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_promise(&s, 'a', 300);
	script_settle(&s);
	sla = script_vm(&s, 'a')->sla;
	ebb_volume_name_copy(s.volumes.names[0], "y");
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	script_expect(&s, "volume - x 0/0", "volume a y 300/0");
	s.volumes.num = 0;
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	script_volume_done(&s, "y", 0, NULL);
	script_expect(&s, "volume - y 0/0");
	io_assert_explained(&s, 'a', "none of its disks is a volume of the volume server");
	script_finish(&s);
}

/* Before all VMs are known nothing is told: a promise could go to the wrong one. */
static void test_not_before_loaded(void **state)
{
	struct ebb_sla sla = script_sla(IO_NODES);
	struct script s;

	(void)state;
	script_init_loading(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	sla.io.reserve_iops = 5;
	s.volumes.num = 1;
	ebb_volume_name_copy(s.volumes.names[0], "x");
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@0"), 0);
	script_expect_nothing(&s);
	script_loaded(&s);
	script_expect(&s, "volume a x 5/0");
	script_finish(&s);
}

static void test_little_space_for_actions(void **state)
{
	struct ebb_action item;
	struct ebb_actions actions = { .items = &item, .capacity = 1 };
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", "y");
	io_promise(&s, 'a', 300);
	ebb_state_next(s.state, s.now, &actions);
	assert_int_equal(actions.count, 1);
	assert_int_equal(actions.wake_at, s.now);
	assert_string_equal(item.u.volume.name, "x");
	ebb_state_next(s.state, s.now, &actions);
	assert_int_equal(actions.count, 1);
	assert_string_equal(item.u.volume.name, "y");
	ebb_state_next(s.state, s.now, &actions);
	assert_int_equal(actions.count, 0);
	script_finish(&s);
}

/* ---- meters ---------------------------------------------------------------- */

static void next_meter(struct script *s, const char *taker, struct ebb_volume_counters count)
{
	s->now += SEC(1);
	script_volume_meter(s, "x", taker, count);
}

static void test_metered(void **state)
{
	struct ebb_io_view view;
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_boot(&s, 'b', 2, "y", NULL);
	io_promise(&s, 'a', 300);
	io_promise(&s, 'b', 10);
	script_settle(&s);
	/* What the server has counted before is not this promise's. */
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 70, .charged = 5000,
							 .violated = 9 });
	assert_false(script_find_record(&s, 'a', EBB_EVENT_LEDGER));
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 71, .charged = 5300,
							 .early = 40, .violated = 9 });
	assert_true(script_find_record(&s, 'a', EBB_EVENT_LEDGER));
	assert_int_equal(s.record.ledger.promise, EBB_PROMISE_IO);
	assert_string_equal(s.record.ledger.volume, "x");
	assert_int_equal(s.record.ledger.rate, 300);
	assert_int_equal(s.record.total_usec, SEC(1));
	assert_int_equal(s.record.order, 1);
	assert_int_equal(s.record.code, EBB_CAUSE_NONE);
	/* No interval has ended since: it counts with the next one. */
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 71, .charged = 5310,
							 .early = 40, .violated = 9 });
	assert_false(script_find_record(&s, 'a', EBB_EVENT_LEDGER));
	next_meter(&s, "y", (struct ebb_volume_counters){
		.intervals = 73, .violated_intervals = 1, .charged = 5500, .early = 40,
		.missed = 100, .violated = 109, .others_early = 20, .others_promised = 50,
		.slow = 30, .overdue = 4 });
	assert_true(script_find_record(&s, 'a', EBB_EVENT_LEDGER));
	assert_int_equal(s.record.code, EBB_CAUSE_OVERBOOKED);
	assert_string_equal(s.record.text, "of 100 units beyond others' promises 20, within them "
			    "50, to nobody 30, most to volume y of b");
	assert_int_equal(s.record.ledger.sum.metered_usec, SEC(3));
	assert_int_equal(s.record.ledger.sum.num_intervals, 3);
	assert_int_equal(s.record.ledger.sum.num_violations, 1);
	assert_int_equal(s.record.ledger.sum.promised, 600);
	assert_int_equal(s.record.ledger.sum.got, 540);
	assert_int_equal(s.record.ledger.sum.violated, 100);
	assert_int_equal(s.record.ledger.sum.wanted, 640);
	assert_int_equal(s.record.ledger.sum.unclear, 0);
	ebb_state_volume(s.state, script_vm(&s, 'a'), 0, &view);
	assert_int_equal(view.sum.violated, 100);
	assert_int_equal(view.last.count.overdue, 4);
	script_finish(&s);
}

static void test_metered_causes(void **state)
{
	static const struct {
		struct ebb_volume_counters count;
		enum ebb_cause cause;
	} all[] = {
		{ { .others_early = 5, .others_promised = 3, .slow = 2 }, EBB_CAUSE_OTHERS },
		{ { .others_early = 2, .others_promised = 5, .slow = 3 }, EBB_CAUSE_OVERBOOKED },
		{ { .others_early = 2, .others_promised = 3, .slow = 5 }, EBB_CAUSE_HOST },
	};
	struct ebb_volume_counters sum = { .intervals = 1 };
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_set(&s, 'a', (struct ebb_sla_io){ .reserve_bytes = 655360, .weight = 1, .penalty = 1 });
	script_settle(&s);
	next_meter(&s, "", sum);
	for (size_t i = 0; i < 3; i++) {
		sum.intervals++;
		sum.violated += 10;
		sum.others_early += all[i].count.others_early;
		sum.others_promised += all[i].count.others_promised;
		sum.slow += all[i].count.slow;
		next_meter(&s, "", sum);
		assert_true(script_find_record(&s, 'a', EBB_EVENT_LEDGER));
		assert_string_equal(ebb_cause_name(s.record.code), ebb_cause_name(all[i].cause));
		/* Units of 64 KiB. */
		assert_int_equal(s.record.ledger.rate, 10);
	}
	script_finish(&s);
}

/* Counters that begin anew, with a server that was lost or unnoticed, count nothing in between. */
static void test_metered_after_a_restart(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_promise(&s, 'a', 300);
	script_settle(&s);
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 5, .charged = 50 });
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 6, .charged = 60 });
	assert_true(script_find_record(&s, 'a', EBB_EVENT_LEDGER));
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 7, .charged = 3 });
	assert_false(script_find_record(&s, 'a', EBB_EVENT_LEDGER));
	script_volumes_lost(&s, "gone");
	script_volumes_up(&s);
	/* The new server has not been told yet. */
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 8, .charged = 5 });
	script_settle(&s);
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 20, .charged = 100 });
	assert_false(script_find_record(&s, 'a', EBB_EVENT_LEDGER));
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 21, .charged = 107 });
	assert_true(script_find_record(&s, 'a', EBB_EVENT_LEDGER));
	assert_int_equal(s.record.ledger.sum.num_intervals, 2);
	assert_int_equal(s.record.ledger.sum.got, 17);
	/* Without a reservation there is nothing to judge. */
	io_set(&s, 'a', (struct ebb_sla_io){ .weight = 9, .penalty = 1 });
	script_settle(&s);
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 22, .charged = 108 });
	assert_false(script_find_record(&s, 'a', EBB_EVENT_LEDGER));
	/* Another owner begins at 0. */
	io_boot(&s, 'b', 2, "x", NULL);
	io_promise(&s, 'b', 50);
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
	script_settle(&s);
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 30, .charged = 200 });
	next_meter(&s, "", (struct ebb_volume_counters){ .intervals = 31, .charged = 203 });
	assert_true(script_find_record(&s, 'b', EBB_EVENT_LEDGER));
	assert_int_equal(s.record.ledger.sum.got, 3);
	assert_int_equal(s.record.total_usec, SEC(1));
	script_finish(&s);
}

static void test_server_is_told_of(void **state)
{
	const struct ebb_fact fact = { .type = EBB_FACT_VOLUMES_SERVER,
				       .u.volumes_server = { .capacity_iops = 500 } };
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	assert_null(ebb_state_volume_server(s.state));
	script_volumes_up(&s);
	assert_int_equal(ebb_state_report(s.state, s.now, &fact), 0);
	assert_int_equal(ebb_state_volume_server(s.state)->capacity_iops, 500);
	script_volumes_lost(&s, "gone");
	assert_null(ebb_state_volume_server(s.state));
	assert_string_equal(ebb_state_volumes_lost(s.state), "gone");
	script_finish(&s);
}

static void test_table(void **state)
{
	static const char *const names[] = { "m", "b", "z", "a", "n" };
	struct io_room *s = calloc(1, sizeof(*s));

	(void)state;
	assert_non_null(s);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(io_table_get(s, names[i])->name, names[i]);
	for (size_t i = 0; i < 5; i++)
		assert_ptr_equal(io_table_get(s, names[i]), io_table_find(s, names[i]));
	assert_int_equal(s->num, 5);
	for (uint32_t i = 1; i < s->num; i++)
		assert_true(strcmp(s->volumes[i - 1].name, s->volumes[i].name) < 0);
	io_table_remove(s, io_table_get(s, "b"));
	assert_null(io_table_find(s, "b"));
	assert_non_null(io_table_find(s, "m"));
	assert_int_equal(s->num, 4);
	s->num = IO_VOLUMES;
	for (uint32_t i = 4; i < IO_VOLUMES; i++)
		strcpy(s->volumes[i].name, "zz");
	assert_null(io_table_get(s, "b"));
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told_when_the_server_is_there),
		cmocka_unit_test(test_change_while_it_is_told),
		cmocka_unit_test(test_volumes_without_a_promise_are_left_alone),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lower_before_higher),
		cmocka_unit_test(test_one_volume_two_vms),
		cmocka_unit_test(test_taken_back),
		cmocka_unit_test(test_nothing_to_take_back),
		cmocka_unit_test(test_taken_back_if_in_doubt),
		cmocka_unit_test(test_taken_back_after_no_answer),
		cmocka_unit_test(test_promise_of_an_earlier_agent),
		cmocka_unit_test(test_disk_is_detached),
		cmocka_unit_test(test_not_before_loaded),
		cmocka_unit_test(test_little_space_for_actions),
		cmocka_unit_test(test_metered),
		cmocka_unit_test(test_metered_causes),
		cmocka_unit_test(test_metered_after_a_restart),
		cmocka_unit_test(test_server_is_told_of),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
