/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests on the control socket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "util/clock.h"
#include "util/log.h"
#include "util/version.h"
#include "volumed/calibrate.h"
#include "volumed/server.h"
#include "volumed/vaccess.h"
#include "volumed/vctl.h"
#include "volumed/vmeter.h"
#include "volumed/volview.h"
#include "volumed/vrequest.h"
#include "volumed/vstate.h"

#define NO_ANSWER	"the storage daemon does not answer"
#define MAY_NOT_CHANGE	"only root and the user that runs ebb-volumed may change things"
/* A calibration takes some 12 s if the disk is not slow. */
#define CALIBRATION_USEC	60000000

static int on_late(sd_event_source *source, uint64_t usec, void *arg);

/* ---- looking ---- */

static void cmd_version(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	struct ebb_server *s = ctl->server;
	const uint64_t up = ebb_clock_mono_usec() - s->started_at;

	ebb_ctl_reply(r, json_pack("{s:s, s:f}", "version", EBB_VERSION, "uptime_s",
				   (double)up / 1000000));
}

static int read_listing(struct ebb_server *s, struct ebb_ctl_request *r,
			struct ebb_volview_listing *ret)
{
	const json_t *owner = json_object_get(r->body, "owner");
	const json_t *after = json_object_get(r->body, "after");
	const json_t *most = json_object_get(r->body, "most");
	const json_t *brief = json_object_get(r->body, "brief");

	*ret = (struct ebb_volview_listing){
		.owner = json_string_value(owner), .is_brief = json_is_true(brief),
		.after = json_integer_value(after),
		.most = most ? json_integer_value(most) : EBB_SERVER_MAX_VOLUMES,
	};
	if ((owner && !json_is_string(owner)) || (brief && !json_is_boolean(brief)) ||
	    (after && (!json_is_integer(after) || ret->after < 0)) ||
	    (most && (!json_is_integer(most) || ret->most < 0))) {
		ebb_ctl_fail(r, "bad-request", NULL, "\"after\" and \"most\" are whole numbers "
			     "from 0, \"brief\" is true or false, \"owner\" a string");
		return -EINVAL;
	}
	if (!json_object_get(r->body, "volume"))
		return 0;
	ret->only = ebb_vrequest_volume(s, r);
	return ret->only ? 0 : -ENOENT;
}

static void cmd_volumes(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	struct ebb_volview_listing listing;

	if (read_listing(ctl->server, r, &listing) == 0)
		ebb_ctl_reply(r, ebb_volview_list(ctl->server, &listing));
}

static json_t *view_meters(const struct ebb_volume *v)
{
	const json_t *queued = json_object_get(v->now, "queued");
	const json_t *in_flight = json_object_get(v->now, "in-flight");
	json_t *interval = json_object_get(v->now, "interval");
	json_t *counters = ebb_server_counters(v);

	ebb_vmeter_add_delays(counters);
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:O?}", "name", v->spec.name,
			 "tenant", v->spec.tenant, "state", ebb_volview_state(v), "queued",
			 json_integer_value(queued), "in-flight", json_integer_value(in_flight),
			 "delay", ebb_vmeter_delay(counters), "counters", counters, "interval",
			 interval);
}

/* The meters of a volume as the agent reads them, once in an interval. */
static json_t *view_brief(const struct ebb_volume *v)
{
	const json_t *taker = json_object_get(json_object_get(v->now, "interval"), "taker");
	json_t *counters = ebb_server_counters(v);
	json_t *view = json_pack("{s:s, s:o, s:o, s:{s:O*}}", "name", v->spec.name, "delay",
				 ebb_vmeter_delay(counters), "counters",
				 ebb_vmeter_brief(counters), "interval", "taker", taker);

	json_decref(counters);
	return view;
}

/* Without the storage daemon the counters stand still, and are told as they are. */
static void reply_meters(struct ebb_waiting *w, const char *error)
{
	struct ebb_server *s = w->ctl->server;
	json_t *meters = json_array();

	for (const struct ebb_volume *v = s->volumes; v; v = v->next)
		if (!w->has_volume || v->id == w->volume)
			json_array_append_new(meters, w->is_brief ? view_brief(v) :
								    view_meters(v));
	ebb_vrequest_reply(w, json_pack("{s:f, s:s, s:o, s:o}", "ts", ebb_clock_real_usec() / 1e6,
					"error", error, "scheduler", s->scheduler ?
					json_incref(s->scheduler) : json_object(), "meters",
					meters));
}

