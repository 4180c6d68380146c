/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a checkpoint looks like; numbers as in log_format.h.
 *
 *	checkpoint-%016llx	a whole one
 *	checkpoint-%016llx.tmp	one that is being written, or was when there was a crash; or
 *				a superfluous one, for the next to be written over it
 *
 * A header of one block, blocks of rows, anything, an end of one block where the file ends. Each
 * row of each table is in it once, as it was at some moment between the begin of the checkpoint and
 * its end; rows that came or went meanwhile may be in it or not. With the log from start_group on
 * it is the database (redo is described in recover_redo.h). It has nothing of transactions that are
 * in groups after end_group.
 */
#ifndef OLTP_CHECKPOINT_FORMAT_H
#define OLTP_CHECKPOINT_FORMAT_H

#include <stdint.h>

#include "oltp-engine/src/log/log_format.h"

#define CHECKPOINT_VERSION	1u
#define CHECKPOINT_NAME		"checkpoint-%016llx"
#define CHECKPOINT_TEMP_SUFFIX	".tmp"

#define CHECKPOINT_MAGIC	"EBBCKP1"
#define CHECKPOINT_BLOCK_MAGIC	"EBBCKB1"
#define CHECKPOINT_END_MAGIC	"EBBCKE1"

/* Followed by zeros up to LOG_BLOCK_BYTES. */
struct checkpoint_header {
	uint8_t magic[LOG_MAGIC_BYTES];
	uint32_t version;
	uint32_t crc32c;	/* of the structure with this as 0 */
	uint8_t database[16];
	uint64_t number;	/* the one in its name */
	uint64_t start_group;
	uint64_t start_csn;	/* all below are in it */
	uint32_t n_tables;
	uint32_t reserved;
	struct log_catalog_table tables[LOG_TABLES_MAX];
};

/* Followed by rows: the key, then the record, padded to 8 bytes. */
struct checkpoint_block {
	uint8_t magic[LOG_MAGIC_BYTES];
	uint8_t database[16];
	uint64_t number;	/* of the checkpoint */
	uint64_t block;		/* from 0, in order */
	uint32_t table;
	uint32_t n_rows;
	uint32_t bytes;		/* with this header; a multiple of LOG_BLOCK_BYTES */
	uint32_t crc32c;	/* of all bytes with this as 0 */
};

/* As the header. */
struct checkpoint_end {
	uint8_t magic[LOG_MAGIC_BYTES];
	uint32_t version;
	uint32_t crc32c;
	uint8_t database[16];
	uint64_t number;
	uint64_t n_blocks;
	uint64_t n_rows;
	uint64_t end_group;	/* 0: no group was written yet */
	uint64_t end_csn;	/* nothing in it has this one or a greater one */
	uint64_t end_epoch;	/* nothing in it is of a later one */
};

_Static_assert(sizeof(struct checkpoint_header) == 192, "layout of a checkpoint's header");
_Static_assert(sizeof(struct checkpoint_block) == 56, "layout of a checkpoint's block");
_Static_assert(sizeof(struct checkpoint_end) == 80, "layout of a checkpoint's end");

#endif
