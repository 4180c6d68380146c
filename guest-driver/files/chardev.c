// SPDX-License-Identifier: GPL-2.0-only
/* /dev/ebb; what it does for programs is told in ebb_ioctl.h. */
#include "dev.h"
#include "objects/pool.h"

#include <linux/bits.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

struct ebb_file {
	struct ebb_dev *ebb;
	u64 owner;		/* number of this open */
	u32 limits_seq;		/* ebb_dev.limits_seq when this open read them last */
	bool has_read_limits;
};

static int check_size(u32 size, size_t want_bytes, u32 flags, u32 known_flags)
{
	return size == want_bytes && !(flags & ~known_flags) ? 0 : -EINVAL;
}

static int do_info(struct ebb_file *file, void *p)
{
	struct ebb_dev *ebb = file->ebb;
	struct ebb_info *arg = p;
	int rc = check_size(arg->size, sizeof(*arg), arg->flags, 0);

	if (rc)
		return rc;
	arg->abi_version = EBB_ABI_VERSION;
	arg->proto = ebb->cfg.proto;
	arg->num_nodes = ebb->cfg.num_nodes;
	arg->max_cpus = ebb->cfg.max_cpus;
	arg->num_startup_cpus = ebb->cfg.num_startup_cpus;
	/* Bits from 24 on belong to the transport. */
	arg->features = ebb->vdev->features & GENMASK_ULL(23, 0);
	spin_lock_irq(&ebb->lock);
	arg->status = ebb->is_agent_up ? EBB_INFO_AGENT_UP : 0;
	arg->num_hotplug_cpus = ebb_cpuset_num_hotplug(&ebb->cpuset);
	arg->num_owned_cpus = ebb_cpuset_num_owned(&ebb->cpuset, file->owner);
	spin_unlock_irq(&ebb->lock);
	return 0;
}

/*
 * What is held of a node's pool is counted here, which is newer than what the
 * host has said.  A pool that this driver does not have can not be used.
 */
static void fill_mem_limits(struct ebb_dev *ebb, struct ebb_limits *arg)
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
	struct ebb_dev *ebb = file->ebb;
	struct ebb_limits *arg = p;
	int rc = check_size(arg->size, sizeof(*arg), arg->flags, 0);
	u32 i;

	if (rc)
		return rc;
	memset(arg->nodes, 0, sizeof(arg->nodes));
	spin_lock_irq(&ebb->lock);
	arg->generation = ebb->limits.generation;
	arg->vom_seq = ebb->limits.vom_seq;
	arg->num_nodes = arg->generation ? ebb->cfg.num_nodes : 0;
	for (i = 0; i < arg->num_nodes; i++) {
		arg->nodes[i].node = ebb->linux_node[i];
		arg->nodes[i].tier = ebb->limits.nodes[i].tier;
		arg->nodes[i].cpus_held = ebb->limits.nodes[i].cpus_held;
		arg->nodes[i].cpus_limit = ebb->limits.nodes[i].cpus_limit;
		arg->nodes[i].deadline_ns = ebb->limits.deadline_ns[i];
		arg->nodes[i].mem_limit_bytes = ebb->limits.nodes[i].mem_limit_bytes;
		arg->nodes[i].mem_deadline_ns = ebb->limits.mem_deadline_ns[i];
		arg->nodes[i].mem_cutoff = ebb->limits.nodes[i].mem_cutoff;
	}
	file->limits_seq = ebb->limits_seq;
	file->has_read_limits = true;
	spin_unlock_irq(&ebb->lock);
	fill_mem_limits(ebb, arg);
	return 0;
}

static int do_telemetry(struct ebb_file *file, void *p)
{
	struct ebb_telemetry *arg = p;
	int rc = check_size(arg->size, sizeof(*arg), arg->flags, 0);

	return rc ?: ebb_wire_check_telemetry(&arg->report) ?:
		ebb_telemetry_send(file->ebb, &arg->report);
}

static int do_vom(struct ebb_file *file, void *p)
{
	struct ebb_dev *ebb = file->ebb;
	struct virtio_ebb_vom *vom;
	struct ebb_vom *arg = p;
	int rc = check_size(arg->size, sizeof(*arg), arg->flags, 0);
	u32 len;

	if (rc)
		return rc;
	if (!ebb->cfg.has_vom)
		return -EOPNOTSUPP;
	vom = kmalloc(EBB_WIRE_MAX_VOM_BYTES, GFP_KERNEL);
	if (!vom)
		return -ENOMEM;
	rc = ebb_wire_make_vom(arg, ebb->linux_node, ebb->cfg.num_nodes, vom, &len) ?:
		ebb_vom_send(ebb, vom, len);
	if (rc)
		kfree(vom);
	return rc;
}

