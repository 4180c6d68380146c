// SPDX-License-Identifier: GPL-2.0-or-later
/* See promise.h: intervals, counters and records. */
#include "core/promise/promise.h"

/*
 * The backend reads about once in an interval, but not to the microsecond: a reading that comes a
 * little early ends the interval, too.
 */
#define PARTS_OF_INTERVAL	8u

/* The room's own parts of a VM and of a vCPU. */
static struct ebb_vm_promise *own(const struct ebb_vm *vm)
{
	return (struct ebb_vm_promise *)&vm->promise;
}

static struct ebb_vcpu_promise *own_vcpu(const struct ebb_vm *vm, uint16_t vcpu)
{
	return (struct ebb_vcpu_promise *)&vm->vcpu_promises[vcpu];
}

uint32_t promise_permille(const struct ebb_vm *vm)
{
	/* A promise that was refused binds nobody; the one before it may hold. */
	const uint32_t percent = vm->reserve.is_refused ? vm->reserve.promised_percent :
							  vm->sla.reserve_percent;

	return vm->sla.is_shared ? percent * 10 : 0;
}

uint32_t promise_share(const struct core_env *e)
{
	return e->host.is_emulated ? e->host.share_permille : 1000;
}

void promise_start(const struct ebb_vm *vm)
{
	*own(vm) = (struct ebb_vm_promise){ 0 };
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		*own_vcpu(vm, i) = (struct ebb_vcpu_promise){ 0 };
}

/*
 * Takes over the accounts; returns of how many vCPUs the times in between are known.  A thread that
 * is new since the last reading, and counts from 0, has none.
 */
static uint16_t take(const struct ebb_vm *vm, const struct ebb_fact_cpu_times *f, usec_t length,
		     struct promise_times ret[EBB_MAX_VCPUS])
{
	uint16_t num = 0;

	for (uint16_t i = 0; i < f->num_vcpus; i++) {
		const struct ebb_cpu_time *t = &f->vcpus[i];
		struct ebb_vcpu_promise *v = own_vcpu(vm, t->vcpu);
		const bool goes_on = v->is_known && t->cpu_usec >= v->cpu_usec &&
				     t->wait_usec >= v->wait_usec;

		*v = (struct ebb_vcpu_promise){
			.is_known = true, .cpu_usec = t->cpu_usec, .wait_usec = t->wait_usec,
			.length = length,
			.ran = goes_on ? t->cpu_usec - v->cpu_usec : 0,
			.waited = goes_on ? t->wait_usec - v->wait_usec : 0,
		};
		if (goes_on)
			ret[num++] = (struct promise_times){ .ran = v->ran, .waited = v->waited };
	}
	return num;
}

static void record(const struct promise_room *s, const struct ebb_vm *vm, usec_t length,
		   const struct promise_outcome *o)
{
	const struct ebb_vm_promise *p = &vm->promise;
	struct ebb_record *r = core_record(s->env, vm, p->at, EBB_EVENT_LEDGER);

	r->order = vm->order;
	r->total_usec = p->at - p->since;
	r->ledger.promise = EBB_PROMISE_CPU;
	r->ledger.rate = (uint64_t)p->permille * promise_share(s->env);
	r->ledger.sum = p->sum;
	if (o->violated > 0)
		r->code = promise_reason(s->env, vm, o, length, r->text);
}

/* An interval has ended; permille was promised for all of it. */
static void judge(const struct promise_room *s, const struct ebb_vm *vm,
		  const struct promise_times *times, uint16_t num, usec_t length,
		  uint32_t permille)
{
	struct ebb_vm_promise *p = own(vm);
	const struct promise_terms terms = {
		.permille = permille, .share = promise_share(s->env),
		.period = s->env->host.period_usec,
	};
	struct promise_carry carry = {
		.spare = p->spare, .owed = p->owed, .credit = p->credit,
	};
	struct promise_outcome o;

	promise_reckon(times, num, length, &terms, &carry, &o);
	p->spare = carry.spare;
	p->owed = carry.owed;
	p->credit = carry.credit;
	if (p->sum.num_intervals == 0)
		p->since = p->at - length;
	promise_add(&p->sum, length, &o);
	record(s, vm, length, &o);
}

void promise_report(const struct promise_room *s, const struct ebb_vm *vm,
		    const struct ebb_fact_cpu_times *f)
{
	struct ebb_vm_promise *p = own(vm);
	const usec_t interval = s->env->cfg.meter_usec;
	const usec_t length = f->as_of > p->at ? f->as_of - p->at : 0;
	const uint32_t before = p->permille, after = promise_permille(vm);
	const bool is_first = p->at == 0;
	struct promise_times times[EBB_MAX_VCPUS];
	uint16_t num;

	if (!vm->sla.is_shared || (!is_first && length < interval - interval / PARTS_OF_INTERVAL))
		return;
	num = take(vm, f, is_first ? 0 : length, times);
	p->at = f->as_of;
	p->permille = after;
	/* While a promise changes, only the lower one is certain. */
	if (!is_first && before > 0 && after > 0)
		judge(s, vm, times, num, length, before < after ? before : after);
	else
		p->spare = p->owed = p->credit = 0;
}
