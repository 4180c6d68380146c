// SPDX-License-Identifier: GPL-2.0-or-later
/* Units go from a node whose records are on disk for the most part. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "move_cold_rig.h"
#include "oltp-engine/server/kv/page.h"

#define UNITS		MOVE_COLD_UNITS
#define KEYS		MOVE_COLD_KEYS
#define FIELDS		MOVE_COLD_FIELDS

/* Moves all at once. Returns how many units waited for the disk at the same time. */
static uint64_t move_all(void)
{
	struct oltp_memory_stats memory;
	struct move_stats stats;
	struct move_rig rig;

	move_cold_open(&rig, NULL);
	move_cold_share(&rig);
	move_cold_finish(&rig);
	stats = move_cold_stats(&rig, 0);
	assert_int_equal(stats.error, 0);
	assert_int_equal(stats.records_sent, KEYS + 1 + FIELDS);
	oltp_memory_stats_read(rig.nodes[0].engine, &memory);
	assert_true(memory.cold_reads > KEYS / 2);
	move_cold_check(&rig, 1);
	/* What it gave it removes, cold or not; some rows stay as GONE. */
	for (uint32_t i = 0; i < 30000 && memory.resident_records + memory.cold_records > KEYS / 4;
	     i++) {
		usleep(1000);
		oltp_memory_stats_read(rig.nodes[0].engine, &memory);
	}
	assert_true(memory.resident_records + memory.cold_records <= KEYS / 4);
	move_rig_close_both(&rig);
	return stats.cold_units_max;
}

/*
 * Units wait for their cold records at the same time: the thread waits for none of them. The disk
 * may be faster than the thread, so it may take a few tries.
 */
static void test_all_at_once(void **state)
{
	uint64_t most = 0;

	(void)state;
	for (uint32_t i = 0; i < 5 && most < 2; i++)
		most = move_all();
	assert_true(most > 1);
}

/* Copied ahead in part: the pages that are left go with their units, which do not wait either. */
static void test_copied(void **state)
{
	const struct precopy_config config = {
		.bytes_per_s = 1u << 30, .bytes_max = 2 * MIB, .timeout_ns = 20000000000ull,
		.pause_ns = 1000000, .rounds_max = 30,
	};
	struct move_stats stats;
	struct move_rig rig;

	(void)state;
	move_cold_open(&rig, NULL);
	move_cold_share(&rig);
	move_copy(rig.nodes[0].move, &config);
	for (uint32_t i = 0; i < 30000 && !move_cold_stats(&rig, 0).copy.has_stopped; i++)
		usleep(1000);
	stats = move_cold_stats(&rig, 0);
	assert_true(stats.copy.has_stopped);
	assert_in_range(stats.records_sent, 1, KEYS / 2);
	move_cold_finish(&rig);
	stats = move_cold_stats(&rig, 0);
	assert_int_equal(stats.error, 0);
	assert_true(stats.cold_units_max > 1);
	assert_true(stats.copy.stale_pages > UNITS * KV_PAGES / 4);
	assert_int_equal(stats.records_sent, KEYS + 1 + FIELDS);
	move_cold_check(&rig, 1);
	move_rig_close_both(&rig);
}

/* Units come when a client of the target asks for them, one after the other. */
static void test_asked(void **state)
{
	struct move_rig rig;

	(void)state;
	move_cold_open(&rig, NULL);
	move_cold_share(&rig);
	for (uint32_t round = 0; round < 2; round++) {
		struct move_client client;
		char line[64];

		move_client_open(&client, &rig.nodes[!round]);
		for (uint32_t k = 0; k < KEYS; k += 37) {
			snprintf(line, sizeof(line), "STRLEN k%u", k);
			assert_int_equal(move_client_integer(&client, line), move_cold_bytes(k));
		}
		move_client_close(&client);
	}
	move_cold_finish(&rig);
	move_cold_check(&rig, 1);
	move_rig_close_both(&rig);
}

struct counted {
	uint32_t n;
	uint64_t bytes;
};

static int count(void *ctx, const uint8_t *record, uint32_t bytes)
{
	struct counted *counted = ctx;

	assert_int_equal(kv_record_bytes(record, bytes), bytes);
	counted->n++;
	counted->bytes += bytes;
	return 0;
}

/* The cold records of a part are read together: a unit is not read one record at a time. */
static void test_together(void **state)
{
	struct kv_cold_reads reads = { 0 };
	struct oltp_memory_stats before, after;
	struct counted counted = { 0 };
	struct kv_unit_reader *reader;
	struct move_rig rig;
	uint32_t n_waits = 0;
	int rc;

	(void)state;
	move_cold_open(&rig, NULL);
	assert_int_equal(oltp_worker_create(rig.nodes[0].engine, &reads.worker), 0);
	oltp_memory_stats_read(rig.nodes[0].engine, &before);
	assert_int_equal(kv_unit_read_begin(rig.nodes[0].kv, &reads, 1, &reader), 0);
	do {
		rc = kv_unit_read_part(reader, count, &counted);
		n_waits += rc == -EAGAIN;
		while (kv_unit_read_waits(reader))
			kv_cold_reads_poll(&reads);
	} while (rc == 1 || rc == -EAGAIN);
	assert_int_equal(rc, 0);
	kv_unit_read_end(reader);
	oltp_memory_stats_read(rig.nodes[0].engine, &after);
	assert_true(after.cold_reads - before.cold_reads > 8 * n_waits);
	assert_true(n_waits > 0);
	oltp_worker_destroy(reads.worker);
	move_rig_close_both(&rig);
}

