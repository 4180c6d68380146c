// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The simulated VM: pools and leases by the letter of ebb_ioctl.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_ebb_vm.h"

void fake_ebb_mem_init(struct fake_ebb_vm *vm)
{
	for (size_t i = 0; i < FAKE_EBB_MAX_LEASES; i++)
		vm->leases[i].fd = -1;
}

uint64_t fake_ebb_mem_leased_bytes(const struct fake_ebb_vm *vm, uint32_t node)
{
	uint64_t num_blocks = 0;

	for (size_t i = 0; i < FAKE_EBB_MAX_LEASES; i++)
		if (vm->leases[i].fd >= 0 && vm->leases[i].node == node)
			num_blocks += vm->leases[i].num_held;
	return num_blocks * FAKE_EBB_BLOCK_BYTES;
}

static uint64_t held_bytes(const struct fake_ebb_vm *vm, uint32_t node)
{
	return fake_ebb_mem_leased_bytes(vm, node) + vm->nodes[node].draining_bytes;
}

void fake_ebb_mem_limits(const struct fake_ebb_vm *vm, struct ebb_limits *limits)
{
	for (uint32_t node = 0; node < limits->num_nodes; node++) {
		struct ebb_node_limit *n = &limits->nodes[node];

		n->mem_held_bytes = held_bytes(vm, node);
		n->mem_limit_bytes = vm->nodes[node].mem_limit_bytes;
		n->mem_cutoff = vm->nodes[node].mem_cutoff;
		if (n->mem_held_bytes > n->mem_limit_bytes)
			n->mem_deadline_ns = vm->nodes[node].mem_deadline_ns;
	}
}

int fake_ebb_mem_info_do(const struct fake_ebb_vm *vm, struct ebb_mem_info *info)
{
	if (info->size != sizeof(*info) || info->flags || info->reserved)
		return -EINVAL;
	info->num_pools = 0;
	for (uint32_t node = 0; node < vm->num_nodes; node++) {
		if (vm->nodes[node].pool_bytes == 0)
			continue;
		info->pools[info->num_pools++] = (struct ebb_pool_info) {
			.node = node,
			.block_bytes = FAKE_EBB_BLOCK_BYTES,
			.size_bytes = vm->nodes[node].pool_bytes,
			.held_bytes = held_bytes(vm, node),
			.leased_bytes = fake_ebb_mem_leased_bytes(vm, node),
			.draining_bytes = vm->nodes[node].draining_bytes,
		};
	}
	return 0;
}

static uint64_t room_bytes(const struct fake_ebb_vm *vm, uint32_t node)
{
	uint64_t limit = vm->nodes[node].mem_limit_bytes, held = held_bytes(vm, node);

	if (limit > vm->nodes[node].pool_bytes)
		limit = vm->nodes[node].pool_bytes;
	limit -= limit % FAKE_EBB_BLOCK_BYTES;
	return limit > held ? limit - held : 0;
}

/* The node to add memory on, or -errno. */
static int add_node_choose(const struct fake_ebb_vm *vm, const struct ebb_mem_add *add)
{
	int best = -ENXIO;

	if (add->node != EBB_NODE_ANY && add->node >= vm->num_nodes)
		return -ENXIO;
	for (uint32_t node = 0; node < vm->num_nodes; node++) {
		if ((add->node != EBB_NODE_ANY && add->node != node) ||
		    vm->nodes[node].pool_bytes == 0)
			continue;
		if (add->bytes > vm->nodes[node].pool_bytes)
			best = best < 0 ? -ERANGE : best;
		else if (best < 0 || room_bytes(vm, node) > room_bytes(vm, (uint32_t)best))
			best = (int)node;
	}
	if (best >= 0 && room_bytes(vm, (uint32_t)best) == 0)
		return vm->nodes[best].draining_bytes ? -EAGAIN : -EDQUOT;
	return best;
}

static int lease_open(struct fake_ebb_lease *lease, uint64_t bytes, int ret_fds[])
{
	int call[2], notify[2], memory_fd;

	memory_fd = memfd_create("ebb-lease", MFD_CLOEXEC);
	if (memory_fd < 0)
		return -errno;
	if (ftruncate(memory_fd, (off_t)bytes) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, call) < 0) {
		close(memory_fd);
		return -errno;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, notify) < 0) {
		close(memory_fd);
		close(call[0]);
		close(call[1]);
		return -errno;
	}
	lease->fd = call[0];
	lease->notify_fd = notify[0];
	lease->memory_fd = memory_fd;
	ret_fds[0] = dup(memory_fd);
	ret_fds[1] = call[1];
	ret_fds[2] = notify[1];
	return 0;
}

int fake_ebb_mem_add_do(struct fake_ebb_vm *vm, struct ebb_mem_add *add,
			int ret_fds[FAKE_EBB_LEASE_FDS])
{
	struct fake_ebb_lease *lease = NULL;
	uint64_t bytes;
	int node, r;

	if (add->size != sizeof(*add) || add->flags || add->bytes == 0 ||
	    add->bytes % FAKE_EBB_BLOCK_BYTES)
		return -EINVAL;
	node = add_node_choose(vm, add);
	if (node < 0)
		return node;
	for (size_t i = 0; i < FAKE_EBB_MAX_LEASES && !lease; i++)
		if (vm->leases[i].fd < 0)
			lease = &vm->leases[i];
	if (!lease)
		return -ENFILE;
	bytes = room_bytes(vm, (uint32_t)node);
	bytes = add->bytes < bytes ? add->bytes : bytes;
	r = lease_open(lease, bytes, ret_fds);
	if (r < 0)
		return r;
	lease->node = (uint32_t)node;
	lease->num_blocks = lease->num_held = (uint32_t)(bytes / FAKE_EBB_BLOCK_BYTES);
	lease->num_revoked = 0;
	lease->is_held = malloc(lease->num_blocks);
	memset(lease->is_held, 1, lease->num_blocks);
	add->granted_bytes = bytes;
	add->granted_node = (uint32_t)node;
	add->block_bytes = FAKE_EBB_BLOCK_BYTES;
	add->host_ns = 5000;
	fake_ebb_vm_publish(vm);
	return 0;
}

