// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The simulated device: the thread that keeps the VM, see fake_ebb_dev.h.  The
 * ioctls are in fake_ebb_vm.c, the side of those who open it in fake_ebb_open.c.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake_ebb_vm.h"

#define MUST(cond) \
	do { \
		if (!(cond)) { \
			perror("fake_ebb_dev: " #cond); \
			abort(); \
		} \
	} while (0)

struct fake_ebb_dev {
	char path[108];
	int listen_fd;
	int stop_fd;
	pthread_t thread;
	struct fake_ebb_vm vm;
};

static int fds_send(int fd, const void *data, size_t bytes, const int *fds, size_t num_fds)
{
	char control[CMSG_SPACE(FAKE_EBB_LEASE_FDS * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = bytes };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(num_fds * sizeof(int)),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(num_fds * sizeof(int));
	memcpy(CMSG_DATA(c), fds, num_fds * sizeof(int));
	return sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)bytes ? 0 : -EPIPE;
}

/* Hands the opener its end of the socket that stands for poll(). */
static int notify_send(int fd, int notify_fd)
{
	struct fake_ebb_hello hello = { .error = 0 };

	return fds_send(fd, &hello, sizeof(hello), &notify_fd, 1);
}

static void open_refuse(int fd, int error)
{
	struct fake_ebb_hello hello = { .error = error };

	send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
	close(fd);
}

static void open_accept(struct fake_ebb_dev *dev)
{
	struct fake_ebb_vm *vm = &dev->vm;
	struct fake_ebb_open *slot = NULL;
	int fd = accept4(dev->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	int notify[2];

	if (fd < 0)
		return;
	for (size_t i = 0; i < FAKE_EBB_MAX_OPENS && !slot; i++)
		if (vm->opens[i].fd < 0)
			slot = &vm->opens[i];
	if (vm->is_unplugged || !slot) {
		open_refuse(fd, slot ? ENOENT : EMFILE);
		return;
	}
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, notify) == 0);
	slot->fd = fd;
	slot->notify_fd = notify[0];
	/* Limits have never been read on this open: readable. */
	fake_ebb_open_notify(slot);
	if (notify_send(fd, notify[1]) < 0)
		fake_ebb_vm_close(vm, slot);
	close(notify[1]);
}

static void mem_add_serve(struct fake_ebb_vm *vm, struct fake_ebb_open *open,
			  struct fake_ebb_call *call)
{
	int fds[FAKE_EBB_LEASE_FDS];
	int r;

	/* Hung up: the open is of a device that is gone. */
	call->result = open->notify_fd < 0 ? -ENODEV :
		       fake_ebb_mem_add_do(vm, &call->arg.mem_add, fds);
	if (call->result == 0) {
		r = fds_send(open->fd, call, sizeof(*call), fds, FAKE_EBB_LEASE_FDS);
		for (int i = 0; i < FAKE_EBB_LEASE_FDS; i++)
			close(fds[i]);
	} else {
		r = send(open->fd, call, sizeof(*call), MSG_NOSIGNAL) == sizeof(*call) ? 0 : -EPIPE;
	}
	if (r < 0)
		fake_ebb_vm_close(vm, open);
}

static void open_serve(struct fake_ebb_vm *vm, struct fake_ebb_open *open)
{
	struct fake_ebb_call call;
	ssize_t n = recv(open->fd, &call, sizeof(call), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(call)) {
		fake_ebb_vm_close(vm, open);
		return;
	}
	if (call.cmd == EBB_IOC_MEM_ADD) {
		mem_add_serve(vm, open, &call);
		return;
	}
	call.result = fake_ebb_vm_ioctl(vm, open, call.cmd, &call.arg);
	if (send(open->fd, &call, sizeof(call), MSG_NOSIGNAL) != sizeof(call))
		fake_ebb_vm_close(vm, open);
}

