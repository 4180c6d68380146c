// SPDX-License-Identifier: GPL-2.0-or-later
/* See recovery.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "recovery.h"
#include "oltp-engine/src/base/clock.h"

#define LINE_NS		500000000ull

struct teller {
	uint64_t start_ns, last_ns;
};

static void print(const char *phase, double seconds, const struct oltp_recovery *f)
{
	printf("oltp: recovery t=%.3f phase=%s checkpoint_mib=%.0f/%.0f rows=%" PRIu64
	       " log_mib=%.0f/%.0f groups=%" PRIu64 " transactions=%" PRIu64 "\n",
	       seconds, phase, (double)f->checkpoint_bytes / 0x1p20,
	       (double)f->checkpoint_bytes_all / 0x1p20, f->rows, (double)f->log_bytes / 0x1p20,
	       (double)f->log_bytes_all / 0x1p20, f->groups, f->transactions);
	fflush(stdout);
}

static const char *phase_name(enum oltp_recovery_phase phase)
{
	switch (phase) {
	case OLTP_RECOVERY_LOOKING:
		return "looking";
	case OLTP_RECOVERY_CHECKPOINT:
		return "checkpoint";
	case OLTP_RECOVERY_LOG:
		return "log";
	case OLTP_RECOVERY_DONE:
		break;
	}
	return "done";
}

static void tell(void *ctx, const struct oltp_recovery *so_far)
{
	struct teller *teller = ctx;
	uint64_t now = clock_now_ns();

	if (now - teller->last_ns < LINE_NS)
		return;
	teller->last_ns = now;
	print(phase_name(so_far->phase), (double)(now - teller->start_ns) / 1e9, so_far);
}

static int adopt(struct recovery *recovery, const struct bench_workload_ops *ops, void *state)
{
	uint64_t start_ns = clock_now_ns();
	struct bench_audit found;
	int rc = ops->adopt(state, &found);

	recovery->adopt_ms = (double)(clock_now_ns() - start_ns) / 1e6;
	if (rc) {
		fprintf(stderr, "oltp: looking over what was recovered: %s\n", strerror(-rc));
		return rc;
	}
	if (found.is_complete && !found.damaged_records)
		return 0;
	fprintf(stderr, "oltp: recovered %" PRIu64 " records, %" PRIu64 " of them damaged, rc %d: "
		"not what a run of these options leaves\n", found.records, found.damaged_records,
		found.rc);
	return -EBADMSG;
}

static int first(struct recovery *recovery, const struct bench_workload_ops *ops, void *state,
		 uint64_t start_ns)
{
	int rc = ops->first ? ops->first(state) : 0;

	if (rc)
		fprintf(stderr, "oltp: the first transaction: %s\n", strerror(-rc));
	else if (ops->first)
		recovery->first_ms = (double)(clock_now_ns() - start_ns) / 1e6;
	return rc;
}

int recovery_run(struct recovery *recovery, struct oltp_engine *engine,
		 const struct bench_workload_ops *ops, void *state,
		 const struct recovery_config *config)
{
	struct oltp_recovery *figures = &recovery->figures;
	struct teller teller = { .start_ns = clock_now_ns() };
	const struct oltp_recover_config how = { .progress = config->quiet ? NULL : tell,
						 .ctx = &teller, .lazy = config->is_lazy };
	bool is_looked_over;
	int rc;

	teller.last_ns = teller.start_ns;
	recovery->was_asked = true;
	rc = oltp_recover(engine, &how, figures);
	if (rc) {
		fprintf(stderr, "oltp: recovery: %s\n", figures->error);
		return rc;
	}
	recovery->has_found = figures->rows || figures->transactions;
	if (!recovery->has_found)
		return 0;
	is_looked_over = !figures->lazy_rows || config->is_verified || !ops->needs_no_adopt ||
			 !ops->needs_no_adopt(state);
	rc = first(recovery, ops, state, teller.start_ns);
	if (!rc && is_looked_over)
		rc = adopt(recovery, ops, state);
	if (!rc && !config->quiet)
		print("done", (double)(clock_now_ns() - teller.start_ns) / 1e9, figures);
	return rc;
}

static void report_recovery(const struct recovery *recovery, struct oltp_engine *engine,
			    struct fields *fields)
{
	const struct oltp_recovery *f = &recovery->figures;

	fields_object_begin(fields, "recovery");
	fields_bool(fields, "found", recovery->has_found);
	fields_number(fields, "looking_ms", 3, f->looking_ms);
	fields_number(fields, "checkpoint_ms", 3, f->checkpoint_ms);
	fields_number(fields, "log_ms", 3, f->log_ms);
	fields_number(fields, "first_ms", 3, recovery->first_ms);
	fields_number(fields, "adopt_ms", 3, recovery->adopt_ms);
	fields_u64(fields, "checkpoint_bytes", f->checkpoint_bytes);
	fields_u64(fields, "rows", f->rows);
	fields_u64(fields, "lazy_rows", f->lazy_rows);
	fields_u64(fields, "lazy_rows_left", oltp_recovery_rows_left(engine));
	fields_text(fields, "not_lazy", f->not_lazy ?: "");
	fields_u64(fields, "log_bytes", f->log_bytes);
	fields_u64(fields, "groups", f->groups);
	fields_u64(fields, "transactions", f->transactions);
	fields_u64(fields, "puts", f->puts);
	fields_u64(fields, "updates", f->updates);
	fields_u64(fields, "deletes", f->deletes);
	fields_u64(fields, "passed_over", f->passed_over);
	fields_u64(fields, "torn_bytes", f->torn_bytes);
	fields_u64(fields, "csn", f->csn);
	fields_u64(fields, "epoch", f->epoch);
	fields_object_end(fields);
}

void recovery_report(const struct recovery *recovery, struct oltp_engine *engine, bool has_log,
		     struct fields *fields)
{
	struct oltp_checkpoint_stats stats;
	struct oltp_restore_stats restored;

	if (recovery->was_asked)
		report_recovery(recovery, engine, fields);
	if (!has_log)
		return;
	oltp_checkpoint_stats_read(engine, &stats);
	fields_object_begin(fields, "checkpoints");
	fields_u64(fields, "made", stats.checkpoints);
	fields_u64(fields, "failed", stats.failed);
	fields_text(fields, "error", stats.last_error ? strerrorname_np(-stats.last_error) : "");
	fields_u64(fields, "last_rows", stats.last_rows);
	fields_u64(fields, "last_bytes", stats.last_bytes);
	fields_number(fields, "last_ms", 3, stats.last_ms);
	fields_number(fields, "last_held_ms", 3, stats.last_held_ms);
	fields_object_end(fields);
	oltp_restore_stats_read(engine, &restored);
	fields_object_begin(fields, "restores");
	fields_u64(fields, "made", restored.restores);
	fields_u64(fields, "failed", restored.failed);
	fields_text(fields, "error",
		    restored.last_error ? strerrorname_np(-restored.last_error) : "");
	fields_u64(fields, "records", restored.records);
	fields_number(fields, "last_ms", 3, restored.last_ms);
	fields_number(fields, "max_ms", 3, restored.max_ms);
	fields_object_end(fields);
}
