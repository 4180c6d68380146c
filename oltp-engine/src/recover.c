// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recovery: looks which files there are, has a plan made (recover_plan.h), and does what it says.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "checkpoint.h"
#include "checkpoint_read.h"
#include "engine.h"
#include "log_core.h"
#include "log_decode.h"
#include "recover_files.h"
#include "recover_log.h"
#include "recover_plan.h"
#include "recover_redo.h"

#define PROGRESS_NS	100000000ull

struct recovery {
	struct oltp_engine *engine;
	const struct log_io *io;
	const char *dir;
	struct oltp_recover_config config;
	struct oltp_recovery figures;
	uint64_t phase_ns, told_ns;	/* when the phase began; when progress was called */
	struct log_catalog catalog;
	struct recover_files names;
	struct plan_files files;
	uint64_t *segment_bytes;	/* by name */
	struct checkpoint_info *checkpoints;	/* as files.checkpoints once planned */
	struct recover_plan plan;
	struct recover_log log;
	struct redo redo;
	const struct log_entry **entries;	/* of a group, to be sorted */
	size_t entries_room;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

__attribute__((format(printf, 3, 4)))
static int complain(struct recovery *r, int rc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->figures.error, sizeof(r->figures.error), format, args);
	va_end(args);
	return rc;
}

static double phase_ms(const struct recovery *r, uint64_t now)
{
	return (double)(now - r->phase_ns) / 1e6;
}

static void count(struct recovery *r, uint64_t now)
{
	struct oltp_recovery *figures = &r->figures;

	switch (figures->phase) {
	case OLTP_RECOVERY_LOOKING:
		figures->looking_ms = phase_ms(r, now);
		break;
	case OLTP_RECOVERY_CHECKPOINT:
		figures->checkpoint_ms = phase_ms(r, now);
		figures->rows = r->redo.counts.puts;
		break;
	case OLTP_RECOVERY_LOG:
		figures->log_ms = phase_ms(r, now);
		figures->puts = r->redo.counts.puts - figures->rows;
		figures->updates = r->redo.counts.updates;
		figures->deletes = r->redo.counts.deletes;
		figures->passed_over = r->redo.counts.passed_over;
		break;
	case OLTP_RECOVERY_DONE:
		break;
	}
}

static void tell(struct recovery *r)
{
	uint64_t now = now_ns();

	if (!r->config.progress || now - r->told_ns < PROGRESS_NS)
		return;
	r->told_ns = now;
	count(r, now);
	r->config.progress(r->config.ctx, &r->figures);
}

static void enter(struct recovery *r, enum oltp_recovery_phase phase)
{
	uint64_t now = now_ns();

	count(r, now);
	r->figures.phase = phase;
	r->phase_ns = now;
}

static int check_tables(struct recovery *r)
{
	log_catalog_get(r->engine->log, &r->catalog);
	/* That sizes are the same was checked when they were created. */
	if (r->catalog.n_tables > tables_count(r->engine))
		return complain(r, -EINVAL, "%s has %u tables, and %u were created",
				LOG_CATALOG_NAME, r->catalog.n_tables, tables_count(r->engine));
	return 0;
}

static int look_at_segments(struct recovery *r)
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
			complain(r, rc, LOG_SEGMENT_NAME ": %s",
				 (unsigned long long)segment->number, strerror(-rc));
		else if (segment->is_good)
			segment->first_group = header.first_group;
	}
	return rc;
}

/* Blocks are read by what the header says of tables: it must be true of these tables. */
static bool has_these_tables(const struct recovery *r, const struct checkpoint_header *header)
{
	return header->n_tables <= r->catalog.n_tables &&
	       !memcmp(header->tables, r->catalog.tables,
		       header->n_tables * sizeof(header->tables[0]));
}

static int look_at_checkpoints(struct recovery *r)
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
			complain(r, rc, CHECKPOINT_NAME ": %s",
				 (unsigned long long)checkpoint->number, strerror(-rc));
		else if (info->is_good && has_these_tables(r, &info->header))
			*checkpoint = (struct plan_checkpoint){
				checkpoint->number, true, info->header.start_group,
				info->end.end_group,
			};
	}
	return rc;
}

static const struct checkpoint_info *planned_checkpoint(const struct recovery *r)
{
	uint64_t number = r->files.checkpoints[r->plan.checkpoint].number;

	for (size_t i = 0; i < r->names.n_checkpoints; i++) {
		if (r->checkpoints[i].number == number)
			return &r->checkpoints[i];
	}
	return NULL;
}

