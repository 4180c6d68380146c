/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A table with ordered indexes, and what is in it, for tests. */
#ifndef ORDERED_RIG_H
#define ORDERED_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/txn/engine.h"

/* Rows are found by primary key, by group (many rows have the same), and by number (unique). */
struct ordered_row {
	uint64_t group;
	uint64_t number;
	uint64_t value;
};

struct ordered_rig {
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_index *by_key, *by_group, *by_number;
	struct oltp_worker *w, *other;
};

/* The indexes above for a table whose records begin with a struct ordered_row. */
void ordered_rig_indexes(struct ordered_rig *rig);

void ordered_rig_open(struct ordered_rig *rig, const struct oltp_config *config);

/* Both workers and the engine. */
void ordered_rig_close(struct ordered_rig *rig);

enum oltp_rc ordered_insert_row(struct oltp_worker *w, struct oltp_table *table, uint64_t key,
				uint64_t group, uint64_t number);

/* One row in a transaction of its own. */
void ordered_add_row(struct ordered_rig *rig, uint64_t key, uint64_t group, uint64_t number);

#define ORDERED_SEEN_MAX	4096u

/* What a scan showed. */
struct ordered_seen {
	uint32_t n;
	uint32_t stop_after;	/* end the scan there; 0: never */
	struct {
		uint64_t sort, key;
		struct ordered_row row;
	} rows[ORDERED_SEEN_MAX];
};

enum oltp_rc ordered_scan(struct oltp_worker *w, struct oltp_index *index,
			  const struct oltp_range *range, struct ordered_seen *seen);

/* All of an index, in a transaction of its own: the number of rows; fails unless in order. */
uint32_t ordered_count(struct ordered_rig *rig, struct oltp_index *index);

#endif
