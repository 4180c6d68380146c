/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control socket: newline-delimited JSON requests and answers, described in
 * docs/control-protocol.md.  This half knows sockets, framing and limits; what requests mean is the
 * handler's business.
 */
#ifndef EBB_SERVICE_CTL_H
#define EBB_SERVICE_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>
#include "model/types.h"
#include "util/err.h"

#define EBB_CTL_MAX_CLIENTS	32
/* Of these so many are for clients that may change things: others can not keep them out. */
#define EBB_CTL_RESERVED	4
#define EBB_CTL_IDLE_USEC	(5 * EBB_USEC_PER_SEC)
#define EBB_CTL_MAX_LINE	65536	/* bytes of a request with its newline */

struct ebb_ctl;

/*
 * One request; the handler answers it once, now or later, with one of the functions below.  Until
 * then the client's next request is not read.
 */
struct ebb_ctl_request {
	json_t *body;			/* an object; the request's */
	const char *cmd;
	bool may_change; /* the client may change things: root, or the daemon's own user */
	uint64_t connection;		/* a number that no other connection has had or gets */
};

struct ebb_ctl_config {
	const char *path;
	gid_t group;			/* its members may connect, as root may; (gid_t)-1: none */
	/*
	 * When EBB_CTL_MAX_CLIENTS are connected, one more takes the place of the client that has
	 * neither sent nor read for longest, if that is so long; otherwise it gets an
	 * error ("too-many-clients") and is closed.
	 */
	usec_t idle_usec;
	void (*handle)(void *ctx, struct ebb_ctl_request *request);
	void *ctx;
};

int ebb_ctl_create(sd_event *event, const struct ebb_ctl_config *cfg, struct ebb_ctl **ret,
		   struct ebb_err *err);

/*
 * Closes everything; requests that are still open may be answered later, to nobody.  NULL is
 * fine.
 */
void ebb_ctl_destroy(struct ebb_ctl *c);

/* Whether a connection to the socket from which this request came has not ended yet. */
bool ebb_ctl_is_connected(const struct ebb_ctl_request *request, uint64_t connection);

/* Answer with an object (whose reference is taken); "ok": true is added. */
void ebb_ctl_reply(struct ebb_ctl_request *request, json_t *answer);

/* Answer with an error; hint may be NULL. */
void ebb_ctl_fail(struct ebb_ctl_request *request, const char *code, const char *hint,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
