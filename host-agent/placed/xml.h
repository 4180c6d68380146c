/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looking at elements of XML that Pacemaker's tools print; pure. */
#ifndef EBB_PLACED_XML_H
#define EBB_PLACED_XML_H

#include <libxml/tree.h>
#include <stdbool.h>

bool pxml_is(const xmlNode *n, const char *name);

/* "" if it is not there; valid as long as the document. */
const char *pxml_get(const xmlNode *n, const char *key);
bool pxml_true(const xmlNode *n, const char *key);

/* The first one directly below, NULL: none; parent may be NULL. */
xmlNode *pxml_child(xmlNode *parent, const char *name);

/* Calls fn for each element of that name anywhere below; parent may be NULL. */
void pxml_each(xmlNode *parent, const char *name, void (*fn)(void *ctx, xmlNode *n),
		     void *ctx);

#endif
