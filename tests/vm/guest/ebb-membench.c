/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's half of scripts/bench-memory: obeys one command per line from a character device and
 * answers each with one JSON object per line, times in ns of this guest's clock.
 *
 *   lease BYTES NODE   add a lease of the node's pool, write to each of its pages, release it
 *   hold BYTES NODE    add a lease and write to each page; the lease ends with "drop"
 *   grab BYTES NODE    map ordinary memory (of that node only, unless -1), write to each page
 *   drop               unmap what was grabbed, end the lease that was held
 *   more BYTES         wait until Linux manages at least so much memory in all
 *   less BYTES         ... at most so much
 *   total              how much Linux manages
 *
 * An answer with "error" says what failed; the program goes on. It ends when the host closes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <termios.h>
#include <unistd.h>

#include <linux/ebb_ioctl.h>

#include "ebb-guest.h"

#define PAGE_BYTES	4096
#define BLOCK_BYTES	(UINT64_C(2) << 20)
#define WAIT_NS		(UINT64_C(30) * 1000000000)
#define LOOK_US		50	/* between two looks: what works on it needs the CPU, too */
#define MPOL_BIND	2

static struct {
	char *start;
	uint64_t bytes;
} grabbed;

/* Writes to every page once; volatile, or the compiler would leave the stores out. */
static uint64_t touch_ns(char *start, uint64_t bytes)
{
	uint64_t begin_ns = now_ns();

	for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
		*(volatile char *)(start + at) = 1;
	return now_ns() - begin_ns;
}

static uint64_t total_bytes(void)
{
	struct sysinfo info;

	return sysinfo(&info) ? 0 : (uint64_t)info.totalram * info.mem_unit;
}

static int do_lease(FILE *out, int ebb_fd, uint64_t bytes, long node)
{
	struct ebb_mem_add add = {
		.size = sizeof(add),
		.bytes = bytes,
		.node = node < 0 ? EBB_NODE_ANY : (uint32_t)node,
	};
	struct ebb_lease_release release = { .size = sizeof(release), .bytes = bytes };
	uint64_t begin_ns = now_ns(), add_ns, add_ioctl_ns, touched_ns, release_ns;
	char *start;
	int rc = 0;

	if (ioctl(ebb_fd, EBB_IOC_MEM_ADD, &add))
		return -errno;
	add_ioctl_ns = now_ns() - begin_ns;
	start = mmap(NULL, add.granted_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, add.lease_fd, 0);
	add_ns = now_ns() - begin_ns;
	if (start == MAP_FAILED) {
		rc = -errno;
		goto out_close;
	}
	if (add.granted_bytes != bytes) {
		rc = -ENOMEM;
		goto out_unmap;
	}
	touched_ns = touch_ns(start, bytes);
	begin_ns = now_ns();
	if (ioctl(add.lease_fd, EBB_IOC_LEASE_RELEASE, &release))
		rc = -errno;
	release_ns = now_ns() - begin_ns;
	/* What still drains is not back at the host, so the time would not be that of a release. */
	if (!rc && release.draining_bytes)
		rc = -EINPROGRESS;
	if (!rc)
		fprintf(out, "{\"add_ns\":%" PRIu64 ",\"add_ioctl_ns\":%" PRIu64
			",\"add_host_ns\":%" PRIu64 ",\"touch_ns\":%" PRIu64
			",\"release_ns\":%" PRIu64 ",\"release_unmap_ns\":%" PRIu64
			",\"release_host_ns\":%" PRIu64 "}\n",
			add_ns, add_ioctl_ns, (uint64_t)add.host_ns, touched_ns, release_ns,
			(uint64_t)release.unmap_ns, (uint64_t)release.host_ns);
out_unmap:
	munmap(start, add.granted_bytes);
out_close:
	close(add.lease_fd);
	return rc;
}

/* A lease lives as long as a mapping of it. */
static int do_hold(FILE *out, int ebb_fd, uint64_t bytes, long node)
{
	struct ebb_mem_add add = {
		.size = sizeof(add),
		.bytes = bytes,
		.node = node < 0 ? EBB_NODE_ANY : (uint32_t)node,
	};
	char *start;

	if (grabbed.start)
		return -EBUSY;
	if (ioctl(ebb_fd, EBB_IOC_MEM_ADD, &add))
		return -errno;
	start = mmap(NULL, add.granted_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, add.lease_fd, 0);
	close(add.lease_fd);
	if (start == MAP_FAILED)
		return -errno;
	grabbed.start = start;
	grabbed.bytes = add.granted_bytes;
	fprintf(out, "{\"touch_ns\":%" PRIu64 "}\n", touch_ns(start, add.granted_bytes));
	return 0;
}

