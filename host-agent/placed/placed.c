/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebb-placed: options, start, end, and the one cycle: gather facts, decide, act. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "placed/calibrate.h"
#include "placed/decide.h"
#include "placed/model.h"
#include "placed/pacemaker.h"
#include "placed/pconf.h"
#include "placed/record.h"
#include "placed/report.h"
#include "service/service.h"
#include "util/client.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/version.h"

#define MAX_ACTIONS		1024
#define TRACES_USEC		600000000u	/* traces are read again after this */
#define EBBD_PATIENCE_S		5
/*
 * How long ebbd believes that the host has quorum if it is told no more: some cycles, in which
 * tools may use up their time, and what it takes to start ebb-placed again.
 */
#define QUORUM_S		60
#define QUORUM_CYCLES		10
/*
 * A cycle carries out actions for at most so many intervals.  The next cycle tells ebbd of the
 * quorum first, and then carries out the remaining ones.
 */
#define ACT_CYCLES		4

enum { KEY_DUMP = 256, KEY_DRY_RUN, KEY_CALIBRATE };

struct options {
	struct ebb_service_options service;
	const char *calibrate;		/* a file of measured moves; NULL: not that */
	bool is_dump, is_dry;
};

struct daemon {
	struct placed_conf conf;
	struct placed_policy policy;
	bool is_dry;
	sd_event *event;
	sd_event_source *timer;
	int lock_fd;
	struct client ebbd;
	struct placed_pacemaker pacemaker;
	struct placed_traces traces;
	uint64_t traces_at;		/* 0: not read yet */
	struct placed_memory memory;
	struct placed_record record;
	struct placed_state state;
	struct placed_cluster before;	/* as last seen */
	struct placed_action *actions;
	json_t *said;			/* texts that were logged in the last cycle */
};

/* ---- options ---- */

const char *argp_program_version = "ebb-placed " EBB_VERSION;

