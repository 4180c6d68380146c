// SPDX-License-Identifier: GPL-2.0-or-later
/* What the programs print: see report.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report.h"

bool bench_is_written(FILE *file, const char *name)
{
	errno = 0;
	if (!fflush(file) && !ferror(file))
		return true;
	/* If an earlier flush failed, errno no longer says why. */
	fprintf(stderr, "%s: %s\n", name, strerror(errno ? errno : EIO));
	return false;
}

int report_stats_open(const char *path, FILE **ret_file)
{
	FILE *file;

	*ret_file = NULL;
	if (!path)
		return 0;
	file = fopen(path, "w");
	if (!file)
		return -errno;
	fputs("t_s,workers,tps,aborts_ps,p50_us,p95_us,p99_us,committed,conflicts,failed,"
	      "held_bytes,resident_bytes,cold_records,cold_reads,evicted_bytes,merged_bytes,"
	      "answered_bytes,unanswered_bytes,lost_records,offered_ps,queue,theta,"
	      "baseline_ios,actual_ios\n", file);
	*ret_file = file;
	return 0;
}

int report_stats_write(FILE *file, double t_s, const struct oltp_sample *s,
		       const struct oltp_memory_stats *m, double theta)
{
	if (!file)
		return 0;
	fprintf(file, "%.3f,%u,%.1f,%.1f,%.2f,%.2f,%.2f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", t_s,
		s->workers, s->tps, s->aborts_ps, s->p50_us, s->p95_us, s->p99_us,
		s->totals.committed, s->totals.conflicts, s->totals.failed);
	fprintf(file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.1f,%" PRIu64 ",",
		m->held_bytes, m->resident_bytes, m->cold_records, m->cold_reads, m->evicted_bytes,
		m->merged_bytes, m->answered_bytes, m->unanswered_bytes, m->lost_records,
		s->offered_ps, s->queue);
	if (!isnan(theta))
		fprintf(file, "%g", theta);
	fprintf(file, ",%" PRIu64 ",%" PRIu64 "\n", m->baseline_ios, m->actual_ios);
	return fflush(file) ? -errno : 0;
}

void report_sample_print(FILE *out, double t_s, const struct oltp_sample *s,
			 const struct oltp_memory_stats *m, double theta, bool is_open)
{
	fprintf(out,
		"oltp: t=%.3f workers=%u tps=%.0f aborts_ps=%.0f p50_us=%.1f p95_us=%.1f "
		"p99_us=%.1f",
		t_s, s->workers, s->tps, s->aborts_ps, s->p50_us, s->p95_us, s->p99_us);
	if (!isnan(theta))
		fprintf(out, " theta=%g", theta);
	if (is_open)
		fprintf(out, " offered=%.0f queue=%" PRIu64, s->offered_ps, s->queue);
	if (m)
		fprintf(out, " held_mib=%" PRIu64 " cold=%" PRIu64 " cold_reads=%" PRIu64,
			m->held_bytes >> 20, m->cold_records, m->cold_reads);
	if (m && (m->baseline_ios || m->actual_ios))
		fprintf(out, " baseline_ios=%" PRIu64 " actual_ios=%" PRIu64, m->baseline_ios,
			m->actual_ios);
	fputc('\n', out);
	fflush(out);
}

void report_audit_print(FILE *out, double t_s, double ms, const struct bench_audit *a)
{
	fprintf(out,
		"oltp: t=%.3f audit ms=%.1f complete=%d records=%" PRIu64 " damaged=%" PRIu64
		" updates=%" PRIu64 " content=%016" PRIx64 " rc=%d\n",
		t_s, ms, a->is_complete, a->records, a->damaged_records, a->updates, a->content,
		a->rc);
	fflush(out);
}

void report_memory(struct fields *fields, const struct oltp_memory_stats *m)
{
	fields_object_begin(fields, "memory");
	fields_u64(fields, "held_bytes", m->held_bytes);
	fields_u64(fields, "unused_bytes", m->unused_bytes);
	fields_u64(fields, "maintenance_bytes", m->maintenance_bytes);
	fields_u64(fields, "resident_records", m->resident_records);
	fields_u64(fields, "resident_bytes", m->resident_bytes);
	fields_u64(fields, "cold_records", m->cold_records);
	fields_u64(fields, "file_bytes", m->file_bytes);
	fields_u64(fields, "file_used_bytes", m->file_used_bytes);
	fields_u64(fields, "cold_reads", m->cold_reads);
	fields_u64(fields, "read_errors", m->read_errors);
	fields_u64(fields, "write_errors", m->write_errors);
	fields_u64(fields, "evicted_records", m->evicted_records);
	fields_u64(fields, "evicted_bytes", m->evicted_bytes);
	fields_u64(fields, "merged_records", m->merged_records);
	fields_u64(fields, "merged_bytes", m->merged_bytes);
	fields_u64(fields, "moved_records", m->moved_records);
	fields_u64(fields, "compacted_records", m->compacted_records);
	fields_u64(fields, "demands", m->demands);
	fields_u64(fields, "answered_bytes", m->answered_bytes);
	fields_u64(fields, "unanswered_bytes", m->unanswered_bytes);
	fields_u64(fields, "unanswered_demands", m->unanswered_demands);
	fields_number(fields, "last_demand_ms", 3, (double)m->last_demand_ns / 1e6);
	fields_u64(fields, "revoked_bytes", m->revoked_bytes);
	fields_u64(fields, "lost_records", m->lost_records);
	fields_u64(fields, "baseline_ios", m->baseline_ios);
	fields_u64(fields, "actual_ios", m->actual_ios);
	fields_object_end(fields);
}

