// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What guests say that their memory is worth: histograms, by value.
 *
 * A guest may say anything.  The histogram that is kept is of exactly the memory that the guest
 * holds.  If the guest claims more, the most valuable part is cut.  Memory about which it says
 * nothing counts with the middle value of the rest.  Such memory has mostly just been given to the
 * VM: if it counted as unused, a VM that grows would be asked for memory that it has just taken,
 * whatever its value.  On a node about which the guest says nothing at all, all memory is unused
 * (value 0).
 *
 * A guest that overstates values keeps more memory than it should and is charged for it, but it
 * gets none of the memory that others are guaranteed (mem_min).  A guest that understates values
 * loses memory first.  Values are cut at EBB_VOM_VALUE_MAX, so that they can be multiplied by
 * weights.
 *
 * A histogram stays in use until a newer one comes or the guest is booted anew.  Memory that the
 * guest has given back since then counts as its least valuable memory.
 *
 * A guest that has never sent a histogram counts as an average one: its memory gets the values of
 * the other guests' memory on the same node of the host, in EBB_VOM_GUESSES equal parts.  So
 * silence neither pays nor costs: such a guest gives about as much memory as the others.
 *
 * Source: "Flexible resource allocation for relational database-as-a-service", section 4.
 */
#include <errno.h>
#include <string.h>

#include "core/broker/broker.h"

#define KIB_PER_BLOCK	(EBB_BLOCK_BYTES >> 10)

void broker_forget(const struct ebb_vm *vm)
{
	struct ebb_vm_vom *v = broker_own(vm);

	v->seq = 0;
	v->at = 0;
	memset(v->first, 0, sizeof(v->first));
}

void broker_start(const struct ebb_vm *vm)
{
	struct ebb_vm_vom *v = broker_own(vm);

	broker_forget(vm);
	v->asked = v->told = 0;
	v->num_asks = v->num_answers = v->num_refused = 0;
}

void broker_stop(const struct ebb_vm *vm)
{
	struct ebb_vm_vom *v = broker_own(vm);

	memset(v->cutoff, 0, sizeof(v->cutoff));
	memset(v->brokered, 0, sizeof(v->brokered));
}

uint32_t ebb_vm_vom_of(const struct ebb_vm *vm, uint16_t node,
		       const struct ebb_vom_bucket **ret_buckets)
{
	*ret_buckets = &vm->vom.buckets[vm->vom.first[node]];
	return vm->vom.first[node + 1] - vm->vom.first[node];
}

/* ---- as much as is held -------------------------------------------------- */

struct fit {
	uint64_t skip;			/* KiB to be left out from the bottom */
	uint64_t room;			/* KiB to be kept at most */
	struct ebb_vom_bucket *out;
	uint32_t count;
};

/* May be more than the size of a bucket can say. */
static void fit_add(struct fit *f, uint16_t g, uint64_t value, uint64_t kib)
{
	const uint64_t skip = f->skip < kib ? f->skip : kib;

	f->skip -= skip;
	kib -= skip;
	kib = kib < f->room ? kib : f->room;
	f->room -= kib;
	while (kib > 0) {
		struct ebb_vom_bucket *last = f->count ? &f->out[f->count - 1] : NULL;
		uint32_t part;

		/* However often something is added, there are no more of them. */
		if (!last || last->value != value || last->kib == UINT32_MAX) {
			last = &f->out[f->count++];
			*last = (struct ebb_vom_bucket){ .value = value, .node = g };
		}
		part = kib < UINT32_MAX - last->kib ? (uint32_t)kib : UINT32_MAX - last->kib;
		last->kib += part;
		kib -= part;
	}
}

/* All of it for the bucket with which the sum reaches the half. */
static uint64_t take_in_middle(uint64_t *kib, uint64_t sum, uint64_t total)
{
	const uint64_t all = 2 * sum >= total ? *kib : 0;

	*kib -= all;
	return all;
}

