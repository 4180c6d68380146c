// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Times to read what the volume server says of its meters, which ebbd does on the loop on which it
 * decides.  "all": an answer with all that the server counts; "brief": the one that ebbd asks for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "backend/volumes/volume-proto.h"
#include "scripts/bench/agent.h"

#define CLASSES		98	/* of "delay-classes" */
#define DELAYS		24	/* of "delays" */
#define VOLUME_BYTES	4096	/* more than the answer has for one */
#define COUNT		123456789012ll

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static char *put_counts(char *at, const char *const *names, size_t num)
{
	for (size_t i = 0; i < num; i++)
		at += sprintf(at, "%s\"%s\":%lld", i ? "," : "", names[i], COUNT);
	return at;
}

static char *put_array(char *at, const char *name, size_t num)
{
	at += sprintf(at, ",\"%s\":[", name);
	for (size_t i = 0; i < num; i++)
		at += sprintf(at, "%s%u", i ? "," : "", 1234567);
	return at + sprintf(at, "]");
}

/* As host-agent/volumed/vctl.c does. */
static char *put_volume(char *at, uint32_t i, bool is_brief)
{
	static const char *const brief[] = {
		"intervals", "violated-intervals", "charged", "early", "missed", "violated",
		"others-early", "others-promised", "slow", "overdue",
	};
	static const char *const rest[] = {
		"reads", "read-bytes", "writes", "written-bytes", "flushes", "discards", "zeroes",
		"errors", "arrived", "arrived-units", "issued", "issued-units", "due-units",
		"busy-us", "waiting-us", "promised-microunits", "waited-ns", "late-units",
		"late-ns", "late-max-ns", "due-requests", "promised",
	};
	static const char *const delay[] = {
		"mean-ns", "p50-ns", "p90-ns", "p99-ns", "p999-ns", "max-ns",
	};
	static const char *const interval[] = {
		"age-us", "promised", "wanted", "got", "violated", "others-early",
		"others-promised", "slow", "overdue", "waiting-us", "busy-us", "late-max-ns",
	};

	at += sprintf(at, "%s{\"name\":\"database-%u\"", i ? "," : "", i);
	if (!is_brief)
		at += sprintf(at, ",\"tenant\":\"tenant-%u\",\"state\":\"served\",\"queued\":16,"
			      "\"in-flight\":16", i);
	at += sprintf(at, ",\"delay\":{");
	at = put_counts(at, delay, sizeof(delay) / sizeof(delay[0]));
	at += sprintf(at, "},\"counters\":{");
	at = put_counts(at, brief, sizeof(brief) / sizeof(brief[0]));
	if (!is_brief) {
		at += sprintf(at, ",");
		at = put_counts(at, rest, sizeof(rest) / sizeof(rest[0]));
		at = put_array(at, "delay-classes", CLASSES);
		at = put_array(at, "delays", DELAYS);
	}
	at += sprintf(at, "},\"interval\":{\"taker\":\"database-0\"%s", is_brief ? "" : ",");
	if (!is_brief)
		at = put_counts(at, interval, sizeof(interval) / sizeof(interval[0]));
	return at + sprintf(at, "}}");
}

static void read_answer(const char *line)
{
	json_t *answer = json_loadb(line, strlen(line), 0, NULL);
	struct ebb_fact_volumes_meters fact;
	struct ebb_volume_reading *volumes;
	char text[EBB_TEXT_SIZE];

	if (!answer || ebb_volume_proto_result(answer, text) < 0 ||
	    ebb_volume_proto_read_meters(answer, &fact, &volumes) < 0)
		bench_fail("an answer of the volume server", EPROTO);
	free(volumes);
	json_decref(answer);
}

void bench_meters(const char *size, uint32_t num_volumes, bool is_brief, unsigned num_values)
{
	char *line = malloc((size_t)num_volumes * VOLUME_BYTES + 256), *at = line;
	double *values = calloc(num_values, sizeof(*values));

	if (!line || !values)
		bench_fail("meters", ENOMEM);
	at += sprintf(at, "{\"ok\":true,\"scheduler\":{\"interval-us\":1000000},\"meters\":[");
	for (uint32_t i = 0; i < num_volumes; i++)
		at = put_volume(at, i, is_brief);
	sprintf(at, "]}");
	for (unsigned i = 0; i < num_values; i++) {
		const double begin = cpu_ms();

		read_answer(line);
		values[i] = cpu_ms() - begin;
	}
	bench_print("meters", size, is_brief ? "brief" : "all", "ms", values, num_values);
	free(values);
	free(line);
}
