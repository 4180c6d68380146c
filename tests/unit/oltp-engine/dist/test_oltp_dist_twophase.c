// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two-phase commit as decisions, in every order of events: one transaction, one coordinator, one or
 * two participants. In each state that can be reached every message may be delivered, delivered and
 * stay for another time, or get lost; disks may take any time or fail; whoever runs may crash, with
 * any part of what was not forced yet surviving; timers may go off. Checked in each state: nothing
 * contradicts (D1 to D4). From each state, with both sides up and no more faults, everything must
 * end: all agree, no lock is held, nothing is remembered (D5).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oltp-engine/dist/twophase.h"
#include "tests/lib/sanitizers.h"

#define PEERS_MAX	2u
#define ROUNDS_MAX	60u

/* One thread: the thread sanitizer finds nothing here, and takes minutes for what is left out. */
#define TWO_FAULTS	(!HAS_TSAN)

static const struct dist_times times = { .vote_ns = 1, .ask_ns = 1, .repeat_ns = 1 };

/* A message on its way, as a bit; one of each kind per participant is enough. */
enum message {
	TO_PREPARE, TO_COMMIT, TO_ABORT,
	FROM_NO, FROM_YES, FROM_READ, FROM_ACK, FROM_QUERY,
	MESSAGES,
};

enum engine {
	ENGINE_NONE,
	ENGINE_OPEN,		/* holds locks */
	ENGINE_COMMITTED,
	ENGINE_ABORTED,
};

/* Records in the order written. */
enum record {
	RECORD_PREPARE = 1,
	RECORD_COMMIT,
	RECORD_ABORT,
	RECORD_END,
};

struct disk {
	uint8_t records[3];
	uint8_t written, safe;	/* records; the first `safe` survive a crash for sure */
	bool is_forcing;	/* somebody waits to be told */
};

struct side {
	bool is_up;
	uint8_t engine;		/* enum engine */
	struct disk disk;
};

struct world {
	struct side coord_side;
	struct dist_coord coord;
	struct side part_sides[PEERS_MAX];
	struct dist_part parts[PEERS_MAX];
	uint16_t messages[PEERS_MAX];
	bool writes[PEERS_MAX];		/* whether its operations do */
	uint8_t faults_left;
};

/* ---- carrying out ---- */

static void disk_write(struct disk *disk, enum record record, bool is_forced)
{
	assert_true(disk->written < sizeof(disk->records));
	disk->records[disk->written++] = (uint8_t)record;
	disk->is_forcing |= is_forced;
}

static bool disk_has(const struct disk *disk, enum record record, uint8_t among)
{
	for (uint8_t i = 0; i < among; i++) {
		if (disk->records[i] == record)
			return true;
	}
	return false;
}

static void end_engine(struct side *side, enum engine how)
{
	/* Nothing ends twice, and nothing ends that did not run. */
	assert_int_equal(side->engine, ENGINE_OPEN);
	side->engine = (uint8_t)how;
}

static void send(struct world *w, uint32_t peer, enum message message)
{
	w->messages[peer] |= (uint16_t)(1u << message);
}

static void coord_act(struct world *w, const struct dist_actions *actions)
{
	for (uint32_t i = 0; i < actions->n; i++) {
		uint32_t peer = actions->list[i].peer;

		switch (actions->list[i].what) {
		case DIST_SEND_PREPARE:
			send(w, peer, TO_PREPARE);
			break;
		case DIST_SEND_COMMIT:
			/* D2 */
			assert_int_equal(w->coord.voted, (1u << w->coord.n_peers) - 1);
			assert_true(!w->coord.writers ||
				    disk_has(&w->coord_side.disk, RECORD_COMMIT,
					     w->coord_side.disk.safe));
			send(w, peer, TO_COMMIT);
			break;
		case DIST_SEND_ABORT:
			send(w, peer, TO_ABORT);
			break;
		case DIST_SEND_PENDING:
			/* Changes nothing where it arrives, so it need not. */
			break;
		case DIST_LOG_COMMIT:
			disk_write(&w->coord_side.disk, RECORD_COMMIT, true);
			break;
		case DIST_LOG_END:
			disk_write(&w->coord_side.disk, RECORD_END, false);
			break;
		case DIST_ENGINE_COMMIT:
			end_engine(&w->coord_side, ENGINE_COMMITTED);
			break;
		case DIST_ENGINE_ABORT:
			end_engine(&w->coord_side, ENGINE_ABORTED);
			break;
		default:
			fail_msg("a coordinator does not do %u", actions->list[i].what);
		}
	}
	if (w->coord.deadline_ns != UINT64_MAX)
		w->coord.deadline_ns = 0;
}

