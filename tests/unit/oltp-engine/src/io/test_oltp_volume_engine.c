// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Engines that share a volume: one reads what another one wrote that was killed, or that works on;
 * one takes the volume over while the other believes that it is the owner.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "log_faults.h"
#include "oltp.h"
#include "oltp_durable.h"
#include "oltp_volume.h"
#include "volume_rig.h"

#define KEYS		64u
#define BYTES		(64ull << 20)

struct row {
	uint64_t number;	/* of the transaction that wrote it */
	uint8_t filling[4000];
};

struct node {
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *worker;
	struct oltp_recovery recovery;
};

static struct oltp_config config_of(const char *path)
{
	return (struct oltp_config){
		.node = -1,
		.durability = OLTP_DURABILITY_COMMIT,
		.volume = path,
		.group_interval_us = 100,
		.log_segment_mib = 1,
	};
}

static int node_open(struct node *node, const struct oltp_config *config)
{
	int rc = oltp_engine_open(config, &node->engine);

	if (rc)
		return rc;
	assert_int_equal(oltp_table_create(node->engine, sizeof(struct row), KEYS, &node->table),
			 0);
	rc = oltp_recover(node->engine, NULL, &node->recovery);
	if (rc) {
		print_error("%s\n", node->recovery.error);
		oltp_engine_close(node->engine);
		return rc;
	}
	assert_int_equal(oltp_worker_create(node->engine, &node->worker), 0);
	return 0;
}

static void node_close(struct node *node)
{
	oltp_worker_destroy(node->worker);
	oltp_engine_close(node->engine);
}

/* Transaction number writes row number % KEYS. */
static enum oltp_rc put(struct node *node, uint64_t number)
{
	struct row row = { .number = number };
	const struct oltp_span span = { 0, sizeof(row) };
	enum oltp_rc rc = oltp_txn_begin(node->worker);
	void *at;

	if (rc)
		return rc;
	memset(row.filling, (int)number, sizeof(row.filling));
	rc = oltp_txn_update(node->worker, node->table, number % KEYS, &span, 1, &at);
	if (!rc)
		memcpy(at, &row, sizeof(row));
	else if (rc == OLTP_NOT_FOUND)
		rc = oltp_txn_insert(node->worker, node->table, number % KEYS, &row);
	if (!rc)
		rc = oltp_txn_commit(node->worker);
	if (rc)
		oltp_txn_abort(node->worker);
	return rc;
}

static int put_durable(struct node *node, uint64_t number)
{
	if (put(node, number))
		return -EIO;
	return oltp_durable_wait(node->engine, oltp_worker_epoch(node->worker));
}

/* All up to some number of at least `least` are there, and none after. Returns that number. */
static uint64_t check(struct node *node, uint64_t least)
{
	uint64_t last = 0;

	assert_int_equal(oltp_txn_begin(node->worker), OLTP_OK);
	for (int pass = 0; pass < 2; pass++) {
		for (uint64_t key = 0; key < KEYS; key++) {
			const void *record;
			enum oltp_rc rc = oltp_txn_read(node->worker, node->table, key, &record);
			struct row row;

			if (rc == OLTP_NOT_FOUND && (!key || last < key))
				continue;
			assert_int_equal(rc, OLTP_OK);
			memcpy(&row, record, sizeof(row));
			assert_int_equal(row.number % KEYS, key);
			assert_int_equal(row.filling[3999], (uint8_t)row.number);
			if (row.number > last)
				last = row.number;
			/* The newest that there can be for this key. */
			if (pass)
				assert_int_equal(row.number, last - (last - key) % KEYS);
		}
	}
	assert_int_equal(oltp_txn_commit(node->worker), OLTP_OK);
	assert_true(last >= least);
	return last;
}

static void check_read_only(struct node *node, uint64_t last)
{
	struct oltp_table *table;

	assert_int_equal(check(node, last), last);
	assert_int_equal(put(node, last + 1), OLTP_INVALID);
	assert_int_equal(check(node, last), last);
	assert_int_equal(oltp_checkpoint(node->engine), -EROFS);
	assert_int_equal(oltp_restore_wait(node->engine), 0);
	assert_int_equal(oltp_durable_wait(node->engine, oltp_worker_epoch(node->worker)), 0);
	assert_int_equal(oltp_table_create(node->engine, 8, 16, &table), -EROFS);
}

/* ---- on a file of this machine ---- */

static char path[] = "/var/tmp/oltp-volume-XXXXXX";

static int file_make(void **state)
{
	int fd;

	(void)state;
	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || posix_fallocate(fd, 0, BYTES) || oltp_volume_format(path, false))
		return -1;
	close(fd);
	return 0;
}

static int file_drop(void **state)
{
	(void)state;
	return unlink(path);
}

