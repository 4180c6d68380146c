/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's half of scripts/bench-cpu: an engine with one worker at most, on whatever CPU it was
 * given, that says when it was told, stopped, asked and committed first. Obeys one command per line
 * from a character device and writes one JSON object per line, times in ns of this guest's clock.
 *
 *   ping        answers {"now_ns"}
 *   tier TIER   how demands are met from now on: lend, park, unplug, or ignore
 *   give        gives the CPU back as if it were demanded now, by lending
 *   count       answers {"committed", "cpus"}
 *   up CPU      without Ebb: switches a CPU on through sysfs and starts the worker there
 *   down CPU    stops the worker and switches the CPU off
 *
 * What happens by itself is said as it happens:
 *
 *   {"event":"demand", "told_ns", "deadline_ns"}                       a demand that is ignored
 *   {"event":"gave", "told_ns", "stopped_ns", "given_ns", "kernel_ns", "host_ns"}
 *   {"event":"took", "told_ns", "added_ns", "first_ns", "kernel_ns", "host_ns", "cpu"}
 *
 * An object with "error" says what failed; the program goes on. It ends when the host closes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>

#include "ebb.h"
#include "ebb-guest.h"
#include "oltp-engine/bench/ycsb/ycsb.h"

#define RECORDS		1000
#define WAIT_NS		(UINT64_C(10) * 1000000000)
#define TIER_IGNORE	OLTP_TIERS

/* The one CPU that comes and goes; without one, cpu is -1. */
static struct bench {
	struct oltp_engine *engine;
	struct ycsb *ycsb;
	struct oltp_workload ycsb_workload;
	struct oltp_pool *pool;
	struct ebb *ebb;		/* NULL: a VM without Ebb */
	FILE *out;
	uint32_t tier;			/* enum oltp_tier or TIER_IGNORE */
	int cpu;
	bool is_ignoring;		/* said that a demand is ignored */
	uint64_t woken_ns;		/* when the last news came */
	_Atomic uint64_t first_ns;	/* first commit of the present worker; 0: none yet */
	int first_fd;			/* eventfd: the same */
} bench = { .cpu = -1, .tier = OLTP_TIER_LEND };

static void say_error(const char *what, int rc)
{
	fprintf(bench.out, "{\"error\":\"%s\",\"command\":\"%s\"}\n", strerrorname_np(-rc), what);
}

/* ---- the worker ---- */

static int work_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	(void)ctx;
	return bench.ycsb_workload.attach(bench.ycsb_workload.ctx, worker, ret_local);
}

static enum oltp_rc work_run(void *local, uint32_t slot, bool retry)
{
	enum oltp_rc rc = bench.ycsb_workload.run(local, slot, retry);

	if (rc == OLTP_OK && !atomic_load_explicit(&bench.first_ns, memory_order_relaxed)) {
		atomic_store(&bench.first_ns, now_ns());
		eventfd_write(bench.first_fd, 1);
	}
	return rc;
}

static void work_detach(void *local)
{
	bench.ycsb_workload.detach(local);
}

static int engine_open(void)
{
	const struct ycsb_config config = { .records = RECORDS, .operations = 10,
					    .update_share = 0.2, .theta = 0.5, .seed = 1 };
	const struct oltp_workload workload = {
		.attach = work_attach,
		.run = work_run,
		.detach = work_detach,
	};
	int rc = oltp_engine_open(NULL, &bench.engine);

	if (!rc)
		rc = ycsb_create(bench.engine, &config, &bench.ycsb);
	if (!rc)
		rc = ycsb_load(bench.ycsb, 1);
	if (rc)
		return rc;
	bench.ycsb_workload = ycsb_workload(bench.ycsb);
	bench.first_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (bench.first_fd < 0)
		return -errno;
	return oltp_pool_create(&(struct oltp_pool_config){ .engine = bench.engine,
							    .workload = &workload },
				&bench.pool);
}

