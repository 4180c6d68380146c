// SPDX-License-Identifier: BSD-3-Clause
/* Takes every CPU that it is offered, gives back what it must: pin workers where this prints. */
#include <ebb.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define MAX_MINE	256
static struct ebb_cpu mine[MAX_MINE];
static int num_mine;

/* As the host likes it, or as quickly as this VM can. */
static int give_back(struct ebb *ebb, unsigned int cpu, unsigned int tier)
{
	int r = -EOPNOTSUPP;

	if (tier != VIRTIO_EBB_TIER_UNPLUG)
		r = ebb_cpu_lend(ebb, cpu, tier == VIRTIO_EBB_TIER_PARK ? EBB_LEND_PARK : 0, 0,
				 NULL);
	return r == -EOPNOTSUPP ? ebb_cpu_remove(ebb, cpu, 0, NULL) : r;
}

static void shares_changed(void *ebb, const struct ebb_shares *shares)
{
	for (unsigned int i = 0; i < shares->num_nodes; i++) {
		const struct ebb_node_share *s = &shares->nodes[i];
		unsigned int left = s->cpus_demanded;

		for (int j = num_mine - 1; j >= 0 && left > 0; j--) {
			if (mine[j].node != s->node ||
			    give_back(ebb, mine[j].cpu, s->tier) == -EBUSY)
				continue;
			printf("gave CPU %u back\n", mine[j].cpu);
			mine[j] = mine[--num_mine];
			left--;
		}
		/* One at a time: the callback comes again with what is left. */
		if (s->cpus_offered > 0 && num_mine < MAX_MINE &&
		    ebb_cpu_add(ebb, 1, s->node, 0, 0, &mine[num_mine], NULL) == 1)
			printf("got CPU %u\n", mine[num_mine++].cpu);
	}
}

int main(void)
{
	struct ebb *ebb;
	int r = ebb_open(NULL, &ebb);

	setlinebuf(stdout);
	if (r == 0)
		ebb_set_shares_callback(ebb, shares_changed, ebb);
	while (r == 0) {
		poll(&(struct pollfd){ .fd = ebb_fd(ebb), .events = POLLIN }, 1, -1);
		r = ebb_dispatch(ebb);
	}
	fprintf(stderr, "ebb: %s\n", strerror(-r));
	return 1;
}
