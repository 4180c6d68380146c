/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of an emulated core that a busy thread gets which is promised half of it, beside others
 * that are busy and have no promise; and the part that it gets without the promise.
 *
 * usage: ebb-bench-reserve SHARE_PERMILLE PERIOD_MS NEIGHBOURS RUNS
 * Prints {"promised":[...],"none":[...]}: thousandths of what the core delivered, of each run.
 * Needs root.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/emulated/emuhost.h"
#include "tests/lib/busy_threads.h"

/* Time that the core has delivered when its division is judged. */
#define ENOUGH_USEC	900000u
/* After a change, until what the scheduler owed from before is paid back. */
#define SETTLE_USEC	300000u
#define MAX_RUNS	100

static const char *const usage = "SHARE_PERMILLE PERIOD_MS NEIGHBOURS RUNS";

static uint32_t number(const char *text, uint32_t least, uint32_t most)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || n < least || n > most) {
		fprintf(stderr, "ebb-bench-reserve: %s: allowed: %u to %u; usage: %s\n", text,
			least, most, usage);
		exit(2);
	}
	return (uint32_t)n;
}

static int series(struct ebb_emuhost *host, const struct busy *b, const char *name, uint16_t keep,
		  uint32_t runs)
{
	const struct ebb_emureserve r = { .keep = keep, .rest = (uint16_t)(1000 - keep) };
	int rc = keep ? ebb_emuhost_reserve(host, b->tids[0], 0, 0, &r) : 0;

	usleep(SETTLE_USEC);
	printf("\"%s\":[", name);
	for (uint32_t i = 0; rc == 0 && i < runs; i++) {
		uint32_t permille;

		rc = busy_measure(b, ENOUGH_USEC, &permille);
		if (rc == 0)
			printf("%s%u", i ? "," : "", permille);
	}
	printf("]");
	return rc;
}

static int run(struct ebb_emuhost *host, const struct busy *b, uint32_t runs)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < b->num; i++)
		rc = ebb_emuhost_place(host, b->pid, b->tids[i], 0, 0);
	printf("{");
	if (rc == 0)
		rc = series(host, b, "none", 0, runs);
	printf(",");
	if (rc == 0)
		rc = series(host, b, "promised", 500, runs);
	printf("}\n");
	if (rc < 0)
		fprintf(stderr, "ebb-bench-reserve: %s\n", strerror(-rc));
	return rc;
}

int main(int argc, char **argv)
{
	struct ebb_emuspec spec = { .sockets = 1, .cores = 1, .threads = 1 };
	struct ebb_err err = { "" };
	struct ebb_emuhost *host = NULL;
	struct busy busy;
	uint32_t neighbours, runs;
	char name[48];
	int rc;

	if (argc != 5) {
		fprintf(stderr, "usage: ebb-bench-reserve %s\n", usage);
		return 2;
	}
	spec.share_permille = number(argv[1], 10, 1000);
	spec.period_ms = number(argv[2], 1, EBB_EMUSPEC_MAX_PERIOD_MS);
	neighbours = number(argv[3], 1, BUSY_MOST - 1);
	runs = number(argv[4], 1, MAX_RUNS);
	snprintf(name, sizeof(name), "ebb-bench-reserve-%d", getpid());
	rc = busy_start(&busy, (int)neighbours + 1);
	if (rc < 0)
		fprintf(stderr, "ebb-bench-reserve: can not start threads: %s\n", strerror(-rc));
	if (rc == 0)
		rc = ebb_emuhost_create(&spec, name, &host, &err);
	if (rc == 0)
		rc = run(host, &busy, runs);
	busy_stop(&busy);
	if (ebb_emuhost_destroy(host, &err) < 0 || err.text[0]) {
		fprintf(stderr, "ebb-bench-reserve: %s\n", err.text);
		return 1;
	}
	return rc < 0 ? 1 : 0;
}