static int do_cpu_add(struct ebb_file *file, void *p)
{
	struct ebb_cpu_add *arg = p;
	int rc = check_size(arg->size, sizeof(*arg), arg->flags, EBB_ADD_ALLOW_HT);

	if (rc || !arg->count || arg->count > EBB_MAX_REQ_CPUS ||
	    arg->timeout_ms > EBB_TIMEOUT_MAX_MS)
		return -EINVAL;
	return ebb_cpu_add(file->ebb, file->owner, arg);
}

static int do_cpu_remove(struct ebb_file *file, void *p)
{
	struct ebb_cpu_remove *arg = p;
	int rc = check_size(arg->size, sizeof(*arg), arg->flags, 0);

	if (rc || arg->timeout_ms > EBB_TIMEOUT_MAX_MS)
		return -EINVAL;
	return ebb_cpu_remove(file->ebb, file->owner, arg);
}

static int do_cpu_lend(struct ebb_file *file, void *p)
{
	struct ebb_cpu_lend *arg = p;
	int rc = check_size(arg->size, sizeof(*arg), arg->flags, EBB_LEND_PARK);

	if (rc || arg->timeout_ms > EBB_TIMEOUT_MAX_MS)
		return -EINVAL;
	return ebb_cpu_lend(file->ebb, file->owner, arg);
}

static u32 flags_of_entry(const struct ebb_cpu_entry *e, u64 owner)
{
	return (e->desc.flags & VIRTIO_EBB_CPU_F_STARTUP ? EBB_CPU_STARTUP : 0) |
	       (e->desc.flags & VIRTIO_EBB_CPU_F_HT ? EBB_CPU_HT : 0) |
	       (e->desc.flags & VIRTIO_EBB_CPU_F_FORCED ? EBB_CPU_FORCED : 0) |
	       (e->owner == owner ? EBB_CPU_OWNED : 0) |
	       (e->state == EBB_CPU_STATE_LEAVING ||
		e->state == EBB_CPU_STATE_LENDING ? EBB_CPU_LEAVING : 0) |
	       (e->state == EBB_CPU_STATE_LENT ? EBB_CPU_LENT : 0) |
	       (e->desc.flags & VIRTIO_EBB_CPU_F_PARKED ? EBB_CPU_PARKED : 0);
}

/* CPUs that Linux has no number for, because they are still to be plugged, do not show. */
static int do_cpu_list(struct ebb_file *file, void *p)
{
	struct ebb_dev *ebb = file->ebb;
	struct ebb_cpu_list *arg = p;
	int rc = check_size(arg->size, sizeof(*arg), arg->flags, 0);
	u32 i, index = 0, count = 0;

	if (rc || arg->reserved)
		return -EINVAL;
	memset(arg->cpus, 0, sizeof(arg->cpus));
	spin_lock_irq(&ebb->lock);
	for (i = 0; i < ebb->cpuset.count; i++) {
		const struct ebb_cpu_entry *e = &ebb->cpuset.entries[i];

		if (e->cpu == EBB_CPUSET_NO_CPU)
			continue;
		if (index++ < arg->start || count == EBB_MAX_REQ_CPUS)
			continue;
		arg->cpus[count++] = (struct ebb_cpu) {
			.cpu = e->cpu,
			.node = ebb->linux_node[e->desc.pxm],
			.flags = flags_of_entry(e, file->owner),
		};
	}
	spin_unlock_irq(&ebb->lock);
	arg->count = count;
	arg->total = index;
	return 0;
}

