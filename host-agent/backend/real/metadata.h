/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The SLA in the metadata of a libvirt domain, and what the rest of its XML says about vCPUs and
 * memory.  The schema is documented in docs/domain-metadata.md.  No I/O.
 */
#ifndef EBB_IO_METADATA_H
#define EBB_IO_METADATA_H

#include "model/types.h"
#include "util/err.h"

#define EBB_METADATA_URI	"urn:ebb:sla:1"

struct ebb_metadata {
	struct ebb_sla sla;
	uint16_t num_vcpus;		/* all that the domain can have */
	struct ebb_vcpu_def vcpus[EBB_MAX_VCPUS];
	bool is_enabled[EBB_MAX_VCPUS];	/* as the XML says: plugged, when the domain is running */
	/* By cell: all memory but the pool's; the pool's size, 0 where the SLA has none. */
	uint64_t boot_bytes[EBB_MAX_GUEST_NODES];
	uint32_t pool_blocks[EBB_MAX_GUEST_NODES];
	/* As the XML says: plugged or requested in the pool, whichever is more. */
	uint32_t mem_blocks[EBB_MAX_GUEST_NODES];
};

/*
 * Parse the XML of a domain.  num_host_nodes: nodes that `host` may name.  is_live: the XML
 * describes the running instance, in which hotpluggable vCPUs may be enabled; in a definition they
 * may not.
 *
 * Returns 1 with ret, 0 when the domain has no SLA at all, -EINVAL with an error that names the
 * domain, the element, the attribute, its value and what is allowed; -ENOMEM.
 */
int ebb_metadata_parse(const char *xml, uint16_t num_host_nodes, bool is_live,
		       struct ebb_metadata *ret, struct ebb_err *err);

/*
 * The disks of a domain that are volumes of the volume server: those whose NBD socket is this one,
 * by the path as it is written in the XML.  0, or -EINVAL: it is not well-formed.
 */
int ebb_metadata_volumes(const char *xml, const char *nbd_socket, struct ebb_vm_volumes *ret);

/*
 * The <memory model='virtio-mem'> element of a cell's virtio-mem device in the XML of a running
 * domain, with another requested size, as virDomainUpdateDeviceFlags() takes it.  The caller frees
 * *ret_xml.  1; 0 when it is requested already; -ENOENT when the cell has no such device or the
 * XML can not be read; -ENOMEM.
 */
int ebb_metadata_pool_xml(const char *xml, uint16_t cell, uint64_t requested_bytes,
			  char **ret_xml);

/*
 * The <sla> element for an SLA, as virDomainSetMetadata() takes it (without prefix and namespace).
 * The caller frees *ret_xml.  0 or -ENOMEM.
 */
int ebb_metadata_format(const struct ebb_sla *sla, char **ret_xml);

#endif
