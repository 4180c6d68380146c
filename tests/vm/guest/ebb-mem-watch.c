/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Description: a lease whose content is watched.  One thread reads all its blocks again and again,
 * another one writes them to a disk past the page cache and looks at what is there then.  Either
 * finds what was filled in, or that the memory is gone (SIGBUS, EFAULT); zeroes are an error.
 */
#include "ebb-mem-test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRITE_BYTES	(64 * UINT64_C(1024))
#define BURST_US	UINT64_C(10000)

static struct lease lease;
static int disk;
static _Atomic uint64_t num_reads, num_writes, num_wrong_reads, num_wrong_writes;

/*
 * With real-time priority, for a while each time: what the host has done is seen before the kernel
 * has done anything about it.
 */
static void *read_all(void *unused)
{
	const struct sched_param priority = { .sched_priority = 1 };
	uint64_t end_ns = 0;

	(void)unused;
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
	for (;;) {
		if (now_ns() > end_ns) {
			usleep(BURST_US);
			end_ns = now_ns() + BURST_US * 1000;
		}
		for (uint64_t at = 0; at < lease.bytes; at += BLOCK_BYTES) {
			bool is_good;

			if (guarded_check(lease.map + at, PAGE_BYTES, lease.id, at, &is_good))
				continue;
			num_reads++;
			num_wrong_reads += !is_good;
		}
	}
	return NULL;
}

static void *write_all(void *copy)
{
	for (;;) {
		for (uint64_t at = 0; at < lease.bytes; at += BLOCK_BYTES) {
			ssize_t bytes = pwrite(disk, lease.map + at, WRITE_BYTES, 0);

			if (bytes <= 0)
				continue;
			if (pread(disk, copy, bytes, 0) != bytes)
				exit(1);
			num_writes++;
			num_wrong_writes += first_wrong(copy, bytes, lease.id, at) != (size_t)bytes;
		}
	}
	return NULL;
}

static void say(void)
{
	uint64_t gone = 0;

	for (uint64_t at = 0; at < lease.bytes; at += BLOCK_BYTES)
		gone += touch(lease.map + at) == SIGBUS;
	printf("{\"granted\":%" PRIu64 ",\"gone\":%" PRIu64 ",\"reads\":%" PRIu64 ",\"writes\":%"
	       PRIu64 ",\"wrong_reads\":%" PRIu64 ",\"wrong_writes\":%" PRIu64 "}\n",
	       lease.bytes, gone, num_reads, num_writes, num_wrong_reads, num_wrong_writes);
	fflush(stdout);
}

int do_watch(uint64_t bytes, uint32_t node, const char *disk_path)
{
	pthread_t reader, writer;
	void *copy = NULL;
	sigset_t set;
	int signo;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	disk = open(disk_path, O_RDWR | O_DIRECT);
	lease = need_lease(bytes, node);
	fill(lease.map, lease.bytes, lease.id, 0);
	if (disk < 0 || posix_memalign(&copy, PAGE_BYTES, WRITE_BYTES) ||
	    pthread_create(&reader, NULL, read_all, NULL) ||
	    pthread_create(&writer, NULL, write_all, copy))
		return 1;
	do
		usleep(1000);
	while (!num_reads || !num_writes);
	say();
	while (!sigwait(&set, &signo))
		say();
	return 0;
}
