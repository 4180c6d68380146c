// SPDX-License-Identifier: GPL-2.0-or-later
/* Keys on disk, and no room for more: what is answered is never wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kv_audit.h"
#include "kv_rig.h"
#include "oltp-engine/src/base/clock.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define KEYS		9000u	/* of 1000 bytes and more: about 20 MiB with all that goes along */
#define LIMIT_BYTES	(12 * MIB)

static int tear_down(void **state)
{
	(void)state;
	kv_rig_close(&rig);
	return 0;
}

static int set_up_with_disk(void **state)
{
	(void)state;
	rig = (struct kv_rig){ .config.rows = 16384 };
	/* Some blocks for each of the ten tables, and not enough for all keys. */
	kv_rig_limit(&rig, 28 * MIB, true);
	kv_rig_open_with(&rig);
	return 0;
}

static int set_up_without(void **state)
{
	(void)state;
	rig = (struct kv_rig){ .config.rows = 16384 };
	kv_rig_limit(&rig, 28 * MIB, false);
	kv_rig_open_with(&rig);
	return 0;
}

static uint32_t n_colds;

/* As kv_rig_do, and counts the attempts that met a key on disk. */
static void run(const char *line)
{
	enum oltp_rc rc;
	bool retry = false;

	do {
		rc = kv_rig_try_line(&rig, 0, line, retry);
		retry = true;
		if (rc == OLTP_COLD) {
			n_colds++;
			assert_int_equal(oltp_cold_wait(rig.workers[0]), OLTP_OK);
		}
	} while (rc || rig.after == KV_AGAIN);
	*resp_out_reserve(&rig.out, 1) = '\0';
}

static uint32_t bytes_of(uint32_t i)
{
	return 1000 + i % 700;
}

static void test_keys_on_disk(void **state)
{
	(void)state;
	struct oltp_memory_stats stats;
	char line[64], reply[64];
	static bool seen[KEYS];

	for (uint32_t i = 0; i < KEYS; i++) {
		snprintf(line, sizeof(line), "SET k%u $%u", i, bytes_of(i));
		run(line);
		assert_string_equal(rig.out.bytes, "+OK\r\n");
		snprintf(line, sizeof(line), "HSET h f%u $%u", i % 500, 300 + i % 500);
		run(line);
	}
	/* Less memory than before, so that most is on disk. */
	oltp_blocks_native_set_limit(rig.blocks, LIMIT_BYTES, clock_now_ns() + 60000000000ull);
	while (oltp_blocks_native_held(rig.blocks) > LIMIT_BYTES)
		rig_sleep_ms(1);
	oltp_memory_stats_read(rig.engine, &stats);
	assert_true(stats.cold_records > KEYS / 4);
	n_colds = 0;
	for (uint32_t i = 0; i < KEYS; i++) {
		snprintf(line, sizeof(line), "GET k%u", i);
		run(line);
		snprintf(reply, sizeof(reply), "$%u\r\n", bytes_of(i));
		assert_memory_equal(rig.out.bytes, reply, strlen(reply));
		assert_int_equal(rig.out.n, strlen(reply) + bytes_of(i) + 2);
	}
	assert_true(n_colds > 0);
	/* In one transaction, from disk and not. */
	run("MULTI");
	for (uint32_t i = 0; i < 64; i++) {
		snprintf(line, sizeof(line), "APPEND k%u x", i * 137 % KEYS);
		run(line);
	}
	run("HLEN h");
	run("EXEC");
	for (uint32_t i = 0, at = 0; i < 64; i++) {
		uint32_t key = i * 137 % KEYS;

		at += (uint32_t)(i ? 0 : strlen("*65\r\n"));
		snprintf(reply, sizeof(reply), ":%u\r\n", bytes_of(key) + 1);
		assert_memory_equal(rig.out.bytes + at, reply, strlen(reply));
		at += (uint32_t)strlen(reply);
	}
	run("HGETALL h");
	assert_memory_equal(rig.out.bytes, "*1000\r\n", 7);
	assert_int_equal(kv_rig_scan_all(&rig, "SCAN", "COUNT 100", seen, KEYS), KEYS);
	for (uint32_t i = 0; i < KEYS; i += 2) {
		snprintf(line, sizeof(line), "DEL k%u", i);
		run(line);
		assert_string_equal(rig.out.bytes, ":1\r\n");
	}
	run("DBSIZE");
	snprintf(reply, sizeof(reply), ":%u\r\n", KEYS / 2 + 1);
	assert_string_equal(rig.out.bytes, reply);
	kv_audit(rig.kv);
	run("FLUSHALL");
	run("DBSIZE");
	assert_string_equal(rig.out.bytes, ":0\r\n");
}