static const struct argp_option argp_options[] = {
	EBB_SERVICE_OPTIONS(PLACED_CONFIG),
	{ "dump", KEY_DUMP, NULL, 0, "Print what is known of the cluster as JSON, and end", 0 },
	{ "dry-run", KEY_DRY_RUN, NULL, 0, "Decide and log, but change nothing", 0 },
	{ "calibrate", KEY_CALIBRATE, "FILE", 0, "Print the constants of the cost of a move that "
	  "fit measured moves, a CSV file, and end", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case KEY_DUMP:
		o->is_dump = true;
		return 0;
	case KEY_DRY_RUN:
		o->is_dry = true;
		return 0;
	case KEY_CALIBRATE:
		o->calibrate = arg;
		return 0;
	default:
		return ebb_service_parse(key, arg, &o->service);
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse_option,
	.doc = "The placer of Ebb: tells Pacemaker how well each VM would do on this host.",
};

static int read_config(const struct options *o, struct placed_conf *c, struct ebb_err *err)
{
	int rc = placed_conf_read(c, o->service.config_path, err);

	for (size_t i = 0; rc == 0 && i < o->service.num_settings; i++)
		rc = placed_conf_set(c, o->service.settings[i], err);
	return rc < 0 ? rc : placed_conf_check(c, err);
}

/* ---- what is logged ---- */

/* Says a thing when it begins to be so, not in each cycle. */
static void say(struct daemon *d, json_t *now, int priority, const char *vm, const char *text)
{
	if (!json_object_get(d->said, text))
		ebb_log(priority, "place", *vm ? EBB_KS("vm", vm) : EBB_KSKIP,
			EBB_KS("text", text));
	json_object_set_new(now, text, json_true());
}

static void say_all(struct daemon *d, json_t *now, const json_t *complaints)
{
	const json_t *text;
	size_t i;

	json_array_foreach(complaints, i, text)
		say(d, now, LOG_WARNING, "", json_string_value(text));
}

/* ---- facts ---- */

static json_t *ask(struct daemon *d, json_t *request)
{
	const bool was_connected = d->ebbd.fd >= 0;
	json_t *answer;
	int error;

	answer = client_ask(&d->ebbd, json_incref(request), &error);
	/* An ebbd that was started again since the last cycle has not failed to answer. */
	if (!answer && was_connected && error == ECONNRESET)
		answer = client_ask(&d->ebbd, json_incref(request), &error);
	json_decref(request);
	if (answer && json_is_true(json_object_get(answer, "ok")))
		return answer;
	json_decref(answer);
	return NULL;
}

static void read_traces(struct daemon *d, uint64_t now, json_t *complaints)
{
	struct placed_traces fresh;
	struct ebb_err err = { "" };

	if (d->traces_at && now - d->traces_at < TRACES_USEC)
		return;
	d->traces_at = now;
	if (placed_traces_read(d->conf.traces_dir, &fresh, complaints, &err) < 0) {
		json_array_append_new(complaints, json_sprintf("traces: %s", err.text));
		return;
	}
	placed_traces_finish(&d->traces);
	d->traces = fresh;
}

/* The facts of this host as they stand in attrd and as they are now; takes its own into `all`. */
static void take_report(struct daemon *d, json_t *all, json_t *complaints, json_t **ret_facts,
			char **ret_stands)
{
	json_t *self = json_object_get(json_object_get(all, "hosts"), d->pacemaker.self);
	json_t *host = ask(d, json_pack("{s:s}", "cmd", "host"));
	json_t *vms = host ? ask(d, json_pack("{s:s}", "cmd", "vms")) : NULL;

	*ret_stands = json_dumps(json_object_get(self, "facts"), JSON_COMPACT | JSON_SORT_KEYS);
	*ret_facts = placed_report(host, vms, d->before.num_hosts ? &d->before : NULL, &d->state,
				   ebb_clock_real_usec() / 1000000, ebb_clock_mono_usec(),
				   d->conf.idle_s, &d->memory, complaints);
	if (!host || !vms)
		json_array_append_new(complaints, json_sprintf("ebbd does not answer at %s",
							       d->conf.ebbd_socket));
	if (self)
		json_object_set(self, "facts", *ret_facts);
	json_decref(host);
	json_decref(vms);
}

/* ---- actions ---- */

static void act(struct daemon *d, const struct placed_action *a, json_t *said)
{
	static const char *const names[] = {
		[PLACED_SET_SCORE] = "score", [PLACED_DROP_SCORE] = "score_dropped",
		[PLACED_SET_STICKINESS] = "stickiness", [PLACED_SET_UTILIZATION] = "utilization",
		[PLACED_SET_CAPACITY] = "capacity", [PLACED_ADD_RULE] = "rule",
	};
	const bool has_resource = a->type == PLACED_SET_UTILIZATION ||
				  a->type == PLACED_SET_CAPACITY;
	struct ebb_err err = { "" };
	int rc;

	if (a->type == PLACED_SAY) {
		say(d, said, LOG_NOTICE, a->vm, a->text);
		return;
	}
	rc = d->is_dry ? 0 : placed_pacemaker_act(&d->pacemaker, a, &err);
	ebb_log(rc < 0 ? LOG_WARNING : LOG_INFO, names[a->type],
		*a->vm ? EBB_KS("vm", a->vm) : EBB_KSKIP,
		has_resource ? EBB_KS("resource", place_resources[a->resource].name) : EBB_KSKIP,
		a->type == PLACED_ADD_RULE || a->type == PLACED_DROP_SCORE ? EBB_KSKIP :
		EBB_KI("value", a->value), *a->text ? EBB_KS("reason", a->text) : EBB_KSKIP,
		rc < 0 ? EBB_KS("error", err.text) : EBB_KSKIP);
}

static void tell_facts(struct daemon *d, json_t *facts, const char *stands, json_t *complaints)
{
	struct ebb_err err = { "" };
	char *text;

	json_object_set_new(facts, "moving", json_string(d->state.moving));
	text = json_dumps(facts, JSON_COMPACT | JSON_SORT_KEYS);
	if (text && (!stands || strcmp(text, stands) != 0) && !d->is_dry &&
	    placed_pacemaker_tell(&d->pacemaker, text, &err) < 0)
		json_array_append_new(complaints, json_sprintf("facts: %s", err.text));
	free(text);
}

/* Whatever else is wrong with what the cluster tells: ebbd gives nothing new without this word. */
static void tell_quorum(struct daemon *d, const json_t *has_quorum)
{
	const int for_s = QUORUM_S + (int)(QUORUM_CYCLES * (uint64_t)d->conf.interval_ms / 1000);

	if (json_is_boolean(has_quorum) && !d->is_dry)
		json_decref(ask(d, json_pack("{s:s, s:b, s:i}", "cmd", "quorum", "quorum",
					     json_is_true(has_quorum), "for_s", for_s)));
}

static void decide(struct daemon *d, const struct placed_cluster *c, int self, json_t *complaints,
		   json_t *said)
{
	double *risk = malloc(((size_t)c->num_vms + 1) * sizeof(*risk));
	struct placed_actions actions = { .items = d->actions, .capacity = MAX_ACTIONS };
	const struct placed_view view = { .cluster = c, .self = self, .risk = risk };
	struct place_config config;
	struct ebb_err err = { "" };
	uint64_t until;

	if (!risk)
		return;
	for (int i = 0; i < c->num_vms; i++)
		risk[i] = -1;
	placed_conf_place(&d->conf, &config);
	if (c->has_quorum && c->hosts[self].is_ready &&
	    placed_model_risks(c, &d->traces, &config, self, risk, &err) < 0)
		json_array_append_new(complaints, json_sprintf("risks: %s", err.text));
	placed_decide(&d->policy, &view, ebb_clock_mono_usec(), &d->state, &actions);
	until = ebb_clock_mono_usec() + ACT_CYCLES * d->conf.interval_ms * 1000ull;
	for (size_t i = 0; i < actions.count && ebb_clock_mono_usec() < until; i++)
		act(d, &actions.items[i], said);
	free(risk);
}

static void record(struct daemon *d, const json_t *facts, json_t *complaints)
{
	struct ebb_err err = { "" };

	if (d->conf.record && !d->is_dry &&
	    placed_record(&d->record, d->conf.traces_dir, facts, d->pacemaker.self,
			  ebb_clock_real_usec() / 1000000, &err) < 0)
		json_array_append_new(complaints, json_sprintf("record: %s", err.text));
}

/* ---- the cycle ---- */

static json_t *look(struct daemon *d, json_t *complaints, json_t **ret_facts, char **ret_stands,
		    struct ebb_err *err)
{
	json_t *all;

	if (!d->pacemaker.self[0] && placed_pacemaker_self(&d->pacemaker, err) < 0)
		return NULL;
	all = placed_pacemaker_read(&d->pacemaker, complaints, err);
	if (all)
		take_report(d, all, complaints, ret_facts, ret_stands);
	return all;
}

static void cycle(struct daemon *d)
{
	json_t *complaints = json_array(), *said = json_object(), *facts = NULL;
	struct placed_cluster c = { 0 };
	struct ebb_err err = { "" };
	char *stands = NULL;
	json_t *all = look(d, complaints, &facts, &stands, &err);
	int self = -1;

	if (all)
		tell_quorum(d, json_object_get(all, "quorum"));
	if (!all || placed_cluster_read(all, &c, &err) < 0) {
		say(d, said, LOG_WARNING, "", err.text);
	} else {
		placed_cluster_remember(&c, &d->before);
		self = placed_host_find(&c, d->pacemaker.self);
		say_all(d, said, c.complaints);
		if (self < 0)
			say(d, said, LOG_WARNING, "", "this host is no node of the cluster");
		if (c.is_quorum_known && !c.has_quorum)
			say(d, said, LOG_WARNING, "", "this host has lost the quorum: nothing is "
			    "published");
	}
	if (self >= 0) {
		read_traces(d, ebb_clock_mono_usec(), complaints);
		decide(d, &c, self, complaints, said);
		if (c.has_quorum)
			tell_facts(d, facts, stands, complaints);
		record(d, facts, complaints);
		placed_cluster_finish(&d->before);
		d->before = c;
	} else {
		placed_cluster_finish(&c);
	}
	say_all(d, said, complaints);
	json_decref(d->said);
	d->said = said;
	json_decref(complaints);
	json_decref(facts);
	json_decref(all);
	free(stands);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;

	(void)usec;
	cycle(d);
	sd_event_source_set_time(s, ebb_clock_mono_usec() + d->conf.interval_ms * 1000ull);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* ---- start and end ---- */

static int take_lock(struct daemon *d, struct ebb_err *err)
{
	char path[EBB_SETTING_SIZE + 32];
	int rc = ebb_service_folder("run_dir", d->conf.run_dir, 0755, err);

	snprintf(path, sizeof(path), "%s/placed.lock", d->conf.run_dir);
	if (rc == 0)
		rc = ebb_service_lock(path, 0, &d->lock_fd, err);
	return rc == -EBUSY ? ebb_err_set(err, rc, "another ebb-placed uses run_dir %.200s",
					  d->conf.run_dir) : rc;
}

static int start(struct daemon *d, struct ebb_err *err)
{
	int rc = take_lock(d, err);

	if (rc == 0)
		rc = sd_event_new(&d->event);
	if (rc >= 0)
		rc = ebb_service_watch_signals(d->event, NULL, NULL);
	if (rc >= 0)
		rc = sd_event_add_time(d->event, &d->timer, CLOCK_MONOTONIC, 0, 1, on_timer, d);
	return rc < 0 ? rc : 0;
}

static void end(struct daemon *d)
{
	sd_event_source_disable_unref(d->timer);
	sd_event_unref(d->event);
	client_close(&d->ebbd);
	placed_traces_finish(&d->traces);
	placed_memory_finish(&d->memory);
	placed_record_finish(&d->record);
	placed_cluster_finish(&d->before);
	json_decref(d->said);
	free(d->actions);
	if (d->lock_fd >= 0)
		close(d->lock_fd);
}

static int dump(struct daemon *d, struct ebb_err *err)
{
	json_t *complaints = json_array(), *facts = NULL;
	char *stands = NULL;
	json_t *all = look(d, complaints, &facts, &stands, err);

	if (all) {
		json_dumpf(all, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
		putchar('\n');
	}
	json_decref(all);
	json_decref(complaints);
	json_decref(facts);
	free(stands);
	return all ? 0 : -EIO;
}

static int run(struct daemon *d, const struct options *o, struct ebb_err *err)
{
	int rc;

	ebb_log_set_level(d->conf.log_level);
	placed_conf_policy(&d->conf, &d->policy);
	d->ebbd = (struct client){ .path = d->conf.ebbd_socket, .fd = -1,
				   .patience_s = EBBD_PATIENCE_S };
	d->pacemaker.limit_ms = d->conf.tool_limit_ms;
	d->pacemaker.dampen_s = d->conf.dampen_s;
	d->said = json_object();
	d->actions = calloc(MAX_ACTIONS, sizeof(*d->actions));
	if (!d->actions || !d->said)
		return -ENOMEM;
	if (o->is_dump)
		return dump(d, err);
	rc = start(d, err);
	if (rc < 0)
		return rc;
	ebb_log(LOG_NOTICE, "ready", EBB_KS("version", EBB_VERSION));
	sd_notify(0, "READY=1");
	return ebb_service_run(d->event);
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct daemon d = { .lock_fd = -1, .ebbd = { .fd = -1 } };
	struct ebb_err err = { "" };
	int rc;

	ebb_service_begin(&argp, argc, argv, &o);
	json_object_seed(0);
	d.is_dry = o.is_dry;
	if (o.calibrate)
		rc = placed_calibrate(o.calibrate, stdout, &err);
	else
		rc = read_config(&o, &d.conf, &err);
	if (rc == 0 && !o.calibrate)
		rc = run(&d, &o, &err);
	free(o.service.settings);
	end(&d);
	if (rc < 0)
		ebb_service_log_error(o.calibrate ? "calibrate" : "start", rc, &err);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
