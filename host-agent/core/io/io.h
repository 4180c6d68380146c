/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Promises of I/O ("SQLVM", section 3.1) to volumes that are disks of VMs.  The volume server
 * (ebb-volumed) keeps them; this room tells it which.
 *
 * One table has all volumes to which the SLA of a running VM promises something, by name.
 *
 *   1. A volume has at most one owner.  If the SLAs of two VMs promise something to one volume, the
 *      VM whose claim came first keeps it until it stops or its SLA changes; the other one gets an
 *      error, and then the volume.
 *   2. What differs between `want` and `told` is told, one action for each volume at a time.
 *      Promises that fall go first, so that the rest fits what the disk can do.
 *   3. After VOLUMES_UP nothing is known of what the server keeps: all of it is told again.
 *   4. The promise of a volume without an owner is taken back: it is promised nothing, as a volume
 *      of which no SLA says anything.  Then the volume leaves the table.  So it is with promises
 *      that an earlier agent has set, whose VM went away while no agent ran: the server says which
 *      those are.  It does not name promises that somebody set by hand.
 *   5. A refused promise is tried again with growing pauses, and whenever another one was set.  The
 *      one of before holds meanwhile, also over a restart of the server: that one is told first,
 *      and before what rises, so that what rises takes nothing from what was kept.
 *
 * Volumes that are in no SLA are left as the volume server has them.
 *
 * Units due, got and violated are taken from the server's meter and recorded for the ledger
 * (meter.c).  Reads beyond the promised cache of the owner are charged to the system (beyond.h), if
 * it is known which volume they come from (cold.h).
 */
#ifndef EBB_CORE_IO_H
#define EBB_CORE_IO_H

#include "core/room.h"

/* As many as VMs may have; those that are taken back while the server is away count, too. */
#define IO_VOLUMES	(EBB_MAX_VMS * EBB_MAX_VOLUMES)

struct io_volume {
	char name[EBB_VOLUME_NAME_SIZE];
	const struct ebb_vm *owner;	/* runs; NULL: the promise is taken back */
	struct ebb_sla_io want, telling, told;
	bool is_told;			/* the server keeps `told` */
	bool has_old;			/* `told` is the owner's, told before the server was lost */
	bool is_set;			/* it may keep something that an agent told it */
	uint64_t action;		/* VOLUME under way, which tells `telling`, or 0 */
	uint16_t failures;		/* in a row */
	usec_t retry_at;
	char text[EBB_TEXT_SIZE];	/* why the last one failed; "": it did not */
	/* Of this owner, as far as this agent has seen it. */
	bool is_metered;		/* the counters go on from `seen` */
	struct ebb_volume_reading seen;	/* the last one that counts in `sum` */
	usec_t since;			/* `sum` and `system` were 0 then */
	struct ebb_ledger sum;
	struct ebb_ledger system;	/* reads beyond the owner's promised cache; not in `sum` */
};

struct io_room {
	const struct core_env *env;
	bool is_up;			/* the volume server answers */
	char lost[EBB_TEXT_SIZE];	/* why not; "": it does, or nobody has asked it yet */
	struct ebb_volume_server server; /* as last told */
	bool has_server;		/* it was told since the last VOLUMES_UP */
	bool is_stale;			/* claims may have changed */
	bool is_due;			/* something may have to be told */
	usec_t wake_at;			/* of the first refused promise; valid unless is_due */
	uint32_t num;
	struct io_volume volumes[IO_VOLUMES]; /* by name */
};

/* The VM has started, its SLA has changed, or its disks. */
void io_changed(struct io_room *s, const struct ebb_vm *vm);
/* It has stopped. */
void io_stop(struct io_room *s, const struct ebb_vm *vm);

void io_up(struct io_room *s, usec_t now, const struct ebb_fact_volumes_up *f);
void io_lost(struct io_room *s, usec_t now, const char *text);
void io_server(struct io_room *s, const struct ebb_volume_server *server);
void io_meters(struct io_room *s, const struct ebb_fact_volumes_meters *f);
/*
 * An interval of the VM's promise of a cache has ended, which lasted `length`, with so many reads
 * from disk beyond that promise; 0: none.
 */
void io_report_beyond(struct io_room *s, usec_t now, const struct ebb_vm *vm, usec_t length,
		      uint64_t reads);
void io_done(struct io_room *s, usec_t now, const struct ebb_fact_action_done *f);

/*
 * Finds out which VM owns which volume, and which promises the volume server has to be told.  No
 * effect if nothing has changed.
 */
void io_settle(struct io_room *s, usec_t now);
/* False: *out has no space for all of it. */
bool io_act(struct io_room *s, usec_t now, struct ebb_actions *out);
/* When io_act() has something to do if no fact comes before, or EBB_TIME_NEVER. */
usec_t io_next_at(const struct io_room *s);

/* Volume k of the VM, below vm->volumes.num. */
void io_view(const struct io_room *s, const struct ebb_vm *vm, uint16_t k,
	     struct ebb_io_view *ret);
/* Adds lines about volumes whose promise is not in force. */
void io_explain(const struct io_room *s, const struct ebb_vm *vm, struct ebb_explain *e);

/* ---- within the room ----------------------------------------------------- */

/* Another VM owns the volume, or none: its counters begin anew. */
void io_meter_forget(struct io_volume *v);

#endif /* EBB_CORE_IO_H */
