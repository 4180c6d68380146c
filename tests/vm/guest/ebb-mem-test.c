/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Description: leases of /dev/ebb.  Runs in a guest, on the real driver and
 * device, as root, with 64 MiB on offer on node 0; plain C and static.
 * "bad-input": what is refused, one thing at a time.  "use": what must work,
 * and what happens at the edges.  "io": system calls on leased memory.  The
 * other commands are for shell scripts that play the host at the same time.
 */
#include "ebb-mem-test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static const char usage[] =
	"usage: ebbt-mem bad-input | use | io DISK\n"
	"       ebbt-mem first-touch[-small]  by threads at once, with pages of 2 MiB or 4 KiB\n"
	"       ebbt-mem info                 pools and limits of memory\n"
	"       ebbt-mem add BYTES [NODE]     add a lease, see that it is zero, return it\n"
	"       ebbt-mem hold BYTES [NODE]    keep it; say what is there when told with SIGUSR1\n"
	"       ebbt-mem comb BYTES [NODE]    likewise, but release every second block first\n"
	"       ebbt-mem pipe BYTES [NODE]    likewise, with pages of the first block in a pipe\n"
	"       ebbt-mem failed BYTES [NODE]  likewise, with memory of the second block failed\n"
	"       ebbt-mem small-leases BYTES COUNT\n"
	"                                     leases of one block, for each of which\n"
	"                                     BYTES are asked; what the kernel keeps\n"
	"       ebbt-mem watch BYTES NODE DISK  likewise, and see that nothing reads as zero\n"
	"       ebbt-mem time BYTES ROUNDS    how long add, first touch and release take\n";

static int fail(const char *what, int error)
{
	fprintf(stderr, "ebbt-mem: %s: %s (%s)\n", what, strerrorname_np(error), strerror(error));
	return 1;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (!*text || *end) {
		fprintf(stderr, "ebbt-mem: %s is not a number\n", text);
		exit(2);
	}
	return n;
}

static int do_info(void)
{
	struct ebb_limits limits = { .size = sizeof(limits) };
	struct ebb_mem_info info = { .size = sizeof(info) };
	uint64_t now = now_ns();

	if (ioctl(ebb_fd, EBB_IOC_MEM_INFO, &info))
		return fail("EBB_IOC_MEM_INFO", errno);
	if (ioctl(ebb_fd, EBB_IOC_LIMITS, &limits))
		return fail("EBB_IOC_LIMITS", errno);
	printf("{\"pools\":[");
	for (uint32_t i = 0; i < info.num_pools; i++) {
		const struct ebb_pool_info *p = &info.pools[i];

		printf("%s{\"node\":%u,\"block\":%u,\"size\":%" PRIu64 ",\"held\":%" PRIu64
		       ",\"leased\":%" PRIu64 ",\"draining\":%" PRIu64 "}", i ? "," : "", p->node,
		       p->block_bytes, (uint64_t)p->size_bytes, (uint64_t)p->held_bytes,
		       (uint64_t)p->leased_bytes, (uint64_t)p->draining_bytes);
	}
	printf("],\"limits\":[");
	for (uint32_t i = 0; i < limits.num_nodes; i++) {
		const struct ebb_node_limit *n = &limits.nodes[i];

		printf("%s{\"node\":%u,\"held\":%" PRIu64 ",\"limit\":%" PRIu64
		       ",\"deadline_in_ms\":%" PRId64 "}", i ? "," : "", n->node,
		       (uint64_t)n->mem_held_bytes, (uint64_t)n->mem_limit_bytes,
		       n->mem_deadline_ns ? (int64_t)(n->mem_deadline_ns - now) / 1000000 : 0);
	}
	printf("]}\n");
	return 0;
}

static void print_lease(const struct lease *l)
{
	printf("{\"granted\":%" PRIu64 ",\"node\":%u}\n", l->bytes, l->node);
	fflush(stdout);
}

/* What is in each block, as seen by touching it. */
static void say_what_is_there(const struct lease *l)
{
	struct ebb_lease_info info = { .size = sizeof(info) };
	uint64_t good = 0, gone = 0, wrong = 0, inexact = 0, map_differs = 0;
	struct pollfd p = { .fd = l->fd, .events = POLLPRI };
	int events = poll(&p, 1, 0) == 1 ? p.revents : 0;
	int rc = ioctl(l->fd, EBB_IOC_LEASE_INFO, &info) ? errno : 0;

	for (uint64_t at = 0; at < l->bytes; at += BLOCK_BYTES) {
		const char *where = l->map + at + 4 * PAGE_BYTES + 64;
		bool is_held = info.held_map[at / BLOCK_BYTES / 64] >> at / BLOCK_BYTES % 64 & 1;
		bool is_good = false;
		int signo = touch(where);

		if (signo == SIGBUS) {
			gone++;
			inexact += guard_addr != where;
		} else {
			signo = guarded_check(l->map + at, BLOCK_BYTES, l->id, at, &is_good);
			good += is_good;
			wrong += !is_good;
		}
		map_differs += !rc && is_held != (signo != SIGBUS);
	}
	printf("{\"good\":%" PRIu64 ",\"gone\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"inexact\":%"
	       PRIu64 ",\"map_differs\":%" PRIu64 ",\"held\":%" PRIu64 ",\"revoked\":%" PRIu64
	       ",\"poll\":%d,\"info\":\"%s\"}\n",
	       good, gone, wrong, inexact, map_differs, (uint64_t)info.held_bytes,
	       (uint64_t)info.revoked_bytes, events, rc ? strerrorname_np(rc) : "");
	fflush(stdout);
}

