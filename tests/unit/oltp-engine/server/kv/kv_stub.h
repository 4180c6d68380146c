/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stands in for the keyspace behind kv.h, so that the front can be tested with commands that do
 * just what a test wants:
 *
 *   ECHO text		the text; no transaction
 *   INC key		one more, in a transaction: the new number
 *   GET key		the number, in a transaction that reads only
 *   BIG n		n bytes
 *   CONFLICT n		meets n conflicts, then "+OK"
 *   LOCKED		meets conflicts as long as the test says so, then "+OK"
 *   COLD		a record that cannot be fetched
 *   WAIT		waits until the test lets it in, then as INC 0, and "+OK"
 *   MEET		waits; then meets conflicts as long as the test says so; then waits again,
 *			and is woken at once
 *   AGAIN n		takes n + 1 transactions
 *   HELLO n		"+OK"; the protocol is of version n from here on
 *   OBSERVE, SERVE	"+OK"; between them the session is an observer's
 *   MULTI, EXEC	"+OK"; between them the session is busy
 *   QUIT		"+OK", and is to be closed
 */
#ifndef KV_STUB_H
#define KV_STUB_H

#include "oltp-engine/server/kv/kv.h"

/* With the table, which has rows for INC from key 0 on. */
struct kv *kv_stub_create(struct oltp_table *table);
void kv_stub_destroy(struct kv *kv);

void kv_stub_lock(struct kv *kv, bool is_locked);

/* Lets the one in that waits, and all to come. */
void kv_stub_let_in(struct kv *kv);
/* Who comes now has to wait again. */
void kv_stub_shut(struct kv *kv);

/* Wakes the one that waits, if there is one, for nothing: it will wait again. */
void kv_stub_wake(struct kv *kv);

/* Attempts at LOCKED, WAIT and MEET so far. */
uint64_t kv_stub_attempts(const struct kv *kv);
int32_t kv_stub_sessions(const struct kv *kv);

#endif
