// SPDX-License-Identifier: GPL-2.0-or-later
/* See power_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "power_file.h"

#define SECTOR	512u

/* What was there before a write that was not synced. */
struct before {
	struct before *older;
	uint64_t offset;
	uint64_t bytes;
	uint8_t data[];
};

enum power { POWER_ON, POWER_FAILING, POWER_OFF };

struct power_file {
	const struct io_ops *real;
	int fd;			/* of its own */
	pthread_mutex_t lock;	/* everything below */
	enum power power;
	uint64_t random, n_taken_back;
	struct before *newest;
};

struct power_file *power_file_create(const char *path, uint64_t seed)
{
	struct power_file *file = calloc(1, sizeof(*file));

	assert_non_null(file);
	file->real = io_files_real(IO_LOG, NULL).ops;
	file->random = seed * 0x9e3779b97f4a7c15ull + 1;
	file->fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(file->fd >= 0);
	pthread_mutex_init(&file->lock, NULL);
	return file;
}

/* All that was written is on disk. */
static void settle(struct power_file *file)
{
	struct before *before;

	while ((before = file->newest)) {
		file->newest = before->older;
		free(before);
	}
}

void power_file_destroy(struct power_file *file)
{
	if (!file)
		return;
	settle(file);
	close(file->fd);
	pthread_mutex_destroy(&file->lock);
	free(file);
}

void power_file_lose_power(struct power_file *file)
{
	pthread_mutex_lock(&file->lock);
	if (file->power == POWER_ON)
		file->power = POWER_FAILING;
	pthread_mutex_unlock(&file->lock);
}

static bool draw(struct power_file *file)
{
	file->random ^= file->random << 13;
	file->random ^= file->random >> 7;
	file->random ^= file->random << 17;
	return file->random >> 32 & 1;
}

/* Of two writes to one sector either may be there, or none: the newest is taken back first. */
static void take_back(struct power_file *file)
{
	for (const struct before *b = file->newest; b; b = b->older) {
		for (uint64_t at = 0; at < b->bytes; at += SECTOR) {
			if (draw(file))
				continue;
			assert_int_equal(pwrite(file->fd, b->data + at, SECTOR,
						(off_t)(b->offset + at)), SECTOR);
			file->n_taken_back++;
		}
	}
	settle(file);
}

void power_file_restart(struct power_file *file, bool lost_power)
{
	pthread_mutex_lock(&file->lock);
	if (lost_power)
		take_back(file);
	file->power = POWER_ON;
	pthread_mutex_unlock(&file->lock);
}

uint64_t power_file_taken_back(struct power_file *file)
{
	uint64_t n;

	pthread_mutex_lock(&file->lock);
	n = file->n_taken_back;
	pthread_mutex_unlock(&file->lock);
	return n;
}

/* A call that writes nothing. With the lock. */
static bool fails(struct power_file *file)
{
	if (file->power == POWER_FAILING)
		file->power = POWER_OFF;
	return file->power == POWER_OFF;
}

static bool fails_now(struct power_file *file)
{
	bool rc;

	pthread_mutex_lock(&file->lock);
	rc = fails(file);
	pthread_mutex_unlock(&file->lock);
	return rc;
}

static int power_open(void *ctx, const char *path, int flags, mode_t mode)
{
	struct power_file *file = ctx;

	return fails_now(file) ? -EIO : file->real->open(NULL, path, flags, mode);
}

static void power_close(void *ctx, int fd)
{
	struct power_file *file = ctx;

	file->real->close(NULL, fd);
}

static int power_lock(void *ctx, int fd)
{
	struct power_file *file = ctx;

	return file->real->lock(NULL, fd);
}

static int power_size(void *ctx, int fd, uint64_t *ret_bytes)
{
	struct power_file *file = ctx;

	return fails_now(file) ? -EIO : file->real->size(NULL, fd, ret_bytes);
}

static ssize_t power_pread(void *ctx, int fd, void *buffer, size_t size, uint64_t offset)
{
	struct power_file *file = ctx;

	return fails_now(file) ? -EIO : file->real->pread(NULL, fd, buffer, size, offset);
}

/* On threads of the engine, where cmocka would end the program without a word. */
static void must(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "power_file: %s\n", what);
	abort();
}

static void remember(struct power_file *file, const struct iovec *iov, int n, uint64_t offset)
{
	struct before *before;
	uint64_t bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	must(bytes % SECTOR == 0 && offset % SECTOR == 0, "a write of parts of a sector");
	before = malloc(sizeof(*before) + bytes);
	must(before, "no memory");
	*before = (struct before){ .older = file->newest, .offset = offset, .bytes = bytes };
	must(pread(file->fd, before->data, bytes, (off_t)offset) == (ssize_t)bytes,
	     "what a write replaces cannot be read");
	file->newest = before;
}

static ssize_t write_file(struct power_file *file, int fd, const struct iovec *iov, int n,
			  uint64_t offset, bool sync)
{
	ssize_t rc = -EIO;

	pthread_mutex_lock(&file->lock);
	if (file->power != POWER_OFF) {
		remember(file, iov, n, offset);
		rc = file->real->pwritev(NULL, fd, iov, n, offset);
	}
	if (fails(file))
		rc = -EIO;
	else if (sync && rc >= 0)
		settle(file);
	pthread_mutex_unlock(&file->lock);
	return rc;
}

static ssize_t power_pwritev(void *ctx, int fd, const struct iovec *iov, int n, uint64_t offset)
{
	return write_file(ctx, fd, iov, n, offset, false);
}

static ssize_t power_pwritev_sync(void *ctx, int fd, const struct iovec *iov, int n,
				  uint64_t offset)
{
	return write_file(ctx, fd, iov, n, offset, true);
}

static int power_fdatasync(void *ctx, int fd)
{
	struct power_file *file = ctx;
	bool has_failed;

	(void)fd;
	pthread_mutex_lock(&file->lock);
	has_failed = fails(file);
	if (!has_failed)
		settle(file);
	pthread_mutex_unlock(&file->lock);
	return has_failed ? -EIO : 0;
}

const struct io_ops power_file_ops = {
	.open = power_open,
	.close = power_close,
	.lock = power_lock,
	.size = power_size,
	.pread = power_pread,
	.pwritev = power_pwritev,
	.pwritev_sync = power_pwritev_sync,
	.fdatasync = power_fdatasync,
};
