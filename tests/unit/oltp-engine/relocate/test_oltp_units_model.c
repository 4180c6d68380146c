// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hand-over of units as decisions, in every order of events: two nodes of units_model.h, with
 * few transactions and few faults. In each state that can be reached any message that was ever sent
 * may arrive, or stay away; disks take any time; nodes crash, with any part of what was not on disk
 * surviving, and fence each other; timers go off. Checked in each state: U1 to U4. From each state,
 * without more faults, everything must end: with both nodes, and with either alone (U5). And
 * whatever rule the executor breaks, this finds it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "units_model.h"

struct search {
	struct model *now, *next;	/* states at the same number of events */
	size_t n_now, n_next, room;
	uint64_t (*seen)[2];		/* hashes; zero: free */
	size_t slots, n_seen;
};

static void hash_of(const struct model *m, uint64_t ret_hash[2])
{
	const uint8_t *bytes = (const uint8_t *)m;
	uint64_t a = 0x9e3779b97f4a7c15ull, b = 0xc2b2ae3d27d4eb4full, word;

	_Static_assert(sizeof(*m) % 8 == 0, "hashed by words");
	for (size_t i = 0; i < sizeof(*m); i += 8) {
		memcpy(&word, bytes + i, 8);
		a = (a ^ word) * 0xff51afd7ed558ccdull;
		a ^= a >> 32;
		b = (b + word) * 0xc4ceb9fe1a85ec53ull;
		b ^= b >> 29;
	}
	ret_hash[0] = a;
	ret_hash[1] = b | 1;
}

/* Padding stays zero by copying with memcpy, so worlds compare as bytes. */
static void add(struct search *s, struct model *m)
{
	uint64_t hash[2];
	size_t at;

	m->done = m->failed = 0;
	model_prune(m);
	hash_of(m, hash);
	for (at = hash[0] & (s->slots - 1); s->seen[at][1]; at = (at + 1) & (s->slots - 1)) {
		if (s->seen[at][0] == hash[0] && s->seen[at][1] == hash[1])
			return;
	}
	memcpy(s->seen[at], hash, sizeof(hash));
	s->n_seen++;
	assert_true(s->n_seen < s->slots / 2);
	if (s->n_next == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->next = realloc(s->next, s->room * sizeof(*s->next));
		s->now = realloc(s->now, s->room * sizeof(*s->now));
		assert_true(s->next && s->now);
	}
	memcpy(&s->next[s->n_next++], m, sizeof(*m));
}

#define TRY(event) do { \
	memcpy(&b, m, sizeof(b)); \
	if (event) \
		add(s, &b); \
} while (0)

static bool spend(uint8_t *left, bool happens)
{
	*left = (uint8_t)(*left - happens);
	return happens;
}

static void expand_node(struct search *s, const struct model *m, uint32_t node)
{
	const struct model_node *n = &m->nodes[node];
	static struct model b;

	TRY(model_tick(&b, node));
	TRY(model_sync(&b, node, true));
	for (uint32_t t = 0; t < MODEL_TXNS; t++)
		TRY(model_commit(&b, node, t));
	for (uint32_t u = 0; u < m->n_units; u++) {
		TRY(model_drained(&b, node, u));
		if (m->mutant == MUTANT_TAKE_BACK)
			TRY(model_give_up(&b, node, u));
	}
	/* One at a time on each node. */
	if (m->txns_left && !n->txns[0].units)
		TRY(spend(&b.txns_left,
			  model_begin(&b, node, (uint8_t)((1u << m->n_units) - 1))));
	if (m->closes_left & 1u << node)
		TRY(model_close(&b, node) && (b.closes_left &= (uint8_t)~(1u << node), true));
	if (m->closes_left & 4u << node)
		TRY(model_stay(&b, node) && (b.closes_left &= (uint8_t)~(4u << node), true));
	TRY(model_restart(&b, node));
	if (!m->faults_left)
		return;
	for (uint32_t k = 0; k <= n->disk.n; k++)
		TRY(spend(&b.faults_left, model_crash(&b, node, k)));
	for (uint32_t k = 0; k <= m->nodes[!node].disk.n; k++)
		TRY(spend(&b.faults_left, model_fence(&b, node, k)));
}

enum start {
	START_NEW,	/* neither node has heard of the other */
	START_SYNCED,	/* both have, and the source has all units */
	START_HANDED,	/* the target has got all */
};

