// SPDX-License-Identifier: GPL-2.0-or-later
/* See serve_kv.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "serve_kv.h"

#define PASSWORD_MAX	512u
/* Descriptors beside those of clients: rings, files, sockets of the host. */
#define OTHER_FDS	1024u

struct serve {
	struct serve_options options;
	char password[PASSWORD_MAX + 2];	/* "": none */
	struct bench_workload workload;
	struct net_front *front;
	struct oltp_engine *engine;
	struct kv *kv;
	struct relocation *relocation;	/* NULL: the database cannot relocate */
	struct serve_fence *fence;	/* NULL: a lost peer is waited for */
};

static int fail(const char *what, const char *of, int rc)
{
	fprintf(stderr, "oltp-server: %s %s: %s\n", what, of, strerror(-rc));
	return rc;
}

/* ---- what clients may ask of the server ---- */

static void info(void *ctx, const char *section, struct resp_out *text)
{
	struct serve *serve = ctx;

	net_kv_ops.info(serve->front, section, text);
	if (serve->relocation && !strcmp(section, "relocation"))
		relocation_info(serve->relocation, text);
}

static bool config_get(void *ctx, uint32_t i, const char **ret_name, char *ret_value, uint32_t n)
{
	struct serve *serve = ctx;

	return net_kv_ops.config(serve->front, i, ret_name, ret_value, n);
}

static const struct kv_front_ops kv_ops = { .info = info, .config = config_get };

/* ---- as a workload ---- */

static void configure(const struct bench_workload *workload, const struct bench_options *options,
		      struct oltp_config *config)
{
	const struct serve *serve = workload->variant;

	(void)options;
	kv_engine_config(config);
	config->volume_checks = serve->fence;
}

static int create(const struct bench_workload *workload, struct oltp_engine *engine,
		  const struct bench_options *options, void **ret_state)
{
	/* The session knows its workload as a constant; this one is in struct serve. */
	struct serve *serve = (struct serve *)(uintptr_t)workload->variant;
	struct kv_config config = { .password = *serve->password ? serve->password : NULL,
				    .rows = serve->options.keys,
				    .front = &kv_ops,
				    .front_ctx = serve };
	int rc;

	(void)options;
	if (serve->relocation)
		relocation_gate(serve->relocation, &config);
	rc = kv_open(engine, &config, &serve->kv);
	if (!rc && serve->relocation)
		rc = relocation_open(serve->relocation, engine);
	if (rc)
		return rc;
	serve->engine = engine;
	*ret_state = serve;
	return 0;
}

static void destroy(void *state)
{
	struct serve *serve = state;

	if (!serve)
		return;
	if (serve->relocation)
		relocation_end(serve->relocation);
	/* Clients that no worker has. */
	net_stop(serve->front);
	relocation_destroy(serve->relocation);
	serve->relocation = NULL;
	kv_close(serve->kv);
	serve->kv = NULL;
}

static int start(struct serve *serve)
{
	int rc = kv_start(serve->kv);

	if (!rc && serve->relocation)
		rc = relocation_start(serve->relocation, serve->kv, serve->front);
	return rc;
}

static int load(void *state, uint32_t n_threads, struct bench_progress *progress)
{
	struct serve *serve = state;

	(void)n_threads;
	progress->unit = "keys";
	return start(serve);
}

static int adopt(void *state, struct bench_audit *ret_found)
{
	struct serve *serve = state;

	*ret_found = (struct bench_audit){ .is_complete = true };
	return start(serve);
}

static struct oltp_workload pool(void *state)
{
	struct serve *serve = state;

	net_start(serve->front, serve->engine, serve->kv);
	return net_workload(serve->front);
}

/* Nobody knows what clients have written. */
static bool verify(void *state, struct fields *fields)
{
	(void)state;
	fields_null(fields, "lost_updates");
	return true;
}

static void describe(void *state, struct fields *fields)
{
	struct serve *serve = state;
	struct net_stats stats;

	net_stats_read(serve->front, &stats);
	fields_u64(fields, "max_clients", serve->options.net.clients_max);
	fields_object_begin(fields, "clients");
	fields_u64(fields, "accepted", stats.accepted);
	fields_u64(fields, "rejected", stats.rejected);
	fields_u64(fields, "requests", stats.requests);
	fields_u64(fields, "received_bytes", stats.received_bytes);
	fields_u64(fields, "sent_bytes", stats.sent_bytes);
	fields_u64(fields, "moved", stats.moved);
	fields_u64(fields, "protocol_errors", stats.protocol_errors);
	fields_u64(fields, "overflows", stats.overflows);
	fields_u64(fields, "idle_closed", stats.idle_closed);
	fields_object_end(fields);
}

static uint64_t memory_bytes(const struct bench_workload *workload,
			     const struct bench_options *options)
{
	(void)workload, (void)options;
	return 0;
}

static const struct bench_workload_ops ops = {
	/* None: it has no options in common with any. */
	.family = BENCH_FAMILIES,
	.configure = configure,
	.create = create,
	.destroy = destroy,
	.load = load,
	.adopt = adopt,
	.pool = pool,
	.feed = &net_feed,
	.verify = verify,
	.describe = describe,
	.memory_bytes = memory_bytes,
};

