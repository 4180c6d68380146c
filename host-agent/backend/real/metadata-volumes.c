/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * <disk type='network'><source protocol='nbd' name='VOLUME'><host transport='unix' socket='...'/>.
 * libvirt has checked these against its schema.
 */
#include <errno.h>
#include <libxml/parser.h>
#include <string.h>
#include "backend/real/metadata.h"
#include "backend/real/metadata-xml.h"
#include "model/sla-io.h"

static void add(struct ebb_vm_volumes *v, const char *name)
{
	/* The volume server has no volume of another name. */
	if (!ebb_volume_name_usable(name))
		return;
	for (uint16_t i = 0; i < v->num; i++)
		if (strcmp(v->names[i], name) == 0)
			return;
	if (v->num == EBB_MAX_VOLUMES)
		v->num_more++;
	else
		ebb_volume_name_copy(v->names[v->num++], name);
}

static void add_disk(xmlNode *disk, const char *nbd_socket, struct ebb_vm_volumes *v)
{
	xmlNode *source = ebb_metaxml_child(disk, "source");
	xmlNode *host = ebb_metaxml_child(source, "host");
	xmlChar *name;

	if (!host || !ebb_metaxml_has_value(source, "protocol", "nbd") ||
	    !ebb_metaxml_has_value(host, "transport", "unix") ||
	    !ebb_metaxml_has_value(host, "socket", nbd_socket))
		return;
	name = xmlGetNoNsProp(source, (const xmlChar *)"name");
	if (name)
		add(v, (const char *)name);
	xmlFree(name);
}

int ebb_metadata_volumes(const char *xml, const char *nbd_socket, struct ebb_vm_volumes *ret)
{
	xmlDoc *doc = xmlReadMemory(xml, (int)strlen(xml), "domain.xml", NULL,
				    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	xmlNode *devices;

	if (!doc)
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	devices = ebb_metaxml_child(xmlDocGetRootElement(doc), "devices");
	for (xmlNode *n = ebb_metaxml_child(devices, "disk"); n; n = ebb_metaxml_next(n))
		add_disk(n, nbd_socket, ret);
	xmlFreeDoc(doc);
	return 0;
}
