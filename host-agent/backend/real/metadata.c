/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading the SLA element; the vCPUs of the domain are in metadata-vcpus.c, memory is in
 * metadata-mem.c.
 */
#include <errno.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/real/metadata.h"
#include "backend/real/metadata-mem.h"
#include "backend/real/metadata-vcpus.h"
#include "backend/real/metadata-xml.h"
#include "model/sla-io.h"
#include "util/text.h"

static const char *const no_children[] = { NULL };

/* The names of the attributes of a part, closed by NULL. */
#define MAX_KEYS	32

static void attribute_names(enum ebb_sla_part part, const char *ret_names[MAX_KEYS])
{
	const struct ebb_sla_key *key;
	size_t num = 0;

	for (size_t i = 0; (key = ebb_sla_key_at(i)) && num + 1 < MAX_KEYS; i++)
		if (key->part == part)
			ret_names[num++] = key->attribute;
	ret_names[num] = NULL;
}

static int parse_node(const struct ebb_metaxml *x, xmlNode *n, uint16_t num_host_nodes, bool *seen,
		      struct ebb_metadata *m)
{
	static const char *const names[] = { "id", "startup", "reserved", "max", "host", NULL };
	const bool is_spot = m->sla.class == EBB_CLASS_SPOT;
	uint32_t id, startup, reserved, max, host, cpus = 0;
	char what[32];
	int rc;

	rc = ebb_metaxml_shape(x, n, names, no_children);
	if (rc == 0)
		rc = ebb_metaxml_number(x, n, "<ebb:node>", "id", 0, m->sla.num_nodes - 1, -1, &id);
	if (rc < 0)
		return rc;
	snprintf(what, sizeof(what), "<ebb:node id=\"%u\">", id);
	if (seen[id])
		return ebb_metaxml_fail(x, "%s is there twice", what);
	seen[id] = true;
	for (uint16_t i = 0; i < m->num_vcpus; i++)
		cpus += m->vcpus[i].node == id;
	rc = ebb_metaxml_number(x, n, what, "max", 0, cpus, -1, &max);
	if (rc == 0)
		rc = ebb_metaxml_number(x, n, what, "startup", 0, max, -1, &startup);
	if (rc == 0)
		rc = ebb_metaxml_number(x, n, what, "reserved", startup, is_spot ? startup : max,
					is_spot ? startup : max, &reserved);
	if (rc == 0)
		rc = ebb_metaxml_number(x, n, what, "host", 0, num_host_nodes - 1, id, &host);
	if (rc < 0)
		return rc;
	m->sla.nodes[id].startup = startup;
	m->sla.nodes[id].reserved = reserved;
	m->sla.nodes[id].max = max;
	m->sla.nodes[id].host_node = host;
	return 0;
}

/* The vCPUs that boot in a cell must be as many as its SLA says. */
static int check_startup(const struct ebb_metaxml *x, const struct ebb_metadata *m, bool is_live)
{
	for (uint16_t g = 0; g < m->sla.num_nodes; g++) {
		uint16_t num = 0;

		for (uint16_t i = 0; i < m->num_vcpus; i++) {
			if (m->vcpus[i].node != g || !m->is_enabled[i])
				continue;
			if (!is_live && !m->vcpus[i].is_startup)
				return ebb_metaxml_fail(
					x,
					"<vcpu id=\"%u\" hotpluggable=\"yes\">: a vCPU that is "
					"enabled in the definition must have hotpluggable=\"no\"",
					i);
			num += m->vcpus[i].is_startup;
		}
		if (num != m->sla.nodes[g].startup)
			return ebb_metaxml_fail(
				x,
				"<ebb:node id=\"%u\"> attribute startup=\"%u\": the definition "
				"enables %u vCPUs in this cell, both must be equal",
				g, m->sla.nodes[g].startup, num);
	}
	return 0;
}

static int parse_cpu(const struct ebb_metaxml *x, xmlNode *n, uint16_t num_host_nodes, bool is_live,
		     struct ebb_metadata *m)
{
	static const char *const children[] = { "node", NULL };
	const char *names[MAX_KEYS];
	bool seen[EBB_MAX_GUEST_NODES] = { false };
	int rc;

	attribute_names(EBB_SLA_CPU, names);
	rc = ebb_metaxml_shape(x, n, names, children);
	if (rc == 0)
		rc = ebb_metaxml_sla(x, n, "<ebb:cpu>", EBB_SLA_CPU, &m->sla);
	for (xmlNode *c = n->children; rc == 0 && c; c = c->next)
		if (c->type == XML_ELEMENT_NODE)
			rc = parse_node(x, c, num_host_nodes, seen, m);
	for (uint16_t g = 0; rc == 0 && g < m->sla.num_nodes; g++)
		if (!seen[g])
			rc = ebb_metaxml_fail(x,
					      "<ebb:cpu> has no <ebb:node id=\"%u\">; the domain "
					      "has cells 0 to %u",
					      g, m->sla.num_nodes - 1);
	return rc < 0 ? rc : check_startup(x, m, is_live);
}

