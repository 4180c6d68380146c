// SPDX-License-Identifier: GPL-2.0-or-later
/* See record_crash.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record_crash.h"
#include "record_output.h"
#include "oltp-engine/src/base/random.h"

#define KILL_LATER_MS	30u

/* Does not return. Its exit status says why it failed. */
static void run_child(const struct record_config *config, struct record_shared *shared, int fd)
{
	struct record_output output = { PTHREAD_MUTEX_INITIALIZER, fd };
	const struct record_sink sink = { record_output_write, &output };
	struct record_stats stats;
	int rc = record_run(config, shared, &sink, NULL, NULL, &stats);

	_exit(-rc);
}

/* Why a process ended by itself. */
static int error_of(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) ? -WEXITSTATUS(status) : -ECHILD;
}

/* A line that was being written when its process was killed goes. */
static int cut_torn_line(int fd)
{
	struct stat st;
	off_t end;

	if (fstat(fd, &st))
		return -errno;
	for (end = st.st_size; end; end--) {
		char last;

		if (pread(fd, &last, 1, end - 1) != 1)
			return -EIO;
		if (last == '\n')
			break;
	}
	return end < st.st_size && ftruncate(fd, end) ? -errno : 0;
}

static void sleep_ms(uint32_t ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000l }, NULL);
}

/* Waits for enough commits and kills. Errors: why it has ended before. */
static int kill_child(pid_t child, const struct record_config *config,
		      struct record_shared *shared, uint64_t start, struct random64 *random,
		      void (*tell)(void *ctx, uint64_t committed), void *ctx)
{
	while (atomic_load(&shared->committed) - start < config->transactions) {
		int status;

		if (waitpid(child, &status, WNOHANG) == child)
			return error_of(status);
		if (tell)
			tell(ctx, atomic_load(&shared->committed));
		sleep_ms(1);
	}
	sleep_ms((uint32_t)random64_below(random, KILL_LATER_MS));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}

static int run_round(const struct record_config *config, struct record_shared *shared, int fd,
		     bool is_last, struct random64 *random,
		     void (*tell)(void *ctx, uint64_t committed), void *ctx)
{
	struct record_config child_config = *config;
	uint64_t start = atomic_load(&shared->committed);
	pid_t child;
	int status;

	child_config.is_for_crash = true;
	child_config.transactions = is_last ? 0 : UINT64_MAX;
	child_config.seed = random64_next(random);
	child = fork();
	if (child < 0)
		return -errno;
	if (!child)
		run_child(&child_config, shared, fd);
	if (!is_last)
		return kill_child(child, config, shared, start, random, tell, ctx) ?:
		       cut_torn_line(fd);
	if (waitpid(child, &status, 0) != child)
		return -errno;
	return status ? error_of(status) : 0;
}

int record_with_kills(const struct record_config *config, uint32_t kills, int fd,
		      void (*tell)(void *ctx, uint64_t committed), void *ctx)
{
	struct random64 random = { config->seed };
	struct record_shared *shared;
	int rc = record_output_begin(fd);

	if (rc)
		return rc;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		return -errno;
	for (uint32_t i = 0; !rc && i <= kills; i++)
		rc = run_round(config, shared, fd, i == kills, &random, tell, ctx);
	munmap(shared, sizeof(*shared));
	return rc;
}
