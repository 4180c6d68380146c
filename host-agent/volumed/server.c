/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The volume server and its storage daemon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"
#include "volumed/attach.h"
#include "volumed/blockdev.h"
#include "volumed/server.h"
#include "volumed/vmeter.h"
#include "volumed/vstate.h"

/* A storage daemon that dies takes with it what it counted since the last look. */
#define POLL_USEC	1000000
/* After so many looks a volume that could not be served is tried again. */
#define RETRY_POLLS	3
/* Of the storage daemon that a volume takes: two for the volume and for each export. */
#define MAX_ARGUMENTS	(2 + 2 * EBB_ACCESS_MAX)

/* ---- volumes ---- */

struct ebb_volume *ebb_server_find(struct ebb_server *s, const char *name)
{
	struct ebb_volume *v = s->volumes;

	while (v && strcmp(v->spec.name, name) != 0)
		v = v->next;
	return v;
}

struct ebb_volume *ebb_server_find_id(struct ebb_server *s, uint32_t id)
{
	struct ebb_volume *v = s->volumes;

	while (v && v->id != id)
		v = v->next;
	return v;
}

const struct ebb_volspec *ebb_server_in_force(const struct ebb_volume *v)
{
	return v->before ? v->before : &v->spec;
}

struct ebb_volume *ebb_server_append(struct ebb_server *s, const struct ebb_volspec *spec)
{
	struct ebb_volume **at = &s->volumes, *v;

	v = s->num_volumes < EBB_SERVER_MAX_VOLUMES ? calloc(1, sizeof(*v)) : NULL;
	if (!v)
		return NULL;
	v->spec = *spec;
	v->id = ++s->last_id;
	while (*at)
		at = &(*at)->next;
	*at = v;
	s->num_volumes++;
	return v;
}

void ebb_server_drop(struct ebb_server *s, struct ebb_volume *v)
{
	struct ebb_volume **at = &s->volumes;

	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	s->num_volumes--;
	json_decref(v->base);
	json_decref(v->last);
	json_decref(v->now);
	free(v->before);
	free(v);
}

/* ---- asking the storage daemon ---- */

struct asking {
	struct ebb_server *server;
	ebb_server_done done;
	void *ctx;
};

static void on_done(void *ctx, const json_t *result, const char *error)
{
	struct asking *a = ctx;

	(void)result;
	if (a->done)
		a->done(a->ctx, error);
	free(a);
}

static void ask(struct ebb_server *s, const char *command, json_t *args, ebb_qmp_done then,
		ebb_server_done done, void *ctx)
{
	struct asking *a = calloc(1, sizeof(*a));

	if (!a || !s->qmp) {
		free(a);
		json_decref(args);
		if (done)
			done(ctx, "the storage daemon is not there");
		return;
	}
	*a = (struct asking){ .server = s, .done = done, .ctx = ctx };
	ebb_qmp_send(s->qmp, command, args, then, a);
}

/* ---- serving a volume ---- */

/* A volume may be dropped before the answer comes: then there is none of that id. */
struct of_volume {
	struct ebb_server *server;
	uint32_t id;
	ebb_server_done done;
	void *ctx;
};

static struct of_volume *of_volume(struct ebb_server *s, const struct ebb_volume *v,
				   ebb_server_done done, void *ctx)
{
	struct of_volume *g = calloc(1, sizeof(*g));

	if (g)
		*g = (struct of_volume){ .server = s, .id = v->id, .done = done, .ctx = ctx };
	return g;
}

static struct ebb_volume *volume_of(const struct of_volume *g)
{
	return ebb_server_find_id(g->server, g->id);
}

/* The promise may have changed while the storage daemon was opening the volume. */
static void renew_promise(struct ebb_server *s, struct ebb_volume *v)
{
	if (v->is_changed)
		ebb_qmp_send(s->qmp, "ebb-volume-set", ebb_blockdev_promise_args(&v->spec), NULL,
			     NULL);
	v->is_changed = false;
}

static void on_promised(void *ctx, const json_t *result, const char *error)
{
	struct of_volume *g = ctx;
	struct ebb_volume *v = volume_of(g);
	/* One that has died meanwhile has refused nothing. */
	const bool is_refused = !result && g->server->qmp;

	if (v && is_refused)
		v->spec = *v->before;
	if (v) {
		free(v->before);
		v->before = NULL;
	}
	g->done(g->ctx, is_refused ? error : NULL);
	free(g);
}

