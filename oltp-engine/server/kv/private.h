/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private.h - what the commands share: the table of commands, the call of one, and the few steps
 * that most begin with.
 */
#ifndef OLTP_KV_PRIVATE_H
#define OLTP_KV_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/server/kv/keyspace.h"
#include "oltp-engine/server/kv/kv.h"
#include "oltp-engine/server/kv/meta.h"
#include "oltp-engine/server/kv/session.h"
#include "oltp-engine/server/resp/out.h"
#include "oltp-engine/server/resp/parse.h"
#include "oltp.h"

/* Of Redis, whose commands these are; clients look at it to see what they may ask for. */
#define KV_REDIS_VERSION	"7.0.15"

#define KV_TABLE_SLOTS		512u	/* of the commands' hash table */

struct kv {
	struct oltp_engine *engine;
	struct keyspace ks;
	struct meta meta;
	char *password;
	const struct kv_front_ops *front;
	void *front_ctx;
	uint32_t hash_bits;
	const struct kv_gate_ops *gate;	/* NULL: none */
	void *gate_ctx;
	uint32_t unit_bits;
	const struct kv_relocate_ops *relocate;	/* NULL: it cannot be moved */
	void *relocate_ctx;
	uint64_t rows, long_rows;	/* as expected */
	uint64_t started_ns;		/* CLOCK_MONOTONIC */
	const struct command *table[KV_TABLE_SLOTS];
	uint64_t names[KV_TABLE_SLOTS][2];	/* of them, in upper case */
	pthread_mutex_t sessions_lock;	/* the list, names of sessions */
	struct kv_session *sessions;
	uint64_t sessions_made;
	uint64_t commands_ended;	/* run by sessions that are gone; under sessions_lock */
	_Atomic uint64_t *page_marks;	/* see page.h; NULL: never watched */
};

/* What COMMAND says of a command, and what kv_run does with it. */
enum command_flag {
	CMD_WRITE = 1 << 0,
	CMD_READ = 1 << 1,
	CMD_FAST = 1 << 2,
	CMD_ADMIN = 1 << 3,
	CMD_DENY_OOM = 1 << 4,		/* "denyoom": may need memory */
	CMD_NO_AUTH = 1 << 5,		/* may be run before AUTH */
	CMD_NO_MULTI = 1 << 6,		/* refused between MULTI and EXEC */
	CMD_AT_ONCE = 1 << 7,		/* between MULTI and EXEC run, not queued */
	CMD_TXN = 1 << 8,		/* runs in a transaction, which kv_run begins and ends */
	CMD_ALL_KEYS = 1 << 9,		/* may meet any key, see gate.c */
	CMD_RESTRICTED = 1 << 10,	/* also for a session that is: kv_session_restrict */
};

struct call;
struct kv_cold_reads;
struct kv_unit_reader;

struct command {
	const char *name;		/* upper case */
	int16_t arity;			/* arguments, the name included; below 0: at least -arity */
	uint16_t flags;			/* of enum command_flag */
	/* Which arguments are keys: from first to last (below 0: counted from the end) by step. */
	int8_t first_key, last_key, key_step;
	const char *group, *since, *summary;
	enum oltp_rc (*run)(struct call *c);
};

extern const struct command kv_commands[];
extern const uint32_t kv_n_commands;

/* Fills kv->table. */
void commands_index(struct kv *kv);

/* By name, whatever its case; NULL: there is none. */
const struct command *command_find(const struct kv *kv, const struct resp_arg *name);

/* "get"; to has room for 32 bytes. */
const char *command_lower(const struct command *command, char *to);

/* One attempt at one command. */
struct call {
	struct kv *kv;
	struct kv_session *s;
	struct oltp_worker *worker;
	const struct command *command;
	const struct resp_arg *args;
	uint32_t n;
	struct resp_out *out;
	bool is_exec;		/* one of the queued commands of EXEC */
	enum kv_after after;
	/* What the transaction changes besides its rows, done once it is committed. */
	int64_t n_keys;		/* keys added less keys removed */
	bool has_written;	/* a procedure has: see KV_UNDO */
	bool has_all_units;	/* all are among those that it is going to pin */
	uint32_t n_dead;	/* hashes whose fields are left to be reaped */
	uint32_t n_watched;	/* keys that WATCH has written behind those of the session */
	uint64_t flush_from;	/* FLUSHALL: where to go on */
};

