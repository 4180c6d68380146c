/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Description: leases under stress.  Threads do direct I/O, io_uring, fork,
 * mlock, core dumps and more with leased memory, while another thread releases
 * blocks under their hands, and the host, if it likes, revokes some.  A block
 * shows what was written to it, or it is gone; there is nothing in between, but
 * for blocks that the host took and this guest has not heard of yet (-r).
 */
#include "ebb-mem-lib.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <liburing.h>

#define MAX_WORKERS	8
#define MAX_BLOCKS	6
#define PIECE_BYTES	(16 * PAGE_BYTES)	/* what a pipe holds */

static const char usage[] =
	"usage: ebbt-mem-stress [-r] SECONDS DISK [WORKERS]\n"
	"  -r  the host revokes: what it took may be read as zero for a moment\n";

enum op {
	OP_CHECK, OP_DIRECT_WRITE, OP_DIRECT_READ, OP_URING, OP_FORK, OP_CORE, OP_LOCK,
	OP_PIPE, OP_RELEASE, OP_PROTECT, OP_DROP, OP_REMAP, OP_MAX,
};

static const char *const op_names[OP_MAX] = {
	"check", "direct_write", "direct_read", "uring", "fork", "core", "lock",
	"pipe", "release", "protect", "drop", "remap",
};

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;		/* of lease.fd: the other thread releases its blocks */
	struct lease lease;
	bool is_open;
	unsigned int index;
	uint64_t random;
	char *buffer;			/* of PIECE_BYTES, private */
	off_t disk_at;			/* its own place on the disk */
	struct io_uring ring;
	uint64_t done[OP_MAX], leases, gone, refused, wrong;
};

static struct worker workers[MAX_WORKERS];
static unsigned int num_workers = 4;
static volatile bool is_over;
static bool host_revokes;
static int disk;

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t pick(struct worker *w, uint64_t n)
{
	return next_random(&w->random) % n;
}

/* The host takes a block first, and the guest hears of it next, and unmaps it then. */
static bool is_soon_gone(const char *p)
{
	uint64_t end_ns = now_ns() + PATIENCE_NS;

	do {
		if (touch(p) == SIGBUS)
			return true;
		usleep(1000);
	} while (now_ns() < end_ns);
	return false;
}

static void note_wrong(struct worker *w, const char *what, uint64_t at)
{
	w->wrong++;
	printf("worker %u: wrong: %s, at %#llx of lease %llu\n", w->index, what,
	       (unsigned long long)at, (unsigned long long)w->lease.id);
	fflush(stdout);
}

static void check_mapped(struct worker *w, const char *what, uint64_t at, uint64_t bytes)
{
	bool is_good;

	if (guarded_check(w->lease.map + at, bytes, w->lease.id, at, &is_good)) {
		w->gone++;
	} else if (!is_good) {
		if (host_revokes && is_soon_gone(w->lease.map + at))
			w->gone++;
		else
			note_wrong(w, what, at);
	}
}

/*
 * What a system call has copied from the lease.  What the host takes reads as
 * zero from some byte of the copy on, be it in the middle of a page.
 */
static void check_copied(struct worker *w, const char *what, uint64_t at, uint64_t bytes)
{
	uint64_t n = host_revokes ? first_foreign(w->buffer, bytes, w->lease.id, at) :
				    first_wrong(w->buffer, bytes, w->lease.id, at);
	uint64_t seen;

	if (n == bytes)
		return;
	memcpy(&seen, w->buffer + n, sizeof(seen));
	note_wrong(w, what, at + n);
	printf("worker %u: seen there: %#llx\n", w->index, (unsigned long long)seen);
}

static void op_direct_write(struct worker *w, uint64_t at)
{
	ssize_t n = pwrite(disk, w->lease.map + at, PIECE_BYTES, w->disk_at);

	if (n < 0 && errno == EFAULT) {
		w->refused++;
		return;
	}
	if (n < 0 || pread(disk, w->buffer, PIECE_BYTES, w->disk_at) != (ssize_t)PIECE_BYTES)
		note_wrong(w, "direct write fails", at);
	else
		check_copied(w, "direct write", at, n / PAGE_BYTES * PAGE_BYTES);
}

