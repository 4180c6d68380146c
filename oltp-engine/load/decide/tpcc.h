/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The TPC-C-like workload: what each transaction is called with, and which parts of the tables are
 * loaded and checked (docs/kv-commands.md has the procedures). Sizes, shares and skew are those of
 * the TPC-C specification, revision 5.11. Pure.
 */
#ifndef LOAD_TPCC_H
#define LOAD_TPCC_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/base/tpcc_scale.h"
#include "request.h"

struct load_tpcc {
	uint32_t warehouses;	/* 1 to TPCC_WAREHOUSES_MAX */
	uint32_t customers;	/* of a district, 30 to TPCC_CUSTOMERS */
	uint32_t items;		/* 20 to TPCC_ITEMS */
	uint64_t seed;		/* of the tables, 0 to UINT32_MAX */
};

#define LOAD_TPCC_NUMBERS	(3 + 3 * TPCC_LINES_MAX)

/* Arguments of a procedure. */
struct load_tpcc_call {
	uint32_t n;
	uint32_t numbers[LOAD_TPCC_NUMBERS];
	bool has_unused_item;	/* of a new order: it has to be rolled back */
};

/* kind: LOAD_NEW_ORDER to LOAD_STOCK_LEVEL. The same for the same seed. */
void load_tpcc_draw(const struct load_tpcc *tpcc, enum load_kind kind, uint64_t seed,
		    struct load_tpcc_call *ret_call);

/* A part of the tables: of tpcc_load, or of tpcc_check. */
struct load_tpcc_part {
	const char *name;
	uint32_t w, d, from, n;
};

/* The number of parts that are loaded, and part number i of them. */
uint64_t load_tpcc_parts(const struct load_tpcc *tpcc);
struct load_tpcc_part load_tpcc_part(const struct load_tpcc *tpcc, uint64_t i);

#endif
