// SPDX-License-Identifier: GPL-2.0-or-later
/* See log_faults.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "log_faults.h"

#define SECTOR		512u
#define NAMES_MAX	256u
#define NAME_BYTES	64u
#define FDS_MAX		256u
#define PENDING_MAX	1024u
#define FD_FIRST	100000

/* What is in a file now, and what of it is on disk for sure. */
struct inode {
	uint8_t *now, *disk;
	uint64_t room;		/* of both; zeros behind the end */
	uint64_t size_now, size_disk;
	bool *dirty;		/* by sector */
	uint32_t refs;		/* names, on disk or not, descriptors and pending changes */
	bool is_locked;
};

struct name {
	char text[NAME_BYTES];
	struct inode *inode;
};

struct folder {
	struct name names[NAMES_MAX];
	uint32_t n;
};

/* A change of the folder that is not on disk yet. */
struct change {
	char from[NAME_BYTES], to[NAME_BYTES];	/* "": there is none */
	struct inode *inode;	/* a file that is made under the name to */
};

struct descriptor {
	struct inode *inode;	/* NULL: free */
	bool has_lock;
};

struct fault_disk {
	pthread_mutex_t lock;
	uint64_t rng;
	uint64_t calls;
	uint64_t power_at, fail_at, fail_n, short_at;
	int fail_rc;
	uint64_t room;
	bool is_dead;
	struct inode *self;	/* for the lock on the folder */
	struct folder now, disk;
	struct change changes[PENDING_MAX];
	uint32_t n_changes;
	struct descriptor fds[FDS_MAX];
};

static uint64_t draw(struct fault_disk *disk, uint64_t below)
{
	disk->rng ^= disk->rng << 13;
	disk->rng ^= disk->rng >> 7;
	disk->rng ^= disk->rng << 17;
	return disk->rng % below;
}

/* ---- files ---- */

static struct inode *inode_ref(struct inode *inode)
{
	inode->refs++;
	return inode;
}

static void inode_unref(struct inode *inode)
{
	if (!inode || --inode->refs)
		return;
	free(inode->now);
	free(inode->disk);
	free(inode->dirty);
	free(inode);
}

static void inode_grow(struct inode *inode, uint64_t bytes)
{
	uint64_t room = inode->room ? inode->room : 64 << 10;

	while (room < bytes)
		room *= 2;
	if (room == inode->room)
		return;
	inode->now = realloc(inode->now, room);
	inode->disk = realloc(inode->disk, room);
	inode->dirty = realloc(inode->dirty, room / SECTOR * sizeof(bool));
	memset(inode->now + inode->room, 0, room - inode->room);
	memset(inode->disk + inode->room, 0, room - inode->room);
	memset(inode->dirty + inode->room / SECTOR, 0, (room - inode->room) / SECTOR);
	inode->room = room;
}

static void inode_write(struct inode *inode, const void *data, uint64_t bytes, uint64_t offset)
{
	inode_grow(inode, offset + bytes);
	memcpy(inode->now + offset, data, bytes);
	for (uint64_t s = offset / SECTOR; bytes && s <= (offset + bytes - 1) / SECTOR; s++)
		inode->dirty[s] = true;
	if (offset + bytes > inode->size_now)
		inode->size_now = offset + bytes;
}

static void inode_truncate(struct inode *inode)
{
	for (uint64_t s = 0; s * SECTOR < inode->size_now; s++)
		inode->dirty[s] = true;
	if (inode->size_now)
		memset(inode->now, 0, inode->size_now);
	inode->size_now = 0;
}

/* all: everything is on disk; else a sector here, a sector there. */
static void inode_settle(struct fault_disk *disk, struct inode *inode, bool all)
{
	uint64_t size = inode->size_now > inode->size_disk ? inode->size_now : inode->size_disk;

	if (all || draw(disk, 2))
		inode->size_disk = inode->size_now;
	for (uint64_t s = 0; s * SECTOR < size; s++) {
		if (!inode->dirty[s])
			continue;
		inode->dirty[s] = false;
		if (all || (s * SECTOR < inode->size_disk && draw(disk, 2)))
			memcpy(inode->disk + s * SECTOR, inode->now + s * SECTOR, SECTOR);
	}
}

/* ---- the folder ---- */

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static struct name *name_find(struct folder *folder, const char *text)
{
	for (uint32_t i = 0; i < folder->n; i++) {
		if (!strcmp(folder->names[i].text, text))
			return &folder->names[i];
	}
	return NULL;
}