static void part_act(struct world *w, uint32_t p, const struct dist_actions *actions)
{
	static const enum message votes[] = {
		[DIST_VOTE_NO] = FROM_NO, [DIST_VOTE_YES] = FROM_YES, [DIST_VOTE_READ] = FROM_READ,
	};
	struct side *side = &w->part_sides[p];

	for (uint32_t i = 0; i < actions->n; i++) {
		switch (actions->list[i].what) {
		case DIST_SEND_VOTE:
			/* D3 */
			assert_true(w->parts[p].vote != DIST_VOTE_YES ||
				    disk_has(&side->disk, RECORD_PREPARE, side->disk.safe));
			send(w, p, votes[w->parts[p].vote]);
			break;
		case DIST_SEND_ACK:
			/* D4, its other half */
			assert_true(w->parts[p].vote != DIST_VOTE_YES ||
				    disk_has(&side->disk, RECORD_COMMIT, side->disk.safe));
			send(w, p, FROM_ACK);
			break;
		case DIST_SEND_QUERY:
			send(w, p, FROM_QUERY);
			break;
		case DIST_LOG_PREPARE:
			disk_write(&side->disk, RECORD_PREPARE, true);
			break;
		case DIST_LOG_COMMIT:
			disk_write(&side->disk, RECORD_COMMIT, true);
			break;
		case DIST_LOG_ABORT:
			disk_write(&side->disk, RECORD_ABORT, false);
			break;
		case DIST_ENGINE_EXECUTE:
			side->engine = ENGINE_OPEN;
			break;
		case DIST_ENGINE_COMMIT:
			end_engine(side, ENGINE_COMMITTED);
			break;
		case DIST_ENGINE_ABORT:
			end_engine(side, ENGINE_ABORTED);
			break;
		default:
			fail_msg("a participant does not do %u", actions->list[i].what);
		}
	}
	if (w->parts[p].deadline_ns != UINT64_MAX)
		w->parts[p].deadline_ns = 0;
}

/* ---- events ---- */

static void deliver(struct world *w, uint32_t p, enum message message)
{
	bool to_part = message < FROM_NO;
	struct dist_actions actions = { 0 };

	if (to_part ? !w->part_sides[p].is_up : !w->coord_side.is_up)
		return;
	switch (message) {
	case TO_PREPARE:
		dist_part_prepare(&w->parts[p], &actions);
		break;
	case TO_COMMIT:
		dist_part_commit(&w->parts[p], &actions);
		break;
	case TO_ABORT:
		dist_part_abort(&w->parts[p], &actions);
		break;
	case FROM_NO:
		dist_coord_vote(&w->coord, p, DIST_VOTE_NO, &actions);
		break;
	case FROM_YES:
		dist_coord_vote(&w->coord, p, DIST_VOTE_YES, &actions);
		break;
	case FROM_READ:
		dist_coord_vote(&w->coord, p, DIST_VOTE_READ, &actions);
		break;
	case FROM_ACK:
		dist_coord_ack(&w->coord, p, &actions);
		break;
	case FROM_QUERY:
		dist_coord_query(&w->coord, p, &actions);
		break;
	case MESSAGES:
		break;
	}
	if (to_part)
		part_act(w, p, &actions);
	else
		coord_act(w, &actions);
}

static void executed(struct world *w, uint32_t p, enum dist_vote vote)
{
	struct dist_actions actions;

	dist_part_executed(&w->parts[p], vote, &times, 0, &actions);
	part_act(w, p, &actions);
}

static void coord_disk(struct world *w, bool is_on_disk)
{
	struct disk *disk = &w->coord_side.disk;
	struct dist_actions actions;

	disk->is_forcing = false;
	if (is_on_disk)
		disk->safe = disk->written;
	dist_coord_logged(&w->coord, is_on_disk, &times, 0, &actions);
	coord_act(w, &actions);
}

