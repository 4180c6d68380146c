// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every workload, as the programs run it: through its interface, with several workers, under every
 * scheme. What it did must verify, and damage that is done behind its back must not.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "oltp-engine/bench/options.h"
#include "oltp-engine/bench/ycsb/ycsb_record.h"
#include "oltp-engine/bench/ycsb/ycsb_workload.h"
#include "oltp-engine/src/base/clock.h"

#define RECORDS		2000u
#define WORKERS		3u
#define TXNS		150u
/* So many that each class is among those whose latency is measured. */
#define TXNS_OF_CLASSES	800u
#define WAIT_S		120

struct fixture {
	struct bench_options options;
	const struct bench_workload *workload;
	const struct bench_workload_ops *ops;
	struct oltp_engine *engine;
	void *state;
	char text[4096];	/* the verification's fields */
};

/* False: there is no such scheme. */
static bool fixture_open(struct fixture *f, const char *name, enum oltp_cc cc)
{
	struct bench_progress progress = { 0 };
	struct oltp_config config = { .cc = cc, .node = -1 };

	f->options = bench_options_default;
	f->options.ycsb.records = RECORDS;
	f->options.uniform.data_mib = 2;
	f->options.cdb.cpu_work = 1;
	f->workload = bench_workload_find(name);
	assert_non_null(f->workload);
	f->ops = f->workload->ops;
	if (f->ops->configure)
		f->ops->configure(f->workload, &f->options, &config);
	if (oltp_engine_open(&config, &f->engine))
		return false;
	assert_int_equal(f->ops->create(f->workload, f->engine, &f->options, &f->state), 0);
	assert_int_equal(f->ops->load(f->state, 2, &progress), 0);
	assert_non_null(progress.unit);
	assert_true(progress.total > 0);
	assert_int_equal(progress.done, progress.total);
	return true;
}

static void fixture_close(struct fixture *f)
{
	f->ops->destroy(f->state);
	oltp_engine_close(f->engine);
}

/* arrivals: NULL: work is unlimited. */
static void run_with(struct fixture *f, struct oltp_arrivals *arrivals, uint64_t txns,
		     struct oltp_totals *ret_totals)
{
	struct oltp_workload workload = f->ops->pool(f->state);
	struct timespec pause = { 0, 1000000 };
	time_t end = time(NULL) + WAIT_S;
	struct oltp_pool *pool;

	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = f->engine,
								      .workload = &workload,
								      .arrivals = arrivals,
								      .no_pin = true }, &pool), 0);
	for (uint32_t cpu = 0; cpu < WORKERS; cpu++)
		assert_int_equal(oltp_pool_add(pool, cpu), 0);
	do {
		assert_true(time(NULL) < end);
		nanosleep(&pause, NULL);
		oltp_pool_totals(pool, ret_totals);
	} while (ret_totals->committed < txns);
	for (uint32_t cpu = 0; cpu < WORKERS; cpu++)
		assert_int_equal(oltp_pool_remove(pool, cpu, NULL), 0);
	oltp_pool_totals(pool, ret_totals);
	oltp_pool_destroy(pool);
}

static void run(struct fixture *f, uint64_t txns, struct oltp_totals *ret_totals)
{
	run_with(f, NULL, txns, ret_totals);
}

static bool verify(struct fixture *f)
{
	FILE *out = fmemopen(f->text, sizeof(f->text), "w");
	struct fields fields;
	bool is_good;

	assert_non_null(out);
	fields_begin(&fields, out, FIELDS_JSON);
	is_good = f->ops->verify(f->state, &fields);
	fields_end(&fields);
	fclose(out);
	return is_good;
}

static void assert_field(const struct fixture *f, const char *field)
{
	if (!strstr(f->text, field))
		fail_msg("no %s in %s", field, f->text);
}

static void assert_classes_add_up(struct fixture *f, const struct oltp_totals *totals)
{
	struct classes *classes = f->ops->classes ? f->ops->classes(f->state) : NULL;
	uint64_t committed = 0, conflicts = 0, measured = 0;

	if (!classes)
		return;
	for (uint32_t i = 0; i < classes_count(classes); i++) {
		struct class_figures figures;

		classes_read(classes, i, &figures);
		assert_true(figures.committed > 0);
		assert_true(figures.p50_us > 0);
		assert_true(figures.p50_us <= figures.p99_us);
		assert_int_equal(figures.failed, 0);
		committed += figures.committed;
		conflicts += figures.conflicts;
		measured += figures.measured;
	}
	assert_int_equal(committed, totals->committed);
	assert_int_equal(conflicts, totals->conflicts);
	assert_true(measured <= committed / 8);
}

