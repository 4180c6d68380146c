// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libebb without a monitor, on a simulated device.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/proto.h"
#include "guest-monitor/libebb/link.h"
#include "tests/lib/ebb_rig.h"

static int calls;
static struct ebb_shares last;

static void remember(void *arg, const struct ebb_shares *shares)
{
	assert_ptr_equal(arg, &last);
	calls++;
	last = *shares;
}

static bool is_readable(struct ebb *ebb)
{
	struct pollfd p = { .fd = ebb_fd(ebb), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Until there is nothing more to do. */
static int drain(struct ebb *ebb)
{
	int r = 0;

	while (r == 0 && is_readable(ebb))
		r = ebb_dispatch(ebb);
	return r;
}

static void open_refuses_bad_options(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = (struct ebb *)1;

	assert_int_equal(ebb_rig_try_open(rig, "", 0, &ebb), -EINVAL);
	assert_int_equal(ebb_rig_try_open(rig, "with space", 0, &ebb), -EINVAL);
	assert_int_equal(ebb_rig_try_open(rig, "slash/ed", 0, &ebb), -EINVAL);
	assert_int_equal(ebb_rig_try_open(rig, "a23456789012345678901234567890ab", 0, &ebb),
			 -EINVAL);
	assert_int_equal(ebb_rig_try_open(rig, "ok", 1u << 1, &ebb), -EINVAL);
	assert_ptr_equal(ebb, (struct ebb *)1);
	assert_int_equal(fake_ebb_dev_num_opens(rig->dev), 0);
}

static void open_takes_the_longest_name_and_none(void **state)
{
	struct ebb_rig *rig = *state;

	ebb_close(ebb_rig_open(rig, "a23456789012345678901234567890a", 0));
	ebb_close(ebb_rig_open(rig, NULL, 0));
	ebb_close(NULL);
}

static void open_says_what_is_wrong_with_the_device(void **state)
{
	struct ebb_options missing = { .device = "/nonexistent/ebb" };
	struct ebb_options other = { .device = "/dev/null" };
	struct ebb_rig *rig = *state;
	struct ebb *ebb;

	assert_int_equal(ebb_open(&missing, &ebb), -ENOENT);
	/* Knows no such ioctl. */
	assert_int_equal(ebb_open(&other, &ebb), -EPROTO);
	fake_ebb_dev_set_abi(rig->dev, EBB_ABI_VERSION - 1);
	assert_int_equal(ebb_rig_try_open(rig, "a", 0, &ebb), -EPROTO);
	/* What a later driver adds does no harm. */
	fake_ebb_dev_set_abi(rig->dev, EBB_ABI_VERSION + 1);
	assert_int_equal(ebb_rig_try_open(rig, "a", 0, &ebb), 0);
	ebb_close(ebb);
}

static void open_refuses_a_monitor_path_that_is_too_long(void **state)
{
	struct ebb_rig *rig = *state;
	char path[200];
	struct ebb_options options = { .device = rig->dev_path, .monitor_socket = path };
	struct ebb *ebb;

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(ebb_open_dev(&options, &fake_ebb_dev_ops, &ebb), -EINVAL);
}

static void nothing_is_known_before_the_host_speaks(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct ebb_shares shares;

	calls = 0;
	ebb_set_shares_callback(ebb, remember, &last);
	assert_int_equal(drain(ebb), 0);
	ebb_shares_get(ebb, &shares);
	assert_int_equal(shares.generation, 0);
	assert_int_equal(shares.num_nodes, 0);
	assert_int_equal(calls, 0);
	assert_int_equal(ebb_has_monitor(ebb), 0);
	ebb_close(ebb);
}

static void offers_and_demands_of_the_vm(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct ebb_cpu cpus[EBB_MAX_REQ_CPUS];
	struct ebb_times times;

	calls = 0;
	ebb_set_shares_callback(ebb, remember, &last);
	fake_ebb_dev_set_limit(rig->dev, 1, 5, 0);
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(last.num_nodes, 2);
	assert_int_equal(ebb_rig_share(ebb, 0).cpus_offered, 0);
	assert_int_equal(ebb_rig_share(ebb, 1).cpus_offered, 3);
	assert_int_equal(ebb_rig_share(ebb, 1).cpus_held, 2);
	assert_int_equal(ebb_rig_share(ebb, 1).cpus_limit, 5);

	/* More than there is: what there is. */
	assert_int_equal(ebb_cpu_add(ebb, 5, 1, 0, 0, cpus, &times), 3);
	assert_int_equal(times.host_ns, 1000);
	assert_int_equal(times.kernel_ns, 2000);
	assert_int_equal(cpus[2].node, 1);
	assert_int_equal(cpus[2].flags, EBB_CPU_OWNED);
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(ebb_rig_share(ebb, 1).cpus_owned, 3);
	assert_int_equal(ebb_rig_share(ebb, 1).cpus_offered, 0);
	assert_int_equal(ebb_rig_share(ebb, 1).cpus_held, 5);

	fake_ebb_dev_set_limit(rig->dev, 1, 3, 123456789);
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(ebb_rig_share(ebb, 1).cpus_demanded, 2);
	assert_int_equal(ebb_rig_share(ebb, 1).deadline_ns, 123456789);
	assert_int_equal(ebb_cpu_remove(ebb, cpus[0].cpu, 0, &times), 0);
	assert_int_equal(times.host_ns, 3000);
	assert_int_equal(times.kernel_ns, 4000);
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(ebb_rig_share(ebb, 1).cpus_demanded, 1);

	/* The host takes one itself: the demand is met and the CPU is no longer ours. */
	assert_int_equal(fake_ebb_dev_force(rig->dev, cpus[1].cpu), 0);
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(ebb_rig_share(ebb, 1).cpus_demanded, 0);
	assert_int_equal(ebb_rig_share(ebb, 1).deadline_ns, 0);
	assert_int_equal(ebb_rig_share(ebb, 1).cpus_owned, 1);
	ebb_close(ebb);
}

static void callback_comes_only_with_changes(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	uint64_t generation;

	calls = 0;
	fake_ebb_dev_set_limit(rig->dev, 0, 3, 0);
	assert_int_equal(drain(ebb), 0);
	/* Set late: told at the next dispatch all the same, and once. */
	ebb_set_shares_callback(ebb, remember, &last);
	assert_true(is_readable(ebb));
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(calls, 1);
	generation = last.generation;
	assert_int_equal(ebb_dispatch(ebb), 0);
	fake_ebb_dev_set_limit(rig->dev, 0, 3, 0);
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(calls, 1);
	fake_ebb_dev_set_limit(rig->dev, 0, 4, 0);
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(calls, 2);
	assert_int_not_equal(last.generation, generation);
	ebb_set_shares_callback(ebb, NULL, NULL);
	fake_ebb_dev_set_limit(rig->dev, 0, 5, 0);
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(calls, 2);
	ebb_close(ebb);
}

static void callback_may_add_and_remove(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);

	ebb_set_shares_callback(ebb, ebb_rig_engine_shares, ebb);
	fake_ebb_dev_set_limit(rig->dev, 0, 9, 0);
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(fake_ebb_dev_held(rig->dev, 0), 9);
	fake_ebb_dev_set_limit(rig->dev, 0, 4, 1);
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(fake_ebb_dev_held(rig->dev, 0), 4);
	/* Below the startup set: nothing that could be given. */
	fake_ebb_dev_set_limit(rig->dev, 0, 1, 1);
	assert_int_equal(drain(ebb), 0);
	assert_int_equal(fake_ebb_dev_held(rig->dev, 0), 2);
	assert_int_equal(ebb_rig_share(ebb, 0).cpus_demanded, 0);
	ebb_close(ebb);
}

static void errors_of_the_device_come_through(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *a = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct ebb *b = ebb_rig_open(rig, "b", EBB_OPEN_NO_MONITOR);
	struct ebb_cpu cpus[EBB_MAX_REQ_CPUS];

	fake_ebb_dev_set_limit(rig->dev, 0, 3, 0);
	assert_int_equal(ebb_cpu_add(a, 0, 0, 0, 0, cpus, NULL), -EINVAL);
	assert_int_equal(ebb_cpu_add(a, EBB_MAX_REQ_CPUS + 1, 0, 0, 0, cpus, NULL), -EINVAL);
	assert_int_equal(ebb_cpu_add(a, 1, 0, 1u << 9, 0, cpus, NULL), -EINVAL);
	assert_int_equal(ebb_cpu_add(a, 1, 0, 0, EBB_TIMEOUT_MAX_MS + 1, cpus, NULL), -EINVAL);
	assert_int_equal(ebb_cpu_add(a, 1, 2, 0, 0, cpus, NULL), -ENXIO);
	assert_int_equal(ebb_cpu_add(a, 1, EBB_NODE_ANY, EBB_ADD_ALLOW_HT, 0, cpus, NULL), 1);
	assert_int_equal(ebb_cpu_add(a, 1, 0, 0, 0, cpus + 1, NULL), -EDQUOT);
	assert_int_equal(ebb_cpu_remove(a, 63, 0, NULL), -ENOENT);
	assert_int_equal(ebb_cpu_remove(a, 0, 0, NULL), -EPERM);
	assert_int_equal(ebb_cpu_remove(b, cpus[0].cpu, 0, NULL), -EACCES);
	/* Closing gives it back. */
	assert_int_equal(fake_ebb_dev_held(rig->dev, 0), 3);
	ebb_close(a);
	while (fake_ebb_dev_num_opens(rig->dev) > 1)
		;
	assert_int_equal(fake_ebb_dev_held(rig->dev, 0), 2);
	ebb_close(b);
}

static void lending_and_parking(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *a = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct ebb *b = ebb_rig_open(rig, "b", EBB_OPEN_NO_MONITOR);
	struct ebb_cpu cpus[EBB_MAX_REQ_CPUS], again[EBB_MAX_REQ_CPUS];
	struct ebb_times times;
	struct ebb_info info;

	fake_ebb_dev_set_lend(rig->dev, 1);
	fake_ebb_dev_set_tier(rig->dev, 0, VIRTIO_EBB_TIER_LEND);
	fake_ebb_dev_set_limit(rig->dev, 0, 4, 0);
	assert_int_equal(ebb_info_get(a, &info), 0);
	assert_true(info.features & 1ull << VIRTIO_EBB_F_LEND);
	assert_int_equal(ebb_cpu_add(a, 2, 0, 0, 0, cpus, NULL), 2);
	fake_ebb_dev_set_limit(rig->dev, 0, 2, 1);
	assert_int_equal(drain(a), 0);
	assert_int_equal(ebb_rig_share(a, 0).tier, VIRTIO_EBB_TIER_LEND);
	assert_int_equal(ebb_rig_share(a, 1).tier, VIRTIO_EBB_TIER_ANY);
	assert_int_equal(ebb_rig_share(a, 0).cpus_demanded, 2);

	assert_int_equal(ebb_cpu_lend(a, cpus[0].cpu, 0, 0, &times), 0);
	assert_int_equal(times.host_ns, 5000);
	assert_int_equal(times.kernel_ns, 0);
	assert_true(is_readable(a));
	assert_int_equal(drain(a), 0);
	assert_int_equal(ebb_rig_share(a, 0).cpus_demanded, 1);
	assert_int_equal(ebb_rig_share(a, 0).cpus_owned, 1);
	assert_int_equal(ebb_cpu_lend(a, cpus[1].cpu, EBB_LEND_PARK, 0, &times), 0);
	assert_int_equal(times.kernel_ns, 6000);
	assert_int_equal(drain(a), 0);
	assert_int_equal(ebb_rig_share(a, 0).cpus_demanded, 0);
	assert_int_equal(ebb_rig_share(a, 0).cpus_owned, 0);
	assert_int_equal(fake_ebb_dev_held(rig->dev, 0), 2);
	assert_int_equal(ebb_info_get(a, &info), 0);
	assert_int_equal(info.num_hotplug_cpus, 0);
	assert_int_equal(ebb_cpu_list(a, again, EBB_MAX_REQ_CPUS), 6);
	assert_int_equal(again[4].flags, EBB_CPU_LENT);
	assert_int_equal(again[5].flags, EBB_CPU_LENT | EBB_CPU_PARKED);

	/* Whoever asks next has them, without anything being plugged. */
	fake_ebb_dev_set_limit(rig->dev, 0, 4, 0);
	assert_int_equal(ebb_cpu_add(b, 2, 0, 0, 0, again, NULL), 2);
	assert_int_equal(again[0].cpu, cpus[0].cpu);
	assert_int_equal(again[1].cpu, cpus[1].cpu);
	assert_int_equal(ebb_cpu_lend(a, cpus[0].cpu, 0, 0, NULL), -EACCES);
	assert_int_equal(fake_ebb_dev_num_lent(rig->dev), 2);
	/* Closing lends. */
	ebb_close(b);
	while (fake_ebb_dev_num_opens(rig->dev) > 1)
		;
	assert_int_equal(fake_ebb_dev_num_lent(rig->dev), 4);
	assert_int_equal(ebb_cpu_list(a, again, EBB_MAX_REQ_CPUS), 6);
	ebb_close(a);
}

static void errors_of_lending(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct ebb_cpu cpu;

	fake_ebb_dev_set_limit(rig->dev, 0, 3, 0);
	assert_int_equal(ebb_cpu_add(ebb, 1, 0, 0, 0, &cpu, NULL), 1);
	/* The device does not lend: nothing has changed. */
	assert_int_equal(ebb_cpu_lend(ebb, cpu.cpu, 0, 0, NULL), -EOPNOTSUPP);
	assert_int_equal(fake_ebb_dev_held(rig->dev, 0), 3);
	fake_ebb_dev_set_lend(rig->dev, 1);
	assert_int_equal(ebb_cpu_lend(ebb, cpu.cpu, 1u << 7, 0, NULL), -EINVAL);
	assert_int_equal(ebb_cpu_lend(ebb, cpu.cpu, 0, EBB_TIMEOUT_MAX_MS + 1, NULL), -EINVAL);
	assert_int_equal(ebb_cpu_lend(ebb, 63, 0, 0, NULL), -ENOENT);
	assert_int_equal(ebb_cpu_lend(ebb, 0, 0, 0, NULL), -EPERM);
	assert_int_equal(ebb_cpu_lend(ebb, cpu.cpu, EBB_LEND_PARK, 0, NULL), 0);
	assert_int_equal(ebb_cpu_lend(ebb, cpu.cpu, 0, 0, NULL), -EBUSY);
	/* One that is lent may be removed by anybody. */
	assert_int_equal(ebb_cpu_remove(ebb, cpu.cpu, 0, NULL), 0);
	assert_int_equal(ebb_cpu_remove(ebb, cpu.cpu, 0, NULL), -ENOENT);
	fake_ebb_dev_unplug(rig->dev);
	assert_int_equal(ebb_cpu_lend(ebb, cpu.cpu, 0, 0, NULL), -ENODEV);
	ebb_close(ebb);
}

static void info_and_list(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct ebb_cpu cpus[8] = { { .cpu = 77 } };
	struct ebb_info info;

	fake_ebb_dev_set_limit(rig->dev, 1, 4, 0);
	assert_int_equal(ebb_cpu_add(ebb, 2, 1, 0, 0, cpus, NULL), 2);
	assert_int_equal(ebb_info_get(ebb, &info), 0);
	assert_int_equal(info.num_nodes, 2);
	assert_int_equal(info.max_cpus, 20);
	assert_int_equal(info.num_startup_cpus, 4);
	assert_int_equal(info.num_hotplug_cpus, 2);
	assert_int_equal(info.num_owned_cpus, 2);
	memset(cpus, 0xff, sizeof(cpus));
	assert_int_equal(ebb_cpu_list(ebb, cpus, 5), 6);
	assert_int_equal(cpus[0].flags, EBB_CPU_STARTUP);
	assert_int_equal(cpus[4].flags, EBB_CPU_OWNED);
	assert_int_equal(cpus[5].cpu, UINT32_MAX);
	assert_int_equal(ebb_cpu_list(ebb, NULL, 0), 6);
	ebb_close(ebb);
}

static void device_that_goes_away(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct ebb_cpu cpu;
	struct ebb *again;

	assert_int_equal(drain(ebb), 0);
	fake_ebb_dev_unplug(rig->dev);
	assert_true(is_readable(ebb));
	assert_int_equal(ebb_dispatch(ebb), -ENODEV);
	assert_int_equal(ebb_dispatch(ebb), -ENODEV);
	assert_int_equal(ebb_cpu_add(ebb, 1, 0, 0, 0, &cpu, NULL), -ENODEV);
	assert_int_equal(ebb_rig_try_open(rig, "b", 0, &again), -ENOENT);
	ebb_close(ebb);
	fake_ebb_dev_replug(rig->dev);
	again = ebb_rig_open(rig, "b", 0);
	assert_int_equal(drain(again), 0);
	ebb_close(again);
}

static void statistics_need_a_monitor(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", 0);
	struct ebb_stats stats = { .committed = 1 };

	assert_int_equal(ebb_has_monitor(ebb), 0);
	assert_int_equal(ebb_report(ebb, &stats), -ENOTCONN);
	assert_int_equal(ebb_stats_get(ebb, NULL, &stats), -ENOTCONN);
	ebb_close(ebb);
}

static void looking_for_a_monitor_does_not_spin(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", 0);
	unsigned int num = 0, tries = 1;
	uint64_t start_ns = ebb_now_ns(), ms;

	/* After 50, 100, 200, 400 ms and so on, each one dispatch or two. */
	do {
		struct pollfd p = { .fd = ebb_fd(ebb), .events = POLLIN };

		if (poll(&p, 1, 10) == 1) {
			assert_int_equal(ebb_dispatch(ebb), 0);
			num++;
		}
		ms = (ebb_now_ns() - start_ns) / 1000000;
		assert_true(ms < EBB_RIG_SOON_MS);
	} while (ms < 1000 || num < 3);
	for (uint64_t at_ms = EBB_LINK_RETRY_MIN_MS; at_ms <= ms; at_ms *= 2)
		tries++;
	assert_true(num <= 2 * tries);
	ebb_close(ebb);
}

/* ---- a monitor that is not one ---- */

struct impostor {
	int listen_fd;
	pthread_t thread;
	void (*answer)(int fd);
};

static void *impostor_thread(void *arg)
{
	struct impostor *impostor = arg;
	union ebb_msg hello;
	int fd = accept(impostor->listen_fd, NULL, NULL);

	if (fd < 0)
		return NULL;
	if (recv(fd, &hello, sizeof(hello), 0) > 0)
		impostor->answer(fd);
	/* Until the other side has had enough. */
	while (recv(fd, &hello, sizeof(hello), 0) > 0)
		;
	close(fd);
	return NULL;
}

static void impostor_start(struct impostor *impostor, struct ebb_rig *rig, void (*answer)(int fd))
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	strcpy(addr.sun_path, rig->mon_path);
	impostor->answer = answer;
	impostor->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(impostor->listen_fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(impostor->listen_fd, 1), 0);
	assert_int_equal(pthread_create(&impostor->thread, NULL, impostor_thread, impostor), 0);
}