void ebb_server_promise(struct ebb_server *s, struct ebb_volume *v, const struct ebb_volspec *spec,
			ebb_server_done done, void *ctx)
{
	const bool is_told = s->qmp && v->state == EBB_VOLUME_SERVED;
	struct of_volume *g = is_told ? of_volume(s, v, done, ctx) : NULL;
	struct ebb_volspec *before = g ? malloc(sizeof(*before)) : NULL;

	if (is_told && !before) {
		free(g);
		done(ctx, "out of memory");
		return;
	}
	if (before)
		*before = v->spec;
	v->before = before;
	v->spec = *spec;
	ebb_log(LOG_INFO, "promise", EBB_KS("volume", spec->name),
		EBB_KI("reserve_iops", spec->reserve_iops),
		EBB_KI("reserve_bytes", spec->reserve_bytes), EBB_KI("max_iops", spec->max_iops),
		EBB_KI("max_bytes", spec->max_bytes), EBB_KI("weight", spec->weight),
		EBB_KI("penalty", spec->penalty));
	if (is_told) {
		ebb_qmp_send(s->qmp, "ebb-volume-set", ebb_blockdev_promise_args(spec),
			     on_promised, g);
		return;
	}
	v->is_changed = true;
	done(ctx, NULL);
}

static void serving_end(struct of_volume *g, const char *error)
{
	struct ebb_volume *v = volume_of(g);

	if (v && error) {
		v->state = g->server->qmp ? EBB_VOLUME_FAILED : EBB_VOLUME_WAITING;
		/* It is tried again and again, and logged once. */
		if (strncmp(v->error, error, sizeof(v->error) - 1) != 0)
			ebb_log(LOG_ERR, "volume_failed", EBB_KS("volume", v->spec.name),
				EBB_KS("file", v->spec.file), EBB_KS("error", error));
		ebb_text_copy(v->error, sizeof(v->error), error);
	} else if (v) {
		v->state = EBB_VOLUME_SERVED;
		v->error[0] = '\0';
		renew_promise(g->server, v);
		ebb_log(LOG_INFO, "volume_served", EBB_KS("volume", v->spec.name),
			EBB_KS("tenant", v->spec.tenant), EBB_KS("file", v->spec.file));
		ebb_attach_opened(g->server, v);
	}
	if (g->done)
		g->done(g->ctx, error);
	free(g);
}

static void on_exported(void *ctx, const json_t *result, const char *error)
{
	struct of_volume *g = ctx;
	struct ebb_volume *v = volume_of(g);
	char node[EBB_BLOCKDEV_ID_SIZE];

	if (!result && v && g->server->qmp) {
		ebb_blockdev_node(v, node);
		ebb_qmp_send(g->server->qmp, "blockdev-del", json_pack("{s:s}", "node-name", node),
			     NULL, NULL);
	}
	serving_end(g, error);
}

static void on_opened(void *ctx, const json_t *result, const char *error)
{
	struct of_volume *g = ctx;
	struct ebb_volume *v = volume_of(g);

	if (!result || !v || !g->server->qmp)
		serving_end(g, error ? error : "the volume has been removed");
	else if (v->spec.is_shared)
		serving_end(g, NULL);
	else
		ebb_qmp_send(g->server->qmp, "block-export-add", ebb_blockdev_export_args(v),
			     on_exported, g);
}

void ebb_server_serve(struct ebb_server *s, struct ebb_volume *v, ebb_server_done done, void *ctx)
{
	struct of_volume *g = of_volume(s, v, done, ctx);

	if (!g || !s->qmp) {
		free(g);
		if (done)
			done(ctx, "the storage daemon is not there");
		return;
	}
	v->state = EBB_VOLUME_WAITING;
	v->is_changed = false;
	ebb_qmp_send(s->qmp, "blockdev-add", ebb_blockdev_node_args(s->conf, v), on_opened, g);
}

/*
 * "hard": its clients are disconnected.  An event says when they are gone, which they are when
 * their last requests have ended, up to 16 of each.  Those that are at the disk end by themselves.
 * The others are given up: they would wait for the volume's turn, which may never come beside full
 * reservations of others, and nobody is there to hear of their end.
 */
static void withdraw(struct ebb_server *s, struct ebb_volume *v)
{
	char id[EBB_BLOCKDEV_ID_SIZE];

	if (v->spec.is_shared) {
		ebb_attach_advance(s, v);
	} else {
		ebb_blockdev_export_id(v, id);
		ebb_qmp_send(s->qmp, "block-export-del",
			     json_pack("{s:s, s:s}", "id", id, "mode", "hard"), NULL, NULL);
	}
	ebb_qmp_send(s->qmp, "ebb-volume-cancel", json_pack("{s:s}", "volume", v->spec.name), NULL,
		     NULL);
}

