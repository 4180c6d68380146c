/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * <ebb:memory>, the memory of <cell>s and the <memory> devices.  libvirt has checked these against
 * its schema and writes sizes in KiB.
 */
#include <errno.h>
#include <libxml/parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/real/metadata-mem.h"

/* A <memory> device; node 0 where it names none. */
struct device {
	xmlNode *xml;
	bool is_virtio_mem;
	uint32_t node;
	uint64_t size_bytes, block_bytes, requested_bytes, current_bytes;
};

static int read_optional(xmlNode *target, const char *name, uint64_t *ret)
{
	xmlNode *n = ebb_metaxml_child(target, name);

	*ret = 0;
	return n ? ebb_metaxml_kib(n, NULL, ret) : 0;
}

static int read_device(xmlNode *n, struct device *ret)
{
	xmlNode *target = ebb_metaxml_child(n, "target");
	xmlNode *size = ebb_metaxml_child(target, "size");
	xmlNode *node = ebb_metaxml_child(target, "node");
	xmlChar *text;

	*ret = (struct device){ .xml = n };
	ret->is_virtio_mem = ebb_metaxml_has_value(n, "model", "virtio-mem");
	if (!size || ebb_metaxml_kib(size, NULL, &ret->size_bytes) < 0 ||
	    read_optional(target, "block", &ret->block_bytes) < 0 ||
	    read_optional(target, "requested", &ret->requested_bytes) < 0 ||
	    read_optional(target, "current", &ret->current_bytes) < 0)
		return -EINVAL;
	if (!node)
		return 0;
	text = xmlNodeGetContent(node);
	ret->node = text ? (uint32_t)strtoul((const char *)text, NULL, 10) : 0;
	xmlFree(text);
	return 0;
}

/* The virtio-mem device of a cell, the only one of it; 0 or -ENOENT, -EINVAL: two. */
static int find_pool(xmlNode *domain, uint32_t cell, struct device *ret)
{
	xmlNode *devices = ebb_metaxml_child(domain, "devices");
	int rc = -ENOENT;

	for (xmlNode *n = ebb_metaxml_child(devices, "memory"); n; n = ebb_metaxml_next(n)) {
		struct device d;

		if (read_device(n, &d) < 0 || !d.is_virtio_mem || d.node != cell)
			continue;
		if (rc == 0)
			return -EINVAL;
		*ret = d;
		rc = 0;
	}
	return rc;
}

/* ---- what the domain has ---- */

static int read_cells(const struct ebb_metaxml *x, xmlNode *numa, struct ebb_metadata *m)
{
	uint32_t num = 0, id;

	for (xmlNode *c = ebb_metaxml_child(numa, "cell"); c; c = ebb_metaxml_next(c), num++) {
		int rc = ebb_metaxml_number(x, c, "<cell>", "id", 0, EBB_MAX_GUEST_NODES - 1, num,
					    &id);

		if (rc < 0)
			return rc;
		if (ebb_metaxml_kib(c, "memory", &m->boot_bytes[id]) < 0)
			return ebb_metaxml_fail(
				x, "<cell id=\"%u\"> has no attribute memory in KiB", id);
	}
	return 0;
}

/* Devices besides the pools count as what the VM boots with: they can be used up at any time. */
static int read_devices(const struct ebb_metaxml *x, xmlNode *domain, struct ebb_metadata *m)
{
	xmlNode *devices = ebb_metaxml_child(domain, "devices");

	for (xmlNode *n = ebb_metaxml_child(devices, "memory"); n; n = ebb_metaxml_next(n)) {
		struct device d;

		if (read_device(n, &d) < 0)
			return ebb_metaxml_fail(x, "a <memory> device has no sizes in KiB");
		if (d.node >= m->sla.num_nodes)
			return ebb_metaxml_fail(x, "a <memory> device is on node %u, the domain "
						"has cells 0 to %u", d.node, m->sla.num_nodes - 1);
		if (!d.is_virtio_mem || m->pool_blocks[d.node] == 0)
			m->boot_bytes[d.node] += d.size_bytes;
	}
	return 0;
}

static int read_boot(const struct ebb_metaxml *x, xmlNode *domain, struct ebb_metadata *m)
{
	xmlNode *numa = ebb_metaxml_child(ebb_metaxml_child(domain, "cpu"), "numa");
	xmlNode *memory = ebb_metaxml_child(domain, "memory");
	int rc = 0;

	if (ebb_metaxml_child(numa, "cell"))
		rc = read_cells(x, numa, m);
	else if (memory && ebb_metaxml_kib(memory, NULL, &m->boot_bytes[0]) < 0)
		rc = ebb_metaxml_fail(x, "<memory> is no number of KiB");
	return rc < 0 ? rc : read_devices(x, domain, m);
}

/* ---- what the SLA wants ---- */

static int find_device(const struct ebb_metaxml *x, xmlNode *domain, uint32_t id, bool is_live,
		       struct device *ret)
{
	int rc = find_pool(domain, id, ret);

