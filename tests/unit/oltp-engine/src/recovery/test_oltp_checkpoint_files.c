// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files that checkpoints leave: one is written over the one before the last, whose file is kept for
 * that, and of the log there is always a group. What is done while a checkpoint begins or ends is
 * in it or in the log that stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/log/log_rig.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/recovery/checkpoint_file.h"

#define ROWS		6000u
#define ROWS_LEFT	2000u
#define PATIENCE_NS	60000000000ull	/* a hang, not slowness */

static int setup(void **state)
{
	log_rig_setup(state);
	log_rig_open(*state);
	return 0;
}

static void path_of(const struct log_rig *rig, uint64_t number, const char *suffix, char path[128])
{
	snprintf(path, 128, "%s/" CHECKPOINT_NAME "%s", rig->dir, (unsigned long long)number,
		 suffix);
}

/* st_ino is 0 if it is not there. */
static struct stat file(const struct log_rig *rig, uint64_t number, const char *suffix)
{
	struct stat st;
	char path[128];

	path_of(rig, number, suffix, path);
	if (stat(path, &st)) {
		assert_int_equal(errno, ENOENT);
		memset(&st, 0, sizeof(st));
	}
	return st;
}

static void insert(struct log_rig *rig, uint64_t from, uint64_t to)
{
	for (uint64_t key = from; key < to; key++)
		assert_int_equal(log_rig_insert(rig, key, key + 1), OLTP_OK);
}

static void delete(struct log_rig *rig, uint64_t from, uint64_t to)
{
	for (uint64_t key = from; key < to; key++) {
		assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
		assert_int_equal(oltp_txn_delete(rig->w, rig->table, key), OLTP_OK);
		assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	}
}

static void checkpoint(struct log_rig *rig)
{
	assert_int_equal(oltp_checkpoint(rig->engine), 0);
}

/* Another process has it: rows 0 to n - 1, so many of them from the checkpoint. */
static void recover(struct log_rig *rig, uint64_t n_checkpoint, uint64_t n)
{
	struct oltp_recovery recovery;

	log_rig_close(rig);
	log_rig_open(rig);
	if (oltp_recover(rig->engine, NULL, &recovery))
		fail_msg("%s", recovery.error);
	assert_int_equal(recovery.rows, n_checkpoint);
	for (uint64_t key = 0; key <= ROWS; key++) {
		const void *record;

		assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
		assert_int_equal(oltp_txn_read(rig->w, rig->table, key, &record),
				 key < n ? OLTP_OK : OLTP_NOT_FOUND);
		if (key < n)
			assert_int_equal(((const struct log_rig_row *)record)->counter, key + 1);
		assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	}
}

static void test_two_files_take_turns(void **state)
{
	struct log_rig *rig = *state;
	struct stat first, second;

	insert(rig, 0, 100);
	checkpoint(rig);
	first = file(rig, 1, "");
	assert_true(first.st_ino);
	insert(rig, 100, 200);
	checkpoint(rig);
	second = file(rig, 2, "");
	assert_true(second.st_ino && second.st_ino != first.st_ino);
	assert_int_equal(file(rig, 1, "").st_ino, 0);
	assert_int_equal(file(rig, 1, CHECKPOINT_TEMP_SUFFIX).st_ino, first.st_ino);
	/* It gets longer. */
	insert(rig, 200, ROWS);
	checkpoint(rig);
	assert_int_equal(file(rig, 3, "").st_ino, first.st_ino);
	assert_true(file(rig, 3, "").st_size > first.st_size);
	assert_int_equal(file(rig, 1, CHECKPOINT_TEMP_SUFFIX).st_ino, 0);
	assert_int_equal(file(rig, 2, "").st_ino, 0);
	assert_int_equal(file(rig, 2, CHECKPOINT_TEMP_SUFFIX).st_ino, second.st_ino);
	/* What another process left is used as well. */
	recover(rig, ROWS, ROWS);
	checkpoint(rig);
	assert_int_equal(file(rig, 4, "").st_ino, second.st_ino);
	recover(rig, ROWS, ROWS);
}

/* What is behind the rows, and before the end, is of the one that the file was of. */
static void test_a_file_that_was_longer(void **state)
{
	struct log_rig *rig = *state;
	struct stat first;

	insert(rig, 0, ROWS);
	checkpoint(rig);
	first = file(rig, 1, "");
	checkpoint(rig);
	delete(rig, ROWS_LEFT, ROWS);
	checkpoint(rig);
	assert_int_equal(file(rig, 3, "").st_ino, first.st_ino);
	assert_int_equal(file(rig, 3, "").st_size, first.st_size);
	recover(rig, ROWS_LEFT, ROWS_LEFT);
}

