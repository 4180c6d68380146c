/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keyspace.h - rows under names, on the tables of the engine. Knows no command and no reply.
 *
 * A row is a key of the database, or a field of a hash. Its name is unique within its owner: 0 for
 * keys, the id of the hash for fields. The row is a record of the main table under a slot: the
 * SipHash of owner and name, or, if rows of other names are there, one of the slots that follow.
 *
 *   N1  A row of home h (the hash) in slot s: all slots from h to s - 1 are taken, and their rows
 *       have the mark more. So a search ends at the first free slot and at the first row without
 *       the mark.
 *   N2  A row with the mark that is removed becomes GONE: its slot stays taken. A new row may take
 *       it over, mark included.
 *   N3  Rows never change their slots.
 *   N4  A key belongs, with the fields of its hash, to the unit that the first bits of its home
 *       name. Its slot has the same first bits: the next ones after a home at the very end of a
 *       unit are another unit's, but with 64 bits of hash two names never meet there.
 *
 * Short names and values are in the row itself. What does not fit is in one record of a class table
 * (the smallest one that holds it) under the row's slot: the value, and before it the name if not
 * even that fits.
 *
 * One ordered index of the main table (keyspace_sort_key) has the keys in order of their slots, and
 * the fields of each hash next to each other.
 *
 * Functions return what the engine's do (oltp.h). OLTP_NOT_FOUND is never returned: see struct
 * found.
 */
#ifndef OLTP_KV_KEYSPACE_H
#define OLTP_KV_KEYSPACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/server/kv/kv.h"
#include "oltp-engine/server/resp/parse.h"
#include "oltp.h"

#define ROW_BODY_BYTES		88u
#define KEYSPACE_CLASSES	7u	/* tables for what does not fit into a row */
#define KEYSPACE_TIES		16u	/* rows with the same sort key that one scan allows for */

#define OWNER_BITS		43u
#define OWNER_KEYS		0u
#define OWNER_GONE		((1ull << OWNER_BITS) - 1)	/* of rows of type GONE */
/* Of a field's slot, its first bits are in the sort key. */
#define FIELD_SORT_BITS		20u

enum row_type {
	ROW_GONE = 0,	/* no row: N2 */
	ROW_STRING = 1,
	ROW_HASH = 2,
	ROW_FIELD = 3,
};

/* Of a hash, in the last bytes of its row's body. */
struct hash_head {
	uint64_t id;		/* owner of its fields; no two hashes ever have the same */
	uint64_t n_fields;	/* at least 1 */
};

/* As on disk, in the byte order of the machine, like all records of the engine. */
struct row {
	uint64_t owner;
	uint64_t stamp;		/* of the last write: no two writes have the same, for WATCH */
	uint16_t name_bytes;
	uint16_t value_bytes;	/* 0 of a hash */
	uint8_t type;		/* enum row_type */
	uint8_t place;		/* 0: all is in the body; else 1 + number of the class table */
	uint8_t more;		/* 0 or 1, see N1 */
	uint8_t reserved;
	char body[ROW_BODY_BYTES];
};

_Static_assert(sizeof(struct row) == 112, "on disk");

/* 240 bytes, and so on: with the engine's head of 16 bytes whole cache lines. */
extern const uint32_t keyspace_class_bytes[KEYSPACE_CLASSES];

#define KEYSPACE_REMOVAL_BITS	16u

struct keyspace {
	struct oltp_table *rows;
	struct oltp_table *classes[KEYSPACE_CLASSES];
	struct oltp_index *order;
	uint64_t secret[2];	/* set before the first row is looked for */
	uint64_t hash_mask;	/* bits of the hash that are used */
	/*
	 * A bit for each part of the keys, which is set when a row of a key in it has been changed
	 * and is still locked for that. NULL: nobody wants to know. mark_shift: from slot to part.
	 */
	_Atomic(_Atomic uint64_t *) marks;
	uint32_t mark_shift;
	/* For each part of the keys, by the first bits of the slot: see keyspace_removals. */
	_Atomic uint32_t removals[1u << KEYSPACE_REMOVAL_BITS];
};

#define KEYSPACE_MARK_BITS	64u	/* parts in a word of marks */

/*
 * How often keys of the name's part have been removed: a key that was not there at two moments has
 * not been there in between if this is the same, read before the first search, and after the
 * second one, each in its transaction. A removal counts while the row is locked for it: so after
 * the first transaction, if the key was added after that one, and before the second one's search.
 */
uint32_t keyspace_removals(const struct keyspace *ks, const struct resp_arg *name);

/* As if keys of all parts had been removed whose slots begin with the bits of first. */
void keyspace_removals_add(struct keyspace *ks, uint32_t first, uint32_t bits);

/* Errors: those of oltp_table_create and oltp_index_create. */
int keyspace_open(struct keyspace *ks, struct oltp_engine *engine, uint64_t rows,
		  uint64_t long_rows, uint32_t hash_bits);