static void run_and_verify(const char *name)
{
	struct fixture f;
	enum oltp_cc cc;

	for (cc = 0; fixture_open(&f, name, cc); cc++) {
		struct oltp_totals totals;
		struct bench_audit audit;

		run(&f, f.ops->classes ? TXNS_OF_CLASSES : TXNS, &totals);
		assert_int_equal(totals.failed, 0);
		if (!verify(&f))
			fail_msg("%s: %s", name, f.text);
		assert_field(&f, "\"lost_updates\":0}");
		assert_classes_add_up(&f, &totals);
		if (f.ops->audit) {
			f.ops->audit(f.state, &audit);
			assert_true(audit.is_complete);
			assert_int_equal(audit.damaged_records, 0);
		}
		fixture_close(&f);
	}
	assert_true(cc > OLTP_CC_WAIT_DIE);
}

static void test_every_workload_verifies(void **state)
{
	(void)state;
	for (const struct bench_workload *w = bench_workloads; w->name; w++) {
		if (w->ops->family <= BENCH_FAMILY_CDB)
			run_and_verify(w->name);
	}
}

/* In a transaction like any other, which the books do not know. */
struct culprit {
	struct oltp_worker *worker;
	struct oltp_table *table;
};

static void culprit_begin(struct culprit *c, struct fixture *f)
{
	assert_int_equal(oltp_worker_create(f->engine, &c->worker), 0);
	c->table = ycsb_table(f->state);
	assert_int_equal(oltp_txn_begin(c->worker), OLTP_OK);
}

static void culprit_end(struct culprit *c)
{
	assert_int_equal(oltp_txn_commit(c->worker), OLTP_OK);
	oltp_worker_destroy(c->worker);
}

/* Some key of a record that was loaded, whatever keys are like. */
static int take_key(void *ctx, uint64_t key, const void *record)
{
	(void)record;
	*(uint64_t *)ctx = key;
	return 1;
}

static uint64_t some_key(struct fixture *f)
{
	uint64_t key = 0;

	assert_int_equal(oltp_table_scan(ycsb_table(f->state), take_key, &key), 1);
	return key;
}

static void lose_update(struct culprit *c, uint64_t key)
{
	struct oltp_span all = { 0, sizeof(struct ycsb_record) };
	struct ycsb_record *record;
	void *bytes;

	assert_int_equal(oltp_txn_update(c->worker, c->table, key, &all, 1, &bytes), OLTP_OK);
	record = bytes;
	record->updates += 1;
	for (uint32_t field = 0; field < YCSB_FIELDS; field++)
		ycsb_field_write(record->fields[field], key, field, record->updates);
}

static void tear(struct culprit *c, uint64_t key)
{
	struct oltp_span all = { 0, sizeof(struct ycsb_record) };
	struct ycsb_record *record;
	void *bytes;

	assert_int_equal(oltp_txn_update(c->worker, c->table, key, &all, 1, &bytes), OLTP_OK);
	record = bytes;
	record->fields[3][50] ^= 4;
}

static void drop(struct culprit *c, uint64_t key)
{
	assert_int_equal(oltp_txn_delete(c->worker, c->table, key), OLTP_OK);
}

static void swap(struct culprit *c, uint64_t key)
{
	struct ycsb_record record;

	ycsb_record_init(&record, 0x123456789abcdefull);
	drop(c, key);
	assert_int_equal(oltp_txn_insert(c->worker, c->table, 0x123456789abcdefull, &record),
			 OLTP_OK);
}

static void test_damage_is_found(void **state)
{
	(void)state;
	static const struct {
		void (*fn)(struct culprit *c, uint64_t key);
		const char *field;
	} damages[] = {
		{ lose_update, "\"lost_updates\":1" },
		{ tear, "\"damaged_records\":1" },
		{ drop, "\"records_missing\":1" },
		{ swap, "\"keys_equal\":false" },
	};
	static const char *const names[] = { "ycsb-10", "ycsb-d", "ycsb-e", "ycsb-f", "uniform",
					     "cdb" };

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
			struct culprit culprit;
			struct fixture f;

			assert_true(fixture_open(&f, names[n], OLTP_CC_NO_WAIT));
			assert_true(verify(&f));
			culprit_begin(&culprit, &f);
			damages[i].fn(&culprit, some_key(&f));
			culprit_end(&culprit);
			assert_false(verify(&f));
			assert_field(&f, damages[i].field);
			fixture_close(&f);
		}
	}
}

