// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A giver that compacts its cold records, and writes the extents again, while the taker has places
 * in them: the taker finds out, the unit comes as values, and each value is the right one.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "move_cold_rig.h"
#include "oltp-engine/server/kv/private.h"

#define KEYS		MOVE_COLD_KEYS
/* Of so many units, one after the other, places are made wrong; the giver keeps the others. */
#define GIVEN		4u
#define COLD_BYTES	(20 * MIB)
#define AT_ONCE		40u
#define PAUSE_US	1000u
#define HOLD_MS_MAX	20000u
#define HEAD_BYTES	16u	/* of a value: no other one begins so */

static struct {
	const char *volume;	/* the giver's */
	_Atomic bool holds;	/* reads wait until they are too late */
	_Atomic bool is_holding;
	_Atomic uint32_t n_batches, n_late;
	_Atomic bool ends;
	struct move_rig *rig;
	uint32_t kept[KEYS], n_kept;
	uint32_t versions[KEYS];
} test;

int __real_oltp_places_begin(struct oltp_places *places, struct oltp_place_read *reads,
			     uint32_t n);
int __wrap_oltp_places_begin(struct oltp_places *places, struct oltp_place_read *reads,
			     uint32_t n);

/* What is at the places now, whatever it is. Returns whether all is as in heads. */
static bool look(struct oltp_places *places, struct oltp_place_read *reads, uint32_t n,
		 uint8_t (*heads)[HEAD_BYTES], bool is_first)
{
	bool is_same = true;

	assert_int_equal(__real_oltp_places_begin(places, reads, n), 0);
	oltp_places_poll(places, true);
	for (uint32_t i = 0; i < n; i++) {
		if (is_first && !reads[i].rc)
			memcpy(heads[i], reads[i].record, HEAD_BYTES);
		is_same &= !reads[i].rc && !memcmp(heads[i], reads[i].record, HEAD_BYTES);
	}
	return is_same;
}

/* As with a slow disk, until the giver has written another record to one of the places. */
static void hold(const struct oltp_place_read *reads, uint32_t n)
{
	struct oltp_place_read *own = calloc(n, sizeof(*own));
	uint8_t (*heads)[HEAD_BYTES] = calloc(n, sizeof(*heads));
	struct oltp_places *places;
	bool is_same;

	assert_non_null(own);
	assert_non_null(heads);
	memcpy(own, reads, n * sizeof(*own));
	assert_int_equal(oltp_places_open(test.volume, &places), 0);
	is_same = look(places, own, n, heads, true);
	test.is_holding = true;
	for (uint32_t i = 0; i < HOLD_MS_MAX && is_same; i++) {
		usleep(1000);
		is_same = look(places, own, n, heads, false);
	}
	test.is_holding = false;
	test.n_late += !is_same;
	oltp_places_close(places);
	free(heads);
	free(own);
}

int __wrap_oltp_places_begin(struct oltp_places *places, struct oltp_place_read *reads, uint32_t n)
{
	int rc;

	test.n_batches++;
	if (!atomic_exchange(&test.holds, false))
		return __real_oltp_places_begin(places, reads, n);
	hold(reads, n);
	rc = __real_oltp_places_begin(places, reads, n);
	/* So that it does not count as a disk that does not answer. */
	if (!rc)
		oltp_places_poll(places, true);
	return rc;
}

static uint32_t unit_of_key(struct kv *kv, uint32_t key)
{
	char text[16];
	struct resp_arg name = { text, 0 };

	name.n = (uint32_t)snprintf(text, sizeof(text), "k%u", key);
	return unit_of(kv, keyspace_home(&kv->ks, OWNER_KEYS, &name));
}

/* While reads are held up, a client of the giver changes all that it keeps, again and again. */
static void *change(void *arg)
{
	struct move_client client;
	uint32_t at = 0;

	move_client_open(&client, &test.rig->nodes[0]);
	while (!test.ends) {
		char line[AT_ONCE * MOVE_COLD_WORDS + 8] = "MSET";
		int n = 4;

		usleep(PAUSE_US);
		if (!test.is_holding)
			continue;
		for (uint32_t i = 0; i < AT_ONCE; i++) {
			uint32_t key = test.kept[at++ % test.n_kept];

			n += move_cold_words(line + n, 'k', key, ++test.versions[key]);
		}
		move_client_expect(&client, line, "+OK\r\n");
	}
	move_client_close(&client);
	return arg;
}

/* A client of the target asks for a key of the unit. */
static void ask(uint32_t unit)
{
	struct move_client client;
	uint32_t key = 0;

	while (unit_of_key(test.rig->nodes[0].kv, key) != unit)
		key++;
	move_client_open(&client, &test.rig->nodes[1]);
	move_cold_expect(&client, 'k', key, 0);
	move_client_close(&client);
}

static void test_written_again(void **state)
{
	struct oltp_memory_stats before, after;
	struct move_cold_volumes volumes;
	struct move_stats stats;
	struct move_rig rig;
	pthread_t writer;

	(void)state;
	test.rig = &rig;
	test.volume = volumes.paths[0];
	move_cold_open_power(&rig, &volumes, 1, COLD_BYTES);
	for (uint32_t k = 0; k < KEYS; k++) {
		if (unit_of_key(rig.nodes[0].kv, k) >= GIVEN)
			test.kept[test.n_kept++] = k;
	}
	move_cold_share(&rig);
	oltp_memory_stats_read(rig.nodes[0].engine, &before);
	assert_int_equal(pthread_create(&writer, NULL, change, NULL), 0);
	for (uint32_t unit = 0; unit < GIVEN; unit++) {
		test.holds = true;
		ask(unit);
		/* What was refused is not read again, but comes as values. */
		assert_int_equal(test.n_batches, unit + 1);
		stats = move_cold_stats(&rig, 1);
		/* More often, if GIVE was repeated meanwhile. */
		assert_true(stats.units_unread > unit);
		assert_int_equal(stats.error, -EBADMSG);
	}
	test.ends = true;
	pthread_join(writer, NULL);
	oltp_memory_stats_read(rig.nodes[0].engine, &after);
	assert_int_equal(test.n_late, GIVEN);
	assert_true(after.compacted_records > before.compacted_records);
	/* The others as references, as the disk is fast again. */
	move_cold_finish(&rig);
	stats = move_cold_stats(&rig, 1);
	assert_int_equal(stats.units.taken, MOVE_COLD_UNITS);
	assert_true(stats.references_read > 0);
	move_cold_check_versions(&rig, 1, test.versions);
	move_rig_close(&rig, 0, true);
	move_rig_close(&rig, 1, true);
	move_rig_open(&rig, 1);
	move_cold_check_versions(&rig, 1, test.versions);
	move_rig_close_both(&rig);
	move_cold_remove_volumes(&volumes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
