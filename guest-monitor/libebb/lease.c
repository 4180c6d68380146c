// SPDX-License-Identifier: BSD-3-Clause
/*
 * Making and closing leases.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "guard.h"
#include "handle.h"

void ebb_mem_unpoll_locked(struct ebb_mem *mem, struct ebb_pool_lease *l)
{
	if (!l->is_polled)
		return;
	epoll_ctl(mem->epoll_fd, EPOLL_CTL_DEL, mem->ops->lease_poll_fd(mem->dev, l->lease.fd),
		  NULL);
	l->is_polled = 0;
}

void ebb_mem_lease_unmap(struct ebb_mem *mem, struct ebb_pool_lease *l)
{
	ebb_guard_range_remove(l->lease.addr);
	munmap(l->lease.addr, l->lease.bytes);
	mem->ops->lease_close(mem->dev, l->lease.fd);
	ebb_pool_lease_destroy(l);
}

static int is_granted(const struct ebb_mem_add *add, uint64_t bytes, unsigned int node)
{
	return add->lease_fd >= 0 && add->block_bytes >= EBB_VIEW_BLOCK_BYTES_MIN &&
	       add->block_bytes <= EBB_VIEW_BLOCK_BYTES_MAX &&
	       !(add->block_bytes & (add->block_bytes - 1)) && add->granted_bytes > 0 &&
	       add->granted_bytes <= bytes && add->granted_bytes <= EBB_VIEW_MAX_BYTES &&
	       add->granted_bytes % add->block_bytes == 0 && add->granted_node < EBB_MAX_NODES &&
	       (node == EBB_NODE_ANY || node == add->granted_node);
}

/*
 * Blocks may be larger than the pages that the kernel aligns to, so addresses are
 * chosen here, in an area that is larger by one block.
 */
static int lease_map(struct ebb_lease *lease)
{
	size_t block = lease->block_bytes, bytes = lease->bytes;
	char *area, *start;
	size_t head;

	area = mmap(NULL, bytes + block, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (area == MAP_FAILED)
		return -errno;
	head = -(uintptr_t)area & (block - 1);
	start = area + head;
	if (mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, lease->fd, 0) ==
	    MAP_FAILED) {
		int r = errno == ENOMEM ? -errno : -EIO;

		munmap(area, bytes + block);
		return r;
	}
	if (head > 0)
		munmap(area, head);
	munmap(start + bytes, block - head);
	lease->addr = start;
	return 0;
}

static int insert_locked(struct ebb_mem *mem, struct ebb_pool_lease *l)
{
	struct epoll_event ev = { .events = mem->ops->lease_events, .data.ptr = l };
	int r = ebb_pool_insert(&mem->pool, l);

	if (r < 0)
		return r;
	if (epoll_ctl(mem->epoll_fd, EPOLL_CTL_ADD,
		      mem->ops->lease_poll_fd(mem->dev, l->lease.fd), &ev) < 0) {
		/* ENOSPC is that of poll's own accounts. */
		r = errno == ENOMEM || errno == ENOSPC ? -ENOMEM : -EIO;
		ebb_pool_remove(&mem->pool, l);
		return r;
	}
	l->is_polled = 1;
	return 0;
}

static int lease_enter(struct ebb_mem *mem, const struct ebb_lease *lease)
{
	struct ebb_pool_lease *l = ebb_pool_lease_create(lease);
	int r;

	if (!l)
		return -ENOMEM;
	r = ebb_guard_range_add(lease->addr, lease->bytes);
	if (r < 0)
		goto out_destroy;
	pthread_mutex_lock(&mem->lock);
	r = insert_locked(mem, l);
	pthread_mutex_unlock(&mem->lock);
	if (r == 0)
		return 0;
	ebb_guard_range_remove(lease->addr);
out_destroy:
	ebb_pool_lease_destroy(l);
	return r;
}

int ebb_mem_add(struct ebb *ebb, uint64_t bytes, unsigned int node, struct ebb_lease *ret)
{
	struct ebb_mem_add add = {
		.size = sizeof(add), .bytes = bytes, .node = node, .lease_fd = -1,
	};
	struct ebb_mem *mem = &ebb->mem;
	struct ebb_lease lease;
	int r = mem->ops->ioctl(mem->dev, EBB_IOC_MEM_ADD, &add);

	if (r < 0)
		return r;
	lease = (struct ebb_lease) {
		.bytes = add.granted_bytes,
		.node = add.granted_node,
		.block_bytes = add.block_bytes,
		.fd = add.lease_fd,
	};
	r = is_granted(&add, bytes, node) ? lease_map(&lease) : -EIO;
	if (r < 0)
		goto out_close;
	r = lease_enter(mem, &lease);
	if (r < 0)
		goto out_unmap;
	ebb_wake(mem->wake_fd);
	*ret = lease;
	return 0;

out_unmap:
	munmap(lease.addr, lease.bytes);
out_close:
	if (lease.fd >= 0)
		mem->ops->lease_close(mem->dev, lease.fd);
	return r;
}

int ebb_lease_close(struct ebb *ebb, void *addr)
{
	struct ebb_mem *mem = &ebb->mem;
	struct ebb_pool_lease *l;
	int r = 0;

	pthread_mutex_lock(&mem->lock);
	l = ebb_pool_find(&mem->pool, addr);
	if (!l || l->num_users > 0) {
		r = l ? -EBUSY : -ENOENT;
	} else {
		ebb_mem_unpoll_locked(mem, l);
		ebb_pool_remove(&mem->pool, l);
	}
	pthread_mutex_unlock(&mem->lock);
	if (r < 0)
		return r;
	ebb_mem_lease_unmap(mem, l);
	ebb_wake(mem->wake_fd);
	return 0;
}
