/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which files of a database there are, by their names. */
#ifndef OLTP_RECOVER_FILES_H
#define OLTP_RECOVER_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "oltp-engine/src/io/log_io.h"

struct recover_files {
	uint64_t *segments, *checkpoints, *temps;	/* numbers, in any order */
	size_t n_segments, n_checkpoints, n_temps;	/* temps: checkpoints that have no name */
};

/* Errors: -ENOMEM, those of reading a folder. */
int recover_files_list(const struct log_io *io, const char *dir, struct recover_files *ret_files);
void recover_files_finish(struct recover_files *files);

#endif
