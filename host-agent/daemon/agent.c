/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts into the core, actions out of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backend/runner.h"
#include "daemon/agent.h"
#include "util/clock.h"
#include "util/log.h"

#define MAX_ACTIONS	256

static void log_record(const struct ebb_record *r)
{
	const bool has_node = r->node != EBB_NODE_ANY, is_timed = r->total_usec != 0;
	const bool is_pressure = r->event == EBB_EVENT_VIOLATION || r->event == EBB_EVENT_MOVE;
	const int priority = r->event == EBB_EVENT_ERROR ? LOG_WARNING :
			     is_pressure ? LOG_NOTICE : LOG_INFO;

	ebb_log(priority, ebb_event_name(r->event), r->name[0] ? EBB_KS("vm", r->name) : EBB_KSKIP,
		has_node ? EBB_KI("node", r->node) : EBB_KSKIP,
		r->cpus || !r->bytes ? EBB_KI("cpus", r->cpus) : EBB_KSKIP,
		r->bytes ? EBB_KI("bytes", r->bytes) : EBB_KSKIP,
		r->asked ? EBB_KI("asked", r->asked) : EBB_KSKIP,
		r->code || is_pressure ? EBB_KS("code", ebb_code_name(r->event, r->code)) :
					 EBB_KSKIP,
		is_timed ? EBB_KMS("agent_ms", r->agent_usec) : EBB_KSKIP,
		is_timed ? EBB_KMS("libvirt_ms", r->libvirt_usec) : EBB_KSKIP,
		is_timed ? EBB_KMS("place_ms", r->place_usec) : EBB_KSKIP,
		is_timed ? EBB_KMS("total_ms", r->total_usec) : EBB_KSKIP,
		EBB_KS("reason", r->text));
}

static void keep_records(struct ebb_agent *a)
{
	struct ebb_record r;

	while (ebb_state_record_pop(a->state, &r)) {
		/* Once a second for each VM: for the history only. */
		if (r.event != EBB_EVENT_CHARGE && r.event != EBB_EVENT_LEDGER)
			log_record(&r);
		ebb_history_add(a->history, &r, ebb_clock_mono_usec());
	}
}

void ebb_agent_charge(struct ebb_agent *a)
{
	ebb_state_charge_all(a->state, ebb_clock_mono_usec());
	keep_records(a);
}

static void log_action(void *ctx, usec_t now, const struct ebb_action *action)
{
	const struct ebb_agent *a = ctx;
	const struct ebb_vm *vm = ebb_state_vm(a->state, action->uuid);
	const bool is_cap = action->type == EBB_ACTION_MEM_CAP;
	const bool is_pool = action->type == EBB_ACTION_MEM_MIRROR ||
			     action->type == EBB_ACTION_REVOKE;
	const bool is_throttle = action->type == EBB_ACTION_THROTTLE;
	const bool is_reserve = action->type == EBB_ACTION_RESERVE;
	const bool is_shares = action->type == EBB_ACTION_SHARES;
	const bool is_volume = action->type == EBB_ACTION_VOLUME;
	bool is_vcpu = action->id != 0 && !is_cap && !is_pool && !is_throttle && !is_reserve &&
		       !is_shares && !is_volume;

	(void)now;
	ebb_log(LOG_DEBUG, "action", EBB_KS("type", ebb_action_name(action->type)),
		EBB_KS("vm", vm ? vm->name : "?"), EBB_KI("id", action->id),
		is_vcpu ? EBB_KI("vcpu", action->u.vcpu.vcpu) : EBB_KSKIP,
		is_vcpu && action->u.vcpu.thread != EBB_THREAD_NONE ?
			EBB_KI("thread", action->u.vcpu.thread) : EBB_KSKIP,
		is_reserve ? EBB_KI("vcpu", action->u.reserve.vcpu) : EBB_KSKIP,
		is_shares ? EBB_KI("shares", action->u.shares) :
		is_reserve ? EBB_KI("permille", action->u.reserve.keep) :
		is_throttle ? EBB_KI("permille", action->u.permille) : EBB_KSKIP,
		is_volume ? EBB_KS("volume", action->u.volume.name) : EBB_KSKIP,
		is_pool ? EBB_KI("node", action->u.pool.node) : EBB_KSKIP,
		is_pool ? EBB_KI("bytes", action->u.pool.bytes) :
		is_cap ? EBB_KI("bytes", action->u.cap_bytes) : EBB_KSKIP);
}

