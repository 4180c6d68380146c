/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests on the control socket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ctl-cmds.h"
#include "backend/real/real.h"
#include "util/version.h"
#include "daemon/metrics.h"
#include "daemon/view.h"
#include "daemon/view-pressure.h"
#include "daemon/view-shared.h"
#include "backend/real/virtio_ebb_link.h"
#include "util/clock.h"
#include "util/uuid.h"

#define MAX_HISTORY_ROWS	100000
#define DEFAULT_HISTORY_ROWS	50
#define MOST_QUORUM_S		86400

/*
 * The VM that is called so, by uuid or, if no VM has such a one, by name.  0 if there is none, also
 * *ret_vm is NULL then; -ENOTUNIQ if there are several, and the request is answered.
 */
static int look_up(struct ebb_agent *a, struct ebb_ctl_request *r, const char *name,
		   const struct ebb_vm **ret_vm)
{
	uint8_t uuid[EBB_UUID_BYTES];
	size_t num;

	*ret_vm = ebb_uuid_parse(name, uuid) == 0 ? ebb_state_vm(a->state, uuid) : NULL;
	if (*ret_vm)
		return 0;
	num = ebb_state_vms_named(a->state, name, ret_vm);
	if (num < 2)
		return 0;
	ebb_ctl_fail(r, "ambiguous-vm", "ebbctl vms --json tells their UUIDs: name one by it",
		     "%zu VMs are called \"%s\"", num, name);
	return -ENOTUNIQ;
}

/* The VM that "vm" names; NULL: the request is answered. */
static const struct ebb_vm *find_vm(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	const char *name = json_string_value(json_object_get(r->body, "vm"));
	const struct ebb_vm *vm;

	if (!name) {
		ebb_ctl_fail(r, "bad-request", NULL, "\"%s\" needs a string \"vm\"", r->cmd);
		return NULL;
	}
	if (look_up(a, r, name, &vm) < 0)
		return NULL;
	if (!vm)
		ebb_ctl_fail(r, "no-such-vm",
			     "ebbctl vms lists the VMs; one without an <ebb:sla> in its "
			     "metadata is not among them",
			     "there is no VM \"%s\"", name);
	return vm;
}

/* Whether a VM, or several, are called so. */
static bool is_known(const struct ebb_agent *a, const char *name)
{
	uint8_t uuid[EBB_UUID_BYTES];
	const struct ebb_vm *vm;

	return (ebb_uuid_parse(name, uuid) == 0 && ebb_state_vm(a->state, uuid)) ||
	       ebb_state_vms_named(a->state, name, &vm) > 0;
}

static json_t *view_vm(struct ebb_agent *a, const struct ebb_vm *vm)
{
	return ebb_view_vm(a->state, vm, ebb_clock_mono_usec(),
			   a->real ? ebb_real_link_error(a->real, vm->uuid) : "");
}

static void cmd_version(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	usec_t up = ebb_clock_mono_usec() - a->started_at;

	ebb_ctl_reply(r, json_pack("{s:s, s:i, s:f, s:s}", "version", EBB_VERSION, "link_proto",
				   VIRTIO_EBB_LINK_PROTO, "uptime_s", (double)up / EBB_USEC_PER_SEC,
				   "backend", a->backend.ops->name));
}

static void add_pressure(struct ebb_agent *a, json_t *o)
{
	const usec_t now = ebb_clock_mono_usec();

	json_object_set_new(o, "violations", ebb_view_violations(a->state, now));
	json_object_set_new(o, "moves", ebb_view_moves(a->state, now));
}

static void cmd_host(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	json_t *host = ebb_view_host(a->state, ebb_clock_mono_usec());
	const char *why = "";
	bool is_up = a->real ? ebb_real_is_connected(a->real, &why) : false;

	add_pressure(a, host);
	json_object_set_new(host, "spec", json_string(a->host_spec));
	json_object_set_new(host, "backend", json_string(a->backend.ops->name));
	json_object_set_new(host, "libvirt", !a->real ? json_null() :
			    json_string(is_up ? "up" : "down"));
	json_object_set_new(host, "libvirt_error", json_string(is_up ? "" : why));
	ebb_ctl_reply(r, json_pack("{s:o}", "host", host));
}

