// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oltp-history: runs transactions on the engine and records what they were told, for oltp-check.
 * Exit status: 0, 1 (could not run), 64 (usage).
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "record_crash.h"
#include "record_output.h"
#include "oltp-engine/src/base/clock.h"

#define TRANSACTIONS_DEFAULT	10000u
#define QUIET_S			2.0
#define MIB			(1ull << 20)

const char *argp_program_version = "oltp-history 1 (Ebb)";

struct arguments {
	struct record_config record;
	const char *output;
	uint32_t kills;
	bool quiet;
};

enum option_key {
	OPT_CC = 0x100,
	OPT_WHAT,
	OPT_SECONDS,
	OPT_STEADY,
	OPT_LISTS,
	OPT_REGISTERS,
	OPT_WINDOWS,
	OPT_RECORD_BYTES,
	OPT_SEED,
	OPT_MEMORY,
	OPT_MEMORY_LOW,
	OPT_COLD_DIR,
	OPT_KILLS,
	OPT_LOG_DIR,
	OPT_DURABILITY,
};

static const struct argp_option options[] = {
	{ "output", 'o', "FILE", 0, "write the history there (standard output)", 1 },
	{ "transactions", 't', "N", 0, "end after so many committed transactions (10000)", 1 },
	{ "seconds", OPT_SECONDS, "S", 0, "or after so long", 1 },
	{ "cc", OPT_CC, "SCHEME", 0, "concurrency control, as of oltp-bench (no_wait)", 1 },
	{ "workers", 'w', "N", 0, "so many at once, 1 to 64 (4)", 1 },
	{ "steady", OPT_STEADY, NULL, 0, "workers do not come and go meanwhile", 1 },
	{ "quiet", 'q', NULL, 0, "no progress", 1 },
	{ NULL, 0, NULL, 0, "What transactions do:", 2 },
	{ "do", OPT_WHAT, "LIST", 0, "of lists,registers,rows, separated by commas (all)", 2 },
	{ "lists", OPT_LISTS, "N", 0, "in use at once, 1 to 64 (8)", 2 },
	{ "registers", OPT_REGISTERS, "N", 0, "1 to 1024 (32)", 2 },
	{ "windows", OPT_WINDOWS, "N", 0, "of 32 keys of rows, in use at once, 1 to 16 (4)", 2 },
	{ "record-bytes", OPT_RECORD_BYTES, "N", 0, "256 to 65536 (256)", 2 },
	{ "seed", OPT_SEED, "N", 0, "of all that is drawn (1)", 2 },
	{ NULL, 0, NULL, 0, "Memory for records:", 3 },
	{ "memory-mib", OPT_MEMORY, "MIB", 0, "the most memory; needs --cold-dir", 3 },
	{ "memory-low-mib", OPT_MEMORY_LOW, "MIB", 0,
	  "the memory is cut to this again and again (0)", 3 },
	{ "cold-dir", OPT_COLD_DIR, "FOLDER", 0, "records that do not fit go to a file there", 3 },
	{ NULL, 0, NULL, 0, "Crashes:", 4 },
	{ "kills", OPT_KILLS, "N", 0,
	  "so many times kill the process (SIGKILL) after --transactions, and recover", 4 },
	{ "log-dir", OPT_LOG_DIR, "FOLDER", 0,
	  "empty folder for the log; acknowledge what is on disk (durability commit)", 4 },
	{ "durability", OPT_DURABILITY, "MODE", 0,
	  "commit, or async: acknowledge at once, note of which epoch it was", 4 },
	{ 0 },
};

static uint64_t number(struct argp_state *state, const char *name, const char *arg, uint64_t least,
		       uint64_t most)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(arg, &end, 10);
	if (errno || *arg < '0' || *arg > '9' || *end || n < least || n > most)
		argp_error(state, "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64, name,
			   arg, least, most);
	return n;
}

static uint32_t parse_what(struct argp_state *state, const char *arg)
{
	static const char *const names[] = { "lists", "registers", "rows" };
	uint32_t what = 0;

	for (;;) {
		size_t bytes = strcspn(arg, ",");
		uint32_t before = what;

		for (unsigned int i = 0; i < 3; i++) {
			if (strlen(names[i]) == bytes && !memcmp(arg, names[i], bytes))
				what |= 1u << i;
		}
		if (what == before)
			argp_error(state, "--do: '%s' is not lists, registers or rows, once each",
				   arg);
		if (!arg[bytes])
			return what;
		arg += bytes + 1;
	}
}

