/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The real backend's blocking work. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backend/real/real-jobs.h"
#include "backend/real/qemuproc.h"
#include "backend/real/virt-shares.h"
#include "backend/real/virt-throttle.h"
#include "util/clock.h"

#define PROC	"/proc"

static int connection(const struct ebb_real_tools *t, virConnectPtr *ret, struct ebb_err *err)
{
	*ret = ebb_virt_get(t->virt);
	return *ret ? 0 : ebb_err_set(err, -ENOTCONN, "libvirt is not connected");
}

pid_t ebb_real_find_qemu(const struct ebb_real_tools *t, const uint8_t uuid[16], const char *name)
{
	char run_dir[PATH_MAX];

	/* Each time anew: the socket may come after us. */
	ebb_virt_run_dir(t->libvirt_uri, run_dir);
	return ebb_qemuproc_find(PROC, run_dir, name, uuid);
}

/* Where each plugged vCPU runs.  Not ready while one of them has no thread. */
static int look_at_threads(const struct ebb_real_tools *t, const uint8_t uuid[16],
			   struct ebb_look *look)
{
	const struct ebb_metadata *m = &look->domain.metadata;
	struct ebb_qemuproc_thread *threads = calloc(EBB_MAX_VCPUS, sizeof(*threads));
	pid_t pid = ebb_real_find_qemu(t, uuid, look->domain.name);
	int num = 0;

	if (!threads)
		return -ENOMEM;
	if (pid > 0)
		num = ebb_qemuproc_vcpus(PROC, pid, threads, EBB_MAX_VCPUS);
	look->is_ready = true;
	for (uint16_t i = 0; i < m->num_vcpus; i++) {
		struct ebb_vcpu_fact *f = &look->plugged[look->num_plugged];
		bool has_thread = false;

		if (!m->is_enabled[i])
			continue;
		f->vcpu = i;
		f->thread = EBB_THREAD_NONE;
		for (int k = 0; k < num; k++) {
			if (threads[k].vcpu != i)
				continue;
			has_thread = true;
			f->thread = ebb_placer_where(&t->placer, threads[k].tid);
		}
		look->is_ready &= has_thread;
		look->num_plugged++;
	}
	free(threads);
	return 0;
}

int ebb_real_look(const struct ebb_real_tools *t, const uint8_t uuid[16], struct ebb_look *ret,
		  struct ebb_err *err)
{
	virConnectPtr conn;
	int rc = connection(t, &conn, err);

	if (rc < 0)
		return rc;
	memset(ret, 0, sizeof(*ret));
	ret->as_of = ebb_clock_mono_usec();
	rc = ebb_virt_domain_get(conn, uuid, t->num_host_nodes, t->nbd_socket, &ret->domain,
				 err);
	ebb_virt_put(t->virt, conn);
	if (rc == 0 && ret->domain.is_running && ret->domain.sla > 0)
		rc = look_at_threads(t, uuid, ret);
	if (rc == 0 && !ret->domain.is_running && t->placer.emuhost)
		ebb_emuhost_sweep(t->placer.emuhost);
	return rc;
}

int ebb_real_audit(const struct ebb_real_tools *t, const uint8_t uuid[16], const char *name,
		   struct ebb_audit *ret)
{
	struct ebb_qemuproc_thread *threads = calloc(EBB_MAX_VCPUS, sizeof(*threads));
	pid_t pid = ebb_real_find_qemu(t, uuid, name);
	int num = -ESRCH;

	if (!threads)
		return -ENOMEM;
	ret->sum = 0;
	ret->num_times = 0;
	ret->as_of = ebb_clock_mono_usec();
	if (pid > 0)
		num = ebb_qemuproc_vcpus(PROC, pid, threads, EBB_MAX_VCPUS);
	/* Threads come in no order, so a sum of well mixed numbers. */
	for (int i = 0; i < num; i++) {
		struct ebb_cpu_time *time = &ret->times[ret->num_times];
		uint64_t mixed = (uint64_t)threads[i].tid << 32 | (uint64_t)threads[i].vcpu << 16 |
				 ebb_placer_where(&t->placer, threads[i].tid);

		mixed = (mixed ^ mixed >> 31) * 0x9e3779b97f4a7c15u;
		ret->sum += (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
		time->vcpu = threads[i].vcpu;
		if (ebb_qemuproc_usage(PROC, pid, threads[i].tid, &time->cpu_usec,
				       &time->num_runs, &time->wait_usec) == 0)
			ret->num_times++;
	}
	free(threads);
	return num < 0 ? num : 0;
}

int ebb_real_list(const struct ebb_real_tools *t, uint8_t (**ret)[16], struct ebb_err *err)
{
	virConnectPtr conn;
	int rc = connection(t, &conn, err);

	if (rc < 0)
		return rc;
	rc = ebb_virt_domain_list(conn, ret, err);
	ebb_virt_put(t->virt, conn);
	return rc;
}

int ebb_real_set_vcpu(const struct ebb_real_tools *t, const uint8_t uuid[16], const char *name,
		      uint16_t vcpu, bool plug, struct ebb_err *err)
{
	virConnectPtr conn;
	pid_t pid;
	int rc = connection(t, &conn, err);

	if (rc < 0)
		return rc;
	rc = ebb_virt_domain_set_vcpu(conn, uuid, vcpu, plug, err);
	ebb_virt_put(t->virt, conn);
	if (rc == 0 || plug)
		return rc;
	/*
	 * What was asked may have happened earlier: an unplug that timed out and ended later makes
	 * the next one fail.
	 */
	pid = ebb_real_find_qemu(t, uuid, name);
	return pid > 0 && ebb_qemuproc_vcpu(PROC, pid, vcpu, 0) == -ESRCH ? 0 : rc;
}

int ebb_real_place(const struct ebb_real_tools *t, const uint8_t uuid[16], const char *name,
		   uint16_t vcpu, uint16_t thread, struct ebb_err *err)
{
	pid_t pid = ebb_real_find_qemu(t, uuid, name), tid;
	virConnectPtr conn;
	int rc;

	if (pid < 0)
		return ebb_err_set(err, pid, "the QEMU process of the VM is not found: %s",
				   strerror(-pid));
	tid = ebb_qemuproc_vcpu(PROC, pid, vcpu, 0);
	if (tid < 0)
		return ebb_err_set(err, tid, "QEMU (process %d) has no thread for vCPU %u", pid,
				   vcpu);
	conn = ebb_virt_get(t->virt);
	rc = ebb_placer_place(&t->placer, conn, uuid, vcpu, pid, tid, thread, err);
	if (conn)
		ebb_virt_put(t->virt, conn);
	return rc;
}

int ebb_real_set_cap(const struct ebb_real_tools *t, const uint8_t uuid[16], uint64_t bytes,
		     struct ebb_err *err)
{
	virConnectPtr conn;
	int rc = connection(t, &conn, err);

