/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the relocation share.
 *
 *	relocation.c		life, the thread, orders
 *	relocation_source.c	asks the other node; a relocation that is cancelled
 *	relocation_target.c	takes a database; gives it back
 *	relocation_clients.c	clients and units that go, whichever node they leave
 *	relocation_status.c	what it says of itself
 *
 *	stage		of		until
 *	WAITING		target		a source comes
 *	SERVING		both		an order, or the source says that it is cancelled
 *	INTERRUPTED	source		it was restarted meanwhile: the order is repeated
 *	ASKING		source		the other node has answered
 *	COPYING		source		records were copied ahead of a failover, clients stay
 *	CLIENTS		who leaves	clients are gone
 *	UNITS		who leaves	units are gone, too
 *	CANCELLING	source		the target has given all back
 *	OVER		who left	it is stopped
 */
#ifndef OLTP_SERVER_RELOCATION_PRIVATE_H
#define OLTP_SERVER_RELOCATION_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "oltp-engine/server/auth/secret_file.h"
#include "oltp-engine/server/handshake.h"
#include "oltp-engine/server/move/move.h"
#include "oltp-engine/server/peer_volume.h"
#include "oltp-engine/server/relocation.h"

#define RELOCATION_SECOND_NS	1000000000ull
#define RELOCATION_TEXT_BYTES	512u

enum relocation_stage {
	STAGE_WAITING,
	STAGE_SERVING,
	STAGE_INTERRUPTED,
	STAGE_ASKING,
	STAGE_COPYING,
	STAGE_CLIENTS,
	STAGE_UNITS,
	STAGE_CANCELLING,
	STAGE_OVER,
};

struct relocation {
	struct relocation_config config;
	struct secret secret;	/* of the link */
	bool has_fence;
	_Atomic bool has_met;	/* another node, in this process: it alone can be fenced */
	struct move *move;
	struct peer_volume *peer_volume;	/* the thread's */
	uint8_t own_volume[GREETING_VOLUME_BYTES];	/* its uuid; 0: there is none */
	struct oltp_engine *engine;
	struct kv *kv;
	struct net_front *front;
	int listen_fd;		/* -1: no source may come */
	int event_fd;		/* of the thread */
	uint64_t hash_secret[2];
	pthread_t thread;
	bool has_thread;
	_Atomic bool is_ready, is_ending;
	_Atomic uint64_t resident_bytes;	/* of records in memory, when it was ordered */
	_Atomic uint32_t drain_percent;	/* of the base rate, in the last second */
	_Atomic int stage;	/* enum relocation_stage; changed under the lock */
	pthread_mutex_t lock;
	/* Under the lock. */
	uint64_t n_orders;	/* taken */
	bool has_order;
	struct relocation_order order;
	char node[ORDER_ADDRESS_BYTES];		/* the other one, of a source */
	char clients[ORDER_ADDRESS_BYTES];	/* where clients go */
	char error[RELOCATION_TEXT_BYTES];	/* why an order was not carried out */
	/* The thread's. */
	struct net_stats last;	/* the second before */
	struct drain_times times;	/* of the last second, here */
	struct drain drain;
	struct drain_config drain_config;
	uint64_t number;	/* of the relocation; 0: there was none */
	char offered_to[ORDER_ADDRESS_BYTES];	/* who knows a number that has not begun */
	uint64_t offered_number;
	enum relocation_stage rest;	/* where to go back to if the other node refuses */
	_Atomic bool is_source;	/* of the relocation with that number */
	bool is_shared;		/* the move has begun: ALONE means that it has ended */
	_Atomic bool is_at_once;	/* all units go together, and clients with them */
	bool has_said_back;	/* the target has been told that it is cancelled */
};

void relocation_set_stage(struct relocation *r, enum relocation_stage stage);
void relocation_set_error(struct relocation *r, const char *text);

/* The move can begin, or goes on where begun says. */
int relocation_begin(struct relocation *r, const struct move_begun *begun);

/* For handshakes of this connection. */
struct greeting_link relocation_link(const struct relocation *r);

/*
 * Which volume this node can read as the other one's, for a greeting, since the last
 * peer_volume_look. Waits no longer than a quarter of a second, lest a disk that hangs keep the
 * thread from signs of life; then it is none.
 */
void relocation_reads(struct relocation *r, uint8_t ret[GREETING_VOLUME_BYTES]);

/* The other node can read this one's volume, by what its greeting says. */
bool relocation_is_read(const struct relocation *r, const uint8_t reads[GREETING_VOLUME_BYTES]);

/* What clients are told of this node, by somebody at the other end of fd. */
void relocation_own_clients(const struct relocation *r, int fd, char ret[NET_ADDRESS_MAX + 1]);

/* relocation_source.c; all by the thread. */
void source_ask(struct relocation *r, const struct relocation_order *order);
void source_cancel(struct relocation *r, const struct relocation_order *order);
void source_look(struct relocation *r, const struct move_stats *stats);

/* relocation_target.c */
void target_receive(struct relocation *r);

/* relocation_clients.c: from now on, in CLIENTS, or after COPYING clients go. */
void clients_start(struct relocation *r, const char *to, const struct drain_config *drain,
		   enum relocation_stage stage);

/* Nobody goes any more, and all may come. */
void clients_stay(struct relocation *r);

/* COPYING: as soon as that has stopped. */
void clients_look_at_copies(struct relocation *r);

/* The stages COPYING, CLIENTS and UNITS, once per second. */
void clients_look(struct relocation *r, const struct move_stats *stats);

#endif