struct plan {
	enum start start;
	uint32_t n_units;
	uint8_t txns, faults;
	uint8_t closes;		/* a bit per node that may close; two bits above: and stay then */
	uint32_t depth;		/* events, at most */
	enum model_mutant mutant;
	bool is_only_safe;	/* whether it ends is not looked at */
	bool is_target_older;
};

/* Returns what went wrong, or NULL. */
static const char *explore(const struct plan *plan)
{
	struct search s = { .slots = 1u << 22 };
	static struct model m;
	uint32_t depth = 0;

	model_wrong = NULL;
	memset(&m, 0, sizeof(m));
	s.seen = calloc(s.slots, sizeof(*s.seen));
	assert_non_null(s.seen);
	model_init(&m, plan->n_units, plan->mutant);
	if (plan->start != START_NEW) {
		model_run(&m);
		if (plan->start == START_HANDED) {
			model_begin(&m, TARGET, (uint8_t)((1u << plan->n_units) - 1));
			model_run(&m);
		}
		memset(m.messages, 0, sizeof(m.messages));
		m.n_messages = 0;
	}
	m.txns_left = plan->txns;
	m.faults_left = plan->faults;
	m.closes_left = plan->closes;
	m.is_uniform = true;
	m.is_target_older = plan->is_target_older;
	add(&s, &m);
	for (; s.n_next && depth < plan->depth && !model_wrong; depth++) {
		struct model *swap = s.now;

		s.now = s.next;
		s.next = swap;
		s.n_now = s.n_next;
		s.n_next = 0;
		for (size_t i = 0; i < s.n_now && !model_wrong; i++) {
			static struct model here;

			memcpy(&here, &s.now[i], sizeof(here));
			model_check(&here);
			for (uint32_t dead = 0; dead <= NODES && !plan->is_only_safe; dead++)
				model_settle(&here, dead);
			for (uint32_t node = 0; node < NODES; node++)
				expand_node(&s, &here, node);
			for (uint32_t k = 0; k < here.n_messages; k++) {
				static struct model b;

				memcpy(&b, &here, sizeof(b));
				model_deliver(&b, k);
				add(&s, &b);
			}
		}
	}
	print_message("start %u, %u units, %u transactions, %u faults, closes %u, mutant %u: "
		      "%zu states, %u events%s: %s\n", plan->start, plan->n_units, plan->txns,
		      plan->faults, plan->closes, plan->mutant, s.n_seen, depth,
		      s.n_next ? " (cut)" : "",
		      model_wrong ? model_wrong : "ok");
	free(s.now);
	free(s.next);
	free(s.seen);
	return model_wrong;
}

static void every_order(void **state)
{
	static const struct plan plans[] = {
		/* All that can happen. */
		{ START_NEW, 1, 1, 1, 0, 99, MUTANT_NONE, false, false },
		{ START_SYNCED, 1, 3, 1, 0, 99, MUTANT_NONE, false, false },
		{ START_SYNCED, 1, 1, 2, 0, 99, MUTANT_NONE, false, false },
		{ START_HANDED, 1, 1, 2, 0, 99, MUTANT_NONE, false, false },
		{ START_SYNCED, 1, 1, 1, 1, 99, MUTANT_NONE, false, false },
		/* Up to a number of events. */
		{ START_SYNCED, 2, 2, 1, 0, 24, MUTANT_NONE, false, false },
		{ START_SYNCED, 2, 2, 1, 0, 20, MUTANT_NONE, false, true },
		{ START_SYNCED, 2, 1, 1, 2, 22, MUTANT_NONE, false, false },
		{ START_HANDED, 1, 1, 1, 3, 21, MUTANT_NONE, false, false },
		/* The source closes, then it is cancelled: it stays, and the target closes. */
		{ START_SYNCED, 1, 1, 1, 1 + 2 + 4, 20, MUTANT_NONE, false, false },
		{ START_SYNCED, 2, 1, 0, 1 + 2 + 4, 22, MUTANT_NONE, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		assert_null(explore(&plans[i]));
}

/* Each in the same small world, in which all is well without. */
static void broken_rules_are_found(void **state)
{
	struct plan plan = { START_SYNCED, 2, 2, 1, 0, 13, MUTANT_NONE, false, false };

	(void)state;
	assert_null(explore(&plan));
	for (uint32_t mutant = MUTANT_NONE + 1; mutant < MUTANTS; mutant++) {
		plan.mutant = mutant;
		/* Those that break the rules of waiting hurt nothing but the end. */
		plan.is_only_safe = mutant != MUTANT_NO_AGE && mutant != MUTANT_RUNS_WAITING;
		assert_non_null(explore(&plan));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_rules_are_found),
		cmocka_unit_test(every_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
