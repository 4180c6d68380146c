/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a volume looks like on disk: a block device, or a regular file of one length, that holds the
 * files of one engine. All numbers are little-endian, all structures have one layout on every
 * machine; reserved fields are written as 0 and not looked at.
 *
 *	0				copy 0 of the books
 *	VOLUME_COPY_BYTES		copy 1
 *	2 * VOLUME_COPY_BYTES		units of unit_bytes each, to the end
 *
 * The books say which files there are. A copy is a struct volume_super, which takes a block,
 * followed by n_files struct volume_entry and n_extents struct volume_extent, the extents of the
 * first file first. A copy counts if both of its checksums are right, and the one with the greater
 * sequence counts more.
 *
 *   V1  A change of the books is written to one copy, synced, and then to the other. So at any
 *       moment one copy is whole, and damage to one copy at rest loses nothing.
 *   V2  A unit that one of the copies on disk gives to a file holds no other file's bytes: it is
 *       not used again before both copies on disk say that it is free.
 *   V3  Who opens the volume to write first writes a generation that is one higher, and a random
 *       owner. Before it writes the books, or gives units to a file, it looks whether the books on
 *       disk still have them. (What is on its way to the device meanwhile only the device can
 *       refuse.)
 *
 * What a file's bytes are that were never written is not defined.
 */
#ifndef OLTP_VOLUME_FORMAT_H
#define OLTP_VOLUME_FORMAT_H

#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "volumes are little-endian"
#endif

#define VOLUME_VERSION		1u
/* Whatever block size from 512 to 4096 the device has, this is a multiple of it. */
#define VOLUME_BLOCK_BYTES	4096u
#define VOLUME_COPY_BYTES	(256u << 10)
#define VOLUME_DATA_FROM	(2ull * VOLUME_COPY_BYTES)
/* An extent of cold records (cold.h) must not lie in two extents of a volume. */
#define VOLUME_UNIT_BYTES_MIN	(256u << 10)
#define VOLUME_UNIT_BYTES_MAX	(1u << 30)
#define VOLUME_UNITS_MAX	(1u << 18)
#define VOLUME_BYTES_MIN	(8ull << 20)
#define VOLUME_FILES_MAX	1024u
#define VOLUME_EXTENTS_MAX	16384u
#define VOLUME_NAME_BYTES	48u	/* the final 0 included */

#define VOLUME_MAGIC		"EBBVOL1"	/* with its final 0 */
#define VOLUME_MAGIC_BYTES	8u

/* magic, version and crc32c keep their places in all versions, and so does this length. */
struct volume_super {
	uint8_t magic[VOLUME_MAGIC_BYTES];
	uint32_t version;
	uint32_t crc32c;	/* of the structure with this as 0 */
	uint8_t uuid[16];	/* random: which volume this is */
	uint8_t owner[16];	/* random: which opening of the volume wrote this */
	uint64_t generation;	/* counts the openings to write; 0: there was none */
	uint64_t sequence;	/* counts the writes of the books */
	uint64_t bytes;		/* of the volume, with both copies */
	uint32_t unit_bytes;	/* a power of two */
	uint32_t n_files;
	uint32_t n_extents;	/* of all files */
	uint32_t table_crc32c;	/* of entries and extents */
	uint64_t reserved[5];
};

struct volume_entry {
	char name[VOLUME_NAME_BYTES];	/* unique, not empty, ends with a 0 */
	uint64_t bytes;
	uint32_t n_extents;
	uint32_t reserved;
};

/* Some units of a file, in a row. */
struct volume_extent {
	uint32_t unit;
	uint32_t n;
};

_Static_assert(sizeof(struct volume_super) == 128, "layout of a superblock");
_Static_assert(sizeof(struct volume_entry) == 64, "layout of an entry");
_Static_assert(sizeof(struct volume_extent) == 8, "layout of an extent");
_Static_assert(VOLUME_BLOCK_BYTES + VOLUME_FILES_MAX * sizeof(struct volume_entry) +
	       VOLUME_EXTENTS_MAX * sizeof(struct volume_extent) <= VOLUME_COPY_BYTES,
	       "the longest table fits");

#endif
