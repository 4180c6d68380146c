// SPDX-License-Identifier: GPL-2.0-or-later
/* The shadow model: what must be true, by the numbers of core/arbiter.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/world.h"

static void fail(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fail(struct world *w, const char *format, ...)
{
	va_list args;

	if (w->failure[0])
		return;
	va_start(args, format);
	vsnprintf(w->failure, sizeof(w->failure), format, args);
	va_end(args);
}

static uint32_t capacity(const struct world *w, uint16_t node)
{
	uint32_t sum = 0;

	for (uint16_t c = 0; c < w->host.num_cores; c++)
		if (w->host.cores[c].node == node)
			sum += w->cfg.count_threads ? w->host.cores[c].num_threads : 1;
	return sum;
}

/* CPUs of a guest node that own a thread or, as startup set, are entitled to one. */
static uint32_t used(const struct ebb_vm *vm, uint16_t g)
{
	uint32_t sum = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		sum += vm->vcpus[i].node == g &&
		       (vm->vcpus[i].is_startup || vm->vcpus[i].thread != EBB_THREAD_NONE);
	return sum;
}

/* I2, and that both sides of ownership agree. */
static void check_threads(struct world *w)
{
	static uint16_t owners[EBB_MAX_THREADS];

	memset(owners, 0, sizeof(owners));
	for (unsigned i = 0; i < WORLD_VMS; i++) {
		const struct ebb_vm *vm = w->vms[i].is_defined ? world_vm(w, i) : NULL;

		for (uint16_t k = 0; vm && k < vm->num_vcpus; k++) {
			const uint16_t t = vm->vcpus[k].thread;
			uint16_t vcpu = 0;

			if (t == EBB_THREAD_NONE)
				continue;
			if (++owners[t] > 1)
				fail(w, "I2: thread %u has two owners", t);
			if (ebb_state_thread_owner(w->state, t, &vcpu) != vm || vcpu != k)
				fail(w, "I2: vm%u vCPU %u and thread %u do not agree", i, k, t);
			if (!vm->is_running)
				fail(w, "vm%u does not run and owns thread %u", i, t);
			if (w->host.threads[t].node !=
			    w->vms[i].sla.nodes[vm->vcpus[k].node].host_node)
				fail(w, "vm%u vCPU %u is on the wrong node", i, k);
		}
	}
	for (uint16_t t = 0; t < w->host.num_threads; t++)
		if (!owners[t] && ebb_state_thread_owner(w->state, t, NULL))
			fail(w, "I2: thread %u is lost", t);
}

/* I1, I3, I4. */
static void check_limits(struct world *w)
{
	for (uint16_t h = 0; h < w->host.num_nodes; h++) {
		uint32_t promised = 0, in_use = 0, floors = 0;
		bool exceeds = false;

		for (unsigned i = 0; i < WORLD_VMS; i++) {
			const struct ebb_vm *vm = w->vms[i].is_running ? world_vm(w, i) : NULL;

			for (uint16_t g = 0; vm && g < w->vms[i].sla.num_nodes; g++) {
				const struct ebb_sla_node *sla = &w->vms[i].sla.nodes[g];
				const uint32_t u = used(vm, g), limit = vm->nodes[g].limit;

				if (sla->host_node != h || !vm->is_admitted)
					continue;
				if (limit < sla->startup || limit > sla->max)
					fail(w, "I4: vm%u node %u limit %u is not in %u to %u", i,
					     g, limit, sla->startup, sla->max);
				floors += sla->startup;
				in_use += u;
				promised += u > limit ? u : limit;
				exceeds = exceeds || limit > u;
			}
		}
		if (floors > capacity(w, h))
			fail(w, "I1: node %u has floors of %u", h, floors);
		if (promised > capacity(w, h) && (in_use <= capacity(w, h) || exceeds))
			fail(w, "I3: node %u of %u cores has %u promised, %u in use", h,
			     capacity(w, h), promised, in_use);
	}
}

/* The CPUs that the guest has with a core behind them, as the device knows it. */
static bool is_held(const struct ebb_fake_vcpu *v)
{
	return v->is_plugged && v->is_granted && !v->is_forced;
}

static void check_vcpu(struct world *w, unsigned i, uint16_t k, const struct ebb_fake_vcpu *real)
{
	struct world_vm *v = &w->vms[i];
	const struct ebb_vcpu *known = &world_vm(w, i)->vcpus[k];
	const usec_t overdue_at = v->overdue_at[known->node];

	if (real->is_startup && (!real->is_plugged || real->is_granted || real->is_forced ||
				 known->force != EBB_FORCE_NONE || known->is_granted))
		fail(w, "I5: vm%u startup vCPU %u is unplugged, forced or granted", i, k);
	/* A thread that runs alone is owned: otherwise it could be given away under it. */
	if (real->is_alone && known->thread != real->thread && !known->is_unknown)
		fail(w, "I6: vm%u vCPU %u runs alone on thread %u and owns %u", i, k, real->thread,
		     known->thread);
	/*
	 * I8: a core is lost by force only after the deadline of a demand; how
	 * long after depends on how often the host fails to move the thread.
	 */
	if (v->was_held[k] && real->is_forced && real->is_granted &&
	    known->force == EBB_FORCE_DEADLINE &&
	    (!overdue_at || w->now > overdue_at + w->cfg.retry_usec[1]))
		fail(w, "I8: vm%u vCPU %u was forced, overdue at %llu, now %llu", i, k,
		     (unsigned long long)overdue_at, (unsigned long long)w->now);
	v->was_held[k] = is_held(real);
}

