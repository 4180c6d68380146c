// SPDX-License-Identifier: GPL-2.0-or-later
/* Comparing the table with the workers' books: V1 to V3 of ycsb.h. */
#include <stdlib.h>

#include "ycsb_private.h"
#include "ycsb_record.h"

struct sums {
	uint64_t records;
	uint64_t updates;
	uint64_t weighted_updates;
	uint64_t damaged;
};

static bool record_is_sound(uint64_t key, const struct ycsb_record *record)
{
	uint64_t newest = 0;

	for (uint32_t f = 0; f < YCSB_FIELDS; f++) {
		uint64_t stamp = ycsb_field_stamp(record->fields[f]);
		uint8_t expected[YCSB_FIELD_BYTES];

		ycsb_field_write(expected, key, f, stamp);
		if (memcmp(expected, record->fields[f], sizeof(expected)))
			return false;
		newest = stamp > newest ? stamp : newest;
	}
	return newest == record->updates;
}

static int add_record(void *ctx, uint64_t key, const void *bytes)
{
	const struct ycsb_record *record = bytes;
	struct sums *sums = ctx;

	sums->records++;
	sums->updates += record->updates;
	sums->weighted_updates += record->updates * ycsb_key_weight(key);
	sums->damaged += !record_is_sound(key, record);
	return 0;
}

void ycsb_verify(struct ycsb *ycsb, struct ycsb_verdict *ret_verdict)
{
	struct ycsb_verdict v = { 0 };
	struct sums sums = { 0 };

	oltp_table_scan(ycsb->table, add_record, &sums);
	pthread_mutex_lock(&ycsb->lock);
	v.records = sums.records;
	v.updates_committed = ycsb->books.updates;
	v.updates_found = sums.updates;
	v.is_checksum_equal = sums.weighted_updates == ycsb->books.weighted_updates;
	v.damaged_records = sums.damaged;
	v.inconsistent_reads = ycsb->books.inconsistent_reads;
	pthread_mutex_unlock(&ycsb->lock);

	v.lost_updates = v.updates_committed > v.updates_found ?
				 v.updates_committed - v.updates_found :
				 v.updates_found - v.updates_committed;
	/* The number is right but not the place, or not the bytes: at least so many are lost. */
	if (!v.lost_updates && v.damaged_records)
		v.lost_updates = v.damaged_records;
	if (!v.lost_updates && !v.is_checksum_equal)
		v.lost_updates = 1;
	*ret_verdict = v;
}
