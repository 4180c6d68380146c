/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The real backend's work on worker threads; private to real*.c. */
#ifndef EBB_DAEMON_REAL_JOBS_H
#define EBB_DAEMON_REAL_JOBS_H

#include <limits.h>
#include "backend/real/watch.h"
#include "backend/real/placer.h"
#include "backend/real/virt.h"
#include "backend/real/workers.h"

/* Tools that jobs need.  They do not change while jobs run: every thread may read them. */
struct ebb_real_tools {
	struct ebb_virt *virt;
	struct ebb_placer placer;
	uint16_t num_host_nodes;
	char nbd_socket[PATH_MAX];	/* of the volume server; "": there is none */
	const char *libvirt_uri;
};

/*
 * Lanes of one VM.  libvirt does one thing at a time for a domain anyhow, but CPUs do not wait
 * behind memory; placing does not wait for libvirt where it does not need it, and reading what
 * threads use never does.
 */
enum { EBB_REAL_LANE_LIBVIRT, EBB_REAL_LANE_PLACE, EBB_REAL_LANE_LOOK, EBB_REAL_LANE_MEM,
       EBB_REAL_LANE_AUDIT };

/* Times and places of the threads of a VM's vCPUs. */
struct ebb_audit {
	uint64_t sum;			/* changes when vCPUs come, go or run elsewhere */
	usec_t as_of;
	uint16_t num_times;		/* 0 where the kernel does not say */
	struct ebb_cpu_time times[EBB_MAX_VCPUS];
};

/* The pid of a VM's QEMU or -errno.  Quick enough for the loop. */
pid_t ebb_real_find_qemu(const struct ebb_real_tools *t, const uint8_t uuid[16], const char *name);

/*
 * Each function runs in run() of a job, blocks, and returns 0 or -errno with err.
 */
int ebb_real_look(const struct ebb_real_tools *t, const uint8_t uuid[16], struct ebb_look *ret,
		  struct ebb_err *err);
/* Cheap, and without libvirt. */
int ebb_real_audit(const struct ebb_real_tools *t, const uint8_t uuid[16], const char *name,
		   struct ebb_audit *ret);
int ebb_real_list(const struct ebb_real_tools *t, uint8_t (**ret)[16], struct ebb_err *err);
int ebb_real_set_vcpu(const struct ebb_real_tools *t, const uint8_t uuid[16], const char *name,
		      uint16_t vcpu, bool plug, struct ebb_err *err);
int ebb_real_place(const struct ebb_real_tools *t, const uint8_t uuid[16], const char *name,
		   uint16_t vcpu, uint16_t thread, struct ebb_err *err);
int ebb_real_set_cap(const struct ebb_real_tools *t, const uint8_t uuid[16], uint64_t bytes,
		     struct ebb_err *err);
int ebb_real_set_throttle(const struct ebb_real_tools *t, const uint8_t uuid[16],
			  uint16_t permille, struct ebb_err *err);
/* On a real host; shares 0: as the domain defines. */
int ebb_real_set_shares(const struct ebb_real_tools *t, const uint8_t uuid[16], uint32_t shares,
			struct ebb_err *err);
/* -EOPNOTSUPP on a real host; -ENOENT: the vCPU runs elsewhere. */
int ebb_real_reserve(const struct ebb_real_tools *t, const uint8_t uuid[16], const char *name,
		     const struct ebb_action_reserve *r, struct ebb_err *err);
/* 1 if there was a throttle of ours; where there can not be any that is no error. */
int ebb_real_lift_throttle(const struct ebb_real_tools *t, const uint8_t uuid[16],
			   struct ebb_err *err);
/* Of all domains; returns how many there were. */
int ebb_real_lift_throttles(const struct ebb_real_tools *t, struct ebb_err *err);
int ebb_real_set_requested(const struct ebb_real_tools *t, const uint8_t uuid[16], uint16_t node,
			   uint64_t bytes, struct ebb_err *err);
int ebb_real_write_sla(const struct ebb_real_tools *t, const uint8_t uuid[16],
		       const struct ebb_sla *sla, struct ebb_err *err);

#endif
