// SPDX-License-Identifier: GPL-2.0-or-later
/* The simulated world: see backend/backend.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "model/sla-io.h"

static const usec_t boot_usec[2] = { 200 * EBB_USEC_PER_MSEC, 900 * EBB_USEC_PER_MSEC };

void ebb_fake_config_default(struct ebb_fake_config *ret_cfg)
{
	*ret_cfg = (struct ebb_fake_config){
		.seed = 1,
		.plug_usec = { 5 * EBB_USEC_PER_MSEC, 30 * EBB_USEC_PER_MSEC },
		.unplug_usec = { 15 * EBB_USEC_PER_MSEC, 50 * EBB_USEC_PER_MSEC },
		.place_usec = { 500, 1500 },
		.link_usec = { 30, 90 },
		.think_usec = { 100, 5 * EBB_USEC_PER_MSEC },
		.lend_permille = 1000,
		.vom_permille = 1000,
	};
}

static struct fake_vm *find(const struct ebb_fake *f, const uint8_t *uuid)
{
	for (size_t i = 0; i < f->num_vms; i++)
		if (memcmp(f->vms[i]->uuid, uuid, sizeof(f->vms[i]->uuid)) == 0)
			return f->vms[i];
	return NULL;
}

void fake_report(struct ebb_fake *f, usec_t now, const struct fake_vm *vm, struct ebb_fact *fact)
{
	memcpy(fact->uuid, vm->uuid, sizeof(fact->uuid));
	if (f->has_agent)
		f->sink.report(f->sink.ctx, now, fact);
}

static void report_defined(struct ebb_fake *f, usec_t now, const struct fake_vm *vm)
{
	struct ebb_fact fact = { .type = EBB_FACT_VM_DEFINED };
	struct ebb_vcpu_def vcpus[EBB_MAX_VCPUS];

	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		vcpus[i] = (struct ebb_vcpu_def){
			.node = vm->vcpus[i].pub.node, .is_startup = vm->vcpus[i].pub.is_startup,
		};
	memcpy(fact.u.vm_defined.name, vm->name, sizeof(vm->name));
	fact.u.vm_defined.sla = vm->sla;
	fact.u.vm_defined.num_vcpus = vm->num_vcpus;
	fact.u.vm_defined.vcpus = vcpus;
	/* One disk, of the VM's name. */
	if (ebb_volume_name_usable(vm->name)) {
		fact.u.vm_defined.volumes.num = 1;
		ebb_volume_name_copy(fact.u.vm_defined.volumes.names[0], vm->name);
	}
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		fact.u.vm_defined.boot_bytes[g] = EBB_FAKE_BOOT_BYTES;
		fact.u.vm_defined.pool_blocks[g] = vm->pools[g].pub.size ? vm->pools[g].pub.size :
									  vm->sla.nodes[g].mem_max;
	}
	fake_report(f, now, vm, &fact);
}

static void report_running(struct ebb_fake *f, usec_t now, const struct fake_vm *vm)
{
	struct ebb_fact fact = { .type = EBB_FACT_VM_RUNNING };
	struct ebb_vcpu_fact plugged[EBB_MAX_VCPUS];
	struct ebb_fact_vm_running *r = &fact.u.vm_running;

	r->order = vm->order;
	r->as_of = now;
	r->plugged = plugged;
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		if (vm->vcpus[i].pub.is_plugged)
			plugged[r->num_plugged++] = (struct ebb_vcpu_fact){
				.vcpu = i, .thread = vm->vcpus[i].pub.thread,
			};
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct fake_pool *p = &vm->pools[g];

		r->mem_blocks[g] = p->mirrored > p->pub.held ? p->mirrored : p->pub.held;
	}
	fake_report(f, now, vm, &fact);
}

struct ebb_fake *ebb_fake_create(const struct ebb_fake_config *cfg, struct ebb_sink sink)
{
	struct ebb_fake *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->cfg = *cfg;
	f->sink = sink;
	f->chance = cfg->seed;
	return f;
}

void ebb_fake_destroy(struct ebb_fake *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->num_vms; i++)
		free(f->vms[i]);
	for (size_t i = 0; i < f->num_events; i++)
		fake_event_finish(&f->events[i]);
	free(f->events);
	free(f);
}

/* ---- the world acts ------------------------------------------------------ */

