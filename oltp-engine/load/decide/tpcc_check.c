// SPDX-License-Identifier: GPL-2.0-or-later
/* See tpcc_check.h. */
#include <string.h>

#include "tpcc_check.h"

#define ROWS	50u	/* of one part */

static uint32_t pieces(uint32_t rows)
{
	return (rows + ROWS - 1) / ROWS;
}

static uint64_t district_parts(const struct load_tpcc *tpcc, uint32_t next_o)
{
	return pieces(tpcc->customers) + pieces(next_o - 1);
}

uint64_t load_tpcc_check_parts(const struct load_tpcc *tpcc, uint32_t round,
			       const uint32_t *next_o)
{
	uint64_t n = 0;

	if (round == 0)
		return (uint64_t)tpcc->warehouses * (1 + TPCC_DISTRICTS);
	for (uint32_t i = 0; i < tpcc->warehouses * TPCC_DISTRICTS; i++)
		n += district_parts(tpcc, next_o[i]);
	return n;
}

static struct load_tpcc_part piece(struct load_tpcc_part part, const char *name, uint32_t i,
				   uint32_t rows)
{
	part.name = name;
	part.from = 1 + i * ROWS;
	part.n = rows - (part.from - 1) < ROWS ? rows - (part.from - 1) : ROWS;
	return part;
}

struct load_tpcc_part load_tpcc_check_part(const struct load_tpcc *tpcc, uint32_t round,
					   const uint32_t *next_o, uint64_t i)
{
	struct load_tpcc_part part = { .name = "warehouse" };
	uint32_t at = 0, customers = pieces(tpcc->customers);

	if (round == 0) {
		part.w = (uint32_t)(i / (1 + TPCC_DISTRICTS)) + 1;
		part.d = (uint32_t)(i % (1 + TPCC_DISTRICTS));
		if (part.d)
			part.name = "district";
		return part;
	}
	while (i >= district_parts(tpcc, next_o[at]))
		i -= district_parts(tpcc, next_o[at++]);
	part.w = at / TPCC_DISTRICTS + 1;
	part.d = at % TPCC_DISTRICTS + 1;
	if (i < customers)
		return piece(part, "customers", (uint32_t)i, tpcc->customers);
	return piece(part, "orders", (uint32_t)i - customers, next_o[at] - 1);
}

void load_tpcc_check_add(struct load_tpcc_sums *sums, uint32_t *next_o,
			 const struct load_tpcc_part *part, const int64_t numbers[LOAD_TPCC_ANSWER])
{
	sums->parts++;
	sums->violations += (uint64_t)numbers[0];
	if (!strcmp(part->name, "warehouse")) {
		sums->ytd += numbers[1];
	} else if (!strcmp(part->name, "district")) {
		next_o[(part->w - 1) * TPCC_DISTRICTS + part->d - 1] = (uint32_t)numbers[1];
		sums->orders += numbers[1] - 1;
	} else if (!strcmp(part->name, "orders")) {
		sums->delivered += numbers[2];
	} else {
		sums->payments += numbers[1];
		sums->balances += numbers[2];
		sums->customers_ytd += numbers[3];
		sums->deliveries += numbers[4];
	}
}

void load_tpcc_check_end(struct load_tpcc_sums *sums)
{
	sums->violations += sums->ytd != sums->customers_ytd;
	sums->violations += sums->balances != sums->delivered;
}
