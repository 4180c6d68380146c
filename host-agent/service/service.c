/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See service.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "service/service.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/log.h"

#define LOCK_RETRY_USEC	20000

error_t ebb_service_parse(int key, char *arg, struct ebb_service_options *o)
{
	switch (key) {
	case 'c':
		o->config_path = arg;
		return 0;
	case 'o':
		o->settings = reallocarray(o->settings, o->num_settings + 1, sizeof(char *));
		if (!o->settings)
			return ENOMEM;
		o->settings[o->num_settings++] = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void ebb_service_begin(const struct argp *argp, int argc, char **argv, void *input)
{
	ebb_fs_fill_std();
	argp_err_exit_status = EBB_SERVICE_EXIT_USAGE;
	argp_parse(argp, argc, argv, 0, NULL, input);
}

int ebb_service_folder(const char *key, const char *path, mode_t mode, struct ebb_err *err)
{
	int rc = ebb_fs_mkdirs(path, mode);

	return rc < 0 ? ebb_err_set(err, rc, "can not create %s %.200s: %s", key, path,
				    strerror(-rc)) : 0;
}

int ebb_service_lock(const char *path, uint64_t wait_usec, int *ret_fd, struct ebb_err *err)
{
	const uint64_t until = ebb_clock_mono_usec() + wait_usec;

	*ret_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (*ret_fd < 0)
		return ebb_err_set(err, -errno, "%s: %s", path, strerror(errno));
	while (flock(*ret_fd, LOCK_EX | LOCK_NB) < 0) {
		if (ebb_clock_mono_usec() >= until)
			return -EBUSY;
		usleep(LOCK_RETRY_USEC);
	}
	return 0;
}

int ebb_service_watch_signals(sd_event *event, sd_event_signal_handler_t handler, void *ctx)
{
	sigset_t set;
	int rc;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	rc = sd_event_add_signal(event, NULL, SIGTERM, handler, ctx);
	if (rc >= 0)
		rc = sd_event_add_signal(event, NULL, SIGINT, handler, ctx);
	return rc < 0 ? rc : 0;
}

int ebb_service_ctl(sd_event *event, const char *run_dir, const char *control_group,
		    struct ebb_ctl_config cfg, struct ebb_ctl **ret, struct ebb_err *err)
{
	char path[PATH_MAX];
	int rc = ebb_setting_group("control_group", control_group, &cfg.group, err);

	snprintf(path, sizeof(path), "%s/control.sock", run_dir);
	cfg.path = path;
	return rc < 0 ? rc : ebb_ctl_create(event, &cfg, ret, err);
}

void ebb_service_log_error(const char *message, int rc, const struct ebb_err *err)
{
	ebb_log(LOG_ERR, message, EBB_KS("error", err->text[0] ? err->text : strerror(-rc)));
}

int ebb_service_run(sd_event *event)
{
	int rc;

	sd_event_set_watchdog(event, true);
	rc = sd_event_loop(event);
	sd_notify(0, "STOPPING=1");
	ebb_log(LOG_NOTICE, "stop", EBB_KI("status", rc));
	return rc;
}
