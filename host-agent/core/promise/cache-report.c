// SPDX-License-Identifier: GPL-2.0-or-later
/* Promises of caches: intervals, records, and where the memory was instead.  See cache.h. */
#include <stdio.h>

#include "core/promise/cache.h"
#include "core/promise/promise.h"

#define NUM_NAMES	3
#define NAME_CHARS	24u

/* The room's own part of a VM. */
static struct ebb_vm_promised_cache *own(const struct ebb_vm *vm)
{
	return (struct ebb_vm_promised_cache *)&vm->promised_cache;
}

void promise_start_cache(const struct ebb_vm *vm)
{
	*own(vm) = (struct ebb_vm_promised_cache){ 0 };
}

void promise_forget_cache(const struct ebb_vm *vm)
{
	own(vm)->seen = (struct ebb_relio){ 0 };
}

/* ---- why ------------------------------------------------------------------ */

struct memory {
	uint64_t held, limit, beyond;	/* blocks; beyond: held beyond floors */
};

/* Of the VM, in its guest nodes on these nodes of the host: a bit for each. */
static struct memory memory_of(const struct ebb_vm *vm, uint32_t host_nodes)
{
	struct memory m = { 0 };

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const uint32_t held = vm->pools[g].held, floor = core_mem_floor(vm, g);

		if (!(host_nodes >> vm->sla.nodes[g].host_node & 1))
			continue;
		m.held += held;
		m.limit += vm->pools[g].limit;
		m.beyond += held > floor ? held - floor : 0;
	}
	return m;
}

/* VMs that hold most beyond what is guaranteed to them, "a 512 MiB, b 20 MiB"; returns the sum. */
static uint64_t name_others(const struct core_env *e, const struct ebb_vm *vm, uint32_t host_nodes,
			    char *text, size_t size)
{
	const struct ebb_vm *named[NUM_NAMES] = { NULL };
	uint64_t all = 0;
	size_t len = 0;

	text[0] = '\0';
	for (int n = 0; n < NUM_NAMES; n++) {
		uint64_t most = 0;

		for (size_t i = 0; i < e->num_active; i++) {
			const struct ebb_vm *other = e->active[i];
			const uint64_t beyond = memory_of(other, host_nodes).beyond;

			if (other == vm || other == named[0] || other == named[1])
				continue;
			all += n == 0 ? beyond : 0;
			if (beyond > most) {
				most = beyond;
				named[n] = other;
			}
		}
		if (!named[n] || len >= size)
			break;
		len += (size_t)snprintf(text + len, size - len, "%s%s %llu MiB", n ? ", " : "",
					ebb_text_label(named[n]->name, NAME_CHARS).text,
					(unsigned long long)most * EBB_BLOCK_MIB);
	}
	return all;
}

static enum ebb_cause reason(const struct core_env *e, const struct ebb_vm *vm, char *text)
{
	const struct ebb_vm_floor *f = &vm->floor;
	uint64_t minimum = 0, keep = 0, held, others;
	uint32_t host_nodes = 0;
	char names[128];
	struct memory m;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		minimum += vm->sla.nodes[g].mem_min;
		keep += f->keep[g];
		if (f->promised[g] > 0)
			host_nodes |= 1u << vm->sla.nodes[g].host_node;
	}
	m = memory_of(vm, UINT32_MAX);
	held = m.held > minimum ? m.held - minimum : 0;
	others = name_others(e, vm, host_nodes, names, sizeof(names));
	core_text(text, "it held %llu of %u MiB%s%s", (unsigned long long)held * EBB_BLOCK_MIB,
		  f->promised_mib, others > 0 ? "; above their floors: " : "", names);
	if (held * EBB_BLOCK_MIB >= f->promised_mib || m.limit > m.held)
		return EBB_CAUSE_ITSELF;
	if (keep < f->control.want)
		return EBB_CAUSE_OVERBOOKED;
	return others > 0 ? EBB_CAUSE_OTHERS : EBB_CAUSE_HOST;
}

/* ---- intervals -------------------------------------------------------------- */

void promise_report_cache(const struct promise_room *s, usec_t now, const struct ebb_vm *vm,
			  const struct ebb_telemetry *t, struct promise_beyond *ret)
{
	struct ebb_vm_promised_cache *p = own(vm);
	const uint32_t mib = vm->floor.promised_mib;
	enum ebb_relio_verdict verdict;
	struct ebb_relio_interval i;
	struct promise_outcome o;
	struct ebb_record *r;

	*ret = (struct promise_beyond){ 0 };
	/* Another promise than at the last reading: that interval is not metered. */
	if (mib != p->mib)
		p->seen.is_known = false;
	p->mib = mib;
	if (mib == 0 || !ebb_relio_is_due(&p->seen, now, s->env->cfg.meter_usec))
		return;
	verdict = ebb_relio_take(&p->seen, now, mib, t, &i);
	if (verdict == EBB_RELIO_NONE) {
		p->owed = 0;
		return;
	}
	promise_reckon_cache(&i, verdict, &p->owed, &o);
	*ret = (struct promise_beyond){ .length = i.length, .reads = o.violated };
	if (p->sum.num_intervals == 0)
		p->since = now - i.length;
	promise_add(&p->sum, i.length, &o);
	r = core_record(s->env, vm, now, EBB_EVENT_LEDGER);
	r->order = vm->order;
	r->total_usec = now - p->since;
	r->ledger.promise = EBB_PROMISE_MEM;
	r->ledger.rate = mib;
	r->ledger.sum = p->sum;
	if (o.violated > 0)
		r->code = reason(s->env, vm, r->text);
}
