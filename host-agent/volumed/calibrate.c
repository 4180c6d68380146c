/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calibration, one depth after the other. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util/log.h"
#include "volumed/calibrate.h"
#include "volumed/probe.h"
#include "volumed/vstate.h"

#define STEP_USEC	1000000
/* A storage daemon that is silent for so long while requests are open hangs. */
#define SILENCE_USEC	10000000
#define SMALL_BYTES	4096
#define LARGE_BYTES	(1u << 20)

static const uint32_t depths[EBB_CALIBRATE_POINTS] = { 1, 2, 4, 8, 16, 32, 64, 128 };

/* One message of the process that measures. */
struct result {
	struct ebb_knee_point point;
	struct ebb_err err;
	bool is_good;
};

struct ebb_calibration {
	struct ebb_server *server;
	char nbd_path[EBB_VCONF_VALUE_SIZE + 32];
	uint32_t volume_id;
	uint32_t old_depth;
	struct ebb_knee_point points[EBB_CALIBRATE_POINTS];
	size_t num, best;		/* best: the one to use, when all are measured */
	bool is_large;			/* the last step: large requests, at the depth found */
	bool is_running;
	pid_t pid;
	int fd;				/* where the result of the process comes from */
	sd_event_source *child;
	ebb_calibrate_done done;
	void *ctx;
};

static void step(struct ebb_calibration *c);

static struct ebb_volume *own_volume(const struct ebb_calibration *c)
{
	struct ebb_volume *v = ebb_server_find(c->server, EBB_CALIBRATE_VOLUME);

	return v && v->id == c->volume_id ? v : NULL;
}

static void finish(struct ebb_calibration *c, const char *error)
{
	struct ebb_server *s = c->server;
	struct ebb_volume *v = own_volume(c);
	struct ebb_err err = { "" };

	c->is_running = false;
	if (v)
		ebb_server_remove(s, v);
	if (error)
		s->depth = c->old_depth;
	ebb_server_schedule(s, NULL, NULL);
	if (!error && ebb_vstate_save(s, &err) < 0)
		error = err.text;
	if (error)
		ebb_log(LOG_ERR, "calibration", EBB_KS("error", error));
	else
		ebb_log(LOG_NOTICE, "calibration", EBB_KI("depth", s->capacity.depth),
			EBB_KI("iops", s->capacity.iops), EBB_KI("bytes", s->capacity.bytes),
			EBB_KI("latency_us", s->capacity.latency_us));
	c->done(c->ctx, c->points, c->num, error);
}

static void take(struct ebb_calibration *c, const struct ebb_knee_point *p)
{
	const struct ebb_knee_point *best;

	if (c->is_large) {
		best = &c->points[c->best];
		c->server->capacity = (struct ebb_capacity){
			.iops = best->iops, .bytes = p->iops * LARGE_BYTES, .depth = best->depth,
			.latency_us = best->mean_us,
		};
		finish(c, NULL);
		return;
	}
	ebb_log(LOG_INFO, "calibration_point", EBB_KI("depth", p->depth), EBB_KI("iops", p->iops),
		EBB_KI("mean_us", p->mean_us), EBB_KI("p99_us", p->p99_us));
	c->points[c->num++] = *p;
	if (c->num == EBB_CALIBRATE_POINTS) {
		c->best = ebb_knee_find(c->points, c->num);
		c->is_large = true;
	}
	step(c);
}

static int on_child(sd_event_source *source, const siginfo_t *si, void *arg)
{
	struct ebb_calibration *c = arg;
	struct result r = { .is_good = false };
	const bool is_whole = read(c->fd, &r, sizeof(r)) == sizeof(r);

	(void)source;
	(void)si;
	close(c->fd);
	c->fd = -1;
	c->pid = 0;
	c->child = sd_event_source_disable_unref(c->child);
	if (is_whole && r.is_good)
		take(c, &r.point);
	else
		finish(c, is_whole ? r.err.text : "the process that measures has died");
	return 0;
}

