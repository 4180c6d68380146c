/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl relocate: a database of oltp-server moves to another node while it is in use. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/ctl.h"
#include "cli/databases.h"
#include "cli/resp.h"

/* Asking the other node takes some seconds at most. */
#define ASK_MS		20000
#define POLL_MS		200
/* While it moves a server may be too busy to be asked, or be started again. */
#define LOST_MS		15000
#define MAX_WORDS	16
#define MESSAGE_SIZE	400

struct relocate {
	const char *to, *clients, *mode, *per_second, *limit, *speed;
	const char *databases, *password_file;
	bool shows_status, cancels, waits;
	bool is_json;
	struct database db, node;
	char password[512];
};

enum {
	OPT_CLIENTS = 256, OPT_MODE, OPT_LIMIT, OPT_SPEED, OPT_STATUS, OPT_CANCEL, OPT_WAIT,
	OPT_DATABASES, OPT_PASSWORD,
};

static const struct argp_option options[] = {
	{ "to", 't', "NODE", 0, "Move the database there; with --cancel, where it was going", 0 },
	{ "clients", OPT_CLIENTS, "ADDRESS", 0,
	  "What clients are told (default: what the node itself says)", 0 },
	{ "mode", OPT_MODE, "MODE", 0, "How fast clients go: adaptive (default), fixed with a "
	  "number per second behind it, or fast, all at once", 0 },
	{ "limit-s", OPT_LIMIT, "SECONDS", 0, "Close clients that are left then (default: 120)",
	  0 },
	{ "speed", OPT_SPEED, "PERCENT", 0, "Of the clients per second that adaptive moves "
	  "(default: 100)", 0 },
	{ "wait", OPT_WAIT, NULL, 0, "Come back when it has ended", 0 },
	{ "status", OPT_STATUS, NULL, 0, "Show how it goes", 0 },
	{ "cancel", OPT_CANCEL, NULL, 0, "Let all go back", 0 },
	{ "databases", OPT_DATABASES, "FILE", 0, "Names of databases (default: $EBB_DATABASES, "
	  "else " DATABASES_DEFAULT ")", 0 },
	{ "password-file", OPT_PASSWORD, "FILE", 0,
	  "The server's password is the first line of FILE", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct relocate *r = state->hook;
	const char **const texts[] = {
		[OPT_CLIENTS - OPT_CLIENTS] = &r->clients, [OPT_MODE - OPT_CLIENTS] = &r->mode,
		[OPT_LIMIT - OPT_CLIENTS] = &r->limit, [OPT_SPEED - OPT_CLIENTS] = &r->speed,
	};

	switch (key) {
	case 't':
		r->to = arg;
		return 0;
	case OPT_CLIENTS:
	case OPT_MODE:
	case OPT_LIMIT:
	case OPT_SPEED:
		*texts[key - OPT_CLIENTS] = arg;
		return 0;
	case OPT_WAIT:
		r->waits = true;
		return 0;
	case OPT_STATUS:
		r->shows_status = true;
		return 0;
	case OPT_CANCEL:
		r->cancels = true;
		return 0;
	case OPT_DATABASES:
		r->databases = arg;
		return 0;
	case OPT_PASSWORD:
		r->password_file = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int fail(int rc, const char *text)
{
	fprintf(stderr, "ebbctl relocate: %s\n", text);
	return rc;
}

/* ---- what was said ---- */

static int check(struct relocate *r, int num)
{
	const bool is_order = r->to || r->cancels;
	const bool is_fixed = r->mode && strncmp(r->mode, "fixed", 5) == 0;

	if (r->shows_status ? is_order : !is_order)
		return fail(EXIT_USAGE, "say one of --to NODE, --cancel and --status");
	if (is_fixed && (r->mode[5] == ':' || r->mode[5] == ' '))
		r->per_second = r->mode + 6;
	if (num > 1 && (!is_fixed || r->mode[5]))
		return fail(EXIT_USAGE, "one argument too many");
	if (is_fixed && !r->per_second)
		return fail(EXIT_USAGE, "--mode fixed needs a number of clients per second");
	if (r->mode && !is_fixed && strcmp(r->mode, "fast") != 0 &&
	    strcmp(r->mode, "adaptive") != 0)
		return fail(EXIT_USAGE, "--mode is fast, fixed N or adaptive");
	return EXIT_DONE;
}

static int read_password(struct relocate *r, char *message)
{
	const char *path = r->password_file ? r->password_file : r->db.password_file;
	FILE *f;

	if (!*path)
		return 0;
	f = fopen(path, "re");
	if (!f || !fgets(r->password, sizeof(r->password), f)) {
		snprintf(message, MESSAGE_SIZE, "%.300s: %s", path,
			 f && !ferror(f) ? "there is no password in it" : strerror(errno));
		if (f)
			fclose(f);
		return -1;
	}
	fclose(f);
	r->password[strcspn(r->password, "\r\n")] = '\0';
	return 0;
}

static int look_up(struct relocate *r, const char *name)
{
	char message[MESSAGE_SIZE];

	if (database_find(r->databases, name, 0, &r->db, message, sizeof(message)) != 0 ||
	    (r->to && database_find(r->databases, r->to, 1, &r->node, message,
				    sizeof(message)) != 0) ||
	    read_password(r, message) != 0)
		return fail(EXIT_REFUSED, message);
	return EXIT_DONE;
}

/* ---- the server ---- */

/* One command on a connection of its own: while clients go no other kind is let in for long. */
static int ask(struct relocate *r, const char *const *words, size_t num, struct resp *ret)
{
	const char *const auth[] = { "AUTH", r->password };
	int rc = resp_connect(ret, r->db.address);

	if (rc == 0 && *r->password)
		rc = resp_ask(ret, auth, 2);
	if (rc == 0)
		rc = resp_ask(ret, words, num);
	return rc;
}

static int say_unreachable(const struct relocate *r, int rc)
{
	fprintf(stderr, "ebbctl relocate: the server at %s can not be reached: %s\n",
		r->db.address, rc == -EPROTO ? "it does not speak the Redis protocol" :
		rc == -EINVAL ? "no such host or address" : strerror(-rc));
	return EXIT_UNREACHABLE;
}

static int ask_status(struct relocate *r, json_t **ret)
{
	static const char *const words[] = { "RELOCATE", "STATUS" };
	struct resp resp;
	int rc = ask(r, words, 2, &resp);

	if (rc == 0) {
		*ret = json_loads(resp.reply, 0, NULL);
		rc = *ret ? 0 : -EPROTO;
	} else if (rc > 0) {
		fail(EXIT_REFUSED, resp.reply);
	}
	resp_close(&resp);
	return rc;
}

static size_t add(const char **words, size_t num, const char *option, const char *value)
{
	if (value && *value) {
		words[num++] = option;
		words[num++] = value;
	}
	return num;
}

static int send_order(struct relocate *r)
{
	const char *words[MAX_WORDS] = { "RELOCATE" };
	const char *clients = r->clients ? r->clients : r->cancels ? "" : r->node.clients;
	struct resp resp;
	size_t num = 1;
	int rc;

	if (r->cancels)
		words[num++] = "CANCEL";
	num = add(words, num, "TO", r->to ? r->node.node : NULL);
	num = add(words, num, "CLIENTS", clients);
	if (r->per_second)
		num = add(words, num, "FIXED", r->per_second);
	else if (r->mode)
		words[num++] = r->mode;
	num = add(words, num, "LIMIT-S", r->limit);
	num = add(words, num, "SPEED", r->speed);
	rc = ask(r, words, num, &resp);
	if (rc > 0)
		rc = fail(EXIT_REFUSED, resp.reply);
	else if (rc < 0)
		rc = say_unreachable(r, rc);
	resp_close(&resp);
	return rc;
}

/* ---- how it goes ---- */

static void print(const json_t *status)
{
	const json_t *units = json_object_get(status, "units");
	const json_t *pauses = json_object_get(status, "pauses");
	const long long here = ctl_int(units, "owned"), there = ctl_int(units, "away");
	const long long others = ctl_int(units, "unknown") + ctl_int(units, "taking") +
				 ctl_int(units, "draining") + ctl_int(units, "giving");

	printf("stage      %s\n", ctl_str(status, "stage"));
	if (ctl_str(status, "node")[0])
		printf("other node %s%s\n", ctl_str(status, "node"),
		       ctl_bool(status, "connected") ? "" : ", not connected");
	printf("clients    %lld here", ctl_int(status, "clients"));
	if (ctl_int(status, "clients_told"))
		printf(", %lld of them told to go to %s", ctl_int(status, "clients_told"),
		       ctl_str(status, "clients_go_to"));
	printf("\nkeys       %lld parts of %lld here, %lld elsewhere\n", here,
	       here + there + others, there);
	if (ctl_int(pauses, "n"))
		printf("pauses     %lld requests waited for keys: 99%% less than %.1f ms, "
		       "at most %.1f ms\n", ctl_int(pauses, "n"),
		       ctl_num(pauses, "p99_us") / 1000, ctl_int(pauses, "max_us") / 1000.0);
	if (ctl_str(status, "error")[0])
		printf("error      %s\n", ctl_str(status, "error"));
}

static int show(const struct relocate *r, const json_t *status)
{
	if (r->is_json)
		ctl_print_json(status);
	else
		print(status);
	return EXIT_DONE;
}

/* Whether an order has come to its end; *ret_rc: what that is. */
static bool has_ended(const struct relocate *r, const json_t *status, int *ret_rc)
{
	const char *stage = ctl_str(status, "stage");
	const bool is_over = strcmp(stage, "over") == 0;
	const bool is_serving = strcmp(stage, "serving") == 0;
	const bool is_good = r->cancels ? is_serving : is_over;

	*ret_rc = is_good ? EXIT_DONE : EXIT_REFUSED;
	return is_over || is_serving || strcmp(stage, "interrupted") == 0;
}

/* Refused by the other node: it is not asked any more, and nothing has begun. */
static bool is_answered(const struct relocate *r, const json_t *status, int *ret_rc)
{
	const char *stage = ctl_str(status, "stage");

	if (strcmp(stage, "asking") == 0)
		return false;
	*ret_rc = EXIT_DONE;
	if (!r->cancels && (strcmp(stage, "serving") == 0 || strcmp(stage, "interrupted") == 0))
		*ret_rc = EXIT_REFUSED;
	return true;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* Asks until it is so; limit_ms: 0: as long as it takes. */
static int follow(struct relocate *r, bool (*is_so)(const struct relocate *r,
						    const json_t *status, int *ret_rc),
		  long limit_ms)
{
	long lost_ms = 0;
	int rc = EXIT_DONE;

	for (long ms = 0; !limit_ms || ms < limit_ms; ms += POLL_MS) {
		json_t *status = NULL;
		int error = ask_status(r, &status);

		if (error > 0)
			return EXIT_REFUSED;
		lost_ms = error ? lost_ms + POLL_MS : 0;
		if (lost_ms >= LOST_MS)
			return say_unreachable(r, error);
		if (!error && is_so(r, status, &rc)) {
			if (rc != EXIT_DONE)
				fail(rc, ctl_str(status, "error"));
			else if (r->waits)
				show(r, status);
			json_decref(status);
			return rc;
		}
		json_decref(status);
		pause_ms(POLL_MS);
	}
	return fail(EXIT_REFUSED, "the other node has not answered yet: see --status");
}

static int show_status(struct relocate *r)
{
	json_t *status = NULL;
	int rc = ask_status(r, &status);

	if (rc != 0)
		return rc > 0 ? EXIT_REFUSED : say_unreachable(r, rc);
	rc = show(r, status);
	json_decref(status);
	return rc;
}

int cmd_relocate(struct ctl *ctl, int argc, char **argv)
{
	const char *env = getenv("EBB_DATABASES");
	struct relocate r = { .databases = env && *env ? env : DATABASES_DEFAULT };
	bool waits;
	int rc, num = ctl_parse(ctl, argc, argv, options, parse, &r,
				"DATABASE --to NODE\nDATABASE --cancel\nDATABASE --status", 1, 2);

	r.is_json = ctl->is_json;
	/* --mode fixed 5 */
	if (num == 2)
		r.per_second = argv[1];
	rc = check(&r, num);
	if (rc == EXIT_DONE)
		rc = look_up(&r, argv[0]);
	if (rc != EXIT_DONE)
		return rc;
	if (r.shows_status)
		return show_status(&r);
	rc = send_order(&r);
	if (rc != EXIT_DONE)
		return rc;
	waits = r.waits;
	r.waits = false;
	rc = follow(&r, is_answered, ASK_MS);
	r.waits = waits;
	return rc == EXIT_DONE && waits ? follow(&r, has_ended, 0) : rc;
}
