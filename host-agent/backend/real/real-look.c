/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The real backend looks at VMs: when something may have changed, and now and then anyhow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backend/real/real-private.h"
#include "util/clock.h"
#include "util/log.h"

#define LOOK_USEC		(30 * EBB_USEC_PER_SEC)
/* A domain that is just starting gets its threads within this. */
#define LOOK_AGAIN_USEC		(200 * EBB_USEC_PER_MSEC)
#define LIST_AGAIN_USEC		EBB_USEC_PER_SEC
/* How late a timer may be: this part of its wait, or for the longest wait a second. */
#define AUDIT_LATE_USEC		EBB_USEC_PER_SEC
#define AUDIT_LATE_PART		16u

static void check_loaded(struct ebb_real *r)
{
	struct ebb_fact fact = { .type = EBB_FACT_LOADED };

	if (r->is_loaded || r->num_first_looks || r->must_list)
		return;
	r->is_loaded = true;
	r->cfg.sink.report(r->cfg.sink.ctx, ebb_clock_mono_usec(), &fact);
}

static int on_look_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct real_vm *vm = arg;

	(void)s;
	(void)usec;
	vm->timer = sd_event_source_disable_unref(vm->timer);
	real_look(vm, "starting");
	return 0;
}

static void look_later(struct real_vm *vm)
{
	if (!vm->timer && sd_event_add_time_relative(vm->real->event, &vm->timer, CLOCK_MONOTONIC,
						     LOOK_AGAIN_USEC, 0, on_look_timer, vm) < 0)
		ebb_log(LOG_ERR, "look_timer", EBB_KS("vm", vm->watch.name));
}

/* The socket is there for as long as the SLA can be used. */
static void update_link(struct real_vm *vm)
{
	struct ebb_links *links = vm->real->links;
	struct ebb_err err = { "" };

	if (vm->watch.told == EBB_WATCH_VALID &&
	    ebb_links_listen(links, vm->watch.uuid, vm->watch.name, &err) < 0)
		ebb_log(LOG_ERR, "link_listen", EBB_KS("vm", vm->watch.name),
			EBB_KS("error", err.text));
	if (vm->watch.told == EBB_WATCH_INVALID && !vm->watch.told_running)
		ebb_links_forget(links, vm->watch.uuid);
	ebb_links_enable(links, vm->watch.uuid, vm->watch.told_running);
}

/* A look failed.  What libvirt can not say now, an event or the next connection will. */
static void look_failed(struct real_vm *vm, int err, const char *text)
{
	if (err == -ENOTCONN)
		return;
	ebb_log(LOG_WARNING, "look_failed", EBB_KS("vm", vm->watch.name),
		EBB_KS("error", text[0] ? text : strerror(-err)));
	look_later(vm);
}

/* A throttle of an agent before us is lifted, or the next look has to do it. */
static void took_over(struct real_vm *vm, const struct real_job *j, int err)
{
	if (err < 0 || !j->must_lift)
		return;
	vm->must_lift = j->lifted < 0;
	if (j->lifted < 0)
		ebb_log(LOG_WARNING, "throttle_stays", EBB_KS("vm", j->look.domain.name),
			EBB_KS("error", j->lift_err.text));
	else if (j->lifted > 0)
		ebb_log(LOG_NOTICE, "throttle_lifted", EBB_KS("vm", j->look.domain.name),
			EBB_KS("reason", "left by an ebbd that is gone"));
}

static void look_done(struct ebb_job *job, int err)
{
	struct real_job *j = (struct real_job *)job;
	struct ebb_real *r = j->real;
	struct real_vm *vm = real_vm_find(r, j->uuid);
	enum ebb_watch_result result = EBB_WATCH_KEEP;

	if (!vm)
		return;
	vm->is_looking = false;
	if (vm->is_first_look) {
		vm->is_first_look = false;
		r->num_first_looks--;
		/*
		 * Not seen, and nothing can be said of it: all over again with the next
		 * connection.
		 */
		r->must_list |= err == -ENOTCONN;
	}
	took_over(vm, j, err);
	j->look.is_sla_stale = j->num_saved != vm->num_saves;
	if (err < 0)
		look_failed(vm, err, err == -ETIMEDOUT ? "libvirt does not answer" : j->err.text);
	else
		result = ebb_watch_apply(&vm->watch, &j->look, ebb_clock_mono_usec(), &r->cfg.sink);
	if (result == EBB_WATCH_AGAIN)
		look_later(vm);
	if (result == EBB_WATCH_FORGET && !vm->look_again) {
		real_vm_forget(r, vm);
	} else {
		update_link(vm);
		if (vm->look_again)
			real_look(vm, "changed meanwhile");
	}
	check_loaded(r);
}

void real_look(struct real_vm *vm, const char *why)
{
	struct real_job *j;

	if (vm->is_looking) {
		vm->look_again = true;
		return;
	}
	vm->look_again = false;
	j = real_job_new(vm->real, WORK_LOOK, vm->watch.uuid, EBB_REAL_LANE_LOOK, LOOK_USEC,
			 look_done);
	if (!j) {
		look_later(vm);
		return;
	}
	ebb_log(LOG_DEBUG, "look", EBB_KS("vm", vm->watch.name), EBB_KS("reason", why));
	j->num_saved = vm->num_saved;
	j->must_lift = vm->must_lift;
	vm->is_looking = true;
	ebb_workers_submit(vm->real->cfg.workers, &j->job);
}

