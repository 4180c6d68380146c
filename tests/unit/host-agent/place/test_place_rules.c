/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Description: rules about single VMs: which must not be together, and hosts that are forbidden. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "place_rig.h"

#define BIT(constraint)	(1u << (constraint))

/* Four hosts: the first two in one fault domain, the last two in one upgrade domain. */
static struct place *create(const struct place_vm *vms, uint32_t n_vms)
{
	struct place_config config = place_config_default();
	struct place_host hosts[4];
	struct place_problem problem;
	struct place *p;

	config.look_ahead = false;
	for (int h = 0; h < 4; h++)
		hosts[h] = plain_host(1000, 1000, 1000);
	for (int h = 0; h < 4; h++)
		hosts[h].fault_domain = hosts[h].upgrade_domain = -1;
	hosts[0].fault_domain = hosts[1].fault_domain = 3;
	hosts[2].upgrade_domain = hosts[3].upgrade_domain = 5;
	assert_int_equal(place_create(&config, NULL, hosts, 4, vms, n_vms, &p, &problem), 0);
	return p;
}

/* Constraints that keep the VM off each host. */
static void constraints(struct place *p, uint32_t vm, uint32_t ret[4])
{
	struct place_reason reasons[4];

	assert_int_equal(place_explain(p, vm, reasons), 0);
	for (int i = 0; i < 4; i++)
		ret[reasons[i].host] = reasons[i].constraints;
}

static void test_scopes(void **state)
{
	static const struct {
		uint32_t scopes;
		int32_t there;
		uint32_t expected[4];
	} cases[] = {
		{ PLACE_WITHIN_HOST, 0, { BIT(PLACE_ANTI_AFFINITY) } },
		{ PLACE_WITHIN_FAULT_DOMAIN, 0,
		  { BIT(PLACE_FAULT_DOMAIN), BIT(PLACE_FAULT_DOMAIN) } },
		{ PLACE_WITHIN_UPGRADE_DOMAIN, 0, { BIT(PLACE_UPGRADE_DOMAIN) } },
		{ PLACE_WITHIN_UPGRADE_DOMAIN, 3,
		  { 0, 0, BIT(PLACE_UPGRADE_DOMAIN), BIT(PLACE_UPGRADE_DOMAIN) } },
		{ PLACE_WITHIN_HOST | PLACE_WITHIN_FAULT_DOMAIN, 1,
		  { BIT(PLACE_FAULT_DOMAIN), BIT(PLACE_ANTI_AFFINITY) | BIT(PLACE_FAULT_DOMAIN) } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct place_vm vms[] = { plain_vm(1, 10, 10, 10), plain_vm(2, 10, 10, 10) };
		uint32_t found[4];

		vms[0].host = cases[i].there;
		/* Both ways: it does not matter who is named first. */
		for (uint32_t first = 0; first < 2; first++) {
			struct place *p = create(vms, 2);

			assert_int_equal(place_part(p, first, 1 - first, cases[i].scopes), 0);
			constraints(p, 1, found);
			assert_memory_equal(found, cases[i].expected, sizeof(found));
			place_destroy(p);
		}
	}
}

/* b keeps away from a and from c, which may be together: no set can say that. */
static void test_rules_are_no_sets(void **state)
{
	struct place_vm vms[] = { plain_vm(1, 10, 10, 10), plain_vm(2, 10, 10, 10),
				  plain_vm(3, 10, 10, 10) };
	const struct place_limit limit = { .seed = 1, .steps = 2000 };
	struct place_refusal refusal;
	uint32_t found[4];
	struct place *p;

	(void)state;
	p = create(vms, 3);
	assert_int_equal(place_part(p, 0, 1, PLACE_WITHIN_HOST), 0);
	assert_int_equal(place_part(p, 1, 2, PLACE_WITHIN_HOST), 0);
	for (uint32_t vm = 0; vm < 3; vm++)
		for (uint32_t h = 2; h < 4; h++)
			assert_int_equal(place_ban(p, vm, h), 0);
	/* Two hosts are left: a and c are on one, b on the other. */
	assert_int_equal(place_anneal(p, &limit, NULL, &refusal), 0);
	assert_int_equal(place_host_of(p, 0), place_host_of(p, 2));
	assert_true(place_host_of(p, 0) < 2 && place_host_of(p, 1) < 2);
	assert_int_not_equal(place_host_of(p, 0), place_host_of(p, 1));
	constraints(p, 1, found);
	assert_int_equal(found[place_host_of(p, 0)], BIT(PLACE_ANTI_AFFINITY));
	assert_int_equal(found[2], BIT(PLACE_BANNED));
	place_destroy(p);
}

static void test_refusal(void **state)
{
	struct place_vm vms[] = { plain_vm(1, 10, 10, 10), plain_vm(2, 10, 10, 10) };
	struct place_refusal refusal;
	struct place *p;

	(void)state;
	vms[0].host = 0;
	p = create(vms, 2);
	for (uint32_t h = 1; h < 4; h++)
		assert_int_equal(place_ban(p, 1, h), 0);
	assert_int_equal(place_part(p, 1, 0, PLACE_WITHIN_HOST), 0);
	assert_int_equal(place_new(p, 1, &refusal), -EBUSY);
	assert_int_equal(refusal.constraint, PLACE_BANNED);
	assert_int_equal(refusal.hosts[PLACE_BANNED], 3);
	assert_int_equal(refusal.hosts[PLACE_ANTI_AFFINITY], 1);
	assert_string_equal(place_constraint_name(refusal.constraint), "location");
	/* When the other VM has gone, the last host can take it. */
	assert_int_equal(place_put(p, 0, 3), 0);
	assert_int_equal(place_new(p, 1, &refusal), 0);
	assert_int_equal(place_host_of(p, 1), 0);
	place_destroy(p);
}

/* A rule about one VM holds for all that must be where it is. */
static void test_affinity_sets(void **state)
{
	struct place_vm vms[] = { plain_vm(1, 10, 10, 10), plain_vm(2, 10, 10, 10),
				  plain_vm(3, 10, 10, 10) };
	uint32_t found[4];
	struct place *p;

	(void)state;
	vms[0].affinity = vms[1].affinity = 1;
	vms[2].host = 2;
	p = create(vms, 3);
	assert_int_equal(place_part(p, 0, 1, PLACE_WITHIN_HOST), -EINVAL);
	assert_int_equal(place_part(p, 0, 0, PLACE_WITHIN_HOST), -EINVAL);
	assert_int_equal(place_part(p, 0, 3, PLACE_WITHIN_HOST), -EINVAL);
	assert_int_equal(place_part(p, 0, 2, 0), -EINVAL);
	assert_int_equal(place_part(p, 0, 2, 8), -EINVAL);
	assert_int_equal(place_ban(p, 3, 0), -EINVAL);
	assert_int_equal(place_ban(p, 0, 4), -EINVAL);
	assert_int_equal(place_part(p, 1, 2, PLACE_WITHIN_HOST), 0);
	assert_int_equal(place_ban(p, 1, 0), 0);
	constraints(p, 0, found);
	assert_int_equal(found[0], BIT(PLACE_BANNED));
	assert_int_equal(found[1], 0);
	assert_int_equal(found[2], BIT(PLACE_ANTI_AFFINITY));
	place_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_rules_are_no_sets),
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_affinity_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
