// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A target that has restarted gets nothing of a unit before the source has its table: it would
 * take the unit, while the table that is on its way lets the source keep it. The target is played,
 * frame by frame.
 *
 * And a start that fails half-way keeps no worker, and can be tried again. And a node on which
 * nothing runs leaves at once, and removes nothing before.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "move_rig.h"
#include "oltp-engine/relocate/wire.h"
#include "oltp-engine/server/kv/unit.h"
#include "oltp-engine/server/move/channel.h"
#include "oltp-engine/server/move/facts.h"

#define BITS		3u
#define UNITS		(1u << BITS)
#define KEYS		1000u
#define HELLOS		10u	/* of a source that waits for an answer, one each 20 ms */
#define BYTES_MAX	(WIRE_HEADER_BYTES + WIRE_PAYLOAD_MAX)

/* The target's side of the connection. */
struct peer {
	int fd;
	struct wire_terms terms;
	struct units_config config;
	struct units units;		/* has nothing */
	struct unit list[UNITS];
	struct units_entry table[UNITS];	/* of the source */
	uint64_t source;		/* its incarnation */
	uint8_t in[BYTES_MAX];
	size_t n_in;
};

static struct move_stats stats_of(const struct move_rig *rig)
{
	struct move_stats stats;

	move_stats_read(rig->nodes[0].move, &stats);
	return stats;
}

static void say(struct peer *p, struct units_message message)
{
	uint8_t frame[WIRE_MESSAGE_MAX(UNITS)];
	uint32_t bytes = wire_put_message(&p->terms, &p->units, &message, 0, 0, frame);

	assert_int_equal(send(p->fd, frame, bytes, 0), bytes);
}

static void ask(struct peer *p, uint64_t life, uint32_t unit)
{
	say(p, (struct units_message){ .from = life, .to = p->source, .gen = p->table[unit].gen,
				       .unit = unit, .kind = UNITS_ASK });
}

static void read_exactly(struct peer *p, size_t n)
{
	while (p->n_in < n) {
		ssize_t got = recv(p->fd, p->in + p->n_in, n - p->n_in, 0);

		assert_true(got > 0);
		p->n_in += (size_t)got;
	}
}

/* The next frame; false: none comes. */
static bool hear(struct peer *p, struct wire_header *ret_header)
{
	struct pollfd at = { .fd = p->fd, .events = POLLIN };
	struct wire_message message;
	int n;

	if (poll(&at, 1, 10000) <= 0)
		return false;
	p->n_in = 0;
	read_exactly(p, WIRE_HEADER_BYTES);
	memcpy(ret_header, p->in, sizeof(*ret_header));
	assert_in_range(ret_header->bytes, WIRE_HEADER_BYTES, BYTES_MAX);
	read_exactly(p, ret_header->bytes);
	n = wire_parse(&p->terms, p->in, p->n_in, &message);
	assert_int_equal(n, ret_header->bytes);
	if (message.header.type == UNITS_HELLO)
		(void)wire_units_message(&message, p->table);
	return true;
}

static void hear_hello(struct peer *p, uint64_t to)
{
	struct wire_header header;

	do
		assert_true(hear(p, &header));
	while (header.type != UNITS_HELLO || header.to != to);
	p->source = header.from;
}

static void wait_state(const struct move_rig *rig, enum unit_state state, uint32_t n)
{
	for (uint32_t i = 0; stats_of(rig).in_state[state] != n; i++) {
		assert_true(i < 10000);
		usleep(1000);
	}
}

/* So much in each unit that the first part of one keeps all others waiting for the socket. */
static void fill(const struct move_rig *rig)
{
	struct move_client client;
	char line[64];

	move_client_open(&client, (struct move_node *)&rig->nodes[0]);
	for (uint32_t i = 0; i < KEYS; i++) {
		snprintf(line, sizeof(line), "SET k%u $16000", i);
		move_client_expect(&client, line, "+OK\r\n");
	}
	move_client_close(&client);
}

static void peer_open(struct peer *p, struct move_rig *rig)
{
	int fds[2];

	*p = (struct peer){
		.terms = { rig->config.relocation, UNITS },
		.config = { .n_units = UNITS },
	};
	p->units.config = &p->config;
	p->units.list = p->list;
	for (uint32_t u = 0; u < UNITS; u++)
		p->list[u].state = UNIT_AWAY;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	p->fd = fds[1];
	move_connect(rig->nodes[0].move, fds[0], false);
}