static void part_disk(struct world *w, uint32_t p, bool is_on_disk)
{
	struct disk *disk = &w->part_sides[p].disk;
	struct dist_actions actions;

	disk->is_forcing = false;
	if (is_on_disk)
		disk->safe = disk->written;
	dist_part_logged(&w->parts[p], is_on_disk, &times, 0, &actions);
	part_act(w, p, &actions);
}

static void coord_tick(struct world *w)
{
	struct dist_actions actions;

	dist_coord_tick(&w->coord, &times, 1, &actions);
	coord_act(w, &actions);
}

static void part_tick(struct world *w, uint32_t p)
{
	struct dist_actions actions;

	dist_part_tick(&w->parts[p], &times, 1, &actions);
	part_act(w, p, &actions);
}

/* What is in memory is gone; of the log, `survive` records are left. */
static void crash(struct side *side, uint8_t survive)
{
	struct disk *disk = &side->disk;

	for (uint8_t i = survive; i < sizeof(disk->records); i++)
		disk->records[i] = 0;
	disk->written = disk->safe = survive;
	disk->is_forcing = false;
	side->is_up = false;
	side->engine = ENGINE_NONE;
}

static void coord_crash(struct world *w, uint8_t survive)
{
	uint8_t n = w->coord.n_peers;

	crash(&w->coord_side, survive);
	memset(&w->coord, 0, sizeof(w->coord));
	w->coord.n_peers = n;
}

static void part_crash(struct world *w, uint32_t p, uint8_t survive)
{
	crash(&w->part_sides[p], survive);
	memset(&w->parts[p], 0, sizeof(w->parts[p]));
}

static void coord_restart(struct world *w)
{
	struct disk *disk = &w->coord_side.disk;
	struct dist_actions actions = { 0 };

	w->coord_side.is_up = true;
	if (!disk_has(disk, RECORD_COMMIT, disk->written)) {
		/* Nobody knows it: presumed abort. */
		w->coord.state = DIST_COORD_ABORTED;
		w->coord.deadline_ns = UINT64_MAX;
		return;
	}
	w->coord_side.engine = ENGINE_COMMITTED;
	dist_coord_restart(&w->coord, w->coord.n_peers, 0, &actions);
	if (disk_has(disk, RECORD_END, disk->written)) {
		w->coord.state = DIST_COORD_COMMITTED;
		w->coord.deadline_ns = UINT64_MAX;
	}
	coord_act(w, &actions);
}

static void part_restart(struct world *w, uint32_t p)
{
	struct disk *disk = &w->part_sides[p].disk;
	struct dist_part *part = &w->parts[p];
	struct dist_actions actions = { 0 };

	w->part_sides[p].is_up = true;
	part->deadline_ns = UINT64_MAX;
	if (!disk->written)
		return;
	part->vote = DIST_VOTE_YES;
	if (disk_has(disk, RECORD_COMMIT, disk->written)) {
		part->state = DIST_PART_COMMITTED;
		w->part_sides[p].engine = ENGINE_COMMITTED;
	} else if (disk_has(disk, RECORD_ABORT, disk->written)) {
		part->state = DIST_PART_ABORTED;
	} else {
		w->part_sides[p].engine = ENGINE_OPEN;
		dist_part_restart(part, 0, &actions);
	}
	part_act(w, p, &actions);
}

/* ---- what must hold ---- */

static bool wrote(const struct world *w, uint32_t p)
{
	return w->parts[p].vote == DIST_VOTE_YES;
}

/* D1 */
static void check_agreement(const struct world *w)
{
	bool committed = w->coord_side.engine == ENGINE_COMMITTED;
	bool aborted = w->coord_side.engine == ENGINE_ABORTED;

	for (uint32_t p = 0; p < w->coord.n_peers; p++) {
		if (!wrote(w, p))
			continue;
		committed |= w->part_sides[p].engine == ENGINE_COMMITTED;
		aborted |= w->part_sides[p].engine == ENGINE_ABORTED;
	}
	assert_false(committed && aborted);
}

