// SPDX-License-Identifier: GPL-2.0-or-later
/* INFO, CONFIG and TIME: what the server says of itself. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "oltp-engine/server/kv/match.h"
#include "oltp-engine/server/kv/subcommand.h"

static void line(struct resp_out *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void line(struct resp_out *text, const char *format, ...)
{
	char bytes[256];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(bytes, sizeof(bytes), format, ap);
	va_end(ap);
	resp_out_raw(text, bytes, (size_t)n < sizeof(bytes) ? (size_t)n : sizeof(bytes) - 1);
	resp_out_raw(text, "\r\n", 2);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void info_server(struct kv *kv, struct resp_out *text)
{
	uint64_t up = (now_ns(CLOCK_MONOTONIC) - kv->started_ns) / 1000000000u;

	line(text, "redis_version:%s", KV_REDIS_VERSION);
	line(text, "redis_mode:standalone");
	line(text, "engine:ebb-oltp");
	line(text, "arch_bits:%zu", 8 * sizeof(void *));
	line(text, "process_id:%d", (int)getpid());
	line(text, "uptime_in_seconds:%llu", (unsigned long long)up);
	line(text, "uptime_in_days:%llu", (unsigned long long)up / 86400);
}

static void info_clients(struct kv *kv, struct resp_out *text)
{
	uint64_t n = 0;

	pthread_mutex_lock(&kv->sessions_lock);
	for (const struct kv_session *s = kv->sessions; s; s = s->next)
		n++;
	pthread_mutex_unlock(&kv->sessions_lock);
	line(text, "connected_clients:%llu", (unsigned long long)n);
}

static void info_memory(struct kv *kv, struct resp_out *text)
{
	struct oltp_memory_stats stats;

	oltp_memory_stats_read(kv->engine, &stats);
	line(text, "used_memory:%llu", (unsigned long long)stats.held_bytes);
	line(text, "resident_records:%llu", (unsigned long long)stats.resident_records);
	line(text, "resident_bytes:%llu", (unsigned long long)stats.resident_bytes);
	line(text, "cold_records:%llu", (unsigned long long)stats.cold_records);
	line(text, "cold_bytes:%llu", (unsigned long long)stats.file_used_bytes);
	line(text, "cold_reads:%llu", (unsigned long long)stats.cold_reads);
	line(text, "lost_records:%llu", (unsigned long long)stats.lost_records);
}

static void info_persistence(struct kv *kv, struct resp_out *text)
{
	struct oltp_checkpoint_stats checkpoint;
	struct oltp_durable_stats log;

	oltp_durable_stats_read(kv->engine, &log);
	oltp_checkpoint_stats_read(kv->engine, &checkpoint);
	line(text, "loading:0");
	line(text, "aof_enabled:%d", oltp_durable_epoch(kv->engine) != UINT64_MAX);
	line(text, "aof_last_write_status:%s", log.has_failed ? "err" : "ok");
	line(text, "log_bytes:%llu", (unsigned long long)log.bytes);
	line(text, "log_write_p99_us:%.0f", log.write_p99_us);
	line(text, "checkpoints:%llu", (unsigned long long)checkpoint.checkpoints);
	line(text, "checkpoint_in_progress:%d", checkpoint.is_running);
}

static void info_stats(struct kv *kv, struct resp_out *text)
{
	uint64_t n, made;

	pthread_mutex_lock(&kv->sessions_lock);
	n = kv->commands_ended;
	made = kv->sessions_made;
	for (struct kv_session *s = kv->sessions; s; s = s->next)
		n += atomic_load_explicit(&s->n_commands, memory_order_relaxed);
	pthread_mutex_unlock(&kv->sessions_lock);
	line(text, "total_connections_received:%llu", (unsigned long long)made);
	line(text, "total_commands_processed:%llu", (unsigned long long)n);
}

static void info_replication(struct kv *kv, struct resp_out *text)
{
	(void)kv;
	line(text, "role:master");
	line(text, "connected_slaves:0");
}

static void info_cpu(struct kv *kv, struct resp_out *text)
{
	struct rusage usage;

	(void)kv;
	getrusage(RUSAGE_SELF, &usage);
	line(text, "used_cpu_sys:%lld.%06ld", (long long)usage.ru_stime.tv_sec,
	     (long)usage.ru_stime.tv_usec);
	line(text, "used_cpu_user:%lld.%06ld", (long long)usage.ru_utime.tv_sec,
	     (long)usage.ru_utime.tv_usec);
}

static void info_keyspace(struct kv *kv, struct resp_out *text)
{
	int64_t n = atomic_load_explicit(&kv->meta.n_keys, memory_order_relaxed);

	if (n > 0)
		line(text, "db0:keys=%lld,expires=0,avg_ttl=0", (long long)n);
}

/* The rest is the front's: the keyspace does not know the other node. */
static void info_relocation(struct kv *kv, struct resp_out *text)
{
	line(text, "relocatable:%d", kv->gate != NULL);
}

