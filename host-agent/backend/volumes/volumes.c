/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See volumes.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backend/volumes/volume-conn.h"
#include "backend/volumes/volume-proto.h"
#include "backend/volumes/volumes.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

struct ebb_volumes {
	struct ebb_volumes_config cfg;
	struct ebb_backend_ops ops;
	struct ebb_volume_conn *conn;
	bool has_told_lost;		/* VOLUMES_LOST was reported, and no VOLUMES_UP since */
	/* Why the greeting was refused: the words for VOLUMES_LOST; "": it was not. */
	char refused[EBB_TEXT_SIZE];
};

void ebb_volumes_config_default(struct ebb_volumes_config *ret)
{
	*ret = (struct ebb_volumes_config){
		.retry_usec = { 100 * EBB_USEC_PER_MSEC, 5 * EBB_USEC_PER_SEC },
		.patience_usec = 10 * EBB_USEC_PER_SEC,
	};
}

static void tell(struct ebb_volumes *v, const struct ebb_fact *fact)
{
	v->cfg.sink.report(v->cfg.sink.ctx, ebb_clock_mono_usec(), fact);
}

/* ---- the connection ------------------------------------------------------------- */

static bool on_greeted(void *ctx, uint64_t tag, const json_t *answer, const char *why)
{
	const struct ebb_fact fact = { .type = EBB_FACT_VOLUMES_UP };
	struct ebb_volumes *v = ctx;

	(void)tag;
	(void)why;
	if (!answer || ebb_volume_proto_result(answer, v->refused) < 0)
		return false;
	ebb_volume_conn_good(v->conn);
	v->has_told_lost = false;
	ebb_log(LOG_INFO, "volume_server", EBB_KS("path", v->cfg.path), EBB_KS("state", "up"));
	tell(v, &fact);
	return true;
}

static void on_connected(void *ctx)
{
	struct ebb_volumes *v = ctx;

	v->refused[0] = '\0';
	ebb_volume_conn_send(v->conn, ebb_volume_proto_hello(), on_greeted, 0);
}

static void on_lost(void *ctx, const char *why)
{
	struct ebb_fact fact = { .type = EBB_FACT_VOLUMES_LOST };
	struct ebb_volumes *v = ctx;

	if (v->has_told_lost)
		return;
	v->has_told_lost = true;
	ebb_text_copy(fact.u.volumes_lost.text, EBB_TEXT_SIZE, v->refused[0] ? v->refused : why);
	ebb_log(LOG_NOTICE, "volume_server", EBB_KS("path", v->cfg.path), EBB_KS("state", "lost"),
		EBB_KS("reason", fact.u.volumes_lost.text));
	tell(v, &fact);
}

/* ---- as a backend ----------------------------------------------------------------- */

static bool on_set(void *ctx, uint64_t tag, const json_t *answer, const char *why)
{
	struct ebb_volumes *v = ctx;
	char text[EBB_TEXT_SIZE] = "";
	const int err = answer ? ebb_volume_proto_result(answer, text) : -ENOTCONN;
	const bool is_good = err != -EPROTO;
	const struct ebb_fact fact = {
		.type = EBB_FACT_ACTION_DONE,
		.u.action_done = { .id = tag, .type = EBB_ACTION_VOLUME,
				   .err = is_good ? err : -ENOTCONN,
				   .text = answer ? text : why },
	};

	/* The connection is about to be closed. */
	if (!is_good)
		on_lost(v, EBB_VOLUME_NO_SERVER);
	tell(v, &fact);
	return is_good;
}

static void submit(void *be, usec_t now, const struct ebb_action *action)
{
	struct ebb_volumes *v = be;

	if (action->type == EBB_ACTION_VOLUME)
		ebb_volume_conn_send(v->conn, ebb_volume_proto_set(&action->u.volume), on_set,
				     action->id);
	else
		v->cfg.inner.ops->submit(v->cfg.inner.be, now, action);
}

static usec_t next(void *be)
{
	struct ebb_volumes *v = be;

	return v->cfg.inner.ops->next(v->cfg.inner.be);
}

static void run(void *be, usec_t now)
{
	struct ebb_volumes *v = be;

	v->cfg.inner.ops->run(v->cfg.inner.be, now);
}

static void destroy_inner(void *be)
{
	struct ebb_volumes *v = be;

	if (v)
		v->cfg.inner.ops->destroy(v->cfg.inner.be);
}

struct ebb_backend ebb_volumes_backend(struct ebb_volumes *v)
{
	return (struct ebb_backend){ .ops = &v->ops, .be = v };
}

int ebb_volumes_create(sd_event *event, const struct ebb_volumes_config *cfg,
		       struct ebb_volumes **ret)
{
	struct ebb_volumes *v = calloc(1, sizeof(*v));
	struct ebb_volume_conn_config conn = {
		.path = cfg->path, .retry_usec = { cfg->retry_usec[0], cfg->retry_usec[1] },
		.patience_usec = cfg->patience_usec, .connected = on_connected, .lost = on_lost,
		.ctx = v,
	};
	int rc;

	if (!v)
		return -ENOMEM;
	v->cfg = *cfg;
	v->cfg.path = strdup(cfg->path);
	v->ops = (struct ebb_backend_ops){
		.name = cfg->inner.ops->name, .submit = submit,
		.next = cfg->inner.ops->next ? next : NULL,
		.run = cfg->inner.ops->run ? run : NULL,
		.destroy = destroy_inner,
	};
	rc = v->cfg.path ? ebb_volume_conn_create(event, &conn, &v->conn) : -ENOMEM;
	if (rc < 0) {
		ebb_volumes_destroy(v);
		return rc;
	}
	*ret = v;
	return 0;
}

void ebb_volumes_destroy(struct ebb_volumes *v)
{
	if (!v)
		return;
	ebb_volume_conn_destroy(v->conn);
	free((char *)v->cfg.path);
	free(v);
}
