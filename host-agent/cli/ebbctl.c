/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl: options that all commands share, and dispatch. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/ctl.h"
#include "util/fs.h"
#include "util/version.h"

#define DEFAULT_SOCKET	"/run/ebb/control.sock"

const struct ctl_command ctl_commands[] = {
	{ "host", "", "topology, capacity, memory, owners of cores", cmd_host },
	{ "vms", "[VM]", "what each VM has, may have and shall have", cmd_vms },
	{ "top", "[OPTION...]", "the same, live, with throughput", cmd_top },
	{ "set", "VM KEY=VALUE...", "change class, weight, max.NODE, mem.*, ...", cmd_set },
	{ "policy", "[NAME]", "show or change how CPUs and memory are shared", cmd_policy },
	{ "quorum", "[yes|no]", "show or say whether the cluster has a majority", cmd_quorum },
	{ "explain", "VM", "what a VM waits for, and what comes next", cmd_explain },
	{ "histogram", "VM", "what its guest says its memory is worth", cmd_histogram },
	{ "metrics", "", "pressure on the host as OpenMetrics text", cmd_metrics },
	{ "history", "[VM] [OPTION...]", "decisions with reasons", cmd_history },
	{ "ledger", "[VM] [OPTION...]", "what was promised, wanted and got", cmd_ledger },
	{ "simulate", "[OPTION...]", "policies tried on VMs in virtual time", cmd_simulate },
	{ "relocate", "DB [OPTION...]", "move a database to another node", cmd_relocate },
	{ "volumes", "[VERB ...]", "volumes of ebb-volumed, promises, meters",
	  cmd_volumes },
	{ "place", "[VM] [OPTION...]", "where VMs of a cluster should be, and why", cmd_place },
	{ "version", "", "versions of ebbctl and ebbd", cmd_version },
	{ NULL, NULL, NULL, NULL },
};

const char *argp_program_version = "ebbctl " EBB_VERSION;

