// SPDX-License-Identifier: BSD-3-Clause
/*
 * Limits and CPU list put together: see view.h.
 */
#include <errno.h>
#include <string.h>

#include "view.h"

/* The list is read in pieces; if it changed in between, that often from the start. */
#define LIST_TRIES	4

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void ebb_view_init(struct ebb_view *view, const struct ebb_limits *limits)
{
	memset(view, 0, sizeof(*view));
	view->generation = limits->generation;
	view->num_nodes = limits->num_nodes;
	view->vom_seq = limits->generation ? limits->vom_seq : 0;
	view->mem_promise_mib = limits->generation ? limits->mem_promise_mib : 0;
	for (uint32_t i = 0; i < limits->num_nodes; i++) {
		view->nodes[i].node = limits->nodes[i].node;
		view->nodes[i].held = min_u32(limits->nodes[i].cpus_held, EBB_VIEW_MAX_CPUS);
		view->nodes[i].limit = min_u32(limits->nodes[i].cpus_limit, EBB_VIEW_MAX_CPUS);
		view->nodes[i].tier = limits->nodes[i].tier;
		view->nodes[i].deadline_ns = limits->nodes[i].deadline_ns;
		view->nodes[i].mem_held_bytes = min_u64(limits->nodes[i].mem_held_bytes,
							EBB_VIEW_MAX_BYTES);
		view->nodes[i].mem_limit_bytes = min_u64(limits->nodes[i].mem_limit_bytes,
							 EBB_VIEW_MAX_BYTES);
		view->nodes[i].mem_deadline_ns = limits->nodes[i].mem_deadline_ns;
		view->nodes[i].mem_cutoff = limits->nodes[i].mem_cutoff;
	}
}

void ebb_view_count_cpu(struct ebb_view *view, const struct ebb_cpu *cpu)
{
	if (cpu->flags & (EBB_CPU_FORCED | EBB_CPU_LEAVING | EBB_CPU_LENT))
		return;
	for (uint32_t i = 0; i < view->num_nodes; i++) {
		struct ebb_view_node *n = &view->nodes[i];

		if (n->node != cpu->node)
			continue;
		n->present++;
		if (!(cpu->flags & EBB_CPU_STARTUP))
			n->hotplugged++;
		if (cpu->flags & EBB_CPU_OWNED)
			n->owned++;
		return;
	}
}

void ebb_view_set_pool(struct ebb_view *view, const struct ebb_pool_info *pool)
{
	for (uint32_t i = 0; i < view->num_nodes; i++) {
		struct ebb_view_node *n = &view->nodes[i];

		if (n->node != pool->node)
			continue;
		n->mem_block_bytes = pool->block_bytes;
		n->mem_leased_bytes = min_u64(pool->leased_bytes, EBB_VIEW_MAX_BYTES);
		n->mem_draining_bytes = min_u64(pool->draining_bytes, EBB_VIEW_MAX_BYTES);
		return;
	}
}

static void mem_finish(struct ebb_view_node *n)
{
	uint64_t most = max_u64(n->mem_held_bytes, n->mem_leased_bytes + n->mem_draining_bytes);
	uint64_t least = min_u64(n->mem_held_bytes, n->mem_leased_bytes);
	uint64_t block = n->mem_block_bytes;

	if (block && n->mem_limit_bytes > most)
		n->mem_offer_bytes = (n->mem_limit_bytes - most) / block * block;
	if (block && least > n->mem_limit_bytes)
		n->mem_demand_bytes = (least - n->mem_limit_bytes + block - 1) / block * block;
	if (n->mem_demand_bytes == 0)
		n->mem_deadline_ns = 0;
	if (!block)
		n->mem_held_bytes = n->mem_limit_bytes = n->mem_cutoff = 0;
}

void ebb_view_finish(struct ebb_view *view)
{
	for (uint32_t i = 0; i < view->num_nodes; i++) {
		struct ebb_view_node *n = &view->nodes[i];
		uint32_t most = max_u32(n->held, n->present);
		uint32_t least = min_u32(n->held, n->present);

		n->offer = n->limit > most ? n->limit - most : 0;
		n->demand = least > n->limit ? least - n->limit : 0;
		if (n->demand == 0)
			n->deadline_ns = 0;
		mem_finish(n);
	}
}