/* What a search has found; valid until the end of the transaction, or a change of the row. */
struct found {
	uint64_t owner;
	struct resp_arg name;		/* the caller's bytes */
	const struct row *row;		/* NULL: there is none of that name */
	uint64_t slot;			/* of the row */
	bool has_gone;			/* no row: a GONE one was passed, whose slot is */
	uint64_t gone;
};

/* The hash: where the search for a name begins. */
uint64_t keyspace_home(const struct keyspace *ks, uint64_t owner, const struct resp_arg *name);

/* Names have at most KV_NAME_MAX bytes. exclusive: to change the row then. */
enum oltp_rc keyspace_find(struct keyspace *ks, struct oltp_worker *worker, uint64_t owner,
			   const struct resp_arg *name, bool exclusive, struct found *ret_found);

/* The name or the value of a row, in place. Of a hash the value is empty. */
enum oltp_rc keyspace_name(struct keyspace *ks, struct oltp_worker *worker, uint64_t slot,
			   const struct row *row, struct resp_arg *ret_name);
enum oltp_rc keyspace_value(struct keyspace *ks, struct oltp_worker *worker, uint64_t slot,
			    const struct row *row, struct resp_arg *ret_value);

/*
 * How long the record of a class table is that has the value of such a row, and nothing else; 0:
 * the value is in the row, or behind the name.
 */
uint32_t keyspace_value_record_bytes(enum row_type type, uint32_t name_bytes,
				     uint32_t value_bytes);

/*
 * Where such a record is on the engine's volume: as oltp_txn_place. OLTP_NOT_FOUND also if the row
 * has none.
 */
enum oltp_rc keyspace_value_place(const struct keyspace *ks, struct oltp_worker *worker,
				  uint64_t slot, const struct row *row,
				  struct oltp_place *ret_place);

/* Announces what of a row is in a class table (oltp_txn_prefetch). False: there is nothing. */
bool keyspace_hint(const struct keyspace *ks, uint64_t slot, const struct row *row,
		   struct oltp_hint *ret_hint);

enum overwrite {
	OVERWRITE_DONE,		/* the row has the new value */
	OVERWRITE_ABSENT,	/* there is no such row; *ret_found says so */
	OVERWRITE_NO,		/* nothing was changed: use keyspace_find and so on */
};

/* A short value instead of a short one, of a string or field, with one look-up. */
enum oltp_rc keyspace_overwrite(struct keyspace *ks, struct oltp_worker *worker, uint64_t owner,
				enum row_type type, const struct resp_arg *name,
				const struct resp_arg *value, uint64_t stamp,
				struct found *ret_found, enum overwrite *ret_what);

/*
 * A new row: found->row is NULL, and stays so. value: at most KV_VALUE_MAX bytes; of a hash, its
 * struct hash_head. found then has the slot.
 */
enum oltp_rc keyspace_insert(struct keyspace *ks, struct oltp_worker *worker, struct found *found,
			     enum row_type type, const struct resp_arg *value, uint64_t stamp);

/*
 * Another value for a string or field, found with exclusive. value must not point into what is to
 * be replaced. found->row is not to be used afterwards.
 */
enum oltp_rc keyspace_set(struct keyspace *ks, struct oltp_worker *worker, struct found *found,
			  const struct resp_arg *value, uint64_t stamp);

/* Removes the row; found then is as after a search in vain. */
enum oltp_rc keyspace_remove(struct keyspace *ks, struct oltp_worker *worker,
			     struct found *found);

/* Of a row of type HASH. Of found only the slot is used. */
struct hash_head keyspace_hash_head(const struct row *row);
enum oltp_rc keyspace_hash_set_head(struct keyspace *ks, struct oltp_worker *worker,
				    struct found *found, const struct hash_head *head,
				    uint64_t stamp);

/* A found for a row that a scan has shown. name: its own. */
struct found keyspace_found(uint64_t slot, const struct row *row, const struct resp_arg *name);

/* Sort keys: of all keys, from KEYS_FIRST on; of the fields of one hash. */
#define KEYSPACE_KEYS_FIRST	(1ull << 63)
struct oltp_range keyspace_fields(uint64_t owner);

/*
 * Shows rows from a position on until at least count were shown, more only as long as they have the
 * sort key of the last one: then *ret_next is the first position that was not shown; 0: that were
 * all. range: its from and to are the bounds, its from the position. fn gets no GONE row; non-zero
 * ends it, *ret_next is then not set.
 */
struct keyspace_walk {
	int (*fn)(void *ctx, uint64_t slot, const struct row *row);
	void (*restart)(void *ctx);	/* nothing shown so far counts: it begins anew */
	void *ctx;
};
enum oltp_rc keyspace_walk(struct keyspace *ks, struct oltp_worker *worker,
			   const struct oltp_range *range, uint64_t count,
			   const struct keyspace_walk *walk, uint64_t *ret_next);

/* The index line of a key into the cache, for a search to come. */
void keyspace_prefetch(struct keyspace *ks, const struct resp_arg *name);

#endif
