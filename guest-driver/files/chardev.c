// SPDX-License-Identifier: GPL-2.0-only
/* /dev/ebb; what it does for programs is told in ebb_ioctl.h. */
#include "files/chardev.h"

#include <linux/bits.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "files/args.h"
#include "files/lease.h"
#include "objects/pool.h"

struct ebb_file {
	struct ebb_chardev *dev;
	u64 owner;			/* number of this open */
	struct ebb_limits_seen seen;	/* under the limits' lock */
};

static int do_info(struct ebb_file *file, void *p)
{
	const struct ebb_queues *queues = file->dev->queues;
	const struct ebb_wire_config *cfg = queues->cfg;
	struct ebb_info *arg = p;

	arg->abi_version = EBB_ABI_VERSION;
	arg->proto = cfg->proto;
	arg->num_nodes = cfg->num_nodes;
	arg->max_cpus = cfg->max_cpus;
	arg->num_startup_cpus = cfg->num_startup_cpus;
	/* Bits from 24 on belong to the transport. */
	arg->features = queues->vdev->features & GENMASK_ULL(23, 0);
	ebb_vcpus_info(file->dev->vcpus, file->owner, arg);
	return 0;
}

/*
 * The driver counts what it holds of a pool on a node: its count is newer than what the
 * host has said.  A pool that this driver does not have can not be used.
 */
static void fill_mem_limits(struct ebb_limits *arg)
{
	u32 i;

	for (i = 0; i < arg->num_nodes; i++) {
		struct ebb_node_limit *node = &arg->nodes[i];
		struct ebb_pool *pool = ebb_pool_get_of_node(i);

		if (pool) {
			node->mem_held_bytes = (u64)ebb_region_num_plugged(&pool->region) *
				pool->block_bytes;
			ebb_pool_put(pool);
		} else {
			node->mem_limit_bytes = 0;
			node->mem_cutoff = 0;
		}
		if (node->mem_held_bytes <= node->mem_limit_bytes)
			node->mem_deadline_ns = 0;
	}
}

static int do_limits(struct ebb_file *file, void *p)
{
	struct ebb_limits *arg = p;

	ebb_limits_read(file->dev->limits, file->dev->queues->cfg, arg, &file->seen);
	fill_mem_limits(arg);
	return 0;
}

static int do_telemetry(struct ebb_file *file, void *p)
{
	struct ebb_telemetry *arg = p;

	return ebb_wire_check_telemetry(&arg->report, file->dev->queues->cfg) ?:
		ebb_telemetry_send(file->dev->queues, &arg->report);
}

static int do_vom(struct ebb_file *file, void *p)
{
	struct ebb_queues *queues = file->dev->queues;
	const struct ebb_wire_config *cfg = queues->cfg;
	struct virtio_ebb_vom *vom;
	struct ebb_vom *arg = p;
	u32 len;
	int rc;

	if (!cfg->has_vom)
		return -EOPNOTSUPP;
	vom = kmalloc(EBB_WIRE_MAX_VOM_BYTES, GFP_KERNEL);
	if (!vom)
		return -ENOMEM;
	rc = ebb_wire_make_vom(arg, cfg->linux_node, cfg->num_nodes, vom, &len) ?:
		ebb_vom_send(queues, vom, len);
	if (rc)
		kfree(vom);
	return rc;
}

static int do_cpu_add(struct ebb_file *file, void *p)
{
	struct ebb_cpu_add *arg = p;

	if (!arg->count || arg->count > EBB_MAX_REQ_CPUS ||
	    arg->timeout_ms > EBB_TIMEOUT_MAX_MS)
		return -EINVAL;
	return ebb_vcpu_add(file->dev->vcpus, file->owner, arg);
}

static int do_cpu_remove(struct ebb_file *file, void *p)
{
	struct ebb_cpu_remove *arg = p;

	if (arg->timeout_ms > EBB_TIMEOUT_MAX_MS)
		return -EINVAL;
	return ebb_vcpu_remove(file->dev->vcpus, file->owner, arg);
}

