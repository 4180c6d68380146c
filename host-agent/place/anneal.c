// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Search by simulated annealing (S. Kirkpatrick et al., Science 220, 1983), as section 6 describes
 * it: from a plan that keeps the constraints, random moves and swaps, of which worse ones are taken
 * ever more rarely.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/internal.h"
#include "util/random.h"

#define SEED_TRIES	32u		/* to get all VMs onto hosts */
#define TRIAL_CHANGES	200u		/* from which the first temperature is taken */
#define COOLING		1e-2		/* last temperature over the first */
/*
 * A cluster with so few moves may have no room to get from one good plan to another.  The search is
 * then done several times, from different plans.
 */
#define FEW_MOVES	256u
#define ROUNDS		64u
#define CLOCK_STEPS	64u		/* candidates between looks at the clock */

struct anneal {
	struct place *p;
	const struct place_limit *limit;
	uint64_t random;
	uint64_t begin, n_steps;
	uint32_t round, n_rounds;
	int32_t *best;			/* host of each item in the best plan so far, */
	double best_value;		/* unless the plan itself is better */
	double value;			/* of the plan */
	int32_t *first;			/* host of each item at the beginning, */
	int32_t *best_round;		/* and in the best plan of all rounds */
};

static uint32_t below(struct anneal *a, uint32_t n)
{
	return (uint32_t)(((ebb_random(&a->random) >> 32) * n) >> 32);
}

static void keep(const struct place *p, int32_t *hosts)
{
	for (uint32_t i = 0; i < p->n_items; i++)
		hosts[i] = p->items[i].host;
}

static void restore(struct place *p, const int32_t *hosts)
{
	/* First all leave, so that no host is too full for those that come. */
	for (uint32_t i = 0; i < p->n_items; i++)
		if (p->items[i].host != hosts[i])
			place_move_item(p, i, -1);
	for (uint32_t i = 0; i < p->n_items; i++)
		place_move_item(p, i, hosts[i]);
	place_totals(p);
}

/* ---- the plan to begin with ---- */

static int32_t random_host(struct anneal *a, uint32_t i)
{
	struct place *p = a->p;
	uint32_t n = 0;
	int32_t found = -1;

	for (uint32_t h = 0; h < p->n_hosts; h++)
		if ((int32_t)h != p->items[i].host &&
		    !place_check(p, &p->items[i], h, NULL, NULL) && below(a, ++n) == 0)
			found = (int32_t)h;
	return found;
}

struct sized {
	double size;
	uint32_t item;
};

static int compare_sized(const void *a, const void *b)
{
	const struct sized *x = a, *y = b;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return (x->item > y->item) - (x->item < y->item);
}

/* The VMs that are on no host: large items first, as small ones still fit between them. */
static uint32_t list_homeless(const struct place *p, struct sized *homeless)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_items; i++) {
		if (p->items[i].host >= 0)
			continue;
		homeless[n] = (struct sized){ .item = i };
		for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++)
			homeless[n].size = fmax(homeless[n].size, p->items[i].load[r] /
							p->hosts[0].in.capacity[r]);
		n++;
	}
	qsort(homeless, n, sizeof(*homeless), compare_sized);
	return n;
}

static void shuffle(struct anneal *a, struct sized *at, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = below(a, i);
		struct sized kept = at[i - 1];

		at[i - 1] = at[j];
		at[j] = kept;
	}
}

/*
 * First each VM to its best host, large ones first.  If some find none, and in later rounds, tries
 * follow in random order and to random hosts, and the one counts that places most.  To those that
 * are left reserves give way.
 */
static int seed_homeless(struct anneal *a)
{
	struct place *p = a->p;
	struct sized *homeless = malloc(((size_t)p->n_items + 1) * sizeof(*homeless));
	uint32_t n, least = UINT32_MAX;
	int rc = 0;

	if (!homeless)
		return -ENOMEM;
	n = list_homeless(p, homeless);
	for (uint32_t try = a->round ? 1 : 0; n && least && try < SEED_TRIES; try++) {
		for (uint32_t i = 0; i < n; i++)
			place_move_item(p, homeless[i].item, -1);
		if (try)
			shuffle(a, homeless, n);
		for (uint32_t i = 0; i < n && !rc; i++) {
			uint32_t item = homeless[i].item;
			int32_t host;

			if (try)
				host = random_host(a, item);
			else
				rc = place_best_host(p, item, 0, &host, NULL);
			if (!rc)
				place_move_item(p, item, host);
		}
		if (rc)
			break;
		if (p->totals.n_unplaced < least) {
			least = p->totals.n_unplaced;
			keep(p, a->best);
		}
	}
	if (n && !rc)
		restore(p, a->best);
	for (uint32_t i = 0; i < n && !rc && p->totals.n_unplaced; i++) {
		int32_t host = p->items[homeless[i].item].host;

		if (host < 0)
			rc = place_find_home(p, homeless[i].item, &host);
		if (!rc)
			place_move_item(p, homeless[i].item, host);
	}
	free(homeless);
	return rc;
}

