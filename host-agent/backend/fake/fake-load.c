// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loads of vCPUs: each wants a part of a core all the time.  Those on one thread divide it evenly,
 * but none gets more than it wants.
 */
#include <errno.h>
#include <string.h>

#include "fake.h"

int ebb_fake_vm_load(struct ebb_fake *f, const uint8_t *uuid, uint16_t permille)
{
	for (size_t i = 0; i < f->num_vms; i++)
		if (memcmp(f->vms[i]->uuid, uuid, sizeof(f->vms[i]->uuid)) == 0) {
			f->vms[i]->load = permille < 1000 ? permille : 1000;
			return 0;
		}
	return -ENOENT;
}

static uint32_t want_of(const struct fake_vm *vm, const struct fake_vcpu *v)
{
	uint32_t want = vm->load;

	if (!vm->is_running || !v->pub.is_plugged)
		return 0;
	if (vm->throttle && want > vm->throttle)
		want = vm->throttle;
	return want;
}

/* Thousandths for each vCPU that wants more: the highest level at which all fit on the thread. */
static uint32_t level_of(const struct ebb_fake *f, uint16_t thread)
{
	uint32_t level = 0;

	for (uint32_t bit = 512; bit > 0; bit /= 2) {
		uint64_t sum = 0;

		for (size_t i = 0; i < f->num_vms; i++)
			for (uint16_t k = 0; k < f->vms[i]->num_vcpus; k++) {
				const struct fake_vcpu *v = &f->vms[i]->vcpus[k];
				const uint32_t want = want_of(f->vms[i], v);

				if (v->pub.thread == thread)
					sum += want < level + bit ? want : level + bit;
			}
		if (sum <= 1000)
			level += bit;
	}
	return level;
}

static void report_times(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	struct ebb_cpu_time times[EBB_MAX_VCPUS];
	struct ebb_fact fact = { .type = EBB_FACT_CPU_TIMES };
	uint16_t count = 0;

	for (uint16_t k = 0; k < vm->num_vcpus; k++)
		if (vm->vcpus[k].pub.is_plugged)
			times[count++] = (struct ebb_cpu_time){
				.vcpu = k, .cpu_usec = vm->vcpus[k].cpu_usec,
				.wait_usec = vm->vcpus[k].wait_usec,
			};
	fact.u.cpu_times = (struct ebb_fact_cpu_times){
		.as_of = now, .num_vcpus = count, .vcpus = times,
	};
	fake_report(f, now, vm, &fact);
}

void ebb_fake_load_run(struct ebb_fake *f, usec_t now, usec_t usec, uint32_t share_permille)
{
	for (size_t i = 0; i < f->num_vms; i++) {
		struct fake_vm *vm = f->vms[i];

		if (!vm->is_running || vm->load == 0)
			continue;
		for (uint16_t k = 0; k < vm->num_vcpus; k++) {
			struct fake_vcpu *v = &vm->vcpus[k];
			const uint32_t want = want_of(vm, v);
			uint32_t level = 1000, got;
			usec_t ran;

			if (v->pub.is_plugged && v->pub.thread != EBB_THREAD_NONE)
				level = level_of(f, v->pub.thread);
			got = want < level ? want : level;
			ran = got * usec / 1000 * share_permille / 1000;
			v->cpu_usec += ran;
			/* One that gets less than it wants was ready for the time that it wants. */
			if (got < want)
				v->wait_usec += want * usec / 1000 - ran;
		}
		if (f->has_agent)
			report_times(f, now, vm);
	}
}
