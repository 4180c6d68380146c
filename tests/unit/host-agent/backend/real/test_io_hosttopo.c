/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Topologies: synthetic ones, this machine's, emulated ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "backend/real/hostshare.h"
#include "backend/real/hosttopo.h"

static void test_synthetic(void **state)
{
	struct ebb_host *h = calloc(1, sizeof(*h));

	(void)state;
	assert_int_equal(ebb_hosttopo_real("", "numa:2 core:3 pu:2", h, NULL), 0);
	assert_false(h->is_emulated);
	assert_int_equal(h->num_nodes, 2);
	assert_int_equal(h->num_cores, 6);
	assert_int_equal(h->num_threads, 12);
	assert_int_equal(h->cores[3].node, 1);
	assert_int_equal(h->cores[3].num_threads, 2);
	assert_int_equal(h->cores[3].threads[1], 7);
	assert_int_equal(h->threads[7].rank, 1);
	assert_int_equal(h->threads[7].os_cpu, 7);
	assert_int_equal(h->threads[7].core, 3);
	/* Of a synthetic node hwloc says 1 GiB: less a tenth, and less what VMs boot with. */
	assert_true(h->pool_has_boot);
	assert_int_equal(h->pool_blocks[1], 460);
	free(h);
}

/* CPU 2 is half of core 1: the core is left out, the others keep their kernel's numbers. */
static void test_reserve(void **state)
{
	struct ebb_host *h = calloc(1, sizeof(*h));
	struct ebb_err err = { "" };

	(void)state;
	assert_int_equal(ebb_hosttopo_real("0-2", "numa:2 core:3 pu:2", h, NULL), 0);
	assert_int_equal(h->num_nodes, 2);
	assert_int_equal(h->num_cores, 4);
	assert_int_equal(h->threads[0].os_cpu, 4);
	assert_int_equal(h->cores[1].node, 1);
	assert_int_equal(ebb_hosttopo_real("0-11", "numa:2 core:3 pu:2", h, &err), -EINVAL);
	assert_non_null(strstr(err.text, "host_reserve leaves no core"));
	assert_int_equal(ebb_hosttopo_real("", "nonsense", h, &err), -EINVAL);
	free(h);
}

static void test_reserve_of_other_hosts(void **state)
{
	static const char *const absent[] = {
		"999", "0,12", "11-12", "4294967297", "18446744073709551617",
	};
	static const char *const no_list[] = {
		"one", "3-1", "2-", "-2", ",", "0,", "0,,1", "1-2-3", " 1", "0-1;4",
	};
	struct ebb_host *h = calloc(1, sizeof(*h));
	struct ebb_err err = { "" };

	(void)state;
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		assert_int_equal(ebb_hosttopo_real(absent[i], "numa:2 core:3 pu:2", h, &err),
				 -EINVAL);
		if (!strstr(err.text, "this host has no CPU ") ||
		    !strstr(err.text, "; its last one is 11"))
			fail_msg("%s: %s", absent[i], err.text);
	}
	for (size_t i = 0; i < sizeof(no_list) / sizeof(no_list[0]); i++) {
		assert_int_equal(ebb_hosttopo_real(no_list[i], "numa:2 core:3 pu:2", h, &err),
				 -EINVAL);
		if (!strstr(err.text, "no list of CPUs") || !strstr(err.text, no_list[i]))
			fail_msg("%s: %s", no_list[i], err.text);
	}
	free(h);
}