/* ---- for the server ---- */

bool serve_accepts(const struct bench_options *o)
{
	return o->workload == bench_options_default.workload && !o->families_used && !o->rates.n &&
	       !(o->calibrate_seconds > 0) && !(o->audit_seconds > 0) && !o->warm;
}

static int read_password(struct serve *serve)
{
	const char *path = serve->options.password_path;
	FILE *file;
	int rc = 0;

	if (!path)
		return 0;
	file = fopen(path, "re");
	if (!file)
		return fail("--password-file", path, -errno);
	if (!fgets(serve->password, sizeof(serve->password), file))
		rc = ferror(file) ? -EIO : -ENODATA;
	fclose(file);
	serve->password[strcspn(serve->password, "\r\n")] = '\0';
	if (!rc && !*serve->password)
		rc = -ENODATA;
	if (!rc && strlen(serve->password) > PASSWORD_MAX)
		rc = -E2BIG;
	return rc ? fail("--password-file", path, rc) : 0;
}

/* So that each client that is let in can have a descriptor. */
static int raise_fds(const struct serve *serve)
{
	uint64_t needed = serve->options.net.clients_max + OTHER_FDS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (limit.rlim_cur >= needed)
		return 0;
	limit.rlim_cur = needed;
	if (limit.rlim_max < needed)
		limit.rlim_max = needed;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

/* What records may take here; 0: not known, or the rest goes to disk. */
static uint64_t room_bytes(const struct bench_options *bench)
{
	return bench_has_cold(bench) ? 0 : bench->memory_mib << 20;
}

static int make_relocation(struct serve *serve, const struct bench_options *bench)
{
	const struct serve_options *o = &serve->options;
	struct relocation_config config = {
		.listen = o->relocate_listen, .secret_path = o->relocate_secret,
		.is_insecure = o->relocate_insecure, .clients = o->advertise,
		.room_bytes = room_bytes(bench), .volume = bench->log.volume,
		.peer_volume = o->fence.peer_volume,
	};
	int rc = 0;

	if (!o->is_relocatable && !o->relocate_listen)
		return 0;
	if (bench->log.durability != OLTP_DURABILITY_COMMIT) {
		fprintf(stderr, "oltp-server: relocation needs --durability commit\n");
		return -EINVAL;
	}
	if (o->fence.address)
		rc = serve_fence_create(&o->fence, &serve->fence);
	if (serve->fence)
		config.fence = serve_fence_ops(serve->fence);
	return rc ?: relocation_create(&config, &serve->relocation);
}

static int listen_all(struct serve *serve)
{
	const struct serve_options *o = &serve->options;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < o->n_listen; i++) {
		rc = net_listen_tcp(serve->front, o->listen[i]);
		if (rc)
			fail("--listen", o->listen[i], rc);
	}
	for (uint32_t i = 0; !rc && i < o->n_unix; i++) {
		rc = net_listen_unix(serve->front, o->unix_paths[i]);
		if (rc)
			fail("--unix", o->unix_paths[i], rc);
	}
	return rc;
}

int serve_open(const struct serve_options *options, const struct bench_options *bench,
	       struct serve **ret_serve)
{
	struct serve *serve = calloc(1, sizeof(*serve));
	int rc;

	if (!serve)
		return fail("clients", "", -ENOMEM);
	serve->options = *options;
	serve->options.net.holds_replies = bench->log.durability == OLTP_DURABILITY_COMMIT;
	serve->workload = (struct bench_workload){ .name = "clients", .ops = &ops,
						   .variant = serve };
	rc = read_password(serve);
	if (!rc) {
		rc = raise_fds(serve);
		if (rc)
			fail("--max-clients", "needs more open files (ulimit -n)", rc);
	}
	if (!rc) {
		rc = net_create(&serve->options.net, &serve->front);
		if (rc)
			fail("clients", "", rc);
	}
	if (!rc)
		rc = make_relocation(serve, bench);
	if (!rc)
		rc = listen_all(serve);
	if (rc)
		serve_close(serve);
	else
		*ret_serve = serve;
	return rc;
}

void serve_close(struct serve *serve)
{
	if (!serve)
		return;
	relocation_destroy(serve->relocation);
	serve_fence_destroy(serve->fence);
	net_destroy(serve->front);
	free(serve);
}

const struct bench_workload *serve_workload(const struct serve *serve)
{
	return &serve->workload;
}

static bool clients_come(void *ctx, int fd)
{
	struct serve *serve = ctx;

	/* It may be hours until a source comes: who asks meanwhile is told, and goes elsewhere. */
	if (serve->relocation && !relocation_is_ready(serve->relocation))
		net_refuse(serve->front, fd, "LOADING no database has come to this node yet");
	else
		net_accept(serve->front, fd);
	return false;
}

struct relocation *serve_relocation(const struct serve *serve)
{
	return serve->relocation;
}

int serve_watch(struct serve *serve, struct session *session)
{
	int fds[NET_LISTENERS_MAX], rc = 0;
	uint32_t n = net_fds(serve->front, fds);

	for (uint32_t i = 0; !rc && i < n; i++)
		rc = session_watch(session, fds[i], clients_come, serve);
	return rc;
}