/* Cost for each part of a host that is over its capacity; INFINITY: this takes nothing off it. */
static double cost_of_relief(const struct place *p, const struct host *host,
			     const struct item *item)
{
	double gain = 0;

	for (uint32_t r = 0; r < PLACE_N_RESOURCES; r++) {
		double over = host->needed[r] - host->in.capacity[r];

		if (over > 0)
			gain += fmin(over, item->needed[r]) / host->in.capacity[r];
	}
	/* Never 0: among VMs that may move for nothing the large ones are best. */
	return gain > 0 ? (place_moves(p, item, -1) + 1e-3) / gain : INFINITY;
}

/*
 * Greedy repair of a host that is over its capacity: the VM that costs least for what it takes off
 * goes to the host that is best by score, and of several such the one with the best score then.
 */
static int relieve(struct place *p, uint32_t h)
{
	const struct host *host = &p->hosts[h];

	while (host->terms.excess > 0) {
		double least = INFINITY, best = INFINITY;
		uint32_t chosen = PLACE_NONE;
		int32_t to = -1;

		for (uint32_t i = 0; i < host->n_items; i++) {
			const struct item *item = &p->items[host->items[i]];
			const double cost = item->pinned >= 0 ? INFINITY :
							cost_of_relief(p, host, item);
			double value;
			int32_t found;

			if (isinf(cost) || cost > least)
				continue;
			if (place_best_host(p, host->items[i], 0, &found, &value))
				return -ENOMEM;
			if (found < 0 || (cost >= least && value >= best))
				continue;
			least = cost;
			best = value;
			chosen = host->items[i];
			to = found;
		}
		if (chosen == PLACE_NONE)
			return 0;
		place_move_item(p, chosen, to);
	}
	return 0;
}

/* Takes half of all VMs off their hosts: they are placed anew, at random. */
static void scatter(struct anneal *a)
{
	for (uint32_t i = 0; i < a->p->n_items; i++)
		if (a->p->items[i].pinned < 0 && ebb_random(&a->random) >> 63)
			place_move_item(a->p, i, -1);
}

/* ---- changes ---- */

/* An item to change: half of the time one of the host with more violations of two. */
static uint32_t random_item(struct anneal *a)
{
	struct place *p = a->p;
	const struct host *x, *y;

	if (ebb_random(&a->random) >> 63)
		return below(a, p->n_items);
	x = &p->hosts[below(a, p->n_hosts)];
	y = &p->hosts[below(a, p->n_hosts)];
	if (y->n_bad > x->n_bad || (y->n_bad == x->n_bad && y->n_items > x->n_items))
		x = y;
	return x->n_items ? x->items[below(a, x->n_items)] : below(a, p->n_items);
}

/* Another item in its place, if there is one that may take it. */
static bool propose_swap(struct anneal *a, struct change *change, uint32_t to)
{
	struct place *p = a->p;
	const struct item *item = &p->items[change->item], *other;
	const struct host *host = &p->hosts[to];

	if (item->host < 0 || !host->n_items)
		return false;
	change->to = to;
	change->other = host->items[below(a, host->n_items)];
	other = &p->items[change->other];
	return !place_check(p, item, to, other, NULL) &&
	       !place_check(p, other, (uint32_t)item->host, item, NULL);
}

static bool propose_move(struct anneal *a, struct change *change, uint32_t to)
{
	change->to = to;
	change->other = PLACE_NONE;
	return !place_check(a->p, &a->p->items[change->item], to, NULL, NULL);
}

/* One in eight takes something back that was moved, the others are moves and swaps at random. */
static bool propose(struct anneal *a, struct change *change)
{
	struct place *p = a->p;
	uint32_t kind = below(a, 8), to = below(a, p->n_hosts);

	change->item = random_item(a);
	if (kind == 0 && p->n_moved) {
		change->item = p->moved[below(a, p->n_moved)];
		for (uint32_t vm = p->items[change->item].first; vm != PLACE_NONE;
		     vm = p->vms[vm].next_member)
			if (p->vms[vm].in.host >= 0)
				to = (uint32_t)p->vms[vm].in.host;
	}
	if ((int32_t)to == p->items[change->item].host)
		return false;
	if (kind < 4 && propose_move(a, change, to))
		return true;
	return propose_swap(a, change, to);
}

static void apply(struct place *p, const struct change *change)
{
	int32_t from = p->items[change->item].host;

	if (change->other != PLACE_NONE)
		place_move_item(p, change->other, -1);
	place_move_item(p, change->item, (int32_t)change->to);
	if (change->other != PLACE_NONE)
		place_move_item(p, change->other, from);
}