static int check_memory(const struct ebb_metaxml *x, xmlNode *n)
{
	static const char *const children[] = { "node", NULL };
	static const char *const node_names[] = { "id", "min-mib", "max-mib", NULL };
	const char *names[MAX_KEYS];
	int rc;

	attribute_names(EBB_SLA_MEM, names);
	rc = ebb_metaxml_shape(x, n, names, children);
	for (xmlNode *c = n->children; rc == 0 && c; c = c->next)
		if (c->type == XML_ELEMENT_NODE)
			rc = ebb_metaxml_shape(x, c, node_names, no_children);
	return rc;
}

/* <ebb:volume>: values of its own for any attribute of <ebb:io>. */
static int parse_volume(const struct ebb_metaxml *x, xmlNode *n, struct ebb_sla *sla)
{
	const char *names[MAX_KEYS + 1] = { "name" };
	xmlChar *name = xmlGetNoNsProp(n, (const xmlChar *)"name");
	const struct ebb_sla_key *key;
	struct ebb_sla_volume *v = NULL;
	char what[32 + EBB_VOLUME_NAME_SIZE];
	uint64_t value;
	int rc;

	attribute_names(EBB_SLA_IO, names + 1);
	rc = ebb_metaxml_shape(x, n, names, no_children);
	if (rc == 0 && (!name || !ebb_volume_name_usable((const char *)name)))
		rc = ebb_metaxml_fail(x, "<ebb:volume> attribute name=\"%.60s\": allowed: 1 to %u "
				      "letters, digits, \".\", \"_\" and \"-\"",
				      name ? (const char *)name : "", EBB_VOLUME_NAME_SIZE - 1);
	else if (rc == 0 && ebb_sla_volume(sla, (const char *)name))
		rc = ebb_metaxml_fail(x, "<ebb:volume name=\"%s\"> is there twice",
				      (const char *)name);
	else if (rc == 0)
		v = ebb_sla_volume_get(sla, (const char *)name);
	xmlFree(name);
	if (rc < 0)
		return rc;
	if (!v)
		return ebb_metaxml_fail(x, "<ebb:io> has more than %u <ebb:volume>",
					EBB_MAX_VOLUMES);
	snprintf(what, sizeof(what), "<ebb:volume name=\"%s\">", v->name);
	for (size_t i = 0; (key = ebb_sla_key_at(i)); i++) {
		if (key->part != EBB_SLA_IO)
			continue;
		rc = ebb_metaxml_key(x, n, what, key, &value);
		if (rc < 0)
			return rc;
		if (rc > 0)
			ebb_sla_volume_put(v, key, value);
	}
	return 0;
}

static int parse_io(const struct ebb_metaxml *x, xmlNode *n, struct ebb_sla *sla)
{
	static const char *const children[] = { "volume", NULL };
	const char *names[MAX_KEYS];
	char text[EBB_TEXT_SIZE];
	int rc;

	attribute_names(EBB_SLA_IO, names);
	rc = n ? ebb_metaxml_shape(x, n, names, children) : 0;
	if (rc == 0)
		rc = ebb_metaxml_sla(x, n, "<ebb:io>", EBB_SLA_IO, sla);
	for (xmlNode *c = n ? n->children : NULL; rc == 0 && c; c = c->next)
		if (c->type == XML_ELEMENT_NODE)
			rc = parse_volume(x, c, sla);
	if (rc == 0 && ebb_sla_io_check(sla, text) < 0)
		rc = ebb_metaxml_fail(x, "<ebb:io>: %s", text);
	return rc;
}

/* The only element of that name below n; NULL when there is none. */
static int find_only(const struct ebb_metaxml *x, xmlNode *n, bool ours, const char *name,
		     xmlNode **ret)
{
	xmlNode *found = NULL;

	for (xmlNode *c = n->children; c; c = c->next) {
		if (c->type != XML_ELEMENT_NODE || strcmp((const char *)c->name, name) != 0 ||
		    ebb_metaxml_is_ours(c) != ours)
			continue;
		if (found)
			return ebb_metaxml_fail(x, "<%s%s> is there twice", ours ? "ebb:" : "",
						name);
		found = c;
	}
	*ret = found;
	return 0;
}

static int parse_domain(struct ebb_metaxml *x, xmlNode *root, uint16_t num_host_nodes, bool is_live,
			struct ebb_metadata *m)
{
	static const char *const none[] = { NULL };
	static const char *const children[] = { "cpu", "memory", "io", NULL };
	xmlNode *metadata, *sla = NULL, *cpu, *memory = NULL, *io = NULL, *name;
	int rc;

