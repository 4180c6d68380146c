// SPDX-License-Identifier: GPL-2.0-or-later
/* See room.h. */
#include <time.h>

#include "oltp-engine/src/base/util.h"
#include "room.h"

/* Room is made when a table's free slots are less than this part of those used; bounds of it. */
#define ROOM_SHARE		64u
#define ROOM_MIN		32u
#define ROOM_MAX		16384u
/* One that waits gives up after so long, and so many tries of the manager; or after LONGEST. */
#define WAIT_NS			10000000000ull
#define WAIT_TRIES		3u
#define WAIT_LONGEST_NS		60000000000ull

void room_init(struct room *room)
{
	*room = (struct room){ .has_manager = false };
	pthread_mutex_init(&room->lock, NULL);
	pthread_cond_init(&room->changed, NULL);
}

void room_finish(struct room *room)
{
	pthread_cond_destroy(&room->changed);
	pthread_mutex_destroy(&room->lock);
}

void room_manage(struct room *room)
{
	room->has_manager = true;
}

void room_wake(struct room *room)
{
	pthread_mutex_lock(&room->lock);
	room->has_news = true;
	pthread_cond_signal(&room->changed);
	pthread_mutex_unlock(&room->lock);
}

void room_wait(struct room *room, uint64_t until_ns)
{
	struct timespec until = { (time_t)(until_ns / 1000000000),
				  (long)(until_ns % 1000000000) };

	pthread_mutex_lock(&room->lock);
	while (!room->has_news &&
	       !pthread_cond_clockwait(&room->changed, &room->lock, CLOCK_MONOTONIC, &until))
		;
	room->has_news = false;
	pthread_mutex_unlock(&room->lock);
}

void room_want(struct room *room, struct oltp_table *table)
{
	if (!room->has_manager)
		return;
	/* Pairs with room_take_wanted: a thread that sees room->is_wanted sees this flag, too. */
	atomic_store_explicit(&table->is_room_wanted, true, memory_order_relaxed);
	if (!atomic_exchange_explicit(&room->is_wanted, true, memory_order_acq_rel))
		room_wake(room);
}

bool room_take_wanted(struct room *room)
{
	return atomic_exchange_explicit(&room->is_wanted, false, memory_order_acq_rel);
}

bool room_take_wanted_by(struct oltp_table *table)
{
	return atomic_exchange_explicit(&table->is_room_wanted, false, memory_order_relaxed);
}

void room_tried(struct room *room)
{
	atomic_fetch_add_explicit(&room->n_tries, 1, memory_order_relaxed);
}

bool room_is_hopeless(const struct room *room, uint64_t tries, uint64_t since_ns, uint64_t now_ns)
{
	const uint64_t waited_ns = now_ns - since_ns;
	const uint64_t n = atomic_load_explicit(&room->n_tries, memory_order_relaxed) - tries;

	return waited_ns > WAIT_LONGEST_NS ||
	       (waited_ns > WAIT_NS && (n >= WAIT_TRIES || !room->has_manager));
}

static uint64_t low_of(uint64_t used)
{
	uint64_t n = used / ROOM_SHARE;

	return n < ROOM_MIN ? ROOM_MIN : n > ROOM_MAX ? ROOM_MAX : n;
}

uint64_t room_low(const struct oltp_table *table)
{
	return low_of(storage_used_slots(table));
}

void room_made(struct oltp_table *table)
{
	atomic_store_explicit(&table->room_made, storage_free_slots(table), memory_order_relaxed);
}

uint64_t room_reserved(const struct oltp_table *table)
{
	uint64_t made = atomic_load_explicit(&table->room_made, memory_order_relaxed);
	uint64_t kept = 3 * room_low(table);

	return made > kept ? made : kept;
}

uint64_t room_kept(uint64_t slots)
{
	uint64_t n = low_of(slots) * 3 / 2;

	return n < slots ? n : slots;
}

void room_check(struct room *room, struct oltp_table *table)
{
	uint64_t n_free;

	/* Called for each record that is read back: the manager may know already. */
	if (!room->has_manager ||
	    (atomic_load_explicit(&room->is_wanted, memory_order_relaxed) &&
	     atomic_load_explicit(&table->is_room_wanted, memory_order_relaxed)))
		return;
	n_free = storage_free_slots(table);
	if (n_free < ROOM_MAX && n_free < room_low(table))
		room_want(room, table);
}
