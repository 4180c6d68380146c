// SPDX-License-Identifier: GPL-2.0-or-later
/* See units_model.h. */
#include <assert.h>
#include <string.h>

#include "units_model.h"

static const struct units_config configs[NODES] = {
	{ .push_max = 1, .hold_ns = 1, .repeat_ns = 1, .fence_ns = 1 },
	{ .push_max = 1, .hold_ns = 1, .repeat_ns = 1, .fence_ns = 1, .is_target = true },
};
/* One per number of units, so that worlds compare as bytes. */
static struct units_config config_of[MODEL_UNITS + 1][NODES];

const char *model_wrong;

static void wrong(const char *what)
{
	if (!model_wrong)
		model_wrong = what;
}

/* ---- the executor ---- */

static void send(struct model *m, uint32_t node, const struct units_action *action)
{
	struct model_node *n = &m->nodes[node];
	struct units_message plain = units_message(&n->units, action);
	struct model_message message;
	uint32_t at = 0;

	memset(&message, 0, sizeof(message));
	message.to_node = (uint8_t)!node;
	message.kind = plain.kind;
	message.unit = (uint8_t)plain.unit;
	message.gen = (uint8_t)plain.gen;
	message.from = (uint8_t)plain.from;
	message.to = (uint8_t)plain.to;
	message.flag = plain.flag;
	message.birth = (uint8_t)plain.birth;
	if (plain.kind == UNITS_GIVE)
		message.value = n->value[plain.unit];
	for (uint32_t u = 0; plain.kind == UNITS_HELLO && u < m->n_units; u++) {
		struct units_entry entry = units_entry(&n->units, u);

		message.gens[u] = (uint8_t)entry.gen;
		message.holds[u] = entry.holds;
	}
	while (at < m->n_messages) {
		int order = memcmp(&m->messages[at], &message, sizeof(message));

		if (!order)
			return;
		if (order > 0)
			break;
		at++;
	}
	/* A full network loses the message. */
	if (m->n_messages == MODEL_MESSAGES)
		return;
	memmove(&m->messages[at + 1], &m->messages[at],
		(m->n_messages - at) * sizeof(message));
	memcpy(&m->messages[at], &message, sizeof(message));
	m->n_messages++;
}

static void append(struct model *m, uint32_t node, uint32_t what, uint32_t unit, uint64_t gen)
{
	struct model_node *n = &m->nodes[node];
	struct model_record *record = &n->disk.pending[n->disk.n];

	assert(n->disk.n < MODEL_PENDING);
	n->disk.n++;
	record->what = (uint8_t)what;
	record->unit = (uint8_t)unit;
	record->gen = (uint8_t)gen;
	memcpy(record->values, n->value, sizeof(record->values));
}

static void let_in(struct model *m, uint32_t node);
static void fail_waiting(struct model *m, uint32_t node, uint32_t unit);

static void stop_gates(struct model_node *n)
{
	for (uint32_t u = 0; u < MODEL_UNITS; u++) {
		gate_close(&n->gates[u]);
		n->is_draining[u] = false;
	}
}

static void act(struct model *m, uint32_t node, const struct units_actions *actions)
{
	struct model_node *n = &m->nodes[node];

	for (uint32_t i = 0; i < actions->n; i++) {
		const struct units_action *a = &actions->list[i];

		switch (a->what) {
		case UNITS_SEND_HELLO:
		case UNITS_SEND_ASK:
		case UNITS_SEND_GIVE:
		case UNITS_SEND_GOT:
		case UNITS_SEND_REFUSE:
		case UNITS_SEND_BYE:
		case UNITS_SEND_BYE_GOT:
			send(m, node, a);
			break;
		case UNITS_LOG_TAKEN:
		case UNITS_LOG_GAVE:
		case UNITS_LOG_SHARED:
		case UNITS_LOG_ALONE:
		case UNITS_LOG_CLOSED:
			append(m, node, a->what, a->unit, a->gen);
			break;
		case UNITS_OPEN:
			gate_open(&n->gates[a->unit]);
			n->is_draining[a->unit] = false;
			break;
		case UNITS_DRAIN:
			gate_close(&n->gates[a->unit]);
			n->is_draining[a->unit] = true;
			break;
		case UNITS_FAIL:
			fail_waiting(m, node, a->unit);
			break;
		case UNITS_DROP:
			n->value[a->unit] = 0;
			break;
		case UNITS_RECOVER:
			n->value[a->unit] = m->nodes[!node].disk.value[a->unit];
			break;
		case UNITS_FENCE:
			n->wants_fence = true;
			break;
		case UNITS_STOP:
			stop_gates(n);
			break;
		case UNITS_OVER:
			n->is_over = true;
			break;
		default:
			assert(0);
		}
	}
}

