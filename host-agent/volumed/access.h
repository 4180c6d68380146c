/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The writers of a shared volume.  Each node that writes has an attachment: its own export.  An
 * attachment that is fenced stays shut, whatever its node believes.  Of two nodes that fence each
 * other the first one wins: each change of who may write gives the volume a new generation, and to
 * fence one must know the present one.
 *
 * A change counts once it is in the file of volumes.  The storage daemon is made to follow then,
 * and only when it has is the change told to be done: nothing that was asked for by way of a fenced
 * attachment can reach the volume any more.
 *
 * Pure: no I/O, no clock.
 */
#ifndef EBB_VOLUMED_ACCESS_H
#define EBB_VOLUMED_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EBB_ACCESS_MAX		2	/* attachments of a volume, fenced ones included */
#define EBB_ACCESS_NAME_SIZE	41

enum ebb_access_export {
	EBB_ACCESS_CLOSED,	/* no storage daemon has it, and all its requests have ended */
	/* The storage daemon that may have had it has died; what that one sent may be under way. */
	EBB_ACCESS_LOST,
	EBB_ACCESS_OPENING,	/* the storage daemon has been told to make it */
	EBB_ACCESS_OPEN,
	EBB_ACCESS_CLOSING,	/* told to remove it; its last requests may not have ended */
};

struct ebb_attachment {
	uint32_t id;		/* unique while ebb-volumed runs; names the export */
	char name[EBB_ACCESS_NAME_SIZE];
	bool is_fenced;
	bool is_leaving;	/* detached; it goes when it is closed */
	char fenced_by[EBB_ACCESS_NAME_SIZE];	/* an attachment; "": by hand, or not fenced */
	enum ebb_access_export export;
};

struct ebb_access {
	uint64_t generation;	/* of the last change; 0: there was none */
	size_t num;
	struct ebb_attachment all[EBB_ACCESS_MAX];
};

/* 1 to 40 letters, digits, ".", "_" and "-". */
bool ebb_access_is_name(const char *name);

/* NULL: there is none.  Pointers are good until the next attach or ebb_access_drop_closed. */
struct ebb_attachment *ebb_access_find(struct ebb_access *a, const char *name);
struct ebb_attachment *ebb_access_find_id(struct ebb_access *a, uint32_t id);

/*
 * The three changes.  `next` is the generation that the volume gets: greater than all before.  They
 * return 0, or -errno and have changed nothing.
 */

/* -EINVAL: no name; -EEXIST: there is one, maybe fenced; -ENOSPC: there are EBB_ACCESS_MAX. */
int ebb_access_attach(struct ebb_access *a, const char *name, uint32_t id, uint64_t next);

/* -ENOENT: there is none.  One that is leaving already stays so, at its generation. */
int ebb_access_detach(struct ebb_access *a, const char *name, uint64_t next);

/*
 * by: the attachment whose node asks; NULL: by hand.  expected: the generation that it knows.
 * -ENOENT: there is no attachment `name`; -EINVAL: `by` is the same or none of this volume;
 * -EACCES: `by` is fenced or detached itself: it has lost; -ESTALE: the generation is another one.
 * One that is fenced already is fenced: 0, at its generation, so that a repeated request is
 * harmless.
 */
int ebb_access_fence(struct ebb_access *a, const char *name, const char *by, uint64_t expected,
		     uint64_t next);

/* ---- what the storage daemon has ---- */

enum ebb_access_action { EBB_ACCESS_NOTHING, EBB_ACCESS_MAKE, EBB_ACCESS_REMOVE };

/* The next command for the storage daemon, which has the volume; the state counts it as sent. */
enum ebb_access_action ebb_access_step(struct ebb_attachment *t);

/* A storage daemon is about to start with all that may be open: is this one? */
bool ebb_access_start(struct ebb_attachment *t);

/*
 * A storage daemon has opened the volume, which it can not while requests of an earlier one are
 * under way: these hold the lock of the file.
 */
void ebb_access_opened(struct ebb_attachment *t);

/* The answer to EBB_ACCESS_MAKE; it may come after EBB_ACCESS_REMOVE was told. */
void ebb_access_made(struct ebb_attachment *t, bool is_refused);

/* EBB_ACCESS_REMOVE has failed: clients may go on to write, and the next step tells it again. */
void ebb_access_not_removed(struct ebb_attachment *t);

/* The export is not there any more, and the last request of its clients has ended. */
void ebb_access_removed(struct ebb_attachment *t);

/* The storage daemon has died. */
void ebb_access_lost(struct ebb_attachment *t);

/* The storage daemon has it as it should: open, or, if it is fenced or leaving, closed. */
bool ebb_access_is_settled(const struct ebb_attachment *t);

/* Forgets those that are leaving and closed. */
void ebb_access_drop_closed(struct ebb_access *a);

#endif
