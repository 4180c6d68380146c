/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drives /dev/ebb from a shell in a guest.  Prints one JSON object per line;
 * errors go to stderr with the name of the errno and give exit status 1.
 * What it added is returned when it ends, as for every program.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <linux/ebb_ioctl.h>

#include "ebb-guest.h"

#define NOBODY	65534	/* any user id but that of root */

static const char usage[] =
	"usage: ebbt-cpu [-d DEVICE] [-t TIMEOUT_MS] [-g TIMEOUT_MS] [-a MS] [-H] [-u] COMMAND\n"
	"  info | limits | list\n"
	"  poll [TIMEOUT_MS]           wait for new limits, print them (exit 3: none came)\n"
	"  watch                       print the limits, and again whenever they are new\n"
	"  add COUNT [NODE]            add CPUs, print them, return them\n"
	"  hold COUNT [NODE [SECONDS]] add CPUs, print them, keep them (0: until killed)\n"
	"  remove CPU                  try to remove a CPU that this program did not add\n"
	"  lend CPU | park CPU         the same, lending and parking it\n"
	"  loop N [COUNT [NODE [HOW]]] add and give back N times, print how long each step took;\n"
	"                              HOW: remove, lend or park\n"
	"  keep COUNT HOW              add CPUs, lend or park them, print them; they stay so\n"
	"  unheard                     add two CPUs into memory that can not be written, and have\n"
	"                              another open get one of them before the driver notices\n"
	"  -t  longest wait for a CPU, and for giving it back unless there is a -g\n"
	"  -a  be interrupted by a signal after that time, and every second from then on\n"
	"  -u  run as a user without privileges once the device is open\n"
	"  -H  hardware threads whose sibling is in use will do; NODE: a number or any\n";

static struct {
	const char *device;
	uint32_t timeout_ms;
	uint32_t give_timeout_ms;
	bool has_give_timeout;
	uint32_t add_flags;
	bool is_unprivileged;
} opt = { .device = "/dev/ebb" };

static int fail(const char *what)
{
	fprintf(stderr, "ebbt-cpu: %s: %s (%s)\n", what, strerrorname_np(errno),
		strerror(errno));
	return 1;
}

/* A count from an argument; exits with 2 if it is none. */
static uint32_t number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (!*text || *end || n > UINT32_MAX) {
		fprintf(stderr, "ebbt-cpu: %s is not a number\n", text);
		exit(2);
	}
	return n;
}

static uint32_t node_arg(const char *text)
{
	return !text || !strcmp(text, "any") ? EBB_NODE_ANY : number(text);
}

static void print_cpus(const char *key, const struct ebb_cpu *cpus, uint32_t count)
{
	printf("\"%s\":[", key);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t f = cpus[i].flags;

		printf("%s{\"cpu\":%u,\"node\":%u,\"startup\":%d,\"ht\":%d,\"forced\":%d,"
		       "\"owned\":%d,\"leaving\":%d,\"lent\":%d,\"parked\":%d}",
		       i ? "," : "", cpus[i].cpu, cpus[i].node, !!(f & EBB_CPU_STARTUP),
		       !!(f & EBB_CPU_HT), !!(f & EBB_CPU_FORCED), !!(f & EBB_CPU_OWNED),
		       !!(f & EBB_CPU_LEAVING), !!(f & EBB_CPU_LENT), !!(f & EBB_CPU_PARKED));
	}
	printf("]");
}

static int do_info(int fd)
{
	struct ebb_info a = { .size = sizeof(a) };

	if (ioctl(fd, EBB_IOC_INFO, &a))
		return fail("EBB_IOC_INFO");
	printf("{\"abi_version\":%u,\"proto\":%u,\"agent_up\":%d,\"num_nodes\":%u,"
	       "\"max_cpus\":%u,\"num_startup_cpus\":%u,\"num_hotplug_cpus\":%u,"
	       "\"num_owned_cpus\":%u,\"features\":%" PRIu64 "}\n",
	       a.abi_version, a.proto, !!(a.status & EBB_INFO_AGENT_UP), a.num_nodes, a.max_cpus,
	       a.num_startup_cpus, a.num_hotplug_cpus, a.num_owned_cpus, (uint64_t)a.features);
	return 0;
}