static int drop(uint64_t *ret_ns)
{
	uint64_t begin_ns = now_ns();

	if (grabbed.start && munmap(grabbed.start, grabbed.bytes))
		return -errno;
	*ret_ns = now_ns() - begin_ns;
	grabbed.start = NULL;
	return 0;
}

static int do_grab(FILE *out, uint64_t bytes, long node)
{
	unsigned long nodes = 1ul << (node < 0 ? 0 : node);
	uint64_t begin_ns, map_ns, ignored_ns;
	char *start;
	int rc = drop(&ignored_ns);

	if (rc)
		return rc;
	begin_ns = now_ns();
	/* A block more, so that there is a range aligned to huge pages in it. */
	start = mmap(NULL, bytes + BLOCK_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED)
		return -errno;
	grabbed.start = start;
	grabbed.bytes = bytes + BLOCK_BYTES;
	start += -(uintptr_t)start & (BLOCK_BYTES - 1);
	if (node >= 0 && syscall(SYS_mbind, start, bytes, MPOL_BIND, &nodes, 8 * sizeof(nodes), 0))
		return -errno;
	if (madvise(start, bytes, MADV_HUGEPAGE) && errno != EINVAL)
		return -errno;
	map_ns = now_ns() - begin_ns;
	fprintf(out, "{\"map_ns\":%" PRIu64 ",\"touch_ns\":%" PRIu64 "}\n", map_ns,
		touch_ns(start, bytes));
	return 0;
}

static int do_drop(FILE *out)
{
	uint64_t ns;
	int rc = drop(&ns);

	if (!rc)
		fprintf(out, "{\"drop_ns\":%" PRIu64 "}\n", ns);
	return rc;
}

static int do_wait(FILE *out, bool is_more, uint64_t bytes)
{
	uint64_t begin_ns = now_ns(), total;

	for (;;) {
		total = total_bytes();
		if (is_more ? total >= bytes : total <= bytes)
			break;
		if (now_ns() - begin_ns > WAIT_NS)
			return -ETIMEDOUT;
		usleep(LOOK_US);
	}
	fprintf(out, "{\"total_bytes\":%" PRIu64 ",\"wait_ns\":%" PRIu64 "}\n", total,
		now_ns() - begin_ns);
	return 0;
}

static void obey(FILE *out, int ebb_fd, const char *line)
{
	uint64_t bytes = 0;
	char word[16] = "";
	long node = -1;
	int rc;

	sscanf(line, "%15s %" SCNu64 " %ld", word, &bytes, &node);
	if (!strcmp(word, "lease"))
		rc = ebb_fd < 0 ? ebb_fd : do_lease(out, ebb_fd, bytes, node);
	else if (!strcmp(word, "hold"))
		rc = ebb_fd < 0 ? ebb_fd : do_hold(out, ebb_fd, bytes, node);
	else if (!strcmp(word, "grab"))
		rc = do_grab(out, bytes, node);
	else if (!strcmp(word, "drop"))
		rc = do_drop(out);
	else if (!strcmp(word, "more") || !strcmp(word, "less"))
		rc = do_wait(out, word[0] == 'm', bytes);
	else if (!strcmp(word, "total"))
		rc = fprintf(out, "{\"total_bytes\":%" PRIu64 "}\n", total_bytes()) < 0 ? -EIO : 0;
	else
		rc = -EINVAL;
	if (rc)
		fprintf(out, "{\"error\":\"%s\",\"command\":\"%s\"}\n", strerrorname_np(-rc), word);
	fflush(out);
}

int main(int argc, char **argv)
{
	struct termios tty;
	char line[128];
	FILE *in, *out;
	int fd, ebb_fd;

	if (argc != 2) {
		fputs("usage: ebbt-membench DEVICE\n", stderr);
		return 2;
	}
	ebb_fd = open("/dev/ebb", O_RDWR | O_CLOEXEC);
	if (ebb_fd < 0)
		ebb_fd = -errno;
	fd = open(argv[1], O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0 && tcgetattr(fd, &tty) == 0) {
		cfmakeraw(&tty);
		tcsetattr(fd, TCSANOW, &tty);
	}
	in = fd < 0 ? NULL : fdopen(fd, "r");
	out = in ? fdopen(dup(fd), "w") : NULL;
	if (!out) {
		fprintf(stderr, "ebbt-membench: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	fputs("{\"ready\":true}\n", out);
	fflush(out);
	while (fgets(line, sizeof(line), in))
		obey(out, ebb_fd, line);
	return 0;
}