int ebb_fake_vm_define(struct ebb_fake *f, usec_t now, const uint8_t *uuid, const char *name,
		       const struct ebb_sla *sla, enum ebb_fake_guest guest)
{
	struct fake_vm *vm;

	if (find(f, uuid))
		return -EEXIST;
	if (f->num_vms == EBB_MAX_VMS)
		return -ENOSPC;
	vm = calloc(1, sizeof(*vm));
	if (!vm)
		return -ENOSPC;
	memcpy(vm->uuid, uuid, sizeof(vm->uuid));
	snprintf(vm->name, sizeof(vm->name), "%s", name);
	vm->sla = *sla;
	vm->guest = guest;
	for (uint16_t g = 0; g < sla->num_nodes; g++)
		for (uint16_t i = 0; i < sla->nodes[g].max; i++) {
			if (vm->num_vcpus == EBB_MAX_VCPUS) {
				free(vm);
				return -EINVAL;
			}
			vm->vcpus[vm->num_vcpus++].pub = (struct ebb_fake_vcpu){
				.node = g,
				.is_startup = i < sla->nodes[g].startup,
				.thread = EBB_THREAD_NONE,
			};
		}
	fake_mem_define(f, vm);
	fake_need_define(vm);
	f->vms[f->num_vms++] = vm;
	report_defined(f, now, vm);
	return 0;
}

int ebb_fake_vm_undefine(struct ebb_fake *f, usec_t now, const uint8_t *uuid)
{
	struct ebb_fact fact = { .type = EBB_FACT_VM_REMOVED };
	struct fake_vm *vm = find(f, uuid);

	if (!vm)
		return -ENOENT;
	if (vm->is_running)
		return -EBUSY;
	fake_report(f, now, vm, &fact);
	fake_event_forget(f, vm);
	for (size_t i = 0; i < f->num_vms; i++)
		if (f->vms[i] == vm)
			f->vms[i] = f->vms[--f->num_vms];
	free(vm);
	return 0;
}

int ebb_fake_vm_start(struct ebb_fake *f, usec_t now, const uint8_t *uuid)
{
	struct fake_vm *vm = find(f, uuid);

	if (!vm)
		return -ENOENT;
	if (vm->is_running)
		return -EBUSY;
	vm->is_running = true;
	vm->run++;
	vm->order = ++f->next_order;
	vm->has_limits = vm->must_clear = vm->is_thinking = false;
	vm->resets = 0;
	fake_mem_clear(vm);
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		vm->vcpus[i].pub.is_plugged = vm->vcpus[i].pub.is_startup;
	report_running(f, now, vm);
	fake_device_connect(f, now, vm);
	if (vm->guest != EBB_FAKE_NO_DRIVER)
		fake_event_add(f, now + fake_between(f, boot_usec), FAKE_EVENT_DRIVER, vm);
	return 0;
}

int ebb_fake_vm_kill(struct ebb_fake *f, usec_t now, const uint8_t *uuid)
{
	struct ebb_fact fact = { .type = EBB_FACT_VM_STOPPED };
	struct fake_vm *vm = find(f, uuid);

	if (!vm)
		return -ENOENT;
	if (!vm->is_running)
		return -EBUSY;
	fake_device_disconnect(f, now, vm, true);
	vm->is_running = vm->has_driver = vm->has_limits = false;
	vm->run++;
	vm->job_until = 0;
	fake_mem_clear(vm);
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		vm->vcpus[i].pub = (struct ebb_fake_vcpu){
			.node = vm->vcpus[i].pub.node,
			.is_startup = vm->vcpus[i].pub.is_startup,
			.thread = EBB_THREAD_NONE,
		};
	fake_report(f, now, vm, &fact);
	return 0;
}

int ebb_fake_vm_reboot(struct ebb_fake *f, usec_t now, const uint8_t *uuid)
{
	struct fake_vm *vm = find(f, uuid);

	if (!vm)
		return -ENOENT;
	if (!vm->is_running)
		return -EBUSY;
	/* Nothing of the old boot is in use any more. */
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		fake_guest_forget(&vm->vcpus[i].pub);
	vm->must_clear = true;
	fake_mem_unplug_all(f, now, vm);
	fake_device_reset(f, now, vm);
	if (vm->guest != EBB_FAKE_NO_DRIVER)
		fake_event_add(f, now + fake_between(f, boot_usec), FAKE_EVENT_DRIVER, vm);
	return 0;
}

int ebb_fake_vm_behave(struct ebb_fake *f, usec_t now, const uint8_t *uuid,
		       enum ebb_fake_guest guest)
{
	struct fake_vm *vm = find(f, uuid);

	if (!vm)
		return -ENOENT;
	if (vm->guest == EBB_FAKE_NO_DRIVER && guest != EBB_FAKE_NO_DRIVER && vm->is_running)
		fake_event_add(f, now + fake_between(f, boot_usec), FAKE_EVENT_DRIVER, vm);
	vm->guest = guest;
	if (guest == EBB_FAKE_NO_DRIVER && vm->has_driver)
		fake_device_reset(f, now, vm);
	fake_guest_wake(f, now, vm);
	return 0;
}

