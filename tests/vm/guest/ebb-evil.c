/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs that misuse /dev/ebb, for a guest whose neighbours must not notice;
 * and one, burn, by which a neighbour shows that it does not.  What was added is
 * let go when the program ends.  Prints one JSON object at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/ebb_ioctl.h>

#define MAX_THREADS	64
#define MS		UINT64_C(1000000)

/* A miser gives this long before the deadline: late, and still in time on a slow machine. */
#define MISER_MARGIN_NS	(3200 * MS)

/* Writing to this page beside that of the APIC sends a message to the CPU of that APIC id. */
#define MSI_BASE	0xfee00000
#define MSI_PAGE	4096u
#define MAX_APIC_ID	255u
#define MSI_INIT	0x500u

/* ACPI's registers for CPUs (docs/specs/acpi_cpu_hotplug.rst of QEMU), relative to their first. */
#define ACPI_CPU_SELECTOR	0
#define ACPI_CPU_FLAGS		4
#define ACPI_CPU_EJECT		0x8
#define ACPI_CPU_NUM_PORTS	12

static const char usage[] =
	"usage: ebbt-evil COMMAND\n"
	"  burn SECONDS CPU...     compute on these CPUs, print how much\n"
	"  squat SECONDS COUNT     add CPUs, lend all of them, and compute on them\n"
	"  miser SECONDS COUNT     add CPUs; give one back just before each deadline\n"
	"  wake SECONDS APIC-ID... send INIT to these CPUs behind Linux's back, again and again\n"
	"  eject SECONDS PORT CPU SLOT  have CPU eject itself by ACPI's ports; compute\n"
	"  flip SECONDS COUNT      add CPUs, compute, lend them, idle, and again, without an end\n"
	"  flood SECONDS THREADS   ask as fast as can be\n";

struct thread {
	pthread_t id;
	int cpu;		/* to run on; -1: any */
	int fd;
	uint64_t count;
	uint64_t errors;
};

static struct thread threads[MAX_THREADS];
static atomic_bool is_over;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static int fail(const char *what)
{
	fprintf(stderr, "ebbt-evil: %s: %s\n", what, strerrorname_np(errno));
	return 1;
}

static void *burn_thread(void *arg)
{
	struct thread *t = arg;
	volatile uint64_t x = 1;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(t->cpu, &set);
	t->errors = sched_setaffinity(0, sizeof(set), &set) ? 1 : 0;
	while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
		for (int i = 0; i < 10000; i++)
			x = x * 2862933555777941757u + 3037000493u;
		t->count++;
	}
	return NULL;
}

/* What they did in that time; each has its CPU, or its descriptor, already. */
static int run_threads(void *(*run)(void *), unsigned int count, uint64_t ns, uint64_t *ret_errors)
{
	uint64_t done = 0;

	atomic_store(&is_over, false);
	for (unsigned int i = 0; i < count; i++) {
		threads[i].count = threads[i].errors = 0;
		errno = pthread_create(&threads[i].id, NULL, run, &threads[i]);
		if (errno) {
			fail("pthread_create");
			exit(1);
		}
	}
	sleep_ns(ns);
	atomic_store(&is_over, true);
	*ret_errors = 0;
	for (unsigned int i = 0; i < count; i++) {
		pthread_join(threads[i].id, NULL);
		done += threads[i].count;
		*ret_errors += threads[i].errors;
	}
	return (int)(done > INT32_MAX ? INT32_MAX : done);
}

static int do_burn(uint64_t ns, unsigned int count, char **cpus)
{
	uint64_t errors;
	int done;

	if (count > MAX_THREADS)
		return 2;
	for (unsigned int i = 0; i < count; i++)
		threads[i].cpu = atoi(cpus[i]);
	done = run_threads(burn_thread, count, ns, &errors);
	printf("{\"work\":%d,\"per_s\":%.1f,\"errors\":%" PRIu64 "}\n", done,
	       (double)done * 1e9 / (double)ns, errors);
	return errors != 0;
}

