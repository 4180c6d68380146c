/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Placement of vCPU threads. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include "backend/real/placer.h"
#include "backend/real/virt-domain.h"

/* Large enough for any CPU number that hwloc can report for a host that we take. */
#define MAX_OS_CPUS	8192

static uint16_t where_real(const struct ebb_host *host, pid_t tid)
{
	cpu_set_t *set = CPU_ALLOC(MAX_OS_CPUS);
	size_t size = CPU_ALLOC_SIZE(MAX_OS_CPUS);
	uint16_t found = EBB_THREAD_NONE;

	if (!set)
		return found;
	if (sched_getaffinity(tid, size, set) == 0 && CPU_COUNT_S(size, set) == 1)
		for (uint16_t i = 0; i < host->num_threads && found == EBB_THREAD_NONE; i++)
			if (CPU_ISSET_S(host->threads[i].os_cpu, size, set))
				found = i;
	CPU_FREE(set);
	return found;
}

uint16_t ebb_placer_where(const struct ebb_placer *p, pid_t tid)
{
	uint32_t core, rank;

	if (!p->emuhost)
		return where_real(p->host, tid);
	if (ebb_emuhost_where(p->emuhost, tid, &core, &rank) < 0)
		return EBB_THREAD_NONE;
	return p->host->cores[core].threads[rank];
}

int ebb_placer_place(const struct ebb_placer *p, virConnectPtr conn, const uint8_t uuid[16],
		     uint16_t vcpu, pid_t pid, pid_t tid, uint16_t thread, struct ebb_err *err)
{
	const struct ebb_thread *t = &p->host->threads[thread];
	int rc;

	if (!p->emuhost) {
		if (!conn)
			return ebb_err_set(err, -ENOTCONN, "libvirt is not connected");
		return ebb_virt_domain_pin(conn, uuid, vcpu, t->os_cpu, err);
	}
	rc = ebb_emuhost_place(p->emuhost, pid, tid, t->core, t->rank);
	if (rc < 0)
		return ebb_err_set(err, rc,
				   "thread %d of process %d can not be moved to core %u: %s", tid,
				   pid, t->core, strerror(-rc));
	return 0;
}
