// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Decision times: the core and a policy against simulated guests in virtual time.  A round is what
 * the daemon does when something has happened: facts into the core, and asking it until it has
 * no more to be done.  Those count in which the policy was asked, after everybody has booted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/core.h"
#include "backend/backend.h"
#include "model/sla.h"
#include "scripts/bench/agent.h"
#include "util/heap.h"

#define BOOT_USEC	(5 * EBB_USEC_PER_SEC)
#define CHANGE_USEC	(20 * EBB_USEC_PER_MSEC)
#define MAX_ACTIONS	256
/* One VM in so many changes leaves, and comes back with the next. */
#define LEAVE_EVERY	40

struct world {
	struct ebb_state *state;
	struct ebb_fake *fake;
	struct ebb_action *actions;
	usec_t now;
	double report_usec;		/* in the core, since the last round */
	double *rounds, *decides;
	unsigned num_values, max_values;
	uint64_t chance;
	uint32_t num_vms, gone;		/* gone: index of the VM that has left, or num_vms */
	struct ebb_sla sla;
};

/* Of this thread, which waits for nothing: others on the machine do not count. */
static double cpu_usec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The policy as the core sees it: asked through a clock. */
static struct {
	const struct ebb_policy_ops *policy;
	double usec;			/* of the last time that it was asked */
	bool was_asked;
} timed;

static int timed_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	const double start = cpu_usec();
	const int rc = ebb_policy_decide(timed.policy, st, view, ret_plan);

	timed.usec = cpu_usec() - start;
	timed.was_asked = true;
	return rc;
}

static int take_fact(void *ctx, usec_t now, const struct ebb_fact *fact)
{
	struct world *w = ctx;
	const double start = cpu_usec();
	const int rc = ebb_state_report(w->state, now, fact);

	w->report_usec += cpu_usec() - start;
	if (rc < 0 && rc != -ENOENT)
		bench_fail(ebb_fact_name(fact->type), rc);
	return rc;
}

static uint32_t below(struct world *w, uint32_t n)
{
	w->chance = w->chance * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((w->chance >> 33) % n);
}

static void uuid_of(uint32_t vm, uint8_t *ret)
{
	memset(ret, 0, 16);
	memcpy(ret, &vm, sizeof(vm));
	ret[15] = 0xeb;
}

/*
 * Of each class and of some priorities; on all sockets of four, on two of sixteen.  Without pools:
 * thousands of steps in which limits of memory settle would be measured in place of decisions.
 */
static void define(struct world *w, const struct ebb_host *host, uint32_t i)
{
	const uint16_t nodes = host->num_nodes == 4 ? 4 : 2;
	struct ebb_sla sla;
	uint8_t uuid[16];
	char name[32];
	int rc;

	ebb_sla_default(&sla);
	sla.class = i % 3 ? EBB_CLASS_SPOT : EBB_CLASS_RESERVED;
	sla.priority = (uint16_t)(50 * (i % 5));
	sla.weight = 100 + i % 7;
	sla.mem_weight = 100 + i % 5;
	sla.num_nodes = nodes;
	for (uint16_t g = 0; g < nodes; g++) {
		struct ebb_sla_node *n = &sla.nodes[g];

		n->startup = g == 0;
		n->max = 8;
		n->reserved = sla.class == EBB_CLASS_SPOT ? n->startup : 4;
		n->host_node = (uint16_t)((i + g) % host->num_nodes);
	}
	uuid_of(i, uuid);
	snprintf(name, sizeof(name), "vm%u", i);
	rc = ebb_fake_vm_define(w->fake, w->now, uuid, name, &sla, EBB_FAKE_WANTING);
	if (rc == 0)
		rc = ebb_fake_vm_start(w->fake, w->now, uuid);
	if (rc < 0)
		bench_fail(name, rc);
	w->sla = sla;
}

