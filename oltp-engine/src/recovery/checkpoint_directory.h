/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directory of a checkpoint: the place, the key and a checksum of each row, and its keys in the
 * ordered indexes, so that a row can be found and read without all others (recover_lazy.h). Twelve
 * bytes a row, and eight for each ordered index that is not by primary key.
 *
 * It is written in pieces between the blocks of rows, so that a checkpoint in the making keeps
 * little of it in memory. A piece is a block without rows (checkpoint_file.h), in which follow:
 *
 *	struct checkpoint_piece
 *	struct checkpoint_part	parts[n_parts]	rows of one table, side by side in the file
 *	uint64_t		keys[n_rows]	of all parts, in order
 *	uint64_t		sorts[n_sorts]	each row's sort keys, n_sorts of its part
 *	uint32_t		checks[n_rows]	CRC-32C of each row: key, record and padding
 *
 * Each piece names the one before it; struct checkpoint_directory_ref, behind the checkpoint's end,
 * names the last one. All parts together have each row of the checkpoint once.
 */
#ifndef OLTP_CHECKPOINT_DIRECTORY_H
#define OLTP_CHECKPOINT_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oltp-engine/src/io/io_files.h"
#include "oltp-engine/src/log/log_format.h"

#define CHECKPOINT_PIECE_MAGIC		"EBBCKD2"
#define CHECKPOINT_DIRECTORY_MAGIC	"EBBCKR2"

/* Ordered indexes of one table. */
#define CHECKPOINT_SORTS_MAX		8u

struct checkpoint_piece {
	uint8_t magic[LOG_MAGIC_BYTES];
	uint64_t before;	/* offset of the block with the piece before it */
	uint32_t before_bytes;	/* length of that block; 0: this is the first piece */
	uint32_t n_parts;
	uint64_t n_rows;
	uint64_t n_sorts;
};

/* Whose rows some are, and which sort keys they have. */
struct checkpoint_kind {
	uint32_t table;
	uint32_t n_sorts;	/* of each row */
	uint32_t sorts_check;	/* how those are made: struct oltp_table's keyed_check */
};

struct checkpoint_part {
	uint64_t offset;	/* of the first row */
	uint32_t n_rows;
	struct checkpoint_kind kind;
};

struct checkpoint_directory_ref {
	uint8_t magic[LOG_MAGIC_BYTES];
	uint64_t last;		/* offset of the block with the last piece */
	uint32_t last_bytes;	/* length of that block */
	uint32_t n_pieces;
	uint32_t reserved;
	uint32_t crc32c;	/* of the structure with this as 0 */
};

_Static_assert(sizeof(struct checkpoint_piece) == 40, "layout of a piece of the directory");
_Static_assert(sizeof(struct checkpoint_part) == 24, "layout of a part of the directory");
_Static_assert(sizeof(struct checkpoint_directory_ref) == 32, "layout of the reference to it");

/* What a checkpoint in the making has of its directory in memory. All zero: nothing. */
struct directory_builder {
	struct checkpoint_part *parts;
	uint64_t *keys, *sorts;
	uint32_t *checks;
	size_t parts_room, keys_room, sorts_room, checks_room;
	uint32_t n_parts;
	uint64_t n_rows, n_sorts;
	uint32_t n_pieces;	/* that were taken */
	uint64_t last;		/* where the last of them is */
	uint32_t last_bytes;
};

/* The next row, with n_sorts sort keys. Errors: -ENOMEM. */
int directory_row_add(struct directory_builder *directory, uint64_t key, const uint64_t *sorts,
		      uint32_t n_sorts, uint32_t check);

/* The last n_rows rows are of that kind, side by side from offset on. Errors: -ENOMEM. */
int directory_part_end(struct directory_builder *directory, uint64_t offset,
		       const struct checkpoint_kind *kind, uint32_t n_rows);

/* Is it time for a piece? */
bool directory_is_full(const struct directory_builder *directory);

/* How long a piece of what was collected is, and the piece; its block will be at offset. */
size_t directory_piece_bytes(const struct directory_builder *directory);
void directory_piece_take(struct directory_builder *directory, uint8_t *piece, uint64_t offset);

/* After the last piece was taken. */
void directory_ref_fill(const struct directory_builder *directory,
			struct checkpoint_directory_ref *ret_ref);
bool directory_ref_is_good(const struct checkpoint_directory_ref *ref);

void directory_builder_finish(struct directory_builder *directory);

struct checkpoint_info;

/* The directory of a checkpoint, as read from its file. */
struct checkpoint_directory {
	uint8_t **blocks;	/* of the pieces, in the order of the file */
	uint32_t n;
	uint64_t bytes;		/* of the blocks */
};

/*
 * Reads all pieces and checks them, against each other and against what info says of the
 * checkpoint. Errors: -EUCLEAN (it is damaged), -ENOMEM, those of reading.
 */
int checkpoint_directory_read(const struct io_files *io, int fd, const struct checkpoint_info *info,
			      struct checkpoint_directory *ret_directory);

/* What the directory says of the rows of a part. */
struct checkpoint_keys {
	const uint64_t *keys, *sorts;
	const uint32_t *checks;
};

/* Calls fn with all parts, in the order of the file. A result that is not 0 ends that. */
int checkpoint_directory_each(const struct checkpoint_directory *directory,
			      int (*fn)(void *ctx, const struct checkpoint_part *part,
					const struct checkpoint_keys *keys), void *ctx);

void checkpoint_directory_finish(struct checkpoint_directory *directory);

#endif
