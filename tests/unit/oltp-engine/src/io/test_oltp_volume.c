// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Volumes: files as extents of one device; owners by generation; what is no volume, or is damaged,
 * full or too short. Crashes: test_oltp_volume_power.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "durable_rig.h"
#include "log_faults_disk.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/io/volume_format.h"
#include "volume_rig.h"

#define SHADOW_BYTES	(3u << 20)

static void test_files(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_copy(volume_empty, 1);
	static const char long_name[] = "/v/more-than-forty-seven-characters-are-no-name-here";
	struct io_files files;
	struct volume *volume;
	uint64_t *numbers;
	size_t n;
	int fd;

	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	files = (struct io_files){ &volume_ops, volume, IO_LOG, NULL };
	assert_int_equal(volume_rig_file(volume, "/v/none", O_RDWR), -ENOENT);
	volume_rig_put(volume, "/v/a", "one");
	volume_rig_put(volume, "/v/a", "another");
	volume_rig_check(volume, "/v/a", "another");
	assert_int_equal(volume_rig_file(volume, "/v/a", O_RDWR | O_CREAT | O_EXCL), -EEXIST);
	assert_int_equal(volume_rig_file(volume, "/v/", O_RDWR | O_CREAT), -EINVAL);
	assert_int_equal(volume_rig_file(volume, long_name,
					 O_RDWR | O_CREAT), -ENAMETOOLONG);
	volume_rig_put(volume, "/v/log-000000000000000b", "11");
	volume_rig_put(volume, "/v/log-000000000000000a", "10");
	assert_int_equal(io_list_numbers(&files, "/v", "log-%016llx", &numbers, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(numbers[0], 10);
	free(numbers);
	assert_int_equal(volume_ops.rename(volume, "/v/log-000000000000000a", "/v/a"), 0);
	volume_rig_check(volume, "/v/a", "10");
	assert_int_equal(volume_ops.unlink(volume, "/v/log-000000000000000a"), -ENOENT);
	/* A file that is removed is there for those that have it open. */
	fd = volume_rig_file(volume, "/v/a", O_RDONLY);
	assert_int_equal(volume_ops.unlink(volume, "/v/a"), 0);
	assert_int_equal(volume_rig_file(volume, "/v/a", O_RDONLY), -ENOENT);
	volume_rig_put(volume, "/v/a", "new");
	assert_int_equal(volume_ops.pread(volume, fd, &n, 2, 0), 2);
	assert_memory_equal(&n, "10", 2);
	assert_int_equal(volume_ops.pwritev(volume, fd, &(struct iovec){ &n, 2 }, 1, 0), -EBADF);
	volume_ops.close(volume, fd);
	volume_rig_check(volume, "/v/a", "new");
	volume_close(volume);
	assert_int_equal(volume_rig_open(disk, false, &volume), 0);
	volume_rig_check(volume, "/v/a", "new");
	volume_close(volume);
	fault_disk_destroy(disk);
}

/* As a folder: for one engine at a time. */
static void test_lock(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_copy(volume_empty, 2);
	struct volume *volume, *second;
	int a, b;

	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	a = volume_rig_file(volume, VOLUME_DEVICE, O_RDONLY | O_DIRECTORY);
	b = volume_rig_file(volume, VOLUME_DEVICE, O_RDONLY | O_DIRECTORY);
	assert_int_equal(volume_ops.lock(volume, a), 0);
	assert_int_equal(volume_ops.lock(volume, b), -EBUSY);
	volume_ops.close(volume, a);
	assert_int_equal(volume_ops.lock(volume, b), 0);
	volume_ops.close(volume, b);
	/* And a volume for one owner on this machine. */
	assert_int_equal(volume_rig_open(disk, true, &second), -EBUSY);
	volume_close(volume);
	fault_disk_destroy(disk);
}

/* Any offset and length, from any place in memory, in a file that lies in many pieces. */
static void test_any_offset_and_length(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_copy(volume_empty, 3);
	uint8_t *shadow = calloc(1, SHADOW_BYTES), *buffer = malloc(SHADOW_BYTES);
	struct oltp_volume_info info;
	struct volume *volume;
	uint64_t rng = 99, size = 0;
	struct io_files files;
	int a, b;

	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	files = (struct io_files){ &volume_ops, volume, IO_LOG, NULL };
	a = volume_rig_file(volume, "a", O_RDWR | O_CREAT);
	b = volume_rig_file(volume, "b", O_RDWR | O_CREAT);
	/* Both grow in turn, so that neither has two units in a row. */
	for (uint64_t bytes = 0; bytes <= SHADOW_BYTES; bytes += VOLUME_UNIT_BYTES_MIN) {
		assert_int_equal(volume_ops.fallocate(volume, a, bytes), 0);
		assert_int_equal(volume_ops.fallocate(volume, b, bytes), 0);
	}
	volume_info_read(volume, &info);
	assert_int_equal(info.n_extents, 2 * SHADOW_BYTES / VOLUME_UNIT_BYTES_MIN);
	memset(buffer, 0, SHADOW_BYTES);
	assert_int_equal(io_write_all(&files, a, buffer, SHADOW_BYTES, 0), 0);
	for (int i = 0; i < 400; i++) {
		uint64_t from = durable_draw(&rng, SHADOW_BYTES);
		uint64_t bytes = durable_draw(&rng, i % 4 ? 9000 : SHADOW_BYTES - from);

		if (bytes > SHADOW_BYTES - from)
			bytes = SHADOW_BYTES - from;
		for (uint64_t k = 0; k < bytes; k++)
			buffer[k] = shadow[from + k] = (uint8_t)(rng >> (k % 7 * 8)) + (uint8_t)k;
		assert_int_equal(io_write_all(&files, a, buffer, bytes, from), 0);
		from = durable_draw(&rng, SHADOW_BYTES);
		bytes = durable_draw(&rng, SHADOW_BYTES);
		size = bytes < SHADOW_BYTES - from ? bytes : SHADOW_BYTES - from;
		assert_int_equal(volume_ops.pread(volume, a, buffer, bytes, from), size);
		assert_memory_equal(buffer, shadow + from, size);
	}
	volume_ops.close(volume, a);
	volume_ops.close(volume, b);
	volume_close(volume);
	fault_disk_destroy(disk);
	free(shadow);
	free(buffer);
}

static void test_pieces_of_memory(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_copy(volume_empty, 4);
	uint8_t *data = aligned_alloc(4096, 1 << 20), *found = aligned_alloc(4096, 1 << 20);
	struct iovec iov[16];
	struct volume *volume;
	uint64_t done = 0;
	ssize_t n;
	int fd, i = 0;

	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	fd = volume_rig_file(volume, "f", O_RDWR | O_CREAT);
	assert_int_equal(volume_ops.fallocate(volume, fd, VOLUME_UNIT_BYTES_MIN), 0);
	volume_rig_put(volume, "in-between", "x");
	for (uint32_t k = 0; k < 1 << 20; k++)
		data[k] = (uint8_t)(k * 7 + (k >> 12));
	while (done < 1 << 20) {
		int k = 0;

		for (uint64_t at = done; k < 16 && at < 1 << 20; at += 20480, k++)
			iov[k] = (struct iovec){ data + at, (1 << 20) - at < 20480 ?
							    (1 << 20) - at : 20480 };
		n = (i++ % 2 ? volume_ops.pwritev : volume_ops.pwritev_sync)(volume, fd, iov, k,
									     done);
		assert_true(n > 0 && n % 4096 == 0);
		done += (uint64_t)n;
	}
	assert_int_equal(volume_ops.pread(volume, fd, found, 1 << 20, 0), 1 << 20);
	assert_memory_equal(found, data, 1 << 20);
	volume_ops.close(volume, fd);
	volume_close(volume);
	fault_disk_destroy(disk);
	free(data);
	free(found);
}

/* ---- owners ---- */

/* Of two machines that share a disk neither sees the other's locks. */
static int other_lock(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
	return 0;
}

static struct io_ops other_ops(void)
{
	struct io_ops ops = fault_disk_ops;

	ops.lock = other_lock;
	return ops;
}

static void test_owners(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_copy(volume_empty, 7);
	struct io_files here = { &fault_disk_ops, disk, IO_LOG, NULL };
	const struct io_ops ops = other_ops();
	struct io_files there = { &ops, disk, IO_LOG, NULL };
	struct volume *first, *second, *reader;
	struct oltp_volume_info info;
	struct iovec iov = { "x", 1 };
	int fd;

	assert_int_equal(volume_open(&here, VOLUME_DEVICE, true, &first), 0);
	volume_rig_put(first, "f", "of the first");
	assert_int_equal(volume_open(&there, VOLUME_DEVICE, false, &reader), 0);
	volume_rig_check(reader, "f", "of the first");
	assert_int_equal(volume_rig_file(reader, "f", O_RDWR), -EROFS);
	assert_int_equal(volume_rig_file(reader, "g", O_RDWR | O_CREAT), -EROFS);
	assert_int_equal(volume_ops.rename(reader, "f", "g"), -EROFS);
	assert_int_equal(volume_ops.unlink(reader, "f"), -EROFS);
	assert_int_equal(volume_ops.sync_dir(reader, "/"), 0);
	fd = volume_rig_file(first, "f", O_RDWR);
	/* The other node takes over, while the first one believes that it is the owner. */
	assert_int_equal(volume_open(&there, VOLUME_DEVICE, true, &second), 0);
	volume_info_read(second, &info);
	assert_int_equal(info.generation, 2);
	volume_rig_put(second, "f", "of the second");
	volume_rig_put(second, "g", "as well");
	assert_int_equal(volume_ops.unlink(first, "f"), 0);
	assert_int_equal(volume_ops.sync_dir(first, "/"), -ESTALE);
	assert_int_equal(volume_ops.sync_dir(first, "/"), -ESTALE);
	assert_int_equal(volume_ops.pwritev(first, fd, &iov, 1, 0), -ESTALE);
	assert_int_equal(volume_ops.pwritev_sync(first, fd, &iov, 1, 0), -ESTALE);
	assert_int_equal(volume_rig_file(first, "h", O_RDWR | O_CREAT), -ESTALE);
	volume_ops.close(first, fd);
	volume_close(first);
	volume_rig_check(second, "f", "of the second");
	volume_close(second);
	/* A reader has what it read, until it opens the volume again. */
	assert_int_equal(volume_rig_file(reader, "g", O_RDONLY), -ENOENT);
	volume_close(reader);
	assert_int_equal(volume_open(&there, VOLUME_DEVICE, false, &reader), 0);
	volume_rig_check(reader, "g", "as well");
	volume_info_read(reader, &info);
	assert_int_equal(info.generation, 2);
	assert_int_equal(info.n_files, 2);
	volume_close(reader);
	fault_disk_destroy(disk);
}

/* Both opened it at the same time, and have the same generation: the one that wrote last has it. */
static void test_two_owners_at_once(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_copy(volume_empty, 8), *before;
	const struct io_ops ops = other_ops();
	struct io_files there = { &ops, disk, IO_LOG, NULL };
	struct inode *device, *old;
	struct volume *first, *second;

	before = fault_disk_copy(volume_empty, 8);
	assert_int_equal(volume_open(&there, VOLUME_DEVICE, true, &first), 0);
	/* As if the second had read the books before the first wrote them. */
	device = disk_name_find(&disk->now, "volume")->inode;
	old = disk_name_find(&before->now, "volume")->inode;
	memcpy(device->now, old->now, VOLUME_DATA_FROM);
	assert_int_equal(volume_open(&there, VOLUME_DEVICE, true, &second), 0);
	assert_true(volume_rig_file(first, "f", O_RDWR | O_CREAT) >= 0);
	assert_int_equal(volume_ops.sync_dir(first, "/"), -ESTALE);
	volume_rig_put(second, "g", "mine");
	volume_close(first);
	volume_close(second);
	fault_disk_destroy(before);
	fault_disk_destroy(disk);
}

/* ---- what is no good ---- */

static void flip(struct fault_disk *disk, uint64_t offset)
{
	fault_disk_damage(disk, "volume", 0, offset);
}

static void test_damaged_copy(void **state)
{
	(void)state;
	static const uint64_t places[] = { 0, 9, 40, VOLUME_BLOCK_BYTES + 5 };

	for (uint32_t i = 0; i < 2 * sizeof(places) / sizeof(places[0]); i++) {
		struct fault_disk *disk = fault_disk_copy(volume_empty, i);
		uint64_t place = places[i / 2] + i % 2 * VOLUME_COPY_BYTES;
		struct volume *volume;

		assert_int_equal(volume_rig_open(disk, true, &volume), 0);
		volume_rig_put(volume, "f", "before");
		volume_rig_put(volume, "f", "newest");
		volume_close(volume);
		flip(disk, place);
		assert_int_equal(volume_rig_open(disk, false, &volume), 0);
		volume_rig_check(volume, "f", "newest");
		volume_close(volume);
		/* An owner repairs it: the other copy may go then. */
		assert_int_equal(volume_rig_open(disk, true, &volume), 0);
		volume_close(volume);
		flip(disk, places[i / 2] + (1 - i % 2) * (uint64_t)VOLUME_COPY_BYTES);
		assert_int_equal(volume_rig_open(disk, false, &volume), 0);
		volume_rig_check(volume, "f", "newest");
		volume_close(volume);
		flip(disk, place);
		assert_int_equal(volume_rig_open(disk, false, &volume), places[i / 2] ? -EUCLEAN :
								      -EMEDIUMTYPE);
		fault_disk_destroy(disk);
	}
}

static void test_no_volume(void **state)
{
	(void)state;
	struct fault_disk *disk = volume_rig_disk(VOLUME_BYTES_MIN, 3, false);
	struct volume *volume;

	assert_int_equal(volume_rig_open(disk, true, &volume), -EMEDIUMTYPE);
	assert_int_equal(volume_rig_open(disk, false, &volume), -EMEDIUMTYPE);
	fault_disk_destroy(disk);
	disk = fault_disk_create(1);
	assert_int_equal(volume_rig_open(disk, true, &volume), -ENOENT);
	fault_disk_destroy(disk);
}

/* The superblock of both copies is changed, and its checksum is right. */
static void rewrite(struct fault_disk *disk, void (*change)(struct volume_super *super))
{
	struct inode *device = disk_name_find(&disk->now, "volume")->inode;

	for (uint32_t i = 0; i < 2; i++) {
		uint8_t *at = device->now + i * (size_t)VOLUME_COPY_BYTES;
		struct volume_super super;

		memcpy(&super, at, sizeof(super));
		change(&super);
		super.crc32c = crc32c_without(&super, sizeof(super),
					      offsetof(struct volume_super, crc32c));
		memcpy(at, &super, sizeof(super));
	}
}

static void make_other_version(struct volume_super *super)
{
	super->version++;
}

static void make_longer(struct volume_super *super)
{
	super->bytes += VOLUME_UNIT_BYTES_MIN;
}

static void make_odd(struct volume_super *super)
{
	super->unit_bytes -= VOLUME_BLOCK_BYTES;
}

static void make_many(struct volume_super *super)
{
	super->n_extents = UINT32_MAX;
}

static void test_other_books(void **state)
{
	(void)state;
	static const struct {
		void (*change)(struct volume_super *super);
		int rc;
	} cases[] = {
		{ make_other_version, -EPROTONOSUPPORT },
		{ make_longer, -ENXIO },
		{ make_odd, -EUCLEAN },
		{ make_many, -EUCLEAN },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fault_disk *disk = fault_disk_copy(volume_empty, i);
		struct volume *volume;

		rewrite(disk, cases[i].change);
		assert_int_equal(volume_rig_open(disk, false, &volume), cases[i].rc);
		assert_int_equal(volume_rig_open(disk, true, &volume), cases[i].rc);
		fault_disk_destroy(disk);
	}
}

static void test_format(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_copy(volume_empty, 1);
	struct io_files io = volume_rig_files(disk);
	struct oltp_volume_info info;
	struct volume *volume;

	assert_int_equal(volume_format(&io, VOLUME_DEVICE, false), -EEXIST);
	flip(disk, 9);
	flip(disk, VOLUME_COPY_BYTES + 9);
	assert_int_equal(volume_format(&io, VOLUME_DEVICE, false), -EEXIST);
	assert_int_equal(volume_format(&io, VOLUME_DEVICE, true), 0);
	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	/* While somebody has it. */
	assert_int_equal(volume_format(&io, VOLUME_DEVICE, true), -EBUSY);
	volume_close(volume);
	fault_disk_destroy(disk);

	disk = volume_rig_disk(VOLUME_BYTES_MIN, 2, false);
	io = volume_rig_files(disk);
	assert_int_equal(volume_format(&io, VOLUME_DEVICE, false), -ENOTEMPTY);
	fault_disk_destroy(disk);

	disk = volume_rig_disk(VOLUME_BYTES_MIN - 4096, 2, true);
	io = volume_rig_files(disk);
	assert_int_equal(volume_format(&io, VOLUME_DEVICE, false), -ENOSPC);
	fault_disk_destroy(disk);

	disk = volume_rig_disk(VOLUME_BYTES_MIN, 2, true);
	io = volume_rig_files(disk);
	assert_int_equal(volume_format(&io, VOLUME_DEVICE, false), 0);
	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	volume_info_read(volume, &info);
	assert_int_equal(info.free_bytes, VOLUME_BYTES_MIN - VOLUME_DATA_FROM);
	assert_int_equal(info.generation, 1);
	volume_close(volume);
	fault_disk_destroy(disk);
}

/* What was removed is free once that is on disk; a volume that is full says so as a file does. */
static void test_full(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_copy(volume_empty, 1);
	struct oltp_volume_info info;
	struct volume *volume;
	uint64_t bytes;
	int fd;

	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	volume_info_read(volume, &info);
	fd = volume_rig_file(volume, "all", O_RDWR | O_CREAT);
	assert_int_equal(volume_ops.fallocate(volume, fd, info.free_bytes), 0);
	assert_int_equal(volume_ops.fallocate(volume, fd, info.free_bytes + 1), -ENOSPC);
	assert_int_equal(volume_ops.fallocate(volume, fd, UINT64_MAX / 2), -ENOSPC);
	assert_int_equal(volume_ops.size(volume, fd, &bytes), 0);
	assert_int_equal(bytes, info.free_bytes);
	volume_ops.close(volume, fd);
	fd = volume_rig_file(volume, "more", O_RDWR | O_CREAT);
	assert_int_equal(volume_ops.fallocate(volume, fd, 1), -ENOSPC);
	assert_int_equal(volume_ops.pwritev(volume, fd, &(struct iovec){ "x", 1 }, 1, 0), -ENOSPC);
	assert_int_equal(volume_ops.unlink(volume, "all"), 0);
	assert_int_equal(volume_ops.fallocate(volume, fd, info.free_bytes), 0);
	volume_ops.close(volume, fd);
	volume_close(volume);
	/* Files without bytes take no units, but there are so many of them and no more. */
	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	for (uint32_t i = 1; i <= VOLUME_FILES_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		fd = volume_rig_file(volume, name, O_RDWR | O_CREAT);
		assert_int_equal(fd < 0 ? fd : 0, i < VOLUME_FILES_MAX ? 0 : -ENOSPC);
		if (fd >= 0)
			volume_ops.close(volume, fd);
	}
	assert_int_equal(volume_ops.sync_dir(volume, "/"), 0);
	volume_close(volume);
	assert_int_equal(volume_rig_open(disk, false, &volume), 0);
	volume_info_read(volume, &info);
	assert_int_equal(info.n_files, VOLUME_FILES_MAX);
	volume_close(volume);
	fault_disk_destroy(disk);
}

/* On files of this machine, by what programs call. */
static void test_real_files(void **state)
{
	(void)state;
	char path[] = "/var/tmp/oltp-volume-XXXXXX";
	struct io_files io = io_files_real(IO_LOG, NULL);
	struct oltp_volume_info info;
	struct volume *volume, *other;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(oltp_volume_format(path, false), -ENOSPC);
	assert_int_equal(ftruncate(fd, 16 << 20), 0);
	assert_int_equal(oltp_volume_list(path, &info, NULL, NULL), -EMEDIUMTYPE);
	assert_int_equal(oltp_volume_format(path, false), 0);
	assert_int_equal(oltp_volume_format(path, false), -EEXIST);
	assert_int_equal(volume_open(&io, path, true, &volume), 0);
	assert_int_equal(volume_open(&io, path, true, &other), -EBUSY);
	volume_rig_put(volume, "f", "text");
	assert_int_equal(oltp_volume_list(path, &info, NULL, NULL), 0);
	assert_int_equal(info.n_files, 1);
	volume_rig_check(volume, "f", "text");
	volume_close(volume);
	assert_string_equal(oltp_volume_strerror(-EMEDIUMTYPE), "it holds no volume");
	close(fd);
	unlink(path);
	assert_int_equal(oltp_volume_list(path, &info, NULL, NULL), -ENOENT);
}

struct writer {
	struct volume *volume;
	_Atomic bool is_stopping;
	_Atomic uint32_t n;
};

/* Each text is a change of the books. */
static void *writer_main(void *arg)
{
	struct writer *writer = arg;
	char text[16];

	while (!writer->is_stopping) {
		snprintf(text, sizeof(text), "text-%08u", writer->n++);
		volume_rig_put(writer->volume, "f", text);
	}
	return NULL;
}

/* At any time one copy of the books is whole, though a reader may have to look again. */
static void test_readers_while_the_owner_writes(void **state)
{
	(void)state;
	char path[] = "/var/tmp/oltp-volume-XXXXXX", found[16] = "";
	struct io_files io = io_files_real(IO_LOG, NULL);
	struct writer writer = { .n = 0 };
	struct volume *reader;
	uint32_t number;
	pthread_t thread;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, VOLUME_BYTES_MIN), 0);
	assert_int_equal(oltp_volume_format(path, false), 0);
	assert_int_equal(volume_open(&io, path, true, &writer.volume), 0);
	volume_rig_put(writer.volume, "f", "text-00000000");
	assert_int_equal(pthread_create(&thread, NULL, writer_main, &writer), 0);
	for (uint32_t i = 0; i < 200 / DURABLE_FEWER || writer.n < 20; i++) {
		int file;

		assert_int_equal(volume_open(&io, path, false, &reader), 0);
		file = volume_rig_file(reader, "f", O_RDONLY);
		assert_true(file >= 0);
		assert_int_equal(volume_ops.pread(reader, file, found, 15, 0), 13);
		assert_int_equal(sscanf(found, "text-%8u", &number), 1);
		volume_ops.close(reader, file);
		volume_close(reader);
	}
	writer.is_stopping = true;
	pthread_join(thread, NULL);
	volume_close(writer.volume);
	close(fd);
	unlink(path);
}