static int add_cpus(int fd, uint32_t count, struct ebb_cpu_add *ret)
{
	*ret = (struct ebb_cpu_add) { .size = sizeof(*ret), .count = count, .node = EBB_NODE_ANY };
	return ioctl(fd, EBB_IOC_CPU_ADD, ret);
}

static int lend_cpu(int fd, uint32_t cpu)
{
	struct ebb_cpu_lend lend = { .size = sizeof(lend), .cpu = cpu };

	return ioctl(fd, EBB_IOC_CPU_LEND, &lend);
}

static int do_squat(int fd, uint64_t ns, uint32_t count)
{
	struct ebb_cpu_add add;
	uint64_t errors;
	int done;

	if (add_cpus(fd, count, &add))
		return fail("add");
	for (uint32_t i = 0; i < add.granted; i++) {
		if (lend_cpu(fd, add.cpus[i].cpu))
			return fail("lend");
		threads[i].cpu = (int)add.cpus[i].cpu;
	}
	done = run_threads(burn_thread, add.granted, ns, &errors);
	printf("{\"granted\":%u,\"work\":%d,\"errors\":%" PRIu64 "}\n", add.granted, done, errors);
	return 0;
}

/* The earliest deadline of a demand for CPUs and the node that it is about, or 0. */
static uint64_t first_deadline_ns(int fd, uint32_t *ret_node)
{
	struct ebb_limits limits = { .size = sizeof(limits) };
	uint64_t first = 0;

	if (ioctl(fd, EBB_IOC_LIMITS, &limits))
		exit(fail("limits"));
	for (uint32_t i = 0; i < limits.num_nodes; i++) {
		uint64_t at = limits.nodes[i].deadline_ns;

		if (!at || (first && at >= first))
			continue;
		first = at;
		*ret_node = limits.nodes[i].node;
	}
	return first;
}

static bool lend_one(int fd, struct ebb_cpu_add *add, uint32_t node)
{
	for (uint32_t i = 0; i < add->granted; i++) {
		if (add->cpus[i].node != node || lend_cpu(fd, add->cpus[i].cpu))
			continue;
		add->cpus[i] = add->cpus[--add->granted];
		return true;
	}
	return false;
}

static int do_miser(int fd, uint64_t ns, uint32_t count)
{
	const uint64_t end_ns = now_ns() + ns;
	unsigned int given = 0;
	struct ebb_cpu_add add;

	if (add_cpus(fd, count, &add))
		return fail("add");
	printf("{\"granted\":%u}\n", add.granted);
	fflush(stdout);
	while (now_ns() < end_ns) {
		uint32_t node = 0;
		uint64_t at = first_deadline_ns(fd, &node);

		if (!at) {
			struct pollfd p = { .fd = fd, .events = POLLIN };

			poll(&p, 1, 100);
			continue;
		}
		if (at > now_ns() + MISER_MARGIN_NS)
			sleep_ns(at - now_ns() - MISER_MARGIN_NS);
		given += lend_one(fd, &add, node);
		printf("{\"given\":%u}\n", given);
		fflush(stdout);
		/* The next demand is a new one: the limits that come with it are told by now. */
		sleep_ns(2 * MISER_MARGIN_NS);
	}
	return 0;
}

/*
 * The driver lets nobody bring a parked CPU up, so this goes round it.  One write for each: with
 * the two registers of the APIC itself, Linux could get in between, and another CPU be hit.
 */
static int do_wake(uint64_t ns, unsigned int count, char **ids)
{
	const uint64_t end_ns = now_ns() + ns;
	const int fd = open("/dev/mem", O_RDWR | O_SYNC | O_CLOEXEC);
	volatile uint32_t *page;
	unsigned int sent = 0;

	if (fd < 0)
		return fail("/dev/mem");
	page = mmap(NULL, (MAX_APIC_ID + 1) * MSI_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    MSI_BASE);
	if (page == MAP_FAILED)
		return fail("mmap of /dev/mem");
	while (now_ns() < end_ns) {
		for (unsigned int i = 0; i < count; i++) {
			const unsigned long id = strtoul(ids[i], NULL, 10);

			/* Page 0 is the APIC's own. */
			if (id == 0 || id > MAX_APIC_ID)
				return 2;
			page[id * MSI_PAGE / sizeof(*page)] = MSI_INIT;
			sent++;
		}
		sleep_ns(2 * MS);
	}
	printf("{\"sent\":%u}\n", sent);
	return 0;
}

