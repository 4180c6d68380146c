// SPDX-License-Identifier: GPL-2.0-or-later
/* See tenants.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tenants.h"

struct tenants {
	uint32_t n;
	struct ycsb *tables[TENANTS_MAX];
	struct oltp_workload workloads[TENANTS_MAX];
	_Atomic uint32_t attached;
};

struct tenant_worker {
	const struct oltp_workload *workload;
	void *local;
};

static int worker_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	struct tenants *tenants = ctx;
	struct tenant_worker *tw = calloc(1, sizeof(*tw));
	int rc;

	if (!tw)
		return -ENOMEM;
	tw->workload = &tenants->workloads[atomic_fetch_add(&tenants->attached, 1) % tenants->n];
	rc = tw->workload->attach(tw->workload->ctx, worker, &tw->local);
	if (rc) {
		free(tw);
		return rc;
	}
	*ret_local = tw;
	return 0;
}

static enum oltp_rc worker_run(void *local, uint32_t slot, bool retry)
{
	struct tenant_worker *tw = local;

	return tw->workload->run(tw->local, slot, retry);
}

static void worker_detach(void *local)
{
	struct tenant_worker *tw = local;

	tw->workload->detach(tw->local);
	free(tw);
}

int tenants_create(struct oltp_engine *engine, const struct ycsb_config *config, uint32_t n,
		   struct tenants **ret_tenants)
{
	struct tenants *tenants;
	int rc = 0;

	if (n < 1 || n > TENANTS_MAX)
		return -EINVAL;
	tenants = calloc(1, sizeof(*tenants));
	if (!tenants)
		return -ENOMEM;
	tenants->n = n;
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct ycsb_config own = *config;

		own.seed += i;
		rc = ycsb_create(engine, &own, &tenants->tables[i]);
		if (rc)
			break;
		tenants->workloads[i] = ycsb_workload(tenants->tables[i]);
		rc = ycsb_load(tenants->tables[i], 1);
	}
	if (rc) {
		tenants_destroy(tenants);
		return rc;
	}
	*ret_tenants = tenants;
	return 0;
}

void tenants_destroy(struct tenants *tenants)
{
	if (!tenants)
		return;
	for (uint32_t i = 0; i < tenants->n; i++)
		ycsb_destroy(tenants->tables[i]);
	free(tenants);
}

struct oltp_workload tenants_workload(struct tenants *tenants)
{
	atomic_store(&tenants->attached, 0);
	return (struct oltp_workload){
		.attach = worker_attach,
		.run = worker_run,
		.detach = worker_detach,
		.ctx = tenants,
	};
}

void tenants_verify(struct tenants *tenants, struct ycsb_verdict *ret_sum)
{
	*ret_sum = (struct ycsb_verdict){ .is_checksum_equal = true };
	for (uint32_t i = 0; i < tenants->n; i++) {
		struct ycsb_verdict one;

		ycsb_verify(tenants->tables[i], &one);
		ret_sum->records += one.records;
		ret_sum->records_missing += one.records_missing;
		ret_sum->updates_committed += one.updates_committed;
		ret_sum->updates_found += one.updates_found;
		ret_sum->is_checksum_equal &= one.is_checksum_equal;
		ret_sum->damaged_records += one.damaged_records;
		ret_sum->inconsistent_reads += one.inconsistent_reads;
		ret_sum->lost_updates += one.lost_updates;
	}
}
