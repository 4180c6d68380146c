// SPDX-License-Identifier: GPL-2.0-or-later
/* See explain.h. */
#include <string.h>

#include "core/explain.h"
#include "core/internal.h"

const char *ebb_wait_name(enum ebb_wait wait)
{
	static const char *const names[EBB_WAIT_MAX] = {
		[EBB_WAIT_NOTHING] = "nothing",	  [EBB_WAIT_START] = "start",
		[EBB_WAIT_SLA] = "sla",		  [EBB_WAIT_LINK] = "link",
		[EBB_WAIT_DRIVER] = "driver",	  [EBB_WAIT_FLOOR] = "floor",
		[EBB_WAIT_CORES] = "cores",	  [EBB_WAIT_GUEST_ADD] = "guest-add",
		[EBB_WAIT_GUEST_REMOVE] = "guest-remove", [EBB_WAIT_HOST] = "host",
		[EBB_WAIT_MEMORY] = "memory",	  [EBB_WAIT_GUEST_MEM_ADD] = "guest-mem-add",
		[EBB_WAIT_GUEST_MEM_RELEASE] = "guest-mem-release",
	};

	return (unsigned)wait < EBB_WAIT_MAX ? names[wait] : "?";
}

/* The next line, and the summary if it is the first. */
static char *line(struct ebb_explain *e, enum ebb_wait wait, uint16_t node, uint16_t cpus,
		  usec_t until)
{
	if (e->num_lines == 0) {
		e->wait = wait;
		e->node = node;
		e->cpus = cpus;
	}
	e->until = core_sooner(e->until, until);
	if (e->num_lines == EBB_EXPLAIN_LINES)
		return e->too_much;
	return e->lines[e->num_lines++];
}

char *core_explain_more(struct ebb_explain *e)
{
	return line(e, EBB_WAIT_NOTHING, EBB_NODE_ANY, 0, EBB_TIME_NEVER);
}

/* The same, about memory. */
static char *mem_line(struct ebb_explain *e, enum ebb_wait wait, uint16_t node, uint32_t blocks,
		      usec_t until)
{
	if (e->num_lines == 0)
		e->bytes = blocks * EBB_BLOCK_BYTES;
	return line(e, wait, node, 0, until);
}

static unsigned mib(uint32_t blocks)
{
	return blocks * EBB_BLOCK_MIB;
}

static double seconds(usec_t from, usec_t to)
{
	return to > from ? (double)(to - from) / EBB_USEC_PER_SEC : 0.0;
}

