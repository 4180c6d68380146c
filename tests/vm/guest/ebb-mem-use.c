/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Description: what leases promise. */
#include "ebb-mem-test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES_OF_BLOCK	(BLOCK_BYTES / PAGE_BYTES)

static bool is_good(const struct lease *l, uint64_t from, uint64_t to)
{
	return first_wrong(l->map + from, to - from, l->id, from) == to - from;
}

static void test_zero_and_reuse(void)
{
	bool is_all_zero = true, is_all_kept = true;

	/* The same blocks again and again: each time with what the last one left. */
	for (int i = 0; i < 8; i++) {
		struct lease l = need_lease(8 * BLOCK_BYTES, 0);

		is_all_zero &= is_zero(l.map, l.bytes);
		fill(l.map, l.bytes, l.id, 0);
		is_all_kept &= is_good(&l, 0, l.bytes);
		if (i % 2)
			lease_release(&l, 0, l.bytes, NULL);
		lease_close(&l);
		wait_leased(0);
	}
	expect("blocks are zero when granted", is_all_zero);
	expect("what is written stays", is_all_kept);
}

static long minor_faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_minflt;
}

/* How many faults it takes to touch each page. */
static long faults_of(char *p, uint64_t bytes)
{
	long before = minor_faults();

	for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
		p[at] = 1;
	return minor_faults() - before;
}

