// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The vom policy takes the memory that is worth least to the VMs that hold it.  The histograms of
 * guests give its value: the system time that it saves each second (STS x lambda), times the VM's
 * weight for memory.  Always the cheapest block of all VMs that are above their floors goes next.
 * In a histogram that rises the cost of a further block never falls, so that this is the best that
 * can be done with whole blocks; a heap of VMs by their cheapest block makes it O(n log n).
 *
 * A bucket counts with its end point, the highest value in it; a block that ends in another bucket
 * than it begins in, with the mean.  The dearest block that was taken is the cut-off that VMs are
 * told: memory that is worth less to them should go first.
 *
 * VMs that have no histogram, not even a guessed one, give the same part of their memory as all VMs
 * together.
 * Source: "Flexible resource allocation ...", sections 4.1 and 4.2.
 */
#include "policies/heap.h"
#include "policies/halves.h"
#include "policies/mem/broker.h"
#include "policies/mem/take.h"

#define BLOCK_KIB	(EBB_BLOCK_BYTES >> 10)
/* More than a host can save, and times the highest weight and the KiB of a block no overflow. */
#define VALUE_MAX	(1ull << 49)
/* More blocks than a host has, and the product of two has room. */
#define MAX_GIVES	(1ull << 31)

/* Cheapest first; at the same price from the newest VM. */
static bool goes_before(const void *ctx, uint32_t a, uint32_t b)
{
	const struct policy_broker_work *w = ctx;

	return w->key[a] != w->key[b] ? w->key[a] < w->key[b] : a > b;
}

/* ---- one guest node ------------------------------------------------------ */

/* Where the next block begins: kept in mem_cutoff[] meanwhile. */
struct cursor {
	uint32_t bucket, kib;
};

static struct cursor unpack(uint64_t c)
{
	return (struct cursor){ .bucket = (uint32_t)(c >> 32), .kib = (uint32_t)c };
}

static uint64_t value_of(const struct ebb_vom_bucket *b)
{
	return b->value < VALUE_MAX ? b->value : VALUE_MAX;
}

/* Blocks in a row that cost the same. */
struct run {
	uint64_t value;			/* of each */
	uint64_t top;			/* the dearest in them */
	uint32_t blocks;		/* 0: there are no more */
};

static struct run next_run(const struct ebb_view_vm *vm, uint16_t g, const struct ebb_plan_vm *t)
{
	const struct ebb_view_mem *mem = &vm->nodes[g].mem;
	const uint32_t left = policy_broker_gives(vm, g) - t->mem[g];
	struct cursor c = unpack(t->mem_cutoff[g]);
	struct run run = { .blocks = left ? 1 : 0 };
	uint64_t need = BLOCK_KIB, sum = 0;

	if (left == 0)
		return run;
	for (; need > 0 && c.bucket < mem->num_buckets; c.bucket++, c.kib = 0) {
		const struct ebb_vom_bucket *b = &mem->buckets[c.bucket];
		const uint64_t has = b->kib > c.kib ? b->kib - c.kib : 0;

		if (has >= BLOCK_KIB && need == BLOCK_KIB) {
			const uint64_t blocks = has / BLOCK_KIB;

			run.value = run.top = value_of(b);
			run.blocks = blocks < left ? (uint32_t)blocks : left;
			return run;
		}
		sum += (has < need ? has : need) * value_of(b);
		need -= has < need ? has : need;
		if (has > 0 && value_of(b) > run.top)
			run.top = value_of(b);
	}
	/* Memory that is in no bucket is worth nothing. */
	run.value = sum / BLOCK_KIB;
	return run;
}

static void take_blocks(const struct ebb_view_mem *mem, uint16_t g, uint32_t blocks,
			struct ebb_plan_vm *t)
{
	struct cursor c = unpack(t->mem_cutoff[g]);
	uint64_t need = blocks * BLOCK_KIB;

	while (need > 0 && c.bucket < mem->num_buckets) {
		const uint32_t kib = mem->buckets[c.bucket].kib;
		const uint64_t has = kib > c.kib ? kib - c.kib : 0;

		if (has > need) {
			c.kib += (uint32_t)need;
			break;
		}
		need -= has;
		c = (struct cursor){ .bucket = c.bucket + 1 };
	}
	t->mem[g] += blocks;
	t->mem_cutoff[g] = (uint64_t)c.bucket << 32 | c.kib;
}

