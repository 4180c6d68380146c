// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How guests behave, for people: nothing is decided by it.  What a guest can do
 * to others is bounded by limits, deadlines and force, whatever it does.
 */
#include "core/explain.h"
#include "core/meter/meter.h"

/* More requests in a second than an engine makes that reacts to events. */
#define FLOOD_REQUESTS		50u
/*
 * A CPU that is given back so soon has cost more than it was worth; a few of
 * them are an engine that tries something out.
 */
#define FLAP_USEC		(300 * EBB_USEC_PER_MSEC)
#define FLAP_PERIOD_USEC	(10 * EBB_USEC_PER_SEC)
#define FLAP_TIMES		20u
/* A request that comes so soon after a return asks for the returned resource again. */
#define REASK_USEC		EBB_USEC_PER_SEC
#define REASK_TIMES		3u
/* Forced so often in a row, a guest that once gave something back counts as silent. */
#define SILENT_TIMES		3u
/* One that is late may have had bad luck. */
#define LATE_TIMES		2u
/* How demands were met is forgotten after this; they are rare.  The rest: */
#define FORGET_USEC		(600 * EBB_USEC_PER_SEC)
#define FADE_USEC		(60 * EBB_USEC_PER_SEC)

static uint32_t rate_get(const struct ebb_rate *r, usec_t period, usec_t now)
{
	if (now >= r->since + 2 * period)
		return 0;
	return r->count > r->last ? r->count : r->last;
}

static void rate_add(struct ebb_rate *r, usec_t period, usec_t now)
{
	if (now >= r->since + period) {
		r->last = now < r->since + 2 * period ? r->count : 0;
		r->count = 0;
		r->since = now;
	}
	r->count++;
}

static bool is_fresh(const struct ebb_misdeed *m, usec_t now)
{
	return m->at && now < m->at + FADE_USEC;
}

void meter_misdeed(struct ebb_misdeed *m, uint32_t count, usec_t now)
{
	if (!is_fresh(m, now) || count > m->most)
		m->most = count;
	m->at = now;
}

void meter_forget(const struct ebb_vm *vm)
{
	*meter_own_conduct(vm) = (struct ebb_vm_conduct){ 0 };
}

void core_conduct_request(usec_t now, const struct ebb_vm *vm)
{
	struct ebb_vm_conduct *c = meter_own_conduct(vm);

	rate_add(&c->requests, EBB_USEC_PER_SEC, now);
	if (rate_get(&c->requests, EBB_USEC_PER_SEC, now) >= FLOOD_REQUESTS)
		meter_misdeed(&c->flood, rate_get(&c->requests, EBB_USEC_PER_SEC, now), now);
}

void core_conduct_refused(usec_t now, const struct ebb_vm *vm)
{
	if (vm->conduct.given_at && now < vm->conduct.given_at + REASK_USEC)
		meter_own_conduct(vm)->num_reasked++;
}

void core_conduct_granted(const struct ebb_vm *vm)
{
	meter_own_conduct(vm)->num_reasked = 0;
}

void core_conduct_back(usec_t now, const struct ebb_vm *vm, uint16_t vcpu)
{
	const struct ebb_vcpu *v = &vm->vcpus[vcpu];
	struct ebb_vm_conduct *c = meter_own_conduct(vm);

	/* What was demanded is to be given back, however new it is. */
	if (v->is_lent || vm->nodes[v->node].num_due > 0 || now >= v->granted_at + FLAP_USEC)
		return;
	rate_add(&c->flaps, FLAP_PERIOD_USEC, now);
	if (rate_get(&c->flaps, FLAP_PERIOD_USEC, now) >= FLAP_TIMES)
		meter_misdeed(&c->flap, rate_get(&c->flaps, FLAP_PERIOD_USEC, now), now);
}

static void forget(struct ebb_vm_conduct *c, usec_t now)
{
	if (c->forced_at && now >= c->forced_at + FORGET_USEC)
		c->num_given = c->num_late = c->num_forced = c->num_unanswered = 0;
	if (c->late_at && now >= c->late_at + FORGET_USEC)
		c->num_late = 0;
}

void core_conduct_given(const struct ebb_vm *vm, uint32_t count, uint32_t late, usec_t now)
{
	struct ebb_vm_conduct *c = meter_own_conduct(vm);

	forget(c, now);
	c->num_given += count;
	c->num_late += late;
	if (late > 0)
		c->late_at = now;
	c->num_unanswered = 0;
	c->given_at = now;
}

void core_conduct_forced(const struct ebb_vm *vm, usec_t now)
{
	struct ebb_vm_conduct *c = meter_own_conduct(vm);

	forget(c, now);
	c->num_forced++;
	c->num_unanswered++;
	c->forced_at = now;
}

