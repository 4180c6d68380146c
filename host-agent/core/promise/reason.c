// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Why a VM waited.  On the core of each vCPU that waited, the accounts of the other vCPUs there say
 * how long they ran in their own last intervals.  The rest of the wait is due to a maximum or a
 * throttle of the VM, if it has reached one, else to programs of the host that are no vCPUs.
 *
 * A core of an emulated host is a part of a real CPU, so a vCPU that has it to itself still waits
 * for the rest of the time.  Times are therefore counted as those of the emulated core.
 */
#include <stdio.h>
#include <string.h>

#include "core/promise/promise.h"

#define NUM_NAMES	3
#define NAME_CHARS	24u
#define MSEC(usec)	((unsigned long long)((usec) / EBB_USEC_PER_MSEC))

/* CPU time of the VM's cores while the VM waited, by who had it; microseconds. */
struct losses {
	usec_t waited, itself, others, rest;
	usec_t by[EBB_MAX_VMS];		/* by place in core_env.active */
};

/* Time that a vCPU occupied its core in an interval as long as this one. */
static usec_t occupied(const struct core_env *e, const struct ebb_vcpu_promise *v, usec_t length)
{
	return v->length ? v->ran * length / v->length * 1000 / promise_share(e) : 0;
}

/* Adds what vCPU k lost on its core. */
static void add_core(const struct core_env *e, const struct ebb_vm *vm, uint16_t k, usec_t length,
		     struct losses *sum)
{
	const struct ebb_vcpu_promise *v = &vm->vcpu_promises[k];
	const uint16_t thread = vm->vcpus[k].placed;
	const usec_t pauses = occupied(e, v, length) - v->ran;
	const usec_t waited = v->waited > pauses ? v->waited - pauses : 0;
	usec_t by[EBB_MAX_VMS] = { 0 }, all = 0, itself = 0;

	for (size_t i = 0; i < e->num_active && thread != EBB_THREAD_NONE; i++)
		for (uint16_t j = 0; j < e->active[i]->num_vcpus; j++) {
			const struct ebb_vm *other = e->active[i];

			if (other->vcpus[j].placed == thread && (other != vm || j != k))
				by[i] += occupied(e, &other->vcpu_promises[j], length);
		}
	for (size_t i = 0; i < e->num_active; i++)
		all += by[i];
	for (size_t i = 0; i < e->num_active; i++) {
		/* They also ran while it did not wait. */
		const usec_t part = all > waited ? by[i] * waited / all : by[i];

		if (e->active[i] == vm)
			itself += part;
		else
			sum->by[i] += part;
	}
	sum->waited += waited;
	sum->itself += itself;
	sum->rest += waited > all ? waited - all : 0;
}

/* On a node of the VM more is promised than its shared threads have; thousandths of a core. */
static bool is_overbooked(const struct core_env *e, const struct ebb_vm *vm, uint32_t *ret_booked,
			  uint32_t *ret_capacity)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const uint16_t h = vm->sla.nodes[g].host_node;
		uint32_t booked = 0, capacity = 0;

		for (uint16_t t = 0; t < e->host.num_threads; t++)
			if (e->host.threads[t].node == h &&
			    e->host.cores[e->host.threads[t].core].is_shared)
				capacity += 1000;
		for (size_t i = 0; i < e->num_active; i++) {
			const struct ebb_vm *other = e->active[i];
			uint32_t there = 0;

			for (uint16_t k = 0; k < other->num_vcpus; k++)
				there += core_host_node(other, k) == h;
			booked += promise_permille(other) * there / other->num_vcpus;
		}
		*ret_booked = booked;
		*ret_capacity = capacity;
		if (booked > capacity)
			return true;
	}
	return false;
}

/* The VMs that got most, the greediest first. */
static void name_others(const struct core_env *e, const struct losses *sum, char *text, size_t size)
{
	bool is_named[EBB_MAX_VMS] = { false };
	size_t len = 0;

	text[0] = '\0';
	for (int n = 0; n < NUM_NAMES; n++) {
		size_t best = e->num_active;

		for (size_t i = 0; i < e->num_active; i++)
			if (!is_named[i] && sum->by[i] >= EBB_USEC_PER_MSEC &&
			    (best == e->num_active || sum->by[i] > sum->by[best]))
				best = i;
		if (best == e->num_active)
			return;
		is_named[best] = true;
		len += (size_t)snprintf(text + len, size - len, "%s %llu ms, ",
					ebb_text_label(e->active[best]->name, NAME_CHARS).text,
					MSEC(sum->by[best]));
		if (len >= size)
			return;
	}
}

/* It was throttled, or had the most that its SLA allows. */
static bool is_limited(const struct core_env *e, const struct ebb_vm *vm, usec_t got,
		       usec_t length)
{
	const usec_t most = length * vm->sla.max_percent / 100 * promise_share(e) / 1000;

	if (vm->share.throttled > 0 && vm->share.throttled < 1000)
		return true;
	/* A tenth less, as it need not have had work all the time. */
	return vm->sla.max_percent > 0 && got >= most - most / 10;
}

enum ebb_cause promise_reason(const struct core_env *e, const struct ebb_vm *vm,
			      const struct promise_outcome *o, usec_t length, char *text)
{
	const bool limited = is_limited(e, vm, o->got, length);
	struct losses sum = { 0 };
	uint32_t booked, capacity;
	char names[128], over[40] = "";
	bool is_over;

	for (uint16_t k = 0; k < vm->num_vcpus; k++)
		if (vm->vcpu_promises[k].waited > 0)
			add_core(e, vm, k, length, &sum);
	for (size_t i = 0; i < e->num_active; i++)
		sum.others += sum.by[i];
	is_over = is_overbooked(e, vm, &booked, &capacity);
	if (is_over)
		snprintf(over, sizeof(over), "; %u%% promised of %u%%", booked / 10, capacity / 10);
	name_others(e, &sum, names, sizeof(names));
	core_text(text, "it waited %llu ms: %sitself %llu ms, %s %llu ms%s", MSEC(sum.waited),
		  names, MSEC(sum.itself), limited ? "its limit" : "the host", MSEC(sum.rest),
		  over);
	if (sum.others >= sum.itself && sum.others >= sum.rest)
		return is_over ? EBB_CAUSE_OVERBOOKED : EBB_CAUSE_OTHERS;
	if (sum.itself >= sum.rest)
		return EBB_CAUSE_ITSELF;
	return limited ? EBB_CAUSE_LIMIT : EBB_CAUSE_HOST;
}
