// SPDX-License-Identifier: GPL-2.0-or-later
/* See world.h: clock, plumbing and the acts of the world; checks are in world-check.c. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/runner.h"
#include "tests/sim/world.h"
#include "util/heap.h"

void world_fail(struct world *w, const char *format, ...)
{
	va_list args;

	if (w->failure[0])
		return;
	va_start(args, format);
	vsnprintf(w->failure, sizeof(w->failure), format, args);
	va_end(args);
}

static struct world_vm *find(struct world *w, const uint8_t *uuid)
{
	for (unsigned i = 0; i < WORLD_VMS; i++)
		if (w->vms[i].is_defined && memcmp(w->vms[i].uuid, uuid, 16) == 0)
			return &w->vms[i];
	return NULL;
}

static int sink_report(void *ctx, usec_t now, const struct ebb_fact *fact)
{
	struct world *w = ctx;
	struct world_vm *vm = find(w, fact->uuid);
	int r;

	w->num_facts++;
	w->num_voms += fact->type == EBB_FACT_VOM;
	if (vm && (fact->type == EBB_FACT_HELLO || fact->type == EBB_FACT_LINK_LOST ||
		   fact->type == EBB_FACT_VM_RUNNING))
		vm->undisturbed_since = now;
	if (w->trace)
		printf("%10llu fact %s %02x\n", (unsigned long long)now,
		       ebb_fact_name(fact->type), fact->uuid[0]);
	r = ebb_state_report(w->state, now, fact);
	if (r < 0)
		world_fail(w, "fact %s was refused: %s", ebb_fact_name(fact->type), strerror(-r));
	return r;
}

static void agent_create(struct world *w)
{
	w->state = ebb_state_create(&w->cfg, &w->host, w->policy);
	if (!w->state) {
		fprintf(stderr, "no memory for the core\n");
		exit(1);
	}
}

void world_init(struct world *w, const struct ebb_host *host,
		const struct ebb_fake_config *cfg, const struct ebb_policy_ops *policy,
		bool count_threads)
{
	memset(w, 0, sizeof(*w));
	w->now = EBB_USEC_PER_SEC;
	w->host = *host;
	w->policy = policy;
	ebb_state_config_default(&w->cfg);
	w->cfg.count_threads = count_threads;
	w->cfg.pressure.cool_down_s = w->cfg.pressure.memory_window_s = 1;
	if (cfg->seed % 3 == 0) {
		w->cfg.pressure.memory_target_percent = 30;
		w->cfg.pressure.memory_threshold_percent = 50;
		w->cfg.pressure.memory_failover_percent = 60;
	}
	w->cfg.pressure.hot_window_s = 3;
	w->cfg.promise.overbook_percent = cfg->seed % 2 ? 100 : 300;
	w->cfg.promise.overbook_policy = cfg->seed % 4 ? EBB_OVERBOOK_PENALTY :
							 EBB_OVERBOOK_PROPORTIONAL;
	w->cfg.alloc = (struct ebb_alloc){ .alloc = ebb_heap_alloc, .free = ebb_heap_free };
	w->has_no_cap = cfg->has_no_cap;
	w->has_no_pools = cfg->has_no_pools;
	w->cfg.mem_overhead_bytes = WORLD_OVERHEAD_BYTES;
	w->fake = ebb_fake_create(cfg, (struct ebb_sink){ .ctx = w, .report = sink_report });
	agent_create(w);
	ebb_fake_agent_start(w->fake, w->now);
}

void world_finish(struct world *w)
{
	ebb_state_destroy(w->state);
	ebb_fake_destroy(w->fake);
}

static void drain_records(struct world *w)
{
	struct ebb_record r;

	while (ebb_state_record_pop(w->state, &r)) {
		w->num_records++;
		w->num_grants += r.event == EBB_EVENT_GRANT;
		w->num_lends += r.event == EBB_EVENT_LEND;
		w->num_forced += r.event == EBB_EVENT_FORCE;
		w->num_mem_offers += r.event == EBB_EVENT_MEM_OFFER;
		w->num_mem_releases += r.event == EBB_EVENT_MEM_RELEASE;
		w->num_brokered += r.event == EBB_EVENT_BROKER;
		world_pressure_note(w, &r);
		w->num_rebalanced += r.event == EBB_EVENT_REBALANCE && r.cpus > 0;
		w->num_throttled += r.event == EBB_EVENT_THROTTLE && r.cpus < 1000;
		if (r.event == EBB_EVENT_CHARGE && find(w, r.uuid))
			find(w, r.uuid)->charged_usec =
				r.charge[EBB_CLASS_RESERVED].core_usec +
				r.charge[EBB_CLASS_SPOT].core_usec;
		if (r.event == EBB_EVENT_MEM_REVOKE)
			w->num_revoked += r.bytes / EBB_BLOCK_BYTES;
		if (w->trace)
			printf("%10llu   %s %s node %d cpus %u: %s\n", (unsigned long long)r.at,
			       r.name, ebb_event_name(r.event),
			       r.node == EBB_NODE_ANY ? -1 : r.node, r.cpus, r.text);
	}
}

static void begin_charge(const struct world *w, struct world_vm *v)
{
	v->held_usec = v->charged_usec = 0;
	v->num_owned = 0;
	v->counted_at = w->now;
}

void world_count(struct world *w, unsigned vm)
{
	struct world_vm *v = &w->vms[vm];
	const struct ebb_vm *known = world_vm(w, vm);

	v->held_usec += v->num_owned * (w->now - v->counted_at);
	v->counted_at = w->now;
	v->num_owned = 0;
	for (uint16_t k = 0; known && k < known->num_vcpus; k++)
		v->num_owned += known->vcpus[k].thread != EBB_THREAD_NONE;
}

void world_agent_restart(struct world *w)
{
	drain_records(w);
	ebb_state_destroy(w->state);
	agent_create(w);
	world_pressure_forget(w);
	for (unsigned i = 0; i < WORLD_VMS; i++) {
		w->vms[i].undisturbed_since = w->now;
		begin_charge(w, &w->vms[i]);
	}
	ebb_fake_agent_start(w->fake, w->now);
}

int world_define(struct world *w, unsigned vm, const struct ebb_sla *sla,
		 enum ebb_fake_guest guest)
{
	struct world_vm *v = &w->vms[vm];
	char name[16];

	memset(v, 0, sizeof(*v));
	v->is_defined = true;
	v->uuid[0] = (uint8_t)vm;
	v->uuid[15] = 0xeb;
	v->sla = *sla;
	snprintf(name, sizeof(name), "vm%u", vm);
	return ebb_fake_vm_define(w->fake, w->now, v->uuid, name, sla, guest);
}

void world_undefine(struct world *w, unsigned vm)
{
	ebb_fake_vm_undefine(w->fake, w->now, w->vms[vm].uuid);
	w->vms[vm].is_defined = false;
}

void world_start(struct world *w, unsigned vm)
{
	struct world_vm *v = &w->vms[vm];

	v->is_running = true;
	v->undisturbed_since = w->now;
	begin_charge(w, v);
	memset(v->excess_since, 0, sizeof(v->excess_since));
	memset(v->overdue_at, 0, sizeof(v->overdue_at));
	memset(v->limit, 0, sizeof(v->limit));
	memset(v->was_held, 0, sizeof(v->was_held));
	memset(v->mem_excess_since, 0, sizeof(v->mem_excess_since));
	memset(v->mem_limit, 0, sizeof(v->mem_limit));
	ebb_fake_vm_start(w->fake, w->now, v->uuid);
}

void world_kill(struct world *w, unsigned vm)
{
	world_count(w, vm);
	w->vms[vm].is_running = false;
	ebb_fake_vm_kill(w->fake, w->now, w->vms[vm].uuid);
}

void world_reboot(struct world *w, unsigned vm)
{
	w->vms[vm].undisturbed_since = w->now;
	ebb_fake_vm_reboot(w->fake, w->now, w->vms[vm].uuid);
}

const struct ebb_vm *world_vm(const struct world *w, unsigned vm)
{
	return ebb_state_vm(w->state, w->vms[vm].uuid);
}

static bool has_cutoff(const struct ebb_action_limits *l)
{
	for (uint16_t g = 0; g < l->num_nodes; g++)
		if (l->nodes[g].mem_cutoff)
			return true;
	return false;
}

static void note_action(void *ctx, usec_t now, const struct ebb_action *a)
{
	struct world *w = ctx;

	w->num_actions++;
	w->num_cutoffs += a->type == EBB_ACTION_LIMITS && has_cutoff(&a->u.limits);
	if (w->trace)
		printf("%10llu action %s %02x vcpu %u thread %u\n", (unsigned long long)now,
		       ebb_action_name(a->type), a->uuid[0], a->id ? a->u.vcpu.vcpu : 0,
		       a->id ? a->u.vcpu.thread : 0);
}

/* Asks the core until it has nothing more to do now; returns its wake-up time. */
static usec_t pump(struct world *w)
{
	/* Small on purpose, so that running out of room is part of the test. */
	struct ebb_action items[7];
	struct ebb_runner runner = {
		.state = w->state, .backend = ebb_fake_backend(w->fake), .items = items,
		.capacity = 7, .ctx = w, .on_action = note_action,
	};
	usec_t wake_at;

	if (ebb_runner_rest(&runner, w->now, 2000, &wake_at) < 0) {
		world_fail(w, "the core does not come to rest");
		return EBB_TIME_NEVER;
	}
	drain_records(w);
	return wake_at;
}

bool world_step(struct world *w, usec_t until)
{
	const usec_t core_at = pump(w);
	const usec_t fake_at = ebb_fake_next(w->fake);
	const usec_t at = core_at < fake_at ? core_at : fake_at;

	world_check(w);
	if (w->failure[0] || at > until) {
		w->now = until > w->now ? until : w->now;
		return false;
	}
	if (at > w->now)
		w->now = at;
	ebb_fake_run(w->fake, w->now);
	return true;
}

void world_run_until(struct world *w, usec_t until)
{
	while (world_step(w, until))
		;
}
