// SPDX-License-Identifier: BSD-3-Clause
/* Takes all memory that it is offered, gives it back on demand, and survives when it is revoked. */
#include <ebb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define MAX_MINE	256
static struct ebb_lease mine[MAX_MINE];	/* bytes: what is left, from the start of the lease */
static int num_mine;

static void fill(void *lease)
{
	memset(((struct ebb_lease *)lease)->addr, 1, ((struct ebb_lease *)lease)->bytes);
}

static void shares_changed(void *ebb, const struct ebb_shares *shares)
{
	for (unsigned int i = 0; i < shares->num_nodes; i++) {
		const struct ebb_node_share *s = &shares->nodes[i];
		uint64_t left = s->mem_demanded_bytes;

		for (int j = num_mine - 1; j >= 0 && left > 0; j--) {
			uint64_t bytes = mine[j].bytes < left ? mine[j].bytes : left;
			char *end = (char *)mine[j].addr + mine[j].bytes;

			if (mine[j].node != s->node ||
			    ebb_mem_release(ebb, end - bytes, bytes) < 0)
				continue;
			printf("gave %llu MiB back\n", (unsigned long long)bytes >> 20);
			left -= bytes;
			mine[j].bytes -= bytes;
			if (mine[j].bytes == 0)
				mine[j] = mine[--num_mine];
		}
		if (s->mem_offered_bytes == 0 || num_mine == MAX_MINE ||
		    ebb_mem_add(ebb, s->mem_offered_bytes, s->node, &mine[num_mine]) < 0)
			continue;
		printf("got %llu MiB\n", (unsigned long long)mine[num_mine].bytes >> 20);
		if (ebb_mem_guard_run(fill, &mine[num_mine++], NULL) < 0)
			printf("some of it was taken again\n");
	}
}

/* What was in it is lost, and a block of a lease has gone: the rest of it is not worth much. */
static void revoked(void *ebb, void *addr, uint64_t bytes)
{
	struct ebb_lease lease;

	printf("lost %llu MiB\n", (unsigned long long)bytes >> 20);
	if (ebb_lease_find(ebb, addr, &lease) < 0)
		return;
	for (int j = num_mine - 1; j >= 0; j--)
		if (mine[j].addr == lease.addr)
			mine[j] = mine[--num_mine];
	ebb_lease_close(ebb, addr);
}

int main(void)
{
	struct ebb *ebb;
	int r = ebb_open(NULL, &ebb);

	setlinebuf(stdout);
	if (r == 0) {
		ebb_set_revoked_callback(ebb, revoked, ebb);
		ebb_set_shares_callback(ebb, shares_changed, ebb);
	}
	while (r == 0) {
		poll(&(struct pollfd){ .fd = ebb_fd(ebb), .events = POLLIN }, 1, -1);
		r = ebb_dispatch(ebb);
	}
	fprintf(stderr, "ebb: %s\n", strerror(-r));
	return 1;
}
