// SPDX-License-Identifier: GPL-2.0-or-later
/* One run of the engine under a workload: see session.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"
#include "report.h"
#include "session_private.h"
#include "oltp-engine/src/base/clock.h"

static void audit_note(struct session *s, const struct audit_result *result)
{
	const struct bench_audit *found = &result->found;
	bool is_bad = !found->is_complete || found->damaged_records ||
		      found->updates < s->audits.updates;

	s->audits.n++;
	s->audits.n_bad += is_bad;
	s->audits.updates = found->updates;
	if (session_has_lines(s))
		report_audit_print(stdout, session_run_seconds(s, result->start_ns),
				   (double)(result->end_ns - result->start_ns) / 1e6, found);
}

bool session_audit_ended(void *ctx, int fd)
{
	struct audit_result result;
	struct session *s = ctx;

	(void)fd;
	if (audit_collect(s->audit, false, &result))
		audit_note(s, &result);
	return false;
}

int session_audit(struct session *s)
{
	return s->audit ? audit_start(s->audit) : -EOPNOTSUPP;
}

void session_set_source(struct session *s, const struct oltp_cpu_source_ops *ops, void *source)
{
	s->source_ops = ops;
	s->source = source;
}

int session_watch(struct session *s, int fd, bool (*fn)(void *ctx, int fd), void *ctx)
{
	if (s->n_watches == SESSION_FDS_MAX)
		return -ENOSPC;
	s->watches[s->n_watches++] = (struct watch){ fd, fn, ctx };
	return 0;
}

void session_unwatch(struct session *s, int fd)
{
	for (uint32_t i = 0; i < s->n_watches; i++) {
		if (s->watches[i].fd == fd) {
			s->watches[i] = s->watches[--s->n_watches];
			return;
		}
	}
}

static void print_move(void *ctx, const struct oltp_move *move)
{
	const struct session *s = ctx;

	if (!session_has_lines(s))
		return;
	printf("oltp: t=%.3f %s node=%u cpus=", session_run_seconds(s, move->start_ns),
	       move->is_add ? "add" : "remove", move->node);
	for (uint32_t i = 0; i < move->n_cpus; i++)
		printf("%s%u", i ? "," : "", move->cpus[i]);
	printf(" tier=%s ms=%.3f host_ms=%.3f kernel_ms=%.3f stop_ms=%.3f start_ms=%.3f "
	       "result=%s\n",
	       oltp_tier_name(move->times.tier), (double)move->call_ns / 1e6,
	       (double)move->times.host_ns / 1e6, (double)move->times.kernel_ns / 1e6,
	       (double)move->stop_ns / 1e6, (double)move->start_workers_ns / 1e6,
	       move->rc ? strerrorname_np(-move->rc) : "ok");
	fflush(stdout);
}

/* Does memory come and go in this run? */
static bool has_memory(const struct session *s)
{
	return s->config.blocks || s->limits.blocks || bench_has_cold(&s->config.options);
}

/* On the terminal, if samples do not go there anyway. */
static void put_line(const struct session *s, double t_s, const struct oltp_sample *sample)
{
	const struct bench_options *o = &s->config.options;
	char until[32] = "", text[128];

	if (session_has_lines(s) && isatty(STDOUT_FILENO))
		return;
	if (o->seconds > 0)
		snprintf(until, sizeof(until), " of %.0f", o->seconds);
	snprintf(text, sizeof(text), "oltp: running, %.0f%s s: %u workers, %.0f/s, p99 %.1f us",
		 t_s, until, sample->workers, sample->tps, sample->p99_us);
	progress_put(progress_terminal(o->quiet), text);
}

/* NaN: the workload has no such thing. */
static double theta_now(const struct session *s)
{
	return s->ops->knob_get ? s->ops->knob_get(s->state, BENCH_KNOB_THETA) : (double)NAN;
}

/* A sample goes to the screen, the file and the source; the file alone must not fail silently. */
static int take_sample(struct session *s, uint64_t at_ns)
{
	struct oltp_sample sample;
	double t_s = session_run_seconds(s, at_ns);

	struct oltp_memory_stats memory;

	oltp_pool_sample(s->pool, at_ns, &sample);
	oltp_memory_stats_read(s->engine, &memory);
	if (session_has_lines(s))
		report_sample_print(stdout, t_s, &sample, has_memory(s) ? &memory : NULL,
				    theta_now(s), s->load.arrivals);
	if (session_has_lines(s))
		log_figures_line(&s->log, stdout, t_s, s->engine, &s->config.options.log);
	put_line(s, t_s, &sample);
	s->source_ops->publish(s->source, &sample);
	return report_stats_write(s->stats, t_s, &sample, &memory, theta_now(s));
}

