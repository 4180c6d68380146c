// SPDX-License-Identifier: GPL-2.0-or-later
/* The shadow model: what must be true, by the numbers of core/arbiter.h. */
#include <string.h>

#include "tests/sim/world.h"

/* Where threads are given out, cores are counted. */
static bool counts_cores(const struct world *w, uint16_t node)
{
	return ebb_state_node_uses_threads(w->state, node);
}

static uint32_t capacity(const struct world *w, uint16_t node)
{
	const bool threads = w->cfg.count_threads && !counts_cores(w, node);
	uint32_t sum = 0;

	for (uint16_t c = 0; c < w->host.num_cores; c++)
		if (w->host.cores[c].node == node && !w->host.cores[c].is_shared)
			sum += threads ? w->host.cores[c].num_threads : 1;
	return sum;
}

/* All cores of these hosts have the same number of threads. */
static uint32_t to_cores(const struct world *w, uint32_t cpus)
{
	const uint32_t smt = w->host.cores[0].num_threads;

	return (cpus + smt - 1) / smt;
}

/* Cores that a guest node has threads of, or will have for its startup set. */
static uint32_t used_cores(const struct world *w, const struct ebb_vm *vm, uint16_t g)
{
	uint32_t cores = 0, waiting = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		waiting += vm->vcpus[i].node == g && vm->vcpus[i].is_startup &&
			   vm->vcpus[i].thread == EBB_THREAD_NONE;
	for (uint16_t c = 0; c < w->host.num_cores; c++)
		for (uint16_t i = 0; i < vm->num_vcpus; i++) {
			const uint16_t t = vm->vcpus[i].thread, left = vm->vcpus[i].leaves;

			if (vm->vcpus[i].node == g && t != EBB_THREAD_NONE &&
			    (w->host.threads[t].core == c ||
			     (left != EBB_THREAD_NONE && w->host.threads[left].core == c))) {
				cores++;
				break;
			}
		}
	return cores + to_cores(w, waiting);
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

/* Those of them whose core is free soon: on their way home, or forced within a moment. */
static uint32_t leaving(const struct world *w, const struct ebb_vm *vm, uint16_t g)
{
	uint32_t sum = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		sum += v->node == g && !v->is_startup && v->thread != EBB_THREAD_NONE &&
		       v->place_failures == 0 &&
		       (v->force != EBB_FORCE_NONE || (v->is_lent && v->request < 0) ||
			(v->is_lent && vm->requests[v->request].phase == EBB_REQUEST_LEND));
	}
	for (uint16_t i = 0; i < vm->nodes[g].num_due; i++)
		sum += vm->nodes[g].due[i] <= w->now + 10 * EBB_USEC_PER_MSEC;
	return sum;
}

static bool is_shared(const struct world *w, uint16_t thread)
{
	return w->host.cores[w->host.threads[thread].core].is_shared;
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
				world_fail(w, "I2: thread %u has two owners", t);
			if (ebb_state_thread_owner(w->state, t, &vcpu) != vm || vcpu != k)
				world_fail(w, "I2: vm%u vCPU %u and thread %u do not agree", i, k,
					   t);
			if (!vm->is_running)
				world_fail(w, "vm%u does not run and owns thread %u", i, t);
			if (is_shared(w, t) || vm->sla.is_shared)
				world_fail(w, "vm%u vCPU %u owns thread %u, which is shared", i, k,
					   t);
			if (w->host.threads[t].node !=
			    w->vms[i].sla.nodes[vm->vcpus[k].node].host_node)
				world_fail(w, "vm%u vCPU %u is on the wrong node", i, k);
		}
	}
	for (unsigned i = 0; i < WORLD_VMS; i++) {
		const struct ebb_vm *vm = w->vms[i].is_defined ? world_vm(w, i) : NULL;

		/* A vCPU that moves owns two threads, of one guest node. */
		for (uint16_t k = 0; vm && k < vm->num_vcpus; k++) {
			const uint16_t t = vm->vcpus[k].leaves;
			uint16_t vcpu = 0;

			if (t == EBB_THREAD_NONE)
				continue;
			if (++owners[t] > 1 || vm->vcpus[k].thread == EBB_THREAD_NONE)
				world_fail(w, "I2: vm%u vCPU %u leaves thread %u, %u owners", i, k,
					   t, owners[t]);
			if (ebb_state_thread_owner(w->state, t, &vcpu) != vm || vcpu != k)
				world_fail(w, "I2: vm%u vCPU %u and thread %u, which it leaves, do "
					   "not agree", i, k, t);
		}
	}
	for (uint16_t t = 0; t < w->host.num_threads; t++)
		if (!owners[t] && ebb_state_thread_owner(w->state, t, NULL))
			world_fail(w, "I2: thread %u is lost", t);
}

