/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace, a core with a policy, and a simulated world under one clock. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/runner.h"
#include "simulate/measure.h"
#include "util/heap.h"

/* A guest that did not get what it wants asks again: within the time that a request counts. */
#define ASK_AGAIN_USEC	(EBB_WANT_USEC / 2)
/* The core and the world have a clock that is never 0. */
#define ORIGIN_USEC	EBB_USEC_PER_SEC
#define MAX_ACTIONS	256
/* More rounds at one moment, and the core does not come to rest. */
#define MAX_ROUNDS	10000

struct run {
	uint32_t count;			/* runs that began */
	bool is_running;
	bool is_changed;		/* something happened to it since it was looked at */
	bool was_waiting;		/* in this run, for its startup set */
	uint16_t want[EBB_MAX_GUEST_NODES];
};

struct world {
	const struct sim_trace *trace;
	const struct sim_options *options;
	struct sim_result *result;
	struct sim_measure measure;
	struct ebb_state *state;
	struct ebb_fake *fake;
	struct ebb_runner runner;
	usec_t now;
	size_t next_event;
	usec_t ask_at;
	struct run *runs;		/* as the VMs of the trace */
	uint32_t num_changed;
	uint32_t *changed;		/* of these: those with is_changed */
	uint32_t last_vm[EBB_MAX_THREADS]; /* the VM that had the thread last, its index + 1 */
	struct ebb_err failure;
};

static void fail(struct world *w, const char *what, const char *why)
{
	if (!w->failure.text[0])
		ebb_err_set(&w->failure, 0, "%s: %s", what, why);
}

/* A uuid holds the index of the VM and the number of its run, so that a new run is a new VM. */
static void uuid_of(const struct world *w, uint32_t vm, uint8_t ret[16])
{
	memset(ret, 0, 16);
	memcpy(ret, &vm, sizeof(vm));
	memcpy(ret + 4, &w->runs[vm].count, sizeof(w->runs[vm].count));
	ret[15] = 0xeb;
}

static void touch(struct world *w, const uint8_t *uuid)
{
	uint32_t vm;

	memcpy(&vm, uuid, sizeof(vm));
	if (uuid[15] != 0xeb || w->runs[vm].is_changed)
		return;
	w->runs[vm].is_changed = true;
	w->changed[w->num_changed++] = vm;
}

static int take_fact(void *ctx, usec_t now, const struct ebb_fact *fact)
{
	struct world *w = ctx;
	const struct ebb_vm *vm;
	const int rc = ebb_runner_report(&w->runner, now, fact);

	touch(w, fact->uuid);
	if (rc == 0 || rc == -ENOENT || ebb_fact_is_from_link(fact->type))
		return rc;
	vm = ebb_state_vm(w->state, fact->uuid);
	fail(w, vm ? vm->name : ebb_fact_name(fact->type),
	     vm && vm->error[0] ? vm->error : strerror(-rc));
	return rc;
}

/* ---- the trace acts ---- */

static void start(struct world *w, uint32_t vm)
{
	const struct sim_vm *v = &w->trace->vms[vm];
	struct run *r = &w->runs[vm];
	uint8_t uuid[16];
	int rc;

	r->count++;
	r->is_running = true;
	r->was_waiting = false;
	memset(r->want, 0, sizeof(r->want));
	uuid_of(w, vm, uuid);
	rc = ebb_fake_vm_define(w->fake, w->now, uuid, v->name, &v->sla, EBB_FAKE_WANTING);
	if (rc == 0)
		rc = ebb_fake_vm_start(w->fake, w->now, uuid);
	if (rc < 0)
		fail(w, v->name, strerror(-rc));
	sim_measure_running(&w->measure, vm, true);
	touch(w, uuid);
}

static void stop(struct world *w, uint32_t vm)
{
	uint8_t uuid[16];

	uuid_of(w, vm, uuid);
	w->runs[vm].is_running = false;
	ebb_fake_vm_kill(w->fake, w->now, uuid);
	ebb_fake_vm_undefine(w->fake, w->now, uuid);
	sim_measure_running(&w->measure, vm, false);
	touch(w, uuid);
}

