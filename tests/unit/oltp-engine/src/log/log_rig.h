/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An engine with a log in a folder of its own, what stands between it and the disk, and what the
 * log says in the end, for tests. */
#ifndef LOG_RIG_H
#define LOG_RIG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/log/log.h"
#include "oltp-engine/src/log/log_decode.h"

/* What becomes of the groups' writes. */
enum log_fake_mode {
	LOG_FAKE_WRITE,		/* they are done */
	LOG_FAKE_HOLD,		/* they wait for another mode */
	LOG_FAKE_SHORT,		/* a block at a time */
	LOG_FAKE_SPLIT,		/* as SHORT, and a part of the next block */
	LOG_FAKE_NOTHING,	/* nothing is written, without an error */
	LOG_FAKE_ENOSPC,
	LOG_FAKE_EIO,		/* written, but the sync failed */
};

/* Stands before the real thing. */
struct log_fake {
	struct io_files real;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum log_fake_mode mode;
	uint32_t n_held;	/* writes that wait, now */
	uint32_t n_writes;	/* begun */
	uint32_t n_files;	/* opened with O_CREAT */
	int open_error;		/* for those; -errno */
	int checkpoint_error;	/* for those of checkpoints; -errno */
	bool no_direct;		/* not to be opened with O_DIRECT */
	uint32_t n_direct;	/* asked for with it */
	_Atomic uint64_t read_bytes;
};

struct log_rig {
	char dir[64];
	struct oltp_config config;
	struct log_fake fake;
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w;
};

#define LOG_RIG_RECORD_BYTES	100u

struct log_rig_row {
	uint64_t counter;
	uint8_t bytes[LOG_RIG_RECORD_BYTES - 8];
};

/*
 * Of cmocka: a folder, and a configuration for it, as *state, without an engine. In the end what is
 * open is closed, and the folder removed.
 */
int log_rig_setup(void **state);
int log_rig_teardown(void **state);

/* Engine, a table and a worker. */
void log_rig_open(struct log_rig *rig);

/* All that log_rig_open made; may be gone already. */
void log_rig_close(struct log_rig *rig);

void log_fake_set(struct log_fake *fake, enum log_fake_mode mode);

/* Opened so far to be made, if they are not there. */
uint32_t log_fake_files(struct log_fake *fake);

/* Until a write is held. */
void log_fake_wait_held(struct log_fake *fake);

/* One transaction each. */
enum oltp_rc log_rig_insert(struct log_rig *rig, uint64_t key, uint64_t counter);
enum oltp_rc log_rig_count_up(struct oltp_worker *w, struct oltp_table *table, uint64_t key);

struct log_seen {
	uint64_t segments, groups, entries, ops, bytes;
	uint64_t epoch_last, csn_last, group_last;
};

/*
 * Reads the folder's log from its beginning and calls fn with each operation, in the order of redo
 * (NULL: does not). Fails if anything is not as log_format.h says. Returns what there was.
 */
struct log_seen log_rig_read(const char *dir,
			     void (*fn)(void *ctx, const struct log_group_header *group,
					const struct log_entry *entry, const struct log_op *op),
			     void *ctx);

#define LOG_MODEL_KEYS	4096u

/* Rows of one table as the log says. */
struct log_model {
	uint32_t table;
	struct {
		bool is_there;
		struct log_rig_row row;
	} rows[LOG_MODEL_KEYS];
};

void log_model_redo(void *model, const struct log_group_header *group,
		    const struct log_entry *entry, const struct log_op *op);

/* The table has these rows and no others. */
void log_model_is(const struct log_model *model, struct oltp_table *table);

#endif
