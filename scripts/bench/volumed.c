// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the scheduler and the meter of the volume server cost: raw values for scripts/bench-volumed,
 * one metric to a line.
 * usage: ebb-bench-volumed VALUES
 *
 * Each tenant has four requests open, which it sends again when they are done; every second tenant
 * is promised something, every fifth has a maximum.  Time is virtual, a disk does not exist.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "volumed/meter.h"
#include "volumed/tags.h"

#define MAX_TENANTS	1000u
#define OPEN		4u		/* requests of a tenant */
#define BATCH		64u		/* decisions between two looks at the clock */
#define BATCHES		4000u		/* for one value */

struct request {
	struct ebb_tags_request tags;
	struct ebb_meter_request meter;
};

struct load {
	const char *name;		/* variant */
	uint64_t percent;		/* promised, of what the disk does */
	enum ebb_tags_policy policy;
};

static const struct load loads[] = {
	{ "half promised", 50, EBB_TAGS_PROPORTIONAL },
	{ "overbooked, proportional", 200, EBB_TAGS_PROPORTIONAL },
	{ "overbooked, penalty", 200, EBB_TAGS_PENALTY },
};

static struct ebb_tags tags;
static struct ebb_meter meter;
static struct ebb_tags_volume volumes[MAX_TENANTS];
static struct ebb_meter_volume meters[MAX_TENANTS];
static struct request requests[MAX_TENANTS * OPEN], *batch[BATCH];
static uint64_t now, gap;
static uint64_t chance = 1;

/* Of this thread, which waits for nothing: others on the machine do not count. */
static uint64_t cpu_nsec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "ebb-bench-volumed: %s\n", strerror(-rc));
		exit(1);
	}
}

static size_t tenant_of(const struct request *r)
{
	return (size_t)(r->tags.volume - volumes);
}

static uint64_t size_of(void)
{
	chance = chance * 6364136223846793005ull + 1442695040888963407ull;
	return 4096u << (chance >> 33) % 6;
}

static void set_up(uint32_t num, const struct load *load)
{
	const struct ebb_tags_config config = {
		.depth = BATCH, .policy = load->policy, .overbook_percent = 100,
	};
	const uint64_t iops = 100000;

	now = 1000000000;
	gap = 1000000000 / iops;
	must(ebb_tags_init(&tags, &config));
	must(ebb_meter_init(&meter, EBB_METER_INTERVAL_NSEC, now));
	for (uint32_t i = 0; i < num; i++) {
		const struct ebb_tags_promise p = {
			.reserve_iops = i % 2 ? iops * load->percent / 50 / num : 0,
			.max_iops = i % 5 ? 0 : iops, .weight = 1 + i % 7, .penalty = i % 3,
		};

		must(ebb_tags_volume_add(&tags, &volumes[i], &p));
		must(ebb_meter_volume_add(&meter, &meters[i], i, p.reserve_iops, 0, now));
		for (uint32_t k = 0; k < OPEN; k++) {
			struct request *r = &requests[i * OPEN + k];

			r->tags.flow = k % 2;
			must(ebb_tags_arrive(&tags, &volumes[i], &r->tags, size_of(), now));
			must(ebb_meter_arrive(&meter, &meters[i], &r->meter, r->tags.bytes, now));
		}
	}
}

/* Nanoseconds of one decision, of a whole request with it, and of the meter for a request. */
struct cost {
	double decision, request, meter;
};

static void one_batch(struct cost *sum)
{
	uint64_t wake, times[5];
	uint32_t num = 0;
	double look;

	times[0] = cpu_nsec();
	for (; num < BATCH; num++, now += gap) {
		struct ebb_tags_request *r = ebb_tags_next(&tags, now, &wake);

		if (!r)
			break;
		batch[num] = (struct request *)((char *)r - offsetof(struct request, tags));
	}
	times[1] = cpu_nsec();
	for (uint32_t i = 0; i < num; i++) {
		ebb_tags_done(&tags, &batch[i]->tags);
		must(ebb_tags_arrive(&tags, batch[i]->tags.volume, &batch[i]->tags, size_of(),
				     now));
	}
	times[2] = cpu_nsec();
	times[3] = cpu_nsec();
	for (uint32_t i = 0; i < num; i++) {
		struct ebb_meter_volume *v = &meters[tenant_of(batch[i])];

		ebb_meter_issue(&meter, v, &batch[i]->meter, now);
		ebb_meter_complete(&meter, v, now);
		must(ebb_meter_arrive(&meter, v, &batch[i]->meter, batch[i]->tags.bytes, now));
	}
	times[4] = cpu_nsec();
	if (!num) {
		/* All wait for their maxima. */
		now = wake;
		return;
	}
	/* What a look at the clock takes is in each difference. */
	look = (double)(times[3] - times[2]);
	sum->decision += ((double)(times[1] - times[0]) - look) / num;
	sum->request += ((double)(times[2] - times[0]) - 2 * look) / num;
	sum->meter += ((double)(times[4] - times[3]) - look) / num;
}

static void print(const char *name, uint32_t num, const char *variant, const double *values,
		  unsigned int num_values)
{
	printf("{\"name\":\"%s\",\"size\":\"%" PRIu32 " tenants\",\"variant\":\"%s\","
	       "\"unit\":\"ns\",\"values\":[", name, num, variant);
	for (unsigned int i = 0; i < num_values; i++)
		printf("%s%.1f", i ? "," : "", values[i]);
	puts("]}");
	fflush(stdout);
}

static void measure(uint32_t num, const struct load *load, unsigned int num_values)
{
	double decision[100], request[100], meter_of[100];

	set_up(num, load);
	for (unsigned int i = 0; i < num_values; i++) {
		struct cost sum = { 0 };

		for (uint32_t k = 0; k < BATCHES; k++)
			one_batch(&sum);
		decision[i] = sum.decision / BATCHES;
		request[i] = sum.request / BATCHES;
		meter_of[i] = sum.meter / BATCHES;
	}
	print("decision", num, load->name, decision, num_values);
	print("request", num, load->name, request, num_values);
	print("meter", num, load->name, meter_of, num_values);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 64, MAX_TENANTS };
	const int num = argc == 2 ? atoi(argv[1]) : 0;

	if (num < 1 || num > 100) {
		fputs("usage: ebb-bench-volumed VALUES (1 to 100)\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t k = 0; k < sizeof(loads) / sizeof(loads[0]); k++)
			measure(sizes[i], &loads[k], (unsigned int)num);
	return 0;
}
