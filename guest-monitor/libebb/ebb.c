// SPDX-License-Identifier: BSD-3-Clause
/*
 * Opening, closing and dispatching a handle.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "handle.h"

#define NS_PER_MS	1000000ull

/* A view that other threads have made old by adding or releasing is read that often again. */
#define VIEW_TRIES	4

#define DEFAULT_DEVICE	"/dev/ebb"
#define DEFAULT_MONITOR	"/run/ebb/monitor.sock"

/* Option, else environment, else default. */
static const char *path_choose(const char *option, const char *variable, const char *otherwise)
{
	const char *env = secure_getenv(variable);

	if (option && *option)
		return option;
	return env && *env ? env : otherwise;
}

static void name_default(char name[EBB_MSG_NAME_BYTES])
{
	char pid[16];
	int room;

	snprintf(pid, sizeof(pid), "-%d", (int)getpid());
	room = EBB_MSG_NAME_BYTES - 1 - (int)strlen(pid);
	snprintf(name, EBB_MSG_NAME_BYTES, "%.*s%s", room, program_invocation_short_name, pid);
	for (char *c = name; *c; c++) {
		char one[2] = { *c, 0 };

		if (!ebb_msg_name_is_valid(one))
			*c = '_';
	}
}

static int poll_add(struct ebb *ebb, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(ebb->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int fds_create(struct ebb *ebb)
{
	int r;

	ebb->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	ebb->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ebb->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (ebb->epoll_fd < 0 || ebb->wake_fd < 0 || ebb->timer_fd < 0)
		return -errno;
	r = ebb_mem_init(&ebb->mem, ebb->ops, ebb->dev, ebb->wake_fd);
	if (r < 0)
		return r;
	r = poll_add(ebb, ebb->mem.epoll_fd);
	if (r == 0)
		r = poll_add(ebb, ebb->wake_fd);
	if (r == 0)
		r = poll_add(ebb, ebb->timer_fd);
	if (r == 0)
		r = poll_add(ebb, ebb->ops->fd(ebb->dev));
	return r;
}

static void fds_close(struct ebb *ebb)
{
	ebb_mem_finish(&ebb->mem);
	if (ebb->timer_fd >= 0)
		close(ebb->timer_fd);
	if (ebb->wake_fd >= 0)
		close(ebb->wake_fd);
	if (ebb->epoll_fd >= 0)
		close(ebb->epoll_fd);
}

static int options_check(const struct ebb_options *options)
{
	if (options->flags & ~EBB_OPEN_NO_MONITOR)
		return -EINVAL;
	if (options->app_name && !ebb_msg_name_is_valid(options->app_name))
		return -EINVAL;
	return 0;
}

int ebb_open_dev(const struct ebb_options *options, const struct ebb_dev_ops *ops,
		 struct ebb **ret)
{
	static const struct ebb_options defaults;
	char name[EBB_MSG_NAME_BYTES];
	struct ebb *ebb;
	int r;

	if (!options)
		options = &defaults;
	r = options_check(options);
	if (r < 0)
		return r;
	if (options->app_name)
		strcpy(name, options->app_name);
	else
		name_default(name);

	ebb = calloc(1, sizeof(*ebb));
	if (!ebb)
		return -ENOMEM;
	ebb->ops = ops;
	ebb->epoll_fd = ebb->wake_fd = ebb->timer_fd = ebb->mem.epoll_fd = -1;
	r = -pthread_mutex_init(&ebb->lock, NULL);
	if (r < 0)
		goto out_free;
	r = ebb_dev_open(ops, path_choose(options->device, "EBB_DEVICE", DEFAULT_DEVICE),
			 &ebb->dev);
	if (r < 0)
		goto out_lock;
	r = ebb_values_init(&ebb->values);
	if (r < 0)
		goto out_dev;
	r = fds_create(ebb);
	if (r < 0)
		goto out_fds;
	r = ebb_link_init(&ebb->link, name,
			  path_choose(options->monitor_socket, "EBB_MONITOR", DEFAULT_MONITOR),
			  ebb->epoll_fd, ebb->wake_fd, !!(options->flags & EBB_OPEN_NO_MONITOR));
	if (r < 0)
		goto out_fds;
	r = ebb_link_open(&ebb->link);
	if (r < 0)
		goto out_link;
	/* The first dispatch arms the timer and looks at everything. */
	ebb_wake(ebb->wake_fd);
	*ret = ebb;
	return 0;

out_link:
	ebb_link_finish(&ebb->link);
out_fds:
	fds_close(ebb);
	ebb_values_finish(&ebb->values);
out_dev:
	ops->close(ebb->dev);
out_lock:
	pthread_mutex_destroy(&ebb->lock);
out_free:
	free(ebb);
	return r;
}

int ebb_open(const struct ebb_options *options, struct ebb **ret)
{
	return ebb_open_dev(options, &ebb_dev_kernel_ops, ret);
}

void ebb_close(struct ebb *ebb)
{
	if (!ebb)
		return;
	ebb_link_finish(&ebb->link);
	fds_close(ebb);
	ebb_values_finish(&ebb->values);
	ebb->ops->close(ebb->dev);
	pthread_mutex_destroy(&ebb->lock);
	free(ebb);
}

int ebb_fd(const struct ebb *ebb)
{
	return ebb->epoll_fd;
}

int ebb_has_monitor(const struct ebb *ebb)
{
	/* The lock changes, the handle as its user sees it does not. */
	return ebb_link_is_up((struct ebb_link *)&ebb->link);
}

void ebb_set_shares_callback(struct ebb *ebb, ebb_shares_fn fn, void *arg)
{
	ebb->fn = fn;
	ebb->fn_arg = arg;
	ebb->is_fn_due = fn != NULL;
	if (fn)
		ebb_wake(ebb->wake_fd);
}

void ebb_shares_get(const struct ebb *ebb, struct ebb_shares *ret)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&ebb->lock;

	pthread_mutex_lock(lock);
	*ret = ebb->shares;
	pthread_mutex_unlock(lock);
}

unsigned int ebb_mem_promise(const struct ebb *ebb)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&ebb->lock;
	uint32_t mib;

	pthread_mutex_lock(lock);
	mib = ebb->mem_promise_mib;
	pthread_mutex_unlock(lock);
	return mib;
}

