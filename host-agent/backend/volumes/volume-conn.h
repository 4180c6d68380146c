/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A connection to the control socket of ebb-volumed that comes back by itself: lines of JSON go out
 * and come in.  What they mean is volume-proto.h's business.
 *
 * Requests go out one at a time, in order.  The peer is not trusted to answer: an answer that takes
 * too long, is too long or is not what was asked for closes the connection.  Then the next try is
 * made after a pause, which doubles from try to try until ebb_volume_conn_good().
 */
#ifndef EBB_BACKEND_VOLUME_CONN_H
#define EBB_BACKEND_VOLUME_CONN_H

#include <jansson.h>
#include <systemd/sd-event.h>
#include "model/types.h"

#define EBB_VOLUME_NO_SERVER	"what answers is no volume server"
/* Bytes of a line: the meters of 4096 volumes need 13 MiB. */
#define EBB_VOLUME_MAX_ANSWER	(32u << 20)

struct ebb_volume_conn;

struct ebb_volume_conn_config {
	const char *path;		/* of the socket; copied */
	usec_t retry_usec[2];		/* pause before the next try: first, longest */
	usec_t patience_usec;		/* for one answer */
	/* From the loop, never from within a call of this header. */
	void (*connected)(void *ctx);
	/* It could not connect, or does not any more; `why` lives for the call. */
	void (*lost)(void *ctx, const char *why);
	void *ctx;
};

/*
 * The end of a request, called once for each: its answer, an object or array; or NULL, the
 * connection was lost before, after lost().  False: this is no answer of an ebb-volumed, and the
 * connection is closed.  `tag` as given with the request.
 */
typedef bool ebb_volume_answered(void *ctx, uint64_t tag, const json_t *answer, const char *why);

/* Connects as soon as the loop runs.  -ENAMETOOLONG, -ENOMEM. */
int ebb_volume_conn_create(sd_event *event, const struct ebb_volume_conn_config *cfg,
			   struct ebb_volume_conn **ret);
/* Ends no requests any more.  NULL is fine. */
void ebb_volume_conn_destroy(struct ebb_volume_conn *c);

/*
 * line: with its newline; taken.  Where there is no connection the request ends soon, with NULL.
 * NULL, or no memory for the request: the event loop ends with -ENOMEM, as the core would wait for
 * ever; a new start of the agent tells everything again.
 */
void ebb_volume_conn_send(struct ebb_volume_conn *c, char *line, ebb_volume_answered *answered,
			  uint64_t tag);

/* The peer is what it should be: the next pause is the shortest. */
void ebb_volume_conn_good(struct ebb_volume_conn *c);

#endif
