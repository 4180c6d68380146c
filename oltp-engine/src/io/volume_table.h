/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The books of a volume in memory: which files there are, and which units each has. No I/O, no
 * lock: volume.c does both. What is on disk is described in volume_format.h.
 */
#ifndef OLTP_VOLUME_TABLE_H
#define OLTP_VOLUME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "volume_format.h"

struct volume_file {
	char name[VOLUME_NAME_BYTES];	/* "": removed, and there until it is closed */
	uint64_t bytes;
	uint32_t n_extents, room;
	struct volume_extent *extents;
	uint32_t n_open;
	uint64_t grown;		/* volume_table.version when it last changed its length */
	struct volume_file *next;
};

/* Why a unit is not free; one that has none of these is. */
enum volume_unit {
	VOLUME_UNIT_TAKEN = 1,	/* a file has it */
	VOLUME_UNIT_COPY0 = 2,	/* copy 0 on disk gives it to a file */
	VOLUME_UNIT_COPY1 = 4,	/* copy 1 does */
	VOLUME_UNIT_IMAGE = 8,	/* besides: the newest image gives it to a file */
};

struct volume_table {
	uint32_t unit_bytes, n_units;
	uint8_t *units;		/* enum volume_unit */
	struct volume_file *files;
	uint32_t n_files, n_extents;	/* removed files included */
	uint64_t version;	/* counts changes */
};

/* An empty one. bytes: of the volume. Errors: -ENOMEM. */
int volume_table_init(struct volume_table *table, uint64_t bytes, uint32_t unit_bytes);
void volume_table_finish(struct volume_table *table);

/* NULL: there is none. */
struct volume_file *volume_table_find(const struct volume_table *table, const char *name);

/* An empty file. Errors: -EINVAL (no name), -ENAMETOOLONG, -ENOSPC (too many files), -ENOMEM. */
int volume_table_create(struct volume_table *table, const char *name,
			struct volume_file **ret_file);

/*
 * Gives the file units for so many bytes at least; its length stays. Errors: -ENOSPC (too few units
 * are free, or the table has no room for more extents), -ENOMEM; nothing has changed then.
 */
int volume_table_grow(struct volume_table *table, struct volume_file *file, uint64_t bytes);

/* The file is so long if it was shorter; it has the units. */
void volume_table_extend(struct volume_table *table, struct volume_file *file, uint64_t bytes);

/* The file is empty. */
void volume_table_cut(struct volume_table *table, struct volume_file *file);

/* A file that has that name loses it. Errors: -EINVAL, -ENAMETOOLONG. */
int volume_table_rename(struct volume_table *table, struct volume_file *file, const char *to);

/* Takes the name away. The file is gone, now or when it is closed. */
void volume_table_remove(struct volume_table *table, struct volume_file *file);

void volume_table_opened(struct volume_file *file);
void volume_table_closed(struct volume_table *table, struct volume_file *file);

/*
 * Where the byte at offset is on the device, and how many follow it there in a row; 0: the file has
 * no unit for it.
 */
uint64_t volume_table_place(const struct volume_table *table, const struct volume_file *file,
			    uint64_t offset, uint64_t *ret_bytes);

/*
 * Writes the table into the image of a copy, whose first block is left alone, and fills in the
 * fields of the superblock that describe the table. Notes for the two below which units it gives to
 * files. Returns how many bytes of the image are used, a multiple of VOLUME_BLOCK_BYTES; what is
 * behind is left alone.
 */
uint32_t volume_table_encode(struct volume_table *table, struct volume_super *super,
			     uint8_t *image);

/* That image is being written to copy 0 or 1, and was. Before the first one it may be torn. */
void volume_table_writing(struct volume_table *table, unsigned int copy);
void volume_table_written(struct volume_table *table, unsigned int copy);

/* From the image of a copy, to a table just made; both copies count as this one. Errors: -EUCLEAN,
 * -ENOMEM.
 */
int volume_table_decode(struct volume_table *table, const struct volume_super *super,
			const uint8_t *image);

/* Bytes of units that are free now, or will be once the books are written. */
uint64_t volume_table_free_bytes(const struct volume_table *table);

#endif