int ebb_fake_vm_want(struct ebb_fake *f, usec_t now, const uint8_t *uuid, uint16_t node,
		     uint16_t cpus)
{
	struct fake_vm *vm = find(f, uuid);

	if (!vm)
		return -ENOENT;
	if (node >= vm->sla.num_nodes)
		return -ERANGE;
	vm->want[node] = cpus;
	vm->is_asking[node] = true;
	fake_guest_wake(f, now, vm);
	return 0;
}

void ebb_fake_set_failures(struct ebb_fake *f, uint32_t plug_permille, uint32_t unplug_permille,
			   uint32_t place_permille)
{
	f->cfg.plug_fail_permille = plug_permille;
	f->cfg.unplug_fail_permille = unplug_permille;
	f->cfg.place_fail_permille = place_permille;
}

static bool is_shared(const struct ebb_fake *f, uint16_t thread)
{
	int count = 0;

	for (size_t i = 0; i < f->num_vms; i++)
		for (uint16_t k = 0; k < f->vms[i]->num_vcpus; k++)
			count += f->vms[i]->vcpus[k].pub.is_plugged &&
				 f->vms[i]->vcpus[k].pub.thread == thread;
	return count > 1;
}

/*
 * Of startup vCPUs found together on a thread an agent that starts cannot know
 * which one was meant to have it alone.
 */
static void forget_alone(struct ebb_fake *f)
{
	for (size_t i = 0; i < f->num_vms; i++)
		for (uint16_t k = 0; k < f->vms[i]->num_vcpus; k++) {
			struct ebb_fake_vcpu *v = &f->vms[i]->vcpus[k].pub;

			if (v->is_startup && v->is_alone && is_shared(f, v->thread))
				v->is_alone = false;
		}
}

void ebb_fake_agent_start(struct ebb_fake *f, usec_t now)
{
	struct ebb_fact loaded = { .type = EBB_FACT_LOADED };
	struct fake_event e;

	f->has_agent = false;
	while (fake_event_take(f, FAKE_EVENT_ACTION_END, &e))
		if (e.run == e.vm->run)
			fake_host_end(f, now, e.vm, &e.action);
	forget_alone(f);
	for (size_t i = 0; i < f->num_vms; i++)
		fake_device_disconnect(f, now, f->vms[i], false);
	f->has_agent = true;
	for (size_t i = 0; i < f->num_vms; i++) {
		report_defined(f, now, f->vms[i]);
		if (f->vms[i]->is_running)
			report_running(f, now, f->vms[i]);
	}
	f->sink.report(f->sink.ctx, now, &loaded);
}

/* ---- what happens -------------------------------------------------------- */

void ebb_fake_submit(struct ebb_fake *f, usec_t now, const struct ebb_action *action)
{
	struct fake_vm *vm = find(f, action->uuid);

	if (!vm)
		/* Undefined meanwhile; nobody awaits the outcome any more. */
		return;
	if (ebb_action_is_on_link(action->type))
		fake_device_submit(f, now, vm, action);
	else
		fake_host_submit(f, now, vm, action);
}

static void driver_up(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	if (vm->guest == EBB_FAKE_NO_DRIVER || vm->has_driver)
		return;
	vm->has_driver = true;
	vm->can_lend = fake_permille(f, f->cfg.lend_permille);
	vm->can_vom = fake_permille(f, f->cfg.vom_permille);
	vm->vom_seq = 0;
	vm->resets++;
	vm->must_clear = true;
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		fake_guest_forget(&vm->vcpus[i].pub);
	fake_mem_unplug_all(f, now, vm);
	fake_device_hello(f, now, vm, false);
	fake_guest_wake(f, now, vm);
}