static int look(struct recovery *r)
{
	int rc;

	rc = check_tables(r);
	if (rc)
		return rc;
	rc = recover_files_list(r->io, r->dir, &r->names);
	if (rc)
		return complain(r, rc, "%.200s: %s", r->dir, strerror(-rc));
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
		r->figures.checkpoint_bytes_all = planned_checkpoint(r)->bytes;
	return 0;
}

static int load_rows(void *ctx, const struct checkpoint_rows *rows)
{
	struct recovery *r = ctx;
	struct oltp_table *table = r->engine->tables[rows->table];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < rows->n_rows; i++) {
		const uint8_t *row = rows->rows + (size_t)i * rows->row_bytes;
		uint64_t key;

		memcpy(&key, row, sizeof(key));
		rc = redo_put(&r->redo, table, key, row + sizeof(key));
	}
	rc = rc ?: redo_flush(&r->redo);
	r->figures.checkpoint_bytes = rows->offset;
	tell(r);
	return rc;
}

static int load_checkpoint(struct recovery *r)
{
	const struct checkpoint_info *info;
	uint64_t offset;
	int rc;

	if (!r->plan.has_checkpoint)
		return 0;
	info = planned_checkpoint(r);
	rc = checkpoint_read(r->io, r->dir, info, load_rows, r, &offset);
	if (rc)
		return complain(r, rc, CHECKPOINT_NAME ", offset %" PRIu64 ": %s",
				(unsigned long long)info->number, offset,
				rc == -EUCLEAN ? "damaged" : strerror(-rc));
	r->figures.checkpoint_bytes = info->bytes;
	return 0;
}

static int redo_op(struct recovery *r, const struct log_op *op)
{
	struct oltp_table *table;
	const struct log_span *span = (const struct log_span *)(op + 1);
	size_t bytes = op->bytes - sizeof(*op);

	if (op->table >= tables_count(r->engine))
		return -EUCLEAN;
	table = r->engine->tables[op->table];
	switch (op->kind) {
	case LOG_OP_PUT:
		if (bytes < sizeof(*span) || span->offset || span->bytes != table->record_bytes ||
		    bytes - sizeof(*span) < span->bytes)
			return -EUCLEAN;
		return redo_put(&r->redo, table, op->key, log_span_data(span));
	case LOG_OP_UPDATE:
		return redo_update(&r->redo, table, op->key, (const uint8_t *)span, op->n_spans,
				   bytes);
	case LOG_OP_DELETE:
		return redo_delete(&r->redo, table, op->key);
	}
	return -EUCLEAN;
}

static int redo_entry(struct recovery *r, const struct log_entry *entry)
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
static ssize_t sort_entries(struct recovery *r, const struct log_group_header *group)
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
	struct recovery *r = ctx;
	ssize_t n = sort_entries(r, group);
	int rc = n < 0 ? (int)n : 0;

	for (ssize_t i = 0; !rc && i < n; i++)
		rc = redo_entry(r, r->entries[i]);
	rc = rc ?: redo_flush(&r->redo);
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
	tell(r);
	return 0;
}

static int blame_segment(struct recovery *r, uint64_t segment, int rc)
{
	if (rc && r->log.has_hole)
		return complain(r, rc, LOG_SEGMENT_NAME ", offset %" PRIu64 ": group %" PRIu64
				" is damaged or missing, and there are later ones",
				(unsigned long long)segment, r->log.end_offset, r->log.next_group);
	if (rc)
		return complain(r, rc, LOG_SEGMENT_NAME ", offset %" PRIu64 ", group %" PRIu64
				": %s", (unsigned long long)segment, r->log.end_offset,
				r->log.next_group,
				rc == -EUCLEAN ? "does not fit the tables" : strerror(-rc));
	return 0;
}

static int redo_segments(struct recovery *r)
{
	const struct plan_files *files = &r->files;
	size_t i = r->plan.segment;
	int rc = 0;

	r->log.next_group = i < files->n_segments ? files->segments[i].first_group :
						    r->plan.first_group;
	r->log.skip_below = r->plan.first_group;
	for (size_t next = i; !rc && next < files->n_segments;
	     next = recover_good_segment(files, next + 1)) {
		i = next;
		rc = blame_segment(r, files->segments[i].number,
				   recover_log_read(&r->log, files->segments[i].number,
						    recover_segment_end(files, i)));
	}
	/* Behind the last good one. */
	for (i = recover_good_segment(files, 0) < files->n_segments ? i + 1 : 0;
	     !rc && i < files->n_segments; i++)
		rc = blame_segment(r, files->segments[i].number,
				   recover_log_probe(&r->log, files->segments[i].number));
	r->figures.torn_bytes = r->log.torn_bytes;
	return rc;
}

