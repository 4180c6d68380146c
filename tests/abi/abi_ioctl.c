/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Description: what /dev/ebb refuses.  Runs in a guest, on the real driver and
 * device, as root.  Each test changes one field of a call that is good without
 * the change, and first makes the good call where that costs nothing.  Plain C
 * and static, for an image without libraries; counts as cmocka does.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/ebb_ioctl.h>

static int fd;
static unsigned int passed, failed;
static struct ebb_vom good_vom;		/* large */

/* Calls the ioctl with a copy, so that a template stays good. */
static int call(unsigned long cmd, const void *template, size_t size)
{
	unsigned char arg[sizeof(struct ebb_vom)];

	memcpy(arg, template, size);
	return ioctl(fd, cmd, arg) < 0 ? errno : 0;
}

static const char *errno_name(int error)
{
	return error ? strerrorname_np(error) : "success";
}

static void expect(const char *what, int is, int want)
{
	if (is == want) {
		passed++;
		printf("[       OK ] %s\n", what);
	} else {
		failed++;
		printf("[  FAILED  ] %s: %s instead of %s\n", what,
		       errno_name(is), errno_name(want));
	}
}

/* One field of a template changed; the name is the test's name. */
#define REJECT(cmd, template, field, value, want) do { \
		__typeof__(template) bad_ = (template); \
		bad_.field = (value); \
		expect(#cmd " with " #field " = " #value, call(cmd, &bad_, sizeof(bad_)), want); \
	} while (0)

