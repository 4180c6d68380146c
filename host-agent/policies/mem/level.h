/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dividing a sum in proportion to weights, nobody's part above its cap; what one can not have goes
 * to the others in the same proportion.
 */
#ifndef EBB_POLICIES_LEVEL_H
#define EBB_POLICIES_LEVEL_H

#include <stdint.h>

/*
 * ret_part: num entries, together the total or the sum of the caps, whichever is less, which is
 * returned.  A weight of 0 counts as 1.  What whole numbers leave over goes to the first.
 */
uint64_t policy_level(const uint32_t *cap, const uint32_t *weight, uint32_t num, uint64_t total,
		      uint32_t *ret_part);

#endif /* EBB_POLICIES_LEVEL_H */
