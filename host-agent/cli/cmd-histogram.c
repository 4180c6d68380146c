// SPDX-License-Identifier: GPL-2.0-or-later
/* ebbctl histogram: what a guest says that its memory is worth, drawn. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "cli/ctl.h"

#define BAR_WIDTH	50
#define DECADES		14		/* 0, below 1e1, ... below 1e12, and all above */

/* Row 0 has memory of value 0, row i memory with values below 10^i. */
static int decade_of(json_int_t value)
{
	int i = 1;

	if (value <= 0)
		return 0;
	for (double top = 10; i < DECADES - 1 && (double)value >= top; top *= 10)
		i++;
	return i;
}

static void print_bar(double mib, double most)
{
	int n = most > 0 ? (int)lround(BAR_WIDTH * mib / most) : 0;

	for (int i = 0; i < n; i++)
		putchar('#');
	putchar('\n');
}

static void print_rows(const double *mib)
{
	int first = 0, last = DECADES - 1;
	double most = 0;

	while (first < last && mib[first] <= 0)
		first++;
	while (last > first && mib[last] <= 0)
		last--;
	for (int i = first; i <= last; i++)
		most = fmax(most, mib[i]);
	for (int i = first; i <= last; i++) {
		char label[32] = "nothing";

		if (i)
			snprintf(label, sizeof(label), "below 1e%d", i);
		printf("  %-10s %9.1f  ", label, mib[i]);
		print_bar(mib[i], most);
	}
}

/* Of one guest node. */
static void print_node(const json_t *told, const json_t *node)
{
	json_int_t cutoff = ctl_int(node, "cutoff");
	double mib[DECADES] = { 0 }, below = 0;
	const json_t *bucket;
	size_t i, n = 0;

	json_array_foreach(json_object_get(told, "buckets"), i, bucket) {
		double size = (double)ctl_int(bucket, "kib") / 1024;

		if (ctl_int(bucket, "node") != ctl_int(node, "node"))
			continue;
		mib[decade_of(ctl_int(bucket, "value"))] += size;
		below += ctl_int(bucket, "value") < cutoff ? size : 0;
		n++;
	}
	printf("node %lld: holds %lld MiB, in %zu buckets\n", ctl_int(node, "node"),
	       ctl_mib(node, "held_bytes"), n);
	if (n) {
		printf("  %-10s %9s\n", "ns/s MiB", "MiB");
		print_rows(mib);
	}
	if (cutoff)
		printf("  cut-off %.3g: %.1f MiB are worth less, and go first\n", (double)cutoff,
		       below);
}

static void print(const json_t *answer, void *ctx)
{
	const json_t *told = json_object_get(answer, "histogram"), *node;
	size_t i;

	(void)ctx;
	if (!ctl_bool(told, "can_tell"))
		puts("its guest cannot say what its memory is worth");
	else if (json_is_null(json_object_get(told, "age_ms")))
		printf("its guest was asked %lld times and has not said what its memory is "
		       "worth; taken for an average one\n", ctl_int(told, "asks"));
	else
		printf("its guest said so %.1f s ago\n", ctl_num(told, "age_ms") / 1e3);
	json_array_foreach(json_object_get(told, "nodes"), i, node)
		print_node(told, node);
}

int cmd_histogram(struct ctl *ctl, int argc, char **argv)
{
	ctl_parse(ctl, argc, argv, NULL, NULL, NULL, "VM", 1, 1);
	return ctl_show(ctl, json_pack("{s:s, s:s}", "cmd", "histogram", "vm", argv[0]), print,
			NULL);
}
