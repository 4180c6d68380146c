// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * D1: histories over processes that are killed, joined, are strictly serializable: all that was
 * acknowledged is there, nothing by half. And the checker finds it if transactions are acknowledged
 * before they are on disk. D2: in mode async what is lost is of the last two epochs, all of it, and
 * the rest is strictly serializable; and the checker finds it if something older is lost.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/check/record_crash.h"
#include "oltp-engine/check/report.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define KILLS		2u
/* Broken, until it shows: a crash may come right after a group was written. */
#define ROUNDS_MAX	40u

static bool acknowledges_early, claims_old;

int __real_oltp_durable_wait(struct oltp_engine *engine, uint64_t epoch);

int __wrap_oltp_durable_wait(struct oltp_engine *engine, uint64_t epoch)
{
	return acknowledges_early ? 0 : __real_oltp_durable_wait(engine, epoch);
}

uint64_t __real_oltp_worker_epoch(const struct oltp_worker *worker);

uint64_t __wrap_oltp_worker_epoch(const struct oltp_worker *worker)
{
	return claims_old ? 1 : __real_oltp_worker_epoch(worker);
}

/* Of all processes: rows that recoveries left in a checkpoint. */
static _Atomic uint64_t *lazy_rows;

int __real_oltp_recover(struct oltp_engine *engine, const struct oltp_recover_config *config,
			struct oltp_recovery *ret_recovery);

int __wrap_oltp_recover(struct oltp_engine *engine, const struct oltp_recover_config *config,
			struct oltp_recovery *ret_recovery)
{
	int rc = __real_oltp_recover(engine, config, ret_recovery);

	if (!rc && lazy_rows)
		atomic_fetch_add(lazy_rows, ret_recovery->lazy_rows);
	return rc;
}

struct folder {
	char path[300];
};

static void folder_make(struct folder *folder)
{
	snprintf(folder->path, sizeof(folder->path), "%s/oltp-history.XXXXXX", rig_dir());
	assert_non_null(mkdtemp(folder->path));
}

static void folder_remove(struct folder *folder)
{
	DIR *dir = opendir(folder->path);
	struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	assert_int_equal(rmdir(folder->path), 0);
}

static void load(int fd, struct history *history)
{
	off_t bytes = lseek(fd, 0, SEEK_END);
	struct history_error error = { 0 };
	char *text = malloc((size_t)bytes + 1);

	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)bytes, 0), bytes);
	if (history_parse(history, text, (size_t)bytes, NULL, NULL, &error))
		fail_msg("line %" PRIu64 ": %s", error.line, error.what ? error.what : "?");
	free(text);
}

/* Leaves what was recorded where it can be looked at: it does not come again. */
static void keep(int fd)
{
	char path[64], buffer[65536];
	ssize_t n;
	int to;

	snprintf(path, sizeof(path), "/tmp/ebb-history-crash.%d", (int)getpid());
	to = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	assert_true(to >= 0);
	for (off_t at = 0; (n = pread(fd, buffer, sizeof(buffer), at)) > 0; at += n)
		assert_int_equal(write(to, buffer, (size_t)n), n);
	close(to);
	printf("recorded: %s\n", path);
}

/* How many anomalies there are; *ret_lost: transactions that crashes took. */
static uint64_t run(struct record_config config, bool must_be_clean, uint64_t *ret_lost)
{
	static char *const files[] = { "recorded" };
	const struct check_options options = { .model = CHECK_STRICT_SERIALIZABLE,
					       .anomalies_max = 3 };
	struct check_result result = { 0 };
	struct history history = { 0 };
	struct report report = { &history, &result, options.model, files, 0 };
	struct folder folder;
	uint64_t n;
	int fd;

	folder_make(&folder);
	fd = open(rig_dir(), O_TMPFILE | O_RDWR | O_APPEND, 0600);
	assert_true(fd >= 0);
	config.engine.log_dir = folder.path;
	assert_int_equal(record_with_kills(&config, KILLS, fd, NULL, NULL), 0);
	load(fd, &history);
	folder_remove(&folder);
	assert_int_equal(check_history(&history, &options, &result), 0);
	assert_true(result.n_txns[HISTORY_OK] + history.n_lost > KILLS * config.transactions);
	/* One epoch was open, another one on its way to disk. */
	assert_true(history.lost_epochs <= 2);
	*ret_lost = history.n_lost;
	n = result.n_anomalies;
	if (n && must_be_clean) {
		report_text(&report, stdout);
		keep(fd);
		fail_msg("%" PRIu64 " anomalies", n);
	}
	close(fd);
	check_result_finish(&result);
	history_finish(&history);
	return n;
}

static void test_nothing_acknowledged_is_lost(void **state)
{
	uint64_t n_lost;

	(void)state;
	for (int cc = 0; strcmp(oltp_cc_name(cc), "unknown"); cc++)
		run((struct record_config){
			.engine = { .cc = cc, .node = -1,
				    .durability = OLTP_DURABILITY_COMMIT },
			.transactions = 150,
			.seed = 1 + (uint64_t)cc,
		}, true, &n_lost);
}