static const struct section {
	const char *title, *name;
	void (*append)(struct kv *kv, struct resp_out *text);
} sections[] = {
	{ "Server", "server", info_server },
	{ "Clients", "clients", info_clients },
	{ "Memory", "memory", info_memory },
	{ "Persistence", "persistence", info_persistence },
	{ "Stats", "stats", info_stats },
	{ "Replication", "replication", info_replication },
	{ "CPU", "cpu", info_cpu },
	{ "Keyspace", "keyspace", info_keyspace },
	{ "Relocation", "relocation", info_relocation },
};

static bool is_wanted(const struct call *c, const char *title)
{
	if (c->n == 1)
		return true;
	for (uint32_t i = 1; i < c->n; i++) {
		if (arg_is(&c->args[i], "ALL") || arg_is(&c->args[i], "EVERYTHING") ||
		    arg_is(&c->args[i], "DEFAULT") || arg_is(&c->args[i], title))
			return true;
	}
	return false;
}

enum oltp_rc cmd_info(struct call *c)
{
	const struct kv_front_ops *front = c->kv->front;
	struct resp_out text;

	resp_out_init(&text, c->out->max);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (!is_wanted(c, sections[i].title))
			continue;
		if (text.n)
			resp_out_raw(&text, "\r\n", 2);
		line(&text, "# %s", sections[i].title);
		sections[i].append(c->kv, &text);
		if (front && front->info)
			front->info(c->kv->front_ctx, sections[i].name, &text);
	}
	if (text.has_failed)
		c->out->has_failed = true;
	else
		resp_out_verbatim(c->out, text.bytes ?: "", text.n);
	resp_out_finish(&text);
	return OLTP_OK;
}

/* What clients and benchmarks ask for. The rest is the front's. */
static bool own_option(const struct kv *kv, uint32_t i, const char **ret_name,
		       const char **ret_value)
{
	bool has_log = oltp_durable_epoch(kv->engine) != UINT64_MAX;
	const struct {
		const char *name, *value;
	} options[] = {
		{ "appendonly", has_log ? "yes" : "no" },
		{ "databases", "1" },
		{ "maxmemory", "0" },
		{ "maxmemory-policy", "noeviction" },
		{ "proto-max-bulk-len", "16384" },
		{ "save", "" },
	};

	if (i >= sizeof(options) / sizeof(options[0]))
		return false;
	*ret_name = options[i].name;
	*ret_value = options[i].value;
	return true;
}

_Static_assert(KV_VALUE_MAX == 16384, "proto-max-bulk-len");

static bool option_is_wanted(const struct call *c, const char *name)
{
	for (uint32_t i = 2; i < c->n; i++) {
		if (match_pattern(c->args[i].bytes, c->args[i].n, name, (uint32_t)strlen(name)) ||
		    arg_is(&c->args[i], name))
			return true;
	}
	return false;
}

static enum oltp_rc config_get(struct call *c)
{
	const struct kv_front_ops *front = c->kv->front;
	size_t at = c->out->n, n = 0;
	const char *name, *value;
	char text[256];

	for (uint32_t i = 2; i < c->n; i++) {
		if (c->args[i].n > PATTERN_MAX)
			return answer_long_pattern(c);
	}
	for (uint32_t i = 0; own_option(c->kv, i, &name, &value); i++) {
		if (!option_is_wanted(c, name))
			continue;
		resp_out_text(c->out, name);
		resp_out_text(c->out, value);
		n++;
	}
	for (uint32_t i = 0; front && front->config &&
			     front->config(c->kv->front_ctx, i, &name, text, sizeof(text)); i++) {
		if (!option_is_wanted(c, name))
			continue;
		resp_out_text(c->out, name);
		resp_out_text(c->out, text);
		n++;
	}
	resp_out_map_at(c->out, at, n);
	return OLTP_OK;
}

static enum oltp_rc config_set(struct call *c)
{
	return answer_error(c, "ERR options are set on the command line of the server, "
			       "CONFIG SET is not supported");
}

enum oltp_rc cmd_config(struct call *c)
{
	static const struct subcommand all[] = {
		{ "GET", -3, config_get },
		{ "SET", -4, config_set },
	};

	return subcommand_run(c, all, sizeof(all) / sizeof(all[0]));
}

enum oltp_rc cmd_time(struct call *c)
{
	uint64_t ns = now_ns(CLOCK_REALTIME);
	char text[32];

	resp_out_array(c->out, 2);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(ns / 1000000000u));
	resp_out_text(c->out, text);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(ns % 1000000000u / 1000));
	resp_out_text(c->out, text);
	return OLTP_OK;
}
