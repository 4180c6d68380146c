/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kv.h - the commands of a Redis-like server on the engine: strings, hashes, counters,
 * transactions. Knows no socket: the caller hands in the arguments of a request and sends the
 * reply.
 *
 *   oltp_engine_open -> kv_open -> [oltp_recover] -> kv_start
 *     kv_session_create	(one for each connection)
 *       kv_run ... kv_run	(one request after the other, on the thread of a worker)
 *     kv_session_destroy
 *   kv_close -> oltp_engine_close
 *
 * Guarantees, by number (the tests name them):
 *
 *   K1  Every command is one serializable transaction of the engine, and so is EXEC with all that
 *       was queued: whole or not at all. But for FLUSHALL and FLUSHDB, see flush.c.
 *   K2  A command that answers an error has changed nothing. In EXEC the commands before and after
 *       it count, as Redis documents it; if the engine fails (no memory, too many keys) none does.
 *   K3  With durability "commit": what was answered after *ret_epoch was durable is there after a
 *       crash; half a command never is.
 *   K4  Two keys with the same hash are two keys. The secret of the hash is kept in the database.
 *   K5  What a SCAN or HSCAN, from cursor 0 until it answers 0, could have met all the time is
 *       returned at least once.
 *
 * Limits: keys and names of fields 512 bytes, values 16384 bytes, accesses of one transaction
 * (KV_TXN_RECORDS), commands and bytes queued by MULTI (KV_QUEUE_COMMANDS, KV_QUEUE_BYTES). A
 * request beyond a limit is answered by an error.
 */
#ifndef OLTP_KV_H
#define OLTP_KV_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"
#include "oltp-engine/server/resp/out.h"

struct resp_arg;
struct kv;
struct kv_session;

#define KV_NAME_MAX		512u		/* bytes of a key or of the name of a field */
#define KV_VALUE_MAX		16384u		/* bytes of a value */
#define KV_TXN_RECORDS		16384u		/* see kv_engine_config */
#define KV_TXN_UNDO_BYTES	(8u << 20)
#define KV_QUEUE_COMMANDS	8192u		/* between MULTI and EXEC */
#define KV_QUEUE_BYTES		(4u << 20)
#define KV_WATCHES_MAX		1024u		/* keys watched by one session */

/*
 * Parts of answers that come from the owner of the connections. Called on any worker's thread, also
 * by several at once; must not call kv_run. Each may be NULL.
 */
struct kv_front_ops {
	/*
	 * INFO: appends (resp_out_raw) lines "name:value\r\n" of the section to text: "server",
	 * "clients", "memory", "persistence", "stats", "cpu", "relocation".
	 */
	void (*info)(void *ctx, const char *section, struct resp_out *text);
	/*
	 * CONFIG GET: the i-th option, its name and its value as text (ret_value has room for n
	 * bytes, 0 included). False: there is no i-th.
	 */
	bool (*config)(void *ctx, uint32_t i, const char **ret_name, char *ret_value, uint32_t n);
};

/*
 * Of a database that two nodes hold parts of: the units (ranges of the hash of keys) that a command
 * needs. The keyspace writes units and n, the gate the rest.
 */
enum kv_gate {
	KV_GATE_OUT = 0,	/* has nothing pinned, and waits for nothing */
	KV_GATE_WAIT,		/* ready will be called */
	KV_GATE_IN,		/* all are pinned */
	KV_GATE_GONE,		/* the other node has them for good */
};

struct kv_pins {
	uint32_t *units;	/* none twice; ascending, but for those added by pin */
	uint32_t n, room;
	uint32_t n_pinned;	/* the first ones */
	_Atomic uint8_t state;	/* enum kv_gate */
	uint64_t epoch;		/* of the last transaction that has written to them; 0: none has */
	uint64_t birth;		/* the gate's, from when the request waits first; 0 before */
	/* The gate's, of those that wait. */
	struct kv_pins *next, *prev;
	uint32_t at;		/* which of units it waits for */
	/* By any thread, which holds the gate's lock: must not call the gate. */
	void (*ready)(void *ctx);
	void *ready_ctx;
};

/* Asked around each transaction of a command. Called by several threads at once. */
struct kv_gate_ops {
	/*
	 * Pins units, or waits for those that are not here; called again until the state is IN or
	 * GONE. Returns the state; pins must stay where it is until leave, and units as they are
	 * while it waits.
	 */
	enum kv_gate (*enter)(void *ctx, struct kv_pins *pins);
	/*
	 * IN: pins the last of units too, if that need not wait; all before it are pinned. False:
	 * its unit is not here, nothing was done.
	 */
	bool (*pin)(void *ctx, struct kv_pins *pins);
	/* Whatever the state is; OUT then. */
	void (*leave)(void *ctx, struct kv_pins *pins);
	/* No other node has units, as far as is known. */
	bool (*is_whole)(void *ctx);
};

/* RELOCATE, of a database that can be moved. Called on any worker's thread; must not wait. */
struct kv_relocate_ops {
	/*
	 * The words behind RELOCATE; words[n] is NULL. NULL: it is carried out from now on. Else
	 * why not, for a person; nothing has changed then.
	 */
	const char *(*order)(void *ctx, char *const *words, uint32_t n);
	/* RELOCATE STATUS: appends one bulk string, a JSON object. */
	void (*status)(void *ctx, struct resp_out *out);
};

#define KV_UNIT_BITS_MAX	12u

