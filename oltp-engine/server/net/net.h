/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net.h - the network front: clients that speak RESP over TCP and unix sockets, served by the
 * workers of a pool.
 *
 *   net_create -> net_listen ... -> kv_open, kv_start -> net_start
 *     pool with net_workload() and net_feed
 *     net_accept or net_refuse whenever a listening socket is readable
 *   pool gone -> net_stop -> kv_close -> net_destroy
 *
 * A connection belongs to one worker at a time; each worker has an io_uring of its own and sleeps
 * in it. A new connection goes to the worker that has the fewest. A worker that starts is handed
 * some of the others' connections. A worker that ends cancels what is under way in its ring and
 * hands all its connections on; a request that it has not ended is run again by the next worker.
 * Without workers connections wait.
 *
 * A connection is two automata. Input: it is receiving; or its requests are in its worker's queue,
 * where one after the other is parsed and run as a transaction of the pool; or one of them waits in
 * the pool for records, or for others' locks; or it is paused. Output: replies are collected in one
 * buffer; when no request is left, or after NET_TURN_REQUESTS, the buffer is sent if the one before
 * it has been sent. So replies to what was received at once go out at once, and in order.
 *
 * With durability "commit" a buffer is held until the newest epoch in it is durable. The worker
 * does not wait for that: the log tells it (oltp_durable_watch_set). If the log fails, connections
 * with held replies are closed, since nobody knows what became of their requests.
 *
 * Guarantees, by number (the tests name them):
 *
 *   N1  Each request is answered once, in order, or the connection is closed.
 *   N2  No reply is sent before its epoch is durable (holds_replies).
 *   N3  A connection that changes its worker loses no byte.
 *   N4  A client has bounded memory: a request and two output buffers. A client that does not read
 *       its replies is not read from, and closed after idle_seconds_max.
 *   N5  No worker waits for a client, nor for the disk on behalf of one.
 */
#ifndef OLTP_NET_H
#define OLTP_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/server/kv/kv.h"
#include "oltp.h"

#define NET_LISTENERS_MAX	8u
#define NET_CLIENTS_MAX		100000u	/* that clients_max may be */
#define NET_REQUEST_BYTES_MIN	(64u << 10)
#define NET_REQUEST_BYTES_MAX	(64u << 20)
#define NET_OUTPUT_BYTES_MIN	(64u << 10)
#define NET_OUTPUT_BYTES_MAX	(1u << 30)
#define NET_TURN_REQUESTS	64u
#define NET_ADDRESS_MAX		255u	/* bytes of an address that clients are told */

struct net_config {
	bool holds_replies;		/* durability is "commit" */
	uint32_t clients_max;		/* 1 to NET_CLIENTS_MAX; others are told so and closed */
	uint32_t request_bytes_max;	/* of one request, and so of its arguments */
	/*
	 * Of one of the two output buffers. From half of that on no more requests are run; a reply
	 * beyond it closes the connection.
	 */
	uint32_t output_bytes_max;
	/* Closed if for so long nothing was received from it nor sent to it; 0: never. */
	uint32_t idle_seconds_max;
};

struct net_front;

/* Errors: -EINVAL (a number out of its range), -ENOMEM. */
int net_create(const struct net_config *config, struct net_front **ret_front);

/*
 * After the pool is gone and before kv_close: closes the connections that are left. No net_accept
 * afterwards.
 */
void net_stop(struct net_front *front);

/* After net_stop, or without net_start: removes unix sockets. Accepts NULL. */
void net_destroy(struct net_front *front);

/*
 * Before net_start. address: HOST:PORT, where HOST is an address in digits, one of IPv6 in
 * brackets; "localhost"; or "" for all addresses of the machine. Port 0: any that is free. Names
 * are not looked up. Errors: -EINVAL (not of this form), -ENOENT (no such address), -ENOSPC
 * (NET_LISTENERS_MAX), those of socket, bind and listen.
 */
