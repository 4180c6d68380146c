// SPDX-License-Identifier: GPL-2.0-or-later
/* Why a VM was asked for memory, and not another: see explain.h. */
#include <string.h>

#include "core/explain.h"
#include "core/broker/broker.h"

/* Other VMs that are named beside it. */
#define OTHERS	6

static unsigned mib(uint32_t blocks)
{
	return blocks * EBB_BLOCK_MIB;
}

static double ago(usec_t at, usec_t now)
{
	return now > at ? (double)(now - at) / EBB_USEC_PER_SEC : 0.0;
}

uint32_t ebb_vm_given(const struct ebb_vm *vm, uint16_t node)
{
	const struct ebb_vm_pool *p = &vm->pools[node];
	const struct ebb_brokered *b = &vm->vom.brokered[node];
	const uint32_t given = b->held > p->held ? b->held - p->held : 0;

	return given < b->asked ? given : b->asked;
}

/* The histogram of a guest node in a few numbers. */
struct summary {
	uint64_t kib, unused_kib;
	uint64_t median, highest;	/* as ebb_vom_bucket.value */
};

/* False: there is neither a histogram nor a guess. */
static bool summarize(const struct ebb_vm *vm, uint16_t node, struct summary *ret)
{
	const struct ebb_vom_bucket *buckets;
	const uint32_t num = ebb_vm_vom_of(vm, node, &buckets);
	uint64_t sum = 0, half;

	*ret = (struct summary){ 0 };
	for (uint32_t i = 0; i < num; i++) {
		ret->kib += buckets[i].kib;
		ret->unused_kib += buckets[i].value == 0 ? buckets[i].kib : 0;
		ret->highest = buckets[i].value;
	}
	half = ret->kib / 2;
	for (uint32_t i = 0; i < num && sum <= half; i++) {
		sum += buckets[i].kib;
		ret->median = buckets[i].value;
	}
	return num > 0;
}

static void explain_others(const struct broker_room *s, const struct ebb_vm *vm, uint16_t h,
			   usec_t at, struct ebb_explain *e)
{
	char from[EBB_VALUE_SIZE];
	unsigned named = 0, more = 0;

	for (size_t i = 0; i < s->env->num_active; i++)
		for (uint16_t g = 0; s->env->active[i] != vm &&
				     g < s->env->active[i]->sla.num_nodes; g++) {
			const struct ebb_vm *other = s->env->active[i];
			const struct ebb_brokered *b = &other->vom.brokered[g];

			if (other->sla.nodes[g].host_node != h || b->at != at || b->held == 0)
				continue;
			if (named == OTHERS) {
				more++;
				continue;
			}
			named++;
			ebb_value_print(b->keeps_from, from);
			core_text(core_explain_more(e),
				  "  %s was asked for %u of %u MiB%s: it keeps memory worth at "
				  "least %s%s (weight %u)", core_label(other).text, mib(b->asked),
				  mib(b->held),
				  b->held <= other->sla.nodes[g].mem_min ? ", its minimum" : "",
				  from, b->vom_at ? "" : ", as is guessed", other->sla.mem_weight);
		}
	if (more > 0)
		core_text(core_explain_more(e), "  and %u others", more);
}

static void explain_brokered(const struct broker_room *s, const struct ebb_vm *vm, uint16_t g,
			     usec_t now, struct ebb_explain *e)
{
	const struct ebb_brokered *b = &vm->vom.brokered[g];
	const uint16_t h = vm->sla.nodes[g].host_node;
	const bool is_minimum = b->held <= vm->sla.nodes[g].mem_min;
	char value[EBB_VALUE_SIZE];

	if (b->asked > 0 && b->cutoff > 0) {
		ebb_value_print(b->cutoff, value);
		core_text(core_explain_more(e),
			  "node %u: %.1f s ago memory of host node %u was short; asked for %u of "
			  "%u MiB, memory worth less than %s first; it has given %u", g,
			  ago(b->at, now), h, mib(b->asked), mib(b->held), value,
			  mib(ebb_vm_given(vm, g)));
	} else if (b->asked > 0) {
		core_text(core_explain_more(e),
			  "node %u: %.1f s ago memory of host node %u was short; asked for %u of "
			  "%u MiB, whatever it is worth; it has given %u", g, ago(b->at, now), h,
			  mib(b->asked), mib(b->held), mib(ebb_vm_given(vm, g)));
	} else {
		ebb_value_print(b->keeps_from, value);
		core_text(core_explain_more(e),
			  "node %u: %.1f s ago memory of host node %u was short; not asked for "
			  "any of its %u MiB%s%s", g, ago(b->at, now), h, mib(b->held),
			  is_minimum ? ", which is its minimum" : ", worth from ",
			  is_minimum ? "" : value);
	}
	explain_others(s, vm, h, b->at, e);
}

