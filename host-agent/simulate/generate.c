/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Made-up traces: databases that come, work in bursts, and go. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/sla.h"
#include "simulate/simulate.h"
#include "util/random.h"

#define BUSY_MEAN_S	15.0
#define QUIET_MEAN_S	20.0

struct maker {
	const struct sim_plan *plan;
	const struct ebb_host *host;
	struct sim_trace *trace;
	uint16_t threads_of_node;
	uint64_t chance;
	int rc;
};

static uint32_t below(struct maker *m, uint32_t n)
{
	return (uint32_t)(ebb_random(&m->chance) % n);
}

/* Microseconds, exponentially distributed. */
static usec_t wait_of(struct maker *m, double mean_s)
{
	const double u = ((double)(ebb_random(&m->chance) >> 11) + 1) / 9007199254740993.0;

	return (usec_t)(-log(u) * mean_s * (double)EBB_USEC_PER_SEC) + 1;
}

/* Every third is confined to one socket; the others can grow on all. */
static void make_sla(struct maker *m, struct ebb_sla *sla)
{
	static const uint16_t priorities[] = { 50, 100, 100, 200 };
	static const uint16_t sizes[] = { 2, 4, 8, 16, 36 };
	const uint16_t nodes = m->host->num_nodes, home = (uint16_t)below(m, nodes);
	const bool is_confined = below(m, 3) == 0;
	const uint16_t size = sizes[below(m, 5)];
	const bool is_spot = below(m, 100) < m->plan->spot_percent;

	ebb_sla_default(sla);
	sla->class = is_spot ? EBB_CLASS_SPOT : EBB_CLASS_RESERVED;
	sla->priority = priorities[below(m, 4)];
	sla->weight <<= below(m, 2);
	sla->num_nodes = is_confined ? 1 : nodes;
	for (uint16_t g = 0; g < sla->num_nodes; g++) {
		struct ebb_sla_node *n = &sla->nodes[g];
		uint16_t max = is_confined ? size : (uint16_t)((size + nodes - 1) / nodes);

		/* As many VMs boot on each socket; without one that it boots on there is none. */
		n->host_node = (uint16_t)((home + g) % nodes);
		n->startup = g == 0;
		max = max < m->threads_of_node ? max : m->threads_of_node;
		n->max = max;
		n->reserved = is_spot ? n->startup : (uint16_t)((max + 1) / 2);
		if (n->reserved < n->startup)
			n->reserved = n->startup;
	}
}

static void add(struct maker *m, usec_t at, enum sim_event_type type, uint32_t vm, uint16_t node,
		uint16_t cpus)
{
	const struct sim_event e = {
		.at = at, .type = type, .vm = vm, .node = node, .cpus = cpus,
	};

	if (m->rc == 0)
		m->rc = sim_trace_add(m->trace, &e);
}

/* So many CPUs of all that the VM may have, on all its nodes alike. */
static void want(struct maker *m, usec_t at, uint32_t vm, uint32_t permille)
{
	const struct ebb_sla *sla = &m->trace->vms[vm].sla;

	for (uint16_t g = 0; g < sla->num_nodes; g++) {
		const struct ebb_sla_node *n = &sla->nodes[g];
		const uint32_t cpus = (n->max * permille + 500) / 1000;

		add(m, at, SIM_WANT, vm, g,
		    (uint16_t)(cpus < n->startup ? n->startup : cpus));
	}
}

static void make_vm(struct maker *m, uint32_t i)
{
	const usec_t end = m->trace->length;
	struct sim_vm *vm = &m->trace->vms[i];
	usec_t at = ebb_random(&m->chance) % end;
	const usec_t leaves = at + wait_of(m, m->plan->seconds / 3.0);

	snprintf(vm->name, sizeof(vm->name), "vm%u", i + 1);
	make_sla(m, &vm->sla);
	add(m, at, SIM_START, i, 0, 0);
	want(m, at, i, 0);
	for (at += wait_of(m, QUIET_MEAN_S / 4); at < leaves && at < end && m->rc == 0;) {
		want(m, at, i, 250 * (1 + below(m, 4)));
		at += wait_of(m, BUSY_MEAN_S);
		if (at >= leaves || at >= end)
			break;
		want(m, at, i, 0);
		at += wait_of(m, QUIET_MEAN_S);
	}
	if (leaves < end)
		add(m, leaves, SIM_STOP, i, 0, 0);
}

int sim_trace_generate(const struct sim_plan *plan, const struct ebb_host *host,
		       struct sim_trace *ret)
{
	struct sim_trace t = {
		.length = plan->seconds * EBB_USEC_PER_SEC, .num_vms = plan->num_vms,
		.vms = calloc(plan->num_vms, sizeof(*t.vms)),
	};
	struct maker m = { .plan = plan, .host = host, .trace = &t, .chance = plan->seed };

	for (uint16_t i = 0; i < host->num_threads; i++)
		m.threads_of_node += host->threads[i].node == 0;
	if (!t.vms)
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->num_vms && m.rc == 0; i++)
		make_vm(&m, i);
	if (m.rc == 0)
		m.rc = sim_trace_sort(&t);
	if (m.rc < 0) {
		sim_trace_finish(&t);
		return m.rc;
	}
	*ret = t;
	return 0;
}
