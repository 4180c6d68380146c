/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process of threads that compute and do nothing else, and the CPU time that they have had. */
#ifndef EBB_TESTS_BUSY_THREADS_H
#define EBB_TESTS_BUSY_THREADS_H

#include <stdint.h>
#include <sys/types.h>

#define BUSY_MOST	64

struct busy {
	pid_t pid;			/* 0: none */
	int num;
	pid_t tids[BUSY_MOST];
};

/* num: 1 to BUSY_MOST.  The process ends with its parent.  0 or -errno; busy_stop() in any case. */
int busy_start(struct busy *b, int num);
void busy_stop(struct busy *b);

/* CPU time so far, in microseconds: of the first thread, and of all.  0 or -EIO. */
int busy_used(const struct busy *b, uint64_t *ret_first, uint64_t *ret_all);

/*
 * The first thread's part of the time that all get, in thousandths, from now until all together
 * have had so much.  -EIO, or -ETIME after a minute.
 */
int busy_measure(const struct busy *b, uint64_t enough_usec, uint32_t *ret_permille);

#endif
