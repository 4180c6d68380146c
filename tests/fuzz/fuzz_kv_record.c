/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: whatever records of a unit the peer of a relocation sends, with values or with
 * places of values, they are refused or are whole; one that refers is whole with its value, too.
 */
#include <stdlib.h>
#include <string.h>
#include "oltp-engine/server/kv/record.h"

#define REQUIRE(cond)	do { if (!(cond)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct kv_record head_of(const uint8_t *record)
{
	struct kv_record head;

	memcpy(&head, record, sizeof(head));
	return head;
}

/* Buffers of their exact lengths: a byte too far is found. */
static void resolve(const uint8_t *record, const struct oltp_place_read *read)
{
	uint8_t *value = malloc(read->bytes), *to = malloc(KV_RECORD_MAX);
	struct kv_record head = head_of(record), resolved;
	struct oltp_place_read again;
	uint32_t length;

	REQUIRE(value && to && read->bytes <= OLTP_PLACE_RECORD_MAX);
	REQUIRE(head.type != KV_RECORD_HASH && head.value_bytes <= read->bytes);
	memset(value, 'v', read->bytes);
	length = kv_record_resolve(record, value, to);
	resolved = head_of(to);
	REQUIRE(length <= KV_RECORD_MAX && kv_record_bytes(to, length) == length);
	REQUIRE(kv_record_bytes(to, length - 1) == 0 && !kv_record_refers(to, &again));
	REQUIRE(resolved.type == head.type && resolved.name_bytes == head.name_bytes &&
		resolved.value_bytes == head.value_bytes);
	REQUIRE(!memcmp(to + sizeof(head), record + sizeof(head), head.name_bytes));
	REQUIRE(!memcmp(to + sizeof(head) + head.name_bytes, value, head.value_bytes));
	free(value);
	free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	while (size) {
		size_t length = kv_record_bytes(data, size);
		struct oltp_place_read read;
		uint8_t *record;

		if (!length)
			break;
		REQUIRE(length <= size && length % 8 == 0 && length <= KV_RECORD_MAX);
		REQUIRE(kv_record_bytes(data, length) == length);
		REQUIRE(kv_record_bytes(data, length - 1) == 0);
		record = malloc(length);
		REQUIRE(record);
		memcpy(record, data, length);
		if (kv_record_refers(record, &read))
			resolve(record, &read);
		free(record);
		data += length;
		size -= length;
	}
	return 0;
}
