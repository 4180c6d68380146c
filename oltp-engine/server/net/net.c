// SPDX-License-Identifier: GPL-2.0-or-later
/* The front itself: see net.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "front.h"
#include "oltp-engine/src/base/clock.h"

/* Those of Redis; a request that has so many is refused by its bytes before. */
#define ARGS_MAX	(1u << 20)

int net_create(const struct net_config *config, struct net_front **ret_front)
{
	struct net_front *front;

	if (!config->clients_max || config->clients_max > NET_CLIENTS_MAX ||
	    config->request_bytes_max < NET_REQUEST_BYTES_MIN ||
	    config->request_bytes_max > NET_REQUEST_BYTES_MAX ||
	    config->output_bytes_max < NET_OUTPUT_BYTES_MIN ||
	    config->output_bytes_max > NET_OUTPUT_BYTES_MAX)
		return -EINVAL;
	front = calloc(1, sizeof(*front));
	if (!front)
		return -ENOMEM;
	front->config = *config;
	front->limits = (struct resp_limits){ .args_max = ARGS_MAX,
					      .bulk_bytes_max = config->request_bytes_max,
					      .request_bytes_max = config->request_bytes_max };
	pthread_mutex_init(&front->lock, NULL);
	link_init(&front->workers);
	link_init(&front->waiting);
	*ret_front = front;
	return 0;
}

void net_stop(struct net_front *front)
{
	while (!link_is_empty(&front->waiting)) {
		struct conn *c = link_entry(front->waiting.next, struct conn, all);

		link_remove(&c->all);
		conn_destroy(c);
	}
}

void net_destroy(struct net_front *front)
{
	if (!front)
		return;
	for (uint32_t i = 0; i < front->n_listeners; i++) {
		struct net_listener *listener = &front->listeners[i];

		close(listener->fd);
		if (listener->path)
			unlink(listener->path);
		free(listener->path);
	}
	pthread_mutex_destroy(&front->lock);
	free(front);
}

void net_start(struct net_front *front, struct oltp_engine *engine, struct kv *kv)
{
	front->engine = engine;
	front->kv = kv;
}

void net_stats_read(struct net_front *front, struct net_stats *ret_stats)
{
	uint64_t open, open_came_ns;
	uint32_t waiting;

	pthread_mutex_lock(&front->lock);
	waiting = front->n_waiting;
	open = front->open;
	open_came_ns = front->open_came_ns;
	pthread_mutex_unlock(&front->lock);
	*ret_stats = (struct net_stats){
		.clients = atomic_load(&front->n_clients) - atomic_load(&front->n_observers),
		.waiting = waiting,
		.told = atomic_load(&front->n_told),
		.accepted = atomic_load(&front->accepted),
		.rejected = atomic_load(&front->rejected),
		.received_bytes = atomic_load(&front->received_bytes),
		.sent_bytes = atomic_load(&front->sent_bytes),
		.requests = atomic_load(&front->requests),
		.moved = atomic_load(&front->moved),
		.protocol_errors = atomic_load(&front->protocol_errors),
		.overflows = atomic_load(&front->overflows),
		.idle_closed = atomic_load(&front->idle_closed),
		.replied = atomic_load(&front->replied),
		.reply_ns = atomic_load(&front->reply_ns),
		.open = (uint32_t)open,
		.open_ns = open * clock_now_ns() - open_came_ns,
	};
}

void net_pauses_read(struct net_front *front, struct net_pauses *ret_pauses)
{
	struct hist_view view = { 0 };

	hist_view_add(&view, &front->pauses);
	*ret_pauses = (struct net_pauses){
		.n = hist_view_count(&view),
		.p50_ns = hist_view_quantile_ns(&view, 0.5),
		.p99_ns = hist_view_quantile_ns(&view, 0.99),
		.max_ns = atomic_load(&front->pause_max_ns),
	};
}

static void add_line(struct resp_out *text, const char *name, uint64_t value)
{
	char line[96];
	int n = snprintf(line, sizeof(line), "%s:%" PRIu64 "\r\n", name, value);

	resp_out_raw(text, line, (size_t)n);
}

static void info(void *ctx, const char *section, struct resp_out *text)
{
	struct net_front *front = ctx;
	struct net_stats stats;

	net_stats_read(front, &stats);
	if (!strcmp(section, "server")) {
		add_line(text, "tcp_port", net_port(front));
	} else if (!strcmp(section, "clients")) {
		add_line(text, "maxclients", front->config.clients_max);
	} else if (!strcmp(section, "stats")) {
		add_line(text, "rejected_connections", stats.rejected);
		add_line(text, "total_net_input_bytes", stats.received_bytes);
		add_line(text, "total_net_output_bytes", stats.sent_bytes);
		add_line(text, "ebb_requests_answered", stats.requests);
		add_line(text, "ebb_connections_moved", stats.moved);
		add_line(text, "ebb_protocol_errors", stats.protocol_errors);
		add_line(text, "client_output_buffer_limit_disconnections", stats.overflows);
		add_line(text, "ebb_idle_closed", stats.idle_closed);
	}
}

static bool config_get(void *ctx, uint32_t i, const char **ret_name, char *ret_value, uint32_t n)
{
	struct net_front *front = ctx;
	const struct {
		const char *name;
		uint64_t value;
	} options[] = {
		{ "maxclients", front->config.clients_max },
		{ "timeout", front->config.idle_seconds_max },
		{ "port", net_port(front) },
	};

	if (i >= sizeof(options) / sizeof(options[0]))
		return false;
	*ret_name = options[i].name;
	snprintf(ret_value, n, "%" PRIu64, options[i].value);
	return true;
}

const struct kv_front_ops net_kv_ops = { .info = info, .config = config_get };
