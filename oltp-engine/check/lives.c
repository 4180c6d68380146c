// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows that are added, deleted and added again. A reader that finds no row does not see which of
 * its absences it has met: the one before its first life, or after which one? Lives follow each
 * other, so under strict serializability time most often leaves only one possibility: the delete
 * that began the absence was invoked before the reader ended, and the insert that ended the absence
 * ended after the reader was invoked. Where more are possible, or the model does not look at time,
 * nothing is concluded.
 */
#include "versions.h"

struct sorting {
	struct life life;
	uint64_t insert_end;
};

static const struct history_txn *txn_of(const struct checker *c, uint32_t version)
{
	return &c->history->txns.at[c->versions.at[version].txn];
}

static int compare(const void *a, const void *b)
{
	const struct sorting *x = a, *y = b;

	return (x->insert_end > y->insert_end) - (x->insert_end < y->insert_end);
}

/* Could y have been added after x was deleted? */
static bool may_follow(const struct checker *c, const struct life *x, const struct life *y)
{
	return x->remove != NO_VERSION &&
	       txn_of(c, x->remove)->invoke_time <= txn_of(c, y->insert)->end_time;
}

/* Readers of version come before the writer of later. */
static void link_later(struct checker *c, uint32_t version, uint32_t later)
{
	c->versions.at[later].sibling = c->versions.at[version].first_next;
	c->versions.at[version].first_next = later;
}

static void link_next(struct checker *c, uint32_t version, uint32_t next)
{
	c->versions.at[next].prev = version;
	link_later(c, version, next);
}

/* All versions of a row but those that follow an absence. */
static void link_known(struct checker *c, struct object *o)
{
	for (uint32_t i = o->last; i != o->initial; i = c->versions.at[i].of_object) {
		uint32_t prev = c->versions.at[i].prev;

		if (!version_is_committed(c, i))
			continue;
		if (prev == NO_VERSION) {
			c->result->unknown.writes++;
			/* With deletes: a life of which it is not known when it began or ended. */
			if (o->n_deletes)
				o->is_undecided = true;
			else
				link_later(c, o->initial, i);
		} else if (prev != ABSENT_VERSION) {
			link_next(c, prev, i);
		}
	}
}

/* The delete that ends the life of a row, or NO_VERSION: not one that its transaction undid. */
static uint32_t end_of_life(const struct checker *c, uint32_t version)
{
	while (version != NO_VERSION && (c->versions.at[version].value != HISTORY_ABSENT ||
					 !c->versions.at[version].is_final))
		version = c->versions.at[version].first_next;
	return version;
}

static int collect(struct checker *c, const struct object *o, struct sorting **lives, size_t *room,
		   uint32_t *ret_n)
{
	uint32_t n = 0;

	for (uint32_t i = o->last; i != o->initial; i = c->versions.at[i].of_object) {
		if (!version_is_committed(c, i) || c->versions.at[i].prev != ABSENT_VERSION)
			continue;
		if (n == *room) {
			struct sorting *grown = vec_grow(*lives, room, sizeof(**lives));

			if (!grown)
				return -ENOMEM;
			*lives = grown;
		}
		(*lives)[n++] = (struct sorting){ { i, end_of_life(c, i) },
						  txn_of(c, i)->end_time };
	}
	*ret_n = n;
	return 0;
}

static int lost_insert(struct checker *c, uint32_t object, const struct life *x,
		       const struct life *y)
{
	const struct check_anomaly anomaly = {
		.kind = CHECK_LOST_UPDATE,
		.txn = c->versions.at[y->insert].txn,
		.other = c->versions.at[x->insert].txn,
		.key = c->objects.at[object].key,
		.value = HISTORY_ABSENT,
	};

	return checker_report(c, &anomaly);
}

/* In order, if there is only one that time allows. */
static int order_lives(struct checker *c, uint32_t object, struct sorting *lives, uint32_t n)
{
	struct object *o = &c->objects.at[object];
	bool is_strict = c->options->model == CHECK_STRICT_SERIALIZABLE;

	if (n > 1)
		qsort(lives, n, sizeof(*lives), compare);
	o->is_undecided |= n > 1 && !is_strict;
	for (uint32_t i = 1; !o->is_undecided && i < n; i++) {
		const struct life *x = &lives[i - 1].life, *y = &lives[i].life;
		bool is_x_first = may_follow(c, x, y), is_y_first = may_follow(c, y, x);

		o->is_undecided |= is_y_first || !is_x_first;
		if (!is_x_first && !is_y_first)
			return lost_insert(c, object, x, y);
	}
	if (o->is_undecided)
		c->result->unknown.rows++;
	return 0;
}

static int find_lives(struct checker *c, uint32_t object, struct sorting **lives, size_t *room)
{
	struct object *o = &c->objects.at[object];
	uint32_t n, before = o->initial;
	int rc;

	link_known(c, o);
	rc = collect(c, o, lives, room, &n);
	if (!rc && o->n_deletes)
		rc = order_lives(c, object, *lives, n);
	if (rc || o->is_undecided)
		return rc;
	o->order = c->lives.n;
	o->n_lives = o->n_deletes ? n : 0;
	for (uint32_t i = 0; !rc && i < n; i++) {
		link_next(c, before, (*lives)[i].life.insert);
		/* Without deletes they all follow the first absence: all but one are too many. */
		if (!o->n_deletes)
			continue;
		before = (*lives)[i].life.remove;
		rc = vec_push(&c->lives, (*lives)[i].life);
	}
	return rc;
}

int lives_find(struct checker *c)
{
	struct sorting *lives = NULL;
	size_t room = 0;
	int rc = 0;

	for (uint32_t object = 0; !rc && object < c->objects.n; object++) {
		checker_progress(c, "versions", object, c->objects.n);
		if (!c->objects.at[object].is_list)
			rc = find_lives(c, object, &lives, &room);
	}
	free(lives);
	return rc;
}

/* Absence i: before life i, after life i - 1. */
static uint32_t absence(const struct checker *c, const struct object *o, uint32_t i)
{
	return i ? c->lives.at[o->order + i - 1].remove : o->initial;
}

static bool has_begun(const struct checker *c, const struct object *o, uint32_t i, uint64_t time)
{
	uint32_t version = absence(c, o, i);

	return version != NO_VERSION &&
	       (version == o->initial || txn_of(c, version)->invoke_time <= time);
}

uint32_t lives_absent(const struct checker *c, uint32_t object, uint32_t txn,
		      bool *ret_is_unknown)
{
	const struct object *o = &c->objects.at[object];
	const struct history_txn *t = &c->history->txns.at[txn];
	uint32_t low = 0, high = o->n_lives;

	*ret_is_unknown = false;
	if (!o->n_deletes)
		return o->initial;
	*ret_is_unknown = true;
	if (o->is_undecided || c->options->model != CHECK_STRICT_SERIALIZABLE)
		return NO_VERSION;
	/* The first one that had not ended for sure when the transaction began. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (txn_of(c, c->lives.at[o->order + middle].insert)->end_time < t->invoke_time)
			low = middle + 1;
		else
			high = middle;
	}
	/* None is possible: the last one before contradicts time, and the graph will show it. */
	while (low && !has_begun(c, o, low, t->end_time))
		low--;
	if (low < o->n_lives && has_begun(c, o, low + 1, t->end_time))
		return NO_VERSION;
	*ret_is_unknown = false;
	return absence(c, o, low);
}
