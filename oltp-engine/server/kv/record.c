// SPDX-License-Identifier: GPL-2.0-or-later
/* See record.h. */
#include "oltp-engine/server/kv/record.h"

#include <string.h>

#include "oltp-engine/server/kv/keyspace.h"

static uint32_t padded(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

uint32_t kv_record_length(const struct kv_record *r)
{
	bool refers = r->flags & KV_RECORD_REFERS;

	return padded((uint32_t)sizeof(*r) + r->name_bytes +
		      (refers ? (uint32_t)sizeof(struct oltp_place) : r->value_bytes));
}

static bool can_refer(const struct kv_record *r)
{
	return keyspace_value_record_bytes((enum row_type)r->type, r->name_bytes, r->value_bytes);
}

size_t kv_record_bytes(const uint8_t *at, size_t bytes)
{
	struct kv_record r;
	uint32_t length;

	if (bytes < sizeof(r))
		return 0;
	memcpy(&r, at, sizeof(r));
	if (r.type < KV_RECORD_STRING || r.type > KV_RECORD_FIELD || r.flags > KV_RECORD_REFERS ||
	    r.name_bytes > KV_NAME_MAX || r.value_bytes > KV_VALUE_MAX ||
	    (r.type == KV_RECORD_HASH ? r.value_bytes || !r.n_fields : r.n_fields > 0))
		return 0;
	if (r.flags && !can_refer(&r))
		return 0;
	length = kv_record_length(&r);
	return length <= bytes ? length : 0;
}

bool kv_record_refers(const uint8_t *record, struct oltp_place_read *ret_read)
{
	struct kv_record r;

	memcpy(&r, record, sizeof(r));
	if (!(r.flags & KV_RECORD_REFERS))
		return false;
	*ret_read = (struct oltp_place_read){
		.bytes = keyspace_value_record_bytes((enum row_type)r.type, r.name_bytes,
						     r.value_bytes),
	};
	memcpy(&ret_read->place, record + sizeof(r) + r.name_bytes, sizeof(ret_read->place));
	return true;
}

uint32_t kv_record_resolve(const uint8_t *record, const void *value, uint8_t *to)
{
	struct kv_record r;
	uint32_t length;

	memcpy(&r, record, sizeof(r));
	r.flags = 0;
	length = kv_record_length(&r);
	memset(to, 0, length);
	memcpy(to, &r, sizeof(r));
	memcpy(to + sizeof(r), record + sizeof(r), r.name_bytes);
	memcpy(to + sizeof(r) + r.name_bytes, value, r.value_bytes);
	return length;
}
