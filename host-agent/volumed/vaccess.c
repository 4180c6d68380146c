/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See vaccess.h. */
#include <errno.h>
#include <inttypes.h>
#include "util/log.h"
#include "volumed/attach.h"
#include "volumed/vaccess.h"
#include "volumed/volview.h"
#include "volumed/vrequest.h"

#define NOT_CLOSED	"not all that the attachment has sent has ended; the change stands, but " \
			"counts only when it has: ask again"

static struct ebb_volume *find_shared(struct ebb_server *s, struct ebb_ctl_request *r)
{
	struct ebb_volume *v = ebb_vrequest_volume(s, r);

	if (!v || v->spec.is_shared)
		return v;
	ebb_ctl_fail(r, "bad-value", "add it with shared=yes", "volume \"%s\" is not shared",
		     v->spec.name);
	return NULL;
}

void ebb_vaccess_attachments(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	const struct ebb_volume *v = find_shared(ctl->server, r);

	if (v)
		ebb_ctl_reply(r, json_pack("{s:o}", "access", ebb_volview_access(v)));
}

/* The attachment is as it should be, or error: the storage daemon refused to make it. */
static void on_access(void *ctx, const char *error)
{
	struct ebb_waiting *w = ctx;
	struct ebb_server *s = w->ctl->server;
	struct ebb_volume *v = ebb_server_find_id(s, w->volume);
	struct ebb_attachment *t = v ? ebb_access_find_id(&v->access, w->attachment) : NULL;
	struct ebb_err err = { "" };

	if (!v) {
		ebb_vrequest_refuse(w, "no-such-volume", NULL, "the volume has been removed");
	} else if (error && t && t->export == EBB_ACCESS_CLOSED && !ebb_access_is_settled(t)) {
		t->is_leaving = true;
		ebb_access_drop_closed(&v->access);
		ebb_vrequest_save(s, &err);
		ebb_vrequest_refuse(w, "refused", NULL, error);
	} else if (error) {
		ebb_vrequest_refuse(w, "failed", NULL, error);
	} else {
		ebb_vrequest_reply(w, json_pack("{s:o}", "access", ebb_volview_access(v)));
	}
	ebb_vrequest_end(w);
}

static int on_late(sd_event_source *source, uint64_t usec, void *arg)
{
	struct ebb_waiting *w = arg;

	(void)source;
	(void)usec;
	ebb_vrequest_refuse(w, "no-answer", "ask again", NOT_CLOSED);
	w->request = NULL;
	return 0;
}

/*
 * A change has been made in memory: it is written, and then the storage daemon is told.  One that
 * can not be written is taken back.
 */
static void make_access(struct ebb_vctl *ctl, struct ebb_ctl_request *r, struct ebb_volume *v,
			const struct ebb_access *before, uint32_t attachment)
{
	struct ebb_server *s = ctl->server;
	const bool is_change = v->access.generation != before->generation;
	struct ebb_waiting *w = ebb_vrequest_wait(ctl, r, v, s->patience_usec, on_late);
	struct ebb_err err = { "" };

	if (!w) {
		v->access = *before;
		return;
	}
	w->attachment = attachment;
	if (is_change)
		s->generation = v->access.generation;
	if (is_change && ebb_vrequest_save(s, &err) < 0) {
		v->access = *before;
		ebb_vrequest_refuse(w, "not-saved", "nothing is changed", err.text);
		ebb_vrequest_end(w);
		return;
	}
	if (is_change)
		ebb_log(LOG_NOTICE, r->cmd, EBB_KS("volume", v->spec.name),
			EBB_KS("attachment", ebb_access_find_id(&v->access, attachment)->name),
			EBB_KI("generation", v->access.generation));
	ebb_attach_advance(s, v);
	ebb_attach_wait(s, v, attachment, on_access, w);
}

/* The string "attachment", or NULL and an answer. */
static const char *read_attachment(struct ebb_ctl_request *r)
{
	const char *name = json_string_value(json_object_get(r->body, "attachment"));

	if (!name)
		ebb_ctl_fail(r, "bad-request", NULL, "\"%s\" needs a string \"attachment\"",
			     r->cmd);
	return name;
}

static void no_such_attachment(struct ebb_ctl_request *r, const char *name)
{
	ebb_ctl_fail(r, "no-such-attachment", "ebbctl volumes attachments lists them",
		     "the volume has no attachment \"%.80s\"", name);
}

void ebb_vaccess_attach(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	struct ebb_server *s = ctl->server;
	struct ebb_volume *v = find_shared(s, r);
	const char *name = v ? read_attachment(r) : NULL;
	struct ebb_access before;
	uint32_t id;

	if (!name)
		return;
	before = v->access;
	id = ++s->last_attachment;
	switch (ebb_access_attach(&v->access, name, id, s->generation + 1)) {
	case 0:
		make_access(ctl, r, v, &before, id);
		break;
	case -EEXIST:
		ebb_ctl_fail(r, "exists", "one that is fenced has to be detached first",
			     "there is an attachment \"%s\" already", name);
		break;
	case -ENOSPC:
		ebb_ctl_fail(r, "failed", "detach one first", "the volume has %d attachments",
			     EBB_ACCESS_MAX);
		break;
	default:
		ebb_ctl_fail(r, "bad-value", NULL, "\"%.80s\" is no name of an attachment; "
			     "allowed: 1 to %d letters, digits, \".\", \"_\" and \"-\"", name,
			     EBB_ACCESS_NAME_SIZE - 1);
	}
}

void ebb_vaccess_detach(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	struct ebb_volume *v = find_shared(ctl->server, r);
	const char *name = v ? read_attachment(r) : NULL;
	struct ebb_access before;

	if (!name)
		return;
	before = v->access;
	if (ebb_access_detach(&v->access, name, ctl->server->generation + 1) < 0)
		no_such_attachment(r, name);
	else
		make_access(ctl, r, v, &before, ebb_access_find(&v->access, name)->id);
}

void ebb_vaccess_fence(struct ebb_vctl *ctl, struct ebb_ctl_request *r)
{
	struct ebb_volume *v = find_shared(ctl->server, r);
	const char *name = v ? read_attachment(r) : NULL;
	const json_t *by = json_object_get(r->body, "by");
	const json_t *generation = json_object_get(r->body, "generation");
	struct ebb_access before;

	if (!name)
		return;
	if ((by && !json_is_string(by)) || !json_is_integer(generation)) {
		ebb_ctl_fail(r, "bad-request", NULL, "\"fence\" needs a whole number "
			     "\"generation\"; \"by\" is a string");
		return;
	}
	before = v->access;
	switch (ebb_access_fence(&v->access, name, json_string_value(by),
				 json_integer_value(generation), ctl->server->generation + 1)) {
	case 0:
		make_access(ctl, r, v, &before, ebb_access_find(&v->access, name)->id);
		break;
	case -ENOENT:
		no_such_attachment(r, name);
		break;
	case -EACCES:
		ebb_ctl_fail(r, "fenced", "its node has to stop", "\"%s\" may not write itself: "
			     "it is fenced or detached; the generation is %" PRIu64,
			     json_string_value(by), v->access.generation);
		break;
	case -ESTALE:
		ebb_ctl_fail(r, "stale", "ebbctl volumes attachments says who may write",
			     "the generation is %" PRIu64 ", not %" JSON_INTEGER_FORMAT,
			     v->access.generation, json_integer_value(generation));
		break;
	default:
		ebb_ctl_fail(r, "bad-value", NULL, "by: another attachment of the volume is "
			     "needed");
	}
}
