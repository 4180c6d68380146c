// SPDX-License-Identifier: GPL-2.0-or-later
/* See move_cold_rig.h. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/server/kv/kv_audit.h"
#include "move_cold_rig.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp_volume.h"

#define KEYS_AT_ONCE	40u	/* of MSET */
#define FILL_BYTES	(32 * MIB)
#define VOLUME_BYTES	(192ull << 20)

uint32_t move_cold_bytes(uint32_t key)
{
	return 700 + key % 800;
}

int move_cold_words(char to[MOVE_COLD_WORDS], char type, uint32_t number, uint32_t version)
{
	return snprintf(to, MOVE_COLD_WORDS, " %c%u $%u.%c%u-%u-", type, number,
			move_cold_bytes(number), type, number, version);
}

void move_cold_expect(struct move_client *client, char type, uint32_t number, uint32_t version)
{
	uint32_t bytes = move_cold_bytes(number), head;
	char line[MOVE_COLD_WORDS], value[2048];
	int n = snprintf(line, sizeof(line), "%c%u-%u-", type, number, version);

	head = (uint32_t)snprintf(value, sizeof(value), "$%u\r\n", bytes);
	for (uint32_t i = 0; i < bytes; i++)
		value[head + i] = line[i % (uint32_t)n];
	memcpy(value + head + bytes, "\r\n", 3);
	snprintf(line, sizeof(line), type == 'k' ? "GET k%u" : "HGET h f%u", number);
	move_client_expect(client, line, value);
}

static void fill(struct move_client *client)
{
	char line[KEYS_AT_ONCE * MOVE_COLD_WORDS + 8];

	for (uint32_t i = 0; i < MOVE_COLD_KEYS; i += KEYS_AT_ONCE) {
		int n = snprintf(line, sizeof(line), "MSET");

		for (uint32_t k = i; k < i + KEYS_AT_ONCE; k++)
			n += move_cold_words(line + n, 'k', k, 0);
		move_client_expect(client, line, "+OK\r\n");
	}
	for (uint32_t i = 0; i < MOVE_COLD_FIELDS; i += 20) {
		int n = snprintf(line, sizeof(line), "HSET h");

		for (uint32_t f = i; f < i + 20; f++)
			n += move_cold_words(line + n, 'f', f, 0);
		move_client_expect(client, line, ":20\r\n");
	}
}

void move_cold_check_versions(struct move_rig *rig, uint32_t node, const uint32_t *versions)
{
	struct move_client client;

	move_client_open(&client, &rig->nodes[node]);
	for (uint32_t k = 0; k < MOVE_COLD_KEYS; k++)
		move_cold_expect(&client, 'k', k, versions ? versions[k] : 0);
	for (uint32_t f = 0; f < MOVE_COLD_FIELDS; f++)
		move_cold_expect(&client, 'f', f, 0);
	assert_int_equal(move_client_integer(&client, "HLEN h"), MOVE_COLD_FIELDS);
	assert_int_equal(move_client_integer(&client, "DBSIZE"), MOVE_COLD_KEYS + 1);
	move_client_close(&client);
	kv_audit(rig->nodes[node].kv);
}

void move_cold_check(struct move_rig *rig, uint32_t node)
{
	move_cold_check_versions(rig, node, NULL);
}

/* The source has all keys, and gives memory up. */
static void fill_and_shrink(struct move_rig *rig)
{
	struct move_node *source = &rig->nodes[0];
	struct oltp_memory_stats stats;
	struct move_client client;

	move_client_open(&client, source);
	fill(&client);
	move_client_close(&client);
	oltp_blocks_native_set_limit(source->blocks, MOVE_COLD_LIMIT,
				     clock_now_ns() + 60000000000ull);
	while (oltp_blocks_native_held(source->blocks) > MOVE_COLD_LIMIT)
		usleep(1000);
	oltp_memory_stats_read(source->engine, &stats);
	assert_true(stats.cold_records > MOVE_COLD_KEYS / 2);
}

void move_cold_open(struct move_rig *rig, const struct io_hook *hook)
{
	move_rig_init(rig, MOVE_COLD_BITS);
	rig->nodes[0].cold_dir = rig_dir();
	rig->nodes[0].limit_bytes = FILL_BYTES;
	move_rig_open(rig, 0);
	rig->nodes[0].engine->cold->hook = hook;
	move_rig_open(rig, 1);
	fill_and_shrink(rig);
}

/* seed: 0: they lose no power. */
static void make_volumes(struct move_rig *rig, struct move_cold_volumes *volumes, uint64_t seed)
{
	move_rig_init(rig, MOVE_COLD_BITS);
	for (uint32_t i = 0; i < 2; i++) {
		struct move_node *node = &rig->nodes[i];
		char *path = volumes->paths[i];
		int fd;

		snprintf(path, sizeof(volumes->paths[i]), "%s/move-cold-XXXXXX", rig_dir());
		fd = mkstemp(path);
		assert_true(fd >= 0);
		assert_int_equal(posix_fallocate(fd, 0, VOLUME_BYTES), 0);
		close(fd);
		assert_int_equal(oltp_volume_format(path, false), 0);
		volumes->power[i] = seed ? power_file_create(path, 2 * seed + i) : NULL;
		node->volume = path;
		node->power = volumes->power[i];
		node->cold_in_volume = true;
		node->limit_bytes = FILL_BYTES;
	}
	rig->refers = true;
}

void move_cold_open_volumes(struct move_rig *rig, struct move_cold_volumes *volumes,
			    const char *peer_volume)
{
	make_volumes(rig, volumes, 0);
	rig->nodes[1].peer_volume = peer_volume;
	move_rig_open(rig, 0);
	move_rig_open(rig, 1);
	fill_and_shrink(rig);
}

void move_cold_open_power(struct move_rig *rig, struct move_cold_volumes *volumes, uint64_t seed,
			  uint64_t cold_bytes_max)
{
	make_volumes(rig, volumes, seed);
	rig->nodes[0].cold_bytes_max = cold_bytes_max;
	move_rig_open(rig, 0);
	move_rig_open(rig, 1);
	fill_and_shrink(rig);
}

void move_cold_remove_volumes(struct move_cold_volumes *volumes)
{
	for (uint32_t i = 0; i < 2; i++) {
		unlink(volumes->paths[i]);
		power_file_destroy(volumes->power[i]);
	}
}

void move_cold_share(struct move_rig *rig)
{
	move_rig_connect(rig);
	move_share(rig->nodes[0].move);
	move_rig_wait_mode(rig, 0, UNITS_SHARED);
}

void move_cold_finish(struct move_rig *rig)
{
	move_leave(rig->nodes[0].move, true);
	move_rig_wait_mode(rig, 0, UNITS_ENDED);
	move_rig_wait_mode(rig, 1, UNITS_ALONE);
}

struct move_stats move_cold_stats(struct move_rig *rig, uint32_t node)
{
	struct move_stats stats;

	move_stats_read(rig->nodes[node].move, &stats);
	return stats;
}