static void on_meters(void *ctx, const char *error)
{
	struct ebb_waiting *w = ctx;

	if (w->request)
		reply_meters(w, error ? error : "");
	ebb_vrequest_end(w);
}

static void cmd_meters(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	struct ebb_server *s = ctl->server;
	const json_t *brief = json_object_get(r->body, "brief");
	const struct ebb_volume *only = NULL;
	struct ebb_waiting *w;

	if (brief && !json_is_boolean(brief)) {
		ebb_ctl_fail(r, "bad-request", NULL, "\"brief\": true or false is needed");
		return;
	}
	if (json_object_get(r->body, "volume")) {
		only = ebb_vrequest_volume(s, r);
		if (!only)
			return;
	}
	w = ebb_vrequest_wait(ctl, r, only, s->patience_usec, on_late);
	if (!w)
		return;
	w->is_meters = true;
	w->is_brief = json_is_true(brief);
	/* One that hangs is not asked by each client again and again. */
	if (ebb_server_hangs(s))
		on_meters(w, NO_ANSWER);
	else
		ebb_server_refresh(s, on_meters, w);
}

/* ---- changing ---- */

/*
 * A client that may change nothing sets no promise, and keeps no other program from it.  One that
 * hangs up gives its claim back.
 */
static void cmd_claim(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	const char *owner = json_string_value(json_object_get(r->body, "owner"));
	struct ebb_err err = { "\"claim\" needs a string \"owner\"" };
	struct ebb_volspec spec;

	if (!owner || ebb_volspec_set_owner(&spec, owner, &err) < 0)
		ebb_ctl_fail(r, "bad-request", NULL, "%s", err.text);
	else if (!r->may_change)
		ebb_ctl_fail(r, "denied", "become root", "%s", MAY_NOT_CHANGE);
	else if (ebb_claims_take(&ctl->claims, r, spec.owner) < 0)
		ebb_ctl_fail(r, "owner-in-use", "end the other one, or give this one another name",
			     "another program that is connected sets promises as \"%s\"", owner);
	else
		ebb_ctl_reply(r, json_object());
}

static int read_owner(struct ebb_volspec *spec, struct ebb_ctl_request *r, const json_t *value)
{
	struct ebb_err err = { "owner: a string or null is needed" };

	if ((json_is_null(value) || json_is_string(value)) &&
	    ebb_volspec_set_owner(spec, json_string_value(value), &err) == 0)
		return 0;
	ebb_ctl_fail(r, "bad-value", NULL, "%s", err.text);
	return -EINVAL;
}

/* Members besides "cmd", "volume" and "owner" are keys of the volume. */
static int read_keys(struct ebb_volspec *spec, struct ebb_ctl_request *r, bool is_new)
{
	struct ebb_err err = { "" };
	const char *key, *text;
	json_t *value;
	char number[32];

	json_object_foreach(r->body, key, value) {
		if (strcmp(key, "cmd") == 0 || strcmp(key, "volume") == 0)
			continue;
		if (strcmp(key, "owner") == 0) {
			if (read_owner(spec, r, value) < 0)
				return -EINVAL;
			continue;
		}
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		text = json_is_null(value) ? "none" : json_is_string(value) ?
		       json_string_value(value) : json_is_integer(value) ? number : NULL;
		if (!text) {
			ebb_ctl_fail(r, "bad-value", NULL, "%.64s: a whole number, a string or "
				     "null is needed", key);
			return -EINVAL;
		}
		if (ebb_volspec_set(spec, key, text, &err) < 0) {
			ebb_ctl_fail(r, "bad-value", NULL, "%s", err.text);
			return -EINVAL;
		}
		if (!is_new && !ebb_volspec_is_promise(key)) {
			ebb_ctl_fail(r, "bad-value", "remove the volume, and add it anew",
				     "%s of a volume can not be changed", key);
			return -EINVAL;
		}
	}
	return 0;
}

static int check_spec(struct ebb_server *s, const struct ebb_volspec *spec,
		      struct ebb_ctl_request *r)
{
	struct ebb_err err = { "" };

	if (ebb_volspec_check(spec, &err) < 0) {
		ebb_ctl_fail(r, "bad-value", NULL, "%s", err.text);
		return -EINVAL;
	}
	if (ebb_server_admit(s, spec, &err) < 0) {
		ebb_ctl_fail(r, "overbooked", "promise less, or set allow_overbooking = yes",
			     "%s", err.text);
		return -EDQUOT;
	}
	return 0;
}

#define NOT_SAVED	"it is in force until ebb-volumed is restarted"

