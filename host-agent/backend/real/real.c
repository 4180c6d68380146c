/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The real backend: the table of VMs, jobs, and actions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/real/real-private.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

/* libvirt gives up on an unplug after 5 s, the device on a request after 15. */
#define SET_VCPU_USEC		(10 * EBB_USEC_PER_SEC)
#define PLACE_USEC		(7 * EBB_USEC_PER_SEC)
/* It waits for an unplug of the same domain. */
#define MEM_USEC		(10 * EBB_USEC_PER_SEC)

struct real_vm *real_vm_find(struct ebb_real *r, const uint8_t uuid[16])
{
	for (struct real_vm *vm = r->vms; vm; vm = vm->next)
		if (memcmp(vm->watch.uuid, uuid, 16) == 0)
			return vm;
	return NULL;
}

struct real_vm *real_vm_get(struct ebb_real *r, const uint8_t uuid[16])
{
	struct real_vm *vm = real_vm_find(r, uuid);

	if (vm)
		return vm;
	vm = calloc(1, sizeof(*vm));
	if (!vm)
		return NULL;
	vm->real = r;
	memcpy(vm->watch.uuid, uuid, 16);
	vm->must_lift = !r->is_loaded;
	vm->next = r->vms;
	r->vms = vm;
	return vm;
}

void real_vm_forget(struct ebb_real *r, struct real_vm *vm)
{
	struct real_vm **at = &r->vms;

	while (*at != vm)
		at = &(*at)->next;
	*at = vm->next;
	ebb_links_forget(r->links, vm->watch.uuid);
	sd_event_source_disable_unref(vm->timer);
	free(vm);
}

/* ---- jobs ---- */

/*
 * Lifts a throttle of an agent that was killed, whatever became of the VM's SLA.  Before the core
 * hears of the VM, so that the throttle is not mistaken for one of the core's.
 */
static int run_look(struct real_job *j)
{
	const struct ebb_real_tools *t = &j->real->tools;
	int rc = ebb_real_look(t, j->uuid, &j->look, &j->err);

	if (rc == 0 && j->must_lift && j->look.domain.is_running)
		j->lifted = ebb_real_lift_throttle(t, j->uuid, &j->lift_err);
	return rc;
}

/* On a worker thread: touches the job and the tools only. */
static int run_job(struct ebb_job *job)
{
	struct real_job *j = (struct real_job *)job;
	const struct ebb_real_tools *t = &j->real->tools;

	switch (j->work) {
	case WORK_LOOK:
		return run_look(j);
	case WORK_LIST:
		j->num_uuids = ebb_real_list(t, &j->uuids, &j->err);
		return j->num_uuids < 0 ? j->num_uuids : 0;
	case WORK_PLUG:
	case WORK_UNPLUG:
		return ebb_real_set_vcpu(t, j->uuid, j->name, j->vcpu, j->work == WORK_PLUG,
					 &j->err);
	case WORK_PLACE:
		return ebb_real_place(t, j->uuid, j->name, j->vcpu, j->thread, &j->err);
	case WORK_CAP:
		return ebb_real_set_cap(t, j->uuid, j->bytes, &j->err);
	case WORK_THROTTLE:
		return ebb_real_set_throttle(t, j->uuid, (uint16_t)j->bytes, &j->err);
	case WORK_SHARES:
		return ebb_real_set_shares(t, j->uuid, (uint32_t)j->bytes, &j->err);
	case WORK_RESERVE:
		return ebb_real_reserve(t, j->uuid, j->name, &j->reserve, &j->err);
	case WORK_MIRROR:
		return ebb_real_set_requested(t, j->uuid, j->node, j->bytes, &j->err);
	case WORK_AUDIT:
		return ebb_real_audit(t, j->uuid, j->name, &j->audit);
	default:
		return ebb_real_write_sla(t, j->uuid, &j->sla, &j->err);
	}
}

static void job_release(struct ebb_job *job)
{
	struct real_job *j = (struct real_job *)job;

	/* Dropped when the daemon ends: the caller must still let go of the request. */
	if (j->saved)
		j->saved(j->saved_ctx, -ECANCELED, "ebbd ends");
	free(j->uuids);
	free(j);
}

