// SPDX-License-Identifier: GPL-2.0-or-later
/* Cold records in a volume, as another node sees them. How they come and go: test_oltp_cold.c. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/io/volume.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define RECORDS	8000u	/* four blocks */

/* What a volume has as the file of cold records is what the engine wrote there. */
static void test_another_node_reads_cold_records(void **state)
{
	(void)state;
	struct io_files io = io_files_real(IO_FETCH, NULL);
	uint32_t n = 0, stride, slot;
	struct volume *reader;
	struct rig rig;
	uint64_t bytes;
	int fd;

	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	rig_demand(&rig, 0, RIG_DEADLINE_MS);
	stride = cold_stride(rig.table);
	assert_int_equal(volume_open(&io, rig.volume, false, &reader), 0);
	fd = volume_ops.open(reader, COLD_FILE_NAME, O_RDONLY, 0);
	assert_true(fd >= 0);
	for (uint64_t key = 0; key < RECORDS; key += 7) {
		uint8_t found[sizeof(struct cold_head) + RIG_RECORD_BYTES];
		const struct cold_block *block;
		struct index_ref ref;

		if (!rig_is_cold(&rig, key))
			continue;
		assert_null(index_find(&rig.table->index, key, index_hash(key), &ref));
		block = cold_stub_block(rig.engine->cold, ref.entry);
		slot = cold_stub_slot(ref.entry);
		assert_int_equal(volume_ops.pread(reader, fd, found, sizeof(found),
						  block->number * COLD_EXTENT_BYTES +
						  (uint64_t)slot * stride), sizeof(found));
		assert_non_null(cold_record_check(block, slot, found));
		assert_true(rig_record_is(found + sizeof(struct cold_head), key, 0));
		n++;
	}
	assert_true(n > RECORDS / 14);
	volume_ops.close(reader, fd);
	volume_close(reader);
	/* The next owner has no use for them. */
	oltp_worker_destroy(rig.w);
	oltp_engine_close(rig.engine);
	rig_reopen(&rig);
	fd = volume_ops.open(rig.engine->volume, COLD_FILE_NAME, O_RDONLY, 0);
	assert_int_equal(volume_ops.size(rig.engine->volume, fd, &bytes), 0);
	assert_int_equal(bytes, 0);
	volume_ops.close(rig.engine->volume, fd);
	rig_close(&rig);
}

/* Without a bound of their own they leave half of the volume to the log. */
static void test_half_of_the_volume(void **state)
{
	(void)state;
	struct oltp_volume_info info;
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	volume_info_read(rig.engine->volume, &info);
	assert_int_equal(rig.engine->cold->file.bytes_max, info.bytes / 2);
	rig_close(&rig);
}

/* The places of all cold records. Returns how many; their keys are in the same order. */
static uint32_t take_places(struct rig *rig, struct oltp_place_read *reads, uint64_t *keys)
{
	uint32_t n = 0;

	for (uint64_t key = 0; key <= RECORDS; key++) {
		/* There is no record RECORDS. */
		bool is_cold = key < RECORDS && rig_is_cold(rig, key);

		assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
		assert_int_equal(oltp_txn_place(rig->w, rig->table, key, &reads[n].place),
				 is_cold ? OLTP_OK : OLTP_NOT_FOUND);
		assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
		if (!is_cold)
			continue;
		reads[n].bytes = RIG_RECORD_BYTES;
		keys[n++] = key;
	}
	assert_int_equal(oltp_txn_place(rig->w, rig->table, 0, &reads[n].place), OLTP_INVALID);
	return n;
}

static void read_places(struct oltp_places *places, struct oltp_place_read *reads, uint32_t n)
{
	assert_int_equal(oltp_places_begin(places, reads, n), 0);
	assert_true(oltp_places_poll(places, true));
}

static void overwrite(const struct rig *rig, uint64_t offset)
{
	int fd = open(rig->volume, O_WRONLY);

	assert_int_equal(pwrite(fd, "damage", 6, (off_t)offset), 6);
	close(fd);
}