static void op_direct_read(struct worker *w, uint64_t at)
{
	ssize_t n;

	fill(w->buffer, PIECE_BYTES, w->lease.id, at);
	if (pwrite(disk, w->buffer, PIECE_BYTES, w->disk_at) != (ssize_t)PIECE_BYTES)
		note_wrong(w, "writing from private memory fails", at);
	n = pread(disk, w->lease.map + at, PIECE_BYTES, w->disk_at);
	if (n < 0 && errno == EFAULT)
		w->refused++;
	else if (n < 0)
		note_wrong(w, "direct read fails", at);
	else
		check_mapped(w, "direct read", at, PIECE_BYTES);
}

/* Two writes in flight while the block that they are from is released. */
static void op_uring(struct worker *w, uint64_t at)
{
	uint64_t block_at = at / BLOCK_BYTES * BLOCK_BYTES;
	int res[2] = { 0, 0 };

	for (int i = 0; i < 2; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&w->ring);

		io_uring_prep_write(sqe, disk, w->lease.map + at, PIECE_BYTES,
				    w->disk_at + i * PIECE_BYTES);
		sqe->user_data = i;
	}
	if (io_uring_submit(&w->ring) != 2)
		note_wrong(w, "io_uring does not take it", at);
	if (pick(w, 2))
		lease_release(&w->lease, block_at, BLOCK_BYTES, NULL);
	for (int i = 0; i < 2; i++) {
		struct io_uring_cqe *cqe;
		int rc;

		do {
			rc = io_uring_wait_cqe(&w->ring, &cqe);
		} while (rc == -EINTR);
		res[cqe->user_data] = cqe->res;
		io_uring_cqe_seen(&w->ring, cqe);
	}
	for (int i = 0; i < 2; i++) {
		if (res[i] == -EFAULT)
			w->refused++;
		else if (res[i] < 0)
			note_wrong(w, strerrorname_np(-res[i]), at);
		else if (pread(disk, w->buffer, PIECE_BYTES, w->disk_at + i * PIECE_BYTES) !=
			 (ssize_t)PIECE_BYTES)
			note_wrong(w, "reading back fails", at);
		else
			check_copied(w, "io_uring", at, res[i] / PAGE_BYTES * PAGE_BYTES);
	}
}

static void child_checks(struct worker *w)
{
	char *p = mmap(NULL, w->lease.bytes, PROT_READ, MAP_SHARED, w->lease.fd, 0);
	bool is_good;

	if (p == MAP_FAILED)
		_exit(2);
	for (uint64_t at = 0; at < w->lease.bytes; at += BLOCK_BYTES)
		if (!guarded_check(p + at, BLOCK_BYTES, w->lease.id, at, &is_good) && !is_good &&
		    !(host_revokes && is_soon_gone(p + at)))
			_exit(1);
	_exit(0);
}

static void child_dumps_core(struct worker *w)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	int fd = open("/proc/self/coredump_filter", O_WRONLY);

	/* Shared mappings with huge pages of devices, too. */
	if (fd < 0 || write(fd, "0x1ff", 5) != 5 || setrlimit(RLIMIT_CORE, &all) ||
	    mmap(NULL, w->lease.bytes, PROT_READ, MAP_SHARED, w->lease.fd, 0) == MAP_FAILED)
		_exit(2);
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void op_fork(struct worker *w, bool has_core)
{
	pid_t pid = fork();
	int status = 0;
	char core[64];

	if (!pid) {
		if (has_core)
			child_dumps_core(w);
		child_checks(w);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		note_wrong(w, "fork fails", 0);
		return;
	}
	if (has_core ? !(WIFSIGNALED(status) && WCOREDUMP(status)) : status)
		note_wrong(w, has_core ? "no core dump" : "a child sees it", status);
	snprintf(core, sizeof(core), "/tmp/core.%d", pid);
	unlink(core);
}

