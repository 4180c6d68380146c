// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files: see io_files.h. No request outlives its system call: a process that is killed has none on
 * its way when the next one reads what it left. Of an io_uring, some may still reach the disk then.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io_files.h"
#include "oltp-engine/src/base/read_all.h"
#include "oltp-engine/src/base/util.h"

static int real_open(void *ctx, const char *path, int flags, mode_t mode)
{
	int fd = open(path, flags, mode);

	(void)ctx;
	return fd < 0 ? -errno : fd;
}

static void real_close(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
}

static int real_lock(void *ctx, int fd)
{
	(void)ctx;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

static int real_size(void *ctx, int fd, uint64_t *ret_bytes)
{
	struct stat st;

	(void)ctx;
	if (fstat(fd, &st))
		return -errno;
	*ret_bytes = (uint64_t)st.st_size;
	/* Of a block device fstat does not know it. */
	if (S_ISBLK(st.st_mode) && ioctl(fd, BLKGETSIZE64, ret_bytes))
		return -errno;
	return 0;
}

static ssize_t real_pread(void *ctx, int fd, void *buffer, size_t size, uint64_t offset)
{
	(void)ctx;
	return read_all(fd, buffer, size, offset);
}

static ssize_t real_pwritev(void *ctx, int fd, const struct iovec *iov, int n, uint64_t offset)
{
	ssize_t done = pwritev(fd, iov, n, (off_t)offset);

	(void)ctx;
	return done < 0 ? -errno : done;
}

static int real_fdatasync(void *ctx, int fd)
{
	(void)ctx;
	return fdatasync(fd) ? -errno : 0;
}

static ssize_t write_then_sync(int fd, const struct iovec *iov, int n, uint64_t offset)
{
	ssize_t done = real_pwritev(NULL, fd, iov, n, offset);
	int rc = done < 0 ? 0 : real_fdatasync(NULL, fd);

	return rc ? rc : done;
}

static ssize_t real_pwritev_sync(void *ctx, int fd, const struct iovec *iov, int n, uint64_t offset)
{
	ssize_t done = pwritev2(fd, iov, n, (off_t)offset, RWF_DSYNC);

	(void)ctx;
	if (done >= 0)
		return done;
	/* A file system without it. */
	return errno == EOPNOTSUPP ? write_then_sync(fd, iov, n, offset) : -errno;
}

static int real_fallocate(void *ctx, int fd, uint64_t bytes)
{
	(void)ctx;
	if (!fallocate(fd, 0, 0, (off_t)bytes))
		return 0;
	/* A file system without fallocate: the file gets its length, and may lack room later. */
	if (errno != EOPNOTSUPP)
		return -errno;
	return ftruncate(fd, (off_t)bytes) ? -errno : 0;
}

static int real_rename(void *ctx, const char *from, const char *to)
{
	(void)ctx;
	return rename(from, to) ? -errno : 0;
}

static int real_unlink(void *ctx, const char *path)
{
	(void)ctx;
	return unlink(path) ? -errno : 0;
}

static int real_sync_dir(void *ctx, const char *dir)
{
	int rc, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)ctx;
	if (fd < 0)
		return -errno;
	rc = fsync(fd) ? -errno : 0;
	close(fd);
	return rc;
}

static int real_list(void *ctx, const char *path, void (*fn)(void *fn_ctx, const char *name),
		     void *fn_ctx)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int rc;

	(void)ctx;
	if (!dir)
		return -errno;
	while (errno = 0, (entry = readdir(dir)))
		fn(fn_ctx, entry->d_name);
	rc = -errno;
	closedir(dir);
	return rc;
}

static const struct io_ops real_ops = {
	.open = real_open,
	.close = real_close,
	.lock = real_lock,
	.size = real_size,
	.pread = real_pread,
	.pwritev = real_pwritev,
	.pwritev_sync = real_pwritev_sync,
	.fdatasync = real_fdatasync,
	.fallocate = real_fallocate,
	.rename = real_rename,
	.unlink = real_unlink,
	.sync_dir = real_sync_dir,
	.list = real_list,
};