/* I2: cores belong to one VM each. */
static void check_cores(struct world *w)
{
	for (uint16_t c = 0; !w->cfg.count_threads && c < w->host.num_cores; c++) {
		const struct ebb_core *core = &w->host.cores[c];
		const struct ebb_vm *first = NULL;

		for (uint16_t k = 0; k < core->num_threads; k++) {
			const struct ebb_vm *vm =
				ebb_state_thread_owner(w->state, core->threads[k], NULL);

			if (vm && first && vm != first)
				world_fail(w, "I2: core %u has threads of %s and %s", c,
					   first->name, vm->name);
			first = first ? first : vm;
		}
	}
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
				const bool cores = counts_cores(w, sla->host_node);
				const uint32_t u = cores ? used_cores(w, vm, g) :
						   used(vm, g) - leaving(w, vm, g);
				uint32_t limit = vm->nodes[g].limit;

				if (sla->host_node != h || !vm->is_admitted)
					continue;
				if (w->vms[i].sla.is_shared) {
					if (limit != sla->startup)
						world_fail(w, "vm%u node %u shares cores, limit %u",
							   i, g, limit);
					continue;
				}
				if (limit < sla->startup || limit > sla->max)
					world_fail(w, "I4: vm%u node %u limit %u is not in %u to "
						   "%u", i, g, limit, sla->startup, sla->max);
				limit = cores ? to_cores(w, limit) : limit;
				floors += cores ? to_cores(w, sla->startup) : sla->startup;
				in_use += u;
				promised += u > limit ? u : limit;
				exceeds = exceeds || limit > u;
			}
		}
		if (floors > capacity(w, h))
			world_fail(w, "I1: node %u has floors of %u", h, floors);
		if (promised > capacity(w, h) && (in_use <= capacity(w, h) || exceeds))
			world_fail(w, "I3: node %u of %u cores has %u promised, %u in use", h,
				   capacity(w, h), promised, in_use);
	}
}

/* ---- memory ---------------------------------------------------------------- */

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* What the core counts as used: M2. */
static uint32_t reach(const struct ebb_vm_pool *p)
{
	return larger(larger(p->held, p->requested), larger(p->promised, p->mirroring));
}

/* What the guest has, or could plug this instant without asking anybody. */
static uint32_t truly_used(const struct world *w, unsigned i, uint16_t g)
{
	struct ebb_fake_pool p;

	ebb_fake_pool(w->fake, w->vms[i].uuid, g, &p);
	return larger(p.held, p.requested);
}

/* M1, M2, M4, by what the core says and by what is true in the world. */
/* M1 of one pool. */
static void check_floor(struct world *w, unsigned i, uint16_t g, const struct ebb_vm *vm)
{
	const uint32_t minimum = w->vms[i].sla.nodes[g].mem_min, keep = vm->floor.keep[g];
	const struct ebb_vm_pool *p = &vm->pools[g];

	if (vm->is_admitted && p->is_there && p->target < minimum + keep)
		world_fail(w, "M1: vm%u node %u goal %u, floor %u and %u", i, g, p->target,
			   minimum, keep);
	if (keep > vm->floor.promised[g])
		world_fail(w, "M1: vm%u node %u keeps %u, %u are promised", i, g, keep,
			   vm->floor.promised[g]);
}

