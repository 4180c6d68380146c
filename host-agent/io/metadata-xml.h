/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attributes of the domain XML and errors about them; private to metadata*.c. */
#ifndef EBB_IO_METADATA_XML_H
#define EBB_IO_METADATA_XML_H

#include <libxml/tree.h>
#include <stdint.h>
#include "ebb/types.h"
#include "util/err.h"

struct ebb_metaxml {
	char domain[EBB_NAME_SIZE];
	struct ebb_err *err;
};

/* Returns -EINVAL, with the error "domain NAME: ...". */
int ebb_metaxml_fail(const struct ebb_metaxml *x, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * A decimal attribute of n, which the error calls `what`.  missing: its value when it is not there,
 * or -1: then it must be there.
 */
int ebb_metaxml_number(const struct ebb_metaxml *x, xmlNode *n, const char *what,
		       const char *attribute, uint32_t min, uint32_t max, int64_t missing,
		       uint32_t *ret);

#endif