/* Of guest node g. is_new: memory that is claimed, but not held, was never there. */
static uint32_t fit_node(const struct ebb_vom_bucket *in, uint32_t num, uint16_t g, uint64_t held,
			 bool is_new, struct ebb_vom_bucket *out)
{
	struct fit f = { .room = held, .out = out };
	uint64_t total = 0, sum = 0, missing;

	for (uint32_t i = 0; i < num; i++)
		total += in[i].kib;
	missing = held > total ? held - total : 0;
	if (!is_new && total > held)
		f.skip = total - held;
	for (uint32_t i = 0; i < num; i++) {
		sum += in[i].kib;
		fit_add(&f, g, in[i].value, in[i].kib + take_in_middle(&missing, sum, total));
	}
	fit_add(&f, g, 0, missing);
	return f.count;
}

static uint64_t held_kib(const struct ebb_vm *vm, uint16_t g)
{
	return vm->pools[g].held * KIB_PER_BLOCK;
}

static bool fits(const struct ebb_vm *vm)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vom_bucket *buckets;
		const uint32_t num = ebb_vm_vom_of(vm, g, &buckets);
		uint64_t kib = 0;

		for (uint32_t i = 0; i < num; i++)
			kib += buckets[i].kib;
		if (kib != held_kib(vm, g))
			return false;
	}
	return true;
}

/* first: by guest node, as in struct ebb_vm_vom. */
static void fit(const struct ebb_vm *vm, const struct ebb_vom_bucket *in, const uint32_t *first,
		bool is_new)
{
	struct ebb_vom_bucket out[EBB_VOM_ROOM];
	uint32_t count = 0, begin[EBB_MAX_GUEST_NODES + 1];

	for (uint16_t g = 0; g < EBB_MAX_GUEST_NODES; g++) {
		begin[g] = count;
		if (g < vm->sla.num_nodes)
			count += fit_node(&in[first[g]], first[g + 1] - first[g], g,
					  held_kib(vm, g), is_new, &out[count]);
	}
	begin[EBB_MAX_GUEST_NODES] = count;
	memcpy(broker_own(vm)->first, begin, sizeof(begin));
	memcpy(broker_own(vm)->buckets, out, count * sizeof(out[0]));
}

/* ---- histograms that arrive ---------------------------------------------- */

static const char *check(const struct ebb_vm *vm, const struct ebb_fact_vom *f)
{
	if (f->num_buckets > EBB_MAX_VOM_BUCKETS)
		return "has too many buckets";
	for (uint32_t i = 0; i < f->num_buckets; i++) {
		const struct ebb_vom_bucket *b = &f->buckets[i];

		if (b->node >= vm->sla.num_nodes)
			return "names a node that it does not have";
		if (b->kib == 0)
			return "has an empty bucket";
		if (i > 0 && (b->node < b[-1].node ||
			      (b->node == b[-1].node && b->value < b[-1].value)))
			return "is not in order";
	}
	return NULL;
}

static void take(const struct ebb_vm *vm, const struct ebb_fact_vom *f)
{
	struct ebb_vom_bucket in[EBB_MAX_VOM_BUCKETS];
	uint32_t first[EBB_MAX_GUEST_NODES + 1], i = 0;

	for (uint16_t g = 0; g <= EBB_MAX_GUEST_NODES; g++) {
		first[g] = i;
		for (; i < f->num_buckets && f->buckets[i].node == g; i++) {
			in[i] = f->buckets[i];
			if (in[i].value > EBB_VOM_VALUE_MAX)
				in[i].value = EBB_VOM_VALUE_MAX;
		}
	}
	fit(vm, in, first, true);
}

/* A malformed histogram harms the guest alone, so the link stays: the device is not to blame. */
int broker_report(struct broker_room *s, usec_t now, const struct ebb_vm *vm,
		  const struct ebb_fact_vom *f)
{
	struct ebb_vm_vom *v = broker_own(vm);
	const char *fault;

	if (!vm->is_running || !vm->link_up)
		return -ENOENT;
	/* Late, or nobody asked: there is nothing that it could be an answer to. */
	if (f->seq == 0 || f->seq != v->asked)
		return 0;
	fault = check(vm, f);
	if (fault) {
		if (v->num_refused++ == 0)
			core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
				  "its histogram of memory %s: not used", fault);
		return 0;
	}
	take(vm, f);
	v->num_answers += v->seq != f->seq;
	v->seq = f->seq;
	v->at = now;
	return 0;
}

/* ---- those that have not said anything ----------------------------------- */