static int on_list_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct ebb_real *r = arg;

	(void)s;
	(void)usec;
	r->list_timer = sd_event_source_disable_unref(r->list_timer);
	real_list(r);
	return 0;
}

static void list_done(struct ebb_job *job, int err)
{
	struct real_job *j = (struct real_job *)job;
	struct ebb_real *r = j->real;

	if (err < 0) {
		/* Without a connection the next one lists. */
		if (err == -ENOTCONN)
			return;
		ebb_log(LOG_WARNING, "list_failed", EBB_KS("error", j->err.text));
		if (!r->list_timer &&
		    sd_event_add_time_relative(r->event, &r->list_timer, CLOCK_MONOTONIC,
					       LIST_AGAIN_USEC, 0, on_list_timer, r) < 0)
			sd_event_exit(r->event, -ENOMEM);
		return;
	}
	r->must_list = false;
	for (int i = 0; i < j->num_uuids; i++)
		real_vm_get(r, j->uuids[i]);
	/* Also those that were known and are not listed any more. */
	for (struct real_vm *vm = r->vms; vm; vm = vm->next) {
		if (!r->is_loaded && !vm->is_first_look) {
			vm->is_first_look = true;
			r->num_first_looks++;
		}
		real_look(vm, "listed");
	}
	check_loaded(r);
}

void real_list(struct ebb_real *r)
{
	struct real_job *j = real_job_new(r, WORK_LIST, NULL, EBB_REAL_LANE_LOOK, LOOK_USEC,
					  list_done);

	if (j)
		ebb_workers_submit(r->cfg.workers, &j->job);
	else
		ebb_log(LOG_ERR, "list", EBB_KS("error", "out of memory"));
}

/* ---- auditing ---- */

static void report_times(struct real_vm *vm, const struct ebb_audit *audit)
{
	const struct ebb_sink *sink = &vm->real->cfg.sink;
	struct ebb_fact fact = { .type = EBB_FACT_CPU_TIMES };

	memcpy(fact.uuid, vm->watch.uuid, sizeof(fact.uuid));
	fact.u.cpu_times = (struct ebb_fact_cpu_times){
		.as_of = audit->as_of, .num_vcpus = audit->num_times, .vcpus = audit->times,
	};
	sink->report(sink->ctx, ebb_clock_mono_usec(), &fact);
}

static void audit_done(struct ebb_job *job, int err)
{
	struct real_job *j = (struct real_job *)job;
	struct real_vm *vm = real_vm_find(j->real, j->uuid);

	if (!vm)
		return;
	vm->is_auditing = false;
	if (err < 0)
		return;
	if (vm->watch.told_running)
		report_times(vm, &j->audit);
	if (j->audit.sum == vm->audited)
		return;
	vm->audited = j->audit.sum;
	real_look(vm, "its threads have changed");
}

static void audit(struct real_vm *vm)
{
	struct ebb_real *r = vm->real;
	struct real_job *j;

	if (vm->is_auditing)
		return;
	j = real_job_new(r, WORK_AUDIT, vm->watch.uuid, EBB_REAL_LANE_AUDIT, LOOK_USEC, audit_done);
	if (!j)
		return;
	vm->is_auditing = true;
	ebb_workers_submit(r->cfg.workers, &j->job);
}

static int set_audit_timer(sd_event_source *s, usec_t wait)
{
	const usec_t late = wait < EBB_WATCH_PERIOD_MOST ? wait / AUDIT_LATE_PART : AUDIT_LATE_USEC;

	sd_event_source_set_time_accuracy(s, late > 0 ? late : 1);
	sd_event_source_set_time_relative(s, wait);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* The interval in which promises are metered, while there are any. */
static usec_t meter_interval(const struct ebb_real *r)
{
	for (const struct real_vm *vm = r->vms; vm; vm = vm->next)
		if (ebb_watch_is_promised(&vm->watch))
			return r->cfg.meter_interval;
	return EBB_TIME_NEVER;
}

/* libvirt has no event for a vCPU that somebody else plugs; and what threads use is read. */
static int on_audit_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct ebb_real *r = arg;
	const usec_t now = ebb_clock_mono_usec(), interval = meter_interval(r);
	usec_t next = now + EBB_WATCH_PERIOD_MOST;

	(void)usec;
	for (struct real_vm *vm = r->vms; vm; vm = vm->next) {
		if (!vm->watch.told_running)
			continue;
		if (now >= vm->audit_at) {
			vm->audit_at = now + ebb_watch_period(&vm->watch, r->cfg.window, interval);
			audit(vm);
		}
		if (vm->audit_at < next)
			next = vm->audit_at;
	}
	return set_audit_timer(s, next - now);
}

int real_audit_start(struct ebb_real *r)
{
	int rc = sd_event_add_time_relative(r->event, &r->audit_timer, CLOCK_MONOTONIC,
					    EBB_WATCH_PERIOD_MOST, AUDIT_LATE_USEC,
					    on_audit_timer, r);

	return rc < 0 ? rc : 0;
}
