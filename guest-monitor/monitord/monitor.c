// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The loop of ebb-monitord: see monitor.h.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "guest-monitor/libebb/link.h"
#include "log.h"
#include "monitor.h"

#define NS_PER_SEC	1000000000ull
#define NS_PER_MS	1000000ull

#define DEV_RETRY_MS	1000
#define ROUND_EVENTS	32

static int poll_add(struct ebb_monitor *monitor, int fd, void *tag)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = tag };

	return epoll_ctl(monitor->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* ---- the device ---- */

static int dev_attach(struct ebb_monitor *monitor)
{
	int r = ebb_dev_open(monitor->ops, monitor->config->device, &monitor->dev);

	if (r < 0)
		return r;
	r = poll_add(monitor, monitor->ops->fd(monitor->dev), &monitor->dev);
	if (r < 0) {
		monitor->ops->close(monitor->dev);
		monitor->dev = NULL;
		return r;
	}
	monitor->is_divide_due = true;
	return 0;
}

/* Applications are told that there is nothing to divide; statistics go on. */
void ebb_monitor_dev_lose(struct ebb_monitor *monitor, uint64_t now_ns, int error)
{
	ebb_log("lost %s: %s; looking for it every %d ms", monitor->config->device,
		strerror(error), DEV_RETRY_MS);
	epoll_ctl(monitor->epoll_fd, EPOLL_CTL_DEL, monitor->ops->fd(monitor->dev), NULL);
	monitor->ops->close(monitor->dev);
	monitor->dev = NULL;
	memset(&monitor->view, 0, sizeof(monitor->view));
	monitor->vom_asked = monitor->vom_told = 0;
	monitor->dev_retry_ns = now_ns + DEV_RETRY_MS * NS_PER_MS;
	monitor->is_divide_due = true;
}

static void dev_retry(struct ebb_monitor *monitor, uint64_t now_ns)
{
	if (monitor->dev || now_ns < monitor->dev_retry_ns)
		return;
	if (dev_attach(monitor) == 0)
		ebb_log("found %s again", monitor->config->device);
	else
		monitor->dev_retry_ns = now_ns + DEV_RETRY_MS * NS_PER_MS;
}

static void view_update(struct ebb_monitor *monitor, uint64_t now_ns)
{
	int r;

	if (!monitor->dev)
		return;
	r = ebb_view_read(monitor->ops, monitor->dev, &monitor->view);
	if (r == -ENODEV)
		ebb_monitor_dev_lose(monitor, now_ns, -r);
	else if (r == -EAGAIN)
		monitor->divide_ns = now_ns;
	else if (r < 0)
		ebb_log("cannot read the limits, ignoring: %s", strerror(-r));
}

static void dev_handle(struct ebb_monitor *monitor, uint32_t events, uint64_t now_ns)
{
	if (events & (EPOLLERR | EPOLLHUP))
		ebb_monitor_dev_lose(monitor, now_ns, ENODEV);
	else
		monitor->is_divide_due = true;
}

/* ---- applications ---- */

static void accepting_set(struct ebb_monitor *monitor, bool is_on)
{
	if (is_on == monitor->is_accepting)
		return;
	if (!is_on)
		epoll_ctl(monitor->epoll_fd, EPOLL_CTL_DEL, monitor->server.listen_fd, NULL);
	else if (poll_add(monitor, monitor->server.listen_fd, &monitor->server) < 0)
		return;
	monitor->is_accepting = is_on;
}

static size_t process_count(const struct ebb_monitor *monitor, pid_t pid)
{
	size_t num = 0;

	for (size_t i = 0; i < monitor->num_clients; i++)
		if (monitor->clients[i]->pid == pid)
			num++;
	return num;
}

static void client_accept(struct ebb_monitor *monitor, uint64_t now_ns)
{
	struct ebb_client *client;
	int fd;

	/* The rest waits in the listening socket until somebody leaves. */
	if (monitor->num_clients >= EBB_MONITOR_MAX_CLIENTS) {
		accepting_set(monitor, false);
		return;
	}
	fd = accept4(monitor->server.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
			ebb_log("cannot accept, pausing: %s", strerror(errno));
			accepting_set(monitor, false);
		}
		return;
	}
	client = ebb_client_create(fd, now_ns);
	if (!client) {
		close(fd);
		return;
	}
	if (process_count(monitor, client->pid) >= EBB_MONITOR_MAX_PER_PROCESS) {
		ebb_client_drop(client, "too many connections of one process");
		ebb_client_destroy(client);
		return;
	}
	if (poll_add(monitor, fd, client) < 0) {
		ebb_client_destroy(client);
		return;
	}
	monitor->clients[monitor->num_clients++] = client;
}

