// SPDX-License-Identifier: GPL-2.0-or-later
/* See log.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "log.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/base/read_all.h"

#define LOG_SEED	0xebb2ull

struct record_head {
	uint64_t sum;		/* of all that follows */
	uint32_t bytes;		/* head and payload, padded to a multiple of 8 */
	uint32_t payload_bytes;
	uint32_t kind;
	uint32_t reserved;
	struct dist_gtid gtid;
};

_Static_assert(sizeof(struct record_head) == 40, "record head");

/* A record as it is written. */
struct record_image {
	struct record_head head;
	uint8_t payload[DIST_LOG_PAYLOAD_MAX];
};

struct dist_log {
	int fd;
	pthread_mutex_t lock;		/* everything below */
	pthread_cond_t forced;
	uint64_t end;			/* appended */
	uint64_t safe;			/* on disk */
	bool is_forcing;
	int error;			/* sticky */
	struct record_image image;
};

static uint64_t sum_of(const struct record_head *head)
{
	const size_t skip = sizeof(head->sum);

	return checksum((const uint8_t *)head + skip, head->bytes - skip, LOG_SEED);
}

static bool head_is_sane(const struct record_head *head)
{
	return head->payload_bytes <= DIST_LOG_PAYLOAD_MAX && !head->reserved &&
	       head->kind >= DIST_RECORD_START && head->kind <= DIST_RECORD_END &&
	       head->bytes == sizeof(*head) + ((head->payload_bytes + 7) & ~7u);
}

/* 1: a whole record, 0: the end or a torn one. */
static int read_record(struct dist_log *log, uint64_t at)
{
	struct record_head *head = &log->image.head;
	ssize_t n = read_all(log->fd, head, sizeof(*head), at);
	size_t rest;

	if (n < 0)
		return (int)n;
	if ((size_t)n < sizeof(*head) || !head_is_sane(head))
		return 0;
	rest = head->bytes - sizeof(*head);
	n = read_all(log->fd, log->image.payload, rest, at + sizeof(*head));
	if (n < 0)
		return (int)n;
	return (size_t)n == rest && sum_of(head) == head->sum;
}

static int replay(struct dist_log *log, dist_log_fn fn, void *ctx)
{
	int rc;

	while ((rc = read_record(log, log->end)) > 0) {
		const struct record_head *head = &log->image.head;

		rc = fn(ctx, head->kind, &head->gtid, log->image.payload, head->payload_bytes);
		if (rc)
			return rc;
		log->end += head->bytes;
	}
	return rc;
}

/* The file's name must survive a crash, too. */
static int force_folder(const char *path)
{
	char *copy = strdup(path);
	int fd, rc;

	if (!copy)
		return -ENOMEM;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(copy);
	if (fd < 0)
		return -errno;
	rc = fsync(fd) ? -errno : 0;
	close(fd);
	return rc;
}

static int file_open(struct dist_log *log, const char *path)
{
	log->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (log->fd < 0)
		return -errno;
	if (flock(log->fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return force_folder(path);
}

int dist_log_open(const char *path, dist_log_fn fn, void *ctx, struct dist_log **ret_log)
{
	struct dist_log *log = calloc(1, sizeof(*log));
	int rc;

	if (!log)
		return -ENOMEM;
	pthread_mutex_init(&log->lock, NULL);
	pthread_cond_init(&log->forced, NULL);
	rc = file_open(log, path);
	if (!rc)
		rc = replay(log, fn, ctx);
	if (!rc && (ftruncate(log->fd, (off_t)log->end) || fdatasync(log->fd)))
		rc = -errno;
	if (rc) {
		dist_log_close(log);
		return rc;
	}
	log->safe = log->end;
	*ret_log = log;
	return 0;
}

void dist_log_close(struct dist_log *log)
{
	if (!log)
		return;
	if (log->fd >= 0)
		close(log->fd);
	pthread_cond_destroy(&log->forced);
	pthread_mutex_destroy(&log->lock);
	free(log);
}

static int write_all(int fd, const void *data, size_t bytes, uint64_t at)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = pwrite(fd, (const uint8_t *)data + done, bytes - done,
				   (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

int dist_log_append(struct dist_log *log, enum dist_record kind, const struct dist_gtid *gtid,
		    const void *payload, size_t bytes, uint64_t *ret_end)
{
	struct record_head *head = &log->image.head;
	size_t padded = (bytes + 7) & ~7ul;
	int rc;

	if (bytes > DIST_LOG_PAYLOAD_MAX)
		return -EMSGSIZE;
	pthread_mutex_lock(&log->lock);
	rc = log->error;
	if (!rc) {
		*head = (struct record_head){
			.bytes = (uint32_t)(sizeof(*head) + padded),
			.payload_bytes = (uint32_t)bytes,
			.kind = kind,
			.gtid = *gtid,
		};
		if (bytes)
			memcpy(log->image.payload, payload, bytes);
		memset(log->image.payload + bytes, 0, padded - bytes);
		head->sum = sum_of(head);
		rc = log->error = write_all(log->fd, head, head->bytes, log->end);
	}
	if (!rc) {
		log->end += head->bytes;
		*ret_end = log->end;
	}
	pthread_mutex_unlock(&log->lock);
	return rc;
}

int dist_log_force(struct dist_log *log, uint64_t end)
{
	int rc;

	pthread_mutex_lock(&log->lock);
	while (!log->error && log->safe < end) {
		uint64_t upto = log->end;

		if (log->is_forcing) {
			pthread_cond_wait(&log->forced, &log->lock);
			continue;
		}
		log->is_forcing = true;
		pthread_mutex_unlock(&log->lock);
		rc = fdatasync(log->fd) ? -errno : 0;
		pthread_mutex_lock(&log->lock);
		log->is_forcing = false;
		if (rc)
			log->error = rc;
		else
			log->safe = upto;
		pthread_cond_broadcast(&log->forced);
	}
	rc = log->error;
	pthread_mutex_unlock(&log->lock);
	return rc;
}
