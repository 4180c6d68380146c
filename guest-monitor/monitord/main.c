// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ebb-monitord: command line and signals.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "monitor.h"

#define DEFAULT_DEVICE		"/dev/ebb"
#define DEFAULT_SOCKET		"/run/ebb/monitor.sock"
#define DEFAULT_INTERVAL_MS	250
#define GROUP_FILE		"/etc/group"

#define EXIT_USAGE		2

struct arguments {
	const char *device;
	const char *socket;
	const char *group;
	unsigned int interval_ms;
	bool is_isolating;
};

static const struct argp_option options[] = {
	{ "device", 'd', "PATH", 0, "device to serve (default " DEFAULT_DEVICE ")", 0 },
	{ "socket", 's', "PATH", 0, "where applications connect (default " DEFAULT_SOCKET ")", 0 },
	{ "group", 'g', "GROUP", 0,
	  "group, by name or number, that may connect (default: that of the device)", 0 },
	{ "interval-ms", 'i', "MS", 0,
	  "time between reports to the host, 10 to 10000 (default 250)", 0 },
	{ "isolate", 'I', NULL, 0,
	  "keep threads that do not ask for certain CPUs on those of the startup set", 0 },
	{ 0 },
};

static unsigned int interval_parse(struct argp_state *state, const char *text)
{
	unsigned long ms;
	char *end;

	errno = 0;
	ms = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno ||
	    ms < EBB_MONITOR_INTERVAL_MIN_MS || ms > EBB_MONITOR_INTERVAL_MAX_MS)
		argp_error(state, "interval-ms: \"%s\" is not a number from %u to %u", text,
			   EBB_MONITOR_INTERVAL_MIN_MS, EBB_MONITOR_INTERVAL_MAX_MS);
	return (unsigned int)ms;
}

static error_t option_parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'd':
		arguments->device = arg;
		return 0;
	case 's':
		arguments->socket = arg;
		return 0;
	case 'g':
		arguments->group = arg;
		return 0;
	case 'i':
		arguments->interval_ms = interval_parse(state, arg);
		return 0;
	case 'I':
		arguments->is_isolating = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A process that may open the device may talk to the monitor. */
static int group_choose(const struct arguments *arguments, gid_t *ret)
{
	struct stat st;

	if (arguments->group)
		return ebb_server_group_find(GROUP_FILE, arguments->group, ret);
	*ret = stat(arguments->device, &st) == 0 ? st.st_gid : (gid_t)-1;
	return 0;
}

/* The log is not to go to the device or a socket that got the number of a closed standard error. */
static void std_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = option_parse,
		.doc = "Divides what the host offers to and demands from this VM among its "
		       "applications, keeps their statistics and reports to the host.",
	};
	struct arguments arguments = {
		.device = DEFAULT_DEVICE,
		.socket = DEFAULT_SOCKET,
		.interval_ms = DEFAULT_INTERVAL_MS,
	};
	struct ebb_monitor_config config = {
		.proc_stat = "/proc/stat",
		.proc_meminfo = "/proc/meminfo",
	};
	sigset_t signals;
	int r;

	std_fill();
	/* The reader of our log may end before us; that must not kill the monitor. */
	signal(SIGPIPE, SIG_IGN);
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	r = group_choose(&arguments, &config.gid);
	if (r < 0) {
		ebb_log("group \"%s\": %s: %s", arguments.group, GROUP_FILE,
			r == -ENOENT ? "there is no such group" : strerror(-r));
		return EXIT_USAGE;
	}
	config.device = arguments.device;
	config.socket = arguments.socket;
	config.interval_ms = arguments.interval_ms;
	config.isolate_root = arguments.is_isolating ? "" : NULL;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	config.stop_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (config.stop_fd < 0) {
		ebb_log("cannot watch signals: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	r = ebb_monitor_run(&config, &ebb_dev_kernel_ops);
	close(config.stop_fd);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
