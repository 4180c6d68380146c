/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free slots that a table keeps for records to come, and how the thread that moves memory is told
 * that it has work. That thread (manager.h) is in a room above; code that inserts, reads back or
 * loses records knows only this header.
 */
#ifndef OLTP_ROOM_H
#define OLTP_ROOM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "table.h"

struct room {
	bool has_manager;		/* else nobody makes room */
	_Atomic bool is_wanted;		/* by at least one table, which has a flag of its own */
	_Atomic uint64_t n_tries;	/* of the manager to make what is wanted, ended */
	pthread_mutex_t lock;		/* everything below */
	pthread_cond_t changed;
	bool has_news;
};

void room_init(struct room *room);
void room_finish(struct room *room);

/* Memory was offered, demanded or revoked, or room is wanted: the manager looks at once. */
void room_wake(struct room *room);

/* By the manager: until somebody wakes it, or until then (ns of CLOCK_MONOTONIC). */
void room_wait(struct room *room, uint64_t until_ns);

/* No slot was found for a record of the table. */
void room_want(struct room *room, struct oltp_table *table);

/* After a slot of the table was taken: wakes the manager when few are left. */
void room_check(struct room *room, struct oltp_table *table);

/* By the manager, before any table is there: from now on somebody makes room. */
void room_manage(struct room *room);

/* By the manager: was room wanted since the last call, in any table and in this one? */
bool room_take_wanted(struct room *room);
bool room_take_wanted_by(struct oltp_table *table);

/* So many free slots the manager tries to keep in the table. */
uint64_t room_low(const struct oltp_table *table);

/* By the manager: it has tried to make the room that is wanted, whatever came of it. */
void room_tried(struct room *room);

/*
 * Whether a worker that has waited for room since then is to give up. It waited for 10 s, in which
 * the manager tried several times. Where the manager did not run, for it got no CPU or its disk
 * is slow, 60 s. tries: room->n_tries when the worker began to wait.
 */
bool room_is_hopeless(const struct room *room, uint64_t tries, uint64_t since_ns, uint64_t now_ns);

/* By the manager: room was made in the table. */
void room_made(struct oltp_table *table);

/*
 * So many free slots are for records that transactions want; with more, others come in, too. The
 * manager makes at most twice room_low, or a block.
 */
uint64_t room_reserved(const struct oltp_table *table);

/*
 * Of so many slots of a table, how many are free in the mean while room has to be made: the manager
 * begins when room_low are left, and makes twice that.
 */
uint64_t room_kept(uint64_t slots);

#endif
