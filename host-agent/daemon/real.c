/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The real backend: the table of VMs, looks, and actions.  What blocks is in real-jobs.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/real-jobs.h"
#include "daemon/real.h"
#include "io/link.h"
#include "io/qemuproc.h"
#include "util/clock.h"
#include "util/log.h"

/* libvirt gives up on an unplug after 5 s, the device on a request after 15. */
#define SET_VCPU_USEC		(10 * EBB_USEC_PER_SEC)
#define PLACE_USEC		(7 * EBB_USEC_PER_SEC)
#define LOOK_USEC		(30 * EBB_USEC_PER_SEC)
/* A domain that is just starting gets its threads within this. */
#define LOOK_AGAIN_USEC		(200 * EBB_USEC_PER_MSEC)
#define LIST_AGAIN_USEC		EBB_USEC_PER_SEC

struct vm {
	struct vm *next;
	struct ebb_real *real;
	struct ebb_watch watch;
	bool is_looking;		/* a look is under way */
	bool look_again;		/* something changed since it was submitted */
	bool is_first_look;		/* LOADED waits for it */
	sd_event_source *timer;		/* of a later look */
};

struct ebb_real {
	sd_event *event;
	struct ebb_real_config cfg;
	struct ebb_real_tools tools;
	struct ebb_links *links;
	struct vm *vms;
	sd_event_source *list_timer;	/* of another attempt to list the domains */
	bool is_connected, is_loaded;
	unsigned int num_first_looks;	/* under way */
	char why[EBB_TEXT_SIZE];	/* not connected because */
};

enum work { WORK_LOOK, WORK_LIST, WORK_PLUG, WORK_UNPLUG, WORK_PLACE, WORK_SAVE };

struct work_job {
	struct ebb_job job;		/* first: jobs are cast to this */
	struct ebb_real *real;
	enum work work;
	uint8_t uuid[16];
	char name[EBB_VIRT_NAME_SIZE];
	uint64_t action_id;
	uint16_t vcpu, thread;
	struct ebb_look look;
	uint8_t (*uuids)[16];
	int num_uuids;
	struct ebb_sla sla;
	void (*saved)(void *ctx, int rc, const char *text);
	void *saved_ctx;
	struct ebb_err err;
};

static void look(struct vm *vm, const char *why);
static void list(struct ebb_real *r);

static struct vm *find(struct ebb_real *r, const uint8_t uuid[16])
{
	for (struct vm *vm = r->vms; vm; vm = vm->next)
		if (memcmp(vm->watch.uuid, uuid, 16) == 0)
			return vm;
	return NULL;
}

static struct vm *get(struct ebb_real *r, const uint8_t uuid[16])
{
	struct vm *vm = find(r, uuid);

	if (vm)
		return vm;
	vm = calloc(1, sizeof(*vm));
	if (!vm)
		return NULL;
	vm->real = r;
	memcpy(vm->watch.uuid, uuid, 16);
	vm->next = r->vms;
	r->vms = vm;
	return vm;
}

static void forget(struct ebb_real *r, struct vm *vm)
{
	struct vm **at = &r->vms;

	while (*at != vm)
		at = &(*at)->next;
	*at = vm->next;
	ebb_links_forget(r->links, vm->watch.uuid);
	sd_event_source_disable_unref(vm->timer);
	free(vm);
}

/* ---- jobs ---- */

/* On a worker thread: touches the job and the tools only. */
static int run_job(struct ebb_job *job)
{
	struct work_job *j = (struct work_job *)job;
	const struct ebb_real_tools *t = &j->real->tools;

	switch (j->work) {
	case WORK_LOOK:
		return ebb_real_look(t, j->uuid, &j->look, &j->err);
	case WORK_LIST:
		j->num_uuids = ebb_real_list(t, &j->uuids, &j->err);
		return j->num_uuids < 0 ? j->num_uuids : 0;
	case WORK_PLUG:
	case WORK_UNPLUG:
		return ebb_real_set_vcpu(t, j->uuid, j->name, j->vcpu, j->work == WORK_PLUG,
					 &j->err);
	case WORK_PLACE:
		return ebb_real_place(t, j->uuid, j->name, j->vcpu, j->thread, &j->err);
	default:
		return ebb_real_write_sla(t, j->uuid, &j->sla, &j->err);
	}
}

static void release_job(struct ebb_job *job)
{
	struct work_job *j = (struct work_job *)job;

	/* Dropped when the daemon ends: whoever asked must still let go of the request. */
	if (j->saved)
		j->saved(j->saved_ctx, -ECANCELED, "ebbd ends");
	free(j->uuids);
	free(j);
}

static struct work_job *new_job(struct ebb_real *r, enum work work, const uint8_t uuid[16],
				uint8_t lane, usec_t timeout, void (*done)(struct ebb_job *, int))
{
	struct work_job *j = calloc(1, sizeof(*j));
	struct vm *vm;

	if (!j)
		return NULL;
	j->real = r;
	j->work = work;
	if (uuid) {
		memcpy(j->uuid, uuid, 16);
		memcpy(j->job.lane, uuid, 16);
		vm = find(r, uuid);
		if (vm)
			memcpy(j->name, vm->watch.name, sizeof(j->name));
	}
	j->job.lane[16] = lane;
	j->job.deadline = ebb_clock_mono_usec() + timeout;
	j->job.run = run_job;
	j->job.done = done;
	j->job.release = release_job;
	return j;
}

