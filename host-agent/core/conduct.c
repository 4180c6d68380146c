// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How guests behave, for people: nothing is decided by it.  What a guest can do
 * to others is bounded by limits, deadlines and force, whatever it does.
 */
#include "core/explain.h"
#include "core/internal.h"

/* More requests in a second than an engine makes that reacts to events. */
#define FLOOD_REQUESTS		50u
/* What is asked for so soon after giving back is what was given back. */
#define REASK_USEC		EBB_USEC_PER_SEC
#define REASK_TIMES		3u
/* Forced so often in a row, a guest that once gave something back counts as silent. */
#define SILENT_TIMES		3u
/* Bad conduct is forgotten after this. */
#define FORGET_USEC		(600 * EBB_USEC_PER_SEC)

static uint32_t request_rate(const struct ebb_vm_conduct *c, usec_t now)
{
	if (now >= c->second_at + 2 * EBB_USEC_PER_SEC)
		return 0;
	return c->num_requests > c->last_requests ? c->num_requests : c->last_requests;
}

void core_conduct_request(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	struct ebb_vm_conduct *c = &vm->conduct;

	if (now >= c->second_at + EBB_USEC_PER_SEC) {
		c->last_requests = now < c->second_at + 2 * EBB_USEC_PER_SEC ? c->num_requests : 0;
		c->num_requests = 0;
		c->second_at = now;
	}
	/* Said once, when it begins. */
	if (++c->num_requests == FLOOD_REQUESTS && c->last_requests < FLOOD_REQUESTS)
		core_text(core_record(s, vm, now, EBB_EVENT_ERROR)->text,
			  "flooding: %u requests within %llu ms", FLOOD_REQUESTS,
			  (unsigned long long)((now - c->second_at) / EBB_USEC_PER_MSEC));
}

void core_conduct_refused(usec_t now, struct ebb_vm *vm)
{
	if (vm->conduct.given_at && now < vm->conduct.given_at + REASK_USEC)
		vm->conduct.num_reasked++;
}

void core_conduct_granted(struct ebb_vm *vm)
{
	vm->conduct.num_reasked = 0;
}

static void forget(struct ebb_vm_conduct *c, usec_t now)
{
	if (c->forced_at && now >= c->forced_at + FORGET_USEC)
		c->num_given = c->num_forced = c->num_unanswered = 0;
}

void core_conduct_given(struct ebb_vm *vm, uint32_t count, usec_t now)
{
	struct ebb_vm_conduct *c = &vm->conduct;

	forget(c, now);
	c->num_given += count;
	c->num_unanswered = 0;
	c->given_at = now;
}

void core_conduct_forced(struct ebb_vm *vm, usec_t now)
{
	struct ebb_vm_conduct *c = &vm->conduct;

	forget(c, now);
	c->num_forced++;
	c->num_unanswered++;
	c->forced_at = now;
}

bool ebb_vm_verdict(const struct ebb_vm *vm, usec_t now, char *ret_text)
{
	const struct ebb_vm_conduct *c = &vm->conduct;
	const bool was_forced = c->num_forced > 0 && now < c->forced_at + FORGET_USEC;

	if (request_rate(c, now) >= FLOOD_REQUESTS)
		core_text(ret_text, "flooding: %u requests/s", request_rate(c, now));
	else if (was_forced && (c->num_given == 0 || c->num_unanswered >= SILENT_TIMES))
		core_text(ret_text, "did not answer %u demands", c->num_unanswered);
	else if (was_forced)
		core_text(ret_text, "gave %u of %u CPUs only", c->num_given,
			  c->num_given + c->num_forced);
	else if (c->num_reasked >= REASK_TIMES && now < c->given_at + FORGET_USEC)
		core_text(ret_text, "asked %u times at once for what it had given back",
			  c->num_reasked);
	else
		ret_text[0] = '\0';
	return ret_text[0] != '\0';
}
