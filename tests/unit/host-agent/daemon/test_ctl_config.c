/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration: every key, and every way to get it wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/config.h"
#include "util/fs.h"

static char path[64];

static int load(const char *text, struct ebb_config *c, struct ebb_err *err)
{
	FILE *f;
	int fd;

	strcpy(path, "/tmp/test_ctl_config.XXXXXX");
	fd = mkstemp(path);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	ebb_config_default(c);
	fd = ebb_config_load(c, path, err);
	unlink(path);
	return fd;
}

static void test_file(void **state)
{
	struct ebb_config c;
	struct ebb_err err = { "" };

	(void)state;
	if (load("# a comment\nlibvirt_uri = test:///default\nrun_dir=/run/x/y\nstate_dir = "
		 "/tmp/s\n"
		 "host = emulated:2x4x1@0.25\nhost_reserve = 0-1\npolicy = strict\nworkers = 4\n"
		 "link_group = kvm\ncontrol_group = adm\ncount_threads = yes\nhistory_rows = 5000\n"
		 "log_level = debug\npool_mib = 2048\nmemory_overhead_mib = 300\n"
		 "memory_leave_ms = 45\n"
		 "metrics_listen = [::1]:9750\n"
		 "memory_target_percent = 50\nmemory_threshold_percent = 60\n"
		 "memory_failover_percent = 70\nmemory_window_s = 0\ncore_hot_percent = 99\n"
		 "host_hot_percent = 88\nhot_window_s = 3\ncool_down_s = 7\n"
		 "overbook_percent = 200\noverbook_policy = penalty\n",
		 &c, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(c.libvirt_uri, "test:///default");
	assert_string_equal(c.run_dir, "/run/x/y");
	assert_string_equal(c.host, "emulated:2x4x1@0.25");
	assert_string_equal(c.host_reserve, "0-1");
	assert_string_equal(c.policy, "strict");
	assert_string_equal(c.link_group, "kvm");
	assert_string_equal(c.control_group, "adm");
	assert_string_equal(c.metrics_listen, "[::1]:9750");
	assert_true(c.count_threads);
	assert_int_equal(c.workers, 4);
	assert_int_equal(c.history_rows, 5000);
	assert_int_equal(c.pool_mib, 2048);
	assert_int_equal(c.memory_overhead_mib, 300);
	assert_int_equal(c.memory_leave_ms, 45);
	assert_int_equal(c.pressure.memory_target_percent, 50);
	assert_int_equal(c.pressure.memory_threshold_percent, 60);
	assert_int_equal(c.pressure.memory_failover_percent, 70);
	assert_int_equal(c.pressure.memory_window_s, 0);
	assert_int_equal(c.pressure.core_hot_percent, 99);
	assert_int_equal(c.pressure.host_hot_percent, 88);
	assert_int_equal(c.pressure.hot_window_s, 3);
	assert_int_equal(c.promise.overbook_percent, 200);
	assert_int_equal(c.promise.overbook_policy, EBB_OVERBOOK_PENALTY);
	assert_int_equal(c.pressure.cool_down_s, 7);
	assert_int_equal(c.log_level, LOG_DEBUG);
	assert_int_equal(ebb_config_finish(&c, &err), 0);
	assert_string_equal(c.emu_group, "ebb-emu-run-x-y");
	assert_string_equal(c.volume_owner, "ebbd:/run/x/y");
}

static void test_defaults(void **state)
{
	struct ebb_config c;

	(void)state;
	assert_int_equal(load("", &c, NULL), 0);
	assert_string_equal(c.libvirt_uri, "qemu:///system");
	assert_string_equal(c.run_dir, "/run/ebb");
	assert_string_equal(c.host, "auto");
	assert_string_equal(c.policy, "fair");
	assert_int_equal(c.pool_mib, EBB_CONFIG_AUTO);
	assert_int_equal(c.memory_overhead_mib, 1536);
	assert_int_equal(c.memory_leave_ms, 30);
	assert_string_equal(c.metrics_listen, "");
	assert_int_equal(ebb_config_set(&c, "metrics_listen=0.0.0.0:1", NULL), 0);
	assert_int_equal(ebb_config_set(&c, "metrics_listen=", NULL), 0);
	assert_string_equal(c.metrics_listen, "");
	assert_int_equal(ebb_config_set(&c, "pool_mib=0", NULL), 0);
	assert_int_equal(c.pool_mib, 0);
	assert_int_equal(ebb_config_set(&c, "pool_mib=auto", NULL), 0);
	assert_int_equal(c.pool_mib, EBB_CONFIG_AUTO);
	assert_int_equal(ebb_config_set(&c, "policy=strict", NULL), 0);
	assert_string_equal(c.policy, "strict");
	assert_int_equal(ebb_config_set(&c, "libvirt_uri=a?b=c", NULL), 0);
	assert_string_equal(c.libvirt_uri, "a?b=c");
}

static void test_bad(void **state)
{
	static const struct {
		const char *text, *error;
	} bad[] = {
		{ "polcy = fair\n", ":1: unknown key \"polcy\"; known are libvirt_uri, run_dir," },
		/* The list of keys is there to its end. */
		{ "polcy = fair\n", ", history_rows, log_level" },
		{ "policy = fair\nworkers = 1\n", ":2: workers=1: allowed: 2 to 64" },
		{ "workers = 65\n", "workers=65: allowed: 2 to 64" },
		{ "workers = -3\n", "workers=-3" },
		{ "workers = 4x\n", "workers=4x" },
		{ "workers =\n", "workers=: allowed" },
		{ "pool_mib = -1\n", "pool_mib=-1: allowed: 0 to 16777216, auto" },
		{ "pool_mib = 16777217\n", "pool_mib=16777217" },
		{ "pool_mib = some\n", "pool_mib=some" },
		{ "memory_overhead_mib = 63\n", "memory_overhead_mib=63: allowed: 64 to 65536" },
		{ "memory_leave_ms = 1001\n", "memory_leave_ms=1001: allowed: 0 to 1000" },
		{ "memory_overhead_mib = auto\n", "memory_overhead_mib=auto" },
		{ "memory_threshold_percent = 0\n", "allowed: 1 to 100" },
		{ "host_hot_percent = 101\n", "host_hot_percent=101: allowed: 1 to 100" },
		{ "memory_window_s = 3601\n", "memory_window_s=3601: allowed: 0 to 3600" },
		{ "hot_window_s = 0\n", "hot_window_s=0: allowed: 1 to 3600" },
		{ "overbook_percent = 0\n", "overbook_percent=0: allowed: 1 to 1000" },
		{ "overbook_policy = random\n",
		  "overbook_policy=random: allowed: proportional, penalty" },
		{ "cool_down_s = 0\n", "cool_down_s=0: allowed: 1 to 3600" },
		{ "history_rows = 1\n", "allowed: 1000 to 10000000" },
		{ "count_threads = maybe\n", "count_threads=maybe: allowed: yes, no" },
		{ "log_level = loud\n", "log_level=loud: allowed: error, warning, info, debug" },
		{ "run_dir = run\n", "run_dir=run: an absolute path is needed" },
		{ "metrics_listen = 9750\n", "metrics_listen=\"9750\" is no address with a port" },
		{ "metrics_listen = localhost:9750\n", "such as 127.0.0.1:9750 or [::1]:9750" },
		{ "policy =\n", "policy is empty" },
		{ "[ebbd]\npolicy = fair\n", "section [ebbd]: the file has no sections" },
		{ "just words\n", ":1: not of the form key = value" },
		/* Neither a value that goes on in the next line nor an indented key is misread. */
		{ "policy = fair\n  strict\n", ":2: the line is indented" },
		{ "# one\n\nrun_dir = /run/x\n\tworkers = 4\n", ":4: the line is indented" },
		{ " policy = fair\n", ":1: the line is indented" },
		{ "just words\n  policy = fair\n", ":1: not of the form key = value" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ebb_config c;
		struct ebb_err err = { "" };

		assert_int_equal(load(bad[i].text, &c, &err), -EINVAL);
		if (!strstr(err.text, bad[i].error) || strncmp(err.text, path, strlen(path)) != 0)
			fail_msg("case %zu: \"%s\" is not in \"%s\"", i, bad[i].error, err.text);
	}
}

/* A line that inih cuts is not read as two. */
static void test_long_line(void **state)
{
	char text[400] = "policy = fair\nlibvirt_uri = qemu+unix:///system?socket=/";
	struct ebb_err err = { "" };
	struct ebb_config c;
	const size_t len = strlen(text);

	(void)state;
	memset(text + len, 's', sizeof(text) - len - 2);
	text[sizeof(text) - 2] = '\n';
	assert_int_equal(load(text, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":2: the line has more than 198 bytes"));
	/* Comments may be indented, and the last line may lack its end. */
	assert_int_equal(load("  # one\n\t; two\n \npolicy = strict ; three", &c, &err), 0);
	assert_string_equal(c.policy, "strict");
}

static void test_bad_options(void **state)
{
	static const char *const bad[] = { "policy", "=x", "", "nokey=1", "workers=0" };
	struct ebb_config c;
	struct ebb_err err;

	(void)state;
	ebb_config_default(&c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = '\0';
		assert_int_equal(ebb_config_set(&c, bad[i], &err), -EINVAL);
		assert_true(err.text[0]);
	}
	assert_int_equal(ebb_config_load(&c, "/nonexistent/ebbd.conf", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/ebbd.conf"));
	/* It can be opened, not read. */
	assert_int_equal(ebb_config_load(&c, "/tmp", &err), -EISDIR);
	assert_string_equal(err.text, "/tmp can not be read: Is a directory");
}

/* ebbd.conf as it is installed has every key with its default, and the manual has every key. */
static void test_shipped_file(void **state)
{
	static const char *const files[] = {
		"host-agent/systemd/ebbd.conf", "host-agent/man/ebbd.conf.5",
	};
	static const char *const begins[] = { "\n%s =", "\n.It Ic %s\n" };
	struct ebb_config c, defaults;
	struct ebb_err err = { "" };
	char *keys;

	(void)state;
	ebb_config_default(&c);
	ebb_config_default(&defaults);
	if (ebb_config_load(&c, files[0], &err) < 0)
		fail_msg("%s", err.text);
	assert_memory_equal(&c, &defaults, sizeof(c));
	ebb_config_set(&c, "nokey=1", &err);
	keys = strstr(err.text, "known are ");
	assert_non_null(keys);
	keys += strlen("known are ");
	for (char *key = strtok(keys, ", "); key; key = strtok(NULL, ", "))
		for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
			char *text, line[80];

			snprintf(line, sizeof(line), begins[i], key);
			assert_int_equal(ebb_fs_read_all(files[i], 1 << 20, &text), 0);
			if (!strstr(text, line))
				fail_msg("%s has no %s", files[i], key);
			free(text);
		}
}

static void test_bad_emu_group(void **state)
{
	static const char *const bad[] = { "emu_group=other", "emu_group=ebb-emu-a/b" };
	struct ebb_config c;
	struct ebb_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ebb_config_default(&c);
		assert_int_equal(ebb_config_set(&c, bad[i], &err), 0);
		assert_int_equal(ebb_config_finish(&c, &err), -EINVAL);
		assert_non_null(strstr(err.text, "begins with ebb-emu-"));
	}
}

/* Each by itself is in range, together they make no sense. */
static void test_bad_thresholds(void **state)
{
	static const struct {
		const char *text, *error;
	} bad[] = {
		{ "memory_target_percent=90", "memory_target_percent=90: must be less than "
					      "memory_threshold_percent, which is 90" },
		{ "memory_threshold_percent=95", "memory_threshold_percent=95: must be less than "
						 "memory_failover_percent, which is 95" },
	};
	struct ebb_config c;
	struct ebb_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ebb_config_default(&c);
		assert_int_equal(ebb_config_set(&c, bad[i].text, &err), 0);
		assert_int_equal(ebb_config_finish(&c, &err), -EINVAL);
		assert_string_equal(err.text, bad[i].error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),	    cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_bad),	    cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_bad_emu_group), cmocka_unit_test(test_bad_thresholds),
		cmocka_unit_test(test_shipped_file),
	};

	return cmocka_run_group_tests_name("daemon/config", tests, NULL, NULL);
}
