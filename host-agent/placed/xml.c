/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See xml.h. */
#include <string.h>
#include "placed/xml.h"

bool pxml_is(const xmlNode *n, const char *name)
{
	return n->type == XML_ELEMENT_NODE && strcmp((const char *)n->name, name) == 0;
}

const char *pxml_get(const xmlNode *n, const char *key)
{
	for (const xmlAttr *a = n->properties; a; a = a->next)
		if (strcmp((const char *)a->name, key) == 0)
			return a->children && a->children->content ?
			       (const char *)a->children->content : "";
	return "";
}

bool pxml_true(const xmlNode *n, const char *key)
{
	return strcmp(pxml_get(n, key), "true") == 0;
}

xmlNode *pxml_child(xmlNode *parent, const char *name)
{
	for (xmlNode *n = parent ? parent->children : NULL; n; n = n->next)
		if (pxml_is(n, name))
			return n;
	return NULL;
}

void pxml_each(xmlNode *parent, const char *name, void (*fn)(void *ctx, xmlNode *n),
		     void *ctx)
{
	for (xmlNode *n = parent ? parent->children : NULL; n; n = n->next) {
		if (pxml_is(n, name))
			fn(ctx, n);
		pxml_each(n, name, fn, ctx);
	}
}
