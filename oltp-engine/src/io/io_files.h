/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All that log, checkpoint and recovery do to files. Tests put hooks of their own in between, which
 * drop unsynced writes, tear writes, or fail. Paths are whole paths. Errors are -errno. Any thread
 * may call any hook but pwritev_sync, which is the log thread's alone.
 */
#ifndef OLTP_IO_FILES_H
#define OLTP_IO_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "io_class.h"

struct io_ops {
	/* As open(2); -EINVAL: O_DIRECT was asked for, and the file system does not have it. */
	int (*open)(void *ctx, const char *path, int flags, mode_t mode);
	void (*close)(void *ctx, int fd);
	/* For this process alone, until it is closed; -EBUSY: another one has it. */
	int (*lock)(void *ctx, int fd);
	int (*size)(void *ctx, int fd, uint64_t *ret_bytes);
	/* All of size bytes, less only at the end of the file: returns how many. */
	ssize_t (*pread)(void *ctx, int fd, void *buffer, size_t size, uint64_t offset);
	/* Returns how many bytes, which may be fewer; those are not on disk before a sync. */
	ssize_t (*pwritev)(void *ctx, int fd, const struct iovec *iov, int n, uint64_t offset);
	/* pwritev and fdatasync in one; what it returns is on disk. */
	ssize_t (*pwritev_sync)(void *ctx, int fd, const struct iovec *iov, int n, uint64_t offset);
	int (*fdatasync)(void *ctx, int fd);
	/* Room for the file's first bytes, so that writing them cannot fail for lack of it. */
	int (*fallocate)(void *ctx, int fd, uint64_t bytes);
	int (*rename)(void *ctx, const char *from, const char *to);
	int (*unlink)(void *ctx, const char *path);
	/* Makes names that were created, changed or removed durable. */
	int (*sync_dir)(void *ctx, const char *dir);
	/* Each name in the folder, in any order; fn must not call hooks. */
	int (*list)(void *ctx, const char *dir, void (*fn)(void *fn_ctx, const char *name),
		    void *fn_ctx);
};

struct io_files {
	const struct io_ops *ops;
	void *ctx;
	enum io_class class;		/* of what is read and written through it */
	struct io_meters *meters;	/* may be NULL */
};

/* The same files for another class. */
static inline struct io_files io_files_as(const struct io_files *io, enum io_class class)
{
	return (struct io_files){ io->ops, io->ctx, class, io->meters };
}

/* Counts the request and calls the hook of that name. */
static inline ssize_t io_pread(const struct io_files *io, int fd, void *buffer, size_t size,
			       uint64_t offset)
{
	io_count(io->meters, io->class, size);
	return io->ops->pread(io->ctx, fd, buffer, size, offset);
}

ssize_t io_pwritev(const struct io_files *io, int fd, const struct iovec *iov, int n,
		   uint64_t offset);
ssize_t io_pwritev_sync(const struct io_files *io, int fd, const struct iovec *iov, int n,
			uint64_t offset);

/* Those of the machine. meters: may be NULL. */
struct io_files io_files_real(enum io_class class, struct io_meters *meters);

/* Are its descriptors those of the machine? */
bool io_files_are_real(const struct io_files *io);

/*
 * The numbers of all files in the folder with a name of the format, which has one number
 * (%016llx): ascending, and for free(). Errors: -ENOMEM, those of reading a folder.
 */
int io_list_numbers(const struct io_files *io, const char *dir, const char *format,
		    uint64_t **ret_numbers, size_t *ret_n);

/* With O_DIRECT, or without where the file system does not have that. The descriptor or -errno. */
int io_open_direct(const struct io_files *io, const char *path, int flags, mode_t mode);

/* Writes all of it, however many calls that takes. -EIO: a write wrote nothing. */
int io_write_all(const struct io_files *io, int fd, const void *data, size_t bytes,
		 uint64_t offset);

/*
 * Makes one request to an open file and waits until all of it is done. Errors: those of pread(2)
 * and pwrite(2), -EIO: less was read or written.
 */
int io_transfer(struct io_meters *meters, enum io_class class, bool is_write, int fd, void *buffer,
		size_t bytes, uint64_t offset);

#endif
