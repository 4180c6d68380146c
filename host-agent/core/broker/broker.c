// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A brokering of memory: guests are asked what theirs is worth, the policy decides again when they
 * have answered, and its decision is recorded.  The policy alone decides whose memory goes.
 *
 * The ask is a number in the limits of each VM that can answer.  It is a level: a guest answers
 * each number once, whenever it sees it.  The core waits for answers for WAIT_USEC at most.  A
 * guest that does not answer is judged by its last histogram, or like the average of the others
 * (vom.c).
 */
#include "core/broker/broker.h"

#define WAIT_USEC	(2 * EBB_USEC_PER_SEC)
/* While memory is short, time alone may change what is to be done: a cool-down ends. */
#define SHORT_USEC	EBB_USEC_PER_SEC

/* ---- asking -------------------------------------------------------------- */

/* It can tell, and has something to tell about. */
static bool can_tell(const struct ebb_vm *vm)
{
	if (!vm->is_admitted || !vm->link_up || !vm->has_driver || !vm->can_vom)
		return false;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		if (vm->pools[g].held > 0)
			return true;
	return false;
}

void broker_changed(struct broker_room *s)
{
	s->is_stale = true;
}

static bool is_awaited(struct broker_room *s)
{
	if (!s->is_stale)
		return s->is_awaited;
	s->is_stale = s->is_awaited = false;
	for (size_t i = 0; i < s->env->num_active && !s->is_awaited; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		s->is_awaited = vm->vom.asked == s->broker.seq &&
				vm->vom.seq != s->broker.seq && can_tell(vm);
	}
	return s->is_awaited;
}

static usec_t cool_at(const struct broker_room *s)
{
	if (s->broker.asked_at == 0)
		return 0;
	return s->broker.asked_at + s->env->cfg.pressure.cool_down_s * EBB_USEC_PER_SEC;
}

/*
 * The policy offers nothing to a VM that gave memory until the cool-down is over.  Only the policy
 * knows when it last brokered, but never after the last plan at which memory was short.
 */
static usec_t lift_at(const struct broker_room *s)
{
	const struct ebb_broker *b = &s->broker;
	const usec_t at = b->short_at + s->env->cfg.pressure.cool_down_s * EBB_USEC_PER_SEC;

	return b->short_at && b->planned_at < at ? at : EBB_TIME_NEVER;
}

static void ask(struct broker_room *s, usec_t now)
{
	struct ebb_broker *b = &s->broker;

	if (b->is_open)
		return;
	if (now < cool_at(s)) {
		b->is_wanted = true;
		return;
	}
	/* An agent that was restarted does not ask for what the last one was told. */
	b->seq = b->seq ? b->seq + 1 : (uint32_t)(now / EBB_USEC_PER_MSEC);
	if (b->seq == 0)
		b->seq = 1;
	b->asked_at = now;
	b->num_asks++;
	b->is_open = true;
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		if (!can_tell(vm))
			continue;
		broker_own(vm)->asked = b->seq;
		broker_own(vm)->num_asks++;
		core_mark(s->env, vm);
	}
}

uint32_t broker_tells(const struct ebb_vm *vm)
{
	return vm->can_vom ? vm->vom.asked : 0;
}

void broker_told(const struct ebb_vm *vm)
{
	broker_own(vm)->told = broker_tells(vm);
}

/* ---- when to decide again ------------------------------------------------ */

usec_t broker_next_at(struct broker_room *s)
{
	const struct ebb_broker *b = &s->broker;
	const usec_t review = s->env->policy->mem_review_usec;
	usec_t at = EBB_TIME_NEVER;

	if (b->is_open)
		at = is_awaited(s) ? b->asked_at + WAIT_USEC : b->asked_at;
	if (b->is_wanted)
		at = core_sooner(at, cool_at(s));
	if (review > 0 && s->env->cycle->held_has_changed)
		at = core_sooner(at, b->planned_at + review);
	if (review > 0 && b->is_short)
		at = core_sooner(at, b->planned_at + (review > SHORT_USEC ? review : SHORT_USEC));
	if (review > 0)
		at = core_sooner(at, lift_at(s));
	return at;
}

