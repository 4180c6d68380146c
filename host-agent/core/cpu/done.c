// SPDX-License-Identifier: GPL-2.0-or-later
/* Actions have ended, well or not. */
#include <errno.h>
#include <string.h>

#include "core/internal.h"

static void record_failure(struct ebb_state *s, usec_t now, const struct ebb_vm *vm,
			   uint16_t vcpu, const char *what, int err, uint16_t failures)
{
	struct ebb_record *r = core_record(s, vm, now, EBB_EVENT_ERROR);

	r->node = vm->vcpus[vcpu].node;
	r->cpus = 1;
	core_text(r->text, "%s of vCPU %u failed: %s (%u in a row)", what, vcpu, strerror(-err),
		  failures);
}

/* The process has ended, which is reported next: no failure, unless it happens again. */
static bool is_going(int err, uint16_t failures)
{
	return (err == -ESRCH || err == -ENOENT) && failures <= 1;
}

static void plug_done(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t vcpu, int err)
{
	struct ebb_vcpu *v = &vm->vcpus[vcpu];

	if (err == 0) {
		v->life = EBB_VCPU_PLUGGED;
		v->life_failures = 0;
		core_vcpu_set_placed(s, vm, vcpu, EBB_THREAD_NONE);
		if (v->request >= 0)
			vm->requests[v->request].libvirt_at = now;
		return;
	}
	v->life = EBB_VCPU_ABSENT;
	v->life_failures++;
	v->life_retry_at = now + core_backoff(s, v->life_failures);
	if (v->request >= 0) {
		vm->requests[v->request].libvirt_at = now;
		core_request_lose(s, vm, vcpu, VIRTIO_EBB_REASON_HOST);
	}
	record_failure(s, now, vm, vcpu, "plug", err, v->life_failures);
}

static void unplug_done(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t vcpu, int err)
{
	struct ebb_vcpu *v = &vm->vcpus[vcpu];

	if (err == 0) {
		if (v->request >= 0)
			core_request_removed(s, now, vm, vcpu, 0);
		core_vcpu_gone(s, now, vm, vcpu);
		return;
	}
	v->life = EBB_VCPU_PLUGGED;
	v->life_failures++;
	v->life_retry_at = now + core_backoff(s, v->life_failures);
	record_failure(s, now, vm, vcpu, "unplug", err, v->life_failures);
	if (v->request >= 0)
		core_request_removed(s, now, vm, vcpu, -EIO);
	else if (!v->is_lent)
		core_vcpu_force(s, vm, vcpu, EBB_FORCE_STUCK);
}

static void place_done(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t vcpu, int err)
{
	struct ebb_vcpu *v = &vm->vcpus[vcpu];
	const bool is_granting = core_vcpu_is_getting(vm, v);

	if (err == 0) {
		v->place_failures = 0;
		core_vcpu_set_placed(s, vm, vcpu, v->placing);
		if (is_granting)
			vm->requests[v->request].place_at = now;
		return;
	}
	/* Nobody knows where it runs now. */
	core_vcpu_set_placed(s, vm, vcpu, EBB_THREAD_NONE);
	v->place_failures++;
	v->place_retry_at = now + core_backoff(s, v->place_failures);
	if (is_granting) {
		vm->requests[v->request].place_at = now;
		/* One that is lent goes home again by itself. */
		if (!v->is_lent)
			v->force = EBB_FORCE_STUCK;
		core_request_lose(s, vm, vcpu, VIRTIO_EBB_REASON_HOST);
	}
	if (!is_going(err, v->place_failures))
		record_failure(s, now, vm, vcpu, "placement", err, v->place_failures);
}

int core_action_done(struct ebb_state *s, usec_t now, const struct ebb_fact_action_done *f)
{
	const uint16_t vcpu = (uint16_t)(f->id % EBB_MAX_VCPUS);
	struct ebb_vm *vm = s->slots[f->id / EBB_MAX_VCPUS % EBB_MAX_VMS];
	struct ebb_vcpu *v;

	if (f->id == 0 || f->err > 0)
		return -EINVAL;
	if (!vm || !vm->is_running || vcpu >= vm->num_vcpus)
		return 0;
	if (core_pools_action_done(s, now, vm, f->id, f->err) ||
	    core_shared_action_done(s, now, vm, f->id, f->err))
		return 0;
	v = &vm->vcpus[vcpu];
	if (v->life_action == f->id) {
		v->life_action = 0;
		v->life_at = now;
		if (v->life == EBB_VCPU_PLUGGING)
			plug_done(s, now, vm, vcpu, f->err);
		else
			unplug_done(s, now, vm, vcpu, f->err);
	} else if (v->place_action == f->id) {
		v->place_action = 0;
		v->placed_at = now;
		place_done(s, now, vm, vcpu, f->err);
		v->placing = EBB_THREAD_NONE;
	} else {
		return 0;
	}
	core_touch(s, vm);
	return 0;
}
