// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Walks through the threads of the guest: see sweep.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "sweep.h"

#define NS_PER_MS	1000000ull

/* A child may be made between the look at its parent and the change to it. */
#define FIRST_PASSES	2

struct pass {
	struct ebb_sweep *sweep;
	struct ebb_isolate_cpus cpus;
	bool is_ending;
	size_t num_changed;
};

static void complain(struct ebb_sweep *sweep, const char *what, int error)
{
	if (!sweep->has_complained)
		ebb_log("cannot %s: %s%s", what, strerror(error),
			error == EPERM ? " (this takes CAP_SYS_NICE)" : "");
	sweep->has_complained = true;
}

/* ---- files ---- */

static int file_read(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, room - 1);
	if (n < 0) {
		n = -errno;
		close(fd);
		return (int)n;
	}
	close(fd);
	text[n] = 0;
	return (size_t)n < room - 1 ? 0 : -EINVAL;
}

/* The kernel's files take no notice of O_TRUNC; of others the end of a longer text would stay. */
static int file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	close(fd);
	return r;
}

static int list_read(const struct ebb_sweep *sweep, const char *name, struct ebb_isolate_set *ret)
{
	char path[PATH_MAX], text[4096];
	int r;

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/%s", sweep->root, name);
	r = file_read(path, text, sizeof(text));
	return r < 0 ? r : ebb_isolate_list_parse(text, ret);
}

static int startup_read(const struct ebb_dev_ops *ops, void *dev, struct ebb_isolate_set *ret)
{
	struct ebb_isolate_set startup = { { 0 } };
	struct ebb_cpu_list list;
	uint32_t start = 0;
	int r;

	do {
		list = (struct ebb_cpu_list){ .size = sizeof(list), .start = start };
		r = ops->ioctl(dev, EBB_IOC_CPU_LIST, &list);
		if (r < 0)
			return r;
		if (list.count > EBB_MAX_REQ_CPUS)
			return -EIO;
		for (uint32_t i = 0; i < list.count; i++)
			if (list.cpus[i].flags & EBB_CPU_STARTUP)
				ebb_isolate_set_add(&startup, list.cpus[i].cpu);
		start += list.count;
	} while (list.count > 0 && start < list.total && start < EBB_ISOLATE_MAX_CPUS);
	*ret = startup;
	return 0;
}

static int pass_init(struct pass *pass, struct ebb_sweep *sweep, bool is_ending)
{
	int r;

	*pass = (struct pass){ .sweep = sweep, .is_ending = is_ending };
	pass->cpus.startup = sweep->startup;
	r = list_read(sweep, "online", &pass->cpus.online);
	if (r == 0)
		r = list_read(sweep, "possible", &pass->cpus.possible);
	if (r < 0)
		complain(sweep, "read which CPUs there are", -r);
	return r;
}

/* The CPUs to allow instead of the allowed ones; NULL: no change. */
static const struct ebb_isolate_set *judge(const struct pass *pass,
					   const struct ebb_isolate_set *allowed, bool is_engine)
{
	if (pass->is_ending)
		return ebb_isolate_must_let_go(&pass->cpus, allowed, is_engine) ?
			       &pass->cpus.possible : NULL;
	return ebb_isolate_must_narrow(&pass->cpus, allowed) ? &pass->cpus.startup : NULL;
}

/* ---- threads ---- */

static void thread_handle(struct pass *pass, pid_t tid, bool is_engine)
{
	const struct ebb_isolate_set *wanted;
	struct ebb_isolate_set allowed;

	/* The C library clears what the kernel does not fill. */
	if (sched_getaffinity(tid, sizeof(allowed), (cpu_set_t *)allowed.words) < 0)
		return;
	wanted = judge(pass, &allowed, is_engine);
	if (!wanted)
		return;
	if (sched_setaffinity(tid, sizeof(*wanted), (const cpu_set_t *)wanted->words) == 0)
		pass->num_changed++;
	/* Threads end, and some of the kernel's are bound to a CPU for good. */
	else if (errno != ESRCH && errno != EINVAL)
		complain(pass->sweep, "keep threads on the startup CPUs", errno);
}

/* Next entry that is a number; 0 at the end. */
static pid_t number_next(DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		char *end;
		long number = strtol(entry->d_name, &end, 10);

		if (number > 0 && number <= INT_MAX && *end == 0)
			return (pid_t)number;
	}
	return 0;
}

