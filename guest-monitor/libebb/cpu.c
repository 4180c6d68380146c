// SPDX-License-Identifier: BSD-3-Clause
/*
 * CPUs and information: one ioctl each.
 */
#include <errno.h>
#include <string.h>

#include "handle.h"

int ebb_info_get(struct ebb *ebb, struct ebb_info *ret)
{
	struct ebb_info info = { .size = sizeof(info) };
	int r = ebb->ops->ioctl(ebb->dev, EBB_IOC_INFO, &info);

	if (r < 0)
		return r;
	*ret = info;
	return 0;
}

int ebb_cpu_add(struct ebb *ebb, unsigned int count, unsigned int node, unsigned int flags,
		unsigned int timeout_ms, struct ebb_cpu *ret_cpus, struct ebb_times *ret_times)
{
	struct ebb_cpu_add add = {
		.size = sizeof(add),
		.flags = flags,
		.count = count,
		.node = node,
		.timeout_ms = timeout_ms,
	};
	int r;

	/* The monitor would take one that does not move for one that does not care. */
	ebb_link_adding(&ebb->link, 1);
	r = ebb->ops->ioctl(ebb->dev, EBB_IOC_CPU_ADD, &add);
	ebb_link_adding(&ebb->link, 0);
	/* What the handle owns has changed, and the monitor is to hear that the wait is over. */
	ebb_wake(ebb->wake_fd);
	if (r < 0)
		return r;
	/* ret_cpus[] has room for count only. */
	if (add.granted == 0 || add.granted > count)
		return -EIO;
	memcpy(ret_cpus, add.cpus, add.granted * sizeof(add.cpus[0]));
	if (ret_times) {
		ret_times->host_ns = add.host_ns;
		ret_times->kernel_ns = add.online_ns;
	}
	return (int)add.granted;
}

int ebb_cpu_remove(struct ebb *ebb, unsigned int cpu, unsigned int timeout_ms,
		   struct ebb_times *ret_times)
{
	struct ebb_cpu_remove remove = {
		.size = sizeof(remove),
		.cpu = cpu,
		.timeout_ms = timeout_ms,
	};
	int r = ebb->ops->ioctl(ebb->dev, EBB_IOC_CPU_REMOVE, &remove);

	/* Also after an error: with EINPROGRESS or EINTR the CPU may be gone. */
	ebb_wake(ebb->wake_fd);
	if (r < 0)
		return r;
	if (ret_times) {
		ret_times->host_ns = remove.host_ns;
		ret_times->kernel_ns = remove.offline_ns;
	}
	return 0;
}

int ebb_cpu_lend(struct ebb *ebb, unsigned int cpu, unsigned int flags, unsigned int timeout_ms,
		 struct ebb_times *ret_times)
{
	struct ebb_cpu_lend lend = {
		.size = sizeof(lend),
		.flags = flags,
		.cpu = cpu,
		.timeout_ms = timeout_ms,
	};
	int r = ebb->ops->ioctl(ebb->dev, EBB_IOC_CPU_LEND, &lend);

	/* As after removing. */
	ebb_wake(ebb->wake_fd);
	/* A driver from before lending does not know the ioctl. */
	if (r == -ENOTTY)
		return -EOPNOTSUPP;
	if (r < 0)
		return r;
	if (ret_times) {
		ret_times->host_ns = lend.host_ns;
		ret_times->kernel_ns = lend.offline_ns;
	}
	return 0;
}

int ebb_cpu_list(struct ebb *ebb, struct ebb_cpu *ret_cpus, unsigned int max)
{
	uint32_t start = 0;
	uint32_t total;

	do {
		struct ebb_cpu_list list = { .size = sizeof(list), .start = start };
		int r = ebb->ops->ioctl(ebb->dev, EBB_IOC_CPU_LIST, &list);

		if (r < 0)
			return r;
		if (list.count > EBB_MAX_REQ_CPUS)
			return -EIO;
		for (uint32_t i = 0; i < list.count && start + i < max; i++)
			ret_cpus[start + i] = list.cpus[i];
		total = list.total;
		start += list.count;
		if (list.count == 0)
			break;
	} while (start < total && start < max);
	return (int)total;
}
