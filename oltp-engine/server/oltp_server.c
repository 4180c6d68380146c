// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oltp-server: the engine in a VM under Ebb. One worker per startup CPU, more as the host offers
 * CPUs, fewer as it demands them back. Ends on SIGTERM, after --seconds, or on "stop" (control.h),
 * and then prints one line "oltp-result {...}".
 * Exit status: 0, 1 (could not run, or something was lost), 64 (usage).
 */
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "source_ebb.h"

const char *argp_program_version = "oltp-server 1 (Ebb)";

struct arguments {
	struct bench_options bench;
	struct ebb_options ebb;
	const char *control_path;
	uint32_t max_cpus;
	bool no_ht;
};

enum option_key {
	OPT_MAX_CPUS = 'm',
	OPT_NO_HT = 0x200,
	OPT_CONTROL,
	OPT_APP_NAME,
	OPT_DEVICE,
	OPT_MONITOR,
	OPT_NO_VERIFY,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "CPUs:", 3 },
	{ "max-cpus", OPT_MAX_CPUS, "N", 0, "hold at most N, startup CPUs included (no bound)", 3 },
	{ "no-ht", OPT_NO_HT, NULL, 0, "take no hardware thread whose sibling is in use", 3 },
	{ NULL, 0, NULL, 0, "Server:", 4 },
	{ "control", OPT_CONTROL, "PATH", 0, "unix socket that takes 'stop'; - is stdin", 4 },
	{ "app-name", OPT_APP_NAME, "NAME", 0, "name shown to the monitor (oltp-server-PID)", 4 },
	{ "device", OPT_DEVICE, "PATH", 0, "Ebb device ($EBB_DEVICE or /dev/ebb)", 4 },
	{ "monitor", OPT_MONITOR, "PATH", 0,
	  "monitor's socket ($EBB_MONITOR or /run/ebb/monitor.sock)", 4 },
	{ "no-verify", OPT_NO_VERIFY, NULL, 0, "do not verify the table at the end", 4 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->bench;
		break;
	case OPT_MAX_CPUS:
		a->max_cpus = (uint32_t)bench_parse_number(state, "max-cpus", arg, 1,
							   OLTP_WORKERS_MAX);
		break;
	case OPT_NO_HT:
		a->no_ht = true;
		break;
	case OPT_CONTROL:
		a->control_path = arg;
		break;
	case OPT_APP_NAME:
		a->ebb.app_name = arg;
		break;
	case OPT_DEVICE:
		a->ebb.device = arg;
		break;
	case OPT_MONITOR:
		a->ebb.monitor_socket = arg;
		break;
	case OPT_NO_VERIFY:
		a->bench.verify = false;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int open_ebb(const struct ebb_options *options, unsigned int flags, struct ebb **ret_ebb)
{
	struct ebb_options with_flags = *options;
	int rc;

	with_flags.flags = flags;
	rc = ebb_open(&with_flags, ret_ebb);
	if (!rc)
		return 0;
	fprintf(stderr, "oltp-server: opening the Ebb device%s%s: %s%s\n",
		options->device ? " " : "", options->device ?: "", strerror(-rc),
		rc == -ENOENT ? " (is ebb.ko loaded, and has the VM a virtio-ebb device?)" : "");
	return rc;
}

static void say_gone(void *ctx, int rc)
{
	(void)ctx;
	fprintf(stderr, "oltp-server: the Ebb device: %s; carrying on with the CPUs there are\n",
		strerror(-rc));
}

/* Everything from the moment on that the table is loaded. */
static bool serve(const struct arguments *a, struct session *session)
{
	struct source_ebb_config config = { .no_ht = a->no_ht, .on_gone = say_gone,
					    .interval_ms = a->bench.interval_ms };
	struct control *control = NULL;
	bool is_good = false;
	void *source = NULL;
	int rc;

	rc = open_ebb(&a->ebb, 0, &config.ebb);
	if (rc)
		goto out;
	rc = source_ebb_create(&config, &source);
	if (rc) {
		fprintf(stderr, "oltp-server: %s\n", strerror(-rc));
		goto out;
	}
	if (a->control_path)
		rc = control_open(a->control_path, session, &control);
	if (rc) {
		fprintf(stderr, "oltp-server: control channel %s: %s\n", a->control_path,
			strerror(-rc));
		goto out;
	}
	session_set_source(session, &source_ebb_ops, source);
	rc = session_run(session);
	is_good = session_finish(session, stdout, "oltp-result ") && !rc;
out:
	control_close(control);
	session_close(session);
	source_ebb_destroy(source);
	ebb_close(config.ebb);
	return is_good;
}

int main(int argc, char **argv)
{
	static const struct argp_child children[] = { { &bench_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = children,
		.doc = "Runs transactions on Ebb's OLTP engine in a VM whose CPUs come and go.",
	};
	static struct arguments a;
	struct session_config config;
	struct session *session;
	struct ebb *ebb;

	a.bench = bench_options_default;
	a.bench.verify = true;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	/* Before the table is loaded, which may take long. */
	if (open_ebb(&a.ebb, EBB_OPEN_NO_MONITOR, &ebb))
		return EXIT_FAILURE;
	ebb_close(ebb);
	config = (struct session_config){
		.options = a.bench,
		.max_cpus = a.max_cpus,
	};
	if (session_open(&config, &session))
		return EXIT_FAILURE;
	return serve(&a, session) ? EXIT_SUCCESS : EXIT_FAILURE;
}