static int do_mem_info(struct ebb_file *file, void *p)
{
	struct ebb_dev *ebb = file->ebb;
	struct ebb_mem_info *arg = p;
	int rc = check_size(arg->size, sizeof(*arg), arg->flags, 0);
	u32 pxm;

	if (rc || arg->reserved)
		return -EINVAL;
	memset(arg->pools, 0, sizeof(arg->pools));
	arg->num_pools = 0;
	for (pxm = 0; pxm < ebb->cfg.num_nodes; pxm++) {
		struct ebb_pool *pool = ebb_pool_get_of_node(pxm);
		const u32 *num;

		if (!pool)
			continue;
		num = pool->region.num;
		arg->pools[arg->num_pools++] = (struct ebb_pool_info) {
			.node = ebb->linux_node[pxm],
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

/* The file appears only when the program has been told its number. */
static int mem_add(struct ebb_file *file, struct ebb_mem_add __user *user)
{
	struct ebb_mem_add arg;
	struct file *filp;
	int fd;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (check_size(arg.size, sizeof(arg), arg.flags, 0) || !arg.bytes)
		return -EINVAL;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	filp = ebb_lease_create(file->ebb, &arg);
	if (IS_ERR(filp)) {
		put_unused_fd(fd);
		return PTR_ERR(filp);
	}
	arg.lease_fd = fd;
	if (copy_to_user(user, &arg, sizeof(arg))) {
		put_unused_fd(fd);
		fput(filp);
		return -EFAULT;
	}
	fd_install(fd, filp);
	return 0;
}

static const struct ebb_ioctl {
	unsigned int cmd;
	int (*run)(struct ebb_file *file, void *arg);
} ebb_ioctls[] = {
	{ EBB_IOC_INFO, do_info },
	{ EBB_IOC_LIMITS, do_limits },
	{ EBB_IOC_TELEMETRY, do_telemetry },
	{ EBB_IOC_VOM, do_vom },
	{ EBB_IOC_CPU_ADD, do_cpu_add },
	{ EBB_IOC_CPU_REMOVE, do_cpu_remove },
	{ EBB_IOC_CPU_LEND, do_cpu_lend },
	{ EBB_IOC_CPU_LIST, do_cpu_list },
	{ EBB_IOC_MEM_INFO, do_mem_info },
};

static long ebb_ioctl(struct file *filp, unsigned int cmd, unsigned long uarg)
{
	struct ebb_file *file = filp->private_data;
	const struct ebb_ioctl *ioctl = NULL;
	void __user *user = (void __user *)uarg;
	unsigned int i;
	void *arg;
	int rc;

	if (cmd == EBB_IOC_MEM_ADD)
		return ebb_dev_is_gone(file->ebb) ? -ENODEV : mem_add(file, user);
	for (i = 0; i < ARRAY_SIZE(ebb_ioctls); i++)
		if (ebb_ioctls[i].cmd == cmd)
			ioctl = &ebb_ioctls[i];
	if (!ioctl)
		return -ENOTTY;
	if (ebb_dev_is_gone(file->ebb))
		return -ENODEV;

	arg = memdup_user(user, _IOC_SIZE(cmd));
	if (IS_ERR(arg))
		return PTR_ERR(arg);
	rc = ioctl->run(file, arg);
	if (!rc && _IOC_DIR(cmd) & _IOC_READ && copy_to_user(user, arg, _IOC_SIZE(cmd))) {
		rc = -EFAULT;
		if (cmd == EBB_IOC_CPU_ADD)
			ebb_cpu_undo_add(file->ebb, file->owner, arg);
	}
	kfree(arg);
	return rc;
}

static __poll_t ebb_poll(struct file *filp, poll_table *wait)
{
	struct ebb_file *file = filp->private_data;
	struct ebb_dev *ebb = file->ebb;
	__poll_t mask = 0;

	poll_wait(filp, &ebb->limits_wait, wait);
	if (ebb_dev_is_gone(ebb))
		return EPOLLERR | EPOLLHUP;
	spin_lock_irq(&ebb->lock);
	if (!file->has_read_limits || file->limits_seq != ebb->limits_seq)
		mask = EPOLLIN | EPOLLRDNORM;
	spin_unlock_irq(&ebb->lock);
	return mask;
}

static int ebb_open(struct inode *inode, struct file *filp)
{
	/* misc_open() holds the lock that misc_deregister() takes: ebb is there. */
	struct ebb_dev *ebb = container_of(filp->private_data, struct ebb_dev, misc);
	struct ebb_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	file->ebb = ebb;
	kref_get(&ebb->ref);
	spin_lock_irq(&ebb->lock);
	file->owner = ++ebb->last_owner;
	spin_unlock_irq(&ebb->lock);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int ebb_release(struct inode *inode, struct file *filp)
{
	struct ebb_file *file = filp->private_data;

	ebb_return_owner(file->ebb, file->owner);
	ebb_dev_put(file->ebb);
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

int ebb_chardev_register(struct ebb_dev *ebb)
{
	ebb->misc.minor = MISC_DYNAMIC_MINOR;
	ebb->misc.name = "ebb";
	ebb->misc.fops = &ebb_fops;
	ebb->misc.mode = 0660;
	ebb->misc.parent = &ebb->vdev->dev;
	return misc_register(&ebb->misc);
}

void ebb_chardev_unregister(struct ebb_dev *ebb)
{
	misc_deregister(&ebb->misc);
}
