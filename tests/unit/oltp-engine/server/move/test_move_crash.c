// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Either node, or both, lose power again and again while units go back and forth: what was
 * acknowledged is there, and once; no transaction is there by half; what clients saw is strictly
 * serializable. EBB_TEST_CUTS: how often a node loses power (docs/testing.md).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/server/kv/kv_audit.h"
#include "move_history.h"
#include "move_pairs.h"
#include "tests/lib/test_full.h"

#define BITS		3u
#define ROUNDS		12u	/* of one database */
#define CUTS		12u	/* in these */
#define RUN_US		60000u

struct nodes {
	struct move_rig rig;
	struct pairs pairs;
	struct move_history history;
};

/* Clients on both nodes; then power is lost in the midst of it at those of the bits in dead. */
static void run_round(struct nodes *n, uint32_t dead, uint32_t seed)
{
	pairs_begin(&n->pairs, &n->rig, seed);
	move_history_begin(&n->history, &n->rig, seed);
	usleep(RUN_US / 2 + seed * 7919 % RUN_US);
	for (uint32_t i = 0; i < 2; i++) {
		if (dead & 1u << i)
			fault_disk_lose_power_at(n->rig.nodes[i].disk, 0);
	}
	usleep(5000);
	pairs_end(&n->pairs);
	move_history_end(&n->history);
}

/* Both open, and units go back and forth. */
static struct nodes *nodes_new(void)
{
	struct nodes *n = calloc(1, sizeof(*n));

	assert_non_null(n);
	move_history_init(&n->history);
	move_rig_init(&n->rig, BITS);
	move_rig_open_both(&n->rig);
	return n;
}

static void nodes_free(struct nodes *n)
{
	move_rig_close(&n->rig, 0, false);
	move_rig_close(&n->rig, 1, false);
	move_rig_finish(&n->rig);
	move_history_finish(&n->history);
	free(n);
}

static void lose_power_again_and_again(uint32_t seed)
{
	struct nodes *n = nodes_new();
	struct move_rig *rig = &n->rig;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint32_t dead = round % 4;	/* none, the source, the target, both */

		run_round(n, dead, seed + round);
		for (uint32_t i = 0; i < 2; i++) {
			if (dead & 1u << i)
				move_rig_close(rig, i, true);
		}
		for (uint32_t i = 0; i < 2; i++) {
			if (dead & 1u << i)
				move_rig_open(rig, i);
		}
		move_rig_connect(rig);
	}
	usleep(100000);
	move_leave(rig->nodes[0].move, false);
	move_rig_wait_mode(rig, 0, UNITS_ENDED);
	move_rig_wait_mode(rig, 1, UNITS_ALONE);
	pairs_check(&n->pairs, rig, 1);
	/* And what is there now outlives another crash. */
	move_rig_close(rig, 0, true);
	move_rig_close(rig, 1, true);
	move_rig_open(rig, 1);
	pairs_check(&n->pairs, rig, 1);
	move_history_check(&n->history, rig, 1, true);
	kv_audit(rig->nodes[1].kv);
	nodes_free(n);
}

static void test_power(void **state)
{
	uint32_t cuts = test_count("EBB_TEST_CUTS", test_full(4 * CUTS, CUTS));

	(void)state;
	for (uint32_t done = 0; done < cuts; done += CUTS)
		lose_power_again_and_again(done / CUTS * ROUNDS);
}

static uint64_t received(const struct move_rig *rig, uint32_t node)
{
	struct move_stats stats;

	move_stats_read(rig->nodes[node].move, &stats);
	return stats.bytes_received;
}

/* Half of a large unit has come when one of the nodes, or the connection, is lost. */
static void test_parts(void **state)
{
	(void)state;
	for (uint32_t dead = 0; dead < 3; dead++) {
		struct move_client a, b;
		_Atomic bool gives_up = true;
		struct move_rig rig;
		uint64_t half;

		move_rig_init(&rig, BITS);
		move_rig_open(&rig, 0);
		move_rig_open(&rig, 1);
		move_client_open(&a, &rig.nodes[0]);
		large_fill(&a);
		move_client_close(&a);
		move_rig_connect(&rig);
		move_share(rig.nodes[0].move);
		move_rig_wait_mode(&rig, 0, UNITS_SHARED);
		move_client_open(&b, &rig.nodes[1]);
		b.gives_up = &gives_up;
		assert_false(move_client_do(&b, "HLEN large"));
		while (received(&rig, 1) < 1000000)
			usleep(200);
		half = received(&rig, 1);
		assert_true(half < 7000000);
		move_client_close(&b);
		if (dead < 2) {
			move_rig_close(&rig, dead, true);
			move_rig_open(&rig, dead);
		}
		move_rig_connect(&rig);
		move_client_open(&b, &rig.nodes[1]);
		large_check(&b);
		move_client_close(&b);
		/* What had come before was not taken for a part of what came then. */
		assert_true(received(&rig, 1) >= 7000000 + (dead == 1 ? 0 : half));
		move_leave(rig.nodes[0].move, false);
		move_rig_wait_mode(&rig, 1, UNITS_ALONE);
		kv_audit(rig.nodes[1].kv);
		move_rig_close(&rig, 0, false);
		move_rig_close(&rig, 1, false);
		move_rig_finish(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