#define ACCEPT(cmd, template) \
	expect(#cmd, call(cmd, &(template), sizeof(template)), 0)

static void test_info(void)
{
	struct ebb_info good = { .size = sizeof(good) };

	ACCEPT(EBB_IOC_INFO, good);
	REJECT(EBB_IOC_INFO, good, size, 0, EINVAL);
	REJECT(EBB_IOC_INFO, good, size, sizeof(good) - 8, EINVAL);
	REJECT(EBB_IOC_INFO, good, size, sizeof(good) + 8, EINVAL);
	REJECT(EBB_IOC_INFO, good, flags, 1, EINVAL);
	REJECT(EBB_IOC_INFO, good, flags, 1u << 31, EINVAL);
}

static void test_limits(void)
{
	struct ebb_limits good = { .size = sizeof(good) };
	struct ebb_limits old = { .size = EBB_LIMITS_SIZE_VER0, .reserved = 0xebebebebu };
	unsigned long old_cmd = _IOC(_IOC_READ | _IOC_WRITE, EBB_IOC_MAGIC, 1,
				     EBB_LIMITS_SIZE_VER0);

	ACCEPT(EBB_IOC_LIMITS, good);
	expect("the first structure of limits", ioctl(fd, old_cmd, &old) ? errno : 0, 0);
	expect("what lies behind it", old.reserved == 0xebebebebu ? 0 : EINVAL, 0);
	REJECT(EBB_IOC_LIMITS, good, size, sizeof(good) + 8, EINVAL);
	REJECT(EBB_IOC_LIMITS, good, flags, 1, EINVAL);
}

static void test_cpu_list(void)
{
	struct ebb_cpu_list good = { .size = sizeof(good) };

	ACCEPT(EBB_IOC_CPU_LIST, good);
	REJECT(EBB_IOC_CPU_LIST, good, size, sizeof(good) - 8, EINVAL);
	REJECT(EBB_IOC_CPU_LIST, good, flags, 1, EINVAL);
	REJECT(EBB_IOC_CPU_LIST, good, reserved, 1, EINVAL);
	good.start = 0xffffffffu;
	ACCEPT(EBB_IOC_CPU_LIST, good);
}

static void test_telemetry(void)
{
	struct ebb_telemetry good = { .size = sizeof(good) };
	struct ebb_info info = { .size = sizeof(info) };

	good.report.type = VIRTIO_EBB_TELEMETRY_TOTALS;
	ACCEPT(EBB_IOC_TELEMETRY, good);
	REJECT(EBB_IOC_TELEMETRY, good, size, sizeof(good) - 8, EINVAL);
	REJECT(EBB_IOC_TELEMETRY, good, flags, 1, EINVAL);
	REJECT(EBB_IOC_TELEMETRY, good, report.type, 0, EINVAL);
	REJECT(EBB_IOC_TELEMETRY, good, report.type, VIRTIO_EBB_TELEMETRY_VOM, EINVAL);
	REJECT(EBB_IOC_TELEMETRY, good, report.reserved, 1, EINVAL);
	REJECT(EBB_IOC_TELEMETRY, good, report.reserved2, 1, EINVAL);
	if (!ioctl(fd, EBB_IOC_INFO, &info) && !(info.features & 1u << VIRTIO_EBB_F_BASELINE)) {
		REJECT(EBB_IOC_TELEMETRY, good, report.baseline_ios, 1, EINVAL);
		REJECT(EBB_IOC_TELEMETRY, good, report.actual_ios, 1, EINVAL);
		REJECT(EBB_IOC_TELEMETRY, good, report.baseline_mib, 1, EINVAL);
		return;
	}
	good.report.baseline_ios = ~0ull;
	good.report.actual_ios = ~0ull;
	good.report.baseline_mib = ~0u;
	ACCEPT(EBB_IOC_TELEMETRY, good);
}

static void reject_vom(const char *what, const struct ebb_vom *bad, int want)
{
	expect(what, call(EBB_IOC_VOM, bad, sizeof(*bad)), want);
}

/* A good call is made after the bad ones: they must not use up what it needs. */
static void test_vom(void)
{
	struct ebb_info info = { .size = sizeof(info) };
	struct ebb_limits limits = { .size = sizeof(limits) };
	struct ebb_vom *good = &good_vom;
	unsigned int i;
	__u32 node = 0;

	if (!ioctl(fd, EBB_IOC_LIMITS, &limits) && limits.num_nodes)
		node = limits.nodes[0].node;
	good->size = sizeof(*good);
	good->seq = 1;
	good->num_buckets = 2;
	good->buckets[0] = (struct ebb_vom_bucket) { .kib = 64, .node = node };
	good->buckets[1] = (struct ebb_vom_bucket) { .value = 7, .kib = 1, .node = node };
	if (!ioctl(fd, EBB_IOC_INFO, &info) && !(info.features & 1u << VIRTIO_EBB_F_VOM)) {
		reject_vom("EBB_IOC_VOM where the device can not", good, EOPNOTSUPP);
		return;
	}
	REJECT(EBB_IOC_VOM, *good, size, sizeof(*good) - 16, EINVAL);
	REJECT(EBB_IOC_VOM, *good, size, 0, EINVAL);
	REJECT(EBB_IOC_VOM, *good, flags, 1, EINVAL);
	REJECT(EBB_IOC_VOM, *good, seq, 0, EINVAL);
	REJECT(EBB_IOC_VOM, *good, num_buckets, EBB_VOM_MAX_BUCKETS + 1, EINVAL);
	REJECT(EBB_IOC_VOM, *good, num_buckets, 0xffffffffu, EINVAL);
	REJECT(EBB_IOC_VOM, *good, num_buckets, 3, EINVAL);
	REJECT(EBB_IOC_VOM, *good, buckets[0].kib, 0, EINVAL);
	REJECT(EBB_IOC_VOM, *good, buckets[1].kib, 0, EINVAL);
	REJECT(EBB_IOC_VOM, *good, buckets[1].reserved, 1, EINVAL);
	REJECT(EBB_IOC_VOM, *good, buckets[1].node, 0xffff, EINVAL);
	REJECT(EBB_IOC_VOM, *good, buckets[0].value, 7, EINVAL);
	REJECT(EBB_IOC_VOM, *good, buckets[0].value, 8, EINVAL);
	/* Another may have been sent just before this; or long before, if the machine is busy. */
	for (i = 0; i < 1000 && call(EBB_IOC_VOM, good, sizeof(*good)) == EBUSY; i++)
		usleep(50000);
	expect("EBB_IOC_VOM", i < 1000 ? 0 : EBUSY, 0);
	for (i = 0; i < 1000 && !call(EBB_IOC_VOM, good, sizeof(*good)); i++)
		;
	reject_vom("EBB_IOC_VOM right after another", good, EBUSY);
}

static void test_cpu_add(void)
{
	struct ebb_cpu_add good = { .size = sizeof(good), .count = 1, .node = EBB_NODE_ANY };

	REJECT(EBB_IOC_CPU_ADD, good, size, sizeof(good) - 8, EINVAL);
	REJECT(EBB_IOC_CPU_ADD, good, flags, 2, EINVAL);
	REJECT(EBB_IOC_CPU_ADD, good, flags, EBB_ADD_ALLOW_HT | 1u << 31, EINVAL);
	REJECT(EBB_IOC_CPU_ADD, good, count, 0, EINVAL);
	REJECT(EBB_IOC_CPU_ADD, good, count, EBB_MAX_REQ_CPUS + 1, EINVAL);
	REJECT(EBB_IOC_CPU_ADD, good, count, 0x10001, EINVAL);
	REJECT(EBB_IOC_CPU_ADD, good, node, EBB_MAX_NODES, ENXIO);
	REJECT(EBB_IOC_CPU_ADD, good, node, VIRTIO_EBB_NODE_ANY, ENXIO);
	REJECT(EBB_IOC_CPU_ADD, good, timeout_ms, EBB_TIMEOUT_MAX_MS + 1, EINVAL);
}

static void test_cpu_remove(void)
{
	/* CPU 0 is of the startup set of every VM: the good call comes as far as EPERM. */
	struct ebb_cpu_remove good = { .size = sizeof(good), .cpu = 0 };

	expect("EBB_IOC_CPU_REMOVE of a startup CPU", call(EBB_IOC_CPU_REMOVE, &good, sizeof(good)),
	       EPERM);
	REJECT(EBB_IOC_CPU_REMOVE, good, size, sizeof(good) + 8, EINVAL);
	REJECT(EBB_IOC_CPU_REMOVE, good, flags, 1, EINVAL);
	REJECT(EBB_IOC_CPU_REMOVE, good, cpu, 100000, ENOENT);
	REJECT(EBB_IOC_CPU_REMOVE, good, cpu, 0xffffffffu, ENOENT);
	REJECT(EBB_IOC_CPU_REMOVE, good, timeout_ms, EBB_TIMEOUT_MAX_MS + 1, EINVAL);
}

static void test_cpu_lend(void)
{
	/* As test_cpu_remove(). */
	struct ebb_cpu_lend good = { .size = sizeof(good), .cpu = 0 };
	struct ebb_info info = { .size = sizeof(info) };

	if (!ioctl(fd, EBB_IOC_INFO, &info) && !(info.features & 1u << VIRTIO_EBB_F_LEND)) {
		expect("EBB_IOC_CPU_LEND where the device can not",
		       call(EBB_IOC_CPU_LEND, &good, sizeof(good)), EOPNOTSUPP);
		return;
	}
	expect("EBB_IOC_CPU_LEND of a startup CPU", call(EBB_IOC_CPU_LEND, &good, sizeof(good)),
	       EPERM);
	REJECT(EBB_IOC_CPU_LEND, good, flags, EBB_LEND_PARK, EPERM);
	REJECT(EBB_IOC_CPU_LEND, good, size, sizeof(good) + 8, EINVAL);
	REJECT(EBB_IOC_CPU_LEND, good, flags, 2, EINVAL);
	REJECT(EBB_IOC_CPU_LEND, good, flags, EBB_LEND_PARK | 1u << 31, EINVAL);
	REJECT(EBB_IOC_CPU_LEND, good, cpu, 100000, ENOENT);
	REJECT(EBB_IOC_CPU_LEND, good, cpu, 0xffffffffu, ENOENT);
	REJECT(EBB_IOC_CPU_LEND, good, timeout_ms, EBB_TIMEOUT_MAX_MS + 1, EINVAL);
}

static void test_mem(void)
{
	struct ebb_mem_info info = { .size = sizeof(info) };
	struct ebb_mem_add add = { .size = sizeof(add), .bytes = 2u << 20, .node = EBB_NODE_ANY };

	ACCEPT(EBB_IOC_MEM_INFO, info);
	REJECT(EBB_IOC_MEM_INFO, info, size, sizeof(info) - 8, EINVAL);
	REJECT(EBB_IOC_MEM_INFO, info, flags, 1, EINVAL);
	REJECT(EBB_IOC_MEM_INFO, info, reserved, 1, EINVAL);
	REJECT(EBB_IOC_MEM_ADD, add, size, sizeof(add) + 8, EINVAL);
	REJECT(EBB_IOC_MEM_ADD, add, flags, 1u << 31, EINVAL);
	REJECT(EBB_IOC_MEM_ADD, add, bytes, 0, EINVAL);
	REJECT(EBB_IOC_MEM_ADD, add, node, EBB_MAX_NODES, ENXIO);
}

/* The ioctls of a lease; a VM with pools must have memory on offer.  Their arguments as above. */
static void test_lease(void)
{
	struct ebb_mem_add add = { .size = sizeof(add), .bytes = 4u << 20, .node = EBB_NODE_ANY };
	struct ebb_lease_release release = { .size = sizeof(release), .bytes = 2u << 20 };
	struct ebb_lease_info info = { .size = sizeof(info) };
	struct ebb_mem_info pools = { .size = sizeof(pools) };
	int old_fd = fd;

	if (!ioctl(fd, EBB_IOC_MEM_INFO, &pools) && !pools.num_pools) {
		expect("EBB_IOC_MEM_ADD without a pool", call(EBB_IOC_MEM_ADD, &add, sizeof(add)),
		       ENXIO);
		return;
	}
	if (ioctl(fd, EBB_IOC_MEM_ADD, &add)) {
		expect("EBB_IOC_MEM_ADD", errno, 0);
		return;
	}
	fd = add.lease_fd;
	ACCEPT(EBB_IOC_LEASE_INFO, info);
	REJECT(EBB_IOC_LEASE_INFO, info, size, sizeof(info) + 8, EINVAL);
	REJECT(EBB_IOC_LEASE_INFO, info, flags, 1, EINVAL);
	REJECT(EBB_IOC_LEASE_INFO, info, start, 2, ERANGE);
	REJECT(EBB_IOC_LEASE_RELEASE, release, size, 0, EINVAL);
	REJECT(EBB_IOC_LEASE_RELEASE, release, flags, 1, EINVAL);
	REJECT(EBB_IOC_LEASE_RELEASE, release, offset, 4096, EINVAL);
	REJECT(EBB_IOC_LEASE_RELEASE, release, offset, 4u << 20, ERANGE);
	REJECT(EBB_IOC_LEASE_RELEASE, release, bytes, 0, EINVAL);
	ACCEPT(EBB_IOC_LEASE_RELEASE, release);
	expect("EBB_IOC_LEASE_RELEASE twice",
	       call(EBB_IOC_LEASE_RELEASE, &release, sizeof(release)), ENOENT);
	close(fd);
	fd = old_fd;
}

/* Structures of programs that were compiled with a later header. */
static void test_larger(void)
{
	struct {
		struct ebb_info known;
		__u64 more[2];
	} info = { .known.size = sizeof(info) };
	struct {
		struct ebb_limits known;
		__u64 more;
	} limits = { .known.size = sizeof(limits) };
	struct ebb_info plain = { .size = sizeof(plain) };
	unsigned long info_cmd = _IOC(_IOC_READ | _IOC_WRITE, EBB_IOC_MAGIC, 0, sizeof(info));
	unsigned long limits_cmd = _IOC(_IOC_READ | _IOC_WRITE, EBB_IOC_MAGIC, 1, sizeof(limits));

	expect("a larger structure", call(info_cmd, &info, sizeof(info)), 0);
	expect("a larger structure that is told as the known one",
	       call(EBB_IOC_INFO, &info, sizeof(info)), EINVAL);
	info.more[1] = 1;
	expect("a larger structure with something set that is not known",
	       call(info_cmd, &info, sizeof(info)), E2BIG);
	info.more[1] = 0;
	info.known.flags = 1;
	expect("a larger structure with an unknown flag", call(info_cmd, &info, sizeof(info)),
	       EINVAL);
	info.known.flags = 0;
	info.known.size = sizeof(plain);
	expect("a larger structure with too small a size in it",
	       call(info_cmd, &info, sizeof(info)), EINVAL);
	info.known.size = sizeof(info);
	expect("what a larger structure gets",
	       !ioctl(fd, info_cmd, &info) && !ioctl(fd, EBB_IOC_INFO, &plain) &&
	       info.known.size == sizeof(info) && info.known.max_cpus == plain.max_cpus &&
	       info.known.features == plain.features && !info.more[0] && !info.more[1] ?
	       0 : EINVAL, 0);
	expect("a larger structure of limits", call(limits_cmd, &limits, sizeof(limits)), 0);
	expect("a smaller structure than was ever published",
	       call(_IOC(_IOC_READ | _IOC_WRITE, EBB_IOC_MAGIC, 0, sizeof(plain) - 8), &plain,
		    sizeof(plain)), ENOTTY);
}

static void test_unknown(void)
{
	struct ebb_info good = { .size = sizeof(good) };
	unsigned int nr;

	for (nr = 0; nr < 0x50; nr++) {
		unsigned long cmd = _IOWR(EBB_IOC_MAGIC, nr, struct ebb_info);

		/* These have an argument of the same size, or of a smaller one that may grow. */
		if (cmd == EBB_IOC_INFO || cmd == EBB_IOC_MEM_ADD ||
		    nr == _IOC_NR(EBB_IOC_CPU_REMOVE) || nr == _IOC_NR(EBB_IOC_CPU_LEND))
			continue;
		if (call(cmd, &good, sizeof(good)) != ENOTTY)
			break;
	}
	expect("numbers that are not taken, or with another structure", nr == 0x50 ? 0 : EINVAL, 0);
	expect("another magic", call(_IOWR('x', 0, struct ebb_info), &good, sizeof(good)), ENOTTY);
	expect("another direction", call(_IOR(EBB_IOC_MAGIC, 0, struct ebb_info), &good,
	       sizeof(good)), ENOTTY);
}

static void test_bad_pointers(void)
{
	static const unsigned long cmds[] = {
		EBB_IOC_INFO, EBB_IOC_LIMITS, EBB_IOC_TELEMETRY, EBB_IOC_VOM, EBB_IOC_CPU_ADD,
		EBB_IOC_CPU_REMOVE, EBB_IOC_CPU_LIST, EBB_IOC_CPU_LEND, EBB_IOC_MEM_INFO,
		EBB_IOC_MEM_ADD,
	};
	struct ebb_info *read_only = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool is_refused = true;

	for (unsigned int i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		is_refused &= ioctl(fd, cmds[i], NULL) < 0 && errno == EFAULT;
		is_refused &= ioctl(fd, cmds[i], (void *)-4096L) < 0 && errno == EFAULT;
	}
	expect("pointers to nowhere", is_refused ? EFAULT : 0, EFAULT);

	if (read_only == MAP_FAILED) {
		expect("mmap", errno, 0);
		return;
	}
	read_only->size = sizeof(*read_only);
	mprotect(read_only, 4096, PROT_READ);
	expect("EBB_IOC_INFO to memory that can not be written",
	       ioctl(fd, EBB_IOC_INFO, read_only) < 0 ? errno : 0, EFAULT);
	munmap(read_only, 4096);
}

/* [out] fields are ignored on input. */
static void test_out_fields(void)
{
	struct ebb_limits limits;
	struct ebb_cpu_list list;
	struct ebb_info info;

	memset(&info, 0xff, sizeof(info));
	info.size = sizeof(info);
	info.flags = 0;
	ACCEPT(EBB_IOC_INFO, info);
	memset(&limits, 0xff, sizeof(limits));
	limits.size = sizeof(limits);
	limits.flags = 0;
	ACCEPT(EBB_IOC_LIMITS, limits);
	memset(&list, 0xff, sizeof(list));
	list.size = sizeof(list);
	list.flags = 0;
	list.start = 0;
	list.reserved = 0;
	ACCEPT(EBB_IOC_CPU_LIST, list);
}

static void test_poll(void)
{
	struct pollfd p = { .fd = open("/dev/ebb", O_RDWR), .events = POLLIN };
	struct ebb_limits limits = { .size = sizeof(limits) };
	int news_left = 100;

	if (p.fd < 0) {
		expect("second open", errno, 0);
		return;
	}
	expect("POLLIN before the limits were ever read",
	       poll(&p, 1, 0) == 1 && p.revents == POLLIN ? 0 : EAGAIN, 0);
	expect("EBB_IOC_LIMITS of a second open", ioctl(p.fd, EBB_IOC_LIMITS, &limits) ? errno : 0,
	       0);
	/* New ones may come in between, though not for ever. */
	while (poll(&p, 1, 0) == 1 && --news_left)
		ioctl(p.fd, EBB_IOC_LIMITS, &limits);
	expect("nothing to poll for right after", news_left ? 0 : EBUSY, 0);
	close(p.fd);
}

int main(void)
{
	fd = open("/dev/ebb", O_RDWR);
	if (fd < 0) {
		printf("[  FAILED  ] /dev/ebb: %s\n", errno_name(errno));
		printf("[  FAILED  ] 1 test(s).\n");
		return 1;
	}
	test_info();
	test_limits();
	test_cpu_list();
	test_telemetry();
	test_vom();
	test_cpu_add();
	test_cpu_remove();
	test_cpu_lend();
	test_mem();
	test_lease();
	test_larger();
	test_unknown();
	test_bad_pointers();
	test_out_fields();
	test_poll();
	close(fd);
	printf("[  PASSED  ] %u test(s).\n", passed);
	if (failed)
		printf("[  FAILED  ] %u test(s).\n", failed);
	return failed != 0 || !passed;
}
