/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cold records that are in the file of a checkpoint: after a lazy recovery (recover_lazy.h) the
 * index has stubs to them, and no row was read. They are looked up, read, checked and admitted as
 * those in the cold file are. What is different:
 *
 *   K1  The file is never written. A block whose last record has left it (into memory, or deleted)
 *       is not used again; once all blocks are empty the file is closed, and may go.
 *   K2  A row is its key and then its bytes. Where a cold record has its checksum, in front of the
 *       key, the bytes of the row before it are. A buffer may be written there (admit.h, V1), since
 *       a record is buffered only after all rows that were read with it have been admitted. The
 *       checksum is in memory: the checkpoint's directory has it.
 *   K3  Nothing is known of a record's last use.
 */
#ifndef OLTP_COLD_CHECKPOINT_H
#define OLTP_COLD_CHECKPOINT_H

#include "cold.h"

/* Of what is read of the file: offsets, lengths and buffers. */
#define COLD_CHECKPOINT_ALIGN	4096u

/*
 * The file of checkpoint number, from now on open. Once, and before any transaction. Errors: those
 * of opening a file.
 */
int cold_checkpoint_open(struct cold *cold, const struct io_files *io, const char *path,
			 uint64_t number);

/* Rows of one table that lie one behind the other. */
struct cold_checkpoint_rows {
	struct oltp_table *table;	/* whose records can be cold */
	uint64_t offset;		/* of the first, in the file */
	uint32_t row_bytes;		/* from row to row: as checkpoint_file.h says */
	uint32_t n;
	const uint64_t *keys;
	const uint32_t *checks;		/* CRC-32C of each row's row_bytes */
};

/*
 * The index gets a stub for each row. Of a key that is there twice the later row counts. One
 * thread, before any transaction. Errors: -ENOMEM, -ENOSPC (too many blocks).
 */
int cold_checkpoint_add(struct cold *cold, const struct cold_checkpoint_rows *rows);

/* All rows have been added: if none is left in the file, that is closed. */
void cold_checkpoint_added(struct cold *cold);

/* The checkpoint whose file must stay; 0: none. Any thread. */
uint64_t cold_checkpoint_number(const struct cold *cold);

/* How many records are in it and nowhere else, or in a buffer as well. Any thread. */
uint64_t cold_checkpoint_rows(struct cold *cold);

/*
 * Pins the first block from *next on (0: the first of all) in which records are, and counts *next
 * on. NULL: there is none.
 */
struct cold_block *cold_checkpoint_take(struct cold *cold, uint64_t *next);

/* Some of the block cannot be read: it is not taken any more. */
void cold_checkpoint_pass_over(struct cold *cold, struct cold_block *block);

/* So many bytes of the file have all rows of the block, from *ret_offset on. */
uint32_t cold_checkpoint_extent(const struct cold_block *block, uint64_t *ret_offset);

/* As cold_record_check, for a block of a checkpoint. */
const void *cold_checkpoint_check(const struct cold_block *block, uint32_t slot,
				  const uint8_t *at);

/* The block is empty, and nobody looks at it any more. Under the lock. */
void cold_checkpoint_retire(struct cold *cold, struct cold_block *block);

/* At the end of an engine, with no read on its way. */
void cold_checkpoint_close(struct cold *cold);

#endif
