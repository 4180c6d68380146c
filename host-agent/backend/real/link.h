/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The links to the devices: one listening unix socket for each VM, FOLDER/<uuid>.sock, and at most
 * one connection on it, which must come from the VM's own QEMU process.  Everything runs on the
 * event loop and never blocks.  What arrives is reported as facts (HELLO, REQUEST, TELEMETRY,
 * LINK_LOST).
 */
#ifndef EBB_IO_LINK_H
#define EBB_IO_LINK_H

#include <systemd/sd-event.h>
#include <sys/types.h>
#include "backend/backend.h"
#include "util/err.h"

struct ebb_links;

struct ebb_links_config {
	const char *folder;		/* must exist */
	gid_t group;			/* who besides root may connect; (gid_t)-1: nobody */
	struct ebb_sink sink;
	/*
	 * The process id of the VM's QEMU, or -errno; asked when somebody connects.
	 */
	pid_t (*qemu_pid)(void *ctx, const uint8_t uuid[16]);
	void *ctx;
};

int ebb_links_create(sd_event *event, const struct ebb_links_config *cfg, struct ebb_links **ret);

/* Closes all connections without reporting it, and removes the sockets.  NULL is fine. */
void ebb_links_destroy(struct ebb_links *l);

/* Listen for a VM; fine if that is so already.  name is for the log. */
int ebb_links_listen(struct ebb_links *l, const uint8_t uuid[16], const char *name,
		     struct ebb_err *err);

/*
 * Take connections (or not, as at first).  A device that connects earlier waits in the socket, so
 * that its HELLO is heard after the VM was reported as running.
 */
void ebb_links_enable(struct ebb_links *l, const uint8_t uuid[16], bool enable);

/* Stop listening and close, without reporting it. */
void ebb_links_forget(struct ebb_links *l, const uint8_t uuid[16]);

/*
 * Queue a message (WELCOME, RESPONSE, LIMITS, CPU_FLAGS) or close the link (LINK_CLOSE).  Without a
 * connection it is dropped: LINK_LOST was reported.  A peer that does not read until the queue is
 * full loses the connection.
 */
void ebb_links_submit(struct ebb_links *l, const struct ebb_action *action);

/* Why the last connection of a VM was refused or closed by the agent; "" if it was not. */
const char *ebb_links_last_error(struct ebb_links *l, const uint8_t uuid[16]);

#endif