static void clients_reap(struct ebb_monitor *monitor, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < monitor->num_clients; i++) {
		struct ebb_client *client = monitor->clients[i];

		if (client->state == EBB_CLIENT_NEW && now_ns >= client->hello_by_ns)
			ebb_client_drop(client, "did not say hello");
		if (client->state == EBB_CLIENT_DEAD) {
			monitor->is_divide_due = true;
			ebb_client_destroy(client);
		} else {
			monitor->clients[kept++] = client;
		}
	}
	if (kept < monitor->num_clients)
		accepting_set(monitor, true);
	monitor->num_clients = kept;
}

static bool owns_memory(const struct ebb_client *client)
{
	for (uint32_t node = 0; node < EBB_MAX_NODES; node++)
		if (client->divide.nodes[EBB_DIVIDE_MEM][node].claimed > 0)
			return client->state == EBB_CLIENT_REGISTERED;
	return false;
}

static void promise_divide(struct ebb_monitor *monitor)
{
	size_t num = 0, rank = 0;

	for (size_t i = 0; i < monitor->num_clients; i++)
		num += owns_memory(monitor->clients[i]);
	for (size_t i = 0; i < monitor->num_clients; i++) {
		struct ebb_client *client = monitor->clients[i];

		client->promise_mib = 0;
		if (owns_memory(client))
			client->promise_mib = ebb_divide_promise(monitor->view.mem_promise_mib,
								 rank++, num);
	}
}

static void divide_and_publish(struct ebb_monitor *monitor, uint64_t now_ns)
{
	struct ebb_divide_app *apps[EBB_MONITOR_MAX_CLIENTS];
	size_t num = 0;

	/* Cleared first: whatever happens from here on counts for the next round. */
	monitor->is_divide_due = false;
	monitor->divide_ns = UINT64_MAX;
	view_update(monitor, now_ns);
	for (size_t i = 0; i < monitor->num_clients; i++)
		if (monitor->clients[i]->state == EBB_CLIENT_REGISTERED) {
			apps[num] = &monitor->clients[i]->divide;
			apps[num++]->values = ebb_collect_known(monitor, monitor->clients[i]);
		}
	if (monitor->divide_ns == UINT64_MAX)
		monitor->divide_ns = ebb_divide(&monitor->view, apps, num, now_ns);
	promise_divide(monitor);
	for (size_t i = 0; i < monitor->num_clients; i++) {
		monitor->clients[i]->is_alone = num == 1 && monitor->dev;
		ebb_client_publish(monitor->clients[i], &monitor->view, now_ns);
	}
}

/* ---- telemetry ---- */

static void guest_sample(struct ebb_monitor *monitor, uint64_t now_ns)
{
	uint64_t ticks_per_sec = (uint64_t)sysconf(_SC_CLK_TCK);
	struct ebb_store_guest *guest = &monitor->guest;
	struct ebb_proc_cpu cpu;
	struct ebb_proc_mem mem;
	int r;

	r = ebb_proc_cpu_read(monitor->config->proc_stat, &cpu);
	if (r < 0) {
		ebb_log("cannot read %s, ignoring: %s", monitor->config->proc_stat, strerror(-r));
	} else {
		ebb_usage_add(&monitor->usage, now_ns, cpu.busy_ticks);
		guest->cpus_online = cpu.cpus_online;
		guest->cpu_permille = ebb_usage_permille(&monitor->usage, NS_PER_SEC,
							 ticks_per_sec);
		guest->cpu_permille_interval = ebb_usage_permille(&monitor->usage, 1,
								  ticks_per_sec);
	}
	r = ebb_proc_mem_read(monitor->config->proc_meminfo, &mem);
	if (r < 0) {
		ebb_log("cannot read %s, ignoring: %s", monitor->config->proc_meminfo,
			strerror(-r));
		return;
	}
	guest->mem_total_bytes = mem.total_bytes;
	guest->mem_available_bytes = mem.available_bytes;
}

