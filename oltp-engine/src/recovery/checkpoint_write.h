/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing the file of a checkpoint. Rows are taken up in memory alone, so that they may be locked
 * meanwhile; the file is written apart from that.
 */
#ifndef OLTP_CHECKPOINT_WRITE_H
#define OLTP_CHECKPOINT_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint_format.h"
#include "oltp-engine/src/io/log_io.h"

#define CHECKPOINT_PATH_BYTES	4096u

/* Blocks are so long unless one row is longer. */
#define CHECKPOINT_BLOCK_BYTES	(256u << 10)

struct checkpoint_buffer {
	struct checkpoint_buffer *next;
	struct checkpoint_block *block;
	size_t room, used;
};

struct checkpoint_writer {
	const struct log_io *io;
	const char *dir;
	struct checkpoint_header header;
	int fd;
	uint64_t offset;
	uint64_t file_bytes;	/* of the spare that is written over; 0: it is a new file */
	uint64_t n_blocks, n_rows;
	struct checkpoint_buffer *filling;	/* rows are added to it */
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
 * start and tables. spare, if not NULL, becomes its file: what is written over takes no room that
 * the file system would have to find, and gives none back, for which the log's writes would wait.
 * dir and io must stay. Errors: -ENOMEM, -ENAMETOOLONG, those of files.
 */
int checkpoint_writer_open(struct checkpoint_writer *writer, const struct log_io *io,
			   const char *dir, const struct checkpoint_header *header,
			   const struct checkpoint_spare *spare);

/* One row, into memory. Errors: -ENOMEM. */
int checkpoint_writer_add(struct checkpoint_writer *writer, uint32_t table, uint32_t record_bytes,
			  uint64_t key, const void *record);

/* Is there a buffer to be written? */
static inline bool checkpoint_writer_is_full(const struct checkpoint_writer *writer)
{
	return writer->full;
}

/* Writes the first one of those. Errors: those of writing. */
int checkpoint_writer_write(struct checkpoint_writer *writer);

/* Writes all of it, up to the end, and waits until it is on disk. */
int checkpoint_writer_finish(struct checkpoint_writer *writer, uint64_t end_group,
			     uint64_t end_csn, uint64_t end_epoch);

/* After that: the checkpoint is there, also after a crash. */
int checkpoint_writer_publish(struct checkpoint_writer *writer);

/* Frees everything; what was not published is removed. */
void checkpoint_writer_close(struct checkpoint_writer *writer);

/* Bytes written so far. */
static inline uint64_t checkpoint_writer_bytes(const struct checkpoint_writer *writer)
{
	return writer->offset;
}

/* The name of a checkpoint in dir. Errors: -ENAMETOOLONG. */
int checkpoint_path(char *path, size_t room, const char *dir, uint64_t number, const char *suffix);

#endif
