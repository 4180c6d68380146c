/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dividing less than was promised: whose promise is cut ("SQLVM", section 2: which tenants pay for
 * overbooking is a policy).
 */
#ifndef EBB_MODEL_SHORTAGE_H
#define EBB_MODEL_SHORTAGE_H

#include "model/level.h"
#include "model/promise.h"

/* A promise; amounts in the unit of what is divided. */
struct ebb_shortage_claim {
	uint32_t want;
	uint32_t penalty;		/* ebb_sla.penalty of its VM */
	uint32_t keep;			/* out: 0 to want */
};

/*
 * Divides amount among the claims.  All are met if it suffices.  Else, proportional: each is cut by
 * the same fraction.  Penalty: claims with the highest penalty are met first; where the rest does
 * not suffice for all claims of one penalty, these are cut by the same fraction.  Nothing is left
 * unless all are met: single units that the fraction leaves go to the first claims that may have
 * more.  room has space for num parts, to work in.
 */
void ebb_shortage_divide(struct ebb_shortage_claim *claims, struct ebb_level_part *room, size_t num,
			 enum ebb_overbook policy, uint64_t amount);

#endif /* EBB_MODEL_SHORTAGE_H */
