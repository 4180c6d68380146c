// SPDX-License-Identifier: GPL-2.0-or-later
/* See log_figures.h. */
#include <errno.h>
#include <string.h>

#include "log_figures.h"

int log_figures_open(struct log_figures *figures, const struct bench_log_options *o)
{
	return o->dir && !o->no_disk_probe ? disk_probe_run(o->dir, &figures->disk) : 0;
}

void log_figures_start(struct log_figures *figures, struct oltp_engine *engine)
{
	oltp_durable_stats_read(engine, &figures->start);
	figures->last = figures->start;
	figures->last_s = 0;
}

void log_figures_line(struct log_figures *figures, FILE *out, double t_s,
		      struct oltp_engine *engine, const struct bench_log_options *o)
{
	double seconds = t_s - figures->last_s;
	struct oltp_durable_stats now;

	if (o->durability == OLTP_DURABILITY_OFF || seconds <= 0)
		return;
	oltp_durable_stats_read(engine, &now);
	fprintf(out, "oltp: t=%.3f log mb_s=%.1f groups_s=%.0f\n", t_s,
		(double)(now.bytes - figures->last.bytes) / 1e6 / seconds,
		(double)(now.groups - figures->last.groups) / seconds);
	figures->last = now;
	figures->last_s = t_s;
}

void log_figures_settle(struct oltp_engine *engine)
{
	struct oltp_durable_stats stats;

	oltp_durable_stats_read(engine, &stats);
	/* Why it may not work is in the result. */
	(void)oltp_durable_wait(engine, stats.epoch);
}

void log_figures_report(const struct log_figures *figures, double seconds,
			struct oltp_engine *engine, const struct bench_log_options *o,
			struct fields *fields)
{
	const struct oltp_durable_stats *start = &figures->start;
	double per_s = seconds > 0 ? 1 / seconds : 0;
	struct oltp_durable_stats end;

	fields_text(fields, "durability", oltp_durability_name(o->durability));
	if (o->durability == OLTP_DURABILITY_OFF)
		return;
	oltp_durable_stats_read(engine, &end);
	fields_object_begin(fields, "log");
	fields_u64(fields, "group_us", o->group_us ?: 1000);
	fields_bool(fields, "direct", end.is_direct);
	fields_text(fields, "error", end.has_failed ? strerrorname_np(-end.error) : "");
	fields_u64(fields, "groups", end.groups - start->groups);
	fields_u64(fields, "entries", end.entries - start->entries);
	fields_u64(fields, "bytes", end.bytes - start->bytes);
	fields_number(fields, "groups_per_s", 1, (double)(end.groups - start->groups) * per_s);
	fields_number(fields, "mb_per_s", 1, (double)(end.bytes - start->bytes) * per_s / 1e6);
	fields_u64(fields, "segments", end.segments);
	fields_u64(fields, "waits", end.waits - start->waits);
	/* Of the whole life of the engine, loading included. */
	fields_number(fields, "write_p50_us", 1, end.write_p50_us);
	fields_number(fields, "write_p99_us", 1, end.write_p99_us);
	fields_number(fields, "thread_cpu_seconds", 3, end.cpu_seconds - start->cpu_seconds);
	fields_object_end(fields);
	if (!o->dir || o->no_disk_probe)
		return;
	fields_object_begin(fields, "disk");
	fields_bool(fields, "direct", figures->disk.is_direct);
	fields_number(fields, "write_mb_per_s", 1, figures->disk.write_mb_per_s);
	fields_number(fields, "sync_p50_us", 1, figures->disk.sync_p50_us);
	fields_number(fields, "sync_p99_us", 1, figures->disk.sync_p99_us);
	fields_object_end(fields);
}