static void lease_serve(struct fake_ebb_vm *vm, struct fake_ebb_lease *lease)
{
	struct fake_ebb_call call;
	ssize_t n = recv(lease->fd, &call, sizeof(call), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(call)) {
		fake_ebb_lease_close(vm, lease);
		return;
	}
	call.result = fake_ebb_lease_ioctl(vm, lease, call.cmd, &call.arg);
	if (send(lease->fd, &call, sizeof(call), MSG_NOSIGNAL) != sizeof(call))
		fake_ebb_lease_close(vm, lease);
}

static void *dev_thread(void *arg)
{
	struct fake_ebb_dev *dev = arg;

	for (;;) {
		struct pollfd p[2 + FAKE_EBB_MAX_OPENS + FAKE_EBB_MAX_LEASES] = {
			{ .fd = dev->stop_fd, .events = POLLIN },
			{ .fd = dev->listen_fd, .events = POLLIN },
		};
		struct pollfd *opens = &p[2], *leases = &p[2 + FAKE_EBB_MAX_OPENS];
		struct fake_ebb_vm *vm = &dev->vm;

		pthread_mutex_lock(&vm->lock);
		for (size_t i = 0; i < FAKE_EBB_MAX_OPENS; i++)
			opens[i] = (struct pollfd) { .fd = vm->opens[i].fd, .events = POLLIN };
		for (size_t i = 0; i < FAKE_EBB_MAX_LEASES; i++)
			leases[i] = (struct pollfd) { .fd = vm->leases[i].fd, .events = POLLIN };
		pthread_mutex_unlock(&vm->lock);
		poll(p, 2 + FAKE_EBB_MAX_OPENS + FAKE_EBB_MAX_LEASES, -1);
		if (p[0].revents)
			return NULL;
		pthread_mutex_lock(&vm->lock);
		/* Closed ones first: a new process must not see what a dead one held. */
		for (size_t i = 0; i < FAKE_EBB_MAX_LEASES; i++)
			if (leases[i].revents && vm->leases[i].fd == leases[i].fd)
				lease_serve(vm, &vm->leases[i]);
		for (size_t i = 0; i < FAKE_EBB_MAX_OPENS; i++)
			if (opens[i].revents && vm->opens[i].fd == opens[i].fd)
				open_serve(vm, &vm->opens[i]);
		if (p[1].revents)
			open_accept(dev);
		pthread_mutex_unlock(&vm->lock);
	}
}

struct fake_ebb_dev *fake_ebb_dev_create(const char *path, uint32_t num_nodes,
					 const uint32_t *startup, const uint32_t *max)
{
	struct fake_ebb_dev *dev = calloc(1, sizeof(*dev));
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	MUST(dev && strlen(path) < sizeof(addr.sun_path));
	strcpy(dev->path, path);
	strcpy(addr.sun_path, path);
	fake_ebb_vm_init(&dev->vm, num_nodes, startup, max);
	dev->stop_fd = eventfd(0, EFD_CLOEXEC);
	dev->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	MUST(dev->stop_fd >= 0 && dev->listen_fd >= 0);
	MUST(bind(dev->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	MUST(listen(dev->listen_fd, 64) == 0);
	MUST(pthread_create(&dev->thread, NULL, dev_thread, dev) == 0);
	return dev;
}

void fake_ebb_dev_destroy(struct fake_ebb_dev *dev)
{
	if (!dev)
		return;
	eventfd_write(dev->stop_fd, 1);
	pthread_join(dev->thread, NULL);
	fake_ebb_vm_finish(&dev->vm);
	close(dev->listen_fd);
	close(dev->stop_fd);
	unlink(dev->path);
	free(dev);
}

void fake_ebb_dev_set_limit(struct fake_ebb_dev *dev, uint32_t node, uint32_t limit,
			    uint64_t deadline_ns)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.nodes[node].limit = limit;
	dev->vm.nodes[node].deadline_ns = deadline_ns;
	dev->vm.has_limits = 1;
	fake_ebb_vm_publish(&dev->vm);
	pthread_mutex_unlock(&dev->vm.lock);
}

void fake_ebb_dev_delay_limits(struct fake_ebb_dev *dev, int is_delayed)
{
	pthread_mutex_lock(&dev->vm.lock);
	fake_ebb_vm_limits(&dev->vm, &dev->vm.delayed);
	dev->vm.is_delayed = is_delayed;
	fake_ebb_vm_publish(&dev->vm);
	pthread_mutex_unlock(&dev->vm.lock);
}

void fake_ebb_dev_set_lend(struct fake_ebb_dev *dev, int can_lend)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.can_lend = can_lend;
	pthread_mutex_unlock(&dev->vm.lock);
}