/* So it is if rows are read only when somebody wants them, and scanned before. */
static void test_lazy_recovery(void **state)
{
	uint64_t n_lost;

	(void)state;
	lazy_rows = mmap(NULL, sizeof(*lazy_rows), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(lazy_rows != MAP_FAILED);
	for (int cc = 0; strcmp(oltp_cc_name(cc), "unknown"); cc++)
		run((struct record_config){
			.engine = { .cc = cc, .node = -1, .cold_dir = rig_dir(),
				    .durability = OLTP_DURABILITY_COMMIT },
			.transactions = 150,
			.seed = 101 + (uint64_t)cc,
			.is_lazy = true,
		}, true, &n_lost);
	assert_true(atomic_load(lazy_rows) > 100);
	munmap(lazy_rows, sizeof(*lazy_rows));
	lazy_rows = NULL;
}

/* Acknowledged at once, written late: something is lost for sure, sooner or later. */
static struct record_config async_config(uint64_t seed)
{
	return (struct record_config){
		.engine = { .cc = OLTP_CC_WOUND_WAIT, .node = -1,
			    .durability = OLTP_DURABILITY_ASYNC, .group_interval_us = 20000 },
		.transactions = 150,
		.seed = seed,
	};
}

static void test_async_loses_the_end_alone(void **state)
{
	uint64_t n_lost = 0;

	(void)state;
	for (uint64_t seed = 1; !n_lost && seed <= ROUNDS_MAX; seed++)
		run(async_config(seed), true, &n_lost);
	assert_true(n_lost > 0);
}

/* Were they of an older epoch, they would have to be there. */
static void test_async_hole_is_found(void **state)
{
	uint64_t n = 0, n_lost;

	(void)state;
	claims_old = true;
	for (uint64_t seed = 1; !n && seed <= ROUNDS_MAX; seed++)
		n = run(async_config(seed), false, &n_lost);
	claims_old = false;
	assert_true(n > 0);
}

static void test_early_acknowledgement_is_found(void **state)
{
	uint64_t n = 0, n_lost;

	(void)state;
	acknowledges_early = true;
	for (uint64_t seed = 1; !n && seed <= ROUNDS_MAX; seed++)
		n = run((struct record_config){
			.engine = { .node = -1, .durability = OLTP_DURABILITY_COMMIT,
				    .group_interval_us = 50000 },
			.transactions = 300,
			.seed = seed,
		}, false, &n_lost);
	acknowledges_early = false;
	assert_true(n > 0);
}

static int drop(void *ctx, const char *text, size_t bytes)
{
	(void)ctx;
	(void)text;
	(void)bytes;
	return 0;
}

static int run_alone(const struct record_config *config)
{
	struct record_shared *shared = calloc(1, sizeof(*shared));
	const struct record_sink sink = { drop, NULL };
	struct record_stats stats;
	int rc;

	assert_non_null(shared);
	rc = record_run(config, shared, &sink, NULL, NULL, &stats);
	free(shared);
	return rc;
}

/* Rows from the log of another history would look like values that nobody wrote. */
static void test_the_log_of_another_history_is_refused(void **state)
{
	struct record_config config = {
		.engine = { .node = -1, .durability = OLTP_DURABILITY_COMMIT },
		.transactions = 10,
	};
	struct folder folder;

	(void)state;
	folder_make(&folder);
	config.engine.log_dir = folder.path;
	assert_int_equal(run_alone(&config), 0);
	assert_int_equal(run_alone(&config), -ENOTEMPTY);
	folder_remove(&folder);
}

static void test_why_a_process_failed_is_known(void **state)
{
	const struct record_config config = {
		.engine = { .node = -1, .durability = OLTP_DURABILITY_COMMIT,
			    .log_dir = "/nonexistent/oltp-history" },
		.transactions = 10,
	};
	int fd = open(rig_dir(), O_TMPFILE | O_RDWR | O_APPEND, 0600);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(record_with_kills(&config, KILLS, fd, NULL, NULL), -ENOENT);
	close(fd);
}

/* Workers come and go many times in a long history. Over crashes each has a list of its own. */
static void test_many_workers_may_come(void **state)
{
	struct record_config config = { .engine = { .node = -1 }, .transactions = 10 };
	struct record_shared *shared = calloc(1, sizeof(*shared));
	const struct record_sink sink = { drop, NULL };
	struct record_stats stats;

	(void)state;
	assert_non_null(shared);
	atomic_store(&shared->attached, RECORD_JOURNALS);
	assert_int_equal(record_run(&config, shared, &sink, NULL, NULL, &stats), 0);
	config.is_for_crash = true;
	assert_int_equal(record_run(&config, shared, &sink, NULL, NULL, &stats), -EUSERS);
	free(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_acknowledged_is_lost),
		cmocka_unit_test(test_lazy_recovery),
		cmocka_unit_test(test_early_acknowledgement_is_found),
		cmocka_unit_test(test_async_loses_the_end_alone),
		cmocka_unit_test(test_async_hole_is_found),
		cmocka_unit_test(test_the_log_of_another_history_is_refused),
		cmocka_unit_test(test_why_a_process_failed_is_known),
		cmocka_unit_test(test_many_workers_may_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
