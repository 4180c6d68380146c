// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * References, and power that is lost at each step of a unit that goes with them: at the giver, at
 * the taker, at both, or the connection alone is. Volumes lose what was not synced.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/io/durable_rig.h"
#include "move_cold_rig.h"
#include "oltp-engine/relocate/wire.h"
#include "oltp-engine/server/kv/private.h"
#include "oltp-engine/server/move/facts.h"
#include "tests/lib/test_full.h"

#define UNITS	MOVE_COLD_UNITS

/* What one of the nodes does for a unit. Power is lost right before it, or right after it. */
enum what {
	GIVE = 1,	/* the giver: all records have gone, then this */
	READ,		/* the taker begins to read at the peer's half */
	TAKEN,		/* the taker writes the fact to its log, and forces it then */
	GOT,		/* the taker: it is on disk */
	GAVE,		/* the giver writes the fact to its log */
	REFUSE,		/* the taker: a value was not what its place says */
	GIVE_VALUES,	/* the giver: all has gone again, as values */
	TAKEN_VALUES,
	GOT_VALUES,
	GAVE_VALUES,
	WHATS,
};

static const char *const names[WHATS] = {
	[GIVE] = "GIVE", [READ] = "reading", [TAKEN] = "TAKEN", [GOT] = "GOT", [GAVE] = "GAVE",
	[REFUSE] = "REFUSE", [GIVE_VALUES] = "GIVE with values",
	[TAKEN_VALUES] = "TAKEN with values", [GOT_VALUES] = "GOT with values",
	[GAVE_VALUES] = "GAVE with values",
};

static struct {
	struct move_cold_volumes *volumes;
	uint32_t dead;		/* bits: the giver, the taker; 0: the connection alone */
	_Atomic uint32_t unit;	/* UNITS: none */
	int link;		/* the connection: shut down, it ends for both */
	_Atomic uint32_t step;	/* 2 * what + whether it is after it; 0: none, or it is over */
	_Atomic bool is_cut;
	_Atomic bool spoils;	/* the next value that is read */
	_Atomic uint32_t refused;	/* a unit that was; it comes with values then */
	_Atomic uint64_t n_values;	/* that were read at the peer's half */
} plan;

/* A node may refuse a unit once more after the cut: that says nothing of the next unit. */
static bool is_refused(void)
{
	return plan.refused == plan.unit;
}

/* Before a step nothing of it reaches the other node; after it, it may. */
static void step(enum what what, bool is_after)
{
	uint32_t here = 2 * what + is_after;

	if (!atomic_compare_exchange_strong(&plan.step, &here, 0))
		return;
	for (uint32_t i = 0; i < 2; i++) {
		if (plan.dead & 1u << i)
			power_file_lose_power(plan.volumes->power[i]);
	}
	if (!is_after)
		shutdown(plan.link, SHUT_RDWR);
	plan.is_cut = true;
}

uint32_t __real_wire_put_message(const struct wire_terms *terms, const struct units *units,
				 const struct units_message *message, uint32_t records,
				 uint32_t flags, uint8_t *to);
uint32_t __wrap_wire_put_message(const struct wire_terms *terms, const struct units *units,
				 const struct units_message *message, uint32_t records,
				 uint32_t flags, uint8_t *to);
int __real_facts_write(struct facts *facts, struct oltp_worker *worker, enum units_do what,
		       uint32_t unit, uint64_t gen, const struct unit *list, uint64_t shared_by,
		       uint64_t *ret_epoch);
int __wrap_facts_write(struct facts *facts, struct oltp_worker *worker, enum units_do what,
		       uint32_t unit, uint64_t gen, const struct unit *list, uint64_t shared_by,
		       uint64_t *ret_epoch);
int __real_oltp_places_begin(struct oltp_places *places, struct oltp_place_read *reads,
			     uint32_t n);
int __wrap_oltp_places_begin(struct oltp_places *places, struct oltp_place_read *reads,
			     uint32_t n);

uint32_t __wrap_wire_put_message(const struct wire_terms *terms, const struct units *units,
				 const struct units_message *message, uint32_t records,
				 uint32_t flags, uint8_t *to)
{
	enum what what = 0;
	uint32_t bytes;

	if (message->unit == plan.unit && message->kind == UNITS_GIVE)
		what = is_refused() ? GIVE_VALUES : GIVE;
	else if (message->unit == plan.unit && message->kind == UNITS_GOT)
		what = is_refused() ? GOT_VALUES : GOT;
	else if (message->unit == plan.unit && message->kind == UNITS_REFUSE &&
		 flags == WIRE_FLAG_VALUES)
		what = REFUSE;	/* else there was no room for it: it comes again, with places */
	if (what)
		step(what, false);
	bytes = __real_wire_put_message(terms, units, message, records, flags, to);
	if (what == REFUSE)
		plan.refused = message->unit;
	if (what)
		step(what, true);
	return bytes;
}

int __wrap_facts_write(struct facts *facts, struct oltp_worker *worker, enum units_do what,
		       uint32_t unit, uint64_t gen, const struct unit *list, uint64_t shared_by,
		       uint64_t *ret_epoch)
{
	enum what at = 0;
	int rc;

	if (unit == plan.unit && what == UNITS_LOG_TAKEN)
		at = is_refused() ? TAKEN_VALUES : TAKEN;
	else if (unit == plan.unit && what == UNITS_LOG_GAVE)
		at = is_refused() ? GAVE_VALUES : GAVE;
	if (at)
		step(at, false);
	rc = __real_facts_write(facts, worker, what, unit, gen, list, shared_by, ret_epoch);
	if (at)
		step(at, true);
	return rc;
}

