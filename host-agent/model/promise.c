// SPDX-License-Identifier: GPL-2.0-or-later
/* See promise.h. */
#include "model/promise.h"

#include <stddef.h>

const char *ebb_overbook_name(enum ebb_overbook policy)
{
	static const char *const names[EBB_OVERBOOK_MAX] = {
		[EBB_OVERBOOK_PROPORTIONAL] = "proportional",
		[EBB_OVERBOOK_PENALTY] = "penalty",
	};

	return policy < EBB_OVERBOOK_MAX ? names[policy] : NULL;
}
