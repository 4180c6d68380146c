/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing the file of a checkpoint. Rows are taken up in memory alone, so that they may be locked
 * meanwhile; the file is written apart from that.
 */
#ifndef OLTP_CHECKPOINT_WRITE_H
#define OLTP_CHECKPOINT_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "checkpoint_format.h"
#include "log_io.h"

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
	uint64_t n_blocks, n_rows;
	struct checkpoint_buffer *filling;	/* rows are added to it */
	struct checkpoint_buffer *full, **full_end;	/* to be written, in order */
	struct checkpoint_buffer *free;
};

/*
 * Begins checkpoint header->number under its temporary name; header needs but number, database,
 * start and tables. dir and io must stay. Errors: -ENOMEM, -ENAMETOOLONG, those of files.
 */
int checkpoint_writer_open(struct checkpoint_writer *writer, const struct log_io *io,
			   const char *dir, const struct checkpoint_header *header);

/* One row, into memory. Errors: -ENOMEM. */
int checkpoint_writer_add(struct checkpoint_writer *writer, uint32_t table, uint32_t record_bytes,
			  uint64_t key, const void *record);

/* Writes what is full. Errors: those of writing. */
int checkpoint_writer_drain(struct checkpoint_writer *writer);

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
