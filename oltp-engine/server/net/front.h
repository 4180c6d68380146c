/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the network front share.
 *
 *	net.c		the front: making and ending it, what it says of itself
 *	listen.c	listening sockets, new clients
 *	conn.c		a connection: its memory, its requests, its replies
 *	ring.c		what a worker has under way in its io_uring
 *	worker.c	a worker of the pool: its queue, held replies, idle connections
 *	place.c		which worker a connection belongs to
 *	drain.c		connections that go to another node
 *
 * Input of a connection (enum conn_input):
 *
 *   READING	-> QUEUED	bytes have come (conn_received)
 *		-> ENDED	the client sends no more
 *   QUEUED	-> READING	no whole request is left (conn_next)
 *		-> RUNNING	its request is to be run again by the pool (worker_run)
 *		-> PAUSED	too many replies are unsent
 *		-> ENDED	a protocol error; QUIT
 *   RUNNING	-> QUEUED	the request was answered, or given back
 *		-> WAITING	keys of the request are on another node
 *   WAITING	-> QUEUED	they have come (place_conn_wake), or it leaves its worker
 *   PAUSED	-> QUEUED	replies were sent (conn_sent)
 *   ENDED	-> closed	all replies were sent
 *
 * Output: out collects; sending is empty, held (in the worker's list) or under way (is_sending).
 *
 * A connection that is_dead is freed as soon as nothing of it is under way and it is not RUNNING;
 * one that is_leaving is handed on then.
 *
 * Locks: front.lock protects the list of workers, how many connections each has, inboxes and
 * woken. All else of a connection is its worker's thread's alone.
 */
#ifndef OLTP_NET_FRONT_H
#define OLTP_NET_FRONT_H

#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>

#include "list.h"
#include "net.h"
#include "oltp-engine/server/resp/out.h"
#include "oltp-engine/server/resp/parse.h"
#include "oltp-engine/src/base/hist.h"

/* The text of the push that tells a client where to go, 0 included. */
#define NET_PUSH_MAX	(NET_ADDRESS_MAX + 64u)

struct net_worker;

enum conn_input {
	CONN_READING,
	CONN_QUEUED,
	CONN_RUNNING,
	CONN_PAUSED,
	CONN_WAITING,	/* the request got KV_WAIT */
	CONN_ENDED,
};

struct conn {
	struct link all;	/* of its worker's connections, of an inbox, or of those waiting */
	struct link queue;	/* of its worker's, if QUEUED */
	struct link held;	/* of its worker's, if its sending buffer is held */
	struct link woken;	/* of its worker's: it need not wait any more; under front.lock */
	struct net_front *front;
	struct net_worker *worker;
	struct kv_session *session;
	int fd;
	enum conn_input input;
	bool is_receiving, is_sending;	/* in the ring */
	bool is_dead, is_leaving;
	bool closes_when_idle;
	bool is_observer;	/* as counted in front.n_observers */
	bool is_restricted;	/* came while others were told to go: kv_session_restrict */
	uint64_t waited_ns;	/* when its request met keys of another node; 0: it did not */
	uint64_t told_ns;	/* when it was told to go to another node; 0: it was not */
	bool has_request;	/* parsed, in parser.args, and not answered yet */
	bool is_retry;		/* it was tried before */
	bool has_filled;	/* the last receive filled the buffer: there may be more */
	uint32_t turn;		/* requests that were answered in this turn */
	uint64_t active_ns;	/* when something was received or sent last */
	struct resp_parser parser;
	/* Input: bytes from in_from to in_to have come and are no answered request's. */
	char *in;
	uint32_t in_room, in_from, in_to;
	uint32_t request_bytes;	/* of the request, if has_request */
	struct resp_out out, sending;
	size_t sent;		/* bytes of sending */
	/*
	 * How many requests have their replies in out and in sending, and when the first of these
	 * came; for net_times.
	 */
	uint32_t out_requests, sending_requests;
	uint64_t out_came_ns, sending_came_ns;
	uint64_t open_ns;	/* when the oldest request came that is not answered; 0: none */
	uint64_t out_epoch, sending_epoch;	/* newest of their replies; 0: none */
};

/*
 * Counters of one thread, added to those of the front now and then. open, open_came_ns: how many
 * clients have a request that is not answered, and the sum of the times at which it came; what they
 * are less is added as well, modulo 2^64, as a connection may change its worker in between.
 */
struct net_counts {
	uint64_t received_bytes, sent_bytes, requests, moved, protocol_errors, overflows,
		 idle_closed, replied, reply_ns, open, open_came_ns;
};

struct net_worker {
	struct net_front *front;
	struct oltp_worker *worker;
	struct oltp_durable_watch *watch;
	struct io_uring ring;
	int event_fd;		/* told of connections in the inbox, durable epochs, and a stop */
	uint64_t event;		/* where its counter is read to */
	bool is_listening;	/* such a read is under way */
	bool has_looked;	/* at the ring, since wait was called, and nothing was ready */
	uint32_t under_way;	/* receives and sends in the ring */
	uint32_t runs;		/* since the ring was looked at */
	struct link all, queue, held;
	uint64_t held_epoch;	/* the oldest in held */
	struct conn *slots[OLTP_TICKETS];	/* RUNNING */
	uint64_t now_ns;	/* CLOCK_MONOTONIC, of the last look */
	uint64_t sweep_ns;	/* when idle connections are looked for next */
	struct net_counts counts;
	/* Under front.lock. */
	struct link workers;	/* of the front */
	struct link inbox;	/* connections that are to be its own */
	struct link woken;
	uint32_t n_conns;	/* inbox included */
	uint32_t n_surplus;	/* connections that it is to hand on */
	bool has_drain;		/* its connections are to be looked over by drain_look */
	_Atomic bool has_mail;	/* set after a change of any of these */
};

struct net_listener {
	int fd;
	char *path;		/* of a unix socket; NULL: TCP */
	uint16_t port;
};

struct net_front {
	struct net_config config;
	struct resp_limits limits;
	struct oltp_engine *engine;	/* NULL: not started */
	struct kv *kv;
	struct net_listener listeners[NET_LISTENERS_MAX];
	uint32_t n_listeners;
	_Atomic uint32_t n_clients;	/* observers included */
	_Atomic uint32_t n_observers, n_restricted;	/* the latter not among the clients */
	_Atomic uint64_t accepted, rejected, received_bytes, sent_bytes, requests, moved,
			 protocol_errors, overflows, idle_closed, replied, reply_ns;
	pthread_mutex_t lock;
	struct link workers;
	struct link waiting;	/* connections without a worker */
	uint32_t n_waiting;
	_Atomic bool is_draining;	/* who comes is restricted */
	uint64_t open, open_came_ns;	/* the sums of struct net_counts, under the lock */
	uint32_t n_to_tell;	/* connections that are to be told to go */
	char push[NET_PUSH_MAX];
	struct hist pauses;	/* of requests that waited for keys of another node */
	_Atomic uint64_t pause_max_ns;
	_Atomic uint32_t n_told;	/* of the connections that there are */
};

/* conn.c */

/* Owns the descriptor from here on, if it succeeds. NULL: no memory. */
struct conn *conn_create(struct net_front *front, int fd, const char *peer, const char *own,
			 bool is_restricted);

/* Nothing of it is under way, and it is in no list. */
void conn_destroy(struct conn *c);

/* The same for one that belongs to a worker, as soon as that is so. Harmless if it is dead. */
void conn_kill(struct conn *c);

/* It is its worker's now, and goes on where it was. */
void conn_adopted(struct conn *c);

/* It is to be handed on to another worker as soon as nothing of it is under way. */
void conn_leave(struct conn *c);

/* A receive or a send has ended: bytes, or -errno. */
void conn_received(struct conn *c, int32_t result);
void conn_sent(struct conn *c, int32_t result);

/*
 * The first of the queue: true if it has a request to be run. Else it was taken from the queue, or
 * moved to its end.
 */
bool conn_next(struct conn *c);

/* Its request was answered, or (again) has ended one of several transactions. */
void conn_answered(struct conn *c, uint64_t epoch, enum kv_after after);

/* A request that was RUNNING was given back, or has WAITED: it is to be run again. */
void conn_requeue(struct conn *c);

/* Between two replies: what nobody asked for. */
void conn_push(struct conn *c, const char *text, size_t n);

/*
 * As soon as no request of it has come that is not answered, no reply is unsent, and it is in no
 * transaction. It may be gone at once.
 */
void conn_close_when_idle(struct conn *c);

/* The epoch of its sending buffer is durable. */
void conn_release(struct conn *c);

/* ring.c */

/* Of a worker's own thread. Errors: those of io_uring_setup(2). */
int ring_init(struct net_worker *w);
void ring_finish(struct net_worker *w);

/* Begin a receive into the buffer's end, or a send. False: the kernel takes nothing more. */
bool ring_receive(struct conn *c);
bool ring_send(struct conn *c);

/* Ends what of the connection is under way; results come as usual. */
void ring_cancel(struct conn *c);

/* Gives the kernel what there is, and takes what has ended. enters: else only what is there. */
void ring_look(struct net_worker *w, bool enters);

/* Gives the kernel what there is, and waits for something to end; CLOCK_MONOTONIC. */
void ring_wait(struct net_worker *w, uint64_t until_ns);

/* worker.c */

void worker_queue(struct net_worker *w, struct conn *c);
void worker_hold(struct net_worker *w, struct conn *c);

/* place.c */

/* Of a WAITING connection, by any thread: it is put into woken. */
void place_conn_wake(void *conn);
void place_conn_unwake(struct conn *c);

/* The next of woken; NULL: none. */
struct conn *place_woken(struct net_worker *w);

/* Of new connections, and of those in no list. */
void place_conn(struct net_front *front, struct conn *c);

/* The worker takes part from here on. */
void place_worker_add(struct net_worker *w);

/* It gets no more; what is in its inbox goes elsewhere. */
void place_worker_remove(struct net_worker *w);

/* A connection of the worker has ended, or leaves it. */
void place_conn_gone(struct net_worker *w);

/* Under the lock: it looks at what others want of it. */
void place_tell(struct net_worker *w);

struct place_mail {
	uint32_t n_surplus;	/* connections that are to be handed on */
	bool has_drain;
};

/* Moves the inbox to the list. */
struct place_mail place_take(struct net_worker *w, struct link *ret_list);

/* drain.c: tells connections to go, and closes those that had time enough. */
void drain_look(struct net_worker *w);

/* Before conn_adopted: the drain may have ended while no worker had the connection. */
void drain_adopt(struct conn *c);

#endif
