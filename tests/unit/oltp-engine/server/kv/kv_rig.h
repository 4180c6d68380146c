/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A keyspace on a real engine, without sockets: commands as lines of words, replies as bytes. */
#ifndef KV_RIG_H
#define KV_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/unit/oltp-engine/src/io/log_faults.h"
#include "oltp-engine/server/kv/kv.h"
#include "oltp-engine/server/resp/out.h"
#include "oltp-engine/server/resp/parse.h"

#define KV_RIG_SESSIONS		4u

struct kv_rig {
	struct oltp_config engine_config;
	struct kv_config config;
	struct oltp_blocks_native *blocks;
	uint64_t limit_bytes;	/* of blocks that the test provides itself; 0: it does not */
	struct oltp_engine *engine;
	struct kv *kv;
	/* Session i runs on worker i. */
	struct oltp_worker *workers[KV_RIG_SESSIONS];
	struct kv_session *sessions[KV_RIG_SESSIONS];
	struct resp_out out;
	enum kv_after after;	/* of the last command */
	uint64_t epoch;
};

/* That of the test that runs. */
extern struct kv_rig rig;

/*
 * For cmocka: opens rig without memory limit, disk or log. *state points to the bits of the hash
 * that are used, a uint32_t; NULL: all.
 */
int kv_rig_set_up(void **state);
/* kv_audit, and closes rig. */
int kv_rig_tear_down(void **state);

/*
 * A test with the whole hash; the same twice, with the whole hash and with two bits of it, so that
 * keys collide: *state points to the bits, 0 for all.
 */
#define KV_TEST(name) \
	cmocka_unit_test_setup_teardown(name, kv_rig_set_up, kv_rig_tear_down)
#define KV_TEST_WHOLE_AND_CUT(name) \
	{ #name, name, kv_rig_set_up, kv_rig_tear_down, (void *)(uintptr_t)&kv_rig_whole }, \
	{ #name " (2 bits of hash)", name, kv_rig_set_up, kv_rig_tear_down, \
	  (void *)(uintptr_t)&kv_rig_cut }
extern const uint32_t kv_rig_whole, kv_rig_cut;

#define WRONGTYPE "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

/* Without memory limit, disk or log. hash_bits: 0 for all. */
void kv_rig_open(struct kv_rig *rig, uint32_t hash_bits);

/* With what rig->engine_config and rig->config say; the rest of rig is zero. */
void kv_rig_open_with(struct kv_rig *rig);
void kv_rig_close(struct kv_rig *rig);

/* Memory of so many bytes, and a disk for cold records. Before kv_rig_open_with. */
void kv_rig_limit(struct kv_rig *rig, uint64_t limit_bytes, bool with_disk);

/*
 * One attempt at the command of these arguments on session i. The reply, whose length is n, is in
 * rig->out.
 */
enum oltp_rc kv_rig_try(struct kv_rig *rig, uint32_t i, const struct resp_arg *args,
			uint32_t n_args, bool retry);

/* Until it is through; conflicts have nobody to be with, so there are none in a row for ever. */
void kv_rig_run(struct kv_rig *rig, uint32_t i, const struct resp_arg *args, uint32_t n_args);

/*
 * The same with words of a line: "SET key value". "" in it is an empty argument; $N one of N bytes,
 * which are the number N in letters over and over.
 */
void kv_rig_do(struct kv_rig *rig, uint32_t i, const char *line);
enum oltp_rc kv_rig_try_line(struct kv_rig *rig, uint32_t i, const char *line, bool retry);

/* Runs on session 0 (or i) and compares the whole reply. */
void expect_reply(struct kv_rig *rig, const char *line, const char *reply);
void expect_reply_of(struct kv_rig *rig, uint32_t i, const char *line, const char *reply);

/* Whether the reply begins so. */
void expect_begins(struct kv_rig *rig, const char *line, const char *begin);

/* The reply of the last command. */
void expect_last(struct kv_rig *rig, const char *reply);

/* The integer that the command answers. */
int64_t kv_rig_integer(struct kv_rig *rig, const char *line);

/* How many rows the table has of each type (enum row_type). */
void kv_rig_count_rows(uint32_t ret_n[4]);

/* All that SCAN, with more arguments in options, finds; count of distinct names "k<number>". */
uint32_t kv_rig_scan_all(struct kv_rig *rig, const char *command, const char *options, bool *seen,
			 uint32_t n_seen);

#endif