/* A place leads to its record, or to nothing if the record there is damaged, or another one. */
static void test_places(void **state)
{
	(void)state;
	struct oltp_place_read *reads = calloc(RECORDS + 1, sizeof(*reads));
	uint64_t *keys = calloc(RECORDS, sizeof(*keys));
	struct oltp_places *places;
	struct rig rig;
	uint32_t n;

	assert_non_null(reads);
	assert_non_null(keys);
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	rig_demand(&rig, 0, RIG_DEADLINE_MS);
	n = take_places(&rig, reads, keys);
	assert_true(n > RECORDS / 2);
	assert_int_equal(oltp_places_open("/nowhere/volume", &places), -ENOENT);
	assert_int_equal(oltp_places_open(rig.volume, &places), 0);
	read_places(places, reads, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(reads[i].rc, 0);
		assert_true(rig_record_is(reads[i].record, keys[i], 0));
	}
	overwrite(&rig, reads[1].place.offset + sizeof(struct cold_head) + 20);
	reads[2].place.seed++;
	reads[3].place.offset += 8;
	reads[4].place.offset = 1ull << 40;
	read_places(places, reads, 6);
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(reads[i].rc, -EBADMSG);
	assert_int_equal(reads[4].rc, -EIO);
	assert_true(rig_record_is(reads[5].record, keys[5], 0));
	reads[5].bytes = OLTP_PLACE_RECORD_MAX + 1;
	assert_int_equal(oltp_places_begin(places, reads, 6), -EINVAL);
	oltp_places_close(places);
	free(keys);
	free(reads);
	rig_close(&rig);
}

/* The next owner writes the same records to the same places: they are others all the same. */
static void test_places_of_another_life(void **state)
{
	(void)state;
	struct oltp_place_read *reads = calloc(RECORDS + 1, sizeof(*reads));
	struct oltp_place_read *after = calloc(RECORDS + 1, sizeof(*after));
	uint64_t *keys = calloc(RECORDS, sizeof(*keys));
	struct oltp_places *places;
	uint32_t n, n_same = 0;
	struct rig rig;

	assert_non_null(reads);
	assert_non_null(after);
	assert_non_null(keys);
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	rig_demand(&rig, 0, RIG_DEADLINE_MS);
	n = take_places(&rig, reads, keys);
	oltp_worker_destroy(rig.w);
	oltp_engine_close(rig.engine);
	rig_reopen(&rig);
	oltp_blocks_native_set_limit(rig.blocks, 8 * MIB, 0);
	rig_insert(&rig, 0, RECORDS);
	rig_demand(&rig, 0, RIG_DEADLINE_MS);
	take_places(&rig, after, keys);
	assert_int_equal(oltp_places_open(rig.volume, &places), 0);
	read_places(places, reads, n);
	for (uint32_t i = 0; i < n; i++) {
		n_same += reads[i].place.offset == after[i].place.offset;
		assert_int_equal(reads[i].rc, -EBADMSG);
	}
	assert_true(n_same > 0);
	oltp_places_close(places);
	free(keys);
	free(after);
	free(reads);
	rig_close(&rig);
}

/* An extent whose places were told is not written again at once, though its records have left. */
static void test_lent_extents(void **state)
{
	(void)state;
	struct oltp_place_read *reads = calloc(RECORDS + 1, sizeof(*reads));
	uint64_t *keys = calloc(RECORDS, sizeof(*keys));
	struct cold_block *block;
	struct rig rig;
	uint64_t told_ns;

	assert_non_null(reads);
	assert_non_null(keys);
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	rig_demand(&rig, 0, RIG_DEADLINE_MS);
	assert_true(take_places(&rig, reads, keys) > RECORDS / 2);
	told_ns = clock_now_ns();
	for (uint64_t i = 0;; i++) {
		block = cold_block_get(rig.engine->cold, i);
		if (reads[0].place.offset - block->base < COLD_EXTENT_BYTES)
			break;
	}
	assert_true(atomic_load(&block->live) > 0);
	oltp_blocks_native_set_limit(rig.blocks, 16 * MIB, 0);
	/* Records that are changed go back to memory. */
	for (uint64_t key = 0; key < RECORDS; key++)
		rig_update(&rig, key, 1);
	assert_int_equal(atomic_load(&block->live), 0);
	do {
		bool is_free = false;

		pthread_mutex_lock(&rig.engine->cold->lock);
		for (struct cold_block *b = rig.engine->cold->free; b; b = b->next)
			is_free |= b == block;
		pthread_mutex_unlock(&rig.engine->cold->lock);
		if (is_free)
			break;
		rig_sleep_ms(10);
	} while (clock_now_ns() < told_ns + 20000000000ull);
	assert_in_range(clock_now_ns() - told_ns, COLD_LENT_NS, 20000000000ull);
	free(keys);
	free(reads);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_another_node_reads_cold_records, rig_use_volume),
		cmocka_unit_test_setup(test_half_of_the_volume, rig_use_volume),
		cmocka_unit_test_setup(test_places, rig_use_volume),
		cmocka_unit_test_setup(test_places_of_another_life, rig_use_volume),
		cmocka_unit_test_setup(test_lent_extents, rig_use_volume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
