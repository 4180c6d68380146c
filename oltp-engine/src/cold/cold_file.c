// SPDX-License-Identifier: GPL-2.0-or-later
/* See cold_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cold_file.h"

/* Space is asked for in such steps, so that writing does not wait for the file system's books. */
#define GROW_BYTES	(64ull << 20)
#define ALIGN_DEFAULT	4096u

/* Where there are no nameless files: one that loses its name at once. */
static int open_unlinked(const char *dir)
{
	char path[4096];
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/oltp-cold-XXXXXX", dir) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC | O_DIRECT);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static uint32_t direct_align(int fd)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) ||
	    !(stx.stx_mask & STATX_DIOALIGN) || !stx.stx_dio_offset_align)
		return ALIGN_DEFAULT;
	return stx.stx_dio_offset_align > stx.stx_dio_mem_align ? stx.stx_dio_offset_align :
								  stx.stx_dio_mem_align;
}

int cold_file_open(struct cold_file *file, const char *dir, uint64_t bytes_max)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);

	if (fd < 0)
		fd = errno == EOPNOTSUPP || errno == EISDIR ? open_unlinked(dir) : -errno;
	if (fd < 0)
		return fd;
	*file = (struct cold_file){ .fd = fd, .align = direct_align(fd), .bytes_max = bytes_max };
	return 0;
}

void cold_file_close(struct cold_file *file)
{
	close(file->fd);
}

static int grow(struct cold_file *file)
{
	uint64_t bytes = GROW_BYTES;

	if (file->bytes_max && file->bytes_max - file->bytes < bytes)
		bytes = (file->bytes_max - file->bytes) & ~(COLD_EXTENT_BYTES - 1ull);
	/* On a disk that is nearly full, less may still fit. */
	for (; bytes >= COLD_EXTENT_BYTES; bytes /= 2) {
		if (!fallocate(file->fd, 0, (off_t)file->bytes, (off_t)bytes)) {
			file->bytes += bytes & ~(COLD_EXTENT_BYTES - 1ull);
			return 0;
		}
		if (errno == EOPNOTSUPP &&
		    !ftruncate(file->fd, (off_t)(file->bytes + bytes))) {
			file->bytes += bytes & ~(COLD_EXTENT_BYTES - 1ull);
			return 0;
		}
		if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)
			return -errno;
	}
	return -ENOSPC;
}

int cold_file_grow(struct cold_file *file)
{
	int rc = grow(file);

	file->is_full = rc != 0;
	return rc;
}

uint64_t cold_file_extents_max(const struct cold_file *file)
{
	if (file->is_full)
		return file->bytes / COLD_EXTENT_BYTES;
	return (file->bytes_max ?: UINT64_MAX) / COLD_EXTENT_BYTES;
}