struct io_files io_files_real(enum io_class class, struct io_meters *meters)
{
	return (struct io_files){ &real_ops, NULL, class, meters };
}

bool io_files_are_real(const struct io_files *io)
{
	return io->ops == &real_ops;
}

static void count_iov(const struct io_files *io, const struct iovec *iov, int n)
{
	size_t bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	io_count(io->meters, io->class, bytes);
}

/* Is the whole name of that format? *ret_number: its number. */
static bool name_parse(const char *name, const char *format, uint64_t *ret_number)
{
	unsigned long long number;
	char again[64];

	if (sscanf(name, format, &number) != 1)
		return false;
	snprintf(again, sizeof(again), format, number);
	*ret_number = number;
	return !strcmp(name, again);
}

struct listing {
	const char *format;
	uint64_t *numbers;
	size_t n, room;
	int rc;
};

static void listing_add(void *ctx, const char *name)
{
	struct listing *listing = ctx;
	uint64_t number;

	if (listing->rc || !name_parse(name, listing->format, &number))
		return;
	if (listing->n == listing->room) {
		size_t room = listing->room ? listing->room * 2 : 64;
		uint64_t *numbers = realloc(listing->numbers, room * sizeof(*numbers));

		if (!numbers) {
			listing->rc = -ENOMEM;
			return;
		}
		listing->numbers = numbers;
		listing->room = room;
	}
	listing->numbers[listing->n++] = number;
}

int io_list_numbers(const struct io_files *io, const char *dir, const char *format,
		    uint64_t **ret_numbers, size_t *ret_n)
{
	struct listing listing = { .format = format };
	int rc = io->ops->list(io->ctx, dir, listing_add, &listing);

	rc = rc ?: listing.rc;
	if (rc) {
		free(listing.numbers);
		return rc;
	}
	if (listing.n)
		qsort(listing.numbers, listing.n, sizeof(*listing.numbers), compare_u64);
	*ret_numbers = listing.numbers;
	*ret_n = listing.n;
	return 0;
}

int io_open_direct(const struct io_files *io, const char *path, int flags, mode_t mode)
{
	int fd = io->ops->open(io->ctx, path, flags | O_DIRECT, mode);

	return fd == -EINVAL ? io->ops->open(io->ctx, path, flags, mode) : fd;
}

ssize_t io_pwritev(const struct io_files *io, int fd, const struct iovec *iov, int n,
		   uint64_t offset)
{
	count_iov(io, iov, n);
	return io->ops->pwritev(io->ctx, fd, iov, n, offset);
}

ssize_t io_pwritev_sync(const struct io_files *io, int fd, const struct iovec *iov, int n,
			uint64_t offset)
{
	count_iov(io, iov, n);
	return io->ops->pwritev_sync(io->ctx, fd, iov, n, offset);
}

int io_write_all(const struct io_files *io, int fd, const void *data, size_t bytes,
		 uint64_t offset)
{
	while (bytes) {
		struct iovec iov = { (void *)(uintptr_t)data, bytes };
		ssize_t done = io_pwritev(io, fd, &iov, 1, offset);

		if (done == -EINTR)
			continue;
		if (done <= 0)
			return done ? (int)done : -EIO;
		data = (const char *)data + done;
		bytes -= (size_t)done;
		offset += (uint64_t)done;
	}
	return 0;
}

int io_transfer(struct io_meters *meters, enum io_class class, bool is_write, int fd, void *buffer,
		size_t bytes, uint64_t offset)
{
	ssize_t done;

	io_count(meters, class, bytes);
	done = is_write ? pwrite(fd, buffer, bytes, (off_t)offset) :
			  pread(fd, buffer, bytes, (off_t)offset);
	if (done < 0)
		return -errno;
	return (size_t)done == bytes ? 0 : -EIO;
}
