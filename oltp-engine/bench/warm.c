// SPDX-License-Identifier: GPL-2.0-or-later
/* See warm.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "warm.h"

#define PAGE_BYTES	4096u
#define REPORT_BYTES	(1ul << 30)
/* Beyond what was asked for memory is there as well, only not yet: tables grow. */
#define SPARE_FACTOR	4u
#define SPARE_BYTES	(1ul << 30)

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + OLTP_MEM_BLOCK_BYTES - 1) & ~(OLTP_MEM_BLOCK_BYTES - 1);
}

uint64_t warm_available(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	uint64_t kib = 0;
	char line[128];

	while (f && !kib && fgets(line, sizeof(line), f))
		sscanf(line, "MemAvailable: %" SCNu64, &kib);
	if (f)
		fclose(f);
	return kib ? kib << 10 : UINT64_MAX;
}

int warm_open(struct warm *warm, uint64_t bytes, bool quiet)
{
	uint8_t *raw;

	*warm = (struct warm){ .bytes = round_up(bytes) * SPARE_FACTOR + SPARE_BYTES };
	raw = mmap(NULL, warm->bytes + OLTP_MEM_BLOCK_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (raw == MAP_FAILED)
		return -ENOMEM;
	warm->base = raw;
	warm->used = round_up((uintptr_t)raw) - (uintptr_t)raw;
	/* Advice only, as in the engine. */
	madvise(raw, warm->bytes, MADV_HUGEPAGE);
	for (uint64_t at = 0; at < bytes; at += PAGE_BYTES) {
		*(volatile uint8_t *)(raw + warm->used + at) = 0;
		if (!quiet && (at + PAGE_BYTES) % REPORT_BYTES == 0) {
			printf("oltp: memory warm mib=%" PRIu64 " of %" PRIu64 "\n",
			       (at + PAGE_BYTES) >> 20, bytes >> 20);
			fflush(stdout);
		}
	}
	return 0;
}

void warm_close(struct warm *warm)
{
	if (warm->base)
		munmap(warm->base, warm->bytes + OLTP_MEM_BLOCK_BYTES);
	warm->base = NULL;
}

/* The engine calls one at a time. */
static void *warm_alloc(void *ctx, size_t bytes, int node)
{
	struct warm *warm = ctx;
	uint8_t *addr = warm->base + warm->used;

	(void)node;
	if (round_up(bytes) > warm->bytes - warm->used)
		return NULL;
	warm->used += round_up(bytes);
	return addr;
}

static void warm_free(void *ctx, void *addr, size_t bytes)
{
	(void)ctx;
	(void)addr;
	(void)bytes;
}

const struct oltp_mem_ops warm_mem_ops = { .alloc = warm_alloc, .free = warm_free };