static int do_cpu_lend(struct ebb_file *file, void *p)
{
	struct ebb_cpu_lend *arg = p;

	if (arg->timeout_ms > EBB_TIMEOUT_MAX_MS)
		return -EINVAL;
	return ebb_vcpu_lend(file->dev->vcpus, file->owner, arg);
}

static int do_cpu_list(struct ebb_file *file, void *p)
{
	struct ebb_cpu_list *arg = p;

	if (arg->reserved)
		return -EINVAL;
	ebb_vcpus_list(file->dev->vcpus, file->owner, arg);
	return 0;
}

static int do_mem_info(struct ebb_file *file, void *p)
{
	const struct ebb_wire_config *cfg = file->dev->queues->cfg;
	struct ebb_mem_info *arg = p;
	u32 pxm;

	if (arg->reserved)
		return -EINVAL;
	memset(arg->pools, 0, sizeof(arg->pools));
	arg->num_pools = 0;
	for (pxm = 0; pxm < cfg->num_nodes; pxm++) {
		struct ebb_pool *pool = ebb_pool_get_of_node(pxm);
		const u32 *num;

		if (!pool)
			continue;
		num = pool->region.num;
		arg->pools[arg->num_pools++] = (struct ebb_pool_info) {
			.node = cfg->linux_node[pxm],
			.block_bytes = pool->block_bytes,
			.size_bytes = pool->size_bytes,
			.held_bytes = (u64)ebb_region_num_plugged(&pool->region) *
				pool->block_bytes,
			.leased_bytes = (u64)num[EBB_BLOCK_GRANTED] * pool->block_bytes,
			.draining_bytes = (u64)num[EBB_BLOCK_DRAINING] * pool->block_bytes,
		};
		ebb_pool_put(pool);
	}
	return 0;
}

static const struct ebb_abi mem_add_abi = { EBB_IOC_MEM_ADD, EBB_MEM_ADD_SIZE_VER0 };

/* The file appears only when the program has been told its number. */
static int mem_add(struct ebb_file *file, unsigned int cmd, void __user *user)
{
	struct ebb_mem_add *arg = ebb_args_get(&mem_add_abi, cmd, 0, user);
	struct file *filp;
	int fd, rc;

	if (IS_ERR(arg))
		return PTR_ERR(arg);
	rc = arg->bytes ? get_unused_fd_flags(O_CLOEXEC) : -EINVAL;
	if (rc < 0)
		goto out;
	fd = rc;
	filp = ebb_lease_create(file->dev->queues->cfg, arg);
	rc = PTR_ERR_OR_ZERO(filp);
	if (!rc) {
		arg->lease_fd = fd;
		rc = ebb_args_put(&mem_add_abi, cmd, arg, user);
		if (rc)
			fput(filp);
	}
	if (rc)
		put_unused_fd(fd);
	else
		fd_install(fd, filp);
out:
	kfree(arg);
	return rc;
}

static const struct ebb_ioctl {
	struct ebb_abi abi;
	u32 known_flags;
	int (*run)(struct ebb_file *file, void *arg);
} ebb_ioctls[] = {
	{ { EBB_IOC_INFO, EBB_INFO_SIZE_VER0 }, 0, do_info },
	{ { EBB_IOC_LIMITS, EBB_LIMITS_SIZE_VER0 }, 0, do_limits },
	{ { EBB_IOC_TELEMETRY, EBB_TELEMETRY_SIZE_VER0 }, 0, do_telemetry },
	{ { EBB_IOC_VOM, EBB_VOM_SIZE_VER0 }, 0, do_vom },
	{ { EBB_IOC_CPU_ADD, EBB_CPU_ADD_SIZE_VER0 }, EBB_ADD_ALLOW_HT, do_cpu_add },
	{ { EBB_IOC_CPU_REMOVE, EBB_CPU_REMOVE_SIZE_VER0 }, 0, do_cpu_remove },
	{ { EBB_IOC_CPU_LEND, EBB_CPU_LEND_SIZE_VER0 }, EBB_LEND_PARK, do_cpu_lend },
	{ { EBB_IOC_CPU_LIST, EBB_CPU_LIST_SIZE_VER0 }, 0, do_cpu_list },
	{ { EBB_IOC_MEM_INFO, EBB_MEM_INFO_SIZE_VER0 }, 0, do_mem_info },
};

