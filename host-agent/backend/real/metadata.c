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
#include "model/sla.h"
#include "util/text.h"

static bool is_ours(const xmlNode *n)
{
	return n->ns && strcmp((const char *)n->ns->href, EBB_METADATA_URI) == 0;
}

static bool is_named(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

static const char *const no_children[] = { NULL };

/*
 * Every attribute must be one of the names; every child an element of ours of one of the names
 * `children`, or blank.
 */
static int check_shape(const struct ebb_metaxml *x, xmlNode *n, const char *const *names,
		       const char *const *children)
{
	char where[64];

	snprintf(where, sizeof(where), "<ebb:%s>", (const char *)n->name);
	for (const xmlAttr *a = n->properties; a; a = a->next)
		if (a->ns || !is_named(names, (const char *)a->name))
			return ebb_metaxml_fail(x, "%s has an unknown attribute \"%s\"", where,
						(const char *)a->name);
	for (const xmlNode *c = n->children; c; c = c->next) {
		if (c->type == XML_COMMENT_NODE || xmlIsBlankNode(c))
			continue;
		if (c->type != XML_ELEMENT_NODE)
			return ebb_metaxml_fail(x, "%s contains text, only elements are allowed",
						where);
		if (!is_ours(c) || !is_named(children, (const char *)c->name)) {
			char allowed[64] = "";

			for (const char *const *k = children; *k; k++)
				snprintf(allowed + strlen(allowed),
					 sizeof(allowed) - strlen(allowed), "%s<ebb:%s>",
					 k == children ? "" : ", ", *k);
			return ebb_metaxml_fail(x,
						"%s has an unknown element <%s>; allowed: %s",
						where, (const char *)c->name,
						allowed[0] ? allowed : "none");
		}
	}
	return 0;
}

/* The names of the attributes of <ebb:cpu> or <ebb:memory>, closed by NULL. */
#define MAX_KEYS	32

static void attribute_names(bool is_mem, const char *ret_names[MAX_KEYS])
{
	const struct ebb_sla_key *key;
	size_t num = 0;

	for (size_t i = 0; (key = ebb_sla_key_at(i)) && num + 1 < MAX_KEYS; i++)
		if (key->is_mem == is_mem)
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

	rc = check_shape(x, n, names, no_children);
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

	attribute_names(false, names);
	rc = check_shape(x, n, names, children);
	if (rc == 0)
		rc = ebb_metaxml_sla(x, n, "<ebb:cpu>", false, &m->sla);
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

	attribute_names(true, names);
	rc = check_shape(x, n, names, children);
	for (xmlNode *c = n->children; rc == 0 && c; c = c->next)
		if (c->type == XML_ELEMENT_NODE)
			rc = check_shape(x, c, node_names, no_children);
	return rc;
}

/* The only element of that name below n; NULL when there is none. */
static int find_only(const struct ebb_metaxml *x, xmlNode *n, bool ours, const char *name,
		     xmlNode **ret)
{
	xmlNode *found = NULL;

	for (xmlNode *c = n->children; c; c = c->next) {
		if (c->type != XML_ELEMENT_NODE || strcmp((const char *)c->name, name) != 0 ||
		    is_ours(c) != ours)
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
	static const char *const children[] = { "cpu", "memory", NULL };
	xmlNode *metadata, *sla = NULL, *cpu, *memory = NULL, *name;
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
	rc = check_shape(x, sla, none, children);
	if (rc == 0)
		rc = find_only(x, sla, true, "cpu", &cpu);
	if (rc == 0 && !cpu)
		rc = ebb_metaxml_fail(x, "<ebb:sla> has no <ebb:cpu>");
	if (rc == 0)
		rc = find_only(x, sla, true, "memory", &memory);
	if (rc == 0 && memory)
		rc = check_memory(x, memory);
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

static void format_keys(FILE *f, const struct ebb_sla *sla, bool is_mem)
{
	const struct ebb_sla_key *key;
	char buf[16];

	for (size_t i = 0; (key = ebb_sla_key_at(i)); i++) {
		const uint32_t value = ebb_sla_get(sla, key);

		if (key->is_mem == is_mem && !(key->is_omitted && value == key->missing))
			fprintf(f, " %s='%s'", key->attribute,
				ebb_sla_value_text(key, value, buf));
	}
}

int ebb_metadata_format(const struct ebb_sla *sla, char **ret_xml)
{
	char *xml = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&xml, &size);

	if (!f)
		return -ENOMEM;
	fputs("<sla><cpu", f);
	format_keys(f, sla, false);
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
		format_keys(f, sla, true);
		fputc('>', f);
		for (uint16_t g = 0; g < sla->num_nodes; g++)
			if (sla->nodes[g].mem_max > 0 || sla->nodes[g].has_pool)
				fprintf(f, "<node id='%u' min-mib='%u' max-mib='%u'/>", g,
					sla->nodes[g].mem_min * EBB_BLOCK_MIB,
					sla->nodes[g].mem_max * EBB_BLOCK_MIB);
		fputs("</memory>", f);
	}
	fputs("</sla>", f);
	if (fclose(f) != 0) {
		free(xml);
		return -ENOMEM;
	}
	*ret_xml = xml;
	return 0;
}
