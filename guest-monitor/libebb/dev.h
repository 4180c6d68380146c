/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How libebb and ebb-monitord reach the device.  Private to the two.
 *
 * Everything above this table sees the device only through it, so that the
 * same code runs against a simulated device (tests/lib/fake_ebb_dev.c).
 */
#ifndef EBB_DEV_H
#define EBB_DEV_H

#include "ebb.h"

struct ebb_dev_ops {
	/* Opens one more owner.  0 or -errno. */
	int (*open)(const char *path, void **ret_dev);
	/* The last use of dev, without its leases; its CPUs go back to the host. */
	void (*close)(void *dev);
	/* Polls POLLIN when the limits changed, POLLERR or POLLHUP when the device is gone. */
	int (*fd)(void *dev);
	/* As ioctl(), but -errno on failure.  Any thread, also several at once. */
	int (*ioctl)(void *dev, unsigned long cmd, void *arg);

	/*
	 * Of a lease, by the file that EBB_IOC_MEM_ADD gave, which can be mapped.
	 * lease_poll_fd() polls lease_events (EPOLL*) when blocks were revoked.
	 */
	int (*lease_ioctl)(void *dev, int lease_fd, unsigned long cmd, void *arg);
	int (*lease_poll_fd)(void *dev, int lease_fd);
	void (*lease_close)(void *dev, int lease_fd);
	uint32_t lease_events;
};

extern const struct ebb_dev_ops ebb_dev_kernel_ops;

/*
 * Opens path and checks that the driver has EBB_ABI_VERSION or more: -EPROTO if not.
 */
int ebb_dev_open(const struct ebb_dev_ops *ops, const char *path, void **ret_dev);

/* ebb_open() on another kind of device. */
int ebb_open_dev(const struct ebb_options *options, const struct ebb_dev_ops *ops,
		 struct ebb **ret);

#endif /* EBB_DEV_H */
