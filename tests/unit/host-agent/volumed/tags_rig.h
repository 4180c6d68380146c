/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clients of a server that has volumed/tags.h, and a disk that serves a fixed number of units per
 * second, one after the other.
 */
#ifndef EBB_TEST_TAGS_RIG_H
#define EBB_TEST_TAGS_RIG_H

#include "volumed/tags.h"

#define MSEC		1000000ull
#define SEC		(1000 * MSEC)
#define MAX_VOLUMES	1000
#define MAX_REQUESTS	4096
#define DEPTH		8
/* What is due may go beyond the depth by this. */
#define BEYOND		1

/* A client that keeps `outstanding` requests open. */
struct client {
	struct ebb_tags_volume volume;
	uint64_t bytes;
	unsigned int flow;
	unsigned int outstanding;
	uint64_t on_usec, off_usec;	/* works and pauses; off 0: never pauses */
	uint64_t issued, due;		/* requests */
};

struct request {
	struct ebb_tags_request tags;
	struct client *client;
	uint64_t issued_at;
};

struct world {
	struct ebb_tags tags;
	uint64_t now;
	uint64_t service;		/* of the disk, nanoseconds per unit */
	uint64_t disk_free_at;
	struct client clients[MAX_VOLUMES];
	size_t num_clients;
	struct request requests[MAX_REQUESTS];
	size_t num_requests;
	struct request *at_disk[MAX_REQUESTS];	/* in the order in which they end */
	uint64_t ends[MAX_REQUESTS];
	size_t num_at_disk, most_at_disk;
	struct request *idle[MAX_REQUESTS];	/* of clients that pause */
	size_t num_idle;
};

/* Of each world at first. */
extern const struct ebb_tags_config usual;

struct world *world_new(uint64_t iops);

/* A client of a volume with this promise; weight and penalty 0: 100 and 1. */
struct client *add(struct world *w, unsigned int outstanding, struct ebb_tags_promise p);
void set_policy(struct world *w, enum ebb_tags_policy policy);

/* A request of the client comes, or waits for the end of its pause. */
void submit(struct world *w, struct client *c, struct request *r);
struct request *new_request(struct world *w);
void open_requests(struct world *w);

/* Of one request, which does not go to the rig's disk; of all that may go, which do. */
struct request *next(struct world *w, uint64_t *ret_wake);
uint64_t dispatch(struct world *w);

/* Opens what is outstanding, and lets so much time pass. */
void run(struct world *w, uint64_t nsec);

/* got is within so many percent of want. */
void assert_about(uint64_t got, uint64_t want, unsigned int percent);

#endif
