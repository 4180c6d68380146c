/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A result, as one JSON object or as a table for people. The caller adds named fields, once, and
 * need not know which of the two they become.
 */
#ifndef BENCH_FIELDS_H
#define BENCH_FIELDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FIELDS_DEPTH_MAX	4u	/* objects in objects; a table names no deeper ones */

enum fields_style {
	FIELDS_JSON,	/* one line, ends with the object */
	FIELDS_TABLE,	/* a line for each field: name, dots for objects, value */
};

struct fields {
	FILE *out;
	enum fields_style style;
	uint32_t depth;
	bool has_some;				/* JSON: of the object that is open */
	const char *names[FIELDS_DEPTH_MAX];	/* of the objects that are open */
};

void fields_begin(struct fields *fields, FILE *out, enum fields_style style);
void fields_end(struct fields *fields);

/* Names are not escaped: letters, digits and underscores. They must live until the object ends. */
void fields_object_begin(struct fields *fields, const char *name);
void fields_object_end(struct fields *fields);

void fields_u64(struct fields *fields, const char *name, uint64_t value);
void fields_i64(struct fields *fields, const char *name, int64_t value);

/* With so many decimals; what is not finite becomes null. */
void fields_number(struct fields *fields, const char *name, uint32_t decimals, double value);

/* As short as it can be written (%g). */
void fields_short(struct fields *fields, const char *name, double value);
void fields_bool(struct fields *fields, const char *name, bool value);
void fields_null(struct fields *fields, const char *name);

/* Quotes, backslashes and control characters are escaped in JSON. */
void fields_text(struct fields *fields, const char *name, const char *value);

#endif
