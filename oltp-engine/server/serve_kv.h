/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clients instead of a generator: the network front and the keyspace as a workload of a session
 * (oltp-engine/bench/workload.h), and the options that they have.
 *
 *   serve_options_argp parses -> serve_open -> session_open with serve_workload(), session_watch
 *   for the front's sockets -> session_run ... session_close -> serve_close
 */
#ifndef OLTP_SERVE_KV_H
#define OLTP_SERVE_KV_H

#include <argp.h>

#include "net/net.h"
#include "oltp-engine/bench/session.h"
#include "relocation.h"
#include "serve_fence.h"

struct serve_options {
	const char *listen[NET_LISTENERS_MAX];	/* HOST:PORT */
	const char *unix_paths[NET_LISTENERS_MAX];
	uint32_t n_listen, n_unix;
	const char *password_path;	/* NULL: no password */
	/* The database is divided into units: a source; a target (its address). */
	bool is_relocatable;
	const char *relocate_listen;
	struct serve_fence_options fence;
	const char *relocate_secret;	/* file; NULL: the link has no secret */
	bool relocate_insecure;
	const char *advertise;		/* where clients find this server; NULL: as it listens */
	uint64_t keys;			/* 0: the default of kv_open */
	struct net_config net;		/* but for holds_replies */
};

extern const struct serve_options serve_options_default;

/* Its input is a struct serve_options. */
extern const struct argp serve_options_argp;

static inline bool serve_is_wanted(const struct serve_options *options)
{
	return options->n_listen || options->n_unix;
}

/* False: something is asked for that only a workload has that is made up. */
bool serve_accepts(const struct bench_options *options);

struct serve;

/*
 * Listens; nobody is let in yet. bench: as the engine's. Says on stderr what went wrong.
 * Errors: -errno.
 */
int serve_open(const struct serve_options *options, const struct bench_options *bench,
	       struct serve **ret_serve);

/* The session is closed. Accepts NULL. */
void serve_close(struct serve *serve);

/* For bench_options.workload. */
const struct bench_workload *serve_workload(const struct serve *serve);

/* NULL: the database cannot relocate. */
struct relocation *serve_relocation(const struct serve *serve);

/* Between session_open and session_run: clients are let in while it runs. Errors: -ENOSPC. */
int serve_watch(struct serve *serve, struct session *session);

#endif