static void test_no_room(void **state)
{
	(void)state;
	uint32_t n = 0;
	char line[64], reply[32];

	do {
		snprintf(line, sizeof(line), "SET k%u $%u", n, bytes_of(n));
		run(line);
		n++;
	} while (!strcmp(rig.out.bytes, "+OK\r\n"));
	assert_memory_equal(rig.out.bytes, "-OOM command not allowed", 24);
	n--;
	assert_true(n > 1000);
	/* That key is not there; a transaction for which there is no room has no effect at all. */
	run(line);
	snprintf(line, sizeof(line), "EXISTS k%u", n);
	run(line);
	assert_string_equal(rig.out.bytes, ":0\r\n");
	run("MULTI");
	run("DEL k0");
	run("SET k1 small");
	for (uint32_t i = 0; i < 3000; i++) {
		snprintf(line, sizeof(line), "SET new%u $1000", i);
		run(line);
	}
	run("EXEC");
	assert_memory_equal(rig.out.bytes, "-OOM command not allowed", 24);
	run("EXISTS k0 new0");
	assert_string_equal(rig.out.bytes, ":1\r\n");
	run("STRLEN k1");
	assert_string_equal(rig.out.bytes, ":1001\r\n");
	run("DBSIZE");
	snprintf(reply, sizeof(reply), ":%u\r\n", n);
	assert_string_equal(rig.out.bytes, reply);
	kv_audit(rig.kv);
	/* Removing keys makes room for others. */
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(line, sizeof(line), "DEL k%u", i);
		run(line);
		assert_string_equal(rig.out.bytes, ":1\r\n");
	}
	run("SET again $1010");
	assert_string_equal(rig.out.bytes, "+OK\r\n");
}

/* Blocks of which the test knows the addresses, so that it can say they were taken. */

#define TAKEN_MAX	256u

static struct {
	void *addrs[TAKEN_MAX];
	_Atomic uint32_t n;
} given;

static int give(void *ctx, uint64_t bytes, uint32_t node, void **ret_addr, uint64_t *ret_bytes)
{
	void *addr = aligned_alloc(OLTP_MEM_BLOCK_BYTES, OLTP_MEM_BLOCK_BYTES);

	(void)ctx;
	(void)bytes;
	(void)node;
	if (!addr || given.n == TAKEN_MAX)
		return -ENOMEM;
	memset(addr, 0, OLTP_MEM_BLOCK_BYTES);
	given.addrs[given.n++] = addr;
	*ret_addr = addr;
	*ret_bytes = OLTP_MEM_BLOCK_BYTES;
	return 0;
}

/* They are kept until the end of the test: somebody may still look at what was taken. */
static void take_back(void *ctx, void *addr, uint64_t bytes)
{
	(void)ctx;
	(void)addr;
	(void)bytes;
}

static const struct oltp_block_ops givers = { give, take_back };

static void open_with_givers(struct fault_disk *disk)
{
	given.n = 0;
	rig = (struct kv_rig){
		.engine_config = { .node = 0, .blocks = &givers },
		.config.rows = 1024,
		.limit_bytes = 128 * MIB,
	};
	if (disk) {
		rig.engine_config.durability = OLTP_DURABILITY_COMMIT;
		rig.engine_config.log_dir = "/disk";
		rig.engine_config.log_segment_mib = 1;
		rig.engine_config.log_io = &fault_disk_ops;
		rig.engine_config.log_io_ctx = disk;
	}
	kv_rig_open_with(&rig);
	run("SET a 1");
	run("HSET h f $2000");
}

/* All that has been given so far. */
static void take_all(void)
{
	for (uint32_t i = 0, n = given.n; i < n; i++)
		oltp_memory_revoked(rig.engine, given.addrs[i], OLTP_MEM_BLOCK_BYTES);
}

static void close_givers(void)
{
	kv_rig_close(&rig);
	for (uint32_t i = 0; i < given.n; i++)
		free(given.addrs[i]);
}

/* The host takes all memory by force. Without a log what was there is gone. */
static void test_lost(void **state)
{
	(void)state;
	const char *const lines[] = { "GET a", "SET a 2", "HGET h f", "DEL h", "SET new 1" };

	open_with_givers(NULL);
	take_all();
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		run(lines[i]);
		assert_memory_equal(rig.out.bytes, "-ERR memory with this key was taken away", 40);
	}
	run("PING");
	assert_string_equal(rig.out.bytes, "+PONG\r\n");
	close_givers();
}

/* With one it comes back; until then the error is one that clients wait upon. */
static void test_lost_comes_back(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);

	assert_non_null(disk);
	open_with_givers(disk);
	assert_int_equal(oltp_durable_wait(rig.engine, rig.epoch), 0);
	take_all();
	run("GET a");
	if (strcmp(rig.out.bytes, "$1\r\n1\r\n") != 0)
		assert_memory_equal(rig.out.bytes, "-LOADING memory with this key was taken", 39);
	assert_int_equal(oltp_restore_wait(rig.engine), 0);
	run("INCR a");
	assert_string_equal(rig.out.bytes, ":2\r\n");
	run("HSTRLEN h f");
	assert_string_equal(rig.out.bytes, ":2000\r\n");
	run("DBSIZE");
	assert_string_equal(rig.out.bytes, ":2\r\n");
	run("SET new 1");
	assert_string_equal(rig.out.bytes, "+OK\r\n");
	close_givers();
	fault_disk_destroy(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_keys_on_disk, set_up_with_disk, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room, set_up_without, tear_down),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_lost_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
