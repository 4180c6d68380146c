/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A simulated VM with its monitor and applications, in a folder of its own.
 * Monitors, and applications that are to be killed, are processes: the test
 * program started again with a role, so main() calls ebb_rig_role() first.
 */
#ifndef EBB_RIG_H
#define EBB_RIG_H

#include <stdbool.h>
#include <sys/types.h>

#include "fake_ebb_dev.h"

struct ebb_rig {
	char dir[64];
	char dev_path[96];
	char mon_path[96];
	struct fake_ebb_dev *dev;
	pid_t monitor;			/* 0: none */
};

/*
 * Time, as libebb and ebb-monitord see it in all processes.  It passes as usual until a monitor
 * is started, and from then on slowly, so that nothing is given up because the machine is busy;
 * what is to happen after some time happens when the test lets that time pass.
 */
#define EBB_RIG_SLOW	20
/* divisor: 1, as usual, to EBB_RIG_SLOW. */
void ebb_rig_time_slow(unsigned int divisor);
/* A poll() or epoll_wait() that is under way notices at its end, as long as that takes. */
void ebb_rig_time_pass(unsigned int ms);
/* CLOCK_MONOTONIC. */
uint64_t ebb_rig_now_ns(void);

/* For what happens at once, if nothing hangs. */
#define EBB_RIG_SOON_MS	60000

/* In a process with a role: does not return.  Otherwise does nothing. */
void ebb_rig_role(int argc, char **argv);

/*
 * cmocka fixtures: a VM with two nodes, 2 startup CPUs of at most 10 on each, no
 * limits published, no monitor.
 */
int ebb_rig_setup(void **state);
int ebb_rig_teardown(void **state);

/* Returns when the monitor answers, and time is slow.  Fails the test otherwise. */
void ebb_rig_monitor_start(struct ebb_rig *rig);
/* Returns when the monitor has done all that it could know of before the call. */
void ebb_rig_monitor_round(struct ebb_rig *rig);
/* Sends the signal and waits for the end; returns the status as waitpid() does. */
int ebb_rig_monitor_end(struct ebb_rig *rig, int signo);

/* Starts an engine-like application that does what its shares say, until it is killed. */
pid_t ebb_rig_engine_start(struct ebb_rig *rig, const char *name);
/* Starts the test program with that role and these arguments. */
pid_t ebb_rig_spawn(const char *role, const char *a, const char *b, const char *c);
int ebb_rig_end(pid_t pid, int signo);

/* Opens an application; fails the test if it can not. */
struct ebb *ebb_rig_open(struct ebb_rig *rig, const char *name, unsigned int flags);
/* The same, and its result. */
int ebb_rig_try_open(struct ebb_rig *rig, const char *name, unsigned int flags,
		     struct ebb **ret);

/* What an engine does in its callback: takes every offer, meets demands for CPUs. */
void ebb_rig_engine_shares(void *arg, const struct ebb_shares *shares);

/*
 * Dispatches the applications as they become ready until is_done(arg), for at
 * most ms.  Returns whether it is done.
 */
bool ebb_rig_until(struct ebb *const apps[], size_t num, bool (*is_done)(void *arg), void *arg,
		   unsigned int ms);
/* The same for a time that is to pass. */
void ebb_rig_run(struct ebb *const apps[], size_t num, unsigned int ms);

/* The share of an application on a node, as of its last dispatch; zeroes if there is none. */
struct ebb_node_share ebb_rig_share(struct ebb *ebb, uint32_t node);

#endif /* EBB_RIG_H */
