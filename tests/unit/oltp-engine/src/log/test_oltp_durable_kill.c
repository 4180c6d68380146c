// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kill -9 of a process at any moment of its work, on a real folder: the child runs transactions and
 * checkpoints and says over a pipe what was acknowledged; the next child recovers what it left.
 * Each transaction moves an amount between two rows and counts its thread's row up, so all rows
 * always add up to the same. Every other child recovers lazily, and works before it has read what
 * is there: what it leaves is looked over by the next one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/src/txn/engine.h"
#include "tests/lib/chance.h"

#define ROUNDS		30u
#define THREADS		2u
#define ACCOUNTS	64u
#define FIRST_AMOUNT	1000u
#define RECORD_BYTES	200u	/* amounts are in the first 8 */

enum said {
	/* Recovered, checked; value: sum of the threads' counts. Or not; thread 1: lazily. */
	SAID_READY,
	SAID_ACKNOWLEDGED,	/* value: the thread's count */
	SAID_WRONG,		/* value: line */
};

struct say {
	uint32_t what, thread;
	uint64_t value;
};

struct database {
	struct oltp_engine *engine;
	struct oltp_table *accounts, *counts;
	int fd;
};

static void say(const struct database *db, enum said what, uint32_t thread, uint64_t value)
{
	const struct say words = { what, thread, value };

	/* Short enough to be written at once, or not at all. */
	if (write(db->fd, &words, sizeof(words)) != sizeof(words))
		_exit(3);
}

#define must(db, condition)						\
	do {								\
		if (!(condition)) {					\
			say(db, SAID_WRONG, 0, __LINE__);		\
			_exit(2);					\
		}							\
	} while (0)

static enum oltp_rc add_to(struct oltp_worker *w, struct oltp_table *table, uint64_t key,
			   int64_t amount, int64_t *ret_value)
{
	const struct oltp_span span = { 0, sizeof(int64_t) };
	enum oltp_rc rc;
	void *record;

	rc = oltp_txn_update(w, table, key, &span, 1, &record);
	if (rc)
		return rc;
	memcpy(ret_value, record, sizeof(*ret_value));
	*ret_value += amount;
	memcpy(record, ret_value, sizeof(*ret_value));
	return OLTP_OK;
}

struct thread {
	struct database *db;
	uint32_t number;
	pthread_t id;
};

static void *work(void *arg)
{
	struct thread *thread = arg;
	struct database *db = thread->db;
	uint32_t seed = thread->number + 1;
	struct oltp_worker *w;

	must(db, !oltp_worker_create(db->engine, &w));
	for (;;) {
		uint64_t from = (uint64_t)rand_r(&seed) % ACCOUNTS;
		uint64_t to = (from + 1 + (uint64_t)rand_r(&seed) % (ACCOUNTS - 1)) % ACCOUNTS;
		int64_t amount = rand_r(&seed) % 100, count, value;
		enum oltp_rc rc = oltp_txn_begin(w);

		rc = rc ?: add_to(w, db->accounts, from, -amount, &value);
		rc = rc ?: add_to(w, db->accounts, to, amount, &value);
		rc = rc ?: add_to(w, db->counts, thread->number, 1, &count);
		rc = rc ?: oltp_txn_commit(w);
		if (rc) {
			oltp_txn_abort(w);
			if (rc == OLTP_COLD)
				rc = oltp_cold_wait(w) ?: OLTP_CONFLICT;
			must(db, rc == OLTP_CONFLICT);
			continue;
		}
		if (count % 4 == 0) {
			must(db, !oltp_durable_wait(db->engine, oltp_worker_epoch(w)));
			say(db, SAID_ACKNOWLEDGED, thread->number, (uint64_t)count);
		}
	}
	return NULL;
}

static void fill(struct database *db, struct oltp_worker *w)
{
	uint8_t record[RECORD_BYTES] = { 0 };
	int64_t amount = FIRST_AMOUNT;

	must(db, !oltp_txn_begin(w));
	for (uint64_t i = 0; i < THREADS; i++)
		must(db, !oltp_txn_insert(w, db->counts, i, record));
	memcpy(record, &amount, sizeof(amount));
	for (uint64_t i = 0; i < ACCOUNTS; i++)
		must(db, !oltp_txn_insert(w, db->accounts, i, record));
	must(db, !oltp_txn_commit(w));
	must(db, !oltp_durable_wait(db->engine, oltp_worker_epoch(w)));
}

static int64_t sum(struct database *db, struct oltp_worker *w, struct oltp_table *table, uint64_t n)
{
	int64_t all = 0;

	for (uint64_t i = 0; i < n; i++) {
		const void *record;
		int64_t value;

		must(db, !oltp_txn_read(w, table, i, &record));
		memcpy(&value, record, sizeof(value));
		all += value;
	}
	return all;
}

