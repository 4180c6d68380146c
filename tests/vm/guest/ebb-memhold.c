/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Holds memory of a pool for whole-VM tests, as a good application or as a deaf one, and plays the
 * guest that uses memory which it gave back.  Prints one JSON object per line; errors go to
 * stderr with the name of the errno and give exit status 1.
 *
 * While it holds: SIGUSR1 has it look at each block of its lease and say what it found.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <linux/ebb_ioctl.h>

#include "ebb-guest.h"

#define PAGE_BYTES	UINT64_C(4096)
#define WINDOW_BYTES	(UINT64_C(64) << 20)

static const char usage[] =
	"usage: ebbt-memhold hold NODE BYTES    add a lease, fill it, meet demands\n"
	"       ebbt-memhold deaf NODE BYTES    the same, but meet none\n"
	"       ebbt-memhold poke ADDR BYTES    write to guest-physical memory, whoever has it\n";

struct lease {
	int ebb_fd, fd;
	uint32_t node;
	uint64_t bytes;		/* when it was made */
	uint64_t end;		/* what has not been released lies before */
	uint64_t block_bytes;
	char *start;
};

static sigjmp_buf bus_jump;

static void on_bus(int signo)
{
	(void)signo;
	siglongjmp(bus_jump, 1);
}

static int fail(const char *what)
{
	fprintf(stderr, "ebbt-memhold: %s: %s\n", what, strerrorname_np(errno));
	return 1;
}