static void cmd_vms(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	json_t *vms = json_array(), *answer;

	if (json_object_get(r->body, "vm")) {
		const struct ebb_vm *vm = find_vm(a, r);

		if (!vm) {
			json_decref(vms);
			return;
		}
		json_array_append_new(vms, view_vm(a, vm));
	} else {
		for (size_t i = 0; i < ebb_state_num_vms(a->state); i++)
			json_array_append_new(vms, view_vm(a, ebb_state_vm_at(a->state, i)));
	}
	answer = json_pack("{s:f, s:o}", "ts", (double)ebb_clock_real_usec() / EBB_USEC_PER_SEC,
			   "vms", vms);
	add_pressure(a, answer);
	json_object_set_new(answer, "shared", ebb_view_shared(a->state));
	ebb_ctl_reply(r, answer);
}

static void cmd_explain(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	const struct ebb_vm *vm = find_vm(a, r);

	if (vm)
		ebb_ctl_reply(r, json_pack("{s:o}", "explain",
					   ebb_view_explain(a->state, vm, ebb_clock_mono_usec())));
}

static void cmd_histogram(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	const struct ebb_vm *vm = find_vm(a, r);

	if (vm)
		ebb_ctl_reply(r, json_pack("{s:o}", "histogram",
					   ebb_view_histogram(vm, ebb_clock_mono_usec())));
}

static void cmd_metrics(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	char *text = ebb_metrics_text(a->state, ebb_clock_mono_usec());

	if (text)
		ebb_ctl_reply(r, json_pack("{s:s}", "metrics", text));
	else
		ebb_ctl_fail(r, "memory", NULL, "out of memory");
	free(text);
}

static void unknown_policy(struct ebb_ctl_request *r, const char *name)
{
	char known[256] = "";

	for (size_t i = 0; ebb_policy_at(i); i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 i ? ", " : "", ebb_policy_at(i)->name);
	ebb_ctl_fail(r, "unknown-policy", "ebbctl policy lists them",
		     "there is no policy \"%s\"; there are %s", name, known);
}

static void cmd_policy(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	json_t *name = json_object_get(r->body, "policy"), *known;

	if (name) {
		const struct ebb_policy_ops *ops = json_is_string(name) ?
			ebb_policy_find(json_string_value(name)) : NULL;

		if (!ops) {
			unknown_policy(r, json_is_string(name) ? json_string_value(name) : "?");
			return;
		}
		if (!r->may_change) {
			ebb_ctl_fail(r, "denied", "ask root", "only root may change the policy");
			return;
		}
		ebb_state_policy_set(a->state, ebb_clock_mono_usec(), ops);
		ebb_agent_poke(a);
	}
	known = json_array();
	for (size_t i = 0; ebb_policy_at(i); i++)
		json_array_append_new(known, json_string(ebb_policy_at(i)->name));
	ebb_ctl_reply(r, json_pack("{s:s, s:o}", "policy", ebb_state_policy(a->state)->name,
				   "known", known));
}

static void cmd_quorum(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	const json_t *value = json_object_get(r->body, "quorum");
	const json_t *for_s = json_object_get(r->body, "for_s");
	const usec_t now = ebb_clock_mono_usec();

	if (value && !json_is_boolean(value)) {
		ebb_ctl_fail(r, "bad-request", NULL, "\"quorum\" must be true or false");
		return;
	}
	if (for_s && (!json_is_integer(for_s) || json_integer_value(for_s) < 1 ||
		      json_integer_value(for_s) > MOST_QUORUM_S)) {
		ebb_ctl_fail(r, "bad-request", NULL, "\"for_s\" must be 1 to %d", MOST_QUORUM_S);
		return;
	}
	if (value && !r->may_change) {
		ebb_ctl_fail(r, "denied", "ask root", "only root may say whether there is quorum");
		return;
	}
	if (value) {
		ebb_state_quorum_set(a->state, now, json_is_true(value), for_s ?
				     now + (usec_t)json_integer_value(for_s) * EBB_USEC_PER_SEC :
				     EBB_TIME_NEVER);
		ebb_agent_poke(a);
	}
	ebb_ctl_reply(r, json_pack("{s:b}", "quorum", ebb_state_has_quorum(a->state)));
}

static void history_done(void *ctx, json_t *rows, int err)
{
	struct ebb_ctl_request *r = ctx;
	const bool is_charge = json_is_true(json_object_get(r->body, "charge"));

	if (rows)
		ebb_ctl_reply(r, json_pack("{s:o}", is_charge ? "charge" : "history", rows));
	else
		ebb_ctl_fail(r, "history", "the log of ebbd says more",
			     "the history can not be read: %s", strerror(-err));
}

