// SPDX-License-Identifier: GPL-2.0-or-later
/* libvirt and the host's kernel in the simulated world. */
#include <errno.h>

#include "fake.h"

void fake_host_submit(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
		      const struct ebb_action *action)
{
	struct fake_event *e;
	usec_t end;

	switch (action->type) {
	case EBB_ACTION_PLUG:
	case EBB_ACTION_UNPLUG:
		end = vm->job_until > now ? vm->job_until : now;
		end += fake_between(f, action->type == EBB_ACTION_PLUG ? f->cfg.plug_usec :
									 f->cfg.unplug_usec);
		vm->job_until = end;
		break;
	case EBB_ACTION_MEM_CAP:
	case EBB_ACTION_MEM_MIRROR:
	case EBB_ACTION_THROTTLE:
	case EBB_ACTION_RESERVE:
	case EBB_ACTION_SHARES:
		end = (vm->job_until > now ? vm->job_until : now) +
		      fake_between(f, f->cfg.place_usec);
		vm->job_until = end;
		break;
	default:
		end = now + fake_between(f, f->cfg.place_usec);
		break;
	}
	e = fake_event_add(f, end, FAKE_EVENT_ACTION_END, vm);
	if (e)
		e->action = *action;
}

static int plug_end(struct ebb_fake *f, struct fake_vm *vm, uint16_t vcpu)
{
	struct ebb_fake_vcpu *v = &vm->vcpus[vcpu].pub;

	if (v->is_plugged) {
		fake_violate(f, vm, "vCPU %u is plugged twice", vcpu);
		return -EEXIST;
	}
	if (fake_permille(f, f->cfg.plug_fail_permille))
		return -EIO;
	v->is_plugged = true;
	v->is_given_back = v->is_alone = false;
	v->thread = EBB_THREAD_NONE;
	return 0;
}

static int unplug_end(struct ebb_fake *f, struct fake_vm *vm, uint16_t vcpu)
{
	struct ebb_fake_vcpu *v = &vm->vcpus[vcpu].pub;

	if (v->is_startup)
		fake_violate(f, vm, "vCPU %u of the startup set is unplugged", vcpu);
	if (v->is_granted && !v->is_given_back)
		fake_violate(f, vm, "vCPU %u is unplugged while the guest uses it", vcpu);
	if (!v->is_plugged)
		return -ENOENT;
	if (fake_permille(f, f->cfg.unplug_fail_permille))
		return -ETIMEDOUT;
	v->is_plugged = v->is_alone = false;
	v->thread = EBB_THREAD_NONE;
	return 0;
}

static int place_end(struct ebb_fake *f, struct fake_vm *vm, const struct ebb_action *action)
{
	const uint16_t vcpu = action->u.vcpu.vcpu, thread = action->u.vcpu.thread;
	struct ebb_fake_vcpu *v = &vm->vcpus[vcpu].pub;

	if (!v->is_plugged)
		return -ENOENT;
	if (fake_permille(f, f->cfg.place_fail_permille))
		return -EIO;
	v->thread = thread;
	v->is_alone = action->type == EBB_ACTION_PLACE;
	for (size_t i = 0; v->is_alone && i < f->num_vms; i++)
		for (uint16_t k = 0; k < f->vms[i]->num_vcpus; k++) {
			const struct ebb_fake_vcpu *o = &f->vms[i]->vcpus[k].pub;

			if (o != v && o->is_plugged && o->is_alone && o->thread == thread)
				fake_violate(f, vm, "vCPU %u is placed on thread %u of %s vCPU %u",
					     vcpu, thread, f->vms[i]->name, k);
		}
	return 0;
}

static int cap_end(struct ebb_fake *f, struct fake_vm *vm, uint64_t bytes)
{
	if (f->cfg.has_no_cap)
		return -EOPNOTSUPP;
	if (fake_permille(f, f->cfg.place_fail_permille))
		return -EIO;
	vm->cap_bytes = bytes;
	return 0;
}

int fake_host_end(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
		  const struct ebb_action *action)
{
	if (!vm->is_running)
		return -ENOENT;
	if (action->type == EBB_ACTION_MEM_CAP)
		return cap_end(f, vm, action->u.cap_bytes);
	if (action->type == EBB_ACTION_THROTTLE) {
		vm->throttle = action->u.permille;
		return 0;
	}
	if (action->type == EBB_ACTION_SHARES)
		return 0;
	if (action->type == EBB_ACTION_RESERVE) {
		if (action->u.reserve.keep + action->u.reserve.rest > 1000)
			fake_violate(f, vm, "vCPU %u gets %u of thread %u, the rest %u",
				     action->u.reserve.vcpu, action->u.reserve.keep,
				     action->u.reserve.thread, action->u.reserve.rest);
		return 0;
	}
	if (action->type == EBB_ACTION_MEM_MIRROR)
		return fake_mem_mirror(f, now, vm, &action->u.pool);
	if (action->u.vcpu.vcpu >= vm->num_vcpus) {
		fake_violate(f, vm, "vCPU %u does not exist", action->u.vcpu.vcpu);
		return -EINVAL;
	}
	switch (action->type) {
	case EBB_ACTION_PLUG:
		return plug_end(f, vm, action->u.vcpu.vcpu);
	case EBB_ACTION_UNPLUG:
		return unplug_end(f, vm, action->u.vcpu.vcpu);
	default:
		return place_end(f, vm, action);
	}
}