static int do_limits(int fd)
{
	struct ebb_limits a = { .size = sizeof(a) };
	uint64_t now;

	if (ioctl(fd, EBB_IOC_LIMITS, &a))
		return fail("EBB_IOC_LIMITS");
	now = now_ns();
	printf("{\"generation\":%" PRIu64 ",\"nodes\":[", (uint64_t)a.generation);
	for (uint32_t i = 0; i < a.num_nodes; i++) {
		const struct ebb_node_limit *n = &a.nodes[i];

		printf("%s{\"node\":%u,\"tier\":%u,\"held\":%u,\"limit\":%u,"
		       "\"deadline_in_ms\":%" PRId64 ",\"mem_held\":%" PRIu64
		       ",\"mem_limit\":%" PRIu64 "}",
		       i ? "," : "", n->node, n->tier, n->cpus_held, n->cpus_limit,
		       n->deadline_ns ? (int64_t)(n->deadline_ns - now) / 1000000 : 0,
		       (uint64_t)n->mem_held_bytes, (uint64_t)n->mem_limit_bytes);
	}
	printf("]}\n");
	return 0;
}

static int do_list(int fd)
{
	struct ebb_cpu_list a = { .size = sizeof(a) };
	uint32_t start = 0;

	do {
		a.start = start;
		if (ioctl(fd, EBB_IOC_CPU_LIST, &a))
			return fail("EBB_IOC_CPU_LIST");
		printf("{\"start\":%u,\"total\":%u,", start, a.total);
		print_cpus("cpus", a.cpus, a.count);
		printf("}\n");
		start += a.count;
	} while (a.count && start < a.total);
	return 0;
}

static int do_poll(int fd, uint32_t timeout_ms)
{
	struct ebb_limits a = { .size = sizeof(a) };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	/* Limits that are there already are not news. */
	if (ioctl(fd, EBB_IOC_LIMITS, &a))
		return fail("EBB_IOC_LIMITS");
	n = poll(&p, 1, timeout_ms);
	if (n < 0)
		return fail("poll");
	if (n == 0) {
		fprintf(stderr, "ebbt-cpu: no new limits in %u ms\n", timeout_ms);
		return 3;
	}
	if (p.revents & POLLERR) {
		errno = ENODEV;
		return fail("poll");
	}
	return do_limits(fd);
}

static int do_watch(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (;;) {
		if (do_limits(fd))
			return 1;
		fflush(stdout);
		if (poll(&p, 1, -1) < 0)
			return fail("poll");
		if (p.revents & POLLERR) {
			errno = ENODEV;
			return fail("poll");
		}
	}
}

struct give_times {
	uint64_t offline_ns;
	uint64_t host_ns;
};

static int add_cpus(int fd, uint32_t count, uint32_t node, struct ebb_cpu_add *a)
{
	*a = (struct ebb_cpu_add) {
		.size = sizeof(*a),
		.flags = opt.add_flags,
		.count = count,
		.node = node,
		.timeout_ms = opt.timeout_ms,
	};
	return ioctl(fd, EBB_IOC_CPU_ADD, a) ? fail("EBB_IOC_CPU_ADD") : 0;
}

static uint32_t give_timeout_ms(void)
{
	return opt.has_give_timeout ? opt.give_timeout_ms : opt.timeout_ms;
}

static int remove_cpu(int fd, uint32_t cpu, struct give_times *ret)
{
	struct ebb_cpu_remove a = {
		.size = sizeof(a),
		.cpu = cpu,
		.timeout_ms = give_timeout_ms(),
	};

	if (ioctl(fd, EBB_IOC_CPU_REMOVE, &a))
		return fail("EBB_IOC_CPU_REMOVE");
	*ret = (struct give_times) { a.offline_ns, a.host_ns };
	return 0;
}

static int lend_cpu(int fd, uint32_t cpu, uint32_t flags, struct give_times *ret)
{
	struct ebb_cpu_lend a = {
		.size = sizeof(a),
		.flags = flags,
		.cpu = cpu,
		.timeout_ms = give_timeout_ms(),
	};

	if (ioctl(fd, EBB_IOC_CPU_LEND, &a))
		return fail("EBB_IOC_CPU_LEND");
	*ret = (struct give_times) { a.offline_ns, a.host_ns };
	return 0;
}

static int give_cpu(int fd, uint32_t cpu, const char *how, struct give_times *ret)
{
	if (!strcmp(how, "remove"))
		return remove_cpu(fd, cpu, ret);
	if (!strcmp(how, "lend"))
		return lend_cpu(fd, cpu, 0, ret);
	if (!strcmp(how, "park"))
		return lend_cpu(fd, cpu, EBB_LEND_PARK, ret);
	fprintf(stderr, "ebbt-cpu: %s is no way to give a CPU back\n", how);
	return 2;
}