struct kv_config {
	const char *password;	/* copied; NULL: none is asked for */
	uint64_t rows;		/* keys and fields of hashes that are expected; 0: 2^20 */
	/* Among them those whose name and value are longer than some 100 bytes; 0: rows / 8. */
	uint64_t long_rows;
	const struct kv_front_ops *front;	/* NULL: nothing is added; must outlive kv */
	void *front_ctx;
	/* Bits of the hash that are used, 1 to 64; 0: 64. For tests of collisions. */
	uint32_t hash_bits;
	/*
	 * NULL: all keys are here. Else keys are divided into 2^unit_bits units (at most
	 * KV_UNIT_BITS_MAX bits, and not more than hash_bits). Must outlive kv.
	 */
	const struct kv_gate_ops *gate;
	void *gate_ctx;
	uint32_t unit_bits;
	const struct kv_relocate_ops *relocate;	/* NULL: it cannot be moved; must outlive kv */
	void *relocate_ctx;
};

/*
 * Raises txn_records_max and txn_undo_bytes to what the commands need (KV_TXN_RECORDS and
 * KV_TXN_UNDO_BYTES); larger ones stay. With less, commands of many keys answer an error earlier.
 */
void kv_engine_config(struct oltp_config *config);

/*
 * Makes tables and an index in an engine that has none yet; before oltp_recover. NULL config: all
 * defaults. Errors: -EINVAL (hash_bits, unit_bits), those of oltp_table_create and
 * oltp_index_create, -ENOMEM.
 */
int kv_open(struct oltp_engine *engine, const struct kv_config *config, struct kv **ret_kv);

/*
 * After oltp_recover, before the first session: reads or makes the secret and the counters that the
 * database keeps of itself, with a worker of its own, and waits until they are on disk. Errors:
 * -EUCLEAN (the database is not of this kind, or of another version or hash_bits), -ENOMEM, -ENOSPC
 * (no worker free), -EIO, those of getrandom and oltp_durable_wait.
 */
int kv_start(struct kv *kv);

/* Every session must have been destroyed. Tables live as long as the engine. Accepts NULL. */
void kv_close(struct kv *kv);

/*
 * State of a connection: MULTI queue, WATCHed keys, protocol version, name, whether it is
 * authenticated. One thread at a time; which one may change. NULL: no memory.
 */
struct kv_session *kv_session_create(struct kv *kv);

/* Not between an attempt of kv_run and its retry by another thread. Accepts NULL. */
void kv_session_destroy(struct kv_session *s);

/*
 * For CLIENT LIST: addresses as "host:port" or a path, both copied and cut at 127 bytes; NULL:
 * none. Once, right after kv_session_create.
 */
void kv_session_set_peer(struct kv_session *s, const char *address, const char *own_address,
			 int fd);

/*
 * Sets the function that is called when a request that got KV_WAIT may be run again (struct
 * kv_pins.ready). Call it once, before the first kv_run; only a session with a gate needs it.
 */
void kv_session_set_ready(struct kv_session *s, void (*ready)(void *ctx), void *ctx);

/*
 * A request that got KV_WAIT waits no more, and ready is not called once this has returned: a retry
 * begins to wait anew.
 */
void kv_session_stop_waiting(struct kv_session *s);

/*
 * The database moves to another node, and this client is not to get a place here: AUTH, QUIT and
 * RELOCATE are run, everything else is answered an error with KV_CLOSE. Once, before the first
 * kv_run.
 */
void kv_session_restrict(struct kv_session *s);

/*
 * A connection that looks on: its name is KV_OBSERVER_NAME (HELLO ... SETNAME, CLIENT SETNAME). The
 * thread that runs its requests.
 */
#define KV_OBSERVER_NAME	"ebb-observer"
bool kv_session_is_observer(const struct kv_session *s);

/* Whether it is between MULTI and EXEC, or watches keys: a bad moment to close the connection. */
bool kv_session_is_busy(const struct kv_session *s);

enum kv_after {
	KV_GO_ON = 0,
	KV_CLOSE = 1,	/* QUIT: close once the reply is sent */
	/*
	 * The command takes several transactions, one was committed, nothing was appended: call
	 * again with retry set, after others have had their turn. *ret_epoch is 0.
	 */
	KV_AGAIN = 2,
	/*
	 * Keys of the command are on another node, nothing was run or appended: call again with
	 * retry set once the session's ready function has been called, which may be before kv_run
	 * has returned. *ret_epoch is 0.
	 */
	KV_WAIT = 3,
};

/*
 * One attempt at one request, on the worker's thread; the worker runs no transaction. n_args is at
 * least 1; the bytes of args stay the caller's, and must be the same ones at a retry. out->version
 * is set to the session's.
 *
 *   OLTP_OK        the reply, errors as well, is appended to out. *ret_epoch must be durable before
 *                  it may be shown (0: at once). *ret_after says what then; see KV_AGAIN and
 *                  KV_WAIT. If out->has_failed afterwards, no whole reply could be appended: close.
 *   OLTP_CONFLICT  nothing was appended, the transaction is aborted: call again with retry set.
 *   OLTP_COLD      the same, after oltp_cold_fetch on this worker; if that says OLTP_FULL, later;
 *                  if it fails otherwise, kv_give_up.
 *
 * Between an attempt and its retry the worker may run other sessions' requests. Replies of one
 * session are to be shown in the order of its requests.
 */
enum oltp_rc kv_run(struct kv_session *s, struct oltp_worker *worker, const struct resp_arg *args,
		    uint32_t n_args, bool retry, struct resp_out *out, uint64_t *ret_epoch,
		    enum kv_after *ret_after);

/*
 * Instead of a retry: appends the error reply for a request that could not be run because of rc
 * (OLTP_IO, OLTP_NO_MEMORY, ... of oltp_cold_fetch or of its ticket). The session goes on.
 */
void kv_give_up(struct kv_session *s, enum oltp_rc rc, struct resp_out *out);

#endif
