/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attributes of the domain XML and errors about them; private to metadata*.c. */
#ifndef EBB_IO_METADATA_XML_H
#define EBB_IO_METADATA_XML_H

#include <libxml/tree.h>
#include <stdint.h>
#include "model/sla.h"
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

/*
 * One attribute of model/sla.h of n, which errors call `what`.  1; 0: n is NULL or has no such
 * attribute; -EINVAL.
 */
int ebb_metaxml_key(const struct ebb_metaxml *x, xmlNode *n, const char *what,
		    const struct ebb_sla_key *key, uint64_t *ret);

/* All attributes of a part of the SLA; n may be NULL: all have their defaults. */
int ebb_metaxml_sla(const struct ebb_metaxml *x, xmlNode *n, const char *what,
		    enum ebb_sla_part part, struct ebb_sla *ret_sla);

/*
 * Every attribute of n must be one of the names; every child an element of ours of one of the names
 * `children`, or blank.  Both lists end with NULL.
 */
int ebb_metaxml_shape(const struct ebb_metaxml *x, xmlNode *n, const char *const *names,
		      const char *const *children);

/* It is in our namespace. */
bool ebb_metaxml_is_ours(const xmlNode *n);

/* The first element below n of that name without a namespace; the next of n's name; or NULL. */
xmlNode *ebb_metaxml_child(xmlNode *n, const char *name);
xmlNode *ebb_metaxml_next(xmlNode *n);

bool ebb_metaxml_has_value(xmlNode *n, const char *attribute, const char *value);

/*
 * The text of an element, or of its attribute, as a number of KiB, which is what libvirt writes
 * whatever unit was defined.  -EINVAL: no number, another unit, or above 2^60 bytes.
 */
int ebb_metaxml_kib(xmlNode *n, const char *attribute, uint64_t *ret_bytes);

#endif
