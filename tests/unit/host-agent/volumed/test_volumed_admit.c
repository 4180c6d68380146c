/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is promised to all volumes together, and what of it is the system's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "volumed/server.h"

struct fixture {
	struct ebb_vconf conf;
	struct ebb_server server;
};

static struct fixture f;

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	ebb_vconf_default(&f.conf);
	f.server.conf = &f.conf;
	f.conf.capacity_iops = 1000;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	while (f.server.volumes)
		ebb_server_drop(&f.server, f.server.volumes);
	return 0;
}

static struct ebb_volspec spec_of(const char *name, const char *tenant, uint64_t iops)
{
	struct ebb_volspec spec;

	assert_int_equal(ebb_volspec_init(&spec, name, NULL), 0);
	strcpy(spec.tenant, tenant);
	spec.reserve_iops = iops;
	return spec;
}

static void add(const char *name, const char *tenant, uint64_t iops)
{
	const struct ebb_volspec spec = spec_of(name, tenant, iops);

	assert_non_null(ebb_server_append(&f.server, &spec));
}

static uint64_t promised(void)
{
	uint64_t iops, bytes;

	ebb_server_promised(&f.server, NULL, &iops, &bytes);
	return iops;
}

static int admit(const char *name, const char *tenant, uint64_t iops)
{
	const struct ebb_volspec spec = spec_of(name, tenant, iops);
	struct ebb_err err = { "" };

	return ebb_server_admit(&f.server, &spec, &err);
}

static void test_sum(void **state)
{
	(void)state;
	add("a", "t", 600);
	assert_int_equal(promised(), 600);
	assert_int_equal(admit("b", "t", 400), 0);
	assert_int_equal(admit("b", "t", 401), -EDQUOT);
	/* In its own place. */
	assert_int_equal(admit("a", "t", 1000), 0);
	assert_int_equal(admit("a", "t", 1001), -EDQUOT);
	f.conf.allow_overbooking = true;
	assert_int_equal(admit("a", "t", 1001), 0);
}

/* The disk was found to do less than is promised: nothing more is promised, and all else goes. */
static void test_less_than_is_promised(void **state)
{
	(void)state;
	add("a", "t", 600);
	add("b", "t", 600);
	assert_int_equal(admit("a", "t", 601), -EDQUOT);
	assert_int_equal(admit("a", "t", 600), 0);
	assert_int_equal(admit("a", "t", 500), 0);
	assert_int_equal(admit("c", "t", 1), -EDQUOT);
	assert_int_equal(admit("c", "t", 0), 0);
}

/* It is kept for the system whether the system works or not, and counts once. */
static void test_the_system_is_promised_something(void **state)
{
	(void)state;
	f.conf.system.reserve_iops = 100;
	add("a", "t", 600);
	assert_int_equal(promised(), 700);
	assert_int_equal(admit("b", "t", 300), 0);
	assert_int_equal(admit("b", "t", 301), -EDQUOT);
	add("copy", EBB_VOLUME_SYSTEM, 60);
	assert_int_equal(promised(), 700);
	assert_int_equal(admit("copy2", EBB_VOLUME_SYSTEM, 40), 0);
	/* More than the system was promised: that counts. */
	assert_int_equal(admit("copy2", EBB_VOLUME_SYSTEM, 340), 0);
	assert_int_equal(admit("copy2", EBB_VOLUME_SYSTEM, 341), -EDQUOT);
	add("copy2", EBB_VOLUME_SYSTEM, 90);
	assert_int_equal(promised(), 750);
}

static void test_too_much_for_the_system(void **state)
{
	struct ebb_err err = { "" };

	(void)state;
	f.conf.system.reserve_iops = 1001;
	assert_int_equal(ebb_server_admit(&f.server, NULL, &err), -EDQUOT);
	assert_non_null(strstr(err.text, "1001 requests per second"));
}

static void test_work_is_charged_to_the_system(void **state)
{
	struct ebb_volspec spec = spec_of("copy", EBB_VOLUME_SYSTEM, 0);

	(void)state;
	f.conf.system.reserve_iops = 100;
	f.conf.system.max_bytes = 5000;
	f.conf.system.weight = 7;
	f.conf.system.penalty = 3;
	ebb_server_charge_system(&f.server, &spec);
	assert_int_equal(spec.reserve_iops, 100);
	assert_int_equal(spec.reserve_bytes, EBB_VOLUME_NO_NUMBER);
	assert_int_equal(spec.max_bytes, 5000);
	assert_int_equal(spec.weight, 7);
	assert_int_equal(spec.penalty, 3);
	/* The system's other volumes have a part of it, or more than all. */
	add("other", EBB_VOLUME_SYSTEM, 30);
	add("a", "t", 600);
	ebb_server_charge_system(&f.server, &spec);
	assert_int_equal(spec.reserve_iops, 70);
	add("another", EBB_VOLUME_SYSTEM, 80);
	ebb_server_charge_system(&f.server, &spec);
	assert_int_equal(spec.reserve_iops, EBB_VOLUME_NO_NUMBER);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sum), TEST(less_than_is_promised), TEST(the_system_is_promised_something),
		TEST(too_much_for_the_system), TEST(work_is_charged_to_the_system),
	};

	return cmocka_run_group_tests_name("volumed/admit", tests, NULL, NULL);
}