static void op_pipe(struct worker *w, uint64_t at)
{
	struct iovec iov = { w->lease.map + at, PIECE_BYTES };
	int pipes[2];
	ssize_t n;

	if (pipe(pipes)) {
		note_wrong(w, "no pipe", at);
		return;
	}
	n = vmsplice(pipes[1], &iov, 1, SPLICE_F_NONBLOCK);
	if (n > 0) {
		lease_release(&w->lease, at / BLOCK_BYTES * BLOCK_BYTES, BLOCK_BYTES, NULL);
		usleep(pick(w, 5000));
		if (read(pipes[0], w->buffer, n) != n)
			note_wrong(w, "reading a pipe fails", at);
		else
			check_copied(w, "pages in a pipe", at, n / PAGE_BYTES * PAGE_BYTES);
	} else if (errno == EFAULT) {
		w->refused++;
	} else {
		note_wrong(w, "vmsplice fails", at);
	}
	close(pipes[0]);
	close(pipes[1]);
}

static void op_remap(struct worker *w, uint64_t at)
{
	char *p = mmap(NULL, PIECE_BYTES, PROT_READ, MAP_SHARED, w->lease.fd, at);
	bool is_good;

	if (p == MAP_FAILED) {
		note_wrong(w, "mmap fails", at);
		return;
	}
	if (guarded_check(p, PIECE_BYTES, w->lease.id, at, &is_good))
		w->gone++;
	else if (!is_good && !(host_revokes && is_soon_gone(p)))
		note_wrong(w, "another mapping", at);
	munmap(p, PIECE_BYTES);
}

/*
 * ENOENT is the one error that a release of a block may meet here: the other thread has released
 * it, or the host revoked it, and the driver says so before it has taken it from all mappings.
 * So what was refused has to go soon, and what was granted is gone.
 */
static void op_release(struct worker *w, uint64_t block_at, const char *p)
{
	int rc = lease_release(&w->lease, block_at, BLOCK_BYTES, NULL);

	if (rc && rc != ENOENT)
		note_wrong(w, strerrorname_np(rc), block_at);
	else if (rc ? !is_soon_gone(p) : touch(p) != SIGBUS)
		note_wrong(w, rc ? "it was released or revoked before" : "it was released",
			   block_at);
}

static void do_op(struct worker *w, enum op op)
{
	uint64_t bytes = w->lease.bytes;
	uint64_t at = pick(w, bytes / PIECE_BYTES) * PIECE_BYTES;
	uint64_t block_at = at / BLOCK_BYTES * BLOCK_BYTES;
	char *p = w->lease.map + at;

	w->done[op]++;
	switch (op) {
	case OP_CHECK:
		check_mapped(w, "mapping", block_at, BLOCK_BYTES);
		break;
	case OP_DIRECT_WRITE:
		op_direct_write(w, at);
		break;
	case OP_DIRECT_READ:
		op_direct_read(w, at);
		break;
	case OP_URING:
		op_uring(w, at);
		break;
	case OP_FORK:
	case OP_CORE:
		op_fork(w, op == OP_CORE);
		break;
	case OP_LOCK:
		/* It looks for the pages, so it says if they are gone. */
		if (mlock(p, PIECE_BYTES) && errno == ENOMEM)
			w->refused++;
		else if (munlock(p, PIECE_BYTES))
			note_wrong(w, "mlock or munlock fails", at);
		break;
	case OP_PIPE:
		op_pipe(w, at);
		break;
	case OP_RELEASE:
		op_release(w, block_at, p);
		break;
	case OP_PROTECT:
		if (mprotect(p, PIECE_BYTES, PROT_READ))
			note_wrong(w, "mprotect fails", at);
		check_mapped(w, "mapping for reading", at, PIECE_BYTES);
		mprotect(w->lease.map, bytes, PROT_READ | PROT_WRITE);
		break;
	case OP_DROP:
		if (madvise(p, PIECE_BYTES, MADV_DONTNEED))
			note_wrong(w, "madvise fails", at);
		check_mapped(w, "mapping anew", at, PIECE_BYTES);
		break;
	default:
		op_remap(w, at);
	}
}

static bool take_lease(struct worker *w)
{
	int rc = lease_add(&w->lease, (1 + pick(w, MAX_BLOCKS)) * BLOCK_BYTES, EBB_NODE_ANY);

	if (rc == EDQUOT || rc == EAGAIN) {
		usleep(2000);
		return false;
	}
	if (!rc)
		rc = lease_map(&w->lease);
	if (rc) {
		note_wrong(w, strerrorname_np(rc), 0);
		return false;
	}
	for (uint64_t at = 0; at < w->lease.bytes; at += BLOCK_BYTES)
		guarded_fill(w->lease.map + at, BLOCK_BYTES, w->lease.id, at);
	w->leases++;
	pthread_mutex_lock(&w->lock);
	w->is_open = true;
	pthread_mutex_unlock(&w->lock);
	return true;
}