static void name_remove(struct folder *folder, const char *text)
{
	struct name *name = name_find(folder, text);

	if (!name)
		return;
	inode_unref(name->inode);
	*name = folder->names[--folder->n];
}

/* What the name was of before is gone. */
static void name_set(struct folder *folder, const char *text, struct inode *inode)
{
	struct name *name;

	inode_ref(inode);
	name_remove(folder, text);
	if (folder->n == NAMES_MAX)
		abort();
	name = &folder->names[folder->n++];
	strcpy(name->text, text);
	name->inode = inode;
}

static void change_apply(struct folder *folder, const struct change *change)
{
	struct inode *inode = change->inode;

	if (change->from[0]) {
		struct name *name = name_find(folder, change->from);

		if (!name)
			return;
		inode = inode_ref(name->inode);
		name_remove(folder, change->from);
	}
	if (change->to[0])
		name_set(folder, change->to, inode);
	if (change->from[0])
		inode_unref(inode);
}

static void change_make(struct fault_disk *disk, const char *from, const char *to,
			struct inode *inode)
{
	struct change *change;

	if (disk->n_changes == PENDING_MAX)
		abort();
	change = &disk->changes[disk->n_changes++];
	*change = (struct change){ .inode = inode ? inode_ref(inode) : NULL };
	if (from)
		strcpy(change->from, from);
	if (to)
		strcpy(change->to, to);
	change_apply(&disk->now, change);
}

static void changes_settle(struct fault_disk *disk, uint32_t n)
{
	for (uint32_t i = 0; i < disk->n_changes; i++) {
		if (i < n)
			change_apply(&disk->disk, &disk->changes[i]);
		inode_unref(disk->changes[i].inode);
	}
	disk->n_changes = 0;
}

/* ---- hooks ---- */

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
	struct name *name = name_find(&disk->now, base(path));
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
		inode_grow(inode, 1);
		change_make(disk, NULL, base(path), inode);
	}
	if (flags & O_TRUNC)
		inode_truncate(inode);
	disk->fds[fd] = (struct descriptor){ inode_ref(inode), false };
	return fd + FD_FIRST;
}

static int fault_open(void *ctx, const char *path, int flags, mode_t mode)
{
	struct fault_disk *disk = ctx;
	enum fate fate;
	int rc;

	(void)mode;
	pthread_mutex_lock(&disk->lock);
	fate = call(disk);
	rc = fate == FATE_WELL || fate == FATE_SHORT ? open_locked(disk, path, flags) :
						       failure(disk);
	pthread_mutex_unlock(&disk->lock);
	return rc;
}

static void fault_close(void *ctx, int fd)
{
	struct fault_disk *disk = ctx;
	struct descriptor *descriptor = &disk->fds[fd - FD_FIRST];

	pthread_mutex_lock(&disk->lock);
	if (descriptor->has_lock)
		descriptor->inode->is_locked = false;
	inode_unref(descriptor->inode);
	*descriptor = (struct descriptor){ NULL, false };
	pthread_mutex_unlock(&disk->lock);
}

static int fault_lock(void *ctx, int fd)
{
	struct fault_disk *disk = ctx;
	int rc = 0;

	pthread_mutex_lock(&disk->lock);
	if (inode_of(disk, fd)->is_locked)
		rc = -EBUSY;
	inode_of(disk, fd)->is_locked = true;
	disk->fds[fd - FD_FIRST].has_lock |= !rc;
	pthread_mutex_unlock(&disk->lock);
	return rc;
}

static int fault_size(void *ctx, int fd, uint64_t *ret_bytes)
{
	struct fault_disk *disk = ctx;
	int rc;

	pthread_mutex_lock(&disk->lock);
	rc = call(disk) >= FATE_FAILS ? failure(disk) : 0;
	if (!rc)
		*ret_bytes = inode_of(disk, fd)->size_now;
	pthread_mutex_unlock(&disk->lock);
	return rc;
}