	if (rc == -ENOENT)
		return ebb_metaxml_fail(x, "<ebb:memory><ebb:node id=\"%u\">: the cell has no "
					"<memory model=\"virtio-mem\"> device", id);
	if (rc < 0)
		return ebb_metaxml_fail(x, "<ebb:memory><ebb:node id=\"%u\">: the cell has two "
					"<memory model=\"virtio-mem\"> devices, allowed is one",
					id);
	if (ret->block_bytes != EBB_BLOCK_BYTES)
		return ebb_metaxml_fail(x, "<ebb:memory><ebb:node id=\"%u\">: the virtio-mem "
					"device has blocks of %llu KiB, allowed: %llu", id,
					(unsigned long long)(ret->block_bytes >> 10),
					EBB_BLOCK_BYTES >> 10);
	if (!is_live && ret->requested_bytes > 0)
		return ebb_metaxml_fail(x, "<ebb:memory><ebb:node id=\"%u\">: the virtio-mem "
					"device has <requested> %llu KiB, must be 0: ebbd sets it",
					id, (unsigned long long)(ret->requested_bytes >> 10));
	return 0;
}

static int read_mib(const struct ebb_metaxml *x, xmlNode *n, const char *what,
		    const char *attribute, uint32_t max, int64_t missing, uint32_t *ret_blocks)
{
	uint32_t mib;
	int rc = ebb_metaxml_number(x, n, what, attribute, 0, max, missing, &mib);

	if (rc == 0 && mib % EBB_BLOCK_MIB)
		rc = ebb_metaxml_fail(x, "%s attribute %s=\"%u\": allowed: multiples of %u", what,
				      attribute, mib, EBB_BLOCK_MIB);
	if (rc == 0)
		*ret_blocks = mib / EBB_BLOCK_MIB;
	return rc;
}

static int parse_node(const struct ebb_metaxml *x, xmlNode *domain, xmlNode *n, bool is_live,
		      struct ebb_metadata *m)
{
	struct ebb_sla_node *sla;
	struct device d;
	char what[48];
	uint64_t held;
	uint32_t id;
	int rc;

	rc = ebb_metaxml_number(x, n, "<ebb:memory><ebb:node>", "id", 0, m->sla.num_nodes - 1, -1,
				&id);
	if (rc < 0)
		return rc;
	snprintf(what, sizeof(what), "<ebb:memory><ebb:node id=\"%u\">", id);
	if (m->pool_blocks[id])
		return ebb_metaxml_fail(x, "%s is there twice", what);
	rc = find_device(x, domain, id, is_live, &d);
	if (rc < 0)
		return rc;
	if (d.size_bytes / EBB_BLOCK_BYTES == 0 || d.size_bytes >> 20 > EBB_MAX_POOL_MIB)
		return ebb_metaxml_fail(x, "%s: the virtio-mem device has %llu MiB, "
					"allowed: 2 to %u", what,
					(unsigned long long)(d.size_bytes >> 20),
					EBB_MAX_POOL_MIB);
	m->pool_blocks[id] = (uint32_t)(d.size_bytes / EBB_BLOCK_BYTES);
	held = d.requested_bytes > d.current_bytes ? d.requested_bytes : d.current_bytes;
	m->mem_blocks[id] = (uint32_t)((held + EBB_BLOCK_BYTES - 1) / EBB_BLOCK_BYTES);
	if (m->mem_blocks[id] > m->pool_blocks[id])
		m->mem_blocks[id] = m->pool_blocks[id];
	sla = &m->sla.nodes[id];
	sla->has_pool = true;
	rc = read_mib(x, n, what, "max-mib", m->pool_blocks[id] * EBB_BLOCK_MIB, -1, &sla->mem_max);
	if (rc == 0)
		rc = read_mib(x, n, what, "min-mib", sla->mem_max * EBB_BLOCK_MIB, 0,
			      &sla->mem_min);
	return rc;
}

int ebb_metadata_mem(const struct ebb_metaxml *x, xmlNode *domain, xmlNode *memory, bool is_live,
		     struct ebb_metadata *m)
{
	int rc;

	rc = ebb_metaxml_sla(x, memory, "<ebb:memory>", EBB_SLA_MEM, &m->sla);
	for (xmlNode *c = memory ? memory->children : NULL; rc == 0 && c; c = c->next)
		if (c->type == XML_ELEMENT_NODE)
			rc = parse_node(x, domain, c, is_live, m);
	return rc < 0 ? rc : read_boot(x, domain, m);
}

/* ---- telling libvirt ---- */

static int set_requested(struct device *d, uint64_t bytes)
{
	xmlNode *target = ebb_metaxml_child(d->xml, "target");
	xmlNode *requested = ebb_metaxml_child(target, "requested");
	char text[32];

	if (!requested)
		return -ENOENT;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(bytes >> 10));
	xmlNodeSetContent(requested, (const xmlChar *)text);
	return 0;
}

static int dump(xmlDoc *doc, xmlNode *n, char **ret)
{
	xmlBuffer *buf = xmlBufferCreate();
	int rc = -ENOMEM;

	if (buf && xmlNodeDump(buf, doc, n, 0, 0) > 0) {
		*ret = strdup((const char *)xmlBufferContent(buf));
		rc = *ret ? 1 : -ENOMEM;
	}
	xmlBufferFree(buf);
	return rc;
}

int ebb_metadata_pool_xml(const char *xml, uint16_t cell, uint64_t requested_bytes, char **ret_xml)
{
	xmlDoc *doc = xmlReadMemory(xml, strlen(xml), "domain.xml", NULL,
				    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	struct device d;
	int rc = -ENOENT;

	if (!doc)
		return rc;
	if (find_pool(xmlDocGetRootElement(doc), cell, &d) == 0) {
		rc = 0;
		if (d.requested_bytes != requested_bytes)
			rc = set_requested(&d, requested_bytes);
		if (rc == 0 && d.requested_bytes != requested_bytes)
			rc = dump(doc, d.xml, ret_xml);
	}
	xmlFreeDoc(doc);
	return rc;
}
