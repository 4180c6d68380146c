// SPDX-License-Identifier: GPL-2.0-or-later
/* Where cold records lie in the volume, and reading another engine's there: see oltp_place.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cold.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/txn/engine.h"

#define DEPTH	64u
/* No device is as long. */
#define OFFSET_MAX	(1ull << 62)

enum oltp_rc oltp_txn_place(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
			    struct oltp_place *ret_place)
{
	struct cold *cold = worker->engine->cold;
	struct index_ref ref;

	if (worker->state != TXN_ACTIVE)
		return OLTP_INVALID;
	if (!cold || !cold->file.volume ||
	    index_find(&table->index, key, index_hash(key), &ref) || !(ref.entry & INDEX_STUB) ||
	    (ref.entry & INDEX_ADDR_MASK) == INDEX_REVOKED)
		return OLTP_NOT_FOUND;
	/* The transaction is in an epoch, so the stub's block does not change meanwhile (C2). */
	return cold_lend(cold, ref.entry, clock_now_ns(), ret_place) ? OLTP_OK : OLTP_NOT_FOUND;
}

struct oltp_places {
	int fd;
	uint32_t align;
	struct io_queue io;
	struct oltp_place_read *reads;	/* of the batch */
	struct io_request *requests;	/* one for each */
	uint8_t *buffer;
	uint32_t n, n_begun, n_ended;
};

int oltp_places_open(const char *volume, struct oltp_places **ret_places)
{
	struct oltp_places *places = calloc(1, sizeof(*places));
	int rc;

	if (!places)
		return -ENOMEM;
	places->fd = open(volume, O_RDONLY | O_CLOEXEC | O_DIRECT);
	rc = places->fd < 0 ? -errno : 0;
	if (rc)
		goto out_free;
	places->align = cold_file_align(places->fd);
	rc = io_queue_init(&places->io, places->fd, DEPTH, NULL, NULL);
	if (rc)
		goto out_close;
	*ret_places = places;
	return 0;

out_close:
	close(places->fd);
out_free:
	free(places);
	return rc;
}

static void batch_free(struct oltp_places *places)
{
	free(places->requests);
	free(places->buffer);
	places->requests = NULL;
	places->buffer = NULL;
	places->n = places->n_begun = places->n_ended = 0;
}

void oltp_places_close(struct oltp_places *places)
{
	if (!places)
		return;
	oltp_places_poll(places, true);
	batch_free(places);
	io_queue_finish(&places->io);
	close(places->fd);
	free(places);
}

static bool is_good(const struct oltp_place_read *read)
{
	return read->bytes && read->bytes <= OLTP_PLACE_RECORD_MAX &&
	       read->place.offset <= OFFSET_MAX;
}

/* The sectors that the record is in, with its head. */
static struct io_request request_of(const struct oltp_places *places,
				    const struct oltp_place_read *read, uint8_t *buffer)
{
	uint64_t mask = places->align - 1ull, from = read->place.offset & ~mask;
	uint64_t end = read->place.offset + sizeof(struct cold_head) + read->bytes;

	return (struct io_request){
		.class = IO_FETCH,
		.offset = from,
		.bytes = (uint32_t)(((end + mask) & ~mask) - from),
		.buffer = buffer,
	};
}

int oltp_places_begin(struct oltp_places *places, struct oltp_place_read *reads, uint32_t n)
{
	size_t bytes = 0;

	if (places->n_ended < places->n)
		return -EBUSY;
	batch_free(places);
	for (uint32_t i = 0; i < n; i++) {
		if (!is_good(&reads[i]))
			return -EINVAL;
		bytes += request_of(places, &reads[i], NULL).bytes;
	}
	places->requests = calloc(n, sizeof(*places->requests));
	places->buffer = aligned_alloc(places->align, bytes);
	if (!places->requests || !places->buffer) {
		batch_free(places);
		return -ENOMEM;
	}
	bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		places->requests[i] = request_of(places, &reads[i], places->buffer + bytes);
		bytes += places->requests[i].bytes;
		reads[i].rc = -EINPROGRESS;
		reads[i].record = NULL;
	}
	places->reads = reads;
	places->n = n;
	oltp_places_poll(places, false);
	return 0;
}

static void end_read(struct oltp_places *places, const struct io_request *request)
{
	struct oltp_place_read *read = &places->reads[request - places->requests];
	const uint8_t *at = (const uint8_t *)request->buffer +
			    (read->place.offset - request->offset);
	struct cold_head head;

	places->n_ended++;
	read->rc = request->result;
	if (read->rc)
		return;
	memcpy(&head, at, sizeof(head));
	at += sizeof(head);
	if (head.check == checksum(at, read->bytes, read->place.seed))
		read->record = at;
	else
		read->rc = -EBADMSG;
}

bool oltp_places_poll(struct oltp_places *places, bool wait)
{
	while (places->n_ended < places->n) {
		struct io_request *request;

		while (places->n_begun < places->n && places->io.in_flight < DEPTH)
			io_queue_add(&places->io, &places->requests[places->n_begun++]);
		io_queue_flush(&places->io);
		request = io_queue_next(&places->io);
		if (request)
			end_read(places, request);
		else if (wait)
			io_queue_wait(&places->io, 1000000000ull);
		else
			return false;
	}
	return true;
}
