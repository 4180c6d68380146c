/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attributes of the domain XML and errors about them. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "io/metadata-xml.h"

int ebb_metaxml_fail(const struct ebb_metaxml *x, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return ebb_err_set(x->err, -EINVAL, "domain %s: %s", x->domain[0] ? x->domain : "?", text);
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
