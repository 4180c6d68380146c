// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The answer that a unit was taken is lost with the connection, and on the next one the unit goes
 * back before its giver has heard that it had gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "move_rig.h"
#include "oltp-engine/relocate/wire.h"

#define BITS		1u	/* both units are on the way at a time */
#define KEYS		"a 1 b 2 c 3 d 4 e 5"
/* Longer than the taker needs to send the unit back. */
#define LATE_US		300000u

static struct {
	int link;		/* the connection: shut down, it ends for both */
	_Atomic bool cuts;	/* before the next GOT */
	_Atomic bool is_late;	/* the next GIVE of these */
	_Atomic uint32_t unit;	/* of the last GOT, as is gen */
	_Atomic uint64_t gen;
} plan;

uint32_t __real_wire_put_message(const struct wire_terms *terms, const struct units *units,
				 const struct units_message *message, uint32_t records,
				 uint32_t flags, uint8_t *to);
uint32_t __wrap_wire_put_message(const struct wire_terms *terms, const struct units *units,
				 const struct units_message *message, uint32_t records,
				 uint32_t flags, uint8_t *to);

uint32_t __wrap_wire_put_message(const struct wire_terms *terms, const struct units *units,
				 const struct units_message *message, uint32_t records,
				 uint32_t flags, uint8_t *to)
{
	/* GIVE may be repeated, and is answered each time. */
	if (message->kind == UNITS_GOT && message->gen > plan.gen) {
		plan.unit = message->unit;
		plan.gen = message->gen;
		if (plan.cuts)
			shutdown(plan.link, SHUT_RDWR);
		plan.cuts = false;
	}
	if (message->kind == UNITS_GIVE && plan.is_late && message->unit == plan.unit &&
	    message->gen == plan.gen) {
		plan.is_late = false;
		usleep(LATE_US);
	}
	return __real_wire_put_message(terms, units, message, records, flags, to);
}

static void connect_nodes(struct move_rig *rig)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	plan.link = dup(fds[0]);
	assert_true(plan.link >= 0);
	for (uint32_t i = 0; i < 2; i++)
		move_connect(rig->nodes[i].move, fds[i], false);
}

static void test_goes_back_at_once(void **state)
{
	struct move_client clients[2];
	struct move_stats stats;
	struct move_rig rig;

	(void)state;
	move_rig_init(&rig, BITS);
	for (uint32_t i = 0; i < 2; i++) {
		move_rig_open(&rig, i);
		move_client_open(&clients[i], &rig.nodes[i]);
	}
	connect_nodes(&rig);
	move_client_expect(&clients[0], "MSET " KEYS, "+OK\r\n");
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	assert_int_equal(move_client_integer(&clients[1], "INCR a"), 2);
	/* That GOT may come later than the reply to the client. */
	do {
		usleep(1000);
		move_stats_read(rig.nodes[0].move, &stats);
	} while (!stats.units.given);
	plan.cuts = true;
	assert_int_equal(move_client_integer(&clients[0], "INCR a"), 3);
	while (plan.cuts)
		usleep(1000);
	close(plan.link);
	plan.is_late = true;
	move_leave(rig.nodes[0].move, false);
	connect_nodes(&rig);
	move_rig_wait_mode(&rig, 0, UNITS_ENDED);
	move_rig_wait_mode(&rig, 1, UNITS_ALONE);
	assert_false(plan.is_late);
	for (uint32_t i = 0; i < 2; i++) {
		move_stats_read(rig.nodes[i].move, &stats);
		assert_int_equal(stats.error, 0);
	}
	assert_int_equal(move_client_integer(&clients[1], "INCR a"), 4);
	move_client_expect(&clients[1], "DBSIZE", ":5\r\n");
	close(plan.link);
	for (uint32_t i = 0; i < 2; i++) {
		move_client_close(&clients[i]);
		move_rig_close(&rig, i, false);
	}
	move_rig_finish(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_back_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
