/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration of ebb-placed: an ini file and -o key=value; see ebb-placed.conf(5). */
#ifndef EBB_PLACED_PCONF_H
#define EBB_PLACED_PCONF_H

#include "placed/decide.h"
#include "service/settings.h"
#include "util/err.h"

struct placed_conf {
	char ebbd_socket[EBB_SETTING_SIZE];
	char run_dir[EBB_SETTING_SIZE];	/* of the lock */
	char traces_dir[EBB_SETTING_SIZE];
	bool record;			/* append what VMs here use to traces_dir */
	uint32_t interval_ms;		/* between two looks at the cluster; 500 to 600000 */
	uint32_t tool_limit_ms;		/* for one tool of Pacemaker; 500 to 60000 */
	uint32_t dampen_s;		/* 0 to 60 */
	uint32_t stickiness_low, stickiness_medium, stickiness_high;	/* 1 to 500 */
	uint32_t score_step;		/* 1 to 500 */
	uint32_t move_s;		/* 10 to 3600 */
	uint32_t retry_s;		/* 10 to 86400 */
	uint32_t idle_s;		/* 0 to 86400 */
	uint32_t samples;		/* 10 to 10000 */
	/* Of the cost of a move, and from which costs on it is medium and high; all at least 0. */
	struct place_move_cost cost;
	int log_level;			/* LOG_ERR to LOG_DEBUG */
};

#define PLACED_CONFIG	"/etc/ebb/ebb-placed.conf"

void placed_conf_default(struct placed_conf *c);

/* The defaults and a file over them; NULL: PLACED_CONFIG, if it is there.  -errno. */
int placed_conf_read(struct placed_conf *c, const char *path, struct ebb_err *err);

/* -errno with "FILE:LINE: ..."; c may be half changed then. */
int placed_conf_load(struct placed_conf *c, const char *path, struct ebb_err *err);

/* "key=value" as on the command line. */
int placed_conf_set(struct placed_conf *c, const char *assignment, struct ebb_err *err);

/* Numbers that must be in order. */
int placed_conf_check(const struct placed_conf *c, struct ebb_err *err);

void placed_conf_policy(const struct placed_conf *c, struct placed_policy *ret);
void placed_conf_place(const struct placed_conf *c, struct place_config *ret);

#endif
