// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading the files in log_dir: see recover_read.h. First the groups of segments, then all of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/src/log/log_decode.h"
#include "oltp-engine/src/txn/engine.h"
#include "recover_read.h"

/* Read at once; a longer group has the buffer grow. Less where a segment is only looked into. */
#define READ_BYTES	(1u << 20)
#define SEEK_BYTES	(256u << 10)

struct segment {
	int fd;
	uint64_t number, bytes;
	uint64_t ahead;		/* so much is read at least, unless the file ends before */
	/* The part of it that is in the buffer. */
	uint64_t from, to;
};

static void recover_log_finish(struct recover_log *log)
{
	free(log->buffer);
	log->buffer = NULL;
	log->room = 0;
}

static int segment_open(const struct recover_log *log, uint64_t number, struct segment *ret_segment)
{
	struct segment segment = { .number = number, .ahead = READ_BYTES };
	char path[PATH_MAX];
	int rc;

	rc = snprintf(path, sizeof(path), "%s/" LOG_SEGMENT_NAME, log->dir,
		      (unsigned long long)number);
	if (rc < 0 || (size_t)rc >= sizeof(path))
		return -ENAMETOOLONG;
	segment.fd = io_open_direct(log->io, path, O_RDONLY | O_CLOEXEC, 0);
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

/* Reads at least so many bytes at offset, which are within the file, into memory. */
static int load(struct recover_log *log, struct segment *segment, uint64_t offset, uint64_t bytes,
		const uint8_t **ret_at)
{
	uint64_t left = segment->bytes - offset;
	uint64_t size = bytes > segment->ahead ? bytes : segment->ahead;
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
	n = io_pread(log->io, segment->fd, log->buffer, size, offset);
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
	uint64_t room = segment->bytes - offset, bytes;
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
	bytes = group->bytes;
	rc = load(log, segment, offset, bytes, &at);
	if (rc)
		return rc;
	group = (const struct log_group_header *)at;
	/* The header may have been read again: what it says now may be more than is in memory. */
	if (log_group_is_valid(group, bytes))
		*ret_group = group;
	else if (group->group == log->next_group)
		log->torn_bytes = group->bytes;
	return 0;
}

/*
 * The first whole group with at least that number that begins at offset or behind, and before end;
 * NULL: there is none.
 */
static int group_from(struct recover_log *log, struct segment *segment, uint64_t offset,
		      uint64_t end, uint64_t least, const struct log_group_header **ret_group,
		      uint64_t *ret_offset)
{
	int rc = 0;

	*ret_group = NULL;
	for (; !rc && !*ret_group && offset < end; offset += LOG_BLOCK_BYTES) {
		rc = group_at(log, segment, offset, least, ret_group);
		*ret_offset = offset;
	}
	return rc;
}

/* Behind that no group was written: see struct log_reach. */
static int reach_of(struct recover_log *log, struct segment *segment, uint64_t *ret_end)
{
	const struct log_reach *reach;
	const uint8_t *at;
	int rc;

	*ret_end = segment->bytes;
	if (segment->bytes < LOG_BLOCK_BYTES)
		return 0;
	rc = load(log, segment, segment->bytes - LOG_BLOCK_BYTES, LOG_BLOCK_BYTES, &at);
	if (rc)
		return rc;
	reach = (const struct log_reach *)at;
	if (log_reach_is_valid(reach) && reach->segment == segment->number &&
	    !memcmp(reach->database, log->database, sizeof(reach->database)) &&
	    reach->end < segment->bytes)
		*ret_end = reach->end;
	return 0;
}

/* Error: a whole group with at least that number is at offset or behind. */
static int look_for_hole(struct recover_log *log, struct segment *segment, uint64_t offset,
			 uint64_t least)
{
	const struct log_group_header *group = NULL;
	uint64_t end;
	int rc;

	rc = reach_of(log, segment, &end);
	if (!rc)
		rc = group_from(log, segment, offset, end, least, &group, &offset);
	if (rc || !group)
		return rc;
	log->has_hole = true;
	return -EUCLEAN;
}

/*
 * Groups before skip_below need not be read: from the first group to one that comes soon before it,
 * or is it. Groups are in order, so halves of what is left tell.
 */
static int seek(struct recover_log *log, struct segment *segment, uint64_t *offset)
{
	uint64_t end;
	int rc;

	if (log->next_group >= log->skip_below || segment->bytes - *offset <= READ_BYTES)
		return 0;
	rc = reach_of(log, segment, &end);
	segment->ahead = SEEK_BYTES;
	while (!rc && end > *offset + READ_BYTES) {
		uint64_t middle = (*offset + end) / 2 / LOG_BLOCK_BYTES * LOG_BLOCK_BYTES, at;
		const struct log_group_header *group;

		rc = group_from(log, segment, middle, middle + SEEK_BYTES, log->next_group,
				&group, &at);
		if (!rc && group && group->group <= log->skip_below) {
			*offset = at;
			log->next_group = group->group;
		} else {
			end = middle;
		}
	}
	segment->ahead = READ_BYTES;
	return rc;
}

static int read_groups(struct recover_log *log, struct segment *segment, uint64_t end_group)
{
	uint64_t offset = LOG_BLOCK_BYTES;
	int rc;

	rc = seek(log, segment, &offset);
	if (rc)
		return rc;
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
	/* Another segment goes on with a later group. */
	if (end_group != UINT64_MAX) {
		log->has_hole = true;
		return -EUCLEAN;
	}
	/* The expected group is here or nowhere. */
	return look_for_hole(log, segment, offset, log->next_group);
}

/*
 * The header; *ret_is_good: it is one, of this database and this segment. Also *ret_bytes of the
 * file. Errors: those of files, -ENOMEM.
 */
static int recover_log_look(struct recover_log *log, uint64_t number,
			    struct log_segment_header *ret_header, bool *ret_is_good,
			    uint64_t *ret_bytes)
{
	struct segment segment;
	const uint8_t *at;
	int rc;

	rc = segment_open(log, number, &segment);
	if (rc)
		return rc;
	segment.ahead = LOG_BLOCK_BYTES;
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

/*
 * Hands the groups of a good segment on, up to the one before end_group (UINT64_MAX: it is the last
 * segment). Afterwards they are on disk, so that they are there the next time as well. Errors:
 * those of fn; -EUCLEAN with has_hole; those of files, -ENOMEM.
 */
static int recover_log_read(struct recover_log *log, uint64_t number, uint64_t end_group)
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

/*
 * Looks into a segment without a good header behind the last good one: no group after next_group
 * may be in it. Errors: as above.
 */
static int recover_log_probe(struct recover_log *log, uint64_t number)
{
	struct segment segment;
	int rc;

	log->end_offset = 0;
	rc = segment_open(log, number, &segment);
	if (rc)
		return rc;
	segment.ahead = SEEK_BYTES;
	/* The group that was written with the header may be whole where the header is not. */
	rc = look_for_hole(log, &segment, LOG_BLOCK_BYTES, log->next_group + 1);
	log->io->ops->close(log->io->ctx, segment.fd);
	return rc;
}

int recover_complain(struct recover_read *r, int rc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->figures.error, sizeof(r->figures.error), format, args);
	va_end(args);
	return rc;
}

static int check_tables(struct recover_read *r)
{
	struct oltp_engine *engine = r->engine;
	uint32_t n_tables;

	/* One that is being created is in both or in none. */
	pthread_mutex_lock(&engine->lock);
	log_catalog_get(engine->log, &r->catalog);
	n_tables = tables_count(engine);
	pthread_mutex_unlock(&engine->lock);
	/* The sizes were compared when the tables were created. */
	if (r->catalog.n_tables > n_tables)
		return recover_complain(r, -EINVAL, "%s has %u tables, and %u were created",
					LOG_CATALOG_NAME, r->catalog.n_tables, n_tables);
	return 0;
}

static int look_at_segments(struct recover_read *r)
{
	const struct recover_files *names = &r->names;
	int rc = 0;

	r->files.segments = calloc(names->n_segments + 1, sizeof(*r->files.segments));
	r->segment_bytes = calloc(names->n_segments + 1, sizeof(*r->segment_bytes));
	if (!r->files.segments || !r->segment_bytes)
		return -ENOMEM;
	r->files.n_segments = names->n_segments;
	for (size_t i = 0; !rc && i < names->n_segments; i++) {
		struct plan_segment *segment = &r->files.segments[i];
		struct log_segment_header header;

		segment->number = names->segments[i];
		rc = recover_log_look(&r->log, segment->number, &header, &segment->is_good,
				      &r->segment_bytes[i]);
		if (rc)
			recover_complain(r, rc, LOG_SEGMENT_NAME ": %s",
					 (unsigned long long)segment->number, strerror(-rc));
		else if (segment->is_good)
			segment->first_group = header.first_group;
	}
	return rc;
}

/*
 * Blocks are read by what the header says of tables, so that must be true of the tables there are.
 */
static bool has_these_tables(const struct recover_read *r, const struct checkpoint_header *header)
{
	return header->n_tables <= r->catalog.n_tables &&
	       !memcmp(header->tables, r->catalog.tables,
		       header->n_tables * sizeof(header->tables[0]));
}

static int look_at_checkpoints(struct recover_read *r)
{
	const struct recover_files *names = &r->names;
	int rc = 0;

	r->files.checkpoints = calloc(names->n_checkpoints + 1, sizeof(*r->files.checkpoints));
	r->checkpoints = calloc(names->n_checkpoints + 1, sizeof(*r->checkpoints));
	if (!r->files.checkpoints || !r->checkpoints)
		return -ENOMEM;
	r->files.n_checkpoints = names->n_checkpoints;
	for (size_t i = 0; !rc && i < names->n_checkpoints; i++) {
		struct plan_checkpoint *checkpoint = &r->files.checkpoints[i];
		struct checkpoint_info *info = &r->checkpoints[i];

		checkpoint->number = names->checkpoints[i];
		rc = checkpoint_look(r->io, r->dir, checkpoint->number, r->catalog.database, info);
		if (rc)
			recover_complain(r, rc, CHECKPOINT_NAME ": %s",
					 (unsigned long long)checkpoint->number, strerror(-rc));
		else if (info->is_good && has_these_tables(r, &info->header))
			*checkpoint = (struct plan_checkpoint){
				checkpoint->number, true, info->header.start_group,
				info->end.end_group,
			};
	}
	return rc;
}

const struct checkpoint_info *recover_read_planned(const struct recover_read *r)
{
	uint64_t number;

	if (!r->plan.has_checkpoint)
		return NULL;
	number = r->files.checkpoints[r->plan.checkpoint].number;
	for (size_t i = 0; i < r->names.n_checkpoints; i++) {
		if (r->checkpoints[i].number == number)
			return &r->checkpoints[i];
	}
	return NULL;
}

static int load_rows(void *ctx, const struct checkpoint_rows *rows)
{
	struct recover_read *r = ctx;
	struct oltp_table *table = r->engine->tables[rows->table];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < rows->n_rows; i++) {
		const uint8_t *row = rows->rows + (size_t)i * rows->row_bytes;
		uint64_t key;

		memcpy(&key, row, sizeof(key));
		rc = r->sink->put(r->ctx, table, key, row + sizeof(key));
	}
	r->figures.checkpoint_bytes = rows->offset;
	return rc ?: r->sink->flush(r->ctx);
}

