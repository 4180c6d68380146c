// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * After a loss of power all is there that was acknowledged, each transaction whole or not at all
 * (K3): keys, hashes, counters, the number of keys, the secret of the hash (K4). The disk is one in
 * memory.
 *
 * Transaction number n sets every key that it touches to n, and the key "n" as well. So what is
 * there tells how far it came, and everything else follows from that.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/io/durable_rig.h"
#include "kv_audit.h"
#include "kv_rig.h"
#include "oltp-engine/server/kv/private.h"

#define SLOTS		13u	/* keys that are set in turn, fields of the hash as well */
#define ROUNDS		(24u / DURABLE_FEWER + 1)

static struct fault_disk *disk;

static void open_db(void)
{
	rig = (struct kv_rig){
		.engine_config = {
			.durability = OLTP_DURABILITY_COMMIT,
			.log_dir = "/disk",
			.group_interval_us = 50,
			.log_segment_mib = 1,
			.log_io = &fault_disk_ops,
			.log_io_ctx = disk,
		},
		.config.rows = 1024,
	};
	kv_rig_open_with(&rig);
}

static int set_up(void **state)
{
	(void)state;
	disk = fault_disk_create(4711);
	assert_non_null(disk);
	open_db();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	kv_rig_close(&rig);
	fault_disk_destroy(disk);
	return 0;
}

/* False: the log has failed, and the command with it. */
static bool is_through(const char *line)
{
	kv_rig_do(&rig, 0, line);
	return rig.out.bytes[0] != '-';
}

/* One whole transaction; *ret_acknowledged: it is on disk. False: nothing works any more. */
static bool set_all_to(uint64_t n, bool *ret_acknowledged)
{
	char line[800];
	bool good = is_through("MULTI");

	*ret_acknowledged = false;
	snprintf(line, sizeof(line), "SET n %llu", (unsigned long long)n);
	good = good && is_through(line);
	/* Now short, now long; every fifth time the key goes instead. */
	if (n % 5 == 4)
		snprintf(line, sizeof(line), "DEL key%llu", (unsigned long long)n % SLOTS);
	else
		snprintf(line, sizeof(line), "SET key%llu %0*llu", (unsigned long long)n % SLOTS,
			 n % 3 ? 10 : 600, (unsigned long long)n);
	good = good && is_through(line);
	snprintf(line, sizeof(line), "HSET hash field%llu %llu", (unsigned long long)n % SLOTS,
		 (unsigned long long)n);
	good = good && is_through(line);
	good = good && is_through("INCRBY sum 2");
	good = good && is_through("EXEC");
	if (good)
		*ret_acknowledged = oltp_durable_wait(rig.engine, rig.epoch) == 0;
	return good && *ret_acknowledged;
}

static uint64_t number(const char *line)
{
	kv_rig_do(&rig, 0, line);
	*resp_out_reserve(&rig.out, 1) = '\0';
	if (!strcmp(rig.out.bytes, "$-1\r\n"))
		return 0;
	assert_int_equal(rig.out.bytes[0], '$');
	return strtoull(strstr(rig.out.bytes, "\r\n") + 2, NULL, 10);
}

/* Returns how far it came. */
static uint64_t check(void)
{
	uint64_t n = number("GET n");
	int64_t n_keys = n ? 3 : 0;	/* n, hash, sum */
	char line[64];

	assert_true(number("GET sum") == 2 * n);
	for (uint64_t slot = 0; slot < SLOTS; slot++) {
		uint64_t last = 0;

		for (uint64_t i = n; i > 0 && !last; i--)
			last = i % SLOTS == slot ? i : 0;
		snprintf(line, sizeof(line), "GET key%llu", (unsigned long long)slot);
		assert_true(number(line) == (last % 5 == 4 ? 0 : last));
		n_keys += last && last % 5 != 4;
		snprintf(line, sizeof(line), "HGET hash field%llu", (unsigned long long)slot);
		assert_true(number(line) == last);
	}
	assert_int_equal(kv_rig_integer(&rig, "DBSIZE"), n_keys);
	assert_int_equal(kv_rig_integer(&rig, "HLEN hash"), n < SLOTS ? n : SLOTS);
	kv_audit(rig.kv);
	return n;
}

static void test_power_cuts(void **state)
{
	(void)state;
	uint64_t random = 88172645463325252ull, found = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t acknowledged = found, n = found;
		bool is_on_disk;

		fault_disk_lose_power_at(disk, 3 + durable_draw(&random, 120));
		while (set_all_to(++n, &is_on_disk)) {
			acknowledged = n;
			if (n % 16 == 0)
				oltp_checkpoint(rig.engine);
			assert_true(n < found + 100000);
		}
		kv_rig_close(&rig);
		fault_disk_restart(disk, true);
		fault_disk_calm(disk);
		open_db();
		found = check();
		assert_true(found >= acknowledged && found <= n);
	}
	assert_true(found > ROUNDS);
}

