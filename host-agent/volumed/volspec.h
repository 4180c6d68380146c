/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The description of a volume: its name, its tenant, the file behind it, and the tenant's promise.
 * The keys are the same in ebb-volumed.conf(5), in the control protocol and in `ebbctl volumes`;
 * one table in volspec.c holds them with their ranges.  Pure but for messages: no I/O, no state.
 */
#ifndef EBB_VOLUMED_VOLSPEC_H
#define EBB_VOLUMED_VOLSPEC_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include "util/err.h"

/*
 * The tenant of the host's own work: calibration, copies of volumes that move or are saved.  What
 * it is promised together is in the configuration.
 */
#define EBB_VOLUME_SYSTEM	"system"

/* inih cuts names of sections that are longer. */
#define EBB_VOLUME_NAME_SIZE	41
/* That of an ebbd has the path of a folder for sockets in it, which is shorter than this. */
#define EBB_VOLUME_OWNER_SIZE	128
#define EBB_VOLUME_MAX_IOPS	10000000
#define EBB_VOLUME_MAX_BYTES	1000000000000
#define EBB_VOLUME_MAX_WEIGHT	10000
#define EBB_VOLUME_MAX_PENALTY	1000000
#define EBB_VOLUME_NO_NUMBER	0	/* of a reservation or maximum: there is none */

struct ebb_volspec {
	char name[EBB_VOLUME_NAME_SIZE];	/* letters, digits, ".", "_", "-"; unique */
	char tenant[64];			/* who is promised something; usually a VM */
	/* Program that set the promise and will take it back; "": none, it was set by hand. */
	char owner[EBB_VOLUME_OWNER_SIZE];
	char file[PATH_MAX];			/* absolute path */
	char format[8];				/* "raw" or "qcow2" */
	bool is_shared;		/* clients need attachments, which can be fenced: see access.h */
	/* Requests and bytes per second, 1 to EBB_VOLUME_MAX_*, or EBB_VOLUME_NO_NUMBER. */
	uint64_t reserve_iops, reserve_bytes;
	uint64_t max_iops, max_bytes;
	uint64_t weight;			/* for spare capacity: 1 to EBB_VOLUME_MAX_WEIGHT */
	uint64_t penalty;	/* of one violated unit: 0 to EBB_VOLUME_MAX_PENALTY */
};

/* No promise, weight 100, penalty 1, format raw; -EINVAL where the name is not allowed. */
int ebb_volspec_init(struct ebb_volspec *v, const char *name, struct ebb_err *err);

/*
 * Sets one key.  A reservation or maximum is a number or "none".  -ENOENT: there is no such key;
 * -EINVAL: the value is not allowed.  The message says what is.  v is unchanged then.
 */
int ebb_volspec_set(struct ebb_volspec *v, const char *key, const char *value,
		    struct ebb_err *err);

/*
 * Sets the program that owns the promise; NULL: none, so no program takes the promise back.
 * -EINVAL with a message: the name is empty, too long, no UTF-8, or has a control character.
 */
int ebb_volspec_set_owner(struct ebb_volspec *v, const char *owner, struct ebb_err *err);

/* Is this a key that may be changed while the volume is in use? */
bool ebb_volspec_is_promise(const char *key);

/* The rules about a promise: maxima are not below reservations. */
int ebb_volspec_check_promise(const struct ebb_volspec *v, struct ebb_err *err);

/* These, and that a file and a tenant are named. */
int ebb_volspec_check(const struct ebb_volspec *v, struct ebb_err *err);

/* Calls fn for each number, in the order of the table. */
void ebb_volspec_each_number(const struct ebb_volspec *v,
			     void (*fn)(void *ctx, const char *key, uint64_t number), void *ctx);

#endif
