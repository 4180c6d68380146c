/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two nodes with a keyspace each, in one process, on disks that can lose power. */
#ifndef MOVE_RIG_H
#define MOVE_RIG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/unit/oltp-engine/src/io/log_faults.h"
#include "oltp-engine/server/kv/kv.h"
#include "oltp-engine/server/move/move.h"
#include "oltp-engine/server/resp/out.h"
#include "oltp-engine/server/resp/parse.h"
#include "tests/unit/oltp-engine/src/io/power_file.h"

struct move_node {
	struct fault_disk *disk;
	const char *volume;	/* instead of the disk; NULL: none */
	struct power_file *power;	/* the volume can lose power by it; NULL: it cannot */
	bool is_target;
	const char *cold_dir;	/* NULL: all records stay in memory */
	bool cold_in_volume;	/* instead of cold_dir */
	uint64_t cold_bytes_max;	/* 0: the engine's */
	const char *peer_volume;	/* instead of the other node's; NULL: that */
	uint64_t limit_bytes;	/* with either: memory for records when the node is opened */
	struct oltp_blocks_native *blocks;	/* with either */
	uint32_t group_interval_us;	/* 0: the engine's */
	void *fence_ctx;	/* see struct move_config */
	struct oltp_engine *engine;
	struct kv *kv;
	struct move *move;
};

struct move_rig {
	struct move_node nodes[2];	/* the source, the target */
	struct move_config config;
	bool refers;		/* each reads the other's volume, on connections made from now on */
	const struct kv_gate_ops *gates;	/* instead of move_gate_ops, with its ctx; NULL */
};

/* Empty disks; nothing is open. */
void move_rig_init(struct move_rig *rig, uint32_t unit_bits);
void move_rig_finish(struct move_rig *rig);

/* Opens a node on what its disk has. The target takes the secret of the source, which is open. */
void move_rig_open(struct move_rig *rig, uint32_t node);
/* As after a crash; its clients have been closed. lost_power: what was not synced may be gone. */
void move_rig_close(struct move_rig *rig, uint32_t node, bool lost_power);
void move_rig_connect(struct move_rig *rig);
/* Closes both, without a loss of power, and ends the rig. */
void move_rig_close_both(struct move_rig *rig);
/* Opens both, and units may go from then on. */
void move_rig_open_both(struct move_rig *rig);
/* The nodes lose each other; both may be up. */
void move_rig_part(struct move_rig *rig);

/* How the engine of a node is opened; names and disk are the node's. */
struct oltp_config move_rig_engine(const struct move_node *node);

/* Waits for a mode of a node, 30 s at most. */
void move_rig_wait_mode(struct move_rig *rig, uint32_t node, enum units_mode mode);

/* A client of a node, for one thread. */
struct move_client {
	struct move_node *node;
	struct oltp_worker *worker;
	struct kv_session *session;
	struct resp_out out;
	pthread_mutex_t lock;
	pthread_cond_t woken;
	bool is_ready;
	_Atomic bool *gives_up;		/* set: do not wait any more; may be NULL */
};

void move_client_open(struct move_client *client, struct move_node *node);
void move_client_close(struct move_client *client);

/*
 * Runs a command of words ($N: N bytes "x"; $N.TEXT: N bytes, TEXT again and again), waits until it
 * is durable. False: it was given up, or the log failed: whether it has had an effect is not known.
 * The reply is in client->out.
 */
bool move_client_do(struct move_client *client, const char *line);

/* The reply as a number; fails the test if it is none. */
int64_t move_client_integer(struct move_client *client, const char *line);
void move_client_expect(struct move_client *client, const char *line, const char *reply);

#endif