static void impostor_end(struct impostor *impostor, struct ebb_rig *rig)
{
	unlink(rig->mon_path);
	pthread_join(impostor->thread, NULL);
	close(impostor->listen_fd);
}

static void answer_other_version(int fd)
{
	union ebb_msg msg;
	size_t bytes = ebb_msg_init(&msg, EBB_MSG_WELCOME, 0);

	msg.hdr.version = EBB_MSG_VERSION + 1;
	send(fd, &msg, bytes, MSG_NOSIGNAL);
}

static void answer_garbage(int fd)
{
	send(fd, "HTTP/1.1 400 Bad Request", 24, MSG_NOSIGNAL);
}

static void answer_full(int fd)
{
	union ebb_msg msg;
	size_t bytes = ebb_msg_init(&msg, EBB_MSG_WELCOME, 0);

	msg.welcome.error = EUSERS;
	send(fd, &msg, bytes, MSG_NOSIGNAL);
}

static void answer_shares_at_once(int fd)
{
	union ebb_msg msg;
	size_t bytes = ebb_msg_init(&msg, EBB_MSG_SHARES, 0);

	send(fd, &msg, bytes, MSG_NOSIGNAL);
}

static void answer_twice(int fd)
{
	union ebb_msg msg;
	size_t bytes = ebb_msg_init(&msg, EBB_MSG_WELCOME, 0);

	send(fd, &msg, bytes, MSG_NOSIGNAL);
	/* Not before the application dispatches, or it would not open at all. */
	recv(fd, &msg, sizeof(msg), 0);
	bytes = ebb_msg_init(&msg, EBB_MSG_WELCOME, 0);
	send(fd, &msg, bytes, MSG_NOSIGNAL);
}