/* Returns once the worker has committed a transaction. */
static int worker_start(int cpu)
{
	struct pollfd p = { .fd = bench.first_fd, .events = POLLIN };
	eventfd_t count;
	int rc;

	/* Of a worker that was stopped before anybody looked. */
	eventfd_read(bench.first_fd, &count);
	atomic_store(&bench.first_ns, 0);
	rc = oltp_pool_add(bench.pool, (uint32_t)cpu);
	if (rc)
		return rc;
	bench.cpu = cpu;
	return poll(&p, 1, (int)(WAIT_NS / 1000000)) == 1 ? 0 : -ETIMEDOUT;
}

/* ---- with Ebb ---- */

static void give(enum oltp_tier tier, uint64_t told_ns)
{
	struct ebb_times times = { 0 };
	uint64_t stopped_ns;
	int cpu = bench.cpu, rc;

	oltp_pool_remove(bench.pool, (uint32_t)cpu, NULL);
	stopped_ns = now_ns();
	if (tier == OLTP_TIER_UNPLUG)
		rc = ebb_cpu_remove(bench.ebb, (unsigned int)cpu, 0, &times);
	else
		rc = ebb_cpu_lend(bench.ebb, (unsigned int)cpu,
				  tier == OLTP_TIER_PARK ? EBB_LEND_PARK : 0, 0, &times);
	bench.cpu = -1;
	bench.is_ignoring = false;
	if (rc) {
		say_error("give", rc);
		return;
	}
	fprintf(bench.out, "{\"event\":\"gave\",\"told_ns\":%" PRIu64 ",\"stopped_ns\":%" PRIu64
		",\"given_ns\":%" PRIu64 ",\"kernel_ns\":%" PRIu64 ",\"host_ns\":%" PRIu64 "}\n",
		told_ns, stopped_ns, now_ns(), times.kernel_ns, times.host_ns);
}

static void take(unsigned int node, uint64_t told_ns)
{
	struct ebb_times times = { 0 };
	uint64_t added_ns;
	struct ebb_cpu cpu;
	int rc = ebb_cpu_add(bench.ebb, 1, node, EBB_ADD_ALLOW_HT, 0, &cpu, &times);

	added_ns = now_ns();
	/* What is on offer may be gone by then; it is offered again. */
	if (rc == -EAGAIN || rc == -EDQUOT)
		return;
	if (rc > 0)
		rc = worker_start((int)cpu.cpu);
	if (rc) {
		say_error("take", rc);
		return;
	}
	fprintf(bench.out, "{\"event\":\"took\",\"told_ns\":%" PRIu64 ",\"added_ns\":%" PRIu64
		",\"first_ns\":%" PRIu64 ",\"kernel_ns\":%" PRIu64 ",\"host_ns\":%" PRIu64
		",\"cpu\":%d}\n",
		told_ns, added_ns, atomic_load(&bench.first_ns), times.kernel_ns, times.host_ns,
		bench.cpu);
}

static void shares_changed(void *ctx, const struct ebb_shares *shares)
{
	(void)ctx;
	for (unsigned int i = 0; i < shares->num_nodes; i++) {
		const struct ebb_node_share *s = &shares->nodes[i];

		if (bench.cpu < 0 && s->cpus_offered) {
			take(s->node, bench.woken_ns);
		} else if (bench.cpu >= 0 && s->cpus_demanded && bench.tier != TIER_IGNORE) {
			give((enum oltp_tier)bench.tier, bench.woken_ns);
		} else if (bench.cpu >= 0 && s->cpus_demanded && !bench.is_ignoring) {
			bench.is_ignoring = true;
			fprintf(bench.out, "{\"event\":\"demand\",\"told_ns\":%" PRIu64
				",\"deadline_ns\":%" PRIu64 "}\n",
				bench.woken_ns, s->deadline_ns);
		}
	}
	fflush(bench.out);
}

/* ---- without ---- */

static int do_up(int cpu)
{
	uint64_t told_ns = now_ns(), added_ns;
	int rc = bench.cpu >= 0 ? -EBUSY :
				  cpu_switch((unsigned int)cpu, "1", WAIT_NS, NULL);

	added_ns = now_ns();
	if (!rc)
		rc = worker_start(cpu);
	if (rc)
		return rc;
	fprintf(bench.out, "{\"told_ns\":%" PRIu64 ",\"added_ns\":%" PRIu64 ",\"first_ns\":%" PRIu64
		"}\n", told_ns, added_ns, atomic_load(&bench.first_ns));
	return 0;
}

