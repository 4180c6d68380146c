// SPDX-License-Identifier: GPL-2.0-or-later
/* See runner.h. */
#include <errno.h>
#include <string.h>

#include "backend/runner.h"

int ebb_runner_report(struct ebb_runner *r, usec_t now, const struct ebb_fact *fact)
{
	struct ebb_action close = { .type = EBB_ACTION_LINK_CLOSE };
	const int rc = ebb_state_report(r->state, now, fact);

	if (rc >= 0)
		return rc;
	if (r->on_refused)
		r->on_refused(r->ctx, now, fact, rc);
	if (ebb_fact_is_from_link(fact->type)) {
		memcpy(close.uuid, fact->uuid, sizeof(close.uuid));
		r->backend.ops->submit(r->backend.be, now, &close);
	}
	return rc;
}

usec_t ebb_runner_step(struct ebb_runner *r, usec_t now, size_t *ret_count)
{
	struct ebb_actions actions = { .items = r->items, .capacity = r->capacity };

	ebb_state_next(r->state, now, &actions);
	for (size_t i = 0; i < actions.count; i++) {
		if (r->on_action)
			r->on_action(r->ctx, now, &actions.items[i]);
		r->backend.ops->submit(r->backend.be, now, &actions.items[i]);
	}
	*ret_count = actions.count;
	return actions.wake_at;
}

int ebb_runner_rest(struct ebb_runner *r, usec_t now, int max_rounds, usec_t *ret_wake_at)
{
	usec_t wake_at;
	size_t count;

	do {
		wake_at = ebb_runner_step(r, now, &count);
		if (max_rounds-- == 0)
			return -ELOOP;
	} while (wake_at <= now);
	*ret_wake_at = wake_at;
	return 0;
}