/*
 * What a command returns: OLTP_OK (its reply was appended), KV_ANSWERED (its reply is an error, and
 * nothing was changed), or what ended the transaction.
 */
#define KV_ANSWERED	((enum oltp_rc)1000)
/* Or this: its reply is an error as well, but something was changed: all of it is to be undone. */
#define KV_UNDO		((enum oltp_rc)1002)
/* Or this: it has met keys of units that are not here, see call_need. It is to be run again. */
#define KV_MORE		((enum oltp_rc)1001)

enum oltp_rc answer_error(struct call *c, const char *text);
enum oltp_rc answer_syntax(struct call *c);
enum oltp_rc answer_arity(struct call *c);
enum oltp_rc answer_not_integer(struct call *c);
/* A value of more than KV_VALUE_MAX bytes, a key of more than KV_NAME_MAX. */
enum oltp_rc answer_too_long(struct call *c);
enum oltp_rc answer_long_key(struct call *c);
/* A longer pattern: comparing takes as long as the product with the name. */
#define PATTERN_MAX	1024u
enum oltp_rc answer_long_pattern(struct call *c);
/* The value of a string or field that was found, or nil. */
enum oltp_rc answer_value(struct call *c, const struct found *found);

#define WRONGTYPE_TEXT	"WRONGTYPE Operation against a key holding the wrong kind of value"

/* The name that CLIENT LIST shows. False: it was refused, an error was appended. */
bool client_set_name(struct call *c, const struct resp_arg *name);

bool arg_is(const struct resp_arg *arg, const char *upper);

/* The key, of any type or absent. */
enum oltp_rc find_any(struct call *c, const struct resp_arg *name, bool exclusive,
		      struct found *ret_found);

/* The key, which must be of a type, or absent: found->row NULL. KV_ANSWERED: WRONGTYPE. */
enum oltp_rc find_key(struct call *c, const struct resp_arg *name, enum row_type type,
		      bool exclusive, struct found *ret_found);

/* Sets a string whatever was there before. */
enum oltp_rc set_key(struct call *c, const struct resp_arg *name, const struct resp_arg *value);

/* Instead of what was found, with exclusive, or where nothing was. */
enum oltp_rc set_found(struct call *c, struct found *found, const struct resp_arg *value);

/* Removes a key of any type, found with exclusive. n_fields_max: of a hash, see hash_remove. */
enum oltp_rc remove_key(struct call *c, struct found *found, uint32_t n_fields_max);

/*
 * A hash with all its fields; with more than n_fields_max the fields are left to hash_reap. Does
 * not count the key.
 */
#define HASH_FIELDS_AT_ONCE	128u
enum oltp_rc hash_remove(struct call *c, struct found *found, uint32_t n_fields_max);

/*
 * One transaction of its own that removes some fields of a dead hash, if there is one and no other
 * worker does it. OLTP_COLD: to be fetched; everything else was dealt with.
 */
enum oltp_rc hash_reap(struct kv *kv, struct oltp_worker *worker);

/*
 * gate.c. enter: false: not now, or never; ret_after and the reply say so. leave: the request has
 * ended, or is not to be tried again with what it has pinned.
 */
bool call_enter(struct call *c);

/*
 * Of a command that meets a key as it runs which it could not name before: pins its unit. KV_MORE:
 * that is not here. The command may ask for others that it will need too, has to end with KV_MORE,
 * and runs again when all have come. OLTP_NO_MEMORY.
 */
enum oltp_rc call_need(struct call *c, const struct resp_arg *name);

/* After KV_MORE, instead of call_enter. */
bool call_enter_again(struct call *c);
void session_leave(struct kv_session *s);

/* unit.c: as kv_unit_read and kv_unit_read_begin, of a range of keys; removes all keys of one. */
int keys_read(struct kv *kv, struct oltp_worker *worker, struct oltp_range keys,
	      int (*fn)(void *ctx, const uint8_t *record, uint32_t bytes), void *ctx);