static int do_hold(int fd, uint32_t count, uint32_t node, bool is_kept, uint32_t seconds)
{
	struct ebb_cpu_add a;

	if (add_cpus(fd, count, node, &a))
		return 1;
	printf("{\"granted\":%u,\"host_ns\":%" PRIu64 ",\"kernel_ns\":%" PRIu64 ",", a.granted,
	       (uint64_t)a.host_ns, (uint64_t)a.online_ns);
	print_cpus("cpus", a.cpus, a.granted);
	printf("}\n");
	fflush(stdout);
	while (is_kept && !seconds)
		pause();
	if (is_kept)
		sleep(seconds);
	return 0;
}

/* host: until the host answered; kernel: in Linux; total: as the program saw it. */
static void print_times(const char *key, uint64_t host_ns, uint64_t kernel_ns, uint64_t total_ns)
{
	printf("\"%s\":{\"host_ns\":%" PRIu64 ",\"kernel_ns\":%" PRIu64 ",\"total_ns\":%" PRIu64
	       "}", key, host_ns, kernel_ns, total_ns);
}

static int do_loop(int fd, uint32_t rounds, uint32_t count, uint32_t node, const char *how)
{
	for (uint32_t i = 0; i < rounds; i++) {
		uint64_t start_ns = now_ns(), added_ns, offline_ns = 0, host_ns = 0;
		struct give_times t;
		struct ebb_cpu_add a;

		if (add_cpus(fd, count, node, &a))
			return 1;
		added_ns = now_ns();
		for (uint32_t c = 0; c < a.granted; c++) {
			int rc = give_cpu(fd, a.cpus[c].cpu, how, &t);

			if (rc)
				return rc;
			offline_ns += t.offline_ns;
			host_ns += t.host_ns;
		}
		printf("{\"round\":%u,\"granted\":%u,", i, a.granted);
		print_times("add", a.host_ns, a.online_ns, added_ns - start_ns);
		printf(",");
		print_times(how, host_ns, offline_ns, now_ns() - added_ns);
		printf("}\n");
		fflush(stdout);
	}
	return 0;
}

static int do_keep(int fd, uint32_t count, const char *how)
{
	struct give_times t;
	struct ebb_cpu_add a;

	if (add_cpus(fd, count, EBB_NODE_ANY, &a))
		return 1;
	for (uint32_t i = 0; i < a.granted; i++) {
		int rc = give_cpu(fd, a.cpus[i].cpu, how, &t);

		if (rc)
			return rc;
	}
	printf("{\"granted\":%u,", a.granted);
	print_cpus("cpus", a.cpus, a.granted);
	printf("}\n");
	return 0;
}

/* The first CPU of this open, and how many it has. */
static int count_owned(int fd, uint32_t *ret_first, uint32_t *ret_count)
{
	struct ebb_cpu_list a = { .size = sizeof(a) };

	*ret_count = 0;
	if (ioctl(fd, EBB_IOC_CPU_LIST, &a))
		return fail("EBB_IOC_CPU_LIST");
	for (uint32_t i = a.count; i-- > 0;) {
		if (!(a.cpus[i].flags & EBB_CPU_OWNED))
			continue;
		*ret_first = a.cpus[i].cpu;
		++*ret_count;
	}
	return 0;
}

struct unheard {
	int fd;
	struct ebb_cpu_add *arg;
	int error;			/* errno; 0: it worked */
};

static void *add_unheard(void *ctx)
{
	struct unheard *u = ctx;

	u->error = ioctl(u->fd, EBB_IOC_CPU_ADD, u->arg) ? errno : 0;
	return NULL;
}

/* Writes to the page wait until somebody who reads the returned descriptor lets them go on. */
static int catch_writes(void *page, size_t bytes)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register area = {
		.range = { (uintptr_t)page, bytes }, .mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect protect = {
		.range = area.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &area) ||
	    ioctl(fd, UFFDIO_WRITEPROTECT, &protect))
		return -1;
	return fd;
}

/* The driver has added CPUs and is about to say so: one of them goes to the other open. */
static int pass_on(int fd, int other)
{
	struct give_times t;
	struct ebb_cpu_add a;
	uint32_t cpu, count;

	if (count_owned(fd, &cpu, &count))
		return 1;
	if (count != 2) {
		fprintf(stderr, "ebbt-cpu: %u CPUs were added\n", count);
		return 1;
	}
	if (lend_cpu(fd, cpu, 0, &t) || add_cpus(other, 1, EBB_NODE_ANY, &a))
		return 1;
	if (a.cpus[0].cpu != cpu) {
		fprintf(stderr, "ebbt-cpu: CPU %u came instead of %u\n", a.cpus[0].cpu, cpu);
		return 1;
	}
	return 0;
}

