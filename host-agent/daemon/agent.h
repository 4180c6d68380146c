/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heart of the daemon: takes facts from the backend into the core, asks the core what to do,
 * hands that to the backend, and keeps what the core says about its decisions.
 */
#ifndef EBB_DAEMON_AGENT_H
#define EBB_DAEMON_AGENT_H

#include <systemd/sd-event.h>
#include "core/core.h"
#include "daemon/history.h"
#include "backend/backend.h"

struct ebb_real;

struct ebb_agent {
	sd_event *event;
	struct ebb_state *state;
	struct ebb_backend backend;	/* set before the loop runs */
	struct ebb_real *real;		/* the same, or NULL in a dry run */
	struct ebb_history *history;
	const char *host_spec;		/* as configured */
	usec_t started_at;
	/*
	 * Private to agent.c.
	 */
	sd_event_source *cycle;		/* runs the core once, soon */
	sd_event_source *wake;		/* the core wants to be asked again */
	sd_event_source *run;		/* the backend has something to report */
	struct ebb_action *actions;
};

/* Fills what is private; state, event and history must be there. */
int ebb_agent_init(struct ebb_agent *a);
void ebb_agent_finish(struct ebb_agent *a);

/* Puts what VMs have held until now into the history. */
void ebb_agent_charge(struct ebb_agent *a);

/* Where backends report to. */
struct ebb_sink ebb_agent_sink(struct ebb_agent *a);

/* Ask the core soon: something was changed other than by a fact. */
void ebb_agent_poke(struct ebb_agent *a);

/* Report a fact that is not from the backend; what ebb_state_report() says. */
int ebb_agent_report(struct ebb_agent *a, const struct ebb_fact *fact);

#endif