void report_recency(struct fields *fields, const struct oltp_memory_recency *r)
{
	/* In an engine whose memory stays there is none. */
	if (fields->style == FIELDS_TABLE && !r->looks)
		return;
	fields_object_begin(fields, "recency");
	fields_u64(fields, "samples", r->samples);
	fields_u64(fields, "resident_samples", r->resident_samples);
	fields_number(fields, "unused_1s", 3, r->unused_1s);
	fields_number(fields, "unused_10s", 3, r->unused_10s);
	fields_number(fields, "unused_60s", 3, r->unused_60s);
	fields_u64(fields, "looks", r->looks);
	fields_number(fields, "look_us", 1,
		      r->looks ? (double)r->look_ns / (double)r->looks / 1e3 : NAN);
	fields_u64(fields, "rereads", r->rereads);
	fields_number(fields, "reread_p50_us", 1, r->reread_p50_ns / 1e3);
	fields_number(fields, "reread_p99_us", 1, r->reread_p99_ns / 1e3);
	fields_number(fields, "reread_cpu_us", 2, r->reread_cpu_ns / 1e3);
	fields_object_end(fields);
}

void report_totals(struct fields *fields, double seconds, const struct oltp_sample *whole)
{
	const struct oltp_totals *totals = &whole->totals;
	double per_s = seconds > 0 ? 1 / seconds : 0;

	fields_number(fields, "seconds", 3, seconds);
	fields_number(fields, "tps", 1, (double)totals->committed * per_s);
	fields_number(fields, "aborts_ps", 1, (double)totals->conflicts * per_s);
	fields_number(fields, "p50_us", 2, whole->p50_us);
	fields_number(fields, "p95_us", 2, whole->p95_us);
	fields_number(fields, "p99_us", 2, whole->p99_us);
	fields_u64(fields, "committed", totals->committed);
	fields_u64(fields, "aborted", totals->conflicts);
	fields_u64(fields, "lock_waits", totals->waits);
	fields_u64(fields, "wounds", totals->wounds);
	fields_u64(fields, "failed_transactions", totals->failed);
	fields_u64(fields, "failed_io", totals->failed_io);
	fields_u64(fields, "failed_lost", totals->failed_lost);
	fields_u64(fields, "cold_aborts", totals->colds);
	fields_u64(fields, "accesses", totals->accesses);
	fields_number(fields, "worker_cpu_seconds", 3, (double)totals->cpu_ns / 1e9);
}

void report_latency(struct fields *fields, const char *name, const struct oltp_latency_summary *l)
{
	if (fields->style == FIELDS_TABLE && !l->n)
		return;
	fields_object_begin(fields, name);
	fields_u64(fields, "n", l->n);
	fields_number(fields, "median", 3, l->median_ms);
	fields_number(fields, "p95", 3, l->p95_ms);
	fields_object_end(fields);
}

static void report_tiers(struct fields *fields, const char *kind,
			 const struct oltp_latency_summary tiers[OLTP_TIERS])
{
	char name[64];

	for (uint32_t tier = OLTP_TIER_LEND; tier < OLTP_TIERS; tier++) {
		snprintf(name, sizeof(name), "cpu_%s_%s_ms", kind,
			 oltp_tier_name((enum oltp_tier)tier));
		report_latency(fields, name, &tiers[tier]);
	}
}

void report_moves(struct fields *fields, const struct oltp_elastic_figures *figures)
{
	fields_u64(fields, "cpus_added", figures->cpus_added);
	fields_u64(fields, "cpus_removed", figures->cpus_removed);
	fields_u64(fields, "adds_failed", figures->adds_failed);
	fields_u64(fields, "removes_failed", figures->removes_failed);
	report_latency(fields, "cpu_add_ms", &figures->add);
	report_latency(fields, "cpu_remove_ms", &figures->remove);
	report_tiers(fields, "add", figures->tier_add);
	report_tiers(fields, "remove", figures->tier_remove);
}
