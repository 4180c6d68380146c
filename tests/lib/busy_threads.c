/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See busy_threads.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/busy_threads.h"
#include "util/fs.h"

#define LOOK_USEC	100000
#define MAX_LOOKS	600

static void *spin(void *arg)
{
	pid_t tid = syscall(SYS_gettid);

	if (write(*(int *)arg, &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	for (volatile uint64_t n = 0;; n++)
		;
	return NULL;
}

int busy_start(struct busy *b, int num)
{
	int fds[2], rc = 0;

	*b = (struct busy){ .num = num };
	if (pipe(fds) < 0)
		return -errno;
	b->pid = fork();
	if (b->pid == 0) {
		pthread_t t;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < num; i++)
			if (pthread_create(&t, NULL, spin, &fds[1]))
				_exit(1);
		pause();
		_exit(0);
	}
	close(fds[1]);
	for (int i = 0; rc == 0 && i < num; i++)
		if (b->pid < 0 || read(fds[0], &b->tids[i], sizeof(pid_t)) != sizeof(pid_t))
			rc = -EIO;
	close(fds[0]);
	return rc;
}

void busy_stop(struct busy *b)
{
	if (b->pid <= 0)
		return;
	kill(b->pid, SIGKILL);
	waitpid(b->pid, NULL, 0);
	b->pid = 0;
}

static int used_usec(const struct busy *b, int i, uint64_t *ret)
{
	unsigned long long ns;
	char path[80], text[128];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", b->pid, b->tids[i]);
	if (ebb_fs_read(path, text, sizeof(text), NULL) < 0 || sscanf(text, "%llu", &ns) != 1)
		return -EIO;
	*ret = ns / 1000;
	return 0;
}

int busy_used(const struct busy *b, uint64_t *ret_first, uint64_t *ret_all)
{
	uint64_t one;

	*ret_all = 0;
	for (int i = 0; i < b->num; i++) {
		if (used_usec(b, i, &one) < 0)
			return -EIO;
		*ret_all += one;
		if (i == 0)
			*ret_first = one;
	}
	return 0;
}

int busy_measure(const struct busy *b, uint64_t enough_usec, uint32_t *ret_permille)
{
	uint64_t first, all, first_now, all_now;

	if (busy_used(b, &first, &all) < 0)
		return -EIO;
	for (int n = 0; n < MAX_LOOKS; n++) {
		usleep(LOOK_USEC);
		if (busy_used(b, &first_now, &all_now) < 0)
			return -EIO;
		if (all_now - all >= enough_usec) {
			*ret_permille = (uint32_t)((first_now - first) * 1000 / (all_now - all));
			return 0;
		}
	}
	return -ETIME;
}
