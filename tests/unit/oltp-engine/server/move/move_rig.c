// SPDX-License-Identifier: GPL-2.0-or-later
/* See move_rig.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "move_rig.h"
#include "oltp-engine/server/kv/unit.h"

#define ARGS_MAX	1024u

void move_rig_init(struct move_rig *rig, uint32_t unit_bits)
{
	*rig = (struct move_rig){
		.config = { .unit_bits = unit_bits, .relocation = 7, .repeat_ns = 20000000,
			    .hold_ns = 2000000 },
	};
	for (uint32_t i = 0; i < 2; i++)
		rig->nodes[i].disk = fault_disk_create(i + 1);
	rig->nodes[1].is_target = true;
}

void move_rig_finish(struct move_rig *rig)
{
	for (uint32_t i = 0; i < 2; i++)
		fault_disk_destroy(rig->nodes[i].disk);
}

static void take_secret(struct move_node *node, const struct move_node *from)
{
	struct oltp_worker *worker;
	uint64_t secret[2], own[2];

	kv_secret(from->kv, secret);
	kv_secret(node->kv, own);
	if (!memcmp(own, secret, sizeof(own)))
		return;
	assert_int_equal(oltp_worker_create(node->engine, &worker), 0);
	assert_int_equal(kv_set_secret(node->kv, worker, secret), 0);
	oltp_worker_destroy(worker);
}

struct oltp_config move_rig_engine(const struct move_node *node)
{
	struct oltp_config config = {
		.cc = OLTP_CC_WAIT_DIE,
		.durability = OLTP_DURABILITY_COMMIT,
		.volume = node->volume,
		.log_segment_mib = 4,
		.group_interval_us = node->group_interval_us,
		.node = -1,
	};

	if (node->power) {
		config.log_io = &power_file_ops;
		config.log_io_ctx = node->power;
	} else if (!node->volume) {
		config.log_dir = "log";
		config.log_io = &fault_disk_ops;
		config.log_io_ctx = node->disk;
	}
	return config;
}

void move_rig_open(struct move_rig *rig, uint32_t number)
{
	struct move_node *node = &rig->nodes[number];
	struct move_config config = rig->config;
	struct kv_config kv_config = { .rows = 4096, .gate = rig->gates ?: &move_gate_ops,
				       .unit_bits = config.unit_bits };
	struct oltp_config engine_config = move_rig_engine(node);

	config.is_target = node->is_target;
	config.fence_ctx = node->fence_ctx;
	config.peer_volume = node->peer_volume ?: rig->nodes[!number].volume;
	kv_engine_config(&engine_config);
	if (node->cold_dir || node->cold_in_volume) {
		assert_int_equal(oltp_blocks_native_create(node->limit_bytes, 0, &node->blocks),
				 0);
		engine_config.cold_dir = node->cold_dir;
		engine_config.volume_cold = node->cold_in_volume;
		engine_config.cold_bytes_max = node->cold_bytes_max;
		engine_config.blocks = &oltp_blocks_native_ops;
		engine_config.blocks_ctx = node->blocks;
	}
	assert_int_equal(oltp_engine_open(&engine_config, &node->engine), 0);
	if (node->blocks)
		oltp_blocks_native_attach(node->blocks, node->engine);
	assert_int_equal(move_create(&config, &node->move), 0);
	kv_config.gate_ctx = node->move;
	assert_int_equal(kv_open(node->engine, &kv_config, &node->kv), 0);
	assert_int_equal(move_open(node->move, node->engine), 0);
	assert_int_equal(oltp_recover(node->engine, NULL, NULL), 0);
	assert_int_equal(kv_start(node->kv), 0);
	if (node->is_target && rig->nodes[0].kv)
		take_secret(node, &rig->nodes[0]);
	assert_int_equal(move_start(node->move, node->kv), 0);
}

static void lose_power(struct move_node *node)
{
	fault_disk_lose_power_at(node->disk, 0);
	if (node->power)
		power_file_lose_power(node->power);
}

void move_rig_close(struct move_rig *rig, uint32_t number, bool lost_power)
{
	struct move_node *node = &rig->nodes[number];

	if (!node->engine)
		return;
	if (lost_power)
		lose_power(node);
	move_destroy(node->move);
	kv_close(node->kv);
	oltp_engine_close(node->engine);
	oltp_blocks_native_destroy(node->blocks);
	node->blocks = NULL;
	node->move = NULL;
	node->kv = NULL;
	node->engine = NULL;
	fault_disk_restart(node->disk, lost_power);
	fault_disk_calm(node->disk);
	if (node->power)
		power_file_restart(node->power, lost_power);
}

void move_rig_close_both(struct move_rig *rig)
{
	move_rig_close(rig, 0, false);
	move_rig_close(rig, 1, false);
	move_rig_finish(rig);
}

void move_rig_connect(struct move_rig *rig)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	for (uint32_t i = 0; i < 2; i++)
		move_connect(rig->nodes[i].move, fds[i], rig->refers);
}

void move_rig_part(struct move_rig *rig)
{
	for (uint32_t i = 0; i < 2; i++) {
		int fds[2];

		if (!rig->nodes[i].move)
			continue;
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		close(fds[1]);
		move_connect(rig->nodes[i].move, fds[0], false);
	}
}

void move_rig_wait_mode(struct move_rig *rig, uint32_t number, enum units_mode mode)
{
	struct move_stats stats;

	for (uint32_t i = 0; i < 30000; i++) {
		move_stats_read(rig->nodes[number].move, &stats);
		if (stats.mode == mode)
			return;
		usleep(1000);
	}
	for (uint32_t i = 0; i < 2; i++) {
		if (!rig->nodes[i].move)
			continue;
		move_stats_read(rig->nodes[i].move, &stats);
		print_error("node %u is in mode %d with %u units, %s, error %d\n", i, stats.mode,
			    stats.owned, stats.is_connected ? "connected" : "not connected",
			    stats.error);
	}
	fail_msg("node %u is never in mode %d", number, mode);
}

void move_rig_open_both(struct move_rig *rig)
{
	move_rig_open(rig, 0);
	move_rig_open(rig, 1);
	move_rig_connect(rig);
	move_share(rig->nodes[0].move);
	move_rig_wait_mode(rig, 0, UNITS_SHARED);
}

static void wake(void *ctx)
{
	struct move_client *client = ctx;

	pthread_mutex_lock(&client->lock);
	client->is_ready = true;
	pthread_cond_signal(&client->woken);
	pthread_mutex_unlock(&client->lock);
}

void move_client_open(struct move_client *client, struct move_node *node)
{
	*client = (struct move_client){ .node = node };
	pthread_mutex_init(&client->lock, NULL);
	pthread_cond_init(&client->woken, NULL);
	resp_out_init(&client->out, 64 << 20);
	assert_int_equal(oltp_worker_create(node->engine, &client->worker), 0);
	client->session = kv_session_create(node->kv);
	assert_non_null(client->session);
	kv_session_set_ready(client->session, wake, client);
}

void move_client_close(struct move_client *client)
{
	kv_session_destroy(client->session);
	oltp_worker_destroy(client->worker);
	resp_out_finish(&client->out);
	pthread_mutex_destroy(&client->lock);
	pthread_cond_destroy(&client->woken);
}

/* Returns false if it was told not to wait. */
static bool wait_ready(struct move_client *client)
{
	bool is_ready;

	pthread_mutex_lock(&client->lock);
	while (!client->is_ready && !(client->gives_up && *client->gives_up)) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 10000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&client->woken, &client->lock, &until);
	}
	is_ready = client->is_ready;
	client->is_ready = false;
	pthread_mutex_unlock(&client->lock);
	return is_ready;
}

