// SPDX-License-Identifier: GPL-2.0-or-later
/* Definitions and SLAs: VMs come into the tables and leave them. */
#include <errno.h>
#include <string.h>

#include "core/internal.h"

/* Index of the VM, or of the place where it would be. */
static size_t vm_index(const struct ebb_state *s, const uint8_t *uuid)
{
	size_t low = 0, high = s->num_vms;

	while (low < high) {
		const size_t mid = (low + high) / 2;

		if (memcmp(s->vms[mid]->uuid, uuid, sizeof(s->vms[mid]->uuid)) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct ebb_vm *core_vm_find(const struct ebb_state *s, const uint8_t *uuid)
{
	const size_t i = vm_index(s, uuid);

	if (i == s->num_vms || memcmp(s->vms[i]->uuid, uuid, sizeof(s->vms[i]->uuid)) != 0)
		return NULL;
	return s->vms[i];
}

/* Finds or creates; a new one has no SLA. */
static int vm_get(struct ebb_state *s, const uint8_t *uuid, const char *name,
		  struct ebb_vm **ret_vm)
{
	struct ebb_vm *vm = core_vm_find(s, uuid);
	size_t i;

	if (!vm) {
		if (s->num_vms == EBB_MAX_VMS)
			return -ENOSPC;
		vm = s->env.cfg.alloc.alloc(s->env.cfg.alloc.ctx, sizeof(*vm) + sizeof(*vm->work));
		if (!vm)
			return -ENOMEM;
		vm->work = (struct ebb_vm_work *)(vm + 1);
		while (s->slots[vm->work->slot])
			vm->work->slot++;
		vm->work->place = EBB_MAX_VMS;
		s->slots[vm->work->slot] = vm;
		memcpy(vm->uuid, uuid, sizeof(vm->uuid));
		i = vm_index(s, uuid);
		memmove(&s->vms[i + 1], &s->vms[i], (s->num_vms - i) * sizeof(s->vms[0]));
		s->vms[i] = vm;
		s->num_vms++;
	}
	ebb_text_copy(vm->name, sizeof(vm->name), name);
	*ret_vm = vm;
	return 0;
}

void core_vm_destroy(struct ebb_state *s, struct ebb_vm *vm)
{
	s->env.cfg.alloc.free(s->env.cfg.alloc.ctx, vm->vcpu_store);
	s->env.cfg.alloc.free(s->env.cfg.alloc.ctx, vm);
}

void core_vm_forget(struct ebb_state *s, struct ebb_vm *vm)
{
	const size_t i = vm_index(s, vm->uuid);

	memmove(&s->vms[i], &s->vms[i + 1], (s->num_vms - i - 1) * sizeof(s->vms[0]));
	s->num_vms--;
	s->slots[vm->work->slot] = NULL;
	core_vm_destroy(s, vm);
}

/* The SLA against the vCPUs and virtio-mem devices that the domain has. */
static int sla_fits_domain(const struct ebb_sla *sla, const struct ebb_vcpu_def *vcpus,
			   uint16_t num_vcpus, const uint32_t *pool_blocks, char *ret_text)
{
	uint16_t startup[EBB_MAX_GUEST_NODES] = { 0 }, all[EBB_MAX_GUEST_NODES] = { 0 };

	for (uint16_t i = 0; i < num_vcpus; i++) {
		if (vcpus[i].node >= sla->num_nodes) {
			core_text(ret_text, "vCPU %u is on node %u, allowed are 0 to %u", i,
				  vcpus[i].node, sla->num_nodes - 1);
			return -EINVAL;
		}
		all[vcpus[i].node]++;
		startup[vcpus[i].node] += vcpus[i].is_startup;
	}
	for (uint16_t g = 0; g < sla->num_nodes; g++) {
		if (sla->nodes[g].startup != startup[g]) {
			core_text(ret_text,
				  "node %u startup is %u, the domain enables %u vCPUs there", g,
				  sla->nodes[g].startup, startup[g]);
			return -EINVAL;
		}
		if (sla->nodes[g].max > all[g]) {
			core_text(ret_text, "node %u max is %u, the domain has %u vCPUs there", g,
				  sla->nodes[g].max, all[g]);
			return -EINVAL;
		}
		if (sla->nodes[g].mem_max > pool_blocks[g]) {
			core_text(ret_text,
				  "node %u max-mib is %u, its virtio-mem device has %u MiB", g,
				  sla->nodes[g].mem_max * EBB_BLOCK_MIB,
				  pool_blocks[g] * EBB_BLOCK_MIB);
			return -EINVAL;
		}
	}
	return 0;
}

static bool same_placement(const struct ebb_sla *a, const struct ebb_sla *b)
{
	if (a->num_nodes != b->num_nodes || a->is_shared != b->is_shared)
		return false;
	for (uint16_t g = 0; g < a->num_nodes; g++)
		if (a->nodes[g].host_node != b->nodes[g].host_node ||
		    a->nodes[g].startup != b->nodes[g].startup)
			return false;
	return true;
}

static bool same_vcpus(const struct ebb_vm *vm, const struct ebb_fact_vm_defined *d)
{
	if (vm->num_vcpus != d->num_vcpus)
		return false;
	for (uint16_t i = 0; i < d->num_vcpus; i++)
		if (vm->vcpus[i].node != d->vcpus[i].node ||
		    vm->vcpus[i].is_startup != d->vcpus[i].is_startup)
			return false;
	return true;
}

/* The device of a pool keeps its size while the VM runs; one that the SLA did not name may come. */
static bool same_pools(const struct ebb_vm *vm, const struct ebb_fact_vm_defined *d)
{
	for (uint16_t g = 0; g < d->sla.num_nodes; g++)
		if (vm->pool_blocks[g] > 0 && d->pool_blocks[g] > 0 &&
		    vm->pool_blocks[g] != d->pool_blocks[g])
			return false;
	return true;
}

static void take_memory(struct ebb_vm *vm, const struct ebb_fact_vm_defined *d)
{
	for (uint16_t g = 0; g < d->sla.num_nodes; g++) {
		vm->boot_bytes[g] = d->boot_bytes[g];
		if (!vm->is_running || d->pool_blocks[g] > 0)
			vm->pool_blocks[g] = d->pool_blocks[g];
	}
}

/* One piece of memory; all sizes are multiples of 8. */
struct vcpu_store {
	struct ebb_vcpu vcpu;
	struct ebb_vcpu_times times;
	struct ebb_vcpu_share share;
	struct ebb_vcpu_reserve reserve;
	struct ebb_vcpu_promise promise;
	usec_t due;
};

static int vcpus_replace(struct ebb_state *s, struct ebb_vm *vm,
			 const struct ebb_fact_vm_defined *d)
{
	const struct ebb_alloc *alloc = &s->env.cfg.alloc;
	void *store = alloc->alloc(alloc->ctx, d->num_vcpus * sizeof(struct vcpu_store));
	usec_t *due;

	if (!store)
		return -ENOMEM;
	alloc->free(alloc->ctx, vm->vcpu_store);
	vm->vcpu_store = store;
	vm->num_vcpus = d->num_vcpus;
	vm->vcpus = store;
	vm->vcpu_times = (const void *)(vm->vcpus + d->num_vcpus);
	vm->vcpu_shares = (const void *)(vm->vcpu_times + d->num_vcpus);
	vm->vcpu_reserves = (const void *)(vm->vcpu_shares + d->num_vcpus);
	vm->vcpu_promises = (const void *)(vm->vcpu_reserves + d->num_vcpus);
	due = (void *)(vm->vcpu_promises + d->num_vcpus);
	/* A node never owes more CPUs than it has vCPUs. */
	for (uint16_t g = 0; g < d->sla.num_nodes; g++) {
		vm->nodes[g] = (struct ebb_vm_node){ .due = due };
		for (uint16_t i = 0; i < d->num_vcpus; i++)
			due += d->vcpus[i].node == g;
	}
	cpu_define(vm, d->vcpus);
	shared_define(vm);
	reserve_define(vm);
	return 0;
}

static void record_sla(struct ebb_state *s, usec_t now, const struct ebb_vm *vm, const char *what)
{
	struct ebb_record *r = core_record(&s->env, vm, now, EBB_EVENT_SLA);
	struct ebb_vm_totals t;

	r->sla = vm->sla;
	ebb_vm_totals(vm, &t);
	core_text(r->text,
		  "%s: class %s, weight %u, deadline %u ms, %u to %u CPUs on %u nodes, %llu to "
		  "%llu MiB of pool memory",
		  what, ebb_class_name(vm->sla.class), vm->sla.weight, vm->sla.deadline_ms, t.floor,
		  t.ceiling, vm->sla.num_nodes, (unsigned long long)(t.mem_floor >> 20),
		  (unsigned long long)(t.mem_ceiling >> 20));
}

static void set_sla(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		    const struct ebb_sla *sla, const char *what)
{
	const bool had_sla = vm->has_sla;

	if (had_sla && memcmp(&vm->sla, sla, sizeof(*sla)) == 0)
		return;
	core_charge(&s->env, vm);
	vm->sla = *sla;
	vm->has_sla = true;
	s->cycle.plan_is_stale = true;
	core_touch(&s->env, vm);
	record_sla(s, now, vm, what);
}

int core_vm_invalid(struct ebb_state *s, usec_t now, const struct ebb_fact *fact)
{
	struct ebb_vm *vm;
	int r = vm_get(s, fact->uuid, fact->u.vm_invalid.name, &vm);

	if (r < 0)
		return r;
	ebb_text_copy(vm->error, sizeof(vm->error), fact->u.vm_invalid.text);
	if (vm->is_running) {
		vm->work->is_void = true;
	} else {
		/* The memory that it boots with is for others. */
		s->cycle.plan_is_stale = s->cycle.plan_is_stale || vm->has_sla;
		vm->has_sla = false;
	}
	core_text(core_record(&s->env, vm, now, EBB_EVENT_ERROR)->text, "%.100s; %s", vm->error,
		  vm->is_running ? "the last valid SLA stays in force until the VM stops" :
				   "the VM is not managed");
	return 0;
}

int core_vm_defined(struct ebb_state *s, usec_t now, const struct ebb_fact *fact)
{
	const struct ebb_fact_vm_defined *d = &fact->u.vm_defined;
	struct ebb_fact invalid = { .type = EBB_FACT_VM_INVALID };
	char *text = invalid.u.vm_invalid.text;
	struct ebb_vm *vm;
	int r;

	r = ebb_sla_check(&d->sla, &s->env.host, text);
	if (r == 0 && (d->num_vcpus == 0 || d->num_vcpus > EBB_MAX_VCPUS)) {
		core_text(text, "number of vCPUs is %u, allowed are 1 to %u", d->num_vcpus,
			  EBB_MAX_VCPUS);
		r = -EINVAL;
	}
	if (r == 0)
		r = sla_fits_domain(&d->sla, d->vcpus, d->num_vcpus, d->pool_blocks, text);
	if (r < 0) {
		memcpy(invalid.uuid, fact->uuid, sizeof(invalid.uuid));
		ebb_text_copy(invalid.u.vm_invalid.name, EBB_NAME_SIZE, d->name);
		core_vm_invalid(s, now, &invalid);
		return r;
	}

	r = vm_get(s, fact->uuid, d->name, &vm);
	if (r < 0)
		return r;
	if (vm->is_running) {
		if (!same_vcpus(vm, d) || !same_placement(&vm->sla, &d->sla) ||
		    !same_pools(vm, d))
			return -EBUSY;
	} else if (!vm->has_sla || !same_vcpus(vm, d) ||
		   vm->sla.num_nodes != d->sla.num_nodes) {
		r = vcpus_replace(s, vm, d);
		if (r < 0)
			return r;
	}
	vm->is_removed = false;
	vm->work->is_void = false;
	if (!vm->is_running || vm->is_admitted)
		vm->error[0] = '\0';
	take_memory(vm, d);
	vm->volumes = d->volumes;
	vm->disk_bytes = d->disk_bytes;
	s->cycle.plan_is_stale = true;
	set_sla(s, now, vm, &d->sla, "defined");
	io_changed(&s->io, vm);
	return 0;
}

int core_sla_set(struct ebb_state *s, usec_t now, struct ebb_vm *vm, const struct ebb_sla *sla)
{
	struct ebb_vcpu_def defs[EBB_MAX_VCPUS];
	char text[EBB_TEXT_SIZE];
	int r;

	if (!vm->has_sla)
		return -ENOENT;
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		defs[i] = (struct ebb_vcpu_def){
			.node = vm->vcpus[i].node, .is_startup = vm->vcpus[i].is_startup,
		};
	r = ebb_sla_check(sla, &s->env.host, text);
	if (r == 0 && sla->num_nodes != vm->sla.num_nodes)
		r = -EINVAL;
	if (r == 0)
		r = sla_fits_domain(sla, defs, vm->num_vcpus, vm->pool_blocks, text);
	if (r < 0)
		return r;
	if (vm->is_running && !same_placement(&vm->sla, sla))
		return -EBUSY;
	set_sla(s, now, vm, sla, "set by the operator");
	io_changed(&s->io, vm);
	return 0;
}

int core_vm_removed(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	core_text(core_record(&s->env, vm, now, EBB_EVENT_SLA)->text,
		  "the domain is no longer defined%s",
		  vm->is_running ? "; managed until it stops" : "");
	if (vm->is_running) {
		vm->is_removed = true;
	} else {
		/* The memory that it boots with is for others. */
		s->cycle.plan_is_stale = true;
		core_vm_forget(s, vm);
	}
	return 0;
}