bool broker_is_due(struct broker_room *s, usec_t now)
{
	struct ebb_broker *b = &s->broker;

	if (now < broker_next_at(s))
		return false;
	if (b->is_open && (now >= b->asked_at + WAIT_USEC || !is_awaited(s)))
		b->is_open = false;
	return true;
}

/* ---- before and after the policy decides --------------------------------- */

/* Memory that is guaranteed to a VM counts as used. */
static uint64_t in_use(const struct ebb_view *view, uint16_t h)
{
	uint64_t used = 0;

	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_mem *m = &view->vms[v].nodes[g].mem;

			if (view->vms[v].nodes[g].host_node == h)
				used += m->held > m->floor ? m->held : m->floor;
		}
	return used;
}

void broker_view(struct broker_room *s, usec_t now, struct ebb_view *view)
{
	struct ebb_broker *b = &s->broker;

	view->vom_asked_at = b->asked_at;
	view->vom_is_open = b->is_open;
	b->planned_at = now;
	b->is_wanted = b->is_short = false;
	s->env->cycle->held_has_changed = false;
	for (uint16_t h = 0; h < view->num_nodes; h++)
		b->is_short = b->is_short || in_use(view, h) > view->nodes[h].mem_threshold;
	if (b->is_short)
		b->short_at = now;
}

/* The least value of the memory that the VM keeps if it gives its cheapest memory first. */
static uint64_t keeps_from(const struct ebb_vm *vm, uint16_t g, uint32_t asked)
{
	uint64_t skip = asked * (EBB_BLOCK_BYTES >> 10);
	const struct ebb_vom_bucket *buckets;
	const uint32_t num = ebb_vm_vom_of(vm, g, &buckets);

	for (uint32_t i = 0; i < num; i++) {
		if (skip < buckets[i].kib)
			return buckets[i].value;
		skip -= buckets[i].kib;
	}
	return num ? buckets[num - 1].value : 0;
}

static uint32_t asks_for(const struct ebb_vm_pool *p)
{
	return p->held > p->target ? p->held - p->target : 0;
}

/* The plan asks somebody for memory there whom the last one did not ask for as much. */
static bool is_brokered(const struct broker_room *s, uint16_t h)
{
	uint64_t used = 0;
	bool asks = false;

	for (size_t i = 0; i < s->env->num_active; i++)
		for (uint16_t g = 0; g < s->env->active[i]->sla.num_nodes; g++) {
			const struct ebb_vm_pool *p = &s->env->active[i]->pools[g];
			const uint32_t floor = core_mem_floor(s->env->active[i], g);

			if (s->env->active[i]->sla.nodes[g].host_node != h)
				continue;
			used += p->held > floor ? p->held : floor;
			asks = asks || (asks_for(p) > 0 && p->target < p->limit);
		}
	return asks && used > s->env->nodes[h].mem_threshold;
}

static void note(usec_t now, const struct ebb_vm *vm, uint16_t g)
{
	const struct ebb_vm_pool *p = &vm->pools[g];
	const uint32_t asked = vm->is_admitted ? asks_for(p) : 0;

	broker_own(vm)->brokered[g] = (struct ebb_brokered){
		.at = now, .held = p->held, .asked = asked, .cutoff = vm->vom.cutoff[g],
		.keeps_from = keeps_from(vm, g, asked), .vom_at = vm->vom.at,
	};
}

/* The same of all other VMs that hold memory there. */
static void compare(const struct broker_room *s, const struct ebb_vm *vm, uint16_t h,
		    struct ebb_record *r)
{
	r->broker.low = UINT64_MAX;
	for (size_t i = 0; i < s->env->num_active; i++)
		for (uint16_t g = 0; s->env->active[i] != vm &&
				     g < s->env->active[i]->sla.num_nodes; g++) {
			const struct ebb_brokered *b = &s->env->active[i]->vom.brokered[g];

			if (s->env->active[i]->sla.nodes[g].host_node != h || b->held == 0)
				continue;
			r->broker.num_others++;
			if (b->keeps_from < r->broker.low)
				r->broker.low = b->keeps_from;
			if (b->keeps_from > r->broker.high)
				r->broker.high = b->keeps_from;
		}
	if (r->broker.num_others == 0)
		r->broker.low = 0;
}

