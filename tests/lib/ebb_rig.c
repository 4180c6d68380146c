// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Monitor, applications and simulated device together: see ebb_rig.h.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "ebb_rig.h"
#include "guest-monitor/libebb/link.h"
#include "guest-monitor/monitord/monitor.h"

#define NS_PER_MS	1000000ull
#define MAX_APPS	16

static int monitor_role(const char *dev_path, const char *mon_path)
{
	struct ebb_monitor_config config = {
		.device = dev_path,
		.socket = mon_path,
		.gid = (gid_t)-1,
		.interval_ms = 50,
		.proc_stat = "/proc/stat",
		.proc_meminfo = "/proc/meminfo",
	};
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	config.stop_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	return ebb_monitor_run(&config, &fake_ebb_dev_ops) < 0 ? 1 : 0;
}

static int engine_role(const char *dev_path, const char *mon_path, const char *name)
{
	struct ebb_options options = {
		.app_name = name, .device = dev_path, .monitor_socket = mon_path
	};
	struct ebb *ebb;
	int r = ebb_open_dev(&options, &fake_ebb_dev_ops, &ebb);

	if (r < 0)
		return 1;
	ebb_set_shares_callback(ebb, ebb_rig_engine_shares, ebb);
	while (r == 0) {
		struct pollfd p = { .fd = ebb_fd(ebb), .events = POLLIN };

		poll(&p, 1, -1);
		r = ebb_dispatch(ebb);
	}
	ebb_close(ebb);
	return 1;
}

void ebb_rig_role(int argc, char **argv)
{
	if (argc < 5)
		return;
	/* Whatever becomes of the test, nothing of it stays behind. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(argv[1], "--monitor") == 0)
		exit(monitor_role(argv[2], argv[3]));
	if (strcmp(argv[1], "--engine") == 0)
		exit(engine_role(argv[2], argv[3], argv[4]));
}

pid_t ebb_rig_spawn(const char *role, const char *a, const char *b, const char *c)
{
	char *argv[] = { "test", (char *)role, (char *)a, (char *)b, (char *)c, NULL };
	pid_t pid;

	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
	return pid;
}

int ebb_rig_end(pid_t pid, int signo)
{
	int status = -1;

	kill(pid, signo);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

int ebb_rig_setup(void **state)
{
	static const uint32_t startup[] = { 2, 2 }, max[] = { 10, 10 };
	struct ebb_rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	ebb_rig_time_slow(1);
	strcpy(rig->dir, "/tmp/ebb-rig.XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	snprintf(rig->dev_path, sizeof(rig->dev_path), "%s/dev", rig->dir);
	snprintf(rig->mon_path, sizeof(rig->mon_path), "%s/monitor.sock", rig->dir);
	rig->dev = fake_ebb_dev_create(rig->dev_path, 2, startup, max);
	*state = rig;
	return 0;
}

int ebb_rig_teardown(void **state)
{
	struct ebb_rig *rig = *state;
	char lock[128];

	if (rig->monitor > 0)
		ebb_rig_monitor_end(rig, SIGKILL);
	fake_ebb_dev_destroy(rig->dev);
	snprintf(lock, sizeof(lock), "%s.lock", rig->mon_path);
	unlink(lock);
	unlink(rig->mon_path);
	/* Fails, and the test with it, if something unexpected was left there. */
	assert_int_equal(rmdir(rig->dir), 0);
	free(rig);
	return 0;
}

static int probe_connect(struct ebb_rig *rig)
{
	struct ebb *ebb;
	int r = ebb_rig_try_open(rig, "rig-probe", 0, &ebb);

	if (r < 0)
		return r;
	r = ebb_has_monitor(ebb);
	ebb_close(ebb);
	return r;
}

void ebb_rig_monitor_start(struct ebb_rig *rig)
{
	uint64_t until_ns = ebb_rig_now_ns() + EBB_RIG_SOON_MS * NS_PER_MS;

	assert_int_equal(rig->monitor, 0);
	ebb_rig_time_slow(EBB_RIG_SLOW);
	rig->monitor = ebb_rig_spawn("--monitor", rig->dev_path, rig->mon_path, "");
	while (probe_connect(rig) != 1) {
		assert_true(ebb_rig_now_ns() < until_ns);
		usleep(5000);
	}
}

