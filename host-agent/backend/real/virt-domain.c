/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocking calls to libvirt about domains. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/real/disks.h"
#include "backend/real/virt-domain.h"
#include "backend/real/virt-error.h"
#include "util/text.h"

/*
 * Whether the job of a domain that moves is to leave.  Where a domain arrives libvirt has no such
 * statistics, and where it has left there is no job any more.
 */
static bool is_leaving(virDomainPtr dom)
{
	virTypedParameterPtr params = NULL;
	int type, num_params = 0, operation = VIR_DOMAIN_JOB_OPERATION_UNKNOWN;

	if (virDomainGetJobStats(dom, &type, &params, &num_params, 0) < 0)
		return false;
	if (virTypedParamsGetInt(params, num_params, VIR_DOMAIN_JOB_OPERATION, &operation) < 0)
		operation = VIR_DOMAIN_JOB_OPERATION_UNKNOWN;
	virTypedParamsFree(params, num_params);
	return operation == VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT;
}

static int read_state(virDomainPtr dom, struct ebb_virt_domain *d, struct ebb_err *err)
{
	int active = virDomainIsActive(dom), state, reason;
	unsigned int id;

	if (active < 0 || virDomainGetState(dom, &state, &reason, 0) < 0)
		return ebb_virt_error(err, "libvirt does not say whether the domain runs");
	/* A domain that stops between the two calls has no id any more. */
	id = active ? virDomainGetID(dom) : (unsigned int)-1;
	d->is_running = id != (unsigned int)-1;
	d->order = d->is_running ? id : 0;
	d->is_starting = state == VIR_DOMAIN_PAUSED && reason == VIR_DOMAIN_PAUSED_STARTING_UP;
	d->is_moving = state == VIR_DOMAIN_PAUSED && reason == VIR_DOMAIN_PAUSED_MIGRATION;
	d->is_leaving = d->is_moving && is_leaving(dom);
	return 0;
}

static int read_xml(virDomainPtr dom, uint16_t num_host_nodes, const char *nbd_socket,
		    struct ebb_virt_domain *d, struct ebb_err *err)
{
	char *xml = virDomainGetXMLDesc(dom, d->is_running ? 0 : VIR_DOMAIN_XML_INACTIVE);

	if (!xml)
		return ebb_virt_error(err, "libvirt does not give the XML of the domain");
	d->sla = ebb_metadata_parse(xml, num_host_nodes, d->is_running, &d->metadata, &d->error);
	if (d->sla > 0 && nbd_socket[0])
		ebb_metadata_volumes(xml, nbd_socket, &d->volumes);
	if (d->sla > 0)
		d->disk_bytes = ebb_disks_size(xml);
	free(xml);
	return 0;
}

int ebb_virt_domain_get(virConnectPtr conn, const uint8_t uuid[16], uint16_t num_host_nodes,
			const char *nbd_socket, struct ebb_virt_domain *ret, struct ebb_err *err)
{
	virDomainPtr dom = virDomainLookupByUUID(conn, uuid);
	int rc;

	memset(ret, 0, sizeof(*ret));
	if (!dom) {
		rc = ebb_virt_error(err, "libvirt does not find the domain");
		return rc == -ENOENT ? 0 : rc;
	}
	ebb_text_copy(ret->name, sizeof(ret->name), virDomainGetName(dom));
	ret->exists = true;
	rc = read_state(dom, ret, err);
	if (rc == 0)
		rc = read_xml(dom, num_host_nodes, nbd_socket, ret, err);
	virDomainFree(dom);
	/* Undefined while it was looked at. */
	if (rc == -ENOENT) {
		ret->exists = false;
		rc = 0;
	}
	return rc;
}

int ebb_virt_domain_set_vcpu(virConnectPtr conn, const uint8_t uuid[16], uint16_t vcpu, bool plug,
			     struct ebb_err *err)
{
	virDomainPtr dom = virDomainLookupByUUID(conn, uuid);
	char list[16];
	int rc = 0;

	if (!dom)
		return ebb_virt_error(err, "libvirt does not find the domain");
	snprintf(list, sizeof(list), "%u", vcpu);
	if (virDomainSetVcpu(dom, list, plug, VIR_DOMAIN_AFFECT_LIVE) < 0)
		rc = ebb_virt_error(err, plug ? "virDomainSetVcpu (plug)" :
						"virDomainSetVcpu (unplug)");
	virDomainFree(dom);
	return rc;
}

int ebb_virt_domain_pin(virConnectPtr conn, const uint8_t uuid[16], uint16_t vcpu, uint32_t os_cpu,
			struct ebb_err *err)
{
	virDomainPtr dom = virDomainLookupByUUID(conn, uuid);
	int len = VIR_CPU_MAPLEN(os_cpu + 1), rc = 0;
	unsigned char *map;