static void explain_histogram(const struct ebb_vm *vm, uint16_t g, usec_t now,
			      struct ebb_explain *e)
{
	char median[EBB_VALUE_SIZE], highest[EBB_VALUE_SIZE];
	struct summary sum;

	if (!summarize(vm, g, &sum))
		return;
	ebb_value_print(sum.median, median);
	ebb_value_print(sum.highest, highest);
	if (vm->vom.at)
		core_text(core_explain_more(e),
			  "node %u: of its %llu MiB %llu are unused, half are worth at most %s, "
			  "all at most %s, as it said %.1f s ago", g,
			  (unsigned long long)sum.kib >> 10,
			  (unsigned long long)sum.unused_kib >> 10, median, highest,
			  ago(vm->vom.at, now));
	else
		core_text(core_explain_more(e),
			  "node %u: its guest has not said what its %llu MiB are worth%s: half are "
			  "taken to be worth at most %s, like those of others", g,
			  (unsigned long long)sum.kib >> 10,
			  vm->can_vom ? "" : " and can not", median);
}

static uint64_t in_use(const struct broker_room *s, uint16_t h)
{
	uint64_t blocks = 0;

	for (size_t i = 0; i < s->env->num_active; i++)
		for (uint16_t g = 0; g < s->env->active[i]->sla.num_nodes; g++) {
			const struct ebb_vm *vm = s->env->active[i];
			const uint32_t held = vm->pools[g].held, floor = core_mem_floor(vm, g);

			if (vm->sla.nodes[g].host_node == h)
				blocks += held > floor ? held : floor;
		}
	return blocks;
}

/* When memory of a node of the host is brokered next. */
static void explain_next(const struct broker_room *s, uint16_t h, usec_t now, struct ebb_explain *e)
{
	const struct ebb_view_node *n = &s->env->nodes[h];
	const usec_t cool_at = s->broker.brokered_at[h] +
			       s->env->cfg.pressure.cool_down_s * EBB_USEC_PER_SEC;
	const unsigned long long used = in_use(s, h);
	char when[EBB_TEXT_SIZE] = "";

	if (s->broker.is_open)
		core_text(when, "; guests are being asked now");
	else if (s->broker.num_brokered[h] > 0 && now < cool_at)
		core_text(when, "; not before %.1f s from now", ago(now, cool_at));
	core_text(core_explain_more(e),
		  "host node %u: %llu of %llu MiB are in use; above %llu policy %s takes memory "
		  "back down to %llu%.40s", h, used * EBB_BLOCK_MIB,
		  (unsigned long long)n->mem_capacity * EBB_BLOCK_MIB,
		  (unsigned long long)n->mem_threshold * EBB_BLOCK_MIB, s->env->policy->name,
		  (unsigned long long)n->mem_target * EBB_BLOCK_MIB, when);
}

void broker_explain(const struct broker_room *s, const struct ebb_vm *vm, usec_t now,
		      struct ebb_explain *e)
{
	bool is_said[EBB_MAX_NODES] = { false };

	/* To other policies it makes no difference how much is used. */
	if (s->env->policy->mem_review_usec == 0)
		return;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const uint16_t h = vm->sla.nodes[g].host_node;

		if (vm->sla.nodes[g].mem_max == 0)
			continue;
		if (vm->vom.brokered[g].at)
			explain_brokered(s, vm, g, now, e);
		explain_histogram(vm, g, now, e);
		if (!is_said[h])
			explain_next(s, h, now, e);
		is_said[h] = true;
	}
}
