// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the memory of this VM is worth: the answers of its applications, put together by value into
 * one histogram for the host.  An answer counts for no more memory than the application has, and
 * can have, so no application can make another one's memory look larger or smaller than it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest-monitor/libebb/vom.h"
#include "log.h"
#include "monitor.h"

#define NS_PER_MS	1000000ull
#define RETRY_MS	100

static const struct ebb_msg_vom *answer_to(const struct ebb_client *client, uint32_t seq)
{
	const struct ebb_msg_vom *values = client->values;

	return client->state == EBB_CLIENT_REGISTERED && values && values->seq == seq ? values :
											NULL;
}

const struct ebb_msg_vom *ebb_collect_known(const struct ebb_monitor *monitor,
					    const struct ebb_client *client)
{
	const struct ebb_msg_vom *values = answer_to(client, monitor->view.vom_seq);

	return values ? values : answer_to(client, monitor->vom_told);
}

/* One application's buckets of a node, fitted to what it owns there.  Returns how many. */
static size_t items_take(const struct ebb_msg_vom *values, uint32_t node, uint64_t owned_bytes,
			 struct ebb_vom_item *ret)
{
	size_t n = 0;

	for (uint32_t i = 0; i < values->num_buckets; i++) {
		const struct ebb_vom_bucket *b = &values->buckets[i];

		if (b->node == node)
			ret[n++] = (struct ebb_vom_item){ b->value, b->kib * 1024ull, node };
	}
	return ebb_vom_fit(ret, n, node, owned_bytes);
}

/* In the order of the view's nodes, as the driver wants it. */
static void buckets_put(const struct ebb_view *view, const struct ebb_vom_item *items, size_t n,
			struct ebb_vom *ret)
{
	for (uint32_t v = 0; v < view->num_nodes; v++)
		for (size_t i = 0; i < n; i++)
			if (items[i].node == view->nodes[v].node)
				ret->buckets[ret->num_buckets++] = ebb_vom_bucket_of(&items[i]);
}

/* -ENOMEM */
static int merge(const struct ebb_monitor *monitor, struct ebb_vom *ret)
{
	const struct ebb_view *view = &monitor->view;
	struct ebb_vom_item *items;
	size_t num = 0, room = 1;

	/* One more on each node, for what is not accounted for. */
	for (size_t c = 0; c < monitor->num_clients; c++)
		if (answer_to(monitor->clients[c], view->vom_seq))
			room += monitor->clients[c]->values->num_buckets + EBB_MAX_NODES;
	items = calloc(room, sizeof(*items));
	if (!items)
		return -ENOMEM;
	for (size_t c = 0; c < monitor->num_clients; c++) {
		const struct ebb_client *client = monitor->clients[c];
		const struct ebb_msg_vom *values = answer_to(client, view->vom_seq);

		for (uint32_t v = 0; values && v < view->num_nodes; v++) {
			uint32_t node = view->nodes[v].node;

			num += items_take(values, node,
					  client->divide.nodes[EBB_DIVIDE_MEM][node].owned,
					  items + num);
		}
	}
	num = ebb_vom_histogram(items, num, EBB_VOM_MAX_BUCKETS);
	buckets_put(view, items, num, ret);
	free(items);
	return 0;
}

static void tell(struct ebb_monitor *monitor, uint64_t now_ns)
{
	struct ebb_vom *vom = calloc(1, sizeof(*vom));
	int r = vom ? merge(monitor, vom) : -ENOMEM;

	if (r == 0) {
		vom->size = sizeof(*vom);
		vom->seq = monitor->vom_asked;
		r = monitor->ops->ioctl(monitor->dev, EBB_IOC_VOM, vom);
	}
	free(vom);
	if (r == -EBUSY || r == -ENOMEM) {
		monitor->vom_due_ns = monitor->vom_retry_ns = now_ns + RETRY_MS * NS_PER_MS;
		return;
	}
	monitor->vom_told = monitor->vom_asked;
	monitor->vom_told_ns = now_ns;
	/* Demands can be divided by value now. */
	monitor->is_divide_due = true;
	if (r == -ENODEV)
		ebb_monitor_dev_lose(monitor, now_ns, -r);
	else if (r < 0)
		ebb_log("cannot say what memory is worth, ignoring: %s", strerror(-r));
}

void ebb_collect_step(struct ebb_monitor *monitor, uint64_t now_ns)
{
	uint32_t seq = monitor->view.vom_seq;
	bool is_anybody_missing = false, has_any = false;
	uint64_t next_ns;

	monitor->vom_due_ns = UINT64_MAX;
	if (!monitor->dev || !seq || seq == monitor->vom_told)
		return;
	if (seq != monitor->vom_asked) {
		monitor->vom_asked = seq;
		monitor->vom_until_ns = now_ns + EBB_MONITOR_ANSWER_MS * NS_PER_MS;
	}
	for (size_t i = 0; i < monitor->num_clients; i++) {
		const struct ebb_client *client = monitor->clients[i];
		bool has = answer_to(client, seq);

		has_any |= has;
		is_anybody_missing |= !has && client->has_values &&
				      client->state == EBB_CLIENT_REGISTERED;
	}
	/* Of nobody there is nothing to say. */
	if (!has_any)
		return;
	next_ns = monitor->vom_retry_ns;
	if (monitor->vom_told_ns &&
	    next_ns < monitor->vom_told_ns + VIRTIO_EBB_VOM_INTERVAL_MS * NS_PER_MS)
		next_ns = monitor->vom_told_ns + VIRTIO_EBB_VOM_INTERVAL_MS * NS_PER_MS;
	if (is_anybody_missing && next_ns < monitor->vom_until_ns)
		next_ns = monitor->vom_until_ns;
	if (now_ns >= next_ns)
		tell(monitor, now_ns);
	else
		monitor->vom_due_ns = next_ns;
}