static void settle_round(struct world *w)
{
	for (uint32_t p = 0; p < w->coord.n_peers; p++) {
		uint16_t now = w->messages[p];

		w->messages[p] = 0;
		for (uint32_t m = 0; m < MESSAGES; m++) {
			if (now & 1u << m)
				deliver(w, p, m);
		}
		if (w->parts[p].state == DIST_PART_EXECUTING)
			executed(w, p, w->writes[p] ? DIST_VOTE_YES : DIST_VOTE_READ);
		if (w->part_sides[p].disk.is_forcing)
			part_disk(w, p, true);
		part_tick(w, p);
	}
	if (w->coord_side.disk.is_forcing)
		coord_disk(w, true);
	coord_tick(w);
}

static bool is_settled(const struct world *w)
{
	bool settled = dist_coord_is_done(&w->coord);

	for (uint32_t p = 0; p < w->coord.n_peers; p++) {
		settled &= !w->messages[p];
		settled &= w->parts[p].state == DIST_PART_IDLE || dist_part_is_done(&w->parts[p]);
	}
	return settled;
}

/* D5: without more faults everything ends, and well. A log that failed ends its node first. */
static void check_end(const struct world *start)
{
	struct world w = *start;
	bool committed;

	if (w.coord.state == DIST_COORD_UNKNOWN)
		coord_crash(&w, w.coord_side.disk.safe);
	if (!w.coord_side.is_up)
		coord_restart(&w);
	for (uint32_t p = 0; p < w.coord.n_peers; p++) {
		if (w.parts[p].state == DIST_PART_UNKNOWN)
			part_crash(&w, p, w.part_sides[p].disk.safe);
		if (!w.part_sides[p].is_up)
			part_restart(&w, p);
	}
	for (uint32_t round = 0; round < ROUNDS_MAX && !is_settled(&w); round++)
		settle_round(&w);
	assert_true(is_settled(&w));
	check_agreement(&w);
	committed = w.coord_side.engine == ENGINE_COMMITTED;
	assert_int_not_equal(w.coord_side.engine, ENGINE_OPEN);
	for (uint32_t p = 0; p < w.coord.n_peers; p++) {
		assert_int_not_equal(w.part_sides[p].engine, ENGINE_OPEN);
		if (wrote(&w, p))
			assert_int_equal(w.part_sides[p].engine == ENGINE_COMMITTED, committed);
	}
}

/* ---- all worlds that can be reached ---- */

struct search {
	struct world *queue;
	size_t n, room;
	uint32_t *table;	/* place in the queue + 1; 0: free */
	size_t slots;
	size_t commits, aborts;
};

static uint64_t hash_of(const struct world *w)
{
	const uint8_t *bytes = (const uint8_t *)w;
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < sizeof(*w); i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ull;
	return hash ^ hash >> 31;
}

static void add(struct search *s, const struct world *w)
{
	size_t at = hash_of(w) & (s->slots - 1);

	for (; s->table[at]; at = (at + 1) & (s->slots - 1)) {
		if (!memcmp(&s->queue[s->table[at] - 1], w, sizeof(*w)))
			return;
	}
	assert_true(s->n < s->room);
	s->queue[s->n++] = *w;
	s->table[at] = (uint32_t)s->n;
}

/* Copies with memcpy throughout, so that padding stays zero and worlds compare as bytes. */
#define BRANCH(next, from) struct world next; memcpy(&next, from, sizeof(next))

static void expand_messages(struct search *s, const struct world *w)
{
	for (uint32_t p = 0; p < w->coord.n_peers; p++) {
		for (uint32_t m = 0; m < MESSAGES; m++) {
			if (!(w->messages[p] & 1u << m))
				continue;
			{
				BRANCH(lost, w);
				lost.messages[p] &= (uint16_t)~(1u << m);
				add(s, &lost);
			}
			{
				BRANCH(once, w);
				once.messages[p] &= (uint16_t)~(1u << m);
				deliver(&once, p, m);
				add(s, &once);
			}
			{
				BRANCH(again, w);
				deliver(&again, p, m);
				add(s, &again);
			}
		}
	}
}

