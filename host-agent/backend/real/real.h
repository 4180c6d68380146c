/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The real backend: libvirt, QEMU's threads and the links.  Turns what happens there into facts,
 * and carries out the actions of the core.
 */
#ifndef EBB_DAEMON_REAL_H
#define EBB_DAEMON_REAL_H

#include <systemd/sd-event.h>
#include "backend/backend.h"
#include "backend/real/placer.h"
#include "backend/real/workers.h"

struct ebb_real_config {
	const char *libvirt_uri;
	const char *link_dir;		/* exists; copied */
	gid_t link_group;		/* as in backend/real/link.h */
	const struct ebb_host *host;	/* outlives the backend */
	struct ebb_emuhost *emuhost;	/* NULL: a real host; stays the caller's */
	struct ebb_workers *workers;	/* destroyed before the backend */
	usec_t window;			/* that shared cores are judged over */
	const char *nbd_socket;		/* of the volume server, "": there is none; copied */
	usec_t meter_interval;		/* that promises are metered in */
	struct ebb_sink sink;
};

struct ebb_real;

int ebb_real_create(sd_event *event, const struct ebb_real_config *cfg, struct ebb_real **ret,
		    struct ebb_err *err);
struct ebb_backend ebb_real_backend(struct ebb_real *r);

/* For ebbctl: "" or why a link was refused; whether libvirt is connected, and why not. */
const char *ebb_real_link_error(struct ebb_real *r, const uint8_t uuid[16]);
bool ebb_real_is_connected(struct ebb_real *r, const char **ret_why);

/*
 * Lift all throttles, since nobody will look any more whether they are needed.  Blocks: for the
 * end, when no job runs.
 */
void ebb_real_lift_all(struct ebb_real *r);

/*
 * Write an SLA into the metadata of the domain, live and persistent.  done() is called once on the
 * loop, with 0 or -errno and a text.
 */
void ebb_real_save_sla(struct ebb_real *r, const uint8_t uuid[16], const struct ebb_sla *sla,
		       void (*done)(void *ctx, int rc, const char *text), void *ctx);

#endif
