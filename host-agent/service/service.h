/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The start of a daemon, shared by ebbd and ebb-volumed: the options that both have, folders, the
 * lock of run_dir, signals and the control socket.  The configurations of the two are not known
 * here.
 */
#ifndef EBB_SERVICE_SERVICE_H
#define EBB_SERVICE_SERVICE_H

#include <argp.h>
#include <stdint.h>
#include <systemd/sd-event.h>
#include "service/ctl.h"
#include "service/settings.h"
#include "util/err.h"

/* Exit status of a wrong command line. */
#define EBB_SERVICE_EXIT_USAGE	2

/* Rows of a table of options; CONFIG is the default path of the configuration, a literal. */
#define EBB_SERVICE_OPTIONS(CONFIG) \
	{ "config", 'c', "FILE", 0, "Read FILE instead of " CONFIG, 0 }, \
	{ "option", 'o', "KEY=VALUE", 0, "Set a key of the configuration; wins over the file", 0 }

struct ebb_service_options {
	const char *config_path;	/* NULL: the default one, if it is there */
	char **settings;		/* of -o, in order; the caller frees the array */
	size_t num_settings;
};

/* Takes one of the options above.  ARGP_ERR_UNKNOWN: it is another one; ENOMEM. */
error_t ebb_service_parse(int key, char *arg, struct ebb_service_options *o);

/*
 * Parses the command line, as argp_parse() does.  To be called first in main(): before that, it
 * opens what is closed of standard input, output and error.
 */
void ebb_service_begin(const struct argp *argp, int argc, char **argv, void *input);

/* Creates the folder that a key of the configuration names, with those above it. */
int ebb_service_folder(const char *key, const char *path, mode_t mode, struct ebb_err *err);

/*
 * Opens and locks a file, which is created where it is missing.  The lock ends with the process,
 * and with those that inherit the descriptor, however they end.  *ret_fd is -1 where the file can
 * not be opened; otherwise the caller closes it, also after -EBUSY, which sets no text: another
 * process still has the lock after wait_usec.
 */
int ebb_service_lock(const char *path, uint64_t wait_usec, int *ret_fd, struct ebb_err *err);

/*
 * Blocks SIGTERM and SIGINT and watches them in the event loop; NULL as the handler ends the loop.
 * SIGPIPE and SIGHUP are ignored.  To be called before there are threads, which inherit that.
 */
int ebb_service_watch_signals(sd_event *event, sd_event_signal_handler_t handler, void *ctx);

/*
 * The control socket: run_dir/control.sock, for members of the group that the configuration names
 * ("" for none).  Path and group of cfg are filled here.
 */
int ebb_service_ctl(sd_event *event, const char *run_dir, const char *control_group,
		    struct ebb_ctl_config cfg, struct ebb_ctl **ret, struct ebb_err *err);

/* Says on the log why the service does not start: the text of err, or that of -errno. */
void ebb_service_log_error(const char *message, int rc, const struct ebb_err *err);

/*
 * Runs the loop, with the watchdog that the service manager may want, and tells it of the end.
 * Returns what the loop does.
 */
int ebb_service_run(sd_event *event);

#endif
