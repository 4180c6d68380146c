/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See rows.h. */
#include <stdio.h>
#include <string.h>
#include "cli/rows.h"
#include "cli/when.h"

const json_t *row_get(const json_t *row, const char *key)
{
	const char *dot = strchr(key, '.');
	char first[32];

	if (!dot)
		return json_object_get(row, key);
	snprintf(first, sizeof(first), "%.*s", (int)(dot - key), key);
	return json_object_get(json_object_get(row, first), dot + 1);
}

static const char *text_of(const json_t *row, const char *key)
{
	const char *text = json_string_value(row_get(row, key));

	return text ? text : "";
}

void row_text(struct table *t, const json_t *row, const char *key)
{
	table_add(t, "%s", text_of(row, key));
}

void row_name(struct table *t, const json_t *row, const char *key)
{
	table_add_name(t, text_of(row, key));
}

void row_int(struct table *t, const json_t *row, const char *key)
{
	table_add(t, "%lld", json_integer_value(row_get(row, key)));
}

void row_mib(struct table *t, const json_t *row, const char *key)
{
	table_add(t, "%lld", json_integer_value(row_get(row, key)) >> 20);
}

void row_tenths(struct table *t, const json_t *row, const char *key)
{
	table_add(t, "%.1f", json_number_value(row_get(row, key)));
}

void row_when(struct table *t, const json_t *row, const char *key)
{
	char when[WHEN_SIZE];

	when_print(json_number_value(row_get(row, key)), when);
	table_add(t, "%s", when);
}

static void add_if(struct table *t, const json_t *row, const char *key,
		   void (*add)(struct table *t, const json_t *row, const char *key))
{
	if (json_is_number(row_get(row, key)))
		add(t, row, key);
	else
		table_add(t, "%s", "");
}

void row_int_if(struct table *t, const json_t *row, const char *key)
{
	add_if(t, row, key, row_int);
}

void row_tenths_if(struct table *t, const json_t *row, const char *key)
{
	add_if(t, row, key, row_tenths);
}

void rows_print(const json_t *rows, const struct column *columns)
{
	const char *heads[TABLE_MAX_COLUMNS + 1] = { NULL };
	struct table t;
	json_t *row;
	size_t i;

	for (i = 0; i < TABLE_MAX_COLUMNS && columns[i].head; i++)
		heads[i] = columns[i].head;
	table_init(&t, heads);
	json_array_foreach(rows, i, row)
		for (const struct column *c = columns; c->head; c++)
			c->add(&t, row, c->key);
	table_print(&t, 0);
	table_finish(&t);
}
