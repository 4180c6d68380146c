// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bringing back what a transaction missed: see oltp.h (fetching) and fetch.h.
 *
 * No lock is held while a record is read; what keeps it in place is the pin of its eviction block
 * (C2). Any number of workers may read the same one, the first puts it back (C3).
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "engine.h"
#include "fetch.h"
#include "manager.h"

/* Reads are handed to the kernel together, but not held back longer than so many polls. */
#define SEND_AT_ONCE		16u
#define SEND_POLLS_MAX		32u
/* No room for a record for so long: its transaction fails. */
#define ROOM_WAIT_NS		2000000000ull
#define WAIT_STEP_NS		200000ull

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static struct fetcher *fetcher_create(struct oltp_worker *worker)
{
	struct cold *cold = worker->engine->cold;
	struct fetcher *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	if (cold_io_init(&f->io, cold->file.fd, FETCH_READS_MAX, cold->hook)) {
		free(f);
		return NULL;
	}
	f->worker = worker;
	f->cold = cold;
	for (uint32_t i = 0; i < FETCH_READS_MAX; i++) {
		f->reads[i].next = f->free;
		f->free = &f->reads[i];
	}
	return f;
}

static void read_end(struct fetcher *f, struct fetch_read *read)
{
	cold_unpin(read->block);
	read->next = f->free;
	f->free = read;
}

void fetcher_destroy(struct fetcher *f)
{
	if (!f)
		return;
	while (f->io.in_flight) {
		struct cold_request *request = cold_io_next(&f->io);

		if (request)
			read_end(f, (struct fetch_read *)request);
		else
			cold_io_wait(&f->io, 1000000000ull);
	}
	while (f->waiting) {
		struct fetch_read *read = f->waiting;

		f->waiting = read->next;
		read_end(f, read);
	}
	for (uint32_t i = 0; i < FETCH_READS_MAX; i++)
		free(f->reads[i].buffer);
	atomic_fetch_sub_explicit(&f->cold->buffer_bytes, f->buffer_bytes, memory_order_relaxed);
	cold_io_finish(&f->io);
	free(f);
}

/* Those that are not being read into. */
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

static int buffer_reserve(struct fetcher *f, struct fetch_read *read, uint32_t bytes)
{
	uint8_t *buffer;

	if (read->room >= bytes)
		return 0;
	if (f->buffer_bytes - read->room + bytes > FETCH_BYTES_MAX)
		buffers_drop(f);
	/* One may always be as large as it has to be. */
	if (f->buffer_bytes && f->buffer_bytes - read->room + bytes > FETCH_BYTES_MAX)
		return -EAGAIN;
	buffer = aligned_alloc(f->cold->file.align, bytes);
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

/* The stub is pinned. -EAGAIN: too much is being read. */
static int read_start(struct fetcher *f, const struct index_ref *ref, uint32_t ticket)
{
	struct cold_place place = cold_stub_place(f->cold, ref->entry);
	struct fetch_read *read = f->free;
	int rc = read ? buffer_reserve(f, read, place.bytes) : -EAGAIN;

	if (rc)
		return rc;
	f->free = read->next;
	read->ref = *ref;
	read->block = cold_stub_block(f->cold, ref->entry);
	read->slot = cold_stub_slot(ref->entry);
	read->ticket = ticket;
	read->lead = place.lead;
	read->request = (struct cold_request){ .bytes = place.bytes, .offset = place.offset,
					       .buffer = read->buffer };
	cold_io_add(&f->io, &read->request);
	f->tickets[ticket].pending++;
	return 0;
}

static void ticket_check(struct fetcher *f, struct fetch_ticket *ticket)
{
	if (ticket->pending || ticket->room_for || ticket->is_done)
		return;
	ticket->is_done = true;
	f->n_done++;
}

static void wait_for_room(struct fetcher *f)
{
	f->n_waiting++;
	if (!f->waiting_since_ns)
		f->waiting_since_ns = now_ns();
	manager_room_want(f->worker->engine->manager);
}

static int start_wanted(struct fetcher *f, const struct cold_want *want, uint32_t ticket)
{
	struct index_ref ref;
	int rc;

	/* In memory by now, or never there, or lost: the transaction will see. */
	if (index_find(&want->table->index, want->key, want->hash, &ref) || !ref.entry ||
	    (ref.entry & INDEX_ADDR_MASK) == INDEX_LOST || !cold_pin(f->cold, &ref))
		return 0;
	rc = read_start(f, &ref, ticket);
	if (rc)
		cold_unpin(cold_stub_block(f->cold, ref.entry));
	return rc;
}

static bool wanted_before(const struct oltp_worker *worker, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++) {
		if (worker->wants[k].key == worker->wants[i].key &&
		    worker->wants[k].table == worker->wants[i].table)
			return true;
	}
	return false;
}

enum oltp_rc oltp_cold_fetch(struct oltp_worker *worker, uint32_t number)
{
	struct fetcher *f = worker->fetcher;
	struct fetch_ticket *ticket;
	int rc = 0;

	if (number >= OLTP_TICKETS || worker->state != TXN_IDLE ||
	    (!worker->n_wants && !worker->wants_room))
		return OLTP_INVALID;
	if (!f)
		f = worker->fetcher = fetcher_create(worker);
	if (!f)
		return OLTP_IO;
	ticket = &f->tickets[number];
	if (ticket->is_used)
		return OLTP_INVALID;
	*ticket = (struct fetch_ticket){ .is_used = true };

