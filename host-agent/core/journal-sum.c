// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest that makes very many requests must not bury all other records in the
 * log and in the history.  So the first requests and refusals of a second are
 * recorded, the others are only counted, and one record at the end of the second
 * says how many they were.  Grants, releases and everything else that moves a core
 * are always recorded.
 */
#include "core/journal.h"
#include "core/room.h"

#define PERIOD_USEC	EBB_USEC_PER_SEC
#define MAX_RECORDS	20u

static struct ebb_vm_gather *own(const struct ebb_vm *vm)
{
	return (struct ebb_vm_gather *)&vm->gather;
}

static bool may_record(const struct core_env *e, const struct ebb_vm *vm, usec_t now)
{
	struct ebb_vm_gather *g = own(vm);

	if (now >= g->since + PERIOD_USEC) {
		core_gather_end(e, vm, now);
		g->since = now;
		g->num_recorded = 0;
	}
	return g->num_recorded < MAX_RECORDS;
}

struct ebb_record *core_gather_request(const struct core_env *e, const struct ebb_vm *vm,
				       usec_t now)
{
	if (!may_record(e, vm, now)) {
		own(vm)->num_requests++;
		return NULL;
	}
	own(vm)->num_recorded++;
	return core_record(e, vm, now, EBB_EVENT_REQUEST);
}

struct ebb_record *core_gather_refuse(const struct core_env *e, const struct ebb_vm *vm, usec_t now,
				      uint16_t reason)
{
	if (!may_record(e, vm, now)) {
		own(vm)->num_refused++;
		own(vm)->code = reason;
		return NULL;
	}
	own(vm)->num_recorded++;
	return core_record(e, vm, now, EBB_EVENT_REFUSE);
}

usec_t core_gather_until(const struct ebb_vm *vm)
{
	const struct ebb_vm_gather *g = &vm->gather;

	return g->num_requests || g->num_refused ? g->since + PERIOD_USEC : EBB_TIME_NEVER;
}

void core_gather_end(const struct core_env *e, const struct ebb_vm *vm, usec_t now)
{
	struct ebb_vm_gather *g = own(vm);
	struct ebb_record *r;

	if (core_gather_until(vm) == EBB_TIME_NEVER)
		return;
	r = core_record(e, vm, now, g->num_refused ? EBB_EVENT_REFUSE : EBB_EVENT_REQUEST);
	r->code = g->num_refused ? g->code : VIRTIO_EBB_REASON_NONE;
	core_text(r->text, "%u more requests for CPUs and %u more refusals within a second%s%s",
		  g->num_requests, g->num_refused, g->num_refused ? ", the last because of: " : "",
		  g->num_refused ? ebb_reason_name(g->code) : "");
	g->num_requests = g->num_refused = 0;
}
