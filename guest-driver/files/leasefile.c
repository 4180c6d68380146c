// SPDX-License-Identifier: GPL-2.0-only
/* The file of a lease: mapping it, faults, ioctls, poll. */
#include "files/lease.h"

#include <linux/huge_mm.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/wait_bit.h>

#include "compat.h"
#include "files/args.h"

/*
 * No page of a block is mapped for a lease before all of the block was zeroed for
 * this lease.  By whom it was used before, if at all, and whether the host has
 * discarded it since, does not matter: who used it, and a host that forgets to
 * discard it, are not to be relied upon.  It is done when the block is first
 * touched, which has the host find memory for it anyway.  The lease's lock is
 * held for reading, so that only other faults change the entry.
 */
static void zero_block(const struct ebb_lease *lease, u32 *entry, phys_addr_t addr)
{
	phys_addr_t end = addr + lease->map.block_bytes;
	u32 old = smp_load_acquire(entry);

	while (!(old & EBB_LEASEMAP_ZEROED)) {
		if (!(old & EBB_LEASEMAP_ZEROING) &&
		    cmpxchg(entry, old, old | EBB_LEASEMAP_ZEROING) == old)
			break;
		wait_var_event(entry, !(READ_ONCE(*entry) & EBB_LEASEMAP_ZEROING));
		old = smp_load_acquire(entry);
	}
	if (old & EBB_LEASEMAP_ZEROED)
		return;
	for (; addr < end; addr += PMD_SIZE) {
		memset64(phys_to_virt(addr), 0, PMD_SIZE / sizeof(u64));
		cond_resched();
	}
	smp_store_release(entry, old | EBB_LEASEMAP_ZEROED);
	wake_up_var(entry);
}

/* Address of a page of the lease, in guest physical memory, with what the lease has put there. */
static bool find_page(const struct ebb_lease *lease, pgoff_t pgoff, phys_addr_t *ret)
{
	u64 offset = (u64)pgoff << PAGE_SHIFT;
	u32 block_bytes = lease->map.block_bytes;
	phys_addr_t addr;
	u32 block;

	if (ebb_leasemap_lookup(&lease->map, offset / block_bytes, &block))
		return false;
	addr = lease->pool->addr + (u64)block * block_bytes;
	zero_block(lease, &lease->map.entries[offset / block_bytes], addr);
	*ret = addr + (offset & (block_bytes - 1));
	return true;
}

static vm_fault_t lease_fault(struct vm_fault *vmf)
{
	struct ebb_lease *lease = vmf->vma->vm_file->private_data;
	vm_fault_t rc = VM_FAULT_SIGBUS;
	phys_addr_t addr;

	down_read(&lease->lock);
	if (find_page(lease, vmf->pgoff, &addr))
		rc = ebb_map_page(vmf, addr);
	up_read(&lease->lock);
	return rc;
}

static vm_fault_t lease_pmd_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct ebb_lease *lease = vma->vm_file->private_data;
	unsigned long start = vmf->address & PMD_MASK;
	vm_fault_t rc = VM_FAULT_SIGBUS;
	phys_addr_t addr;
	pgoff_t pgoff;

	if (start < vma->vm_start || start + PMD_SIZE > vma->vm_end)
		return VM_FAULT_FALLBACK;
	pgoff = linear_page_index(vma, start);
	if (!IS_ALIGNED(pgoff, PMD_SIZE >> PAGE_SHIFT))
		return VM_FAULT_FALLBACK;

	down_read(&lease->lock);
	if (find_page(lease, pgoff, &addr))
		rc = ebb_map_pmd(vmf, addr);
	up_read(&lease->lock);
	return rc;
}
EBB_HUGE_FAULT(lease_huge_fault, lease_pmd_fault)

static const struct vm_operations_struct lease_vm_ops = {
	.fault = lease_fault,
	.huge_fault = lease_huge_fault,
};

