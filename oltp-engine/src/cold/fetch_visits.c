// SPDX-License-Identifier: GPL-2.0-or-later
/* The visitors in a worker's read buffers: see fetch.h and cold_visit.h. */
#include <stdlib.h>

#include "cold_visit.h"
#include "fetch.h"

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

bool visits_have_room(const struct fetcher *f, uint32_t bytes)
{
	return f->visits.n + f->parted.n < VISITS_MAX && f->visit_bytes + bytes <= VISIT_BYTES_MAX;
}

void visits_add(struct fetcher *f, struct fetch_read *read)
{
	f->visit_bytes += read->room;
	queue_push(&f->visits, read);
}

void visits_reclaim(struct fetcher *f)
{
	uint64_t epoch;

	while (f->parted.first) {
		epoch = f->parted.first->epoch;
		if (!epoch_has_passed(&f->cold->engine->epoch, epoch))
			return;
		while (f->parted.first && f->parted.first->epoch == epoch) {
			struct fetch_read *read = queue_pop(&f->parted);

			f->visit_bytes -= read->room;
			read->next = f->free;
			f->free = read;
		}
	}
}

/* By one that waited for it and is still the same transaction. */
static bool is_held(const struct fetcher *f, const struct fetch_read *read)
{
	for (uint64_t left = read->tickets; left; left &= left - 1) {
		uint32_t hold = f->tickets[__builtin_ctzll(left)].hold;

		if (hold && hold <= read->hold)
			return true;
	}
	return false;
}

/* What cannot be ended, or is held, goes to the end of the queue. */
static void end_some(struct fetcher *f, struct fetch_queue *ended, uint32_t n, bool spare_held,
		     uint32_t node, uint64_t ts)
{
	for (uint32_t left = f->visits.n; left && ended->n < n; left--) {
		struct fetch_read *read = queue_pop(&f->visits);

		if (!(spare_held && is_held(f, read)) &&
		    cold_visit_end(f->cold, index_record(read->ref.entry), &read->ref, node, ts,
				   read->is_wanted))
			queue_push(ended, read);
		else
			queue_push(&f->visits, read);
	}
}

void visits_end(struct fetcher *f, uint32_t n, uint32_t node, uint64_t ts)
{
	struct fetch_queue ended = { NULL, NULL, 0 };
	uint64_t epoch;

	end_some(f, &ended, n, true, node, ts);
	if (!ended.n)
		end_some(f, &ended, n, false, node, ts);
	if (!ended.n)
		return;
	epoch = epoch_advance(&f->cold->engine->epoch);
	while (ended.n) {
		struct fetch_read *read = queue_pop(&ended);

		read->epoch = epoch;
		queue_push(&f->parted, read);
	}
}

void visits_keep_few(struct fetcher *f)
{
	struct oltp_worker *worker = f->worker;

	visits_reclaim(f);
	if (f->parted.n)
		return;
	if (f->visits.n < VISITS_MAX / 4 * 3 && visits_have_room(f, VISIT_BYTES_MAX / 4))
		return;
	/* So many at once that the price of a new epoch does not count. */
	visits_end(f, f->visits.n / 8 + 1, worker->node,
		   counter_read(&worker->clock) << LOCK_TS_WORKER_BITS | worker->number);
}
