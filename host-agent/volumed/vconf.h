/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration of ebb-volumed: an ini file and -o key=value; see ebb-volumed.conf(5). */
#ifndef EBB_VOLUMED_VCONF_H
#define EBB_VOLUMED_VCONF_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "service/settings.h"
#include "util/err.h"
#include "volumed/volspec.h"

#define EBB_VCONF_VALUE_SIZE	EBB_SETTING_SIZE
#define EBB_VCONF_MAX_DEPTH	4096

struct ebb_vconf {
	char run_dir[EBB_VCONF_VALUE_SIZE];	/* control.sock, nbd.sock, the lock */
	char state_dir[EBB_VCONF_VALUE_SIZE];	/* volumes.json */
	char storage_daemon[EBB_VCONF_VALUE_SIZE]; /* the program */
	char socket_group[EBB_VCONF_VALUE_SIZE]; /* of nbd.sock; "": root only; "auto": kvm */
	char control_group[EBB_VCONF_VALUE_SIZE]; /* "": root only */
	char overbooking[EBB_VCONF_VALUE_SIZE];	/* "proportional" or "penalty" */
	char aio[EBB_VCONF_VALUE_SIZE];		/* "io_uring" or "threads" */
	bool direct;				/* O_DIRECT */
	bool allow_overbooking;
	uint64_t depth;		/* at the disk: 1 to EBB_VCONF_MAX_DEPTH; 0: as calibrated */
	uint32_t max_connections;		/* of NBD clients; 1 to 65536 */
	uint64_t capacity_iops, capacity_bytes;	/* 0: as calibrated */
	int log_level;				/* LOG_ERR to LOG_DEBUG */
	/* What the tenant EBB_VOLUME_SYSTEM is promised with all its volumes; no file. */
	struct ebb_volspec system;
	struct ebb_volspec *volumes;		/* from malloc() */
	size_t num_volumes;
};

void ebb_vconf_default(struct ebb_vconf *c);
void ebb_vconf_finish(struct ebb_vconf *c);

/* -errno with "FILE:LINE: ..."; c may be half changed then. */
int ebb_vconf_load(struct ebb_vconf *c, const char *path, struct ebb_err *err);

/* "key=value" as on the command line, for keys outside of sections. */
int ebb_vconf_set(struct ebb_vconf *c, const char *assignment, struct ebb_err *err);

/* Each volume for itself: -EINVAL with what is wrong. */
int ebb_vconf_check(const struct ebb_vconf *c, struct ebb_err *err);

#endif
