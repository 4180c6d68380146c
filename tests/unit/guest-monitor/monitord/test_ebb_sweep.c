// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sweep over threads and the kernel's masks, with folders of the test's own
 * in place of /proc and /sys: they name processes of the test only.
 */
#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/monitord/sweep.h"

#define DEVICE		"/dev/of-this-test"
#define SEC		1000000000ull
#define WORKQUEUE	"sys/devices/virtual/workqueue/cpumask"
#define IRQ_DEFAULT	"proc/irq/default_smp_affinity"

enum { FREE, PINNED, ENGINE, NUM_PROCESSES };

struct rig {
	char root[64];
	cpu_set_t all;			/* that the test may use: what is online */
	int startup, last;		/* the same on a machine with one CPU */
	pid_t pids[NUM_PROCESSES];
	struct ebb_sweep sweep;
};

/* What the device answers. */
static uint32_t startup_cpu;
static int list_error;

static int list_answer(void *dev, unsigned long cmd, void *arg)
{
	struct ebb_cpu_list *list = arg;

	(void)dev;
	assert_int_equal(cmd, EBB_IOC_CPU_LIST);
	if (list_error)
		return list_error;
	list->count = list->start == 0 ? 2 : 0;
	list->total = 2;
	if (list->count == 0)
		return 0;
	list->cpus[0] = (struct ebb_cpu){ .cpu = startup_cpu + 1, .flags = EBB_CPU_LENT };
	list->cpus[1] = (struct ebb_cpu){ .cpu = startup_cpu, .flags = EBB_CPU_STARTUP };
	return 0;
}

static const struct ebb_dev_ops ops = { .ioctl = list_answer };

static void folders_make(const struct rig *rig, const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", rig->root, path);
	for (char *p = strchr(full + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (mkdir(full, 0700) < 0)
			assert_int_equal(errno, EEXIST);
		*p = '/';
	}
}

static void file_set(const struct rig *rig, const char *path, const char *text)
{
	char full[256];
	FILE *f;

	folders_make(rig, path);
	snprintf(full, sizeof(full), "%s/%s", rig->root, path);
	f = fopen(full, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static struct ebb_isolate_set mask_get(const struct rig *rig, const char *path)
{
	struct ebb_isolate_set set;
	char full[256], text[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", rig->root, path);
	f = fopen(full, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_int_equal(ebb_isolate_mask_parse(text, &set), 0);
	return set;
}

static cpu_set_t only(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return set;
}

static bool is_allowed(const struct rig *rig, int process, const cpu_set_t *expected)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(rig->pids[process], sizeof(set), &set), 0);
	return CPU_EQUAL(&set, expected);
}

static void process_begin(struct rig *rig, int process, const cpu_set_t *allowed)
{
	pid_t pid = fork();
	char path[256], full[512];

	assert_true(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	rig->pids[process] = pid;
	assert_int_equal(sched_setaffinity(pid, sizeof(*allowed), allowed), 0);
	snprintf(path, sizeof(path), "proc/%d/task/%d/", (int)pid, (int)pid);
	folders_make(rig, path);
	snprintf(path, sizeof(path), "proc/%d/fd/", (int)pid);
	folders_make(rig, path);
	snprintf(full, sizeof(full), "%s/%s3", rig->root, path);
	assert_int_equal(symlink(process == ENGINE ? DEVICE : "/dev/null", full), 0);
}

static void sets_tell(struct rig *rig)
{
	char list[CPU_SETSIZE * 5] = "";
	size_t len = 0;

	rig->startup = -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &rig->all))
			continue;
		if (rig->startup < 0)
			rig->startup = cpu;
		rig->last = cpu;
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%d", len ? "," : "",
					cpu);
	}
	startup_cpu = (uint32_t)rig->startup;
	list_error = 0;
	file_set(rig, "sys/devices/system/cpu/online", list);
	file_set(rig, "sys/devices/system/cpu/possible", list);
}

/* With a word in front, as where more CPUs are possible. */
static void mask_set(const struct rig *rig, const char *path, const cpu_set_t *cpus)
{
	char text[EBB_ISOLATE_TEXT_BYTES], longer[EBB_ISOLATE_TEXT_BYTES + 16];
	struct ebb_isolate_set set = { { 0 } };

	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, cpus))
			ebb_isolate_set_add(&set, cpu);
	ebb_isolate_mask_format(&set, text);
	snprintf(longer, sizeof(longer), "00000000,%s", text);
	file_set(rig, path, longer);
}

static int rig_make(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	cpu_set_t one;

	assert_non_null(rig);
	strcpy(rig->root, "/tmp/ebb-sweep.XXXXXX");
	assert_non_null(mkdtemp(rig->root));
	assert_int_equal(sched_getaffinity(0, sizeof(rig->all), &rig->all), 0);
	sets_tell(rig);
	mask_set(rig, WORKQUEUE, &rig->all);
	mask_set(rig, IRQ_DEFAULT, &rig->all);
	mask_set(rig, "proc/irq/7/smp_affinity", &rig->all);
	process_begin(rig, FREE, &rig->all);
	one = only(rig->last);
	process_begin(rig, PINNED, &one);
	one = only(rig->startup);
	process_begin(rig, ENGINE, &one);
	/* Named like a process, and gone. */
	folders_make(rig, "proc/2147483646/task/2147483646/");
	file_set(rig, "proc/uptime", "1.0 1.0\n");
	rig->sweep.root = rig->root;
	rig->sweep.device = DEVICE;
	*state = rig;
	return 0;
}