void ebb_server_remove(struct ebb_server *s, struct ebb_volume *v)
{
	ebb_log(LOG_INFO, "volume_removing", EBB_KS("volume", v->spec.name));
	if (v->state != EBB_VOLUME_SERVED) {
		ebb_server_drop(s, v);
		return;
	}
	v->state = EBB_VOLUME_REMOVING;
	for (size_t i = 0; i < v->access.num; i++)
		v->access.all[i].is_leaving = true;
	/* A storage daemon that is starting has it, too; storage_up() takes it away. */
	if (s->qmp)
		withdraw(s, v);
	ebb_server_finish_removal(s, v);
}

/* Its users have gone: now its file can be closed. */
static void close_removed(struct ebb_server *s, struct ebb_volume *v)
{
	char node[EBB_BLOCKDEV_ID_SIZE];

	ebb_blockdev_node(v, node);
	if (s->qmp)
		ebb_qmp_send(s->qmp, "blockdev-del", json_pack("{s:s}", "node-name", node), NULL,
			     NULL);
	ebb_log(LOG_INFO, "volume_removed", EBB_KS("volume", v->spec.name));
	ebb_server_drop(s, v);
	ebb_attach_settle(s);
}

void ebb_server_finish_removal(struct ebb_server *s, struct ebb_volume *v)
{
	if (s->qmp && v->state == EBB_VOLUME_REMOVING && v->spec.is_shared && !v->access.num)
		close_removed(s, v);
}

/* ---- counters ---- */

json_t *ebb_server_counters(const struct ebb_volume *v)
{
	json_t *sum = v->base ? json_deep_copy(v->base) : json_object();

	ebb_vmeter_add(sum, v->last);
	return sum;
}

static void keep_counters(struct ebb_server *s, const json_t *info)
{
	json_t *volumes = json_object_get(info, "volumes"), *o;
	size_t i;

	json_array_foreach(volumes, i, o) {
		const char *name = json_string_value(json_object_get(o, "volume"));
		struct ebb_volume *v = name ? ebb_server_find(s, name) : NULL;

		if (!v)
			continue;
		json_decref(v->last);
		v->last = json_incref(json_object_get(o, "counters"));
		json_object_del(o, "counters");
		json_decref(v->now);
		v->now = json_incref(o);
	}
	json_decref(s->scheduler);
	s->scheduler = json_copy((json_t *)info);
	json_object_del(s->scheduler, "volumes");
}

static void on_info(void *ctx, const json_t *result, const char *error)
{
	struct asking *a = ctx;

	if (result)
		keep_counters(a->server, result);
	if (a->done)
		a->done(a->ctx, error);
	free(a);
}

void ebb_server_refresh(struct ebb_server *s, ebb_server_done done, void *ctx)
{
	ask(s, "query-ebb-volumes", NULL, on_info, done, ctx);
}

void ebb_server_schedule(struct ebb_server *s, ebb_server_done done, void *ctx)
{
	ask(s, "ebb-scheduler-set",
	    json_pack("{s:i, s:s, s:I}", "depth", s->depth, "overbooking", s->overbooking,
		      "capacity-iops", (json_int_t)ebb_server_capacity_iops(s)),
	    on_done, done, ctx);
}

bool ebb_server_hangs(const struct ebb_server *s)
{
	return s->qmp && ebb_qmp_silence(s->qmp) > s->patience_usec;
}

/* It is asked for counters each second: so one that hangs is found though nobody wants more. */
static void watch_storage(struct ebb_server *s)
{
	const bool hangs = ebb_server_hangs(s);

	if (hangs && !s->has_said_hang)
		ebb_log(LOG_ERR, "storage_daemon_hangs", EBB_KI("pid", ebb_storage_pid(s->storage)),
			EBB_KMS("silent_ms", ebb_qmp_silence(s->qmp)),
			EBB_KS("error", "it does not answer; the file of a volume may hang"));
	else if (!hangs && s->has_said_hang && s->qmp)
		ebb_log(LOG_NOTICE, "storage_daemon_answers",
			EBB_KI("pid", ebb_storage_pid(s->storage)));
	s->has_said_hang = hangs;
}

static void on_polled(void *ctx, const char *error)
{
	struct ebb_server *s = ctx;

	(void)error;
	s->is_polling = false;
}

