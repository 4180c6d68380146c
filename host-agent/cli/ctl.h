/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declarations that the commands of ebbctl share. */
#ifndef EBB_CLI_CTL_H
#define EBB_CLI_CTL_H

#include <argp.h>
#include <stdbool.h>
#include "util/client.h"

/* Exit codes of ebbctl. */
enum { EXIT_DONE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_UNREACHABLE = 3 };

struct ctl {
	struct client client;
	const char *server;		/* whom the client talks to, for messages */
	bool has_socket;		/* --socket names it */
	bool is_json;
};

/* A command: gets its own arguments, returns an exit code. */
struct ctl_command {
	const char *name;
	const char *args;		/* for the list of commands */
	const char *help;
	int (*run)(struct ctl *ctl, int argc, char **argv);
};

extern const struct ctl_command ctl_commands[]; /* ends with a NULL name */

int cmd_host(struct ctl *ctl, int argc, char **argv);
int cmd_vms(struct ctl *ctl, int argc, char **argv);
int cmd_top(struct ctl *ctl, int argc, char **argv);
int cmd_set(struct ctl *ctl, int argc, char **argv);
int cmd_metrics(struct ctl *ctl, int argc, char **argv);
int cmd_policy(struct ctl *ctl, int argc, char **argv);
int cmd_quorum(struct ctl *ctl, int argc, char **argv);
int cmd_explain(struct ctl *ctl, int argc, char **argv);
int cmd_histogram(struct ctl *ctl, int argc, char **argv);
int cmd_history(struct ctl *ctl, int argc, char **argv);
int cmd_ledger(struct ctl *ctl, int argc, char **argv);
int cmd_simulate(struct ctl *ctl, int argc, char **argv);
int cmd_relocate(struct ctl *ctl, int argc, char **argv);
int cmd_volumes(struct ctl *ctl, int argc, char **argv);
int cmd_place(struct ctl *ctl, int argc, char **argv);
int cmd_version(struct ctl *ctl, int argc, char **argv);

/*
 * Parse the arguments of a command.  --json and --socket are understood besides its own options;
 * exits with EXIT_USAGE when something is wrong.  min and max: number of plain arguments, which
 * remain in argv[0..]; returns their number.
 */
int ctl_parse(struct ctl *ctl, int argc, char **argv, const struct argp_option *options,
	      error_t (*parser)(int key, char *arg, struct argp_state *state), void *input,
	      const char *args_doc, int min, int max);

/*
 * Ask the server (the reference of the request is taken).  Returns the answer if it is good, else
 * prints why and sets *ret_exit.
 */
json_t *ctl_ask(struct ctl *ctl, json_t *request, int *ret_exit);

/*
 * The same; prints the answer as JSON if that is wanted, otherwise with print.  Returns the exit
 * code of the command.
 */
int ctl_show(struct ctl *ctl, json_t *request, void (*print)(const json_t *answer, void *ctx),
	     void *ctx);

/* Print an answer as one line of JSON. */
void ctl_print_json(const json_t *answer);

/* Members of answers; what is missing reads as "", 0 or false. */
const char *ctl_str(const json_t *o, const char *key);
json_int_t ctl_int(const json_t *o, const char *key);
double ctl_num(const json_t *o, const char *key);
bool ctl_bool(const json_t *o, const char *key);
/* The violations, and the VMs that should move: lines, or nothing. */
void ctl_print_pressure(const json_t *answer);

/* A number of bytes, in MiB. */
json_int_t ctl_mib(const json_t *o, const char *key);

#endif
