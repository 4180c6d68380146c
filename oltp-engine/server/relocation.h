/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * relocation.h - a server's part in moving its database to another node (docs/relocation.md): the
 * connection to the other node, clients that go in time, and units (server/move/).
 *
 *   relocation_create -> kv_open with relocation_gate -> relocation_open -> [oltp_recover]
 *     -> kv_start -> relocation_start
 *       relocation_order	(of a node that has a database)
 *   relocation_end	(before net_stop) -> relocation_destroy	(before kv_close)
 *
 * One thread connects, tells clients and looks on, once per second. It carries orders out, too,
 * since asking the other node takes time that no worker has.
 */
#ifndef OLTP_SERVER_RELOCATION_H
#define OLTP_SERVER_RELOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "move/move.h"
#include "net/net.h"
#include "oltp.h"
#include "order.h"

/*
 * Source and target must have the same number of units, or the other node refuses. A request waits
 * until its whole unit has moved, so many small units are better than few large ones.
 */
#define RELOCATION_UNIT_BITS	12u

struct relocation;

/* How a peer that is gone for good is fenced: see move.h. */
struct relocation_fence {
	const struct move_fence_ops *ops;
	void *ctx;
	uint64_t after_ns;	/* how long it must have been lost */
};

/* Strings must stay. */
struct relocation_config {
	const char *listen;	/* where a source may come; NULL: none may */
	const char *secret_path;	/* the link's secret; NULL: it has none */
	/* Without a secret the other node may all the same be on another machine. */
	bool is_insecure;
	/* Where clients find this node; NULL: as net_address says. */
	const char *clients;
	uint64_t room_bytes;	/* that records may take here; 0: not known */
	const struct relocation_fence *fence;	/* copied; NULL: a lost peer is waited for */
	/*
	 * Volumes of this node and of the other one, as this node finds them; NULL: none, or not
	 * there. If a node can read the other one's, cold values need not go over the link.
	 */
	const char *volume, *peer_volume;
};

/* Says on stderr what went wrong. Errors: -errno. */
int relocation_create(const struct relocation_config *config, struct relocation **ret_relocation);

/* For kv_config. */
void relocation_gate(struct relocation *r, struct kv_config *ret_config);

int relocation_open(struct relocation *r, struct oltp_engine *engine);

/*
 * Has its units from here on, but for a node that listens and has never had a source: that has none
 * until one has come. Errors: -errno.
 */
int relocation_start(struct relocation *r, struct kv *kv, struct net_front *front);

/* Clients may be let in. Any thread. */
bool relocation_is_ready(const struct relocation *r);

/*
 * Any thread. NULL: it is carried out from now on, and the status says how that goes. Else why not,
 * for a person; nothing has changed then. ret_number: the order's, never 0; may be NULL.
 */
const char *relocation_order(struct relocation *r, const struct relocation_order *order,
			     uint64_t *ret_number);

/*
 * False: the other node that the order names is still being asked, which takes some seconds at
 * most. ret: "", or why it does not take the database; nothing has changed then. Any thread.
 */
bool relocation_has_answer(struct relocation *r, uint64_t number, char *ret, size_t room);

/* A JSON object. Any thread. */
#define RELOCATION_STATUS_BYTES	4096u
void relocation_status(struct relocation *r, char ret[RELOCATION_STATUS_BYTES]);

/*
 * Fences the peer now, though this node has no unit, or has not lost it. Any thread. NULL: it is
 * tried. Else why not.
 */
const char *relocation_take_over(struct relocation *r);

struct resp_out;

/* Appends the lines of INFO's section "relocation". Any thread. */
void relocation_info(struct relocation *r, struct resp_out *text);

/* For kv_config: RELOCATE; the relocation is the ctx. */
extern const struct kv_relocate_ops relocation_kv_ops;

/* Ends the thread; as a crash would: nothing is given. */
void relocation_end(struct relocation *r);

/* Accepts NULL. */
void relocation_destroy(struct relocation *r);

#endif
