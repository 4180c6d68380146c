// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hooks of io_files.h for the files of a volume: see volume.h. Names and extents are looked up
 * under volume.lock; bytes are read and written without it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "volume_private.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* May anything be changed? */
static int write_check(const struct volume *volume)
{
	if (!volume->is_owner)
		return -EROFS;
	return atomic_load_explicit(&volume->is_stale, memory_order_relaxed) ? -ESTALE : 0;
}

/* With the lock. */
static int file_get(struct volume *volume, const char *name, int flags,
		    struct volume_file **ret_file)
{
	struct volume_file *file = volume_table_find(&volume->table, name);
	int rc = (flags & O_ACCMODE) == O_RDONLY ? 0 : write_check(volume);

	if (file && (flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if (!rc && !file)
		rc = flags & O_CREAT ? volume_table_create(&volume->table, name, &file) : -ENOENT;
	if (rc)
		return rc;
	if (flags & O_TRUNC)
		volume_table_cut(&volume->table, file);
	*ret_file = file;
	return 0;
}

static int open_locked(struct volume *volume, const char *path, int flags)
{
	struct volume_file *file = NULL;
	int fd = 0, rc = 0;

	while (fd < (int)VOLUME_FDS_MAX && volume->handles[fd].is_used)
		fd++;
	if (fd == VOLUME_FDS_MAX)
		return -EMFILE;
	if (!(flags & O_DIRECTORY))
		rc = file_get(volume, base_name(path), flags, &file);
	if (rc)
		return rc;
	if (file)
		volume_table_opened(file);
	volume->handles[fd] = (struct volume_handle){
		.is_used = true,
		.is_folder = flags & O_DIRECTORY,
		.can_write = (flags & O_ACCMODE) != O_RDONLY,
		.file = file,
	};
	return fd;
}

static int hook_open(void *ctx, const char *path, int flags, mode_t mode)
{
	struct volume *volume = ctx;
	int rc;

	(void)mode;
	pthread_mutex_lock(&volume->lock);
	rc = open_locked(volume, path, flags);
	pthread_mutex_unlock(&volume->lock);
	return rc;
}

static void hook_close(void *ctx, int fd)
{
	struct volume *volume = ctx;
	struct volume_handle *handle = &volume->handles[fd];

	pthread_mutex_lock(&volume->lock);
	if (handle->file)
		volume_table_closed(&volume->table, handle->file);
	if (handle->has_lock)
		volume->is_locked = false;
	*handle = (struct volume_handle){ 0 };
	pthread_mutex_unlock(&volume->lock);
}

/* Other processes are kept out by the lock on the device. */
static int hook_lock(void *ctx, int fd)
{
	struct volume *volume = ctx;
	struct volume_handle *handle = &volume->handles[fd];
	int rc = 0;

	pthread_mutex_lock(&volume->lock);
	if (!handle->is_folder)
		rc = -EINVAL;
	else if (volume->is_locked)
		rc = -EBUSY;
	else
		volume->is_locked = handle->has_lock = true;
	pthread_mutex_unlock(&volume->lock);
	return rc;
}

static int hook_size(void *ctx, int fd, uint64_t *ret_bytes)
{
	struct volume *volume = ctx;
	const struct volume_file *file = volume->handles[fd].file;

	if (!file)
		return -EISDIR;
	pthread_mutex_lock(&volume->lock);
	*ret_bytes = file->bytes;
	pthread_mutex_unlock(&volume->lock);
	return 0;
}

/* A part of a file that lies in one piece on the device. */
struct piece {
	uint64_t at;
	uint64_t bytes;
};

/* The piece at offset, up to so many bytes; 0 bytes: the file has no units there. */
static struct piece piece_get(struct volume *volume, const struct volume_file *file,
			      uint64_t offset, uint64_t bytes)
{
	struct piece piece;

	pthread_mutex_lock(&volume->lock);
	piece.at = volume_table_place(&volume->table, file, offset, &piece.bytes);
	pthread_mutex_unlock(&volume->lock);
	if (piece.bytes > bytes)
		piece.bytes = bytes;
	return piece;
}

static bool is_aligned(uint64_t x)
{
	return !(x & (VOLUME_BLOCK_BYTES - 1));
}

static int read_device(const struct volume *volume, void *buffer, size_t bytes, uint64_t at)
{
	ssize_t n = volume->io.ops->pread(volume->io.ctx, volume->fd, buffer, bytes, at);

	if (n < 0)
		return (int)n;
	return (size_t)n == bytes ? 0 : -EIO;
}

/* The blocks that a piece is in, in a buffer that the device can read to and write from. */
struct blocks {
	uint8_t *buffer;
	uint64_t at;		/* of the first one */
	size_t bytes;
	size_t lead;		/* where the piece begins in them */
};

/* As extents begin and end with a block, these belong to the same file. */
static int blocks_get(struct piece piece, struct blocks *ret_blocks)
{
	uint64_t from = piece.at & ~(uint64_t)(VOLUME_BLOCK_BYTES - 1);
	uint64_t to = (piece.at + piece.bytes + VOLUME_BLOCK_BYTES - 1) &
		      ~(uint64_t)(VOLUME_BLOCK_BYTES - 1);

	*ret_blocks = (struct blocks){ aligned_alloc(VOLUME_BLOCK_BYTES, to - from), from,
				       to - from, piece.at - from };
	return ret_blocks->buffer ? 0 : -ENOMEM;
}

static int read_piece(const struct volume *volume, struct piece piece, uint8_t *buffer)
{
	struct blocks blocks;
	int rc;

	if (is_aligned(piece.at) && is_aligned(piece.bytes) && is_aligned((uintptr_t)buffer))
		return read_device(volume, buffer, piece.bytes, piece.at);
	rc = blocks_get(piece, &blocks);
	if (rc)
		return rc;
	rc = read_device(volume, blocks.buffer, blocks.bytes, blocks.at);
	if (!rc)
		memcpy(buffer, blocks.buffer + blocks.lead, piece.bytes);
	free(blocks.buffer);
	return rc;
}

static ssize_t hook_pread(void *ctx, int fd, void *buffer, size_t size, uint64_t offset)
{
	struct volume *volume = ctx;
	const struct volume_file *file = volume->handles[fd].file;
	uint64_t bytes;
	size_t done = 0;
	int rc = hook_size(ctx, fd, &bytes);

	if (rc || offset >= bytes)
		return rc;
	if (size > bytes - offset)
		size = bytes - offset;
	while (!rc && done < size) {
		struct piece piece = piece_get(volume, file, offset + done, size - done);

		/* The file was made empty meanwhile. */
		if (!piece.bytes)
			break;
		rc = read_piece(volume, piece, (uint8_t *)buffer + done);
		done += piece.bytes;
	}
	return rc ? rc : (ssize_t)done;
}

static int grow_once(struct volume *volume, struct volume_file *file, uint64_t bytes,
		     uint64_t *ret_version)
{
	uint64_t before;
	int rc;

	pthread_mutex_lock(&volume->lock);
	before = volume->table.version;
	rc = volume_table_grow(&volume->table, file, bytes);
	*ret_version = volume->table.version;
	pthread_mutex_unlock(&volume->lock);
	if (rc || *ret_version == before)
		return rc;
	/* Another owner may have given these units to other files. */
	return volume_check_owner(volume);
}

/*
 * Units for the file's first bytes. Units that were given up are free only once that is on disk
 * (V2), so it is written if there are too few others.
 */
static int grow(struct volume *volume, struct volume_file *file, uint64_t bytes)
{
	uint64_t version;
	int rc = grow_once(volume, file, bytes, &version);

	if (rc != -ENOSPC)
		return rc;
	rc = volume_commit(volume, version);
	return rc ? rc : grow_once(volume, file, bytes, &version);
}

static ssize_t write_device(const struct volume *volume, const struct iovec *iov, int n,
			    uint64_t at, bool sync)
{
	const struct io_ops *ops = volume->io.ops;

	return (sync ? ops->pwritev_sync : ops->pwritev)(volume->io.ctx, volume->fd, iov, n, at);
}

/* Bytes of the first and the last block that are not written stay as they are. */
static ssize_t write_blocks(const struct volume *volume, struct piece piece,
			    const struct iovec *iov, bool sync)
{
	struct blocks blocks;
	struct iovec all;
	size_t done = 0;
	ssize_t rc = blocks_get(piece, &blocks);

	if (rc)
		return rc;
	rc = read_device(volume, blocks.buffer, VOLUME_BLOCK_BYTES, blocks.at);
	if (!rc && blocks.bytes > VOLUME_BLOCK_BYTES)
		rc = read_device(volume, blocks.buffer + blocks.bytes - VOLUME_BLOCK_BYTES,
				 VOLUME_BLOCK_BYTES, blocks.at + blocks.bytes - VOLUME_BLOCK_BYTES);
	for (; !rc && done < piece.bytes; iov++) {
		size_t bytes = iov->iov_len < piece.bytes - done ? iov->iov_len :
								   piece.bytes - done;

		memcpy(blocks.buffer + blocks.lead + done, iov->iov_base, bytes);
		done += bytes;
	}
	all = (struct iovec){ blocks.buffer, blocks.bytes };
	if (!rc)
		rc = write_device(volume, &all, 1, blocks.at, sync);
	free(blocks.buffer);
	if (rc < 0)
		return rc;
	/* Of what the device took, the part that is the caller's. */
	rc = rc > (ssize_t)blocks.lead ? rc - (ssize_t)blocks.lead : 0;
	return rc < (ssize_t)piece.bytes ? rc : (ssize_t)piece.bytes;
}

/* As much as lies in one piece, or less: a writer has to expect that anyway. */
static ssize_t write_piece(const struct volume *volume, struct piece piece,
			   const struct iovec *iov, int n, bool sync)
{
	bool are_aligned = is_aligned(piece.at) && is_aligned(piece.bytes);
	uint64_t bytes = 0;
	int whole = 0;

	for (; whole < n && bytes + iov[whole].iov_len <= piece.bytes; whole++) {
		are_aligned &= is_aligned((uintptr_t)iov[whole].iov_base) &&
			       is_aligned(iov[whole].iov_len);
		bytes += iov[whole].iov_len;
	}
	if (!whole) {
		struct iovec first = { iov[0].iov_base, piece.bytes };

		are_aligned &= is_aligned((uintptr_t)iov[0].iov_base);
		return are_aligned ? write_device(volume, &first, 1, piece.at, sync) :
				     write_blocks(volume, piece, iov, sync);
	}
	if (are_aligned)
		return write_device(volume, iov, whole, piece.at, sync);
	return write_blocks(volume, piece, iov, sync);
}

static ssize_t write_file(struct volume *volume, int fd, const struct iovec *iov, int n,
			  uint64_t offset, bool sync)
{
	struct volume_file *file = volume->handles[fd].file;
	uint64_t bytes = 0, grown;
	ssize_t done;
	int rc;

	if (!file || !volume->handles[fd].can_write)
		return -EBADF;
	rc = write_check(volume);
	for (int i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	if (rc || !bytes)
		return rc;
	rc = grow(volume, file, offset + bytes);
	if (rc)
		return rc;
	done = write_piece(volume, piece_get(volume, file, offset, bytes), iov, n, sync);
	if (done <= 0)
		return done;
	pthread_mutex_lock(&volume->lock);
	volume_table_extend(&volume->table, file, offset + (uint64_t)done);
	grown = file->grown;
	pthread_mutex_unlock(&volume->lock);
	rc = sync ? volume_commit(volume, grown) : 0;
	return rc ? rc : done;
}

static ssize_t hook_pwritev(void *ctx, int fd, const struct iovec *iov, int n, uint64_t offset)
{
	return write_file(ctx, fd, iov, n, offset, false);
}

static ssize_t hook_pwritev_sync(void *ctx, int fd, const struct iovec *iov, int n,
				 uint64_t offset)
{
	return write_file(ctx, fd, iov, n, offset, true);
}

static int hook_fdatasync(void *ctx, int fd)
{
	struct volume *volume = ctx;
	const struct volume_file *file = volume->handles[fd].file;
	uint64_t grown = 0;
	int rc = volume->io.ops->fdatasync(volume->io.ctx, volume->fd);

	if (rc || !volume->is_owner || !file)
		return rc;
	pthread_mutex_lock(&volume->lock);
	grown = file->grown;
	pthread_mutex_unlock(&volume->lock);
	return volume_commit(volume, grown);
}

static int hook_fallocate(void *ctx, int fd, uint64_t bytes)
{
	struct volume *volume = ctx;
	struct volume_file *file = volume->handles[fd].file;
	int rc;

	if (!file || !volume->handles[fd].can_write)
		return -EBADF;
	rc = write_check(volume) ?: grow(volume, file, bytes);
	if (rc)
		return rc;
	pthread_mutex_lock(&volume->lock);
	volume_table_extend(&volume->table, file, bytes);
	pthread_mutex_unlock(&volume->lock);
	return 0;
}

static int hook_rename(void *ctx, const char *from, const char *to)
{
	struct volume *volume = ctx;
	struct volume_file *file;
	int rc = write_check(volume);

	if (rc)
		return rc;
	pthread_mutex_lock(&volume->lock);
	file = volume_table_find(&volume->table, base_name(from));
	rc = file ? volume_table_rename(&volume->table, file, base_name(to)) : -ENOENT;
	pthread_mutex_unlock(&volume->lock);
	return rc;
}

static int hook_unlink(void *ctx, const char *path)
{
	struct volume *volume = ctx;
	struct volume_file *file;
	int rc = write_check(volume);

	if (rc)
		return rc;
	pthread_mutex_lock(&volume->lock);
	file = volume_table_find(&volume->table, base_name(path));
	if (file)
		volume_table_remove(&volume->table, file);
	pthread_mutex_unlock(&volume->lock);
	return file ? 0 : -ENOENT;
}

static int hook_sync_dir(void *ctx, const char *dir)
{
	struct volume *volume = ctx;
	uint64_t version;

	(void)dir;
	if (!volume->is_owner)
		return 0;
	pthread_mutex_lock(&volume->lock);
	version = volume->table.version;
	pthread_mutex_unlock(&volume->lock);
	return volume_commit(volume, version);
}

static int hook_list(void *ctx, const char *dir, void (*fn)(void *fn_ctx, const char *name),
		     void *fn_ctx)
{
	struct volume *volume = ctx;

	(void)dir;
	pthread_mutex_lock(&volume->lock);
	for (const struct volume_file *file = volume->table.files; file; file = file->next) {
		if (file->name[0])
			fn(fn_ctx, file->name);
	}
	pthread_mutex_unlock(&volume->lock);
	return 0;
}

const struct io_ops volume_ops = {
	.open = hook_open,
	.close = hook_close,
	.lock = hook_lock,
	.size = hook_size,
	.pread = hook_pread,
	.pwritev = hook_pwritev,
	.pwritev_sync = hook_pwritev_sync,
	.fdatasync = hook_fdatasync,
	.fallocate = hook_fallocate,
	.rename = hook_rename,
	.unlink = hook_unlink,
	.sync_dir = hook_sync_dir,
	.list = hook_list,
};

int volume_device_fd(const struct volume *volume)
{
	return volume->fd;
}

int volume_device_offset(struct volume *volume, int fd, uint64_t offset, uint64_t *ret_offset)
{
	struct piece piece = piece_get(volume, volume->handles[fd].file, offset, UINT64_MAX);

	if (!piece.bytes)
		return -ENXIO;
	*ret_offset = piece.at;
	return 0;
}
