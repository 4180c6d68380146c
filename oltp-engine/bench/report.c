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
	fputs("t_s,workers,tps,aborts_ps,p50_us,p95_us,p99_us,committed,conflicts,failed\n", file);
	*ret_file = file;
	return 0;
}

int report_stats_write(FILE *file, double t_s, const struct oltp_sample *s)
{
	if (!file)
		return 0;
	fprintf(file, "%.3f,%u,%.1f,%.1f,%.2f,%.2f,%.2f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", t_s,
		s->workers, s->tps, s->aborts_ps, s->p50_us, s->p95_us, s->p99_us,
		s->totals.committed, s->totals.conflicts, s->totals.failed);
	return fflush(file) ? -EIO : 0;
}

void report_sample_print(FILE *out, double t_s, const struct oltp_sample *s)
{
	fprintf(out,
		"oltp: t=%.3f workers=%u tps=%.0f aborts_ps=%.0f p50_us=%.1f p95_us=%.1f "
		"p99_us=%.1f\n",
		t_s, s->workers, s->tps, s->aborts_ps, s->p50_us, s->p95_us, s->p99_us);
	fflush(out);
}

void report_json_options(FILE *out, const struct bench_options *o)
{
	fprintf(out,
		"\"workload\":\"ycsb\",\"cc\":\"%s\",\"records\":%" PRIu64
		",\"operations\":%u,\"update_share\":%g,\"mix\":\"%s\",\"read_all\":%s,"
		"\"theta\":%g,\"scrambled\":%s,\"seed\":%" PRIu64 ",",
		oltp_cc_name(o->cc), o->ycsb.records, o->ycsb.operations, o->ycsb.update_share,
		o->ycsb.mix_by_transaction ? "transaction" : "operation",
		o->ycsb.read_all_fields ? "true" : "false", o->ycsb.theta,
		o->ycsb.is_scrambled ? "true" : "false", o->ycsb.seed);
}

void report_json_totals(FILE *out, double seconds, const struct oltp_sample *whole)
{
	const struct oltp_totals *totals = &whole->totals;

	fprintf(out,
		"\"seconds\":%.3f,\"tps\":%.1f,\"aborts_ps\":%.1f,\"p50_us\":%.2f,\"p95_us\":%.2f,"
		"\"p99_us\":%.2f,\"committed\":%" PRIu64 ",\"aborted\":%" PRIu64
		",\"failed_transactions\":%" PRIu64 ",\"accesses\":%" PRIu64
		",\"worker_cpu_seconds\":%.3f,",
		seconds, seconds > 0 ? (double)totals->committed / seconds : 0,
		seconds > 0 ? (double)totals->conflicts / seconds : 0, whole->p50_us, whole->p95_us,
		whole->p99_us, totals->committed, totals->conflicts, totals->failed,
		totals->accesses, (double)totals->cpu_ns / 1e9);
}

void report_json_verdict(FILE *out, const struct ycsb_verdict *v)
{
	if (!v) {
		fputs("\"verified\":false,\"lost_updates\":null", out);
		return;
	}
	fprintf(out,
		"\"verified\":true,\"records_found\":%" PRIu64 ",\"updates_committed\":%" PRIu64
		",\"updates_found\":%" PRIu64 ",\"checksum_equal\":%s,\"damaged_records\":%" PRIu64
		",\"inconsistent_reads\":%" PRIu64 ",\"lost_updates\":%" PRIu64,
		v->records, v->updates_committed, v->updates_found,
		v->is_checksum_equal ? "true" : "false", v->damaged_records, v->inconsistent_reads,
		v->lost_updates);
}