	if (!dom)
		return ebb_virt_error(err, "libvirt does not find the domain");
	map = calloc(1, len);
	if (!map) {
		virDomainFree(dom);
		return -ENOMEM;
	}
	VIR_USE_CPU(map, os_cpu);
	if (virDomainPinVcpuFlags(dom, vcpu, map, len, VIR_DOMAIN_AFFECT_LIVE) < 0)
		rc = ebb_virt_error(err, "virDomainPinVcpu");
	free(map);
	virDomainFree(dom);
	return rc;
}

int ebb_virt_domain_set_memory_cap(virConnectPtr conn, const uint8_t uuid[16], uint64_t bytes,
				   struct ebb_err *err)
{
	virDomainPtr dom = virDomainLookupByUUID(conn, uuid);
	virTypedParameter limit = {
		.field = VIR_DOMAIN_MEMORY_HARD_LIMIT, .type = VIR_TYPED_PARAM_ULLONG,
		.value.ul = (bytes + 1023) / 1024,
	};
	int rc = 0;

	if (!dom)
		return ebb_virt_error(err, "libvirt does not find the domain");
	if (virDomainSetMemoryParameters(dom, &limit, 1, VIR_DOMAIN_AFFECT_LIVE) < 0)
		rc = ebb_virt_error(err, "virDomainSetMemoryParameters");
	/* Either it has just stopped, or there is no such cgroup: libvirt's code is the same. */
	if (rc == -EBUSY)
		rc = virDomainIsActive(dom) == 1 ? -EOPNOTSUPP : -ESRCH;
	virDomainFree(dom);
	return rc;
}

int ebb_virt_domain_set_requested(virConnectPtr conn, const uint8_t uuid[16], uint16_t cell,
				  uint64_t bytes, struct ebb_err *err)
{
	virDomainPtr dom = virDomainLookupByUUID(conn, uuid);
	char *xml = NULL, *device = NULL;
	int rc = 0;

	if (!dom)
		return ebb_virt_error(err, "libvirt does not find the domain");
	xml = virDomainGetXMLDesc(dom, 0);
	if (!xml)
		rc = ebb_virt_error(err, "libvirt does not give the XML of the domain");
	if (rc == 0)
		rc = ebb_metadata_pool_xml(xml, cell, bytes, &device);
	if (rc == -ENOENT)
		ebb_err_set(err, rc, "cell %u has no virtio-mem device", cell);
	if (rc == 1) {
		rc = 0;
		if (virDomainUpdateDeviceFlags(dom, device, VIR_DOMAIN_AFFECT_LIVE) < 0)
			rc = ebb_virt_error(err, "virDomainUpdateDeviceFlags");
	}
	if (rc == -EBUSY && virDomainIsActive(dom) != 1)
		rc = -ESRCH;
	free(device);
	free(xml);
	virDomainFree(dom);
	return rc;
}

int ebb_virt_domain_write_sla(virConnectPtr conn, const uint8_t uuid[16], const char *xml,
			      struct ebb_err *err)
{
	virDomainPtr dom = virDomainLookupByUUID(conn, uuid);
	unsigned int flags = 0;
	int rc = 0;

	if (!dom)
		return ebb_virt_error(err, "libvirt does not find the domain");
	if (virDomainIsActive(dom) == 1)
		flags |= VIR_DOMAIN_AFFECT_LIVE;
	if (virDomainIsPersistent(dom) == 1)
		flags |= VIR_DOMAIN_AFFECT_CONFIG;
	if (virDomainSetMetadata(dom, VIR_DOMAIN_METADATA_ELEMENT, xml, "ebb", EBB_METADATA_URI,
				 flags) < 0)
		rc = ebb_virt_error(err, "virDomainSetMetadata");
	virDomainFree(dom);
	return rc;
}

int ebb_virt_domain_list(virConnectPtr conn, uint8_t (**ret)[16], struct ebb_err *err)
{
	virDomainPtr *doms;
	int num = virConnectListAllDomains(conn, &doms, 0), kept = 0;
	uint8_t(*uuids)[16];

	if (num < 0)
		return ebb_virt_error(err, "libvirt does not list its domains");
	uuids = calloc(num + 1, sizeof(*uuids));
	for (int i = 0; i < num; i++) {
		if (uuids && virDomainGetUUID(doms[i], uuids[kept]) == 0)
			kept++;
		virDomainFree(doms[i]);
	}
	free(doms);
	if (!uuids)
		return -ENOMEM;
	*ret = uuids;
	return kept;
}