	if (!root || strcmp((const char *)root->name, "domain") != 0)
		return ebb_metaxml_fail(x, "the XML has no <domain> element");
	rc = find_only(x, root, false, "name", &name);
	if (rc == 0 && name) {
		xmlChar *text = xmlNodeGetContent(name);

		ebb_text_copy(x->domain, sizeof(x->domain), text ? (const char *)text : "");
		xmlFree(text);
	}
	if (rc == 0)
		rc = find_only(x, root, false, "metadata", &metadata);
	if (rc == 0 && metadata)
		rc = find_only(x, metadata, true, "sla", &sla);
	if (rc < 0 || !sla)
		return rc;
	rc = ebb_metaxml_shape(x, sla, none, children);
	if (rc == 0)
		rc = find_only(x, sla, true, "cpu", &cpu);
	if (rc == 0 && !cpu)
		rc = ebb_metaxml_fail(x, "<ebb:sla> has no <ebb:cpu>");
	if (rc == 0)
		rc = find_only(x, sla, true, "memory", &memory);
	if (rc == 0 && memory)
		rc = check_memory(x, memory);
	if (rc == 0)
		rc = find_only(x, sla, true, "io", &io);
	if (rc == 0)
		rc = parse_io(x, io, &m->sla);
	if (rc == 0)
		rc = ebb_metadata_vcpus(x, root, m);
	if (rc == 0)
		rc = parse_cpu(x, cpu, num_host_nodes, is_live, m);
	if (rc == 0)
		rc = ebb_metadata_mem(x, root, memory, is_live, m);
	return rc < 0 ? rc : 1;
}

int ebb_metadata_parse(const char *xml, uint16_t num_host_nodes, bool is_live,
		       struct ebb_metadata *ret, struct ebb_err *err)
{
	struct ebb_metaxml x = { .err = err };
	struct ebb_metadata *m = calloc(1, sizeof(*m));
	xmlDoc *doc;
	int rc;

	if (!m)
		return -ENOMEM;
	doc = xmlReadMemory(xml, strlen(xml), "domain.xml", NULL,
			    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	if (doc)
		rc = parse_domain(&x, xmlDocGetRootElement(doc), num_host_nodes, is_live, m);
	else
		rc = ebb_metaxml_fail(&x, "its XML is not well-formed");
	if (rc == 1)
		*ret = *m;
	xmlFreeDoc(doc);
	free(m);
	return rc;
}

static void format_keys(FILE *f, const struct ebb_sla *sla, enum ebb_sla_part part)
{
	const struct ebb_sla_key *key;
	char buf[16];

	for (size_t i = 0; (key = ebb_sla_key_at(i)); i++) {
		const uint64_t value = ebb_sla_get(sla, key);

		if (key->part == part && !(key->is_omitted && value == key->missing))
			fprintf(f, " %s='%s'", key->attribute,
				ebb_sla_value_text(key, value, buf));
	}
}

static void format_io(FILE *f, const struct ebb_sla *sla)
{
	const struct ebb_sla_key *key;
	uint64_t value;
	char buf[16];

	fputs("<io", f);
	format_keys(f, sla, EBB_SLA_IO);
	fputc('>', f);
	for (uint16_t k = 0; k < sla->num_volumes; k++) {
		fprintf(f, "<volume name='%s'", sla->volumes[k].name);
		for (size_t i = 0; (key = ebb_sla_key_at(i)); i++)
			if (key->part == EBB_SLA_IO &&
			    ebb_sla_volume_value(&sla->volumes[k], key, &value))
				fprintf(f, " %s='%s'", key->attribute,
					ebb_sla_value_text(key, value, buf));
		fputs("/>", f);
	}
	fputs("</io>", f);
}

int ebb_metadata_format(const struct ebb_sla *sla, char **ret_xml)
{
	char *xml = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&xml, &size);

	if (!f)
		return -ENOMEM;
	fputs("<sla><cpu", f);
	format_keys(f, sla, EBB_SLA_CPU);
	fputc('>', f);
	for (uint16_t g = 0; g < sla->num_nodes; g++) {
		const struct ebb_sla_node *n = &sla->nodes[g];

		fprintf(f, "<node id='%u' startup='%u' max='%u' host='%u'", g, n->startup, n->max,
			n->host_node);
		/* Left out where it follows from the rest, so that it goes on following. */
		if (n->reserved != (sla->class == EBB_CLASS_SPOT ? n->startup : n->max))
			fprintf(f, " reserved='%u'", n->reserved);
		fputs("/>", f);
	}
	fputs("</cpu>", f);
	if (ebb_sla_has_mem(sla)) {
		fputs("<memory", f);
		format_keys(f, sla, EBB_SLA_MEM);
		fputc('>', f);
		for (uint16_t g = 0; g < sla->num_nodes; g++)
			if (sla->nodes[g].mem_max > 0 || sla->nodes[g].has_pool)
				fprintf(f, "<node id='%u' min-mib='%u' max-mib='%u'/>", g,
					sla->nodes[g].mem_min * EBB_BLOCK_MIB,
					sla->nodes[g].mem_max * EBB_BLOCK_MIB);
		fputs("</memory>", f);
	}
	if (ebb_sla_has_io(sla))
		format_io(f, sla);
	fputs("</sla>", f);
	if (fclose(f) != 0) {
		free(xml);
		return -ENOMEM;
	}
	*ret_xml = xml;
	return 0;
}
