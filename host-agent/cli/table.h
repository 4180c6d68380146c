/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables with columns as wide as they need to be. */
#ifndef EBB_CLI_TABLE_H
#define EBB_CLI_TABLE_H

#include <stddef.h>

#define TABLE_MAX_COLUMNS	16

struct table {
	size_t num_columns;
	const char *names[TABLE_MAX_COLUMNS]; /* a leading '>' aligns the column to the right */
	char **cells;
	size_t num_cells, size_cells;
};

/* names ends with NULL. */
void table_init(struct table *t, const char *const *names);
void table_finish(struct table *t);

/* The next cell of the current row; "" is printed as "-". */
void table_add(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A VM's name, shortened if it is long. */
void table_add_name(struct table *t, const char *name);

/* With at most `columns` characters in a line (0: as many as there are). */
void table_print(const struct table *t, size_t columns);

#endif