static void arm(sd_event_source *timer, usec_t at)
{
	if (at == EBB_TIME_NEVER) {
		sd_event_source_set_enabled(timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time(timer, at);
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static void arm_run(struct ebb_agent *a)
{
	if (a->backend.ops->next)
		arm(a->run, a->backend.ops->next(a->backend.be));
}

/* The core refuses to take note. */
static void log_refused(void *ctx, usec_t now, const struct ebb_fact *fact, int err)
{
	(void)ctx;
	(void)now;
	/* Normal where things cross: news of a VM that has just gone. */
	ebb_log(err == -ENOENT ? LOG_DEBUG : LOG_WARNING, "fact_refused",
		EBB_KS("type", ebb_fact_name(fact->type)), EBB_KS("error", strerror(-err)));
}

static struct ebb_runner runner_of(struct ebb_agent *a)
{
	return (struct ebb_runner){
		.state = a->state, .backend = a->backend, .items = a->actions,
		.capacity = MAX_ACTIONS, .ctx = a, .on_action = log_action,
		.on_refused = log_refused,
	};
}

static int on_cycle(sd_event_source *s, void *arg)
{
	struct ebb_agent *a = arg;
	struct ebb_runner runner = runner_of(a);
	usec_t now, wake_at;
	size_t count;

	(void)s;
	do {
		now = ebb_clock_mono_usec();
		wake_at = ebb_runner_step(&runner, now, &count);
	} while (count && wake_at <= now);
	keep_records(a);
	arm(a->wake, wake_at);
	arm_run(a);
	return 0;
}

static int on_wake(sd_event_source *s, uint64_t usec, void *arg)
{
	(void)usec;
	return on_cycle(s, arg);
}

static int on_run(sd_event_source *s, uint64_t usec, void *arg)
{
	struct ebb_agent *a = arg;

	(void)s;
	(void)usec;
	a->backend.ops->run(a->backend.be, ebb_clock_mono_usec());
	arm_run(a);
	return 0;
}

void ebb_agent_poke(struct ebb_agent *a)
{
	sd_event_source_set_enabled(a->cycle, SD_EVENT_ONESHOT);
}

/* The counters of VMs that were found running go on from where the last agent left them. */
static void resume_charge(struct ebb_agent *a)
{
	for (size_t i = 0; i < ebb_state_num_vms(a->state); i++) {
		const struct ebb_vm *vm = ebb_state_vm_at(a->state, i);
		const struct ebb_vm_charge *last =
			ebb_history_charge_of(a->history, vm->uuid, vm->order);

		if (last)
			ebb_state_charge_resume(a->state, vm->uuid, vm->order, last);
	}
}

static int take_fact(void *ctx, usec_t now, const struct ebb_fact *fact)
{
	struct ebb_agent *a = ctx;
	struct ebb_runner runner = runner_of(a);
	int rc;

	if (fact->type == EBB_FACT_LOADED)
		resume_charge(a);
	rc = ebb_runner_report(&runner, now, fact);
	ebb_agent_poke(a);
	return rc;
}

int ebb_agent_report(struct ebb_agent *a, const struct ebb_fact *fact)
{
	int rc = ebb_state_report(a->state, ebb_clock_mono_usec(), fact);

	ebb_agent_poke(a);
	return rc;
}

struct ebb_sink ebb_agent_sink(struct ebb_agent *a)
{
	return (struct ebb_sink){ .ctx = a, .report = take_fact };
}

int ebb_agent_init(struct ebb_agent *a)
{
	int rc;

	a->started_at = ebb_clock_mono_usec();
	a->actions = calloc(MAX_ACTIONS, sizeof(*a->actions));
	if (!a->actions)
		return -ENOMEM;
	rc = sd_event_add_defer(a->event, &a->cycle, on_cycle, a);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(a->cycle, SD_EVENT_OFF);
	/* Decisions before more input: what is known is acted on first. */
	if (rc >= 0)
		rc = sd_event_source_set_priority(a->cycle, SD_EVENT_PRIORITY_IMPORTANT);
	if (rc >= 0)
		rc = sd_event_add_time(a->event, &a->wake, CLOCK_MONOTONIC, UINT64_MAX, 1, on_wake,
				       a);
	/* A deadline that has come is news, too. */
	if (rc >= 0)
		rc = sd_event_source_set_priority(a->wake, SD_EVENT_PRIORITY_IMPORTANT);
	if (rc >= 0)
		rc = sd_event_add_time(a->event, &a->run, CLOCK_MONOTONIC, UINT64_MAX, 1, on_run,
				       a);
	if (rc >= 0) {
		sd_event_source_set_enabled(a->wake, SD_EVENT_OFF);
		sd_event_source_set_enabled(a->run, SD_EVENT_OFF);
	}
	return rc < 0 ? rc : 0;
}

void ebb_agent_finish(struct ebb_agent *a)
{
	if (a->state)
		ebb_agent_charge(a);
	sd_event_source_disable_unref(a->cycle);
	sd_event_source_disable_unref(a->wake);
	sd_event_source_disable_unref(a->run);
	free(a->actions);
}