static void telemetry_send(struct ebb_monitor *monitor, uint64_t now_ns)
{
	struct ebb_telemetry telemetry = { .size = sizeof(telemetry) };
	const struct ebb_store_app *apps[EBB_MONITOR_MAX_CLIENTS];
	size_t num = 0;
	int r;

	if (!monitor->dev)
		return;
	for (size_t i = 0; i < monitor->num_clients; i++)
		if (monitor->clients[i]->state == EBB_CLIENT_REGISTERED)
			apps[num++] = &monitor->clients[i]->store;
	/* Only a device that takes the counts of simulated caches tells a promise. */
	ebb_store_telemetry(apps, num, &monitor->sums, &monitor->guest,
			    monitor->view.mem_promise_mib > 0, monitor->config->interval_ms, now_ns,
			    &telemetry.report);
	r = monitor->ops->ioctl(monitor->dev, EBB_IOC_TELEMETRY, &telemetry);
	if (r == -ENODEV)
		ebb_monitor_dev_lose(monitor, now_ns, -r);
	/* EAGAIN: the next report says it all, and more. */
	else if (r < 0 && r != -EAGAIN)
		ebb_log("cannot send telemetry, ignoring: %s", strerror(-r));
}

/*
 * Telemetry goes out with a report whenever it can, so that the host takes
 * counters for no older than they are; the timer, set to fire later than the
 * next report is due, is for guests without one.
 */
static int tick_arm(struct ebb_monitor *monitor, uint64_t now_ns)
{
	uint64_t ms = monitor->config->interval_ms, late_ms = ms + ms / 4;
	struct itimerspec its = {
		.it_interval = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS },
		.it_value = { .tv_sec = late_ms / 1000, .tv_nsec = late_ms % 1000 * NS_PER_MS },
	};

	if (!monitor->tick_ns)
		its.it_value = (struct timespec){ .tv_nsec = 1 };
	monitor->tick_ns = now_ns;
	return timerfd_settime(monitor->tick_fd, 0, &its, NULL) < 0 ? -errno : 0;
}

void ebb_monitor_reported(struct ebb_monitor *monitor, uint64_t now_ns)
{
	/* Several applications do not add up to more than two of these in an interval. */
	if (now_ns - monitor->tick_ns >= monitor->config->interval_ms * (NS_PER_MS / 2))
		monitor->is_tick_due = true;
}

static void tick_handle(struct ebb_monitor *monitor, uint64_t now_ns)
{
	monitor->is_tick_due = false;
	tick_arm(monitor, now_ns);
	guest_sample(monitor, now_ns);
	telemetry_send(monitor, now_ns);
	if (monitor->config->isolate_root)
		ebb_sweep_tick(&monitor->sweep, monitor->ops, monitor->dev, now_ns);
	/* Accepting may have been paused for want of memory or files. */
	if (monitor->num_clients < EBB_MONITOR_MAX_CLIENTS)
		accepting_set(monitor, true);
}

/* ---- the loop ---- */

static int wait_ms(const struct ebb_monitor *monitor, uint64_t now_ns)
{
	uint64_t due_ns = monitor->divide_ns;

	if (monitor->is_divide_due)
		return 0;
	for (size_t i = 0; i < monitor->num_clients; i++) {
		const struct ebb_client *client = monitor->clients[i];

		if (client->state == EBB_CLIENT_NEW && client->hello_by_ns < due_ns)
			due_ns = client->hello_by_ns;
	}
	if (monitor->vom_due_ns < due_ns)
		due_ns = monitor->vom_due_ns;
	if (!monitor->dev && monitor->dev_retry_ns < due_ns)
		due_ns = monitor->dev_retry_ns;
	if (due_ns == UINT64_MAX)
		return -1;
	return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns) / NS_PER_MS) + 1;
}

