/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ebb-monitord without its command line: one thread, one epoll loop.
 *
 *   monitor.c   the loop: device, timers, dividing, telemetry
 *   client.c    one application: its connection and messages
 *   divide.c, store.c, proc.c   what to say (pure)
 *   server.c    the socket
 *   isolate.c (pure), sweep.c   what is kept off CPUs that come and go
 */
#ifndef EBB_MONITOR_H
#define EBB_MONITOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "divide.h"
#include "proc.h"
#include "server.h"
#include "store.h"
#include "sweep.h"

#define EBB_MONITOR_MAX_APPS		64	/* registered */
#define EBB_MONITOR_MAX_CLIENTS		80	/* with those that have not said HELLO yet */
#define EBB_MONITOR_MAX_PER_PROCESS	16	/* connections of one process */

/* What an application can leave unread before it is dropped, bytes of socket buffer. */
#define EBB_MONITOR_SEND_BYTES		(64 * 1024)

#define EBB_MONITOR_INTERVAL_MIN_MS	10u
#define EBB_MONITOR_INTERVAL_MAX_MS	10000u

struct ebb_monitor_config {
	const char *device;
	const char *socket;
	gid_t gid;			/* of the socket; (gid_t)-1: the process's own */
	unsigned int interval_ms;	/* of telemetry; EBB_MONITOR_INTERVAL_MIN_MS to _MAX_MS */
	const char *proc_stat;		/* normally /proc/stat */
	const char *proc_meminfo;	/* normally /proc/meminfo */
	const char *isolate_root;	/* of sweep.h, normally ""; NULL: threads are let alone */
	int stop_fd;			/* ends the loop when readable; not read */
};

enum ebb_client_state {
	EBB_CLIENT_NEW,			/* has not said HELLO */
	EBB_CLIENT_REGISTERED,
	EBB_CLIENT_DEAD,		/* freed at the end of the round */
};

struct ebb_client {
	int fd;
	enum ebb_client_state state;
	pid_t pid;
	char name[EBB_MSG_NAME_BYTES];
	uint64_t hello_by_ns;		/* NEW */
	struct ebb_divide_app divide;
	struct ebb_store_app store;
	uint64_t sent_seq;		/* of SHARES; 0: none sent */
	uint64_t acked_seq;
	struct ebb_msg_shares sent;	/* newest, as sent */
	bool is_alone;			/* no other is registered, and there is a device to ask */
};

struct ebb_monitor {
	const struct ebb_monitor_config *config;
	const struct ebb_dev_ops *ops;
	struct ebb_server server;
	int epoll_fd;
	int tick_fd;			/* timerfd: telemetry is overdue */
	uint64_t tick_ns;		/* of the last telemetry */
	bool is_tick_due;		/* telemetry is to go out */

	void *dev;			/* NULL: lost; tried again each second */
	uint64_t dev_retry_ns;
	struct ebb_view view;		/* empty without a device */

	struct ebb_client *clients[EBB_MONITOR_MAX_CLIENTS]; /* in the order of arrival */
	size_t num_clients;
	bool is_accepting;		/* the listening socket is in epoll_fd */
	bool is_divide_due;		/* something that divide.c looks at has changed */
	uint64_t divide_ns;		/* divide again then, even if nothing changes */

	struct ebb_msg_counters sums;	/* of all applications that ever registered */
	struct ebb_usage usage;
	struct ebb_store_guest guest;
	struct ebb_sweep sweep;
};

/*
 * Serves until config->stop_fd is readable.  Logs what goes wrong.  Errors: of
 * ebb_dev_open() and ebb_server_open(), -EINVAL for the interval.
 */
int ebb_monitor_run(const struct ebb_monitor_config *config, const struct ebb_dev_ops *ops);

/* An application has reported: telemetry goes out now, unless the last one is recent. */
void ebb_monitor_reported(struct ebb_monitor *monitor, uint64_t now_ns);

/* ---- client.c ---- */

/* fd is taken over.  NULL: no memory. */
struct ebb_client *ebb_client_create(int fd, uint64_t now_ns);
void ebb_client_destroy(struct ebb_client *client);

/* Reads and answers what has come, a few messages at most: nobody keeps the others waiting. */
void ebb_client_receive(struct ebb_monitor *monitor, struct ebb_client *client, uint64_t now_ns);

/* Tells a registered application its part of divide.c's result, if it is news. */
void ebb_client_publish(struct ebb_client *client, const struct ebb_view *view, uint64_t now_ns);

/* For the log: an application that is no longer served, and why. */
void ebb_client_drop(struct ebb_client *client, const char *why);

#endif /* EBB_MONITOR_H */
