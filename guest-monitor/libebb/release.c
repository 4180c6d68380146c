// SPDX-License-Identifier: BSD-3-Clause
/*
 * Giving blocks back.
 */
#include <errno.h>

#include "handle.h"

static int driver_release(struct ebb_mem *mem, const struct ebb_pool_lease *l, uint32_t first,
			  uint32_t count)
{
	struct ebb_lease_release release = {
		.size = sizeof(release),
		.offset = (uint64_t)first * l->lease.block_bytes,
		.bytes = (uint64_t)count * l->lease.block_bytes,
	};

	return mem->ops->lease_ioctl(mem->dev, l->lease.fd, EBB_IOC_LEASE_RELEASE, &release);
}

/* How many blocks of the map are as the first one; whether they are held. */
static uint32_t run_of(const struct ebb_lease_info *info, uint32_t max, int *ret_is_held)
{
	uint32_t n = 1;

	*ret_is_held = info->held_map[0] & 1;
	while (n < max && n < info->count &&
	       (int)(info->held_map[n / 64] >> (n % 64) & 1) == *ret_is_held)
		n++;
	return n;
}

/*
 * The driver gives a range back as a whole or not at all; where the host has
 * revoked some of it, the rest goes run by run.  Returns the number of blocks that
 * are gone; fewer than count: ret_error says why.
 */
static uint32_t release_around(struct ebb_mem *mem, struct ebb_pool_lease *l, uint32_t first,
			       uint32_t count, int *ret_error)
{
	uint32_t done = 0, num_refused = 0;

	while (done < count) {
		struct ebb_lease_info info;
		int is_held, r;
		uint32_t n;

		pthread_mutex_lock(&mem->lock);
		r = ebb_mem_info_read_locked(mem, l, first + done, &info);
		pthread_mutex_unlock(&mem->lock);
		if (r == 0) {
			n = run_of(&info, count - done, &is_held);
			r = is_held ? driver_release(mem, l, first + done, n) : 0;
		}
		if (r == 0)
			done += n;
		/* Each time the host must have taken one more. */
		else if (r != -ENOENT || ++num_refused > count) {
			*ret_error = r == -ENODEV ? r : -EIO;
			break;
		}
	}
	return done;
}

/* After the last use without the lock: the lease may be done with. */
static void put_and_unlock(struct ebb_mem *mem, struct ebb_pool_lease *l)
{
	int is_spent;

	l->num_users--;
	is_spent = ebb_pool_is_spent(l);
	if (is_spent) {
		ebb_mem_unpoll_locked(mem, l);
		ebb_pool_remove(&mem->pool, l);
	}
	pthread_mutex_unlock(&mem->lock);
	if (is_spent)
		ebb_mem_lease_unmap(mem, l);
}

int ebb_mem_release(struct ebb *ebb, void *addr, uint64_t bytes)
{
	struct ebb_mem *mem = &ebb->mem;
	uint32_t first, count, done = 0;
	struct ebb_pool_lease *l;
	int r;

	if (bytes == 0 || (uintptr_t)addr + bytes < bytes)
		return -EINVAL;
	pthread_mutex_lock(&mem->lock);
	l = ebb_pool_find(&mem->pool, addr);
	r = l ? ebb_pool_take(&mem->pool, l, addr, bytes, &first, &count) : -ENOENT;
	if (r < 0) {
		pthread_mutex_unlock(&mem->lock);
		return r;
	}
	l->num_users++;
	pthread_mutex_unlock(&mem->lock);

	r = driver_release(mem, l, first, count);
	if (r == 0)
		done = count;
	else if (r == -ENOENT)
		done = release_around(mem, l, first, count, &r);
	else if (r != -ENODEV)
		r = -EIO;

	pthread_mutex_lock(&mem->lock);
	ebb_pool_released(&mem->pool, l, first, done);
	if (done < count) {
		/* What of the rest was revoked went unnoticed while it was not held. */
		ebb_pool_give_back(&mem->pool, l, first + done, count - done);
		l->revoked_known_bytes = EBB_POOL_UNKNOWN;
		ebb_pool_stale_set(&mem->pool, l, 1);
	} else {
		r = 0;
	}
	put_and_unlock(mem, l);
	ebb_wake(mem->wake_fd);
	return r;
}
