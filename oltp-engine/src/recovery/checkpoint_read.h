/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading checkpoints. Nothing in a file is trusted. */
#ifndef OLTP_CHECKPOINT_READ_H
#define OLTP_CHECKPOINT_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint_format.h"
#include "oltp-engine/src/io/log_io.h"

struct checkpoint_info {
	uint64_t number;
	uint64_t bytes;		/* of the file */
	bool is_good;		/* header and end are those of a whole checkpoint; then: */
	struct checkpoint_header header;
	struct checkpoint_end end;
};

/*
 * Looks at header and end. A file that is no whole checkpoint of the database is no error. Errors:
 * those of files, -ENOMEM.
 */
int checkpoint_look(const struct log_io *io, const char *dir, uint64_t number,
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
int checkpoint_read(const struct log_io *io, const char *dir, const struct checkpoint_info *info,
		    int (*fn)(void *ctx, const struct checkpoint_rows *rows), void *ctx,
		    uint64_t *ret_offset);

#endif