void fake_ebb_dev_set_tier(struct fake_ebb_dev *dev, uint32_t node, uint32_t tier)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.nodes[node].tier = tier;
	fake_ebb_vm_publish(&dev->vm);
	pthread_mutex_unlock(&dev->vm.lock);
}

uint32_t fake_ebb_dev_num_lent(struct fake_ebb_dev *dev)
{
	uint32_t num;

	pthread_mutex_lock(&dev->vm.lock);
	num = dev->vm.num_lent;
	pthread_mutex_unlock(&dev->vm.lock);
	return num;
}

int fake_ebb_dev_force(struct fake_ebb_dev *dev, uint32_t cpu)
{
	struct fake_ebb_cpu *c = &dev->vm.cpus[cpu];
	int r = -ENOENT;

	pthread_mutex_lock(&dev->vm.lock);
	if (cpu < FAKE_EBB_MAX_CPUS && c->is_present && !(c->flags & EBB_CPU_STARTUP)) {
		c->flags |= EBB_CPU_FORCED;
		fake_ebb_vm_publish(&dev->vm);
		r = 0;
	}
	pthread_mutex_unlock(&dev->vm.lock);
	return r;
}

void fake_ebb_dev_set_pool(struct fake_ebb_dev *dev, uint32_t node, uint64_t bytes)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.nodes[node].pool_bytes = bytes;
	fake_ebb_vm_publish(&dev->vm);
	pthread_mutex_unlock(&dev->vm.lock);
}

void fake_ebb_dev_set_mem_limit(struct fake_ebb_dev *dev, uint32_t node, uint64_t bytes,
				uint64_t deadline_ns)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.nodes[node].mem_limit_bytes = bytes;
	dev->vm.nodes[node].mem_deadline_ns = deadline_ns;
	dev->vm.has_limits = 1;
	fake_ebb_vm_publish(&dev->vm);
	pthread_mutex_unlock(&dev->vm.lock);
}

void fake_ebb_dev_set_draining(struct fake_ebb_dev *dev, uint32_t node, uint64_t bytes)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.nodes[node].draining_bytes = bytes;
	fake_ebb_vm_publish(&dev->vm);
	pthread_mutex_unlock(&dev->vm.lock);
}

uint64_t fake_ebb_dev_revoke(struct fake_ebb_dev *dev, uint32_t node, uint64_t bytes)
{
	pthread_mutex_lock(&dev->vm.lock);
	bytes = fake_ebb_mem_revoke(&dev->vm, node, bytes);
	pthread_mutex_unlock(&dev->vm.lock);
	return bytes;
}

int fake_ebb_dev_revoke_at(struct fake_ebb_dev *dev, const void *addr, uint64_t bytes)
{
	uint64_t inode, offset;
	int r = -ENOENT;

	pthread_mutex_lock(&dev->vm.lock);
	if (fake_ebb_map_find(addr, &inode, &offset) == 0)
		for (size_t i = 0; i < FAKE_EBB_MAX_LEASES && r < 0; i++)
			if (dev->vm.leases[i].fd >= 0 &&
			    fake_ebb_map_inode(dev->vm.leases[i].memory_fd) == inode)
				r = fake_ebb_lease_revoke(&dev->vm, &dev->vm.leases[i],
							  (uint32_t)(offset / FAKE_EBB_BLOCK_BYTES),
							  (uint32_t)(bytes / FAKE_EBB_BLOCK_BYTES));
	pthread_mutex_unlock(&dev->vm.lock);
	return r;
}

uint64_t fake_ebb_dev_leased_bytes(struct fake_ebb_dev *dev, uint32_t node)
{
	uint64_t bytes;

	pthread_mutex_lock(&dev->vm.lock);
	bytes = fake_ebb_mem_leased_bytes(&dev->vm, node);
	pthread_mutex_unlock(&dev->vm.lock);
	return bytes;
}