/* The change is in force; answers. */
static void save_and_reply(struct ebb_waiting *w, json_t *answer)
{
	struct ebb_err err = { "" };

	if (ebb_vrequest_save(w->ctl->server, &err) < 0) {
		json_decref(answer);
		ebb_vrequest_refuse(w, "not-saved", NOT_SAVED, err.text);
		return;
	}
	ebb_vrequest_reply(w, answer);
}

/* The storage daemon did not take the change; another request may have saved it meanwhile. */
static void save_and_refuse(struct ebb_waiting *w, const char *error)
{
	struct ebb_err err = { "" };

	ebb_vrequest_save(w->ctl->server, &err);
	ebb_vrequest_refuse(w, "refused", NULL, error);
}

/* The change of a volume is in force, or NULL: the volume has been removed meanwhile. */
static void answer_changed(struct ebb_waiting *w, const struct ebb_volume *v)
{
	if (v)
		save_and_reply(w, json_pack("{s:o}", "volume", ebb_volview_volume(v)));
	else
		ebb_vrequest_refuse(w, "no-such-volume", NULL, "the volume has been removed");
}

static void begin_set(struct ebb_waiting *w);

/* One change of a volume has ended: the next one is made of what came out. */
static void end_set(struct ebb_waiting *w)
{
	struct ebb_vctl *ctl = w->ctl;
	const uint32_t volume = w->volume;

	ebb_vrequest_end(w);
	for (w = ctl->waiting; w; w = w->next)
		if (w->is_queued && w->volume == volume) {
			begin_set(w);
			return;
		}
}

static void on_set(void *ctx, const char *error)
{
	struct ebb_waiting *w = ctx;

	if (error)
		save_and_refuse(w, error);
	else
		answer_changed(w, ebb_server_find_id(w->ctl->server, w->volume));
	end_set(w);
}

/*
 * A request that does not name all keys is about those that it names, so it is read when its turn
 * has come.
 */
static void begin_set(struct ebb_waiting *w)
{
	struct ebb_server *s = w->ctl->server;
	struct ebb_volume *v = ebb_server_find_id(s, w->volume);
	struct ebb_volspec spec;

	w->is_queued = false;
	if (!v || v->state == EBB_VOLUME_REMOVING) {
		answer_changed(w, NULL);
		end_set(w);
		return;
	}
	spec = v->spec;
	/* A promise without an owner was set by hand: no agent takes it back. */
	ebb_volspec_set_owner(&spec, NULL, NULL);
	if (read_keys(&spec, w->request, false) < 0 || check_spec(s, &spec, w->request) < 0)
		end_set(w);
	else
		ebb_server_promise(s, v, &spec, on_set, w);
}

static void cmd_set(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	struct ebb_volume *v = ebb_vrequest_volume(ctl->server, r);
	struct ebb_waiting *w = NULL;

	if (v)
		w = ebb_vrequest_wait(ctl, r, v, ctl->server->patience_usec, on_late);
	if (!w)
		return;
	w->is_queued = v->before;
	if (!w->is_queued)
		begin_set(w);
}

static void on_added(void *ctx, const char *error)
{
	struct ebb_waiting *w = ctx;
	struct ebb_server *s = w->ctl->server;
	struct ebb_volume *v = ebb_server_find_id(s, w->volume);

	if (error && s->qmp) {
		if (v)
			ebb_server_drop(s, v);
		save_and_refuse(w, error);
	} else {
		answer_changed(w, v);
	}
	ebb_vrequest_end(w);
}

static void cmd_add(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	struct ebb_server *s = ctl->server;
	const char *name = json_string_value(json_object_get(r->body, "volume"));
	const char *tenant = json_string_value(json_object_get(r->body, "tenant"));
	struct ebb_volspec spec;
	struct ebb_err err = { "" };
	struct ebb_volume *v;
	struct ebb_waiting *w;

	if (!name || ebb_volspec_init(&spec, name, &err) < 0) {
		ebb_ctl_fail(r, "bad-request", NULL, "%s", name ? err.text :
			     "\"volume-add\" needs a string \"volume\"");
		return;
	}
	if (ebb_server_find(s, name)) {
		ebb_ctl_fail(r, "exists", NULL, "there is a volume \"%s\" already", name);
		return;
	}
	if (tenant && strcmp(tenant, EBB_VOLUME_SYSTEM) == 0)
		ebb_server_charge_system(s, &spec);
	if (read_keys(&spec, r, true) < 0 || check_spec(s, &spec, r) < 0)
		return;
	v = ebb_server_append(s, &spec);
	if (!v) {
		ebb_ctl_fail(r, "failed", NULL, "there are %u volumes already, or no memory",
			     EBB_SERVER_MAX_VOLUMES);
		return;
	}
	w = ebb_vrequest_wait(ctl, r, v, s->patience_usec, on_late);
	if (w)
		ebb_server_serve(s, v, on_added, w);
	else
		ebb_server_drop(s, v);
}

