/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks over all records of a keyspace in which nothing runs. */
#ifndef KV_AUDIT_H
#define KV_AUDIT_H

#include "oltp-engine/server/kv/kv.h"

/*
 * Fails the test unless:
 *   - slots from a row's home to its own are taken, and marked (N1 in keyspace.h)
 *   - no name is there twice within its owner
 *   - a row has its record in the one class table that it says, and no other record is there
 *   - a hash has as many fields as it says; fields of no hash are those of a dead one
 *   - the number of keys, in memory and in the database, is that of the rows
 */
void kv_audit(struct kv *kv);

#endif
