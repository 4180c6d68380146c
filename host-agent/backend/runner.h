/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loop between the core and a backend: facts are reported to the core, the core is asked what
 * to do, and its actions are submitted.  The daemon and all simulations run it; who calls it says
 * what time it is.
 */
#ifndef EBB_BACKEND_RUNNER_H
#define EBB_BACKEND_RUNNER_H

#include "backend/backend.h"
#include "core/core.h"

struct ebb_runner {
	struct ebb_state *state;
	struct ebb_backend backend;
	struct ebb_action *items;	/* room for what is submitted at once */
	size_t capacity;		/* at least 1 */
	void *ctx;			/* of the two calls, which are optional: */
	/* Before an action is submitted. */
	void (*on_action)(void *ctx, usec_t now, const struct ebb_action *action);
	/* The core refuses to take note of a fact. */
	void (*on_refused)(void *ctx, usec_t now, const struct ebb_fact *fact, int err);
};

/*
 * Gives a fact to the core and returns the result of ebb_state_report().  If the core refuses a
 * fact, the link it came over is closed: the sender is broken, or has missed something.
 */
int ebb_runner_report(struct ebb_runner *r, usec_t now, const struct ebb_fact *fact);

/* Asks the core once.  Returns when it wants to be asked again; how many actions there were. */
usec_t ebb_runner_step(struct ebb_runner *r, usec_t now, size_t *ret_count);

/*
 * Asks until there is nothing more to be done at this moment.  0, or -ELOOP: it does not come to
 * rest in so many rounds.
 */
int ebb_runner_rest(struct ebb_runner *r, usec_t now, int max_rounds, usec_t *ret_wake_at);

#endif /* EBB_BACKEND_RUNNER_H */