static void check_pools(struct world *w)
{
	for (uint16_t h = 0; h < w->host.num_nodes; h++) {
		const uint64_t has = w->host.pool_blocks[h];
		uint64_t promised = 0, in_use = 0, floors = 0, truth = 0;
		bool exceeds = false;

		for (unsigned i = 0; i < WORLD_VMS; i++) {
			const struct ebb_vm *vm = w->vms[i].is_running ? world_vm(w, i) : NULL;

			for (uint16_t g = 0; vm && g < w->vms[i].sla.num_nodes; g++) {
				const struct ebb_sla_node *sla = &w->vms[i].sla.nodes[g];
				const struct ebb_vm_pool *p = &vm->pools[g];

				if (sla->host_node != h)
					continue;
				if (p->limit > sla->mem_max || p->target > sla->mem_max)
					world_fail(w, "M4: vm%u node %u limit %u, goal %u, at most "
						   "%u", i, g, p->limit, p->target, sla->mem_max);
				floors += vm->is_admitted ? sla->mem_min + vm->floor.keep[g] : 0;
				check_floor(w, i, g, vm);
				in_use += reach(p);
				promised += larger(reach(p), p->limit);
				exceeds = exceeds || p->limit > reach(p);
				truth += truly_used(w, i, g);
			}
		}
		if (floors > has)
			world_fail(w, "M1: node %u has floors of %llu", h,
				   (unsigned long long)floors);
		if (promised > has && (in_use <= has || exceeds))
			world_fail(w, "M2: node %u of %llu blocks has %llu promised, %llu in use",
				   h, (unsigned long long)has, (unsigned long long)promised,
				   (unsigned long long)in_use);
		if (truth > has)
			world_fail(w, "M2: the guests of node %u of %llu blocks can have %llu", h,
				   (unsigned long long)has, (unsigned long long)truth);
	}
}

static uint64_t cap_needed(const struct world *w, unsigned i)
{
	uint64_t bytes = 0;

	for (uint16_t g = 0; g < w->vms[i].sla.num_nodes; g++)
		bytes += EBB_FAKE_BOOT_BYTES + truly_used(w, i, g) * EBB_BLOCK_BYTES;
	return bytes;
}

/* M7, and that demands end. */
static void check_vm_mem(struct world *w, unsigned i, const struct ebb_vm *vm)
{
	struct world_vm *v = &w->vms[i];
	const usec_t deadline = v->sla.mem_deadline_ms * EBB_USEC_PER_MSEC;
	const uint64_t cap = ebb_fake_vm_cap(w->fake, v->uuid);

	if (cap > 0 && cap < cap_needed(w, i))
		world_fail(w, "M7: the memory cgroup of vm%u allows %llu MiB, it can have %llu MiB",
			   i, (unsigned long long)(cap >> 20),
			   (unsigned long long)(cap_needed(w, i) >> 20));
	for (uint16_t g = 0; g < v->sla.num_nodes; g++) {
		const uint32_t limit = vm->pools[g].limit;
		struct ebb_fake_pool p;
		usec_t since;

		if (vm->pools[g].held > limit && vm->pools[g].num_due == 0)
			world_fail(w, "vm%u node %u: %u blocks are demanded without a deadline", i,
				   g, vm->pools[g].held - limit);
		ebb_fake_pool(w->fake, v->uuid, g, &p);
		if (limit < v->mem_limit[g])
			v->mem_lowered_at[g] = w->now;
		v->mem_limit[g] = limit;
		if (p.held <= limit)
			v->mem_excess_since[g] = 0;
		else if (v->mem_excess_since[g] == 0)
			v->mem_excess_since[g] = w->now;
		since = v->mem_excess_since[g] > v->mem_lowered_at[g] ? v->mem_excess_since[g] :
									v->mem_lowered_at[g];
		if (v->mem_excess_since[g] &&
		    w->now > since + deadline + EBB_USEC_PER_SEC &&
		    w->now > v->undisturbed_since + deadline + EBB_USEC_PER_SEC)
			world_fail(w, "vm%u node %u holds %u blocks above limit %u for %llu ms", i,
				   g, p.held, limit, (unsigned long long)((w->now - since) / 1000));
	}
}