static int release_do(struct fake_ebb_vm *vm, struct fake_ebb_lease *lease,
		      struct ebb_lease_release *release)
{
	uint64_t first = release->offset / FAKE_EBB_BLOCK_BYTES;
	uint64_t count = release->bytes / FAKE_EBB_BLOCK_BYTES;

	if (release->size != sizeof(*release) || release->flags || release->bytes == 0 ||
	    release->offset % FAKE_EBB_BLOCK_BYTES || release->bytes % FAKE_EBB_BLOCK_BYTES)
		return -EINVAL;
	if (first >= lease->num_blocks || count > lease->num_blocks - first)
		return -ERANGE;
	if (memchr(lease->is_held + first, 0, count))
		return -ENOENT;
	memset(lease->is_held + first, 0, count);
	lease->num_held -= (uint32_t)count;
	release->draining_bytes = 0;
	fake_ebb_vm_publish(vm);
	return 0;
}

static int lease_info_do(const struct fake_ebb_lease *lease, struct ebb_lease_info *info)
{
	uint32_t start = info->start;

	if (info->size != sizeof(*info) || info->flags)
		return -EINVAL;
	if (start >= lease->num_blocks)
		return -ERANGE;
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->node = lease->node;
	info->block_bytes = FAKE_EBB_BLOCK_BYTES;
	info->bytes = (uint64_t)lease->num_blocks * FAKE_EBB_BLOCK_BYTES;
	info->held_bytes = (uint64_t)lease->num_held * FAKE_EBB_BLOCK_BYTES;
	info->revoked_bytes = (uint64_t)lease->num_revoked * FAKE_EBB_BLOCK_BYTES;
	info->start = start;
	for (uint32_t i = start;
	     i < lease->num_blocks && info->count < EBB_LEASE_INFO_BLOCKS; i++) {
		info->held_map[info->count / 64] |= (uint64_t)lease->is_held[i]
						    << (info->count % 64);
		info->count++;
	}
	return 0;
}

int fake_ebb_lease_ioctl(struct fake_ebb_vm *vm, struct fake_ebb_lease *lease, unsigned long cmd,
			 void *arg)
{
	if (lease->notify_fd < 0)
		return -ENODEV;
	switch (cmd) {
	case EBB_IOC_LEASE_RELEASE:
		return release_do(vm, lease, arg);
	case EBB_IOC_LEASE_INFO:
		return lease_info_do(lease, arg);
	default:
		return -ENOTTY;
	}
}

static void lease_free(struct fake_ebb_lease *lease)
{
	close(lease->fd);
	if (lease->notify_fd >= 0)
		close(lease->notify_fd);
	close(lease->memory_fd);
	free(lease->is_held);
	lease->fd = -1;
}

void fake_ebb_lease_close(struct fake_ebb_vm *vm, struct fake_ebb_lease *lease)
{
	lease_free(lease);
	fake_ebb_vm_publish(vm);
}

void fake_ebb_mem_finish(struct fake_ebb_vm *vm)
{
	for (size_t i = 0; i < FAKE_EBB_MAX_LEASES; i++)
		if (vm->leases[i].fd >= 0)
			lease_free(&vm->leases[i]);
}

int fake_ebb_lease_revoke(struct fake_ebb_vm *vm, struct fake_ebb_lease *lease, uint32_t first,
			  uint32_t count)
{
	if (first >= lease->num_blocks || count > lease->num_blocks - first ||
	    memchr(lease->is_held + first, 0, count))
		return -ENOENT;
	memset(lease->is_held + first, 0, count);
	lease->num_held -= count;
	lease->num_revoked += count;
	/* With the lock held: nobody learns of it, and unmaps, before it is done. */
	fake_ebb_map_take(lease->memory_fd, (uint64_t)first * FAKE_EBB_BLOCK_BYTES,
			  (uint64_t)count * FAKE_EBB_BLOCK_BYTES);
	if (lease->notify_fd >= 0)
		send(lease->notify_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	fake_ebb_vm_publish(vm);
	return 0;
}

uint64_t fake_ebb_mem_revoke(struct fake_ebb_vm *vm, uint32_t node, uint64_t bytes)
{
	uint64_t done = 0;

	for (size_t i = FAKE_EBB_MAX_LEASES; i-- > 0;) {
		struct fake_ebb_lease *lease = &vm->leases[i];

		if (lease->fd < 0 || lease->node != node)
			continue;
		for (uint32_t b = lease->num_blocks; b-- > 0 && done < bytes;)
			if (fake_ebb_lease_revoke(vm, lease, b, 1) == 0)
				done += FAKE_EBB_BLOCK_BYTES;
	}
	return done;
}

void fake_ebb_mem_hang_up(struct fake_ebb_vm *vm)
{
	for (size_t i = 0; i < FAKE_EBB_MAX_LEASES; i++) {
		struct fake_ebb_lease *lease = &vm->leases[i];

		if (lease->fd < 0 || lease->notify_fd < 0)
			continue;
		close(lease->notify_fd);
		lease->notify_fd = -1;
		memset(lease->is_held, 0, lease->num_blocks);
		lease->num_held = 0;
	}
}