	epoch_enter(&worker->engine->epoch, &worker->announced, epoch_now(&worker->engine->epoch));
	for (uint32_t i = 0; !rc && i < worker->n_wants; i++) {
		if (!wanted_before(worker, i))
			rc = start_wanted(f, &worker->wants[i], number);
	}
	epoch_leave(&worker->announced);

	/* What was started is enough for now: the transaction will ask for the rest. */
	if (rc && !ticket->pending) {
		ticket->is_used = false;
		return rc == -EAGAIN ? OLTP_FULL : OLTP_NO_MEMORY;
	}
	if (worker->wants_room) {
		ticket->room_for = worker->room_table;
		wait_for_room(f);
	}
	worker->n_wants = 0;
	worker->wants_room = false;
	ticket_check(f, ticket);
	return OLTP_OK;
}

static void read_finish(struct fetcher *f, struct fetch_read *read, enum oltp_rc rc)
{
	struct fetch_ticket *ticket = &f->tickets[read->ticket];

	if (rc)
		ticket->rc = rc;
	ticket->pending--;
	read_end(f, read);
	ticket_check(f, ticket);
}

/* False: there is no room. */
static bool read_merge(struct fetcher *f, struct fetch_read *read)
{
	struct oltp_worker *worker = f->worker;
	const void *data = read->buffer + read->lead + sizeof(struct cold_head);

	if (cold_merge(f->cold, &read->ref, read->slot, data, worker->node,
		       counter_read(&worker->clock) << LOCK_TS_WORKER_BITS | worker->number,
		       epoch_now(&worker->engine->epoch), false) == -ENOMEM)
		return false;
	read_finish(f, read, OLTP_OK);
	return true;
}

static void read_arrived(struct fetcher *f, struct fetch_read *read)
{
	struct cold_counters *c = &f->cold->counters;

	atomic_fetch_add_explicit(&c->reads, 1, memory_order_relaxed);
	if (read->request.result ||
	    !cold_record_check(read->block, read->slot, read->buffer + read->lead)) {
		atomic_fetch_add_explicit(&c->read_errors, 1, memory_order_relaxed);
		read_finish(f, read, OLTP_IO);
		return;
	}
	if (read_merge(f, read))
		return;
	read->next = f->waiting;
	f->waiting = read;
	wait_for_room(f);
}

static bool room_is_there(struct fetcher *f, struct oltp_table *table)
{
	return storage_free_slots(table) ||
	       storage_spare_bytes(&f->worker->engine->storage) >= OLTP_MEM_BLOCK_BYTES;
}

/* What waits for room: put in now, or given up. */
static void retry_waiting(struct fetcher *f)
{
	bool is_late = now_ns() - f->waiting_since_ns > ROOM_WAIT_NS;
	struct fetch_read **at = &f->waiting, *read;
	uint32_t n = f->n_waiting;

	while ((read = *at)) {
		struct fetch_read *next = read->next;

		if (!is_late && !read_merge(f, read))
			break;
		*at = next;
		f->n_waiting--;
		if (is_late)
			read_finish(f, read, OLTP_NO_MEMORY);
	}
	for (uint32_t i = 0; i < OLTP_TICKETS; i++) {
		struct fetch_ticket *ticket = &f->tickets[i];

		if (!ticket->room_for || (!is_late && !room_is_there(f, ticket->room_for)))
			continue;
		if (is_late)
			ticket->rc = OLTP_NO_MEMORY;
		ticket->room_for = NULL;
		f->n_waiting--;
		ticket_check(f, ticket);
	}
	if (f->n_waiting < n)
		f->waiting_since_ns = f->n_waiting ? now_ns() : 0;
	else
		manager_room_want(f->worker->engine->manager);
}

static void move_on(struct fetcher *f)
{
	struct cold_request *request;

	if (f->io.unsent >= SEND_AT_ONCE || (f->io.unsent && ++f->polls >= SEND_POLLS_MAX)) {
		f->polls = 0;
		cold_io_flush(&f->io);
	}
	while ((request = cold_io_next(&f->io)))
		read_arrived(f, (struct fetch_read *)request);
	if (unlikely(f->n_waiting))
		retry_waiting(f);
}

uint32_t oltp_cold_poll(struct oltp_worker *worker, struct oltp_cold_done *ret_done, uint32_t max,
			bool wait)
{
	struct fetcher *f = worker->fetcher;
	uint32_t n = 0;

	if (!f)
		return 0;
	move_on(f);
	while (wait && !f->n_done && (f->io.in_flight || f->n_waiting)) {
		if (f->io.in_flight)
			cold_io_wait(&f->io, f->n_waiting ? WAIT_STEP_NS : 1000000000ull);
		else
			nanosleep(&(struct timespec){ 0, WAIT_STEP_NS }, NULL);
		move_on(f);
	}
	for (uint32_t i = 0; f->n_done && n < max && i < OLTP_TICKETS; i++) {
		struct fetch_ticket *ticket = &f->tickets[i];

		if (!ticket->is_done)
			continue;
		ret_done[n++] = (struct oltp_cold_done){ i, ticket->rc };
		*ticket = (struct fetch_ticket){ 0 };
		f->n_done--;
	}
	return n;
}

enum oltp_rc oltp_cold_wait(struct oltp_worker *worker)
{
	struct oltp_cold_done done;
	enum oltp_rc rc = oltp_cold_fetch(worker, 0);

	if (rc)
		return rc;
	while (!oltp_cold_poll(worker, &done, 1, true))
		;
	return done.rc;
}
