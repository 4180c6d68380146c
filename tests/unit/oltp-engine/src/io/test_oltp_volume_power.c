// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Volumes and crashes: random operations against volume_model.h, with power lost at every call of
 * the device, and calls that fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "durable_rig.h"
#include "volume_model.h"
#include "volume_rig.h"

#define STEPS		40u
#define SEEDS		(8u / DURABLE_FEWER)
#define LIVES		3u

static struct volume_model model;
static uint32_t n_cuts, n_full;

/* Works until something fails or the steps are done. */
static void live(struct fault_disk *disk, struct volume *volume)
{
	uint32_t step = 0;

	while (step < STEPS && model_step(&model, volume))
		step++;
	assert_true(step == STEPS || fault_disk_is_dead(disk));
	n_cuts += fault_disk_is_dead(disk);
}

/* The next owner; power may be lost again before it has opened the volume. */
static struct volume *reopen(struct fault_disk *disk)
{
	struct volume *volume;

	fault_disk_restart(disk, model_draw(&model, 3));
	fault_disk_lose_power_at(disk, model_draw(&model, 12));
	if (volume_rig_open(disk, true, &volume)) {
		assert_true(fault_disk_is_dead(disk));
		fault_disk_restart(disk, true);
		assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	}
	fault_disk_calm(disk);
	return volume;
}

/* True: the first life ended by itself before that many calls. */
static bool lives(uint64_t seed, uint64_t nth)
{
	struct fault_disk *disk = fault_disk_copy(volume_empty, seed * 1000 + nth + 1);
	struct volume *volume;
	bool is_through = false;

	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	model_init(&model, volume, seed);
	fault_disk_calm(disk);
	fault_disk_lose_power_at(disk, nth);
	for (uint32_t i = 0; i < LIVES; i++) {
		live(disk, volume);
		is_through |= !i && !fault_disk_is_dead(disk);
		if (!fault_disk_is_dead(disk))
			fault_disk_lose_power_at(disk, 0);
		n_full += model.n_full;
		volume_close(volume);
		volume = reopen(disk);
		model_adopt(&model, volume);
		fault_disk_lose_power_at(disk, model_draw(&model, 160));
	}
	fault_disk_calm(disk);
	model_end(&model, volume);
	volume_close(volume);
	fault_disk_destroy(disk);
	return is_through;
}

static void test_power_cut_at_every_call(void **state)
{
	(void)state;

	n_cuts = n_full = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		uint64_t nth = 0;

		while (!lives(seed, nth))
			nth++;
		assert_true(nth > STEPS);
	}
	assert_true(n_cuts > SEEDS * LIVES * STEPS);
	assert_true(n_full > SEEDS);
	print_message("%u losses of power, %u times no space\n", n_cuts, n_full);
}

/* An owner that opens the volume may meet the end of power as well. */
static void test_power_cut_while_opening(void **state)
{
	(void)state;

	for (uint64_t seed = 1; seed <= 8; seed++) {
		uint64_t generation = 0;
		bool is_open = false;

		for (uint64_t nth = 0; !is_open; nth++) {
			struct fault_disk *disk = fault_disk_copy(volume_empty, seed);
			struct oltp_volume_info info;
			struct volume *volume;

			assert_int_equal(volume_rig_open(disk, true, &volume), 0);
			volume_rig_put(volume, "f", "kept");
			volume_close(volume);
			fault_disk_calm(disk);
			fault_disk_lose_power_at(disk, nth);
			is_open = !volume_rig_open(disk, true, &volume);
			if (is_open)
				volume_close(volume);
			fault_disk_restart(disk, true);
			assert_int_equal(volume_rig_open(disk, false, &volume), 0);
			volume_info_read(volume, &info);
			assert_true(info.generation == 1 || info.generation == 2);
			assert_true(info.generation >= generation);
			generation = is_open ? 2 : 0;
			volume_rig_check(volume, "f", "kept");
			volume_close(volume);
			fault_disk_destroy(disk);
		}
		assert_int_equal(generation, 2);
	}
}

/* Before that there is no volume, or the new one; never what an old one said. */
static void test_power_cut_while_formatting(void **state)
{
	(void)state;
	bool is_made = false;

	for (uint64_t nth = 0; !is_made; nth++) {
		struct fault_disk *disk = fault_disk_copy(volume_empty, nth + 1);
		struct io_files io = volume_rig_files(disk);
		struct volume *volume;
		int rc;

		assert_int_equal(volume_rig_open(disk, true, &volume), 0);
		volume_rig_put(volume, "old", "old");
		volume_close(volume);
		fault_disk_calm(disk);
		fault_disk_lose_power_at(disk, nth);
		is_made = !volume_format(&io, VOLUME_DEVICE, true);
		fault_disk_restart(disk, true);
		rc = volume_rig_open(disk, false, &volume);
		if (is_made)
			assert_int_equal(rc, 0);
		if (!rc) {
			int fd = volume_rig_file(volume, "old", O_RDONLY);

			/* It was not touched, or all of it is new. */
			if (fd >= 0) {
				volume_ops.close(volume, fd);
				volume_rig_check(volume, "old", "old");
				assert_false(is_made);
			}
			volume_close(volume);
		} else {
			assert_true(rc == -EMEDIUMTYPE || rc == -EUCLEAN);
		}
		fault_disk_destroy(disk);
	}
}

/* That call fails, once or for good; then power is lost so many calls later. */
static bool fail_then_cut(uint64_t nth, uint64_t n, uint64_t cut, uint64_t draw)
{
	struct fault_disk *disk = fault_disk_copy(volume_empty, (nth * 16 + cut) * 16 + draw + 1);
	struct volume *volume;
	bool has_failed = false;

	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	model_init(&model, volume, 5);
	fault_disk_calm(disk);
	fault_disk_fail_at(disk, nth, n, -EIO);
	for (uint32_t i = 0; i < STEPS && !has_failed; i++)
		has_failed = !model_step(&model, volume);
	/* A sync that works after one that did not is as good as any. */
	fault_disk_calm(disk);
	model_remove(&model, volume);
	fault_disk_lose_power_at(disk, cut);
	if (!volume_ops.sync_dir(volume, "/"))
		assert_true(!has_failed || !fault_disk_is_dead(disk));
	fault_disk_lose_power_at(disk, 0);
	volume_close(volume);
	fault_disk_restart(disk, true);
	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	model_adopt(&model, volume);
	volume_close(volume);
	fault_disk_destroy(disk);
	return has_failed;
}

static void test_calls_that_fail(void **state)
{
	(void)state;
	uint64_t nth = 0;

	while (fail_then_cut(nth, nth % 2 ? 1 : UINT64_MAX, nth % 11, 0))
		nth++;
	assert_true(nth > STEPS);
	/* Two reads come before the books are written. */
	for (uint64_t i = 0; i < 18; i++) {
		for (nth = 0; nth < 60; nth += DURABLE_FEWER)
			fail_then_cut(nth, 1, 2 + i % 3, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power_cut_at_every_call),
		cmocka_unit_test(test_power_cut_while_opening),
		cmocka_unit_test(test_power_cut_while_formatting),
		cmocka_unit_test(test_calls_that_fail),
	};

	return cmocka_run_group_tests(tests, volume_rig_setup, volume_rig_teardown);
}
