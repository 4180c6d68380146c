// SPDX-License-Identifier: GPL-2.0-or-later
/* See queue.h. A ring. */
#include <stdlib.h>

#include "queue.h"

struct load_queue {
	struct load_request *ring;
	uint32_t room;
	uint32_t first;
	uint32_t n;
	uint64_t wait_ns;
};

struct load_queue *load_queue_create(uint32_t room, uint64_t wait_ns)
{
	struct load_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->ring = calloc(room, sizeof(*queue->ring));
	if (!queue->ring) {
		free(queue);
		return NULL;
	}
	queue->room = room;
	queue->wait_ns = wait_ns;
	return queue;
}

void load_queue_destroy(struct load_queue *queue)
{
	if (!queue)
		return;
	free(queue->ring);
	free(queue);
}

uint32_t load_queue_length(const struct load_queue *queue)
{
	return queue->n;
}

bool load_queue_add(struct load_queue *queue, const struct load_request *request)
{
	if (queue->n == queue->room)
		return false;
	queue->ring[((uint64_t)queue->first + queue->n) % queue->room] = *request;
	queue->n++;
	return true;
}

bool load_queue_return(struct load_queue *queue, const struct load_request *request)
{
	if (queue->n == queue->room)
		return false;
	queue->first = (queue->first ? queue->first : queue->room) - 1;
	queue->ring[queue->first] = *request;
	queue->n++;
	return true;
}

uint64_t load_queue_expires(const struct load_queue *queue)
{
	uint64_t arrived_ns;

	if (!queue->n)
		return UINT64_MAX;
	arrived_ns = queue->ring[queue->first].arrived_ns;
	return queue->wait_ns > UINT64_MAX - arrived_ns ? UINT64_MAX : arrived_ns + queue->wait_ns;
}

bool load_queue_take(struct load_queue *queue, struct load_request *ret_request)
{
	if (!queue->n)
		return false;
	*ret_request = queue->ring[queue->first];
	queue->first = (queue->first + 1) % queue->room;
	queue->n--;
	return true;
}

bool load_queue_drop(struct load_queue *queue, uint64_t now_ns, struct load_request *ret_request)
{
	return load_queue_expires(queue) <= now_ns && load_queue_take(queue, ret_request);
}