/* Only wakes are taken off here; device and link are asked, not believed. */
static int events_take(struct ebb *ebb)
{
	struct pollfd p = { .fd = ebb->ops->fd(ebb->dev), .events = POLLIN };
	eventfd_t count;
	uint64_t ticks;

	if (eventfd_read(ebb->wake_fd, &count) < 0 && errno != EAGAIN)
		return -errno;
	if (read(ebb->timer_fd, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
		return -errno;
	if (poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP)))
		return -ENODEV;
	return 0;
}

static void owned_tell(struct ebb *ebb)
{
	struct ebb_msg_owned owned = { 0 };

	for (uint32_t node = 0; node < EBB_MAX_NODES; node++)
		for (uint32_t i = 0; i < ebb->view.num_nodes; i++) {
			struct ebb_msg_owned_node *n = &owned.nodes[owned.num_nodes];

			if (ebb->view.nodes[i].node != node)
				continue;
			n->node = node;
			n->cpus = ebb->view.nodes[i].owned;
			n->mem_bytes = ebb->sums.owned_bytes[node];
			owned.num_nodes++;
		}
	ebb_link_set_owned(&ebb->link, &owned);
}

/*
 * The monitor's word or NULL.  A monitor that is connected but has not said
 * anything yet counts as one that is about to return.
 */
static const struct ebb_msg_shares *monitor_choose(struct ebb *ebb, uint64_t now_ns)
{
	if (ebb_link_shares(&ebb->link, &ebb->monitor_shares)) {
		ebb->had_monitor = 1;
		ebb->monitor_until_ns = 0;
		return &ebb->monitor_shares;
	}
	if (!ebb->had_monitor)
		return NULL;
	if (ebb->monitor_until_ns == 0)
		ebb->monitor_until_ns = now_ns + EBB_MONITOR_GRACE_MS * NS_PER_MS;
	if (now_ns < ebb->monitor_until_ns)
		return &ebb->monitor_shares;
	ebb->had_monitor = 0;
	ebb->monitor_until_ns = 0;
	return NULL;
}

static void shares_update(struct ebb *ebb, const struct ebb_msg_shares *monitor)
{
	const uint32_t promise_mib = ebb_shares_promise(&ebb->view, monitor);
	struct ebb_shares now;
	int has_changed;

	ebb_shares_compute(&ebb->view, &ebb->sums, monitor, &now);
	pthread_mutex_lock(&ebb->lock);
	has_changed = now.num_nodes != ebb->shares.num_nodes ||
		      promise_mib != ebb->mem_promise_mib ||
		      memcmp(now.nodes, ebb->shares.nodes, sizeof(now.nodes)) != 0;
	now.generation = ebb->shares.generation + (has_changed ? 1 : 0);
	ebb->shares = now;
	ebb->mem_promise_mib = promise_mib;
	pthread_mutex_unlock(&ebb->lock);

	if (!ebb->fn || (!has_changed && !ebb->is_fn_due))
		return;
	/* Before the host has spoken there is nothing to tell. */
	if (now.generation == 0)
		return;
	ebb->is_fn_due = 0;
	ebb->fn(ebb->fn_arg, &now);
}

/* -EAGAIN: something goes on changing. */
static int view_update(struct ebb *ebb)
{
	struct ebb_mem_sums before;

	for (int i = 0; i < VIEW_TRIES; i++) {
		struct ebb_mem_sums sums;
		struct ebb_view view;
		int r;

		ebb_mem_sums_get(&ebb->mem, &before);
		r = ebb_view_read(ebb->ops, ebb->dev, &view);
		if (r < 0)
			return r;
		/* What the driver counts and what is ours must be of the same moment. */
		ebb_mem_sums_get(&ebb->mem, &sums);
		if (sums.seq != before.seq)
			continue;
		ebb->view = view;
		ebb->sums = sums;
		return 0;
	}
	return -EAGAIN;
}

int ebb_dispatch(struct ebb *ebb)
{
	uint64_t now_ns = ebb_now_ns();
	uint64_t due_ns, ask_ns;
	int r;

	if (ebb->is_gone)
		return -ENODEV;
	r = events_take(ebb);
	if (r == 0)
		r = ebb_mem_dispatch(&ebb->mem);
	if (r == 0)
		r = view_update(ebb);
	if (r == -ENODEV)
		ebb->is_gone = 1;
	/* The view is taken at the next look. */
	if (r == -EAGAIN)
		ebb_wake(ebb->wake_fd);
	else if (r < 0)
		return r;
	owned_tell(ebb);
	ebb_link_set_values(&ebb->link, ebb_values_exist(&ebb->values));
	ebb_link_step(&ebb->link, now_ns);
	shares_update(ebb, monitor_choose(ebb, now_ns));
	/* After the application was told: making a histogram takes time, a demand has none. */
	ask_ns = ebb_ask_step(ebb, now_ns);
	due_ns = ebb_link_acknowledge(&ebb->link, now_ns);
	if (ask_ns < due_ns)
		due_ns = ask_ns;
	if (ebb->monitor_until_ns && ebb->monitor_until_ns < due_ns)
		due_ns = ebb->monitor_until_ns;
	ebb_timer_arm(ebb->timer_fd, due_ns);
	return 0;
}
