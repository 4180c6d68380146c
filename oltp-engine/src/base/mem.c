// SPDX-License-Identifier: GPL-2.0-or-later
/* Blocks of memory: see mem.h. Binding to a NUMA node is left to first touch by a pinned thread. */
#include <sys/mman.h>

#include "mem.h"

#define ARENA_BYTES	(64ul << 20)
/* Index slots keep addresses in 48 bits. */
#define ADDR_LIMIT	(1ull << 48)

size_t mem_round(size_t bytes)
{
	return (bytes + OLTP_MEM_BLOCK_BYTES - 1) & ~(OLTP_MEM_BLOCK_BYTES - 1);
}

/* Maps one block more than asked for and gives the unaligned ends back. */
void *map_aligned(size_t bytes)
{
	size_t mapped = bytes + OLTP_MEM_BLOCK_BYTES;
	uint8_t *raw = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	uint8_t *aligned;
	size_t before;

	if (raw == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)raw & (OLTP_MEM_BLOCK_BYTES - 1);
	aligned = raw + before;
	if (before)
		munmap(raw, before);
	munmap(aligned + bytes, mapped - before - bytes);
	/* Advice only: without huge pages everything works, with more TLB misses. */
	madvise(aligned, bytes, MADV_HUGEPAGE);
	return aligned;
}

static void *arena_alloc(struct mem *mem, size_t bytes)
{
	void *addr;

	if (bytes > ARENA_BYTES / 4)
		return map_aligned(bytes);
	if ((size_t)(mem->arena_end - mem->arena_next) < bytes) {
		uint8_t *arena = map_aligned(ARENA_BYTES);

		if (!arena)
			return map_aligned(bytes);
		if (mem->arena_next != mem->arena_end)
			munmap(mem->arena_next, (size_t)(mem->arena_end - mem->arena_next));
		mem->arena_next = arena;
		mem->arena_end = arena + ARENA_BYTES;
	}
	addr = mem->arena_next;
	mem->arena_next += bytes;
	return addr;
}

void mem_init(struct mem *mem, const struct oltp_mem_ops *ops, void *ctx, int node)
{
	*mem = (struct mem){ .ops = ops, .ctx = ctx, .node = node };
	pthread_mutex_init(&mem->lock, NULL);
}

void mem_finish(struct mem *mem)
{
	if (mem->arena_next != mem->arena_end)
		munmap(mem->arena_next, (size_t)(mem->arena_end - mem->arena_next));
	mem->arena_next = mem->arena_end = NULL;
	pthread_mutex_destroy(&mem->lock);
}

void *mem_alloc(struct mem *mem, size_t bytes)
{
	void *addr;

	pthread_mutex_lock(&mem->lock);
	addr = mem->ops ? mem->ops->alloc(mem->ctx, bytes, mem->node) : arena_alloc(mem, bytes);
	if (addr && (uintptr_t)addr + bytes > ADDR_LIMIT) {
		if (mem->ops)
			mem->ops->free(mem->ctx, addr, bytes);
		else
			munmap(addr, bytes);
		addr = NULL;
	}
	pthread_mutex_unlock(&mem->lock);
	return addr;
}

void mem_free(struct mem *mem, void *addr, size_t bytes)
{
	if (!addr)
		return;
	pthread_mutex_lock(&mem->lock);
	if (mem->ops)
		mem->ops->free(mem->ctx, addr, bytes);
	else
		munmap(addr, bytes);
	pthread_mutex_unlock(&mem->lock);
}
