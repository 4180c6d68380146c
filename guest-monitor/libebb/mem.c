// SPDX-License-Identifier: BSD-3-Clause
/*
 * What a handle has of memory, and noticing what the host has taken of it.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "handle.h"

/* Leases looked at in one dispatch; the others have not long to wait. */
#define DISPATCH_LEASES	32

/* The map of a lease is read in pieces; if it changed in between, that often from the start. */
#define REFRESH_TRIES	4

int ebb_mem_init(struct ebb_mem *mem, const struct ebb_dev_ops *ops, void *dev, int wake_fd)
{
	int r = -pthread_mutex_init(&mem->lock, NULL);

	if (r < 0)
		return r;
	mem->ops = ops;
	mem->dev = dev;
	mem->wake_fd = wake_fd;
	mem->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (mem->epoll_fd < 0) {
		r = -errno;
		pthread_mutex_destroy(&mem->lock);
	}
	return r;
}

void ebb_mem_finish(struct ebb_mem *mem)
{
	if (mem->epoll_fd < 0)
		return;
	while (mem->pool.num > 0) {
		struct ebb_pool_lease *l = mem->pool.leases[mem->pool.num - 1];

		ebb_mem_unpoll_locked(mem, l);
		ebb_pool_remove(&mem->pool, l);
		ebb_mem_lease_unmap(mem, l);
	}
	ebb_pool_finish(&mem->pool);
	close(mem->epoll_fd);
	mem->epoll_fd = -1;
	pthread_mutex_destroy(&mem->lock);
}

void ebb_mem_sums_get(struct ebb_mem *mem, struct ebb_mem_sums *ret)
{
	pthread_mutex_lock(&mem->lock);
	ret->seq = mem->pool.seq;
	memcpy(ret->owned_bytes, mem->pool.owned_bytes, sizeof(ret->owned_bytes));
	memcpy(ret->releasing_bytes, mem->pool.releasing_bytes, sizeof(ret->releasing_bytes));
	pthread_mutex_unlock(&mem->lock);
}

/* ---- asking the driver ---- */

static int is_info_sane(const struct ebb_pool_lease *l, const struct ebb_lease_info *info)
{
	return info->bytes == l->lease.bytes && info->block_bytes == l->lease.block_bytes &&
	       info->start < l->num_blocks && info->count > 0 &&
	       info->count <= EBB_LEASE_INFO_BLOCKS &&
	       info->count <= l->num_blocks - info->start;
}

/*
 * The driver takes POLLPRI off with every answer, whichever part it is about: that
 * something was revoked since the maps were read is kept here.
 */
int ebb_mem_info_read_locked(struct ebb_mem *mem, struct ebb_pool_lease *l, uint32_t start,
			    struct ebb_lease_info *info)
{
	int r;

	*info = (struct ebb_lease_info) { .size = sizeof(*info), .start = start };
	r = mem->ops->lease_ioctl(mem->dev, l->lease.fd, EBB_IOC_LEASE_INFO, info);
	if (r < 0)
		return r;
	if (info->start != start || !is_info_sane(l, info))
		return -EIO;
	ebb_pool_compare(&mem->pool, l, info->revoked_bytes);
	return 0;
}

/* 1: it changed while it was read. */
static int refresh_once_locked(struct ebb_mem *mem, struct ebb_pool_lease *l)
{
	uint64_t revoked_bytes = 0;
	uint32_t start = 0;

	do {
		struct ebb_lease_info info;
		int r = ebb_mem_info_read_locked(mem, l, start, &info);

		if (r < 0)
			return r;
		if (start > 0 && info.revoked_bytes != revoked_bytes)
			return 1;
		revoked_bytes = info.revoked_bytes;
		ebb_pool_revoked(&mem->pool, l, start, info.count, (uint64_t *)info.held_map,
				 mem->fn == NULL);
		start += info.count;
	} while (start < l->num_blocks);
	l->revoked_known_bytes = revoked_bytes;
	ebb_pool_stale_set(&mem->pool, l, 0);
	return 0;
}

