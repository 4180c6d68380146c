/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a checkpoint looks like; numbers as in log_format.h.
 *
 *	checkpoint-%016llx	a whole one
 *	checkpoint-%016llx.tmp	one that is being written, or was when there was a crash; or
 *				a superfluous one, for the next to be written over it
 *
 * A header of one block, blocks of rows, anything, an end of one block where the file ends. Each
 * row of each table is in it, as it was at some moment between the begin of the checkpoint and its
 * end; rows that came or went meanwhile may be in it or not, and one that went and came again may
 * be in it twice. With the log from start_group on it is the database (redo is described in
 * recover_redo.h). It has nothing of transactions that are in groups after end_group.
 *
 * Blocks without rows are the pieces of the directory (checkpoint_directory.h), which says where
 * each row is; the reference to it is in the last block, behind the end. Programs that know of no
 * directory read such a checkpoint as well.
 */
#ifndef OLTP_CHECKPOINT_FILE_H
#define OLTP_CHECKPOINT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint_directory.h"
#include "oltp-engine/src/io/io_files.h"
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

/*
 * Writing the file of a checkpoint. Rows are taken up in memory alone, so that they may be locked
 * meanwhile; the file is written apart from that.
 */

#define CHECKPOINT_PATH_BYTES	4096u

/* Blocks are so long unless one row is longer. */
#define CHECKPOINT_BLOCK_BYTES	(256u << 10)

struct checkpoint_buffer {
	struct checkpoint_buffer *next;
	struct checkpoint_block *block;
	size_t room, used;
	bool is_piece;		/* of the directory: not used again */
};

struct checkpoint_writer {
	const struct io_files *io;
	const char *dir;
	struct checkpoint_header header;
	int fd;
	uint64_t offset;
	uint64_t file_bytes;	/* of the spare that is written over; 0: it is a new file */
	uint64_t planned;	/* where the block after all those that are full will be */
	struct directory_builder directory;
	uint64_t n_blocks, n_rows;
	struct checkpoint_buffer *filling;	/* rows are added to it */
	struct checkpoint_kind kind;	/* of those */
	struct checkpoint_buffer *full, **full_end;	/* to be written, in order */
	struct checkpoint_buffer *free;
};

/* A file with a temporary name, of no use but for its room. */
struct checkpoint_spare {
	uint64_t number;
	uint64_t bytes_max;	/* not used if it is longer */
};

/*
 * Begins checkpoint header->number under its temporary name; header needs but number, database,
 * start and tables. spare, if not NULL, becomes its file: to write over it the file system need not
 * find room or free any, for which the log's writes would wait. dir and io must stay. Errors:
 * -ENOMEM, -ENAMETOOLONG, those of files.
 */
int checkpoint_writer_open(struct checkpoint_writer *writer, const struct io_files *io,
			   const char *dir, const struct checkpoint_header *header,
			   const struct checkpoint_spare *spare);

/* A row that is to be added. */
struct checkpoint_row {
	uint64_t key;
	const void *record;
	uint32_t record_bytes;
	const uint64_t *sorts;	/* as its kind says */
};

/* One row, into memory. kind: the same for all rows of a table. Errors: -ENOMEM. */
int checkpoint_writer_add(struct checkpoint_writer *writer, const struct checkpoint_kind *kind,
			  const struct checkpoint_row *row);

/* Is there a buffer to be written? */
static inline bool checkpoint_writer_is_full(const struct checkpoint_writer *writer)
{
	return writer->full;
}

/* Writes the first of these buffers. Errors: those of writing. */
int checkpoint_writer_write(struct checkpoint_writer *writer);

/* Writes all of it, up to the end, and waits until it is on disk. */
int checkpoint_writer_finish(struct checkpoint_writer *writer, uint64_t end_group,
			     uint64_t end_csn, uint64_t end_epoch);

/* Gives the file its final name: from then on the checkpoint is there, also after a crash. */
int checkpoint_writer_publish(struct checkpoint_writer *writer);

/* Frees everything; what was not published is removed. */
void checkpoint_writer_close(struct checkpoint_writer *writer);

/* Bytes written so far. */
static inline uint64_t checkpoint_writer_bytes(const struct checkpoint_writer *writer)
{
	return writer->offset;
}

/* Bytes from row to row in a block of a table with such records. */
static inline uint32_t checkpoint_row_bytes(uint32_t record_bytes)
{
	return (uint32_t)sizeof(uint64_t) + ((record_bytes + 7) & ~7u);
}

/* Is it a good block of that checkpoint and number, and no longer than bytes_max? */
bool checkpoint_block_is_good(const struct checkpoint_block *block, uint64_t bytes_max,
			      const struct checkpoint_header *header);

/* The name of a checkpoint in dir. Errors: -ENAMETOOLONG. */
int checkpoint_path(char *path, size_t room, const char *dir, uint64_t number, const char *suffix);

/* Reading checkpoints. Nothing in a file is trusted. */

struct checkpoint_info {
	uint64_t number;
	uint64_t bytes;		/* of the file */
	bool is_good;		/* header and end are those of a whole checkpoint; then: */
	struct checkpoint_header header;
	struct checkpoint_end end;
	struct checkpoint_directory_ref directory;	/* n_pieces 0: there is none */
};

/*
 * Looks at header and end. A file that is no whole checkpoint of the database is no error. Errors:
 * those of files, -ENOMEM.
 */
int checkpoint_look(const struct io_files *io, const char *dir, uint64_t number,
		    const uint8_t database[16], struct checkpoint_info *ret_info);

struct checkpoint_rows {
	uint32_t table, n_rows;
	uint32_t row_bytes;	/* from row to row */
	const uint8_t *rows;	/* each: the key, then the record */
	uint64_t offset;	/* in the file, of what comes after them */
};

/*
 * Calls fn with all rows, block after block; what it is given stays until it returns. Errors: what
 * fn returned; -EUCLEAN: the checkpoint is damaged at *ret_offset; those of files, -ENOMEM.
 */
int checkpoint_read(const struct io_files *io, const char *dir, const struct checkpoint_info *info,
		    int (*fn)(void *ctx, const struct checkpoint_rows *rows), void *ctx,
		    uint64_t *ret_offset);

/* Which files of a database there are, by their names. */

struct recover_files {
	uint64_t *segments, *checkpoints, *temps;	/* numbers, ascending */
	size_t n_segments, n_checkpoints, n_temps;	/* temps: checkpoints that have no name */
};

/* Errors: -ENOMEM, those of reading a folder. */
int recover_files_list(const struct io_files *io, const char *dir, struct recover_files *ret_files);
void recover_files_finish(struct recover_files *files);

#endif