/* What is written at an offset: nowhere the same, so that a mixed up block is seen. */
static uint64_t pattern(uint64_t at)
{
	return (at + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static int lease_add(struct lease *l, uint64_t bytes)
{
	struct ebb_mem_add add = { .size = sizeof(add), .bytes = bytes, .node = l->node };
	uint64_t begin_ns = now_ns();

	if (ioctl(l->ebb_fd, EBB_IOC_MEM_ADD, &add))
		return fail("add");
	l->fd = add.lease_fd;
	l->bytes = l->end = add.granted_bytes;
	l->block_bytes = add.block_bytes;
	l->start = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	if (l->start == MAP_FAILED)
		return fail("mmap");
	begin_ns = now_ns() - begin_ns;
	for (uint64_t at = 0; at < l->bytes; at += PAGE_BYTES) {
		volatile uint64_t *word = (volatile uint64_t *)(l->start + at);

		if (*word) {
			errno = EUCLEAN;
			return fail("a new block is not zero");
		}
		*word = pattern(at);
	}
	printf("{\"granted\":%" PRIu64 ",\"node\":%u,\"add_ns\":%" PRIu64 "}\n", l->bytes,
	       add.granted_node, begin_ns);
	return 0;
}

/* Gives back from the end until no more is held on the node than its limit. */
static int lease_obey(struct lease *l)
{
	struct ebb_lease_release release = { .size = sizeof(release) };
	struct ebb_limits limits = { .size = sizeof(limits) };
	uint64_t over = 0, begin_ns = now_ns();

	if (ioctl(l->ebb_fd, EBB_IOC_LIMITS, &limits))
		return fail("limits");
	for (uint32_t i = 0; i < limits.num_nodes; i++) {
		const struct ebb_node_limit *n = &limits.nodes[i];

		if (n->node == l->node && n->mem_held_bytes > n->mem_limit_bytes)
			over = n->mem_held_bytes - n->mem_limit_bytes;
	}
	if (over > l->end)
		over = l->end;
	if (!over)
		return 0;
	release.offset = l->end - over;
	release.bytes = over;
	if (ioctl(l->fd, EBB_IOC_LEASE_RELEASE, &release))
		return fail("release");
	l->end -= over;
	printf("{\"released\":%" PRIu64 ",\"draining\":%" PRIu64 ",\"release_ns\":%" PRIu64 "}\n",
	       over, (uint64_t)release.draining_bytes, now_ns() - begin_ns);
	return 0;
}

/* Whether reading there raises SIGBUS. */
static bool is_gone(const volatile uint64_t *word)
{
	if (sigsetjmp(bus_jump, 1))
		return true;
	(void)*word;
	return false;
}

/* Blocks that are held must be as they were written; all others must raise SIGBUS. */
static int lease_look(const struct lease *l)
{
	struct ebb_lease_info info = { .size = sizeof(info) };
	uint64_t blocks = l->bytes / l->block_bytes, held = 0, wrong = 0, bus = 0, ghosts = 0;

	for (uint64_t block = 0; block < blocks; block++) {
		volatile uint64_t *first = (void *)(l->start + block * l->block_bytes);

		if (block % EBB_LEASE_INFO_BLOCKS == 0) {
			info.start = block;
			if (ioctl(l->fd, EBB_IOC_LEASE_INFO, &info))
				return fail("info");
		}
		if (info.held_map[block % EBB_LEASE_INFO_BLOCKS / 64] >> (block % 64) & 1) {
			held++;
			for (uint64_t at = 0; at < l->block_bytes; at += PAGE_BYTES)
				wrong += first[at / sizeof(*first)] !=
					 pattern(block * l->block_bytes + at);
		} else if (is_gone(first)) {
			bus++;
		} else {
			ghosts++;
		}
	}
	printf("{\"held\":%" PRIu64 ",\"wrong_pages\":%" PRIu64 ",\"sigbus\":%" PRIu64
	       ",\"ghosts\":%" PRIu64 ",\"revoked\":%" PRIu64 "}\n", held * l->block_bytes, wrong,
	       bus * l->block_bytes, ghosts, (uint64_t)info.revoked_bytes);
	return 0;
}

static int do_hold(uint32_t node, uint64_t bytes, bool is_deaf)
{
	struct sigaction bus = { .sa_handler = on_bus };
	struct lease l = { .node = node };
	struct signalfd_siginfo what;
	struct pollfd fds[2];
	sigset_t look;
	int rc;

	sigaction(SIGBUS, &bus, NULL);
	sigemptyset(&look);
	sigaddset(&look, SIGUSR1);
	sigprocmask(SIG_BLOCK, &look, NULL);
	l.ebb_fd = open("/dev/ebb", O_RDWR | O_CLOEXEC);
	if (l.ebb_fd < 0)
		return fail("/dev/ebb");
	fds[0] = (struct pollfd){ .fd = signalfd(-1, &look, SFD_CLOEXEC), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = is_deaf ? -1 : l.ebb_fd, .events = POLLIN };
	rc = lease_add(&l, bytes);
	while (!rc) {
		if (poll(fds, 2, -1) < 0)
			return fail("poll");
		if (fds[0].revents && read(fds[0].fd, &what, sizeof(what)) > 0)
			rc = lease_look(&l);
		if (!rc && fds[1].revents)
			rc = lease_obey(&l);
	}
	return rc;
}

static int do_poke(uint64_t addr, uint64_t bytes)
{
	int fd = open("/dev/mem", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return fail("/dev/mem");
	for (uint64_t done = 0; done < bytes; done += WINDOW_BYTES) {
		uint64_t part = bytes - done < WINDOW_BYTES ? bytes - done : WINDOW_BYTES;
		char *start = mmap(NULL, part, PROT_READ | PROT_WRITE, MAP_SHARED, fd, addr + done);

		if (start == MAP_FAILED)
			return fail("mmap of /dev/mem");
		for (uint64_t at = 0; at < part; at += PAGE_BYTES)
			*(volatile uint64_t *)(start + at) = ~UINT64_C(0);
		munmap(start, part);
		printf("{\"poked\":%" PRIu64 "}\n", done + part);
	}
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 4 && (!strcmp(argv[1], "hold") || !strcmp(argv[1], "deaf")))
		return do_hold(strtoul(argv[2], NULL, 0), strtoull(argv[3], NULL, 0),
			       argv[1][0] == 'd');
	if (argc == 4 && !strcmp(argv[1], "poke"))
		return do_poke(strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0));
	fputs(usage, stderr);
	return 2;
}
