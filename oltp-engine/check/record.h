/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records histories of the engine for the checker: transactions on lists, registers and rows of an
 * ordered index, while workers come and go and the memory for records shrinks and grows.
 */
#ifndef OLTP_CHECK_RECORD_H
#define OLTP_CHECK_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oltp.h"

#define RECORD_LISTS		64u	/* at most, that are in use at once */
#define RECORD_WINDOWS		16u
#define RECORD_REGISTERS	1024u
#define RECORD_WORKERS		64u
/* Workers that may come in a whole history; over crashes, where each has a list of its own. */
#define RECORD_ATTACHED		(1u << 23)
#define RECORD_JOURNALS		(1u << 16)

/* What transactions do; any of them. */
#define RECORD_DO_LISTS		1u
#define RECORD_DO_REGISTERS	2u
#define RECORD_DO_ROWS		4u
#define RECORD_DO_ALL		7u

struct record_config {
	struct oltp_config engine;	/* blocks are set here, if memory_bytes is */
	uint32_t what;			/* RECORD_DO_...; 0: all */
	uint64_t transactions;		/* committed, then it ends */
	double seconds;			/* or after so long; 0: no bound */
	uint32_t workers;		/* at most, at once; 0: 4 */
	bool is_steady;			/* workers do not come and go */
	uint32_t lists, registers, windows;	/* in use at once; 0: 8, 32, 4 */
	uint32_t record_bytes;		/* 0: 256; at least that */
	uint64_t seed;
	/* Memory for records goes up and down between these; memory_bytes 0: it does not. */
	uint64_t memory_bytes, memory_low_bytes;
	/*
	 * Each event goes out before what follows it is done, so that nothing is missing if the
	 * process is killed; and each transaction appends to a list of its worker, from which to
	 * tell afterwards whether it was committed.
	 */
	bool is_for_crash;
	/*
	 * Rows are read when they are used: recovery is lazy, loads nothing by itself, and is
	 * followed by a checkpoint, so that there is one for the next process. Needs cold_dir.
	 */
	bool is_lazy;
};

/* What has to outlive the process for the next one to go on: zeroed at first, in shared memory. */
struct record_shared {
	_Atomic uint64_t attached;	/* workers so far */
	_Atomic uint64_t committed;	/* transactions */
	_Atomic uint32_t lists[RECORD_LISTS];	/* generation in use */
	_Atomic uint32_t windows[RECORD_WINDOWS];
	_Atomic uint32_t puts[RECORD_WINDOWS];	/* tried, in all generations */
	_Atomic uint32_t journals[RECORD_JOURNALS];	/* generation in use, by worker */
};

/* Where text goes, whole lines; any thread. 0 or -errno. */
struct record_sink {
	int (*write)(void *ctx, const char *text, size_t bytes);
	void *ctx;
};

struct record_stats {
	uint64_t committed, aborted;
	uint64_t conflicts, colds;	/* among the aborted */
	uint64_t workers;		/* that were started */
	uint64_t shrinks;		/* of memory */
	int sink_rc;			/* what the sink first failed with */
};

/*
 * Opens an engine, recovers it if it has a log, runs, reads everything there is in the end, closes
 * it. The first line of a history is the caller's. tell, which may be NULL, is called now and then.
 * Errors: -errno; -ENOTEMPTY: the log is of an earlier history; -EUSERS: too many workers came.
 */
int record_run(const struct record_config *config, struct record_shared *shared,
	       const struct record_sink *sink, void (*tell)(void *ctx, uint64_t committed),
	       void *ctx, struct record_stats *ret_stats);

#endif
