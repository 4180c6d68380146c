/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Description: what leases refuse, each with everything else right. */
#include "ebb-mem-test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static int call(int fd, unsigned long cmd, const void *arg)
{
	return ioctl(fd, cmd, arg) ? errno : 0;
}

/* One field of a good argument changed; the text of it is the name of the test. */
#define REJECT(fd, cmd, good, field, value, want) do { \
		__typeof__(good) bad_ = (good); \
		bad_.field = (value); \
		expect_errno(#cmd " with " #field " = " #value, call(fd, cmd, &bad_), want); \
	} while (0)

static void test_add(void)
{
	struct ebb_mem_info info = { .size = sizeof(info) };
	struct ebb_mem_add good = { .size = sizeof(good), .bytes = BLOCK_BYTES, .node = 0 };

	expect_errno("EBB_IOC_MEM_INFO", call(ebb_fd, EBB_IOC_MEM_INFO, &info), 0);
	REJECT(ebb_fd, EBB_IOC_MEM_INFO, info, size, 0, EINVAL);
	REJECT(ebb_fd, EBB_IOC_MEM_INFO, info, flags, 1, EINVAL);
	REJECT(ebb_fd, EBB_IOC_MEM_INFO, info, reserved, 1, EINVAL);

	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, size, sizeof(good) + 8, EINVAL);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, flags, 1, EINVAL);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, bytes, 0, EINVAL);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, bytes, 1, EINVAL);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, bytes, PAGE_BYTES, EINVAL);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, bytes, BLOCK_BYTES + PAGE_BYTES, EINVAL);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, bytes, UINT64_MAX, EINVAL);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, bytes, -BLOCK_BYTES, ERANGE);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, bytes, UINT64_C(1) << 63, ERANGE);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, bytes, info.pools[0].size_bytes + BLOCK_BYTES,
	       ERANGE);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, node, 2, ENXIO);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, node, 0x10000, ENXIO);
	REJECT(ebb_fd, EBB_IOC_MEM_ADD, good, node, 0xfffffffeu, ENXIO);
	expect("nothing of all that was held", wait_leased(0));
}

static void test_add_bad_places(void)
{
	struct ebb_mem_add *arg = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ebb_mem_add good = { .size = sizeof(good), .bytes = BLOCK_BYTES, .node = 0 };
	struct rlimit old, none;

	expect_errno("EBB_IOC_MEM_ADD of nowhere", call(ebb_fd, EBB_IOC_MEM_ADD, NULL), EFAULT);
	*arg = good;
	mprotect(arg, PAGE_BYTES, PROT_READ);
	expect_errno("EBB_IOC_MEM_ADD to memory that can not be written",
		     call(ebb_fd, EBB_IOC_MEM_ADD, arg), EFAULT);
	munmap(arg, PAGE_BYTES);
	expect("the lease that could not be told of is gone", wait_leased(0));

	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	expect_errno("EBB_IOC_MEM_ADD without a free descriptor",
		     call(ebb_fd, EBB_IOC_MEM_ADD, &good), EMFILE);
	setrlimit(RLIMIT_NOFILE, &old);
	expect("nothing is held for it", wait_leased(0));
}

static void test_release(void)
{
	struct lease l = need_lease(4 * BLOCK_BYTES, 0), other = need_lease(2 * BLOCK_BYTES, 0);
	struct ebb_lease_release good = {
		.size = sizeof(good), .offset = BLOCK_BYTES, .bytes = BLOCK_BYTES,
	};
	struct ebb_lease_release arg = good;

	fill(l.map, l.bytes, l.id, 0);
	fill(other.map, other.bytes, other.id, 0);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, size, 0, EINVAL);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, flags, 1, EINVAL);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, offset, 1, EINVAL);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, offset, PAGE_BYTES, EINVAL);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, bytes, 0, EINVAL);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, bytes, PAGE_BYTES, EINVAL);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, bytes, BLOCK_BYTES - 1, EINVAL);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, offset, 4 * BLOCK_BYTES, ERANGE);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, bytes, 4 * BLOCK_BYTES, ERANGE);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, bytes, -BLOCK_BYTES, ERANGE);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, offset, -BLOCK_BYTES, ERANGE);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, offset, UINT64_C(1) << 62, ERANGE);
	/* A place that the pool has, and another lease, but not this one. */
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, offset, 5 * BLOCK_BYTES, ERANGE);
	expect("all is there after that", first_wrong(l.map, l.bytes, l.id, 0) == l.bytes);

	expect_errno("a release", call(l.fd, EBB_IOC_LEASE_RELEASE, &arg), 0);
	expect_errno("the same twice", call(l.fd, EBB_IOC_LEASE_RELEASE, &arg), ENOENT);
	REJECT(l.fd, EBB_IOC_LEASE_RELEASE, good, bytes, 2 * BLOCK_BYTES, ENOENT);
	arg = good;
	arg.offset = 0;
	arg.bytes = 3 * BLOCK_BYTES;
	expect_errno("a range with a hole", call(l.fd, EBB_IOC_LEASE_RELEASE, &arg), ENOENT);
	expect("what was not released is there",
	       first_wrong(l.map, BLOCK_BYTES, l.id, 0) == BLOCK_BYTES &&
	       first_wrong(l.map + 2 * BLOCK_BYTES, 2 * BLOCK_BYTES, l.id, 2 * BLOCK_BYTES) ==
	       2 * BLOCK_BYTES);
	expect("another lease is as it was",
	       first_wrong(other.map, other.bytes, other.id, 0) == other.bytes);
	lease_close(&l);
	lease_close(&other);
}

