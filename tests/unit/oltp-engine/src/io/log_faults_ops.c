// SPDX-License-Identifier: GPL-2.0-or-later
/* The hooks of the disk of log_faults.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "log_faults_disk.h"

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

enum fate {
	FATE_WELL,
	FATE_SHORT,
	FATE_FAILS,	/* nothing happens */
	FATE_DIES,	/* it happens, and nobody is told */
};

/* With the lock held. */
static enum fate call(struct fault_disk *disk)
{
	uint64_t number = disk->calls++;

	if (disk->is_dead)
		return FATE_FAILS;
	if (number >= disk->power_at) {
		disk->is_dead = true;
		return FATE_DIES;
	}
	if (number >= disk->fail_at && number - disk->fail_at < disk->fail_n)
		return FATE_FAILS;
	return number == disk->short_at ? FATE_SHORT : FATE_WELL;
}

static int failure(const struct fault_disk *disk)
{
	return disk->is_dead || !disk->fail_rc ? -EIO : disk->fail_rc;
}

static uint64_t used(const struct fault_disk *disk)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < disk->now.n; i++)
		bytes += disk->now.names[i].inode->size_now;
	return bytes;
}

static bool has_room(const struct fault_disk *disk, const struct inode *inode, uint64_t end)
{
	return !disk->room || end <= inode->size_now ||
	       used(disk) + end - inode->size_now <= disk->room;
}

static struct inode *inode_of(struct fault_disk *disk, int fd)
{
	return disk->fds[fd - FD_FIRST].inode;
}