static void retry_failed(struct ebb_server *s)
{
	for (struct ebb_volume *v = s->volumes; s->qmp && v; v = v->next)
		if (v->state == EBB_VOLUME_FAILED)
			ebb_server_serve(s, v, NULL, NULL);
		else
			ebb_attach_advance(s, v);
}

static int on_poll(sd_event_source *source, uint64_t usec, void *arg)
{
	struct ebb_server *s = arg;

	watch_storage(s);
	/* A daemon that is stuck is not asked again and again. */
	if (s->qmp && !s->is_polling) {
		s->is_polling = true;
		ebb_server_refresh(s, on_polled, s);
	}
	if (++s->num_polls % RETRY_POLLS == 0)
		retry_failed(s);
	sd_event_source_set_time(source, usec + POLL_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- the storage daemon ---- */

/* No storage daemon has them any more. */
static void drop_removed(struct ebb_server *s)
{
	for (struct ebb_volume *v = s->volumes, *next; v; v = next) {
		next = v->next;
		if (v->state == EBB_VOLUME_REMOVING || v->is_probe)
			ebb_server_drop(s, v);
	}
}

/* Takes the reference of value. */
static void add_argument(char **args, size_t *num, const char *option, json_t *value)
{
	args[(*num)++] = strdup(option);
	args[(*num)++] = json_dumps(value, JSON_COMPACT);
	json_decref(value);
}

/* Arguments that make a volume, how many, and their cost; 0: out of memory. */
static size_t describe(const struct ebb_server *s, struct ebb_volume *v,
		       char *ret[MAX_ARGUMENTS], size_t *ret_num)
{
	size_t cost = 0, num = 0;

	add_argument(ret, &num, "--blockdev", ebb_blockdev_node_args(s->conf, v));
	if (!v->spec.is_shared)
		add_argument(ret, &num, "--export", ebb_blockdev_export_args(v));
	for (size_t i = 0; i < v->access.num; i++)
		if (ebb_access_start(&v->access.all[i]))
			add_argument(ret, &num, "--export",
				     ebb_blockdev_attachment_args(v, &v->access.all[i]));
	*ret_num = num;
	for (size_t i = 0; i < num; i++)
		if (!ret[i])
			return 0;
	for (size_t i = 0; i < num; i++)
		cost += ebb_storage_cost(ret[i]);
	return cost;
}

/*
 * Volumes on its command line: no client is let in before its volume is there.  Those that do not
 * fit are opened by storage_up(), and clients that are faster do not find theirs.
 */
static char **storage_arguments(void *ctx, unsigned int attempt, size_t most)
{
	struct ebb_server *s = ctx;
	size_t num = 0, num_later = 0;
	char **args;

	drop_removed(s);
	args = calloc(MAX_ARGUMENTS * s->num_volumes + 1, sizeof(*args));
	if (!args)
		return NULL;
	for (struct ebb_volume *v = s->volumes; v; v = v->next) {
		const bool was_failed = v->state == EBB_VOLUME_FAILED;
		size_t cost, own;

		v->state = EBB_VOLUME_WAITING;
		ebb_attach_lost(v);
		/* One that can not be served ends the daemon; the next gets them one by one. */
		if (attempt > 0 || was_failed)
			continue;
		cost = describe(s, v, &args[num], &own);
		if (cost == 0 || cost > most) {
			for (size_t i = 0; i < own; i++) {
				free(args[num + i]);
				args[num + i] = NULL;
			}
			ebb_attach_lost(v);
			num_later++;
			continue;
		}
		num += own;
		most -= cost;
		v->state = EBB_VOLUME_SERVED;
		v->is_changed = false;
	}
	if (num_later > 0)
		ebb_log(LOG_NOTICE, "volumes_opened_later", EBB_KI("volumes", num_later),
			EBB_KI("in_time", s->num_volumes - num_later),
			EBB_KS("reason", "their descriptions do not fit on a command line"));
	return args;
}

static void storage_up(void *ctx, struct ebb_qmp *q)
{
	struct ebb_server *s = ctx;

	s->qmp = q;
	ebb_server_schedule(s, NULL, NULL);
	for (struct ebb_volume *v = s->volumes, *next; v; v = next) {
		next = v->next;
		if (v->state == EBB_VOLUME_SERVED || v->state == EBB_VOLUME_REMOVING)
			ebb_attach_opened(s, v);
		if (v->state == EBB_VOLUME_SERVED) {
			renew_promise(s, v);
		} else if (v->state == EBB_VOLUME_REMOVING) {
			withdraw(s, v);
			ebb_server_finish_removal(s, v);
		} else {
			ebb_server_serve(s, v, NULL, NULL);
		}
	}
	ebb_attach_settle(s);
	ebb_log(LOG_NOTICE, "storage_daemon_up", EBB_KI("volumes", s->num_volumes));
	/* VMs can be started.  Later times say nothing to systemd. */
	sd_notify(0, "READY=1");
}

static void storage_down(void *ctx)
{
	struct ebb_server *s = ctx;

	s->qmp = NULL;
	s->restarts++;
	drop_removed(s);
	for (struct ebb_volume *v = s->volumes; v; v = v->next) {
		ebb_attach_lost(v);
		if (v->last) {
			json_t *sum = ebb_server_counters(v);

			json_decref(v->base);
			json_decref(v->last);
			v->base = sum;
			v->last = NULL;
		}
		json_decref(v->now);
		v->now = NULL;
		if (v->state == EBB_VOLUME_SERVED)
			v->state = EBB_VOLUME_WAITING;
	}
}

static bool is_attachment(const struct ebb_attachment *t, const char *id)
{
	char export[EBB_BLOCKDEV_ID_SIZE];

	ebb_blockdev_attachment_id(t, export);
	return strcmp(export, id) == 0;
}

/* The last user of an export has gone. */
static void storage_event(void *ctx, const char *name, const json_t *data)
{
	struct ebb_server *s = ctx;
	const char *id = json_string_value(json_object_get(data, "id"));
	char export[EBB_BLOCKDEV_ID_SIZE];

	if (strcmp(name, "BLOCK_EXPORT_DELETED") != 0 || !id)
		return;
	for (struct ebb_volume *v = s->volumes; v; v = v->next) {
		for (size_t i = 0; i < v->access.num; i++)
			if (is_attachment(&v->access.all[i], id)) {
				ebb_attach_removed(s, v, v->access.all[i].id);
				return;
			}
		ebb_blockdev_export_id(v, export);
		if (v->state == EBB_VOLUME_REMOVING && strcmp(export, id) == 0) {
			close_removed(s, v);
			return;
		}
	}
}

static void storage_ended(void *ctx, bool is_failure)
{
	struct ebb_server *s = ctx;

	s->qmp = NULL;
	s->is_failed = is_failure;
	ebb_attach_give_up(s);
	sd_event_exit(s->event, is_failure ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* ---- start and end ---- */

int ebb_server_create(struct ebb_server *s, sd_event *event, const struct ebb_vconf *conf,
		      int nbd_fd, int lock_fd, struct ebb_err *err)
{
	const struct ebb_storage_config cfg = {
		.program = conf->storage_daemon, .nbd_fd = nbd_fd, .lock_fd = lock_fd,
		.max_connections = conf->max_connections, .arguments = storage_arguments,
		.up = storage_up, .down = storage_down, .event = storage_event,
		.ended = storage_ended, .ctx = s,
	};
	int rc = 0;

	s->event = sd_event_ref(event);
	s->conf = conf;
	s->overbooking = strcmp(conf->overbooking, "penalty") == 0 ? "penalty" : "proportional";
	s->started_at = ebb_clock_mono_usec();
	s->patience_usec = EBB_SERVER_PATIENCE_USEC;
	for (size_t i = 0; rc == 0 && i < conf->num_volumes; i++) {
		struct ebb_volume *v = ebb_server_append(s, &conf->volumes[i]);

		if (!v)
			return ebb_err_set(err, -ENOMEM, "more than %u volumes, or no memory",
					   EBB_SERVER_MAX_VOLUMES);
		v->is_configured = true;
	}
	rc = ebb_vstate_load(s, err);
	s->depth = conf->depth ? conf->depth :
		   s->capacity.depth ? s->capacity.depth : EBB_SERVER_DEPTH;
	if (rc == 0)
		rc = ebb_server_admit_all(s, err);
	if (rc == 0)
		rc = sd_event_add_time_relative(event, &s->poll, CLOCK_MONOTONIC, POLL_USEC, 0,
						on_poll, s);
	if (rc >= 0)
		rc = ebb_storage_create(event, &cfg, &s->storage);
	return rc < 0 ? rc : 0;
}

void ebb_server_destroy(struct ebb_server *s)
{
	ebb_storage_destroy(s->storage);
	s->qmp = NULL;
	ebb_attach_give_up(s);
	while (s->volumes)
		ebb_server_drop(s, s->volumes);
	json_decref(s->scheduler);
	sd_event_source_disable_unref(s->poll);
	sd_event_unref(s->event);
}