/* A hash whose fields are still to be removed when power is lost; and one of after that. */
static void test_dead_hash_is_forgotten_after_a_restart(void **state)
{
	(void)state;
	uint32_t n[4];
	char line[64];

	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(line, sizeof(line), "HSET big field%u %u", i, i);
		kv_rig_do(&rig, 0, line);
	}
	expect_reply(&rig, "DEL big", ":1\r\n");
	assert_int_equal(oltp_durable_wait(rig.engine, rig.epoch), 0);
	kv_rig_close(&rig);
	fault_disk_restart(disk, true);
	open_db();
	assert_true(rig.kv->meta.n_dead > 0);
	expect_reply(&rig, "HSET big a 1", ":1\r\n");
	for (uint32_t i = 0; i < 200; i++)
		expect_reply(&rig, "HLEN big", ":1\r\n");
	kv_rig_count_rows(n);
	assert_int_equal(n[ROW_FIELD], 1);
	expect_reply(&rig, "HGETALL big", "*2\r\n$1\r\na\r\n$1\r\n1\r\n");
}

/* Ids of hashes, and stamps that WATCH compares, are never those of a life before. */
static void test_ids_and_stamps_go_on(void **state)
{
	(void)state;
	const struct resp_arg key = { "k", 1 }, hash = { "h", 1 };
	uint64_t stamp = 0, id = 0;

	for (uint32_t round = 0; round < 4; round++) {
		struct found found;

		kv_rig_do(&rig, 0, "DEL k h");
		kv_rig_do(&rig, 0, "SET k v");
		kv_rig_do(&rig, 0, "HSET h f v");
		assert_int_equal(oltp_txn_begin(rig.workers[0]), OLTP_OK);
		assert_int_equal(keyspace_find(&rig.kv->ks, rig.workers[0], OWNER_KEYS, &key, false,
					       &found), OLTP_OK);
		assert_true(found.row->stamp > stamp);
		stamp = found.row->stamp + 1000000;
		assert_int_equal(keyspace_find(&rig.kv->ks, rig.workers[0], OWNER_KEYS, &hash,
					       false, &found), OLTP_OK);
		assert_true(keyspace_hash_head(found.row).id > id);
		id = keyspace_hash_head(found.row).id;
		assert_int_equal(oltp_txn_commit(rig.workers[0]), OLTP_OK);
		assert_int_equal(oltp_durable_wait(rig.engine,
						   oltp_worker_epoch(rig.workers[0])), 0);
		kv_rig_close(&rig);
		fault_disk_restart(disk, true);
		open_db();
	}
}

static void test_other_database_is_refused(void **state)
{
	(void)state;
	struct kv *kv;

	expect_reply(&rig, "SET a 1", "+OK\r\n");
	kv_rig_close(&rig);
	fault_disk_restart(disk, false);
	rig.config.hash_bits = 32;
	assert_int_equal(oltp_engine_open(&rig.engine_config, &rig.engine), 0);
	assert_int_equal(kv_open(rig.engine, &rig.config, &kv), 0);
	/* Before recovery there is no telling. */
	assert_int_equal(kv_start(kv), -EUCLEAN);
	assert_int_equal(oltp_recover(rig.engine, NULL, NULL), 0);
	assert_int_equal(kv_start(kv), -EUCLEAN);
	kv_close(kv);
	oltp_engine_close(rig.engine);
	open_db();
	expect_reply(&rig, "GET a", "$1\r\n1\r\n");
	rig.config.hash_bits = 65;
	assert_int_equal(kv_open(rig.engine, &rig.config, &kv), -EINVAL);
}

/* Nothing can be written any more: nothing is answered that is not on disk. */
static void test_log_has_failed(void **state)
{
	(void)state;
	expect_reply(&rig, "SET a 1", "+OK\r\n");
	assert_int_equal(oltp_durable_wait(rig.engine, rig.epoch), 0);
	fault_disk_lose_power_at(disk, 0);
	kv_rig_do(&rig, 0, "SET a 2");
	assert_true(rig.epoch > 0);
	assert_int_not_equal(oltp_durable_wait(rig.engine, rig.epoch), 0);
	expect_reply(&rig, "SET a 3",
		     "-IOERR the disk has failed, for the log or for this key\r\n");
	expect_reply(&rig, "PING", "+PONG\r\n");
	fault_disk_restart(disk, true);
	fault_disk_calm(disk);
}

int main(void)
{
#define TEST(name)	cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_power_cuts),
		TEST(test_dead_hash_is_forgotten_after_a_restart),
		TEST(test_ids_and_stamps_go_on),
		TEST(test_other_database_is_refused),
		TEST(test_log_has_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