/* The CPUs that the guest has with a core behind them, as the device knows it. */
static bool is_held(const struct ebb_fake_vcpu *v)
{
	return v->is_plugged && v->is_granted && !v->is_forced && !v->is_lent;
}

static void check_vcpu(struct world *w, unsigned i, uint16_t k, const struct ebb_fake_vcpu *real)
{
	struct world_vm *v = &w->vms[i];
	const struct ebb_vcpu *known = &world_vm(w, i)->vcpus[k];
	const usec_t overdue_at = v->overdue_at[known->node];

	if (real->is_startup && (!real->is_plugged || real->is_granted || real->is_forced ||
				 known->force != EBB_FORCE_NONE || known->is_granted))
		world_fail(w, "I5: vm%u startup vCPU %u is unplugged, forced or granted", i, k);
	/* I9 */
	if (real->is_lent && real->is_alone && known->request < 0 && known->is_lent &&
	    known->thread == EBB_THREAD_NONE)
		world_fail(w, "vm%u vCPU %u is lent and has thread %u alone", i, k, real->thread);
	/* Nowhere at first; then on a shared core of its node, and others on none. */
	if (real->is_plugged && real->thread != EBB_THREAD_NONE &&
	    (is_shared(w, real->thread) != v->sla.is_shared ||
	     (v->sla.is_shared &&
	      w->host.threads[real->thread].node != v->sla.nodes[real->node].host_node)))
		world_fail(w, "vm%u vCPU %u is on thread %u, and the VM %s cores", i, k,
			   real->thread, v->sla.is_shared ? "shares" : "does not share");
	/* A thread that runs alone is owned: otherwise it could be given away under it. */
	if (real->is_alone && known->thread != real->thread && known->leaves != real->thread &&
	    !known->is_unknown)
		world_fail(w, "I6: vm%u vCPU %u runs alone on thread %u and owns %u", i, k,
			   real->thread, known->thread);
	/*
	 * I8: a core is lost by force only after the deadline of a demand; how
	 * long after depends on how often the host fails to move the thread.
	 */
	if (v->was_held[k] && real->is_forced && real->is_granted &&
	    known->force == EBB_FORCE_DEADLINE &&
	    (!overdue_at || w->now > overdue_at + w->cfg.retry_usec[1]))
		world_fail(w, "I8: vm%u vCPU %u was forced, overdue at %llu, now %llu", i, k,
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
		world_fail(w, "vm%u runs, and the core does not know", i);
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
			world_fail(w, "vm%u node %u holds %u above limit %u for %llu ms", i, g,
				   held[g], limit, (unsigned long long)((w->now - since) / 1000));
	}
	for (uint16_t k = 0; k < vm->num_vcpus; k++) {
		ebb_fake_vcpu(w->fake, v->uuid, k, &real);
		check_vcpu(w, i, k, &real);
	}
	check_vm_mem(w, i, vm);
}

/* Nobody is waited for longer than two seconds. */
static void check_asking(struct world *w)
{
	const struct ebb_broker *b = ebb_state_broker(w->state);

	if (b->is_open && w->now > b->asked_at + 2 * EBB_USEC_PER_SEC)
		world_fail(w, "guests were asked at %llu and are still waited for",
			   (unsigned long long)b->asked_at);
}

