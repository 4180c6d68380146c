// SPDX-License-Identifier: GPL-2.0-or-later
/* The buffered records of one worker: see fetch.h and admit.h. */
#include <stdlib.h>

#include "admit.h"
#include "fetch.h"
#include "oltp-engine/src/txn/engine.h"

static void queue_push(struct fetch_queue *queue, struct fetch_read *read)
{
	read->next = NULL;
	if (queue->last)
		queue->last->next = read;
	else
		queue->first = read;
	queue->last = read;
	queue->n++;
}

static struct fetch_read *queue_pop(struct fetch_queue *queue)
{
	struct fetch_read *read = queue->first;

	queue->first = read->next;
	if (!queue->first)
		queue->last = NULL;
	queue->n--;
	return read;
}

bool buffered_have_room(const struct fetcher *f, uint32_t bytes)
{
	return f->buffered.n + f->unlinked.n < BUFFERED_MAX &&
	       f->used_buffer_bytes + bytes <= BUFFERED_BYTES_MAX;
}

void buffered_add(struct fetcher *f, struct fetch_read *read)
{
	f->used_buffer_bytes += read->room;
	queue_push(&f->buffered, read);
}

void buffered_reclaim(struct fetcher *f)
{
	uint64_t epoch;

	while (f->unlinked.first) {
		epoch = f->unlinked.first->epoch;
		if (!epoch_has_passed(&f->cold->engine->epoch, epoch))
			return;
		while (f->unlinked.first && f->unlinked.first->epoch == epoch) {
			struct fetch_read *read = queue_pop(&f->unlinked);

			f->used_buffer_bytes -= read->room;
			read->next = f->free;
			f->free = read;
		}
	}
}

/* Is the record held by a ticket that waited for it and is still of the same transaction? */
static bool is_held(const struct fetcher *f, const struct fetch_read *read)
{
	for (uint64_t left = read->tickets; left; left &= left - 1) {
		uint32_t hold = f->tickets[__builtin_ctzll(left)].hold;

		if (hold && hold <= read->hold)
			return true;
	}
	return false;
}

/* Releases up to n records. Those in use, or held (spare_held), go to the end of the queue. */
static void end_some(struct fetcher *f, struct fetch_queue *ended, uint32_t n, bool spare_held,
		     const struct admit_by *by)
{
	for (uint32_t left = f->buffered.n; left && ended->n < n; left--) {
		struct fetch_read *read = queue_pop(&f->buffered);

		if (!(spare_held && is_held(f, read)) &&
		    buffered_release(f->cold, by, index_record(read->ref.entry), &read->ref,
				     read->is_wanted))
			queue_push(ended, read);
		else
			queue_push(&f->buffered, read);
	}
}

void buffered_release_some(struct fetcher *f, uint32_t n, const struct admit_by *by)
{
	struct fetch_queue ended = { NULL, NULL, 0 };
	uint64_t epoch;

	end_some(f, &ended, n, true, by);
	if (!ended.n)
		end_some(f, &ended, n, false, by);
	if (!ended.n)
		return;
	epoch = epoch_advance(&f->cold->engine->epoch);
	while (ended.n) {
		struct fetch_read *read = queue_pop(&ended);

		read->epoch = epoch;
		queue_push(&f->unlinked, read);
	}
}

void buffered_keep_few(struct fetcher *f)
{
	const struct admit_by by = admit_by_worker(f->worker);

	buffered_reclaim(f);
	if (f->unlinked.n)
		return;
	if (f->buffered.n < BUFFERED_MAX / 4 * 3 && buffered_have_room(f, BUFFERED_BYTES_MAX / 4))
		return;
	/* Releases an eighth at once, so that the cost of a new epoch is small for each record. */
	buffered_release_some(f, f->buffered.n / 8 + 1, &by);
}
