// SPDX-License-Identifier: GPL-2.0-or-later
/* See fields.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "fields.h"

/* Of names with their objects in a table; longer ones push their values out of line. */
#define TABLE_NAME_WIDTH	34

void fields_begin(struct fields *fields, FILE *out, enum fields_style style)
{
	*fields = (struct fields){ .out = out, .style = style };
	if (style == FIELDS_JSON)
		fputc('{', out);
}

void fields_end(struct fields *fields)
{
	if (fields->style == FIELDS_JSON)
		fputs("}\n", fields->out);
}

static void json_name(struct fields *fields, const char *name)
{
	fprintf(fields->out, "%s\"%s\":", fields->has_some ? "," : "", name);
	fields->has_some = true;
}

static void table_name(const struct fields *fields, const char *name)
{
	int width = 0;

	for (uint32_t i = 0; i < fields->depth && i < FIELDS_DEPTH_MAX; i++)
		width += fprintf(fields->out, "%s.", fields->names[i]);
	width += fprintf(fields->out, "%s", name);
	fprintf(fields->out, "%*s ", width < TABLE_NAME_WIDTH ? TABLE_NAME_WIDTH - width : 0, "");
}

static void put_name(struct fields *fields, const char *name)
{
	if (fields->style == FIELDS_JSON)
		json_name(fields, name);
	else
		table_name(fields, name);
}

static void put_end(const struct fields *fields)
{
	if (fields->style == FIELDS_TABLE)
		fputc('\n', fields->out);
}

void fields_object_begin(struct fields *fields, const char *name)
{
	if (fields->style == FIELDS_JSON) {
		json_name(fields, name);
		fputc('{', fields->out);
		fields->has_some = false;
	}
	if (fields->depth < FIELDS_DEPTH_MAX)
		fields->names[fields->depth] = name;
	fields->depth++;
}

void fields_object_end(struct fields *fields)
{
	fields->depth--;
	if (fields->style == FIELDS_JSON) {
		fputc('}', fields->out);
		fields->has_some = true;
	}
}

void fields_u64(struct fields *fields, const char *name, uint64_t value)
{
	put_name(fields, name);
	fprintf(fields->out, "%" PRIu64, value);
	put_end(fields);
}

void fields_i64(struct fields *fields, const char *name, int64_t value)
{
	put_name(fields, name);
	fprintf(fields->out, "%" PRId64, value);
	put_end(fields);
}

void fields_number(struct fields *fields, const char *name, uint32_t decimals, double value)
{
	if (!isfinite(value)) {
		fields_null(fields, name);
		return;
	}
	put_name(fields, name);
	fprintf(fields->out, "%.*f", (int)decimals, value);
	put_end(fields);
}

void fields_short(struct fields *fields, const char *name, double value)
{
	if (!isfinite(value)) {
		fields_null(fields, name);
		return;
	}
	put_name(fields, name);
	fprintf(fields->out, "%g", value);
	put_end(fields);
}

void fields_bool(struct fields *fields, const char *name, bool value)
{
	put_name(fields, name);
	if (fields->style == FIELDS_JSON)
		fputs(value ? "true" : "false", fields->out);
	else
		fputs(value ? "yes" : "no", fields->out);
	put_end(fields);
}

void fields_null(struct fields *fields, const char *name)
{
	put_name(fields, name);
	fputs(fields->style == FIELDS_JSON ? "null" : "-", fields->out);
	put_end(fields);
}

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
}

void fields_text(struct fields *fields, const char *name, const char *value)
{
	put_name(fields, name);
	if (fields->style == FIELDS_JSON) {
		fputc('"', fields->out);
		put_escaped(fields->out, value);
		fputc('"', fields->out);
	} else {
		fputs(value, fields->out);
	}
	put_end(fields);
}
