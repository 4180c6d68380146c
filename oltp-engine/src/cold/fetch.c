// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads of the cold records that transactions met: see oltp.h (fetching) and fetch.h.
 *
 * No lock is held while a record is read. The pin of its eviction block keeps the place on disk as
 * it is (C2). Any number of workers may read the same record; the first one lets it in (C3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cold_checkpoint.h"
#include "fetch.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/txn/engine.h"

/*
 * While there are transactions to run between polls, only one poll of TURN_POLLS looks for reads
 * that have ended: a system call costs as much as a transaction, and telling a virtual disk of new
 * requests ten times that. Reads are submitted when there are SEND_AT_ONCE of them, or after
 * SEND_POLLS_MAX polls.
 */
#define TURN_POLLS		16u
#define SEND_AT_ONCE		32u
#define SEND_POLLS_MAX		512u
#define WAIT_STEP_NS		200000ull

static enum oltp_rc fetcher_create(struct oltp_worker *worker)
{
	struct cold *cold = worker->engine->cold;
	struct fetcher *f;

	if (counter_read(&cold->left_bytes) >= FETCH_LEFT_BYTES_MAX)
		return OLTP_NO_MEMORY;
	f = calloc(1, sizeof(*f));
	if (!f)
		return OLTP_NO_MEMORY;
	if (io_queue_init(&f->io, cold->file.fd, FETCH_READS_MAX, cold->hook,
			  &cold->engine->io_meters)) {
		free(f);
		return OLTP_IO;
	}
	f->worker = worker;
	f->cold = cold;
	for (uint32_t i = 0; i < FETCH_READS_MAX; i++) {
		f->reads[i].next = f->free;
		f->free = &f->reads[i];
	}
	worker->fetcher = f;
	return OLTP_OK;
}

_Static_assert(OLTP_TICKETS <= 64 && OLTP_TABLES_MAX <= 32, "they are bits of words");

static struct fetch_read **chain_of(struct fetcher *f, uint64_t offset)
{
	return &f->by_sector[(offset * 0x9e3779b97f4a7c15ull >> 32) % FETCH_READS_MAX];
}

/* From here on no other ticket can join the read. */
static void read_unchain(struct fetcher *f, struct fetch_read *read)
{
	struct fetch_read **at = chain_of(f, read->request.offset);

	while (*at != read)
		at = &(*at)->chain;
	*at = read->chain;
}

static void read_end(struct fetcher *f, struct fetch_read *read)
{
	cold_unpin(read->block);
	read->next = f->free;
	f->free = read;
}

/* Frees the buffers that hold no record and are not being read into. */
static void buffers_drop(struct fetcher *f)
{
	for (struct fetch_read *read = f->free; read; read = read->next) {
		free(read->buffer);
		atomic_fetch_sub_explicit(&f->cold->buffer_bytes, read->room,
					  memory_order_relaxed);
		f->buffer_bytes -= read->room;
		read->buffer = NULL;
		read->room = 0;
	}
}

static void left_add(struct cold *cold, struct fetcher *f)
{
	pthread_mutex_lock(&cold->lock);
	f->next = cold->left;
	cold->left = f;
	pthread_mutex_unlock(&cold->lock);
}

void fetcher_leave(struct fetcher *f)
{
	if (!f)
		return;
	while (f->waiting) {
		struct fetch_read *read = f->waiting;

		f->waiting = read->next;
		read_end(f, read);
	}
	buffers_drop(f);
	memset(f->tickets, 0, sizeof(f->tickets));
	f->worker = NULL;
	atomic_fetch_add_explicit(&f->cold->left_bytes, f->buffer_bytes, memory_order_relaxed);
	left_add(f->cold, f);
}

/* Ends the reads that have arrived: no transaction waits for them any more. */
static void left_reads_end(struct fetcher *f)
{
	struct io_request *request;

	/* Reads that the worker had not submitted yet end as the others do. */
	io_queue_flush(&f->io);
	while ((request = io_queue_next(&f->io)))
		read_end(f, (struct fetch_read *)request);
}

static void left_free(struct fetcher *f)
{
	struct cold *cold = f->cold;

	io_queue_finish(&f->io);
	for (uint32_t i = 0; i < FETCH_READS_MAX; i++)
		free(f->reads[i].buffer);
	atomic_fetch_sub_explicit(&cold->buffer_bytes, f->buffer_bytes, memory_order_relaxed);
	atomic_fetch_sub_explicit(&cold->left_bytes, f->buffer_bytes, memory_order_relaxed);
	free(f);
}

void fetchers_left_settle(struct cold *cold)
{
	const struct admit_by by = admit_by_manager(cold->engine);
	struct fetcher *left, *next;

	pthread_mutex_lock(&cold->lock);
	left = cold->left;
	cold->left = NULL;
	pthread_mutex_unlock(&cold->lock);
	for (; left; left = next) {
		next = left->next;
		left_reads_end(left);
		buffered_release_some(left, left->buffered.n, &by);
		buffered_reclaim(left);
		if (left->io.in_flight || left->buffered.n || left->unlinked.n)
			left_add(cold, left);
		else
			left_free(left);
	}
}

void fetchers_left_free(struct cold *cold)
{
	while (cold->left) {
		struct fetcher *f = cold->left;

		cold->left = f->next;
		for (left_reads_end(f); f->io.in_flight; left_reads_end(f))
			io_queue_wait(&f->io, 1000000000ull);
		left_free(f);
	}
}

static int buffer_reserve(struct fetcher *f, struct fetch_read *read, uint32_t bytes)
{
	uint8_t *buffer;

	if (read->room >= bytes)
		return 0;
	if (f->buffer_bytes - read->room + bytes > FETCH_BYTES_MAX)
		buffers_drop(f);
	/* The only buffer may always be as large as its record needs. */
	if (f->buffer_bytes && f->buffer_bytes - read->room + bytes > FETCH_BYTES_MAX)
		return -EAGAIN;
	buffer = cold_buffer_alloc(f->cold, bytes);
	if (!buffer)
		return -ENOMEM;
	free(read->buffer);
	atomic_fetch_add_explicit(&f->cold->buffer_bytes, bytes - read->room,
				  memory_order_relaxed);
	f->buffer_bytes += bytes - read->room;
	read->buffer = buffer;
	read->room = bytes;
	return 0;
}

/* True: the record was used before, and later than the records that went to disk last. */
static bool is_worth_a_slot(const struct cold *cold, const struct cold_block *block, uint32_t slot)
{
	uint64_t evicted = atomic_load_explicit(&cold->evicted_stamps[block->table->id],
						memory_order_relaxed);
	uint32_t last = atomic_load_explicit(&block->used[slot], memory_order_relaxed);

	/* Modulo 2^31: of a use too long ago to tell, either is right. */
	return (int32_t)((last - (uint32_t)evicted) << 1) > 0;
}

/* Notes the use of the record that is read. */
static void note_use(struct fetcher *f, struct fetch_read *read, uint64_t hash)
{
	const struct cold_block *block = read->block;
	uint64_t now = epoch_now(&f->worker->engine->epoch);

	read->flags = 0;
	if (unlikely(promise_watches(&f->worker->engine->promise, hash)))
		read->flags = promise_fetch(f->worker, block->table, now,
					    cold_last_use(block, read->slot, now),
					    cold_was_taken(block, read->slot));
	atomic_store_explicit(&block->used[read->slot], cold_use(now | read->flags),
			      memory_order_relaxed);
}

/* Asks once for all reads that arrived together, since that takes a lock that all workers share. */
static bool has_plenty_of_room(struct fetcher *f, struct oltp_table *table)
{
	uint32_t bit = 1u << table->id;

	if (!(f->room_asked & bit)) {
		f->room_asked |= bit;
		if (cold_has_room(f->cold, table))
			f->room_there |= bit;
	}
	return f->room_there & bit;
}

/* A read in flight that also brings the record of this pinned stub. NULL: there is none. */
static struct fetch_read *read_find(struct fetcher *f, uint64_t entry)
{
	struct cold_place place = cold_stub_place(f->cold, entry);
	struct fetch_read *read = *chain_of(f, place.offset), *neighbour = NULL;

	for (; read; read = read->chain) {
		if (!((read->ref.entry ^ entry) & INDEX_ADDR_MASK))
			return read;
		if (read->request.file == place.file && read->request.offset == place.offset &&
		    read->request.bytes >= place.bytes)
			neighbour = read;
	}
	return neighbour && has_plenty_of_room(f, neighbour->block->table) ? neighbour : NULL;
}

static void read_join(struct fetcher *f, struct fetch_read *read, uint64_t entry, uint32_t ticket)
{
	uint64_t bit = 1ull << ticket;

	if (!((read->ref.entry ^ entry) & INDEX_ADDR_MASK))
		read->wanted_by |= bit;
	if (read->tickets & bit)
		return;
	read->tickets |= bit;
	read->hold = f->last_hold;
	f->tickets[ticket].pending++;
}

/* The stub is pinned. -EAGAIN: too much is being read. */
static int read_start(struct fetcher *f, const struct index_ref *ref, uint64_t hash,
		      uint32_t ticket)
{
	struct cold_place place = cold_stub_place(f->cold, ref->entry);
	/* Room in front of the sectors for the struct buffered; direct I/O needs this alignment. */
	uint32_t front = place.align;
	struct fetch_read *read = f->free;
	int rc = read ? buffer_reserve(f, read, front + place.bytes) : -EAGAIN;

	if (rc)
		return rc;
	f->free = read->next;
	read->ref = *ref;
	read->block = cold_stub_block(f->cold, ref->entry);
	read->slot = cold_stub_slot(ref->entry);
	read->ticket = ticket;
	read->is_wanted = is_worth_a_slot(f->cold, read->block, read->slot);
	note_use(f, read, hash);
	read->lead = front + place.lead;
	read->request = (struct io_request){
		.class = IO_FETCH, .file = place.file, .bytes = place.bytes,
		.offset = place.offset, .buffer = read->buffer + front,
	};
	io_queue_add(&f->io, &read->request);
	read->chain = *chain_of(f, place.offset);
	*chain_of(f, place.offset) = read;
	read->tickets = read->wanted_by = 0;
	read_join(f, read, ref->entry, ticket);
	f->tickets[ticket].held++;
	f->tickets[ticket].held_bytes += read->room;
	f->held++;
	f->held_bytes += read->room;
	return 0;
}

/* The ticket is done if it waits for nothing any more. */
static void ticket_check(struct fetcher *f, struct fetch_ticket *ticket)
{
	if (!ticket->pending && !ticket->room_for)
		f->done[f->n_done++] = (uint32_t)(ticket - f->tickets);
}

/* Counts the time since f->now_ns, in which the worker did nothing but reading. */
static void count_cpu(struct fetcher *f)
{
	f->left_ns = clock_now_ns();
	f->spent_ns += f->left_ns - f->now_ns;
	atomic_fetch_add_explicit(&f->cold->counters.read_cpu_ns, f->left_ns - f->now_ns,
				  memory_order_relaxed);
}

static void wait_begins(struct fetcher *f)
{
	f->waiting_since_ns = clock_now_ns();
	f->waiting_tries = atomic_load_explicit(&f->worker->engine->room.n_tries,
						memory_order_relaxed);
}

static void wait_for_room(struct fetcher *f, struct oltp_table *table)
{
	if (f->n_waiting++ == 0)
		wait_begins(f);
	room_want(&f->worker->engine->room, table);
}

static int start_wanted(struct fetcher *f, const struct cold_want *want, uint32_t ticket)
{
	struct fetch_read *read;
	struct index_ref ref;
	int rc = 0;

	/* In memory by now, deleted or revoked: the transaction will find out. */
	if (index_find(&want->table->index, want->key, want->hash, &ref) || !ref.entry ||
	    (ref.entry & INDEX_ADDR_MASK) == INDEX_REVOKED)
		return 0;
	if (!cold_pin(f->cold, &ref))
		return 0;
	read = read_find(f, ref.entry);
	if (read)
		read_join(f, read, ref.entry, ticket);
	else
		rc = read_start(f, &ref, want->hash, ticket);
	if (read || rc)
		cold_unpin(cold_stub_block(f->cold, ref.entry));
	return rc;
}

/*
 * True: n records more would take the room of records that other transactions hold. False if
 * nothing is in flight: then those may be waiting for this transaction.
 */
static bool is_too_much(const struct fetcher *f, uint32_t n)
{
	return (f->held + n > HELD_MAX || f->held_bytes > HELD_BYTES_MAX) &&
	       (f->io.in_flight || f->n_waiting || f->n_done);
}

enum oltp_rc oltp_cold_fetch(struct oltp_worker *worker, uint32_t number)
{
	enum oltp_rc made = OLTP_OK;
	struct fetch_ticket *ticket;
	struct fetcher *f;
	int rc = 0;

	if (number >= OLTP_TICKETS || worker->state != TXN_IDLE ||
	    (!worker->n_wants && !worker->wants_room))
		return OLTP_INVALID;
	if (!worker->fetcher)
		made = fetcher_create(worker);
	if (made)
		return made;
	f = worker->fetcher;
	ticket = &f->tickets[number];
	if (ticket->is_used)
		return OLTP_INVALID;
	if (!ticket->hold) {
		if (is_too_much(f, worker->n_wants))
			return OLTP_FULL;
		/* Not 0, and not that of a record buffered long ago. */
		f->last_hold += f->last_hold == UINT32_MAX ? 2 : 1;
		ticket->hold = f->last_hold;
	}
	ticket->is_used = true;
	f->now_ns = clock_now_ns();

	epoch_enter(&worker->engine->epoch, &worker->announced, epoch_now(&worker->engine->epoch));
	for (uint32_t i = 0; !rc && i < worker->n_wants; i++)
		rc = start_wanted(f, &worker->wants[i], number);
	epoch_leave(&worker->announced);

	/* Some reads were started: the transaction asks for the others when it runs again. */
	if (rc && !ticket->pending) {
		ticket->is_used = false;
		return rc == -EAGAIN ? OLTP_FULL : OLTP_NO_MEMORY;
	}
	if (worker->wants_room) {
		ticket->room_for = worker->room_table;
		wait_for_room(f, worker->room_table);
	}
	txn_wants_clear(worker);
	ticket_check(f, ticket);
	count_cpu(f);
	return OLTP_OK;
}

/*
 * Tells the tickets that waited for the read. If it failed, those that want another record of its
 * sectors try again: that record may be readable.
 */
static void read_tell(struct fetcher *f, struct fetch_read *read, enum oltp_rc rc)
{
	read_unchain(f, read);
	for (uint64_t left = read->tickets; left; left &= left - 1) {
		struct fetch_ticket *ticket = &f->tickets[__builtin_ctzll(left)];

		if (rc && read->wanted_by & left & -left)
			ticket->rc = rc;
		ticket->pending--;
		ticket_check(f, ticket);
	}
}

static void read_finish(struct fetcher *f, struct fetch_read *read, enum oltp_rc rc)
{
	struct fetch_ticket *ticket = &f->tickets[read->ticket];

	ticket->held--;
	ticket->held_bytes -= read->room;
	f->held--;
	f->held_bytes -= read->room;
	read_tell(f, read, rc);
	read_end(f, read);
}

/*
 * Admits the record: into a block if it is worth a slot, or if buffered records take as much as
 * they may; else in its buffer. False: there is no room.
 */
static bool read_admit(struct fetcher *f, struct fetch_read *read, bool is_worth_slot)
{
	const struct admit_by by = admit_by_worker(f->worker);
	const uint64_t stamp = epoch_now(&f->worker->engine->epoch) | read->flags;
	const bool has_buffer = buffered_have_room(f, read->room);
	struct record *record = (struct record *)(read->buffer + read->lead);

	if ((is_worth_slot || !has_buffer) &&
	    admit_to_block(f->cold, &by, &read->ref, record->data, stamp) != -ENOMEM) {
		read_finish(f, read, OLTP_OK);
		return true;
	}
	if (!has_buffer)
		return false;
	if (!admit_to_buffer(&read->ref, record, stamp)) {
		read_finish(f, read, OLTP_OK);
		return true;
	}
	read_tell(f, read, OLTP_OK);
	cold_unpin(read->block);
	buffered_add(f, read);
	return true;
}

/*
 * A read brings whole sectors, and in them other records that went to disk with this one. They were
 * last used when it was, and may be wanted next. While there is room to spare they are admitted for
 * the price of a copy; from a slow disk small records come back many times as fast.
 */
static void neighbours_admit(struct fetcher *f, const struct fetch_read *read)
{
	const struct admit_by by = admit_by_worker(f->worker);
	const struct admit_read sectors = {
		.block = read->block,
		.from = (int64_t)(read->request.offset - read->block->base),
		.bytes = read->request.bytes,
		.buffer = read->request.buffer,
		.skip = read->slot,
	};
	uint32_t n_bad;

	admit_all(f->cold, &by, &sectors, &n_bad);
}

/* Reads that have arrived together, by table. */
struct arrived {
	uint32_t n, tables[OLTP_TABLES_MAX];
};

static void read_arrived(struct fetcher *f, struct fetch_read *read, struct arrived *arrived)
{
	struct cold_counters *c = &f->cold->counters;
	bool has_room;

	atomic_fetch_add_explicit(&c->reads, 1, memory_order_relaxed);
	if (read->request.result ||
	    !cold_record_check(read->block, read->slot, read->buffer + read->lead)) {
		cold_read_failed(f->cold);
		read_finish(f, read, OLTP_IO);
		return;
	}
	cold_patch_apply(read->block, read->slot,
			 ((struct record *)(read->buffer + read->lead))->data);
	arrived->n++;
	arrived->tables[read->block->table->id]++;
	has_room = has_plenty_of_room(f, read->block->table);
	if (has_room)
		neighbours_admit(f, read);
	if (read_admit(f, read, read->is_wanted || has_room))
		return;
	read->next = f->waiting;
	f->waiting = read;
	wait_for_room(f, read->block->table);
}

static bool room_is_there(struct fetcher *f, struct oltp_table *table)
{
	return storage_free_slots(table) ||
	       storage_spare_bytes(&f->worker->engine->storage) >= OLTP_MEM_BLOCK_BYTES;
}

static void want_again(struct fetcher *f)
{
	struct room *room = &f->worker->engine->room;

	if (f->waiting)
		room_want(room, f->waiting->block->table);
	for (uint32_t i = 0; i < OLTP_TICKETS; i++) {
		if (f->tickets[i].room_for)
			room_want(room, f->tickets[i].room_for);
	}
}

/*
 * Admits records that wait for room, or gives them up, so that their transactions fail
 * (room_is_hopeless). This thread itself may not have run for so long, so it tries once more before
 * it gives up.
 */
static void retry_waiting(struct fetcher *f)
{
	bool is_late = room_is_hopeless(&f->worker->engine->room, f->waiting_tries,
					f->waiting_since_ns, clock_now_ns());
	struct fetch_read **at = &f->waiting, *read;
	uint32_t n = f->n_waiting;

	while ((read = *at)) {
		struct fetch_read *next = read->next;
		/* Buffers are released as well, so that room in them is as likely as in a block. */
		bool is_in = read_admit(f, read, false);

		if (!is_in && !is_late)
			break;
		*at = next;
		f->n_waiting--;
		if (!is_in)
			read_finish(f, read, OLTP_NO_MEMORY);
	}
	for (uint32_t i = 0; i < OLTP_TICKETS; i++) {
		struct fetch_ticket *ticket = &f->tickets[i];
		bool is_there = ticket->room_for && room_is_there(f, ticket->room_for);

		if (!ticket->room_for || (!is_there && !is_late))
			continue;
		if (!is_there)
			ticket->rc = OLTP_NO_MEMORY;
		ticket->room_for = NULL;
		f->n_waiting--;
		ticket_check(f, ticket);
	}
	if (f->n_waiting < n)
		wait_begins(f);
	else
		want_again(f);
}

/* The cost is shared equally by all reads that arrived together. */
static void count_cost(struct fetcher *f, const struct arrived *arrived)
{
	for (uint32_t i = 0; arrived->n && i < OLTP_TABLES_MAX; i++)
		reread_note(&f->cold->rereads[i], f->spent_ns / arrived->n, arrived->tables[i]);
	if (arrived->n)
		f->spent_ns = 0;
}

/* waited: since f->left_ns the worker had nothing else to do. */
static void move_on(struct fetcher *f, bool send, bool waited)
{
	struct arrived arrived = { 0 };
	struct io_request *request;
	bool has_worked = false;

	f->now_ns = clock_now_ns();
	if (waited && f->left_ns && f->io.in_flight)
		f->spent_ns += f->now_ns - f->left_ns;
	f->left_ns = f->now_ns;
	if (f->io.unsent &&
	    (send || f->io.unsent >= SEND_AT_ONCE || f->polls >= SEND_POLLS_MAX)) {
		f->polls = 0;
		io_queue_flush(&f->io);
		has_worked = true;
	}
	buffered_keep_few(f);
	f->room_asked = f->room_there = 0;
	while ((request = io_queue_next(&f->io))) {
		read_arrived(f, (struct fetch_read *)request, &arrived);
		has_worked = true;
	}
	/* A look that found nothing is part of the waiting. */
	if (has_worked)
		count_cpu(f);
	count_cost(f, &arrived);
	if (unlikely(f->n_waiting))
		retry_waiting(f);
}

/* How long it may sleep now; 0: until_ns has come. */
static uint64_t wait_ns(const struct fetcher *f, uint64_t until_ns)
{
	uint64_t most_ns = f->n_waiting ? WAIT_STEP_NS : 1000000000ull, now = clock_now_ns();

	if (now >= until_ns)
		return 0;
	return until_ns - now < most_ns ? until_ns - now : most_ns;
}

int cold_poll_until(struct oltp_worker *worker, struct oltp_cold_done *ret_done, uint32_t max,
		    uint64_t until_ns)
{
	struct fetcher *f = worker->fetcher;
	uint64_t ns;
	bool is_idle;
	uint32_t n = 0;

	/* Admitting records announces epochs, which would end the epoch of the transaction. */
	if (worker->state != TXN_IDLE)
		return -EINVAL;
	if (!f)
		return 0;
	/* No transaction was begun since the last call: the worker has nothing else to do. */
	is_idle = f->began == worker->began;
	f->began = worker->began;
	if (!is_idle)
		f->left_ns = 0;
	if (until_ns || is_idle || ++f->polls % TURN_POLLS == 0)
		move_on(f, is_idle, is_idle);
	while (until_ns && !f->n_done && (f->io.in_flight || f->n_waiting) &&
	       (ns = wait_ns(f, until_ns)) != 0) {
		if (f->io.in_flight)
			io_queue_wait(&f->io, ns);
		else
			clock_sleep(ns);
		move_on(f, true, true);
	}
	while (f->n_done && n < max) {
		uint32_t i = f->done[--f->n_done];

		ret_done[n++] = (struct oltp_cold_done){ i, f->tickets[i].rc };
		f->tickets[i].is_used = false;
		f->tickets[i].rc = OLTP_OK;
	}
	return (int)n;
}

int oltp_cold_poll(struct oltp_worker *worker, struct oltp_cold_done *ret_done, uint32_t max,
		   bool wait)
{
	return cold_poll_until(worker, ret_done, max, wait ? UINT64_MAX : 0);
}

void oltp_cold_end(struct oltp_worker *worker, uint32_t number)
{
	struct fetcher *f = worker->fetcher;
	struct fetch_ticket *ticket;

	if (!f || number >= OLTP_TICKETS || f->tickets[number].is_used)
		return;
	ticket = &f->tickets[number];
	f->held -= ticket->held;
	f->held_bytes -= ticket->held_bytes;
	*ticket = (struct fetch_ticket){ 0 };
}

enum oltp_rc oltp_cold_wait(struct oltp_worker *worker)
{
	struct oltp_cold_done done;
	enum oltp_rc rc;

	/* The ticket may still hold records of another transaction. */
	oltp_cold_end(worker, 0);
	rc = oltp_cold_fetch(worker, 0);
	if (rc)
		return rc;
	while (!oltp_cold_poll(worker, &done, 1, true))
		;
	return done.rc;
}
