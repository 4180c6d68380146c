/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record.h - a key or a field as bytes, on its way to another keyspace (unit.h). No I/O. */
#ifndef OLTP_KV_RECORD_H
#define OLTP_KV_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oltp-engine/server/kv/kv.h"

/*
 * A record: this, its name, its value, zeros up to a multiple of 8 bytes. With KV_RECORD_REFERS a
 * struct oltp_place of the value, on the volume of the database that it comes from, instead of the
 * value. The node that takes the unit reads the value there, and puts the record with it.
 */
struct kv_record {
	uint32_t value_bytes;	/* of a hash 0 */
	uint16_t name_bytes;
	uint8_t type;		/* enum kv_record_type */
	uint8_t flags;		/* 0 or KV_RECORD_REFERS */
	uint64_t n_fields;	/* of a hash, which so many FIELD records follow; else 0 */
};

enum kv_record_type {
	KV_RECORD_STRING = 1,
	KV_RECORD_HASH = 2,
	KV_RECORD_FIELD = 3,	/* of the last hash before it */
};

#define KV_RECORD_REFERS	1u

_Static_assert(sizeof(struct kv_record) == 16, "as sent");

/* The length of the record that these bytes begin with; 0: they are none. */
size_t kv_record_bytes(const uint8_t *at, size_t bytes);

/* The length that a record has by its head, which is right. */
uint32_t kv_record_length(const struct kv_record *r);

/* The longest one. */
#define KV_RECORD_MAX	(sizeof(struct kv_record) + KV_NAME_MAX + KV_VALUE_MAX)

/* A whole record: what to read for it. False: it has its value. */
bool kv_record_refers(const uint8_t *record, struct oltp_place_read *ret_read);

/*
 * The record with its value, which was read, instead of the place. to: KV_RECORD_MAX bytes. Returns
 * its length.
 */
uint32_t kv_record_resolve(const uint8_t *record, const void *value, uint8_t *to);

#endif
