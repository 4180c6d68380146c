// SPDX-License-Identifier: GPL-2.0-or-later
/* Which volume a node can read as its peer's. A disk that hangs is a FIFO without a writer. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/server/peer_volume.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp_volume.h"

#define VOLUME_BYTES	(16u << 20)
#define LONG_MS		60000u

static const uint8_t none[GREETING_VOLUME_BYTES];

static void expect_uuid(struct peer_volume *volume, const uint8_t *uuid)
{
	uint8_t found[GREETING_VOLUME_BYTES];

	peer_volume_look(volume);
	peer_volume_uuid(volume, LONG_MS, found);
	assert_memory_equal(found, uuid, sizeof(found));
}

static void test_reads(void **state)
{
	char path[] = "/var/tmp/peer-volume-XXXXXX";
	struct oltp_volume_info info[2];
	struct peer_volume *volume;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, VOLUME_BYTES), 0);
	close(fd);
	assert_int_equal(peer_volume_create(path, &volume), 0);
	expect_uuid(volume, none);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(oltp_volume_format(path, true), 0);
		assert_int_equal(oltp_volume_list(path, &info[i], NULL, NULL), 0);
		expect_uuid(volume, info[i].uuid);
	}
	assert_memory_not_equal(info[0].uuid, info[1].uuid, sizeof(info[0].uuid));
	unlink(path);
	expect_uuid(volume, none);
	peer_volume_destroy(volume);
	assert_int_equal(peer_volume_create(NULL, &volume), 0);
	expect_uuid(volume, none);
	peer_volume_destroy(volume);
}

/* Threads that look. */
static uint32_t count_looks(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	uint32_t n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		n += fgets(name, sizeof(name), file) && !strcmp(name, "peer-volume\n");
		fclose(file);
	}
	closedir(dir);
	return n;
}

/* The look ends: whoever opens the FIFO finds a writer now and then, and then its end. */
static void let_go(const char *path)
{
	while (count_looks()) {
		int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

		assert_true(fd >= 0);
		usleep(1000);
		close(fd);
		usleep(1000);
	}
}

static void test_hangs(void **state)
{
	char dir[] = "/var/tmp/peer-volume-XXXXXX", path[64];
	uint8_t found[GREETING_VOLUME_BYTES];
	struct peer_volume *volume;

	(void)state;
	/* Those of the other test may not have ended yet. */
	while (count_looks())
		usleep(1000);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(peer_volume_create(path, &volume), 0);
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t since = clock_now_ns();

		peer_volume_look(volume);
		peer_volume_uuid(volume, 20, found);
		assert_memory_equal(found, none, sizeof(found));
		assert_true(clock_now_ns() - since >= 20000000);
		/* One look at a time, however often it is asked. A thread has its name soon. */
		while (!count_looks())
			usleep(1000);
		assert_int_equal(count_looks(), 1);
	}
	let_go(path);
	/* And the next one, which nobody waits for. */
	peer_volume_look(volume);
	peer_volume_destroy(volume);
	while (!count_looks())
		usleep(1000);
	let_go(path);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