void ebb_rig_monitor_round(struct ebb_rig *rig)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct pollfd closed = { .fd = fd, .events = POLLIN };

	assert_true(fd >= 0);
	assert_true(strlen(rig->mon_path) < sizeof(addr.sun_path));
	strcpy(addr.sun_path, rig->mon_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_int_equal(poll(&closed, 1, EBB_RIG_SOON_MS), 1);
	close(fd);
}

int ebb_rig_monitor_end(struct ebb_rig *rig, int signo)
{
	int status = ebb_rig_end(rig->monitor, signo);

	rig->monitor = 0;
	return status;
}

pid_t ebb_rig_engine_start(struct ebb_rig *rig, const char *name)
{
	return ebb_rig_spawn("--engine", rig->dev_path, rig->mon_path, name);
}

int ebb_rig_try_open(struct ebb_rig *rig, const char *name, unsigned int flags,
		     struct ebb **ret)
{
	struct ebb_options options = {
		.app_name = name,
		.device = rig->dev_path,
		.monitor_socket = rig->mon_path,
		.flags = flags,
	};

	return ebb_open_dev(&options, &fake_ebb_dev_ops, ret);
}

struct ebb *ebb_rig_open(struct ebb_rig *rig, const char *name, unsigned int flags)
{
	struct ebb *ebb = NULL;

	assert_int_equal(ebb_rig_try_open(rig, name, flags, &ebb), 0);
	return ebb;
}

static void remove_some(struct ebb *ebb, uint32_t node, uint32_t count)
{
	struct ebb_cpu cpus[FAKE_EBB_MAX_CPUS];
	int num = ebb_cpu_list(ebb, cpus, FAKE_EBB_MAX_CPUS);

	for (int i = 0; i < num && count > 0; i++) {
		if (cpus[i].node != node || !(cpus[i].flags & EBB_CPU_OWNED) ||
		    (cpus[i].flags & EBB_CPU_FORCED))
			continue;
		if (ebb_cpu_remove(ebb, cpus[i].cpu, 0, NULL) == 0)
			count--;
	}
}

void ebb_rig_engine_shares(void *arg, const struct ebb_shares *shares)
{
	struct ebb_cpu cpus[EBB_MAX_REQ_CPUS];
	struct ebb *ebb = arg;
	struct ebb_lease lease;

	for (uint32_t i = 0; i < shares->num_nodes; i++) {
		const struct ebb_node_share *s = &shares->nodes[i];

		if (s->cpus_demanded > 0)
			remove_some(ebb, s->node, s->cpus_demanded);
		/* What does not work now is offered again. */
		else if (s->cpus_offered > 0)
			ebb_cpu_add(ebb, s->cpus_offered, s->node, 0, 0, cpus, NULL);
		if (s->mem_offered_bytes > 0)
			ebb_mem_add(ebb, s->mem_offered_bytes, s->node, &lease);
	}
}

bool ebb_rig_until(struct ebb *const apps[], size_t num, bool (*is_done)(void *arg), void *arg,
		   unsigned int ms)
{
	uint64_t until_ns = ebb_rig_now_ns() + ms * NS_PER_MS;

	do {
		struct pollfd p[MAX_APPS];

		if (is_done && is_done(arg))
			return true;
		for (size_t i = 0; i < num; i++) {
			p[i].fd = ebb_fd(apps[i]);
			p[i].events = POLLIN;
		}
		poll(p, num, 5);
		for (size_t i = 0; i < num; i++)
			if (p[i].revents)
				ebb_dispatch(apps[i]);
	} while (ebb_rig_now_ns() < until_ns);
	return is_done && is_done(arg);
}

void ebb_rig_run(struct ebb *const apps[], size_t num, unsigned int ms)
{
	ebb_rig_until(apps, num, NULL, NULL, ms);
}

struct ebb_node_share ebb_rig_share(struct ebb *ebb, uint32_t node)
{
	struct ebb_node_share none = { 0 };
	struct ebb_shares shares;

	ebb_shares_get(ebb, &shares);
	for (uint32_t i = 0; i < shares.num_nodes; i++)
		if (shares.nodes[i].node == node)
			return shares.nodes[i];
	return none;
}
