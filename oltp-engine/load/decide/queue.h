/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests that wait for a connection, first come first served. One that has waited for the whole
 * bound is dropped ("Downtime-Free Live Migration", 4.1: after 1 s, and it counts as failed).
 * Pure but for the memory.
 */
#ifndef LOAD_QUEUE_H
#define LOAD_QUEUE_H

#include "request.h"

struct load_queue;

/* room: requests at most; wait_ns: bound of the time since the arrival. NULL: no memory. */
struct load_queue *load_queue_create(uint32_t room, uint64_t wait_ns);
void load_queue_destroy(struct load_queue *queue);

uint32_t load_queue_length(const struct load_queue *queue);

/* At the end. false: the queue is full. */
bool load_queue_add(struct load_queue *queue, const struct load_request *request);

/* At the front: a request that is sent again keeps the time of its arrival. false: full. */
bool load_queue_return(struct load_queue *queue, const struct load_request *request);

/* Drops the first if it has waited for wait_ns or more. false: it has not, or nothing waits. */
bool load_queue_drop(struct load_queue *queue, uint64_t now_ns, struct load_request *ret_request);

/* When the first will have waited too long; UINT64_MAX: nothing waits. */
uint64_t load_queue_expires(const struct load_queue *queue);

/* The first. false: nothing waits. */
bool load_queue_take(struct load_queue *queue, struct load_request *ret_request);

#endif