static void test_info(void)
{
	struct lease l = need_lease(2 * BLOCK_BYTES, 0);
	struct ebb_lease_info good = { .size = sizeof(good), .start = 1 };
	struct ebb_lease_info arg = good;

	expect("EBB_IOC_LEASE_INFO from the middle",
	       !call(l.fd, EBB_IOC_LEASE_INFO, &arg) && arg.count == 1 && arg.held_map[0] == 1 &&
	       arg.bytes == l.bytes && arg.held_bytes == l.bytes && !arg.revoked_bytes &&
	       arg.node == l.node && arg.block_bytes == BLOCK_BYTES);
	REJECT(l.fd, EBB_IOC_LEASE_INFO, good, size, 8, EINVAL);
	REJECT(l.fd, EBB_IOC_LEASE_INFO, good, flags, 1, EINVAL);
	REJECT(l.fd, EBB_IOC_LEASE_INFO, good, start, 2, ERANGE);
	REJECT(l.fd, EBB_IOC_LEASE_INFO, good, start, 0xffffffffu, ERANGE);
	expect_errno("EBB_IOC_LEASE_INFO of nowhere", call(l.fd, EBB_IOC_LEASE_INFO, NULL), EFAULT);
	expect_errno("EBB_IOC_LEASE_INFO on /dev/ebb", call(ebb_fd, EBB_IOC_LEASE_INFO, &arg),
		     ENOTTY);
	expect_errno("EBB_IOC_MEM_ADD on a lease", call(l.fd, EBB_IOC_MEM_ADD, &arg), ENOTTY);
	lease_close(&l);
}

static int try_mmap(uint64_t bytes, int prot, int flags, int fd, uint64_t offset)
{
	void *p = mmap(NULL, bytes, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return errno;
	munmap(p, bytes);
	return 0;
}

static void test_mmap(void)
{
	struct lease l = need_lease(2 * BLOCK_BYTES, 0);
	const int rw = PROT_READ | PROT_WRITE;
	char path[64];

	expect_errno("mmap() of all", try_mmap(l.bytes, rw, MAP_SHARED, l.fd, 0), 0);
	expect_errno("mmap() for reading", try_mmap(l.bytes, PROT_READ, MAP_SHARED, l.fd, 0), 0);
	expect_errno("mmap() private", try_mmap(l.bytes, rw, MAP_PRIVATE, l.fd, 0), EINVAL);
	expect_errno("mmap() private for reading",
		     try_mmap(l.bytes, PROT_READ, MAP_PRIVATE, l.fd, 0), EINVAL);
	expect_errno("mmap() of more than all",
		     try_mmap(l.bytes + PAGE_BYTES, rw, MAP_SHARED, l.fd, 0), EINVAL);
	expect_errno("mmap() over the end",
		     try_mmap(l.bytes, rw, MAP_SHARED, l.fd, PAGE_BYTES), EINVAL);
	expect_errno("mmap() behind the end",
		     try_mmap(PAGE_BYTES, rw, MAP_SHARED, l.fd, l.bytes), EINVAL);
	expect_errno("mmap() far behind the end",
		     try_mmap(PAGE_BYTES, rw, MAP_SHARED, l.fd, UINT64_C(1) << 62), EINVAL);
	expect_errno("mmap() at the largest offset",
		     try_mmap(PAGE_BYTES, rw, MAP_SHARED, l.fd, -2 * PAGE_BYTES), EINVAL);
	expect_errno("mmap() to execute",
		     try_mmap(l.bytes, rw | PROT_EXEC, MAP_SHARED, l.fd, 0), EPERM);
	expect_errno("mprotect() to execute",
		     mprotect(l.map, l.bytes, rw | PROT_EXEC) ? errno : 0, EACCES);
	expect_errno("mremap() to more",
		     mremap(l.map, BLOCK_BYTES, 2 * BLOCK_BYTES, MREMAP_MAYMOVE) == MAP_FAILED ?
		     errno : 0, EFAULT);
	expect_errno("mremap() to more than the lease",
		     mremap(l.map, l.bytes, 2 * l.bytes, MREMAP_MAYMOVE) == MAP_FAILED ?
		     errno : 0, EFAULT);
	expect_errno("mremap() of nothing, which copies",
		     mremap(l.map, 0, l.bytes, MREMAP_MAYMOVE) == MAP_FAILED ? errno : 0, EFAULT);
	expect_errno("mremap() that leaves the old one",
		     mremap(l.map, l.bytes, l.bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP) ==
		     MAP_FAILED ? errno : 0, EINVAL);
	expect_errno("read() of a lease", read(l.fd, path, 1) < 0 ? errno : 0, EINVAL);
	expect_errno("write() to a lease", write(l.fd, path, 1) < 0 ? errno : 0, EINVAL);
	expect_errno("ftruncate() of a lease", ftruncate(l.fd, BLOCK_BYTES) ? errno : 0, EINVAL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", l.fd);
	expect_errno("opening it again", open(path, O_RDONLY) < 0 ? errno : 0, ENXIO);
	lease_close(&l);
}

int test_bad_input(void)
{
	test_add();
	test_add_bad_places();
	test_release();
	test_info();
	test_mmap();
	expect("nothing is left", wait_leased(0));
	return end_of_tests();
}