static void want(struct world *w, uint32_t vm, uint16_t node, uint16_t cpus)
{
	uint8_t uuid[16];

	uuid_of(w, vm, uuid);
	w->runs[vm].want[node] = cpus;
	ebb_fake_vm_want(w->fake, w->now, uuid, node, cpus);
	touch(w, uuid);
}

static void act(struct world *w)
{
	const struct sim_trace *t = w->trace;

	for (; w->next_event < t->num_events; w->next_event++) {
		const struct sim_event *e = &t->events[w->next_event];

		if (ORIGIN_USEC + e->at > w->now)
			return;
		if (e->type == SIM_START)
			start(w, e->vm);
		else if (e->type == SIM_STOP)
			stop(w, e->vm);
		else
			want(w, e->vm, e->node, e->cpus);
	}
}

/* A VM that lacks something says so again. */
static void ask_again(struct world *w)
{
	if (w->now < w->ask_at)
		return;
	w->ask_at = w->now + ASK_AGAIN_USEC;
	for (uint32_t i = 0; i < w->trace->num_vms; i++)
		for (uint16_t g = 0; w->runs[i].is_running && g < w->measure.vms[i].num_nodes; g++)
			if (w->measure.vms[i].nodes[g].num_missing > 0)
				want(w, i, g, w->runs[i].want[g]);
}

/* ---- looking ---- */

/* CPUs that the guest has and that have a core; the core's own sums may be of a moment ago. */
static void count_held(const struct ebb_vm *vm, uint16_t *ret)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		ret[v->node] += v->thread != EBB_THREAD_NONE &&
				(v->is_startup || (v->is_granted && !v->is_lent));
	}
}

static void look_at(struct world *w, uint32_t i)
{
	const struct ebb_sla *sla = &w->trace->vms[i].sla;
	struct run *r = &w->runs[i];
	uint16_t held[EBB_MAX_GUEST_NODES] = { 0 };
	const struct ebb_vm *vm;
	uint8_t uuid[16];

	uuid_of(w, i, uuid);
	vm = r->is_running ? ebb_state_vm(w->state, uuid) : NULL;
	if (vm && vm->is_running && !vm->is_admitted && !r->was_waiting) {
		r->was_waiting = true;
		w->result->num_not_admitted++;
	}
	if (vm && vm->is_admitted)
		count_held(vm, held);
	for (uint16_t g = 0; g < sla->num_nodes; g++) {
		uint16_t wanted = 0;

		if (vm && vm->is_admitted) {
			wanted = r->want[g] < sla->nodes[g].max ? r->want[g] : sla->nodes[g].max;
			/* Before its driver is there, a guest can not take more. */
			if (!vm->has_driver || wanted < sla->nodes[g].startup)
				wanted = sla->nodes[g].startup;
		}
		if (sim_measure_node(&w->measure, i, g, held[g], wanted) < 0)
			fail(w, "measuring", strerror(ENOMEM));
	}
}

static void look(struct world *w)
{
	struct ebb_record record;

	while (w->num_changed > 0) {
		const uint32_t i = w->changed[--w->num_changed];

		w->runs[i].is_changed = false;
		look_at(w, i);
	}
	for (uint16_t h = 0; h < w->options->host.num_nodes; h++)
		w->measure.capacity[h] = ebb_state_node_capacity(w->state, h);
	while (ebb_state_record_pop(w->state, &record)) {
		if (record.event == EBB_EVENT_FORCE)
			w->result->num_forced += record.cpus;
		if (w->options->note)
			w->options->note(w->options->note_ctx, &record);
	}
}

/* ---- the core acts ---- */

static void note_action(void *ctx, usec_t now, const struct ebb_action *a)
{
	struct world *w = ctx;
	uint32_t vm, *last;

	(void)now;
	touch(w, a->uuid);
	if (a->type != EBB_ACTION_PLACE || a->u.vcpu.thread >= EBB_MAX_THREADS)
		return;
	memcpy(&vm, a->uuid, sizeof(vm));
	last = &w->last_vm[a->u.vcpu.thread];
	w->result->num_moves += *last != 0 && *last != vm + 1;
	*last = vm + 1;
}

