// SPDX-License-Identifier: GPL-2.0-or-later
/* An older program wrote facts of fewer, larger units: each of its parts is where the unit was. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/io/log_faults.h"
#include "oltp-engine/server/move/facts.h"

#define FEW	4u
#define MANY	16u

struct rig {
	struct fault_disk *disk;
	struct oltp_engine *engine;
	struct oltp_worker *worker;
	struct facts facts;
};

static void node_open(struct rig *rig, uint32_t n_units)
{
	const struct oltp_config config = {
		.cc = OLTP_CC_WAIT_DIE, .durability = OLTP_DURABILITY_COMMIT, .log_dir = "log",
		.log_io = &fault_disk_ops, .log_io_ctx = rig->disk, .log_segment_mib = 4,
		.node = -1,
	};

	assert_int_equal(oltp_engine_open(&config, &rig->engine), 0);
	assert_int_equal(facts_open(&rig->facts, rig->engine, n_units), 0);
	assert_int_equal(oltp_recover(rig->engine, NULL, NULL), 0);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->worker), 0);
}

static void node_close(struct rig *rig)
{
	oltp_worker_destroy(rig->worker);
	oltp_engine_close(rig->engine);
}

static void put(struct rig *rig, enum units_do what, uint32_t unit, uint64_t gen,
		const struct unit *list)
{
	uint64_t epoch;

	assert_int_equal(facts_write(&rig->facts, rig->worker, what, unit, gen, list, 5, &epoch),
			 0);
	assert_int_equal(oltp_durable_wait(rig->engine, epoch), 0);
}

/* All but `gone` are owned by 3, and that was given by 4. last: UNITS_SEND_HELLO: no more. */
static void make(struct rig *rig, uint32_t gone, enum units_do last)
{
	struct unit list[FEW];
	struct facts_found found;

	memset(list, 0, sizeof(list));
	node_open(rig, FEW);
	assert_int_equal(facts_read(&rig->facts, rig->worker, false, list, &found), 0);
	assert_int_equal(found.n_units, FEW);
	assert_int_equal(facts_begin(&rig->facts, rig->worker, list, &found), 0);
	for (uint32_t u = 0; u < FEW; u++)
		list[u].gen = 3;
	put(rig, UNITS_LOG_SHARED, 0, 3, list);
	put(rig, UNITS_LOG_GAVE, gone, 4, list);
	if (last != UNITS_SEND_HELLO)
		put(rig, last, 0, 9, list);
	node_close(rig);
}

static void expect(struct rig *rig, uint32_t gone, enum units_was was, uint32_t of)
{
	struct unit list[MANY];
	struct facts_found found;

	memset(list, 0, sizeof(list));
	assert_int_equal(facts_read(&rig->facts, rig->worker, false, list, &found), 0);
	assert_int_equal(found.was, was);
	assert_int_equal(found.n_units, of);
	assert_int_equal(found.role.relocation, 5);
	for (uint32_t u = 0; u < MANY; u++) {
		bool is_gone = u / (MANY / FEW) == gone && was != UNITS_WAS_ALONE;

		assert_int_equal(list[u].is_mine, !is_gone && was != UNITS_WAS_CLOSED);
		assert_int_equal(list[u].gen, was == UNITS_WAS_ALONE ? 9 : is_gone ? 4 : 3);
	}
	assert_int_equal(facts_begin(&rig->facts, rig->worker, list, &found), 0);
}

static void look(enum units_do last, enum units_was was)
{
	struct rig rig = { .disk = fault_disk_create(1) };

	make(&rig, 2, last);
	node_open(&rig, MANY);
	expect(&rig, 2, was, FEW);
	/* From then on it has facts of all parts, which go one by one. */
	expect(&rig, 2, was, MANY);
	if (was == UNITS_WAS_SHARED) {
		struct unit list[MANY];
		struct facts_found found;

		put(&rig, UNITS_LOG_GAVE, 1, 6, NULL);
		put(&rig, UNITS_LOG_TAKEN, 11, 7, NULL);
		assert_int_equal(facts_read(&rig.facts, rig.worker, false, list, &found), 0);
		for (uint32_t u = 0; u < MANY; u++)
			assert_int_equal(list[u].is_mine, u == 11 || (u != 1 && u / 4 != 2));
	}
	node_close(&rig);
	fault_disk_destroy(rig.disk);
}

static void test_parts(void **state)
{
	(void)state;
	look(UNITS_SEND_HELLO, UNITS_WAS_SHARED);
	look(UNITS_LOG_CLOSED, UNITS_WAS_CLOSED);
	look(UNITS_LOG_ALONE, UNITS_WAS_ALONE);
}

/* Units that are larger than those on disk would have two owners. */
static void test_others(void **state)
{
	static const uint32_t wrong[] = { FEW / 2, FEW + 2, 1 };
	struct unit list[MANY];
	struct facts_found found;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct rig rig = { .disk = fault_disk_create(1) };

		make(&rig, 2, UNITS_SEND_HELLO);
		node_open(&rig, wrong[i]);
		assert_int_equal(facts_read(&rig.facts, rig.worker, false, list, &found), -EUCLEAN);
		node_close(&rig);
		fault_disk_destroy(rig.disk);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
