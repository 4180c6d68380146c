// SPDX-License-Identifier: GPL-2.0-or-later
/* Between the events of a world of units_model.h: what must hold, and how it must end. */
#include <stdio.h>
#include <string.h>

#include "units_model.h"

#define ROUNDS_MAX	300u

static void wrong(const char *what)
{
	if (!model_wrong)
		model_wrong = what;
}

static uint64_t timeless(uint64_t ns)
{
	return ns == UINT64_MAX ? ns : 0;
}

void model_leave(struct model *m, uint32_t node)
{
	struct units *units = &m->nodes[node].units;
	uint64_t due_ns = UINT64_MAX;

	units->list = NULL;
	memset(&units->stats, 0, sizeof(units->stats));
	units->greet_ns = timeless(units->greet_ns);
	units->fence_ns = timeless(units->fence_ns);
	for (uint32_t u = 0; u < m->n_units; u++) {
		struct unit *unit = &m->nodes[node].list[u];

		if (unit->due_ns < units->due_ns)
			wrong("a unit is due before units_tick is called");
		unit->due_ns = timeless(unit->due_ns);
		if (unit->due_ns < due_ns)
			due_ns = unit->due_ns;
		unit->ready_ns = 0;
		unit->has_left = false;
		unit->here = 0;
		if (!unit->is_asked)
			unit->asked_for = 0;
		if (!unit->is_wanted)
			unit->said = 0;
	}
	/* Worlds that differ in units.due_ns alone count as one: it becomes the earliest due_ns. */
	units->due_ns = due_ns;
}

static bool may_write(const struct model *m, uint32_t node, uint32_t u)
{
	const struct model_node *n = &m->nodes[node];

	return n->is_up && !n->is_fenced && (n->gates[u].is_open || n->gates[u].pins);
}

/* The node whose log has the unit by the higher generation; NODES: none. */
static uint32_t owner(const struct model *m, uint32_t u)
{
	const struct model_disk *s = &m->nodes[SOURCE].disk, *t = &m->nodes[TARGET].disk;

	if (s->is_mine[u] && (!t->is_mine[u] || s->gen[u] > t->gen[u]))
		return SOURCE;
	return t->is_mine[u] && (!s->is_mine[u] || t->gen[u] > s->gen[u]) ? TARGET : NODES;
}

void model_print(const struct model *m)
{
	static const char *const names[NODES] = { "source", "target" };

	for (uint32_t i = 0; i < NODES; i++) {
		const struct model_node *n = &m->nodes[i];

		printf("%s: %s%s incarnation %u, peer %u, mode %u%s%s; log %u records:", names[i],
		       n->is_up ? "up" : "down", n->is_fenced ? " fenced" : "",
		       n->disk.incarnation, (unsigned int)n->units.peer, n->units.mode,
		       n->units.is_synced ? " synced" : "", n->units.is_closing ? " closing" : "",
		       n->disk.n);
		for (uint32_t k = 0; k < n->disk.n; k++)
			printf(" %u/%u/%u", n->disk.pending[k].what, n->disk.pending[k].unit,
			       n->disk.pending[k].gen);
		for (uint32_t u = 0; u < m->n_units; u++) {
			const struct unit *unit = &n->list[u];

			printf("\n\tunit %u: state %u gen %u offer %u%s%s value %u; gate %u, "
			       "pins %u; disk: gen %u%s value %u; acknowledged %u", u, unit->state,
			       (unsigned int)unit->gen, (unsigned int)unit->offer,
			       unit->is_wanted ? " wanted" : "", unit->is_asked ? " asked" : "",
			       n->value[u], n->gates[u].is_open, n->gates[u].pins, n->disk.gen[u],
			       n->disk.is_mine[u] ? " mine" : "", n->disk.value[u], m->acked[u]);
		}
		for (uint32_t t = 0; t < MODEL_TXNS; t++)
			printf("\n\ttransaction: units %x, known %x, pinned %x, waits %u",
			       n->txns[t].units, n->txns[t].known, n->txns[t].pinned,
			       n->txns[t].is_waiting);
		printf("\n");
	}
	for (uint32_t k = 0; k < m->n_messages; k++) {
		const struct model_message *a = &m->messages[k];

		printf("\tto %s: kind %u, unit %u, gen %u, %u to %u, flag %u, value %u\n",
		       names[a->to_node], a->kind, a->unit, a->gen, a->from, a->to, a->flag,
		       a->value);
	}
}

void model_check(const struct model *m)
{
	for (uint32_t u = 0; u < m->n_units; u++) {
		uint32_t by = owner(m, u);

		if (may_write(m, SOURCE, u) && may_write(m, TARGET, u))
			wrong("U1: two nodes may write");
		for (uint32_t i = 0; i < NODES; i++) {
			if (may_write(m, i, u) && m->nodes[i].value[u] < m->acked[u])
				wrong("U2: a node serves a unit without what was acknowledged");
		}
		if (by == NODES)
			wrong("U2: no log has the unit, or both by the same generation");
		else if (m->nodes[by].disk.value[u] < m->acked[u])
			wrong("U2: what was acknowledged is not in the owner's log");
		else if (m->is_uniform && owner(m, 0) != NODES &&
			 m->nodes[by].disk.value[u] != m->nodes[owner(m, 0)].disk.value[0])
			wrong("U3: half of a transaction is on disk");
	}
	for (uint32_t i = 0; i < NODES; i++) {
		const struct model_node *n = &m->nodes[i];

		if (n->is_up && n->units.mode == UNITS_STOPPED && !n->is_fenced && !n->has_failed)
			wrong("a node stopped, and its peer did nothing wrong");
	}
}

