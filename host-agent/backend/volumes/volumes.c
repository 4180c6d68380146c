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
	sd_event_source *timer;		/* the next reading */
	bool is_up;			/* VOLUMES_UP was reported, and no VOLUMES_LOST since */
	bool has_set;			/* since then a promise was set */
	unsigned int num_reading;	/* requests of the last reading that have not ended */
	usec_t read_at;			/* when it was begun */
	struct ebb_volume_list owned;	/* while the greeting lasts */
	bool has_told_lost;		/* VOLUMES_LOST was reported, and no VOLUMES_UP since */
	/* Why the greeting was refused: the words for VOLUMES_LOST; "": it was not. */
	char refused[EBB_TEXT_SIZE];
};

void ebb_volumes_config_default(struct ebb_volumes_config *ret)
{
	*ret = (struct ebb_volumes_config){
		.retry_usec = { 100 * EBB_USEC_PER_MSEC, 5 * EBB_USEC_PER_SEC },
		.patience_usec = 10 * EBB_USEC_PER_SEC, .meter_usec = EBB_USEC_PER_SEC,
	};
}

static void tell(struct ebb_volumes *v, const struct ebb_fact *fact)
{
	v->cfg.sink.report(v->cfg.sink.ctx, ebb_clock_mono_usec(), fact);
}

/* ---- readings -------------------------------------------------------------------- */

static bool on_meters(void *ctx, uint64_t tag, const json_t *answer, const char *why)
{
	struct ebb_fact fact = { .type = EBB_FACT_VOLUMES_METERS };
	struct ebb_volume_reading *volumes;
	struct ebb_volumes *v = ctx;
	char text[EBB_TEXT_SIZE];
	const int err = answer ? ebb_volume_proto_result(answer, text) : -ENOTCONN;

	(void)tag;
	(void)why;
	v->num_reading--;
	/* Refused, out of memory for example: the next reading may be better. */
	if (err < 0)
		return err != -EPROTO;
	fact.u.volumes_meters.as_of = v->read_at;
	if (ebb_volume_proto_read_meters(answer, &fact.u.volumes_meters, &volumes) < 0)
		return false;
	tell(v, &fact);
	free(volumes);
	return true;
}

static bool take_server(struct ebb_volumes *v, const json_t *answer)
{
	struct ebb_fact fact = { .type = EBB_FACT_VOLUMES_SERVER };

	if (ebb_volume_proto_read_server(answer, &fact.u.volumes_server) < 0)
		return false;
	tell(v, &fact);
	return true;
}

static bool on_server(void *ctx, uint64_t tag, const json_t *answer, const char *why)
{
	struct ebb_volumes *v = ctx;
	char text[EBB_TEXT_SIZE];
	const int err = answer ? ebb_volume_proto_result(answer, text) : -ENOTCONN;

	(void)tag;
	(void)why;
	v->num_reading--;
	return err == 0 ? take_server(v, answer) : err != -EPROTO;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct ebb_volumes *v = arg;

	(void)usec;
	sd_event_source_set_time_relative(s, v->cfg.meter_usec);
	sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	if (!v->is_up || v->num_reading > 0)
		return 0;
	v->read_at = ebb_clock_mono_usec();
	v->num_reading = 1 + v->has_set;
	ebb_volume_conn_send(v->conn, ebb_volume_proto_server(), on_server, 0);
	if (v->has_set)
		ebb_volume_conn_send(v->conn, ebb_volume_proto_meters(), on_meters, 0);
	return 0;
}

/* ---- the connection ------------------------------------------------------------- */

static void forget_owned(struct ebb_volumes *v)
{
	free(v->owned.names);
	v->owned = (struct ebb_volume_list){ 0 };
}

static bool begin_up(struct ebb_volumes *v, const json_t *answer)
{
	const struct ebb_fact fact = {
		.type = EBB_FACT_VOLUMES_UP,
		.u.volumes_up = { .num = (uint32_t)v->owned.num, .owned = v->owned.names },
	};

	ebb_volume_conn_good(v->conn);
	v->is_up = true;
	v->has_told_lost = false;
	ebb_log(LOG_INFO, "volume_server", EBB_KS("path", v->cfg.path), EBB_KS("state", "up"));
	tell(v, &fact);
	forget_owned(v);
	return take_server(v, answer);
}

/* The server may have thousands of volumes; no part of the list keeps the loop for long. */
static bool on_greeted(void *ctx, uint64_t tag, const json_t *answer, const char *why)
{
	struct ebb_volume_server server;
	struct ebb_volumes *v = ctx;
	int r;

	(void)tag;
	(void)why;
	if (!answer || ebb_volume_proto_result(answer, v->refused) < 0 ||
	    ebb_volume_proto_read_server(answer, &server) < 0)
		return false;
	r = ebb_volume_proto_read_owned(answer, &v->owned);
	if (r == 0)
		return begin_up(v, answer);
	if (r > 0)
		ebb_volume_conn_send(v->conn, ebb_volume_proto_owned(v->cfg.owner, v->owned.after),
				     on_greeted, 0);
	return r > 0;
}

/* An agent whose claim is refused can set no promise, but still reads the meters. */
static bool on_claimed(void *ctx, uint64_t tag, const json_t *answer, const char *why)
{
	struct ebb_volumes *v = ctx;
	int err;

	(void)tag;
	(void)why;
	err = answer ? ebb_volume_proto_result(answer, v->refused) : -ENOTCONN;
	if (err < 0 && err != -EACCES)
		return false;
	v->refused[0] = '\0';
	ebb_volume_conn_send(v->conn, ebb_volume_proto_owned(v->cfg.owner, 0), on_greeted, 0);
	return true;
}

static void on_connected(void *ctx)
{
	struct ebb_volumes *v = ctx;

	v->refused[0] = '\0';
	forget_owned(v);
	ebb_volume_conn_send(v->conn, ebb_volume_proto_claim(v->cfg.owner), on_claimed, 0);
}

static void on_lost(void *ctx, const char *why)
{
	struct ebb_fact fact = { .type = EBB_FACT_VOLUMES_LOST };
	struct ebb_volumes *v = ctx;

	v->is_up = v->has_set = false;
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

	v->has_set = v->has_set || err == 0;
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
		ebb_volume_conn_send(v->conn,
				     ebb_volume_proto_set(v->cfg.owner, &action->u.volume),
				     on_set, action->id);
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
	v->cfg.owner = strdup(cfg->owner);
	v->ops = (struct ebb_backend_ops){
		.name = cfg->inner.ops->name, .submit = submit,
		.next = cfg->inner.ops->next ? next : NULL,
		.run = cfg->inner.ops->run ? run : NULL,
		.destroy = destroy_inner,
	};
	rc = v->cfg.path && v->cfg.owner ? ebb_volume_conn_create(event, &conn, &v->conn) : -ENOMEM;
	if (rc == 0)
		rc = sd_event_add_time_relative(event, &v->timer, CLOCK_MONOTONIC,
						v->cfg.meter_usec, 0, on_timer, v);
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
	sd_event_source_disable_unref(v->timer);
	forget_owned(v);
	free((char *)v->cfg.path);
	free((char *)v->cfg.owner);
	free(v);
}