static uint32_t fill_fds(const struct session *s, struct pollfd *fds)
{
	uint32_t n = 0;
	int own[2];

	oltp_elastic_fds(s->elastic, own);
	fds[n++] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	/* poll() passes over negative ones. */
	fds[n++] = (struct pollfd){ .fd = own[0], .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = own[1], .events = POLLIN };
	for (uint32_t i = 0; i < s->n_watches; i++)
		fds[n++] = (struct pollfd){ .fd = s->watches[i].fd, .events = POLLIN };
	return n;
}

/* Waits until something happens or wake_ns. Positive: the run is to end. */
static int wait_events(struct session *s, uint64_t wake_ns)
{
	struct pollfd fds[SESSION_FDS_MAX + 3];
	uint32_t n = fill_fds(s, fds);
	uint64_t now = clock_now_ns();
	uint64_t wait_ns = wake_ns > now ? wake_ns - now : 0;
	struct timespec timeout = { (time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000) };
	bool ended = false;

	if (ppoll(fds, n, &timeout, NULL) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents) {
		struct signalfd_siginfo info;

		/* Taken off, lest the next run of this process end at once. */
		return read(s->signal_fd, &info, sizeof(info)) < 0 ? -errno : 1;
	}
	for (uint32_t i = 3; i < n; i++) {
		if (!fds[i].revents)
			continue;
		/* An earlier one may have unwatched it. */
		for (uint32_t w = 0; w < s->n_watches; w++) {
			if (s->watches[w].fd == fds[i].fd) {
				ended |= s->watches[w].fn(s->watches[w].ctx, fds[i].fd);
				break;
			}
		}
	}
	return ended;
}

