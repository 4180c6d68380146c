// SPDX-License-Identifier: GPL-2.0-or-later
/* See violation.h: when one begins, ends and calls for a move. */
#include "core/pressure/violation.h"

void ebb_violation_clear(struct ebb_violation *v)
{
	*v = (struct ebb_violation){
		.above_since = EBB_TIME_NEVER, .beyond_since = EBB_TIME_NEVER,
		.low_since = EBB_TIME_NEVER, .not_above_since = EBB_TIME_NEVER,
	};
}

static void mark(usec_t *since, bool is_so, usec_t now)
{
	if (!is_so)
		*since = EBB_TIME_NEVER;
	else if (*since == EBB_TIME_NEVER)
		*since = now;
}

/* `so_long` after `since`, or EBB_TIME_NEVER. */
static usec_t after(usec_t since, usec_t so_long)
{
	return since == EBB_TIME_NEVER ? EBB_TIME_NEVER : since + so_long;
}

static usec_t sooner(usec_t a, usec_t b)
{
	return a < b ? a : b;
}

static usec_t ends_at(const struct ebb_violation *v, const struct ebb_violation_rule *rule)
{
	return sooner(after(v->low_since, rule->window),
		      after(v->not_above_since, rule->cooldown));
}

int ebb_violation_step(struct ebb_violation *v, const struct ebb_violation_rule *rule,
		       uint64_t level, usec_t now)
{
	v->level = level;
	mark(&v->above_since, level > rule->threshold, now);
	mark(&v->beyond_since, level > rule->failover, now);
	mark(&v->low_since, level <= rule->target, now);
	mark(&v->not_above_since, level <= rule->threshold, now);
	if (!v->is_on && now >= after(v->above_since, rule->window)) {
		v->is_on = true;
		v->since = now;
		v->peak = level;
		v->count++;
		return 1;
	}
	if (v->is_on && level > v->peak)
		v->peak = level;
	if (v->is_on && now >= ends_at(v, rule)) {
		v->is_on = false;
		v->since = now;
		return -1;
	}
	return 0;
}

/* When a violation that is on calls for a move. */
static usec_t moves_at(const struct ebb_violation *v, const struct ebb_violation_rule *rule)
{
	const usec_t above = v->above_since == EBB_TIME_NEVER || v->above_since > v->since ?
				     v->above_since : v->since;
	const usec_t at = sooner(after(v->beyond_since, rule->window),
				 after(above, rule->cooldown));

	return v->moved_at && at < v->moved_at + rule->cooldown ? v->moved_at + rule->cooldown : at;
}

bool ebb_violation_calls_move(const struct ebb_violation *v, const struct ebb_violation_rule *rule,
			      usec_t now)
{
	return v->is_on && now >= moves_at(v, rule);
}

usec_t ebb_violation_until(const struct ebb_violation *v, const struct ebb_violation_rule *rule,
			   usec_t now)
{
	usec_t until = EBB_TIME_NEVER, at;

	if (!v->is_on)
		return after(v->above_since, rule->window);
	at = ends_at(v, rule);
	if (at > now)
		until = at;
	at = moves_at(v, rule);
	return at > now ? sooner(until, at) : until;
}

const char *ebb_pressed_name(enum ebb_pressed pressed)
{
	static const char *const names[EBB_PRESSED_MAX] = {
		[EBB_PRESSED_MEMORY] = "memory",
		[EBB_PRESSED_CPU] = "cpu",
		[EBB_PRESSED_CORE] = "core",
	};

	return (unsigned)pressed < EBB_PRESSED_MAX ? names[pressed] : "?";
}

uint16_t ebb_pressed_code(enum ebb_pressed pressed, bool ends)
{
	return (uint16_t)(2 * pressed + ends);
}

const char *ebb_code_name(enum ebb_event event, uint16_t code)
{
	const bool is_pressed = event == EBB_EVENT_VIOLATION || event == EBB_EVENT_MOVE;

	return is_pressed ? ebb_pressed_code_name(code) : ebb_reason_name(code);
}

const char *ebb_pressed_code_name(uint16_t code)
{
	static const char *const names[2 * EBB_PRESSED_MAX] = {
		"memory-begin", "memory-end", "cpu-begin", "cpu-end", "core-begin", "core-end",
	};

	return code < 2 * EBB_PRESSED_MAX ? names[code] : "?";
}