static void expand_coord(struct search *s, const struct world *w)
{
	const struct disk *disk = &w->coord_side.disk;

	if (!w->coord_side.is_up) {
		BRANCH(next, w);
		coord_restart(&next);
		add(s, &next);
		return;
	}
	{
		BRANCH(next, w);
		coord_tick(&next);
		add(s, &next);
	}
	for (uint32_t p = 0; p < w->coord.n_peers; p++) {
		struct dist_actions actions;
		BRANCH(next, w);

		dist_coord_lost(&next.coord, p, &actions);
		coord_act(&next, &actions);
		add(s, &next);
	}
	if (disk->is_forcing) {
		BRANCH(next, w);
		coord_disk(&next, true);
		add(s, &next);
	}
	if (!w->faults_left)
		return;
	for (uint8_t k = disk->safe; k <= disk->written; k++) {
		BRANCH(next, w);
		next.faults_left--;
		coord_crash(&next, k);
		add(s, &next);
	}
	if (disk->is_forcing) {
		BRANCH(next, w);
		next.faults_left--;
		coord_disk(&next, false);
		add(s, &next);
	}
}

static void expand_part(struct search *s, const struct world *w, uint32_t p)
{
	const struct disk *disk = &w->part_sides[p].disk;

	if (!w->part_sides[p].is_up) {
		BRANCH(next, w);
		part_restart(&next, p);
		add(s, &next);
		return;
	}
	if (w->parts[p].state == DIST_PART_EXECUTING) {
		for (uint32_t yes = 0; yes < 2; yes++) {
			BRANCH(next, w);
			executed(&next, p, !yes ? DIST_VOTE_NO :
				 w->writes[p] ? DIST_VOTE_YES : DIST_VOTE_READ);
			add(s, &next);
		}
	}
	{
		BRANCH(next, w);
		part_tick(&next, p);
		add(s, &next);
	}
	if (disk->is_forcing) {
		BRANCH(next, w);
		part_disk(&next, p, true);
		add(s, &next);
	}
	/* Both kinds of transaction start with either participant: what one meets is enough. */
	if (!w->faults_left || p > 0)
		return;
	for (uint8_t k = disk->safe; k <= disk->written; k++) {
		BRANCH(next, w);
		next.faults_left--;
		part_crash(&next, p, k);
		add(s, &next);
	}
	if (disk->is_forcing) {
		BRANCH(next, w);
		next.faults_left--;
		part_disk(&next, p, false);
		add(s, &next);
	}
}

static void add_start(struct search *s, uint32_t n_peers, uint32_t writers, uint8_t faults)
{
	struct dist_actions actions;
	struct world first;

	memset(&first, 0, sizeof(first));
	first.faults_left = faults;
	first.coord_side.is_up = true;
	first.coord_side.engine = ENGINE_OPEN;
	for (uint32_t p = 0; p < n_peers; p++) {
		first.part_sides[p].is_up = true;
		first.parts[p].deadline_ns = UINT64_MAX;
		first.writes[p] = writers & 1u << p;
	}
	dist_coord_start(&first.coord, n_peers, &times, 0, &actions);
	coord_act(&first, &actions);
	add(s, &first);
}

static void explore(uint32_t n_peers, uint8_t faults, size_t room)
{
	struct search s = { .room = room, .slots = 1 };

	while (s.slots < 2 * room)
		s.slots *= 2;
	s.queue = malloc(room * sizeof(*s.queue));
	s.table = calloc(s.slots, sizeof(*s.table));
	assert_true(s.queue && s.table);
	for (uint32_t writers = 0; writers < 1u << n_peers; writers++)
		add_start(&s, n_peers, writers, faults);
	for (size_t i = 0; i < s.n; i++) {
		const struct world *w = &s.queue[i];

		check_agreement(w);
		check_end(w);
		s.commits += w->coord_side.engine == ENGINE_COMMITTED;
		s.aborts += w->coord_side.engine == ENGINE_ABORTED;
		expand_messages(&s, w);
		expand_coord(&s, w);
		for (uint32_t p = 0; p < n_peers; p++)
			expand_part(&s, w, p);
	}
	print_message("%u participants, %u faults: %zu states, %zu committed, %zu aborted\n",
		      n_peers, faults, s.n, s.commits, s.aborts);
	/* Both outcomes must have been seen, or nothing was explored. */
	assert_true(s.commits && s.aborts);
	free(s.queue);
	free(s.table);
}

static void one_participant_every_order(void **state)
{
	(void)state;
	explore(1, 3, 100000);
}

static void two_participants_every_order(void **state)
{
	(void)state;
	explore(2, TWO_FAULTS, 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_participant_every_order),
		cmocka_unit_test(two_participants_every_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