static void answer_unknown_tier(int fd)
{
	union ebb_msg msg;
	size_t bytes = ebb_msg_init(&msg, EBB_MSG_WELCOME, 0);

	send(fd, &msg, bytes, MSG_NOSIGNAL);
	recv(fd, &msg, sizeof(msg), 0);
	bytes = ebb_msg_init(&msg, EBB_MSG_SHARES, 0);
	msg.shares.seq = 1;
	msg.shares.num_nodes = 1;
	msg.shares.nodes[0].offered = 7;
	msg.shares.nodes[0].tier = VIRTIO_EBB_TIER_MAX;
	send(fd, &msg, bytes, MSG_NOSIGNAL);
}

static void answer_nothing(int fd)
{
	(void)fd;
}

static void monitors_that_are_not_understood_are_refused(void **state)
{
	static const struct {
		void (*answer)(int fd);
		int error;
	} cases[] = {
		{ answer_other_version, -EPROTO },
		{ answer_garbage, -EPROTO },
		{ answer_shares_at_once, -EPROTO },
		{ answer_full, -EUSERS },
	};
	struct ebb_rig *rig = *state;

	ebb_rig_time_slow(EBB_RIG_SLOW);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct impostor impostor;
		struct ebb *ebb;

		impostor_start(&impostor, rig, cases[i].answer);
		assert_int_equal(ebb_rig_try_open(rig, "a", 0, &ebb), cases[i].error);
		impostor_end(&impostor, rig);
	}
}

