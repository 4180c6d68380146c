// SPDX-License-Identifier: GPL-2.0-or-later
/* Tables and indexes of the TPC-C-like workload: see tpcc.h. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tpcc_private.h"

int tpcc_mix_parse(const char *text, uint32_t ret_mix[TPCC_KINDS])
{
	uint32_t mix[TPCC_KINDS], sum = 0;

	for (uint32_t i = 0; i < TPCC_KINDS; i++) {
		char *end;
		unsigned long percent;

		if (*text < '0' || *text > '9')
			return -EINVAL;
		percent = strtoul(text, &end, 10);
		if (percent > 100 || *end != (i + 1 < TPCC_KINDS ? ',' : '\0'))
			return -EINVAL;
		mix[i] = (uint32_t)percent;
		sum += mix[i];
		text = end + 1;
	}
	if (sum != 100)
		return -EINVAL;
	memcpy(ret_mix, mix, sizeof(mix));
	return 0;
}

/* FNV-1a, cut down to the bits that there is room for. */
static uint64_t hash_last(const char last[16])
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (uint32_t i = 0; i < 16 && last[i]; i++)
		hash = (hash ^ (uint8_t)last[i]) * 0x100000001b3ull;
	return hash >> 44;
}

/*
 * w:16 d:4, a hash of the last name:20, the first three letters of the first name:24. Other last
 * names may be in between; those with the same letters come in no order.
 */
uint64_t tpcc_name_key(uint64_t district_key, const char last[16], const char first[16])
{
	return district_key << 44 | hash_last(last) << 24 | (uint64_t)(uint8_t)first[0] << 16 |
	       (uint64_t)(uint8_t)first[1] << 8 | (uint8_t)first[2];
}

static uint64_t name_key_of(void *ctx, uint64_t primary_key, const void *record)
{
	const struct tpcc_customer *customer = record;

	(void)ctx;
	return tpcc_name_key(primary_key >> 12, customer->last, customer->first);
}

/* Orders of a customer by number, so that the last one is the latest. */
uint64_t tpcc_customer_order_key(uint64_t customer_key, uint32_t o)
{
	return customer_key << 32 | o;
}

static uint64_t customer_order_key_of(void *ctx, uint64_t primary_key, const void *record)
{
	const struct tpcc_order *order = record;
	uint64_t district_key = primary_key >> 32;

	(void)ctx;
	return tpcc_customer_order_key(district_key << 12 | order->c, (uint32_t)primary_key);
}

static bool config_is_valid(const struct tpcc_config *config)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < TPCC_KINDS; i++)
		sum += config->mix[i];
	return sum == 100 && config->warehouses && config->warehouses <= TPCC_WAREHOUSES_MAX &&
	       config->items >= 20 && config->items <= TPCC_ITEMS && config->customers >= 30 &&
	       config->customers <= TPCC_CUSTOMERS &&
	       (!config->keep_orders || config->keep_orders >= config->customers);
}

static int create_tables(struct tpcc *tpcc)
{
	const struct tpcc_config *config = &tpcc->config;
	uint64_t districts = (uint64_t)config->warehouses * TPCC_DISTRICTS;
	uint64_t customers = districts * config->customers;
	/* If old orders are deleted, there are never more than keep_orders. */
	uint64_t orders = config->keep_orders ? districts * config->keep_orders :
						customers + config->orders;
	const struct {
		size_t bytes;
		uint64_t rows;
	} tables[TPCC_TABLES] = {
		[TPCC_WAREHOUSE] = { sizeof(struct tpcc_warehouse), config->warehouses },
		[TPCC_DISTRICT] = { sizeof(struct tpcc_district), districts },
		[TPCC_CUSTOMER] = { sizeof(struct tpcc_customer), customers },
		[TPCC_HISTORY] = { sizeof(struct tpcc_history), orders },
		[TPCC_NEW_ORDER_ROW] = { sizeof(struct tpcc_new_order), orders },
		[TPCC_ORDER] = { sizeof(struct tpcc_order), orders },
		[TPCC_LINE] = { sizeof(struct tpcc_line),
				orders * (TPCC_LINES_MIN + TPCC_LINES_MAX) / 2 },
		[TPCC_ITEM] = { sizeof(struct tpcc_item), config->items },
		[TPCC_STOCK] = { sizeof(struct tpcc_stock),
				 (uint64_t)config->warehouses * config->items },
	};
	int rc = 0;

	for (uint32_t i = 0; !rc && i < TPCC_TABLES; i++)
		rc = oltp_table_create(tpcc->engine, (uint32_t)tables[i].bytes, tables[i].rows,
				       &tpcc->tables[i]);
	return rc;
}

static int create_indexes(struct tpcc *tpcc)
{
	const struct oltp_index_config by_name = {
		.key_of = name_key_of,
		.key_spans = { { offsetof(struct tpcc_customer, last), 32 } },
		.n_key_spans = 1,
	};
	const struct oltp_index_config by_customer = {
		.key_of = customer_order_key_of,
		.key_spans = { { offsetof(struct tpcc_order, c), 2 } },
		.n_key_spans = 1,
	};
	struct oltp_table **tables = tpcc->tables;

	return oltp_index_create(tables[TPCC_CUSTOMER], &by_name, &tpcc->customers_by_name) ?:
	       oltp_index_create(tables[TPCC_ORDER], &by_customer, &tpcc->orders_by_customer) ?:
	       oltp_index_create(tables[TPCC_NEW_ORDER_ROW], NULL, &tpcc->new_orders) ?:
	       oltp_index_create(tables[TPCC_LINE], NULL, &tpcc->lines);
}

int tpcc_create(struct oltp_engine *engine, const struct tpcc_config *config,
		struct tpcc **ret_tpcc)
{
	struct random64 random = { .state = random64_mix(config->seed) };
	const char *names[TPCC_KINDS];
	struct tpcc *tpcc;
	int rc;

	if (!config_is_valid(config))
		return -EINVAL;
	tpcc = calloc(1, sizeof(*tpcc));
	if (!tpcc)
		return -ENOMEM;
	tpcc->config = *config;
	tpcc->engine = engine;
	tpcc->load_c = tpcc_nurand_load(&random);
	tpcc->run_c = tpcc_nurand_run(&random, &tpcc->load_c);
	for (uint32_t i = 0; i < TPCC_KINDS; i++)
		names[i] = tpcc_kind_name(i);
	rc = classes_create(names, TPCC_KINDS, &tpcc->classes) ?:
	     create_tables(tpcc) ?: create_indexes(tpcc);
	if (rc) {
		classes_destroy(tpcc->classes);
		free(tpcc);
		return rc;
	}
	pthread_mutex_init(&tpcc->lock, NULL);
	*ret_tpcc = tpcc;
	return 0;
}

void tpcc_destroy(struct tpcc *tpcc)
{
	if (!tpcc)
		return;
	pthread_mutex_destroy(&tpcc->lock);
	classes_destroy(tpcc->classes);
	free(tpcc);
}

const struct tpcc_config *tpcc_config(const struct tpcc *tpcc)
{
	return &tpcc->config;
}

struct classes *tpcc_classes(struct tpcc *tpcc)
{
	return tpcc->classes;
}

int tpcc_begin(struct tpcc *tpcc)
{
	return tpcc_totals_read(tpcc, &tpcc->begun_with);
}
