// SPDX-License-Identifier: BSD-3-Clause
/*
 * When the host asks what memory is worth: to the monitor if there is one, which puts the answers
 * of all applications together, else to the driver.
 */
#include <errno.h>
#include <stdlib.h>

#include "handle.h"

#define NS_PER_MS	1000000ull

/* Of nodes that there are, in the driver's order. */
static void in_order(const struct ebb_view *view, const struct ebb_values *values,
		     struct ebb_vom *ret)
{
	for (uint32_t n = 0; n < view->num_nodes; n++)
		for (uint32_t i = 0; i < values->num_buckets; i++)
			if (values->buckets[i].node == view->nodes[n].node)
				ret->buckets[ret->num_buckets++] = values->buckets[i];
}

static uint64_t driver_tell(struct ebb *ebb, uint64_t now_ns)
{
	struct ebb_values *values = &ebb->values;
	struct ebb_vom *vom;
	int r;

	if (values->told_seq == values->seq)
		return UINT64_MAX;
	if (now_ns < values->retry_ns)
		return values->retry_ns;
	vom = calloc(1, sizeof(*vom));
	if (!vom) {
		r = -EBUSY;
	} else {
		vom->size = sizeof(*vom);
		vom->seq = values->seq;
		in_order(&ebb->view, values, vom);
		r = ebb->ops->ioctl(ebb->dev, EBB_IOC_VOM, vom);
		free(vom);
	}
	if (r == -EBUSY) {
		values->retry_ns = now_ns + EBB_VALUES_RETRY_MS * NS_PER_MS;
		return values->retry_ns;
	}
	/* Whatever else is wrong with it is wrong the next time, too. */
	values->retry_ns = 0;
	values->told_seq = values->seq;
	return UINT64_MAX;
}

uint64_t ebb_ask_step(struct ebb *ebb, uint64_t now_ns)
{
	struct ebb_values *values = &ebb->values;
	uint64_t due_ns;
	int r;

	if (!ebb->view.vom_seq || !ebb_values_exist(values))
		return UINT64_MAX;
	due_ns = ebb_values_make(values, ebb->view.vom_seq, now_ns);
	if (due_ns)
		return due_ns;
	if (!values->has_buckets)
		return UINT64_MAX;
	r = ebb_link_vom(&ebb->link, values->seq, values->buckets, values->num_buckets);
	if (r == -EAGAIN)
		return now_ns + EBB_LINK_RESEND_MS * NS_PER_MS;
	/* A monitor that is about to come back asks again. */
	if (r == 0 || ebb->had_monitor)
		return UINT64_MAX;
	return driver_tell(ebb, now_ns);
}
