/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding QEMU and its vCPU threads, in a made-up /proc. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backend/real/qemuproc.h"
#include "util/fs.h"

static const uint8_t uuid[16] = { 0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
#define UUID_TEXT	"ab010203-0405-0607-0809-0a0b0c0d0e0f"
#define OTHER_TEXT	"cd010203-0405-0607-0809-0a0b0c0d0e0f"

static char top[64];

static void put(const char *file, const char *text, size_t len)
{
	char path[PATH_MAX], folder[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top, file);
	strcpy(folder, path);
	*strrchr(folder, '/') = '\0';
	assert_int_equal(ebb_fs_mkdirs(folder, 0755), 0);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

#define PUT(file, text)	put(file, text, sizeof(text) - 1)

static int setup(void **state)
{
	(void)state;
	strcpy(top, "/tmp/test_io_qemuproc.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	PUT("100/cmdline", "qemu\0-name\0web\0-uuid\0" UUID_TEXT "\0-m\0" "1");
	PUT("101/cmdline", "qemu\0-name\0web\0-uuid\0" OTHER_TEXT "\0");
	/* Not an option's value, so no claim. */
	PUT("102/cmdline", "grep\0" UUID_TEXT "\0");
	PUT("self/cmdline", "x\0-uuid\0" UUID_TEXT "\0");
	PUT("100/task/100/comm", "qemu-system-x86\n");
	PUT("100/task/105/comm", "CPU 0/KVM\n");
	PUT("100/task/106/comm", "CPU 11/TCG\n");
	PUT("100/task/105/schedstat", "21474836480999 77999 1234567890123\n");
	PUT("100/task/106/schedstat", "\n");
	PUT("100/task/107/comm", "CPU 3/XEN\n");
	PUT("100/task/108/comm", "CPU 512/KVM\n");
	PUT("100/task/109/comm", "IO mon_iothread\n");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void test_scan(void **state)
{
	(void)state;
	assert_int_equal(ebb_qemuproc_find(top, top, "web", uuid), 100);
	assert_int_equal(ebb_qemuproc_find(top, top, "web", (uint8_t[16]){ 1 }), -ESRCH);
	/* Two that claim the same: neither is believed. */
	PUT("103/cmdline", "qemu\0-uuid\0" UUID_TEXT "\0");
	assert_int_equal(ebb_qemuproc_find(top, top, "web", uuid), -ENOTUNIQ);
}

static void test_pid_file(void **state)
{
	(void)state;
	PUT("103/cmdline", "qemu\0-uuid\0" UUID_TEXT "\0");
	PUT("qemu/web.pid", "100\n");
	assert_int_equal(ebb_qemuproc_find(top, top, "web", uuid), 100);
	/* Left over: the process has another uuid, or is gone. */
	PUT("qemu/web.pid", "101\n");
	assert_int_equal(ebb_qemuproc_find(top, top, "web", uuid), -ESRCH);
	PUT("qemu/web.pid", "999\n");
	assert_int_equal(ebb_qemuproc_find(top, top, "web", uuid), -ESRCH);
	PUT("qemu/web.pid", "none\n");
	assert_int_equal(ebb_qemuproc_find(top, top, "web", uuid), -ESRCH);
}

static void test_threads(void **state)
{
	struct ebb_qemuproc_thread t[8];
	int num = ebb_qemuproc_vcpus(top, 100, t, 8), first;

	(void)state;
	assert_int_equal(num, 2);
	first = t[0].vcpu == 0 ? 0 : 1;
	assert_int_equal(t[first].vcpu, 0);
	assert_int_equal(t[first].tid, 105);
	assert_int_equal(t[!first].vcpu, 11);
	assert_int_equal(t[!first].tid, 106);
	assert_int_equal(ebb_qemuproc_vcpus(top, 999, t, 8), -ENOENT);
	assert_int_equal(ebb_qemuproc_vcpu(top, 100, 11, 0), 106);
	assert_int_equal(ebb_qemuproc_vcpu(top, 100, 11, 106), 106);
	/* A wrong guess does no harm. */
	assert_int_equal(ebb_qemuproc_vcpu(top, 100, 11, 105), 106);
	assert_int_equal(ebb_qemuproc_vcpu(top, 100, 4, 0), -ESRCH);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

static void test_usage(void **state)
{
	uint64_t cpu_usec = 0, num_runs = 0, wait_usec = 0;

	(void)state;
	assert_int_equal(ebb_qemuproc_usage(top, 100, 105, &cpu_usec, &num_runs, &wait_usec), 0);
	assert_int_equal(cpu_usec, 21474836480u);
	assert_int_equal(num_runs, 1234567890123u);
	assert_int_equal(wait_usec, 77);
	assert_int_equal(ebb_qemuproc_usage(top, 100, 106, &cpu_usec, &num_runs, &wait_usec),
			 -EOPNOTSUPP);
	assert_int_equal(ebb_qemuproc_usage(top, 100, 107, &cpu_usec, &num_runs, &wait_usec),
			 -ENOENT);
	assert_int_equal(num_runs, 1234567890123u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(scan), TEST(pid_file), TEST(threads), TEST(usage),
	};

	return cmocka_run_group_tests_name("io/qemuproc", tests, NULL, NULL);
}