/* Readers of all units: none waits, and one that ends while the engine reads for it harms none. */
static void test_readers(void **state)
{
	struct kv_unit_reader *readers[UNITS];
	struct counted counted[UNITS] = { 0 }, all = { 0 };
	struct kv_cold_reads reads = { 0 };
	struct move_rig rig;
	uint32_t n_left = UNITS, n_waiting = 0;

	(void)state;
	move_cold_open(&rig, NULL);
	assert_int_equal(oltp_worker_create(rig.nodes[0].engine, &reads.worker), 0);
	for (uint32_t u = 0; u < UNITS; u++) {
		int rc;

		assert_int_equal(kv_unit_read_begin(rig.nodes[0].kv, &reads, u, &readers[u]), 0);
		do
			rc = kv_unit_read_part(readers[u], count, &counted[u]);
		while (rc == 1);
		assert_int_equal(rc, -EAGAIN);
		n_waiting += kv_unit_read_waits(readers[u]);
	}
	/* The engine bounds what it reads at a time: the others were refused, and wait as well. */
	assert_int_equal(n_waiting, UNITS);
	assert_true(reads.reading & (reads.reading - 1));
	kv_unit_read_end(readers[0]);
	assert_int_equal(kv_unit_read_begin(rig.nodes[0].kv, &reads, 0, &readers[0]), 0);
	counted[0] = (struct counted){ 0 };
	while (n_left) {
		kv_cold_reads_poll(&reads);
		for (uint32_t u = 0; u < UNITS; u++) {
			int rc = -EAGAIN;

			if (readers[u] && !kv_unit_read_waits(readers[u]))
				rc = kv_unit_read_part(readers[u], count, &counted[u]);
			assert_true(rc >= 0 || rc == -EAGAIN);
			if (rc)
				continue;
			kv_unit_read_end(readers[u]);
			readers[u] = NULL;
			n_left--;
		}
	}
	for (uint32_t u = 0; u < UNITS; u++) {
		struct counted again = { 0 };

		all.n += counted[u].n;
		assert_int_equal(kv_unit_read(rig.nodes[0].kv, reads.worker, u, count, &again), 0);
		assert_int_equal(counted[u].n, again.n);
		assert_int_equal(counted[u].bytes, again.bytes);
	}
	assert_int_equal(all.n, KEYS + 1 + FIELDS);
	assert_int_equal(reads.used, 0);
	oltp_worker_destroy(reads.worker);
	move_rig_close_both(&rig);
}

static int32_t fail_reads(void *ctx, const struct io_request *request, int32_t result)
{
	_Atomic bool *fails = ctx;

	return !request->is_write && *fails ? -EIO : result;
}

/* What cannot be read is not given; once it can, nothing is missing. */
static void test_read_errors(void **state)
{
	_Atomic bool fails = true;
	const struct io_hook hook = { fail_reads, (void *)&fails };
	struct move_stats stats;
	struct move_rig rig;

	(void)state;
	move_cold_open(&rig, &hook);
	move_cold_share(&rig);
	move_leave(rig.nodes[0].move, true);
	do {
		usleep(1000);
		stats = move_cold_stats(&rig, 0);
	} while (stats.is_connected);
	assert_int_equal(stats.error, -EIO);
	assert_true(move_cold_stats(&rig, 1).owned < UNITS);
	fails = false;
	move_rig_connect(&rig);
	move_cold_finish(&rig);
	move_cold_check(&rig, 1);
	move_rig_close_both(&rig);
}

/* Power is lost, or the connection, while units wait for cold records. */
static void test_power(void **state)
{
	(void)state;
	/* Neither node dies, the source, the target, both. */
	for (uint32_t dead = 0; dead < 4; dead++) {
		struct move_rig rig;

		move_cold_open(&rig, NULL);
		move_cold_share(&rig);
		move_leave(rig.nodes[0].move, true);
		while (!move_cold_stats(&rig, 0).records_sent)
			usleep(100);
		for (uint32_t i = 0; i < 2; i++) {
			if (dead & 1u << i)
				move_rig_close(&rig, i, true);
		}
		for (uint32_t i = 0; i < 2; i++) {
			if (dead & 1u << i)
				move_rig_open(&rig, i);
		}
		move_rig_connect(&rig);
		usleep(50000);
		move_cold_finish(&rig);
		move_cold_check(&rig, 1);
		/* And it is all on the target's disk. */
		move_rig_close(&rig, 0, true);
		move_rig_close(&rig, 1, true);
		move_rig_open(&rig, 1);
		move_cold_check(&rig, 1);
		move_rig_close_both(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_copied),
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_readers),
		cmocka_unit_test(test_read_errors),
		cmocka_unit_test(test_power),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