/* A VM that is gone has a history, too; -errno: the request is answered. */
static int ask_history_of(struct ebb_agent *a, struct ebb_ctl_request *r, const char *name,
			  struct ebb_history_query *q)
{
	uint8_t uuid[EBB_UUID_BYTES];
	const struct ebb_vm *vm;
	int rc;

	if (strlen(name) >= sizeof(q->vm)) {
		ebb_ctl_fail(r, "bad-request", NULL, "no name has more than %zu bytes",
			     sizeof(q->vm) - 1);
		return -EINVAL;
	}
	rc = look_up(a, r, name, &vm);
	if (rc < 0)
		return rc;
	if (vm)
		ebb_uuid_format(vm->uuid, q->uuid);
	else if (ebb_uuid_parse(name, uuid) == 0)
		ebb_uuid_format(uuid, q->uuid);
	/* A name also finds VMs that had it before; a uuid is no name. */
	if (!q->uuid[0] || (vm && strcmp(vm->name, name) == 0))
		memcpy(q->vm, name, strlen(name) + 1);
	return 0;
}

/* An optional string of the request; "": it is not there.  -EINVAL: the request is answered. */
static int optional_text(struct ebb_ctl_request *r, const char *key, const char **ret)
{
	const json_t *value = json_object_get(r->body, key);

	*ret = value ? json_string_value(value) : "";
	if (*ret)
		return 0;
	ebb_ctl_fail(r, "bad-request", NULL, "\"%s\" must be a string", key);
	return -EINVAL;
}

/* Rows of the history have this event; -EINVAL: the request is answered. */
static int check_event(struct ebb_ctl_request *r, const char *event)
{
	char known[512] = "";

	for (enum ebb_event e = 0; e < EBB_EVENT_MAX; e++) {
		/* Counters are no decisions: they have tables of their own. */
		if (e == EBB_EVENT_CHARGE || e == EBB_EVENT_LEDGER)
			continue;
		if (strcmp(ebb_event_name(e), event) == 0)
			return 0;
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 known[0] ? ", " : "", ebb_event_name(e));
	}
	ebb_ctl_fail(r, "bad-request", NULL, "there is no event \"%.40s\"; there are %s", event,
		     known);
	return -EINVAL;
}

/* An optional truth of the request; -EINVAL: the request is answered. */
static int optional_bool(struct ebb_ctl_request *r, const char *key, bool *ret)
{
	const json_t *value = json_object_get(r->body, key);

	*ret = json_is_true(value);
	if (!value || json_is_boolean(value))
		return 0;
	ebb_ctl_fail(r, "bad-request", NULL, "\"%s\" must be true or false", key);
	return -EINVAL;
}

/* "since" and "limit"; -EINVAL: the request is answered. */
static int take_range(struct ebb_ctl_request *r, struct ebb_history_query *q)
{
	const json_t *limit = json_object_get(r->body, "limit");
	const json_t *since = json_object_get(r->body, "since");

	if (limit && (!json_is_integer(limit) || json_integer_value(limit) < 1 ||
		      json_integer_value(limit) > MAX_HISTORY_ROWS)) {
		ebb_ctl_fail(r, "bad-request", NULL, "\"limit\" must be a number from 1 to %u",
			     MAX_HISTORY_ROWS);
		return -EINVAL;
	}
	if (since && !json_is_number(since)) {
		ebb_ctl_fail(r, "bad-request", NULL, "\"since\" must be a number: unix seconds");
		return -EINVAL;
	}
	if (limit)
		q->limit = json_integer_value(limit);
	q->since_ts = since ? json_number_value(since) : 0;
	return 0;
}

static void cmd_history(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	struct ebb_history_query q = { .limit = DEFAULT_HISTORY_ROWS };
	const char *vm, *event;
	bool is_charge;

	if (optional_text(r, "vm", &vm) < 0 || optional_text(r, "event", &event) < 0 ||
	    (event[0] && check_event(r, event) < 0) || optional_bool(r, "charge", &is_charge) < 0)
		return;
	if (is_charge) {
		q.what = EBB_HISTORY_CHARGE;
		q.limit = MAX_HISTORY_ROWS;
	}
	if (take_range(r, &q) < 0)
		return;
	if (is_charge)
		ebb_agent_charge(a);
	if (vm[0] && ask_history_of(a, r, vm, &q) < 0)
		return;
	snprintf(q.event, sizeof(q.event), "%s", event);
	ebb_history_ask(a->history, &q, history_done, r);
}