/* Those of a node have an order, and so have those of both in the same place. */
static uint64_t birth_of(const struct model *m, uint32_t node, uint32_t txn)
{
	return (txn << 1 | (node != m->is_target_older)) + 1;
}

/* Who waits for the unit; 0: nobody. */
static uint64_t oldest(const struct model *m, uint32_t node, uint32_t unit)
{
	const struct model_txn *txns = m->nodes[node].txns;

	for (uint32_t t = 0; t < MODEL_TXNS && m->mutant != MUTANT_NO_AGE; t++) {
		if (txns[t].is_waiting && txns[t].known & 1u << unit)
			return birth_of(m, node, t);
	}
	return 0;
}

static struct units *enter(struct model *m, uint32_t node)
{
	m->nodes[node].units.list = m->nodes[node].list;
	for (uint32_t u = 0; u < m->n_units; u++)
		m->nodes[node].list[u].here = oldest(m, node, u);
	return &m->nodes[node].units;
}

#define ACTIONS(name) \
	struct units_action name##_list[UNITS_ACTIONS_MAX(MODEL_UNITS)]; \
	struct units_actions name = { .room = UNITS_ACTIONS_MAX(MODEL_UNITS), .list = name##_list }

/* Carries out, and lets those in for whom gates have opened. */
static void done(struct model *m, uint32_t node, const struct units_actions *actions)
{
	act(m, node, actions);
	let_in(m, node);
	model_leave(m, node);
}

/* ---- transactions ---- */

static void let_go(struct model_node *n, struct model_txn *txn)
{
	for (uint32_t u = 0; u < MODEL_UNITS; u++) {
		if (txn->pinned & 1u << u)
			gate_unpin(&n->gates[u]);
	}
	txn->pinned = 0;
}

static void end_txn(struct model *m, uint32_t node, struct model_txn *txn, bool is_done)
{
	let_go(&m->nodes[node], txn);
	memset(txn, 0, sizeof(*txn));
	m->done += is_done;
	m->failed += !is_done;
}

/* False: it is not here, and the transaction must wait. */
static bool meet(struct model *m, uint32_t node, struct model_txn *txn, uint32_t u)
{
	txn->known |= (uint8_t)(1u << u);
	if (txn->pinned & 1u << u)
		return true;
	if (!gate_pin(&m->nodes[node].gates[u]))
		return false;
	txn->pinned |= (uint8_t)(1u << u);
	return true;
}

/* False: the transaction has ended. */
static bool want(struct model *m, uint32_t node, struct model_txn *txn, uint32_t u)
{
	struct model_node *n = &m->nodes[node];
	enum units_answer answer;
	ACTIONS(actions);

	n->list[u].here = oldest(m, node, u);
	answer = units_want(&n->units, u, 0, &actions);
	if (answer == UNITS_GO)
		wrong("a gate is closed, and the unit is OWNED");
	act(m, node, &actions);
	if (answer == UNITS_GONE && txn->units)
		end_txn(m, node, txn, false);
	return txn->units;
}

/* G2, for those that it knows of: all are pinned at once, or none. */
static bool collect(struct model *m, uint32_t node, struct model_txn *txn)
{
	uint8_t known = txn->known;
	bool has_all = true;

	for (uint32_t u = 0; u < m->n_units; u++) {
		if (!(known & 1u << u) || txn->pinned & 1u << u ||
		    m->nodes[node].gates[u].is_open)
			continue;
		has_all = false;
		if (!want(m, node, txn, u))
			return false;
	}
	for (uint32_t u = 0; has_all && u < m->n_units; u++) {
		if (known & 1u << u)
			meet(m, node, txn, u);
	}
	return has_all;
}

static void advance(struct model *m, uint32_t node, struct model_txn *txn)
{
	while (txn->units) {
		bool is_through = true;

		if (txn->is_waiting && !collect(m, node, txn))
			return;
		txn->is_waiting = false;
		/* It runs, the source upwards and the target downwards, and meets its units. */
		for (uint32_t i = 0; is_through && i < m->n_units; i++) {
			uint32_t u = node == TARGET ? m->n_units - 1 - i : i;

			if (txn->units & 1u << u)
				is_through = meet(m, node, txn, u);
		}
		if (is_through)
			return;
		/* G1 */
		if (m->mutant != MUTANT_RUNS_WAITING)
			let_go(&m->nodes[node], txn);
		txn->is_waiting = true;
	}
}

static void let_in(struct model *m, uint32_t node)
{
	struct model_node *n = &m->nodes[node];

	if (!n->is_up || n->units.mode == UNITS_STOPPED)
		return;
	for (uint32_t t = 0; t < MODEL_TXNS; t++) {
		if (n->txns[t].is_waiting)
			advance(m, node, &n->txns[t]);
	}
}

static void fail_waiting(struct model *m, uint32_t node, uint32_t unit)
{
	struct model_node *n = &m->nodes[node];

	for (uint32_t t = 0; t < MODEL_TXNS; t++) {
		struct model_txn *txn = &n->txns[t];

		if (txn->is_waiting && txn->known & 1u << unit && !(txn->pinned & 1u << unit))
			end_txn(m, node, txn, false);
	}
}

bool model_begin(struct model *m, uint32_t node, uint8_t units)
{
	struct model_node *n = &m->nodes[node];

	if (!n->is_up || n->units.mode == UNITS_STOPPED)
		return false;
	for (uint32_t t = 0; t < MODEL_TXNS; t++) {
		if (n->txns[t].units)
			continue;
		enter(m, node);
		n->txns[t].units = units;
		advance(m, node, &n->txns[t]);
		model_leave(m, node);
		return true;
	}
	return false;
}

bool model_commit(struct model *m, uint32_t node, uint32_t t)
{
	struct model_node *n = &m->nodes[node];
	struct model_txn *txn = &n->txns[t];
	uint8_t units = txn->units;

	if (!n->is_up || !units || txn->is_waiting || n->disk.n >= MODEL_PENDING - 4)
		return false;
	if (txn->pinned != units && m->mutant == MUTANT_NONE)
		wrong("a transaction runs without its pins");
	for (uint32_t u = 0; u < m->n_units; u++)
		n->value[u] = (uint8_t)(n->value[u] + (units >> u & 1));
	append(m, node, MODEL_REDO, units, 0);
	enter(m, node);
	end_txn(m, node, txn, true);
	model_leave(m, node);
	return true;
}

/* ---- other events ---- */

bool model_tick(struct model *m, uint32_t node)
{
	ACTIONS(actions);

	if (!m->nodes[node].is_up)
		return false;
	enter(m, node);
	for (uint32_t u = 0; u < m->n_units; u++) {
		units_here(&m->nodes[node].units, u, oldest(m, node, u), 1, &actions);
		act(m, node, &actions);
	}
	units_tick(&m->nodes[node].units, 1, &actions);
	done(m, node, &actions);
	return true;
}

bool model_drained(struct model *m, uint32_t node, uint32_t unit)
{
	struct model_node *n = &m->nodes[node];
	ACTIONS(actions);

	if (!n->is_up || !n->is_draining[unit])
		return false;
	if (n->gates[unit].pins && m->mutant != MUTANT_NO_DRAIN)
		return false;
	for (uint32_t i = 0; i < n->disk.n && m->mutant != MUTANT_NO_FLUSH; i++) {
		if (n->disk.pending[i].what == MODEL_REDO &&
		    n->disk.pending[i].unit & 1u << unit)
			return false;
	}
	n->is_draining[unit] = false;
	units_drained(enter(m, node), unit, 0, &actions);
	done(m, node, &actions);
	return true;
}

static void fold(struct model *m, struct model_node *n, const struct model_record *record)
{
	struct model_disk *disk = &n->disk;

	switch (record->what) {
	case MODEL_REDO:
		for (uint32_t u = 0; u < m->n_units; u++) {
			if (!(record->unit & 1u << u))
				continue;
			disk->value[u] = record->values[u];
			/* On disk it is acknowledged. */
			if (m->acked[u] < record->values[u])
				m->acked[u] = record->values[u];
		}
		break;
	case UNITS_LOG_TAKEN:
		disk->gen[record->unit] = record->gen;
		disk->is_mine[record->unit] = true;
		disk->value[record->unit] = record->values[record->unit];
		break;
	case UNITS_LOG_GAVE:
		disk->gen[record->unit] = record->gen;
		disk->is_mine[record->unit] = false;
		break;
	case UNITS_LOG_SHARED:
		disk->was = UNITS_WAS_SHARED;
		break;
	case UNITS_LOG_ALONE:
		disk->was = UNITS_WAS_ALONE;
		for (uint32_t u = 0; u < m->n_units; u++) {
			disk->gen[u] = record->gen;
			disk->is_mine[u] = true;
			disk->value[u] = record->values[u];
		}
		break;
	case UNITS_LOG_CLOSED:
		disk->was = UNITS_WAS_CLOSED;
		break;
	default:
		assert(0);
	}
}

static void fold_first(struct model *m, struct model_node *n, uint32_t survive)
{
	for (uint32_t i = 0; i < survive; i++)
		fold(m, n, &n->disk.pending[i]);
	memset(n->disk.pending, 0, sizeof(n->disk.pending));
	n->disk.n = 0;
}

bool model_sync(struct model *m, uint32_t node, bool is_on_disk)
{
	struct model_node *n = &m->nodes[node];
	struct model_record records[MODEL_PENDING];
	uint32_t n_records = n->disk.n;

	if (!n->is_up || !n_records)
		return false;
	is_on_disk &= !n->is_fenced;
	memcpy(records, n->disk.pending, sizeof(records));
	n->has_failed |= !is_on_disk;
	/* What failed may be there or not; here it is not, a crash covers the other case. */
	fold_first(m, n, is_on_disk ? n_records : 0);
	enter(m, node);
	for (uint32_t i = 0; i < n_records; i++) {
		ACTIONS(actions);

		if (records[i].what == MODEL_REDO || records[i].what == UNITS_LOG_GAVE) {
			if (is_on_disk)
				continue;
			units_stop(&n->units, &actions);
		} else {
			units_logged(&n->units, records[i].what, records[i].unit, records[i].gen,
				     is_on_disk, 0, &actions);
		}
		act(m, node, &actions);
	}
	let_in(m, node);
	model_leave(m, node);
	return true;
}

/* MUTANT_LOG_ORDER: reported, and not there. */
static void report_early(struct model *m, uint32_t node)
{
	struct model_node *n = &m->nodes[node];

	for (uint32_t i = 0; i < n->disk.n; i++) {
		ACTIONS(actions);

		if (n->disk.pending[i].what != UNITS_LOG_TAKEN)
			continue;
		units_logged(enter(m, node), UNITS_LOG_TAKEN, n->disk.pending[i].unit,
			     n->disk.pending[i].gen, true, 0, &actions);
		done(m, node, &actions);
	}
}

bool model_crash(struct model *m, uint32_t node, uint32_t survive)
{
	struct model_node *n = &m->nodes[node];

	if (!n->is_up || survive > n->disk.n || (n->is_fenced && survive))
		return false;
	fold_first(m, n, survive);
	for (uint32_t t = 0; t < MODEL_TXNS; t++)
		m->failed += n->txns[t].units != 0;
	memset(&n->units, 0, sizeof(n->units));
	memset(n->list, 0, sizeof(n->list));
	memset(n->gates, 0, sizeof(n->gates));
	memset(n->txns, 0, sizeof(n->txns));
	memset(n->value, 0, sizeof(n->value));
	memset(n->is_draining, 0, sizeof(n->is_draining));
	n->is_up = n->wants_fence = n->is_over = n->has_failed = false;
	return true;
}

static bool has_ended(const struct model *m, uint32_t node)
{
	return m->nodes[node].is_fenced || m->nodes[node].disk.was == UNITS_WAS_CLOSED;
}

bool model_restart(struct model *m, uint32_t node)
{
	struct model_node *n = &m->nodes[node];
	enum units_was was = n->disk.was;
	ACTIONS(actions);

	if (n->is_up || n->is_fenced)
		return false;
	n->is_up = true;
	for (uint32_t u = 0; u < m->n_units; u++) {
		n->list[u].gen = n->disk.gen[u];
		n->list[u].is_mine = n->disk.is_mine[u];
		n->value[u] = n->disk.value[u];
	}
	if (m->mutant == MUTANT_SERVE_AT_ONCE && n->disk.incarnation && n->disk.is_mine[0])
		was = UNITS_WAS_ALONE;
	n->disk.incarnation++;
	units_start(enter(m, node), &config_of[m->n_units][node], n->list, was,
		    n->disk.incarnation, 0, &actions);
	act(m, node, &actions);
	if (was == UNITS_WAS_ALONE && !has_ended(m, !node)) {
		units_share(&n->units, &actions);
		act(m, node, &actions);
	}
	model_leave(m, node);
	if (m->nodes[!node].is_fenced)
		model_fence(m, node, 0);
	return true;
}

bool model_fence(struct model *m, uint32_t by, uint32_t survive)
{
	struct model_node *n = &m->nodes[by], *peer = &m->nodes[!by];
	struct units_entry table[MODEL_UNITS];
	ACTIONS(actions);

	if (!n->is_up || n->is_fenced || survive > peer->disk.n ||
	    (peer->is_fenced && survive) ||
	    n->units.mode != UNITS_SHARED)
		return false;
	if (m->mutant != MUTANT_NO_FENCE) {
		fold_first(m, peer, survive);
		peer->is_fenced = true;
	}
	for (uint32_t u = 0; u < MODEL_UNITS; u++) {
		table[u].gen = peer->disk.gen[u];
		table[u].holds = peer->disk.is_mine[u] ? UNITS_MINE : UNITS_NOT;
	}
	n->wants_fence = false;
	units_peer_fenced(enter(m, by), table, &actions);
	done(m, by, &actions);
	return true;
}

bool model_close(struct model *m, uint32_t node)
{
	struct model_node *n = &m->nodes[node];
	ACTIONS(actions);

	if (!n->is_up || n->units.mode != UNITS_SHARED || n->units.is_closing)
		return false;
	units_close(enter(m, node), 0, &actions);
	done(m, node, &actions);
	return true;
}

bool model_stay(struct model *m, uint32_t node)
{
	struct model_node *n = &m->nodes[node];
	ACTIONS(actions);

	if (!n->is_up || n->units.mode != UNITS_SHARED || !n->units.is_closing)
		return false;
	units_stay(enter(m, node), &actions);
	done(m, node, &actions);
	return true;
}

bool model_full(struct model *m, uint32_t node, bool is_full)
{
	ACTIONS(actions);

	if (!m->nodes[node].is_up)
		return false;
	units_full(enter(m, node), is_full, 0, &actions);
	done(m, node, &actions);
	return true;
}

bool model_lost(struct model *m, uint32_t node)
{
	if (!m->nodes[node].is_up)
		return false;
	units_peer_lost(enter(m, node), 0);
	model_leave(m, node);
	return true;
}

bool model_give_up(struct model *m, uint32_t node, uint32_t unit)
{
	struct model_node *n = &m->nodes[node];
	struct units_message refuse = {
		.from = n->units.peer, .to = n->units.incarnation, .unit = unit,
		.gen = n->list[unit].offer, .kind = UNITS_REFUSE,
	};
	ACTIONS(actions);

	if (!n->is_up || n->list[unit].state != UNIT_GIVING)
		return false;
	units_receive(enter(m, node), &refuse, NULL, 0, &actions);
	done(m, node, &actions);
	return true;
}

void model_receive(struct model *m, const struct model_message *message)
{
	uint32_t node = message->to_node;
	struct model_node *n = &m->nodes[node];
	struct units_message plain = {
		.from = message->from, .to = message->to, .gen = message->gen,
		.unit = message->unit, .kind = message->kind, .flag = message->flag,
		.birth = message->birth,
	};
	struct units_entry table[MODEL_UNITS];
	ACTIONS(actions);

	if (!n->is_up)
		return;
	if (m->mutant == MUTANT_NO_SESSION && message->kind != UNITS_HELLO) {
		plain.from = n->units.peer;
		plain.to = n->units.incarnation;
	}
	for (uint32_t u = 0; u < MODEL_UNITS; u++)
		table[u] = (struct units_entry){ message->gens[u], message->holds[u] };
	units_receive(enter(m, node), &plain, table, 0, &actions);
	for (uint32_t i = 0; i < actions.n; i++) {
		struct units_actions one = { 1, 1, &actions.list[i] };

		/* The records that came are put in place before they are logged. */
		if (actions.list[i].what == UNITS_LOG_TAKEN)
			n->value[message->unit] = message->value;
		act(m, node, &one);
	}
	let_in(m, node);
	model_leave(m, node);
	if (m->mutant == MUTANT_LOG_ORDER)
		report_early(m, node);
}

void model_deliver(struct model *m, uint32_t at)
{
	struct model_message message;

	memcpy(&message, &m->messages[at], sizeof(message));
	model_receive(m, &message);
}

void model_init(struct model *m, uint32_t n_units, enum model_mutant mutant)
{
	memset(m, 0, sizeof(*m));
	for (uint32_t i = 0; i < NODES; i++) {
		config_of[n_units][i] = configs[i];
		config_of[n_units][i].n_units = n_units;
	}
	m->n_units = (uint8_t)n_units;
	m->mutant = (uint8_t)mutant;
	m->nodes[TARGET].disk.was = UNITS_WAS_SHARED;
	for (uint32_t u = 0; u < n_units; u++) {
		m->nodes[SOURCE].disk.gen[u] = 1;
		m->nodes[SOURCE].disk.is_mine[u] = true;
	}
	model_restart(m, SOURCE);
	model_restart(m, TARGET);
}
