// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What lent and parked vCPUs do that should do nothing.  A lent one that
 * computes does so on the cores of its own VM's startup set; a parked one does
 * not compute at all, but its thread wakes up when it is sent an interrupt.
 * (Where KVM has the APICs, it does not, and nobody outside the guest knows.)
 */
#include <errno.h>

#include "core/meter/meter.h"

/* A period that is shorter says little, unless it is for parts of a window that is short. */
#define PERIOD_USEC		EBB_USEC_PER_SEC
#define WINDOW_PARTS		8u
/*
 * Thousandths of a core of the host that all lent vCPUs together may use:
 * ticks, RCU and what else the guest's kernel does on every CPU; at most what
 * leaves no doubt even if they share a single home.
 */
#define IDLE_PERMILLE		250u
#define IDLE_PERMILLE_EACH	10u
#define IDLE_PERMILLE_MOST	500u
/* The number of periods in a row that begin or end the verdict. */
#define NUM_CONTRARY		2u
/* Wake-ups of parked vCPUs a second; QEMU's own work on every vCPU causes some. */
#define PARKED_WAKES		10u

struct sum {
	uint64_t cpu_permille, wakes;	/* of the lent ones; of the parked ones, a second */
	uint32_t num_lent;
	usec_t longest;
};

/* Not while it is on its way home, and only if it was lent all the time. */
static void add(const struct ebb_vcpu *v, const struct ebb_vcpu_times *old,
		const struct ebb_cpu_time *t, usec_t as_of, struct sum *sum)
{
	const usec_t period = as_of - old->at;

	if (!old->at || !v->is_lent || v->request >= 0 || v->granted_at > old->at ||
	    v->place_action || t->cpu_usec < old->cpu_usec || t->num_runs < old->num_runs)
		return;
	if (period > sum->longest)
		sum->longest = period;
	if (v->is_parked) {
		sum->wakes += (t->num_runs - old->num_runs) * EBB_USEC_PER_SEC / period;
	} else {
		sum->cpu_permille += (t->cpu_usec - old->cpu_usec) * 1000 / period;
		sum->num_lent++;
	}
}

static void judge(const struct meter_room *s, usec_t now, const struct ebb_vm *vm,
		  const struct sum *sum)
{
	const uint32_t share = s->env->host.is_emulated ? s->env->host.share_permille : 1000;
	struct ebb_vm_conduct *c = meter_own_conduct(vm);
	uint32_t bound = IDLE_PERMILLE + IDLE_PERMILLE_EACH * sum->num_lent;

	if (bound > IDLE_PERMILLE_MOST)
		bound = IDLE_PERMILLE_MOST;
	c->lent_permille = (uint32_t)(sum->cpu_permille * 1000 / share);
	c->lent_usec = sum->longest;
	/*
	 * Squatting ends at half of the bound, so that a VM near the bound does not change to and
	 * fro.
	 */
	if (c->is_squatting ? c->lent_permille < bound / 2 : c->lent_permille >= bound)
		c->num_contrary++;
	else
		c->num_contrary = 0;
	if (c->num_contrary >= NUM_CONTRARY) {
		c->is_squatting = !c->is_squatting;
		c->num_contrary = 0;
	}
	if (sum->wakes >= PARKED_WAKES)
		meter_misdeed(&c->wake, (uint32_t)sum->wakes, now);
}

static usec_t shortest(const struct meter_room *s, const struct ebb_vm *vm)
{
	const usec_t part = s->env->cfg.pressure.hot_window_s * EBB_USEC_PER_SEC / WINDOW_PARTS;

	return vm->sla.is_shared && part < PERIOD_USEC ? part : PERIOD_USEC;
}

/* The room's own part of a vCPU. */
static struct ebb_vcpu_times *own_times(const struct ebb_vm *vm, uint16_t vcpu)
{
	return (struct ebb_vcpu_times *)&vm->vcpu_times[vcpu];
}

void core_times_forget(const struct ebb_vm *vm, uint16_t vcpu)
{
	*own_times(vm, vcpu) = (struct ebb_vcpu_times){ 0 };
}

int meter_report(const struct meter_room *s, usec_t now, const struct ebb_vm *vm,
		 const struct ebb_fact_cpu_times *f)
{
	struct sum sum = { 0 };
	bool is_new = false;

	if (!vm->has_sla || !vm->is_running)
		return -ENOENT;
	for (uint16_t i = 0; i < f->num_vcpus; i++)
		if (f->vcpus[i].vcpu >= vm->num_vcpus)
			return -EINVAL;
	for (uint16_t i = 0; i < f->num_vcpus; i++) {
		const struct ebb_cpu_time *t = &f->vcpus[i];
		struct ebb_vcpu_times *old = own_times(vm, t->vcpu);
		uint32_t permille = 0;

		if (old->at && f->as_of < old->at + shortest(s, vm))
			continue;
		add(&vm->vcpus[t->vcpu], old, t, f->as_of, &sum);
		if (old->at && t->cpu_usec >= old->cpu_usec)
			permille = (uint32_t)((t->cpu_usec - old->cpu_usec) * 1000 /
					      (f->as_of - old->at));
		*old = (struct ebb_vcpu_times){
			.at = f->as_of, .cpu_usec = t->cpu_usec, .num_runs = t->num_runs,
			.wait_usec = t->wait_usec, .cpu_permille = permille,
		};
		is_new = true;
	}
	if (is_new)
		judge(s, now, vm, &sum);
	core_conduct_review(s->env, now, vm);
	return is_new;
}