struct real_job *real_job_new(struct ebb_real *r, enum real_work work, const uint8_t uuid[16],
				uint8_t lane, usec_t timeout, void (*done)(struct ebb_job *, int))
{
	struct real_job *j = calloc(1, sizeof(*j));
	struct real_vm *vm;

	if (!j)
		return NULL;
	j->real = r;
	j->work = work;
	if (uuid) {
		memcpy(j->uuid, uuid, 16);
		memcpy(j->job.lane, uuid, 16);
		vm = real_vm_find(r, uuid);
		if (vm)
			memcpy(j->name, vm->watch.name, sizeof(j->name));
	}
	j->job.lane[16] = lane;
	j->job.deadline = ebb_clock_mono_usec() + timeout;
	j->job.run = run_job;
	j->job.done = done;
	j->job.release = job_release;
	return j;
}

/* ---- actions ---- */

static void report_done(const struct real_job *j, int err)
{
	const struct ebb_real *r = j->real;
	struct ebb_fact fact = {
		.type = EBB_FACT_ACTION_DONE,
		.u.action_done = { .id = j->action_id, .type = j->action_type, .err = err },
	};

	r->cfg.sink.report(r->cfg.sink.ctx, ebb_clock_mono_usec(), &fact);
}

static const char *work_name(enum real_work work)
{
	switch (work) {
	case WORK_PLUG:
		return "plug";
	case WORK_UNPLUG:
		return "unplug";
	case WORK_PLACE:
		return "place";
	case WORK_CAP:
		return "memory limit";
	case WORK_THROTTLE:
		return "throttle";
	case WORK_RESERVE:
		return "reserve";
	case WORK_SHARES:
		return "shares";
	default:
		return "requested size";
	}
}

static void log_failure(const struct real_job *j, int err)
{
	const bool is_mem = j->work == WORK_CAP || j->work == WORK_MIRROR;
	/* A VM that is going away takes its threads along; it will be reported. */
	const bool is_gone = err == -ESRCH || err == -ENOENT;

	ebb_log(is_gone ? LOG_DEBUG : LOG_WARNING, "action_failed", EBB_KS("vm", j->name),
		EBB_KS("action", work_name(j->work)),
		is_mem ? EBB_KI("bytes", j->bytes) :
		j->work == WORK_THROTTLE ? EBB_KI("permille", j->bytes) :
		j->work == WORK_SHARES ? EBB_KI("shares", j->bytes) :
					   EBB_KI("vcpu", j->vcpu),
		EBB_KS("error", err == -ETIMEDOUT && !j->err.text[0] ? "libvirt does not answer" :
								       j->err.text));
}

static void action_done(struct ebb_job *job, int err)
{
	struct real_job *j = (struct real_job *)job;
	struct real_vm *vm = real_vm_find(j->real, j->uuid);

	if (err < 0)
		log_failure(j, err);
	report_done(j, err);
	/* An action that failed may have happened in part: look. */
	if (err < 0 && vm)
		real_look(vm, "an action failed");
}

/* The call that had been given up on has returned: what it did is news. */
static void release_action(struct ebb_job *job)
{
	struct real_job *j = (struct real_job *)job;
	struct real_vm *vm = real_vm_find(j->real, j->uuid);

	if (vm && job->has_timed_out)
		real_look(vm, "a late answer");
	job_release(job);
}