void world_check(struct world *w)
{
	if (ebb_fake_violation(w->fake))
		world_fail(w, "violation: %s", ebb_fake_violation(w->fake));
	check_threads(w);
	check_cores(w);
	check_limits(w);
	check_pools(w);
	check_asking(w);
	world_pressure_check(w);
	for (unsigned i = 0; i < WORLD_VMS; i++) {
		const struct world_vm *v = &w->vms[i];

		if (v->is_running) {
			check_vm(w, i);
			world_count(w, i);
		} else if (v->held_usec != v->charged_usec) {
			world_fail(w, "vm%u is charged %llu core-us, it held %llu", i,
				   (unsigned long long)v->charged_usec,
				   (unsigned long long)v->held_usec);
		}
	}
}

static void check_settled_mem(struct world *w, unsigned i, const struct ebb_vm *vm,
			      const struct ebb_action_limits *told)
{
	const uint64_t cap = ebb_fake_vm_cap(w->fake, w->vms[i].uuid);

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_pool *p = &vm->pools[g];
		struct ebb_fake_pool real;

		ebb_fake_pool(w->fake, w->vms[i].uuid, g, &real);
		if (p->limit != p->target || real.held != p->limit || real.requested != p->limit ||
		    real.unconfirmed != 0 || p->held != real.held ||
		    told->nodes[g].mem_limit_bytes != p->limit * EBB_BLOCK_BYTES ||
		    told->nodes[g].mem_deadline_ms != 0)
			world_fail(w, "vm%u node %u: memory goal %u limit %u, held %u, requested "
				   "%u, unconfirmed %u, counted %u, told %llu", i, g, p->target,
				   p->limit, real.held, real.requested, real.unconfirmed, p->held,
				   (unsigned long long)(told->nodes[g].mem_limit_bytes /
							EBB_BLOCK_BYTES));
		if (w->has_no_pools && (p->limit != 0 || real.held != 0))
			world_fail(w, "vm%u node %u has no pool and %u blocks", i, g, p->limit);
	}
	if (ebb_sla_has_mem(&vm->sla) && !w->has_no_cap &&
	    cap != cap_needed(w, i) + WORLD_OVERHEAD_BYTES)
		world_fail(w, "vm%u: the memory cgroup allows %llu MiB, should be %llu", i,
			   (unsigned long long)(cap >> 20),
			   (unsigned long long)((cap_needed(w, i) + WORLD_OVERHEAD_BYTES) >> 20));
}

/* Where a vCPU of the startup set runs, if the VM has a core of its own at all. */
static bool is_home(const struct ebb_vm *vm, uint16_t thread)
{
	bool has_home = false;

	for (uint16_t k = 0; k < vm->num_vcpus; k++) {
		const struct ebb_vcpu *v = &vm->vcpus[k];

		if (!v->is_startup || v->thread == EBB_THREAD_NONE)
			continue;
		if (v->thread == thread)
			return true;
		has_home = true;
	}
	return !has_home;
}

/* All vCPUs that the VM may ever have are there before it needs them. */
static void check_settled_ahead(struct world *w, unsigned i, const struct ebb_vm *vm)
{
	if (!vm->sla.plug_ahead || !vm->can_lend || !vm->is_admitted)
		return;
	for (uint16_t k = 0; k < vm->num_vcpus; k++)
		if (vm->vcpus[k].life == EBB_VCPU_ABSENT && !vm->vcpus[k].is_declined &&
		    !vm->vcpus[k].is_lent)
			world_fail(w, "vm%u vCPU %u is not there, it was to be plugged ahead", i,
				   k);
}

