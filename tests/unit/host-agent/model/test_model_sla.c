// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of attributes of an SLA: each row, whichever there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/sla-io.h"

static void test_rows(void **state)
{
	const struct ebb_sla_key *key;
	struct ebb_sla sla, other;
	uint64_t value;
	char buf[16];

	(void)state;
	for (size_t i = 0; (key = ebb_sla_key_at(i)); i++) {
		const uint64_t values[] = { key->min, key->missing, key->max };

		assert_ptr_equal(ebb_sla_key_find(key->name), key);
		for (size_t k = 0; k < 3; k++) {
			ebb_sla_default(&sla);
			other = sla;
			ebb_sla_put(&sla, key, values[k]);
			assert_int_equal(ebb_sla_get(&sla, key), values[k]);
			assert_null(ebb_sla_out_of_range(&sla, key->part));
			/* The text says the same. */
			assert_int_equal(ebb_sla_value(key, ebb_sla_value_text(key, values[k], buf),
						       &value), 0);
			assert_int_equal(value, values[k]);
			/* Nothing else was written. */
			ebb_sla_put(&sla, key, key->missing);
			assert_memory_equal(&sla, &other, sizeof(sla));
		}
	}
	assert_null(ebb_sla_key_find("colour"));
}

static void test_refused(void **state)
{
	static const struct {
		const char *key, *text, *allowed;
	} all[] = {
		{ "class", "gold", "reserved, spot" },
		{ "tier", "", "any, lend, park, unplug" },
		{ "plug", "aheadd", "demand, ahead" },
		{ "shared", "true", "no, yes" },
		{ "reserve-percent", "-50", "0 to 51200" },
		{ "reserve-percent", "51201", "0 to 51200" },
		{ "max-percent", "50%", "0 to 51200" },
		{ "penalty", "1.5", "0 to 1000000" },
		{ "weight", "0", "1 to 10000" },
		{ "weight", "10001", "1 to 10000" },
		{ "weight", "-1", "1 to 10000" },
		{ "weight", "4294967297", "1 to 10000" },
		{ "mem.deadline-ms", "9", "10 to 600000" },
		{ "reserve-mem", "16777217", "0 to 16777216" },
		{ "deadline-ms", "1 0", "10 to 600000" },
		{ "priority", "", "0 to 1000" },
		{ "io.reserve-iops", "10000001", "0 to 10000000" },
		{ "io.reserve-iops", "-1", "0 to 10000000" },
		{ "io.reserve-bytes", "1000000000001", "0 to 1000000000000" },
		{ "io.max-bytes", "18446744073709551617", "0 to 1000000000000" },
		{ "io.weight", "0", "1 to 10000" },
		{ "io.cold", "1", "auto, no, yes" },
	};
	char text[EBB_TEXT_SIZE];
	uint64_t value = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct ebb_sla_key *key = ebb_sla_key_find(all[i].key);

		assert_non_null(key);
		assert_true(ebb_sla_value(key, all[i].text, &value) < 0);
		assert_int_equal(value, 77);
		ebb_sla_allowed(key, text);
		assert_string_equal(text, all[i].allowed);
	}
}

static void test_print(void **state)
{
	char text[EBB_SLA_TEXT_SIZE];
	struct ebb_sla sla;

	(void)state;
	ebb_sla_default(&sla);
	sla.num_nodes = 2;
	sla.nodes[0] = (struct ebb_sla_node){ .startup = 1, .reserved = 2, .max = 3 };
	sla.nodes[1] = (struct ebb_sla_node){ .max = 4, .host_node = 1 };
	ebb_sla_print(&sla, text);
	assert_string_equal(text, "class=reserved priority=100 tier=any plug=demand weight=100 "
			    "deadline-ms=2000 nodes=1/2/3@0,0/0/4@1");
}

/* A volume's own values, those of the VM where it has none, and the defaults. */
static void test_volumes(void **state)
{
	const struct ebb_sla_key *iops = ebb_sla_key_find("io.reserve-iops");
	const struct ebb_sla_key *bytes = ebb_sla_key_find("io.max-bytes");
	struct ebb_sla sla, empty;
	struct ebb_sla_io io, none;
	char text[EBB_TEXT_SIZE];

	(void)state;
	ebb_sla_default(&sla);
	empty = sla;
	ebb_sla_io_default(&none);
	assert_false(ebb_sla_has_io(&sla));
	ebb_sla_io_of(&sla, "data", &io);
	assert_true(ebb_sla_io_is_same(&io, &none));
	sla.io.reserve_iops = 200;
	assert_true(ebb_sla_has_io(&sla));
	ebb_sla_volume_put(ebb_sla_volume_get(&sla, "data"), bytes, 1000000000000);
	ebb_sla_volume_put(ebb_sla_volume_get(&sla, "log"), iops, 0);
	ebb_sla_io_of(&sla, "data", &io);
	assert_int_equal(io.reserve_iops, 200);
	assert_int_equal(io.max_bytes, 1000000000000);
	/* 0 is a value of its own. */
	ebb_sla_io_of(&sla, "log", &io);
	assert_int_equal(io.reserve_iops, 0);
	assert_int_equal(io.max_bytes, 0);
	ebb_sla_volume_clear(ebb_sla_volume_get(&sla, "log"), iops);
	sla.io.reserve_iops = 300;
	ebb_sla_io_of(&sla, "log", &io);
	assert_int_equal(io.reserve_iops, 300);
	assert_int_equal(ebb_sla_io_check(&sla, text), 0);
	sla.io.max_iops = 299;
	assert_true(ebb_sla_io_check(&sla, text) < 0);
	assert_string_equal(text, "I/O reserve-iops is 300, which is more than max-iops, 299");
	/* Not a promise, so it makes no volume one that the SLA speaks of; but it is kept. */
	sla.io = none;
	ebb_sla_volume_drop(&sla, "data");
	ebb_sla_volume_drop(&sla, "log");
	sla.io.cold = EBB_COLD_NO;
	assert_true(ebb_sla_has_io(&sla));
	assert_false(ebb_sla_io_covers(&sla, "data"));
	/* As it was: SLAs are compared as a whole. */
	sla.io = none;
	ebb_sla_volume_drop(&sla, "data");
	assert_memory_equal(&sla, &empty, sizeof(sla));
}

static void test_volume_names(void **state)
{
	char name[EBB_VOLUME_NAME_SIZE + 1];
	struct ebb_sla sla;

	(void)state;
	ebb_sla_default(&sla);
	assert_null(ebb_sla_volume_get(&sla, ""));
	assert_null(ebb_sla_volume_get(&sla, "a b"));
	assert_null(ebb_sla_volume_get(&sla, "a/b"));
	memset(name, 'x', sizeof(name));
	name[EBB_VOLUME_NAME_SIZE] = '\0';
	assert_null(ebb_sla_volume_get(&sla, name));
	name[EBB_VOLUME_NAME_SIZE - 1] = '\0';
	assert_non_null(ebb_sla_volume_get(&sla, name));
	for (int i = 1; i < EBB_MAX_VOLUMES; i++) {
		snprintf(name, sizeof(name), "Vm-1_%d.img", i);
		assert_non_null(ebb_sla_volume_get(&sla, name));
	}
	assert_null(ebb_sla_volume_get(&sla, "one-more"));
	assert_non_null(ebb_sla_volume_get(&sla, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_volumes),
		cmocka_unit_test(test_volume_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
