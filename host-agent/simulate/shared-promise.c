/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See shared-promise.h. */
#include <errno.h>
#include <stdlib.h>

#include "simulate/shared-promise.h"

/* One VM of so many asks for a promise. */
#define ONE_OF		4u

int sim_promises_init(struct sim_promises *p, const struct ebb_share *share,
		      const struct sim_shared_options *o)
{
	const size_t most = 2u * o->vcpus * o->num_vms;

	*p = (struct sim_promises){
		.share = share, .each = (uint16_t)(o->reserve_percent * 10),
		.is_kept = o->is_kept,
	};
	p->rest = calloc(share->num_cores, sizeof(*p->rest));
	p->keep = calloc(most, sizeof(*p->keep));
	p->ran = calloc(most, sizeof(*p->ran));
	p->ready = calloc(most, sizeof(*p->ready));
	p->carry = calloc(o->num_vms, sizeof(*p->carry));
	p->is_promised = calloc(o->num_vms, sizeof(*p->is_promised));
	p->claims = calloc(most, sizeof(*p->claims));
	p->parts = calloc(most, sizeof(*p->parts));
	return p->rest && p->keep && p->ran && p->ready && p->carry && p->is_promised &&
			       p->claims && p->parts ? 0 : -ENOMEM;
}

void sim_promises_finish(struct sim_promises *p)
{
	free(p->rest);
	free(p->keep);
	free(p->ran);
	free(p->ready);
	free(p->carry);
	free(p->is_promised);
	free(p->claims);
	free(p->parts);
}

bool sim_promises_wants(const struct sim_shared_options *o, uint32_t m)
{
	return o->reserve_percent > 0 && m % ONE_OF == 0;
}

int sim_promises_admit(struct sim_promises *p, const struct sim_shared_options *o,
		       struct sim_shared_result *ret)
{
	const struct ebb_share *s = p->share;
	struct ebb_promise_ask *asks = calloc(s->num_vms, sizeof(*asks));
	uint64_t capacity[EBB_MAX_NODES] = { 0 }, promised[EBB_MAX_NODES];

	if (!asks)
		return -ENOMEM;
	for (uint16_t c = 0; c < s->num_cores; c++)
		capacity[s->cores[c].node] += EBB_PROMISE_MOST;
	for (uint32_t i = 0; i < s->num_vcpus; i++)
		if (sim_promises_wants(o, s->vcpus[i].vm))
			asks[s->vcpus[i].vm].permille[s->cores[s->vcpus[i].core].node] += p->each;
	ebb_promise_admit(asks, s->num_vms, capacity, promised);
	for (uint32_t m = 0; m < s->num_vms; m++) {
		p->is_promised[m] = sim_promises_wants(o, m) && asks[m].is_promised;
		ret->num_promised += p->is_promised[m];
		ret->num_refused += !asks[m].is_promised;
	}
	for (uint32_t i = 0; i < s->num_vcpus; i++)
		if (!p->is_promised[s->vcpus[i].vm])
			s->vcpus[i].reserve = 0;
	free(asks);
	sim_promises_divide(p);
	return 0;
}

void sim_promises_divide(struct sim_promises *p)
{
	const struct ebb_share *s = p->share;

	for (uint16_t c = 0; p->is_kept && c < s->num_cores; c++) {
		uint32_t num = 0, kept = 0;

		for (uint32_t i = 0; i < s->num_vcpus; i++)
			if (s->vcpus[i].core == c && s->vcpus[i].reserve > 0)
				p->claims[num++] = (struct ebb_shortage_claim){
					.want = s->vcpus[i].reserve,
				};
		ebb_shortage_divide(p->claims, p->parts, num, EBB_OVERBOOK_PROPORTIONAL,
				    EBB_PROMISE_MOST);
		num = 0;
		for (uint32_t i = 0; i < s->num_vcpus; i++)
			if (s->vcpus[i].core == c && s->vcpus[i].reserve > 0) {
				p->keep[i] = (uint16_t)p->claims[num].keep;
				kept += p->claims[num++].keep;
			} else if (s->vcpus[i].core == c) {
				p->keep[i] = 0;
			}
		p->rest[c] = (uint16_t)(1000 - kept);
	}
}

double sim_promises_weight(const struct sim_promises *p, uint32_t vcpu, uint32_t num_rest)
{
	if (!p->is_kept)
		return 1;
	if (p->keep[vcpu] > 0)
		return p->keep[vcpu];
	return (double)p->rest[p->share->vcpus[vcpu].core] / num_rest;
}

static void judge_vm(struct sim_promises *p, uint32_t m, usec_t length,
		     struct sim_shared_result *ret)
{
	const struct ebb_share_vm *vm = &p->share->vms[m];
	const struct promise_terms terms = { .permille = p->each * vm->num_vcpus, .share = 1000 };
	struct promise_times times[EBB_MAX_VCPUS];
	struct promise_outcome o;

	for (uint32_t k = 0; k < vm->num_vcpus; k++) {
		const uint32_t i = vm->first + k;
		const double waited = p->ready[i] > p->ran[i] ? p->ready[i] - p->ran[i] : 0;

		times[k] = (struct promise_times){
			.ran = (usec_t)(p->ran[i] + 0.5), .waited = (usec_t)(waited + 0.5),
		};
		p->ran[i] = p->ready[i] = 0;
	}
	promise_reckon(times, (uint16_t)vm->num_vcpus, length, &terms, &p->carry[m], &o);
	promise_add(&ret->promise, length, &o);
}

void sim_promises_judge(struct sim_promises *p, usec_t length, struct sim_shared_result *ret)
{
	for (uint32_t m = 0; m < p->share->num_vms; m++)
		if (p->is_promised[m])
			judge_vm(p, m, length, ret);
}