static int do_hold(const char *how, uint64_t bytes, uint32_t node)
{
	struct iovec iov = { .iov_len = PAGE_BYTES };
	struct lease l;
	int rc, signo, pipes[2];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	rc = lease_add(&l, bytes, node);
	if (!rc)
		rc = lease_map(&l);
	if (rc)
		return fail("hold", rc);
	fill(l.map, l.bytes, l.id, 0);
	iov.iov_base = l.map;
	if (!strcmp(how, "pipe") && (pipe(pipes) || vmsplice(pipes[1], &iov, 1, 0) < 0))
		return fail("vmsplice", errno);
	if (!strcmp(how, "failed") &&
	    madvise(l.map + BLOCK_BYTES + 3 * PAGE_BYTES, PAGE_BYTES, MADV_HWPOISON))
		return fail("madvise", errno);
	for (uint64_t at = 0; !strcmp(how, "comb") && at < l.bytes; at += 2 * BLOCK_BYTES)
		lease_release(&l, at, BLOCK_BYTES, NULL);
	print_lease(&l);
	while (!sigwait(&set, &signo))
		say_what_is_there(&l);
	return 0;
}

static int do_add(uint64_t bytes, uint32_t node)
{
	struct lease l;
	int rc = lease_add(&l, bytes, node);

	if (rc)
		return fail("EBB_IOC_MEM_ADD", rc);
	rc = lease_map(&l);
	if (rc || !is_zero(l.map, l.bytes))
		return fail("granted memory is not zero", rc ?: EIO);
	fill(l.map, l.bytes, l.id, 0);
	print_lease(&l);
	return 0;
}

static int do_time(uint64_t bytes, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++) {
		struct ebb_lease_release release;
		uint64_t start = now_ns(), added, mapped, touched, released;
		struct lease l;
		int rc = lease_add(&l, bytes, 0);

		added = now_ns();
		rc = rc ?: lease_map(&l);
		if (rc || l.bytes != bytes)
			return fail("add", rc ?: EDQUOT);
		mapped = now_ns();
		for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
			*(volatile char *)(l.map + at) = 1;
		touched = now_ns();
		rc = lease_release(&l, 0, bytes, &release);
		released = now_ns();
		if (rc)
			return fail("release", rc);
		lease_close(&l);
		printf("{\"add_ns\":%" PRIu64 ",\"touch_ns\":%" PRIu64 ",\"release_ns\":%" PRIu64
		       ",\"unmap_ns\":%" PRIu64 ",\"host_ns\":%" PRIu64 ",\"draining\":%" PRIu64
		       "}\n", added - start, touched - mapped, released - touched,
		       (uint64_t)release.unmap_ns, (uint64_t)release.host_ns,
		       (uint64_t)release.draining_bytes);
	}
	return 0;
}

/* Objects of the kernel's caches whose names begin and end like this. */
static long count_slab(const char *prefix, const char *suffix)
{
	FILE *f = fopen("/proc/slabinfo", "re");
	char line[512], name[64];
	long sum = 0, n;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %ld", name, &n) != 2 ||
		    strncmp(name, prefix, strlen(prefix)))
			continue;
		if (strlen(name) >= strlen(suffix) &&
		    !strcmp(name + strlen(name) - strlen(suffix), suffix))
			sum += n;
	}
	if (f)
		fclose(f);
	return sum;
}

/* A table of 512 blocks takes 2 KiB. */
static int do_small_leases(uint64_t bytes, uint64_t count)
{
	struct lease all = need_lease(bytes, 0), one;
	long of_2k = count_slab("kmalloc-", "-2k"), accounted = count_slab("kmalloc-cg-", "");
	uint64_t i;

	for (i = 0; i < count; i++) {
		int rc = lease_release(&all, i * BLOCK_BYTES, BLOCK_BYTES, NULL);

		rc = rc ?: lease_add(&one, bytes, 0);
		if (rc || one.bytes != BLOCK_BYTES)
			return fail("a lease of one block", rc ?: ERANGE);
	}
	of_2k = count_slab("kmalloc-", "-2k") - of_2k;
	accounted = count_slab("kmalloc-cg-", "") - accounted;
	printf("{\"leases\":%" PRIu64 ",\"kmalloc_2k\":%ld,\"accounted\":%ld}\n", i, of_2k,
	       accounted);
	return 0;
}

int main(int argc, char **argv)
{
	const char *cmd = argc > 1 ? argv[1] : "";
	uint32_t node = argc > 3 ? number(argv[3]) : EBB_NODE_ANY;

	mem_init();
	if (!strcmp(cmd, "bad-input"))
		return test_bad_input();
	if (!strcmp(cmd, "use"))
		return test_use();
	if (!strcmp(cmd, "io") && argc == 3)
		return test_io(argv[2]);
	if (!strcmp(cmd, "first-touch") || !strcmp(cmd, "first-touch-small"))
		return test_first_touch(!strcmp(cmd, "first-touch-small"));
	if (!strcmp(cmd, "info"))
		return do_info();
	if (!strcmp(cmd, "add") && argc > 2)
		return do_add(number(argv[2]), node);
	if ((!strcmp(cmd, "hold") || !strcmp(cmd, "comb") || !strcmp(cmd, "pipe") ||
	     !strcmp(cmd, "failed")) && argc > 2)
		return do_hold(cmd, number(argv[2]), node);
	if (!strcmp(cmd, "small-leases") && argc == 4)
		return do_small_leases(number(argv[2]), number(argv[3]));
	if (!strcmp(cmd, "watch") && argc == 5)
		return do_watch(number(argv[2]), node, argv[4]);
	if (!strcmp(cmd, "time") && argc == 4)
		return do_time(number(argv[2]), number(argv[3]));
	fputs(usage, stderr);
	return 2;
}
