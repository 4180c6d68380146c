/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection to libvirt: opened, watched and opened again on a thread of its own, which also
 * runs libvirt's event loop.  What happens to domains arrives on the agent's loop as a hint to look
 * at a domain again; what is true is then asked for (virt-domain.h), so that a hint that is lost,
 * late or doubled does no harm.
 */
#ifndef EBB_IO_VIRT_H
#define EBB_IO_VIRT_H

#include <libvirt/libvirt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>
#include "util/err.h"

struct ebb_virt;

struct ebb_virt_config {
	const char *uri;
	void *ctx;
	/* All on the loop's thread. */
	void (*connected)(void *ctx);	/* everything may have changed meanwhile */
	void (*lost)(void *ctx, const char *why); /* also when the first attempt fails */
	void (*changed)(void *ctx, const uint8_t uuid[16], const char *what);
};

/* One at a time in a process: libvirt's event loop is global. */
int ebb_virt_create(sd_event *event, const struct ebb_virt_config *cfg, struct ebb_virt **ret,
		    struct ebb_err *err);

/*
 * Nothing is called any more.  -EBUSY when the thread is stuck in libvirt: nothing is freed then,
 * and the process should end.  NULL is fine.
 */
int ebb_virt_destroy(struct ebb_virt *v);

/*
 * A connection for the caller alone, until it gives it back; NULL while libvirt does not answer.
 * From any thread.
 */
virConnectPtr ebb_virt_get(struct ebb_virt *v);
void ebb_virt_put(struct ebb_virt *v, virConnectPtr conn);

/*
 * Where the libvirtd of a uri keeps its runtime files: the folder of the socket that the uri names,
 * else /run/libvirt.
 */
void ebb_virt_run_dir(const char *uri, char ret_path[PATH_MAX]);

#endif