int __wrap_oltp_places_begin(struct oltp_places *places, struct oltp_place_read *reads, uint32_t n)
{
	int rc;

	if (is_refused()) {
		/* On the thread of a node, where cmocka would end the program without a word. */
		fprintf(stderr, "a unit that was refused comes with places again\n");
		abort();
	}
	if (atomic_exchange(&plan.spoils, false))
		reads[n / 2].place.seed ^= 1;
	step(READ, false);
	rc = __real_oltp_places_begin(places, reads, n);
	step(READ, true);
	plan.n_values += n;
	return rc;
}

static void connect_nodes(struct move_rig *rig)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	plan.link = dup(fds[0]);
	assert_true(plan.link >= 0);
	for (uint32_t i = 0; i < 2; i++)
		move_connect(rig->nodes[i].move, fds[i], true);
}

static void disconnect_nodes(void)
{
	shutdown(plan.link, SHUT_RDWR);
	close(plan.link);
}

static uint32_t key_in(const struct move_rig *rig, uint32_t unit)
{
	struct kv *kv = rig->nodes[0].kv;
	uint32_t key = 0;

	for (;; key++) {
		char text[16];
		struct resp_arg name = { text, 0 };

		name.n = (uint32_t)snprintf(text, sizeof(text), "k%u", key);
		if (unit_of(kv, keyspace_home(&kv->ks, OWNER_KEYS, &name)) == unit)
			return key;
	}
}

/* A client of the node finds the key. */
static void ask(struct move_rig *rig, uint32_t node, uint32_t key)
{
	struct move_client client;

	move_client_open(&client, &rig->nodes[node]);
	move_cold_expect(&client, 'k', key, 0);
	move_client_close(&client);
}

/* A client of the target asks for the key, and gives up at once; until the step has come. */
static void ask_and_cut(struct move_rig *rig, uint32_t key)
{
	_Atomic bool gives_up = true;
	struct move_client client;
	char line[32];

	snprintf(line, sizeof(line), "GET k%u", key);
	move_client_open(&client, &rig->nodes[1]);
	client.gives_up = &gives_up;
	move_client_do(&client, line);
	for (uint32_t i = 0; i < 30000 && !plan.is_cut; i++)
		usleep(1000);
	/* What went after the step may arrive meanwhile. */
	usleep(2000);
	disconnect_nodes();
	plan.unit = UNITS;
	move_client_close(&client);
}

static void cut_at(struct move_rig *rig, uint32_t unit, enum what what, bool is_after)
{
	uint32_t key = key_in(rig, unit);

	plan.unit = unit;
	plan.is_cut = false;
	plan.spoils = what >= REFUSE;
	plan.step = 2 * what + is_after;
	ask_and_cut(rig, key);
	if (!plan.is_cut)
		fail_msg("%s %s never came", is_after ? "after" : "before", names[what]);
	plan.spoils = false;
	for (uint32_t i = 0; i < 2; i++) {
		if (plan.dead & 1u << i)
			move_rig_close(rig, i, true);
	}
	for (uint32_t i = 0; i < 2; i++) {
		if (plan.dead & 1u << i)
			move_rig_open(rig, i);
	}
	connect_nodes(rig);
	/* And back again, so that the source has too little memory for what it has. */
	ask(rig, 1, key);
	ask(rig, 0, key);
}

/* All is at the target, and on its disk; nothing of the source is needed. */
static void end(struct move_rig *rig, struct move_cold_volumes *volumes)
{
	uint64_t n_taken_back = 0;

	move_cold_finish(rig);
	move_cold_check(rig, 1);
	disconnect_nodes();
	move_rig_close(rig, 0, true);
	move_rig_close(rig, 1, true);
	assert_int_equal(truncate(volumes->paths[0], 0), 0);
	move_rig_open(rig, 1);
	move_cold_check(rig, 1);
	for (uint32_t i = 0; i < 2; i++)
		n_taken_back += power_file_taken_back(volumes->power[i]);
	print_message("%llu sectors lost, %llu values read\n", (unsigned long long)n_taken_back,
		      (unsigned long long)plan.n_values);
	assert_true(plan.n_values > MOVE_COLD_KEYS / 4);
	move_rig_close_both(rig);
	move_cold_remove_volumes(volumes);
}

/*
 * Each step in one database, with a unit of its own, whose values nobody has read before. In the
 * next one other nodes lose power there: in eight all that can, before each step and after it.
 */
static void cut_at_each_step(uint32_t database)
{
	struct move_cold_volumes volumes;
	struct move_rig rig;
	uint32_t unit = 0;

	memset(&plan, 0, sizeof(plan));
	plan.unit = UNITS;
	plan.refused = UINT32_MAX;
	plan.volumes = &volumes;
	move_cold_open_power(&rig, &volumes, 1 + database, 0);
	rig.nodes[0].limit_bytes = MOVE_COLD_LIMIT;
	connect_nodes(&rig);
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	for (uint32_t what = GIVE; what < WHATS; what++) {
		uint32_t which = (3 * what + database) % 8;

		plan.dead = which % 4;
		cut_at(&rig, unit++, what, which >= 4);
	}
	end(&rig, &volumes);
}

static void test_each_step(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < test_full(8, DURABLE_FEWER > 1 ? 1 : 3); i++)
		cut_at_each_step(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
