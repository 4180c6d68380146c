/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The topology of the host. */
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/real/hosttopo.h"
#include "util/ranges.h"

static int load(const char *synthetic, hwloc_topology_t *ret, struct ebb_err *err)
{
	hwloc_topology_t topo;

	if (hwloc_topology_init(&topo) < 0)
		return ebb_err_set(err, -ENOMEM, "hwloc can not be initialised");
	if (synthetic && hwloc_topology_set_synthetic(topo, synthetic) < 0) {
		hwloc_topology_destroy(topo);
		return ebb_err_set(err, -EINVAL, "\"%s\" is no synthetic topology of hwloc",
				   synthetic);
	}
	if (hwloc_topology_load(topo) < 0) {
		hwloc_topology_destroy(topo);
		return ebb_err_set(err, -EIO, "hwloc can not read the topology of this machine");
	}
	*ret = topo;
	return 0;
}

/* The CPUs of the list, all of which this host must have (also if they are offline now). */
static int parse_reserve(const char *text, hwloc_topology_t topo, hwloc_bitmap_t ret_set,
			 struct ebb_err *err)
{
	hwloc_const_bitmap_t all = hwloc_topology_get_complete_cpuset(topo);
	const unsigned long most = (unsigned long)hwloc_bitmap_last(all);
	const char *p = text ? text : "";
	unsigned long first, last;
	int rc;

	while ((rc = ebb_ranges_next(&p, &first, &last)) > 0) {
		for (unsigned long cpu = first; cpu <= last; cpu++) {
			if (cpu > most || !hwloc_bitmap_isset(all, (unsigned)cpu))
				return ebb_err_set(err, -EINVAL,
						   "host_reserve=%.64s: this host has no CPU %lu; "
						   "its last one is %lu", text, cpu, most);
			hwloc_bitmap_set(ret_set, (unsigned)cpu);
		}
	}
	if (rc < 0)
		return ebb_err_set(err, rc, "host_reserve=%.64s: no list of CPUs: write for "
				   "example 0-1,8", text);
	return 0;
}

static int add_core(struct ebb_host *h, uint16_t node, hwloc_obj_t core, struct ebb_err *err)
{
	struct ebb_core *c = &h->cores[h->num_cores];
	int num = hwloc_bitmap_weight(core->cpuset);
	unsigned int cpu;

	if (num < 1 || num > EBB_MAX_SMT || h->num_threads + num > EBB_MAX_THREADS)
		return ebb_err_set(err, -EINVAL,
				   "core %u has %d CPUs, or the host more than %u: not supported",
				   core->logical_index, num, EBB_MAX_THREADS);
	c->node = node;
	hwloc_bitmap_foreach_begin(cpu, core->cpuset) {
		struct ebb_thread *t = &h->threads[h->num_threads];

		t->core = h->num_cores;
		t->node = node;
		t->rank = c->num_threads;
		t->os_cpu = cpu;
		c->threads[c->num_threads++] = h->num_threads++;
	} hwloc_bitmap_foreach_end();
	h->num_cores++;
	return 0;
}

static int add_nodes(hwloc_topology_t topo, hwloc_const_bitmap_t reserved, struct ebb_host *h,
		     struct ebb_err *err)
{
	const uint64_t most = EBB_MAX_POOL_MIB / EBB_BLOCK_MIB;
	hwloc_obj_t node = NULL;

	h->pool_has_boot = true;
	while ((node = hwloc_get_next_obj_by_type(topo, HWLOC_OBJ_NUMANODE, node))) {
		const uint64_t blocks = node->attr->numanode.local_memory / 10 * 9 /
					EBB_BLOCK_BYTES;
		hwloc_obj_t core = NULL;

		/* Nodes of memory only have no place in an SLA of CPUs. */
		if (hwloc_bitmap_iszero(node->cpuset))
			continue;
		if (h->num_nodes == EBB_MAX_NODES)
			return ebb_err_set(err, -EINVAL, "the host has more than %u NUMA nodes",
					   EBB_MAX_NODES);
		while ((core = hwloc_get_next_obj_inside_cpuset_by_type(topo, node->cpuset,
									HWLOC_OBJ_CORE, core))) {
			int rc = 0;

			if (!hwloc_bitmap_intersects(core->cpuset, reserved))
				rc = add_core(h, h->num_nodes, core, err);
			if (rc < 0)
				return rc;
		}
		h->memory_mib[h->num_nodes] = (uint32_t)(node->attr->numanode.local_memory >> 20);
		h->pool_blocks[h->num_nodes] = (uint32_t)(blocks < most ? blocks : most);
		h->num_nodes++;
	}
	if (h->num_threads == 0)
		return ebb_err_set(err, -EINVAL,
				   "host_reserve leaves no core for VMs on this host");
	return 0;
}

int ebb_hosttopo_real(const char *reserve, const char *synthetic, struct ebb_host *ret_host,
		      struct ebb_err *err)
{
	struct ebb_host *h = calloc(1, sizeof(*h));
	hwloc_bitmap_t reserved = hwloc_bitmap_alloc();
	hwloc_topology_t topo = NULL;
	char text[EBB_TEXT_SIZE];
	int rc = -ENOMEM;

	if (!h || !reserved)
		goto out;
	rc = load(synthetic, &topo, err);
	if (rc == 0)
		rc = parse_reserve(reserve, topo, reserved, err);
	if (rc == 0)
		rc = add_nodes(topo, reserved, h, err);
	if (rc == 0) {
		rc = ebb_host_check(h, text);
		if (rc < 0)
			ebb_err_set(err, rc, "this host can not be managed: %s", text);
	}
	if (rc == 0)
		*ret_host = *h;
out:
	if (topo)
		hwloc_topology_destroy(topo);
	hwloc_bitmap_free(reserved);
	free(h);
	return rc;
}

int ebb_hosttopo_emulated(const struct ebb_emuspec *spec, struct ebb_host *ret_host,
			  struct ebb_err *err)
{
	const uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	int rc = ebb_host_emulate(spec->sockets, spec->cores, spec->threads, spec->share_permille,
				  ret_host);

	if (rc < 0)
		return ebb_err_set(err, rc,
				   "an emulated host of %ux%ux%u is too large: at most %u threads",
				   spec->sockets, spec->cores, spec->threads, EBB_MAX_THREADS);
	ret_host->period_usec = ebb_emuspec_core_quota(spec).period_usec;
	for (uint16_t n = 0; n < ret_host->num_nodes; n++) {
		ret_host->memory_mib[n] = (uint32_t)((bytes >> 20) / ret_host->num_nodes);
		ret_host->pool_blocks[n] = EBB_EMULATED_POOL_MIB / EBB_BLOCK_MIB;
	}
	return 0;
}

int ebb_hosttopo_pools(struct ebb_host *h, uint32_t pool_mib, struct ebb_err *err)
{
	for (uint16_t n = 0; n < h->num_nodes; n++)
		if (pool_mib > h->memory_mib[n])
			return ebb_err_set(err, -EINVAL,
					   "pool_mib=%u: node %u of this host has %u MiB of "
					   "memory%s", pool_mib, n, h->memory_mib[n],
					   h->is_emulated ? ", an equal part of the machine's" :
							    "");
	h->pool_has_boot = false;
	for (uint16_t n = 0; n < h->num_nodes; n++)
		h->pool_blocks[n] = pool_mib / EBB_BLOCK_MIB;
	return 0;
}