static int do_eject(uint64_t ns, char **args)
{
	const uint16_t port = (uint16_t)strtoul(args[0], NULL, 0);
	const uint32_t slot = (uint32_t)strtoul(args[2], NULL, 10);
	uint64_t errors;
	cpu_set_t set;
	int done;

	threads[0].cpu = atoi(args[1]);
	CPU_ZERO(&set);
	CPU_SET(threads[0].cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return fail("sched_setaffinity");
	if (ioperm(port, ACPI_CPU_NUM_PORTS, 1))
		return fail("ioperm");
	outl(slot, port + ACPI_CPU_SELECTOR);
	outb(ACPI_CPU_EJECT, port + ACPI_CPU_FLAGS);
	done = run_threads(burn_thread, 1, ns, &errors);
	printf("{\"work\":%d,\"errors\":%" PRIu64 "}\n", done, errors);
	return errors != 0;
}

static int do_flip(int fd, uint64_t ns, uint32_t count)
{
	const uint64_t end_ns = now_ns() + ns;
	unsigned int flips = 0;

	while (now_ns() < end_ns) {
		struct ebb_cpu_add add;
		uint64_t errors;

		if (add_cpus(fd, count, &add)) {
			if (errno != EAGAIN && errno != EDQUOT)
				return fail("add");
			sleep_ns(20 * MS);
			continue;
		}
		for (uint32_t i = 0; i < add.granted; i++)
			threads[i].cpu = (int)add.cpus[i].cpu;
		run_threads(burn_thread, add.granted, 50 * MS, &errors);
		for (uint32_t i = 0; i < add.granted; i++)
			lend_cpu(fd, add.cpus[i].cpu);
		flips++;
		sleep_ns(50 * MS);
	}
	printf("{\"flips\":%u}\n", flips);
	return 0;
}

static void *flood_thread(void *arg)
{
	struct thread *t = arg;

	while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
		struct ebb_cpu_add add = {
			.size = sizeof(add), .count = 1, .node = EBB_NODE_ANY, .timeout_ms = 200,
		};

		t->count++;
		if (ioctl(t->fd, EBB_IOC_CPU_ADD, &add)) {
			t->errors++;
		} else {
			t->count++;
			t->errors += !!lend_cpu(t->fd, add.cpus[0].cpu);
		}
	}
	return NULL;
}

static int do_flood(int fd, uint64_t ns, uint32_t count)
{
	uint64_t errors;
	int done;

	if (count > MAX_THREADS)
		return 2;
	for (uint32_t i = 0; i < count; i++)
		threads[i].fd = fd;
	done = run_threads(flood_thread, count, ns, &errors);
	printf("{\"requests\":%d,\"refused\":%" PRIu64 "}\n", done, errors);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t ns;
	uint32_t count;
	int fd;

	if (argc < 4) {
		fputs(usage, stderr);
		return 2;
	}
	ns = strtoull(argv[2], NULL, 10) * 1000 * MS;
	if (!strcmp(argv[1], "burn"))
		return do_burn(ns, (unsigned int)argc - 3, argv + 3);
	if (!strcmp(argv[1], "wake"))
		return do_wake(ns, (unsigned int)argc - 3, argv + 3);
	if (!strcmp(argv[1], "eject") && argc == 6)
		return do_eject(ns, argv + 3);
	count = (uint32_t)strtoul(argv[3], NULL, 10);
	fd = open("/dev/ebb", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return fail("/dev/ebb");
	if (!strcmp(argv[1], "squat"))
		return do_squat(fd, ns, count);
	if (!strcmp(argv[1], "miser"))
		return do_miser(fd, ns, count);
	if (!strcmp(argv[1], "flip"))
		return do_flip(fd, ns, count);
	if (!strcmp(argv[1], "flood"))
		return do_flood(fd, ns, count);
	fputs(usage, stderr);
	return 2;
}