int net_listen_tcp(struct net_front *front, const char *address);

/*
 * Accessible to the owner only; a socket that nobody listens on any more is replaced. Errors:
 * -ENAMETOOLONG, -EADDRINUSE, -ENOSPC, those of socket, bind and listen.
 */
int net_listen_unix(struct net_front *front, const char *path);

/* The port of the first TCP listener; 0: there is none. */
uint16_t net_port(const struct net_front *front);

/*
 * Where clients find this front: that of the first listener, as HOST:PORT or unix:PATH. host: of
 * this machine, for a listener at all addresses, one of IPv6 in brackets. "": no listener, or a
 * path that is too long.
 */
void net_address(const struct net_front *front, const char *host,
		 char ret[NET_ADDRESS_MAX + 1]);

/* Poll these for reading, and call net_accept when one is. Returns how many there are. */
uint32_t net_fds(const struct net_front *front, int ret_fds[NET_LISTENERS_MAX]);

/* From here on clients are let in. engine and kv must outlive the front. */
void net_start(struct net_front *front, struct oltp_engine *engine, struct kv *kv);

/* Takes the clients that wait. One thread at a time. */
void net_accept(struct net_front *front, int listen_fd);

/*
 * Instead of net_accept, also before net_start: tells the clients that wait why they are not let
 * in, and closes them. error: as RESP has it, without its "-" and its end of line.
 */
void net_refuse(struct net_front *front, int listen_fd, const char *error);

/*
 * Clients go to another node (docs/relocation-client.md): n more that were not told yet, the first
 * ones that are found. Clients that speak RESP3 are sent a push with the address; the others, and
 * clients that are still there 3 s after the push, are closed once they are idle and in no
 * transaction. Observers (kv_session_is_observer) stay. Looked at with each call, so call it once
 * per second, with 0 as well. From the first call on a client that comes is restricted
 * (kv_session_restrict), closed after 3 s, and not counted among the clients. A call with to NULL
 * ends this: then only clients that have read the push still go. Any thread, after net_start.
 * Errors: -EINVAL (to is "" or longer than NET_ADDRESS_MAX).
 */
int net_drain(struct net_front *front, const char *to, uint32_t n);

/* For the pool: oltp_pool_config.workload and .feed. */
struct oltp_workload net_workload(struct net_front *front);
extern const struct oltp_feed net_feed;

/* For kv_config: lines of INFO, and of CONFIG GET; the front is the ctx. */
extern const struct kv_front_ops net_kv_ops;

struct net_stats {
	uint32_t clients;	/* connected now, without observers (kv_session_is_observer) */
	uint32_t waiting;	/* among them: there is no worker for them */
	uint32_t told;		/* among them: they were told to go to another node (net_drain) */
	uint64_t accepted;	/* since the start */
	uint64_t rejected;	/* because of clients_max, or by net_refuse */
	uint64_t received_bytes, sent_bytes;
	uint64_t requests;	/* answered */
	uint64_t moved;		/* times that a connection changed its worker */
	uint64_t protocol_errors;	/* connections closed for one */
	uint64_t overflows;	/* closed because of output_bytes_max */
	uint64_t idle_closed;	/* closed because of idle_seconds_max */
	uint64_t replied;	/* requests whose replies were sent */
	uint64_t reply_ns;	/* sum of their times, from when the first of a batch came */
	uint32_t open;		/* clients with a request that is not answered now */
	uint64_t open_ns;	/* sum of the ages of these requests, of each client the oldest */
};

/* Pauses of requests that waited for keys of another node, since the start. */
struct net_pauses {
	uint64_t n;
	double p50_ns, p99_ns;	/* within 1/32 */
	uint64_t max_ns;
};

/* Any thread. */
void net_pauses_read(struct net_front *front, struct net_pauses *ret_pauses);

/* Any thread. Those of workers are counted now and then, and when a connection is closed. */
void net_stats_read(struct net_front *front, struct net_stats *ret_stats);

#endif