static void test_restarted(void **state)
{
	struct wire_header header = { 0 };
	struct move_rig rig;
	struct peer *p = malloc(sizeof(*p));

	(void)state;
	assert_non_null(p);
	move_rig_init(&rig, BITS);
	move_rig_open(&rig, 0);
	fill(&rig);
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	peer_open(p, &rig);
	hear_hello(p, 0);
	say(p, (struct units_message){ .from = 1, .to = p->source, .kind = UNITS_HELLO });
	hear_hello(p, 1);
	ask(p, 1, 0);
	while (!stats_of(&rig).backlog_max)
		usleep(1000);
	for (uint32_t u = 1; u < UNITS; u++)
		ask(p, 1, u);
	wait_state(&rig, UNIT_GIVING, UNITS);

	/* Its next life; the source does not know what is left there. */
	say(p, (struct units_message){ .from = 2, .kind = UNITS_HELLO });
	for (uint32_t n = 0; n < HELLOS; n += header.type == UNITS_HELLO) {
		assert_true(hear(p, &header));
		assert_true(header.type == UNITS_HELLO || header.to != 2);
	}
	say(p, (struct units_message){ .from = 2, .to = p->source, .kind = UNITS_HELLO,
				       .flag = true });
	wait_state(&rig, UNIT_OWNED, UNITS);
	close(p->fd);
	free(p);
	move_rig_close(&rig, 0, false);
	move_rig_finish(&rig);
}

/* A peer that asks without end and reads nothing costs a connection, not memory without end. */
static void test_reads_nothing(void **state)
{
	struct peer *p = malloc(sizeof(*p));
	uint8_t frame[WIRE_MESSAGE_MAX(UNITS)];
	uint64_t sent = 0;
	struct move_rig rig;
	uint32_t bytes;
	ssize_t n;

	(void)state;
	assert_non_null(p);
	move_rig_init(&rig, BITS);
	move_rig_open(&rig, 0);
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	peer_open(p, &rig);
	hear_hello(p, 0);
	/* Each is answered by one of the same length. */
	bytes = wire_put_message(&p->terms, &p->units,
				 &(struct units_message){ .from = 1, .to = p->source,
							  .kind = UNITS_HELLO }, 0, 0, frame);
	do {
		n = send(p->fd, frame, bytes, MSG_NOSIGNAL);
		sent += bytes;
	} while (n == bytes && sent < 2 * CHANNEL_OUT_MAX);
	assert_int_equal(n, -1);
	assert_true(sent >= CHANNEL_OUT_MAX / 2);
	close(p->fd);
	/* The next one is served. */
	peer_open(p, &rig);
	assert_int_equal(send(p->fd, frame, bytes, 0), bytes);
	hear_hello(p, 1);
	close(p->fd);
	free(p);
	move_rig_close(&rig, 0, false);
	move_rig_finish(&rig);
}

#define STARTS		3u	/* that fail */

static bool fails;	/* the next start does, once its facts are on disk */
static struct move_rig *started_rig;	/* whose target is to fail at first; NULL: none */

int __real_facts_begin(struct facts *facts, struct oltp_worker *worker, const struct unit *list,
		       const struct facts_found *found);
int __wrap_facts_begin(struct facts *facts, struct oltp_worker *worker, const struct unit *list,
		       const struct facts_found *found);
int __real_move_start(struct move *move, struct kv *kv);
int __wrap_move_start(struct move *move, struct kv *kv);

int __wrap_facts_begin(struct facts *facts, struct oltp_worker *worker, const struct unit *list,
		       const struct facts_found *found)
{
	int rc = __real_facts_begin(facts, worker, list, found);

	if (fails)
		rc = -ENOMEM;
	fails = false;
	return rc;
}

static uint32_t count_workers(struct oltp_engine *engine)
{
	struct oltp_worker *workers[OLTP_WORKERS_MAX];
	uint32_t n = 0;

	while (!oltp_worker_create(engine, &workers[n]))
		n++;
	for (uint32_t i = 0; i < n; i++)
		oltp_worker_destroy(workers[i]);
	return n;
}

