/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See attach.h. */
#include <stdlib.h>
#include "util/log.h"
#include "volumed/attach.h"
#include "volumed/blockdev.h"

struct ebb_attach_waiting {
	struct ebb_attach_waiting *next;
	uint32_t volume, attachment;	/* ids: either may be gone */
	ebb_server_done done;
	void *ctx;
};

/* ---- waits ---- */

static bool is_over(struct ebb_server *s, const struct ebb_attach_waiting *w)
{
	struct ebb_volume *v = ebb_server_find_id(s, w->volume);
	const struct ebb_attachment *t = v ? ebb_access_find_id(&v->access, w->attachment) : NULL;

	return !t || ebb_access_is_settled(t);
}

/* done() may end other waits, so each one is taken off first. */
static void end_wait(struct ebb_attach_waiting **at, const char *error)
{
	struct ebb_attach_waiting *w = *at;

	*at = w->next;
	w->done(w->ctx, error);
	free(w);
}

void ebb_attach_settle(struct ebb_server *s)
{
	struct ebb_attach_waiting **at = &s->attaching;

	while (*at) {
		if (is_over(s, *at)) {
			end_wait(at, NULL);
			at = &s->attaching;
		} else {
			at = &(*at)->next;
		}
	}
}

static void refuse(struct ebb_server *s, uint32_t attachment, const char *error)
{
	struct ebb_attach_waiting **at = &s->attaching;

	while (*at) {
		if ((*at)->attachment == attachment) {
			end_wait(at, error);
			at = &s->attaching;
		} else {
			at = &(*at)->next;
		}
	}
}

void ebb_attach_give_up(struct ebb_server *s)
{
	while (s->attaching)
		end_wait(&s->attaching, "the storage daemon has ended");
}

void ebb_attach_wait(struct ebb_server *s, const struct ebb_volume *v, uint32_t attachment,
		     ebb_server_done done, void *ctx)
{
	struct ebb_attach_waiting *w = calloc(1, sizeof(*w));

	if (!w) {
		done(ctx, "out of memory");
		return;
	}
	*w = (struct ebb_attach_waiting){ .next = s->attaching, .volume = v->id,
					  .attachment = attachment, .done = done, .ctx = ctx };
	s->attaching = w;
	ebb_attach_settle(s);
}

/* ---- the storage daemon ---- */

struct asked {
	struct ebb_server *server;
	uint32_t volume, attachment;
};

static struct ebb_attachment *attachment_of(const struct asked *g, struct ebb_volume **ret)
{
	/* The answers of one that has died say nothing: ebb_attach_lost() has. */
	*ret = g->server->qmp ? ebb_server_find_id(g->server, g->volume) : NULL;
	return *ret ? ebb_access_find_id(&(*ret)->access, g->attachment) : NULL;
}

static void on_made(void *ctx, const json_t *result, const char *error)
{
	struct asked *g = ctx;
	struct ebb_volume *v;
	struct ebb_attachment *t = attachment_of(g, &v);

	if (t && !result)
		ebb_log(LOG_ERR, "attachment_failed", EBB_KS("volume", v->spec.name),
			EBB_KS("attachment", t->name), EBB_KS("error", error));
	if (t && !result && t->export == EBB_ACCESS_CLOSING) {
		/* There is nothing to remove, as it was to be already. */
		ebb_attach_removed(g->server, v, g->attachment);
	} else if (t) {
		ebb_access_made(t, !result);
		if (!result && t->export == EBB_ACCESS_CLOSED)
			refuse(g->server, g->attachment, error);
		ebb_attach_settle(g->server);
	}
	free(g);
}

/*
 * An event says when it is gone.  Only that counts: after a failure clients may still be there.
 * Of one that never was there on_made() has heard before.
 */
static void on_told_to_remove(void *ctx, const json_t *result, const char *error)
{
	struct asked *g = ctx;
	struct ebb_volume *v;
	struct ebb_attachment *t = attachment_of(g, &v);

	if (t && !result && t->export == EBB_ACCESS_CLOSING) {
		ebb_log(LOG_ERR, "attachment_not_closed", EBB_KS("volume", v->spec.name),
			EBB_KS("attachment", t->name), EBB_KS("error", error));
		ebb_access_not_removed(t);
	}
	free(g);
}

/* Without memory it is told at the next look, within seconds. */
static void tell(struct ebb_server *s, const struct ebb_volume *v, struct ebb_attachment *t)
{
	struct asked *g = malloc(sizeof(*g));
	char id[EBB_BLOCKDEV_ID_SIZE];

	if (!g)
		return;
	*g = (struct asked){ .server = s, .volume = v->id, .attachment = t->id };
	ebb_blockdev_attachment_id(t, id);
	switch (ebb_access_step(t)) {
	case EBB_ACCESS_MAKE:
		ebb_qmp_send(s->qmp, "block-export-add", ebb_blockdev_attachment_args(v, t),
			     on_made, g);
		break;
	case EBB_ACCESS_REMOVE:
		ebb_qmp_send(s->qmp, "block-export-del",
			     json_pack("{s:s, s:s}", "id", id, "mode", "hard"), on_told_to_remove,
			     g);
		break;
	default:
		free(g);
	}
}

void ebb_attach_advance(struct ebb_server *s, struct ebb_volume *v)
{
	const bool is_there = s->qmp && (v->state == EBB_VOLUME_SERVED ||
					 v->state == EBB_VOLUME_REMOVING);

	for (size_t i = 0; is_there && i < v->access.num; i++)
		tell(s, v, &v->access.all[i]);
	ebb_access_drop_closed(&v->access);
	ebb_attach_settle(s);
}

void ebb_attach_opened(struct ebb_server *s, struct ebb_volume *v)
{
	for (size_t i = 0; i < v->access.num; i++)
		ebb_access_opened(&v->access.all[i]);
	ebb_attach_advance(s, v);
}

void ebb_attach_lost(struct ebb_volume *v)
{
	for (size_t i = 0; i < v->access.num; i++)
		ebb_access_lost(&v->access.all[i]);
}

void ebb_attach_removed(struct ebb_server *s, struct ebb_volume *v, uint32_t attachment)
{
	struct ebb_attachment *t = ebb_access_find_id(&v->access, attachment);

	if (!t)
		return;
	ebb_access_removed(t);
	ebb_log(LOG_NOTICE, "attachment_closed", EBB_KS("volume", v->spec.name),
		EBB_KS("attachment", t->name), EBB_KS("fenced", t->is_fenced ? "yes" : "no"));
	ebb_attach_advance(s, v);
	ebb_server_finish_removal(s, v);
}