/* ---- looking ---- */

static void check_loaded(struct ebb_real *r)
{
	struct ebb_fact fact = { .type = EBB_FACT_LOADED };

	if (r->is_loaded || r->num_first_looks)
		return;
	r->is_loaded = true;
	r->cfg.sink.report(r->cfg.sink.ctx, ebb_clock_mono_usec(), &fact);
}

static int on_look_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct vm *vm = arg;

	(void)s;
	(void)usec;
	vm->timer = sd_event_source_disable_unref(vm->timer);
	look(vm, "starting");
	return 0;
}

static void look_later(struct vm *vm)
{
	if (!vm->timer && sd_event_add_time_relative(vm->real->event, &vm->timer, CLOCK_MONOTONIC,
						     LOOK_AGAIN_USEC, 0, on_look_timer, vm) < 0)
		ebb_log(LOG_ERR, "look_timer", EBB_KS("vm", vm->watch.name));
}

/* The socket is there for as long as the SLA can be used. */
static void update_link(struct vm *vm)
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
static void look_failed(struct vm *vm, int err, const char *text)
{
	if (err == -ENOTCONN)
		return;
	ebb_log(LOG_WARNING, "look_failed", EBB_KS("vm", vm->watch.name),
		EBB_KS("error", text[0] ? text : strerror(-err)));
	look_later(vm);
}

static void look_done(struct ebb_job *job, int err)
{
	struct work_job *j = (struct work_job *)job;
	struct ebb_real *r = j->real;
	struct vm *vm = find(r, j->uuid);
	enum ebb_watch_result result = EBB_WATCH_KEEP;

	if (!vm)
		return;
	vm->is_looking = false;
	if (vm->is_first_look) {
		vm->is_first_look = false;
		r->num_first_looks--;
	}
	if (err < 0)
		look_failed(vm, err, err == -ETIMEDOUT ? "libvirt does not answer" : j->err.text);
	else
		result = ebb_watch_apply(&vm->watch, &j->look, ebb_clock_mono_usec(), &r->cfg.sink);
	if (result == EBB_WATCH_AGAIN)
		look_later(vm);
	if (result == EBB_WATCH_FORGET && !vm->look_again) {
		forget(r, vm);
	} else {
		update_link(vm);
		if (vm->look_again)
			look(vm, "changed meanwhile");
	}
	check_loaded(r);
}

static void look(struct vm *vm, const char *why)
{
	struct work_job *j;

	if (vm->is_looking) {
		vm->look_again = true;
		return;
	}
	vm->look_again = false;
	j = new_job(vm->real, WORK_LOOK, vm->watch.uuid, EBB_REAL_LANE_LOOK, LOOK_USEC, look_done);
	if (!j) {
		look_later(vm);
		return;
	}
	ebb_log(LOG_DEBUG, "look", EBB_KS("vm", vm->watch.name), EBB_KS("reason", why));
	vm->is_looking = true;
	ebb_workers_submit(vm->real->cfg.workers, &j->job);
}

static int on_list_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct ebb_real *r = arg;

	(void)s;
	(void)usec;
	r->list_timer = sd_event_source_disable_unref(r->list_timer);
	list(r);
	return 0;
}

static void list_done(struct ebb_job *job, int err)
{
	struct work_job *j = (struct work_job *)job;
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
	for (int i = 0; i < j->num_uuids; i++)
		get(r, j->uuids[i]);
	/* Also those that were known and are not listed any more. */
	for (struct vm *vm = r->vms; vm; vm = vm->next) {
		if (!r->is_loaded && !vm->is_first_look) {
			vm->is_first_look = true;
			r->num_first_looks++;
		}
		look(vm, "listed");
	}
	check_loaded(r);
}

static void list(struct ebb_real *r)
{
	struct work_job *j = new_job(r, WORK_LIST, NULL, EBB_REAL_LANE_LOOK, LOOK_USEC, list_done);

	if (j)
		ebb_workers_submit(r->cfg.workers, &j->job);
	else
		ebb_log(LOG_ERR, "list", EBB_KS("error", "out of memory"));
}

static void on_connected(void *ctx)
{
	struct ebb_real *r = ctx;

	ebb_log(LOG_INFO, "libvirt_up", EBB_KS("uri", r->cfg.libvirt_uri));
	r->is_connected = true;
	list(r);
}

static void on_lost(void *ctx, const char *why)
{
	struct ebb_real *r = ctx;

	ebb_log(LOG_WARNING, "libvirt_down", EBB_KS("uri", r->cfg.libvirt_uri),
		EBB_KS("reason", why));
	r->is_connected = false;
	snprintf(r->why, sizeof(r->why), "%.*s", (int)sizeof(r->why) - 1, why);
}

