// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Taking parts of a shared mapping away: where the process maps them, an empty
 * file is mapped instead, which is a SIGBUS at every touch.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_ebb_vm.h"

#define MAX_MAPPINGS	512

struct mapping {
	uintptr_t start, end;
	uint64_t offset;
	uint64_t inode;
};

uint64_t fake_ebb_map_inode(int memory_fd)
{
	struct stat st;

	return fstat(memory_fd, &st) < 0 ? 0 : (uint64_t)st.st_ino;
}

/* The mappings of leases in this process. */
static size_t mappings_read(struct mapping *ret)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	size_t num = 0;

	if (!f)
		abort();
	while (fgets(line, sizeof(line), f)) {
		unsigned long start, end;
		unsigned long long offset, inode;

		if (!strstr(line, "/memfd:ebb-lease") ||
		    sscanf(line, "%lx-%lx %*s %llx %*s %llu", &start, &end, &offset, &inode) != 4)
			continue;
		if (num == MAX_MAPPINGS)
			abort();
		ret[num++] = (struct mapping) { start, end, offset, inode };
	}
	fclose(f);
	return num;
}

/* By the bare call: to the thread sanitizer, mmap() is a write, but nobody writes here. */
static void range_cover(uintptr_t start, uint64_t bytes)
{
	int empty_fd = memfd_create("ebb-nothing", MFD_CLOEXEC);

	if (empty_fd < 0 || syscall(SYS_mmap, start, bytes, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_FIXED, empty_fd, 0) != (long)start)
		abort();
	close(empty_fd);
}

void fake_ebb_map_take(int memory_fd, uint64_t offset, uint64_t bytes)
{
	struct mapping mappings[MAX_MAPPINGS];
	uint64_t inode = fake_ebb_map_inode(memory_fd);
	size_t num = mappings_read(mappings);

	for (size_t i = 0; i < num; i++) {
		const struct mapping *m = &mappings[i];
		uint64_t from = m->offset, to = m->offset + (m->end - m->start);

		if (m->inode != inode)
			continue;
		from = from > offset ? from : offset;
		to = to < offset + bytes ? to : offset + bytes;
		if (from < to)
			range_cover(m->start + (from - m->offset), to - from);
	}
}

int fake_ebb_map_find(const void *addr, uint64_t *ret_inode, uint64_t *ret_offset)
{
	struct mapping mappings[MAX_MAPPINGS];
	size_t num = mappings_read(mappings);

	for (size_t i = 0; i < num; i++) {
		const struct mapping *m = &mappings[i];

		if ((uintptr_t)addr < m->start || (uintptr_t)addr >= m->end)
			continue;
		*ret_inode = m->inode;
		*ret_offset = m->offset + ((uintptr_t)addr - m->start);
		return 0;
	}
	return -ENOENT;
}