static void leave_temp(const struct log_rig *rig, uint64_t number, off_t bytes)
{
	char path[128];
	int fd;

	path_of(rig, number, CHECKPOINT_TEMP_SUFFIX, path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_int_equal(close(fd), 0);
}

static void test_files_of_no_use(void **state)
{
	struct log_rig *rig = *state;

	insert(rig, 0, 100);
	/* No multiple of a block; much too long; more than one. */
	leave_temp(rig, 7, 5000);
	checkpoint(rig);
	assert_int_equal(file(rig, 7, CHECKPOINT_TEMP_SUFFIX).st_ino, 0);
	assert_int_equal(file(rig, 8, "").st_size % LOG_BLOCK_BYTES, 0);
	recover(rig, 100, 100);
	leave_temp(rig, 11, 64 << 20);
	checkpoint(rig);
	assert_in_range(file(rig, 12, "").st_size, 2 * LOG_BLOCK_BYTES, 1 << 20);
	recover(rig, 100, 100);
	leave_temp(rig, 13, 1 << 16);
	leave_temp(rig, 14, 1 << 16);
	checkpoint(rig);
	assert_true(file(rig, 15, "").st_ino);
	assert_int_equal(file(rig, 13, CHECKPOINT_TEMP_SUFFIX).st_ino, 0);
	assert_int_equal(file(rig, 14, CHECKPOINT_TEMP_SUFFIX).st_ino, 0);
	recover(rig, 100, 100);
}

/* Segments that were made ahead, and in which nothing was written, tell nothing. */
static void test_checkpoints_of_those_that_write_nothing(void **state)
{
	struct log_rig *rig = *state;

	insert(rig, 0, ROWS);
	for (uint32_t i = 0; i < 4; i++) {
		recover(rig, i ? ROWS : 0, ROWS);
		checkpoint(rig);
	}
	recover(rig, ROWS, ROWS);
	insert(rig, ROWS, ROWS + 1);
	checkpoint(rig);
	recover(rig, ROWS + 1, ROWS + 1);
}

/* Who commits between a checkpoint and the removal of what it makes superfluous; NULL: nobody. */
static struct log_rig *committer;

int __real_log_recycle_before(struct log *log, uint64_t group);
int __wrap_log_recycle_before(struct log *log, uint64_t group);

int __wrap_log_recycle_before(struct log *log, uint64_t group)
{
	if (committer) {
		log_fake_set(&committer->fake, LOG_FAKE_HOLD);
		assert_int_equal(log_rig_insert(committer, ROWS, ROWS + 1), OLTP_OK);
		log_fake_wait_held(&committer->fake);
	}
	return __real_log_recycle_before(log, group);
}

/* What the first commit after a checkpoint begins is no segment before its header is on disk. */
static void test_a_segment_that_is_not_there_yet(void **state)
{
	struct log_rig *rig = *state;

	insert(rig, 0, ROWS);
	recover(rig, 0, ROWS);
	committer = rig;
	checkpoint(rig);
	committer = NULL;
	/* Nothing of it gets to the disk. */
	log_fake_set(&rig->fake, LOG_FAKE_ENOSPC);
	log_rig_close(rig);
	log_fake_set(&rig->fake, LOG_FAKE_WRITE);
	recover(rig, ROWS, ROWS);
	insert(rig, ROWS, ROWS + 1);
	checkpoint(rig);
	recover(rig, ROWS + 1, ROWS + 1);
}

static void set_checkpoint_error(struct log_rig *rig, int error)
{
	pthread_mutex_lock(&rig->fake.lock);
	rig->fake.checkpoint_error = error;
	pthread_mutex_unlock(&rig->fake.lock);
}

static struct oltp_checkpoint_stats stats_of(const struct log_rig *rig)
{
	struct oltp_checkpoint_stats stats;

	oltp_checkpoint_stats_read(rig->engine, &stats);
	return stats;
}

/*
 * The log has grown so much that a checkpoint is due, and it fails: it is tried again without more
 * growth, but not all the time.
 */
static void test_a_checkpoint_that_failed_is_tried_again(void **state)
{
	struct log_rig *rig = *state;
	uint64_t start_ns, key = 0;

	rig->config.checkpoint_mib = 1;
	recover(rig, 0, 0);
	set_checkpoint_error(rig, -ENOSPC);
	/* Before the first failure, of which this thread may hear late. */
	start_ns = clock_now_ns();
	for (; !stats_of(rig).failed; key++)
		insert(rig, key, key + 1);
	assert_int_equal(stats_of(rig).last_error, -ENOSPC);
	while (stats_of(rig).failed < 2 && clock_now_ns() - start_ns < PATIENCE_NS)
		clock_sleep(1000000);
	assert_true(stats_of(rig).failed >= 2);
	/* The first time after a second. */
	assert_true(clock_now_ns() - start_ns > 900000000);
	set_checkpoint_error(rig, 0);
	while (!stats_of(rig).checkpoints && clock_now_ns() - start_ns < PATIENCE_NS)
		clock_sleep(1000000);
	assert_int_equal(stats_of(rig).checkpoints, 1);
	recover(rig, key, key);
}

/* Who adds a table while a checkpoint looks which there are; NULL: nobody. */
static struct log_rig *creator;
static bool is_created_before;
static struct oltp_table *created;

static void create_and_fill(void)
{
	struct log_rig *rig = creator;
	struct log_rig_row row = { .counter = 7 };

	creator = NULL;
	assert_int_equal(oltp_table_create(rig->engine, LOG_RIG_RECORD_BYTES, 16, &created), 0);
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(oltp_txn_insert(rig->w, created, 1, &row), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
}

void __real_log_catalog_get(struct log *log, struct log_catalog *ret_catalog);
void __wrap_log_catalog_get(struct log *log, struct log_catalog *ret_catalog);

void __wrap_log_catalog_get(struct log *log, struct log_catalog *ret_catalog)
{
	if (creator && is_created_before)
		create_and_fill();
	__real_log_catalog_get(log, ret_catalog);
	if (creator)
		create_and_fill();
}

/*
 * A table is in the catalogue, and not yet among the engine's, until a checkpoint has chosen the
 * tables that are in it. NULL: nobody adds one.
 */
static struct checkpoint_meanwhile {
	struct log_rig *rig;
	pthread_t thread;
	sem_t has_chosen;
	uint32_t n_chosen;
	int rc;
} *meanwhile;

static void *checkpoint_main(void *arg)
{
	struct checkpoint_meanwhile *m = arg;

	m->rc = oltp_checkpoint(m->rig->engine);
	return NULL;
}

int __real_log_table_created(struct log *log, uint32_t number, uint32_t record_bytes);
int __wrap_log_table_created(struct log *log, uint32_t number, uint32_t record_bytes);

int __wrap_log_table_created(struct log *log, uint32_t number, uint32_t record_bytes)
{
	int rc = __real_log_table_created(log, number, record_bytes);

	if (meanwhile) {
		assert_int_equal(pthread_create(&meanwhile->thread, NULL, checkpoint_main,
						meanwhile), 0);
		while (sem_wait(&meanwhile->has_chosen))
			;
	}
	return rc;
}

int __real_checkpoint_writer_open(struct checkpoint_writer *writer, const struct io_files *io,
				  const char *dir, const struct checkpoint_header *header,
				  const struct checkpoint_spare *spare);
int __wrap_checkpoint_writer_open(struct checkpoint_writer *writer, const struct io_files *io,
				  const char *dir, const struct checkpoint_header *header,
				  const struct checkpoint_spare *spare);

int __wrap_checkpoint_writer_open(struct checkpoint_writer *writer, const struct io_files *io,
				  const char *dir, const struct checkpoint_header *header,
				  const struct checkpoint_spare *spare)
{
	if (meanwhile) {
		meanwhile->n_chosen = header->n_tables;
		sem_post(&meanwhile->has_chosen);
	}
	return __real_checkpoint_writer_open(writer, io, dir, header, spare);
}

/* Another process has the ten rows, and the row of the table that was created. */
static void recover_created(struct log_rig *rig)
{
	struct oltp_recovery recovery;
	const void *record;

	log_rig_close(rig);
	log_rig_open(rig);
	assert_int_equal(oltp_table_create(rig->engine, LOG_RIG_RECORD_BYTES, 16, &created), 0);
	assert_int_equal(oltp_recover(rig->engine, NULL, &recovery), 0);
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(oltp_txn_read(rig->w, rig->table, 9, &record), OLTP_OK);
	assert_int_equal(oltp_txn_read(rig->w, created, 1, &record), OLTP_OK);
	assert_int_equal(((const struct log_rig_row *)record)->counter, 7);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
}

static void create_meanwhile(struct log_rig *rig, bool before)
{
	insert(rig, 0, 10);
	creator = rig;
	is_created_before = before;
	checkpoint(rig);
	assert_null(creator);
	recover_created(rig);
}

static void test_a_table_before_the_look(void **state)
{
	create_meanwhile(*state, true);
}

static void test_a_table_after_the_look(void **state)
{
	create_meanwhile(*state, false);
}

static void test_a_table_that_is_being_created(void **state)
{
	struct checkpoint_meanwhile m = { .rig = *state };

	insert(m.rig, 0, 10);
	sem_init(&m.has_chosen, 0, 0);
	meanwhile = &m;
	creator = m.rig;
	create_and_fill();
	pthread_join(m.thread, NULL);
	meanwhile = NULL;
	sem_destroy(&m.has_chosen);
	assert_int_equal(m.rc, 0);
	assert_int_equal(m.n_chosen, 1);
	recover_created(m.rig);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, setup, log_rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_two_files_take_turns),
		WITH_RIG(test_a_file_that_was_longer),
		WITH_RIG(test_files_of_no_use),
		WITH_RIG(test_checkpoints_of_those_that_write_nothing),
		WITH_RIG(test_a_segment_that_is_not_there_yet),
		WITH_RIG(test_a_checkpoint_that_failed_is_tried_again),
		WITH_RIG(test_a_table_before_the_look),
		WITH_RIG(test_a_table_after_the_look),
		WITH_RIG(test_a_table_that_is_being_created),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
