// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/move/facts.h"

#include <errno.h>

#define FACTS_FORMAT	0x4542424d56303032ull	/* "EBBMV002" */
#define FACTS_HEAD	(1ull << 32)		/* key of the head; units have their numbers */

/* The head. was: ALONE: all units are here by gen, whatever their rows say. */
struct head {
	uint64_t format;
	uint32_t was;		/* enum units_was */
	uint32_t is_source;	/* 0 or 1: role of this node in the relocation */
	uint64_t gen;
	uint64_t incarnation;
	uint64_t n_units;
	uint64_t relocation;	/* its number; 0: there was none */
};

struct owned {
	uint64_t gen;
	uint64_t is_mine;	/* 0 or 1 */
};

union fact {
	struct head head;
	struct owned owned;
	uint8_t bytes[48];
};

int facts_open(struct facts *facts, struct oltp_engine *engine, uint32_t n_units)
{
	facts->engine = engine;
	facts->n_units = n_units;
	return oltp_table_create(engine, sizeof(union fact), UNITS_MAX + 1, &facts->table);
}

/* Returns OLTP_NOT_FOUND if there is none. */
static enum oltp_rc get(struct facts *facts, struct oltp_worker *worker, uint64_t key,
			union fact *ret)
{
	const void *record;
	enum oltp_rc rc = oltp_txn_read(worker, facts->table, key, &record);

	if (!rc)
		*ret = *(const union fact *)record;
	return rc;
}

static enum oltp_rc put(struct facts *facts, struct oltp_worker *worker, uint64_t key,
			const union fact *fact)
{
	const struct oltp_span span = { 0, sizeof(*fact) };
	void *record;
	enum oltp_rc rc = oltp_txn_update(worker, facts->table, key, &span, 1, &record);

	if (rc == OLTP_NOT_FOUND)
		return oltp_txn_insert(worker, facts->table, key, fact);
	if (!rc)
		*(union fact *)record = *fact;
	return rc;
}

static enum oltp_rc put_owned(struct facts *facts, struct oltp_worker *worker, uint32_t unit,
			      uint64_t gen, bool is_mine)
{
	const union fact fact = { .owned = { gen, is_mine } };

	return put(facts, worker, unit, &fact);
}

/* What a transaction does. */
struct step {
	struct facts *facts;
	struct oltp_worker *worker;
	enum units_do what;
	uint32_t unit;
	uint64_t gen, shared_by;
	const struct unit *read_list;
	struct unit *list;
	bool is_target, is_wrong;
	struct facts_found found;
};

static enum oltp_rc transact(struct step *step, enum oltp_rc (*run)(struct step *step))
{
	enum oltp_rc rc;

	do {
		rc = oltp_txn_begin(step->worker);
		if (rc)
			return rc;
		rc = run(step);
		if (!rc)
			rc = oltp_txn_commit(step->worker);
		if (rc)
			oltp_txn_abort(step->worker);
		if (rc == OLTP_COLD && !oltp_cold_wait(step->worker))
			rc = OLTP_CONFLICT;
	} while (rc == OLTP_CONFLICT);
	return rc;
}

static int error_of(enum oltp_rc rc)
{
	return !rc ? 0 : rc == OLTP_NO_MEMORY || rc == OLTP_FULL ? -ENOMEM : -EIO;
}

static enum oltp_rc read_unit(struct step *step, uint32_t u, const struct head *head)
{
	struct unit *unit = &step->list[u];
	union fact fact = { 0 };
	enum oltp_rc rc = OLTP_OK;

	if (head->was == UNITS_WAS_ALONE) {
		unit->gen = head->gen;
		unit->is_mine = true;
		return OLTP_OK;
	}
	rc = get(step->facts, step->worker, u / (step->facts->n_units / head->n_units), &fact);
	unit->gen = fact.owned.gen;
	unit->is_mine = fact.owned.is_mine && head->was == UNITS_WAS_SHARED;
	return rc == OLTP_NOT_FOUND ? OLTP_OK : rc;
}

static enum oltp_rc read_all(struct step *step)
{
	union fact fact = {
		.head = { .format = FACTS_FORMAT,
			  .was = step->is_target ? UNITS_WAS_SHARED : UNITS_WAS_ALONE,
			  .gen = !step->is_target, .n_units = step->facts->n_units },
	};
	enum oltp_rc rc = get(step->facts, step->worker, FACTS_HEAD, &fact);

	if (rc == OLTP_NOT_FOUND)
		rc = OLTP_OK;
	step->is_wrong = fact.head.format != FACTS_FORMAT ||
			 !fact.head.n_units || step->facts->n_units % fact.head.n_units ||
			 fact.head.was > UNITS_WAS_CLOSED;
	if (rc || step->is_wrong)
		return rc ?: OLTP_INVALID;
	step->found.was = (enum units_was)fact.head.was;
	step->found.n_units = fact.head.n_units;
	step->found.incarnation = fact.head.incarnation;
	step->found.role = (struct facts_role){ fact.head.relocation, fact.head.is_source };
	for (uint32_t u = 0; !rc && u < step->facts->n_units; u++)
		rc = read_unit(step, u, &fact.head);
	return rc;
}

