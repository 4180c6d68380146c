/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Groups of promises whose threads have ended; folders stand for groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "backend/emulated/emureserve.h"

static char core[64];

static char *path_of(const char *below, const char *name, pid_t tid, char ret[128])
{
	snprintf(ret, 128, "%s%s/%s%.0d", core, below, name, tid);
	return ret;
}

static void make(const char *below, const char *name, pid_t tid)
{
	char path[128];

	assert_int_equal(mkdir(path_of(below, name, tid, path), 0755), 0);
}

static bool is_there(const char *below, const char *name, pid_t tid)
{
	char path[128];

	return access(path_of(below, name, tid, path), F_OK) == 0;
}

static void drop(const char *below, const char *name, pid_t tid)
{
	char path[128];

	assert_int_equal(rmdir(path_of(below, name, tid, path)), 0);
}

static pid_t ended(void)
{
	const pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void test_sweep(void **state)
{
	const pid_t dead = ended(), alive = getpid();

	(void)state;
	snprintf(core, sizeof(core), "/tmp/test_io_emureserve.XXXXXX");
	assert_non_null(mkdtemp(core));
	make("", "r", dead);
	make("", "r", alive);
	make("", "rest2", 0);
	make("/rest2", "r", dead);
	make("/rest2", "r", alive);
	ebb_emureserve_sweep(core);
	assert_false(is_there("", "r", dead));
	assert_false(is_there("/rest2", "r", dead));
	drop("/rest2", "r", alive);
	drop("", "rest2", 0);
	drop("", "r", alive);
	assert_int_equal(rmdir(core), 0);
	/* Of a core that is not there, nothing. */
	ebb_emureserve_sweep(core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
