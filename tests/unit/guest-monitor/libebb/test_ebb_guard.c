// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Guarded sections: real SIGBUS, on a file that ends before its mapping does.
 *
 * The handler is one for the process and stays, and cmocka has one of its own for
 * each test: so every case runs in a child.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/libebb/guard.h"
#include "guest-monitor/libebb/ebb.h"

#define AREA_BYTES	(64 * 4096ul)
#define NUM_THREADS	4
#define ROUNDS		2000
#define EXIT_DONE	17

/* In a child, where cmocka's would return to the parent's tests. */
#define MUST(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			_exit(1); \
		} \
	} while (0)

/* What is touched at the start is there; the second half of it is not. */
static char *area_map(size_t there_bytes)
{
	int fd = memfd_create("guard", MFD_CLOEXEC);
	char *area;

	MUST(fd >= 0 && ftruncate(fd, (off_t)there_bytes) == 0);
	area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(area != MAP_FAILED);
	close(fd);
	return area;
}

static char *lease_map(void)
{
	char *area = area_map(AREA_BYTES / 2);

	MUST(ebb_guard_range_add(area, AREA_BYTES) == 0);
	return area;
}

static void lease_unmap(char *area)
{
	ebb_guard_range_remove(area);
	munmap(area, AREA_BYTES);
}

static void touch(void *arg)
{
	*(volatile char *)arg += 1;
}

static void nothing_wrong(void)
{
	char *area = lease_map();
	void *addr = &area;

	MUST(ebb_mem_guard_run(touch, area, &addr) == 0);
	MUST(addr == &area);
	MUST(area[0] == 1);
	lease_unmap(area);
}

static void address_is_told(void)
{
	char *area = lease_map();
	char *gone = area + AREA_BYTES / 2 + 4096 + 123;
	void *addr = NULL;

	for (int i = 0; i < 100; i++) {
		MUST(ebb_mem_guard_run(touch, gone + i, &addr) == -EFAULT);
		MUST(addr == gone + i);
	}
	MUST(ebb_mem_guard_run(touch, gone, NULL) == -EFAULT);
	lease_unmap(area);
}

struct nest {
	char *gone;
	int inner_r;
	void *inner_addr;
	int is_after;
};

static void inner_then_gone(void *arg)
{
	struct nest *nest = arg;

	nest->inner_r = ebb_mem_guard_run(touch, nest->gone, &nest->inner_addr);
	nest->is_after = 1;
	touch(nest->gone + 1);
	nest->is_after = 2;
}

static void sections_nest(void)
{
	char *area = lease_map();
	struct nest nest = { .gone = area + AREA_BYTES - 4096 };
	void *addr;

	MUST(ebb_mem_guard_run(inner_then_gone, &nest, &addr) == -EFAULT);
	MUST(nest.inner_r == -EFAULT);
	MUST(nest.inner_addr == nest.gone);
	MUST(nest.is_after == 1);
	MUST(addr == nest.gone + 1);
	lease_unmap(area);
}

static void signals_are_as_before(void)
{
	char *area = lease_map();
	sigset_t before, after;

	sigemptyset(&before);
	sigaddset(&before, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &before, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	MUST(ebb_mem_guard_run(touch, area + AREA_BYTES - 1, NULL) == -EFAULT);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int signo = 1; signo < SIGRTMIN; signo++)
		MUST(sigismember(&after, signo) == sigismember(&before, signo));
	lease_unmap(area);
}

/* ---- threads ---- */

struct job {
	char *shared;			/* a lease of all */
	unsigned int seed;
	int num_wrong;
};

