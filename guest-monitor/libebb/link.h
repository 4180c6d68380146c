/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection of one application to ebb-monitord.  Private to libebb.
 *
 *            +----------------- retry_at_ns ------------------+
 *            v                                                |
 *   DOWN --connect--> HELLO --WELCOME--> UP --EOF, error--> LOST --no users--> DOWN
 *                       +---- refused, hello_by_ns, EOF ------^
 *
 *   DOWN   no socket (fd is -1)
 *   HELLO  connected, HELLO sent; only the thread in ebb_dispatch() reads
 *   UP     any thread may send and read, holding the lock
 *   LOST   the socket is dead but a thread may still poll it: not closed yet
 *
 * OFF is DOWN for ever.  Only the thread in ebb_dispatch() (or ebb_open()) opens
 * and closes the socket; others that find it dead say so and wake that thread.
 */
#ifndef EBB_LINK_H
#define EBB_LINK_H

#include <pthread.h>
#include <sys/un.h>

#include "ebb.h"
#include "guest-monitor/proto.h"

/* From DOWN to the next try: doubles from the first to the second. */
#define EBB_LINK_RETRY_MIN_MS	50
#define EBB_LINK_RETRY_MAX_MS	2000

/* OWNED or ACK could not be sent because the socket is full: again after that. */
#define EBB_LINK_RESEND_MS	50

enum ebb_link_state {
	EBB_LINK_OFF,
	EBB_LINK_DOWN,
	EBB_LINK_HELLO,
	EBB_LINK_UP,
	EBB_LINK_LOST,
};

/* A thread that waits for STATS; on its stack, listed while it waits. */
struct ebb_link_waiter {
	struct ebb_link_waiter *next;
	uint32_t id;
	int wake_fd;			/* eventfd, written when done or lost */
	int is_done;
	struct ebb_msg_stats reply;
};

struct ebb_link {
	/* Constant after init. */
	char name[EBB_MSG_NAME_BYTES];
	struct sockaddr_un addr;
	int epoll_fd;
	int wake_fd;			/* eventfd in epoll_fd; makes the dispatching thread look */

	pthread_mutex_t lock;		/* for all below */
	enum ebb_link_state state;
	int fd;
	int is_polled;			/* fd is in epoll_fd */
	unsigned int num_users;		/* threads that may poll fd without the lock */
	uint64_t retry_at_ns;		/* DOWN */
	uint64_t retry_ms;
	uint64_t hello_by_ns;		/* HELLO */
	int refusal;			/* -errno of the last WELCOME; 0: none */
	struct ebb_link_waiter *waiters;
	uint32_t next_id;
	struct ebb_msg_counters counters; /* as last reported */
	struct ebb_msg_owned owned;	/* newest; sent when is_owned_due */
	unsigned int num_adding;	/* threads that wait for CPUs */
	int has_values;			/* it answers when the host asks what memory is worth */
	uint32_t vom_seq;		/* newest answer on this connection; 0: none */
	int is_owned_due;
	int is_ack_due;
	int has_shares;			/* shares is of this connection */
	struct ebb_msg_shares shares;	/* newest */
};

/* Neither connects nor allocates more than the lock.  -EINVAL: the path is too long. */
int ebb_link_init(struct ebb_link *link, const char *name, const char *path, int epoll_fd,
		  int wake_fd, int is_off);
void ebb_link_finish(struct ebb_link *link);

/*
 * Waits until the monitor has answered, EBB_MSG_HELLO_TIMEOUT_MS at most.  No
 * monitor is no error; a refusal is, and no right to connect (-EACCES).
 */
int ebb_link_open(struct ebb_link *link);

/* Does what is due but acknowledging: reads, connects, times out, sends.  Never waits. */
void ebb_link_step(struct ebb_link *link, uint64_t now_ns);

/*
 * Tells the monitor that what the step before has read was looked at; after the application was
 * told, for the message wakes the monitor, which may share its CPU.  Returns when the link wants to
 * be stepped again (ns, CLOCK_MONOTONIC), UINT64_MAX if only when something happens.
 */
uint64_t ebb_link_acknowledge(struct ebb_link *link, uint64_t now_ns);

int ebb_link_is_up(struct ebb_link *link);

/* The newest shares of this connection; 0 if there are none. */
int ebb_link_shares(struct ebb_link *link, struct ebb_msg_shares *ret);

/* From any thread. */
void ebb_link_set_owned(struct ebb_link *link, const struct ebb_msg_owned *owned);
/*
 * Around a wait for CPUs.  Its begin is sent at once, unless the monitor has said that there
 * are no other applications: the thread that waits may be the one that dispatches.  Its end
 * is sent by the next step.
 */
void ebb_link_adding(struct ebb_link *link, int is_adding);
/* From the thread that dispatches: will it answer when the host asks what memory is worth? */
void ebb_link_set_values(struct ebb_link *link, int has_values);
/*
 * Sends a histogram, once on a connection.
 *   -EAGAIN     the socket is full
 *   -ENOTCONN   no monitor
 */
int ebb_link_vom(struct ebb_link *link, uint32_t seq, const struct ebb_vom_bucket *buckets,
		 uint32_t num_buckets);
int ebb_link_report(struct ebb_link *link, const struct ebb_msg_report *report);
int ebb_link_stats(struct ebb_link *link, const char *name, unsigned int timeout_ms,
		   struct ebb_msg_stats *ret);

/* CLOCK_MONOTONIC. */
uint64_t ebb_now_ns(void);
/* Makes a timerfd readable at that time; UINT64_MAX: never. */
void ebb_timer_arm(int timer_fd, uint64_t due_ns);

/* Writes 1 to an eventfd. */
void ebb_wake(int fd);

#endif /* EBB_LINK_H */