static void create(struct world *w, const struct ebb_host *host,
		   const struct ebb_policy_ops *policy, uint32_t threads)
{
	static struct ebb_policy_ops ops;
	struct ebb_fake_config fake;
	struct ebb_state_config cfg;

	timed.policy = policy;
	ops = *policy;
	ops.decide = timed_decide;
	ebb_state_config_default(&cfg);
	cfg.count_threads = threads > 1;
	cfg.alloc = (struct ebb_alloc){ .alloc = ebb_heap_alloc, .free = ebb_heap_free };
	ebb_fake_config_default(&fake);
	w->state = ebb_state_create(&cfg, host, &ops);
	w->fake = ebb_fake_create(&fake, (struct ebb_sink){ .ctx = w, .report = take_fact });
	w->actions = calloc(MAX_ACTIONS, sizeof(*w->actions));
	w->rounds = calloc(w->max_values, sizeof(*w->rounds));
	w->decides = calloc(w->max_values, sizeof(*w->decides));
	if (!w->state || !w->fake || !w->actions || !w->rounds || !w->decides)
		bench_fail("set-up", ENOMEM);
	ebb_fake_agent_start(w->fake, w->now);
	for (uint32_t i = 0; i < w->num_vms; i++)
		define(w, host, i);
}

/* One round; returns when the core wants to be asked again. */
static usec_t ask(struct world *w, bool is_counted)
{
	struct ebb_actions actions = { .items = w->actions, .capacity = MAX_ACTIONS };
	struct ebb_record record;
	double spent = w->report_usec;

	timed.was_asked = false;
	do {
		const double start = cpu_usec();

		ebb_state_next(w->state, w->now, &actions);
		spent += cpu_usec() - start;
		for (size_t i = 0; i < actions.count; i++)
			ebb_fake_submit(w->fake, w->now, &w->actions[i]);
	} while (actions.wake_at <= w->now);
	while (ebb_state_record_pop(w->state, &record))
		;
	w->report_usec = 0;
	if (is_counted && timed.was_asked && w->num_values < w->max_values) {
		w->rounds[w->num_values] = spent / 1e3;
		w->decides[w->num_values++] = timed.usec / 1e3;
	}
	return actions.wake_at;
}

/* Some VM wants another number of CPUs on its nodes, or comes, or goes. */
static void change(struct world *w)
{
	const uint32_t vm = below(w, w->num_vms);
	uint8_t uuid[16];

	if (w->gone < w->num_vms) {
		uuid_of(w->gone, uuid);
		ebb_fake_vm_start(w->fake, w->now, uuid);
		w->gone = w->num_vms;
	} else if (below(w, LEAVE_EVERY) == 0) {
		uuid_of(vm, uuid);
		ebb_fake_vm_kill(w->fake, w->now, uuid);
		w->gone = vm;
	} else {
		uuid_of(vm, uuid);
		for (uint16_t g = 0; g < w->sla.num_nodes; g++)
			ebb_fake_vm_want(w->fake, w->now, uuid, g, (uint16_t)below(w, 9));
	}
}

static void run(struct world *w)
{
	const usec_t booted = w->now + BOOT_USEC;
	usec_t change_at = booted;

	while (w->num_values < w->max_values) {
		usec_t at = ask(w, w->now >= booted);
		const usec_t fake_at = ebb_fake_next(w->fake);

		at = fake_at < at ? fake_at : at;
		at = change_at < at ? change_at : at;
		w->now = at > w->now ? at : w->now;
		if (w->now >= change_at) {
			change(w);
			change_at += CHANGE_USEC;
		}
		ebb_fake_run(w->fake, w->now);
	}
	if (ebb_fake_violation(w->fake))
		bench_fail(ebb_fake_violation(w->fake), EINVAL);
}

void bench_decisions(const char *size, uint32_t num_vms, uint32_t sockets, uint32_t cores,
		     uint32_t threads, const struct ebb_policy_ops *policy, unsigned num_values)
{
	struct world w = {
		.now = EBB_USEC_PER_SEC, .max_values = num_values, .chance = 1,
		.num_vms = num_vms, .gone = num_vms,
	};
	static struct ebb_host host;

	if (ebb_host_emulate(sockets, cores, threads, 1000, &host) < 0)
		bench_fail(size, EINVAL);
	create(&w, &host, policy, threads);
	run(&w);
	bench_print("decision", size, policy->name, "ms", w.rounds, w.num_values);
	bench_print("decision.policy", size, policy->name, "ms", w.decides, w.num_values);
	ebb_fake_destroy(w.fake);
	ebb_state_destroy(w.state);
	free(w.actions);
	free(w.rounds);
	free(w.decides);
}
