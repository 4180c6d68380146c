/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A network front over an engine and the stand-in keyspace, with real sockets, for tests. */
#ifndef NET_RIG_H
#define NET_RIG_H

#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/oltp-engine/server/kv/kv_stub.h"
#include "tests/unit/oltp-engine/src/log/log_rig.h"
#include "oltp-engine/server/net/net.h"

#define NET_RIG_ROWS	64u

struct net_rig {
	struct log_rig *log;	/* with the engine */
	struct net_config config;	/* may be changed before net_rig_open */
	struct net_front *front;
	struct kv *kv;
	struct oltp_pool *pool;
	char path[80];		/* of the unix socket */
	pthread_t acceptor;
	_Atomic bool is_closing;
};

/* Of cmocka; log->config.durability is OFF until a test changes it. */
int net_rig_setup(void **state);
int net_rig_teardown(void **state);

/* Starts it with so many workers, on the CPUs 0 to n - 1 by name. */
void net_rig_open(struct net_rig *rig, uint32_t n_workers);

/* A client: a blocking socket, with a limit of 20 s for each read and write. */
int net_rig_connect(const struct net_rig *rig, bool is_tcp);
void net_rig_put(int fd, const void *bytes, size_t n);
void net_rig_say(int fd, const char *text);

/* The next bytes are these. */
void net_rig_expect(int fd, const char *text);

/* Nothing comes for so long. */
void net_rig_expect_silence(int fd, int ms);

/* The connection is closed; bytes that come before are passed over. */
void net_rig_expect_end(int fd);

#endif