static int do_down(int cpu)
{
	uint64_t told_ns = now_ns(), stopped_ns;
	int rc;

	if (bench.cpu != cpu)
		return -ENOENT;
	oltp_pool_remove(bench.pool, (uint32_t)cpu, NULL);
	bench.cpu = -1;
	stopped_ns = now_ns();
	rc = cpu_switch((unsigned int)cpu, "0", WAIT_NS, NULL);
	if (!rc)
		fprintf(bench.out, "{\"told_ns\":%" PRIu64 ",\"stopped_ns\":%" PRIu64
			",\"offline_ns\":%" PRIu64 "}\n", told_ns, stopped_ns, now_ns());
	return rc;
}

/* ---- commands ---- */

static int do_tier(const char *name)
{
	enum oltp_tier tier;

	if (!strcmp(name, "ignore"))
		bench.tier = TIER_IGNORE;
	else if (!oltp_tier_parse(name, &tier))
		bench.tier = tier;
	else
		return -EINVAL;
	fprintf(bench.out, "{\"tier\":\"%s\"}\n", name);
	return 0;
}

static int do_count(void)
{
	struct oltp_sample sample;

	oltp_pool_sample(bench.pool, now_ns(), &sample);
	fprintf(bench.out, "{\"committed\":%" PRIu64 ",\"cpus\":%d}\n", sample.totals.committed,
		bench.cpu >= 0);
	return 0;
}

static void obey(const char *line)
{
	char word[16] = "", arg[16] = "";
	int rc = 0;

	sscanf(line, "%15s %15s", word, arg);
	if (!strcmp(word, "ping"))
		fprintf(bench.out, "{\"now_ns\":%" PRIu64 "}\n", now_ns());
	else if (!strcmp(word, "tier"))
		rc = do_tier(arg);
	else if (!strcmp(word, "give") && bench.ebb && bench.cpu >= 0)
		give(OLTP_TIER_LEND, now_ns());
	else if (!strcmp(word, "count"))
		rc = do_count();
	else if (!strcmp(word, "up"))
		rc = do_up(atoi(arg));
	else if (!strcmp(word, "down"))
		rc = do_down(atoi(arg));
	else
		rc = -EINVAL;
	if (rc)
		say_error(word, rc);
	fflush(bench.out);
}

/* A command is a line of its own packet: the port hands over what was written at once. */
static int serve(int fd)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = -1, .events = POLLIN } };
	char line[128];
	ssize_t n;

	if (bench.ebb)
		p[1].fd = ebb_fd(bench.ebb);
	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		bench.woken_ns = now_ns();
		if (p[1].revents && ebb_dispatch(bench.ebb) < 0)
			return -ENODEV;
		if (!p[0].revents)
			continue;
		n = read(fd, line, sizeof(line) - 1);
		if (n <= 0)
			return 0;
		line[n] = 0;
		obey(line);
	}
}

static int device_open(const char *path, int *ret_fd)
{
	struct termios tty;
	int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (tcgetattr(fd, &tty) == 0) {
		cfmakeraw(&tty);
		tcsetattr(fd, TCSANOW, &tty);
	}
	bench.out = fdopen(dup(fd), "w");
	*ret_fd = fd;
	return bench.out ? 0 : -errno;
}

int main(int argc, char **argv)
{
	int fd = -1, rc;

	if (argc != 2) {
		fputs("usage: ebbt-cpubench DEVICE\n", stderr);
		return 2;
	}
	rc = device_open(argv[1], &fd);
	if (!rc)
		rc = engine_open();
	if (!rc) {
		rc = ebb_open(NULL, &bench.ebb);
		if (rc == -ENOENT)
			rc = 0;
	}
	if (!rc) {
		if (bench.ebb)
			ebb_set_shares_callback(bench.ebb, shares_changed, NULL);
		fputs("{\"ready\":true}\n", bench.out);
		fflush(bench.out);
		rc = serve(fd);
	}
	if (rc)
		fprintf(stderr, "ebbt-cpubench: %s\n", strerror(-rc));
	oltp_pool_destroy(bench.pool);
	ebb_close(bench.ebb);
	return rc ? 1 : 0;
}
