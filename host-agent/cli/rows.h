/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of what ebbd and ebb-volumed answer: a row for each object of a JSON array. */
#ifndef EBB_CLI_ROWS_H
#define EBB_CLI_ROWS_H

#include <jansson.h>
#include "cli/table.h"

struct column {
	const char *head;		/* as in table.h */
	/* Adds one cell; key: that of the column. */
	void (*add)(struct table *t, const json_t *row, const char *key);
	/* A member of the row, or with one dot a member of that: "telemetry.workers". */
	const char *key;
};

/* columns end with a head of NULL. */
void rows_print(const json_t *rows, const struct column *columns);

/* The member of a row; NULL: not there. */
const json_t *row_get(const json_t *row, const char *key);

/* Ways to show a member.  One that is not there is "" as text and name, and 0 as a number, */
void row_text(struct table *t, const json_t *row, const char *key);
void row_name(struct table *t, const json_t *row, const char *key);	/* shortened if long */
void row_int(struct table *t, const json_t *row, const char *key);
void row_mib(struct table *t, const json_t *row, const char *key);	/* of bytes */
void row_tenths(struct table *t, const json_t *row, const char *key);
void row_when(struct table *t, const json_t *row, const char *key);	/* a time as text */
/* but with these the cell is empty; so it is for null. */
void row_int_if(struct table *t, const json_t *row, const char *key);
void row_tenths_if(struct table *t, const json_t *row, const char *key);

#endif
