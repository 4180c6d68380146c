// SPDX-License-Identifier: GPL-2.0-or-later
/* Whose promises are cut where there is less than was promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "model/shortage.h"

/* Thousandths of a core that can be promised. */
#define CORE	950u

static void test_divide(void **state)
{
	static const struct {
		enum ebb_overbook policy;
		uint64_t amount;
		struct ebb_shortage_claim claims[3];
		uint32_t keep[3];
	} all[] = {
		{ EBB_OVERBOOK_PROPORTIONAL, 100, { { 50, 1, 0 }, { 30, 1, 0 }, { 20, 9, 0 } },
		  { 50, 30, 20 } },
		{ EBB_OVERBOOK_PROPORTIONAL, 100, { { 100, 1, 0 }, { 60, 1, 0 }, { 40, 9, 0 } },
		  { 50, 30, 20 } },
		{ EBB_OVERBOOK_PENALTY, 100, { { 100, 1, 0 }, { 60, 3, 0 }, { 40, 2, 0 } },
		  { 0, 60, 40 } },
		{ EBB_OVERBOOK_PENALTY, 100, { { 80, 2, 0 }, { 60, 3, 0 }, { 80, 2, 0 } },
		  { 20, 60, 20 } },
		/* Units that the same fraction of each leaves. */
		{ EBB_OVERBOOK_PROPORTIONAL, 100, { { 50, 1, 0 }, { 50, 1, 0 }, { 50, 1, 0 } },
		  { 34, 33, 33 } },
		{ EBB_OVERBOOK_PENALTY, 100, { { 0, 0, 0 }, { 200, 0, 0 }, { 0, 5, 0 } },
		  { 0, 100, 0 } },
		/* Enough: all are met, by either policy. */
		{ EBB_OVERBOOK_PROPORTIONAL, CORE, { { 500, 1, 0 }, { 300, 1, 0 }, { 150, 1, 0 } },
		  { 500, 300, 150 } },
		{ EBB_OVERBOOK_PENALTY, CORE, { { 500, 0, 0 }, { 300, 9, 0 }, { 150, 1, 0 } },
		  { 500, 300, 150 } },
		/* Twice what there is: half of each, whatever the penalties are. */
		{ EBB_OVERBOOK_PROPORTIONAL, CORE,
		  { { 1000, 1, 0 }, { 500, 50, 0 }, { 400, 1, 0 } },
		  { 500, 250, 200 } },
		/* The cheap one pays for all; the last of them has nothing. */
		{ EBB_OVERBOOK_PENALTY, CORE, { { 1000, 1, 0 }, { 500, 50, 0 }, { 400, 2, 0 } },
		  { 50, 500, 400 } },
		{ EBB_OVERBOOK_PENALTY, CORE, { { 900, 7, 0 }, { 500, 50, 0 }, { 450, 8, 0 } },
		  { 0, 500, 450 } },
		/* Those of one penalty are cut by the same fraction. */
		{ EBB_OVERBOOK_PENALTY, CORE, { { 600, 3, 0 }, { 300, 3, 0 }, { 500, 4, 0 } },
		  { 300, 150, 500 } },
		/* One alone can not have what is left for those without a promise. */
		{ EBB_OVERBOOK_PENALTY, CORE, { { 1000, 3, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
		  { 950, 0, 0 } },
	};
	struct ebb_level_part room[3];

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct ebb_shortage_claim claims[3];

		memcpy(claims, all[i].claims, sizeof(claims));
		ebb_shortage_divide(claims, room, 3, all[i].policy, all[i].amount);
		for (size_t k = 0; k < 3; k++)
			if (claims[k].keep != all[i].keep[k])
				fail_msg("case %zu, claim %zu: %u", i, k, claims[k].keep);
	}
	ebb_shortage_divide(NULL, NULL, 0, EBB_OVERBOOK_PENALTY, 100);
}

/* No division of the same core costs less in penalties. */
static void test_penalty_is_least(void **state)
{
	struct ebb_shortage_claim c[3] = { { 400, 5, 0 }, { 400, 2, 0 }, { 400, 3, 0 } };
	struct ebb_level_part room[3];
	uint64_t cost = 0;

	(void)state;
	ebb_shortage_divide(c, room, 3, EBB_OVERBOOK_PENALTY, CORE);
	for (int i = 0; i < 3; i++)
		cost += (uint64_t)(c[i].want - c[i].keep) * c[i].penalty;
	for (uint32_t a = 0; a <= 400; a += 10)
		for (uint32_t b = 0; b <= 400; b += 10) {
			const uint32_t rest = CORE > a + b ? CORE - a - b : 0;
			const uint32_t d = rest < 400 ? rest : 400;

			assert_true(cost <= (400 - a) * 5 + (400 - b) * 2 + (400 - d) * 3);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_divide),
		cmocka_unit_test(test_penalty_is_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
