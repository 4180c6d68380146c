/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The volume server: which volumes there are, what the storage daemon has of them, and what their
 * tenants are promised.  The storage daemon serves and schedules; this decides nothing about
 * requests.
 *
 * A volume is wanted as soon as it is in the list.  Whenever the storage daemon comes up it gets
 * all of them, with the promises that hold then.
 */
#ifndef EBB_VOLUMED_SERVER_H
#define EBB_VOLUMED_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>
#include "volumed/access.h"
#include "volumed/storage.h"
#include "volumed/vconf.h"
#include "volumed/volspec.h"

#define EBB_SERVER_MAX_VOLUMES	4096
/* Where the configuration does not say and nothing was calibrated. */
#define EBB_SERVER_DEPTH	32
/* A storage daemon that has left a command unanswered for so long hangs. */
#define EBB_SERVER_PATIENCE_USEC	5000000

enum ebb_volume_state {
	EBB_VOLUME_WAITING,	/* the storage daemon does not have it yet */
	EBB_VOLUME_SERVED,
	EBB_VOLUME_FAILED,	/* the storage daemon refused it: see error */
	EBB_VOLUME_REMOVING,	/* its clients are being disconnected */
};

struct ebb_volume {
	struct ebb_volume *next;
	struct ebb_volspec spec;
	struct ebb_access access;	/* of a shared one: who may write it */
	uint32_t id;			/* unique, from 1; names its nodes and its export */
	enum ebb_volume_state state;
	bool is_configured;		/* of the configuration, not added later */
	bool is_probe;			/* for calibration: only read, and never kept */
	bool is_changed;		/* the storage daemon was given an older promise of it */
	/* While the storage daemon is being told spec: what is in force; otherwise NULL. */
	struct ebb_volspec *before;
	char error[256];
	/*
	 * Counters since ebb-volumed started: what earlier storage daemons had counted, and the
	 * newest of the present one.  Objects of integers and arrays of integers, or NULL.
	 */
	json_t *base, *last;
	json_t *now;			/* what the present daemon said of it, without counters */
};

struct ebb_capacity {
	uint64_t iops, bytes;		/* per second; 0: not known */
	uint32_t depth;			/* at which it was measured; 0: never */
	uint32_t latency_us;		/* mean, at that depth */
};

struct ebb_server {
	sd_event *event;
	const struct ebb_vconf *conf;
	struct ebb_storage *storage;
	struct ebb_qmp *qmp;		/* NULL: the storage daemon is not up */
	struct ebb_volume *volumes;
	size_t num_volumes;
	uint32_t last_id, last_attachment;
	/* The highest of all volumes, also of those that are gone: none comes twice. */
	uint64_t generation;
	struct ebb_attach_waiting *attaching;	/* see attach.h */
	uint32_t depth;			/* in force, as is overbooking */
	const char *overbooking;	/* "proportional" or "penalty" */
	struct ebb_capacity capacity;	/* as calibrated */
	struct ebb_calibration *calibration; /* the present or the last one, or NULL */
	json_t *scheduler;		/* what the daemon last said of the scheduler, or NULL */
	uint64_t restarts;		/* of the storage daemon */
	uint64_t started_at;		/* monotonic time, microseconds */
	sd_event_source *poll;
	bool is_polling;		/* the last question for counters is not answered yet */
	uint64_t num_polls;
	uint64_t patience_usec;		/* EBB_SERVER_PATIENCE_USEC; tests have less */
	bool has_said_hang;		/* the log says that the storage daemon hangs */
	bool is_failed;
};

int ebb_server_create(struct ebb_server *s, sd_event *event, const struct ebb_vconf *conf,
		      int nbd_fd, int lock_fd, struct ebb_err *err);
void ebb_server_destroy(struct ebb_server *s);

struct ebb_volume *ebb_server_find(struct ebb_server *s, const char *name);
/* By its id, which no other volume has had or gets; NULL: it has been removed. */
struct ebb_volume *ebb_server_find_id(struct ebb_server *s, uint32_t id);