static int entry_remove(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static int rig_remove(void **state)
{
	struct rig *rig = *state;
	int r;

	for (int i = 0; i < NUM_PROCESSES; i++) {
		kill(rig->pids[i], SIGKILL);
		waitpid(rig->pids[i], NULL, 0);
	}
	r = nftw(rig->root, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
	free(rig);
	return r;
}

static void expect_mask(const struct rig *rig, const char *path, const cpu_set_t *expected)
{
	struct ebb_isolate_set set = mask_get(rig, path), cpus = { { 0 } };

	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, expected))
			ebb_isolate_set_add(&cpus, cpu);
	assert_memory_equal(&set, &cpus, sizeof(set));
}

static void expect_masks(const struct rig *rig, const cpu_set_t *expected)
{
	expect_mask(rig, WORKQUEUE, expected);
	expect_mask(rig, IRQ_DEFAULT, expected);
	expect_mask(rig, "proc/irq/7/smp_affinity", expected);
}

static void narrows_and_lets_go(void **state)
{
	struct rig *rig = *state;
	cpu_set_t home = only(rig->startup), last = only(rig->last);

	ebb_sweep_tick(&rig->sweep, &ops, rig, SEC);
	assert_true(is_allowed(rig, FREE, &home));
	assert_true(is_allowed(rig, PINNED, rig->last == rig->startup ? &home : &last));
	assert_true(is_allowed(rig, ENGINE, &home));
	expect_masks(rig, &home);

	ebb_sweep_end(&rig->sweep);
	assert_true(is_allowed(rig, FREE, &rig->all));
	assert_true(is_allowed(rig, PINNED, &last));
	assert_true(is_allowed(rig, ENGINE, &home));
	expect_masks(rig, &rig->all);
}

static void goes_on_after_a_killed_one(void **state)
{
	struct rig *rig = *state;
	struct ebb_sweep next = { .root = rig->root, .device = DEVICE };
	cpu_set_t home = only(rig->startup);

	ebb_sweep_tick(&rig->sweep, &ops, rig, SEC);
	ebb_sweep_tick(&next, &ops, rig, SEC);
	assert_true(is_allowed(rig, FREE, &home));
	ebb_sweep_end(&next);
	assert_true(is_allowed(rig, FREE, &rig->all));
	expect_masks(rig, &rig->all);
}

static void comes_back_only_when_it_is_time(void **state)
{
	struct rig *rig = *state;
	cpu_set_t home = only(rig->startup);

	ebb_sweep_tick(&rig->sweep, &ops, rig, SEC);
	assert_int_equal(sched_setaffinity(rig->pids[FREE], sizeof(rig->all), &rig->all), 0);
	ebb_sweep_tick(&rig->sweep, &ops, rig, SEC + EBB_SWEEP_EVERY_MS * 1000000ull - 1);
	assert_true(is_allowed(rig, FREE, &rig->all));
	ebb_sweep_tick(&rig->sweep, &ops, rig, SEC + EBB_SWEEP_EVERY_MS * 1000000ull);
	assert_true(is_allowed(rig, FREE, &home));
}

static void does_nothing_without_a_device(void **state)
{
	struct rig *rig = *state;

	ebb_sweep_tick(&rig->sweep, &ops, NULL, SEC);
	list_error = -ENODEV;
	ebb_sweep_tick(&rig->sweep, &ops, rig, SEC);
	assert_true(is_allowed(rig, FREE, &rig->all));
	expect_masks(rig, &rig->all);
	ebb_sweep_end(&rig->sweep);
	assert_true(is_allowed(rig, FREE, &rig->all));
}

/* Neither the list of CPUs nor a mask is what it should be. */
static void bears_files_that_make_no_sense(void **state)
{
	struct rig *rig = *state;

	file_set(rig, WORKQUEUE, "what?\n");
	file_set(rig, "sys/devices/system/cpu/online", "all of them\n");
	ebb_sweep_tick(&rig->sweep, &ops, rig, SEC);
	assert_true(is_allowed(rig, FREE, &rig->all));
	sets_tell(rig);
	ebb_sweep_tick(&rig->sweep, &ops, rig, SEC + EBB_SWEEP_EVERY_MS * 1000000ull);
	ebb_sweep_end(&rig->sweep);
	assert_true(is_allowed(rig, FREE, &rig->all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(narrows_and_lets_go, rig_make, rig_remove),
		cmocka_unit_test_setup_teardown(goes_on_after_a_killed_one, rig_make, rig_remove),
		cmocka_unit_test_setup_teardown(comes_back_only_when_it_is_time, rig_make,
						rig_remove),
		cmocka_unit_test_setup_teardown(does_nothing_without_a_device, rig_make,
						rig_remove),
		cmocka_unit_test_setup_teardown(bears_files_that_make_no_sense, rig_make,
						rig_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
