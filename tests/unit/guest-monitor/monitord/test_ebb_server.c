// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The monitor's socket: one monitor per path, what dead ones leave, groups.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/monitord/server.h"

static char dir[64], path[96], lock_path[112];

static int dir_make(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ebb-server.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/run/m.sock", dir);
	snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
	return 0;
}

static int dir_remove(void **state)
{
	char run[80];

	(void)state;
	snprintf(run, sizeof(run), "%s/run", dir);
	unlink(path);
	unlink(lock_path);
	rmdir(run);
	return rmdir(dir);
}

static int connect_to(const char *to)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int r;

	assert_true(fd >= 0);
	strcpy(addr.sun_path, to);
	r = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

static void makes_folders_and_a_socket_for_its_group(void **state)
{
	struct ebb_server server;
	struct stat st;

	(void)state;
	assert_int_equal(ebb_server_open(&server, path, getgid()), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0660);
	assert_int_equal(st.st_gid, getgid());
	assert_int_equal(connect_to(path), 0);
	ebb_server_close(&server);
	assert_int_equal(stat(path, &st), -1);
	/* Again, with the lock file still there; closing twice does nothing. */
	assert_int_equal(ebb_server_open(&server, path, (gid_t)-1), 0);
	ebb_server_close(&server);
	ebb_server_close(&server);
}

static void second_monitor_is_refused_and_harms_nothing(void **state)
{
	struct ebb_server first, second;

	(void)state;
	assert_int_equal(ebb_server_open(&first, path, (gid_t)-1), 0);
	assert_int_equal(ebb_server_open(&second, path, (gid_t)-1), -EADDRINUSE);
	ebb_server_close(&second);
	assert_int_equal(connect_to(path), 0);
	ebb_server_close(&first);
}

static void socket_of_a_dead_monitor_is_replaced(void **state)
{
	struct ebb_server dead, next;

	(void)state;
	assert_int_equal(ebb_server_open(&dead, path, (gid_t)-1), 0);
	/* As the kernel does for a process that was killed. */
	close(dead.listen_fd);
	close(dead.lock_fd);
	assert_int_equal(connect_to(path), -ECONNREFUSED);
	assert_int_equal(ebb_server_open(&next, path, (gid_t)-1), 0);
	assert_int_equal(connect_to(path), 0);
	ebb_server_close(&next);
}

static void file_in_the_way_is_kept(void **state)
{
	struct ebb_server server;
	struct stat st;
	FILE *f;

	(void)state;
	assert_int_equal(ebb_server_open(&server, path, (gid_t)-1), 0);
	ebb_server_close(&server);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(ebb_server_open(&server, path, (gid_t)-1), -EEXIST);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void paths_that_do_not_work(void **state)
{
	struct ebb_server server;
	char longer[200];

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	assert_int_equal(ebb_server_open(&server, longer, (gid_t)-1), -ENAMETOOLONG);
	assert_int_equal(ebb_server_open(&server, "", (gid_t)-1), -ENAMETOOLONG);
	assert_int_equal(ebb_server_open(&server, "/dev/null/m.sock", (gid_t)-1), -ENOTDIR);
}

static void groups(void **state)
{
	char group_path[80];
	gid_t gid = 7;
	FILE *f;

	(void)state;
	snprintf(group_path, sizeof(group_path), "%s/group", dir);
	f = fopen(group_path, "w");
	assert_non_null(f);
	fputs("root:x:0:\nebb:x:4242:alice,bob\n", f);
	fclose(f);
	assert_int_equal(ebb_server_group_find(group_path, "ebb", &gid), 0);
	assert_int_equal(gid, 4242);
	assert_int_equal(ebb_server_group_find(group_path, "17", &gid), 0);
	assert_int_equal(gid, 17);
	assert_int_equal(ebb_server_group_find(group_path, "nobody-here", &gid), -ENOENT);
	assert_int_equal(ebb_server_group_find(group_path, "17x", &gid), -ENOENT);
	assert_int_equal(ebb_server_group_find(group_path, "", &gid), -ENOENT);
	assert_int_equal(ebb_server_group_find(group_path, "4294967295", &gid), -ENOENT);
	assert_int_equal(ebb_server_group_find(group_path, "-1", &gid), -ENOENT);
	assert_int_equal(gid, 17);
	unlink(group_path);
	assert_int_equal(ebb_server_group_find(group_path, "ebb", &gid), -ENOENT);
}

#define DIR_TEST(fn) cmocka_unit_test_setup_teardown(fn, dir_make, dir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIR_TEST(makes_folders_and_a_socket_for_its_group),
		DIR_TEST(second_monitor_is_refused_and_harms_nothing),
		DIR_TEST(socket_of_a_dead_monitor_is_replaced),
		DIR_TEST(file_in_the_way_is_kept),
		DIR_TEST(paths_that_do_not_work),
		DIR_TEST(groups),
	};

	return cmocka_run_group_tests_name("ebb_server", tests, NULL, NULL);
}