/* ---- cooling ---- */

/*
 * So hot that of all moves that there are, a few that make the score worse by the average would be
 * taken.  Much hotter, and most VMs leave their hosts for no reason and never find back.
 */
static double first_temperature(struct anneal *a)
{
	double sum = 0, n_moves = (double)a->p->n_items * a->p->n_hosts;
	uint32_t n = 0;

	for (uint32_t i = 0; i < TRIAL_CHANGES; i++) {
		struct change change;
		double worse;

		if (!propose(a, &change))
			continue;
		worse = place_eval(a->p, &change, INFINITY, false) - a->value;
		/* A move that puts a host above its capacity is refused anyway. */
		if (worse > 0 && worse < a->value + 1) {
			sum += worse;
			n++;
		}
	}
	return n ? sum / n / log(1 + n_moves / 16) : 0;
}

/* Of the round, from 0 to 1; the limit that comes first counts. */
static double progress(const struct anneal *a)
{
	const struct place_limit *limit = a->limit;
	double done = limit->steps ? (double)a->n_steps / (double)limit->steps : 0;

	if (limit->now && limit->usec)
		done = fmax(done, (double)(limit->now(limit->ctx) - a->begin) /
					  (double)limit->usec);
	return done * a->n_rounds - a->round;
}

static void search(struct anneal *a)
{
	double first = first_temperature(a), temperature = first, done = progress(a);

	for (; done < 1; a->n_steps++) {
		struct change change;
		double most, value;

		if (a->n_steps % CLOCK_STEPS == 0) {
			done = progress(a);
			temperature = first * pow(COOLING, done);
		} else if (a->limit->steps && a->n_steps >= a->limit->steps) {
			break;
		}
		if (!propose(a, &change))
			continue;
		/* Drawn first, so that the simulation can be left out where the rest is too bad. */
		most = a->value - temperature * log(ebb_random_unit(&a->random));
		value = place_eval(a->p, &change, most, false);
		if (value > most)
			continue;
		if (value > a->value && a->value < a->best_value) {
			keep(a->p, a->best);
			a->best_value = a->value;
		}
		apply(a->p, &change);
		a->value = place_value(a->p, &a->p->totals);
	}
	if (a->best_value < a->value)
		restore(a->p, a->best);
}

/* Takes back each move that is worth nothing. */
static void take_back(struct anneal *a)
{
	struct place *p = a->p;

	for (uint32_t n = p->n_moved; n-- > 0;) {
		struct change change = { .item = p->moved[n], .other = PLACE_NONE };
		const struct item *item = &p->items[change.item];
		int32_t home = p->vms[item->first].in.host;

		if (home < 0 || home == item->host ||
		    place_check(p, item, (uint32_t)home, NULL, NULL))
			continue;
		change.to = (uint32_t)home;
		if (place_eval(p, &change, INFINITY, false) <= place_value(p, &p->totals))
			apply(p, &change);
	}
}

static int search_once(struct anneal *a)
{
	struct place *p = a->p;
	int rc = 0;

	restore(p, a->first);
	if (a->round)
		scatter(a);
	for (uint32_t h = 0; h < p->n_hosts && !rc; h++)
		rc = relieve(p, h);
	if (!rc)
		rc = seed_homeless(a);
	if (rc)
		return rc;
	place_totals(p);
	a->value = place_value(p, &p->totals);
	a->best_value = INFINITY;
	if (p->n_items)
		search(a);
	take_back(a);
	place_totals(p);
	return 0;
}

int place_anneal(struct place *p, const struct place_limit *limit, uint64_t *ret_steps,
		 struct place_refusal *ret_refusal)
{
	struct anneal a = { .p = p, .limit = limit, .random = limit->seed, .n_rounds = 1 };
	double best = INFINITY;
	int rc = 0;

	if (!limit->steps && !(limit->now && limit->usec))
		return -EINVAL;
	if (p->n_items * (uint64_t)p->n_hosts <= FEW_MOVES)
		a.n_rounds = ROUNDS;
	a.best = calloc(3 * (size_t)p->n_items + 1, sizeof(*a.best));
	if (!a.best)
		return -ENOMEM;
	a.first = a.best + p->n_items;
	a.best_round = a.first + p->n_items;
	if (limit->now)
		a.begin = limit->now(limit->ctx);
	keep(p, a.first);
	for (a.round = 0; a.round < a.n_rounds && !rc; a.round++) {
		rc = search_once(&a);
		if (!rc && place_value(p, &p->totals) < best) {
			best = place_value(p, &p->totals);
			keep(p, a.best_round);
		}
	}
	restore(p, rc ? a.first : a.best_round);
	if (ret_steps)
		*ret_steps = a.n_steps;
	if (!rc)
		rc = place_answer(p, ret_refusal);
	free(a.best);
	return rc;
}