static void happen(struct ebb_fake *f, usec_t now, struct fake_event *e)
{
	const bool is_this_run = e->run == e->vm->run && e->vm->is_running;
	const bool is_this_link = is_this_run && e->connection == e->vm->connection;
	struct ebb_fact fact = { 0 };

	switch (e->type) {
	case FAKE_EVENT_ACTION_END:
		fact.type = EBB_FACT_ACTION_DONE;
		fact.u.action_done.id = e->action.id;
		fact.u.action_done.type = e->action.type;
		fact.u.action_done.err =
			is_this_run ? fake_host_end(f, now, e->vm, &e->action) : -ENOENT;
		fake_report(f, now, e->vm, &fact);
		break;
	case FAKE_EVENT_TO_DEVICE:
		if (is_this_link)
			fake_device_receive(f, now, e->vm, &e->action);
		break;
	case FAKE_EVENT_HELLO:
		if (is_this_link && e->hello) {
			fact.type = EBB_FACT_HELLO;
			fact.u.hello = e->hello->h;
			fake_report(f, now, e->vm, &fact);
		}
		break;
	case FAKE_EVENT_MEM:
		if (is_this_link && e->hello && e->hello->h.num_pools > 0) {
			fact.type = EBB_FACT_MEM;
			fact.u.mem.num_pools = e->hello->h.num_pools;
			fact.u.mem.pools = e->hello->pools;
			fake_report(f, now, e->vm, &fact);
		}
		break;
	case FAKE_EVENT_VOM:
		if (is_this_link && e->vom) {
			fact.type = EBB_FACT_VOM;
			fact.u.vom = e->vom->f;
			fake_report(f, now, e->vm, &fact);
		}
		break;
	case FAKE_EVENT_REQUEST:
		fact.type = EBB_FACT_REQUEST;
		fact.u.request = e->request;
		if (is_this_link)
			fake_report(f, now, e->vm, &fact);
		break;
	case FAKE_EVENT_CONNECT:
		if (is_this_run)
			fake_device_connect(f, now, e->vm);
		break;
	case FAKE_EVENT_DRIVER:
		if (is_this_run)
			driver_up(f, now, e->vm);
		break;
	case FAKE_EVENT_THINK:
		if (is_this_run)
			fake_guest_think(f, now, e->vm);
		break;
	}
}

usec_t ebb_fake_next(struct ebb_fake *f)
{
	return f->num_events ? f->events[0].at : EBB_TIME_NEVER;
}

void ebb_fake_run(struct ebb_fake *f, usec_t now)
{
	struct fake_event e;

	while (fake_event_pop(f, now, &e)) {
		happen(f, now, &e);
		fake_event_finish(&e);
	}
}

/* ---- what is true -------------------------------------------------------- */

int ebb_fake_vcpu(const struct ebb_fake *f, const uint8_t *uuid, uint16_t vcpu,
		  struct ebb_fake_vcpu *ret_vcpu)
{
	const struct fake_vm *vm = find(f, uuid);

	if (!vm)
		return -ENOENT;
	if (vcpu >= vm->num_vcpus)
		return -ERANGE;
	*ret_vcpu = vm->vcpus[vcpu].pub;
	return 0;
}

int ebb_fake_pool(const struct ebb_fake *f, const uint8_t *uuid, uint16_t node,
		  struct ebb_fake_pool *ret_pool)
{
	const struct fake_vm *vm = find(f, uuid);

	if (!vm)
		return -ENOENT;
	if (node >= vm->sla.num_nodes)
		return -ERANGE;
	*ret_pool = vm->pools[node].pub;
	return 0;
}

uint64_t ebb_fake_vm_cap(const struct ebb_fake *f, const uint8_t *uuid)
{
	const struct fake_vm *vm = find(f, uuid);

	return vm ? vm->cap_bytes : 0;
}

int ebb_fake_vm_inflight(const struct ebb_fake *f, const uint8_t *uuid)
{
	const struct fake_vm *vm = find(f, uuid);
	int count = 0;

	if (!vm)
		return -ENOENT;
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++)
		count += vm->requests[i].is_used;
	return count;
}

int ebb_fake_vm_limits(const struct ebb_fake *f, const uint8_t *uuid,
		       struct ebb_action_limits *ret_limits)
{
	const struct fake_vm *vm = find(f, uuid);

	if (!vm)
		return -ENOENT;
	if (!vm->has_limits)
		return -EAGAIN;
	*ret_limits = vm->limits;
	return 0;
}

const char *ebb_fake_violation(const struct ebb_fake *f)
{
	return f->violation[0] ? f->violation : NULL;
}

static void backend_submit(void *be, usec_t now, const struct ebb_action *action)
{
	ebb_fake_submit(be, now, action);
}

static usec_t backend_next(void *be)
{
	return ebb_fake_next(be);
}

static void backend_run(void *be, usec_t now)
{
	ebb_fake_run(be, now);
}

static void backend_destroy(void *be)
{
	ebb_fake_destroy(be);
}

struct ebb_backend ebb_fake_backend(struct ebb_fake *f)
{
	static const struct ebb_backend_ops ops = {
		.name = "fake",
		.submit = backend_submit,
		.next = backend_next,
		.run = backend_run,
		.destroy = backend_destroy,
	};

	return (struct ebb_backend){ .ops = &ops, .be = f };
}