/* Asks the core until it has nothing more to do now; returns its wake-up time. */
static usec_t pump(struct world *w)
{
	usec_t wake_at;

	if (ebb_runner_rest(&w->runner, w->now, MAX_ROUNDS, &wake_at) == 0)
		return wake_at;
	fail(w, "the core", "it does not come to rest");
	return EBB_TIME_NEVER;
}

static usec_t sooner(usec_t a, usec_t b)
{
	return a < b ? a : b;
}

static void run(struct world *w)
{
	const usec_t end = ORIGIN_USEC + w->trace->length;

	while (!w->failure.text[0]) {
		usec_t at = pump(w);

		look(w);
		at = sooner(at, ebb_fake_next(w->fake));
		at = sooner(at, w->ask_at);
		if (w->next_event < w->trace->num_events)
			at = sooner(at, ORIGIN_USEC + w->trace->events[w->next_event].at);
		at = sooner(at, end);
		if (at > w->now)
			w->now = at;
		sim_measure_pass(&w->measure, w->now - ORIGIN_USEC);
		if (w->now >= end)
			break;
		act(w);
		ask_again(w);
		ebb_fake_run(w->fake, w->now);
	}
	sim_measure_end(&w->measure);
	if (ebb_fake_violation(w->fake))
		fail(w, "the core did what it must not do", ebb_fake_violation(w->fake));
}

static int create(struct world *w, const struct ebb_policy_ops *policy)
{
	struct ebb_fake_config fake;
	struct ebb_state_config cfg;

	ebb_fake_config_default(&fake);
	fake.seed = w->options->seed;
	fake.is_even = w->options->is_even;
	ebb_state_config_default(&cfg);
	cfg.count_threads = w->options->count_threads;
	/* Nobody is charged here. */
	cfg.charge_usec = 2 * w->trace->length;
	cfg.alloc = (struct ebb_alloc){ .alloc = ebb_heap_alloc, .free = ebb_heap_free };
	w->runs = calloc(w->trace->num_vms, sizeof(*w->runs));
	w->changed = calloc(w->trace->num_vms, sizeof(*w->changed));
	w->state = ebb_state_create(&cfg, &w->options->host, policy);
	w->fake = ebb_fake_create(&fake, (struct ebb_sink){ .ctx = w, .report = take_fact });
	w->runner = (struct ebb_runner){
		.state = w->state, .items = calloc(MAX_ACTIONS, sizeof(*w->runner.items)),
		.capacity = MAX_ACTIONS, .ctx = w, .on_action = note_action,
	};
	if (!w->runs || !w->changed || !w->runner.items || !w->state || !w->fake)
		return -ENOMEM;
	w->runner.backend = ebb_fake_backend(w->fake);
	return sim_measure_init(&w->measure, w->result, w->trace, w->options->num_slots);
}

int sim_run(const struct sim_trace *trace, const struct sim_options *options,
	    const struct ebb_policy_ops *policy, struct sim_result *ret, struct ebb_err *err)
{
	struct sim_result result = { .policy = policy->name };
	struct world w = {
		.trace = trace, .options = options, .result = &result, .now = ORIGIN_USEC,
		.ask_at = ORIGIN_USEC + ASK_AGAIN_USEC,
	};
	int rc = create(&w, policy);

	if (rc < 0) {
		ebb_err_set(err, rc, "out of memory");
	} else {
		for (uint16_t h = 0; h < options->host.num_nodes; h++)
			result.capacity += ebb_state_node_capacity(w.state, h);
		ebb_fake_agent_start(w.fake, w.now);
		run(&w);
		if (w.failure.text[0])
			rc = ebb_err_set(err, -EINVAL, "%s", w.failure.text);
	}
	sim_measure_finish(&w.measure);
	ebb_fake_destroy(w.fake);
	ebb_state_destroy(w.state);
	free(w.runs);
	free(w.changed);
	free(w.runner.items);
	if (rc < 0)
		sim_result_finish(&result);
	else
		*ret = result;
	return rc;
}
