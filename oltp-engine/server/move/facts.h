/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * facts.h - what a node has on disk of the units (the table of records in docs/relocation.md): rows
 * of a table of the same engine, so that its log has facts and records in one order. For one thread
 * with a worker of its own.
 */
#ifndef OLTP_MOVE_FACTS_H
#define OLTP_MOVE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/relocate/units.h"
#include "oltp.h"

struct facts {
	struct oltp_engine *engine;
	struct oltp_table *table;
	uint32_t n_units;
};

/* Of which relocation SHARED, TAKEN, GAVE and CLOSED speak. */
struct facts_role {
	uint64_t relocation;	/* its number; 0: there was none */
	bool is_source;		/* this node is the one that the database leaves */
};

/* Makes the table; before oltp_recover. Errors: those of oltp_table_create. */
int facts_open(struct facts *facts, struct oltp_engine *engine, uint32_t n_units);

struct facts_found {
	enum units_was was;
	uint32_t n_units;	/* that the facts are of */
	uint64_t incarnation;	/* of the last start; 0: this is the first */
	struct facts_role role;	/* of the relocation that goes on, or of the last one */
};

/*
 * list: gen and is_mine of each unit. Of a database without facts: a target has nothing, all others
 * have all. An older program wrote facts of fewer, larger units: each of the new units is as the
 * old one was that it is a part of. Errors: -EUCLEAN (other facts, or of a number that does not
 * divide n_units), -EIO.
 */
int facts_read(struct facts *facts, struct oltp_worker *worker, bool is_target, struct unit *list,
	       struct facts_found *ret_found);

/*
 * Writes the next incarnation, with all units if the facts were of fewer, and waits until that is
 * on disk. Errors: -ENOMEM, -EIO.
 */
int facts_begin(struct facts *facts, struct oltp_worker *worker, const struct unit *list,
		const struct facts_found *found);

/*
 * Another relocation, of which nothing has happened but that a source has offered it; waits until
 * that is on disk. Errors: -ENOMEM, -EIO.
 */
int facts_rename(struct facts *facts, struct oltp_worker *worker, uint64_t relocation);

/*
 * A UNITS_LOG_ action. It is on disk when *ret_epoch is. list: of SHARED, as the units are now;
 * shared_by: of SHARED, the relocation that begins, whose source this node is. Errors: -ENOMEM,
 * -EIO.
 */
int facts_write(struct facts *facts, struct oltp_worker *worker, enum units_do what,
		uint32_t unit, uint64_t gen, const struct unit *list, uint64_t shared_by,
		uint64_t *ret_epoch);

#endif
