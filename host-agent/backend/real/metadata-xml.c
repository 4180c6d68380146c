/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attributes of the domain XML and errors about them. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "backend/real/metadata.h"
#include "backend/real/metadata-xml.h"
#include "util/text.h"

int ebb_metaxml_fail(const struct ebb_metaxml *x, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return ebb_err_set(x->err, -EINVAL, "domain %s: %s",
			   x->domain[0] ? ebb_text_label(x->domain, EBB_LABEL_MOST).text : "?",
			   text);
}

static int parse_number(const char *text, uint64_t *ret)
{
	uint64_t n = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		n = n * 10 + (*text - '0');
		if (n > UINT32_MAX)
			return -EINVAL;
	}
	*ret = n;
	return 0;
}

xmlNode *ebb_metaxml_child(xmlNode *n, const char *name)
{
	for (xmlNode *c = n ? n->children : NULL; c; c = c->next)
		if (c->type == XML_ELEMENT_NODE && !c->ns &&
		    strcmp((const char *)c->name, name) == 0)
			return c;
	return NULL;
}

xmlNode *ebb_metaxml_next(xmlNode *n)
{
	const xmlChar *name = n->name;

	while ((n = n->next))
		if (n->type == XML_ELEMENT_NODE &&
		    strcmp((const char *)n->name, (const char *)name) == 0)
			return n;
	return NULL;
}

bool ebb_metaxml_has_value(xmlNode *n, const char *attribute, const char *value)
{
	xmlChar *text = xmlGetNoNsProp(n, (const xmlChar *)attribute);
	bool same = text && strcmp((const char *)text, value) == 0;

	xmlFree(text);
	return same;
}

int ebb_metaxml_kib(xmlNode *n, const char *attribute, uint64_t *ret_bytes)
{
	xmlChar *unit = xmlGetNoNsProp(n, (const xmlChar *)"unit");
	xmlChar *text = attribute ? xmlGetNoNsProp(n, (const xmlChar *)attribute) :
				    xmlNodeGetContent(n);
	const char *at = (const char *)text;
	bool is_good = at && *at && (!unit || strcmp((const char *)unit, "KiB") == 0);
	uint64_t kib = 0;

	for (; is_good && *at; at++) {
		is_good = *at >= '0' && *at <= '9' && kib < (1ull << 50) / 10;
		kib = kib * 10 + (uint64_t)(*at - '0');
	}
	xmlFree(unit);
	xmlFree(text);
	if (!is_good)
		return -EINVAL;
	*ret_bytes = kib << 10;
	return 0;
}

int ebb_metaxml_number(const struct ebb_metaxml *x, xmlNode *n, const char *what,
		       const char *attribute, uint32_t min, uint32_t max, int64_t missing,
		       uint32_t *ret)
{
	xmlChar *text = xmlGetNoNsProp(n, (const xmlChar *)attribute);
	uint64_t value = missing;
	int rc = 0;

	if (!text && missing < 0)
		return ebb_metaxml_fail(x,
					"%s has no attribute %s; allowed: %" PRIu32 " to %" PRIu32,
					what, attribute, min, max);
	if (text ? parse_number((const char *)text, &value) < 0 || value < min || value > max :
		   value < min || value > max)
		rc = ebb_metaxml_fail(
			x, "%s attribute %s=\"%.40s\"%s: allowed: %" PRIu32 " to %" PRIu32, what,
			attribute, text ? (const char *)text : "",
			text ? "" : " (not given, the id)", min, max);
	xmlFree(text);
	if (rc == 0)
		*ret = value;
	return rc;
}

int ebb_metaxml_key(const struct ebb_metaxml *x, xmlNode *n, const char *what,
		    const struct ebb_sla_key *key, uint64_t *ret)
{
	xmlChar *text = n ? xmlGetNoNsProp(n, (const xmlChar *)key->attribute) : NULL;
	char allowed[EBB_TEXT_SIZE];
	int rc = text ? 1 : 0;

	if (text && ebb_sla_value(key, (const char *)text, ret) < 0) {
		ebb_sla_allowed(key, allowed);
		rc = ebb_metaxml_fail(x, "%s attribute %s=\"%.40s\": allowed: %s", what,
				      key->attribute, (const char *)text, allowed);
	}
	xmlFree(text);
	return rc;
}

int ebb_metaxml_sla(const struct ebb_metaxml *x, xmlNode *n, const char *what,
		    enum ebb_sla_part part, struct ebb_sla *ret_sla)
{
	const struct ebb_sla_key *key;

	for (size_t i = 0; (key = ebb_sla_key_at(i)); i++) {
		uint64_t value = key->missing;

		if (key->part != part)
			continue;
		if (ebb_metaxml_key(x, n, what, key, &value) < 0)
			return -EINVAL;
		ebb_sla_put(ret_sla, key, value);
	}
	return 0;
}

static bool is_named(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

bool ebb_metaxml_is_ours(const xmlNode *n)
{
	return n->ns && strcmp((const char *)n->ns->href, EBB_METADATA_URI) == 0;
}

int ebb_metaxml_shape(const struct ebb_metaxml *x, xmlNode *n, const char *const *names,
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
		if (!ebb_metaxml_is_ours(c) || !is_named(children, (const char *)c->name)) {
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
