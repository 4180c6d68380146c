// SPDX-License-Identifier: GPL-2.0-or-later
/* Procedures that run in the server: those of YCSB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kv_rig.h"

static int set_up(void **state)
{
	(void)state;
	kv_rig_open(&rig, 0);
	kv_rig_do(&rig, 0, "HSET user1 field0 a");
	kv_rig_do(&rig, 0, "HSET user2 field0 b");
	kv_rig_do(&rig, 0, "SET string s");
	return 0;
}

static void test_read_and_update(void **state)
{
	(void)state;
	expect_reply(&rig, "FCALL ycsb_read 1 user1", "*2\r\n$6\r\nfield0\r\n$1\r\na\r\n");
	expect_reply(&rig, "FCALL_RO ycsb_read 1 user1 field1 field0", "*2\r\n$-1\r\n$1\r\na\r\n");
	expect_reply(&rig, "FCALL ycsb_read 1 nobody", "*0\r\n");
	expect_reply(&rig, "FCALL ycsb_update 1 user1 field0 x field1 y", ":1\r\n");
	expect_reply(&rig, "HMGET user1 field0 field1", "*2\r\n$1\r\nx\r\n$1\r\ny\r\n");
	/* A record that is not there is not made. */
	expect_reply(&rig, "FCALL ycsb_update 1 nobody field0 x", ":0\r\n");
	expect_reply(&rig, "EXISTS nobody", ":0\r\n");
	expect_reply(&rig, "FCALL ycsb_update 1 string field0 x", WRONGTYPE);
	expect_reply(&rig, "FCALL ycsb_read 1 string", WRONGTYPE);
}

static void test_txn(void **state)
{
	(void)state;
	expect_reply(&rig, "FCALL ycsb_txn 4 user1 user2 nobody user2 ruur field0 new",
		     "*4\r\n$1\r\na\r\n:1\r\n:0\r\n$3\r\nnew\r\n");
	expect_reply(&rig, "FCALL ycsb_txn 2 string user1 uu field0 z",
		     "*2\r\n" WRONGTYPE ":1\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "FCALL ycsb_txn 1 user1 r field0 x", "+QUEUED\r\n");
	expect_reply(&rig, "EXEC", "*1\r\n*1\r\n$1\r\nz\r\n");
}

static void test_refused(void **state)
{
	(void)state;
	expect_reply(&rig, "FCALL nosuch 0", "-ERR Function not found\r\n");
	expect_reply(&rig, "FCALL ycsb_read x", "-ERR Bad number of keys provided\r\n");
	expect_reply(&rig, "FCALL ycsb_read -1", "-ERR Number of keys can't be negative\r\n");
	expect_reply(&rig, "FCALL ycsb_read 1",
		     "-ERR Number of keys can't be greater than number of args\r\n");
	expect_begins(&rig, "FCALL ycsb_read 0", "-ERR ycsb_read takes one key");
	expect_begins(&rig, "FCALL ycsb_read 2 a b", "-ERR ycsb_read takes one key");
	expect_begins(&rig, "FCALL ycsb_update 1 user1 field0", "-ERR ycsb_update takes");
	expect_begins(&rig, "FCALL ycsb_txn 2 user1 user2 r field0 x", "-ERR ycsb_txn takes keys");
	expect_begins(&rig, "FCALL ycsb_txn 1 user1 x field0 x", "-ERR ycsb_txn knows");
	expect_begins(&rig, "FCALL ycsb_txn 2 user1 $513 uu field0 x", "-ERR key exceeds");
	expect_begins(&rig, "FCALL ycsb_read 1 $513", "-ERR key exceeds");
	expect_begins(&rig, "FCALL ycsb_txn 1 user1 u field0 $16385", "-ERR string exceeds");
	expect_begins(&rig, "FCALL_RO ycsb_update 1 user1 field0 x", "-ERR Can not execute");
	expect_reply(&rig, "HGETALL user1", "*2\r\n$6\r\nfield0\r\n$1\r\na\r\n");
}

int main(void)
{
#define TEST(name)	cmocka_unit_test_setup_teardown(name, set_up, kv_rig_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_read_and_update),
		TEST(test_txn),
		TEST(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