static void monitor_that_says_nothing_is_given_up(void **state)
{
	struct ebb_rig *rig = *state;
	struct impostor impostor;
	struct ebb *ebb;

	impostor_start(&impostor, rig, answer_nothing);
	ebb = ebb_rig_open(rig, "a", 0);
	assert_int_equal(ebb_has_monitor(ebb), 0);
	assert_int_equal(drain(ebb), 0);
	ebb_close(ebb);
	impostor_end(&impostor, rig);
}

static void monitors_that_break_the_rules_later_are_left(void **state)
{
	static void (*const answers[])(int fd) = { answer_twice, answer_unknown_tier };
	struct ebb_rig *rig = *state;

	ebb_rig_time_slow(EBB_RIG_SLOW);
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct impostor impostor;
		struct ebb *ebb;

		impostor_start(&impostor, rig, answers[i]);
		ebb = ebb_rig_open(rig, "a", 0);
		while (ebb_has_monitor(ebb))
			assert_int_equal(ebb_dispatch(ebb), 0);
		/* Everything else goes on. */
		fake_ebb_dev_set_limit(rig->dev, 0, 5, 0);
		assert_int_equal(drain(ebb), 0);
		assert_int_equal(ebb_rig_share(ebb, 0).cpus_offered, 3);
		ebb_close(ebb);
		impostor_end(&impostor, rig);
	}
}

#define RIG_TEST(fn) cmocka_unit_test_setup_teardown(fn, ebb_rig_setup, ebb_rig_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(open_refuses_bad_options),
		RIG_TEST(open_takes_the_longest_name_and_none),
		RIG_TEST(open_says_what_is_wrong_with_the_device),
		RIG_TEST(open_refuses_a_monitor_path_that_is_too_long),
		RIG_TEST(nothing_is_known_before_the_host_speaks),
		RIG_TEST(offers_and_demands_of_the_vm),
		RIG_TEST(callback_comes_only_with_changes),
		RIG_TEST(callback_may_add_and_remove),
		RIG_TEST(errors_of_the_device_come_through),
		RIG_TEST(lending_and_parking),
		RIG_TEST(errors_of_lending),
		RIG_TEST(info_and_list),
		RIG_TEST(device_that_goes_away),
		RIG_TEST(statistics_need_a_monitor),
		RIG_TEST(looking_for_a_monitor_does_not_spin),
		RIG_TEST(monitors_that_are_not_understood_are_refused),
		RIG_TEST(monitor_that_says_nothing_is_given_up),
		RIG_TEST(monitors_that_break_the_rules_later_are_left),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests_name("ebb_handle", tests, NULL, NULL);
}
