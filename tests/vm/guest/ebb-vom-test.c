/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells the host what memory is worth, from a shell in a guest.  Errors go to stderr with the name
 * of the errno and give exit status 1.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <linux/ebb_ioctl.h>

#include "ebb-guest.h"

static const char usage[] =
	"usage: ebbt-vom limits                print the number asked for and the cut-offs\n"
	"       ebbt-vom send SEQ [BUCKET...]  send a histogram; BUCKET: VALUE:KIB:NODE\n"
	"       ebbt-vom fill SEQ COUNT        the same, so many buckets, half of them of node 1,\n"
	"                                      of 1, 2, ... KiB worth 0, 1000, ...\n"
	"       ebbt-vom flood SEQ COUNT       send it so often, print how many went out\n"
	"A send waits while the last histogram is too recent, a flood does not.\n";

/* Far more than the driver has programs wait between two. */
#define PATIENCE_NS	UINT64_C(120000000000)

static struct ebb_vom vom = { .size = sizeof(vom) };

static int fail(const char *what)
{
	fprintf(stderr, "ebbt-vom: %s: %s (%s)\n", what, strerrorname_np(errno), strerror(errno));
	return 1;
}

static int do_limits(int fd)
{
	struct ebb_limits a = { .size = sizeof(a) };

	if (ioctl(fd, EBB_IOC_LIMITS, &a))
		return fail("EBB_IOC_LIMITS");
	printf("{\"vom_seq\":%u,\"cutoffs\":[", a.vom_seq);
	for (uint32_t i = 0; i < a.num_nodes; i++)
		printf("%s%" PRIu64, i ? "," : "", (uint64_t)a.nodes[i].mem_cutoff);
	printf("]}\n");
	return 0;
}

static int send_one(int fd)
{
	uint64_t end_ns = now_ns() + PATIENCE_NS;

	while (ioctl(fd, EBB_IOC_VOM, &vom)) {
		if (errno != EBUSY || now_ns() > end_ns)
			return fail("EBB_IOC_VOM");
		usleep(50000);
	}
	return 0;
}

static int do_flood(int fd, uint32_t count)
{
	uint32_t sent = 0, busy = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!ioctl(fd, EBB_IOC_VOM, &vom))
			sent++;
		else if (errno == EBUSY)
			busy++;
		else
			return fail("EBB_IOC_VOM");
	}
	printf("{\"sent\":%u,\"busy\":%u}\n", sent, busy);
	return 0;
}

static int parse_buckets(char **words, int count)
{
	for (int i = 0; i < count; i++) {
		struct ebb_vom_bucket *b = &vom.buckets[i];

		if (i == EBB_VOM_MAX_BUCKETS || sscanf(words[i], "%" SCNu64 ":%u:%hu",
						       (uint64_t *)&b->value, &b->kib,
						       &b->node) != 3)
			return -1;
	}
	vom.num_buckets = count;
	return 0;
}

static void fill(uint32_t count)
{
	uint32_t half = count / 2;

	for (uint32_t i = 0; i < count && i < EBB_VOM_MAX_BUCKETS; i++)
		vom.buckets[i] = (struct ebb_vom_bucket) {
			.value = UINT64_C(1000) * (i < half ? i : i - half),
			.kib = i + 1,
			.node = i >= half,
		};
	vom.num_buckets = count;
}

int main(int argc, char **argv)
{
	const char *cmd = argc > 1 ? argv[1] : "";
	int fd = open("/dev/ebb", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return fail("/dev/ebb");
	if (!strcmp(cmd, "limits"))
		return do_limits(fd);
	if (argc > 2)
		vom.seq = strtoul(argv[2], NULL, 0);
	if (!strcmp(cmd, "send") && argc > 2 && !parse_buckets(argv + 3, argc - 3))
		return send_one(fd);
	if (argc == 4)
		fill(strtoul(argv[3], NULL, 0));
	if (!strcmp(cmd, "fill") && argc == 4)
		return send_one(fd);
	if (!strcmp(cmd, "flood") && argc == 4) {
		fill(4);
		return do_flood(fd, strtoul(argv[3], NULL, 0));
	}
	fputs(usage, stderr);
	return 2;
}