static void *toucher(void *arg)
{
	struct job *job = arg;

	for (int i = 0; i < ROUNDS; i++) {
		/* Of the shared one only what is not there: the rest would be a race. */
		int is_shared = i % 16 > 0;
		size_t at = (size_t)rand_r(&job->seed) % AREA_BYTES;
		char *area = is_shared ? job->shared : lease_map();
		void *addr = NULL;
		int expected, r;

		if (is_shared)
			at |= AREA_BYTES / 2;
		expected = at < AREA_BYTES / 2 ? 0 : -EFAULT;
		r = ebb_mem_guard_run(touch, area + at, &addr);
		if (r != expected || (r < 0 && addr != area + at))
			job->num_wrong++;
		if (!is_shared)
			lease_unmap(area);
	}
	return NULL;
}

static void threads_do_not_disturb_each_other(void)
{
	char *shared = lease_map();
	struct job jobs[NUM_THREADS] = { 0 };
	pthread_t threads[NUM_THREADS];

	for (int i = 0; i < NUM_THREADS; i++) {
		jobs[i].shared = shared;
		jobs[i].seed = (unsigned int)i;
		MUST(pthread_create(&threads[i], NULL, toucher, &jobs[i]) == 0);
	}
	for (int i = 0; i < NUM_THREADS; i++) {
		pthread_join(threads[i], NULL);
		MUST(jobs[i].num_wrong == 0);
	}
	lease_unmap(shared);
}

static void many_ranges(void)
{
	enum { NUM = 300 };
	char *areas[NUM];

	for (int i = 0; i < NUM; i++)
		areas[i] = lease_map();
	for (int i = 0; i < NUM; i += 2)
		lease_unmap(areas[i]);
	for (int i = 1; i < NUM; i += 2)
		MUST(ebb_mem_guard_run(touch, areas[i] + AREA_BYTES - 1, NULL) == -EFAULT);
	for (int i = 1; i < NUM; i += 2)
		lease_unmap(areas[i]);
}

/* ---- what is not ours ---- */

/* Runs it in a child, whose handler is not set yet; returns the status. */
static int in_child(void (*fn)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		/* Neither cmocka's nor a sanitizer's. */
		signal(SIGBUS, SIG_DFL);
		fn();
		_exit(EXIT_DONE);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void unguarded(void)
{
	char *area = lease_map();

	ebb_mem_guard_install();
	touch(area + AREA_BYTES - 1);
}

static void guarded_elsewhere(void)
{
	/* Not a lease. */
	ebb_mem_guard_run(touch, area_map(0), NULL);
}

static void after_removal(void)
{
	char *area = lease_map();

	ebb_guard_range_remove(area);
	ebb_mem_guard_run(touch, area + AREA_BYTES - 1, NULL);
}

static void after_section(void)
{
	char *area = lease_map();

	if (ebb_mem_guard_run(touch, area + AREA_BYTES - 1, NULL) == -EFAULT)
		touch(area + AREA_BYTES - 1);
}

static void raise_it(void *arg)
{
	(void)arg;
	raise(SIGBUS);
}

static void sent_in_section(void)
{
	ebb_mem_guard_run(raise_it, NULL, NULL);
}

static void without_earlier_handler_it_kills(void **state)
{
	static void (*const all[])(void) = {
		unguarded, guarded_elsewhere, after_removal, after_section, sent_in_section,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int status = in_child(all[i]);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS)
			fail_msg("case %zu ended with %#x", i, status);
	}
}

static char *expected_addr;

static void earlier_handler(int signo, siginfo_t *info, void *context)
{
	sigset_t mask;

	(void)context;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	/* As it would be called without us: its mask, and the signal itself, are blocked. */
	if (signo == SIGBUS && info->si_addr == expected_addr && sigismember(&mask, SIGUSR2) &&
	    sigismember(&mask, SIGBUS))
		_exit(EXIT_DONE);
	_exit(1);
}

static void earlier_set(void)
{
	struct sigaction act = { .sa_sigaction = earlier_handler, .sa_flags = SA_SIGINFO };

	sigaddset(&act.sa_mask, SIGUSR2);
	sigaction(SIGBUS, &act, NULL);
}