static bool has_verdict(const struct ebb_vm_conduct *c, usec_t now, enum ebb_verdict verdict)
{
	const bool was_forced = c->num_forced > 0 && now < c->forced_at + FORGET_USEC;
	const bool is_silent = c->num_given == 0 || c->num_unanswered >= SILENT_TIMES;

	switch (verdict) {
	case EBB_VERDICT_SILENT:
		return was_forced && is_silent;
	case EBB_VERDICT_PARTIAL:
		return was_forced && !is_silent;
	case EBB_VERDICT_LATE:
		return c->num_late >= LATE_TIMES && 2 * c->num_late >= c->num_given &&
		       now < c->late_at + FORGET_USEC;
	case EBB_VERDICT_SQUAT:
		return c->is_squatting;
	case EBB_VERDICT_WAKE:
		return is_fresh(&c->wake, now);
	case EBB_VERDICT_FLAP:
		return is_fresh(&c->flap, now);
	case EBB_VERDICT_FLOOD:
		return is_fresh(&c->flood, now);
	case EBB_VERDICT_REASK:
		return c->num_reasked >= REASK_TIMES && now < c->given_at + FORGET_USEC;
	default:
		return false;
	}
}

static void verdict_text(const struct ebb_vm_conduct *c, enum ebb_verdict verdict, char *text)
{
	switch (verdict) {
	case EBB_VERDICT_SILENT:
		core_text(text, "did not answer %u demands", c->num_unanswered);
		break;
	case EBB_VERDICT_PARTIAL:
		core_text(text, "gave %u of %u CPUs only", c->num_given,
			  c->num_given + c->num_forced);
		break;
	case EBB_VERDICT_LATE:
		core_text(text, "gave %u of %u CPUs just before the deadline", c->num_late,
			  c->num_given);
		break;
	case EBB_VERDICT_SQUAT:
		core_text(text, "computes on lent CPUs: %u%% of a CPU over the last %llu s",
			  c->lent_permille / 10,
			  (unsigned long long)((c->lent_usec + EBB_USEC_PER_SEC / 2) /
					       EBB_USEC_PER_SEC));
		break;
	case EBB_VERDICT_WAKE:
		core_text(text, "tries to start parked CPUs: they were woken up to %u times a "
			  "second", c->wake.most);
		break;
	case EBB_VERDICT_FLAP:
		core_text(text, "takes CPUs and gives them back at once: up to %u within %llu s",
			  c->flap.most,
			  (unsigned long long)(FLAP_PERIOD_USEC / EBB_USEC_PER_SEC));
		break;
	case EBB_VERDICT_FLOOD:
		core_text(text, "floods: up to %u requests within a second", c->flood.most);
		break;
	default:
		core_text(text, "asked %u times at once for what it had given back",
			  c->num_reasked);
	}
}

bool ebb_vm_verdict(const struct ebb_vm *vm, usec_t now, enum ebb_verdict verdict,
		    char *ret_text)
{
	if (!has_verdict(&vm->conduct, now, verdict))
		return false;
	if (ret_text)
		verdict_text(&vm->conduct, verdict, ret_text);
	return true;
}

const char *ebb_verdict_name(enum ebb_verdict verdict)
{
	static const char *const names[EBB_VERDICT_MAX] = {
		[EBB_VERDICT_SILENT] = "silent", [EBB_VERDICT_PARTIAL] = "partial",
		[EBB_VERDICT_LATE] = "late",	 [EBB_VERDICT_SQUAT] = "squat",
		[EBB_VERDICT_WAKE] = "wake",	 [EBB_VERDICT_FLAP] = "flap",
		[EBB_VERDICT_FLOOD] = "flood",	 [EBB_VERDICT_REASK] = "reask",
	};

	return (unsigned)verdict < EBB_VERDICT_MAX ? names[verdict] : "?";
}

void core_conduct_review(const struct core_env *e, usec_t now, const struct ebb_vm *vm)
{
	char text[EBB_TEXT_SIZE];

	for (int i = 0; i < EBB_VERDICT_MAX; i++) {
		const bool has = ebb_vm_verdict(vm, now, i, NULL);

		if (has == !!(vm->conduct.told & 1u << i))
			continue;
		meter_own_conduct(vm)->told ^= 1u << i;
		if (has)
			ebb_vm_verdict(vm, now, i, text);
		else
			core_text(text, "behaves again");
		core_text(core_record(e, vm, now, EBB_EVENT_CONDUCT)->text, "%s: the guest %.150s",
			  ebb_verdict_name(i), text);
	}
}
