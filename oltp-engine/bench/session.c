// SPDX-License-Identifier: GPL-2.0-or-later
/* One run of the engine under a workload: see session.h. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "report.h"
#include "session.h"

struct watch {
	int fd;
	bool (*fn)(void *ctx, int fd);
	void *ctx;
};

struct session {
	struct session_config config;
	const struct oltp_cpu_source_ops *source_ops;
	void *source;
	struct oltp_engine *engine;
	struct ycsb *ycsb;
	struct oltp_pool *pool;
	struct oltp_elastic *elastic;
	FILE *stats;
	int signal_fd;
	uint64_t start_ns, end_ns;	/* of the run */
	struct watch watches[SESSION_FDS_MAX];
	uint32_t n_watches;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static double run_seconds(const struct session *s, uint64_t at_ns)
{
	return (double)(at_ns - s->start_ns) / 1e9;
}

static int fail(const char *what, int rc)
{
	fprintf(stderr, "oltp: %s: %s\n", what, strerror(-rc));
	return rc;
}

static int load(struct session *s)
{
	const struct bench_options *o = &s->config.options;
	uint32_t threads = o->load_threads;
	uint64_t start_ns = now_ns();
	int rc;

	if (!threads) {
		long online = sysconf(_SC_NPROCESSORS_ONLN);

		threads = online > 0 ? (uint32_t)online : 1;
	}
	rc = ycsb_load(s->ycsb, threads);
	if (rc)
		return rc;
	if (!o->quiet) {
		printf("oltp: loaded records=%" PRIu64 " seconds=%.2f\n", o->ycsb.records,
		       (double)(now_ns() - start_ns) / 1e9);
		fflush(stdout);
	}
	return 0;
}

static int signals_open(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL))
		return -EINVAL;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int session_open(const struct session_config *config, struct session **ret_session)
{
	const struct bench_options *o = &config->options;
	struct session *s = calloc(1, sizeof(*s));
	struct oltp_workload workload;
	int rc;

	if (!s)
		return fail("session", -ENOMEM);
	s->config = *config;
	s->signal_fd = signals_open();
	if (s->signal_fd < 0) {
		rc = fail("signals", s->signal_fd);
		goto out;
	}
	rc = report_stats_open(o->stats_path, &s->stats);
	if (rc) {
		fail(o->stats_path, rc);
		goto out;
	}
	rc = oltp_engine_open(&(struct oltp_config){ .cc = o->cc, .node = -1 }, &s->engine);
	if (!rc)
		rc = ycsb_create(s->engine, &o->ycsb, &s->ycsb);
	if (!rc)
		rc = load(s);
	if (rc) {
		fail("loading the table", rc);
		goto out;
	}
	workload = ycsb_workload(s->ycsb);
	rc = oltp_pool_create(&(struct oltp_pool_config){ .engine = s->engine,
							  .workload = &workload,
							  .no_pin = config->no_pin }, &s->pool);
	if (rc)
		fail("worker pool", rc);
out:
	if (rc)
		session_close(s);
	else
		*ret_session = s;
	return rc;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	oltp_elastic_destroy(s->elastic);
	oltp_pool_destroy(s->pool);
	ycsb_destroy(s->ycsb);
	oltp_engine_close(s->engine);
	if (s->stats)
		fclose(s->stats);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	free(s);
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

	if (s->config.options.quiet)
		return;
	printf("oltp: t=%.3f %s node=%u cpus=", run_seconds(s, move->start_ns),
	       move->is_add ? "add" : "remove", move->node);
	for (uint32_t i = 0; i < move->n_cpus; i++)
		printf("%s%u", i ? "," : "", move->cpus[i]);
	printf(" ms=%.3f host_ms=%.3f kernel_ms=%.3f stop_ms=%.3f result=%s\n",
	       (double)move->call_ns / 1e6, (double)move->times.host_ns / 1e6,
	       (double)move->times.kernel_ns / 1e6, (double)move->stop_ns / 1e6,
	       move->rc ? strerrorname_np(-move->rc) : "ok");
	fflush(stdout);
}