static ssize_t fault_pread(void *ctx, int fd, void *buffer, size_t size, uint64_t offset)
{
	struct fault_disk *disk = ctx;
	struct inode *inode;
	ssize_t n = 0;

	pthread_mutex_lock(&disk->lock);
	inode = inode_of(disk, fd);
	if (call(disk) >= FATE_FAILS) {
		n = failure(disk);
	} else if (offset < inode->size_now) {
		n = (ssize_t)(size < inode->size_now - offset ? size : inode->size_now - offset);
		memcpy(buffer, inode->now + offset, (size_t)n);
	}
	pthread_mutex_unlock(&disk->lock);
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
		left = (1 + draw(disk, left / SECTOR - 1)) * SECTOR;
	for (int i = 0; i < n && left; i++) {
		uint64_t bytes = iov[i].iov_len < left ? iov[i].iov_len : left;

		inode_write(inode, iov[i].iov_base, bytes, offset + done);
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

	pthread_mutex_lock(&disk->lock);
	fate = call(disk);
	rc = fate == FATE_FAILS ? failure(disk) : write_locked(disk, fd, iov, n, offset, fate);
	if (fate == FATE_DIES)
		rc = failure(disk);
	else if (sync && rc >= 0)
		inode_settle(disk, inode_of(disk, fd), true);
	pthread_mutex_unlock(&disk->lock);
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

	pthread_mutex_lock(&disk->lock);
	rc = call(disk) >= FATE_FAILS ? failure(disk) : 0;
	if (!rc)
		inode_settle(disk, inode_of(disk, fd), true);
	pthread_mutex_unlock(&disk->lock);
	return rc;
}

static int fault_fallocate(void *ctx, int fd, uint64_t bytes)
{
	struct fault_disk *disk = ctx;
	struct inode *inode;
	int rc;

	pthread_mutex_lock(&disk->lock);
	inode = inode_of(disk, fd);
	rc = call(disk) >= FATE_FAILS ? failure(disk) : has_room(disk, inode, bytes) ? 0 : -ENOSPC;
	if (!rc && bytes > inode->size_now) {
		inode_grow(inode, bytes);
		inode->size_now = bytes;
	}
	pthread_mutex_unlock(&disk->lock);
	return rc;
}

/* Made or not, when power is lost meanwhile: changes_settle says. */
static int change_hook(struct fault_disk *disk, const char *from, const char *to)
{
	enum fate fate;
	int rc = 0;

	pthread_mutex_lock(&disk->lock);
	fate = call(disk);
	if (fate == FATE_FAILS)
		rc = failure(disk);
	else if (!name_find(&disk->now, from))
		rc = -ENOENT;
	else
		change_make(disk, from, to, NULL);
	if (fate == FATE_DIES)
		rc = failure(disk);
	pthread_mutex_unlock(&disk->lock);
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
	pthread_mutex_lock(&disk->lock);
	rc = call(disk) >= FATE_FAILS ? failure(disk) : 0;
	if (!rc)
		changes_settle(disk, disk->n_changes);
	pthread_mutex_unlock(&disk->lock);
	return rc;
}

static int fault_list(void *ctx, const char *dir, void (*fn)(void *fn_ctx, const char *name),
		      void *fn_ctx)
{
	struct fault_disk *disk = ctx;
	int rc;

	(void)dir;
	pthread_mutex_lock(&disk->lock);
	rc = call(disk) >= FATE_FAILS ? failure(disk) : 0;
	for (uint32_t i = 0; !rc && i < disk->now.n; i++)
		fn(fn_ctx, disk->now.names[i].text);
	pthread_mutex_unlock(&disk->lock);
	return rc;
}

const struct log_io_ops fault_disk_ops = {
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

/* ---- the test's side ---- */

struct fault_disk *fault_disk_create(uint64_t seed)
{
	struct fault_disk *disk = calloc(1, sizeof(*disk));

	pthread_mutex_init(&disk->lock, NULL);
	disk->rng = seed * 0x9e3779b97f4a7c15ull + 1;
	disk->self = calloc(1, sizeof(*disk->self));
	inode_ref(disk->self);
	fault_disk_calm(disk);
	return disk;
}

static void folder_clear(struct folder *folder)
{
	while (folder->n)
		name_remove(folder, folder->names[0].text);
}

void fault_disk_destroy(struct fault_disk *disk)
{
	changes_settle(disk, 0);
	folder_clear(&disk->now);
	folder_clear(&disk->disk);
	inode_unref(disk->self);
	pthread_mutex_destroy(&disk->lock);
	free(disk);
}

uint64_t fault_disk_calls(struct fault_disk *disk)
{
	uint64_t calls;

	pthread_mutex_lock(&disk->lock);
	calls = disk->calls;
	pthread_mutex_unlock(&disk->lock);
	return calls;
}

void fault_disk_lose_power_at(struct fault_disk *disk, uint64_t number)
{
	disk->power_at = number;
}

void fault_disk_fail_at(struct fault_disk *disk, uint64_t number, uint64_t n, int rc)
{
	disk->fail_at = number;
	disk->fail_n = n;
	disk->fail_rc = rc;
}

void fault_disk_short_at(struct fault_disk *disk, uint64_t number)
{
	disk->short_at = number;
}

void fault_disk_set_room(struct fault_disk *disk, uint64_t bytes)
{
	disk->room = bytes;
}

void fault_disk_calm(struct fault_disk *disk)
{
	disk->power_at = disk->fail_at = disk->short_at = FAULT_NEVER;
	disk->fail_n = 0;
	disk->fail_rc = 0;
	disk->calls = 0;
}

bool fault_disk_is_dead(struct fault_disk *disk)
{
	bool is_dead;

	pthread_mutex_lock(&disk->lock);
	is_dead = disk->is_dead;
	pthread_mutex_unlock(&disk->lock);
	return is_dead;
}

void fault_disk_restart(struct fault_disk *disk, bool lost_power)
{
	uint32_t n = lost_power ? (uint32_t)draw(disk, disk->n_changes + 1) : disk->n_changes;

	for (uint32_t i = 0; i < disk->now.n; i++)
		inode_settle(disk, disk->now.names[i].inode, !lost_power);
	for (uint32_t i = 0; i < disk->disk.n; i++)
		inode_settle(disk, disk->disk.names[i].inode, !lost_power);
	changes_settle(disk, n);
	folder_clear(&disk->now);
	for (uint32_t i = 0; i < disk->disk.n; i++) {
		struct inode *inode = disk->disk.names[i].inode;

		memcpy(inode->now, inode->disk, inode->room);
		inode->size_now = inode->size_disk;
		if (inode->size_now < inode->room)
			memset(inode->now + inode->size_now, 0, inode->room - inode->size_now);
		inode->is_locked = false;
		name_set(&disk->now, disk->disk.names[i].text, inode);
	}
	disk->is_dead = false;
	fault_disk_calm(disk);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static struct name *nth_name(struct fault_disk *disk, const char *prefix, uint32_t nth)
{
	qsort(disk->now.names, disk->now.n, sizeof(disk->now.names[0]), by_text);
	for (uint32_t i = 0; i < disk->now.n; i++) {
		if (!strncmp(disk->now.names[i].text, prefix, strlen(prefix)) && !nth--)
			return &disk->now.names[i];
	}
	return NULL;
}

uint32_t fault_disk_count(struct fault_disk *disk, const char *prefix)
{
	uint32_t n = 0;

	pthread_mutex_lock(&disk->lock);
	while (nth_name(disk, prefix, n))
		n++;
	pthread_mutex_unlock(&disk->lock);
	return n;
}

void fault_disk_damage(struct fault_disk *disk, const char *prefix, uint32_t nth, uint64_t offset)
{
	struct inode *inode;

	pthread_mutex_lock(&disk->lock);
	inode = nth_name(disk, prefix, nth)->inode;
	inode->now[offset] ^= 0x55;
	inode->disk[offset] ^= 0x55;
	pthread_mutex_unlock(&disk->lock);
}

void fault_disk_remove(struct fault_disk *disk, const char *prefix, uint32_t nth)
{
	struct name *name = nth_name(disk, prefix, nth);

	change_make(disk, name->text, NULL, NULL);
	changes_settle(disk, disk->n_changes);
}

struct fault_disk *fault_disk_copy(struct fault_disk *from, uint64_t seed)
{
	struct fault_disk *disk = fault_disk_create(seed);

	for (uint32_t i = 0; i < from->now.n; i++) {
		const struct name *name = &from->now.names[i];
		struct inode *inode = calloc(1, sizeof(*inode));

		inode_grow(inode, name->inode->size_now + 1);
		memcpy(inode->now, name->inode->now, name->inode->size_now);
		memcpy(inode->disk, name->inode->now, name->inode->size_now);
		inode->size_now = inode->size_disk = name->inode->size_now;
		name_set(&disk->now, name->text, inode);
		name_set(&disk->disk, name->text, inode);
	}
	return disk;
}
