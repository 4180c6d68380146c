/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * oltp_place.h - reads cold records of another engine from its volume: the owner of a record says
 * where the record lies, and a node that can read the owner's device reads it there. Included by
 * oltp.h.
 *
 * A place is a hint, not a promise: the owner may use the extent for other records at any time.
 * Each read checks the record's checksum, which covers the key, the extent, how often the extent
 * was written, and which opening of the volume wrote it. So a read gives the very record that the
 * place was made for, or an error.
 */
#ifndef OLTP_PLACE_H
#define OLTP_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct oltp_place {
	uint64_t offset;	/* bytes from the start of the owner's volume */
	uint64_t seed;		/* of the record's checksum */
};

/*
 * Where a record lies in the engine's volume. In a running transaction, which does not lock the
 * record: the caller makes sure that nobody changes it, and for how long the place counts.
 * OLTP_NOT_FOUND: the record has no place (it is in memory, or in a checkpoint, or missing; or the
 * engine keeps no cold records in a volume): oltp_txn_read reads it. OLTP_INVALID: no transaction
 * runs. The extent is kept for a second, unless the engine has no other one for records that have
 * to go to disk.
 */
enum oltp_rc oltp_txn_place(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
			    struct oltp_place *ret_place);

/* Reads one batch of places at a time. For one thread at a time. */
struct oltp_places;

/*
 * volume: the owner's device or file, as this machine sees it. Errors: those of open(2); -EINVAL:
 * no O_DIRECT there; those of io_uring_setup(2); -ENOMEM.
 */
int oltp_places_open(const char *volume, struct oltp_places **ret_places);

/* Waits for reads that are under way. Accepts NULL. */
void oltp_places_close(struct oltp_places *places);

#define OLTP_PLACE_RECORD_MAX	65536u

struct oltp_place_read {
	struct oltp_place place;
	uint32_t bytes;		/* of the record: the length of its table's, 1 to RECORD_MAX */
	/* Once it has ended: */
	int rc;			/* 0, -EBADMSG (another record is there), or an error of the disk */
	const void *record;	/* with rc 0; valid until the next begin, and close */
};

/*
 * Starts n reads, which stay the caller's and must not move until all have ended. Errors: -EBUSY
 * (the last batch has not ended), -EINVAL (bytes), -ENOMEM.
 */
int oltp_places_begin(struct oltp_places *places, struct oltp_place_read *reads, uint32_t n);

/* True: all reads of the batch have ended. wait: until then. */
bool oltp_places_poll(struct oltp_places *places, bool wait);

#endif