/* Tells the parent of each transaction that is durable, until it is killed. */
static void owner_main(int to)
{
	const struct oltp_config config = config_of(path);
	struct node node;

	if (node_open(&node, &config))
		_exit(1);
	for (uint64_t i = 1;; i++) {
		if (put_durable(&node, i) || write(to, &i, sizeof(i)) != sizeof(i))
			_exit(2);
		if (i % 300 == 0 && oltp_checkpoint(node.engine))
			_exit(3);
	}
}

/* Returns the number of the last transaction that a process was told to be durable. */
static uint64_t run_and_kill(uint64_t n)
{
	uint64_t number = 0, last = 0;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(fds[0]);
		owner_main(fds[1]);
	}
	close(fds[1]);
	while (last < n && read(fds[0], &number, sizeof(number)) == sizeof(number))
		last = number;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	while (read(fds[0], &number, sizeof(number)) == sizeof(number))
		last = number;
	close(fds[0]);
	return last;
}

static void test_reader_of_what_a_dead_owner_wrote(void **state)
{
	(void)state;
	struct oltp_config config = config_of(path);
	struct oltp_volume_info before, behind;
	uint64_t last, found;
	struct node node;

	last = run_and_kill(1000);
	assert_int_equal(oltp_volume_list(path, &before, NULL, NULL), 0);
	assert_int_equal(before.generation, 1);
	config.volume_read_only = true;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(node_open(&node, &config), 0);
		found = check(&node, last);
		assert_true(node.recovery.rows > 0);
		check_read_only(&node, found);
		node_close(&node);
	}
	/* It has changed nothing. */
	assert_int_equal(oltp_volume_list(path, &behind, NULL, NULL), 0);
	assert_memory_equal(behind.uuid, before.uuid, sizeof(before.uuid));
	assert_int_equal(behind.generation, before.generation);
	assert_int_equal(behind.free_bytes, before.free_bytes);
	assert_int_equal(behind.n_files, before.n_files);
	assert_int_equal(behind.n_extents, before.n_extents);
	config.volume_read_only = false;
	assert_int_equal(node_open(&node, &config), 0);
	assert_int_equal(check(&node, last), found);
	assert_int_equal(put_durable(&node, found + 1), 0);
	assert_int_equal(check(&node, found + 1), found + 1);
	node_close(&node);
}

/* The owner works on; a reader sees what was there when it came. */
static void test_reader_beside_the_owner(void **state)
{
	(void)state;
	struct oltp_config config = config_of(path), reading = config_of(path);
	struct node owner, reader;
	uint64_t number = 0;

	reading.volume_read_only = true;
	assert_int_equal(node_open(&owner, &config), 0);
	assert_int_equal(oltp_engine_open(&config, &reader.engine), -EBUSY);
	for (int i = 0; i < 3; i++) {
		uint64_t there;

		for (int k = 0; k < 400; k++)
			assert_int_equal(put_durable(&owner, ++number), 0);
		there = number;
		assert_int_equal(node_open(&reader, &reading), 0);
		assert_int_equal(check(&reader, number), number);
		for (int k = 0; k < 10; k++)
			assert_int_equal(put_durable(&owner, ++number), 0);
		assert_int_equal(oltp_checkpoint(owner.engine), 0);
		check_read_only(&reader, there);
		node_close(&reader);
	}
	node_close(&owner);
}

static void test_wrong_configurations(void **state)
{
	(void)state;
	struct oltp_config config = config_of(path);
	struct oltp_engine *engine;

	config.log_dir = "/tmp";
	assert_int_equal(oltp_engine_open(&config, &engine), -EINVAL);
	config = config_of(path);
	config.volume_read_only = true;
	/* A volume without a database. */
	assert_int_equal(oltp_engine_open(&config, &engine), -ENOENT);
	config.volume = "/dev/null";
	assert_int_equal(oltp_engine_open(&config, &engine), -EMEDIUMTYPE);
	config.volume = NULL;
	config.log_dir = "/tmp";
	assert_int_equal(oltp_engine_open(&config, &engine), -EINVAL);
	config.volume_read_only = false;
	config.volume_checks = true;
	assert_int_equal(oltp_engine_open(&config, &engine), -EINVAL);
	config.volume_checks = false;
	/* Cold records in it. */
	config.volume_cold = true;
	assert_int_equal(oltp_engine_open(&config, &engine), -EINVAL);
	config = config_of(path);
	config.volume_cold = config.volume_read_only = true;
	assert_int_equal(oltp_engine_open(&config, &engine), -EINVAL);
	config.volume_cold = false;
	config.volume_checks = true;
	assert_int_equal(oltp_engine_open(&config, &engine), -EINVAL);
	config.volume_read_only = config.volume_checks = false;
	config.volume_cold = true;
	config.cold_dir = "/tmp";
	assert_int_equal(oltp_engine_open(&config, &engine), -EINVAL);
	config = config_of("/nonexistent");
	assert_int_equal(oltp_engine_open(&config, &engine), -ENOENT);
}

