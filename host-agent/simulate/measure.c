/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See measure.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "simulate/measure.h"

int sim_measure_init(struct sim_measure *m, struct sim_result *result,
		     const struct sim_trace *trace, uint32_t num_slots)
{
	*m = (struct sim_measure){
		.result = result, .length = trace->length, .num_slots = num_slots,
		.num_vms = trace->num_vms,
		.vms = calloc(trace->num_vms, sizeof(*m->vms)),
	};
	result->vms = calloc(trace->num_vms, sizeof(*result->vms));
	result->slots = calloc(num_slots, sizeof(*result->slots));
	if (!m->vms || !result->vms || !result->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < trace->num_vms; i++) {
		const struct ebb_sla *sla = &trace->vms[i].sla;
		struct sim_vm_now *vm = &m->vms[i];

		vm->class = sla->class;
		for (uint16_t g = 0; g < sla->num_nodes; g++) {
			vm->nodes[g].host_node = sla->nodes[g].host_node;
			vm->nodes[g].since = calloc(sla->nodes[g].max + 1u, sizeof(usec_t));
			vm->num_nodes = g + 1;
			if (!vm->nodes[g].since)
				return -ENOMEM;
		}
	}
	return 0;
}

void sim_measure_finish(struct sim_measure *m)
{
	const struct sim_vm_now *vm;

	for (vm = m->vms; vm && vm < m->vms + m->num_vms; vm++)
		for (uint16_t g = 0; g < vm->num_nodes; g++)
			free(vm->nodes[g].since);
	free(m->vms);
	m->vms = NULL;
}

/* Core-seconds of the time between, all of it in one slot. */
static void pass_within(struct sim_measure *m, usec_t until, uint32_t slot)
{
	const double seconds = (double)(until - m->now) / (double)EBB_USEC_PER_SEC;
	struct sim_slot *s = &m->result->slots[slot];

	for (int c = 0; c < EBB_CLASS_MAX; c++)
		s->by_class[c] += m->by_class[c] * seconds;
	for (int h = 0; h < EBB_MAX_NODES; h++) {
		const uint32_t idle = m->capacity[h] > m->held[h] ? m->capacity[h] - m->held[h] : 0;
		const uint32_t wasted = idle < m->missing[h] ? idle : m->missing[h];

		s->missed += m->missing[h] * seconds;
		s->wasted += wasted * seconds;
		m->result->wasted_s += wasted * seconds;
	}
	m->now = until;
}

void sim_measure_pass(struct sim_measure *m, usec_t now)
{
	while (m->now < now) {
		const uint32_t slot = (uint32_t)(m->now * m->num_slots / m->length);
		/* The first microsecond of the next one. */
		const usec_t end = (m->length * (slot + 1) + m->num_slots - 1) / m->num_slots;

		if (slot >= m->num_slots)
			m->now = now;
		else
			pass_within(m, now < end ? now : end, slot);
	}
}

/* The sums of the VM, before anything of it changes. */
static void count_vm(struct sim_measure *m, uint32_t i)
{
	struct sim_vm_result *r = &m->result->vms[i];
	struct sim_vm_now *vm = &m->vms[i];
	const double seconds = (double)(m->now - vm->counted_at) / (double)EBB_USEC_PER_SEC;

	vm->counted_at = m->now;
	r->run_s += vm->is_running ? seconds : 0;
	for (uint16_t g = 0; g < vm->num_nodes; g++) {
		r->held_s += vm->nodes[g].held * seconds;
		r->wanted_s += vm->nodes[g].wanted * seconds;
		r->missed_s += vm->nodes[g].num_missing * seconds;
	}
}

static int note_wait(struct sim_result *r, usec_t waited)
{
	if (r->num_waits == r->max_waits) {
		const size_t max = r->max_waits ? 2 * r->max_waits : 1024;
		double *waits = reallocarray(r->waits_ms, max, sizeof(*waits));

		if (!waits)
			return -ENOMEM;
		r->waits_ms = waits;
		r->max_waits = max;
	}
	r->waits_ms[r->num_waits++] = (double)waited / (double)EBB_USEC_PER_MSEC;
	return 0;
}

int sim_measure_node(struct sim_measure *m, uint32_t vm, uint16_t g, uint16_t held,
		     uint16_t wanted)
{
	struct sim_node_now *n = &m->vms[vm].nodes[g];
	const uint32_t missing = wanted > held ? wanted - held : 0;
	uint32_t came = held > n->held ? held - n->held : 0;
	int rc = 0;

	if (held == n->held && wanted == n->wanted)
		return 0;
	count_vm(m, vm);
	m->held[n->host_node] += held - n->held;
	m->by_class[m->vms[vm].class] += held - n->held;
	m->missing[n->host_node] += missing - n->num_missing;
	n->held = held;
	n->wanted = wanted;
	/* New CPUs went to the requests that waited longest; the newest requests gave up. */
	if (came > n->num_missing)
		came = n->num_missing;
	for (uint32_t i = 0; i < came && rc == 0; i++)
		rc = note_wait(m->result, m->now - n->since[i]);
	n->num_missing -= came;
	memmove(n->since, n->since + came, n->num_missing * sizeof(n->since[0]));
	while (n->num_missing < missing)
		n->since[n->num_missing++] = m->now;
	n->num_missing = missing;
	return rc;
}

void sim_measure_running(struct sim_measure *m, uint32_t vm, bool is_running)
{
	count_vm(m, vm);
	m->vms[vm].is_running = is_running;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

void sim_measure_end(struct sim_measure *m)
{
	for (uint32_t i = 0; i < m->num_vms; i++) {
		count_vm(m, i);
		for (uint16_t g = 0; g < m->vms[i].num_nodes; g++)
			m->result->num_unmet += m->vms[i].nodes[g].num_missing;
	}
	if (m->result->num_waits)
		qsort(m->result->waits_ms, m->result->num_waits, sizeof(double), compare);
}

double sim_wait_percentile(const struct sim_result *r, unsigned percent)
{
	const size_t rank = (r->num_waits * percent + 99) / 100;

	return r->num_waits ? r->waits_ms[rank ? rank - 1 : 0] : 0;
}

void sim_result_finish(struct sim_result *r)
{
	free(r->vms);
	free(r->slots);
	free(r->waits_ms);
	memset(r, 0, sizeof(*r));
}