int facts_read(struct facts *facts, struct oltp_worker *worker, bool is_target, struct unit *list,
	       struct facts_found *ret_found)
{
	struct step step = { .facts = facts, .worker = worker, .is_target = is_target,
			     .list = list };
	enum oltp_rc rc = transact(&step, read_all);

	*ret_found = step.found;
	return step.is_wrong ? -EUCLEAN : error_of(rc);
}

static enum oltp_rc begin(struct step *step)
{
	const union fact fact = {
		.head = { .format = FACTS_FORMAT, .was = step->found.was,
			  .is_source = step->found.role.is_source, .gen = step->read_list[0].gen,
			  .incarnation = step->found.incarnation + 1,
			  .n_units = step->facts->n_units,
			  .relocation = step->found.role.relocation },
	};
	const struct unit *list = step->read_list;
	enum oltp_rc rc = put(step->facts, step->worker, FACTS_HEAD, &fact);

	/* One that is alone has all, whatever rows say. */
	if (step->found.n_units == step->facts->n_units || step->found.was == UNITS_WAS_ALONE)
		return rc;
	for (uint32_t u = 0; !rc && u < step->facts->n_units; u++)
		rc = put_owned(step->facts, step->worker, u, list[u].gen, list[u].is_mine);
	return rc;
}

int facts_begin(struct facts *facts, struct oltp_worker *worker, const struct unit *list,
		const struct facts_found *found)
{
	struct step step = { .facts = facts, .worker = worker, .read_list = list,
			     .found = *found };
	int rc = error_of(transact(&step, begin));

	return rc ?: oltp_durable_wait(facts->engine, oltp_worker_epoch(worker));
}

static enum oltp_rc set_head(struct step *step, enum units_was was)
{
	union fact fact;
	enum oltp_rc rc = get(step->facts, step->worker, FACTS_HEAD, &fact);

	if (rc)
		return rc == OLTP_NOT_FOUND ? OLTP_INVALID : rc;
	fact.head.was = was;
	fact.head.gen = step->gen;
	if (step->shared_by) {
		fact.head.relocation = step->shared_by;
		fact.head.is_source = true;
	}
	return put(step->facts, step->worker, FACTS_HEAD, &fact);
}

static enum oltp_rc rename_head(struct step *step)
{
	union fact fact;
	enum oltp_rc rc = get(step->facts, step->worker, FACTS_HEAD, &fact);

	if (rc)
		return rc == OLTP_NOT_FOUND ? OLTP_INVALID : rc;
	fact.head.relocation = step->shared_by;
	return put(step->facts, step->worker, FACTS_HEAD, &fact);
}

int facts_rename(struct facts *facts, struct oltp_worker *worker, uint64_t relocation)
{
	struct step step = { .facts = facts, .worker = worker, .shared_by = relocation };
	int rc = error_of(transact(&step, rename_head));

	return rc ?: oltp_durable_wait(facts->engine, oltp_worker_epoch(worker));
}

static enum oltp_rc write(struct step *step)
{
	enum oltp_rc rc = OLTP_OK;

	switch (step->what) {
	case UNITS_LOG_TAKEN:
	case UNITS_LOG_GAVE:
		return put_owned(step->facts, step->worker, step->unit, step->gen,
				 step->what == UNITS_LOG_TAKEN);
	case UNITS_LOG_SHARED:
		/* Rows are those of an earlier relocation, or there are none. */
		for (uint32_t u = 0; !rc && u < step->facts->n_units; u++)
			rc = put_owned(step->facts, step->worker, u, step->read_list[u].gen, true);
		return rc ?: set_head(step, UNITS_WAS_SHARED);
	case UNITS_LOG_ALONE:
		return set_head(step, UNITS_WAS_ALONE);
	case UNITS_LOG_CLOSED:
		return set_head(step, UNITS_WAS_CLOSED);
	default:
		return OLTP_INVALID;
	}
}

int facts_write(struct facts *facts, struct oltp_worker *worker, enum units_do what,
		uint32_t unit, uint64_t gen, const struct unit *list, uint64_t shared_by,
		uint64_t *ret_epoch)
{
	struct step step = { .facts = facts, .worker = worker, .what = what, .unit = unit,
			     .gen = gen, .read_list = list,
			     .shared_by = what == UNITS_LOG_SHARED ? shared_by : 0 };
	enum oltp_rc rc = transact(&step, write);

	*ret_epoch = oltp_worker_epoch(worker);
	return error_of(rc);
}
