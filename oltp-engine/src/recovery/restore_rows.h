/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows that are being put together: the last that checkpoint and log say of some keys. Pure, but
 * for the memory that they take.
 */
#ifndef OLTP_RESTORE_ROWS_H
#define OLTP_RESTORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oltp_table;

struct restore_row {
	struct oltp_table *table;	/* NULL: the place is free */
	uint64_t key;
	uint8_t *data;		/* NULL: there is no such row */
	bool is_missing;	/* there was none when it was updated, see recover_redo.h */
};

/* All zero: empty. */
struct restore_rows {
	struct restore_row *places;	/* open addressing; room is a power of two */
	size_t n, room;
};

/* What a row takes, about. */
uint64_t restore_row_bytes(const struct oltp_table *table);

/*
 * As in recover_redo.h. Errors: -ENOMEM, -EUCLEAN (the spans do not fit the table).
 */
int restore_rows_put(struct restore_rows *rows, struct oltp_table *table, uint64_t key,
		     const void *row);
int restore_rows_update(struct restore_rows *rows, struct oltp_table *table, uint64_t key,
			const uint8_t *spans, uint32_t n_spans, size_t bytes);
int restore_rows_remove(struct restore_rows *rows, struct oltp_table *table, uint64_t key);

/* After all was said: was one updated that is neither in the checkpoint nor in the log? */
bool restore_rows_has_missing(const struct restore_rows *rows);

void restore_rows_clear(struct restore_rows *rows);

#endif