static const struct {
	enum real_work work;
	uint8_t lane;
	usec_t timeout;
} kinds[EBB_ACTION_MAX] = {
	[EBB_ACTION_PLUG] = { WORK_PLUG, EBB_REAL_LANE_LIBVIRT, SET_VCPU_USEC },
	[EBB_ACTION_UNPLUG] = { WORK_UNPLUG, EBB_REAL_LANE_LIBVIRT, SET_VCPU_USEC },
	[EBB_ACTION_PLACE] = { WORK_PLACE, EBB_REAL_LANE_PLACE, PLACE_USEC },
	[EBB_ACTION_HOME] = { WORK_PLACE, EBB_REAL_LANE_PLACE, PLACE_USEC },
	[EBB_ACTION_MEM_CAP] = { WORK_CAP, EBB_REAL_LANE_MEM, MEM_USEC },
	[EBB_ACTION_MEM_MIRROR] = { WORK_MIRROR, EBB_REAL_LANE_MEM, MEM_USEC },
	[EBB_ACTION_THROTTLE] = { WORK_THROTTLE, EBB_REAL_LANE_MEM, MEM_USEC },
	[EBB_ACTION_SHARES] = { WORK_SHARES, EBB_REAL_LANE_MEM, MEM_USEC },
	/* In the lane of placing, so that it finds the thread where it was placed last. */
	[EBB_ACTION_RESERVE] = { WORK_RESERVE, EBB_REAL_LANE_PLACE, PLACE_USEC },
};

static void submit_job(struct ebb_real *r, const struct ebb_action *a)
{
	struct real_job *j = real_job_new(r, kinds[a->type].work, a->uuid, kinds[a->type].lane,
					  kinds[a->type].timeout, action_done);

	if (!j) {
		/* The core would wait for ever; a new start rebuilds everything. */
		ebb_log(LOG_CRIT, "out_of_memory", EBB_KS("action", ebb_action_name(a->type)));
		sd_event_exit(r->event, -ENOMEM);
		return;
	}
	j->action_id = a->id;
	j->action_type = a->type;
	/* A VM waits for the core, with a deadline that is to be met or with an answer. */
	j->job.is_urgent = a->type == EBB_ACTION_HOME || a->type == EBB_ACTION_PLACE;
	if (a->type == EBB_ACTION_MEM_CAP) {
		j->bytes = a->u.cap_bytes;
	} else if (a->type == EBB_ACTION_THROTTLE) {
		j->bytes = a->u.permille;
	} else if (a->type == EBB_ACTION_SHARES) {
		j->bytes = a->u.shares;
	} else if (a->type == EBB_ACTION_RESERVE) {
		j->reserve = a->u.reserve;
		j->vcpu = a->u.reserve.vcpu;
	} else if (a->type == EBB_ACTION_MEM_MIRROR) {
		j->node = a->u.pool.node;
		j->bytes = a->u.pool.bytes;
	} else {
		j->vcpu = a->u.vcpu.vcpu;
		j->thread = a->u.vcpu.thread;
	}
	j->job.release = release_action;
	ebb_workers_submit(r->cfg.workers, &j->job);
}

static void submit(void *be, usec_t now, const struct ebb_action *action)
{
	struct ebb_real *r = be;

	(void)now;
	if (ebb_action_is_on_link(action->type))
		ebb_links_submit(r->links, action);
	else
		submit_job(r, action);
}

static void save_done(struct ebb_job *job, int err)
{
	struct real_job *j = (struct real_job *)job;
	struct real_vm *vm = real_vm_find(j->real, j->uuid);

	j->saved(j->saved_ctx, err, j->err.text);
	j->saved = NULL;
	if (vm) {
		vm->num_saved++;
		/* Looks that began before did not count what they found. */
		real_look(vm, "its SLA was written");
	}
}

void ebb_real_save_sla(struct ebb_real *r, const uint8_t uuid[16], const struct ebb_sla *sla,
		       void (*done)(void *ctx, int rc, const char *text), void *ctx)
{
	struct real_job *j = real_job_new(r, WORK_SAVE, uuid, EBB_REAL_LANE_LIBVIRT, SET_VCPU_USEC,
				     save_done);
	struct real_vm *vm;

	if (!j) {
		done(ctx, -ENOMEM, "out of memory");
		return;
	}
	j->sla = *sla;
	j->saved = done;
	j->saved_ctx = ctx;
	vm = real_vm_find(r, uuid);
	if (vm) {
		vm->num_saves++;
		ebb_watch_sla_set(&vm->watch, sla);
	}
	ebb_workers_submit(r->cfg.workers, &j->job);
}

/* ---- libvirt's side ---- */