int recover_read_checkpoint(struct recover_read *r)
{
	const struct checkpoint_info *info;
	uint64_t offset;
	int rc;

	if (!r->plan.has_checkpoint)
		return 0;
	info = recover_read_planned(r);
	rc = checkpoint_read(r->io, r->dir, info, load_rows, r, &offset);
	if (rc)
		return recover_complain(r, rc, CHECKPOINT_NAME ", offset %" PRIu64 ": %s",
					(unsigned long long)info->number, offset,
					rc == -EUCLEAN ? "damaged" : strerror(-rc));
	r->figures.checkpoint_bytes = info->bytes;
	r->figures.csn = info->end.end_csn - 1;
	r->figures.epoch = info->end.end_epoch;
	return 0;
}

static int redo_op(struct recover_read *r, const struct log_op *op)
{
	const struct log_span *span;
	struct oltp_table *table;
	struct log_cursor spans;

	if (op->table >= tables_count(r->engine))
		return -EUCLEAN;
	table = r->engine->tables[op->table];
	log_spans_begin(&spans, op);
	switch (op->kind) {
	case LOG_OP_PUT:
		if (log_spans_next(&spans, &span) <= 0 || span->offset ||
		    span->bytes != table->record_bytes)
			return -EUCLEAN;
		return r->sink->put(r->ctx, table, op->key, log_span_data(span));
	case LOG_OP_UPDATE:
		return r->sink->update(r->ctx, table, op->key, spans);
	case LOG_OP_DELETE:
		return r->sink->remove(r->ctx, table, op->key);
	}
	return -EUCLEAN;
}