static const struct argp_option common_options[] = {
	{ "json", 'j', NULL, 0, "Print JSON instead of tables", 1 },
	{ "socket", 's', "PATH", 0, "Control socket of ebbd (default: $EBB_SOCKET, else "
	  DEFAULT_SOCKET ")", 1 },
	{ 0 },
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct ctl *ctl = state->input;

	switch (key) {
	case 'j':
		ctl->is_json = true;
		return 0;
	case 's':
		ctl->client.path = arg;
		ctl->has_socket = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp common_argp = { .options = common_options, .parser = parse_common };

/* ---- arguments of a command ---- */

struct command_args {
	struct ctl *ctl;
	void *input;
	error_t (*parser)(int key, char *arg, struct argp_state *state);
	char **argv;
	int num, min, max;
};

static error_t parse_command(int key, char *arg, struct argp_state *state)
{
	struct command_args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = a->ctl;
		return 0;
	case ARGP_KEY_ARG:
		if (a->num == a->max)
			argp_error(state, "one argument too many: %s", arg);
		a->argv[a->num++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (a->num < a->min)
			argp_error(state, "an argument is missing");
		return 0;
	default:
		if (!a->parser)
			return ARGP_ERR_UNKNOWN;
		state->hook = a->input;
		return a->parser(key, arg, state);
	}
}

int ctl_parse(struct ctl *ctl, int argc, char **argv, const struct argp_option *options,
	      error_t (*parser)(int key, char *arg, struct argp_state *state), void *input,
	      const char *args_doc, int min, int max)
{
	static const struct argp_child children[] = { { &common_argp, 0, NULL, 0 }, { 0 } };
	const struct argp argp = {
		.options = options,
		.parser = parse_command,
		.args_doc = args_doc,
		.children = children,
	};
	struct command_args a = {
		.ctl = ctl, .input = input, .parser = parser, .min = min, .max = max,
		.argv = calloc(argc + 1, sizeof(char *)),
	};
	char name[64];

	if (!a.argv)
		exit(EXIT_REFUSED);
	snprintf(name, sizeof(name), "ebbctl %s", argv[0]);
	argv[0] = name;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	for (int i = 0; i < a.num; i++)
		argv[i] = a.argv[i];
	free(a.argv);
	return a.num;
}

/* ---- asking ---- */

static void explain_unreachable(const struct ctl *ctl, int error)
{
	const char *path = ctl->client.path;

	const bool is_absent = error == ENOENT || error == ECONNREFUSED;
	char named[120];
	const char *hint = named;

	snprintf(named, sizeof(named), is_absent ?
		 "start it (systemctl start %s), or name its socket with --socket" :
		 "name the control socket of an %s with --socket", ctl->server);
	if (error == EACCES)
		hint = "become root, or a member of its control_group";
	else if (error == ETIMEDOUT)
		hint = "it runs but does not answer; see its log";
	else if (error == ECONNRESET || error == EPIPE)
		hint = "it has ended; see its log";
	fprintf(stderr, "ebbctl: %s can not be reached at %s: %s\n  %s\n", ctl->server, path,
		error == EPROTO ? "the answer is no JSON" : strerror(error), hint);
}

json_t *ctl_ask(struct ctl *ctl, json_t *request, int *ret_exit)
{
	int error = 0;
	json_t *answer = client_ask(&ctl->client, request, &error);
	const json_t *e;

	if (!answer) {
		explain_unreachable(ctl, error);
		*ret_exit = EXIT_UNREACHABLE;
		return NULL;
	}
	if (ctl_bool(answer, "ok"))
		return answer;
	e = json_object_get(answer, "error");
	if (ctl->is_json)
		ctl_print_json(answer);
	fprintf(stderr, "ebbctl: %s\n", ctl_str(e, "message"));
	if (ctl_str(e, "hint")[0])
		fprintf(stderr, "  %s\n", ctl_str(e, "hint"));
	json_decref(answer);
	*ret_exit = EXIT_REFUSED;
	return NULL;
}

int ctl_show(struct ctl *ctl, json_t *request, void (*print)(const json_t *answer, void *ctx),
	     void *ctx)
{
	int rc = EXIT_DONE;
	json_t *answer = ctl_ask(ctl, request, &rc);

	if (answer && ctl->is_json)
		ctl_print_json(answer);
	else if (answer)
		print(answer, ctx);
	json_decref(answer);
	return rc;
}

void ctl_print_json(const json_t *answer)
{
	json_dumpf(answer, stdout, JSON_COMPACT | JSON_REAL_PRECISION(16));
	putchar('\n');
	fflush(stdout);
}

const char *ctl_str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

json_int_t ctl_int(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

json_int_t ctl_mib(const json_t *o, const char *key)
{
	return ctl_int(o, key) >> 20;
}

double ctl_num(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

bool ctl_bool(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

/* ---- main ---- */

struct main_args {
	struct ctl *ctl;
	int command_at;			/* index of the command in argv */
};

static error_t parse_main(int key, char *arg, struct argp_state *state)
{
	struct main_args *m = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = m->ctl;
		return 0;
	case ARGP_KEY_ARG:
		/* The command and all after it are its own. */
		(void)arg;
		m->command_at = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "a command is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static char *help_filter(int key, const char *text, void *input)
{
	char *out = NULL;
	size_t size;
	FILE *f;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	f = open_memstream(&out, &size);
	if (!f)
		return NULL;
	fputs("Commands, each with a --help of its own:\n", f);
	for (const struct ctl_command *c = ctl_commands; c->name; c++)
		fprintf(f, "  %-10s%-16s %s\n", c->name, c->args, c->help);
	fputs("\nExit status: 0 done, 1 refused or failed, 2 wrong usage, 3 not reachable.\n",
	      f);
	fclose(f);
	return out;
}

/*
 * rc, or EXIT_REFUSED with a message if something that was printed is lost, as on a full disk.
 */
static int check_output(int rc)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return rc;
	fprintf(stderr, "ebbctl: the output can not be written: %s\n", strerror(errno));
	return EXIT_REFUSED;
}

int main(int argc, char **argv)
{
	static const struct argp_child children[] = { { &common_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = {
		.parser = parse_main, .args_doc = "COMMAND [ARGUMENT...]", .children = children,
		.doc = "Shows and steers what ebbd, the host agent of Ebb, does.\v ",
		.help_filter = help_filter,
	};
	const char *env = getenv("EBB_SOCKET");
	struct ctl ctl = {
		.client = { .path = env && *env ? env : DEFAULT_SOCKET, .fd = -1 },
		.server = "ebbd",
	};
	struct main_args m = { .ctl = &ctl };
	const struct ctl_command *c = ctl_commands;
	int rc;

	ebb_fs_fill_std();
	/* A reader that has gone (`ebbctl top | head`) ends us quietly. */
	signal(SIGPIPE, SIG_DFL);
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &m);
	while (c->name && strcmp(c->name, argv[m.command_at]) != 0)
		c++;
	if (!c->name) {
		fprintf(stderr, "ebbctl: there is no command \"%s\"\n  ebbctl --help lists them\n",
			argv[m.command_at]);
		return EXIT_USAGE;
	}
	rc = check_output(c->run(&ctl, argc - m.command_at, argv + m.command_at));
	client_close(&ctl.client);
	return rc;
}