static void cmd_remove(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	struct ebb_server *s = ctl->server;
	struct ebb_volume *v = ebb_vrequest_volume(s, r);
	struct ebb_err err = { "" };

	if (!v)
		return;
	if (v->is_configured || v->is_probe) {
		ebb_ctl_fail(r, "bad-value", v->is_probe ? NULL :
			     "take it out of the configuration, and restart",
			     "volume \"%s\" is %s", v->spec.name,
			     v->is_probe ? "that of a calibration" : "in the configuration");
		return;
	}
	/* The storage daemon is about to have it, and would keep it. */
	if (s->qmp && v->state == EBB_VOLUME_WAITING) {
		ebb_ctl_fail(r, "failed", "try again", "volume \"%s\" is being opened",
			     v->spec.name);
		return;
	}
	ebb_server_remove(s, v);
	if (ebb_vrequest_save(s, &err) < 0)
		ebb_ctl_fail(r, "not-saved", NOT_SAVED, "%s", err.text);
	else
		ebb_ctl_reply(r, json_object());
}

static void on_scheduler(void *ctx, const char *error)
{
	struct ebb_waiting *w = ctx;
	const struct ebb_server *s = w->ctl->server;

	if (error && s->qmp)
		ebb_vrequest_refuse(w, "refused", NULL, error);
	else
		ebb_vrequest_reply(w, json_pack("{s:o}", "server", ebb_volview_server(s)));
	ebb_vrequest_end(w);
}

static void cmd_scheduler(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	struct ebb_server *s = ctl->server;
	const json_t *depth = json_object_get(r->body, "depth");
	const json_t *policy = json_object_get(r->body, "overbooking");
	const char *name = json_string_value(policy);
	struct ebb_waiting *w;

	if (depth && (!json_is_integer(depth) || json_integer_value(depth) < 1 ||
		      json_integer_value(depth) > EBB_VCONF_MAX_DEPTH)) {
		ebb_ctl_fail(r, "bad-value", NULL, "depth: allowed: 1 to %u", EBB_VCONF_MAX_DEPTH);
		return;
	}
	if (depth && ebb_calibrate_is_running(s->calibration)) {
		ebb_ctl_fail(r, "failed", "wait for its end", "a calibration is running, which "
			     "measures at depths of its own");
		return;
	}
	if (policy && (!name || (strcmp(name, "proportional") != 0 &&
				 strcmp(name, "penalty") != 0))) {
		ebb_ctl_fail(r, "bad-value", NULL, "overbooking: allowed: proportional, penalty");
		return;
	}
	w = ebb_vrequest_wait(ctl, r, NULL, s->patience_usec, on_late);
	if (!w)
		return;
	if (depth)
		s->depth = json_integer_value(depth);
	if (policy)
		s->overbooking = strcmp(name, "penalty") == 0 ? "penalty" : "proportional";
	ebb_server_schedule(s, on_scheduler, w);
}

/* ---- calibration ---- */

static json_t *view_point(const struct ebb_knee_point *p)
{
	return json_pack("{s:i, s:I, s:i, s:i}", "depth", p->depth, "iops", (json_int_t)p->iops,
			 "mean_us", p->mean_us, "p99_us", p->p99_us);
}

static void on_calibrated(void *ctx, const struct ebb_knee_point *points, size_t num,
			  const char *error)
{
	struct ebb_waiting *w = ctx;
	json_t *all = json_array();

	for (size_t i = 0; i < num; i++)
		json_array_append_new(all, view_point(&points[i]));
	if (error) {
		json_decref(all);
		ebb_vrequest_refuse(w, "failed", NULL, error);
	} else {
		ebb_vrequest_reply(w, json_pack("{s:o, s:o}", "server",
						ebb_volview_server(w->ctl->server), "points", all));
	}
	ebb_vrequest_end(w);
}