/* 1: it is time to stop. */
static int round_run(struct ebb_monitor *monitor)
{
	struct epoll_event events[ROUND_EVENTS];
	uint64_t now_ns = ebb_now_ns();
	int num;

	num = epoll_wait(monitor->epoll_fd, events, ROUND_EVENTS, wait_ms(monitor, now_ns));
	if (num < 0 && errno != EINTR)
		return -errno;
	now_ns = ebb_now_ns();
	for (int i = 0; i < num; i++) {
		void *tag = events[i].data.ptr;

		if (tag == monitor)
			return 1;
		if (tag == &monitor->server)
			client_accept(monitor, now_ns);
		else if (tag == &monitor->tick_fd)
			monitor->is_tick_due = true;
		else if (tag != &monitor->dev)
			ebb_client_receive(monitor, tag, now_ns);
		/* A report or a tick before it may have found it gone already. */
		else if (monitor->dev)
			dev_handle(monitor, events[i].events, now_ns);
	}
	if (monitor->is_tick_due)
		tick_handle(monitor, now_ns);
	dev_retry(monitor, now_ns);
	clients_reap(monitor, now_ns);
	if (monitor->is_divide_due || now_ns >= monitor->divide_ns)
		divide_and_publish(monitor, now_ns);
	ebb_collect_step(monitor, now_ns);
	return 0;
}

static int tick_create(struct ebb_monitor *monitor)
{
	int r;

	monitor->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (monitor->tick_fd < 0)
		return -errno;
	r = tick_arm(monitor, ebb_now_ns());
	return r < 0 ? r : poll_add(monitor, monitor->tick_fd, &monitor->tick_fd);
}

static int monitor_start(struct ebb_monitor *monitor)
{
	int r;

	monitor->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (monitor->epoll_fd < 0)
		return -errno;
	r = poll_add(monitor, monitor->config->stop_fd, monitor);
	if (r == 0)
		r = tick_create(monitor);
	if (r < 0) {
		ebb_log("cannot set up the event loop: %s", strerror(-r));
		return r;
	}
	r = dev_attach(monitor);
	if (r < 0) {
		ebb_log("cannot open %s: %s%s", monitor->config->device, strerror(-r),
			r == -ENOENT ? "; is the ebb module loaded and the device there?" :
			r == -EPROTO ? "; it is no ebb device, or one of another version" :
			"");
		return r;
	}
	r = ebb_server_open(&monitor->server, monitor->config->socket, monitor->config->gid);
	if (r < 0)
		return r;
	accepting_set(monitor, true);
	return monitor->is_accepting ? 0 : -ENOMEM;
}

static void monitor_stop(struct ebb_monitor *monitor)
{
	for (size_t i = 0; i < monitor->num_clients; i++)
		ebb_client_destroy(monitor->clients[i]);
	ebb_server_close(&monitor->server);
	if (monitor->config->isolate_root)
		ebb_sweep_end(&monitor->sweep);
	if (monitor->dev)
		monitor->ops->close(monitor->dev);
	if (monitor->tick_fd >= 0)
		close(monitor->tick_fd);
	if (monitor->epoll_fd >= 0)
		close(monitor->epoll_fd);
}

int ebb_monitor_run(const struct ebb_monitor_config *config, const struct ebb_dev_ops *ops)
{
	struct ebb_monitor monitor = {
		.config = config,
		.ops = ops,
		.epoll_fd = -1,
		.tick_fd = -1,
		.server = { .listen_fd = -1, .lock_fd = -1 },
		.divide_ns = UINT64_MAX,
		.vom_due_ns = UINT64_MAX,
		.sweep = { .root = config->isolate_root, .device = config->device },
	};
	int r;

	if (config->interval_ms < EBB_MONITOR_INTERVAL_MIN_MS ||
	    config->interval_ms > EBB_MONITOR_INTERVAL_MAX_MS)
		return -EINVAL;
	r = monitor_start(&monitor);
	if (r == 0)
		ebb_log("serving %s on %s", config->device, config->socket);
	while (r == 0)
		r = round_run(&monitor);
	monitor_stop(&monitor);
	return r > 0 ? 0 : r;
}