/* ---- all VMs ------------------------------------------------------------- */

static uint32_t weight_of(const struct ebb_view_vm *vm)
{
	if (vm->mem_weight < EBB_WEIGHT_MIN)
		return EBB_WEIGHT_MIN;
	return vm->mem_weight < EBB_WEIGHT_MAX ? vm->mem_weight : EBB_WEIGHT_MAX;
}

/* The cheapest run of a VM on the node; false if it has none. */
static bool cheapest(const struct ebb_view_vm *vm, uint16_t h, const struct ebb_plan_vm *t,
		     uint16_t *ret_g, struct run *ret)
{
	bool found = false;

	for (uint16_t g = 0; g < vm->num_nodes; g++) {
		struct run run;

		if (vm->nodes[g].host_node != h || vm->nodes[g].mem.num_buckets == 0)
			continue;
		run = next_run(vm, g, t);
		if (run.blocks == 0 || (found && run.value >= ret->value))
			continue;
		*ret_g = g;
		*ret = run;
		found = true;
	}
	return found;
}

/* Returns the weighted value of the dearest that was taken. */
static uint64_t take_cheapest(struct policy_broker_work *w, const struct ebb_view *view, uint16_t h,
			      uint64_t blocks, struct ebb_plan *plan)
{
	uint64_t price = 0;
	uint32_t num = 0;
	struct run run;
	uint16_t g;

	for (uint32_t v = 0; v < view->num_vms; v++)
		if (cheapest(&view->vms[v], h, &plan->targets[v], &g, &run)) {
			w->key[v] = run.value * weight_of(&view->vms[v]);
			w->heap[num++] = (uint16_t)v;
		}
	policy_heap_make(w->heap, num, goes_before, w);
	while (num > 0 && blocks > 0) {
		const uint16_t v = w->heap[0];
		const struct ebb_view_vm *vm = &view->vms[v];

		cheapest(vm, h, &plan->targets[v], &g, &run);
		run.blocks = run.blocks < blocks ? run.blocks : (uint32_t)blocks;
		take_blocks(&vm->nodes[g].mem, g, run.blocks, &plan->targets[v]);
		blocks -= run.blocks;
		if (run.top * weight_of(vm) > price)
			price = run.top * weight_of(vm);
		if (cheapest(vm, h, &plan->targets[v], &g, &run))
			w->key[v] = run.value * weight_of(vm);
		else
			w->heap[0] = w->heap[--num];
		if (num > 0)
			policy_heap_sink(w->heap, num, 0, goes_before, w);
	}
	return price;
}

static uint64_t all_gives(const struct ebb_view *view, uint16_t h, bool silent)
{
	uint64_t sum = 0;

	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_vm_node *n = &view->vms[v].nodes[g];

			if (n->host_node == h && (n->mem.num_buckets == 0) == silent)
				sum += policy_broker_gives(&view->vms[v], g);
		}
	return sum < MAX_GIVES ? sum : MAX_GIVES;
}

static void take(struct policy_broker *b, const struct ebb_view *view, uint16_t h, uint64_t blocks,
		 struct ebb_plan *plan)
{
	const struct policy_taking taking = { .weight = policy_held_on, .silent_only = true };
	const uint64_t silent = all_gives(view, h, true), told = all_gives(view, h, false);
	uint64_t from_silent;

	if (blocks >= silent + told)
		blocks = silent + told;
	if (blocks == 0)
		return;
	/* Rounded up, and more if the others have not enough. */
	from_silent = (blocks * silent + silent + told - 1) / (silent + told);
	if (blocks - from_silent > told)
		from_silent = blocks - told;
	policy_take_by(b, view, h, from_silent, taking, plan);
	b->nodes[h].price = take_cheapest(&b->work.mem, view, h, blocks - from_silent, plan);
}

static int vom_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	static const struct policy_broker_rule rule = { .needs_values = true, .take = take };

	return policy_broker_decide(st, &rule, view, ret_plan);
}

const struct ebb_policy_half policy_mem_vom = {
	.name = "vom", .state_size = sizeof(struct policy_broker), .decide = vom_decide,
};
