/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A busy thread with a promise beside 24 busy ones without, all on one emulated core.  What counts
 * is the thread's part of the CPU time that the core delivered: other programs of the machine may
 * take time from the core as a whole, but have no effect on that part.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/emulated/emuhost.h"
#include "backend/emulated/emureserve.h"
#include "tests/lib/emureserve_check.h"
#include "util/fs.h"

#define NUM_THREADS	25
/* The core has delivered so much when its division is judged. */
#define ENOUGH_USEC	900000u
#define MAX_TRIES	600
#define SHARE_PERMILLE	300
#define PERIOD_MS	500
/*
 * A maximum has periods of its own.  So the thread may have one of them more or less than the core
 * in that time, each with 300 thousandths of what the core delivers in a period.
 */
#define ONE_PERIOD	(300 * SHARE_PERMILLE * PERIOD_MS / ENOUGH_USEC)

struct check {
	struct ebb_emuhost *host;
	pid_t pid;
	pid_t tids[NUM_THREADS];
	char *text;
	size_t size;
	unsigned least;			/* of a half, thousandths of the core */
};

#define FAIL(c, ...)	(snprintf((c)->text, (c)->size, __VA_ARGS__), -1)

static void *spin(void *arg)
{
	pid_t tid = syscall(SYS_gettid);

	if (write(*(int *)arg, &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	for (volatile uint64_t n = 0;; n++)
		;
	return NULL;
}

static int start(struct check *c)
{
	int fds[2], rc = 0;

	if (pipe(fds) < 0)
		return -errno;
	c->pid = fork();
	if (c->pid == 0) {
		pthread_t t;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < NUM_THREADS; i++)
			if (pthread_create(&t, NULL, spin, &fds[1]))
				_exit(1);
		pause();
		_exit(0);
	}
	close(fds[1]);
	for (int i = 0; rc == 0 && i < NUM_THREADS; i++)
		if (c->pid < 0 || read(fds[0], &c->tids[i], sizeof(pid_t)) != sizeof(pid_t))
			rc = -EIO;
	close(fds[0]);
	return rc;
}

static int used_usec(const struct check *c, int i, uint64_t *ret)
{
	unsigned long long ns;
	char path[80], text[128];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", c->pid, c->tids[i]);
	if (ebb_fs_read(path, text, sizeof(text), NULL) < 0 || sscanf(text, "%llu", &ns) != 1)
		return -EIO;
	*ret = ns / 1000;
	return 0;
}

static int read_used(const struct check *c, uint64_t *ret_first, uint64_t *ret_all)
{
	uint64_t one;

	*ret_all = 0;
	for (int i = 0; i < NUM_THREADS; i++) {
		if (used_usec(c, i, &one) < 0)
			return -EIO;
		*ret_all += one;
		if (i == 0)
			*ret_first = one;
	}
	return 0;
}

/* The first thread's part of what the core delivers, in thousandths. */
static int measure(struct check *c, uint32_t *ret_permille)
{
	uint64_t first, all, first_now, all_now;

	/* What the scheduler owes from before is paid back soon. */
	usleep(200000);
	if (read_used(c, &first, &all) < 0)
		return FAIL(c, "the load can not be measured");
	for (int n = 0; n < MAX_TRIES; n++) {
		usleep(100000);
		if (read_used(c, &first_now, &all_now) < 0)
			return FAIL(c, "the load can not be measured");
		if (all_now - all >= ENOUGH_USEC) {
			*ret_permille = (uint32_t)((first_now - first) * 1000 / (all_now - all));
			return 0;
		}
	}
	return FAIL(c, "the core got %llu us only in %u s", (unsigned long long)(all_now - all),
		    MAX_TRIES / 10);
}

static int reserve(struct check *c, uint16_t keep, uint16_t rest, uint16_t max)
{
	const struct ebb_emureserve r = { .keep = keep, .rest = rest, .max = max };
	uint32_t core, rank;
	int rc = ebb_emuhost_reserve(c->host, c->tids[0], 0, 0, &r);

	if (rc < 0)
		return FAIL(c, "a promise of %u: %s", keep, strerror(-rc));
	for (int i = 0; i < NUM_THREADS; i++)
		if (ebb_emuhost_where(c->host, c->tids[i], &core, &rank) < 0 || core || rank)
			return FAIL(c, "with a promise of %u thread %d is not on core 0", keep, i);
	return 0;
}

static int expect(struct check *c, const char *what, uint32_t least, uint32_t most, uint32_t *ret)
{
	if (measure(c, ret) < 0)
		return -1;
	if (*ret < least || *ret > most)
		return FAIL(c, "%s: %u permille of the core, should be %u to %u", what, *ret,
			    least, most);
	return 0;
}

/* The first thread leaves the core and comes back: its promise is still in force. */
static int come_back(struct check *c)
{
	if (ebb_emuhost_place(c->host, c->pid, c->tids[0], 1, 0) < 0 ||
	    ebb_emuhost_place(c->host, c->pid, c->tids[0], 0, 0) < 0)
		return FAIL(c, "the thread with a promise can not change cores");
	return 0;
}

/* Where nothing is promised, the core needs no groups. */
static int stay_plain(struct check *c)
{
	char path[80], text[1024];

	if (reserve(c, 0, 1000, 0) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/cgroup", c->pid, c->tids[0]);
	if (ebb_fs_read(path, text, sizeof(text), NULL) < 0 || !strstr(text, "/c0\n"))
		return FAIL(c, "without a promise the thread is not in the core's own group");
	return 0;
}

static int check_parts(struct check *c)
{
	uint32_t flat, kept, small, most, none;

	for (int i = 0; i < NUM_THREADS; i++)
		if (ebb_emuhost_place(c->host, c->pid, c->tids[i], 0, 0) < 0)
			return FAIL(c, "thread %d can not be placed", i);
	if (stay_plain(c) < 0 || expect(c, "no promises", 0, 100, &flat) < 0 ||
	    reserve(c, 500, 500, 0) < 0 || come_back(c) < 0 ||
	    expect(c, "50 per cent promised", c->least, 530, &kept) < 0 ||
	    reserve(c, 200, 800, 0) < 0 ||
	    expect(c, "20 per cent promised", c->least * 2 / 5 - 6, 230, &small) < 0 ||
	    reserve(c, 500, 500, 300) < 0 ||
	    expect(c, "at most 30 per cent", 300 - ONE_PERIOD, 300 + ONE_PERIOD, &most) < 0 ||
	    reserve(c, 0, 1000, 0) < 0 ||
	    expect(c, "no promise any more", 0, 100, &none) < 0)
		return -1;
	snprintf(c->text, c->size, "beside 24 busy threads: nothing promised %u permille, 500 "
		 "promised %u, 200 promised %u, at most 300 %u, no longer promised %u", flat, kept,
		 small, most, none);
	return 0;
}

int emureserve_check(const char *name, unsigned least, char *text, size_t size)
{
	/* Long periods: the end of each costs precision (emureserve.h). */
	const struct ebb_emuspec spec = {
		.sockets = 1, .cores = 2, .threads = 1, .share_permille = SHARE_PERMILLE,
		.period_ms = PERIOD_MS,
	};
	struct check c = { .text = text, .size = size, .least = least };
	struct ebb_err err = { "" };
	int rc = start(&c);

	if (rc < 0)
		rc = FAIL(&c, "can not start a load");
	else if (ebb_emuhost_create(&spec, name, &c.host, &err) < 0)
		rc = FAIL(&c, "creating the host: %s", err.text);
	else
		rc = check_parts(&c);
	if (c.pid > 0) {
		kill(c.pid, SIGKILL);
		waitpid(c.pid, NULL, 0);
	}
	if (ebb_emuhost_destroy(c.host, &err) < 0 && rc == 0)
		rc = FAIL(&c, "removing the host at the end: %s", err.text);
	return rc;
}
