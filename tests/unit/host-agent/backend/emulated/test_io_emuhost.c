/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Emulated hosts: the description, finding cgroups in text, and real groups where we are root. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "backend/emulated/cgroup.h"
#include "backend/emulated/emuspec.h"
#include "tests/lib/emuhost_check.h"
#include "tests/lib/emureserve_check.h"

static void test_spec_good(void **state)
{
	static const struct {
		const char *text;
		struct ebb_emuspec spec;
		uint32_t quota, core_quota, period;
	} cases[] = {
		{ "emulated:2x4x1@0.25", { 2, 4, 1, 250, 10 }, 2500, 2500, 10000 },
		{ "emulated:1x1x2@0.2", { 1, 1, 2, 200, 10 }, 2000, 2600, 10000 },
		{ "emulated:16x256x8@1", { 16, 256, 8, 1000, 10 }, 10000, 31000, 10000 },
		{ "emulated:4x9x2@0.05", { 4, 9, 2, 50, 10 }, 1000, 1300, 20000 },
		{ "emulated:1x2x1@0.333", { 1, 2, 1, 333, 10 }, 3330, 3330, 10000 },
		{ "emulated:1x2x1@0.01", { 1, 2, 1, 10, 10 }, 1000, 1000, 100000 },
		{ "emulated:3x3x1@0.22/40ms", { 3, 3, 1, 220, 40 }, 8800, 8800, 40000 },
		{ "emulated:1x1x2@1/1000ms", { 1, 1, 2, 1000, 1000 }, 1000000, 1300000, 1000000 },
		{ "emulated:1x1x1@0.5/1ms", { 1, 1, 1, 500, 1 }, 1000, 1000, 2000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ebb_emuspec s;
		struct ebb_emuspec_quota t, c;

		assert_int_equal(ebb_emuspec_parse(cases[i].text, &s, NULL), 0);
		assert_memory_equal(&s, &cases[i].spec, sizeof(s));
		t = ebb_emuspec_thread_quota(&s);
		c = ebb_emuspec_core_quota(&s);
		assert_int_equal(t.quota_usec, cases[i].quota);
		assert_int_equal(c.quota_usec, cases[i].core_quota);
		assert_int_equal(t.period_usec, cases[i].period);
		assert_int_equal(c.period_usec, cases[i].period);
	}
}

static void test_spec_host(void **state)
{
	static const struct {
		const char *text;
		uint32_t num_cpus, quota;
	} cases[] = {
		{ "emulated:2x4x1@0.2", 2, 0 },		/* 1.6 of 2 */
		{ "emulated:1x3x1@0.6", 2, 0 },		/* 1.8 */
		{ "emulated:1x3x1@0.601", 2, 18000 },
		{ "emulated:1x3x2@0.6", 2, 18000 },	/* two threads: 2.34 */
		{ "emulated:2x4x1@0.5", 2, 18000 },
		{ "emulated:2x4x1@0.5", 5, 0 },
		{ "emulated:4x9x2@0.05", 2, 36000 },	/* 2.34, period 20 ms */
		{ "emulated:1x2x1@1", 1, 10000 },	/* not less than one core */
		{ "emulated:16x256x8@1", 1, 31000 },
		{ "emulated:2x4x1@0.5/40ms", 2, 72000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ebb_emuspec s;
		struct ebb_emuspec_quota q;

		assert_int_equal(ebb_emuspec_parse(cases[i].text, &s, NULL), 0);
		q = ebb_emuspec_host_quota(&s, cases[i].num_cpus);
		assert_int_equal(q.quota_usec, cases[i].quota);
		assert_int_equal(q.period_usec, ebb_emuspec_core_quota(&s).period_usec);
	}
}

static void test_spec_bad(void **state)
{
	static const char *const bad[] = {
		"",
		"auto",
		"emulated:",
		"emulated:2x4@0.25",
		"emulated:2x4x1",
		"emulated:2x4x1@",
		"emulated:0x4x1@0.25",
		"emulated:17x4x1@0.25",
		"emulated:2x257x1@0.25",
		"emulated:2x4x9@0.25",
		"emulated:2x4x1@0",
		"emulated:2x4x1@0.009",
		"emulated:2x4x1@1.001",
		"emulated:2x4x1@2",
		"emulated:2x4x1@0.2500",
		"emulated:2x4x1@0.25/",
		"emulated:2x4x1@0.25/40",
		"emulated:2x4x1@0.25/0ms",
		"emulated:2x4x1@0.25/1001ms",
		"emulated:2x4x1@0.25/40ms ",
		"emulated:2x4x1@0.25/40us",
		"emulated:2x4x1@0.25 ",
		"emulated:2x4x1@-0.2",
		"emulated:02x4x1@0.25",
		"emulated:2x4x1@.25",
		"emulated:2x4x1@0.",
		"emulated:4294967297x1x1@0.5",
		"EMULATED:2x4x1@0.25",
	};
	struct ebb_emuspec s = { 7, 7, 7, 7, 7 };
	struct ebb_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = '\0';
		if (ebb_emuspec_parse(bad[i], &s, &err) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
		assert_non_null(strstr(err.text, "emulated:2x4x1@0.25"));
		assert_int_equal(s.sockets, 7);
	}
}

static const char v1_mounts[] =
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	"33 31 0:30 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu\\040cpuacct rw,relatime shared:8 master:3 - cgroup cgroup "
	"rw,cpu,cpuacct\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
static const char v2_mounts[] =
	"24 30 0:22 / /proc rw,nosuid - proc proc rw\n"
	"35 24 0:30 /pod /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

static void test_cgroup_find(void **state)
{
	struct ebb_cgroup cg;
	struct ebb_err err = { "" };

	(void)state;
	assert_int_equal(ebb_cgroup_find(v1_mounts, &cg, NULL), 0);
	assert_int_equal(cg.version, 1);
	assert_string_equal(cg.mount, "/sys/fs/cgroup/cpu cpuacct");
	assert_int_equal(ebb_cgroup_find(v2_mounts, &cg, NULL), 0);
	assert_int_equal(cg.version, 2);
	assert_string_equal(cg.mount, "/sys/fs/cgroup");
	assert_string_equal(cg.root, "/pod");
	assert_int_equal(
		ebb_cgroup_find("24 30 0:22 / /proc rw - proc proc rw\n\nshort\n", &cg, &err),
		-ENOENT);
	assert_non_null(strstr(err.text, "cpu controller"));
}

static void test_cgroup_folder(void **state)
{
	static const char v1_text[] = "5:cpuset:/machine/a\n3:cpuacct,cpu:/machine/b\n0::/c\n";
	struct ebb_cgroup cg;
	char path[256];

	(void)state;
	ebb_cgroup_find(v1_mounts, &cg, NULL);
	assert_int_equal(ebb_cgroup_folder(&cg, v1_text, "cpu", path, sizeof(path)), 0);
	assert_string_equal(path, "/sys/fs/cgroup/cpu cpuacct/machine/b");
	assert_int_equal(ebb_cgroup_folder(&cg, v1_text, "cpuset", path, sizeof(path)), 0);
	assert_string_equal(path, "/sys/fs/cgroup/cpu cpuacct/machine/a");
	assert_int_equal(ebb_cgroup_folder(&cg, v1_text, "memory", path, sizeof(path)), -ENOENT);
	assert_int_equal(ebb_cgroup_folder(&cg, v1_text, "cpu", path, 8), -ENAMETOOLONG);
	ebb_cgroup_find(v2_mounts, &cg, NULL);
	assert_int_equal(ebb_cgroup_folder(&cg, "1:cpu:/x\n0::/pod/vm", "cpu", path, sizeof(path)),
			 0);
	assert_string_equal(path, "/sys/fs/cgroup/vm");
	assert_int_equal(ebb_cgroup_folder(&cg, "0::/elsewhere", "cpu", path, sizeof(path)),
			 -ENOENT);
}

static void test_real_groups(void **state)
{
	char name[32], text[1024] = "";

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIP: creating CPU cgroups needs root\n");
		skip();
	}
	snprintf(name, sizeof(name), "ebb-emu-unit-%d", getpid());
	if (emuhost_check(name, text, sizeof(text)) < 0)
		fail_msg("%s", text);
	print_message("%s\n", text);
}

static void test_promises(void **state)
{
	char name[32], text[1024] = "";

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIP: creating CPU cgroups needs root\n");
		skip();
	}
	snprintf(name, sizeof(name), "ebb-emu-promise-%d", getpid());
	if (emureserve_check(name, 50, text, sizeof(text)) < 0)
		fail_msg("%s", text);
	print_message("%s\n", text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spec_good),
		cmocka_unit_test(test_spec_host),
		cmocka_unit_test(test_spec_bad),
		cmocka_unit_test(test_cgroup_find),
		cmocka_unit_test(test_cgroup_folder),
		cmocka_unit_test(test_real_groups),
		cmocka_unit_test(test_promises),
	};

	return cmocka_run_group_tests_name("io/emuhost", tests, NULL, NULL);
}
