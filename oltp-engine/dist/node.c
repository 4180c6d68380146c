// SPDX-License-Identifier: GPL-2.0-or-later
/* A node's life, and its accepting thread. See node_private.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node_private.h"
#include "oltp-engine/bench/accept.h"

const struct dist_times dist_times_default = {
	.vote_ns = 1000000000ull,
	.ask_ns = 500000000ull,
	.repeat_ns = 500000000ull,
};

void dist_node_fail(struct dist_node *node, int rc)
{
	int none = 0;

	atomic_compare_exchange_strong(&node->error, &none, rc);
}

int dist_node_error(const struct dist_node *node)
{
	return atomic_load(&node->error);
}

void dist_node_confirmed(struct dist_node *node, const struct dist_gtid *gtid)
{
	struct dist_coord_entry *entry;
	struct dist_actions actions = { 0 };
	uint64_t end;

	pthread_mutex_lock(&node->book.lock);
	entry = dist_book_coord_find(&node->book, gtid);
	if (entry)
		dist_coord_ack(&entry->coord, 0, &actions);
	/* Only if this has ended it: workers are still at other entries that are done. */
	if (actions.n)
		dist_book_coord_remove(&node->book, entry);
	pthread_mutex_unlock(&node->book.lock);
	/* The only action there can be. Should it get lost, the peer confirms once more. */
	if (actions.n && dist_log_append(node->log, DIST_RECORD_END, gtid, NULL, 0, &end))
		dist_node_fail(node, -EIO);
}

static void *accepter_main(void *arg)
{
	struct dist_node *node = arg;

	while (!atomic_load(&node->is_stopping)) {
		int fd = accept_or_pause(node->listen_fd, SOCK_CLOEXEC);

		if (fd < 0)
			continue;
		dist_sessions_reap(node, false);
		if (dist_session_start(node, fd))
			close(fd);
	}
	return NULL;
}

static int threads_start(struct dist_node *node)
{
	int rc = -pthread_create(&node->keeper, NULL, dist_keeper_main, node);

	if (rc)
		return rc;
	rc = -pthread_create(&node->accepter, NULL, accepter_main, node);
	if (rc) {
		atomic_store(&node->is_stopping, true);
		pthread_join(node->keeper, NULL);
	}
	return rc;
}

static bool config_is_valid(const struct dist_node_config *config)
{
	return config->engine && config->app.execute && config->app.table && config->listen &&
	       config->peer && config->log_path && config->times.vote_ns &&
	       config->times.ask_ns && config->times.repeat_ns;
}

static void node_free(struct dist_node *node)
{
	struct dist_part_entry *entry;

	while ((entry = node->book.parts)) {
		dist_book_part_remove(&node->book, entry);
		oltp_worker_destroy(entry->worker);
		free(entry);
	}
	dist_book_finish(&node->book);
	dist_log_close(node->log);
	pthread_mutex_destroy(&node->sessions_lock);
	free(node->listen);
	free(node->peer);
	free(node);
}

int dist_node_open(const struct dist_node_config *config, struct dist_node **ret_node)
{
	struct dist_node *node;
	int rc;

	if (!config_is_valid(config))
		return -EINVAL;
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->config = *config;
	dist_book_init(&node->book);
	pthread_mutex_init(&node->sessions_lock, NULL);
	node->listen = strdup(config->listen);
	node->peer = strdup(config->peer);
	rc = node->listen && node->peer ? dist_node_recover(node) : -ENOMEM;
	if (rc)
		goto out_free;
	rc = dist_listen(node->listen, &node->listen_fd);
	if (rc)
		goto out_free;
	rc = threads_start(node);
	if (rc)
		goto out_unlisten;
	*ret_node = node;
	return 0;
out_unlisten:
	dist_unlisten(node->listen, node->listen_fd);
out_free:
	node_free(node);
	return rc;
}

void dist_node_close(struct dist_node *node)
{
	if (!node)
		return;
	atomic_store(&node->is_stopping, true);
	shutdown(node->listen_fd, SHUT_RDWR);
	pthread_join(node->accepter, NULL);
	dist_sessions_reap(node, true);
	pthread_join(node->keeper, NULL);
	dist_unlisten(node->listen, node->listen_fd);
	node_free(node);
}

void dist_node_stats_read(struct dist_node *node, struct dist_node_stats *ret_stats)
{
	struct dist_node_stats stats = {
		.served = atomic_load(&node->served),
		.recovered = node->recovered,
		.recovered_in_doubt = node->recovered_in_doubt,
		.asked_commits = atomic_load(&node->asked_commits),
		.asked_aborts = atomic_load(&node->asked_aborts),
	};

	pthread_mutex_lock(&node->book.lock);
	for (struct dist_part_entry *e = node->book.parts; e; e = e->next)
		stats.in_doubt += e->is_orphan;
	stats.unconfirmed = node->book.n_coords;
	pthread_mutex_unlock(&node->book.lock);
	*ret_stats = stats;
}
