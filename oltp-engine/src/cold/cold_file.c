// SPDX-License-Identifier: GPL-2.0-or-later
/* See cold_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cold_file.h"
#include "oltp-engine/src/io/volume.h"

/* The file grows in such steps, so that writes do not wait for the file system to find space. */
#define GROW_BYTES	(64ull << 20)
#define ALIGN_DEFAULT	4096u

/* For file systems without nameless files: a file that loses its name at once. */
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

uint32_t cold_file_align(int fd)
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
	*file = (struct cold_file){
		.fd = fd,
		.align = cold_file_align(fd),
		.bytes_max = bytes_max,
	};
	return 0;
}

int cold_file_discard(struct volume *volume)
{
	int rc = volume_ops.unlink(volume, COLD_FILE_NAME);

	return rc == -ENOENT ? 0 : rc;
}

int cold_file_open_in_volume(struct cold_file *file, struct volume *volume, uint64_t bytes_max)
{
	struct oltp_volume_info info;
	int fd = volume_ops.open(volume, COLD_FILE_NAME, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return fd;
	volume_info_read(volume, &info);
	*file = (struct cold_file){
		.fd = volume_device_fd(volume),
		.volume = volume,
		.volume_fd = fd,
		.life = info.generation,
		.align = cold_file_align(volume_device_fd(volume)),
		/* The log must not lack what cold records took. */
		.bytes_max = bytes_max ?: info.bytes / 2,
	};
	return 0;
}

void cold_file_close(struct cold_file *file)
{
	if (file->volume)
		volume_ops.close(file->volume, file->volume_fd);
	else
		close(file->fd);
}

/* In a volume the extents are the file's for other nodes, too, once the books are written. */
static int allocate(struct cold_file *file, uint64_t bytes)
{
	const uint64_t end = file->bytes + bytes;

	if (file->volume)
		return volume_ops.fallocate(file->volume, file->volume_fd, end) ?:
		       volume_ops.sync_dir(file->volume, "");
	if (!fallocate(file->fd, 0, (off_t)file->bytes, (off_t)bytes) ||
	    (errno == EOPNOTSUPP && !ftruncate(file->fd, (off_t)end)))
		return 0;
	return -errno;
}

static int grow(struct cold_file *file)
{
	uint64_t bytes = GROW_BYTES;

	if (file->bytes_max && file->bytes_max - file->bytes < bytes)
		bytes = (file->bytes_max - file->bytes) & ~(COLD_EXTENT_BYTES - 1ull);
	/* On a disk that is nearly full, less may still fit. */
	for (; bytes >= COLD_EXTENT_BYTES; bytes /= 2) {
		int rc = allocate(file, bytes);

		if (!rc) {
			file->bytes += bytes & ~(COLD_EXTENT_BYTES - 1ull);
			return 0;
		}
		if (rc != -ENOSPC && rc != -EDQUOT && rc != -EFBIG)
			return rc;
	}
	return -ENOSPC;
}

int cold_file_grow(struct cold_file *file)
{
	int rc = grow(file);

	file->is_full = rc != 0;
	return rc;
}

int cold_file_place(const struct cold_file *file, uint64_t number, uint64_t *ret_offset)
{
	if (file->volume)
		return volume_device_offset(file->volume, file->volume_fd,
					    number * COLD_EXTENT_BYTES, ret_offset);
	*ret_offset = number * COLD_EXTENT_BYTES;
	return 0;
}

uint64_t cold_file_extents_max(const struct cold_file *file)
{
	if (file->is_full)
		return file->bytes / COLD_EXTENT_BYTES;
	return (file->bytes_max ?: UINT64_MAX) / COLD_EXTENT_BYTES;
}