static void *run_worker(void *data)
{
	struct worker *w = data;

	while (!is_over) {
		uint64_t n;

		if (!take_lease(w))
			continue;
		for (n = 2 + pick(w, 20); n && !is_over; n--) {
			enum op op = pick(w, OP_MAX);

			/* They cost much more than the others. */
			if ((op == OP_FORK || op == OP_CORE) && pick(w, 4))
				op = OP_CHECK;
			do_op(w, op);
		}
		pthread_mutex_lock(&w->lock);
		w->is_open = false;
		lease_close(&w->lease);
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

/* Releases blocks of all workers, under their hands. */
static void *run_releaser(void *data)
{
	uint64_t state = 77;

	(void)data;
	while (!is_over) {
		struct worker *w = &workers[next_random(&state) % num_workers];

		pthread_mutex_lock(&w->lock);
		if (w->is_open)
			lease_release(&w->lease, next_random(&state) % MAX_BLOCKS * BLOCK_BYTES,
				      (1 + next_random(&state) % 2) * BLOCK_BYTES, NULL);
		pthread_mutex_unlock(&w->lock);
		usleep(next_random(&state) % 4000);
	}
	return NULL;
}

static void start(struct worker *w, unsigned int index)
{
	w->index = index;
	w->random = 0x1234567 * (index + 1);
	w->disk_at = (off_t)index * 2 * PIECE_BYTES;
	w->buffer = mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	pthread_mutex_init(&w->lock, NULL);
	if (w->buffer == MAP_FAILED || io_uring_queue_init(4, &w->ring, 0) ||
	    pthread_create(&w->thread, NULL, run_worker, w)) {
		perror("ebbt-mem-stress");
		exit(1);
	}
}

/* What was done; an operation that never came up is a failure of the test. */
static int report(void)
{
	uint64_t leases = 0, gone = 0, refused = 0, wrong = 0, missing = 0;

	printf("{");
	for (int op = 0; op < OP_MAX; op++) {
		uint64_t done = 0;

		for (unsigned int i = 0; i < num_workers; i++)
			done += workers[i].done[op];
		missing += !done;
		printf("\"%s\":%llu,", op_names[op], (unsigned long long)done);
	}
	for (unsigned int i = 0; i < num_workers; i++) {
		leases += workers[i].leases;
		gone += workers[i].gone;
		refused += workers[i].refused;
		wrong += workers[i].wrong;
	}
	printf("\"leases\":%llu,\"gone\":%llu,\"refused\":%llu,\"wrong\":%llu,\"missing\":%llu}\n",
	       (unsigned long long)leases, (unsigned long long)gone, (unsigned long long)refused,
	       (unsigned long long)wrong, (unsigned long long)missing);
	return wrong || missing || !gone || !refused || !wait_leased(0);
}

int main(int argc, char **argv)
{
	pthread_t releaser;
	int c;

	while ((c = getopt(argc, argv, "r")) != -1) {
		if (c != 'r') {
			fputs(usage, stderr);
			return 2;
		}
		host_revokes = true;
	}
	if (argc - optind < 2) {
		fputs(usage, stderr);
		return 2;
	}
	if (argc - optind > 2)
		num_workers = strtoul(argv[optind + 2], NULL, 10);
	if (!num_workers || num_workers > MAX_WORKERS)
		num_workers = MAX_WORKERS;
	mem_init();
	disk = open(argv[optind + 1], O_RDWR | O_DIRECT | O_CLOEXEC);
	if (disk < 0) {
		perror(argv[optind + 1]);
		return 1;
	}
	for (unsigned int i = 0; i < num_workers; i++)
		start(&workers[i], i);
	pthread_create(&releaser, NULL, run_releaser, NULL);
	sleep(strtoul(argv[optind], NULL, 10));
	is_over = true;
	pthread_join(releaser, NULL);
	for (unsigned int i = 0; i < num_workers; i++)
		pthread_join(workers[i].thread, NULL);
	return report();
}