/* A sample goes to the screen, the file and the source; the file alone must not fail silently. */
static int take_sample(struct session *s, uint64_t at_ns)
{
	struct oltp_sample sample;
	double t_s = run_seconds(s, at_ns);

	oltp_pool_sample(s->pool, at_ns, &sample);
	if (!s->config.options.quiet)
		report_sample_print(stdout, t_s, &sample);
	s->source_ops->publish(s->source, &sample);
	return report_stats_write(s->stats, t_s, &sample);
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
	uint64_t now = now_ns();
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

	if (!s->config.end_with_steps)
		return false;
	oltp_elastic_figures_get(s->elastic, &figures);
	return figures.is_step_done;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int run_loop(struct session *s)
{
	const struct bench_options *o = &s->config.options;
	uint64_t interval_ns = o->interval_ms * 1000000ull;
	uint64_t sample_ns = s->start_ns + interval_ns;
	uint64_t stop_ns = o->seconds > 0 ? s->start_ns + (uint64_t)(o->seconds * 1e9) : UINT64_MAX;

	for (;;) {
		uint64_t now = now_ns(), wake_ns;
		int rc;

		if (now >= sample_ns) {
			rc = take_sample(s, now);
			if (rc)
				return fail(o->stats_path, rc);
			sample_ns += interval_ns * ((now - sample_ns) / interval_ns + 1);
			if (steps_are_done(s))
				return 0;
		}
		if (now >= stop_ns)
			return 0;
		rc = oltp_elastic_run(s->elastic, now, &wake_ns);
		if (rc)
			return fail("the source of CPUs is gone", rc);
		rc = wait_events(s, min_u64(wake_ns, min_u64(sample_ns, stop_ns)));
		if (rc < 0)
			return fail("poll", rc);
		if (rc > 0)
			return 0;
	}
}

int session_run(struct session *s)
{
	const struct session_config *config = &s->config;
	struct oltp_elastic_config elastic = {
		.pool = s->pool,
		.ops = s->source_ops,
		.source = s->source,
		.mode = config->mode,
		.max_cpus = config->max_cpus,
		.step_ns = config->step_ns,
		.on_move = print_move,
		.on_move_ctx = s,
	};
	struct oltp_sample sample;
	int rc;

	rc = oltp_elastic_create(&elastic, &s->elastic);
	if (rc)
		return fail("starting the workers", rc);
	s->start_ns = s->end_ns = now_ns();
	oltp_pool_sample(s->pool, s->start_ns, &sample);
	rc = run_loop(s);
	oltp_elastic_stop(s->elastic);
	s->end_ns = now_ns();
	/* The rest since the last sample, so that the totals are those of the whole run. */
	oltp_pool_sample(s->pool, s->end_ns, &sample);
	return rc;
}

static void print_latency(FILE *out, const char *name, const struct oltp_latency_summary *l)
{
	fprintf(out, "\"%s\":{\"n\":%" PRIu64 ",\"median\":%.3f,\"p95\":%.3f},", name, l->n,
		l->median_ms, l->p95_ms);
}

bool session_finish(struct session *s, FILE *out, const char *prefix)
{
	const struct bench_options *o = &s->config.options;
	struct oltp_elastic_figures figures = { 0 };
	struct ycsb_verdict verdict = { 0 };
	struct oltp_sample whole;

	if (s->elastic)
		oltp_elastic_figures_get(s->elastic, &figures);
	oltp_pool_whole(s->pool, &whole);
	if (o->verify)
		ycsb_verify(s->ycsb, &verdict);
	fprintf(out, "%s{", prefix);
	report_json_options(out, o);
	report_json_totals(out, run_seconds(s, s->end_ns), &whole);
	fprintf(out,
		"\"cpus_added\":%" PRIu64 ",\"cpus_removed\":%" PRIu64 ",\"adds_failed\":%" PRIu64
		",\"removes_failed\":%" PRIu64 ",",
		figures.cpus_added, figures.cpus_removed, figures.adds_failed,
		figures.removes_failed);
	print_latency(out, "cpu_add_ms", &figures.add);
	print_latency(out, "cpu_remove_ms", &figures.remove);
	report_json_verdict(out, o->verify ? &verdict : NULL);
	fputs("}\n", out);
	fflush(out);
	return !verdict.lost_updates && !verdict.inconsistent_reads && !whole.totals.failed;
}