static void test_huge_pages(void)
{
	struct lease l = need_lease(8 * BLOCK_BYTES, 0);
	uint64_t room = l.bytes + 2 * BLOCK_BYTES;
	char *space, *p;
	long faults;

	expect("mmap() aligns to 2 MiB", !((uintptr_t)l.map % BLOCK_BYTES));
	faults = faults_of(l.map, l.bytes);
	expect("a fault maps 2 MiB", faults >= 8 && faults < 16);
	fill(l.map, l.bytes, l.id, 0);

	space = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p = (char *)(((uintptr_t)space + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES) + PAGE_BYTES;
	p = mmap(p, l.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, l.fd, 0);
	expect("MAP_FIXED at a place that is not aligned", p != MAP_FAILED);
	expect("it shows the same", first_wrong(p, l.bytes, l.id, 0) == l.bytes);
	munmap(p, l.bytes);
	p = mmap(p, l.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, l.fd, 0);
	expect("it has pages of 4 KiB", faults_of(p, BLOCK_BYTES) >= (long)PAGES_OF_BLOCK / 2);
	fill(p, l.bytes, l.id, 0);
	expect("what is written there is seen here", is_good(&l, 0, l.bytes));
	expect("a release", !lease_release(&l, BLOCK_BYTES, BLOCK_BYTES, NULL));
	expect("reaches the small pages", touch(p + BLOCK_BYTES + 5000) == SIGBUS &&
	       guard_addr == p + BLOCK_BYTES + 5000);
	expect("and not their neighbours", !touch(p) && !touch(p + BLOCK_BYTES - 1) &&
	       !touch(p + 2 * BLOCK_BYTES));
	munmap(space, room);

	p = mmap(NULL, BLOCK_BYTES, PROT_READ, MAP_SHARED, l.fd, 2 * BLOCK_BYTES + PAGE_BYTES);
	expect("an offset that is not aligned shows what is there", p != MAP_FAILED &&
	       first_wrong(p, BLOCK_BYTES, l.id, 2 * BLOCK_BYTES + PAGE_BYTES) == BLOCK_BYTES);
	munmap(p, BLOCK_BYTES);
	lease_close(&l);
}

static void test_release(void)
{
	struct lease l = need_lease(6 * BLOCK_BYTES, 0);
	struct ebb_lease_info info = { .size = sizeof(info) };
	char *again = mmap(NULL, l.bytes, PROT_READ, MAP_SHARED, l.fd, 0);
	char *p = l.map + 2 * BLOCK_BYTES;
	struct ebb_lease_release r;

	fill(l.map, l.bytes, l.id, 0);
	touch(again + 2 * BLOCK_BYTES);
	expect("release of the middle", !lease_release(&l, 2 * BLOCK_BYTES, 2 * BLOCK_BYTES, &r));
	expect("nothing of it drains", !r.draining_bytes);
	expect("it is held no more at once", mem_totals().held_bytes == 4 * BLOCK_BYTES);
	expect("SIGBUS at the exact address", touch(p + 12345) == SIGBUS &&
	       guard_addr == p + 12345);
	expect("at the first byte", touch(p) == SIGBUS && guard_addr == p);
	expect("at the last byte", touch(p + 2 * BLOCK_BYTES - 1) == SIGBUS &&
	       guard_addr == p + 2 * BLOCK_BYTES - 1);
	expect("when written to", poke(p + 1, 1) == SIGBUS && guard_addr == p + 1);
	expect("in another mapping", touch(again + 3 * BLOCK_BYTES) == SIGBUS);
	expect("the rest is there", is_good(&l, 0, 2 * BLOCK_BYTES) &&
	       is_good(&l, 4 * BLOCK_BYTES, l.bytes));
	expect("EBB_IOC_LEASE_INFO shows it", !ioctl(l.fd, EBB_IOC_LEASE_INFO, &info) &&
	       info.held_map[0] == 0x33 && info.held_bytes == 4 * BLOCK_BYTES &&
	       !info.revoked_bytes && info.bytes == l.bytes && info.count == 6);
	munmap(again, l.bytes);
	expect("release of the rest", !lease_release(&l, 0, 2 * BLOCK_BYTES, NULL) &&
	       !lease_release(&l, 4 * BLOCK_BYTES, 2 * BLOCK_BYTES, NULL));
	expect("nothing is held", wait_leased(0));
	lease_close(&l);
}

static void test_protection(void)
{
	struct lease l = need_lease(2 * BLOCK_BYTES, 0);

	fill(l.map, l.bytes, l.id, 0);
	mprotect(l.map, l.bytes, PROT_READ);
	expect("mprotect() for reading", is_good(&l, 0, l.bytes) && poke(l.map, 1) == SIGSEGV);
	mprotect(l.map, l.bytes, PROT_READ | PROT_WRITE);
	fill(l.map, l.bytes, ++l.id, 0);
	expect("and back", is_good(&l, 0, l.bytes));
	mprotect(l.map + 3 * PAGE_BYTES, PAGE_BYTES, PROT_READ);
	expect("of one page", poke(l.map + 3 * PAGE_BYTES, 1) == SIGSEGV &&
	       !poke(l.map + 5 * PAGE_BYTES + 8, 0) && is_good(&l, 0, l.bytes));
	mprotect(l.map, l.bytes, PROT_NONE);
	expect("of nothing", touch(l.map) == SIGSEGV);
	mprotect(l.map, l.bytes, PROT_READ | PROT_WRITE);
	expect("and back", is_good(&l, 0, l.bytes));
	expect("madvise(MADV_DONTNEED) keeps what is there",
	       !madvise(l.map, l.bytes, MADV_DONTNEED) && is_good(&l, 0, l.bytes));
	expect("without huge pages, too", !madvise(l.map, l.bytes, MADV_NOHUGEPAGE) &&
	       !madvise(l.map, l.bytes, MADV_DONTNEED) && is_good(&l, 0, l.bytes));
	munmap(l.map + BLOCK_BYTES + 7 * PAGE_BYTES, PAGE_BYTES);
	expect("a page unmapped in the middle", touch(l.map + BLOCK_BYTES + 7 * PAGE_BYTES) ==
	       SIGSEGV && is_good(&l, 0, BLOCK_BYTES + 7 * PAGE_BYTES) &&
	       is_good(&l, BLOCK_BYTES + 8 * PAGE_BYTES, l.bytes));
	lease_close(&l);
}

/* How many pages of a block do not raise SIGBUS. */
static unsigned int num_reachable(const char *p)
{
	unsigned int n = 0;

	for (uint64_t at = 0; at < BLOCK_BYTES; at += PAGE_BYTES)
		n += touch(p + at) != SIGBUS;
	return n;
}

/* Advice that Linux takes or refuses, and that takes nothing away from a lease. */
static void test_advice(void)
{
	static const int advices[] = { MADV_COLD, MADV_PAGEOUT };
	unsigned int reachable = 0;
	bool is_kept = true;

	for (int i = 0; i < 16; i++) {
		struct lease l = need_lease(2 * BLOCK_BYTES, 0);

		fill(l.map, l.bytes, l.id, 0);
		is_kept &= is_good(&l, 0, l.bytes);
		/* No access between the two: a translation that a CPU kept is to be seen. */
		madvise(l.map, l.bytes, advices[i % 2]);
		lease_release(&l, BLOCK_BYTES, BLOCK_BYTES, NULL);
		reachable += num_reachable(l.map + BLOCK_BYTES);
		is_kept &= is_good(&l, 0, BLOCK_BYTES);
		lease_close(&l);
	}
	expect("madvise(MADV_COLD) and (MADV_PAGEOUT) keep what is there", is_kept);
	printf("    %u pages that were released can be reached\n", reachable);
	expect("what is released after that can not be reached", !reachable);
}

static void test_move(void)
{
	struct lease l = need_lease(2 * BLOCK_BYTES, 0);
	char *space = mmap(NULL, 4 * BLOCK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *moved;

	fill(l.map, l.bytes, l.id, 0);
	moved = mremap(l.map, l.bytes, l.bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		       space + 3 * PAGE_BYTES);
	expect("mremap() to where it is not aligned", moved == space + 3 * PAGE_BYTES &&
	       first_wrong(moved, l.bytes, l.id, 0) == l.bytes);
	expect("a release reaches it there", !lease_release(&l, 0, BLOCK_BYTES, NULL) &&
	       touch(moved + 99) == SIGBUS && guard_addr == moved + 99 &&
	       first_wrong(moved + BLOCK_BYTES, BLOCK_BYTES, l.id, BLOCK_BYTES) == BLOCK_BYTES);
	moved = mremap(moved, l.bytes, PAGE_BYTES, 0);
	expect("mremap() to less", moved == space + 3 * PAGE_BYTES && touch(moved) == SIGBUS &&
	       touch(moved + PAGE_BYTES) == SIGSEGV);
	munmap(space, 4 * BLOCK_BYTES);
	l.map = NULL;
	lease_close(&l);
}

static void test_system_calls(void)
{
	struct lease l = need_lease(2 * BLOCK_BYTES, 0);
	char buffer[256];
	struct iovec mine = { buffer, sizeof(buffer) }, leased = { l.map + 640, sizeof(buffer) };
	int pipes[2];

	fill(l.map, l.bytes, l.id, 0);
	expect("pipe()", !pipe(pipes));
	expect("write() from a lease", write(pipes[1], l.map, 4096) == 4096);
	expect("read() into a lease", read(pipes[0], l.map, 4096) == 4096 &&
	       is_good(&l, 0, l.bytes));
	expect("process_vm_readv()",
	       process_vm_readv(getpid(), &mine, 1, &leased, 1, 0) == sizeof(buffer) &&
	       !memcmp(buffer, l.map + 640, sizeof(buffer)));
	expect("mlock()", !mlock(l.map, l.bytes) && is_good(&l, 0, l.bytes));
	expect("release of what is locked", !lease_release(&l, BLOCK_BYTES, BLOCK_BYTES, NULL));
	expect_errno("write() from what is released",
		     write(pipes[1], l.map + BLOCK_BYTES, 4096) < 0 ? errno : 0, EFAULT);
	expect("a byte for read()", write(pipes[1], "x", 1) == 1);
	expect_errno("read() into what is released",
		     read(pipes[0], l.map + BLOCK_BYTES, 1) < 0 ? errno : 0, EFAULT);
	leased.iov_base = l.map + BLOCK_BYTES;
	expect_errno("process_vm_readv() of what is released",
		     process_vm_readv(getpid(), &mine, 1, &leased, 1, 0) < 0 ? errno : 0, EFAULT);
	expect("munlock()", !munlock(l.map, BLOCK_BYTES));
	close(pipes[0]);
	close(pipes[1]);
	lease_close(&l);
}

/* What a child says with its exit status; 255: killed. */
static int wait_child(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void test_fork(void)
{
	struct lease l = need_lease(2 * BLOCK_BYTES, 0);
	int to_child[2], to_parent[2];
	char c = 0;
	pid_t pid;

	fill(l.map, l.bytes, l.id, 0);
	if (pipe(to_child) || pipe(to_parent))
		exit(1);
	pid = fork();
	if (!pid) {
		char *p;

		if (touch(l.map) != SIGSEGV)
			_exit(1);
		p = mmap(NULL, l.bytes, PROT_READ, MAP_SHARED, l.fd, 0);
		if (p == MAP_FAILED || first_wrong(p, l.bytes, l.id, 0) != l.bytes)
			_exit(2);
		if (write(to_parent[1], "r", 1) != 1 || read(to_child[0], &c, 1) != 1)
			_exit(3);
		if (touch(p + BLOCK_BYTES) != SIGBUS || touch(p))
			_exit(4);
		_exit(0);
	}
	close(to_parent[1]);
	expect("the child is ready", read(to_parent[0], &c, 1) == 1);
	expect("release while a child has it mapped",
	       !lease_release(&l, BLOCK_BYTES, BLOCK_BYTES, NULL));
	expect("tell it", write(to_child[1], "g", 1) == 1);
	expect_errno("a child has no mapping of its parent's lease, but may make one",
		     wait_child(pid), 0);
	expect("the parent's is as it was", is_good(&l, 0, BLOCK_BYTES));

	pid = fork();
	if (!pid)
		_exit(read(to_child[0], &c, 1) != 1);
	lease_close(&l);
	expect("a child's descriptor keeps it", mem_totals().leased_bytes == BLOCK_BYTES);
	expect("tell it to end", write(to_child[1], "e", 1) == 1);
	expect("the child's end", wait_child(pid) == 0);
	expect("returns it", wait_leased(0));
	close(to_child[0]);
	close(to_child[1]);
	close(to_parent[0]);
}

static void test_life(void)
{
	struct lease l = need_lease(3 * BLOCK_BYTES, 0);
	int old_fd = ebb_fd, pipes[2];
	char c;
	pid_t pid;

	fill(l.map, l.bytes, l.id, 0);
	mem_init();
	close(old_fd);
	expect("a lease outlives the open that made it", is_good(&l, 0, l.bytes) &&
	       mem_totals().leased_bytes == l.bytes);
	close(l.fd);
	expect("and its descriptor", is_good(&l, 0, l.bytes) &&
	       mem_totals().leased_bytes == l.bytes);
	munmap(l.map + BLOCK_BYTES, 2 * BLOCK_BYTES);
	expect("while any of it is mapped", is_good(&l, 0, BLOCK_BYTES) &&
	       mem_totals().leased_bytes == l.bytes);
	munmap(l.map, BLOCK_BYTES);
	expect("then all of it goes", wait_leased(0));

	if (pipe(pipes))
		exit(1);
	pid = fork();
	if (!pid) {
		mem_init();
		l = need_lease(8 * BLOCK_BYTES, 0);
		fill(l.map, l.bytes, l.id, 0);
		if (write(pipes[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	expect("a child has a lease", read(pipes[0], &c, 1) == 1 &&
	       mem_totals().leased_bytes == 8 * BLOCK_BYTES);
	kill(pid, SIGKILL);
	expect("it is killed", wait_child(pid) == 255);
	expect("its lease goes", wait_leased(0));
	close(pipes[0]);
	close(pipes[1]);
}

#define NUM_TOUCHERS	4

struct toucher {
	pthread_t thread;
	pthread_barrier_t *barrier;
	const struct lease *lease;
	uint64_t offset;	/* in each block: what it writes its own offset to */
};

static void *run_toucher(void *arg)
{
	const struct toucher *t = arg;

	for (uint64_t at = 0; at < t->lease->bytes; at += BLOCK_BYTES) {
		pthread_barrier_wait(t->barrier);
		*(volatile uint64_t *)(t->lease->map + at + t->offset) = t->offset;
	}
	return NULL;
}

int test_first_touch(bool is_small)
{
	struct lease l = need_lease(32 * BLOCK_BYTES, 0);
	struct toucher touchers[NUM_TOUCHERS];
	bool is_written = true, is_rest_zero = true;
	pthread_barrier_t barrier;

	if (is_small)
		madvise(l.map, l.bytes, MADV_NOHUGEPAGE);
	pthread_barrier_init(&barrier, NULL, NUM_TOUCHERS);
	for (unsigned int i = 0; i < NUM_TOUCHERS; i++) {
		touchers[i] = (struct toucher) {
			.barrier = &barrier, .lease = &l,
			.offset = i * (BLOCK_BYTES / NUM_TOUCHERS) + sizeof(uint64_t),
		};
		if (pthread_create(&touchers[i].thread, NULL, run_toucher, &touchers[i]))
			exit(1);
	}
	for (unsigned int i = 0; i < NUM_TOUCHERS; i++)
		pthread_join(touchers[i].thread, NULL);
	for (uint64_t at = 0; at < l.bytes; at += BLOCK_BYTES) {
		for (unsigned int i = 0; i < NUM_TOUCHERS; i++) {
			uint64_t *p = (uint64_t *)(l.map + at + touchers[i].offset);

			is_written &= *p == touchers[i].offset;
			*p = 0;
		}
		is_rest_zero &= is_zero(l.map + at, BLOCK_BYTES);
	}
	expect("what threads write to a block that none had touched is there", is_written);
	expect("and nothing else", is_rest_zero);
	lease_close(&l);
	return end_of_tests();
}

int test_use(void)
{
	test_zero_and_reuse();
	test_huge_pages();
	test_release();
	test_protection();
	test_advice();
	test_move();
	test_system_calls();
	test_fork();
	test_life();
	return end_of_tests();
}
