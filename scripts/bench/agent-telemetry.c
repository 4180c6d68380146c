// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CPU of an agent that idles but for telemetry: a process with the daemon's event loop, links, core
 * and history, and in place of libvirt a backend that is done at once; this process is the devices.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "daemon/agent.h"
#include "backend/real/link.h"
#include "model/sla.h"
#include "scripts/bench/agent.h"
#include "tests/lib/link_frames.h"
#include "util/heap.h"
#include "util/log.h"
#include "util/uuid.h"

#define WARM_UP_S	2

/* ---- the agent's process ---- */

struct server {
	struct ebb_agent agent;
	struct ebb_links *links;
	struct ebb_sink sink;
	size_t num_done, max_done;
	struct ebb_fact_action_done *done; /* actions that have ended and were not reported yet */
};

static void server_submit(void *be, usec_t now, const struct ebb_action *action)
{
	struct server *s = be;

	(void)now;
	if (action->id == 0) {
		ebb_links_submit(s->links, action);
		return;
	}
	if (s->num_done == s->max_done) {
		s->max_done = s->max_done ? 2 * s->max_done : 64;
		s->done = reallocarray(s->done, s->max_done, sizeof(*s->done));
		if (!s->done)
			bench_fail("backend", ENOMEM);
	}
	s->done[s->num_done++] = (struct ebb_fact_action_done){
		.id = action->id, .type = action->type,
	};
}

static usec_t server_next(void *be)
{
	const struct server *s = be;

	return s->num_done ? 0 : EBB_TIME_NEVER;
}

static void server_run(void *be, usec_t now)
{
	struct server *s = be;

	while (s->num_done > 0) {
		const struct ebb_fact fact = {
			.type = EBB_FACT_ACTION_DONE,
			.u.action_done = s->done[--s->num_done],
		};

		s->sink.report(s->sink.ctx, now, &fact);
	}
}

static pid_t parent_pid(void *ctx, const uint8_t uuid[16])
{
	(void)ctx;
	(void)uuid;
	return getppid();
}

static void uuid_of(uint32_t vm, uint8_t *ret)
{
	memset(ret, 0, 16);
	memcpy(ret, &vm, sizeof(vm));
	ret[15] = 0xeb;
}

/* As link_frame_hello() has it: one CPU to begin with, four at most, on two nodes. */
static void add_vm(struct server *s, uint32_t i)
{
	static const struct ebb_vcpu_def vcpus[4] = { { 0, true }, { 0, false }, { 1, false },
						      { 1, false } };
	static const struct ebb_vcpu_fact plugged = { .vcpu = 0, .thread = EBB_THREAD_NONE };
	struct ebb_fact fact = { .type = EBB_FACT_VM_DEFINED };
	struct ebb_fact_vm_defined *d = &fact.u.vm_defined;
	struct ebb_err err = { "" };

	uuid_of(i, fact.uuid);
	snprintf(d->name, sizeof(d->name), "vm%u", i);
	ebb_sla_default(&d->sla);
	d->sla.class = EBB_CLASS_SPOT;
	d->sla.num_nodes = 2;
	d->sla.nodes[0] = (struct ebb_sla_node){ .startup = 1, .reserved = 1, .max = 2,
						 .host_node = i % 4 };
	d->sla.nodes[1] = (struct ebb_sla_node){ .max = 2, .host_node = (i + 1) % 4 };
	d->num_vcpus = 4;
	d->vcpus = vcpus;
	s->sink.report(s->sink.ctx, 1, &fact);
	fact.type = EBB_FACT_VM_RUNNING;
	fact.u.vm_running = (struct ebb_fact_vm_running){
		.order = i + 1, .as_of = 1, .num_plugged = 1, .plugged = &plugged,
	};
	s->sink.report(s->sink.ctx, 1, &fact);
	if (ebb_links_listen(s->links, fact.uuid, "vm", &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		bench_fail("listen", EIO);
	}
	ebb_links_enable(s->links, fact.uuid, true);
}

static void serve(const char *folder, uint32_t num_vms, const struct ebb_policy_ops *policy,
		  int ready)
{
	static const struct ebb_backend_ops ops = {
		.name = "bench", .submit = server_submit, .next = server_next, .run = server_run,
	};
	static const struct ebb_fact loaded = { .type = EBB_FACT_LOADED };
	static struct ebb_host host;
	struct server s = { 0 };
	struct ebb_links_config links = {
		.folder = folder, .group = (gid_t)-1, .qemu_pid = parent_pid,
	};
	struct ebb_state_config cfg;
	struct ebb_workers *workers;
	struct ebb_err err = { "" };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ebb_log_set_level(LOG_ERR);
	ebb_host_emulate(4, 36, 2, 1000, &host);
	ebb_state_config_default(&cfg);
	cfg.count_threads = true;
	cfg.alloc = (struct ebb_alloc){ .alloc = ebb_heap_alloc, .free = ebb_heap_free };
	s.agent.host_spec = "4x36x2";
	s.agent.state = ebb_state_create(&cfg, &host, policy);
	s.agent.backend = (struct ebb_backend){ .ops = &ops, .be = &s };
	if (!s.agent.state || sd_event_new(&s.agent.event) < 0 ||
	    ebb_workers_create(s.agent.event, 2, &workers) < 0 ||
	    ebb_history_open(NULL, 100000, workers, s.agent.event, &s.agent.history, &err) < 0 ||
	    ebb_agent_init(&s.agent) < 0)
		bench_fail("agent", ENOMEM);
	links.sink = s.sink = ebb_agent_sink(&s.agent);
	if (ebb_links_create(s.agent.event, &links, &s.links) < 0)
		bench_fail("links", ENOMEM);
	for (uint32_t i = 0; i < num_vms; i++)
		add_vm(&s, i);
	s.sink.report(s.sink.ctx, 1, &loaded);
	if (write(ready, "r", 1) != 1)
		bench_fail("pipe", errno);
	sd_event_loop(s.agent.event);
	_exit(1);
}

/* ---- the devices ---- */

static double usec_of(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t) < 0)
		bench_fail("clock_gettime", errno);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void path_of(const char *folder, uint32_t vm, char ret[108])
{
	char text[EBB_UUID_TEXT_SIZE];
	uint8_t uuid[16];

	uuid_of(vm, uuid);
	ebb_uuid_format(uuid, text);
	snprintf(ret, 108, "%s/%s.sock", folder, text);
}

