/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbd's control socket in front of the core and the fake backend, and a client of it. */
#ifndef TESTS_UNIT_CTL_RIG_H
#define TESTS_UNIT_CTL_RIG_H

#include "daemon/agent.h"
#include "service/ctl.h"
#include "daemon/dryrun.h"

#define PATIENCE_USEC	60000000u	/* a hang, not slowness */

struct ctl_rig {
	struct ebb_agent agent;
	struct ebb_host host;
	struct ebb_workers *workers;
	struct ebb_dryrun *dryrun;
	struct ebb_ctl *ctl;
	char folder[64], path[96];
	int fd;				/* of the client */
};

/* For cmocka: two simulated VMs; *state is a struct ctl_rig. */
int ctl_rig_setup(void **state, bool has_shared);
int ctl_rig_teardown(void **state);

/* Send a request and run the loop until the answer is there; a new reference. */
json_t *ctl_ask(struct ctl_rig *f, const char *request);
json_t *ctl_ask_good(struct ctl_rig *f, const char *request);
/* message: a part of that of the error. */
void ctl_expect_refused(struct ctl_rig *f, const char *request, const char *code,
			const char *message);

/* Members of answers, which must be there. */
json_int_t ctl_number(const json_t *o, const char *key);
const char *ctl_text(const json_t *o, const char *key);

#endif