static int do_unheard(int fd)
{
	const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct unheard u = { .fd = fd };
	struct uffdio_range range;
	struct uffd_msg msg;
	uint32_t cpu, left, kept;
	pthread_t thread;
	int other, faults;

	u.arg = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (u.arg == MAP_FAILED)
		return fail("mmap");
	*u.arg = (struct ebb_cpu_add) {
		.size = sizeof(*u.arg), .count = 2, .node = EBB_NODE_ANY,
		.timeout_ms = opt.timeout_ms,
	};
	range = (struct uffdio_range) { (uintptr_t)u.arg, bytes };
	other = open(opt.device, O_RDWR | O_CLOEXEC);
	faults = catch_writes(u.arg, bytes);
	if (other < 0 || faults < 0)
		return fail(other < 0 ? opt.device : "userfaultfd");
	errno = pthread_create(&thread, NULL, add_unheard, &u);
	if (errno)
		return fail("pthread_create");
	if (read(faults, &msg, sizeof(msg)) != sizeof(msg))
		return fail("read");
	/* Whatever is wrong ends the program, and with it the wait for the page. */
	if (pass_on(fd, other))
		return 1;
	if (mprotect(u.arg, bytes, PROT_READ) || ioctl(faults, UFFDIO_WAKE, &range))
		return fail("letting the driver go on");
	pthread_join(thread, NULL);
	if (count_owned(fd, &cpu, &left) || count_owned(other, &cpu, &kept))
		return 1;
	printf("{\"error\":\"%s\",\"left\":%u,\"kept\":%u}\n",
	       u.error ? strerrorname_np(u.error) : "", left, kept);
	return 0;
}

static void ignore_signal(int signo)
{
	(void)signo;
}

/*
 * A signal with a handler: waits end with EINTR, the program goes on.  It comes
 * again, since the first may find a program that does not wait yet.
 */
static void interrupt_after(uint32_t ms)
{
	struct itimerval timer = {
		.it_value = { ms / 1000, ms % 1000 * 1000 },
		.it_interval = { 1, 0 },
	};
	struct sigaction action = { .sa_handler = ignore_signal };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static int run(int fd, int argc, char **argv)
{
	const char *cmd = argv[0];
	const char *a1 = argc > 1 ? argv[1] : NULL;
	const char *a2 = argc > 2 ? argv[2] : NULL;
	const char *a3 = argc > 3 ? argv[3] : NULL;
	const char *a4 = argc > 4 ? argv[4] : "remove";
	struct give_times t;

	if (!strcmp(cmd, "info"))
		return do_info(fd);
	if (!strcmp(cmd, "limits"))
		return do_limits(fd);
	if (!strcmp(cmd, "list"))
		return do_list(fd);
	if (!strcmp(cmd, "poll"))
		return do_poll(fd, a1 ? number(a1) : 10000);
	if (!strcmp(cmd, "watch"))
		return do_watch(fd);
	if (!strcmp(cmd, "add") && a1)
		return do_hold(fd, number(a1), node_arg(a2), false, 0);
	if (!strcmp(cmd, "hold") && a1)
		return do_hold(fd, number(a1), node_arg(a2), true, a3 ? number(a3) : 0);
	if ((!strcmp(cmd, "remove") || !strcmp(cmd, "lend") || !strcmp(cmd, "park")) && a1)
		return give_cpu(fd, number(a1), cmd, &t);
	if (!strcmp(cmd, "loop") && a1)
		return do_loop(fd, number(a1), a2 ? number(a2) : 1, node_arg(a3), a4);
	if (!strcmp(cmd, "keep") && a2)
		return do_keep(fd, number(a1), a2);
	if (!strcmp(cmd, "unheard"))
		return do_unheard(fd);
	fputs(usage, stderr);
	return 2;
}

int main(int argc, char **argv)
{
	int c, fd;

	while ((c = getopt(argc, argv, "+d:t:g:a:Hu")) != -1) {
		switch (c) {
		case 'd':
			opt.device = optarg;
			break;
		case 't':
			opt.timeout_ms = number(optarg);
			break;
		case 'g':
			opt.give_timeout_ms = number(optarg);
			opt.has_give_timeout = true;
			break;
		case 'a':
			interrupt_after(number(optarg));
			break;
		case 'H':
			opt.add_flags = EBB_ADD_ALLOW_HT;
			break;
		case 'u':
			opt.is_unprivileged = true;
			break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind == argc) {
		fputs(usage, stderr);
		return 2;
	}
	fd = open(opt.device, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return fail(opt.device);
	if (opt.is_unprivileged && setuid(NOBODY))
		return fail("setuid()");
	return run(fd, argc - optind, argv + optind);
}
