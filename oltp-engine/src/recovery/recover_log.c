// SPDX-License-Identifier: GPL-2.0-or-later
/* See recover_log.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/src/log/log_decode.h"
#include "recover_log.h"

/* Read at once; a longer group has the buffer grow. */
#define READ_BYTES	(1u << 20)

struct segment {
	int fd;
	uint64_t number, bytes;
	/* What of it is in the buffer. */
	uint64_t from, to;
};

void recover_log_finish(struct recover_log *log)
{
	free(log->buffer);
	log->buffer = NULL;
	log->room = 0;
}

static int segment_open(const struct recover_log *log, uint64_t number, struct segment *ret_segment)
{
	const int flags = O_RDONLY | O_CLOEXEC;
	struct segment segment = { .number = number };
	char path[PATH_MAX];
	int rc;

	rc = snprintf(path, sizeof(path), "%s/" LOG_SEGMENT_NAME, log->dir,
		      (unsigned long long)number);
	if (rc < 0 || (size_t)rc >= sizeof(path))
		return -ENAMETOOLONG;
	segment.fd = log->io->ops->open(log->io->ctx, path, flags | O_DIRECT, 0);
	if (segment.fd == -EINVAL)
		segment.fd = log->io->ops->open(log->io->ctx, path, flags, 0);
	if (segment.fd < 0)
		return segment.fd;
	rc = log->io->ops->size(log->io->ctx, segment.fd, &segment.bytes);
	if (rc) {
		log->io->ops->close(log->io->ctx, segment.fd);
		return rc;
	}
	segment.bytes -= segment.bytes % LOG_BLOCK_BYTES;
	*ret_segment = segment;
	return 0;
}

static int make_room(struct recover_log *log, size_t bytes)
{
	if (log->room >= bytes)
		return 0;
	recover_log_finish(log);
	log->buffer = aligned_alloc(LOG_BLOCK_BYTES, bytes);
	if (!log->buffer)
		return -ENOMEM;
	log->room = bytes;
	return 0;
}

/* At least so many bytes at offset, which are within the file, in memory. */
static int load(struct recover_log *log, struct segment *segment, uint64_t offset, uint64_t bytes,
		const uint8_t **ret_at)
{
	uint64_t left = segment->bytes - offset, size = bytes > READ_BYTES ? bytes : READ_BYTES;
	ssize_t n;
	int rc;

	if (offset >= segment->from && offset + bytes <= segment->to) {
		*ret_at = log->buffer + (offset - segment->from);
		return 0;
	}
	segment->from = segment->to = 0;
	rc = make_room(log, size);
	if (rc)
		return rc;
	if (size > left)
		size = left;
	n = log->io->ops->pread(log->io->ctx, segment->fd, log->buffer, size, offset);
	if (n < 0)
		return (int)n;
	if ((uint64_t)n < bytes)
		return -EIO;
	segment->from = offset;
	segment->to = offset + (uint64_t)n;
	*ret_at = log->buffer;
	return 0;
}

/*
 * The group at offset if there is a whole one of this segment, with at least that number; NULL in
 * *ret_group: there is none.
 */
static int group_at(struct recover_log *log, struct segment *segment, uint64_t offset,
		    uint64_t least, const struct log_group_header **ret_group)
{
	uint64_t room = segment->bytes - offset;
	const struct log_group_header *group;
	const uint8_t *at;
	int rc;

	*ret_group = NULL;
	if (room < LOG_BLOCK_BYTES)
		return 0;
	rc = load(log, segment, offset, LOG_BLOCK_BYTES, &at);
	if (rc)
		return rc;
	group = (const struct log_group_header *)at;
	if (!log_group_header_is_sane(group, room) || group->segment != segment->number ||
	    group->group < least ||
	    memcmp(group->database, log->database, sizeof(group->database)))
		return 0;
	rc = load(log, segment, offset, group->bytes, &at);
	if (rc)
		return rc;
	group = (const struct log_group_header *)at;
	if (log_group_is_valid(group, room))
		*ret_group = group;
	else if (group->group == log->next_group)
		log->torn_bytes = group->bytes;
	return 0;
}

/* From there on nothing may be whole that has at least that number. */
static int look_for_hole(struct recover_log *log, struct segment *segment, uint64_t offset,
			 uint64_t least)
{
	const struct log_group_header *group;

	for (; offset < segment->bytes; offset += LOG_BLOCK_BYTES) {
		int rc = group_at(log, segment, offset, least, &group);

		if (rc)
			return rc;
		if (group) {
			log->has_hole = true;
			return -EUCLEAN;
		}
	}
	return 0;
}

static int read_groups(struct recover_log *log, struct segment *segment, uint64_t end_group)
{
	uint64_t offset = LOG_BLOCK_BYTES;
	int rc;

	for (;;) {
		const struct log_group_header *group;

		log->end_offset = offset;
		if (log->next_group >= end_group)
			return 0;
		rc = group_at(log, segment, offset, log->next_group, &group);
		if (rc)
			return rc;
		if (!group || group->group != log->next_group)
			break;
		if (log->next_group >= log->skip_below) {
			rc = log->fn(log->ctx, group);
			if (rc)
				return rc;
		}
		offset += group->bytes;
		log->next_group++;
	}
	/* Some segment goes on with a later one. */
	if (end_group != UINT64_MAX) {
		log->has_hole = true;
		return -EUCLEAN;
	}
	/* The group that is expected is here or nowhere. */
	return look_for_hole(log, segment, offset, log->next_group);
}

int recover_log_look(struct recover_log *log, uint64_t number,
		     struct log_segment_header *ret_header, bool *ret_is_good,
		     uint64_t *ret_bytes)
{
	struct segment segment;
	const uint8_t *at;
	int rc;

	rc = segment_open(log, number, &segment);
	if (rc)
		return rc;
	*ret_is_good = false;
	*ret_bytes = segment.bytes;
	if (segment.bytes >= LOG_BLOCK_BYTES) {
		rc = load(log, &segment, 0, LOG_BLOCK_BYTES, &at);
		if (!rc) {
			memcpy(ret_header, at, sizeof(*ret_header));
			*ret_is_good = log_segment_header_is_valid(ret_header) &&
				       ret_header->segment == number && ret_header->first_group &&
				       !memcmp(ret_header->database, log->database,
					       sizeof(ret_header->database));
		}
	}
	log->io->ops->close(log->io->ctx, segment.fd);
	return rc;
}

int recover_log_read(struct recover_log *log, uint64_t number, uint64_t end_group)
{
	struct segment segment;
	int rc;

	log->end_offset = 0;
	rc = segment_open(log, number, &segment);
	if (rc)
		return rc;
	rc = read_groups(log, &segment, end_group);
	if (!rc)
		rc = log->io->ops->fdatasync(log->io->ctx, segment.fd);
	log->io->ops->close(log->io->ctx, segment.fd);
	return rc;
}

int recover_log_probe(struct recover_log *log, uint64_t number)
{
	struct segment segment;
	int rc;

	log->end_offset = 0;
	rc = segment_open(log, number, &segment);
	if (rc)
		return rc;
	/* The one that its header was written with may be whole where the header is not. */
	rc = look_for_hole(log, &segment, LOG_BLOCK_BYTES, log->next_group + 1);
	log->io->ops->close(log->io->ctx, segment.fd);
	return rc;
}