/* Of each thread, what was acknowledged to the parent is there. */
static void check(struct database *db, struct oltp_worker *w,
		  const uint64_t acknowledged[THREADS], bool is_new)
{
	const void *record;
	enum oltp_rc rc;

	must(db, !oltp_txn_begin(w));
	rc = oltp_txn_read(w, db->counts, 0, &record);
	if (rc == OLTP_NOT_FOUND) {
		must(db, is_new);
		oltp_txn_abort(w);
		fill(db, w);
		must(db, !oltp_txn_begin(w));
	}
	must(db, sum(db, w, db->accounts, ACCOUNTS) == (int64_t)ACCOUNTS * FIRST_AMOUNT);
	for (uint64_t i = 0; i < THREADS; i++) {
		uint64_t count;

		must(db, !oltp_txn_read(w, db->counts, i, &record));
		memcpy(&count, record, sizeof(count));
		must(db, count >= acknowledged[i]);
	}
	say(db, SAID_READY, 0, (uint64_t)sum(db, w, db->counts, THREADS));
	oltp_txn_abort(w);
}

static void child(const char *dir, int fd, const uint64_t acknowledged[THREADS], bool is_new,
		  bool is_lazy)
{
	/* The background would have read all of so few rows at once. */
	const struct oltp_recover_config how = { .lazy = is_lazy, .lazy_mib_s = OLTP_LAZY_NO_LOAD };
	const struct oltp_config config = {
		.cold_dir = is_lazy ? "/var/tmp" : NULL,
		.node = -1,
		.durability = OLTP_DURABILITY_COMMIT,
		.log_dir = dir,
		.log_segment_mib = 1,
		.group_interval_us = 200,
	};
	struct database db = { .fd = fd };
	struct thread threads[THREADS];
	struct oltp_worker *w;

	must(&db, !oltp_engine_open(&config, &db.engine));
	must(&db, !oltp_table_create(db.engine, RECORD_BYTES, ACCOUNTS, &db.accounts));
	must(&db, !oltp_table_create(db.engine, RECORD_BYTES, THREADS, &db.counts));
	must(&db, !oltp_recover(db.engine, &how, NULL));
	must(&db, !oltp_worker_create(db.engine, &w));
	if (is_lazy)
		say(&db, SAID_READY, oltp_recovery_rows_left(db.engine) != 0, 0);
	else
		check(&db, w, acknowledged, is_new);
	for (uint32_t i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ .db = &db, .number = i };
		must(&db, !pthread_create(&threads[i].id, NULL, work, &threads[i]));
	}
	for (;;) {
		must(&db, !oltp_checkpoint(db.engine));
		nanosleep(&(struct timespec){ 0, 3000000 }, NULL);
	}
}

/* Takes what the child says until it is killed, after so many acknowledgements, and dead. */
static void listen_and_kill(pid_t pid, int fd, uint32_t acks, uint64_t acknowledged[THREADS],
			    uint32_t *n_lazy)
{
	bool is_ready = false;
	struct say words;
	uint32_t n = 0;

	while (read(fd, &words, sizeof(words)) == sizeof(words)) {
		if (words.what == SAID_WRONG)
			fail_msg("the child, line %llu", (unsigned long long)words.value);
		is_ready |= words.what == SAID_READY;
		*n_lazy += words.what == SAID_READY && words.thread;
		if (words.what == SAID_ACKNOWLEDGED) {
			acknowledged[words.thread] = words.value;
			n++;
		}
		if (n == acks && is_ready)
			kill(pid, SIGKILL);
	}
	assert_true(is_ready);
	assert_true(n >= acks);
}

static pid_t start(const char *dir, const uint64_t acknowledged[THREADS], uint32_t round,
		   int *ret_fd)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(fds[0]);
		child(dir, fds[1], acknowledged, !round, round % 2);
		_exit(0);
	}
	close(fds[1]);
	*ret_fd = fds[0];
	return pid;
}

static void remove_all(const char *dir)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

static void test_kill(void **state)
{
	(void)state;
	char dir[] = "/var/tmp/oltp-kill-XXXXXX";
	uint64_t acknowledged[THREADS] = { 0 };
	uint64_t rng = 4711;
	uint32_t n_lazy = 0;

	assert_non_null(mkdtemp(dir));
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t acks = (uint32_t)(rng >> 33) % 60;
		int fd, status;
		pid_t pid;

		chance_step(&rng);
		pid = start(dir, acknowledged, round, &fd);
		listen_and_kill(pid, fd, acks, acknowledged, &n_lazy);
		close(fd);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	assert_true(acknowledged[0] + acknowledged[1] > ROUNDS);
	/* One of which the first child was killed before its checkpoint would not be. */
	assert_true(n_lazy > ROUNDS / 4);
	remove_all(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
