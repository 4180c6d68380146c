/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * meta.h - what the database keeps of itself, in a table of its own: the secret of the hash, how
 * often it was started, which ids of hashes were given away, how many keys there are, and which
 * hashes were deleted but still have fields (dead).
 *
 * Ids of hashes and stamps of writes are never given twice, also not after a crash: ids are
 * reserved in the database many at a time, stamps begin with the number of the start.
 */
#ifndef OLTP_KV_META_H
#define OLTP_KV_META_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

/* Each worker thread counts keys in a record of its own, so that they do not meet there. */
#define META_COUNTERS		64u

struct meta {
	struct oltp_table *table;
	struct oltp_index *order;
	_Atomic int64_t n_dead;		/* hashes to be reaped: raised with each one, see run.c */
	_Atomic bool is_reaping;	/* one worker at a time */
	/* What is above is read with every command; what is below is written with many. */
	uint8_t apart[64];
	_Atomic uint64_t next_stamp;
	_Atomic uint64_t next_id, ids_end;	/* ids reserved and not given away yet */
	_Atomic int64_t n_keys;			/* as committed */
	uint8_t apart_too[64];
};

int meta_open(struct meta *meta, struct oltp_engine *engine);

/*
 * See kv_start; ret_secret is that of the database. Runs and commits transactions.
 */
int meta_start(struct meta *meta, struct oltp_worker *worker, uint32_t hash_bits,
	       uint64_t ret_secret[2]);

/*
 * The secret of a database that may be read only; changes nothing. Errors: -ENODATA (none was
 * made), -EUCLEAN (as kv_start), -ENOMEM, -EIO.
 */
int meta_read(struct meta *meta, struct oltp_worker *worker, uint32_t hash_bits,
	      uint64_t ret_secret[2]);

/*
 * One attempt at one transaction of its own: another secret, of an empty database. OLTP_EXISTS:
 * there are keys, or dead hashes.
 */
enum oltp_rc meta_set_secret(struct meta *meta, struct oltp_worker *worker,
			     const uint64_t secret[2]);

/* Stamps: n that nobody else gets; returns the first. */
uint64_t meta_stamps(struct meta *meta, uint32_t n);

/* True: meta_reserve_ids is to be called before a transaction that makes hashes. */
bool meta_lacks_ids(const struct meta *meta);

/* One attempt at one transaction of its own. OLTP_FULL: all ids there are have been given away. */
enum oltp_rc meta_reserve_ids(struct meta *meta, struct oltp_worker *worker);

/* False: none is reserved; the transaction is to be run again after meta_reserve_ids. */
bool meta_take_id(struct meta *meta, uint64_t *ret_id);

/* In a transaction: so many keys were added or, if negative, removed. */
enum oltp_rc meta_count_keys(struct meta *meta, struct oltp_worker *worker, int64_t n);

/* In a transaction: the hash has died, its fields are still there; it has none any more. */
enum oltp_rc meta_dead_add(struct meta *meta, struct oltp_worker *worker, uint64_t id);
enum oltp_rc meta_dead_remove(struct meta *meta, struct oltp_worker *worker, uint64_t id);

/* In a transaction: one dead hash, or *ret_id 0. */
enum oltp_rc meta_dead_first(struct meta *meta, struct oltp_worker *worker, uint64_t *ret_id);

#endif
