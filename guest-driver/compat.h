/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the versions of Linux that this driver is for. */
#ifndef EBB_COMPAT_H
#define EBB_COMPAT_H

#include <linux/device.h>
#include <linux/mm.h>
#include <linux/version.h>
#include <linux/virtio_config.h>
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#include <linux/pfn_t.h>
#endif

/*
 * Leases depend on how the kernel counts references to the pages of huge and device mappings.
 * A kernel that drops references that were never taken corrupts memory and does not say so.
 */
#define EBB_IS_LINUX(major, minor) \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(major, minor, 0) && \
	 LINUX_VERSION_CODE < KERNEL_VERSION(major, (minor) + 1, 0))
#if !EBB_IS_LINUX(6, 1) && !EBB_IS_LINUX(6, 12) && !EBB_IS_LINUX(7, 3)
#error "ebb is for Linux 6.1, 6.12 and 7.3: with others it may corrupt memory, see its README.md"
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
 * How memory of a lease is mapped: ebb_map_page() for 4 KiB, ebb_map_pmd() for 2 MiB, in a VMA that
 * has EBB_LEASE_VM_FLAGS.  Both map it for writing at once where that is allowed: nobody needs to
 * know when the memory is first written to.
 *
 * Since 6.15 a mapping holds references to the folio of the 2 MiB (map_pages() in pool.c), as a
 * mapping of any file does.
 *
 * Before that it holds none.  Small pages have devmap entries, so that system calls can take
 * references to the page behind them.  So have 2 MiB since 6.5.  Before 6.5, madvise(MADV_COLD) and
 * (MADV_PAGEOUT) take a devmap entry of that size for a broken one: they clear it and leave it in
 * the TLBs, so that memory that was released can still be reached.  They leave other huge entries
 * alone if no page is counted as mapped by them.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define EBB_LEASE_VM_FLAGS	0

static inline vm_fault_t ebb_map_page(struct vm_fault *vmf, phys_addr_t addr)
{
	return vmf_insert_page_mkwrite(vmf, pfn_to_page(PHYS_PFN(addr)),
				       vmf->vma->vm_flags & VM_WRITE);
}

static inline vm_fault_t ebb_map_pmd(struct vm_fault *vmf, phys_addr_t addr)
{
	return vmf_insert_folio_pmd(vmf, page_folio(pfn_to_page(PHYS_PFN(addr))),
				    vmf->vma->vm_flags & VM_WRITE);
}
#else
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define EBB_LEASE_VM_FLAGS	0
#define EBB_PMD_PFN_FLAGS	(PFN_DEV | PFN_MAP)
#else
#define EBB_LEASE_VM_FLAGS	VM_MIXEDMAP
#define EBB_PMD_PFN_FLAGS	PFN_DEV
#endif

static inline vm_fault_t ebb_map_page(struct vm_fault *vmf, phys_addr_t addr)
{
	return vmf_insert_mixed(vmf->vma, vmf->address, phys_to_pfn_t(addr, PFN_DEV | PFN_MAP));
}

static inline vm_fault_t ebb_map_pmd(struct vm_fault *vmf, phys_addr_t addr)
{
	return vmf_insert_pfn_pmd(vmf, phys_to_pfn_t(addr, EBB_PMD_PFN_FLAGS),
				  vmf->vma->vm_flags & VM_WRITE);
}
#endif

/* Flags of struct device that became bits with accessors. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 3, 0)
static inline bool dev_offline_disabled(const struct device *dev)
{
	return dev->offline_disabled;
}

static inline bool dev_offline(const struct device *dev)
{
	return dev->offline;
}

static inline void dev_assign_offline(struct device *dev, bool is_offline)
{
	dev->offline = is_offline;
}
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
