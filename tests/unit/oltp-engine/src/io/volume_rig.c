// SPDX-License-Identifier: GPL-2.0-or-later
/* See volume_rig.h. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/src/io/volume_format.h"
#include "volume_rig.h"

struct fault_disk *volume_empty;

/* Whatever is read or written must be whole blocks, in memory as on the device. */
static void check_block(const void *at, uint64_t bytes, uint64_t offset)
{
	assert_int_equal((uintptr_t)at % VOLUME_BLOCK_BYTES, 0);
	assert_int_equal(bytes % VOLUME_BLOCK_BYTES, 0);
	assert_int_equal(offset % VOLUME_BLOCK_BYTES, 0);
}

static ssize_t strict_pread(void *ctx, int fd, void *buffer, size_t size, uint64_t offset)
{
	check_block(buffer, size, offset);
	return fault_disk_ops.pread(ctx, fd, buffer, size, offset);
}

static ssize_t strict_pwritev(void *ctx, int fd, const struct iovec *iov, int n, uint64_t offset)
{
	for (int i = 0; i < n; i++)
		check_block(iov[i].iov_base, iov[i].iov_len, offset);
	return fault_disk_ops.pwritev(ctx, fd, iov, n, offset);
}

static ssize_t strict_pwritev_sync(void *ctx, int fd, const struct iovec *iov, int n,
				   uint64_t offset)
{
	for (int i = 0; i < n; i++)
		check_block(iov[i].iov_base, iov[i].iov_len, offset);
	return fault_disk_ops.pwritev_sync(ctx, fd, iov, n, offset);
}

static struct io_ops strict_ops;

struct io_files volume_rig_files(struct fault_disk *disk)
{
	return (struct io_files){ &strict_ops, disk, IO_LOG, NULL };
}

int volume_rig_open(struct fault_disk *disk, bool is_owner, struct volume **ret_volume)
{
	struct io_files io = volume_rig_files(disk);

	return volume_open(&io, VOLUME_DEVICE, is_owner, ret_volume);
}

/* Of that length, full of what a disk was used for before. */
struct fault_disk *volume_rig_disk(uint64_t bytes, uint64_t seed, bool is_zero)
{
	struct fault_disk *disk = fault_disk_create(seed);
	uint64_t *data = calloc(1, bytes);
	int fd = fault_disk_ops.open(disk, VOLUME_DEVICE, O_RDWR | O_CREAT, 0600);
	struct iovec iov = { data, bytes };

	for (uint64_t i = 0; !is_zero && i < bytes / sizeof(*data); i++)
		data[i] = i * 0x9e3779b97f4a7c15ull + seed;
	assert_int_equal(fault_disk_ops.pwritev(disk, fd, &iov, 1, 0), bytes);
	assert_int_equal(fault_disk_ops.fdatasync(disk, fd), 0);
	assert_int_equal(fault_disk_ops.sync_dir(disk, "/disk"), 0);
	fault_disk_ops.close(disk, fd);
	free(data);
	fault_disk_calm(disk);
	return disk;
}

static struct fault_disk *volume_make(uint64_t bytes)
{
	struct fault_disk *disk = volume_rig_disk(bytes, 1, false);
	struct io_files io = volume_rig_files(disk);

	assert_int_equal(volume_format(&io, VOLUME_DEVICE, true), 0);
	fault_disk_calm(disk);
	return disk;
}

int volume_rig_setup(void **state)
{
	(void)state;
	strict_ops = fault_disk_ops;
	strict_ops.pread = strict_pread;
	strict_ops.pwritev = strict_pwritev;
	strict_ops.pwritev_sync = strict_pwritev_sync;
	volume_empty = volume_make(VOLUME_BYTES_MIN);
	return 0;
}

int volume_rig_teardown(void **state)
{
	(void)state;
	fault_disk_destroy(volume_empty);
	return 0;
}

int volume_rig_file(struct volume *volume, const char *name, int flags)
{
	return volume_ops.open(volume, name, flags | O_CLOEXEC, 0600);
}

void volume_rig_put(struct volume *volume, const char *name, const char *text)
{
	int fd = volume_rig_file(volume, name, O_RDWR | O_CREAT | O_TRUNC);
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };

	assert_true(fd >= 0);
	assert_int_equal(volume_ops.pwritev_sync(volume, fd, &iov, 1, 0), strlen(text));
	volume_ops.close(volume, fd);
}

void volume_rig_check(struct volume *volume, const char *name, const char *text)
{
	int fd = volume_rig_file(volume, name, O_RDONLY);
	char found[128] = "";
	uint64_t bytes;

	assert_true(fd >= 0);
	assert_int_equal(volume_ops.size(volume, fd, &bytes), 0);
	assert_int_equal(bytes, strlen(text));
	assert_int_equal(volume_ops.pread(volume, fd, found, sizeof(found), 0), bytes);
	assert_string_equal(found, text);
	assert_int_equal(volume_ops.pread(volume, fd, found, sizeof(found), bytes), 0);
	volume_ops.close(volume, fd);
}

