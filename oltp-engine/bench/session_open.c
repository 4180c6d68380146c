// SPDX-License-Identifier: GPL-2.0-or-later
/* The engine of a session, its tables and what is in them, from begin to end: see session.h. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "progress.h"
#include "report.h"
#include "session_private.h"
#include "volume.h"
#include "oltp-engine/src/base/clock.h"

static int load(struct session *s)
{
	const struct bench_options *o = &s->config.options;
	struct bench_progress progress = { .unit = "records" };
	uint32_t threads = o->load_threads;
	struct progress *line;
	uint64_t start_ns = clock_now_ns();
	int rc;

	if (!threads) {
		long online = sysconf(_SC_NPROCESSORS_ONLN);

		threads = online > 0 ? (uint32_t)online : 1;
	}
	line = progress_start(progress_terminal(o->quiet), "loading", &progress);
	rc = s->ops->load(s->state, threads, &progress);
	progress_stop(line);
	if (rc)
		return rc;
	s->load_threads = threads;
	s->load_unit = progress.unit;
	s->loaded = progress.done;
	s->load_seconds = (double)(clock_now_ns() - start_ns) / 1e9;
	if (session_has_lines(s)) {
		printf("oltp: loaded %s=%" PRIu64 " seconds=%.2f\n", progress.unit, s->loaded,
		       s->load_seconds);
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

static int open_engine(struct session *s)
{
	const struct bench_options *o = &s->config.options;
	struct oltp_config config = {
		.cc = o->cc,
		.node = -1,
		.blocks = s->config.blocks,
		.blocks_ctx = s->config.blocks_ctx,
		.cold_dir = o->cold_dir,
		.volume_cold = o->cold_volume,
		.cold_bytes_max = o->cold_mib << 20,
		.idle_half_ms = o->idle_half_ms,
	};
	int rc;

	bench_log_configure(&o->log, &config);
	if (s->ops->configure)
		s->ops->configure(o->workload, o, &config);
	if (!config.blocks && o->memory_mib) {
		rc = limits_open(&s->limits, o);
		if (rc)
			return rc;
		config.blocks = &oltp_blocks_native_ops;
		config.blocks_ctx = s->limits.blocks;
	}
	if (o->warm && !config.blocks) {
		rc = warm_open(&s->warm, s->ops->memory_bytes(o->workload, o),
			       !session_has_lines(s));
		if (rc)
			return rc;
		config.mem = &warm_mem_ops;
		config.mem_ctx = &s->warm;
	}
	block_times_init(&s->block_times, config.blocks, config.blocks_ctx);
	if (config.blocks) {
		config.blocks = &block_times_ops;
		config.blocks_ctx = &s->block_times;
	}
	rc = oltp_engine_open(&config, &s->engine);
	if (rc)
		return rc;
	if (s->limits.blocks)
		oltp_blocks_native_attach(s->limits.blocks, s->engine);
	if (s->config.attach)
		s->config.attach(s->config.blocks_ctx, s->engine);
	return 0;
}

/* Warming more memory than there is would end with other programs killed for it. */
static int check_warm(const struct session *s)
{
	const struct bench_options *o = &s->config.options;
	uint64_t needed, available;

	if (!o->warm || s->config.blocks)
		return 0;
	needed = s->ops->memory_bytes(o->workload, o);
	available = warm_available();
	if (needed <= available)
		return 0;
	fprintf(stderr, "oltp: --warm-memory: the tables need %" PRIu64 " MiB, and %" PRIu64
		" MiB of this machine's memory are available\n", needed >> 20, available >> 20);
	return -ENOMEM;
}

/* With the folders that it works with: it may be one of them. */
static void fail_engine(const struct bench_options *o, int rc)
{
	fprintf(stderr, "oltp: opening the engine%s%s%s%s: %s\n",
		o->cold_dir ? ", --cold-dir " : "", o->cold_dir ?: "",
		o->log.volume ? ", --volume " : o->log.dir ? ", --log-dir " : "",
		bench_log_place(&o->log) ?: "",
		bench_volume_strerror(&o->log, rc));
}

/* Makes the tables, and recovers or loads what is in them. Says on stderr what went wrong. */
static int fill_tables(struct session *s)
{
	const struct bench_options *o = &s->config.options;
	int rc = s->ops->create(o->workload, s->engine, o, &s->state);

	if (rc)
		return session_fail("making the tables", rc);
	if (o->log.recover) {
		rc = recovery_run(&s->recovery, s->engine, s->ops, s->state,
				  &(struct recovery_config){
			.is_lazy = o->log.is_lazy,
			.is_verified = o->verify || o->audit_seconds,
			.quiet = !session_has_lines(s),
		});
	} else if (oltp_durable_wait(s->engine, 1) == -EINVAL) {
		fprintf(stderr, "oltp: %s: there is a database, which --recover goes on with\n",
			bench_log_place(&o->log));
		return -EEXIST;
	}
	if (rc || s->recovery.has_found)
		return rc;
	rc = load(s);
	return rc ? session_fail("loading the tables", rc) : 0;
}

int session_open(const struct session_config *config, struct session **ret_session)
{
	const struct bench_options *o = &config->options;
	struct session *s = calloc(1, sizeof(*s));
	struct oltp_workload workload;
	int rc;

	if (!s)
		return session_fail("session", -ENOMEM);
	s->config = *config;
	s->ops = o->workload->ops;
	s->signal_fd = signals_open();
	if (s->signal_fd < 0) {
		rc = session_fail("signals", s->signal_fd);
		goto out;
	}
	rc = report_stats_open(o->stats_path, &s->stats);
	if (rc) {
		session_fail(o->stats_path, rc);
		goto out;
	}
	rc = bench_volume_format(&o->log);
	if (rc)
		goto out;
	rc = log_figures_open(&s->log, &o->log);
	if (rc) {
		session_fail(o->log.dir, rc);
		goto out;
	}
	rc = check_warm(s);
	if (!rc && !s->config.blocks)
		rc = limits_check(o);
	if (rc)
		goto out;
	rc = open_engine(s);
	if (rc) {
		fail_engine(o, rc);
		goto out;
	}
	rc = fill_tables(s);
	if (rc)
		goto out;
	workload = s->ops->pool(s->state);
	rc = load_open(&s->load, &s->config.options, config->takes_rates, s->state);
	if (!rc)
		rc = oltp_pool_create(&(struct oltp_pool_config){ .engine = s->engine,
								  .workload = &workload,
								  .no_pin = config->no_pin,
								  .arrivals = s->load.arrivals,
								  .feed = s->ops->feed },
				      &s->pool);
	if (!rc && s->ops->audit)
		rc = audit_create(s->ops, s->state, &s->audit);
	if (!rc && s->audit)
		rc = session_watch(s, audit_fd(s->audit), session_audit_ended, s);
	if (rc)
		session_fail("worker pool", rc);
out:
	if (rc)
		session_close(s);
	else
		*ret_session = s;
	return rc;
}

void session_stop(struct session *s)
{
	oltp_elastic_destroy(s->elastic);
	s->elastic = NULL;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	session_stop(s);
	oltp_pool_destroy(s->pool);
	load_close(&s->load);
	audit_destroy(s->audit);
	if (s->ops)
		s->ops->destroy(s->state);
	if (s->config.attach && s->engine)
		s->config.attach(s->config.blocks_ctx, NULL);
	oltp_engine_close(s->engine);
	limits_close(&s->limits);
	warm_close(&s->warm);
	block_times_finish(&s->block_times);
	if (s->stats)
		fclose(s->stats);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	free(s);
}
