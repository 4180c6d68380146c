/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unit.h - the keys of one unit as bytes, for another keyspace with the same secret: read there,
 * put here, removed ("Downtime-Free Live Migration", 2.2). The caller has the unit's gate closed,
 * so that no command runs on the unit meanwhile. Each call runs transactions of its own on the
 * caller's worker, and waits for the disk where records are cold; kv_unit_read_part and
 * kv_unit_remove_some do not.
 *
 * Records that are put are new here: they get a stamp and, for hashes, an id of this database. So a
 * key that a WATCH has seen before counts as changed.
 */
#ifndef OLTP_KV_UNIT_H
#define OLTP_KV_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oltp-engine/server/kv/cold_reads.h"
#include "oltp-engine/server/kv/kv.h"
#include "oltp-engine/server/kv/record.h"

/*
 * Reads a unit in parts of a few dozen records, so that a unit of any size needs the memory of one
 * part, and the reader can do something else between two parts. The unit must not change from begin
 * to end.
 *
 *   kv_unit_read_begin -> kv_unit_read_part until it returns 0 -> kv_unit_read_end
 *
 * begin: its transactions run on the worker of reads. Errors: -ENOMEM. part: calls fn for each
 * record, in an order in which they can be put; non-zero ends it and is returned. Returns 1 if
 * there is more, 0 if that was all, -EAGAIN if it has met cold records: fn was not called, and the
 * same part is to be read again once the reader does not wait for the disk any more. Errors:
 * -ENOMEM, -EIO. waits: whether it waits for the disk; changes in kv_cold_reads_poll and when other
 * readers of reads go on. end: also while it waits; accepts NULL.
 */
struct kv_unit_reader;
int kv_unit_read_begin(struct kv *kv, struct kv_cold_reads *reads, uint32_t unit,
		       struct kv_unit_reader **ret_reader);
int kv_unit_read_part(struct kv_unit_reader *reader,
		      int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx);
bool kv_unit_read_waits(const struct kv_unit_reader *reader);

/*
 * Between begin and the first part: values that are on the engine's volume are not read, their
 * records refer to them.
 */
void kv_unit_read_refer(struct kv_unit_reader *reader);
void kv_unit_read_end(struct kv_unit_reader *reader);

/* All parts; waits for the disk. fn must return 0 or -errno. Errors: those of begin and part. */
int kv_unit_read(struct kv *kv, struct oltp_worker *worker, uint32_t unit,
		 int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx);

/* Of records of one unit that come in several calls; all 0 at first. */
struct kv_unit_put {
	uint64_t hash;		/* fields to come are of this one */
	uint64_t fields_left;
};

/*
 * Puts whole records of the unit, none of which is there, each KV_UNIT_PUTS of them in one
 * transaction. Errors: -EPROTO (not such bytes, not of this unit, or one refers), -EEXIST (one is
 * there), -ENOMEM, -EIO: if there were more, some were put, and kv_unit_remove_part removes them.
 */
#define KV_UNIT_PUTS	64u
int kv_unit_put(struct kv *kv, struct oltp_worker *worker, uint32_t unit, struct kv_unit_put *put,
		const uint8_t *records, size_t bytes);

/*
 * Removes some keys of the unit, in one transaction. Returns 1 if there may be more, 0 if there are
 * none. Errors: -ENOMEM, -EIO.
 */
int kv_unit_remove_part(struct kv *kv, struct oltp_worker *worker, uint32_t unit);

/*
 * The same on the worker of reads, but waits for no disk: -EAGAIN if it has met cold records, which
 * are being read then. To be called again once wait, which is the caller's, does not wait any more
 * (kv_cold_waits). Any other result ends what wait stands for.
 */
int kv_unit_remove_some(struct kv *kv, struct kv_cold_reads *reads, struct kv_cold_wait *wait,
			uint32_t unit);

/*
 * The keyspace of another node, in an engine that may be read only: kv_unit_read is all that may be
 * called of it.
 *
 *   kv_open_peer -> [other tables] -> oltp_recover -> kv_start_peer -> kv_unit_read -> kv_close
 *
 * kv_open_peer makes the tables of kv_open, for what own was opened for; errors: those of kv_open.
 * kv_start_peer changes nothing; errors: -ENODATA (kv_start never ran there), -EUCLEAN (as
 * kv_start; or own has another secret), -ENOMEM, -EIO.
 */
int kv_open_peer(const struct kv *own, struct oltp_engine *engine, struct kv **ret_kv);
int kv_start_peer(struct kv *peer, struct oltp_worker *worker, const struct kv *own);

/*
 * The unit may have been elsewhere: for a WATCH before, a key that was not there and is not there
 * now may have come and gone. Before the unit's gate opens.
 */
void kv_unit_returns(struct kv *kv, uint32_t unit);

/* The secret of the hash, see K4. After kv_start. */
void kv_secret(const struct kv *kv, uint64_t ret_secret[2]);

/*
 * Takes another's secret, which is on disk then; before the first session. Errors: -EEXIST (there
 * are keys), -ENOMEM, -EIO.
 */
int kv_set_secret(struct kv *kv, struct oltp_worker *worker, const uint64_t secret[2]);

#endif
