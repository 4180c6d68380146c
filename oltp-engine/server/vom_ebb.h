/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells the host through libebb what the engine's memory is worth: record blocks by a sample (the
 * records that the engine watches), and the unused part of the blocks. Its indexes are not in
 * memory of the host's pools, so they are not registered: no demand could be met with them.
 */
#ifndef OLTP_VOM_EBB_H
#define OLTP_VOM_EBB_H

#include "ebb.h"
#include "oltp.h"

struct vom_ebb {
	struct ebb *ebb;
	struct oltp_engine *engine;	/* NULL: nothing is registered */
	unsigned int records, unused;
};

/* Errors: of ebb_vom_register; nothing is registered then. */
int vom_ebb_begin(struct vom_ebb *vom, struct ebb *ebb, struct oltp_engine *engine);

/* Before the engine is closed. Does nothing if nothing is registered. */
void vom_ebb_end(struct vom_ebb *vom);

#endif
