/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the files in log_dir: which there are, the newest checkpoint, then the log behind it in the
 * order of commits. Two callers use that: recovery builds the database (recover.c), restoring looks
 * for rows that are missing (restore.c). Nothing in the folder is changed.
 *
 *	recover_read_look -> recover_read_checkpoint -> recover_read_log -> recover_read_finish
 *
 * The log may grow meanwhile (end_group), but no checkpoint may be made and no segment recycled.
 */
#ifndef OLTP_RECOVER_READ_H
#define OLTP_RECOVER_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint_file.h"
#include "oltp-engine/src/io/io_files.h"
#include "oltp-engine/src/log/log.h"
#include "oltp-engine/src/log/log_decode.h"
#include "oltp.h"
#include "recover_plan.h"

/*
 * Reads the groups of one segment after the other. A group that is not whole ends the log if no
 * whole group with its number or a greater one is behind it in its segment: it was on its way when
 * there was a crash, and nobody was told that it is there. Otherwise something is missing that was
 * on disk once: an error.
 */
struct recover_log {
	const struct io_files *io;
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

/*
 * A non-zero result of any ends the reading and is returned. The arguments stay valid until flush.
 */
struct recover_sink {
	/* The row is there, and as here. */
	int (*put)(void *ctx, struct oltp_table *table, uint64_t key, const void *row);
	/* Bytes of the row. */
	int (*update)(void *ctx, struct oltp_table *table, uint64_t key, struct log_cursor spans);
	int (*remove)(void *ctx, struct oltp_table *table, uint64_t key);
	/* After each block of the checkpoint and each group of the log; it is counted by now. */
	int (*flush)(void *ctx);
};

struct recover_read {
	/* The caller's. */
	struct oltp_engine *engine;
	const struct recover_sink *sink;
	void *ctx;
	/*
	 * The log is read up to the group before this one, which is on disk; UINT64_MAX: to its
	 * end.
	 */
	uint64_t end_group;
	/* What was read: looking, bytes, groups, transactions, csn, epoch, group, error. */
	struct oltp_recovery figures;
	struct log_catalog catalog;
	struct io_files files_io;
	const struct io_files *io;	/* that one */
	const char *dir;
	struct recover_files names;
	struct plan_files files;
	uint64_t *segment_bytes;	/* by name */
	struct checkpoint_info *checkpoints;	/* as files.checkpoints once planned */
	struct recover_plan plan;
	struct recover_log log;		/* next_group: the one after the last that was read */
	const struct log_entry **entries;	/* of a group, to be sorted */
	size_t entries_room;
};

/* engine, sink, ctx and end_group are set, the rest is zero. May be followed by finish only. */
void recover_read_begin(struct recover_read *read);
void recover_read_finish(struct recover_read *read);

/*
 * In this order. Errors: -EUCLEAN (figures.error says which file is damaged or missing), -EINVAL (a
 * table is missing), -ENOMEM, those of the sink and of files.
 */
int recover_read_look(struct recover_read *read);
int recover_read_checkpoint(struct recover_read *read);
int recover_read_log(struct recover_read *read);

/* After recover_read_look: the checkpoint that is to be read; NULL: there is none. */
const struct checkpoint_info *recover_read_planned(const struct recover_read *read);

/* For figures.error; returns rc. */
__attribute__((format(printf, 3, 4)))
int recover_complain(struct recover_read *read, int rc, const char *format, ...);

#endif
