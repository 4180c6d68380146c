// SPDX-License-Identifier: GPL-2.0-or-later
/* The folder of the log: its lock, its names, its catalogue. See log_private.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_decode.h"
#include "log_private.h"

#define CATALOG_NEW	LOG_CATALOG_NAME ".tmp"
#define FILE_MODE	0600

int log_path(const struct log *log, const char *name, char *ret_path)
{
	int n = snprintf(ret_path, PATH_MAX, "%s/%s", log->dir, name);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int log_path_of(const struct log *log, const char *format, uint64_t number, char *ret_path)
{
	char name[64];

	snprintf(name, sizeof(name), format, (unsigned long long)number);
	return log_path(log, name, ret_path);
}

int log_open_direct(const struct log *log, const char *path, int flags)
{
	return log->io.ops->open(log->io.ctx, path,
				 flags | O_CLOEXEC | (log->has_direct ? O_DIRECT : 0), FILE_MODE);
}

/* Returns 1 if it is there and whole, 0 if it is not there. */
static int catalog_read(struct log *log)
{
	struct log_catalog *catalog = &log->catalog;
	char path[PATH_MAX];
	ssize_t n;
	int rc, fd;

	rc = log_path(log, LOG_CATALOG_NAME, path);
	if (rc)
		return rc;
	fd = log->io.ops->open(log->io.ctx, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	n = log->io.ops->pread(log->io.ctx, fd, catalog, sizeof(*catalog), 0);
	log->io.ops->close(log->io.ctx, fd);
	if (n < 0)
		return (int)n;
	return n == sizeof(*catalog) && log_catalog_is_valid(catalog) ? 1 : -EBADMSG;
}

/* Whether files there can be written around the page cache. */
static int probe_direct(struct log *log)
{
	char path[PATH_MAX];
	int rc, fd;

	rc = log_path(log, CATALOG_NEW, path);
	if (rc)
		return rc;
	log->has_direct = true;
	fd = log_open_direct(log, path, O_RDWR | O_CREAT | O_TRUNC);
	log->has_direct = fd != -EINVAL && fd != -EOPNOTSUPP;
	if (fd < 0)
		return log->has_direct ? fd : 0;
	log->io.ops->close(log->io.ctx, fd);
	return log->io.ops->unlink(log->io.ctx, path);
}

int log_dir_open(struct log *log)
{
	int rc;

	rc = log->io.ops->open(log->io.ctx, log->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (rc < 0)
		return rc;
	log->dir_fd = rc;
	rc = log->io.ops->lock(log->io.ctx, log->dir_fd);
	if (!rc)
		rc = probe_direct(log);
	return rc ?: catalog_read(log);
}

void log_dir_close(struct log *log)
{
	if (log->dir_fd >= 0)
		log->io.ops->close(log->io.ctx, log->dir_fd);
}

int log_catalog_write(struct log *log, const struct log_catalog *catalog)
{
	const struct log_io *io = &log->io;
	char path[PATH_MAX], new_path[PATH_MAX];
	struct log_catalog copy = *catalog;
	int rc, fd;

	memcpy(copy.magic, LOG_CATALOG_MAGIC, LOG_MAGIC_BYTES);
	copy.version = LOG_FORMAT_VERSION;
	copy.crc32c = log_catalog_crc(&copy);
	rc = log_path(log, LOG_CATALOG_NAME, path) ?: log_path(log, CATALOG_NEW, new_path);
	if (rc)
		return rc;
	fd = io->ops->open(io->ctx, new_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
	if (fd < 0)
		return fd;
	rc = log_io_write_all(io, fd, &copy, sizeof(copy), 0);
	if (!rc)
		rc = io->ops->fdatasync(io->ctx, fd);
	io->ops->close(io->ctx, fd);
	if (!rc)
		rc = io->ops->rename(io->ctx, new_path, path);
	if (!rc)
		rc = io->ops->sync_dir(io->ctx, log->dir);
	if (!rc)
		log->catalog = copy;
	return rc;
}

/* Is that the name, all of it, and of which number? */
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

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Numbers of files with names of one format. */
struct listing {
	const char *format;
	uint64_t *numbers;
	uint32_t n, room;
	int rc;
};

static void listing_add(void *ctx, const char *name)
{
	struct listing *listing = ctx;
	uint64_t number;

	if (listing->rc || !name_parse(name, listing->format, &number))
		return;
	if (listing->n == listing->room) {
		uint32_t room = listing->room ? listing->room * 2 : 64;
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

static int list(const struct log *log, const char *format, uint64_t **ret_numbers, uint32_t *ret_n)
{
	struct listing listing = { .format = format };
	int rc;

	rc = log->io.ops->list(log->io.ctx, log->dir, listing_add, &listing);
	if (rc || listing.rc) {
		free(listing.numbers);
		return rc ?: listing.rc;
	}
	if (listing.n)
		qsort(listing.numbers, listing.n, sizeof(*listing.numbers), compare);
	*ret_numbers = listing.numbers;
	*ret_n = listing.n;
	return 0;
}

int log_segments_list(const struct log *log, uint64_t **ret_numbers, uint32_t *ret_n)
{
	return list(log, LOG_SEGMENT_NAME, ret_numbers, ret_n);
}

int log_spares_remove(struct log *log)
{
	uint64_t *numbers;
	char path[PATH_MAX];
	uint32_t n;
	int rc;

	rc = list(log, LOG_SPARE_NAME, &numbers, &n);
	if (rc)
		return rc;
	for (uint32_t i = 0; !rc && i < n; i++) {
		rc = log_path_of(log, LOG_SPARE_NAME, numbers[i], path);
		if (!rc)
			rc = log->io.ops->unlink(log->io.ctx, path);
	}
	free(numbers);
	return rc;
}
