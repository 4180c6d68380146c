/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A check of the emulated host with real load. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/emulated/cgroup.h"
#include "backend/emulated/emuhost.h"
#include "backend/emulated/emuslice.h"
#include "tests/lib/emuhost_check.h"
#include "util/clock.h"
#include "util/fs.h"

#define NUM_SPINNERS	2

/* A process with two threads that use all the CPU they get, like a QEMU with two busy vCPUs. */
struct load {
	pid_t pid;
	pid_t tids[NUM_SPINNERS];
};

struct check {
	struct ebb_emuhost *host;
	struct load load;
	char origin[PATH_MAX];		/* folder of the load before anything was done */
	char *text;
	size_t size;
};

#define FAIL(c, ...)	(snprintf((c)->text, (c)->size, __VA_ARGS__), -1)

static void *spinner(void *arg)
{
	pid_t tid = syscall(SYS_gettid);
	int fd = *(int *)arg;

	if (write(fd, &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	for (volatile uint64_t n = 0;; n++)
		;
	return NULL;
}

static int load_start(struct load *l)
{
	int fds[2];

	if (pipe(fds) < 0)
		return -errno;
	l->pid = fork();
	if (l->pid == 0) {
		pthread_t t[NUM_SPINNERS];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < NUM_SPINNERS; i++)
			if (pthread_create(&t[i], NULL, spinner, &fds[1]))
				_exit(1);
		pause();
		_exit(0);
	}
	close(fds[1]);
	for (int i = 0; l->pid > 0 && i < NUM_SPINNERS; i++)
		if (read(fds[0], &l->tids[i], sizeof(l->tids[i])) != sizeof(l->tids[i]))
			return -EIO;
	close(fds[0]);
	return l->pid > 0 ? 0 : -errno;
}

static void load_stop(struct load *l)
{
	if (l->pid > 0) {
		kill(l->pid, SIGKILL);
		waitpid(l->pid, NULL, 0);
	}
	l->pid = 0;
}

static int run_time_usec(const struct load *l, int i, uint64_t *ret)
{
	char path[80], text[128];
	unsigned long long ns;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", l->pid, l->tids[i]);
	if (ebb_fs_read(path, text, sizeof(text), NULL) < 0 || sscanf(text, "%llu", &ns) != 1)
		return -EIO;
	*ret = ns / 1000;
	return 0;
}

/* At most so many seconds until a busy machine leaves the load enough of one of them. */
#define MAX_SECONDS	60

/* CPU time that the threads have used, in us, and when the reading began and ended. */
struct usage {
	uint64_t begin, end, used[NUM_SPINNERS];
};

static int usage_read(const struct load *l, struct usage *ret)
{
	ret->begin = ebb_clock_mono_usec();
	for (int i = 0; i < NUM_SPINNERS; i++)
		if (run_time_usec(l, i, &ret->used[i]) < 0)
			return -EIO;
	ret->end = ebb_clock_mono_usec();
	return 0;
}

/* Thousandths of a CPU that each thread used from one reading to another. */
static void shares(const struct usage *from, const struct usage *to,
		   uint32_t ret_permille[NUM_SPINNERS])
{
	for (int i = 0; i < NUM_SPINNERS; i++)
		ret_permille[i] = (to->used[i] - from->used[i]) * 1000 /
				  (to->end - from->begin);
}

static int place(struct check *c, int i, uint32_t core, uint32_t rank)
{
	uint32_t at_core = 99, at_rank = 99;
	int rc = ebb_emuhost_place(c->host, c->load.pid, c->load.tids[i], core, rank);

	if (rc < 0)
		return FAIL(c, "placing thread %d on core %u: %s", i, core, strerror(-rc));
	rc = ebb_emuhost_where(c->host, c->load.tids[i], &at_core, &at_rank);
	if (rc < 0 || at_core != core || at_rank != rank)
		return FAIL(c, "thread %d was placed on %u.%u and is on %u.%u (%d)", i, core, rank,
			    at_core, at_rank, rc);
	return 0;
}

/* before: 0 where the kernel knows of no slices, in which case there is nothing to see. */
static int expect_slices(struct check *c, unsigned int before, unsigned int want)
{
	for (int i = 0; i <= NUM_SPINNERS; i++) {
		pid_t tid = i < NUM_SPINNERS ? c->load.tids[i] : c->load.pid;
		unsigned int nsec = ebb_emuslice_get(tid);

		if (before && nsec != want)
			return FAIL(c, "thread %d has slices of %u ns, should be %u", i, nsec,
				    want);
	}
	return 0;
}

/* What is no vCPU runs in the host's own group, beside the cores. */
static int expect_adopted(struct check *c, const struct ebb_cgroup *cg, const char *host)
{
	char folder[PATH_MAX];

	if (ebb_cgroup_of_thread(cg, c->load.pid, "cpu", folder, sizeof(folder)) < 0)
		return FAIL(c, "process %d has no group", c->load.pid);
	if (strcmp(folder, host) != 0)
		return FAIL(c, "the other threads are in %s, should be in %s", folder, host);
	return 0;
}

/*
 * The CPU time used must be near want: not far below it in one of many seconds, and not above it in
 * all seconds together. A single second may be above: where a hypervisor stops the CPU, the kernel
 * counts the pause as used, and takes it from the quota of the periods that follow.
 * is_sum: of both threads together, else of each by itself.
 */
static int expect_shares(struct check *c, const char *what, bool is_sum, uint32_t want,
			 uint32_t ret_used[NUM_SPINNERS])
{
	struct usage first, before, now;
	uint32_t least = 0, most = 0;

	if (usage_read(&c->load, &first) < 0)
		return FAIL(c, "the load can not be measured");
	before = first;
	for (int n = 0; n < MAX_SECONDS; n++) {
		uint32_t second[NUM_SPINNERS], all[NUM_SPINNERS];

		usleep(1000000);
		if (usage_read(&c->load, &now) < 0)
			return FAIL(c, "the load can not be measured");
		shares(&before, &now, second);
		shares(&first, &now, all);
		before = now;
		least = is_sum ? second[0] + second[1] : MIN(second[0], second[1]);
		most = is_sum ? all[0] + all[1] : MAX(all[0], all[1]);
		memcpy(ret_used, second, sizeof(second));
		if (least >= want / 2 && most <= want * 130 / 100)
			return 0;
	}
	return FAIL(c, "%s used %u permille of a CPU, %u in the last second, should be about %u",
		    what, most, least, want);
}

static int check_quota(struct check *c)
{
	uint32_t apart[NUM_SPINNERS], together[NUM_SPINNERS], shared[NUM_SPINNERS];

	if (place(c, 0, 0, 0) < 0 || place(c, 1, 1, 1) < 0 ||
	    expect_shares(c, "a thread alone on a core", false, 200, apart) < 0)
		return -1;
	if (place(c, 1, 0, 1) < 0 ||
	    expect_shares(c, "both threads of a core", true, 260, together) < 0)
		return -1;
	if (place(c, 1, 0, 0) < 0 ||
	    expect_shares(c, "two vCPUs on one thread", true, 200, shared) < 0)
		return -1;
	snprintf(c->text, c->size,
		 "share 200: alone %u and %u, both threads of a core %u, on one thread %u",
		 apart[0], apart[1], together[0] + together[1], shared[0] + shared[1]);
	return 0;
}

static int check_refusals(struct check *c)
{
	uint32_t core, rank;
	int rc;

	rc = ebb_emuhost_place(c->host, c->load.pid, c->load.tids[0], 2, 0);
	if (rc != -EINVAL)
		return FAIL(c, "placing on core 2 of 2: %d, should be -EINVAL", rc);
	rc = ebb_emuhost_place(c->host, c->load.pid, c->load.tids[0], 0, 2);
	if (rc != -EINVAL)
		return FAIL(c, "placing on thread 2 of 2: %d, should be -EINVAL", rc);
	rc = ebb_emuhost_where(c->host, getpid(), &core, &rank);
	if (rc != -ENOENT)
		return FAIL(c, "asking for a thread that is elsewhere: %d, should be -ENOENT", rc);
	return 0;
}

/* A restarted agent finds its host as it was; an agent with another one starts afresh. */
static int check_adoption(struct check *c, const char *name, const struct ebb_emuspec *spec)
{
	struct ebb_emuspec other = *spec;
	struct ebb_err err = { "" };
	uint32_t core, rank;
	int rc;

	if (place(c, 0, 1, 0) < 0)
		return -1;
	ebb_emuhost_abandon(c->host);
	c->host = NULL;
	rc = ebb_emuhost_create(spec, name, &c->host, &err);
	if (rc < 0)
		return FAIL(c, "adopting the host: %s", err.text);
	rc = ebb_emuhost_where(c->host, c->load.tids[0], &core, &rank);
	if (rc < 0 || core != 1 || rank != 0)
		return FAIL(c, "adoption moved a thread (%d)", rc);
	ebb_emuhost_abandon(c->host);
	c->host = NULL;
	other.cores++;
	rc = ebb_emuhost_create(&other, name, &c->host, &err);
	if (rc < 0)
		return FAIL(c, "replacing the host: %s", err.text);
	rc = ebb_emuhost_where(c->host, c->load.tids[0], &core, &rank);
	if (rc != -ENOENT)
		return FAIL(c, "a replaced host still holds a thread (%d)", rc);
	return 0;
}

static int check_gone(struct check *c, const char *name)
{
	struct ebb_cgroup cg;
	char folder[PATH_MAX], host[PATH_MAX + 64], *text;
	struct ebb_err err = { "" };
	unsigned int before = ebb_emuslice_get(c->load.pid);
	struct stat st;
	pid_t tid;

	if (ebb_fs_read_all("/proc/self/mountinfo", 1 << 20, &text) < 0 ||
	    ebb_cgroup_find(text, &cg, &err) < 0)
		return FAIL(c, "finding the hierarchy again: %s", err.text);
	free(text);
	snprintf(host, sizeof(host), "%s/%s", cg.mount, name);
	if (place(c, 0, 0, 0) < 0 || place(c, 1, 1, 1) < 0 || expect_adopted(c, &cg, host) < 0 ||
	    expect_slices(c, before, EBB_EMUSLICE_NSEC) < 0)
		return -1;
	if (ebb_emuhost_destroy(c->host, &err) < 0)
		return FAIL(c, "destroying the host: %s", err.text);
	c->host = NULL;
	if (stat(host, &st) == 0)
		return FAIL(c, "%s is still there", host);
	/* The spinners and what is neither. */
	for (int i = 0; i <= NUM_SPINNERS; i++) {
		tid = i < NUM_SPINNERS ? c->load.tids[i] : c->load.pid;
		if (ebb_cgroup_of_thread(&cg, tid, "cpu", folder, sizeof(folder)) < 0)
			return FAIL(c, "thread %d has no group", i);
		if (strcmp(folder, c->origin) != 0)
			return FAIL(c, "thread %d came back to %s, was in %s", i, folder,
				    c->origin);
	}
	return expect_slices(c, before, before);
}

/* The load begins in a group of its own, as under libvirt, not in the outermost one. */
static int make_origin(struct check *c, const char *name)
{
	struct ebb_err err = { "" };
	struct ebb_cgroup cg;
	char path[PATH_MAX + 64], pid[16], *text;
	int rc;

	if (ebb_fs_read_all("/proc/self/mountinfo", 1 << 20, &text) < 0)
		return FAIL(c, "no /proc/self/mountinfo");
	rc = ebb_cgroup_find(text, &cg, &err);
	free(text);
	if (rc < 0)
		return FAIL(c, "%s", err.text);
	snprintf(c->origin, sizeof(c->origin), "%.3000s/%s-origin", cg.mount, name);
	if (mkdir(c->origin, 0755) < 0)
		return FAIL(c, "%s: %s", c->origin, strerror(errno));
	snprintf(path, sizeof(path), "%s/cgroup.procs", c->origin);
	snprintf(pid, sizeof(pid), "%d", c->load.pid);
	rc = ebb_fs_write(path, pid);
	return rc < 0 ? FAIL(c, "%s: %s", path, strerror(-rc)) : 0;
}

static void remove_origin(struct check *c)
{
	/* Its processes have been killed, which takes them out of their groups a little later. */
	for (int tries = 0; c->origin[0] && tries < 6000 && rmdir(c->origin) < 0; tries++)
		usleep(10000);
}

int emuhost_check(const char *name, char *text, size_t size)
{
	const struct ebb_emuspec spec = {
		.sockets = 2, .cores = 1, .threads = 2, .share_permille = 200,
		.period_ms = EBB_EMUSPEC_DEFAULT_PERIOD_MS};
	struct check c = { .text = text, .size = size };
	struct ebb_err err = { "" };
	int rc = -1;

	if (load_start(&c.load) < 0)
		return FAIL(&c, "can not start a load");
	if (make_origin(&c, name) < 0)
		goto out;
	rc = ebb_emuhost_create(&spec, name, &c.host, &err);
	if (rc < 0) {
		rc = FAIL(&c, "creating the host: %s", err.text);
		goto out;
	}
	rc = check_refusals(&c);
	if (rc == 0)
		rc = check_gone(&c, name);
	if (rc == 0 && ebb_emuhost_create(&spec, name, &c.host, &err) < 0)
		rc = FAIL(&c, "creating the host again: %s", err.text);
	if (rc == 0)
		rc = check_adoption(&c, name, &spec);
	if (rc == 0)
		rc = check_quota(&c);
out:
	load_stop(&c.load);
	remove_origin(&c);
	if (ebb_emuhost_destroy(c.host, &err) < 0 && rc == 0)
		rc = FAIL(&c, "removing the host at the end: %s", err.text);
	return rc;
}
