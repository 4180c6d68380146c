/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See vrequest.h. */
#include <stdlib.h>
#include "util/log.h"
#include "volumed/vrequest.h"
#include "volumed/vstate.h"

struct ebb_waiting *ebb_vrequest_wait(struct ebb_vctl *ctl, struct ebb_ctl_request *r,
				      const struct ebb_volume *v, uint64_t patience,
				      sd_event_time_handler_t late)
{
	struct ebb_waiting *w = calloc(1, sizeof(*w)), **at = &ctl->waiting;

	if (!w || sd_event_add_time_relative(ctl->server->event, &w->timer, CLOCK_MONOTONIC,
					     patience, 1000, late, w) < 0) {
		free(w);
		ebb_ctl_fail(r, "failed", NULL, "out of memory");
		return NULL;
	}
	w->ctl = ctl;
	w->request = r;
	w->has_volume = v;
	w->volume = v ? v->id : 0;
	while (*at)
		at = &(*at)->next;
	*at = w;
	return w;
}

void ebb_vrequest_end(struct ebb_waiting *w)
{
	struct ebb_waiting **at = &w->ctl->waiting;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	sd_event_source_disable_unref(w->timer);
	free(w);
}

void ebb_vrequest_reply(struct ebb_waiting *w, json_t *answer)
{
	if (w->request)
		ebb_ctl_reply(w->request, answer);
	else
		json_decref(answer);
}

void ebb_vrequest_refuse(const struct ebb_waiting *w, const char *code, const char *hint,
			 const char *text)
{
	if (w->request)
		ebb_ctl_fail(w->request, code, hint, "%s", text);
}

struct ebb_volume *ebb_vrequest_volume(struct ebb_server *s, struct ebb_ctl_request *r)
{
	const char *name = json_string_value(json_object_get(r->body, "volume"));
	struct ebb_volume *v;

	if (!name) {
		ebb_ctl_fail(r, "bad-request", NULL, "\"%s\" needs a string \"volume\"", r->cmd);
		return NULL;
	}
	v = ebb_server_find(s, name);
	if (!v || v->state == EBB_VOLUME_REMOVING) {
		ebb_ctl_fail(r, "no-such-volume", "ebbctl volumes lists them",
			     "there is no volume \"%.80s\"", name);
		return NULL;
	}
	return v;
}

int ebb_vrequest_save(const struct ebb_server *s, struct ebb_err *err)
{
	const int rc = ebb_vstate_save(s, err);

	if (rc < 0)
		ebb_log(LOG_ERR, "state_not_saved", EBB_KS("error", err->text));
	return rc;
}
