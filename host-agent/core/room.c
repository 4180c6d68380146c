// SPDX-License-Identifier: GPL-2.0-or-later
/* See room.h: calls by which rooms ask the core, and give it work. */
#include <string.h>

#include "core/room.h"
#include "core/work.h"

void core_mark(const struct core_env *e, const struct ebb_vm *vm)
{
	if (vm->work->place == EBB_MAX_VMS)
		return;
	core_set_add(&e->cycle->news, vm->work->place);
	core_set_add(&e->cycle->marked, vm->work->place);
}

void core_stale(const struct core_env *e, const struct ebb_vm *vm)
{
	for (uint16_t g = 0; vm->work->place != EBB_MAX_VMS && g < vm->sla.num_nodes; g++)
		e->cycle->stale_nodes |= 1u << vm->sla.nodes[g].host_node;
}

void core_touch(const struct core_env *e, const struct ebb_vm *vm)
{
	core_mark(e, vm);
	core_stale(e, vm);
}

void core_wake_at(const struct ebb_vm *vm, usec_t at)
{
	vm->work->wake_at = core_sooner(vm->work->wake_at, at);
}

void core_close_link(const struct ebb_vm *vm)
{
	vm->work->is_close_due = true;
}

bool core_has_news(const struct core_env *e, const struct ebb_vm *vm)
{
	return vm->work->place != EBB_MAX_VMS && core_set_has(&e->cycle->news, vm->work->place);
}

void core_respond(const struct core_env *e, const struct ebb_vm *vm,
		  const struct ebb_action_response *r)
{
	struct ebb_vm_work *w = vm->work;

	core_mark(e, vm);
	/* The device has no more than this in flight; one that has is broken. */
	if (w->num_responses == VIRTIO_EBB_MAX_INFLIGHT) {
		w->is_close_due = true;
		return;
	}
	w->responses[w->num_responses++] = *r;
}

bool core_counts_as_driven(const struct ebb_vm *vm)
{
	return vm->work->counts_as_driven;
}

bool core_has_hello(const struct ebb_vm *vm)
{
	return vm->work->has_hello;
}

bool core_is_found(const struct ebb_vm *vm)
{
	return vm->work->is_found;
}

bool core_may_promise(const struct core_env *e, const struct ebb_vm *vm)
{
	return e->has_quorum || (vm->work->is_found && !e->has_taken_over);
}

uint16_t core_wanted(const struct ebb_vm *vm, uint16_t g, usec_t now)
{
	const struct ebb_vm_node *n = &vm->nodes[g];
	const struct ebb_sla_node *sla = &vm->sla.nodes[g];
	const uint16_t want = now < n->want_until && n->want > n->used ? n->want : n->used;

	if (want < sla->startup)
		return sla->startup;
	return want < sla->max ? want : sla->max;
}

static uint32_t max32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/*
 * libvirt counts as well: until MEM_MIRROR has ended it may set what it was told, even if the
 * limit has changed meanwhile.
 */
uint32_t core_pool_reach(const struct ebb_vm_pool *p)
{
	return max32(max32(p->held, p->requested), max32(p->promised, p->mirroring));
}

uint32_t core_left_ms(usec_t at, usec_t now)
{
	if (at == 0)
		return 0;
	/* 0 would mean that nothing is demanded. */
	return at > now ? (uint32_t)((at - now + EBB_USEC_PER_MSEC - 1) / EBB_USEC_PER_MSEC) : 1;
}

uint32_t core_node_capacity(const struct core_env *e, uint16_t host_node)
{
	if (host_node >= e->host.num_nodes)
		return 0;
	return e->use_threads[host_node] ? e->nodes[host_node].num_cores * e->smt[host_node] :
					   e->nodes[host_node].capacity;
}

/* ---- actions ------------------------------------------------------------- */

usec_t core_backoff(const struct core_env *e, uint16_t failures)
{
	usec_t wait = e->cfg.retry_usec[0];

	for (uint16_t i = 1; i < failures && wait < e->cfg.retry_usec[1]; i++)
		wait *= 2;
	return core_sooner(wait, e->cfg.retry_usec[1]);
}

struct ebb_action *core_emit(struct ebb_actions *out, const struct ebb_vm *vm,
			     enum ebb_action_type type)
{
	struct ebb_action *a;

	if (out->count == out->capacity)
		return NULL;
	a = &out->items[out->count++];
	memset(a, 0, sizeof(*a));
	a->type = type;
	if (vm)
		memcpy(a->uuid, vm->uuid, sizeof(a->uuid));
	return a;
}

uint64_t core_action_id(const struct core_env *e, const struct ebb_vm *vm, uint16_t vcpu)
{
	e->cycle->num_actions++;
	return (e->cycle->num_actions * EBB_MAX_VMS + (vm ? vm->work->slot : 0)) * EBB_MAX_VCPUS +
	       vcpu;
}