static void test_too_large(void **state)
{
	struct ebb_host *h = calloc(1, sizeof(*h));
	struct ebb_err err = { "" };

	(void)state;
	assert_int_equal(ebb_hosttopo_real("", "numa:17 core:1 pu:1", h, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 16 NUMA nodes"));
	assert_int_equal(ebb_hosttopo_real("", "numa:1 core:513 pu:2", h, &err), -EINVAL);
	free(h);
}

static void test_this_machine(void **state)
{
	struct ebb_host *h = calloc(1, sizeof(*h));
	struct ebb_err err = { "" };

	(void)state;
	if (ebb_hosttopo_real("", NULL, h, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(h->num_threads >= 1 && h->num_nodes >= 1);
	free(h);
}

static void test_emulated(void **state)
{
	const struct ebb_emuspec spec = { 2, 4, 2, 250, 10 };
	struct ebb_host *h = calloc(1, sizeof(*h));
	struct ebb_emuspec big = { 16, 256, 8, 250, 10 };
	struct ebb_err err = { "" };

	(void)state;
	assert_int_equal(ebb_hosttopo_emulated(&spec, h, NULL), 0);
	assert_true(h->is_emulated);
	assert_int_equal(h->share_permille, 250);
	assert_int_equal(h->period_usec, 10000);
	assert_int_equal(h->num_nodes, 2);
	assert_int_equal(h->num_cores, 8);
	assert_int_equal(h->num_threads, 16);
	assert_int_equal(h->cores[4].node, 1);
	assert_true(ebb_hosttopo_emulated(&big, h, &err) < 0);
	assert_non_null(strstr(err.text, "16x256x8"));
	free(h);
}

/* hwloc gives each synthetic node 1 GiB. */
static void test_pools(void **state)
{
	const struct ebb_emuspec spec = { 2, 4, 2, 250, 10 };
	struct ebb_host *h = calloc(1, sizeof(*h));
	struct ebb_err err = { "" };
	uint32_t half;

	(void)state;
	assert_int_equal(ebb_hosttopo_real("", "numa:2 core:3 pu:2", h, NULL), 0);
	assert_int_equal(ebb_hosttopo_pools(h, 1025, &err), -EINVAL);
	assert_string_equal(err.text,
			    "pool_mib=1025: node 0 of this host has 1024 MiB of memory");
	assert_true(h->pool_has_boot);
	assert_int_equal(h->pool_blocks[1], 460);
	assert_int_equal(ebb_hosttopo_pools(h, 1024, &err), 0);
	assert_false(h->pool_has_boot);
	assert_int_equal(h->pool_blocks[1], 512);
	assert_int_equal(ebb_hosttopo_pools(h, 0, &err), 0);
	assert_int_equal(h->pool_blocks[0], 0);
	/* Two nodes of one machine. */
	half = (uint32_t)(((uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >>
			   20) / 2);
	assert_int_equal(ebb_hosttopo_emulated(&spec, h, NULL), 0);
	assert_int_equal(ebb_hosttopo_pools(h, half + 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, ", an equal part of the machine's"));
	assert_int_equal(ebb_hosttopo_pools(h, half, &err), 0);
	free(h);
}

static unsigned num_shared(const struct ebb_host *h)
{
	unsigned sum = 0;

	for (uint16_t c = 0; c < h->num_cores; c++)
		sum += h->cores[c].is_shared;
	return sum;
}

static void test_shared(void **state)
{
	static const char *const bad[] = {
		"5", "-1", "x", "2 ", "cores ", "cores 8", "cores 3-1", "cores 1,", "cores 1;2",
	};
	struct ebb_host *h = malloc(sizeof(*h));
	struct ebb_err err;

	(void)state;
	assert_non_null(h);
	assert_int_equal(ebb_host_emulate(2, 4, 2, 1000, h), 0);
	assert_int_equal(ebb_hostshare_set(h, "2", &err), 0);
	assert_int_equal(num_shared(h), 4);
	assert_true(h->cores[3].is_shared && h->cores[6].is_shared && !h->cores[5].is_shared);
	assert_int_equal(ebb_hostshare_set(h, "cores 0-2,7", &err), 0);
	assert_int_equal(num_shared(h), 4);
	assert_true(h->cores[0].is_shared && h->cores[7].is_shared && !h->cores[3].is_shared);
	assert_int_equal(ebb_hostshare_set(h, "", &err), 0);
	assert_int_equal(num_shared(h), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ebb_hostshare_set(h, bad[i], &err) != -EINVAL)
			fail_msg("\"%s\" is taken", bad[i]);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_synthetic),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_reserve_of_other_hosts),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_this_machine),
		cmocka_unit_test(test_emulated),
		cmocka_unit_test(test_pools),
		cmocka_unit_test(test_shared),
	};

	return cmocka_run_group_tests_name("io/hosttopo", tests, NULL, NULL);
}