static void cmd_calibrate(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	struct ebb_server *s = ctl->server;
	const char *file = json_string_value(json_object_get(r->body, "file"));
	const char *format = json_string_value(json_object_get(r->body, "format"));
	char nbd_path[EBB_VCONF_VALUE_SIZE + 32];
	struct ebb_err err = { "" };
	struct ebb_waiting *w;
	int rc;

	if (!file) {
		ebb_ctl_fail(r, "bad-request", NULL, "\"calibrate\" needs a string \"file\"");
		return;
	}
	if (ebb_calibrate_is_running(s->calibration)) {
		ebb_ctl_fail(r, "failed", "wait for its end", "a calibration is running");
		return;
	}
	ebb_calibrate_destroy(s->calibration);
	s->calibration = NULL;
	w = ebb_vrequest_wait(ctl, r, NULL, CALIBRATION_USEC, on_late);
	if (!w)
		return;
	snprintf(nbd_path, sizeof(nbd_path), "%s/nbd.sock", s->conf->run_dir);
	rc = ebb_calibrate_start(s, nbd_path, file, format ? format : "raw", on_calibrated, w,
				 &s->calibration, &err);
	if (rc < 0) {
		ebb_ctl_fail(r, rc == -EINVAL ? "bad-value" : "failed", NULL, "%s", err.text);
		ebb_vrequest_end(w);
	}
}

/* ---- a storage daemon that hangs ---- */

static int on_late(sd_event_source *source, uint64_t usec, void *arg)
{
	struct ebb_waiting *w = arg;

	(void)source;
	(void)usec;
	if (w->is_queued) {
		ebb_vrequest_refuse(w, "no-answer", "try again", NO_ANSWER "; nothing is changed");
		ebb_vrequest_end(w);
		return 0;
	}
	if (w->is_meters)
		reply_meters(w, NO_ANSWER);
	else
		ebb_vrequest_refuse(w, "no-answer", "ebbctl volumes says what holds", NO_ANSWER
				    ": the change is made when it does, unless it refuses it then");
	w->request = NULL;
	return 0;
}

/* ---- dispatch ---- */

static const struct {
	const char *name;
	void (*handle)(struct ebb_vctl *ctl, struct ebb_ctl_request *r);
	bool changes;
	const char *members[6];		/* besides "cmd"; "*": checked by the command */
} commands[] = {
	{ "version", cmd_version, false, { NULL } },
	{ "volumes", cmd_volumes, false,
	  { "volume", "owner", "after", "most", "brief", NULL } },
	{ "meters", cmd_meters, false, { "volume", "brief", NULL } },
	{ "claim", cmd_claim, false, { "owner", NULL } },
	{ "volume-set", cmd_set, true, { "*", NULL } },
	{ "volume-add", cmd_add, true, { "*", NULL } },
	{ "volume-remove", cmd_remove, true, { "volume", NULL } },
	{ "attachments", ebb_vaccess_attachments, false, { "volume", NULL } },
	{ "attach", ebb_vaccess_attach, true, { "volume", "attachment", NULL } },
	{ "detach", ebb_vaccess_detach, true, { "volume", "attachment", NULL } },
	{ "fence", ebb_vaccess_fence, true, { "volume", "attachment", "by", "generation", NULL } },
	{ "scheduler", cmd_scheduler, true, { "depth", "overbooking", NULL } },
	{ "calibrate", cmd_calibrate, true, { "file", "format", NULL } },
};

static const char *unknown_member(const json_t *body, const char *const *members)
{
	const char *key;
	json_t *value;

	if (members[0] && members[0][0] == '*')
		return NULL;
	json_object_foreach((json_t *)body, key, value) {
		size_t i = 0;

		while (members[i] && strcmp(members[i], key) != 0)
			i++;
		if (!members[i] && strcmp(key, "cmd") != 0)
			return key;
	}
	return NULL;
}

void ebb_vctl_handle(void *ctx, struct ebb_ctl_request *r)
{
	struct ebb_vctl *ctl = ctx;
	const char *member;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, r->cmd) != 0)
			continue;
		member = unknown_member(r->body, commands[i].members);
		if (member)
			ebb_ctl_fail(r, "bad-request", NULL, "\"%s\" has no member \"%.64s\"",
				     r->cmd, member);
		else if (commands[i].changes && !r->may_change)
			ebb_ctl_fail(r, "denied", "become root", "%s", MAY_NOT_CHANGE);
		else if (commands[i].changes && ebb_server_hangs(ctl->server))
			ebb_ctl_fail(r, "no-answer", "try again", NO_ANSWER
				     "; nothing is changed");
		else
			commands[i].handle(ctl, r);
		return;
	}
	ebb_ctl_fail(r, "unknown-command", "see docs/volume-protocol.md",
		     "there is no command \"%.64s\"", r->cmd);
}
