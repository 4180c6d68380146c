/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls to libvirt about one domain.  All of them block (an unplug for as long as the guest takes
 * to eject, up to libvirt's own limit of 5 s): for worker threads only.
 */
#ifndef EBB_IO_VIRT_DOMAIN_H
#define EBB_IO_VIRT_DOMAIN_H

#include <libvirt/libvirt.h>
#include "model/types.h"
#include "backend/real/metadata.h"

struct ebb_virt_domain {
	bool exists;
	bool is_running;
	bool is_starting;		/* running: libvirt is still setting it up */
	/*
	 * Running: paused for a migration, so it comes from another host or is about to leave for
	 * one.
	 */
	bool is_moving;
	bool is_leaving;		/* moving: libvirt says that it leaves */
	uint64_t order;			/* running: grows with the time of the start */
	char name[EBB_NAME_SIZE];
	int sla;			/* 1: metadata is valid; 0: no SLA; -errno: see error */
	struct ebb_metadata metadata;
	struct ebb_vm_volumes volumes;	/* sla 1: its disks on the volume server */
	uint64_t disk_bytes;		/* sla 1: of its other disks (disks.h) */
	struct ebb_err error;
};

/*
 * 0 also when the domain does not exist; -errno with err when libvirt does not say.  nbd_socket: of
 * the volume server; "": there is none.
 */
int ebb_virt_domain_get(virConnectPtr conn, const uint8_t uuid[16], uint16_t num_host_nodes,
			const char *nbd_socket, struct ebb_virt_domain *ret, struct ebb_err *err);

/* Plug or unplug one vCPU.  -ETIMEDOUT: the guest has not ejected it (yet). */
int ebb_virt_domain_set_vcpu(virConnectPtr conn, const uint8_t uuid[16], uint16_t vcpu, bool plug,
			     struct ebb_err *err);

/* Let a vCPU run on one CPU of the host only. */
int ebb_virt_domain_pin(virConnectPtr conn, const uint8_t uuid[16], uint16_t vcpu, uint32_t os_cpu,
			struct ebb_err *err);

/*
 * The most memory that the processes of a running domain may use (memory cgroup).  -EOPNOTSUPP:
 * libvirt manages no memory cgroup for it; -ESRCH: it does not run any more.
 */
int ebb_virt_domain_set_memory_cap(virConnectPtr conn, const uint8_t uuid[16], uint64_t bytes,
				   struct ebb_err *err);

/*
 * The requested size of the virtio-mem device of a cell of a running domain.  -ESRCH: it does not
 * run any more.
 */
int ebb_virt_domain_set_requested(virConnectPtr conn, const uint8_t uuid[16], uint16_t cell,
				  uint64_t bytes, struct ebb_err *err);

/*
 * Replace the SLA in the metadata, of the running instance and of the definition, where there
 * are.
 */
int ebb_virt_domain_write_sla(virConnectPtr conn, const uint8_t uuid[16], const char *xml,
			      struct ebb_err *err);

/* uuids of all domains, running or not; the caller frees *ret.  Returns their number or -errno. */
int ebb_virt_domain_list(virConnectPtr conn, uint8_t (**ret)[16], struct ebb_err *err);

#endif
