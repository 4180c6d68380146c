// SPDX-License-Identifier: GPL-2.0-or-later
/* A session from load to result, and the control channel that ends it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/bench/accept.h"
#include "oltp-engine/server/control.h"
#include "oltp-engine/src/base/clock.h"

struct fixture {
	char dir[32];
	char path[64];
	struct session *session;
	void *source;
};

/* A small table, short intervals, no lines. */
static struct bench_options options_of(double seconds)
{
	struct bench_options options = bench_options_default;

	options.ycsb.records = 200;
	options.seconds = seconds;
	options.quiet = true;
	options.verify = true;
	options.interval_ms = 20;
	return options;
}

static void fixture_open_with(struct fixture *f, const struct bench_options *options,
			      bool takes_rates)
{
	static const uint32_t cpus[] = { 0, 1 };
	const struct session_config config = { .options = *options, .no_pin = true,
					       .takes_rates = takes_rates };

	strcpy(f->dir, "/tmp/oltp-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/control", f->dir);
	assert_int_equal(oltp_source_fixed_create(cpus, 2, 1, &f->source), 0);
	assert_int_equal(session_open(&config, &f->session), 0);
	session_set_source(f->session, &oltp_source_fixed_ops, f->source);
}

static void fixture_open(struct fixture *f, double seconds)
{
	const struct bench_options options = options_of(seconds);

	fixture_open_with(f, &options, true);
}

static void fixture_close(struct fixture *f)
{
	session_close(f->session);
	oltp_source_fixed_destroy(f->source);
	unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0);
}

static void assert_result(struct fixture *f, const char *const *expected, bool is_good)
{
	char text[4096] = { 0 };
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	assert_int_equal(session_finish(f->session, out, "oltp-result "), is_good);
	fclose(out);
	assert_int_equal(strncmp(text, "oltp-result {", 13), 0);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	for (; *expected; expected++) {
		if (!strstr(text, *expected))
			fail_msg("no %s in %s", *expected, text);
	}
}

static void test_ends_when_time_is_up(void **state)
{
	(void)state;
	static const char *const expected[] = {
		"\"failed_transactions\":0,", "\"lost_updates\":0}", "\"verified\":true",
		"\"cpus_added\":1,", "\"cpus_removed\":1,", "\"cpu_add_ms\":{\"n\":1,\"median\":",
		NULL
	};
	struct fixture f;

	fixture_open(&f, 3);
	assert_int_equal(session_run(f.session), 0);
	assert_result(&f, expected, true);
	fixture_close(&f);
}

static void test_a_result_that_cannot_be_written_is_no_success(void **state)
{
	struct fixture f;
	FILE *full;

	(void)state;
	fixture_open(&f, 0.05);
	assert_int_equal(session_run(f.session), 0);
	full = fopen("/dev/full", "w");
	assert_non_null(full);
	assert_false(session_finish(f.session, full, ""));
	fclose(full);
	fixture_close(&f);
}

/* Also if the run ended before the first sample: then only the head of the file was written. */
static void test_samples_that_cannot_be_written_are_no_success(void **state)
{
	struct bench_options options = options_of(0.05);
	FILE *out = fopen("/dev/null", "w");
	struct fixture f;

	(void)state;
	assert_non_null(out);
	options.interval_ms = 10000;
	options.stats_path = "/dev/full";
	fixture_open_with(&f, &options, true);
	assert_int_equal(session_run(f.session), 0);
	assert_false(session_finish(f.session, out, ""));
	fclose(out);
	fixture_close(&f);
}

static void *send_signal(void *arg)
{
	(void)arg;
	usleep(50000);
	kill(getpid(), SIGTERM);
	return NULL;
}

static void test_ends_on_sigterm(void **state)
{
	(void)state;
	static const char *const expected[] = { "\"lost_updates\":0}", NULL };
	pthread_t thread;
	struct fixture f;

	fixture_open(&f, 30);
	assert_int_equal(pthread_create(&thread, NULL, send_signal, NULL), 0);
	assert_int_equal(session_run(f.session), 0);
	pthread_join(thread, NULL);
	assert_result(&f, expected, true);
	fixture_close(&f);
}

static int client_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(address.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return fd;
}

/* Sends pieces with a pause between them; returns what came back by the end of the connection. */
struct script {
	const char *path;
	const char *pieces[4];
	char answer[512];
	bool has_no_end;	/* no line, so no answer */
	bool is_last;		/* begins when the others are over, or have sent what never ends */
	_Atomic int *n_over;
};