static int redo_entry(struct recover_read *r, const struct log_entry *entry)
{
	const struct log_op *op;
	struct log_cursor ops;
	int rc;

	log_ops_begin(&ops, entry);
	while ((rc = log_ops_next(&ops, &op)) > 0) {
		rc = redo_op(r, op);
		if (rc)
			return rc;
	}
	return rc ? -EUCLEAN : 0;
}

static int by_csn(const void *a, const void *b)
{
	uint64_t x = (*(const struct log_entry *const *)a)->csn;
	uint64_t y = (*(const struct log_entry *const *)b)->csn;

	return (x > y) - (x < y);
}

/* Sorted, each once, and within what the group says of them? */
static bool are_in_order(const struct log_entry *const *entries, size_t n,
			 const struct log_group_header *group)
{
	for (size_t i = 1; i < n; i++) {
		if (entries[i - 1]->csn >= entries[i]->csn)
			return false;
	}
	return !n || (entries[0]->csn >= group->csn_first &&
		      entries[n - 1]->csn <= group->csn_last);
}

/* The group's entries into r->entries, in order. Returns how many, or -errno. */
static ssize_t sort_entries(struct recover_read *r, const struct log_group_header *group)
{
	const struct log_entry *entry;
	struct log_cursor entries;
	bool is_sorted = true;
	size_t n = 0;
	int rc;

	if (r->entries_room < group->n_entries) {
		free(r->entries);
		r->entries_room = 0;
		r->entries = calloc(group->n_entries, sizeof(*r->entries));
		if (!r->entries)
			return -ENOMEM;
		r->entries_room = group->n_entries;
	}
	log_entries_begin(&entries, group);
	while ((rc = log_entries_next(&entries, &entry)) > 0) {
		if (n == group->n_entries)
			return -EUCLEAN;
		is_sorted &= !n || r->entries[n - 1]->csn < entry->csn;
		r->entries[n++] = entry;
	}
	if (rc || n != group->n_entries)
		return -EUCLEAN;
	if (!is_sorted)
		qsort(r->entries, n, sizeof(*r->entries), by_csn);
	return are_in_order(r->entries, n, group) ? (ssize_t)n : -EUCLEAN;
}

