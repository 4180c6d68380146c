// SPDX-License-Identifier: GPL-2.0-or-later
/* See limits.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "limits.h"

int limits_check(const struct bench_options *options)
{
	const uint64_t machine_mib = ((uint64_t)sysconf(_SC_PHYS_PAGES) *
				      (uint64_t)sysconf(_SC_PAGESIZE)) >> 20;
	double most_mib = (double)options->memory_mib;

	for (uint32_t i = 0; i < options->mem_limits.n; i++)
		most_mib = fmax(most_mib, options->mem_limits.steps[i].value);
	if (most_mib <= (double)machine_mib)
		return 0;
	fprintf(stderr, "oltp: --memory-mib, --mem-schedule: %.0f MiB are more than the %" PRIu64
		" MiB of this machine\n", most_mib, machine_mib);
	return -ENOMEM;
}

int limits_open(struct limits *limits, const struct bench_options *options)
{
	*limits = (struct limits){ .options = options };
	/* All on node 0: other nodes have no choice of memory without a host. */
	return oltp_blocks_native_create(options->memory_mib << 20, 0, &limits->blocks);
}

void limits_close(struct limits *limits)
{
	oltp_blocks_native_destroy(limits->blocks);
	limits->blocks = NULL;
}

uint64_t limits_follow(struct limits *limits, uint64_t start_ns, uint64_t now_ns,
		       void (*on_step)(void *ctx, uint64_t limit_bytes), void *ctx)
{
	const struct bench_options *o = limits->options;

	if (!limits->blocks)
		return UINT64_MAX;
	for (; limits->next < o->mem_limits.n; limits->next++) {
		const struct bench_step *step = &o->mem_limits.steps[limits->next];
		uint64_t at_ns = start_ns + (uint64_t)(step->t_s * 1e9);
		uint64_t limit_bytes = (uint64_t)(step->value * 0x1p20);

		if (at_ns > now_ns)
			return at_ns;
		on_step(ctx, limit_bytes);
		oltp_blocks_native_set_limit(limits->blocks, limit_bytes,
					     now_ns + o->mem_deadline_ms * 1000000ull);
	}
	return UINT64_MAX;
}
