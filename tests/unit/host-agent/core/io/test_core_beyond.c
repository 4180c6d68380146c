// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads beyond a promised cache are the system's and not the tenant's I/O: core/io/beyond.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/explain.h"
#include "core/io/beyond.h"
#include "model/sla-io.h"
#include "tests/unit/host-agent/core/core_script.h"

#define CACHE_MIB	400u

/* ---- between the two meters ------------------------------------------------- */

static void test_two_intervals(void **state)
{
	struct io_beyond b = { 0 };

	(void)state;
	assert_int_equal(io_beyond_take(&b, SEC(9), 1000), 0);
	/* The interval that runs when they are reported, and the next one. */
	io_beyond_report(&b, SEC(10), SEC(1), 300);
	assert_int_equal(io_beyond_take(&b, SEC(9) + MSEC(500), 200), 200);
	assert_int_equal(io_beyond_take(&b, SEC(10) + MSEC(500), 1000), 100);
	assert_int_equal(io_beyond_take(&b, SEC(10) + MSEC(900), 1000), 0);
	/* No third one. */
	io_beyond_report(&b, SEC(20), SEC(1), 300);
	assert_int_equal(io_beyond_take(&b, SEC(19) + MSEC(500), 0), 0);
	assert_int_equal(io_beyond_take(&b, SEC(20) + MSEC(500), 0), 0);
	assert_int_equal(io_beyond_take(&b, SEC(21) + MSEC(500), 1000), 0);
	/* Nor for reads that are followed by others: they do not pile up. */
	for (usec_t t = SEC(30); t < SEC(40); t += SEC(1)) {
		io_beyond_report(&b, t, SEC(1), 300);
		assert_int_equal(io_beyond_take(&b, t - MSEC(500), 0), 0);
	}
	assert_int_equal(io_beyond_take(&b, SEC(39) + MSEC(500), 1000), 300);
}

/* Intervals of one meter that are longer than those of the other. */
static void test_unlike_intervals(void **state)
{
	struct io_beyond b = { 0 };

	(void)state;
	for (usec_t t = SEC(11); t <= SEC(15); t += SEC(1))
		io_beyond_report(&b, t, SEC(1), 100);
	assert_int_equal(io_beyond_take(&b, SEC(10), 450), 450);
	assert_int_equal(io_beyond_take(&b, SEC(15), 450), 50);
	io_beyond_report(&b, SEC(25), SEC(5), 500);
	for (usec_t t = SEC(25); t < SEC(30); t += SEC(1))
		assert_int_equal(io_beyond_take(&b, t, 90), 90);
	assert_int_equal(io_beyond_take(&b, SEC(30), 90), 0);
}

