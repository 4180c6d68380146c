/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The storage daemon as a child process: starts it, logs what it says, starts it again when it
 * dies, ends it in order.  What it serves is the caller's business.
 */
#ifndef EBB_VOLUMED_STORAGE_H
#define EBB_VOLUMED_STORAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>
#include "volumed/qmp.h"

/* The server gives up after this many deaths in a row, each this soon after the start. */
#define EBB_STORAGE_MAX_DEATHS	5
#define EBB_STORAGE_YOUNG_USEC	2000000
/* Time that the storage daemon has to end in order; then it is killed. */
#define EBB_STORAGE_END_USEC	10000000

struct ebb_storage;

struct ebb_storage_config {
	const char *program;
	int nbd_fd;		/* listens for NBD clients; the child gets a copy */
	int lock_fd;		/* the child holds it, too: no other may serve the files */
	uint32_t max_connections;
	/*
	 * Arguments that make the volumes, from malloc(), each and the array; ends with NULL.
	 * attempt counts the starts since the daemon last came up, from 0.  With
	 * ebb_storage_cost() of each they may cost this much together: execve() takes no more.
	 */
	char **(*arguments)(void *ctx, unsigned int attempt, size_t most);
	/* It serves, and takes commands through q until down() is called. */
	void (*up)(void *ctx, struct ebb_qmp *q);
	/* It has ended and was up. Commands through q fail from now on, open ones after this. */
	void (*down)(void *ctx);
	void (*event)(void *ctx, const char *name, const json_t *data);
	/* It has ended and is not started again. is_failure: it died too often. */
	void (*ended)(void *ctx, bool is_failure);
	void *ctx;
};

/* Bytes that an argument takes of what execve() allows. */
size_t ebb_storage_cost(const char *argument);

int ebb_storage_create(sd_event *event, const struct ebb_storage_config *cfg,
		       struct ebb_storage **ret);

/* Let it end in order; ended() is called then, after EBB_STORAGE_END_USEC at the latest. */
void ebb_storage_stop(struct ebb_storage *s);

/* Kills the child if there is one. */
void ebb_storage_destroy(struct ebb_storage *s);

/* 0: there is none just now. */
pid_t ebb_storage_pid(const struct ebb_storage *s);

#endif
