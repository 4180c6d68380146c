/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that test leases in a guest have in common. */
#include "ebb-mem-lib.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define STRIDE	64

int ebb_fd;
_Thread_local void *volatile guard_addr;

static _Thread_local sigjmp_buf guard_jump;
static _Thread_local volatile bool guard_is_on;

static unsigned int passed, failed;

static void on_fault(int signo, siginfo_t *info, void *context)
{
	(void)context;
	if (!guard_is_on) {
		signal(signo, SIG_DFL);
		return;		/* once more, and then it kills */
	}
	guard_addr = info->si_addr;
	siglongjmp(guard_jump, signo);
}

void mem_init(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	ebb_fd = open("/dev/ebb", O_RDWR | O_CLOEXEC);
	if (ebb_fd < 0) {
		printf("[  FAILED  ] /dev/ebb: %s\n", strerrorname_np(errno));
		exit(1);
	}
}

void expect(const char *what, bool is_good)
{
	if (is_good)
		passed++;
	else
		failed++;
	printf("[%s] %s\n", is_good ? "       OK " : "  FAILED  ", what);
	fflush(stdout);
}

void expect_errno(const char *what, int is, int want)
{
	expect(what, is == want);
	if (is != want)
		printf("    %s instead of %s\n", is ? strerrorname_np(is) : "success",
		       want ? strerrorname_np(want) : "success");
}

int end_of_tests(void)
{
	printf("[  PASSED  ] %u test(s).\n", passed);
	if (failed)
		printf("[  FAILED  ] %u test(s).\n", failed);
	return failed || !passed;
}

int lease_add(struct lease *l, uint64_t bytes, uint32_t node)
{
	static uint64_t last_id;
	struct ebb_mem_add a = { .size = sizeof(a), .bytes = bytes, .node = node };

	*l = (struct lease) { .fd = -1 };
	if (ioctl(ebb_fd, EBB_IOC_MEM_ADD, &a))
		return errno;
	*l = (struct lease) {
		.fd = a.lease_fd,
		.node = a.granted_node,
		.bytes = a.granted_bytes,
		.id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED),
	};
	return 0;
}

int lease_map(struct lease *l)
{
	void *p = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);

	if (p == MAP_FAILED)
		return errno;
	l->map = p;
	return 0;
}

int lease_release(const struct lease *l, uint64_t offset, uint64_t bytes,
		  struct ebb_lease_release *ret)
{
	struct ebb_lease_release a = { .size = sizeof(a), .offset = offset, .bytes = bytes };
	int rc = ioctl(l->fd, EBB_IOC_LEASE_RELEASE, &a) ? errno : 0;

	if (!rc && ret)
		*ret = a;
	return rc;
}

void lease_close(struct lease *l)
{
	if (l->map)
		munmap(l->map, l->bytes);
	if (l->fd >= 0)
		close(l->fd);
	*l = (struct lease) { .fd = -1 };
}

struct lease need_lease(uint64_t bytes, uint32_t node)
{
	struct lease l;
	int rc = lease_add(&l, bytes, node);

	if (!rc)
		rc = lease_map(&l);
	if (rc || l.bytes != bytes) {
		printf("[  FAILED  ] a lease of %llu bytes: %s\n", (unsigned long long)bytes,
		       rc ? strerrorname_np(rc) : "only part of it");
		exit(1);
	}
	return l;
}

struct mem_totals mem_totals(void)
{
	struct ebb_mem_info a = { .size = sizeof(a) };
	struct mem_totals sum = { 0 };

	if (ioctl(ebb_fd, EBB_IOC_MEM_INFO, &a)) {
		printf("[  FAILED  ] EBB_IOC_MEM_INFO: %s\n", strerrorname_np(errno));
		exit(1);
	}
	for (uint32_t i = 0; i < a.num_pools; i++) {
		sum.held_bytes += a.pools[i].held_bytes;
		sum.leased_bytes += a.pools[i].leased_bytes;
		sum.draining_bytes += a.pools[i].draining_bytes;
	}
	return sum;
}

bool wait_totals(uint64_t leased_bytes, uint64_t draining_bytes)
{
	uint64_t end_ns = now_ns() + PATIENCE_NS;

	do {
		struct mem_totals t = mem_totals();

		if (t.leased_bytes == leased_bytes && t.draining_bytes == draining_bytes &&
		    t.held_bytes == leased_bytes + draining_bytes)
			return true;
		usleep(2000);
	} while (now_ns() < end_ns);
	return false;
}

bool wait_leased(uint64_t leased_bytes)
{
	return wait_totals(leased_bytes, 0);
}

struct access {
	void (*run)(struct access *a);
	char *p;
	uint64_t bytes, id, offset;
	char value;
	bool is_good;
};

/* Never inlined: longjmp() may spoil what a function keeps in registers. */
static __attribute__((noinline)) int guarded(struct access *a)
{
	int signo = sigsetjmp(guard_jump, 1);

	if (!signo) {
		guard_is_on = true;
		a->run(a);
	}
	guard_is_on = false;
	return signo;
}

static void run_touch(struct access *a)
{
	(void)*(const volatile char *)a->p;
}

static void run_poke(struct access *a)
{
	*(volatile char *)a->p = a->value;
}

static void run_fill(struct access *a)
{
	fill(a->p, a->bytes, a->id, a->offset);
}

static void run_check(struct access *a)
{
	a->is_good = first_wrong(a->p, a->bytes, a->id, a->offset) == a->bytes;
}

int touch(const volatile char *p)
{
	struct access a = { .run = run_touch, .p = (char *)(uintptr_t)p };

	return guarded(&a);
}

int poke(volatile char *p, char value)
{
	struct access a = { .run = run_poke, .p = (char *)(uintptr_t)p, .value = value };

	return guarded(&a);
}

int guarded_fill(char *p, uint64_t bytes, uint64_t id, uint64_t offset)
{
	struct access a = { run_fill, p, bytes, id, offset, 0, false };

	return guarded(&a);
}

int guarded_check(const char *p, uint64_t bytes, uint64_t id, uint64_t offset, bool *ret_is_good)
{
	struct access a = { run_check, (char *)(uintptr_t)p, bytes, id, offset, 0, false };
	int signo = guarded(&a);

	*ret_is_good = a.is_good;
	return signo;
}

static uint64_t word(uint64_t id, uint64_t offset)
{
	return (id << 40 | offset) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

void fill(char *p, uint64_t bytes, uint64_t id, uint64_t offset)
{
	for (uint64_t at = 0; at < bytes; at += STRIDE)
		*(volatile uint64_t *)(p + at) = word(id, offset + at);
}

uint64_t first_wrong(const char *p, uint64_t bytes, uint64_t id, uint64_t offset)
{
	for (uint64_t at = 0; at < bytes; at += STRIDE)
		if (*(const volatile uint64_t *)(p + at) != word(id, offset + at))
			return at;
	return bytes;
}

uint64_t first_foreign(const char *p, uint64_t bytes, uint64_t id, uint64_t offset)
{
	for (uint64_t at = 0; at < bytes; at += STRIDE) {
		uint64_t want = word(id, offset + at);

		for (unsigned int i = 0; i < sizeof(want); i++)
			if (p[at + i] && p[at + i] != (char)(want >> 8 * i))
				return at;
	}
	return bytes;
}

bool is_zero(const char *p, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += sizeof(uint64_t))
		if (*(const volatile uint64_t *)(p + at))
			return false;
	return true;
}
