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
 *   K4  A row may be older than the record: what the log changed since is in memory, as a patch,
 *       and is put into each copy that is made of the row (cold_patch_apply). It stays as long as
 *       the block, since a buffered record may go and be read again. Once transactions run no
 *       patch is made or changed.
 */
#ifndef OLTP_COLD_CHECKPOINT_H
#define OLTP_COLD_CHECKPOINT_H

#include "cold.h"

/* Alignment of reads of the file: offsets, lengths and buffers. */
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
	const uint64_t *sorts;		/* n_keyed of the table for each row */
	/*
	 * Called when a row takes the place of an earlier one of its key, with the sort keys of
	 * both. A result that is not 0 ends the adding. NULL: nobody wants to know.
	 */
	int (*replaced)(struct oltp_table *table, uint64_t key, const uint64_t *before,
			const uint64_t *sorts);
};

/*
 * The index gets a stub for each row. Of a key that is there twice the later row counts. One
 * thread, before any transaction. Errors: -ENOMEM, -ENOSPC (too many blocks).
 */
int cold_checkpoint_add(struct cold *cold, const struct cold_checkpoint_rows *rows);

/*
 * Takes a record that is only in the checkpoint out of the index by primary key, unread. Before any
 * transaction, in an epoch. *ret_sorts: its sort keys, as long as that lasts. False: it is
 * somewhere else.
 */
bool cold_checkpoint_delete(struct cold *cold, struct oltp_table *table, uint64_t hash,
			    const struct index_ref *ref, const uint64_t **ret_sorts);

/* The log has been redone: sort keys need not be kept any longer. */
void cold_checkpoint_redone(struct cold *cold);

/*
 * The patch of a record that is only in the checkpoint (K4), a new one if need be. entry: of the
 * index. NULL: it is somewhere else, or there is no memory for more patches. Before any
 * transaction.
 */
uint8_t *cold_patch_get(struct cold *cold, uint64_t entry);

/* Bytes of the record, which are within it. */
void cold_patch_set(uint8_t *patch, const struct oltp_table *table, uint32_t offset,
		    const void *data, uint32_t bytes);

/* data: the record as it was read. Does nothing if it has no patch, or is no row. */
void cold_patch_apply(const struct cold_block *block, uint32_t slot, uint8_t *data);

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

/* What a block of a checkpoint has beside the books that others have, too. */
void cold_checkpoint_books_free(struct cold_block *block);

/* The block is empty, and nobody looks at it any more. Under the lock. */
void cold_checkpoint_retire(struct cold *cold, struct cold_block *block);

/* At the end of an engine, with no read on its way. */
void cold_checkpoint_close(struct cold *cold);

#endif