static int redo_group(void *ctx, const struct log_group_header *group)
{
	struct recover_read *r = ctx;
	ssize_t n = sort_entries(r, group);
	int rc = n < 0 ? (int)n : 0;

	for (ssize_t i = 0; !rc && i < n; i++)
		rc = redo_entry(r, r->entries[i]);
	if (rc)
		return rc;
	r->figures.groups++;
	r->figures.transactions += (uint64_t)n;
	r->figures.log_bytes += group->bytes;
	r->figures.group = group->group;
	if (group->csn_last > r->figures.csn)
		r->figures.csn = group->csn_last;
	if (group->epoch_to > r->figures.epoch)
		r->figures.epoch = group->epoch_to;
	return r->sink->flush(r->ctx);
}

static int blame_segment(struct recover_read *r, uint64_t segment, int rc)
{
	if (rc && r->log.has_hole)
		return recover_complain(r, rc, LOG_SEGMENT_NAME ", offset %" PRIu64 ": group %"
					PRIu64 " is damaged or missing, and there are later ones",
					(unsigned long long)segment, r->log.end_offset,
					r->log.next_group);
	if (rc)
		return recover_complain(r, rc, LOG_SEGMENT_NAME ", offset %" PRIu64 ", group %"
					PRIu64 ": %s", (unsigned long long)segment,
					r->log.end_offset, r->log.next_group,
					rc == -EUCLEAN ? "does not fit the tables" :
							 strerror(-rc));
	return 0;
}

