/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A core and a simulated world under one clock, and checks of what must hold
 * at every moment.  The checks do not use the core's own counts: they count
 * again, from the ownership of threads, and from what is true in the world.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "core/core.h"
#include "backend/backend.h"

#define WORLD_VMS	64
#define WORLD_OVERHEAD_BYTES	(64ull << 20)

/* What the tests know of a VM without asking the core. */
struct world_vm {
	bool is_defined, is_running;
	uint8_t uuid[16];
	struct ebb_sla sla;
	/* By guest node. */
	usec_t excess_since[EBB_MAX_GUEST_NODES];	/* held > limit since, or 0 */
	usec_t overdue_at[EBB_MAX_GUEST_NODES];		/* the deadline was last exceeded */
	usec_t lowered_at[EBB_MAX_GUEST_NODES];		/* last fall of the limit */
	uint16_t limit[EBB_MAX_GUEST_NODES];
	usec_t mem_excess_since[EBB_MAX_GUEST_NODES];	/* the same for memory */
	usec_t mem_lowered_at[EBB_MAX_GUEST_NODES];
	uint32_t mem_limit[EBB_MAX_GUEST_NODES];
	bool was_held[EBB_MAX_VCPUS];
	uint16_t num_owned;		/* threads that it owned at counted_at */
	usec_t counted_at;
	uint64_t held_usec, charged_usec; /* counted here, and as recorded */
	usec_t undisturbed_since;	/* last start, reset, loss of the link, or restart */
	bool should_move;		/* by the records; last recommended at move_at */
	usec_t move_at;
};

/* Memory of a node of the host. */
struct world_pressure {
	bool is_on;			/* by the records, since on_at */
	usec_t on_at;
	usec_t above_since, low_since;	/* above the threshold, at the target; 0: not */
};

struct world {
	usec_t now;
	struct ebb_state_config cfg;
	struct ebb_host host;
	const struct ebb_policy_ops *policy;
	struct ebb_state *state;
	struct ebb_fake *fake;
	struct world_vm vms[WORLD_VMS];
	uint64_t num_actions, num_facts, num_records;
	uint64_t num_grants, num_lends, num_forced;
	uint64_t num_mem_offers, num_mem_releases, num_revoked; /* revoked: blocks */
	uint64_t num_voms, num_brokered, num_cutoffs; /* cutoffs: limits that name any */
	uint64_t num_violations, num_moves; /* begun */
	struct world_pressure pressure[EBB_MAX_NODES];
	uint64_t num_rebalanced, num_throttled;
	bool has_no_cap, has_no_pools;	/* as the fake was told */
	char failure[256];		/* first check that failed, or "" */
	bool trace;
};

void world_init(struct world *w, const struct ebb_host *host,
		const struct ebb_fake_config *cfg, const struct ebb_policy_ops *policy,
		bool count_threads);
void world_finish(struct world *w);

/* The agent dies and comes back knowing nothing. */
void world_agent_restart(struct world *w);

int world_define(struct world *w, unsigned vm, const struct ebb_sla *sla,
		 enum ebb_fake_guest guest);
void world_undefine(struct world *w, unsigned vm);
void world_start(struct world *w, unsigned vm);
void world_kill(struct world *w, unsigned vm);
void world_reboot(struct world *w, unsigned vm);

const struct ebb_vm *world_vm(const struct world *w, unsigned vm);

/* Carries on until the time, checking after everything that happens. */
void world_run_until(struct world *w, usec_t until);
/* The next thing that happens, if it is before `until`; false if nothing is. */
bool world_step(struct world *w, usec_t until);

/* A check has failed; the first one that does is what is reported. */
void world_fail(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Counts what the VM held since it was last counted. */
void world_count(struct world *w, unsigned vm);
/* All checks of the moment; the first that fails goes to w->failure. */
void world_check(struct world *w);
/* A record; all checks of the moment of violations and moves; a restart forgets both. */
void world_pressure_note(struct world *w, const struct ebb_record *r);
void world_pressure_check(struct world *w);
void world_pressure_forget(struct world *w);
/* Checks that hold once nothing moves any more. */
void world_check_settled(struct world *w);

#endif /* TESTS_SIM_WORLD_H */
