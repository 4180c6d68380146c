/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files in log_dir look like. All numbers are little-endian, all structures have one
 * layout on every machine; reserved fields are written as 0 and not looked at.
 *
 *	CATALOG			struct log_catalog: which database this is, and its tables
 *	log-%016llx		a segment, by its number
 *	spare-%016llx		a segment that is in use no more, to become a new one
 *
 * A segment is a header of one block and then groups, each at a multiple of LOG_BLOCK_BYTES, one
 * right behind the other, and in its last block how far groups reach (struct log_reach). The header
 * is written together with the first group. So a segment that was prepared and never used holds
 * anything: an older segment's bytes, or zeros.
 *
 * Group numbers are contiguous, over segments as well (log_segment_header.first_group). A group is
 * all or nothing, by its checksum: a header of LOG_GROUP_HEADER_BYTES, then entries up to its end,
 * one behind the other, of which those without operations are to be passed over. There is one entry
 * for each transaction that changed anything. Entries are in no order; those of all groups, sorted
 * by csn within each group, redo the database:
 *
 *   F1  Groups are in the order of epochs; no epoch is in two groups.
 *   F2  Of two transactions one of which saw or overwrote what the other left, the later one has
 *       the greater csn, and is in the same group or a later one.
 *   F3  csns are unique and rise; some are not used.
 *   F4  A group is written when the one before it is on disk. So behind the first group that is not
 *       whole there is none of the same segment number with a greater group number, unless the
 *       disk has lost something.
 *   F5  In one entry a row is in one state: put, deleted or changed. All bytes are those at commit.
 *       A row may have several UPDATE operations, whose spans may overlap: they agree.
 *   F6  A group is written once the reach on disk is not before its end. So where groups end none
 *       of the segment is behind that, and what is there need not be read. A reach that is damaged
 *       or not there (older programs wrote none) says nothing.
 */
#ifndef OLTP_LOG_FORMAT_H
#define OLTP_LOG_FORMAT_H

#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the files of the log are little-endian"
#endif

#define LOG_FORMAT_VERSION	1u
#define LOG_BLOCK_BYTES		4096u	/* of files: what is written is a multiple, and aligned */
#define LOG_ENTRY_ALIGN		8u	/* entries, operations and spans begin at such places */
#define LOG_TABLES_MAX		16u

#define LOG_CATALOG_NAME	"CATALOG"
#define LOG_SEGMENT_NAME	"log-%016llx"
#define LOG_SPARE_NAME		"spare-%016llx"

/* The bytes of the constants, their final 0 included. */
#define LOG_CATALOG_MAGIC	"EBBCAT1"
#define LOG_SEGMENT_MAGIC	"EBBLOG1"
#define LOG_GROUP_MAGIC		"EBBGRP1"
#define LOG_REACH_MAGIC		"EBBRCH1"
#define LOG_MAGIC_BYTES		8u

struct log_catalog_table {
	uint32_t number;	/* its place: tables are numbered from 0 as they are created */
	uint32_t record_bytes;
};

struct log_catalog {
	uint8_t magic[LOG_MAGIC_BYTES];
	uint32_t version;
	uint32_t crc32c;	/* of the structure with this as 0 */
	uint8_t database[16];	/* a random name, made with the first catalogue */
	uint32_t n_tables;
	uint32_t reserved;
	struct log_catalog_table tables[LOG_TABLES_MAX];
};

struct log_segment_header {
	uint8_t magic[LOG_MAGIC_BYTES];
	uint32_t version;
	uint32_t crc32c;	/* of the structure with this as 0; the rest of the block is 0 */
	uint8_t database[16];
	uint64_t segment;	/* the number in its name; if not, nothing is in the segment */
	uint64_t first_group;
	uint64_t bytes;		/* of the file */
	uint64_t reserved;
};

/* At the begin of a segment's last block. */
struct log_reach {
	uint8_t magic[LOG_MAGIC_BYTES];
	uint8_t database[16];
	uint64_t segment;	/* the number in its name; if not, it is an older segment's */
	uint64_t end;		/* no group is behind this offset */
	uint32_t reserved;
	uint32_t crc32c;	/* of the structure with this as 0; the rest of the block is 0 */
};

struct log_group_header {
	uint8_t magic[LOG_MAGIC_BYTES];
	uint8_t database[16];
	uint64_t segment;
	uint64_t group;
	uint64_t epoch_from, epoch_to;	/* both included; in between some may have been empty */
	uint64_t csn_first, csn_last;	/* the least and the greatest of its entries */
	uint64_t bytes;			/* with this header; a multiple of LOG_BLOCK_BYTES */
	uint32_t n_entries;		/* that have operations */
	uint32_t crc32c;		/* of all bytes with this as 0 */
	uint64_t reserved[5];
};

#define LOG_GROUP_HEADER_BYTES	128u

struct log_entry {
	uint32_t bytes;		/* to the next entry; a multiple of LOG_ENTRY_ALIGN */
	uint32_t n_ops;		/* 0: padding, of 8 bytes or more, that has no csn */
	uint64_t csn;
};

#define LOG_PADDING_BYTES_MIN	8u

enum log_op_kind {
	LOG_OP_UPDATE = 1,	/* the row is there; each span of it is now as here */
	LOG_OP_PUT = 2,		/* the row is there and as here, all of it; one span */
	LOG_OP_DELETE = 3,	/* the row is not there; no span */
};

struct log_op {
	uint8_t kind;		/* enum log_op_kind */
	uint8_t table;		/* its number */
	uint16_t n_spans;
	uint32_t bytes;		/* to the next operation, spans included */
	uint64_t key;		/* primary */
};

/* Followed by bytes of data and padding up to LOG_ENTRY_ALIGN. */
struct log_span {
	uint32_t offset;
	uint32_t bytes;
};

_Static_assert(sizeof(struct log_catalog) == 168, "layout of the catalogue");
_Static_assert(sizeof(struct log_segment_header) == 64, "layout of a segment's header");
_Static_assert(sizeof(struct log_reach) == 48, "layout of a segment's reach");
_Static_assert(sizeof(struct log_group_header) == LOG_GROUP_HEADER_BYTES, "layout of a group");
_Static_assert(sizeof(struct log_entry) == 16, "layout of an entry");
_Static_assert(sizeof(struct log_op) == 16, "layout of an operation");
_Static_assert(sizeof(struct log_span) == 8, "layout of a span");

#endif