/* ---- two machines ---- */

/* Neither sees the other's locks. */
static int no_lock(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
	return 0;
}

static struct fault_disk *device_make(void)
{
	struct fault_disk *disk = volume_rig_disk(BYTES, 1, true);
	struct io_files io = volume_rig_files(disk);

	assert_int_equal(volume_format(&io, VOLUME_DEVICE, false), 0);
	return disk;
}

/* What the old owner is told to be durable after the other one has come is of no value. */
static void test_owner_is_replaced(void **state)
{
	(void)state;
	struct fault_disk *disk = device_make();
	struct oltp_config config = config_of(VOLUME_DEVICE);
	struct io_ops ops = fault_disk_ops;
	struct oltp_durable_stats stats;
	struct oltp_config reading;
	struct node old, new, reader;
	uint64_t number = 0, late;

	ops.lock = no_lock;
	config.log_io = &ops;
	config.log_io_ctx = disk;
	reading = config;
	assert_int_equal(node_open(&old, &config), 0);
	while (number < 500)
		assert_int_equal(put_durable(&old, ++number), 0);
	assert_int_equal(node_open(&new, &config), 0);
	assert_int_equal(check(&new, number), number);
	late = number;
	while (number < 520)
		assert_int_equal(put_durable(&new, ++number), 0);
	/* The old one can write to no place that it had not; when it needs one its log fails. */
	assert_int_equal(oltp_checkpoint(old.engine), -ESTALE);
	while (!put_durable(&old, ++late))
		assert_true(late < 5000);
	oltp_durable_stats_read(old.engine, &stats);
	assert_true(stats.has_failed);
	assert_int_equal(stats.error, -ESTALE);
	/* The new one is not disturbed, on the disk neither. */
	reading.volume_read_only = true;
	assert_int_equal(node_open(&reader, &reading), 0);
	assert_int_equal(check(&reader, number), number);
	node_close(&reader);
	while (number < 1000)
		assert_int_equal(put_durable(&new, ++number), 0);
	assert_int_equal(oltp_checkpoint(new.engine), 0);
	while (number < 1500)
		assert_int_equal(put_durable(&new, ++number), 0);
	node_close(&old);
	node_close(&new);
	fault_disk_restart(disk, true);
	assert_int_equal(node_open(&new, &config), 0);
	assert_int_equal(check(&new, number), number);
	node_close(&new);
	fault_disk_destroy(disk);
}

/* Reads one row; -errno if that is not durable. */
static int read_durable(struct node *node)
{
	const void *record;

	if (oltp_txn_begin(node->worker))
		return -EIO;
	assert_int_equal(oltp_txn_read(node->worker, node->table, 1, &record), OLTP_OK);
	assert_int_equal(oltp_txn_commit(node->worker), OLTP_OK);
	return oltp_durable_wait(node->engine, oltp_worker_epoch(node->worker));
}

/*
 * An engine that is asked for nothing but reads: when another one has taken its volume, or the
 * device has shut it out, with volume_checks the next answer fails; without them it never does, nor
 * while they are switched off.
 */
static void test_reads_of_who_is_replaced(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct fault_disk *disk = device_make();
		struct oltp_config config = config_of(VOLUME_DEVICE);
		struct io_ops ops = fault_disk_ops;
		struct node old, new;

		ops.lock = no_lock;
		config.log_io = &ops;
		config.log_io_ctx = disk;
		config.volume_checks = i > 0;
		assert_int_equal(node_open(&old, &config), 0);
		assert_int_equal(put_durable(&old, 1), 0);
		for (int k = 0; k < 100; k++)
			assert_int_equal(read_durable(&old), 0);
		if (i < 2) {
			assert_int_equal(node_open(&new, &config), 0);
			assert_int_equal(put_durable(&new, 1 + KEYS), 0);
		} else {
			fault_disk_lose_power_at(disk, 0);
		}
		if (i == 1) {
			oltp_volume_checks_set(old.engine, false);
			assert_int_equal(read_durable(&old), 0);
			oltp_volume_checks_set(old.engine, true);
		}
		assert_int_equal(read_durable(&old), i == 0 ? 0 : i == 1 ? -ESTALE : -EIO);
		if (i < 2)
			node_close(&new);
		node_close(&old);
		fault_disk_destroy(disk);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_reader_of_what_a_dead_owner_wrote, file_make,
						file_drop),
		cmocka_unit_test_setup_teardown(test_reader_beside_the_owner, file_make, file_drop),
		cmocka_unit_test_setup_teardown(test_wrong_configurations, file_make, file_drop),
		cmocka_unit_test(test_owner_is_replaced),
		cmocka_unit_test(test_reads_of_who_is_replaced),
	};

	return cmocka_run_group_tests(tests, volume_rig_setup, volume_rig_teardown);
}