static void earlier_gets_others(void)
{
	char *lease = lease_map();

	earlier_set();
	MUST(ebb_mem_guard_run(touch, lease + AREA_BYTES - 1, NULL) == -EFAULT);
	expected_addr = area_map(0) + 77;
	ebb_mem_guard_run(touch, expected_addr, NULL);
	_exit(1);
}

static void earlier_gets_unguarded(void)
{
	earlier_set();
	ebb_mem_guard_install();
	expected_addr = lease_map() + AREA_BYTES - 1;
	touch(expected_addr);
	_exit(1);
}

static volatile sig_atomic_t num_seen;
static sigjmp_buf way_out;

static void plain_handler(int signo)
{
	(void)signo;
	num_seen++;
	siglongjmp(way_out, 1);
}

/* An earlier handler of the other kind, that jumps out, over and over. */
static void earlier_jumps(void)
{
	char *lease = lease_map(), *other = area_map(0);

	signal(SIGBUS, plain_handler);
	ebb_mem_guard_install();
	for (volatile int i = 0; i < 10; i++) {
		if (sigsetjmp(way_out, 1) == 0)
			touch(other + i);
		MUST(ebb_mem_guard_run(touch, lease + AREA_BYTES - 1, NULL) == -EFAULT);
	}
	MUST(num_seen == 10);
}

static void counting_handler(int signo)
{
	(void)signo;
	num_seen++;
}

static void earlier_gets_sent_ones(void)
{
	signal(SIGBUS, counting_handler);
	ebb_mem_guard_run(raise_it, NULL, NULL);
	ebb_mem_guard_run(raise_it, NULL, NULL);
	MUST(num_seen == 2);
}

static void ignored_ones_stay_ignored(void)
{
	signal(SIGBUS, SIG_IGN);
	ebb_mem_guard_install();
	raise(SIGBUS);
}

static void earlier_handler_is_called(void **state)
{
	static void (*const all[])(void) = {
		earlier_gets_others, earlier_gets_unguarded, earlier_jumps,
		earlier_gets_sent_ones, ignored_ones_stay_ignored,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int status = in_child(all[i]);

		if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_DONE)
			fail_msg("case %zu ended with %#x", i, status);
	}
}

static void ignored_fault(void)
{
	signal(SIGBUS, SIG_IGN);
	ebb_mem_guard_install();
	touch(area_map(0));
}

static void ignoring_does_not_help_against_a_fault(void **state)
{
	int status = in_child(ignored_fault);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

/* A thread whose stack is the alternate one when the signal comes. */
static void *on_alternate_stack(void *arg)
{
	stack_t stack = { .ss_size = 256 * 1024 };
	int r = 0;

	stack.ss_sp = malloc(stack.ss_size);
	sigaltstack(&stack, NULL);
	for (int i = 0; i < 100 && r == 0; i++)
		r = ebb_mem_guard_run(touch, arg, NULL) == -EFAULT ? 0 : 1;
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
	return r ? arg : NULL;
}

static void works_on_an_alternate_stack(void)
{
	char *area = lease_map();
	pthread_t thread;
	void *ret;

	MUST(pthread_create(&thread, NULL, on_alternate_stack, area + AREA_BYTES - 1) == 0);
	pthread_join(thread, &ret);
	MUST(!ret);
	lease_unmap(area);
}

static void sections_end_where_they_should(void **state)
{
	static void (*const all[])(void) = {
		nothing_wrong, address_is_told, sections_nest, signals_are_as_before,
		threads_do_not_disturb_each_other, many_ranges, works_on_an_alternate_stack,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int status = in_child(all[i]);

		if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_DONE)
			fail_msg("case %zu ended with %#x", i, status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_end_where_they_should),
		cmocka_unit_test(without_earlier_handler_it_kills),
		cmocka_unit_test(earlier_handler_is_called),
		cmocka_unit_test(ignoring_does_not_help_against_a_fault),
	};

	return cmocka_run_group_tests_name("ebb_guard", tests, NULL, NULL);
}