static int open_locked(struct fault_disk *disk, const char *path, int flags)
{
	struct name *name = disk_name_find(&disk->now, base(path));
	struct inode *inode = flags & O_DIRECTORY ? disk->self : name ? name->inode : NULL;
	int fd = 0;

	if (inode && (flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if (!inode && !(flags & O_CREAT))
		return -ENOENT;
	while (fd < (int)FDS_MAX && disk->fds[fd].inode)
		fd++;
	if (fd == FDS_MAX)
		return -EMFILE;
	if (!inode) {
		inode = calloc(1, sizeof(*inode));
		disk_inode_grow(inode, 1);
		disk_change_make(disk, inode, base(path));
	}
	if (flags & O_TRUNC)
		disk_inode_truncate(inode);
	disk->fds[fd] = (struct descriptor){ disk_inode_ref(inode), false };
	return fd + FD_FIRST;
}

static int fault_open(void *ctx, const char *path, int flags, mode_t mode)
{
	struct fault_disk *disk = ctx;
	enum fate fate;
	int rc;

	(void)mode;
	disk_enter(disk);
	fate = call(disk);
	rc = fate == FATE_WELL || fate == FATE_SHORT ? open_locked(disk, path, flags) :
						       failure(disk);
	disk_leave(disk);
	return rc;
}

static void fault_close(void *ctx, int fd)
{
	struct fault_disk *disk = ctx;
	struct descriptor *descriptor = &disk->fds[fd - FD_FIRST];

	disk_enter(disk);
	if (descriptor->has_lock)
		descriptor->inode->is_locked = false;
	disk_inode_unref(descriptor->inode);
	*descriptor = (struct descriptor){ NULL, false };
	disk_leave(disk);
}

static int fault_lock(void *ctx, int fd)
{
	struct fault_disk *disk = ctx;
	int rc = 0;

	disk_enter(disk);
	if (inode_of(disk, fd)->is_locked)
		rc = -EBUSY;
	inode_of(disk, fd)->is_locked = true;
	disk->fds[fd - FD_FIRST].has_lock |= !rc;
	disk_leave(disk);
	return rc;
}

static int fault_size(void *ctx, int fd, uint64_t *ret_bytes)
{
	struct fault_disk *disk = ctx;
	int rc;

	disk_enter(disk);
	rc = call(disk) >= FATE_FAILS ? failure(disk) : 0;
	if (!rc)
		*ret_bytes = inode_of(disk, fd)->size_now;
	disk_leave(disk);
	return rc;
}

static ssize_t fault_pread(void *ctx, int fd, void *buffer, size_t size, uint64_t offset)
{
	struct fault_disk *disk = ctx;
	struct inode *inode;
	ssize_t n = 0;

	disk_enter(disk);
	inode = inode_of(disk, fd);
	if (call(disk) >= FATE_FAILS) {
		n = failure(disk);
	} else if (offset < inode->size_now) {
		n = (ssize_t)(size < inode->size_now - offset ? size : inode->size_now - offset);
		memcpy(buffer, inode->now + offset, (size_t)n);
	}
	disk_leave(disk);
	return n;
}

static ssize_t write_locked(struct fault_disk *disk, int fd, const struct iovec *iov, int n,
			    uint64_t offset, enum fate fate)
{
	struct inode *inode = inode_of(disk, fd);
	uint64_t left = 0, done = 0;

	for (int i = 0; i < n; i++)
		left += iov[i].iov_len;
	if (!has_room(disk, inode, offset + left))
		return -ENOSPC;
	if (fate == FATE_SHORT && left > SECTOR)
		left = (1 + disk_draw(disk, left / SECTOR - 1)) * SECTOR;
	for (int i = 0; i < n && left; i++) {
		uint64_t bytes = iov[i].iov_len < left ? iov[i].iov_len : left;

		disk_inode_write(inode, iov[i].iov_base, bytes, offset + done);
		done += bytes;
		left -= bytes;
	}
	return (ssize_t)done;
}

static ssize_t fault_write(struct fault_disk *disk, int fd, const struct iovec *iov, int n,
			   uint64_t offset, bool sync)
{
	enum fate fate;
	ssize_t rc;

	disk_enter(disk);
	fate = call(disk);
	rc = fate == FATE_FAILS ? failure(disk) : write_locked(disk, fd, iov, n, offset, fate);
	if (fate == FATE_DIES)
		rc = failure(disk);
	else if (sync && rc >= 0)
		disk_inode_settle(disk, inode_of(disk, fd), true);
	disk_leave(disk);
	return rc;
}

static ssize_t fault_pwritev(void *ctx, int fd, const struct iovec *iov, int n, uint64_t offset)
{
	return fault_write(ctx, fd, iov, n, offset, false);
}

static ssize_t fault_pwritev_sync(void *ctx, int fd, const struct iovec *iov, int n,
				  uint64_t offset)
{
	return fault_write(ctx, fd, iov, n, offset, true);
}

static int fault_fdatasync(void *ctx, int fd)
{
	struct fault_disk *disk = ctx;
	int rc;

	disk_enter(disk);
	rc = call(disk) >= FATE_FAILS ? failure(disk) : 0;
	if (!rc)
		disk_inode_settle(disk, inode_of(disk, fd), true);
	disk_leave(disk);
	return rc;
}

static int fault_fallocate(void *ctx, int fd, uint64_t bytes)
{
	struct fault_disk *disk = ctx;
	struct inode *inode;
	int rc;

	disk_enter(disk);
	inode = inode_of(disk, fd);
	rc = call(disk) >= FATE_FAILS ? failure(disk) : has_room(disk, inode, bytes) ? 0 : -ENOSPC;
	if (!rc && bytes > inode->size_now) {
		disk_inode_grow(inode, bytes);
		inode->size_now = bytes;
	}
	disk_leave(disk);
	return rc;
}

/* Made or not, when power is lost meanwhile: disk_changes_settle says. */
static int change_hook(struct fault_disk *disk, const char *from, const char *to)
{
	struct name *name;
	enum fate fate;
	int rc = 0;

	disk_enter(disk);
	fate = call(disk);
	name = disk_name_find(&disk->now, from);
	if (fate == FATE_FAILS)
		rc = failure(disk);
	else if (!name)
		rc = -ENOENT;
	else
		disk_change_make(disk, name->inode, to);
	if (fate == FATE_DIES)
		rc = failure(disk);
	disk_leave(disk);
	return rc;
}

static int fault_rename(void *ctx, const char *from, const char *to)
{
	return change_hook(ctx, base(from), base(to));
}

static int fault_unlink(void *ctx, const char *path)
{
	return change_hook(ctx, base(path), NULL);
}

static int fault_sync_dir(void *ctx, const char *dir)
{
	struct fault_disk *disk = ctx;
	int rc;

	(void)dir;
	disk_enter(disk);
	rc = call(disk) >= FATE_FAILS ? failure(disk) : 0;
	if (!rc)
		disk_changes_settle(disk, true);
	disk_leave(disk);
	return rc;
}

static int fault_list(void *ctx, const char *dir, void (*fn)(void *fn_ctx, const char *name),
		      void *fn_ctx)
{
	struct fault_disk *disk = ctx;
	int rc;

	(void)dir;
	disk_enter(disk);
	rc = call(disk) >= FATE_FAILS ? failure(disk) : 0;
	for (uint32_t i = 0; !rc && i < disk->now.n; i++)
		fn(fn_ctx, disk->now.names[i].text);
	disk_leave(disk);
	return rc;
}

const struct io_ops fault_disk_ops = {
	.open = fault_open,
	.close = fault_close,
	.lock = fault_lock,
	.size = fault_size,
	.pread = fault_pread,
	.pwritev = fault_pwritev,
	.pwritev_sync = fault_pwritev_sync,
	.fdatasync = fault_fdatasync,
	.fallocate = fault_fallocate,
	.rename = fault_rename,
	.unlink = fault_unlink,
	.sync_dir = fault_sync_dir,
	.list = fault_list,
};
