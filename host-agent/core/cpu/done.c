// SPDX-License-Identifier: GPL-2.0-or-later
/* Actions have ended, well or not. */
#include <errno.h>
#include <string.h>

#include "core/cpu/internal.h"

static void record_failure(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
			   uint16_t vcpu, const char *what, int err, uint16_t failures)
{
	struct ebb_record *r = core_record(s->env, vm, now, EBB_EVENT_ERROR);

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

static void plug_done(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
		      int err)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);

	if (err == 0) {
		v->life = EBB_VCPU_PLUGGED;
		v->life_failures = 0;
		cpu_vcpu_set_placed(s, vm, vcpu, EBB_THREAD_NONE);
		if (v->request >= 0)
			cpu_own_request(vm, v->request)->libvirt_at = now;
		return;
	}
	v->life = EBB_VCPU_ABSENT;
	v->life_failures++;
	v->life_retry_at = now + core_backoff(s->env, v->life_failures);
	if (v->request >= 0) {
		cpu_own_request(vm, v->request)->libvirt_at = now;
		cpu_request_lose(s, vm, vcpu, VIRTIO_EBB_REASON_HOST);
	}
	record_failure(s, now, vm, vcpu, "plug", err, v->life_failures);
}

static void unplug_done(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
			int err)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);

	if (err == 0) {
		if (v->request >= 0)
			cpu_request_removed(s, now, vm, vcpu, 0);
		cpu_vcpu_gone(s, now, vm, vcpu);
		return;
	}
	v->life = EBB_VCPU_PLUGGED;
	v->life_failures++;
	v->life_retry_at = now + core_backoff(s->env, v->life_failures);
	record_failure(s, now, vm, vcpu, "unplug", err, v->life_failures);
	if (v->request >= 0)
		cpu_request_removed(s, now, vm, vcpu, -EIO);
	else if (!v->is_lent)
		cpu_vcpu_force(s, vm, vcpu, EBB_FORCE_STUCK);
}

static void place_done(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
		       int err)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);
	const bool is_granting = cpu_vcpu_is_getting(vm, v);

	if (err == 0) {
		v->place_failures = 0;
		cpu_vcpu_set_placed(s, vm, vcpu, v->placing);
		if (is_granting)
			cpu_own_request(vm, v->request)->place_at = now;
		return;
	}
	/* Nobody knows where it runs now. */
	cpu_vcpu_set_placed(s, vm, vcpu, EBB_THREAD_NONE);
	v->place_failures++;
	v->place_retry_at = now + core_backoff(s->env, v->place_failures);
	if (is_granting) {
		cpu_own_request(vm, v->request)->place_at = now;
		/* One that is lent goes home again by itself. */
		if (!v->is_lent)
			v->force = EBB_FORCE_STUCK;
		cpu_request_lose(s, vm, vcpu, VIRTIO_EBB_REASON_HOST);
	}
	if (!is_going(err, v->place_failures))
		record_failure(s, now, vm, vcpu, "placement", err, v->place_failures);
}

void cpu_done(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
	      const struct ebb_fact_action_done *f)
{
	const bool is_life = f->type == EBB_ACTION_PLUG || f->type == EBB_ACTION_UNPLUG;
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);

	if (f->id != (is_life ? v->life_action : v->place_action))
		return;
	if (is_life) {
		v->life_action = 0;
		v->life_at = now;
		if (f->type == EBB_ACTION_PLUG)
			plug_done(s, now, vm, vcpu, f->err);
		else
			unplug_done(s, now, vm, vcpu, f->err);
	} else {
		v->place_action = 0;
		v->placed_at = now;
		place_done(s, now, vm, vcpu, f->err);
		v->placing = EBB_THREAD_NONE;
	}
	/* Limits depend on vCPUs that go home, and on when those have arrived; not on others. */
	if (f->err < 0 || cpu_vcpu_goes_home(vm, v))
		core_stale(s->env, vm);
	core_mark(s->env, vm);
}
