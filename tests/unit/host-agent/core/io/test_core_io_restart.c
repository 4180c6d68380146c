// SPDX-License-Identifier: GPL-2.0-or-later
/* Promises of I/O when the volume server was lost and is there again: what it is told first. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"
#include "tests/unit/host-agent/core/io/io_script.h"

static void test_all_again_after_a_restart(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_promise(&s, 'a', 300);
	script_settle(&s);
	while (ebb_state_record_pop(s.state, &s.record))
		;
	script_volumes_lost(&s, "it hung up");
	script_expect_nothing(&s);
	io_assert_view(&s, 'a', 0, EBB_IO_WAITING, "it hung up");
	io_assert_explained(&s, 'a', "volume x: its promise is not in force (waiting): it hung up");
	assert_true(script_find_record(&s, '\0', EBB_EVENT_ERROR));
	assert_non_null(strstr(s.record.text, "it hung up; promises to 1 volumes"));
	/* Changed meanwhile; and a VM that comes now. */
	io_promise(&s, 'a', 400);
	io_boot(&s, 'b', 2, "z", NULL);
	io_promise(&s, 'b', 50);
	script_expect_nothing(&s);
	assert_true(script_find_record(&s, 'b', EBB_EVENT_ERROR));
	assert_non_null(strstr(s.record.text, "waits for the volume server: it hung up"));
	script_volumes_up(&s);
	script_expect(&s, "volume a x 300/0", "volume b z 50/0");
	script_volume_done(&s, "x", 0, NULL);
	script_expect(&s, "volume a x 400/0");
	script_volume_done(&s, "x", 0, NULL);
	/* The connection is lost before the other one has ended: nobody knows what holds. */
	script_volumes_lost(&s, "again");
	script_volume_done(&s, "z", -ENOTCONN, "again");
	script_expect_nothing(&s);
	script_volumes_up(&s);
	script_expect(&s, "volume a x 400/0", "volume b z 50/0");
	script_finish(&s);
}

/* One that rises and is refused: the one of before holds, also over a restart of the server. */
static void test_old_one_holds(void **state)
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
	script_expect(&s, "volume a x 300/0");
	script_volume_done(&s, "x", -EDQUOT, "overbooked");
	io_assert_view(&s, 'a', 0, EBB_IO_REFUSED, "overbooked");
	io_assert_explained(&s, 'a', "volume x: its new promise is refused, that of 100 req");
	/* What rises would take from y what y was promised. */
	script_volumes_lost(&s, "gone");
	script_volumes_up(&s);
	script_expect(&s, "volume a x 100/0", "volume b y 300/0");
	script_volume_done(&s, "x", 0, NULL);
	script_volume_done(&s, "y", 0, NULL);
	script_expect(&s, "volume a x 300/0");
	script_volume_done(&s, "x", -EDQUOT, "overbooked");
	io_assert_explained(&s, 'a', "that of 100 req");
	/* It is lost before it has got the old one, and then while it is told the new one. */
	script_volumes_lost(&s, "gone");
	script_volumes_up(&s);
	script_expect(&s, "volume a x 100/0", "volume b y 300/0");
	script_volumes_lost(&s, "gone");
	script_volume_done(&s, "x", -ENOTCONN, "gone");
	script_volume_done(&s, "y", -ENOTCONN, "gone");
	script_volumes_up(&s);
	script_expect(&s, "volume a x 100/0", "volume b y 300/0");
	script_volume_done(&s, "y", 0, NULL);
	script_volume_done(&s, "x", 0, NULL);
	script_expect(&s, "volume a x 300/0");
	script_volumes_lost(&s, "gone");
	script_volume_done(&s, "x", -ENOTCONN, "gone");
	script_volumes_up(&s);
	script_expect(&s, "volume a x 100/0", "volume b y 300/0");
	/* The disk can do less now: that holds no longer, and what is wanted is tried. */
	script_volume_done(&s, "y", 0, NULL);
	script_volume_done(&s, "x", -EDQUOT, "overbooked");
	script_expect_nothing(&s);
	s.now = s.wake_at;
	script_expect(&s, "volume a x 300/0");
	script_finish(&s);
}

/* Only what its own VM was promised, and not more than it wants now. */
static void test_old_one_is_not_wanted(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_volumes_up(&s);
	io_boot(&s, 'a', 1, "x", NULL);
	io_boot(&s, 'b', 2, "x", NULL);
	io_promise(&s, 'a', 100);
	script_settle(&s);
	script_volumes_lost(&s, "gone");
	io_promise(&s, 'a', 50);
	script_volumes_up(&s);
	script_expect(&s, "volume a x 50/0");
	script_volume_done(&s, "x", 0, NULL);
	script_volumes_lost(&s, "gone");
	io_promise(&s, 'b', 70);
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
	script_volumes_up(&s);
	script_expect(&s, "volume b x 70/0");
	script_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_again_after_a_restart),
		cmocka_unit_test(test_old_one_holds),
		cmocka_unit_test(test_old_one_is_not_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