static void send_frame(int fd, const void *frame, size_t len)
{
	if (send(fd, frame, len, MSG_NOSIGNAL) != (ssize_t)len)
		bench_fail("a device lost its link", errno);
}

static int connect_device(const char *folder, uint32_t vm)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct link_frame_hello hello;
	uint8_t uuid[16];

	path_of(folder, vm, addr.sun_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		bench_fail(addr.sun_path, errno);
	uuid_of(vm, uuid);
	send_frame(fd, &hello, link_frame_hello(&hello, uuid, 4, 1, 1));
	return fd;
}

/* What the agent sends is thrown away, but must be taken. */
static void drain(int fd)
{
	char buf[4096];

	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

/* A moment that has passed meanwhile is no reason to sleep. */
static void sleep_until(double usec)
{
	const struct timespec t = {
		(time_t)(usec / 1e6), (long)((usec - (double)(time_t)(usec / 1e6) * 1e6) * 1e3),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* One second: each device sends once, one after the other at even distances. */
static void second(const int *devices, uint32_t num_vms, double start, uint64_t count)
{
	struct link_frame_telemetry frame;

	for (uint32_t i = 0; i < num_vms; i++) {
		sleep_until(start + 1e6 * i / num_vms);
		drain(devices[i]);
		send_frame(devices[i], &frame, link_frame_telemetry(&frame, count));
	}
}

static void measure(const char *folder, const char *size, uint32_t num_vms,
		    const struct ebb_policy_ops *policy, clockid_t clock, unsigned seconds)
{
	int *devices = calloc(num_vms, sizeof(*devices));
	double *values = calloc(seconds, sizeof(*values));
	double start;

	if (!devices || !values)
		bench_fail("set-up", ENOMEM);
	for (uint32_t i = 0; i < num_vms; i++)
		devices[i] = connect_device(folder, i);
	start = usec_of(CLOCK_MONOTONIC);
	for (unsigned i = 0; i < WARM_UP_S + seconds; i++) {
		const double before = usec_of(clock), from = usec_of(CLOCK_MONOTONIC);

		second(devices, num_vms, start + 1e6 * i, i);
		sleep_until(start + 1e6 * (i + 1));
		if (i >= WARM_UP_S)
			values[i - WARM_UP_S] = 100 * (usec_of(clock) - before) /
						(usec_of(CLOCK_MONOTONIC) - from);
	}
	bench_print("agent_cpu", size, policy->name, "%", values, seconds);
	for (uint32_t i = 0; i < num_vms; i++)
		close(devices[i]);
	free(devices);
	free(values);
}

static void remove_folder(const char *folder, uint32_t num_vms)
{
	for (uint32_t i = 0; i < num_vms; i++) {
		char path[108];

		path_of(folder, i, path);
		unlink(path);
	}
	rmdir(folder);
}

void bench_telemetry(const char *size, uint32_t num_vms, const struct ebb_policy_ops *policy,
		     double seconds)
{
	char folder[] = "/tmp/ebb-bench-agent.XXXXXX", ready;
	struct rlimit files;
	clockid_t clock;
	int fds[2];
	pid_t pid;

	/* A socket to listen on and one to talk on for each VM. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (!mkdtemp(folder) || pipe2(fds, O_CLOEXEC) < 0)
		bench_fail(folder, errno);
	pid = fork();
	if (pid < 0)
		bench_fail("fork", errno);
	if (pid == 0)
		serve(folder, num_vms, policy, fds[1]);
	close(fds[1]);
	if (read(fds[0], &ready, 1) != 1 || clock_getcpuclockid(pid, &clock) != 0)
		bench_fail("the agent does not come up", ECHILD);
	measure(folder, size, num_vms, policy, clock, (unsigned)(seconds + 0.5));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fds[0]);
	remove_folder(folder, num_vms);
}
