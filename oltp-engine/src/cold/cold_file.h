/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file of cold records: extents of COLD_EXTENT_BYTES, numbered from 0. It is in a folder, where
 * it has no name, or in a volume, under the name COLD_FILE_NAME. Extents are read and written
 * around the page cache, by io_queue.h with the descriptor here.
 */
#ifndef OLTP_COLD_FILE_H
#define OLTP_COLD_FILE_H

#include <stdbool.h>
#include <stdint.h>

#define COLD_EXTENT_BYTES	(256u << 10)
#define COLD_FILE_NAME		"cold"

struct volume;

struct cold_file {
	int fd;			/* of the file, or of the volume's device */
	struct volume *volume;	/* NULL: it is a file of its own */
	int volume_fd;		/* of the file in the volume */
	uint64_t life;		/* of the volume: how often it was opened to be written; else 0 */
	uint32_t align;		/* of offsets, lengths and buffers: a power of two */
	uint64_t bytes;		/* allocated */
	uint64_t bytes_max;	/* 0: no bound */
	bool is_full;		/* the last attempt to grow it failed */
};

/* bytes_max 0: no bound but the disk's. Errors: those of open(2); -EINVAL: no O_DIRECT there. */
int cold_file_open(struct cold_file *file, const char *dir, uint64_t bytes_max);

/* What an engine before this one left in the volume. Errors: those of volume_ops. */
int cold_file_discard(struct volume *volume);

/* bytes_max 0: half of the volume. Errors: those of volume_ops. */
int cold_file_open_in_volume(struct cold_file *file, struct volume *volume, uint64_t bytes_max);

void cold_file_close(struct cold_file *file);

/* What offsets, lengths and buffers of requests to a file with O_DIRECT must be multiples of. */
uint32_t cold_file_align(int fd);

/* By at least one extent. Errors: -ENOSPC, those of fallocate(2) and of volume_ops. */
int cold_file_grow(struct cold_file *file);

/* Where the extent of that number, which is allocated, is for the descriptor. Error: -ENXIO. */
int cold_file_place(const struct cold_file *file, uint64_t number, uint64_t *ret_offset);

/* How many there may be, as far as is known: the disk is not asked before it is full. */
uint64_t cold_file_extents_max(const struct cold_file *file);

#endif
