/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebb-volumed: options, start and end. */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "service/service.h"
#include "util/log.h"
#include "util/version.h"
#include "volumed/calibrate.h"
#include "volumed/server.h"
#include "volumed/vconf.h"
#include "volumed/vctl.h"

#define DEFAULT_CONFIG	"/etc/ebb/ebb-volumed.conf"
/* The storage daemon of one that was killed ends in order, and has the lock until then. */
#define LOCK_USEC	(EBB_STORAGE_END_USEC + 2000000)
#define NBD_BACKLOG	128

struct options {
	struct ebb_service_options service;
	struct ebb_vconf config;
};

struct daemon {
	struct ebb_vconf config;
	sd_event *event;
	int lock_fd, nbd_fd;
	char nbd_path[EBB_VCONF_VALUE_SIZE + 32];
	struct ebb_server server;
	struct ebb_vctl vctl;
	struct ebb_ctl *ctl;
};

/* ---- options ---- */

const char *argp_program_version = "ebb-volumed " EBB_VERSION;

static const struct argp_option argp_options[] = {
	EBB_SERVICE_OPTIONS(DEFAULT_CONFIG),
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	return ebb_service_parse(key, arg, &o->service);
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse_option,
	.doc = "The volume server of Ebb: serves the disks of VMs and keeps what their tenants are "
	       "promised.",
};

static int read_config(struct options *o, struct ebb_err *err)
{
	const struct ebb_service_options *given = &o->service;
	int rc;

	ebb_vconf_default(&o->config);
	rc = ebb_vconf_load(&o->config, given->config_path ? given->config_path : DEFAULT_CONFIG,
			    err);
	if (rc == -ENOENT && !given->config_path) {
		err->text[0] = '\0';
		rc = 0;
	}
	for (size_t i = 0; rc == 0 && i < given->num_settings; i++)
		rc = ebb_vconf_set(&o->config, given->settings[i], err);
	return rc < 0 ? rc : ebb_vconf_check(&o->config, err);
}

/* ---- start ---- */

/* The storage daemon inherits the lock: two would write to the same files. */
static int take_lock(struct daemon *d, struct ebb_err *err)
{
	char path[EBB_VCONF_VALUE_SIZE + 32];
	int rc;

	snprintf(path, sizeof(path), "%s/volumed.lock", d->config.run_dir);
	rc = ebb_service_lock(path, LOCK_USEC, &d->lock_fd, err);
	if (rc < 0 && d->lock_fd >= 0)
		return ebb_err_set(err, rc, "another ebb-volumed, or the storage daemon of one, "
				   "uses run_dir %.200s", d->config.run_dir);
	return rc;
}

/*
 * The socket stays when a storage daemon ends: clients that come meanwhile wait in its queue for
 * the next one.  QEMU removes the file of a socket on which it ends to listen, by the name that
 * the socket was bound to; so that is another one than clients use.
 */
static int open_nbd(struct daemon *d, struct ebb_err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	gid_t group;
	int rc = ebb_setting_group("socket_group", d->config.socket_group, &group, err);

	if (rc < 0)
		return rc;
	snprintf(d->nbd_path, sizeof(d->nbd_path), "%s/nbd.sock", d->config.run_dir);
	if ((size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s.new", d->nbd_path) >=
	    sizeof(addr.sun_path))
		return ebb_err_set(err, -ENAMETOOLONG, "run_dir %.200s is too long for a unix "
				   "socket", d->config.run_dir);
	unlink(addr.sun_path);
	d->nbd_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (d->nbd_fd < 0 || bind(d->nbd_fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    chmod(addr.sun_path, group == (gid_t)-1 ? 0600 : 0660) < 0 ||
	    chown(addr.sun_path, -1, group) < 0 || listen(d->nbd_fd, NBD_BACKLOG) < 0 ||
	    rename(addr.sun_path, d->nbd_path) < 0) {
		rc = -errno;
		return ebb_err_set(err, rc, "can not listen on %s: %s", d->nbd_path,
				   strerror(-rc));
	}
	return 0;
}

/* The storage daemon ends first; the loop ends with it. */
static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
	struct daemon *d = arg;

	(void)source;
	ebb_log(LOG_NOTICE, "stopping", EBB_KI("signal", si->ssi_signo));
	sd_notify(0, "STOPPING=1");
	ebb_storage_stop(d->server.storage);
	return 0;
}

/* The loop takes the end of a storage daemon from SIGCHLD, which must be blocked for that. */
static int watch_signals(struct daemon *d)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return ebb_service_watch_signals(d->event, on_signal, d);
}

static int start(struct daemon *d, struct ebb_err *err)
{
	const struct ebb_ctl_config ctl = {
		.idle_usec = EBB_CTL_IDLE_USEC, .handle = ebb_vctl_handle, .ctx = &d->vctl,
	};
	int rc = ebb_service_folder("run_dir", d->config.run_dir, 0755, err);

	d->vctl.server = &d->server;
	if (rc == 0)
		rc = ebb_service_folder("state_dir", d->config.state_dir, 0700, err);
	if (rc == 0)
		rc = take_lock(d, err);
	if (rc == 0)
		rc = open_nbd(d, err);
	if (rc == 0)
		rc = sd_event_new(&d->event);
	if (rc >= 0)
		rc = watch_signals(d);
	if (rc >= 0)
		rc = ebb_server_create(&d->server, d->event, &d->config, d->nbd_fd, d->lock_fd,
				       err);
	if (rc >= 0)
		rc = ebb_service_ctl(d->event, d->config.run_dir, d->config.control_group, ctl,
				     &d->ctl, err);
	return rc;
}

static void end(struct daemon *d)
{
	ebb_ctl_destroy(d->ctl);
	ebb_calibrate_destroy(d->server.calibration);
	ebb_server_destroy(&d->server);
	sd_event_unref(d->event);
	if (d->nbd_fd >= 0)
		close(d->nbd_fd);
	if (d->lock_fd >= 0)
		close(d->lock_fd);
	ebb_vconf_finish(&d->config);
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct daemon d = { .lock_fd = -1, .nbd_fd = -1 };
	struct ebb_err err = { "" };
	int rc;

	ebb_service_begin(&argp, argc, argv, &o);
	rc = read_config(&o, &err);
	free(o.service.settings);
	d.config = o.config;
	if (rc < 0) {
		ebb_service_log_error("config", rc, &err);
		ebb_vconf_finish(&d.config);
		return EXIT_FAILURE;
	}
	ebb_log_set_level(d.config.log_level);
	json_object_seed(0);
	rc = start(&d, &err);
	if (rc < 0) {
		ebb_service_log_error("start", rc, &err);
	} else {
		ebb_log(LOG_NOTICE, "ready", EBB_KS("version", EBB_VERSION),
			EBB_KS("socket", d.nbd_path), EBB_KI("volumes", d.server.num_volumes));
		rc = ebb_service_run(d.event);
	}
	end(&d);
	return rc != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
