// SPDX-License-Identifier: GPL-2.0-or-later
/* Whose promises are cut where there is less than was promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "model/shortage.h"

static void test_divide(void **state)
{
	static const struct {
		enum ebb_overbook policy;
		struct ebb_shortage_claim claims[3];
		uint32_t keep[3];
	} all[] = {
		{ EBB_OVERBOOK_PROPORTIONAL, { { 50, 1, 0 }, { 30, 1, 0 }, { 20, 9, 0 } },
		  { 50, 30, 20 } },
		{ EBB_OVERBOOK_PROPORTIONAL, { { 100, 1, 0 }, { 60, 1, 0 }, { 40, 9, 0 } },
		  { 50, 30, 20 } },
		{ EBB_OVERBOOK_PENALTY, { { 100, 1, 0 }, { 60, 3, 0 }, { 40, 2, 0 } },
		  { 0, 60, 40 } },
		{ EBB_OVERBOOK_PENALTY, { { 80, 2, 0 }, { 60, 3, 0 }, { 80, 2, 0 } },
		  { 20, 60, 20 } },
		/* Units that the same fraction of each leaves. */
		{ EBB_OVERBOOK_PROPORTIONAL, { { 50, 1, 0 }, { 50, 1, 0 }, { 50, 1, 0 } },
		  { 34, 33, 33 } },
		{ EBB_OVERBOOK_PENALTY, { { 0, 0, 0 }, { 200, 0, 0 }, { 0, 5, 0 } },
		  { 0, 100, 0 } },
	};
	struct ebb_level_part room[3];

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct ebb_shortage_claim claims[3];

		memcpy(claims, all[i].claims, sizeof(claims));
		ebb_shortage_divide(claims, room, 3, all[i].policy, 100);
		for (size_t k = 0; k < 3; k++)
			if (claims[k].keep != all[i].keep[k])
				fail_msg("case %zu, claim %zu: %u", i, k, claims[k].keep);
	}
	ebb_shortage_divide(NULL, NULL, 0, EBB_OVERBOOK_PENALTY, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_divide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