static int lease_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct ebb_lease *lease = filp->private_data;
	u64 num_pages = (u64)lease->map.num_blocks * (lease->map.block_bytes >> PAGE_SHIFT);

	/* Copies of its own would outlive a revocation. */
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_pgoff > num_pages || vma_pages(vma) > num_pages - vma->vm_pgoff)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (READ_ONCE(lease->is_gone))
		return -ENODEV;
	vm_flags_mod(vma, VM_DONTCOPY | VM_DONTEXPAND | EBB_LEASE_VM_FLAGS, VM_MAYEXEC);
	vma->vm_ops = &lease_vm_ops;
	return 0;
}

static int do_release(struct ebb_lease *lease, void *p)
{
	return ebb_lease_release(lease, p);
}

static int do_info(struct ebb_lease *lease, void *p)
{
	struct ebb_lease_info *arg = p;
	const struct ebb_leasemap *map = &lease->map;
	u32 i;

	if (arg->start >= map->num_blocks)
		return -ERANGE;
	arg->node = lease->linux_node;
	arg->block_bytes = map->block_bytes;
	arg->bytes = (u64)map->num_blocks * map->block_bytes;
	arg->count = min_t(u32, map->num_blocks - arg->start, EBB_LEASE_INFO_BLOCKS);
	memset(arg->held_map, 0, sizeof(arg->held_map));

	down_write(&lease->lock);
	arg->held_bytes = (u64)map->num_held * map->block_bytes;
	arg->revoked_bytes = (u64)map->num_revoked * map->block_bytes;
	for (i = 0; i < arg->count; i++)
		if (ebb_leasemap_is_held(map, arg->start + i))
			arg->held_map[i / 64] |= 1ull << i % 64;
	lease->told_seq = lease->revoked_seq;
	up_write(&lease->lock);
	return 0;
}

static const struct lease_ioctl {
	struct ebb_abi abi;
	int (*run)(struct ebb_lease *lease, void *arg);
} lease_ioctls[] = {
	{ { EBB_IOC_LEASE_RELEASE, EBB_LEASE_RELEASE_SIZE_VER0 }, do_release },
	{ { EBB_IOC_LEASE_INFO, EBB_LEASE_INFO_SIZE_VER0 }, do_info },
};

static long lease_ioctl(struct file *filp, unsigned int cmd, unsigned long uarg)
{
	struct ebb_lease *lease = filp->private_data;
	const struct lease_ioctl *ioctl = NULL;
	void __user *user = (void __user *)uarg;
	unsigned int i;
	void *arg;
	int rc;

	for (i = 0; i < ARRAY_SIZE(lease_ioctls); i++)
		if (ebb_abi_is(&lease_ioctls[i].abi, cmd))
			ioctl = &lease_ioctls[i];
	if (!ioctl)
		return -ENOTTY;
	if (READ_ONCE(lease->is_gone))
		return -ENODEV;
	arg = ebb_args_get(&ioctl->abi, cmd, 0, user);
	if (IS_ERR(arg))
		return PTR_ERR(arg);
	rc = ioctl->run(lease, arg) ?: ebb_args_put(&ioctl->abi, cmd, arg, user);
	kfree(arg);
	return rc;
}

static __poll_t lease_poll(struct file *filp, poll_table *wait)
{
	struct ebb_lease *lease = filp->private_data;
	__poll_t mask = 0;

	poll_wait(filp, &lease->wait, wait);
	if (READ_ONCE(lease->is_gone))
		return EPOLLERR | EPOLLHUP;
	if (READ_ONCE(lease->revoked_seq) != READ_ONCE(lease->told_seq))
		mask = EPOLLPRI;
	return mask;
}

static int lease_release(struct inode *inode, struct file *filp)
{
	ebb_lease_destroy(filp->private_data);
	return 0;
}

const struct file_operations ebb_lease_fops = {
	.owner = THIS_MODULE,
	.release = lease_release,
	.mmap = lease_mmap,
	.get_unmapped_area = thp_get_unmapped_area,
	.unlocked_ioctl = lease_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = lease_poll,
	.llseek = noop_llseek,
};
