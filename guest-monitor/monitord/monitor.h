/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ebb-monitord without its command line: one thread, one epoll loop.
 *
 *   monitor.c   the loop: device, timers, dividing, telemetry
 *   client.c    one application: its connection and messages
 *   collect.c   what memory is worth: asks, answers, one histogram of all
 *   divide.c, cut.c, store.c, proc.c   what to say (pure)
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

/* An application that has not said by then what its memory is worth is left out. */
#define EBB_MONITOR_ANSWER_MS		1000

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
	bool has_values;		/* it says that it answers when the host asks */
	struct ebb_msg_vom *values;	/* its newest answer; NULL: none */
	uint32_t promise_mib;		/* its part of the promise to the VM */
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

	/* What the host wants to know the value of memory for; see collect.c. */
	uint32_t vom_asked;		/* 0: nothing */
	uint32_t vom_told;		/* that was answered */
	uint64_t vom_until_ns;		/* applications are waited for until then */
	uint64_t vom_due_ns;		/* look again then; UINT64_MAX: when something comes */
	uint64_t vom_retry_ns;		/* the driver had no room: not before that */
	uint64_t vom_told_ns;		/* 0: never */

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

/* A call found that the device is gone. */
void ebb_monitor_dev_lose(struct ebb_monitor *monitor, uint64_t now_ns, int error);

/* ---- collect.c ---- */

/*
 * To be called after each look at the device and after each answer of an application.  Sends a
 * histogram of all applications if the host wants one and all that will answer have answered, or
 * the time for that is over.  Sets vom_due_ns to the time of the next call.
 */
void ebb_collect_step(struct ebb_monitor *monitor, uint64_t now_ns);

/*
 * Its newest answer, if that is to what the host asked for last, or to what was sent last (so that
 * while answers to a new question come in, demands are divided by the old ones); else NULL.
 */
const struct ebb_msg_vom *ebb_collect_known(const struct ebb_monitor *monitor,
					     const struct ebb_client *client);

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