static int refresh_locked(struct ebb_mem *mem, struct ebb_pool_lease *l)
{
	int r = 1;

	for (int i = 0; i < REFRESH_TRIES && r > 0; i++)
		r = refresh_once_locked(mem, l);
	if (r > 0) {
		ebb_pool_stale_set(&mem->pool, l, 1);
		ebb_wake(mem->wake_fd);
	} else if (r < 0) {
		/* It would be ready for ever. */
		ebb_pool_stale_set(&mem->pool, l, 0);
		ebb_mem_unpoll_locked(mem, l);
	}
	return r < 0 ? r : 0;
}

static int refresh_all_locked(struct ebb_mem *mem)
{
	struct epoll_event events[DISPATCH_LEASES];
	int num, r = 0;

	for (size_t i = 0; i < mem->pool.num && mem->pool.num_stale > 0; i++)
		if (mem->pool.leases[i]->is_stale) {
			int one = refresh_locked(mem, mem->pool.leases[i]);

			r = r < 0 ? r : one;
		}
	num = epoll_wait(mem->epoll_fd, events, DISPATCH_LEASES, 0);
	for (int i = 0; i < num; i++) {
		struct ebb_pool_lease *l = events[i].data.ptr;
		int one = refresh_locked(mem, l);

		if (events[i].events & (EPOLLERR | EPOLLHUP))
			ebb_mem_unpoll_locked(mem, l);
		r = r < 0 ? r : one;
	}
	return r;
}

int ebb_mem_dispatch(struct ebb_mem *mem)
{
	int r;

	pthread_mutex_lock(&mem->lock);
	r = refresh_all_locked(mem);
	for (;;) {
		ebb_revoked_fn fn = mem->fn;
		void *fn_arg = mem->fn_arg, *addr;
		uint64_t bytes;

		if (!ebb_pool_untold_next(&mem->pool, &addr, &bytes))
			break;
		if (!fn)
			continue;
		pthread_mutex_unlock(&mem->lock);
		fn(fn_arg, addr, bytes);
		pthread_mutex_lock(&mem->lock);
	}
	pthread_mutex_unlock(&mem->lock);
	/* That the device is gone is for the device to say, and it will. */
	return r == -ENODEV ? 0 : r;
}

void ebb_set_revoked_callback(struct ebb *ebb, ebb_revoked_fn fn, void *arg)
{
	pthread_mutex_lock(&ebb->mem.lock);
	ebb->mem.fn = fn;
	ebb->mem.fn_arg = arg;
	pthread_mutex_unlock(&ebb->mem.lock);
}

/* ---- looking ---- */

int ebb_mem_info_get(struct ebb *ebb, struct ebb_mem_info *ret)
{
	struct ebb_mem_info info = { .size = sizeof(info) };
	int r = ebb->ops->ioctl(ebb->dev, EBB_IOC_MEM_INFO, &info);

	if (r < 0)
		return r;
	if (info.num_pools > EBB_MAX_NODES)
		return -EIO;
	*ret = info;
	return 0;
}

int ebb_lease_find(struct ebb *ebb, const void *addr, struct ebb_lease *ret)
{
	struct ebb_pool_lease *l;

	pthread_mutex_lock(&ebb->mem.lock);
	l = ebb_pool_find(&ebb->mem.pool, addr);
	if (l)
		*ret = l->lease;
	pthread_mutex_unlock(&ebb->mem.lock);
	return l ? 0 : -ENOENT;
}

int ebb_lease_info_get(struct ebb *ebb, const void *addr, uint32_t start,
		       struct ebb_lease_info *ret)
{
	struct ebb_mem *mem = &ebb->mem;
	struct ebb_lease_info info;
	struct ebb_pool_lease *l;
	int r;

	pthread_mutex_lock(&mem->lock);
	l = ebb_pool_find(&mem->pool, addr);
	if (!l)
		r = -ENOENT;
	else if (start >= l->num_blocks)
		r = -ERANGE;
	else
		r = ebb_mem_info_read_locked(mem, l, start, &info);
	if (r == 0 && l->is_stale)
		ebb_wake(mem->wake_fd);
	pthread_mutex_unlock(&mem->lock);
	if (r == 0)
		*ret = info;
	return r;
}
