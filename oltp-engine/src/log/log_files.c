// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The folder of the log: its lock, its names, its catalogue, and the segments that groups go to.
 * See log_private.h.
 */
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

/* A path in the folder; -ENAMETOOLONG. ret_path: PATH_MAX bytes. */
static int path_join(const struct log *log, const char *name, char *ret_path)
{
	int n = snprintf(ret_path, PATH_MAX, "%s/%s", log->dir, name);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int path_of(const struct log *log, const char *format, uint64_t number, char *ret_path)
{
	char name[64];

	snprintf(name, sizeof(name), format, (unsigned long long)number);
	return path_join(log, name, ret_path);
}

/* Opens with O_DIRECT if the folder has that. Returns the descriptor or -errno. */
static int open_direct(const struct log *log, const char *path, int flags)
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

	rc = path_join(log, LOG_CATALOG_NAME, path);
	if (rc)
		return rc;
	fd = log->io.ops->open(log->io.ctx, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	n = io_pread(&log->io, fd, catalog, sizeof(*catalog), 0);
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

	rc = path_join(log, CATALOG_NEW, path);
	if (rc)
		return rc;
	log->has_direct = true;
	fd = open_direct(log, path, O_RDWR | O_CREAT | O_TRUNC);
	log->has_direct = fd != -EINVAL && fd != -EOPNOTSUPP;
	if (fd < 0)
		return log->has_direct ? fd : 0;
	log->io.ops->close(log->io.ctx, fd);
	return log->io.ops->unlink(log->io.ctx, path);
}

int log_dir_open(struct log *log)
{
	int rc;

	if (log->is_reader)
		return catalog_read(log);
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
	const struct io_files *io = &log->io;
	char path[PATH_MAX], new_path[PATH_MAX];
	struct log_catalog copy = *catalog;
	int rc, fd;

	memcpy(copy.magic, LOG_CATALOG_MAGIC, LOG_MAGIC_BYTES);
	copy.version = LOG_FORMAT_VERSION;
	copy.crc32c = log_catalog_crc(&copy);
	rc = path_join(log, LOG_CATALOG_NAME, path) ?: path_join(log, CATALOG_NEW, new_path);
	if (rc)
		return rc;
	fd = io->ops->open(io->ctx, new_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
	if (fd < 0)
		return fd;
	rc = io_write_all(io, fd, &copy, sizeof(copy), 0);
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

/* Removes segments that were to be used again. Errors: those of files. */
static int spares_remove(struct log *log)
{
	uint64_t *numbers;
	char path[PATH_MAX];
	size_t n;
	int rc;

	rc = io_list_numbers(&log->io, log->dir, LOG_SPARE_NAME, &numbers, &n);
	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < n; i++) {
		rc = path_of(log, LOG_SPARE_NAME, numbers[i], path);
		if (!rc)
			rc = log->io.ops->unlink(log->io.ctx, path);
	}
	free(numbers);
	return rc;
}

/*
 * The files that groups go to: see log_private.h. The next segment is made while there is still
 * room in the present one. Its header is written with its first group, in one write: before that
 * its file may hold anything.
 */

#define IOV_N	256

/* Spares that are kept beyond those needed, since the log does not always grow by as much. */
#define SPARES_MORE	4u

/*
 * How far a segment reaches before it is used, and how much farther each time: recovery may have to
 * read that much in which nothing is. Where groups are long it is more, so that few of the log's
 * syncs are for that.
 */
#define REACH_FIRST	(256ull << 10)
#define REACH_MORE	(4ull << 20)
#define REACH_GROUPS	16u

int log_segments_init(struct log_segments *segments, uint64_t standard_bytes)
{
	*segments = (struct log_segments){ .standard_bytes = standard_bytes, .fd = -1,
					   .next_fd = -1 };
	segments->block = aligned_alloc(LOG_BLOCK_BYTES, LOG_BLOCK_BYTES);
	if (!segments->block)
		return -ENOMEM;
	pthread_mutex_init(&segments->lock, NULL);
	return 0;
}

void log_segments_finish(struct log *log)
{
	struct log_segments *segments = &log->segments;

	if (!segments->block)
		return;
	if (segments->fd >= 0)
		log->io.ops->close(log->io.ctx, segments->fd);
	if (segments->next_fd >= 0)
		log->io.ops->close(log->io.ctx, segments->next_fd);
	pthread_mutex_destroy(&segments->lock);
	free(segments->spares);
	free(segments->list);
	free(segments->block);
}

/* Under the lock. */
static int make_room(struct log_segments *segments, uint32_t n)
{
	uint32_t room = segments->room ?: 16;
	struct log_segment *list;

	while (room < segments->n + n)
		room *= 2;
	if (room == segments->room)
		return 0;
	list = realloc(segments->list, room * sizeof(*list));
	if (!list)
		return -ENOMEM;
	segments->list = list;
	segments->room = room;
	return 0;
}

int log_segments_begin(struct log *log, uint64_t number, const uint64_t *numbers,
		       const uint64_t *first_groups, uint32_t n)
{
	struct log_segments *segments = &log->segments;
	int rc;

	rc = spares_remove(log);
	if (rc)
		return rc;
	pthread_mutex_lock(&segments->lock);
	rc = make_room(segments, n + 1);
	for (uint32_t i = 0; !rc && i < n; i++)
		segments->list[segments->n++] =
			(struct log_segment){ numbers[i], first_groups[i], false };
	pthread_mutex_unlock(&segments->lock);
	segments->next_number = number;
	return rc ?: log_segment_prepare(log);
}

/* Opens a spare under its new name; -ENOENT: there is none. */
static int spare_use(struct log *log, const char *path)
{
	struct log_segments *segments = &log->segments;
	char spare[PATH_MAX];
	int rc = -ENOENT;

	pthread_mutex_lock(&segments->lock);
	if (segments->n_spares) {
		rc = path_of(log, LOG_SPARE_NAME, segments->spares[segments->n_spares - 1],
				 spare);
		if (!rc)
			rc = log->io.ops->rename(log->io.ctx, spare, path);
		if (!rc)
			segments->n_spares--;
	}
	pthread_mutex_unlock(&segments->lock);
	return rc ?: open_direct(log, path, O_RDWR);
}

/* Where groups must end in a segment of so many bytes. */
static uint64_t groups_end(uint64_t bytes)
{
	return bytes - LOG_BLOCK_BYTES;
}

/* The segment with the number, which has so many bytes, reaches up to end. */
static int reach_write(struct log *log, int fd, uint64_t number, uint64_t bytes, uint64_t end)
{
	struct log_reach *reach = log->segments.block;

	memset(reach, 0, LOG_BLOCK_BYTES);
	memcpy(reach->magic, LOG_REACH_MAGIC, LOG_MAGIC_BYTES);
	memcpy(reach->database, log->database, sizeof(reach->database));
	reach->segment = number;
	reach->end = end;
	reach->crc32c = log_reach_crc(reach);
	return io_write_all(&log->io, fd, reach, LOG_BLOCK_BYTES, groups_end(bytes)) ?:
	       log->io.ops->fdatasync(log->io.ctx, fd);
}

static uint64_t reach_more(const struct log_segments *segments)
{
	uint64_t groups = REACH_GROUPS * segments->group_bytes;

	return groups > REACH_MORE ? groups : REACH_MORE;
}

/* The present segment reaches beyond end by more than groups need for a while. */
static int reach_move(struct log *log, uint64_t end)
{
	struct log_segments *segments = &log->segments;
	uint64_t last = groups_end(segments->bytes);
	int rc;

	end += reach_more(segments);
	if (end > last)
		end = last;
	rc = reach_write(log, segments->fd, segments->number, segments->bytes, end);
	if (!rc)
		segments->reach = end;
	return rc;
}

/* Makes the next segment at least so many bytes long. */
static int next_grow(struct log *log, uint64_t bytes)
{
	struct log_segments *segments = &log->segments;
	int rc;

	bytes = (bytes + LOG_BLOCK_BYTES - 1) & ~(uint64_t)(LOG_BLOCK_BYTES - 1);
	rc = log->io.ops->fallocate(log->io.ctx, segments->next_fd, bytes);
	if (!rc) {
		segments->next_bytes = bytes;
		segments->next_reach = 0;
	}
	return rc;
}

static int next_make(struct log *log)
{
	struct log_segments *segments = &log->segments;
	char path[PATH_MAX];
	int rc, fd;

	rc = path_of(log, LOG_SEGMENT_NAME, segments->next_number, path);
	if (rc)
		return rc;
	fd = spare_use(log, path);
	if (fd == -ENOENT) {
		fd = open_direct(log, path, O_RDWR | O_CREAT | O_EXCL);
		if (fd < 0)
			return fd;
		segments->next_fd = fd;
		rc = next_grow(log, segments->standard_bytes);
	} else if (fd < 0) {
		return fd;
	} else {
		segments->next_fd = fd;
		segments->next_bytes = segments->standard_bytes;
	}
	rc = rc ?: reach_write(log, segments->next_fd, segments->next_number, segments->next_bytes,
			       REACH_FIRST);
	segments->next_reach = REACH_FIRST;
	return rc ?: log->io.ops->sync_dir(log->io.ctx, log->dir);
}

int log_segment_prepare(struct log *log)
{
	const struct log_segments *segments = &log->segments;
	int rc = 0;

	if (segments->fd >= 0 && segments->reach < segments->offset + reach_more(segments) / 2 &&
	    segments->reach < groups_end(segments->bytes))
		rc = reach_move(log, segments->offset);
	if (rc || segments->next_fd >= 0 ||
	    (segments->fd >= 0 && segments->offset <= segments->bytes / 2))
		return rc;
	return next_make(log);
}

/* The next segment, which is there, becomes the one that is written to. */
static int advance(struct log *log, uint64_t group)
{
	struct log_segments *segments = &log->segments;
	int rc;

	pthread_mutex_lock(&segments->lock);
	rc = make_room(segments, 1);
	if (!rc)
		segments->list[segments->n++] = (struct log_segment){
			segments->next_number, group,
			segments->next_bytes == segments->standard_bytes,
		};
	pthread_mutex_unlock(&segments->lock);
	if (rc)
		return rc;
	if (segments->fd >= 0)
		log->io.ops->close(log->io.ctx, segments->fd);
	segments->fd = segments->next_fd;
	segments->number = segments->next_number++;
	segments->bytes = segments->next_bytes;
	segments->reach = segments->next_reach;
	segments->offset = 0;
	segments->next_fd = -1;
	return 0;
}

int log_segment_reserve(struct log *log, uint64_t group, uint64_t bytes)
{
	struct log_segments *segments = &log->segments;
	uint64_t end = segments->offset + bytes;
	int rc = 0;

	segments->group_bytes = bytes;
	if (segments->fd < 0 || end > groups_end(segments->bytes)) {
		if (segments->next_fd < 0)
			rc = next_make(log);
		/* A group is never in two segments: a very long group gets a longer segment. */
		end = bytes + LOG_BLOCK_BYTES;
		if (!rc && end > groups_end(segments->next_bytes))
			rc = next_grow(log, end + LOG_BLOCK_BYTES);
		rc = rc ?: advance(log, group);
	}
	return !rc && end > segments->reach ? reach_move(log, end) : rc;
}

/* Pieces of memory on their way to one place after the other of the file. */
struct writer {
	struct log *log;
	struct iovec iov[IOV_N];
	int n;
	uint64_t offset;
	bool is_unsynced;	/* something was written without a sync */
};

static int writer_flush(struct writer *writer, bool sync)
{
	const struct io_files *io = &writer->log->io;
	int fd = writer->log->segments.fd, first = 0;

	while (first < writer->n) {
		struct iovec *iov = &writer->iov[first];
		int n = writer->n - first;
		ssize_t done = sync ? io_pwritev_sync(io, fd, iov, n, writer->offset) :
				      io_pwritev(io, fd, iov, n, writer->offset);

		if (done < 0 && done != -EINTR)
			return (int)done;
		if (done < 0)
			continue;
		/* A part of a block does not count: the block is written again. */
		done -= done % LOG_BLOCK_BYTES;
		if (!done)
			return -EIO;
		writer->offset += (uint64_t)done;
		for (; first < writer->n && (size_t)done >= writer->iov[first].iov_len; first++)
			done -= (ssize_t)writer->iov[first].iov_len;
		if (done) {
			iov = &writer->iov[first];
			iov->iov_base = (uint8_t *)iov->iov_base + done;
			iov->iov_len -= (size_t)done;
		}
	}
	writer->n = 0;
	writer->is_unsynced |= !sync;
	return 0;
}

static int writer_add(struct writer *writer, void *data, size_t bytes)
{
	int rc = writer->n == IOV_N ? writer_flush(writer, false) : 0;

	writer->iov[writer->n++] = (struct iovec){ data, bytes };
	return rc;
}

static int writer_end(struct writer *writer)
{
	const struct io_files *io = &writer->log->io;

	if (!writer->is_unsynced)
		return writer_flush(writer, true);
	return writer_flush(writer, false) ?:
	       io->ops->fdatasync(io->ctx, writer->log->segments.fd);
}

static void fill_header(struct log *log, uint64_t group)
{
	struct log_segments *segments = &log->segments;
	struct log_segment_header *header = segments->block;

	memset(header, 0, LOG_BLOCK_BYTES);
	memcpy(header->magic, LOG_SEGMENT_MAGIC, LOG_MAGIC_BYTES);
	memcpy(header->database, log->database, sizeof(header->database));
	header->version = LOG_FORMAT_VERSION;
	header->segment = segments->number;
	header->first_group = group;
	header->bytes = segments->bytes;
	header->crc32c = log_segment_header_crc(header);
}

int log_segment_write(struct log *log, const struct log_group *group, uint64_t number)
{
	struct log_segments *segments = &log->segments;
	struct writer writer = { .log = log, .offset = segments->offset };
	int rc = 0;

	if (!segments->offset) {
		fill_header(log, number);
		rc = writer_add(&writer, segments->block, LOG_BLOCK_BYTES);
	}
	if (!rc)
		rc = writer_add(&writer, group->gather, group->gathered);
	for (const struct log_chunk *chunk = group->in_place.head; !rc && chunk;
	     chunk = chunk->next)
		rc = writer_add(&writer, chunk->data, chunk->used);
	if (!rc)
		rc = writer_end(&writer);
	segments->offset = writer.offset;
	return rc;
}

/* Under the lock: for so many spares at most. */
static int spares_make_room(struct log_segments *segments, uint32_t n)
{
	uint64_t *spares;

	if (n > segments->spares_room) {
		spares = realloc(segments->spares, n * sizeof(*spares));
		if (!spares)
			return -ENOMEM;
		segments->spares = spares;
		segments->spares_room = n;
	}
	segments->spares_max = n;
	return 0;
}

/* Under the lock. Removes the segment, or makes it a spare if one more is wanted. */
static int segment_drop(struct log *log, const struct log_segment *segment)
{
	struct log_segments *segments = &log->segments;
	char from[PATH_MAX], to[PATH_MAX];
	int rc;

	rc = path_of(log, LOG_SEGMENT_NAME, segment->number, from);
	if (rc)
		return rc;
	if (!segment->is_standard || segments->n_spares >= segments->spares_max) {
		rc = log->io.ops->unlink(log->io.ctx, from);
		return rc == -ENOENT ? 0 : rc;
	}
	rc = path_of(log, LOG_SPARE_NAME, segments->spare_number, to);
	if (!rc)
		rc = log->io.ops->rename(log->io.ctx, from, to);
	if (!rc)
		segments->spares[segments->n_spares++] = segments->spare_number++;
	return rc;
}

int log_recycle_before(struct log *log, uint64_t group)
{
	struct log_segments *segments = &log->segments;
	uint64_t durable = log_group_durable(log);
	uint32_t last = 0, n_kept = 0, n_dropped;
	int rc;

	pthread_mutex_lock(&segments->lock);
	/*
	 * The last segment that has the group, or would have it if the group were there, stays. A
	 * segment whose first group is on its way to disk does not count: its header is not there
	 * before that group is.
	 */
	for (uint32_t i = 0; i < segments->n; i++) {
		if (segments->list[i].first_group <= (group < durable ? group : durable))
			last = i;
	}
	/*
	 * As many segments as go now will be written until the next time. Syncing a file whose
	 * blocks were written before changes nothing in the file system's books.
	 */
	rc = spares_make_room(segments, last + SPARES_MORE);
	for (uint32_t i = 0; i < segments->n; i++) {
		const struct log_segment *segment = &segments->list[i];

		if (!rc && (i < last || segment->first_group == UINT64_MAX)) {
			rc = segment_drop(log, segment);
			if (!rc)
				continue;
		}
		segments->list[n_kept++] = *segment;
	}
	n_dropped = segments->n - n_kept;
	segments->n = n_kept;
	pthread_mutex_unlock(&segments->lock);
	if (n_dropped && !rc)
		rc = log->io.ops->sync_dir(log->io.ctx, log->dir);
	return rc;
}
