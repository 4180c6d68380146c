/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Printing tables. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/table.h"
#include "util/text.h"

void table_init(struct table *t, const char *const *names)
{
	memset(t, 0, sizeof(*t));
	while (names[t->num_columns] && t->num_columns < TABLE_MAX_COLUMNS) {
		t->names[t->num_columns] = names[t->num_columns];
		t->num_columns++;
	}
}

void table_finish(struct table *t)
{
	for (size_t i = 0; i < t->num_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	memset(t, 0, sizeof(*t));
}

void table_add(struct table *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	if (t->num_cells == t->size_cells) {
		size_t size = t->size_cells ? t->size_cells * 2 : 64;
		char **cells = reallocarray(t->cells, size, sizeof(*cells));

		if (!cells)
			return;
		t->cells = cells;
		t->size_cells = size;
	}
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	/* A name that a guest or user has chosen must not steer the terminal. */
	for (char *p = text; p && *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	t->cells[t->num_cells++] = text;
}

void table_add_name(struct table *t, const char *name)
{
	table_add(t, "%s", ebb_text_label(name, EBB_LABEL_MOST).text);
}

static const char *cell(const struct table *t, size_t i)
{
	return t->cells[i] && t->cells[i][0] ? t->cells[i] : "-";
}

static bool is_right(const struct table *t, size_t column)
{
	return t->names[column][0] == '>';
}

/* Characters, not bytes, of UTF-8. */
static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void append(char **at, const char *s)
{
	size_t len = strlen(s);

	memcpy(*at, s, len);
	*at += len;
}

static void print_row(const struct table *t, const char *const *row, const size_t *widths,
		      size_t columns)
{
	size_t size = 1;
	char *line, *at;

	for (size_t c = 0; c < t->num_columns; c++)
		size += strlen(row[c]) + widths[c] + 2;
	line = at = malloc(size);
	if (!line)
		return;
	for (size_t c = 0; c < t->num_columns; c++) {
		size_t pad = widths[c] - width(row[c]);
		bool is_last = c + 1 == t->num_columns;

		for (size_t i = 0; is_right(t, c) && i < pad; i++)
			*at++ = ' ';
		append(&at, row[c]);
		for (size_t i = 0; !is_right(t, c) && !is_last && i < pad; i++)
			*at++ = ' ';
		if (!is_last)
			append(&at, "  ");
	}
	*at = '\0';
	for (at = line; columns && *at; at++) {
		if (((unsigned char)*at & 0xc0) == 0x80)
			continue;
		if (columns-- == 1 && at[1]) {
			*at = '\0';
			break;
		}
	}
	puts(line);
	free(line);
}

void table_print(const struct table *t, size_t columns)
{
	size_t widths[TABLE_MAX_COLUMNS] = { 0 }, num_rows = t->num_cells / t->num_columns;
	const char *row[TABLE_MAX_COLUMNS] = { NULL };

	for (size_t c = 0; c < t->num_columns; c++) {
		row[c] = t->names[c] + is_right(t, c);
		widths[c] = width(row[c]);
		for (size_t r = 0; r < num_rows; r++) {
			size_t w = width(cell(t, r * t->num_columns + c));

			if (w > widths[c])
				widths[c] = w;
		}
	}
	print_row(t, row, widths, columns);
	for (size_t r = 0; r < num_rows; r++) {
		for (size_t c = 0; c < t->num_columns; c++)
			row[c] = cell(t, r * t->num_columns + c);
		print_row(t, row, widths, columns);
	}
}
