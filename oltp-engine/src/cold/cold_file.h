/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file that cold records are in: nameless, opened for direct I/O, of extents of one size. The
 * extents in use are somebody else's business (cold.c); this grows the file.
 */
#ifndef OLTP_COLD_FILE_H
#define OLTP_COLD_FILE_H

#include <stdbool.h>
#include <stdint.h>

#define COLD_EXTENT_BYTES	(256u << 10)

struct cold_file {
	int fd;
	uint32_t align;		/* of offsets, lengths and buffers: a power of two */
	uint64_t bytes;		/* allocated */
	uint64_t bytes_max;	/* 0: no bound */
	bool is_full;		/* the last time that it should have grown, it could not */
};

/* Errors: those of open(2); -EINVAL: no direct I/O there. */
int cold_file_open(struct cold_file *file, const char *dir, uint64_t bytes_max);
void cold_file_close(struct cold_file *file);

/* At least one more extent. Errors: -ENOSPC and those of fallocate(2). */
int cold_file_grow(struct cold_file *file);

/* As many as there is room for, as far as is known: nobody asks a disk before it is full. */
uint64_t cold_file_extents_max(const struct cold_file *file);

#endif