static void on_changed(void *ctx, const uint8_t uuid[16], const char *what)
{
	struct vm *vm = get(ctx, uuid);

	if (vm)
		look(vm, what);
}

/* ---- actions ---- */

static void report_done(struct ebb_real *r, uint64_t id, int err)
{
	struct ebb_fact fact = {
		.type = EBB_FACT_ACTION_DONE, .u.action_done = { .id = id, .err = err },
	};

	r->cfg.sink.report(r->cfg.sink.ctx, ebb_clock_mono_usec(), &fact);
}

static void action_done(struct ebb_job *job, int err)
{
	struct work_job *j = (struct work_job *)job;
	struct vm *vm = find(j->real, j->uuid);

	if (err < 0)
		ebb_log(LOG_WARNING, "action_failed", EBB_KS("vm", j->name),
			EBB_KI("vcpu", j->vcpu),
			EBB_KS("action", j->work == WORK_PLUG	  ? "plug"
					 : j->work == WORK_UNPLUG ? "unplug"
								  : "place"),
			EBB_KS("error", err == -ETIMEDOUT && !j->err.text[0]
						? "libvirt does not answer"
						: j->err.text));
	report_done(j->real, j->action_id, err);
	/* What failed may have happened in part: see what is true. */
	if (err < 0 && vm)
		look(vm, "an action failed");
}

/* The call that had been given up on has returned: what it did is news. */
static void release_action(struct ebb_job *job)
{
	struct work_job *j = (struct work_job *)job;
	struct vm *vm = find(j->real, j->uuid);

	if (vm && job->has_timed_out)
		look(vm, "a late answer");
	release_job(job);
}

static void submit_job(struct ebb_real *r, const struct ebb_action *a)
{
	bool is_place = a->type == EBB_ACTION_PLACE || a->type == EBB_ACTION_HOME;
	enum work work = is_place ? WORK_PLACE :
			 a->type == EBB_ACTION_PLUG ? WORK_PLUG : WORK_UNPLUG;
	struct work_job *j = new_job(r, work, a->uuid,
				     is_place ? EBB_REAL_LANE_PLACE : EBB_REAL_LANE_LIBVIRT,
				     is_place ? PLACE_USEC : SET_VCPU_USEC, action_done);

	if (!j) {
		/* The core would wait for ever; a new start rebuilds everything. */
		ebb_log(LOG_CRIT, "out_of_memory", EBB_KI("vcpu", a->u.vcpu.vcpu));
		sd_event_exit(r->event, -ENOMEM);
		return;
	}
	j->action_id = a->id;
	j->vcpu = a->u.vcpu.vcpu;
	j->thread = a->u.vcpu.thread;
	j->job.release = release_action;
	ebb_workers_submit(r->cfg.workers, &j->job);
}

static void submit(void *be, usec_t now, const struct ebb_action *action)
{
	struct ebb_real *r = be;

	(void)now;
	switch (action->type) {
	case EBB_ACTION_PLUG:
	case EBB_ACTION_UNPLUG:
	case EBB_ACTION_PLACE:
	case EBB_ACTION_HOME:
		submit_job(r, action);
		break;
	default:
		ebb_links_submit(r->links, action);
	}
}

static void save_done(struct ebb_job *job, int err)
{
	struct work_job *j = (struct work_job *)job;

	j->saved(j->saved_ctx, err, j->err.text);
	j->saved = NULL;
}

void ebb_real_save_sla(struct ebb_real *r, const uint8_t uuid[16], const struct ebb_sla *sla,
		       void (*done)(void *ctx, int rc, const char *text), void *ctx)
{
	struct work_job *j = new_job(r, WORK_SAVE, uuid, EBB_REAL_LANE_LIBVIRT, SET_VCPU_USEC,
				     save_done);

	if (!j) {
		done(ctx, -ENOMEM, "out of memory");
		return;
	}
	j->sla = *sla;
	j->saved = done;
	j->saved_ctx = ctx;
	ebb_workers_submit(r->cfg.workers, &j->job);
}

/* ---- life ---- */

static pid_t qemu_pid(void *ctx, const uint8_t uuid[16])
{
	struct ebb_real *r = ctx;
	struct vm *vm = find(r, uuid);

	if (!vm)
		return -ESRCH;
	return ebb_qemuproc_find("/proc", r->tools.libvirt_run_dir, vm->watch.name, uuid);
}

static void destroy(void *be)
{
	struct ebb_real *r = be;

	/* Stuck in libvirt: the process ends anyhow. */
	if (!r || ebb_virt_destroy(r->tools.virt) < 0)
		return;
	sd_event_source_disable_unref(r->list_timer);
	while (r->vms)
		forget(r, r->vms);
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
	ebb_virt_run_dir(cfg->libvirt_uri, r->tools.libvirt_run_dir);
	snprintf(r->why, sizeof(r->why), "not connected yet");
	rc = ebb_links_create(event, &links, &r->links);
	if (rc == 0)
		rc = ebb_virt_create(event, &virt, &r->tools.virt, err);
	if (rc < 0) {
		destroy(r);
		return rc;
	}
	*ret = r;
	return 0;
}