static int check_end(struct recovery *r)
{
	struct redo_double twice;
	uint32_t table;
	uint64_t key;

	if (r->log.next_group <= r->plan.least_group)
		return complain(r, -EUCLEAN, "the log ends with group %" PRIu64 ", and the "
				"checkpoint has of group %" PRIu64, r->log.next_group - 1,
				r->plan.least_group);
	if (redo_has_missing(&r->redo, &table, &key))
		return complain(r, -EUCLEAN, "row %" PRIu64 " of table %u was updated, but it is "
				"neither in the checkpoint nor in the log", key, table);
	if (redo_has_double(&r->redo, &twice))
		return complain(r, -EUCLEAN, "rows %" PRIu64 " and %" PRIu64 " of table %u are "
				"both there, and have the same key in its index %u, which is "
				"unique", twice.keys[0], twice.keys[1], twice.table, twice.index);
	return 0;
}

/* Where the log goes on; a checkpoint may know of later epochs than the log. */
static int start_log(struct recovery *r)
{
	const struct plan_files *files = &r->files;
	size_t n = files->n_segments;
	uint64_t *numbers = calloc(n + 1, sizeof(*numbers));
	uint64_t *first_groups = calloc(n + 1, sizeof(*first_groups));
	struct log_position position = {
		.segment = n ? files->segments[n - 1].number + 1 : 1,
		.group = r->log.next_group,
		.csn = r->figures.csn + 1,
		.epoch = r->figures.epoch + 1,
	};
	int rc = -ENOMEM;

	if (numbers && first_groups) {
		for (size_t i = 0; i < n; i++) {
			numbers[i] = files->segments[i].number;
			first_groups[i] = files->segments[i].is_good ?
						  files->segments[i].first_group : UINT64_MAX;
		}
		rc = r->io->ops->sync_dir(r->io->ctx, r->dir) ?:
		     log_start(r->engine->log, &position, numbers, first_groups, (uint32_t)n);
	}
	free(numbers);
	free(first_groups);
	return rc ? complain(r, rc, "beginning a new segment: %s", strerror(-rc)) : 0;
}

static int recover(struct recovery *r)
{
	int rc;

	rc = look(r);
	if (rc)
		return rc;
	rc = redo_init(&r->redo, r->engine);
	if (rc)
		return rc;
	enter(r, OLTP_RECOVERY_CHECKPOINT);
	rc = load_checkpoint(r);
	if (rc)
		return rc;
	if (r->plan.has_checkpoint) {
		r->figures.csn = planned_checkpoint(r)->end.end_csn - 1;
		r->figures.epoch = planned_checkpoint(r)->end.end_epoch;
	}
	enter(r, OLTP_RECOVERY_LOG);
	rc = redo_segments(r) ?: check_end(r) ?: start_log(r);
	if (rc)
		return rc;
	r->figures.group = r->log.next_group - 1;
	enter(r, OLTP_RECOVERY_DONE);
	checkpointer_recovered(r->engine->checkpointer, r->figures.log_bytes);
	return 0;
}

static void finish(struct recovery *r)
{
	redo_finish(&r->redo);
	recover_log_finish(&r->log);
	recover_files_finish(&r->names);
	free(r->files.segments);
	free(r->files.checkpoints);
	free(r->segment_bytes);
	free(r->checkpoints);
	free(r->entries);
}

int oltp_recover(struct oltp_engine *engine, const struct oltp_recover_config *config,
		 struct oltp_recovery *ret_recovery)
{
	struct recovery *r;
	int rc;

	if (!engine->log || engine->is_recovered)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	engine->is_recovered = true;
	r->engine = engine;
	r->io = log_io_of(engine->log);
	r->dir = log_dir(engine->log);
	if (config)
		r->config = *config;
	r->phase_ns = r->told_ns = now_ns();
	r->log = (struct recover_log){
		.io = r->io, .dir = r->dir, .database = r->catalog.database,
		.fn = redo_group, .ctx = r,
	};
	if (log_state(engine->log) == LOG_UNREAD)
		rc = recover(r);
	else
		rc = log_state(engine->log) == LOG_FAILED ? -EIO : 0;
	if (rc)
		count(r, now_ns());
	else
		r->figures.phase = OLTP_RECOVERY_DONE;
	if (rc && !r->figures.error[0])
		complain(r, rc, "%s", strerror(-rc));
	if (ret_recovery)
		*ret_recovery = r->figures;
	finish(r);
	free(r);
	return rc;
}
