// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oltp-load: an open-loop load generator for RESP servers (see the manual page).
 * Exit status: 0, 1 (could not run, or --verify found what must not be), 64 (usage).
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "options.h"

const char *argp_program_version = "oltp-load 1 (Ebb)";

static volatile sig_atomic_t must_stop;

static void on_signal(int number)
{
	(void)number;
	must_stop = 1;
}

int main(int argc, char **argv)
{
	const struct sigaction stop = { .sa_handler = on_signal };
	static struct load_options options;
	int rc;

	load_options_init(&options);
	argp_parse(&load_argp, argc, argv, 0, NULL, &options);
	options.config.out = stdout;
	options.config.must_stop = &must_stop;
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	/* A reader of the lines that has gone is seen at the next write. */
	signal(SIGPIPE, SIG_IGN);
	rc = load_run(&options.config);
	if (rc == -EBADMSG)
		fputs("oltp-load: --verify: the answers or counters are wrong\n", stderr);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
