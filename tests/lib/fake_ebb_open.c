// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The simulated device as seen by those who open it: struct ebb_dev_ops over a
 * socket.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake_ebb_vm.h"

struct opened {
	pthread_mutex_t lock;		/* one call at a time */
	int fd;
	int notify_fd;
};

static int hello_receive(int fd, int *ret_notify_fd)
{
	struct fake_ebb_hello hello;
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = &hello, .iov_len = sizeof(hello) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;

	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(hello))
		return -ENODEV;
	if (hello.error)
		return -hello.error;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return -ENODEV;
	memcpy(ret_notify_fd, CMSG_DATA(c), sizeof(int));
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

static int opened_ioctl(void *dev, unsigned long cmd, void *arg)
{
	size_t bytes = _IOC_SIZE(cmd);
	struct opened *opened = dev;
	struct fake_ebb_call call = { .cmd = cmd };
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
	    recv(opened->fd, &call, sizeof(call), 0) == sizeof(call))
		r = call.result;
	pthread_mutex_unlock(&opened->lock);
	if (r == 0)
		memcpy(arg, &call.arg, bytes);
	return r;
}

const struct ebb_dev_ops fake_ebb_dev_ops = {
	.open = opened_open,
	.close = opened_close,
	.fd = opened_fd,
	.ioctl = opened_ioctl,
};
