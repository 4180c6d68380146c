/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A record in memory: what indexes find and transactions lock. */
#ifndef OLTP_RECORD_H
#define OLTP_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * A record. It may move, to another place in memory or to disk, while it is exclusively locked and
 * by changing its slot of the index: a thread that found it checks under the lock whether the slot
 * still points there (index_ref_is_live) and looks again if not. The old place stays as it is, with
 * a lock that can be taken, until all transactions have ended that could have found the record
 * there (S3 and S4 in storage.h).
 */
struct record {
	_Atomic uint64_t lock;	/* see lock.h in storage/ */
	_Atomic uint64_t key;	/* written under the exclusive lock, compared without one */
	uint8_t data[];		/* under the lock */
};

#endif
