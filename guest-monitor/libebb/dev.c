// SPDX-License-Identifier: BSD-3-Clause
/*
 * The device proper: open(), poll() and ioctl() on /dev/ebb.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "dev.h"

static int kernel_dev_open(const char *path, void **ret_dev)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_dev = (void *)(intptr_t)fd;
	return 0;
}

static int kernel_dev_fd(void *dev)
{
	return (int)(intptr_t)dev;
}

static void kernel_dev_close(void *dev)
{
	close(kernel_dev_fd(dev));
}

static int kernel_dev_ioctl(void *dev, unsigned long cmd, void *arg)
{
	return ioctl(kernel_dev_fd(dev), cmd, arg) < 0 ? -errno : 0;
}

static int kernel_lease_ioctl(void *dev, int lease_fd, unsigned long cmd, void *arg)
{
	(void)dev;
	return ioctl(lease_fd, cmd, arg) < 0 ? -errno : 0;
}

static int kernel_lease_poll_fd(void *dev, int lease_fd)
{
	(void)dev;
	return lease_fd;
}

static void kernel_lease_close(void *dev, int lease_fd)
{
	(void)dev;
	close(lease_fd);
}

const struct ebb_dev_ops ebb_dev_kernel_ops = {
	.open = kernel_dev_open,
	.close = kernel_dev_close,
	.fd = kernel_dev_fd,
	.ioctl = kernel_dev_ioctl,
	.lease_ioctl = kernel_lease_ioctl,
	.lease_poll_fd = kernel_lease_poll_fd,
	.lease_close = kernel_lease_close,
	.lease_events = EPOLLPRI,
};

int ebb_dev_open(const struct ebb_dev_ops *ops, const char *path, void **ret_dev)
{
	struct ebb_info info = { .size = sizeof(info) };
	void *dev;
	int r;

	r = ops->open(path, &dev);
	if (r < 0)
		return r;
	r = ops->ioctl(dev, EBB_IOC_INFO, &info);
	/* A driver that does not know INFO, or not in this size, is none or too old. */
	if (r == -EINVAL || r == -ENOTTY)
		r = -EPROTO;
	if (r == 0 && info.abi_version < EBB_ABI_VERSION)
		r = -EPROTO;
	if (r < 0) {
		ops->close(dev);
		return r;
	}
	*ret_dev = dev;
	return 0;
}
