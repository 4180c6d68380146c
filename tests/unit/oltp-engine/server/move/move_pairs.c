// SPDX-License-Identifier: GPL-2.0-or-later
/* See move_pairs.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/server/kv/kv_audit.h"
#include "move_pairs.h"

static void *add_pairs(void *ctx)
{
	struct pairs_runner *r = ctx;
	char line[64];

	while (!r->pairs->is_over) {
		uint32_t pair = (uint32_t)rand_r(&r->seed) % PAIRS;

		assert_true(move_client_do(&r->client, "MULTI"));
		snprintf(line, sizeof(line), "INCR a%u", pair);
		assert_true(move_client_do(&r->client, line));
		snprintf(line, sizeof(line), "HINCRBY b%u n 1", pair);
		assert_true(move_client_do(&r->client, line));
		if (!move_client_do(&r->client, "EXEC") || r->client.out.bytes[0] != '*') {
			r->doubtful[pair]++;
			return NULL;
		}
		r->added[pair]++;
	}
	return NULL;
}

void pairs_begin(struct pairs *pairs, struct move_rig *rig, uint32_t seed)
{
	pairs->is_over = false;
	for (uint32_t i = 0; i < PAIRS_THREADS; i++) {
		struct pairs_runner *r = &pairs->runners[i];

		move_client_open(&r->client, &rig->nodes[i % 2]);
		r->client.gives_up = &pairs->is_over;
		r->pairs = pairs;
		r->seed = seed * PAIRS_THREADS + i;
		pthread_create(&r->thread, NULL, add_pairs, r);
	}
}

void pairs_end(struct pairs *pairs)
{
	pairs->is_over = true;
	for (uint32_t i = 0; i < PAIRS_THREADS; i++) {
		pthread_join(pairs->runners[i].thread, NULL);
		move_client_close(&pairs->runners[i].client);
	}
}

#define LARGE_FIELDS	450u
#define LARGE_BYTES	16000u

void large_fill(struct move_client *client)
{
	char line[64];

	for (uint32_t i = 0; i < LARGE_FIELDS; i++) {
		snprintf(line, sizeof(line), "HSET large f%u $%u", i, LARGE_BYTES + i % 100);
		move_client_expect(client, line, ":1\r\n");
	}
}

void large_check(struct move_client *client)
{
	char line[64];

	assert_int_equal(move_client_integer(client, "HLEN large"), LARGE_FIELDS);
	for (uint32_t i = 0; i < LARGE_FIELDS; i++) {
		snprintf(line, sizeof(line), "HSTRLEN large f%u", i);
		assert_int_equal(move_client_integer(client, line), LARGE_BYTES + i % 100);
	}
}

static void print_pair(const struct pairs *pairs, uint32_t pair)
{
	for (uint32_t i = 0; i < PAIRS_THREADS; i++)
		print_message("pair %u, node %u: %llu acknowledged, %llu unanswered\n", pair, i % 2,
			      (unsigned long long)pairs->runners[i].added[pair],
			      (unsigned long long)pairs->runners[i].doubtful[pair]);
}

void pairs_check(const struct pairs *pairs, struct move_rig *rig, uint32_t node)
{
	struct move_client client;
	uint64_t all = 0;
	char line[64];

	move_client_open(&client, &rig->nodes[node]);
	for (uint32_t p = 0; p < PAIRS; p++) {
		uint64_t added = 0, doubtful = 0, value;

		for (uint32_t i = 0; i < PAIRS_THREADS; i++) {
			added += pairs->runners[i].added[p];
			doubtful += pairs->runners[i].doubtful[p];
		}
		snprintf(line, sizeof(line), "INCRBY a%u 0", p);
		value = (uint64_t)move_client_integer(&client, line);
		if (value < added || value > added + doubtful)
			print_pair(pairs, p);
		assert_in_range(value, added, added + doubtful);
		snprintf(line, sizeof(line), "HINCRBY b%u n 0", p);
		assert_int_equal(move_client_integer(&client, line), value);
		all += added;
	}
	assert_true(all > 0);
	print_message("%llu transactions\n", (unsigned long long)all);
	move_client_close(&client);
}

void pairs_check_at_target(const struct pairs *pairs, struct move_rig *rig)
{
	move_rig_wait_mode(rig, 0, UNITS_ENDED);
	move_rig_wait_mode(rig, 1, UNITS_ALONE);
	pairs_check(pairs, rig, 1);
	move_rig_close(rig, 0, true);
	move_rig_close(rig, 1, true);
	move_rig_open(rig, 1);
	pairs_check(pairs, rig, 1);
	kv_audit(rig->nodes[1].kv);
	move_rig_close(rig, 1, false);
	move_rig_finish(rig);
}