/* One whose files can not be looked at is taken for an engine: it is left alone. */
static bool process_is_engine(const struct ebb_sweep *sweep, pid_t pid)
{
	char path[PATH_MAX], target[PATH_MAX];
	bool is_engine = false;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%d/fd", sweep->root, (int)pid);
	dir = opendir(path);
	if (!dir)
		return true;
	while (!is_engine && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = 0;
		is_engine = strcmp(target, sweep->device) == 0;
	}
	closedir(dir);
	return is_engine;
}

static void process_handle(struct pass *pass, pid_t pid)
{
	bool is_engine = pass->is_ending && process_is_engine(pass->sweep, pid);
	char path[PATH_MAX];
	pid_t tid;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%d/task", pass->sweep->root, (int)pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((tid = number_next(dir)))
		thread_handle(pass, tid, is_engine);
	closedir(dir);
}

static void threads_handle(struct pass *pass)
{
	char path[PATH_MAX];
	pid_t pid;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", pass->sweep->root);
	dir = opendir(path);
	if (!dir) {
		complain(pass->sweep, "look at the processes", errno);
		return;
	}
	while ((pid = number_next(dir)))
		process_handle(pass, pid);
	closedir(dir);
}

/* ---- what the kernel does ---- */

static int mask_handle(const struct pass *pass, const char *path)
{
	const struct ebb_isolate_set *wanted;
	char text[EBB_ISOLATE_TEXT_BYTES];
	struct ebb_isolate_set allowed;
	int r = file_read(path, text, sizeof(text));

	if (r == 0)
		r = ebb_isolate_mask_parse(text, &allowed);
	if (r < 0)
		return r;
	wanted = judge(pass, &allowed, false);
	if (!wanted)
		return 0;
	ebb_isolate_mask_format(wanted, text);
	return file_write(path, text);
}

static void masks_handle(struct pass *pass)
{
	static const char *const names[] = {
		"/sys/devices/virtual/workqueue/cpumask",
		"/proc/irq/default_smp_affinity",
	};
	const struct ebb_sweep *sweep = pass->sweep;
	char path[PATH_MAX];
	pid_t irq;
	DIR *dir;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int r;

		snprintf(path, sizeof(path), "%s%s", sweep->root, names[i]);
		r = mask_handle(pass, path);
		if (r < 0)
			complain(pass->sweep, "keep the kernel's work on the startup CPUs", -r);
	}
	snprintf(path, sizeof(path), "%s/proc/irq", sweep->root);
	dir = opendir(path);
	if (!dir)
		return;
	/* Interrupts that devices spread over CPUs by themselves refuse, which is as good. */
	while ((irq = number_next(dir))) {
		snprintf(path, sizeof(path), "%s/proc/irq/%d/smp_affinity", sweep->root, (int)irq);
		mask_handle(pass, path);
	}
	closedir(dir);
}

void ebb_sweep_tick(struct ebb_sweep *sweep, const struct ebb_dev_ops *ops, void *dev,
		    uint64_t now_ns)
{
	struct pass pass;
	int r;

	if (!dev || now_ns < sweep->next_ns)
		return;
	r = startup_read(ops, dev, &sweep->startup);
	/* That the device is gone is found, and said, elsewhere. */
	if (r < 0 && r != -ENODEV)
		complain(sweep, "read which CPUs are of the startup set", -r);
	if (r == 0)
		r = pass_init(&pass, sweep, false);
	sweep->next_ns = now_ns + EBB_SWEEP_EVERY_MS * NS_PER_MS;
	if (r < 0)
		return;
	/*
	 * Linux does not tell which CPUs that are not online a thread is allowed on.  As long
	 * as there is nothing to be kept off, once is enough.
	 */
	if (sweep->has_begun && ebb_isolate_set_is_within(&pass.cpus.online, &pass.cpus.startup))
		return;
	for (int i = 0; i < (sweep->has_begun ? 1 : FIRST_PASSES); i++)
		threads_handle(&pass);
	masks_handle(&pass);
	if (!sweep->has_begun)
		ebb_log("threads that do not ask for certain CPUs stay on the startup set");
	sweep->has_begun = true;
}

void ebb_sweep_end(struct ebb_sweep *sweep)
{
	struct pass pass;

	if (!sweep->has_begun || pass_init(&pass, sweep, true) < 0)
		return;
	threads_handle(&pass);
	masks_handle(&pass);
	ebb_log("let go of %zu threads", pass.num_changed);
}
