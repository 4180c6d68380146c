/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Several tenants in one engine process, as SQLVM has them: a table and a share of the workers for
 * each, and no transaction touches another tenant's table.
 */
#ifndef DIST_TENANTS_H
#define DIST_TENANTS_H

#include "oltp-engine/bench/ycsb/ycsb.h"

#define TENANTS_MAX	16u

struct tenants;

/* Creates and loads n tables like config says. Errors: -EINVAL, those of ycsb_create and load. */
int tenants_create(struct oltp_engine *engine, const struct ycsb_config *config, uint32_t n,
		   struct tenants **ret_tenants);
void tenants_destroy(struct tenants *tenants);

/*
 * For a pool. Worker number i (from 0, in the order in which they attach since this call) is that
 * of tenant i % n.
 */
struct oltp_workload tenants_workload(struct tenants *tenants);

/* Reads all tables; no worker may be attached. The sum over all tenants. */
void tenants_verify(struct tenants *tenants, struct ycsb_verdict *ret_sum);

#endif