static bool steps_are_done(const struct session *s)
{
	struct oltp_elastic_figures figures;

	oltp_elastic_figures_get(s->elastic, &figures);
	return figures.is_step_done;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void print_limit(void *ctx, uint64_t limit_bytes)
{
	const struct session *s = ctx;

	if (!session_has_lines(s))
		return;
	printf("oltp: t=%.3f memory_limit_mib=%" PRIu64 "\n",
	       session_run_seconds(s, clock_now_ns()), limit_bytes >> 20);
	fflush(stdout);
}

static void print_load(void *ctx, const struct load_event *event)
{
	const struct session *s = ctx;

	if (!session_has_lines(s))
		return;
	printf("oltp: t=%.3f load %s=%g\n", session_run_seconds(s, clock_now_ns()), event->what,
	       event->value);
	fflush(stdout);
}

int session_set_rate(struct session *s, double per_second)
{
	int rc = load_set_rate(&s->load, per_second, clock_now_ns());

	if (!rc)
		print_load(s, &(struct load_event){ "rate", per_second });
	return rc;
}

static int run_loop(struct session *s)
{
	const struct bench_options *o = &s->config.options;
	uint64_t interval_ns = o->interval_ms * 1000000ull;
	uint64_t sample_ns = s->start_ns + interval_ns;
	uint64_t stop_ns = o->seconds > 0 ? s->start_ns + (uint64_t)(o->seconds * 1e9) : UINT64_MAX;
	uint64_t audit_ns = o->audit_seconds > 0 ?
				    s->start_ns + (uint64_t)(o->audit_seconds * 1e9) : UINT64_MAX;

	for (;;) {
		uint64_t now = clock_now_ns(), wake_ns, limit_ns, load_ns;
		int rc;

		if (now >= sample_ns) {
			rc = take_sample(s, now);
			if (rc)
				return session_fail(o->stats_path, rc);
			sample_ns += interval_ns * ((now - sample_ns) / interval_ns + 1);
			if (steps_are_done(s))
				return 0;
		}
		if (now >= stop_ns)
			return 0;
		if (now >= audit_ns) {
			/* One that is still going on is enough. */
			session_audit(s);
			audit_ns = now + (uint64_t)(o->audit_seconds * 1e9);
		}
		limit_ns = limits_follow(&s->limits, s->start_ns, now, print_limit, s);
		rc = load_follow(&s->load, s->pool, s->start_ns, now, print_load, s, &load_ns);
		if (rc)
			return session_fail("load", rc);
		rc = oltp_elastic_run(s->elastic, now, &wake_ns);
		if (rc)
			return session_fail("the source of CPUs is gone", rc);
		wake_ns = min_u64(min_u64(wake_ns, load_ns), min_u64(limit_ns, audit_ns));
		rc = wait_events(s, min_u64(wake_ns, min_u64(sample_ns, stop_ns)));
		if (rc < 0)
			return session_fail("poll", rc);
		if (rc > 0)
			return 0;
	}
}

static enum oltp_elastic_mode elastic_mode(const struct bench_options *o)
{
	if (o->step_seconds > 0)
		return OLTP_ELASTIC_STEP;
	return o->elastic == BENCH_ELASTIC_ADAPT ? OLTP_ELASTIC_ADAPT : OLTP_ELASTIC_FOLLOW;
}

int session_run(struct session *s)
{
	const struct session_config *config = &s->config;
	double step_s = config->options.step_seconds;
	struct oltp_elastic_config elastic = {
		.pool = s->pool,
		.ops = s->source_ops,
		.source = s->source,
		.mode = elastic_mode(&config->options),
		/* Nobody has fewer than one, so with that nothing is taken. */
		.max_cpus = config->options.elastic == BENCH_ELASTIC_NONE ? 1 : config->max_cpus,
		.step_ns = (uint64_t)(step_s * 1e9),
		.on_move = print_move,
		.on_move_ctx = s,
	};
	struct oltp_sample sample;
	int rc;

	rc = oltp_elastic_create(&elastic, &s->elastic);
	if (rc)
		return session_fail("starting the workers", rc);
	/* Without the option the engine keeps what its host may have promised already. */
	if (config->options.promise_mib) {
		rc = oltp_set_mem_promise(s->engine, config->options.promise_mib);
		if (rc)
			return session_fail("promising memory", rc);
	}
	s->start_ns = s->end_ns = clock_now_ns();
	log_figures_start(&s->log, s->engine);
	oltp_pool_sample(s->pool, s->start_ns, &sample);
	rc = run_loop(s);
	if (!session_has_lines(s) || !isatty(STDOUT_FILENO))
		progress_put(progress_terminal(config->options.quiet), "");
	oltp_elastic_stop(s->elastic);
	s->end_ns = clock_now_ns();
	log_figures_settle(s->engine);
	/* The rest since the last sample, so that the totals are those of the whole run. */
	oltp_pool_sample(s->pool, s->end_ns, &sample);
	return rc;
}

/* The end of the result. Returns whether the tables are what they must be, as far as is known. */
static bool report_verdict(struct session *s, struct fields *fields)
{
	fields_bool(fields, "verified", s->config.options.verify);
	if (s->config.options.verify) {
		struct progress *line = progress_start(progress_terminal(s->config.options.quiet),
						       "verifying", NULL);
		bool is_good = s->ops->verify(s->state, fields);

		progress_stop(line);
		return is_good;
	}
	fields_null(fields, "lost_updates");
	return true;
}

bool session_finish(struct session *s, FILE *out, const char *prefix)
{
	const struct bench_options *o = &s->config.options;
	struct oltp_latency_summary mem_add, mem_release;
	struct oltp_elastic_figures figures = { 0 };
	double seconds = session_run_seconds(s, s->end_ns);
	struct oltp_memory_recency recency = { 0 };
	struct oltp_memory_stats memory;
	struct audit_result audit;
	struct oltp_sample whole;
	struct fields fields;
	bool is_good;

	/* Revoked records are not lost while a restore brings them back. */
	if (o->verify && o->log.durability != OLTP_DURABILITY_OFF)
		(void)oltp_restore_wait(s->engine);
	if (s->elastic)
		oltp_elastic_figures_get(s->elastic, &figures);
	oltp_pool_whole(s->pool, &whole);
	oltp_memory_stats_read(s->engine, &memory);
	/* Out of memory: nothing is known. */
	(void)oltp_memory_recency_read(s->engine, &recency);
	block_times_get(&s->block_times, &mem_add, &mem_release);
	if (s->audit && audit_collect(s->audit, true, &audit))
		audit_note(s, &audit);
	if (prefix)
		fputs(prefix, out);
	fields_begin(&fields, out, prefix ? FIELDS_JSON : FIELDS_TABLE);
	fields_text(&fields, "workload", o->workload->name);
	fields_text(&fields, "cc", oltp_cc_name(o->cc));
	fields_u64(&fields, "seed", o->ycsb.seed);
	if (!s->recovery.has_found) {
		fields_object_begin(&fields, "load");
		fields_u64(&fields, s->load_unit, s->loaded);
		fields_u64(&fields, "threads", s->load_threads);
		fields_number(&fields, "seconds", 3, s->load_seconds);
		fields_object_end(&fields);
	}
	s->ops->describe(s->state, &fields);
	report_totals(&fields, seconds, &whole);
	log_figures_report(&s->log, seconds, s->engine, &o->log, &fields);
	recovery_report(&s->recovery, s->engine, o->log.durability != OLTP_DURABILITY_OFF,
			&fields);
	if (s->ops->classes)
		classes_report(s->ops->classes(s->state), seconds, &fields);
	report_moves(&fields, &figures);
	report_latency(&fields, "mem_add_ms", &mem_add);
	report_latency(&fields, "mem_release_ms", &mem_release);
	report_memory(&fields, &memory);
	report_recency(&fields, &recency);
	fields_u64(&fields, "audits", s->audits.n);
	fields_u64(&fields, "audits_bad", s->audits.n_bad);
	is_good = report_verdict(s, &fields);
	fields_end(&fields);
	is_good &= bench_is_written(out, "oltp: the result");
	if (s->stats)
		is_good &= bench_is_written(s->stats, o->stats_path);
	return is_good && !whole.totals.failed && !s->audits.n_bad;
}
