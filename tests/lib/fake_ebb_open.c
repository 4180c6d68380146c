// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The simulated device as seen by those who open it: struct ebb_dev_ops over a
 * socket.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake_ebb_vm.h"

struct lease {
	struct lease *next;
	pthread_mutex_t lock;		/* one call at a time */
	int memory_fd;			/* what stands for the lease */
	int fd;
	int notify_fd;
};

struct opened {
	pthread_mutex_t lock;		/* one call at a time, and for leases */
	int fd;
	int notify_fd;
	struct lease *leases;
};

/* Receives exactly that, with file descriptors if there are any; -ENODEV if it is not there. */
static int fds_receive(int fd, void *data, size_t bytes, int *ret_fds, size_t *num_fds)
{
	char control[CMSG_SPACE(FAKE_EBB_LEASE_FDS * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = data, .iov_len = bytes };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;

	*num_fds = 0;
	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != (ssize_t)bytes)
		return -ENODEV;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return 0;
	*num_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(ret_fds, CMSG_DATA(c), *num_fds * sizeof(int));
	return 0;
}

static int hello_receive(int fd, int *ret_notify_fd)
{
	int fds[FAKE_EBB_LEASE_FDS];
	struct fake_ebb_hello hello;
	size_t num_fds;

	if (fds_receive(fd, &hello, sizeof(hello), fds, &num_fds) < 0)
		return -ENODEV;
	if (hello.error)
		return -hello.error;
	if (num_fds != 1)
		return -ENODEV;
	*ret_notify_fd = fds[0];
	return 0;
}

static int opened_open(const char *path, void **ret_dev)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct opened *opened = calloc(1, sizeof(*opened));
	int r;

	if (!opened)
		return -ENOMEM;
	pthread_mutex_init(&opened->lock, NULL);
	strncpy(addr.sun_path, path, sizeof(addr.sun_path) - 1);
	opened->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	r = opened->fd < 0 ? -errno : 0;
	if (r == 0 && connect(opened->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		r = -errno;
	if (r == 0)
		r = hello_receive(opened->fd, &opened->notify_fd);
	if (r == 0) {
		*ret_dev = opened;
		return 0;
	}
	if (opened->fd >= 0)
		close(opened->fd);
	free(opened);
	return r;
}

static void opened_close(void *dev)
{
	struct opened *opened = dev;

	close(opened->fd);
	close(opened->notify_fd);
	pthread_mutex_destroy(&opened->lock);
	free(opened);
}

static int opened_fd(void *dev)
{
	return ((struct opened *)dev)->notify_fd;
}

static int lease_enter(struct opened *opened, struct fake_ebb_call *call,
		       const int fds[FAKE_EBB_LEASE_FDS])
{
	struct lease *lease = calloc(1, sizeof(*lease));

	if (!lease)
		return -ENOMEM;
	pthread_mutex_init(&lease->lock, NULL);
	lease->memory_fd = fds[0];
	lease->fd = fds[1];
	lease->notify_fd = fds[2];
	lease->next = opened->leases;
	opened->leases = lease;
	call->arg.mem_add.lease_fd = lease->memory_fd;
	return 0;
}

static int opened_ioctl(void *dev, unsigned long cmd, void *arg)
{
	size_t bytes = _IOC_SIZE(cmd), num_fds = 0;
	struct opened *opened = dev;
	struct fake_ebb_call call = { .cmd = cmd };
	int fds[FAKE_EBB_LEASE_FDS];
	char drain[64];
	int r = -ENODEV;

	if (bytes > sizeof(call.arg))
		return -ENOTTY;
	memcpy(&call.arg, arg, bytes);
	pthread_mutex_lock(&opened->lock);
	/* Before the call: a change that comes in between makes it readable again. */
	if (cmd == EBB_IOC_LIMITS)
		while (recv(opened->notify_fd, drain, sizeof(drain), MSG_DONTWAIT) > 0)
			;
	if (send(opened->fd, &call, sizeof(call), MSG_NOSIGNAL) == sizeof(call) &&
	    fds_receive(opened->fd, &call, sizeof(call), fds, &num_fds) == 0)
		r = call.result;
	if (r == 0 && num_fds == FAKE_EBB_LEASE_FDS)
		r = lease_enter(opened, &call, fds);
	pthread_mutex_unlock(&opened->lock);
	if (r == 0)
		memcpy(arg, &call.arg, bytes);
	return r;
}

/* Of several opens of a process each has its own leases. */
static struct lease *lease_find(struct opened *opened, int lease_fd)
{
	struct lease *lease;

	pthread_mutex_lock(&opened->lock);
	for (lease = opened->leases; lease && lease->memory_fd != lease_fd; lease = lease->next)
		;
	pthread_mutex_unlock(&opened->lock);
	return lease;
}

static int opened_lease_ioctl(void *dev, int lease_fd, unsigned long cmd, void *arg)
{
	struct lease *lease = lease_find(dev, lease_fd);
	struct fake_ebb_call call = { .cmd = cmd };
	size_t bytes = _IOC_SIZE(cmd);
	char drain[64];
	int r = -ENODEV;

	if (!lease)
		return -EBADF;
	memcpy(&call.arg, arg, bytes);
	pthread_mutex_lock(&lease->lock);
	if (cmd == EBB_IOC_LEASE_INFO)
		while (recv(lease->notify_fd, drain, sizeof(drain), MSG_DONTWAIT) > 0)
			;
	if (send(lease->fd, &call, sizeof(call), MSG_NOSIGNAL) == sizeof(call) &&
	    recv(lease->fd, &call, sizeof(call), 0) == sizeof(call))
		r = call.result;
	if (r == 0 && cmd == EBB_IOC_LEASE_RELEASE)
		fake_ebb_map_take(lease->memory_fd, call.arg.release.offset,
				  call.arg.release.bytes);
	pthread_mutex_unlock(&lease->lock);
	if (r == 0)
		memcpy(arg, &call.arg, bytes);
	return r;
}

static int opened_lease_poll_fd(void *dev, int lease_fd)
{
	struct lease *lease = lease_find(dev, lease_fd);

	return lease ? lease->notify_fd : -1;
}

static void opened_lease_close(void *dev, int lease_fd)
{
	struct opened *opened = dev;
	struct lease *lease = lease_find(opened, lease_fd);
	struct lease **p = &opened->leases;
	char ignored;

	if (!lease)
		return;
	pthread_mutex_lock(&opened->lock);
	while (*p != lease)
		p = &(*p)->next;
	*p = lease->next;
	pthread_mutex_unlock(&opened->lock);
	/* As close() of the true one, it has an effect when it returns. */
	shutdown(lease->fd, SHUT_WR);
	while (recv(lease->fd, &ignored, sizeof(ignored), 0) > 0)
		;
	close(lease->memory_fd);
	close(lease->fd);
	close(lease->notify_fd);
	pthread_mutex_destroy(&lease->lock);
	free(lease);
}

const struct ebb_dev_ops fake_ebb_dev_ops = {
	.open = opened_open,
	.close = opened_close,
	.fd = opened_fd,
	.ioctl = opened_ioctl,
	.lease_ioctl = opened_lease_ioctl,
	.lease_poll_fd = opened_lease_poll_fd,
	.lease_close = opened_lease_close,
	.lease_events = EPOLLIN,
};