static void *client_main(void *arg)
{
	struct script *script = arg;
	int fd = client_connect(script->path);
	size_t used = 0;
	ssize_t n;

	if (fd < 0)
		return NULL;
	while (script->is_last && *script->n_over < 2)
		usleep(1000);
	for (int i = 0; i < 4 && script->pieces[i]; i++) {
		if (send(fd, script->pieces[i], strlen(script->pieces[i]), MSG_NOSIGNAL) < 0)
			break;
		usleep(20000);
	}
	if (script->n_over && script->has_no_end)
		(*script->n_over)++;
	while ((n = read(fd, script->answer + used, sizeof(script->answer) - 1 - used)) > 0)
		used += (size_t)n;
	if (script->n_over && !script->has_no_end)
		(*script->n_over)++;
	close(fd);
	return NULL;
}

static void run_scripts_with(const struct bench_options *options, struct script *scripts,
			     uint32_t n)
{
	static const char *const expected[] = { "\"lost_updates\":0}", NULL };
	struct control *control;
	pthread_t threads[8];
	struct stat st;
	struct fixture f;

	fixture_open_with(&f, options, true);
	assert_int_equal(control_open(f.path, f.session, &control), 0);
	assert_int_equal(stat(f.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	for (uint32_t i = 0; i < n; i++) {
		scripts[i].path = f.path;
		assert_int_equal(pthread_create(&threads[i], NULL, client_main, &scripts[i]), 0);
	}
	assert_int_equal(session_run(f.session), 0);
	control_close(control);
	for (uint32_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(stat(f.path, &st), -1);
	assert_result(&f, expected, true);
	fixture_close(&f);
}

static void run_scripts(struct script *scripts, uint32_t n)
{
	const struct bench_options options = options_of(30);

	run_scripts_with(&options, scripts, n);
}

static void test_stop_command(void **state)
{
	(void)state;
	struct script script = { .pieces = { "stop\n" } };

	run_scripts(&script, 1);
	assert_string_equal(script.answer, "ok\n");
}

static void test_rate_command(void **state)
{
	(void)state;
	struct script script = { .pieces = { "rate 50\nrate 0\n", "rate\nrate -1\n",
					     "rate nan\nrate 5x\n", "stop\n" } };
	const char *bad = "error: a rate is 0 to 1e9 transactions per second\n";
	char expected[512];

	run_scripts(&script, 1);
	snprintf(expected, sizeof(expected), "ok\nok\n%s%s%s%sok\n",
		 "error: unknown command; there are: stop, audit, rate R, "
		 "relocate, relocate-cancel, relocate-status, take-over\n",
		 bad, bad, bad);
	assert_string_equal(script.answer, expected);
}

/* TPC-C's tables contradict each other while transactions run. */
static void test_a_workload_without_audits_says_so(void **state)
{
	(void)state;
	struct script script = { .pieces = { "audit\n", "stop\n" } };
	struct bench_options options = options_of(30);

	options.workload = bench_workload_find("tpcc");
	options.tpcc.items = 20;
	options.tpcc.customers = 30;
	options.tpcc.orders = 1000;
	run_scripts_with(&options, &script, 1);
	assert_string_equal(script.answer,
			    "error: this workload cannot be looked over while it runs\nok\n");
}

static void test_nothing_runs_at_rate_zero(void **state)
{
	(void)state;
	static const char *const expected[] = { "\"committed\":0,", NULL };
	struct fixture f;

	fixture_open(&f, 0.2);
	assert_int_equal(session_set_rate(f.session, -1), -EINVAL);
	assert_int_equal(session_set_rate(f.session, 0), 0);
	assert_int_equal(session_run(f.session), 0);
	assert_result(&f, expected, true);
	fixture_close(&f);
}

static void test_rates_are_for_sessions_that_take_them(void **state)
{
	(void)state;
	const struct bench_options options = options_of(0.05);
	struct fixture f;

	fixture_open_with(&f, &options, false);
	assert_int_equal(session_set_rate(f.session, 1), -EOPNOTSUPP);
	fixture_close(&f);
}

static void test_lines_in_pieces_and_unknown_commands(void **state)
{
	(void)state;
	struct script script = { .pieces = { "halt\nst", "op", " now\n\nsto", "p\n" } };
	const char *line = "error: unknown command; there are: stop, audit, rate R, "
		 "relocate, relocate-cancel, relocate-status, take-over\n";
	char expected[512];

	run_scripts(&script, 1);
	snprintf(expected, sizeof(expected), "%s%s%sok\n", line, line, line);
	assert_string_equal(script.answer, expected);
}

static void test_bad_clients_do_not_end_the_run(void **state)
{
	(void)state;
	static char long_line[2000];
	_Atomic int n_over = 0;
	struct script scripts[3] = {
		{ .pieces = { long_line }, .n_over = &n_over },
		/* No newline: not a command. */
		{ .pieces = { "stop" }, .has_no_end = true, .n_over = &n_over },
		{ .pieces = { "x", "", "\n", "stop\n" }, .is_last = true, .n_over = &n_over },
	};

	memset(long_line, 'a', sizeof(long_line) - 1);
	run_scripts(scripts, 3);
	assert_non_null(strstr(scripts[0].answer, "error: line too long\n"));
	assert_string_equal(scripts[1].answer, "");
	assert_non_null(strstr(scripts[2].answer, "ok\n"));
}

/* While positive, no connection can be accepted; counts down. */
static _Atomic int n_refusals;
static _Atomic uint64_t refused_first_ns, refused_last_ns;

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags);

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
	if (n_refusals <= 0)
		return __real_accept4(fd, address, bytes, flags);
	n_refusals--;
	refused_last_ns = clock_now_ns();
	if (!refused_first_ns)
		refused_first_ns = refused_last_ns;
	errno = EMFILE;
	return -1;
}

/* The client waits until there is a descriptor, and the session does not spin meanwhile. */
static void test_no_descriptors(void **state)
{
	(void)state;
	struct script script = { .pieces = { "stop\n" } };
	const int n = 20;

	refused_first_ns = 0;
	n_refusals = n;
	run_scripts(&script, 1);
	assert_int_equal(n_refusals, 0);
	assert_string_equal(script.answer, "ok\n");
	assert_true(refused_last_ns - refused_first_ns >=
		    (uint64_t)(n - 1) * ACCEPT_PAUSE_MS * 1000000);
}

static void test_socket_left_behind_is_replaced(void **state)
{
	(void)state;
	struct control *control, *second = NULL;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char too_long[200];
	struct fixture f;
	int fd;

	fixture_open(&f, 0.05);
	/* Bound once, its owner gone. */
	strcpy(address.sun_path, f.path);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	assert_int_equal(control_open(f.path, f.session, &control), 0);
	/* In use, impossible, too long. */
	assert_int_equal(control_open(f.path, f.session, &second), -EADDRINUSE);
	assert_int_equal(control_open("/nonexistent/control", f.session, &second), -ENOENT);
	memset(too_long, 'a', sizeof(too_long));
	too_long[sizeof(too_long) - 1] = '\0';
	assert_int_equal(control_open(too_long, f.session, &second), -ENAMETOOLONG);
	assert_null(second);
	assert_int_equal(session_run(f.session), 0);
	control_close(control);
	fixture_close(&f);
}

/* A file that is no socket is nobody's to remove. */
static void test_file_in_the_way_stays(void **state)
{
	(void)state;
	struct control *control = NULL;
	struct stat st;
	struct fixture f;
	int fd;

	fixture_open(&f, 0.05);
	fd = open(f.path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(control_open(f.path, f.session, &control), -EADDRINUSE);
	assert_int_equal(stat(f.path, &st), 0);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends_when_time_is_up),
		cmocka_unit_test(test_ends_on_sigterm),
		cmocka_unit_test(test_a_result_that_cannot_be_written_is_no_success),
		cmocka_unit_test(test_samples_that_cannot_be_written_are_no_success),
		cmocka_unit_test(test_stop_command),
		cmocka_unit_test(test_rate_command),
		cmocka_unit_test(test_a_workload_without_audits_says_so),
		cmocka_unit_test(test_nothing_runs_at_rate_zero),
		cmocka_unit_test(test_rates_are_for_sessions_that_take_them),
		cmocka_unit_test(test_lines_in_pieces_and_unknown_commands),
		cmocka_unit_test(test_bad_clients_do_not_end_the_run),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_socket_left_behind_is_replaced),
		cmocka_unit_test(test_file_in_the_way_stays),
	};
	sigset_t set;

	/* Before any thread: SIGTERM is for the session's signalfd alone. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