static bool run(struct move_client *client, const struct resp_arg *args, uint32_t n)
{
	enum kv_after after;
	uint64_t epoch;
	enum oltp_rc rc;

	resp_out_reset(&client->out);
	for (bool retry = false;; retry = true) {
		rc = kv_run(client->session, client->worker, args, n, retry, &client->out, &epoch,
			    &after);
		if (rc == OLTP_COLD)
			assert_int_equal(oltp_cold_wait(client->worker), OLTP_OK);
		if (!rc && after == KV_WAIT && !wait_ready(client))
			return false;
		if (!rc && after != KV_AGAIN && after != KV_WAIT)
			break;
	}
	return !epoch || !oltp_durable_wait(client->node->engine, epoch);
}

/* n bytes of text again and again. */
static void repeat(char *to, size_t n, const char *text, size_t length)
{
	for (size_t i = 0; i < n; i++)
		to[i] = text[i % length];
}

bool move_client_do(struct move_client *client, const char *line)
{
	struct resp_arg args[ARGS_MAX];
	char *copy = malloc(strlen(line) + (64u << 10)), *to = copy;
	uint32_t n = 0;
	bool is_done;

	assert_non_null(copy);
	while (*line) {
		size_t length = strcspn(line, " ");

		assert_true(n < ARGS_MAX);
		args[n].bytes = to;
		if (line[0] == '$') {
			char *text;

			args[n].n = (uint32_t)strtoul(line + 1, &text, 10);
			if (*text == '.')
				repeat(to, args[n].n, text + 1, (size_t)(line + length - text) - 1);
			else
				memset(to, 'x', args[n].n);
		} else {
			args[n].n = (uint32_t)length;
			memcpy(to, line, length);
		}
		to += args[n++].n;
		line += length;
		line += strspn(line, " ");
	}
	is_done = run(client, args, n);
	free(copy);
	return is_done;
}

int64_t move_client_integer(struct move_client *client, const char *line)
{
	assert_true(move_client_do(client, line));
	assert_true(client->out.n > 1);
	if (client->out.bytes[0] == '$')
		return strtoll(strchr(client->out.bytes, '\n') + 1, NULL, 10);
	assert_int_equal(client->out.bytes[0], ':');
	return strtoll(client->out.bytes + 1, NULL, 10);
}

void move_client_expect(struct move_client *client, const char *line, const char *reply)
{
	assert_true(move_client_do(client, line));
	if (client->out.n != strlen(reply) || memcmp(client->out.bytes, reply, client->out.n) != 0)
		fail_msg("%s: %.*s", line, (int)client->out.n, client->out.bytes);
}