static void check_settled_vm(struct world *w, unsigned i)
{
	const struct ebb_vm *vm = world_vm(w, i);
	struct ebb_action_limits told;

	if (ebb_fake_vm_inflight(w->fake, w->vms[i].uuid) != 0)
		world_fail(w, "vm%u still has requests in flight", i);
	if (ebb_fake_vm_limits(w->fake, w->vms[i].uuid, &told) < 0) {
		world_fail(w, "vm%u was never told its limits", i);
		return;
	}
	check_settled_mem(w, i, vm, &told);
	check_settled_ahead(w, i, vm);
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
				world_fail(w, "vm%u vCPU %u is plugged and nobody's", i, k);
			/* A lent one that went is plugged again when it is needed. */
			if (real.is_granted && !real.is_plugged && !real.is_lent)
				world_fail(w, "vm%u vCPU %u is granted and absent", i, k);
			if (real.is_granted && real.is_forced)
				world_fail(w, "vm%u vCPU %u is still forced", i, k);
			if (real.is_lent != vm->vcpus[k].is_lent)
				world_fail(w, "vm%u vCPU %u is %slent, and the core believes "
					   "otherwise", i, k, real.is_lent ? "" : "not ");
			if (real.is_lent && real.is_plugged &&
			    (vm->vcpus[k].thread != EBB_THREAD_NONE ||
			     !is_home(vm, real.thread)))
				world_fail(w, "vm%u vCPU %u is lent and not at home", i, k);
			if (vm->vcpus[k].leaves != EBB_THREAD_NONE)
				world_fail(w, "vm%u vCPU %u still leaves thread %u", i, k,
					   vm->vcpus[k].leaves);
			if (vm->sla.is_shared && (real.thread == EBB_THREAD_NONE ||
						  real.thread !=
						  vm->vcpu_shares[k].thread))
				world_fail(w, "vm%u vCPU %u is not on its shared core", i, k);
			if (!vm->sla.is_shared &&
			    real.is_plugged && !real.is_lent && vm->is_admitted &&
			    (real.thread == EBB_THREAD_NONE ||
			     real.thread != vm->vcpus[k].thread))
				world_fail(w, "vm%u vCPU %u has no core of its own", i, k);
		}
		if (n->limit != n->target || held != n->limit || n->held != held ||
		    told.nodes[g].limit != n->limit || told.nodes[g].held != held ||
		    told.nodes[g].deadline_ms != 0)
			world_fail(w, "vm%u node %u: goal %u limit %u held %u, counted %u, told %u "
				   "%u", i, g, n->target, n->limit, n->held, held,
				   told.nodes[g].limit, told.nodes[g].held);
	}
}

/* No core keeps more promises than it can, nobody gets more than was promised, and all is told. */
static void check_promises(struct world *w)
{
	uint32_t kept[EBB_MAX_THREADS] = { 0 };

	for (unsigned i = 0; i < WORLD_VMS; i++) {
		const struct ebb_vm *vm = w->vms[i].is_running ? world_vm(w, i) : NULL;
		uint32_t sum = 0;

		for (uint16_t k = 0; vm && vm->sla.is_shared && k < vm->num_vcpus; k++) {
			const struct ebb_vcpu_reserve *v = &vm->vcpu_reserves[k];

			sum += v->told.keep;
			if (v->told.keep == 0)
				continue;
			if (v->told.thread != vm->vcpu_shares[k].thread)
				world_fail(w, "vm%u vCPU %u keeps its promise elsewhere", i, k);
			kept[v->told.thread] += v->told.keep;
			if (kept[v->told.thread] > 950 ||
			    kept[v->told.thread] + v->told.rest > 1000)
				world_fail(w, "thread %u keeps %u", v->told.thread,
					   kept[v->told.thread]);
		}
		if (vm && vm->sla.is_shared && (sum > vm->reserve.promised_percent * 10 ||
						sum != vm->reserve.keep_permille))
			world_fail(w, "vm%u is promised %u%%, to keep %u, and keeps %u", i,
				   vm->reserve.promised_percent, vm->reserve.keep_permille, sum);
	}
}

void world_check_settled(struct world *w)
{
	for (unsigned i = 0; i < WORLD_VMS; i++)
		if (w->vms[i].is_running)
			check_settled_vm(w, i);
	check_promises(w);
}
