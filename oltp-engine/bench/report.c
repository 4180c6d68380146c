// SPDX-License-Identifier: GPL-2.0-or-later
/* What the programs print: see report.h. */
#include <errno.h>
#include <inttypes.h>

#include "report.h"

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
	      "answered_bytes,unanswered_bytes,lost_records,offered_ps,queue,theta\n", file);
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
		",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.1f,%" PRIu64 ",%g\n",
		m->held_bytes, m->resident_bytes, m->cold_records, m->cold_reads, m->evicted_bytes,
		m->merged_bytes, m->answered_bytes, m->unanswered_bytes, m->lost_records,
		s->offered_ps, s->queue, theta);
	return fflush(file) ? -EIO : 0;
}

void report_sample_print(FILE *out, double t_s, const struct oltp_sample *s,
			 const struct oltp_memory_stats *m, double theta, bool is_open)
{
	fprintf(out,
		"oltp: t=%.3f workers=%u tps=%.0f aborts_ps=%.0f p50_us=%.1f p95_us=%.1f "
		"p99_us=%.1f theta=%g",
		t_s, s->workers, s->tps, s->aborts_ps, s->p50_us, s->p95_us, s->p99_us, theta);
	if (is_open)
		fprintf(out, " offered=%.0f queue=%" PRIu64, s->offered_ps, s->queue);
	if (m)
		fprintf(out, " held_mib=%" PRIu64 " cold=%" PRIu64 " cold_reads=%" PRIu64,
			m->held_bytes >> 20, m->cold_records, m->cold_reads);
	fputc('\n', out);
	fflush(out);
}

void report_audit_print(FILE *out, double t_s, double ms, const struct ycsb_audit *a)
{
	fprintf(out,
		"oltp: t=%.3f audit ms=%.1f complete=%d records=%" PRIu64 " damaged=%" PRIu64
		" updates=%" PRIu64 " content=%016" PRIx64 " rc=%d\n",
		t_s, ms, a->is_complete, a->records, a->damaged_records, a->updates, a->content,
		a->rc);
	fflush(out);
}

void report_json_memory(FILE *out, const struct oltp_memory_stats *m)
{
	fprintf(out,
		"\"memory\":{\"held_bytes\":%" PRIu64 ",\"unused_bytes\":%" PRIu64
		",\"maintenance_bytes\":%" PRIu64 ",\"resident_records\":%" PRIu64
		",\"resident_bytes\":%" PRIu64 ",\"cold_records\":%" PRIu64
		",\"file_bytes\":%" PRIu64 ",\"file_used_bytes\":%" PRIu64 ",",
		m->held_bytes, m->unused_bytes, m->maintenance_bytes, m->resident_records,
		m->resident_bytes, m->cold_records, m->file_bytes, m->file_used_bytes);
	fprintf(out,
		"\"cold_reads\":%" PRIu64 ",\"read_errors\":%" PRIu64 ",\"write_errors\":%" PRIu64
		",\"evicted_records\":%" PRIu64 ",\"evicted_bytes\":%" PRIu64
		",\"merged_records\":%" PRIu64 ",\"merged_bytes\":%" PRIu64
		",\"moved_records\":%" PRIu64 ",",
		m->cold_reads, m->read_errors, m->write_errors, m->evicted_records,
		m->evicted_bytes, m->merged_records, m->merged_bytes, m->moved_records);
	fprintf(out,
		"\"demands\":%" PRIu64 ",\"answered_bytes\":%" PRIu64
		",\"unanswered_bytes\":%" PRIu64
		",\"unanswered_demands\":%" PRIu64 ",\"last_demand_ms\":%.3f"
		",\"revoked_bytes\":%" PRIu64 ",\"lost_records\":%" PRIu64 "},",
		m->demands, m->answered_bytes, m->unanswered_bytes, m->unanswered_demands,
		(double)m->last_demand_ns / 1e6, m->revoked_bytes, m->lost_records);
}

void report_json_options(FILE *out, const struct bench_options *o)
{
	fprintf(out,
		"\"workload\":\"ycsb\",\"cc\":\"%s\",\"records\":%" PRIu64
		",\"operations\":%u,\"update_share\":%g,\"mix\":\"%s\",\"read_all\":%s,"
		"\"theta\":%g,\"scrambled\":%s,\"seed\":%" PRIu64 ",\"cold_access\":%g,"
		"\"cold_part\":%g,",
		oltp_cc_name(o->cc), o->ycsb.records, o->ycsb.operations, o->ycsb.update_share,
		o->ycsb.mix_by_transaction ? "transaction" : "operation",
		o->ycsb.read_all_fields ? "true" : "false", o->ycsb.theta,
		o->ycsb.is_scrambled ? "true" : "false", o->ycsb.seed, o->ycsb.cold_access,
		o->ycsb.cold_part);
}

void report_json_totals(FILE *out, double seconds, const struct oltp_sample *whole)
{
	const struct oltp_totals *totals = &whole->totals;

	fprintf(out,
		"\"seconds\":%.3f,\"tps\":%.1f,\"aborts_ps\":%.1f,\"p50_us\":%.2f,\"p95_us\":%.2f,"
		"\"p99_us\":%.2f,\"committed\":%" PRIu64 ",\"aborted\":%" PRIu64
		",\"failed_transactions\":%" PRIu64 ",\"failed_io\":%" PRIu64
		",\"failed_lost\":%" PRIu64 ",\"cold_aborts\":%" PRIu64 ",\"accesses\":%" PRIu64
		",\"worker_cpu_seconds\":%.3f,",
		seconds, seconds > 0 ? (double)totals->committed / seconds : 0,
		seconds > 0 ? (double)totals->conflicts / seconds : 0, whole->p50_us, whole->p95_us,
		whole->p99_us, totals->committed, totals->conflicts, totals->failed,
		totals->failed_io, totals->failed_lost, totals->colds, totals->accesses,
		(double)totals->cpu_ns / 1e9);
}

void report_json_verdict(FILE *out, const struct ycsb_verdict *v)
{
	if (!v) {
		fputs("\"verified\":false,\"lost_updates\":null", out);
		return;
	}
	fprintf(out,
		"\"verified\":true,\"records_found\":%" PRIu64 ",\"records_missing\":%" PRIu64
		",\"scan_rc\":%d,\"updates_committed\":%" PRIu64
		",\"updates_found\":%" PRIu64 ",\"checksum_equal\":%s,\"damaged_records\":%" PRIu64
		",\"inconsistent_reads\":%" PRIu64 ",\"lost_updates\":%" PRIu64,
		v->records, v->records_missing, v->scan_rc, v->updates_committed, v->updates_found,
		v->is_checksum_equal ? "true" : "false", v->damaged_records, v->inconsistent_reads,
		v->lost_updates);
}