static void run_child(const struct ebb_calibration *c, int fd)
{
	const struct ebb_probe probe = {
		.path = c->nbd_path, .export = EBB_CALIBRATE_VOLUME, .usec = STEP_USEC,
		.patience_usec = SILENCE_USEC,
		.depth = c->server->depth, .bytes = c->is_large ? LARGE_BYTES : SMALL_BYTES,
	};
	struct result r;
	sigset_t none;

	memset(&r, 0, sizeof(r));
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	r.is_good = ebb_probe_run(&probe, &r.point, &r.err) == 0;
	_exit(write(fd, &r, sizeof(r)) != sizeof(r));
}

/* The storage daemon has the depth. */
static void on_depth(void *ctx, const char *error)
{
	struct ebb_calibration *c = ctx;
	int fds[2];

	if (error) {
		finish(c, error);
		return;
	}
	if (pipe2(fds, O_CLOEXEC) < 0) {
		finish(c, strerror(errno));
		return;
	}
	c->pid = fork();
	if (c->pid == 0)
		run_child(c, fds[1]);
	close(fds[1]);
	c->fd = fds[0];
	if (c->pid < 0 || sd_event_add_child(c->server->event, &c->child, c->pid, WEXITED,
					     on_child, c) < 0) {
		if (c->pid > 0) {
			kill(c->pid, SIGKILL);
			waitpid(c->pid, NULL, 0);
		}
		c->pid = 0;
		close(c->fd);
		c->fd = -1;
		finish(c, "no process can be started");
	}
}

static void step(struct ebb_calibration *c)
{
	c->server->depth = c->is_large ? c->points[c->best].depth : depths[c->num];
	ebb_server_schedule(c->server, on_depth, c);
}

static void on_served(void *ctx, const char *error)
{
	struct ebb_calibration *c = ctx;

	if (error)
		finish(c, error);
	else
		step(c);
}

int ebb_calibrate_start(struct ebb_server *s, const char *nbd_path, const char *file,
			const char *format, ebb_calibrate_done done, void *ctx,
			struct ebb_calibration **ret, struct ebb_err *err)
{
	struct ebb_calibration *c;
	struct ebb_volspec spec;
	struct ebb_volume *v;
	int rc;

	if (ebb_server_find(s, EBB_CALIBRATE_VOLUME))
		return ebb_err_set(err, -EBUSY, "there is a volume \"" EBB_CALIBRATE_VOLUME "\"");
	rc = ebb_volspec_init(&spec, EBB_CALIBRATE_VOLUME, err);
	if (rc == 0)
		rc = ebb_volspec_set(&spec, "tenant", EBB_VOLUME_SYSTEM, err);
	if (rc == 0)
		rc = ebb_volspec_set(&spec, "file", file, err);
	if (rc == 0)
		rc = ebb_volspec_set(&spec, "format", format, err);
	if (rc < 0)
		return rc;
	ebb_server_charge_system(s, &spec);
	/* It measures what the disk can do. */
	spec.max_iops = spec.max_bytes = EBB_VOLUME_NO_NUMBER;
	c = calloc(1, sizeof(*c));
	v = c ? ebb_server_append(s, &spec) : NULL;
	if (!v) {
		free(c);
		return ebb_err_set(err, -ENOMEM, "too many volumes, or no memory");
	}
	v->is_probe = true;
	c->server = s;
	snprintf(c->nbd_path, sizeof(c->nbd_path), "%s", nbd_path);
	c->volume_id = v->id;
	c->old_depth = s->depth;
	c->is_running = true;
	c->fd = -1;
	c->done = done;
	c->ctx = ctx;
	*ret = c;
	ebb_server_serve(s, v, on_served, c);
	return 0;
}

void ebb_calibrate_destroy(struct ebb_calibration *c)
{
	if (!c)
		return;
	sd_event_source_disable_unref(c->child);
	if (c->pid) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

bool ebb_calibrate_is_running(const struct ebb_calibration *c)
{
	return c && c->is_running;
}
