/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * <vcpu current='1'>8</vcpu>, the <vcpus> list and <cpu><numa><cell cpus='0-3'/>.  libvirt has
 * checked these against its schema; this file checks the rest.
 */
#include <stdlib.h>
#include <string.h>
#include "backend/real/metadata-vcpus.h"

#define NO_NODE		0xffff

static int parse_vcpus(const struct ebb_metaxml *x, xmlNode *domain, struct ebb_metadata *m)
{
	xmlNode *vcpu = ebb_metaxml_child(domain, "vcpu");
	xmlNode *list = ebb_metaxml_child(domain, "vcpus");
	uint32_t current, id;
	xmlChar *text;
	long num;
	int rc;

	if (!vcpu)
		return ebb_metaxml_fail(x, "it has no <vcpu> element");
	text = xmlNodeGetContent(vcpu);
	num = text ? strtol((const char *)text, NULL, 10) : 0;
	xmlFree(text);
	if (num < 1 || num > EBB_MAX_VCPUS)
		return ebb_metaxml_fail(x, "<vcpu> is %ld: allowed: 1 to %u", num, EBB_MAX_VCPUS);
	m->num_vcpus = num;
	rc = ebb_metaxml_number(x, vcpu, "<vcpu>", "current", 1, num, num, &current);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; !list && i < current; i++)
		m->is_enabled[i] = m->vcpus[i].is_startup = true;
	for (xmlNode *v = ebb_metaxml_child(list, "vcpu"); v; v = ebb_metaxml_next(v)) {
		rc = ebb_metaxml_number(x, v, "<vcpus><vcpu>", "id", 0, num - 1, -1, &id);
		if (rc < 0)
			return rc;
		m->is_enabled[id] = ebb_metaxml_has_value(v, "enabled", "yes");
		m->vcpus[id].is_startup = m->is_enabled[id] &&
					  !ebb_metaxml_has_value(v, "hotpluggable", "yes");
	}
	return 0;
}

/* A list like "0-3,8"; libvirt writes no other form. */
static int assign_cell(const struct ebb_metaxml *x, const char *list, uint32_t cell,
		       struct ebb_metadata *m)
{
	for (const char *p = list; *p; ) {
		char *end;
		unsigned long first = strtoul(p, &end, 10), last = first;

		if (end != p && *end == '-') {
			p = end + 1;
			last = strtoul(p, &end, 10);
		}
		if (end == p || (*end && *end != ',') || last < first || last >= m->num_vcpus)
			return ebb_metaxml_fail(
				x,
				"<cell id=\"%u\"> attribute cpus=\"%.40s\": allowed: a list of "
				"vCPUs 0 to %u",
				cell, list, m->num_vcpus - 1);
		for (; first <= last; first++)
			m->vcpus[first].node = cell;
		p = *end ? end + 1 : end;
	}
	return 0;
}

static int parse_cells(const struct ebb_metaxml *x, xmlNode *numa, struct ebb_metadata *m)
{
	uint32_t num = 0, id;

	for (uint16_t i = 0; i < m->num_vcpus; i++)
		m->vcpus[i].node = NO_NODE;
	for (xmlNode *c = ebb_metaxml_child(numa, "cell"); c; c = ebb_metaxml_next(c), num++) {
		xmlChar *cpus;
		int rc;

		if (num == EBB_MAX_GUEST_NODES)
			return ebb_metaxml_fail(x, "it has more than %u NUMA cells",
						EBB_MAX_GUEST_NODES);
		rc = ebb_metaxml_number(x, c, "<cell>", "id", 0, EBB_MAX_GUEST_NODES - 1, num, &id);
		cpus = xmlGetNoNsProp(c, (const xmlChar *)"cpus");
		if (rc == 0 && cpus)
			rc = assign_cell(x, (const char *)cpus, id, m);
		xmlFree(cpus);
		if (rc < 0)
			return rc;
	}
	m->sla.num_nodes = num;
	for (uint16_t i = 0; i < m->num_vcpus; i++)
		if (m->vcpus[i].node >= num)
			return ebb_metaxml_fail(x, "vCPU %u is in no <cell> of <numa>", i);
	return 0;
}

int ebb_metadata_vcpus(const struct ebb_metaxml *x, xmlNode *domain, struct ebb_metadata *m)
{
	xmlNode *numa = ebb_metaxml_child(ebb_metaxml_child(domain, "cpu"), "numa");
	int rc = parse_vcpus(x, domain, m);

	if (rc < 0)
		return rc;
	if (ebb_metaxml_child(numa, "cell"))
		return parse_cells(x, numa, m);
	m->sla.num_nodes = 1;
	return 0;
}
