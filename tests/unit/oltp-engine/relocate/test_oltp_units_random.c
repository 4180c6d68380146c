// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hand-over of units in long runs: three units, transactions on any of them, three at a time on
 * each node, and whatever can go wrong, at random. test_oltp_units_model has every order of few
 * events; this has many events, and full nodes, full networks and logs that fail besides.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "units_model.h"

#define RUNS	3000u
#define STEPS	1000u

struct dice {
	uint64_t state;
};

/* 0 to n - 1 */
static uint32_t roll(struct dice *d, uint32_t n)
{
	d->state ^= d->state << 13;
	d->state ^= d->state >> 7;
	d->state ^= d->state << 17;
	return (uint32_t)((d->state >> 32) % n);
}

struct tally {
	uint64_t done, failed, faults, fenced, ended;
};

static void step_message(struct model *m, struct dice *d)
{
	uint32_t at;

	if (!m->n_messages)
		return;
	at = roll(d, m->n_messages);
	switch (roll(d, 8)) {
	case 0:
		model_lose(m, at);
		break;
	case 1:
	case 2:
		model_deliver(m, at);
		break;
	default: {
		struct model_message message;

		memcpy(&message, &m->messages[at], sizeof(message));
		model_lose(m, at);
		model_receive(m, &message);
	}
	}
}

static void step_fault(struct model *m, struct dice *d, uint32_t node, struct tally *tally)
{
	struct model_node *n = &m->nodes[node];
	bool happens = false;

	switch (roll(d, 12)) {
	case 0:
		happens = model_sync(m, node, false);
		break;
	case 1:
		happens = model_fence(m, node, roll(d, m->nodes[!node].disk.n + 1u));
		tally->fenced += happens;
		break;
	case 2:
		happens = model_crash(m, SOURCE, 0);
		happens |= model_crash(m, TARGET, 0);
		break;
	case 3:
	case 4:
		happens = model_full(m, node, roll(d, 2));
		break;
	default:
		happens = model_crash(m, node, roll(d, n->disk.n + 1u));
		break;
	}
	tally->faults += happens;
}

static void step(struct model *m, struct dice *d, struct tally *tally)
{
	uint32_t node = roll(d, NODES);
	struct model_node *n = &m->nodes[node];

	if (n->disk.n > 5) {
		model_sync(m, node, true);
		return;
	}
	switch (roll(d, 16)) {
	case 0:
	case 1:
		model_tick(m, node);
		break;
	case 2:
		model_begin(m, node, (uint8_t)(1 + roll(d, 7)));
		break;
	case 3:
	case 4:
		model_commit(m, node, roll(d, MODEL_TXNS));
		break;
	case 5:
	case 6:
		model_drained(m, node, roll(d, m->n_units));
		break;
	case 7:
	case 8:
		model_sync(m, node, true);
		break;
	case 9:
		if (n->units.mode == UNITS_STOPPED)
			model_crash(m, node, 0);
		model_restart(m, node);
		break;
	case 10:
		if (!roll(d, 60))
			model_close(m, node);
		else if (!roll(d, 20))
			model_stay(m, node);
		model_lost(m, node);
		break;
	case 11:
		if (!roll(d, 10))
			step_fault(m, d, node, tally);
		break;
	default:
		step_message(m, d);
		break;
	}
}

static void run(uint64_t seed, struct tally *tally)
{
	struct dice d = { seed * 0x9e3779b97f4a7c15ull + 1 };
	static struct model m;

	model_wrong = NULL;
	model_init(&m, MODEL_UNITS, MUTANT_NONE);
	for (uint32_t i = 0; i < STEPS && !model_wrong; i++) {
		step(&m, &d, tally);
		model_check(&m);
		if (model_wrong)
			model_print(&m);
		if (i % 50 == 49) {
			model_settle(&m, NODES);
			model_settle(&m, roll(&d, NODES));
		}
	}
	if (model_wrong)
		fail_msg("seed %llu: %s", (unsigned long long)seed, model_wrong);
	tally->done += m.done;
	tally->failed += m.failed;
	tally->ended += m.nodes[SOURCE].disk.was == UNITS_WAS_CLOSED ||
			m.nodes[TARGET].disk.was == UNITS_WAS_CLOSED;
}

static void long_runs_lose_nothing(void **state)
{
	struct tally tally = { 0 };

	(void)state;
	for (uint64_t seed = 1; seed <= RUNS; seed++)
		run(seed, &tally);
	print_message("%llu transactions, %llu not done, %llu faults, %llu fenced, "
		      "%llu relocations ended\n", (unsigned long long)tally.done,
		      (unsigned long long)tally.failed, (unsigned long long)tally.faults,
		      (unsigned long long)tally.fenced, (unsigned long long)tally.ended);
	/* All that should happen must have, or nothing was tested. */
	assert_true(tally.done > 5 * RUNS && tally.faults > RUNS);
	assert_true(tally.fenced > RUNS / 20 && tally.ended > RUNS / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_runs_lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
