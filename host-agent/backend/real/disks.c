/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See disks.h. */
#include <fcntl.h>
#include <libxml/parser.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/real/disks.h"
#include "backend/real/metadata-xml.h"

static uint64_t size_of(const char *path)
{
	struct stat st;
	off_t end;
	int fd;

	if (path[0] != '/' || stat(path, &st) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return (uint64_t)st.st_size;
	if (!S_ISBLK(st.st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return 0;
	end = lseek(fd, 0, SEEK_END);
	close(fd);
	return end > 0 ? (uint64_t)end : 0;
}

/* libvirt's default is a disk; a CD or floppy is not copied, and its contents are no database. */
static bool is_disk(xmlNode *n)
{
	return !xmlHasProp(n, (const xmlChar *)"device") ||
	       ebb_metaxml_has_value(n, "device", "disk") ||
	       ebb_metaxml_has_value(n, "device", "lun");
}

static uint64_t size_of_source(xmlNode *source, const char *attribute)
{
	xmlChar *path = source ? xmlGetNoNsProp(source, (const xmlChar *)attribute) : NULL;
	const uint64_t size = path ? size_of((const char *)path) : 0;

	xmlFree(path);
	return size;
}

uint64_t ebb_disks_size(const char *xml)
{
	xmlDoc *doc = xmlReadMemory(xml, (int)strlen(xml), "domain.xml", NULL,
				    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	xmlNode *devices;
	uint64_t sum = 0;

	if (!doc)
		return 0;
	devices = ebb_metaxml_child(xmlDocGetRootElement(doc), "devices");
	for (xmlNode *n = ebb_metaxml_child(devices, "disk"); n; n = ebb_metaxml_next(n))
		if (is_disk(n)) {
			xmlNode *source = ebb_metaxml_child(n, "source");

			sum += size_of_source(source, "file") + size_of_source(source, "dev");
		}
	xmlFreeDoc(doc);
	return sum;
}
