// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oltp-check: reads histories and says whether they are serializable.
 * Exit status: 0, 1 (anomalies), 64 (usage), 65 (no history), 66 (cannot be read), 70 (out of
 * memory or too large), 74 (standard output).
 */
#include <argp.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "report.h"
#include "oltp-engine/src/base/clock.h"

#define SHOWN_DEFAULT	5u
#define QUIET_NS	2000000000ull
#define PERIOD_NS	500000000ull
#define READ_BYTES	(1u << 20)

const char *argp_program_version = "oltp-check 1 (Ebb)";

struct arguments {
	char **files;
	uint32_t n_files;
	enum check_model model;
	uint32_t shown;
	bool json, quiet;
};

static const struct argp_option options[] = {
	{ "model", 'm', "MODEL", 0,
	  "serializable, strong-session or strict-serializable (what the engine promises; default)",
	  0 },
	{ "show", 'n', "N", 0, "show so many anomalies of each kind (5); all are counted", 0 },
	{ "json", 'j', NULL, 0, "print one JSON object instead of lines", 0 },
	{ "quiet", 'q', NULL, 0, "no progress", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	char *end;

	switch (key) {
	case 'm':
		if (check_model_parse(arg, &a->model))
			argp_error(state, "--model: '%s' is none", arg);
		break;
	case 'n':
		a->shown = (uint32_t)strtoul(arg, &end, 10);
		if (*arg < '0' || *arg > '9' || *end || strlen(arg) > 9)
			argp_error(state, "--show: '%s' is no number up to 999999999", arg);
		break;
	case 'j':
		a->json = true;
		break;
	case 'q':
		a->quiet = true;
		break;
	case ARGP_KEY_ARGS:
		a->files = state->argv + state->next;
		a->n_files = (uint32_t)(state->argc - state->next);
		break;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no FILE given");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

struct progress {
	uint64_t start_ns, told_ns;
	bool is_terminal;
	const char *file;
};

/* On a terminal one line that changes, else a line now and then. Nothing in the first 2 s. */
static void tell(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
	struct progress *p = ctx;
	uint64_t now = clock_now_ns();

	if (now - p->start_ns < QUIET_NS || now - p->told_ns < PERIOD_NS * (p->is_terminal ? 1 : 4))
		return;
	p->told_ns = now;
	fprintf(stderr, "%soltp-check: %5.1f s, %s: %" PRIu64 "%%%s",
		p->is_terminal ? "\r\033[K" : "", (double)(now - p->start_ns) / 1e9, phase,
		total ? (uint64_t)((double)done / (double)total * 100.0) : 100,
		p->is_terminal ? "" : "\n");
}

static void tell_parsing(void *ctx, uint64_t done, uint64_t total)
{
	const struct progress *p = ctx;

	tell(ctx, p->file, done, total);
}

typedef VEC(char) text_vec;

static int read_all(int fd, text_vec *text)
{
	for (;;) {
		ssize_t n;

		if (text->room - text->n < READ_BYTES) {
			size_t room = text->room < READ_BYTES ? READ_BYTES : text->room;
			char *grown = vec_grow(text->at, &room, 1);

			if (!grown)
				return -ENOMEM;
			text->at = grown;
			text->room = room;
		}
		n = read(fd, text->at + text->n, text->room - text->n);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		if (n > 0)
			text->n += (size_t)n;
	}
}

/* All of a file or pipe. Error: -errno. */
static int read_file(const char *path, text_vec *text)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	rc = read_all(fd, text);
	if (!is_stdin)
		close(fd);
	return rc;
}

static int load(const struct arguments *a, struct progress *progress, struct history *history)
{
	for (uint32_t i = 0; i < a->n_files; i++) {
		struct history_error error;
		text_vec text = { 0 };
		int rc = read_file(a->files[i], &text);

		if (rc) {
			vec_free(&text);
			fprintf(stderr, "oltp-check: %s: %s\n", a->files[i], strerror(-rc));
			return rc == -ENOMEM ? EX_SOFTWARE : EX_NOINPUT;
		}
		progress->file = a->files[i];
		rc = history_parse(history, text.at, text.n, a->quiet ? NULL : tell_parsing,
				   progress, &error);
		vec_free(&text);
		if (rc == -EBADMSG) {
			fprintf(stderr, "oltp-check: %s, line %" PRIu64 ": %s\n", a->files[i],
				error.line, error.what);
			return EX_DATAERR;
		}
		if (rc) {
			fprintf(stderr, "oltp-check: %s: %s\n", a->files[i], strerror(-rc));
			return EX_SOFTWARE;
		}
	}
	return 0;
}

static int check(const struct arguments *a, struct progress *progress,
		 const struct history *history)
{
	const struct check_options check_options = {
		.model = a->model,
		.anomalies_max = a->shown,
		.progress = a->quiet ? NULL : tell,
		.ctx = progress,
	};
	struct check_result result = { 0 };
	struct report report = { history, &result, a->model, a->files, 0 };
	int rc = check_history(history, &check_options, &result), status;

	if (progress->is_terminal && progress->told_ns)
		fputc('\n', stderr);
	report.seconds = (double)(clock_now_ns() - progress->start_ns) / 1e9;
	if (rc == -EBADMSG) {
		fprintf(stderr, "oltp-check: %s %" PRIu64 ": the value %" PRIu64 " is written "
			"twice, so it does not tell who wrote it\n",
			result.twice_is_list ? "list" : "row", result.twice_key,
			result.twice_value);
		status = EX_DATAERR;
	} else if (rc) {
		fprintf(stderr, "oltp-check: %s\n", strerror(-rc));
		status = EX_SOFTWARE;
	} else {
		(a->json ? report_json : report_text)(&report, stdout);
		status = result.n_anomalies ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	check_result_finish(&result);
	return status;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "FILE...",
		.doc = "Looks for anomalies in histories of transactions: is there an order, one "
		       "after the other, that explains what they saw? Several files are one "
		       "history; - is standard input.\v"
		       "Exit status: 0 none found, 1 anomalies, 64 usage, 65 a file is no history, "
		       "66 a file cannot be read, 70 out of memory or too large, 74 the result "
		       "cannot be written.",
	};
	static struct arguments a = { .model = CHECK_STRICT_SERIALIZABLE, .shown = SHOWN_DEFAULT };
	struct history history = { 0 };
	struct progress progress = { 0 };
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	progress.start_ns = clock_now_ns();
	progress.is_terminal = isatty(STDERR_FILENO);
	status = load(&a, &progress, &history);
	if (!status)
		status = check(&a, &progress, &history);
	history_finish(&history);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "oltp-check: standard output: %s\n", strerror(errno));
		return EX_IOERR;
	}
	return status;
}