/* States in which nothing else needs to be said. */
static bool explain_unmanaged(const struct ebb_state *s, const struct ebb_vm *vm,
			      struct ebb_explain *e)
{
	if (!vm->has_sla || (vm->is_running && !vm->is_admitted && s->env.is_loaded)) {
		core_text(line(e, EBB_WAIT_SLA, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "not managed: %.170s", vm->error);
		return true;
	}
	if (!vm->is_running) {
		core_text(line(e, EBB_WAIT_START, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "the domain does not run; it holds nothing");
		return true;
	}
	if (vm->is_incoming) {
		core_text(line(e, EBB_WAIT_START, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "it is on its way from another host; its startup set and minimum are "
			  "kept for it, and nothing is done to it before it is here");
		return true;
	}
	if (vm->is_outgoing) {
		core_text(line(e, EBB_WAIT_START, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "it stands still on its way to another host; what it has here is free "
			  "when it has arrived there");
		return true;
	}
	if (!s->env.is_loaded) {
		core_text(line(e, EBB_WAIT_HOST, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "the agent is still reading what runs; nothing is decided yet");
		return true;
	}
	return false;
}

static void explain_link(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
			 struct ebb_explain *e)
{
	const usec_t until = core_vm_driven_until(s, vm);

	if (!vm->link_up && vm->work->counts_as_driven)
		core_text(line(e, EBB_WAIT_LINK, EBB_NODE_ANY, 0, until),
			  "its device has not been connected for %.1f s; in %.1f s it counts with "
			  "its startup set only and hotplugged CPUs go home",
			  seconds(vm->link_at, now), seconds(now, until));
	else if (!vm->link_up)
		core_text(line(e, EBB_WAIT_LINK, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "its device has not been connected for %.1f s; it counts with its "
			  "startup set only until it is",
			  seconds(vm->link_at, now));
	else if (!vm->has_driver)
		core_text(line(e, EBB_WAIT_DRIVER, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "no driver runs in the guest; it counts with its startup set only until "
			  "one does");
}

static void explain_quorum(const struct ebb_state *s, struct ebb_explain *e)
{
	if (!s->env.has_quorum)
		core_text(line(e, EBB_WAIT_HOST, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "the host has no quorum in its cluster: it keeps what it has and gets "
			  "nothing more until the host has quorum again");
}

static void explain_promise(const struct ebb_vm *vm, struct ebb_explain *e)
{
	const struct ebb_vm_reserve *r = &vm->reserve;

	if (r->is_refused)
		core_text(line(e, EBB_WAIT_NOTHING, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "its reserve-percent %u is not promised: node %u of the host has %u per "
			  "cent left to promise", vm->sla.reserve_percent, r->short_node,
			  r->short_percent);
	/* The one before it may hold. */
	if (r->promised_percent && r->is_missing)
		core_text(line(e, EBB_WAIT_NOTHING, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "this host can not keep its promise of %u per cent of a core",
			  r->promised_percent);
	else if (r->promised_percent)
		core_text(line(e, EBB_WAIT_NOTHING, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "%u per cent of a core are promised, %u.%u are kept",
			  r->promised_percent, r->keep_permille / 10, r->keep_permille % 10);
}

static void explain_cache(const struct ebb_vm *vm, struct ebb_explain *e)
{
	const struct ebb_vm_floor *f = &vm->floor;
	uint64_t keep = 0;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		keep += f->keep[g];
	if (f->is_refused)
		core_text(line(e, EBB_WAIT_NOTHING, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "its reserve-mem %u is not promised: node %u of the host has %u MiB %s",
			  vm->sla.reserve_mem_mib, f->short_node, f->short_mib,
			  f->promised_mib > 0 ? "for it" : "left to promise");
	/* The one before it may hold. */
	if (f->promised_mib > 0)
		core_text(line(e, EBB_WAIT_NOTHING, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "the hit ratio of a cache of %u MiB is promised; that takes %u MiB "
			  "beyond its minimum, %llu are kept for it", f->promised_mib,
			  f->control.want * EBB_BLOCK_MIB,
			  (unsigned long long)keep * EBB_BLOCK_MIB);
}

/* Its cores, hot ones counted, and who would be in its way: the others on them. */
static void explain_shared(const struct ebb_state *s, const struct ebb_vm *vm,
			   struct ebb_explain *e)
{
	uint32_t use = 0, hot = 0, stuck = 0, alone = 0, count = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_shared_thread t;

		if (!ebb_state_shared_thread(s, vm->vcpu_shares[i].thread, &t))
			continue;
		count++;
		use += vm->vcpu_shares[i].use;
		hot += t.is_hot;
		stuck += t.is_stuck;
		alone += t.num_active < 2;
	}
	if (count == 0)
		return;
	core_text(line(e, EBB_WAIT_NOTHING, EBB_NODE_ANY, (uint16_t)count, EBB_TIME_NEVER),
		  "%u vCPUs on shared cores use %u%% of a core each; %u are with no other busy VM, "
		  "%u on hot cores%s; throttle %s", count, use / count / 10, alone, hot,
		  stuck > 0 ? ", where no change of places helps" : "",
		  vm->share.is_missing ? "not possible here" :
		  vm->share.throttled ? "on" : "off");
}

static void explain_floor(const struct ebb_vm *vm, struct ebb_explain *e)
{
	if (vm->sla.is_shared)
		return;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		uint16_t waiting = 0;

		for (uint16_t i = 0; i < vm->num_vcpus; i++)
			waiting += vm->vcpus[i].node == g && vm->vcpus[i].is_startup &&
				   vm->vcpus[i].thread == EBB_THREAD_NONE;
		if (waiting > 0)
			core_text(line(e, EBB_WAIT_FLOOR, g, waiting, EBB_TIME_NEVER),
				  "node %u: %u CPUs of the startup set share cores until other VMs "
				  "have given theirs back on host node %u",
				  g, waiting, vm->sla.nodes[g].host_node);
	}
}

static void explain_demand(const struct ebb_vm *vm, usec_t now, struct ebb_explain *e)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_node *n = &vm->nodes[g];

		if (n->num_due == 0)
			continue;
		core_text(line(e, EBB_WAIT_GUEST_REMOVE, g, n->num_due, n->due[0]),
			  "node %u: the guest has to give back %u of %u CPUs (limit %u); the first "
			  "goes home by force in %.2f s",
			  g, n->num_due, n->held, n->limit, seconds(now, n->due[0]));
	}
	if (vm->cpus.silent_since)
		core_text(line(e, EBB_WAIT_GUEST_REMOVE, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "the guest let a deadline pass %.1f s ago, and asked for nothing since",
			  seconds(vm->cpus.silent_since, now));
}

static void explain_requests(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
			     struct ebb_explain *e)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++) {
		const struct ebb_request *q = &vm->requests[i];
		const usec_t until = q->received_at + s->env.cfg.request_usec;

		if (q->phase == EBB_REQUEST_FREE)
			continue;
		core_text(line(e, EBB_WAIT_HOST, q->node, q->num_vcpus, until),
			  "%s of %u CPUs is under way for %.2f s (%s); it is answered in %.1f s at "
			  "the latest",
			  q->phase == EBB_REQUEST_ADD ? "adding" : "removal", q->asked,
			  seconds(q->received_at, now),
			  q->libvirt_at ? "placing" : "waiting for libvirt", seconds(now, until));
	}
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		if (v->life_failures > 0 && cpu_is_unowned(v))
			core_text(line(e, EBB_WAIT_HOST, v->node, 1, v->life_retry_at),
				  "vCPU %u could not be unplugged %u times; next try in %.1f s", i,
				  v->life_failures, seconds(now, v->life_retry_at));
	}
}

/* VMs that hold more on a host node than their targets. */
static void explain_holders(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t host_node,
			    usec_t now, struct ebb_explain *e)
{
	for (size_t i = 0; i < s->env.num_active; i++) {
		const struct ebb_vm *other = s->active[i];

		for (uint16_t g = 0; other != vm && g < other->sla.num_nodes; g++) {
			const struct ebb_vm_node *n = &other->nodes[g];

			if (other->sla.nodes[g].host_node != host_node || n->used <= n->limit)
				continue;
			if (n->num_due > 0)
				core_text(line(e, EBB_WAIT_CORES, EBB_NODE_ANY, n->num_due,
					       n->due[0]),
					  "  %s uses %u, limit %u; its CPUs go home from %.2f s on",
					  core_label(other).text, n->used, n->limit,
					  seconds(now, n->due[0]));
			else
				core_text(line(e, EBB_WAIT_CORES, EBB_NODE_ANY,
					       n->used - n->limit, EBB_TIME_NEVER),
					  "  %s uses %u, limit %u; its CPUs are on their way out",
					  core_label(other).text, n->used, n->limit);
		}
	}
}

static void explain_growth(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
			   struct ebb_explain *e)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_node *n = &vm->nodes[g];
		const uint16_t host_node = vm->sla.nodes[g].host_node;

		if (n->limit > n->held)
			core_text(line(e, EBB_WAIT_GUEST_ADD, g, n->limit - n->held,
				       EBB_TIME_NEVER),
				  "node %u: %u more CPUs are on offer (%u held, limit %u); the "
				  "guest has not asked for them",
				  g, n->limit - n->held, n->held, n->limit);
		if (n->target > n->limit) {
			core_text(line(e, EBB_WAIT_CORES, g, n->target - n->limit, EBB_TIME_NEVER),
				  "node %u: policy %s wants it to have %u, %u can be promised now; "
				  "waiting for cores of host node %u",
				  g, s->env.policy->name, n->target, n->limit, host_node);
			explain_holders(s, vm, host_node, now, e);
		}
	}
}

/* ---- memory -------------------------------------------------------------- */

static void explain_mem_demand(const struct ebb_vm *vm, usec_t now, struct ebb_explain *e)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_pool *p = &vm->pools[g];

		if (p->num_due > 0)
			core_text(mem_line(e, EBB_WAIT_GUEST_MEM_RELEASE, g, p->held - p->limit,
					   p->due[0].at),
				  "node %u: the guest has to give back %u of %u MiB (limit %u); "
				  "memory above %u is revoked in %.2f s",
				  g, mib(p->held - p->limit), mib(p->held), mib(p->limit),
				  mib(p->due[0].limit), seconds(now, p->due[0].at));
		if (p->unconfirmed > 0)
			core_text(mem_line(e, EBB_WAIT_GUEST_MEM_RELEASE, g, p->unconfirmed,
					   EBB_TIME_NEVER),
				  "node %u: the guest has not confirmed that it uses %u revoked "
				  "MiB no "
				  "more; it can not take them again before",
				  g, mib(p->unconfirmed));
	}
}

/* VMs that hold more memory of a host node than their targets. */
static void explain_mem_holders(const struct ebb_state *s, const struct ebb_vm *vm,
				uint16_t host_node, usec_t now, struct ebb_explain *e)
{
	for (size_t i = 0; i < s->env.num_active; i++) {
		const struct ebb_vm *other = s->active[i];

		for (uint16_t g = 0; other != vm && g < other->sla.num_nodes; g++) {
			const struct ebb_vm_pool *p = &other->pools[g];
			const uint32_t reach = core_pool_reach(p);

			if (other->sla.nodes[g].host_node != host_node || reach <= p->limit)
				continue;
			if (p->num_due > 0)
				core_text(mem_line(e, EBB_WAIT_MEMORY, EBB_NODE_ANY,
						   p->held - p->limit, p->due[0].at),
					  "  %s holds %u MiB, limit %u; the rest is revoked from "
					  "%.2f s "
					  "on", core_label(other).text, mib(p->held), mib(p->limit),
					  seconds(now, p->due[0].at));
			else
				core_text(mem_line(e, EBB_WAIT_MEMORY, EBB_NODE_ANY,
						   reach - p->limit, EBB_TIME_NEVER),
					  "  %s may take up to %u MiB, limit %u, until its "
					  "device has "
					  "confirmed the limit", core_label(other).text, mib(reach),
					  mib(p->limit));
		}
	}
}

static void explain_mem_growth(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
			       struct ebb_explain *e)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_pool *p = &vm->pools[g];

		if (vm->sla.nodes[g].mem_max > 0 && vm->work->has_hello && !p->is_there)
			core_text(mem_line(e, EBB_WAIT_SLA, g, 0, EBB_TIME_NEVER),
				  "node %u: its device has no pool that fits the domain, so it "
				  "gets no "
				  "memory there (property pools of virtio-ebb)", g);
		if (p->told > p->held)
			core_text(mem_line(e, EBB_WAIT_GUEST_MEM_ADD, g, p->told - p->held,
					   EBB_TIME_NEVER),
				  "node %u: %u MiB more are on offer (%u held, limit %u); the "
				  "guest has "
				  "not taken them",
				  g, mib(p->told - p->held), mib(p->held), mib(p->told));
		else if (vm->link_up && vm->has_driver && p->limit > p->told)
			core_text(mem_line(e, EBB_WAIT_HOST, g, p->limit - p->told, EBB_TIME_NEVER),
				  "node %u: %u MiB more are offered as soon as %s", g,
				  mib(p->limit - p->told),
				  p->told == p->requested ? "its memory cgroup allows them" :
				  "its device has confirmed its last limit");
		if (p->target > p->limit) {
			core_text(mem_line(e, EBB_WAIT_MEMORY, g, p->target - p->limit,
					   EBB_TIME_NEVER),
				  "node %u: policy %s wants it to have %u MiB, %u can be "
				  "promised now; "
				  "waiting for memory of host node %u",
				  g, s->env.policy->name, mib(p->target), mib(p->limit),
				  vm->sla.nodes[g].host_node);
			explain_mem_holders(s, vm, vm->sla.nodes[g].host_node, now, e);
		}
	}
}

void ebb_explain_vm(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
		    struct ebb_explain *ret_explain)
{
	struct ebb_explain *e = ret_explain;
	char verdict[EBB_TEXT_SIZE];
	struct ebb_vm_totals t;