static void check(struct argp_state *state, struct arguments *a)
{
	struct record_config *record = &a->record;

	if (record->engine.durability && !record->engine.log_dir)
		argp_error(state, "--durability needs --log-dir");
	if (record->engine.log_dir && !record->engine.durability)
		record->engine.durability = OLTP_DURABILITY_COMMIT;
	if (a->kills && (!record->engine.log_dir || !a->output))
		argp_error(state, "--kills needs --log-dir and --output");
	if (a->kills && record->seconds > 0)
		argp_error(state, "--kills and --seconds exclude each other");
	if (record->memory_bytes && !record->engine.cold_dir)
		argp_error(state, "--memory-mib needs --cold-dir");
	if (record->memory_low_bytes > record->memory_bytes)
		argp_error(state, "--memory-low-mib is more than --memory-mib");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	struct record_config *record = &a->record;

	switch (key) {
	case 'o':
		a->output = arg;
		break;
	case 'q':
		a->quiet = true;
		break;
	case 't':
		record->transactions = number(state, "transactions", arg, 1, UINT32_MAX);
		break;
	case 'w':
		record->workers = (uint32_t)number(state, "workers", arg, 1, RECORD_WORKERS);
		break;
	case OPT_CC:
		if (oltp_cc_parse(arg, &record->engine.cc))
			argp_error(state, "--cc: there is no scheme '%s'", arg);
		break;
	case OPT_WHAT:
		record->what = parse_what(state, arg);
		break;
	case OPT_SECONDS:
		record->seconds = (double)number(state, "seconds", arg, 1, 86400);
		break;
	case OPT_STEADY:
		record->is_steady = true;
		break;
	case OPT_LISTS:
		record->lists = (uint32_t)number(state, "lists", arg, 1, RECORD_LISTS);
		break;
	case OPT_REGISTERS:
		record->registers = (uint32_t)number(state, "registers", arg, 1, RECORD_REGISTERS);
		break;
	case OPT_WINDOWS:
		record->windows = (uint32_t)number(state, "windows", arg, 1, RECORD_WINDOWS);
		break;
	case OPT_RECORD_BYTES:
		record->record_bytes = (uint32_t)number(state, "record-bytes", arg, 256, 65536);
		break;
	case OPT_SEED:
		record->seed = number(state, "seed", arg, 0, UINT32_MAX);
		break;
	case OPT_MEMORY:
		record->memory_bytes = number(state, "memory-mib", arg, 2, 1 << 20) * MIB;
		break;
	case OPT_MEMORY_LOW:
		record->memory_low_bytes = number(state, "memory-low-mib", arg, 0, 1 << 20) * MIB;
		break;
	case OPT_COLD_DIR:
		record->engine.cold_dir = arg;
		break;
	case OPT_KILLS:
		a->kills = (uint32_t)number(state, "kills", arg, 1, 1000);
		break;
	case OPT_LOG_DIR:
		record->engine.log_dir = arg;
		break;
	case OPT_DURABILITY:
		if (oltp_durability_parse(arg, &record->engine.durability) ||
		    record->engine.durability == OLTP_DURABILITY_OFF)
			argp_error(state, "--durability: '%s' is not commit or async", arg);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is no option", arg);
		break;
	case ARGP_KEY_END:
		check(state, a);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static double now_s(void)
{
	return (double)clock_now_ns() / 1e9;
}

struct progress {
	double start_s, told_s;
	uint64_t transactions;
	bool is_terminal;
};

static void tell(void *ctx, uint64_t committed)
{
	struct progress *p = ctx;
	double now = now_s();

	if (now - p->start_s < QUIET_S || now - p->told_s < (p->is_terminal ? 0.5 : 2.0))
		return;
	p->told_s = now;
	fprintf(stderr, "%soltp-history: %.1f s, %" PRIu64 " of %" PRIu64 " transactions%s",
		p->is_terminal ? "\r\033[K" : "", now - p->start_s, committed, p->transactions,
		p->is_terminal ? "" : "\n");
}

static void say_failed(const struct arguments *a, int rc, bool is_output)
{
	const char *what = "running transactions";

	if (is_output)
		what = a->output ? a->output : "standard output";
	else if (rc == -ENOTEMPTY)
		what = a->record.engine.log_dir;
	fprintf(stderr, "oltp-history: %s: %s\n", what, strerror(-rc));
}

static int record(const struct arguments *a, int fd)
{
	static struct record_shared shared;
	struct record_output output = { PTHREAD_MUTEX_INITIALIZER, fd };
	const struct record_sink sink = { record_output_write, &output };
	struct progress progress = { now_s(), 0, a->record.transactions, isatty(STDERR_FILENO) };
	struct record_stats stats = { 0 };
	int rc;

	if (a->kills) {
		progress.transactions *= a->kills;
		rc = record_with_kills(&a->record, a->kills, fd, a->quiet ? NULL : tell, &progress);
	} else {
		stats.sink_rc = record_output_begin(fd);
		rc = stats.sink_rc ?: record_run(&a->record, &shared, &sink,
						 a->quiet ? NULL : tell, &progress, &stats);
	}
	if (progress.told_s > 0 && progress.is_terminal)
		fputc('\n', stderr);
	if (rc)
		say_failed(a, rc, stats.sink_rc);
	else if (!a->quiet && !a->kills)
		fprintf(stderr, "oltp-history: %" PRIu64 " committed, %" PRIu64 " aborted (%" PRIu64
			" conflicts, %" PRIu64 " cold), %" PRIu64 " workers, memory shrunk %" PRIu64
			" times\n", stats.committed, stats.aborted, stats.conflicts, stats.colds,
			stats.workers, stats.shrinks);
	return rc;
}

/* Accepts NULL: the option was not given. */
static bool is_folder(const char *option, const char *path)
{
	int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (path && fd < 0)
		fprintf(stderr, "oltp-history: %s: %s: %s\n", option, path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return !path || fd >= 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Runs transactions on Ebb's OLTP engine, while workers come and go, and "
		       "records what they did and were told, for oltp-check.",
	};
	static struct arguments a = {
		.record = { .transactions = TRANSACTIONS_DEFAULT, .seed = 1, .engine.node = -1 },
	};
	int fd = STDOUT_FILENO, rc;

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (!is_folder("--cold-dir", a.record.engine.cold_dir) ||
	    !is_folder("--log-dir", a.record.engine.log_dir))
		return EXIT_FAILURE;
	if (a.output)
		fd = open(a.output, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0) {
		fprintf(stderr, "oltp-history: %s: %s\n", a.output, strerror(errno));
		return EXIT_FAILURE;
	}
	rc = record(&a, fd);
	if (a.output && close(fd) && !rc) {
		rc = -errno;
		say_failed(&a, rc, true);
	}
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
