/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the versions of Linux that this driver is for. */
#ifndef EBB_COMPAT_H
#define EBB_COMPAT_H

#include <linux/mm.h>
#include <linux/pfn_t.h>
#include <linux/version.h>
#include <linux/virtio_config.h>

/*
 * Leases depend on what the kernel does with huge and devmap entries, and where it counts
 * references to their pages.  6.15 drops some that were never taken, and does not say so.
 */
#define EBB_IS_LINUX(major, minor) \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(major, minor, 0) && \
	 LINUX_VERSION_CODE < KERNEL_VERSION(major, (minor) + 1, 0))
#if !EBB_IS_LINUX(6, 1) && !EBB_IS_LINUX(6, 12)
#error "ebb is for Linux 6.1 and 6.12: with others it may corrupt memory, see its README.md"
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/* Defines vm_operations_struct.huge_fault: handler(vmf) gets those for a page of 2 MiB. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define EBB_HUGE_FAULT(name, handler) \
	static vm_fault_t name(struct vm_fault *vmf, enum page_entry_size size) \
	{ \
		return size == PE_SIZE_PMD ? handler(vmf) : VM_FAULT_FALLBACK; \
	}
#else
#define EBB_HUGE_FAULT(name, handler) \
	static vm_fault_t name(struct vm_fault *vmf, unsigned int order) \
	{ \
		return order == PMD_ORDER ? handler(vmf) : VM_FAULT_FALLBACK; \
	}
#endif

/*
 * How 2 MiB of a lease are mapped: with which flags of the pfn_t, which vma flags that takes.
 * Before 6.5, madvise(MADV_COLD) and (MADV_PAGEOUT) take a devmap entry of that size for a broken
 * one: they clear it and leave it in the TLBs, so that memory that was released can still be
 * reached.  Other huge entries they know, and leave alone what no page is counted as mapped for.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define EBB_PMD_PFN_FLAGS	PFN_DEV
#define EBB_PMD_VM_FLAGS	VM_MIXEDMAP
#else
#define EBB_PMD_PFN_FLAGS	(PFN_DEV | PFN_MAP)
#define EBB_PMD_VM_FLAGS	0
#endif

#define EBB_NUM_VQS	3		/* most that a device here has */

struct ebb_vq_desc {
	const char *name;
	vq_callback_t *callback;
};

static inline int ebb_find_vqs(struct virtio_device *vdev, unsigned int num_vqs,
			       struct virtqueue *vqs[], const struct ebb_vq_desc *desc)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	struct virtqueue_info info[EBB_NUM_VQS] = {};
	unsigned int i;

	for (i = 0; i < num_vqs; i++) {
		info[i].name = desc[i].name;
		info[i].callback = desc[i].callback;
	}
	return virtio_find_vqs(vdev, num_vqs, vqs, info, NULL);
#else
	vq_callback_t *callbacks[EBB_NUM_VQS] = {};
	const char *names[EBB_NUM_VQS] = {};
	unsigned int i;

	for (i = 0; i < num_vqs; i++) {
		names[i] = desc[i].name;
		callbacks[i] = desc[i].callback;
	}
	return virtio_find_vqs(vdev, num_vqs, vqs, callbacks, names, NULL);
#endif
}

#endif /* EBB_COMPAT_H */
