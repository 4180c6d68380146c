/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading the groups of one segment after the other. A group that is not whole ends the log if it
 * is the last one that was written (it was on its way when there was a crash, and nobody was told
 * that it is there): no whole one with its number or a greater one is behind it in its segment.
 * Otherwise something is missing that was on disk once: an error.
 */
#ifndef OLTP_RECOVER_LOG_H
#define OLTP_RECOVER_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oltp-engine/src/io/log_io.h"
#include "oltp-engine/src/log/log_format.h"

struct recover_log {
	const struct log_io *io;
	const char *dir;
	const uint8_t *database;	/* 16 bytes */
	/* Called with each group. Non-zero ends it. */
	int (*fn)(void *ctx, const struct log_group_header *group);
	void *ctx;
	uint64_t next_group;		/* expected next */
	uint64_t skip_below;		/* groups before it are checked and not handed on */
	uint64_t end_offset;		/* where the last segment that was read ended */
	uint64_t torn_bytes;		/* of a group that was not whole */
	bool has_hole;			/* why the last error */
	uint8_t *buffer;
	size_t room;
};

void recover_log_finish(struct recover_log *log);

/*
 * The header; *ret_is_good: it is one, of this database and this segment. Also *ret_bytes of the
 * file. Errors: those of files, -ENOMEM.
 */
int recover_log_look(struct recover_log *log, uint64_t segment,
		     struct log_segment_header *ret_header, bool *ret_is_good,
		     uint64_t *ret_bytes);

/*
 * Hands on the groups of a good segment, up to the one before end_group (UINT64_MAX: it is the
 * last). What was read is then on disk, so that it is there the next time as well. Errors: those of
 * fn; -EUCLEAN with has_hole; those of files, -ENOMEM.
 */
int recover_log_read(struct recover_log *log, uint64_t segment, uint64_t end_group);

/* One without a good header behind the last: nothing after next_group may be in it. Errors: so. */
int recover_log_probe(struct recover_log *log, uint64_t segment);

#endif