static const struct ebb_ioctl *find_ioctl(unsigned int cmd)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ebb_ioctls); i++)
		if (ebb_abi_is(&ebb_ioctls[i].abi, cmd))
			return &ebb_ioctls[i];
	return NULL;
}

static int run_ioctl(struct ebb_file *file, const struct ebb_ioctl *ioctl, unsigned int cmd,
		     void __user *user)
{
	void *arg = ebb_args_get(&ioctl->abi, cmd, ioctl->known_flags, user);
	int rc;

	if (IS_ERR(arg))
		return PTR_ERR(arg);
	rc = ioctl->run(file, arg);
	if (!rc && _IOC_DIR(cmd) & _IOC_READ) {
		rc = ebb_args_put(&ioctl->abi, cmd, arg, user);
		if (rc && ioctl->run == do_cpu_add)
			ebb_vcpu_undo_add(file->dev->vcpus, file->owner, arg);
	}
	kfree(arg);
	return rc;
}

static long ebb_ioctl(struct file *filp, unsigned int cmd, unsigned long uarg)
{
	struct ebb_file *file = filp->private_data;
	const struct ebb_ioctl *ioctl = find_ioctl(cmd);
	void __user *user = (void __user *)uarg;
	bool is_mem_add = ebb_abi_is(&mem_add_abi, cmd);

	if (!ioctl && !is_mem_add)
		return -ENOTTY;
	if (ebb_vcpus_is_gone(file->dev->vcpus))
		return -ENODEV;
	return is_mem_add ? mem_add(file, cmd, user) : run_ioctl(file, ioctl, cmd, user);
}

static __poll_t ebb_poll(struct file *filp, poll_table *wait)
{
	struct ebb_file *file = filp->private_data;
	struct ebb_chardev *dev = file->dev;

	poll_wait(filp, &dev->limits->wait, wait);
	if (ebb_vcpus_is_gone(dev->vcpus))
		return EPOLLERR | EPOLLHUP;
	return ebb_limits_is_news(dev->limits, &file->seen) ? EPOLLIN | EPOLLRDNORM : 0;
}

static int ebb_open(struct inode *inode, struct file *filp)
{
	/* misc_open() holds the lock that misc_deregister() takes: the device is there. */
	struct ebb_chardev *dev = container_of(filp->private_data, struct ebb_chardev, misc);
	struct ebb_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	file->dev = dev;
	file->owner = atomic64_inc_return(&dev->last_owner);
	ebb_ref_get(dev->queues->ref);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int ebb_release(struct inode *inode, struct file *filp)
{
	struct ebb_file *file = filp->private_data;

	ebb_vcpus_let_go(file->dev->vcpus, file->owner);
	ebb_ref_put(file->dev->queues->ref);
	kfree(file);
	return 0;
}

static const struct file_operations ebb_fops = {
	.owner = THIS_MODULE,
	.open = ebb_open,
	.release = ebb_release,
	.unlocked_ioctl = ebb_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = ebb_poll,
};

int ebb_chardev_register(struct ebb_chardev *chardev)
{
	struct miscdevice *misc = &chardev->misc;

	misc->minor = MISC_DYNAMIC_MINOR;
	misc->name = "ebb";
	misc->fops = &ebb_fops;
	misc->mode = 0660;
	misc->parent = &chardev->queues->vdev->dev;
	return misc_register(misc);
}

void ebb_chardev_unregister(struct ebb_chardev *chardev)
{
	misc_deregister(&chardev->misc);
}