static void test_weights_stop_classes(void **state)
{
	(void)state;
	struct class_figures figures;
	struct oltp_totals totals;
	struct fixture f;

	assert_true(fixture_open(&f, "cdb", OLTP_CC_WAIT_DIE));
	assert_int_equal(f.ops->knob_set(f.state, BENCH_KNOB_CPU_HEAVY, 0), 0);
	assert_int_equal(f.ops->knob_set(f.state, BENCH_KNOB_READ_HEAVY, 0), 0);
	assert_true(f.ops->knob_get(f.state, BENCH_KNOB_READ_HEAVY) == 0);
	assert_true(f.ops->knob_get(f.state, BENCH_KNOB_WRITE_HEAVY) == 1);
	run(&f, TXNS, &totals);
	for (uint32_t i = 0; i < 3; i++) {
		classes_read(f.ops->classes(f.state), i, &figures);
		assert_int_equal(figures.committed, i == 2 ? totals.committed : 0);
	}
	assert_true(verify(&f));
	fixture_close(&f);
}

/*
 * Evenly over the last second so many transactions have arrived, and none will. A latency from the
 * first attempt would be far below what they have waited for.
 */
static void test_latencies_of_classes_are_from_the_arrival(void **state)
{
	(void)state;
	static const char *const names[] = { "tpcc", "cdb" };
	const uint64_t now_ns = clock_now_ns();

	for (size_t n = 0; n < 2; n++) {
		struct oltp_arrivals *arrivals;
		struct class_figures figures;
		struct oltp_totals totals;
		struct fixture f;

		assert_true(fixture_open(&f, names[n], OLTP_CC_NO_WAIT));
		assert_int_equal(oltp_arrivals_create(&arrivals), 0);
		assert_int_equal(oltp_arrivals_set_rate(arrivals, TXNS_OF_CLASSES,
							now_ns - 1000000000), 0);
		assert_int_equal(oltp_arrivals_set_rate(arrivals, 0, now_ns), 0);
		run_with(&f, arrivals, TXNS_OF_CLASSES - 1, &totals);
		for (uint32_t i = 0; i < classes_count(f.ops->classes(f.state)); i++) {
			classes_read(f.ops->classes(f.state), i, &figures);
			assert_true(figures.committed > 0);
			assert_int_equal(figures.measured, figures.committed);
			assert_true(figures.p50_us >= 250e3);
			assert_true(figures.p99_us >= 750e3);
		}
		fixture_close(&f);
		oltp_arrivals_destroy(arrivals);
	}
}

static void test_knobs_that_are_not_there(void **state)
{
	(void)state;
	static const char *const names[] = { "ycsb-a", "uniform", "cdb" };
	static const bool has[3][BENCH_KNOBS] = {
		{ [BENCH_KNOB_THETA] = true },
		{ [BENCH_KNOB_WORKING_SET_MIB] = true, [BENCH_KNOB_WORKING_SET_START_MIB] = true },
		{ [BENCH_KNOB_THETA] = true, [BENCH_KNOB_CPU_HEAVY] = true,
		  [BENCH_KNOB_READ_HEAVY] = true, [BENCH_KNOB_WRITE_HEAVY] = true },
	};

	for (size_t i = 0; i < 3; i++) {
		struct fixture f;

		assert_true(fixture_open(&f, names[i], OLTP_CC_NO_WAIT));
		for (enum bench_knob knob = 0; knob < BENCH_KNOBS; knob++) {
			double value = f.ops->knob_get(f.state, knob);

			assert_int_equal(value == value, has[i][knob]);
			assert_int_equal(f.ops->knob_set(f.state, knob, 0.5),
					 has[i][knob] ? 0 : -EOPNOTSUPP);
			if (has[i][knob])
				assert_true(f.ops->knob_get(f.state, knob) == 0.5);
		}
		fixture_close(&f);
	}
}

static void test_estimates_are_near(void **state)
{
	(void)state;
	struct oltp_memory_stats memory;
	struct fixture f;
	uint64_t bytes;

	assert_true(fixture_open(&f, "ycsb-a", OLTP_CC_NO_WAIT));
	oltp_memory_stats_read(f.engine, &memory);
	bytes = f.ops->memory_bytes(f.workload, &f.options);
	assert_in_range(bytes, memory.resident_bytes, memory.resident_bytes * 5 / 4);
	fixture_close(&f);
}

static void test_names(void **state)
{
	(void)state;
	assert_null(bench_workload_find("nope"));
	assert_ptr_equal(bench_workload_find("ycsb"), &bench_workloads[0]);
	for (const struct bench_workload *w = bench_workloads; w->name; w++) {
		assert_ptr_equal(bench_workload_find(w->name), w);
		assert_true(strlen(w->help) > 0);
	}
	for (enum bench_knob knob = 0; knob < BENCH_KNOBS; knob++)
		assert_non_null(bench_knob_name(knob));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_workload_verifies),
		cmocka_unit_test(test_damage_is_found),
		cmocka_unit_test(test_weights_stop_classes),
		cmocka_unit_test(test_latencies_of_classes_are_from_the_arrival),
		cmocka_unit_test(test_knobs_that_are_not_there),
		cmocka_unit_test(test_estimates_are_near),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