/* Adds to the list alone; NULL: out of memory, or there are EBB_SERVER_MAX_VOLUMES. */
struct ebb_volume *ebb_server_append(struct ebb_server *s, const struct ebb_volspec *spec);
/* Takes off the list and frees. */
void ebb_server_drop(struct ebb_server *s, struct ebb_volume *v);

/*
 * What is promised to all volumes together, per second, with `spec` (NULL: none) in the place of
 * the volume of that name.  Volumes of the tenant EBB_VOLUME_SYSTEM count as what the configuration
 * promises to the system, unless they have more.
 */
void ebb_server_promised(const struct ebb_server *s, const struct ebb_volspec *spec,
			 uint64_t *ret_iops, uint64_t *ret_bytes);

/*
 * Gives a volume of the tenant EBB_VOLUME_SYSTEM the promise of the system: its weight, penalty and
 * maxima, and of its reservation what the system's other volumes have not.
 */
void ebb_server_charge_system(const struct ebb_server *s, struct ebb_volspec *spec);

/*
 * -EDQUOT with a message: ebb_server_promised is more than the capacity, and overbooking is not
 * allowed.  Where the capacity is not known nothing is refused.  Nor is a spec that reserves no
 * more than its volume does now: it may be that the disk was found to do less than is promised.
 */
int ebb_server_admit(const struct ebb_server *s, const struct ebb_volspec *spec,
		     struct ebb_err *err);

/*
 * The same of all volumes at the start.  A configuration that contradicts itself is refused.  A
 * disk that was found to do less than is promised is not, which the log says: a server that does
 * not start takes the disks of all VMs away.
 */
int ebb_server_admit_all(const struct ebb_server *s, struct ebb_err *err);

/* The promise that is in force, which may be another one than v->spec for a moment. */
const struct ebb_volspec *ebb_server_in_force(const struct ebb_volume *v);

/* As configured, or else as calibrated; 0: not known. */
uint64_t ebb_server_capacity_iops(const struct ebb_server *s);
uint64_t ebb_server_capacity_bytes(const struct ebb_server *s);

/*
 * Have the storage daemon serve a volume.  done() is called once: error NULL, or why not.  The
 * volume is still there then, in the state that it has got.
 */
typedef void (*ebb_server_done)(void *ctx, const char *error);
void ebb_server_serve(struct ebb_server *s, struct ebb_volume *v, ebb_server_done done, void *ctx);

/*
 * It is promised something else from now on; not while v->before says that another change has not
 * ended.  done() is called once, maybe at once: error NULL, or why the storage daemon refused it,
 * and the old promise holds.  A storage daemon that is not there, dies meanwhile, or is about to
 * open the volume gets the new promise as soon as it has the volume.
 */
void ebb_server_promise(struct ebb_server *s, struct ebb_volume *v, const struct ebb_volspec *spec,
			ebb_server_done done, void *ctx);

/* Disconnect its clients; it is dropped when they are gone, which may be at once. */
void ebb_server_remove(struct ebb_server *s, struct ebb_volume *v);

/* A shared volume that is being removed goes when the last of its exports has gone. */
void ebb_server_finish_removal(struct ebb_server *s, struct ebb_volume *v);

/* Ask the storage daemon for counters now; done() is called when they are in the volumes. */
void ebb_server_refresh(struct ebb_server *s, ebb_server_done done, void *ctx);

/* Tell the storage daemon the depth, the policy and the capacity of the server. */
void ebb_server_schedule(struct ebb_server *s, ebb_server_done done, void *ctx);

/*
 * The storage daemon is there and does not answer.  Commands that it has been given are done when
 * it answers again, unless it refuses them.  Killing it would be of no use: mostly it waits in the
 * kernel, and the next daemon would wait for the same.
 */
bool ebb_server_hangs(const struct ebb_server *s);

/* Counters of a volume since ebb-volumed started: a new object, empty if there are none. */
json_t *ebb_server_counters(const struct ebb_volume *v);

#endif