int __wrap_move_start(struct move *move, struct kv *kv)
{
	struct oltp_engine *engine;
	uint32_t n_workers;

	if (!started_rig || started_rig->nodes[1].kv != kv)
		return __real_move_start(move, kv);
	engine = started_rig->nodes[1].engine;
	n_workers = count_workers(engine);
	for (uint32_t i = 0; i < STARTS; i++) {
		fails = true;
		move_name(move, 40 + i);
		assert_int_equal(__real_move_start(move, kv), -ENOMEM);
	}
	assert_int_equal(count_workers(engine), n_workers);
	move_name(move, started_rig->config.relocation);
	return __real_move_start(move, kv);
}

/* A target tries again with the next source, whose relocation has another number. */
static void test_start_again(void **state)
{
	struct move_client client;
	struct move_rig rig;

	(void)state;
	move_rig_init(&rig, BITS);
	started_rig = &rig;
	move_rig_open_both(&rig);
	/* Units come. */
	move_client_open(&client, &rig.nodes[1]);
	move_client_expect(&client, "INCR n", ":1\r\n");
	move_client_close(&client);
	started_rig = NULL;
	move_rig_close_both(&rig);
}

/* The first descriptor of the node that polled first; -1: none has. */
static _Atomic int polls = -1;
static _Atomic bool is_leaving;
/* How often it has waited for so long in vain since it leaves. */
static _Atomic uint32_t n_slept;

int __real_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask);

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask)
{
	bool counts = is_leaving && polls == fds[0].fd && timeout && timeout->tv_sec > 0;
	int none = -1, rc;

	atomic_compare_exchange_strong(&polls, &none, fds[0].fd);
	rc = __real_ppoll(fds, n, timeout, mask);
	n_slept += counts && !rc;
	return rc;
}

/* No command ends that would wake the thread: it must look by itself that gates are idle. */
static void test_leaves_at_once(void **state)
{
	struct move_rig rig;

	(void)state;
	move_rig_init(&rig, BITS);
	polls = -1;
	move_rig_open(&rig, 0);
	while (polls < 0)
		usleep(1000);
	move_rig_open(&rig, 1);
	move_rig_connect(&rig);
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	is_leaving = true;
	move_leave(rig.nodes[0].move, true);
	while (!stats_of(&rig).leave_ns)
		usleep(1000);
	is_leaving = false;
	assert_int_equal(n_slept, 0);
	move_rig_close_both(&rig);
}

static struct move_rig *_Atomic leaving_rig;
static _Atomic uint32_t n_removed, n_removed_early;

int __real_kv_unit_remove_some(struct kv *kv, struct kv_cold_reads *reads,
			       struct kv_cold_wait *wait, uint32_t unit);
int __wrap_kv_unit_remove_some(struct kv *kv, struct kv_cold_reads *reads,
			       struct kv_cold_wait *wait, uint32_t unit);

int __wrap_kv_unit_remove_some(struct kv *kv, struct kv_cold_reads *reads,
			       struct kv_cold_wait *wait, uint32_t unit)
{
	struct move_rig *rig = leaving_rig;

	if (rig && rig->nodes[0].kv == kv) {
		n_removed++;
		n_removed_early += stats_of(rig).in_state[UNIT_AWAY] < 1u << BITS;
	}
	return __real_kv_unit_remove_some(kv, reads, wait, unit);
}

/* Records of units that have gone stay until all have gone: requests wait for the others. */
static void test_gives_first(void **state)
{
	struct move_rig rig;

	(void)state;
	move_rig_init(&rig, BITS);
	move_rig_open_both(&rig);
	leaving_rig = &rig;
	move_leave(rig.nodes[0].move, false);
	move_rig_wait_mode(&rig, 0, UNITS_ENDED);
	while (n_removed < 1u << BITS)
		usleep(1000);
	leaving_rig = NULL;
	assert_int_equal(n_removed_early, 0);
	move_rig_close_both(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_again),
		cmocka_unit_test(test_restarted),
		cmocka_unit_test(test_reads_nothing),
		cmocka_unit_test(test_leaves_at_once),
		cmocka_unit_test(test_gives_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