void recover_read_begin(struct recover_read *r)
{
	r->files_io = io_files_as(log_io(r->engine->log), IO_RECOVERY);
	r->io = &r->files_io;
	r->dir = log_dir(r->engine->log);
	r->log = (struct recover_log){
		.io = r->io, .dir = r->dir, .database = r->catalog.database,
		.fn = redo_group, .ctx = r,
	};
}

void recover_read_finish(struct recover_read *r)
{
	recover_log_finish(&r->log);
	recover_files_finish(&r->names);
	free(r->files.segments);
	free(r->files.checkpoints);
	free(r->segment_bytes);
	free(r->checkpoints);
	free(r->entries);
}

int recover_read_look(struct recover_read *r)
{
	int rc;

	rc = check_tables(r);
	if (rc)
		return rc;
	rc = recover_files_list(r->io, r->dir, &r->names);
	if (rc)
		return recover_complain(r, rc, "%.200s: %s", r->dir, strerror(-rc));
	rc = look_at_segments(r) ?:
	     look_at_checkpoints(r) ?:
	     recover_plan(&r->files, &r->plan, r->figures.error);
	if (rc)
		return rc;
	for (size_t i = 0; i < r->names.n_segments; i++) {
		if (r->plan.segment < r->files.n_segments &&
		    r->names.segments[i] >= r->files.segments[r->plan.segment].number)
			r->figures.log_bytes_all += r->segment_bytes[i];
	}
	if (r->plan.has_checkpoint)
		r->figures.checkpoint_bytes_all = recover_read_planned(r)->bytes;
	return 0;
}

/* If end_group was given, the log goes on behind it, and groups there may be half written. */
int recover_read_log(struct recover_read *r)
{
	const struct plan_files *files = &r->files;
	size_t i = r->plan.segment;
	int rc = 0;

	r->log.next_group = i < files->n_segments ? files->segments[i].first_group :
						    r->plan.first_group;
	r->log.skip_below = r->plan.first_group;
	for (size_t next = i; !rc && next < files->n_segments;
	     next = recover_good_segment(files, next + 1)) {
		uint64_t end = recover_segment_end(files, next);

		i = next;
		rc = blame_segment(r, files->segments[i].number,
				   recover_log_read(&r->log, files->segments[i].number,
						    end < r->end_group ? end : r->end_group));
	}
	/* Behind the last good one. */
	for (i = recover_good_segment(files, 0) < files->n_segments ? i + 1 : 0;
	     !rc && r->end_group == UINT64_MAX && i < files->n_segments; i++)
		rc = blame_segment(r, files->segments[i].number,
				   recover_log_probe(&r->log, files->segments[i].number));
	r->figures.torn_bytes = r->log.torn_bytes;
	return rc;
}