/* Powers of two in eight parts each, below them what is worth nothing. */
#define VALUE_BITS	40u
#define SPREAD_BINS	(1u + (VALUE_BITS + 1u) * 8u)

_Static_assert(EBB_VOM_VALUE_MAX == 1ull << VALUE_BITS, "bins for all values");

struct spread {
	uint64_t kib[SPREAD_BINS];
	uint64_t total;
};

static uint32_t bin_of(uint64_t value)
{
	uint32_t bits;

	if (value == 0)
		return 0;
	bits = 63 - (uint32_t)__builtin_clzll(value);
	return 1 + bits * 8 + (uint32_t)(((value << 3) >> bits) & 7);
}

/* The least value of a bin. */
static uint64_t value_of(uint32_t bin)
{
	return bin == 0 ? 0 : ((uint64_t)(8 + (bin - 1) % 8) << ((bin - 1) / 8)) >> 3;
}

static void spread_add(struct spread *s, const struct ebb_vm *vm, uint16_t h)
{
	for (uint16_t g = 0; vm->vom.at && g < vm->sla.num_nodes; g++) {
		const struct ebb_vom_bucket *buckets;
		const uint32_t num = ebb_vm_vom_of(vm, g, &buckets);

		for (uint32_t i = 0; vm->sla.nodes[g].host_node == h && i < num; i++) {
			s->kib[bin_of(buckets[i].value)] += buckets[i].kib;
			s->total += buckets[i].kib;
		}
	}
}

/* The middle of part `i` of EBB_VOM_GUESSES. */
static uint64_t spread_value(const struct spread *s, uint32_t i)
{
	const uint64_t rank = s->total * (2 * i + 1) / (2 * EBB_VOM_GUESSES);
	uint64_t sum = 0;

	for (uint32_t bin = 0; bin < SPREAD_BINS; bin++) {
		sum += s->kib[bin];
		if (sum > rank)
			return value_of(bin);
	}
	return 0;
}

static uint32_t guess_node(const struct spread *s, uint16_t g, uint64_t kib,
			   struct ebb_vom_bucket *out)
{
	struct fit f = { .room = kib, .out = out };

	for (uint32_t i = 0; i < EBB_VOM_GUESSES; i++)
		fit_add(&f, g, spread_value(s, i),
			i + 1 < EBB_VOM_GUESSES ? kib / EBB_VOM_GUESSES : f.room);
	return f.count;
}

static bool is_guessed(const struct ebb_vm *vm)
{
	return vm->is_admitted && !vm->vom.at;
}

/* Node by node of the host; a VM's guest nodes may be spread over them in any order. */
static void guess_vm(const struct broker_room *s, const struct ebb_vm *vm, struct spread *spreads)
{
	struct ebb_vm_vom *v = broker_own(vm);
	uint32_t count = 0;

	for (uint16_t g = 0; g < EBB_MAX_GUEST_NODES; g++) {
		v->first[g] = count;
		if (g < vm->sla.num_nodes && vm->sla.nodes[g].host_node < s->env->host.num_nodes)
			count += guess_node(&spreads[vm->sla.nodes[g].host_node], g,
					    held_kib(vm, g), &v->buckets[count]);
	}
	v->first[EBB_MAX_GUEST_NODES] = count;
}

static void guess_all(const struct broker_room *s)
{
	struct spread spreads[EBB_MAX_NODES] = { 0 };
	bool is_needed = false;

	for (size_t i = 0; i < s->env->num_active; i++)
		is_needed = is_needed || is_guessed(s->env->active[i]);
	for (size_t i = 0; is_needed && i < s->env->num_active; i++)
		for (uint16_t h = 0; h < s->env->host.num_nodes; h++)
			spread_add(&spreads[h], s->env->active[i], h);
	for (size_t i = 0; is_needed && i < s->env->num_active; i++)
		if (is_guessed(s->env->active[i]))
			guess_vm(s, s->env->active[i], spreads);
}

void broker_fit_all(const struct broker_room *s)
{
	/* No policy has ever asked. */
	if (s->broker.seq == 0)
		return;
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		if (vm->vom.at && !fits(vm))
			fit(vm, vm->vom.buckets, vm->vom.first, false);
	}
	guess_all(s);
}