/* What a reader has seen outlives a loss of power, though its owner has not synced it. */
static void test_reader_syncs(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_copy(volume_empty, 17);
	static uint8_t seen[64 << 10], found[sizeof(seen)];
	struct volume *volume, *reader;
	struct io_files files;
	int fd;

	assert_int_equal(volume_rig_open(disk, true, &volume), 0);
	files = (struct io_files){ &volume_ops, volume, IO_LOG, NULL };
	fd = volume_rig_file(volume, "a", O_RDWR | O_CREAT);
	assert_int_equal(volume_ops.fallocate(volume, fd, sizeof(seen)), 0);
	memset(seen, 1, sizeof(seen));
	assert_int_equal(io_write_all(&files, fd, seen, sizeof(seen), 0), 0);
	assert_int_equal(volume_ops.fdatasync(volume, fd), 0);
	memset(seen, 2, sizeof(seen));
	assert_int_equal(io_write_all(&files, fd, seen, sizeof(seen), 0), 0);

	for (uint32_t round = 0; round < 2; round++) {
		assert_int_equal(volume_rig_open(disk, false, &reader), 0);
		fd = volume_rig_file(reader, "a", O_RDONLY);
		assert_int_equal(volume_ops.pread(reader, fd, found, sizeof(found), 0),
				 sizeof(found));
		assert_memory_equal(found, seen, sizeof(seen));
		volume_ops.close(reader, fd);
		volume_close(reader);
		if (round == 0) {
			fault_disk_lose_power_at(disk, 0);
			volume_close(volume);
			fault_disk_restart(disk, true);
		}
	}
	fault_disk_destroy(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_any_offset_and_length),
		cmocka_unit_test(test_pieces_of_memory),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_two_owners_at_once),
		cmocka_unit_test(test_damaged_copy),
		cmocka_unit_test(test_no_volume),
		cmocka_unit_test(test_other_books),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_real_files),
		cmocka_unit_test(test_reader_syncs),
		cmocka_unit_test(test_readers_while_the_owner_writes),
	};

	return cmocka_run_group_tests(tests, volume_rig_setup, volume_rig_teardown);
}