static void record(struct broker_room *s, usec_t now, const struct ebb_vm *vm, uint16_t g)
{
	const struct ebb_brokered *b = &vm->vom.brokered[g];
	const uint16_t h = vm->sla.nodes[g].host_node;
	struct ebb_record *r = core_record(s->env, vm, now, EBB_EVENT_BROKER);
	char cutoff[EBB_VALUE_SIZE], low[EBB_VALUE_SIZE], high[EBB_VALUE_SIZE];

	r->node = g;
	r->bytes = b->asked * EBB_BLOCK_BYTES;
	r->broker.cutoff = b->cutoff;
	r->broker.age = b->vom_at ? now - b->vom_at : EBB_TIME_NEVER;
	compare(s, vm, h, r);
	if (b->cutoff == 0) {
		/* The policy did not look at values. */
		r->broker.low = r->broker.high = 0;
		core_text(r->text, "asked for %u of %u MiB by policy %s, by size alone; %u others "
			  "hold memory of host node %u", b->asked * EBB_BLOCK_MIB,
			  b->held * EBB_BLOCK_MIB, s->env->policy->name, r->broker.num_others, h);
		return;
	}
	ebb_value_print(b->cutoff, cutoff);
	ebb_value_print(r->broker.low, low);
	ebb_value_print(r->broker.high, high);
	core_text(r->text, "asked for %u of %u MiB, memory worth less than %s first (%s); %u "
		  "others on host node %u keep memory worth at least %s to %s",
		  b->asked * EBB_BLOCK_MIB, b->held * EBB_BLOCK_MIB, cutoff,
		  b->vom_at ? "as it says" : "guessed", r->broker.num_others, h, low, high);
}

static void note_node(struct broker_room *s, usec_t now, uint16_t h)
{
	s->broker.num_brokered[h]++;
	s->broker.brokered_at[h] = now;
	for (size_t i = 0; i < s->env->num_active; i++)
		for (uint16_t g = 0; g < s->env->active[i]->sla.num_nodes; g++)
			if (s->env->active[i]->sla.nodes[g].host_node == h)
				note(now, s->env->active[i], g);
	for (size_t i = 0; i < s->env->num_active; i++)
		for (uint16_t g = 0; g < s->env->active[i]->sla.num_nodes; g++)
			if (s->env->active[i]->sla.nodes[g].host_node == h &&
			    s->env->active[i]->vom.brokered[g].asked > 0)
				record(s, now, s->env->active[i], g);
}

/* A demand that is open keeps its cut-off while plans have no other for it. */
static void set_cutoff(const struct broker_room *s, const struct ebb_vm *vm, uint16_t g,
		       uint64_t cutoff)
{
	const struct ebb_vm_pool *p = &vm->pools[g];

	if (asks_for(p) == 0)
		cutoff = 0;
	else if (cutoff == 0 && p->num_due > 0)
		cutoff = vm->vom.cutoff[g];
	if (vm->vom.cutoff[g] == cutoff)
		return;
	broker_own(vm)->cutoff[g] = cutoff;
	core_mark(s->env, vm);
}

void broker_decided(struct broker_room *s, usec_t now, const struct ebb_plan *plan)
{
	uint32_t v = 0;

	broker_changed(s);
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t g = 0; vm->is_admitted && g < vm->sla.num_nodes; g++)
			set_cutoff(s, vm, g, plan->targets[v].mem_cutoff[g]);
		v += vm->is_admitted;
	}
	/* To other policies it makes no difference how much is used. */
	for (uint16_t h = 0; s->env->policy->mem_review_usec > 0 && h < s->env->host.num_nodes; h++)
		if (is_brokered(s, h))
			note_node(s, now, h);
	if (plan->asks_vom)
		ask(s, now);
}