static void test_charge(void **state)
{
	static const struct {
		struct ebb_ledger before;
		uint64_t reads;
		struct ebb_ledger after;
	} all[] = {
		/* All units were due: the reads used some of them up. */
		{ { .wanted = 600, .promised = 600, .got = 600, .num_intervals = 1 }, 100,
		  { .wanted = 500, .promised = 500, .got = 500, .unclear = 100,
		    .num_intervals = 1, .num_unclear = 1 } },
		/* There was spare capacity for them. */
		{ { .wanted = 500, .promised = 300, .got = 500, .num_intervals = 1 }, 200,
		  { .wanted = 300, .promised = 300, .got = 300, .num_intervals = 1 } },
		{ { .wanted = 500, .promised = 300, .got = 500, .num_intervals = 1 }, 250,
		  { .wanted = 250, .promised = 250, .got = 250, .unclear = 50,
		    .num_intervals = 1, .num_unclear = 1 } },
		/* The 200 requests that the disk did not serve stay violated. */
		{ { .wanted = 600, .promised = 600, .got = 400, .violated = 200,
		    .num_intervals = 2, .num_violations = 1 }, 100,
		  { .wanted = 500, .promised = 500, .got = 300, .violated = 200, .unclear = 100,
		    .num_intervals = 2, .num_violations = 1, .num_unclear = 2 } },
		{ { .wanted = 50, .promised = 50, .got = 50, .num_intervals = 1 }, 50,
		  { .unclear = 50, .num_intervals = 1, .num_unclear = 1 } },
		/* The server has not reckoned yet what was missing. */
		{ { .wanted = 500, .promised = 600, .got = 500, .num_intervals = 1 }, 0,
		  { .wanted = 500, .promised = 600, .got = 500, .num_intervals = 1 } },
		{ { .wanted = 500, .promised = 600, .got = 500, .num_intervals = 1 }, 10,
		  { .wanted = 490, .promised = 590, .got = 490, .unclear = 10,
		    .num_intervals = 1, .num_unclear = 1 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct ebb_ledger row = all[i].before;

		io_beyond_charge(&row, all[i].reads);
		assert_memory_equal(&row, &all[i].after, sizeof(row));
	}
}

/* ---- the core --------------------------------------------------------------- */

struct rig {
	struct script s;
	struct ebb_volume_counters count; /* of volume x */
	uint64_t baseline, actual;	/* of VM a */
};

static int setup(void **state)
{
	struct rig *g = calloc(1, sizeof(*g));

	script_init(&g->s, 1, 8, 1, false);
	g->s.can_baseline = true;
	script_volumes_up(&g->s);
	*state = g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	script_finish(&g->s);
	free(g);
	return 0;
}

static void settle(struct rig *g)
{
	for (int i = 0; i < 8; i++) {
		script_settle(&g->s);
		script_took(&g->s, 'a');
	}
}

static void set_sla(struct rig *g, const struct ebb_sla *sla)
{
	struct ebb_fact fact = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' } };

	fact.u.sla_set = *sla;
	assert_int_equal(ebb_state_report(g->s.state, g->s.now, &fact), 0);
	settle(g);
}

/* VM a with the disks x and, if there is one, y; each is promised 600 requests per second. */
static void boot(struct rig *g, const char *other)
{
	struct ebb_sla sla;

	ebb_volume_name_copy(g->s.volumes.names[g->s.volumes.num++], "x");
	if (other)
		ebb_volume_name_copy(g->s.volumes.names[g->s.volumes.num++], other);
	script_boot(&g->s, 'a', 1, "1/1m0-1024");
	sla = script_vm(&g->s, 'a')->sla;
	sla.reserve_mem_mib = CACHE_MIB;
	sla.io.reserve_iops = 600;
	set_sla(g, &sla);
}

static void set_cold(struct rig *g, const char *volume, enum ebb_cold cold)
{
	struct ebb_sla sla = script_vm(&g->s, 'a')->sla;

	ebb_sla_volume_put(ebb_sla_volume_get(&sla, volume), ebb_sla_key_find("io.cold"), cold);
	set_sla(g, &sla);
}

/* Half a second later the guest says what its database has read from disk. */
static void read_cold(struct rig *g, uint64_t baseline, uint64_t actual)
{
	g->s.now += MSEC(500);
	g->baseline += baseline;
	g->actual += actual;
	assert_int_equal(script_baseline(&g->s, 'a', CACHE_MIB, g->baseline, g->actual), 0);
}

/* And half a second after that the volume server, what it has issued while units were due. */
static void issue(struct rig *g, uint64_t charged)
{
	g->s.now += MSEC(500);
	g->count.charged += charged;
	g->count.intervals++;
	script_volume_meter(&g->s, "x", "", g->count);
}

/* Both meters have seen something. */
static void begin(struct rig *g)
{
	read_cold(g, 0, 0);
	issue(g, 0);
	while (script_find_record(&g->s, 'a', EBB_EVENT_LEDGER))
		;
}

static bool find_io_record(struct rig *g, char vm)
{
	while (script_find_record(&g->s, vm, EBB_EVENT_LEDGER))
		if (g->s.record.ledger.promise == EBB_PROMISE_IO)
			return true;
	return false;
}

/* The tenant's record, and the system's if it has something; sums of all intervals. */
static void expect_records(struct rig *g, uint64_t got, uint64_t unclear, uint64_t system)
{
	const struct ebb_record *r = &g->s.record;

	assert_true(find_io_record(g, 'a'));
	assert_int_equal(r->ledger.sum.got, got);
	assert_int_equal(r->ledger.sum.wanted, got);
	assert_int_equal(r->ledger.sum.promised, got);
	assert_int_equal(r->ledger.sum.unclear, unclear);
	if (system == 0) {
		assert_false(find_io_record(g, '\0'));
		return;
	}
	assert_true(find_io_record(g, '\0'));
	assert_string_equal(r->name, "system");
	assert_string_equal(r->ledger.volume, "x");
	assert_int_equal(r->code, EBB_CAUSE_NONE);
	assert_int_equal(r->ledger.rate, 0);
	assert_int_equal(r->ledger.sum.got, system);
	assert_int_equal(r->ledger.sum.wanted, system);
	assert_int_equal(r->ledger.sum.promised, 0);
}

/* From what the guest reports to the two rows of the ledger. */
static void test_charged_to_the_system(void **state)
{
	struct rig *g = *state;
	struct ebb_io_view view;

	boot(g, NULL);
	begin(g);
	/* Within the promise of the cache all is the tenant's. */
	read_cold(g, 200, 200);
	issue(g, 300);
	expect_records(g, 300, 0, 0);
	/* 400 beyond it. */
	read_cold(g, 100, 500);
	issue(g, 600);
	expect_records(g, 500, 400, 400);
	assert_int_equal(g->s.record.total_usec, SEC(2));
	assert_int_equal(g->s.record.ledger.sum.metered_usec, SEC(1));
	/* More than came to the volume: the rest is charged in the next interval. */
	read_cold(g, 0, 250);
	issue(g, 200);
	expect_records(g, 500, 600, 600);
	read_cold(g, 0, 0);
	issue(g, 200);
	expect_records(g, 650, 650, 650);
	assert_int_equal(g->s.record.ledger.sum.num_intervals, 3);
	ebb_state_volume(g->s.state, script_vm(&g->s, 'a'), 0, &view);
	assert_int_equal(view.sum.got, 650);
	assert_int_equal(view.system, 650);
	/* And so on as before. */
	read_cold(g, 100, 100);
	issue(g, 600);
	assert_true(find_io_record(g, 'a'));
	assert_int_equal(g->s.record.ledger.sum.got, 1250);
	assert_false(find_io_record(g, '\0'));
}

/* A guest that reports false reads changes the rows of no other tenant. */
static void test_guest_is_not_believed(void **state)
{
	struct rig *g = *state;

	boot(g, NULL);
	begin(g);
	g->actual = 1ull << 60;
	read_cold(g, 0, 0);
	issue(g, 300);
	expect_records(g, 300, 0, 0);
	read_cold(g, 0, 500);
	issue(g, 300);
	expect_records(g, 600, 0, 0);
}

/* Reads during an outage of the volume server are in no row; later rows lose nothing by them. */
static void test_server_is_lost(void **state)
{
	struct rig *g = *state;

	boot(g, NULL);
	begin(g);
	read_cold(g, 0, 300);
	script_volumes_lost(&g->s, "gone");
	for (int i = 0; i < 3; i++) {
		g->s.now += MSEC(500);
		read_cold(g, 0, 300);
	}
	script_volumes_up(&g->s);
	settle(g);
	issue(g, 100);
	assert_false(find_io_record(g, 'a'));
	read_cold(g, 0, 0);
	issue(g, 300);
	expect_records(g, 300, 0, 0);
}

/* 100 reads beyond the promise of the cache, and 300 units of volume x: who gets the 100? */
static bool is_charged(struct rig *g)
{
	while (find_io_record(g, '\0'))
		;
	read_cold(g, 0, 0);
	issue(g, 0);
	read_cold(g, 0, 100);
	issue(g, 300);
	return find_io_record(g, '\0');
}

static bool is_explained(struct rig *g, const char *words)
{
	struct ebb_explain e;

	ebb_explain_vm(g->s.state, script_vm(&g->s, 'a'), g->s.now, &e);
	for (uint32_t i = 0; i < e.num_lines; i++)
		if (strstr(e.lines[i], "reads beyond its promised cache count as its own I/O") &&
		    strstr(e.lines[i], words))
			return true;
	return false;
}

static void test_which_volume(void **state)
{
	struct rig *g = *state;
	struct ebb_sla sla;

	boot(g, "y");
	begin(g);
	assert_false(is_charged(g));
	assert_true(is_explained(g, "any of 2 volumes may hold its cold records"));
	set_cold(g, "x", EBB_COLD_YES);
	assert_true(is_charged(g));
	assert_false(is_explained(g, ""));
	set_cold(g, "y", EBB_COLD_YES);
	assert_false(is_charged(g));
	assert_true(is_explained(g, "cold=\"yes\" of 2 volumes"));
	set_cold(g, "x", EBB_COLD_NO);
	assert_false(is_charged(g));
	assert_false(is_explained(g, ""));
	/* The only one that is left. */
	set_cold(g, "x", EBB_COLD_AUTO);
	set_cold(g, "y", EBB_COLD_NO);
	assert_true(is_charged(g));
	/* None of its volumes has them. */
	set_cold(g, "x", EBB_COLD_NO);
	assert_false(is_charged(g));
	assert_false(is_explained(g, ""));
	/* One that is no disk of the VM, so it is not x either. */
	set_cold(g, "x", EBB_COLD_AUTO);
	set_cold(g, "z", EBB_COLD_YES);
	assert_false(is_charged(g));
	set_cold(g, "z", EBB_COLD_AUTO);
	assert_true(is_charged(g));
	/* Of a promise of bytes nobody knows what a read is worth. */
	sla = script_vm(&g->s, 'a')->sla;
	sla.io.reserve_iops = 0;
	sla.io.reserve_bytes = 65536000;
	set_sla(g, &sla);
	assert_false(is_charged(g));
	assert_true(is_explained(g, "volume x is promised bytes only"));
	/* Without a promise of a cache there is nothing to say. */
	sla.reserve_mem_mib = 0;
	set_sla(g, &sla);
	assert_false(is_explained(g, ""));
}

/* The volume server keeps promises; where cold records are is nothing to it. */
static void test_server_is_not_told(void **state)
{
	struct ebb_fact fact = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' } };
	struct rig *g = *state;

	boot(g, NULL);
	fact.u.sla_set = script_vm(&g->s, 'a')->sla;
	fact.u.sla_set.io.cold = EBB_COLD_NO;
	assert_int_equal(ebb_state_report(g->s.state, g->s.now, &fact), 0);
	script_expect_nothing(&g->s);
	begin(g);
	assert_false(is_charged(g));
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_intervals), cmocka_unit_test(test_unlike_intervals),
		cmocka_unit_test(test_charge), TEST(test_charged_to_the_system),
		TEST(test_guest_is_not_believed), TEST(test_server_is_lost),
		TEST(test_which_volume), TEST(test_server_is_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
