// SPDX-License-Identifier: GPL-2.0-or-later
/* Comparing the table with the workers' books: V1 to V3 of ycsb.h. */
#include <stdlib.h>

#include "ycsb_private.h"
#include "ycsb_record.h"

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
	struct ycsb_audit *audit = ctx;
	uint64_t content = ycsb_key_weight(key);

	audit->records++;
	audit->keys += ycsb_key_weight(key);
	audit->updates += record->updates;
	audit->weighted_updates += record->updates * ycsb_key_weight(key);
	audit->damaged_records += !record_is_sound(key, record);
	for (uint32_t f = 0; f < YCSB_FIELDS; f++)
		content = bench_mix(content ^ ycsb_field_stamp(record->fields[f]));
	audit->content += bench_mix(content ^ record->updates);
	return 0;
}

void ycsb_audit(struct ycsb *ycsb, struct ycsb_audit *ret_audit)
{
	struct ycsb_audit audit = { 0 };
	uint64_t keys = 0;

	audit.rc = oltp_table_scan(ycsb->table, add_record, &audit);
	for (uint64_t key = 0; key < ycsb->config.records; key++)
		keys += ycsb_key_weight(key);
	audit.is_complete = !audit.rc && audit.records == ycsb->config.records &&
			    audit.keys == keys;
	*ret_audit = audit;
}

void ycsb_verify(struct ycsb *ycsb, struct ycsb_verdict *ret_verdict)
{
	struct ycsb_verdict v = { 0 };
	struct ycsb_audit audit;

	ycsb_audit(ycsb, &audit);
	pthread_mutex_lock(&ycsb->lock);
	v.records = audit.records;
	v.records_missing = audit.records < ycsb->config.records ?
				    ycsb->config.records - audit.records : 0;
	v.scan_rc = audit.rc;
	v.updates_committed = ycsb->books.updates;
	v.updates_found = audit.updates;
	v.is_checksum_equal = audit.weighted_updates == ycsb->books.weighted_updates;
	v.damaged_records = audit.damaged_records;
	v.inconsistent_reads = ycsb->books.inconsistent_reads;
	pthread_mutex_unlock(&ycsb->lock);

	v.lost_updates = v.updates_committed > v.updates_found ?
				 v.updates_committed - v.updates_found :
				 v.updates_found - v.updates_committed;
	/* The number is right but not the place, or not the bytes: at least so many are lost. */
	if (!v.lost_updates && v.damaged_records)
		v.lost_updates = v.damaged_records;
	if (!v.lost_updates && (!v.is_checksum_equal || !audit.is_complete))
		v.lost_updates = 1;
	*ret_verdict = v;
}