static void ledger_done(void *ctx, json_t *rows, int err)
{
	struct ebb_ctl_request *r = ctx;
	const bool is_intervals = json_is_true(json_object_get(r->body, "intervals"));

	if (rows)
		ebb_ctl_reply(r, json_pack("{s:o}", is_intervals ? "intervals" : "ledger", rows));
	else
		ebb_ctl_fail(r, "history", "the log of ebbd says more",
			     "the ledger can not be read: %s", strerror(-err));
}

/* The same of a VM that the agent does not know: it must have been promised something once. */
static void ledger_done_unknown(void *ctx, json_t *rows, int err)
{
	struct ebb_ctl_request *r = ctx;

	if (!rows || json_array_size(rows) > 0) {
		ledger_done(ctx, rows, err);
		return;
	}
	json_decref(rows);
	ebb_ctl_fail(r, "no-such-vm", "ebbctl ledger lists those to which something was promised",
		     "there is no VM \"%s\", and none in the ledger",
		     json_string_value(json_object_get(r->body, "vm")));
}

static void cmd_ledger(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	struct ebb_history_query q = { .what = EBB_HISTORY_LEDGER, .limit = MAX_HISTORY_ROWS };
	const char *name;
	bool is_intervals;

	if (optional_text(r, "vm", &name) < 0 || optional_bool(r, "intervals", &is_intervals) < 0)
		return;
	if (is_intervals) {
		q.what = EBB_HISTORY_INTERVALS;
		q.limit = DEFAULT_HISTORY_ROWS;
	}
	if (take_range(r, &q) < 0 || (name[0] && ask_history_of(a, r, name, &q) < 0))
		return;
	ebb_history_ask(a->history, &q,
			name[0] && !is_known(a, name) ? ledger_done_unknown : ledger_done, r);
}

static void cmd_set(struct ebb_agent *a, struct ebb_ctl_request *r)
{
	const struct ebb_vm *vm = find_vm(a, r);

	if (!vm)
		return;
	if (!r->may_change)
		ebb_ctl_fail(r, "denied", "ask root", "only root may change the SLA of a VM");
	else
		ebb_ctl_set(a, r, vm);
}

/* Every member of the request must be one of `members`. */
static bool check_members(struct ebb_ctl_request *r, const char *const *members)
{
	const char *key;
	json_t *value;

	json_object_foreach(r->body, key, value) {
		const char *const *m = members;

		if (strcmp(key, "cmd") == 0)
			continue;
		while (*m && strcmp(*m, key) != 0)
			m++;
		if (*m)
			continue;
		ebb_ctl_fail(r, "bad-request", "see docs/control-protocol.md",
			     "\"%s\" has no member \"%.64s\"", r->cmd, key);
		return false;
	}
	return true;
}

static const struct {
	const char *name;
	const char *members[6];
	void (*fn)(struct ebb_agent *a, struct ebb_ctl_request *r);
} commands[] = {
	{ "version", { NULL }, cmd_version },
	{ "host", { NULL }, cmd_host },
	{ "vms", { "vm", NULL }, cmd_vms },
	{ "explain", { "vm", NULL }, cmd_explain },
	{ "histogram", { "vm", NULL }, cmd_histogram },
	{ "metrics", { NULL }, cmd_metrics },
	{ "policy", { "policy", NULL }, cmd_policy },
	{ "quorum", { "quorum", "for_s", NULL }, cmd_quorum },
	{ "history", { "vm", "event", "since", "limit", "charge", NULL }, cmd_history },
	{ "ledger", { "vm", "since", "limit", "intervals", NULL }, cmd_ledger },
	{ "set", { "vm", "values", NULL }, cmd_set },
};

void ebb_ctl_handle(void *ctx, struct ebb_ctl_request *r)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, r->cmd) != 0)
			continue;
		if (check_members(r, commands[i].members))
			commands[i].fn(ctx, r);
		return;
	}
	ebb_ctl_fail(r, "unknown-command", "see docs/control-protocol.md",
		     "there is no command \"%.64s\"", r->cmd);
}