/* ---- messages that do not arrive ---- */

void model_lose(struct model *m, uint32_t at)
{
	m->n_messages--;
	memmove(&m->messages[at], &m->messages[at + 1],
		(m->n_messages - at) * sizeof(m->messages[0]));
	memset(&m->messages[m->n_messages], 0, sizeof(m->messages[0]));
}

void model_prune(struct model *m)
{
	for (uint32_t i = m->n_messages; i-- > 0;) {
		const struct model_message *a = &m->messages[i];

		if (a->kind != UNITS_HELLO && m->mutant != MUTANT_NO_SESSION &&
		    (a->to < m->nodes[a->to_node].disk.incarnation ||
		     m->nodes[a->to_node].is_fenced))
			model_lose(m, i);
	}
}

/* ---- U5 ---- */

static bool is_busy(const struct model *m, uint32_t node)
{
	for (uint32_t t = 0; t < MODEL_TXNS; t++) {
		if (m->nodes[node].txns[t].units)
			return true;
	}
	return false;
}

static bool is_at_rest(const struct model *m, uint32_t dead)
{
	const struct model_node *s = &m->nodes[SOURCE], *t = &m->nodes[TARGET];

	for (uint32_t i = 0; i < NODES; i++) {
		const struct model_node *n = &m->nodes[i];

		if (n->is_fenced || !n->is_up)
			continue;
		if (is_busy(m, i) || n->disk.n)
			return false;
		if (n->units.mode == UNITS_SHARED ? !n->units.is_synced || n->units.is_closing :
		    n->units.mode != UNITS_ALONE && n->units.mode != UNITS_ENDED)
			return false;
		if (n->units.mode == UNITS_ENDED && !n->is_over)
			return false;
	}
	if (dead != NODES)
		return m->nodes[!dead].units.mode == UNITS_ALONE;
	if (s->is_fenced || t->is_fenced)
		return m->nodes[s->is_fenced].units.mode == UNITS_ALONE;
	return (s->units.mode == UNITS_SHARED) == (t->units.mode == UNITS_SHARED) &&
	       (s->units.mode != t->units.mode || s->units.mode == UNITS_SHARED);
}

static void settle_node(struct model *m, uint32_t node)
{
	struct model_node *n = &m->nodes[node];

	if (!n->is_up)
		return;
	for (uint32_t t = 0; t < MODEL_TXNS; t++)
		model_commit(m, node, t);
	model_tick(m, node);
	model_sync(m, node, true);
	for (uint32_t u = 0; u < m->n_units; u++)
		model_drained(m, node, u);
}

static void settle_messages(struct model *m)
{
	struct model_message now[MODEL_MESSAGES];
	uint32_t n = m->n_messages;

	memcpy(now, m->messages, sizeof(now));
	memset(m->messages, 0, sizeof(m->messages));
	m->n_messages = 0;
	for (uint32_t i = 0; i < n; i++)
		model_receive(m, &now[i]);
}

void model_run(struct model *m)
{
	for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
		for (uint32_t i = 0; i < NODES; i++)
			settle_node(m, i);
		settle_messages(m);
		if (is_at_rest(m, NODES))
			return;
	}
	wrong("U5: it does not end");
}

static void revive(struct model *m, uint32_t dead)
{
	for (uint32_t i = 0; i < NODES; i++) {
		struct model_node *n = &m->nodes[i];

		if (n->is_up && (i == dead || n->units.mode == UNITS_STOPPED))
			model_crash(m, i, 0);
		if (!n->is_up && i != dead)
			model_restart(m, i);
	}
}

/* A node that has anything fences a peer that stays away; one that has nothing is told to. */
static void check_fence(struct model *m, uint32_t node)
{
	struct model_node *n = &m->nodes[node];
	bool has_any = false;

	for (uint32_t u = 0; u < m->n_units; u++)
		has_any |= n->disk.is_mine[u];
	if (n->units.mode != UNITS_SHARED || m->nodes[!node].is_fenced || !has_any)
		return;
	model_lost(m, node);
	model_tick(m, node);
	if (!n->wants_fence && owner(m, 0) == node)
		wrong("U5: a peer that stays away is not fenced");
}

void model_settle(const struct model *start, uint32_t dead)
{
	const uint8_t all = (uint8_t)((1u << start->n_units) - 1);
	struct model m;

	memcpy(&m, start, sizeof(m));
	memset(m.messages, 0, sizeof(m.messages));
	m.n_messages = 0;
	revive(&m, dead);
	/* A node that was fenced, or has given all and is leaving, takes nothing over. */
	if (dead != NODES && (m.nodes[!dead].is_fenced ||
			      m.nodes[!dead].units.mode >= UNITS_LEAVING))
		return;
	if (dead != NODES)
		check_fence(&m, !dead);
	for (uint32_t i = 0; i < NODES; i++) {
		model_full(&m, i, false);
		model_begin(&m, i, all);
	}
	for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
		for (uint32_t i = 0; i < NODES; i++)
			settle_node(&m, i);
		settle_messages(&m);
		revive(&m, dead);
		for (uint32_t i = 0; i < NODES; i++) {
			if (i == dead || m.nodes[i].is_fenced)
				model_fence(&m, !i, 0);
		}
		model_check(&m);
		if (is_at_rest(&m, dead))
			return;
	}
	if (!model_wrong && start->mutant == MUTANT_NONE)
		model_print(&m);
	wrong("U5: it does not end");
}