static void check_vm(struct world *w, unsigned i)
{
	struct world_vm *v = &w->vms[i];
	const struct ebb_vm *vm = world_vm(w, i);
	const usec_t deadline = v->sla.deadline_ms * EBB_USEC_PER_MSEC;
	uint16_t held[EBB_MAX_GUEST_NODES] = { 0 };
	struct ebb_fake_vcpu real;

	if (!vm || !vm->is_running) {
		fail(w, "vm%u runs, and the core does not know", i);
		return;
	}
	for (uint16_t k = 0; k < vm->num_vcpus; k++) {
		ebb_fake_vcpu(w->fake, v->uuid, k, &real);
		/* A CPU that is being forced was held until now. */
		held[real.node] += real.is_startup || is_held(&real) || v->was_held[k];
	}
	for (uint16_t g = 0; g < v->sla.num_nodes; g++) {
		const uint16_t limit = vm->nodes[g].limit;
		usec_t since;

		if (limit < v->limit[g])
			v->lowered_at[g] = w->now;
		v->limit[g] = limit;
		if (held[g] <= limit)
			v->excess_since[g] = 0;
		else if (v->excess_since[g] == 0)
			v->excess_since[g] = w->now;
		if (v->excess_since[g] && w->now >= v->excess_since[g] + deadline)
			v->overdue_at[g] = w->now;
		since = v->excess_since[g] > v->lowered_at[g] ? v->excess_since[g] :
								v->lowered_at[g];
		/* Liveness: a demand ends; grants and failures in between may take their time. */
		if (v->excess_since[g] &&
		    w->now > since + deadline + 8 * EBB_USEC_PER_SEC &&
		    w->now > v->undisturbed_since + deadline + 8 * EBB_USEC_PER_SEC)
			fail(w, "vm%u node %u holds %u above limit %u for %llu ms", i, g, held[g],
			     limit, (unsigned long long)((w->now - since) / 1000));
	}
	for (uint16_t k = 0; k < vm->num_vcpus; k++) {
		ebb_fake_vcpu(w->fake, v->uuid, k, &real);
		check_vcpu(w, i, k, &real);
	}
}

void world_check(struct world *w)
{
	if (ebb_fake_violation(w->fake))
		fail(w, "violation: %s", ebb_fake_violation(w->fake));
	check_threads(w);
	check_limits(w);
	for (unsigned i = 0; i < WORLD_VMS; i++)
		if (w->vms[i].is_running)
			check_vm(w, i);
}

static void check_settled_vm(struct world *w, unsigned i)
{
	const struct ebb_vm *vm = world_vm(w, i);
	struct ebb_action_limits told;

	if (ebb_fake_vm_inflight(w->fake, w->vms[i].uuid) != 0)
		fail(w, "vm%u still has requests in flight", i);
	if (ebb_fake_vm_limits(w->fake, w->vms[i].uuid, &told) < 0) {
		fail(w, "vm%u was never told its limits", i);
		return;
	}
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_node *n = &vm->nodes[g];
		uint32_t held = 0;

		for (uint16_t k = 0; k < vm->num_vcpus; k++) {
			struct ebb_fake_vcpu real;

			ebb_fake_vcpu(w->fake, w->vms[i].uuid, k, &real);
			if (real.node != g)
				continue;
			held += real.is_startup || is_held(&real);
			if (real.is_plugged && !real.is_startup && !real.is_granted)
				fail(w, "vm%u vCPU %u is plugged and nobody's", i, k);
			if (real.is_granted && !real.is_plugged)
				fail(w, "vm%u vCPU %u is granted and absent", i, k);
			if (real.is_granted && real.is_forced)
				fail(w, "vm%u vCPU %u is still forced", i, k);
			if (real.is_plugged && vm->is_admitted &&
			    (real.thread == EBB_THREAD_NONE ||
			     real.thread != vm->vcpus[k].thread))
				fail(w, "vm%u vCPU %u has no core of its own", i, k);
		}
		if (n->limit != n->target || held != n->limit || n->held != held ||
		    told.nodes[g].limit != n->limit || told.nodes[g].held != held ||
		    told.nodes[g].deadline_ms != 0)
			fail(w, "vm%u node %u: goal %u limit %u held %u, counted %u, told %u %u", i,
			     g, n->target, n->limit, n->held, held, told.nodes[g].limit,
			     told.nodes[g].held);
	}
}

void world_check_settled(struct world *w)
{
	for (unsigned i = 0; i < WORLD_VMS; i++)
		if (w->vms[i].is_running)
			check_settled_vm(w, i);
}