	memset(e, 0, sizeof(*e));
	e->node = EBB_NODE_ANY;
	e->until = EBB_TIME_NEVER;
	if (explain_unmanaged(s, vm, e))
		return;
	ebb_vm_totals(vm, &t);
	explain_link(s, vm, now, e);
	explain_quorum(s, e);
	explain_demand(vm, now, e);
	explain_mem_demand(vm, now, e);
	explain_floor(vm, e);
	explain_requests(s, vm, now, e);
	explain_growth(s, vm, now, e);
	explain_mem_growth(s, vm, now, e);
	explain_promise(vm, e);
	explain_cache(vm, e);
	io_explain(&s->io, vm, e);
	explain_shared(s, vm, e);
	if (vm->move.is_on)
		core_text(line(e, EBB_WAIT_NOTHING, EBB_NODE_ANY, 0, EBB_TIME_NEVER), "%s",
			  vm->move.text);
	for (int i = 0; i < EBB_VERDICT_MAX; i++)
		if (ebb_vm_verdict(vm, now, i, verdict))
			core_text(line(e, EBB_WAIT_NOTHING, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
				  "the guest %.150s", verdict);
	core_text(line(e, EBB_WAIT_NOTHING, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
		  "holds %u CPUs, limit %u, goal %u of policy %s (startup %u, ceiling %u, "
		  "weight %u)",
		  t.held, t.limit, t.target, s->env.policy->name, t.floor, t.ceiling,
		  vm->sla.weight);
	if (ebb_sla_has_mem(&vm->sla) || t.mem_held > 0)
		core_text(line(e, EBB_WAIT_NOTHING, EBB_NODE_ANY, 0, EBB_TIME_NEVER),
			  "holds %llu MiB of pool memory, limit %llu, goal %llu (min %llu, max "
			  "%llu, "
			  "weight %u)",
			  (unsigned long long)(t.mem_held >> 20),
			  (unsigned long long)(t.mem_limit >> 20),
			  (unsigned long long)(t.mem_target >> 20),
			  (unsigned long long)(t.mem_floor >> 20),
			  (unsigned long long)(t.mem_ceiling >> 20), vm->sla.mem_weight);
	broker_explain(&s->broker, vm, now, e);
}