int keys_read_begin(struct kv *kv, struct kv_cold_reads *reads, struct oltp_range keys,
		    struct kv_unit_reader **ret_reader);
int keys_remove(struct kv *kv, struct oltp_worker *worker, struct oltp_range keys);

/* Of the hash, or of a slot. */
uint32_t unit_of(const struct kv *kv, uint64_t hash);

/* Sort keys of the unit's keys. */
struct oltp_range unit_range(const struct kv *kv, uint32_t unit);

/* Of the unit with this sort key if only that one is pinned, of all keys otherwise. */
struct oltp_range keys_from(const struct call *c, uint64_t sort_key);

/* KV_ANSWERED, unless all keys are here. */
enum oltp_rc needs_all_keys(struct call *c);

/* The commands, by file. */
enum oltp_rc cmd_get(struct call *c);
enum oltp_rc cmd_set(struct call *c);
enum oltp_rc cmd_setnx(struct call *c);
enum oltp_rc cmd_getset(struct call *c);
enum oltp_rc cmd_getdel(struct call *c);
enum oltp_rc cmd_mget(struct call *c);
enum oltp_rc cmd_mset(struct call *c);
enum oltp_rc cmd_msetnx(struct call *c);
enum oltp_rc cmd_append(struct call *c);
enum oltp_rc cmd_strlen(struct call *c);
enum oltp_rc cmd_getrange(struct call *c);
enum oltp_rc cmd_setrange(struct call *c);

enum oltp_rc cmd_incr(struct call *c);
enum oltp_rc cmd_decr(struct call *c);
enum oltp_rc cmd_incrby(struct call *c);
enum oltp_rc cmd_decrby(struct call *c);
enum oltp_rc cmd_incrbyfloat(struct call *c);

enum oltp_rc cmd_del(struct call *c);
enum oltp_rc cmd_exists(struct call *c);
enum oltp_rc cmd_type(struct call *c);
enum oltp_rc cmd_dbsize(struct call *c);
enum oltp_rc cmd_randomkey(struct call *c);

enum oltp_rc cmd_hset(struct call *c);
enum oltp_rc cmd_hmset(struct call *c);
enum oltp_rc cmd_hsetnx(struct call *c);
enum oltp_rc cmd_hget(struct call *c);
enum oltp_rc cmd_hmget(struct call *c);
enum oltp_rc cmd_hgetall(struct call *c);
enum oltp_rc cmd_hkeys(struct call *c);
enum oltp_rc cmd_hvals(struct call *c);
enum oltp_rc cmd_hlen(struct call *c);
enum oltp_rc cmd_hdel(struct call *c);
enum oltp_rc cmd_hexists(struct call *c);
enum oltp_rc cmd_hstrlen(struct call *c);
enum oltp_rc cmd_hincrby(struct call *c);
enum oltp_rc cmd_hincrbyfloat(struct call *c);

enum oltp_rc cmd_scan(struct call *c);
enum oltp_rc cmd_hscan(struct call *c);
enum oltp_rc cmd_keys(struct call *c);

enum oltp_rc cmd_flush(struct call *c);

enum oltp_rc cmd_fcall(struct call *c);
enum oltp_rc cmd_fcall_ro(struct call *c);

enum oltp_rc cmd_multi(struct call *c);
enum oltp_rc cmd_exec(struct call *c);
enum oltp_rc cmd_discard(struct call *c);
enum oltp_rc cmd_watch(struct call *c);
enum oltp_rc cmd_unwatch(struct call *c);

enum oltp_rc cmd_ping(struct call *c);
enum oltp_rc cmd_echo(struct call *c);
enum oltp_rc cmd_hello(struct call *c);
enum oltp_rc cmd_auth(struct call *c);
enum oltp_rc cmd_select(struct call *c);
enum oltp_rc cmd_quit(struct call *c);
enum oltp_rc cmd_reset(struct call *c);
enum oltp_rc cmd_client(struct call *c);

enum oltp_rc cmd_info(struct call *c);
enum oltp_rc cmd_config(struct call *c);
enum oltp_rc cmd_command(struct call *c);
enum oltp_rc cmd_time(struct call *c);

enum oltp_rc cmd_relocate(struct call *c);

#endif
