// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recovery: redoes (recover_redo.h) what the files say (recover_read.h); then the log goes on where
 * it ended.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/cold/cold_checkpoint.h"
#include "oltp-engine/src/txn/engine.h"
#include "recover_lazy.h"
#include "recover_read.h"
#include "recover_redo.h"

#define PROGRESS_NS	100000000ull

struct recovery {
	struct recover_read read;
	struct oltp_recover_config config;
	uint64_t phase_ns, told_ns;	/* when the phase began; when progress was called */
	struct redo redo;
};

static double phase_ms(const struct recovery *r, uint64_t now)
{
	return (double)(now - r->phase_ns) / 1e6;
}

static void count(struct recovery *r, uint64_t now)
{
	struct oltp_recovery *figures = &r->read.figures;

	switch (figures->phase) {
	case OLTP_RECOVERY_LOOKING:
		figures->looking_ms = phase_ms(r, now);
		break;
	case OLTP_RECOVERY_CHECKPOINT:
		figures->checkpoint_ms = phase_ms(r, now);
		figures->rows = r->redo.counts.puts + figures->lazy_rows;
		break;
	case OLTP_RECOVERY_LOG:
		figures->log_ms = phase_ms(r, now);
		figures->puts = r->redo.counts.puts + figures->lazy_rows - figures->rows;
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
	uint64_t now = clock_now_ns();

	if (!r->config.progress || now - r->told_ns < PROGRESS_NS)
		return;
	r->told_ns = now;
	count(r, now);
	r->config.progress(r->config.ctx, &r->read.figures);
}

static void enter(struct recovery *r, enum oltp_recovery_phase phase)
{
	uint64_t now = clock_now_ns();

	count(r, now);
	r->read.figures.phase = phase;
	r->phase_ns = now;
}

static int sink_put(void *ctx, struct oltp_table *table, uint64_t key, const void *row)
{
	struct recovery *r = ctx;

	return redo_put(&r->redo, table, key, row);
}

static int sink_update(void *ctx, struct oltp_table *table, uint64_t key,
		       struct log_cursor spans)
{
	struct recovery *r = ctx;

	return redo_update(&r->redo, table, key, spans);
}

static int sink_remove(void *ctx, struct oltp_table *table, uint64_t key)
{
	struct recovery *r = ctx;

	return redo_delete(&r->redo, table, key);
}

static int sink_flush(void *ctx)
{
	struct recovery *r = ctx;
	int rc = redo_flush(&r->redo);

	if (!rc)
		tell(r);
	return rc;
}

static const struct recover_sink sink = { sink_put, sink_update, sink_remove, sink_flush };

static int check_end(struct recovery *r)
{
	struct recover_read *read = &r->read;
	struct redo_double twice;
	uint32_t table;
	uint64_t key;

	if (read->log.next_group <= read->plan.least_group)
		return recover_complain(read, -EUCLEAN, "the log ends with group %" PRIu64
					", and the checkpoint has of group %" PRIu64,
					read->log.next_group - 1, read->plan.least_group);
	if (redo_has_missing(&r->redo, &table, &key))
		return recover_complain(read, -EUCLEAN, "row %" PRIu64 " of table %u was updated, "
					"but it is neither in the checkpoint nor in the log",
					key, table);
	if (redo_has_double(&r->redo, &twice))
		return recover_complain(read, -EUCLEAN, "rows %" PRIu64 " and %" PRIu64
					" of table %u are both there, and have the same key in its "
					"index %u, which is unique", twice.keys[0], twice.keys[1],
					twice.table, twice.index);
	return 0;
}

/* Where the log goes on; a checkpoint may know of later epochs than the log. */
static int start_log(struct recover_read *read)
{
	const struct plan_files *files = &read->files;
	size_t n = files->n_segments;
	uint64_t *numbers = calloc(n + 1, sizeof(*numbers));
	uint64_t *first_groups = calloc(n + 1, sizeof(*first_groups));
	struct log_position position = {
		.segment = n ? files->segments[n - 1].number + 1 : 1,
		.group = read->log.next_group,
		.csn = read->figures.csn + 1,
		.epoch = read->figures.epoch + 1,
	};
	int rc = -ENOMEM;

	if (numbers && first_groups) {
		for (size_t i = 0; i < n; i++) {
			numbers[i] = files->segments[i].number;
			first_groups[i] = files->segments[i].is_good ?
						  files->segments[i].first_group : UINT64_MAX;
		}
		rc = read->io->ops->sync_dir(read->io->ctx, read->dir) ?:
		     log_start(read->engine->log, &position, numbers, first_groups, (uint32_t)n);
	}
	free(numbers);
	free(first_groups);
	return rc ? recover_complain(read, rc, "beginning a new segment: %s", strerror(-rc)) : 0;
}

static int recover(struct recovery *r)
{
	struct oltp_engine *engine = r->read.engine;
	int rc;

	rc = recover_read_look(&r->read);
	if (rc)
		return rc;
	rc = redo_init(&r->redo, engine);
	if (rc)
		return rc;
	enter(r, OLTP_RECOVERY_CHECKPOINT);
	rc = r->config.lazy ? recover_lazy(&r->read) : 1;
	if (rc > 0)
		rc = recover_read_checkpoint(&r->read);
	if (rc)
		return rc;
	enter(r, OLTP_RECOVERY_LOG);
	rc = recover_read_log(&r->read) ?: check_end(r) ?: start_log(&r->read);
	if (rc)
		return rc;
	r->read.figures.group = r->read.log.next_group - 1;
	if (engine->cold)
		cold_checkpoint_redone(engine->cold);
	enter(r, OLTP_RECOVERY_DONE);
	checkpointer_recovered(engine->checkpointer, r->read.figures.log_bytes,
			       r->read.figures.lazy_rows != 0,
			       (uint64_t)r->config.lazy_mib_s << 20);
	return 0;
}

int oltp_recover(struct oltp_engine *engine, const struct oltp_recover_config *config,
		 struct oltp_recovery *ret_recovery)
{
	struct recovery *r;
	int rc;

	if (!engine->log)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	if (!checkpointer_recover(engine->checkpointer)) {
		free(r);
		return -EINVAL;
	}
	if (config)
		r->config = *config;
	r->phase_ns = r->told_ns = clock_now_ns();
	r->read = (struct recover_read){ .engine = engine, .sink = &sink, .ctx = r,
					 .end_group = UINT64_MAX };
	recover_read_begin(&r->read);
	if (log_state(engine->log) == LOG_UNREAD)
		rc = recover(r);
	else
		rc = log_state(engine->log) == LOG_FAILED ? -EIO : 0;
	if (rc)
		count(r, clock_now_ns());
	else
		r->read.figures.phase = OLTP_RECOVERY_DONE;
	if (rc && !r->read.figures.error[0])
		recover_complain(&r->read, rc, "%s", strerror(-rc));
	if (ret_recovery)
		*ret_recovery = r->read.figures;
	recover_read_finish(&r->read);
	redo_finish(&r->redo);
	free(r);
	return rc;
}

uint64_t oltp_recovery_rows_left(struct oltp_engine *engine)
{
	return engine->cold ? cold_checkpoint_rows(engine->cold) : 0;
}