/* -EAGAIN: the list changed while it was read. */
static int view_count_all(const struct ebb_dev_ops *ops, void *dev, struct ebb_view *view)
{
	uint32_t start = 0;
	uint32_t total = 0;

	do {
		struct ebb_cpu_list list = { .size = sizeof(list), .start = start };
		int r = ops->ioctl(dev, EBB_IOC_CPU_LIST, &list);

		if (r < 0)
			return r;
		if (list.count > EBB_MAX_REQ_CPUS)
			return -EIO;
		if (start > 0 && (list.total != total || list.count == 0))
			return -EAGAIN;
		for (uint32_t i = 0; i < list.count; i++)
			ebb_view_count_cpu(view, &list.cpus[i]);
		total = list.total;
		start += list.count;
		if (list.count == 0)
			break;
	} while (start < total);
	return 0;
}

static int pool_is_sane(const struct ebb_pool_info *pool)
{
	return pool->node < EBB_MAX_NODES && pool->block_bytes >= EBB_VIEW_BLOCK_BYTES_MIN &&
	       pool->block_bytes <= EBB_VIEW_BLOCK_BYTES_MAX &&
	       !(pool->block_bytes & (pool->block_bytes - 1)) &&
	       pool->leased_bytes % pool->block_bytes == 0;
}

/* Most VMs have no pools: not worth a call. */
static int view_has_mem(const struct ebb_view *view)
{
	for (uint32_t i = 0; i < view->num_nodes; i++)
		if (view->nodes[i].mem_held_bytes || view->nodes[i].mem_limit_bytes)
			return 1;
	return 0;
}

static int view_read_pools(const struct ebb_dev_ops *ops, void *dev, struct ebb_view *view)
{
	struct ebb_mem_info info = { .size = sizeof(info) };
	int r;

	if (!view_has_mem(view))
		return 0;
	r = ops->ioctl(dev, EBB_IOC_MEM_INFO, &info);
	if (r < 0)
		return r;
	if (info.num_pools > EBB_MAX_NODES)
		return -EIO;
	for (uint32_t i = 0; i < info.num_pools; i++) {
		if (!pool_is_sane(&info.pools[i]))
			return -EIO;
		ebb_view_set_pool(view, &info.pools[i]);
	}
	return 0;
}

static int limits_are_sane(const struct ebb_limits *limits)
{
	if (limits->num_nodes > EBB_MAX_NODES)
		return 0;
	for (uint32_t i = 0; i < limits->num_nodes; i++)
		if (limits->nodes[i].node >= EBB_MAX_NODES ||
		    limits->nodes[i].tier >= VIRTIO_EBB_TIER_MAX)
			return 0;
	return 1;
}

/* EBB_IOC_LIMITS as it was first published. */
#define LIMITS_VER0	_IOC(_IOC_READ | _IOC_WRITE, EBB_IOC_MAGIC, 1, EBB_LIMITS_SIZE_VER0)

/* A driver that takes structures of its own size only is asked in the first one. */
static int limits_read(const struct ebb_dev_ops *ops, void *dev, struct ebb_limits *ret)
{
	int r;

	*ret = (struct ebb_limits){ .size = sizeof(*ret) };
	r = ops->ioctl(dev, EBB_IOC_LIMITS, ret);
	if (r != -ENOTTY)
		return r;
	ret->size = EBB_LIMITS_SIZE_VER0;
	return ops->ioctl(dev, LIMITS_VER0, ret);
}

int ebb_view_read(const struct ebb_dev_ops *ops, void *dev, struct ebb_view *ret)
{
	struct ebb_view view;
	int r = 0;

	for (int i = 0; i < LIST_TRIES; i++) {
		struct ebb_limits limits;

		r = limits_read(ops, dev, &limits);
		if (r < 0)
			return r;
		if (!limits_are_sane(&limits))
			return -EIO;
		ebb_view_init(&view, &limits);
		r = view_count_all(ops, dev, &view);
		if (r != -EAGAIN)
			break;
	}
	if (r == 0)
		r = view_read_pools(ops, dev, &view);
	if (r < 0)
		return r;
	ebb_view_finish(&view);
	*ret = view;
	return 0;
}