	if (rc < 0)
		return rc;
	rc = ebb_virt_domain_set_memory_cap(conn, uuid, bytes, err);
	ebb_virt_put(t->virt, conn);
	return rc;
}

int ebb_real_set_throttle(const struct ebb_real_tools *t, const uint8_t uuid[16],
			  uint16_t permille, struct ebb_err *err)
{
	virConnectPtr conn;
	int rc;

	/* Threads of vCPUs are in the groups of our cores there, not in libvirt's. */
	if (t->placer.emuhost)
		return ebb_err_set(err, -EOPNOTSUPP, "VMs of an emulated host are not throttled");
	rc = connection(t, &conn, err);
	if (rc < 0)
		return rc;
	rc = permille ? ebb_virt_domain_throttle(conn, uuid, permille, err) :
			ebb_virt_domain_lift_throttle(conn, uuid, err);
	ebb_virt_put(t->virt, conn);
	return rc < 0 ? rc : 0;
}

int ebb_real_set_shares(const struct ebb_real_tools *t, const uint8_t uuid[16], uint32_t shares,
			struct ebb_err *err)
{
	virConnectPtr conn;
	int rc = connection(t, &conn, err);

	if (rc < 0)
		return rc;
	rc = ebb_virt_domain_set_shares(conn, uuid, shares, err);
	ebb_virt_put(t->virt, conn);
	return rc;
}

int ebb_real_reserve(const struct ebb_real_tools *t, const uint8_t uuid[16], const char *name,
		     const struct ebb_action_reserve *r, struct ebb_err *err)
{
	const struct ebb_emureserve part = { .keep = r->keep, .rest = r->rest, .max = r->max };
	const struct ebb_thread *thread = &t->placer.host->threads[r->thread];
	pid_t pid, tid;
	int rc;

	if (!t->placer.emuhost)
		return ebb_err_set(err, -EOPNOTSUPP, "a real host has no parts of cores");
	pid = ebb_real_find_qemu(t, uuid, name);
	if (pid < 0)
		return ebb_err_set(err, pid, "the QEMU process of the VM is not found: %s",
				   strerror(-pid));
	tid = ebb_qemuproc_vcpu(PROC, pid, r->vcpu, 0);
	if (tid < 0)
		return ebb_err_set(err, tid, "QEMU (process %d) has no thread for vCPU %u", pid,
				   r->vcpu);
	rc = ebb_emuhost_reserve(t->placer.emuhost, tid, thread->core, thread->rank, &part);
	if (rc < 0)
		return ebb_err_set(err, rc, "thread %d gets no part of core %u: %s", tid,
				   thread->core, strerror(-rc));
	return 0;
}

int ebb_real_lift_throttle(const struct ebb_real_tools *t, const uint8_t uuid[16],
			   struct ebb_err *err)
{
	virConnectPtr conn;
	int rc = connection(t, &conn, err);

	if (rc < 0)
		return rc;
	rc = ebb_virt_domain_lift_throttle(conn, uuid, err);
	ebb_virt_put(t->virt, conn);
	return rc == -EOPNOTSUPP || rc == -ESRCH || rc == -ENOENT ? 0 : rc;
}

int ebb_real_lift_throttles(const struct ebb_real_tools *t, struct ebb_err *err)
{
	virConnectPtr conn;
	int rc = connection(t, &conn, err);

	if (rc < 0)
		return rc;
	rc = ebb_virt_lift_throttles(conn, err);
	ebb_virt_put(t->virt, conn);
	return rc;
}

int ebb_real_set_requested(const struct ebb_real_tools *t, const uint8_t uuid[16], uint16_t node,
			   uint64_t bytes, struct ebb_err *err)
{
	virConnectPtr conn;
	int rc = connection(t, &conn, err);

	if (rc < 0)
		return rc;
	rc = ebb_virt_domain_set_requested(conn, uuid, node, bytes, err);
	ebb_virt_put(t->virt, conn);
	return rc;
}

int ebb_real_write_sla(const struct ebb_real_tools *t, const uint8_t uuid[16],
		       const struct ebb_sla *sla, struct ebb_err *err)
{
	virConnectPtr conn;
	char *xml;
	int rc = ebb_metadata_format(sla, &xml);

	if (rc < 0)
		return rc;
	rc = connection(t, &conn, err);
	if (rc == 0) {
		rc = ebb_virt_domain_write_sla(conn, uuid, xml, err);
		ebb_virt_put(t->virt, conn);
	}
	free(xml);
	return rc;
}