static void on_connected(void *ctx)
{
	struct ebb_real *r = ctx;

	ebb_log(LOG_INFO, "libvirt_up", EBB_KS("uri", r->cfg.libvirt_uri));
	r->is_connected = true;
	real_list(r);
}

static void on_lost(void *ctx, const char *why)
{
	struct ebb_real *r = ctx;

	ebb_log(LOG_WARNING, "libvirt_down", EBB_KS("uri", r->cfg.libvirt_uri),
		EBB_KS("reason", why));
	r->is_connected = false;
	ebb_text_copy(r->why, sizeof(r->why), why);
}

static void on_changed(void *ctx, const uint8_t uuid[16], const char *what)
{
	struct real_vm *vm = real_vm_get(ctx, uuid);

	if (vm)
		real_look(vm, what);
}

/* ---- life ---- */

void ebb_real_lift_all(struct ebb_real *r)
{
	struct ebb_err err = { "" };
	int rc = ebb_real_lift_throttles(&r->tools, &err);

	if (rc < 0)
		ebb_log(LOG_WARNING, "throttles_stay", EBB_KS("error", err.text));
	else if (rc > 0)
		ebb_log(LOG_NOTICE, "throttles_lifted", EBB_KI("vms", rc));
}

static pid_t qemu_pid(void *ctx, const uint8_t uuid[16])
{
	struct ebb_real *r = ctx;
	struct real_vm *vm = real_vm_find(r, uuid);

	if (!vm)
		return -ESRCH;
	return ebb_real_find_qemu(&r->tools, uuid, vm->watch.name);
}

static void destroy(void *be)
{
	struct ebb_real *r = be;

	/* Stuck in libvirt: the process ends anyhow. */
	if (!r || ebb_virt_destroy(r->tools.virt) < 0)
		return;
	sd_event_source_disable_unref(r->list_timer);
	sd_event_source_disable_unref(r->audit_timer);
	while (r->vms)
		real_vm_forget(r, r->vms);
	ebb_links_destroy(r->links);
	sd_event_unref(r->event);
	free(r);
}

static const struct ebb_backend_ops real_ops = {
	.name = "libvirt",
	.submit = submit,
	.destroy = destroy,
};

struct ebb_backend ebb_real_backend(struct ebb_real *r)
{
	return (struct ebb_backend){ .ops = &real_ops, .be = r };
}

const char *ebb_real_link_error(struct ebb_real *r, const uint8_t uuid[16])
{
	return ebb_links_last_error(r->links, uuid);
}

bool ebb_real_is_connected(struct ebb_real *r, const char **ret_why)
{
	*ret_why = r->why;
	return r->is_connected;
}

int ebb_real_create(sd_event *event, const struct ebb_real_config *cfg, struct ebb_real **ret,
		    struct ebb_err *err)
{
	struct ebb_real *r = calloc(1, sizeof(*r));
	struct ebb_links_config links = {
		.folder = cfg->link_dir, .group = cfg->link_group, .sink = cfg->sink,
		.qemu_pid = qemu_pid, .ctx = r,
	};
	struct ebb_virt_config virt = {
		.uri = cfg->libvirt_uri, .ctx = r, .connected = on_connected, .lost = on_lost,
		.changed = on_changed,
	};
	int rc;

	if (!r)
		return -ENOMEM;
	r->event = sd_event_ref(event);
	r->cfg = *cfg;
	r->tools.placer = (struct ebb_placer){ .host = cfg->host, .emuhost = cfg->emuhost };
	r->tools.num_host_nodes = cfg->host->num_nodes;
	r->tools.libvirt_uri = cfg->libvirt_uri;
	ebb_text_copy(r->tools.nbd_socket, sizeof(r->tools.nbd_socket), cfg->nbd_socket);
	r->must_list = true;
	snprintf(r->why, sizeof(r->why), "not connected yet");
	rc = ebb_links_create(event, &links, &r->links);
	if (rc == 0)
		rc = real_audit_start(r);
	if (rc == 0)
		rc = ebb_virt_create(event, &virt, &r->tools.virt, err);
	if (rc < 0) {
		destroy(r);
		return rc;
	}
	*ret = r;
	return 0;
}