uint32_t fake_ebb_dev_num_leases(struct fake_ebb_dev *dev)
{
	uint32_t num = 0;

	pthread_mutex_lock(&dev->vm.lock);
	for (size_t i = 0; i < FAKE_EBB_MAX_LEASES; i++)
		num += dev->vm.leases[i].fd >= 0;
	pthread_mutex_unlock(&dev->vm.lock);
	return num;
}

void fake_ebb_dev_unplug(struct fake_ebb_dev *dev)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.is_unplugged = 1;
	fake_ebb_vm_hang_up(&dev->vm);
	pthread_mutex_unlock(&dev->vm.lock);
}

void fake_ebb_dev_replug(struct fake_ebb_dev *dev)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.is_unplugged = 0;
	pthread_mutex_unlock(&dev->vm.lock);
}

void fake_ebb_dev_set_abi(struct fake_ebb_dev *dev, uint32_t abi_version)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.abi_version = abi_version;
	pthread_mutex_unlock(&dev->vm.lock);
}

uint32_t fake_ebb_dev_held(struct fake_ebb_dev *dev, uint32_t node)
{
	uint32_t held;

	pthread_mutex_lock(&dev->vm.lock);
	held = fake_ebb_vm_held(&dev->vm, node);
	pthread_mutex_unlock(&dev->vm.lock);
	return held;
}

uint32_t fake_ebb_dev_num_opens(struct fake_ebb_dev *dev)
{
	uint32_t num = 0;

	pthread_mutex_lock(&dev->vm.lock);
	for (size_t i = 0; i < FAKE_EBB_MAX_OPENS; i++)
		num += dev->vm.opens[i].fd >= 0;
	pthread_mutex_unlock(&dev->vm.lock);
	return num;
}

void fake_ebb_dev_traffic(struct fake_ebb_dev *dev, uint32_t *ret_added, uint32_t *ret_removed)
{
	pthread_mutex_lock(&dev->vm.lock);
	*ret_added = dev->vm.num_added;
	*ret_removed = dev->vm.num_removed;
	pthread_mutex_unlock(&dev->vm.lock);
}

uint32_t fake_ebb_dev_telemetry(struct fake_ebb_dev *dev, struct virtio_ebb_telemetry *ret)
{
	uint32_t num;

	pthread_mutex_lock(&dev->vm.lock);
	*ret = dev->vm.telemetry;
	num = dev->vm.num_telemetry;
	pthread_mutex_unlock(&dev->vm.lock);
	return num;
}

void fake_ebb_dev_promise(struct fake_ebb_dev *dev, uint32_t mib)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.mem_promise_mib = mib;
	dev->vm.has_limits = 1;
	fake_ebb_vm_publish(&dev->vm);
	pthread_mutex_unlock(&dev->vm.lock);
}

void fake_ebb_dev_ask_vom(struct fake_ebb_dev *dev, uint32_t seq)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.vom_seq = seq;
	dev->vm.has_limits = 1;
	fake_ebb_vm_publish(&dev->vm);
	pthread_mutex_unlock(&dev->vm.lock);
}

void fake_ebb_dev_set_cutoff(struct fake_ebb_dev *dev, uint32_t node, uint64_t cutoff)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.nodes[node].mem_cutoff = cutoff;
	dev->vm.has_limits = 1;
	fake_ebb_vm_publish(&dev->vm);
	pthread_mutex_unlock(&dev->vm.lock);
}

void fake_ebb_dev_set_vom_error(struct fake_ebb_dev *dev, int error)
{
	pthread_mutex_lock(&dev->vm.lock);
	dev->vm.vom_error = error;
	pthread_mutex_unlock(&dev->vm.lock);
}

uint32_t fake_ebb_dev_vom(struct fake_ebb_dev *dev, struct ebb_vom *ret)
{
	uint32_t num;

	pthread_mutex_lock(&dev->vm.lock);
	*ret = dev->vm.vom;
	num = dev->vm.num_vom;
	pthread_mutex_unlock(&dev->vm.lock);
	return num;
}
