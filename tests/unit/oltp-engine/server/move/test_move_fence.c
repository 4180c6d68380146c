// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A node is lost, or both lose each other: one of them is fenced, and the other has all that was
 * acknowledged by either, once; what clients of both saw is strictly serializable. EBB_TEST_CUTS:
 * how often a node is lost for good (docs/testing.md).
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/server/kv/kv_audit.h"
#include "move_history.h"
#include "move_pairs.h"
#include "oltp-engine/relocate/wire.h"
#include "oltp_volume.h"
#include "tests/lib/test_full.h"

#define BITS		3u
#define UNITS		(1u << BITS)
#define ROUNDS		6u
#define VOLUME_BYTES	(64u << 20)

enum trouble { NO_TROUBLE, UNREADABLE, ELSEWHERE };

struct server;

/* A node at the volume server. */
struct seat {
	struct server *server;
	uint32_t number;
	struct fault_disk *copy;	/* of the other's disk, as its engine here sees it */
	struct oltp_config config;	/* what peer_config gave */
};

/* A volume server, played: the first fence counts. */
struct server {
	struct move_rig rig;
	struct move_history history;
	struct seat seats[2];
	pthread_mutex_t lock;
	_Atomic bool has_fenced;	/* set after loser */
	uint32_t loser;
	_Atomic bool is_away;		/* answers nothing */
	/* Bits of nodes: one that is slow looks lost to the other, so only who is to win may. */
	_Atomic uint32_t may_fence;
	_Atomic uint32_t trouble;	/* enum trouble: of whoever reads the loser's log */
	_Atomic uint32_t n_asked;	/* calls of is_fenced */
};

static enum move_fence answer(const struct seat *seat)
{
	if (seat->server->is_away)
		return MOVE_FENCE_LATER;
	if (!seat->server->has_fenced)
		return MOVE_FENCE_NONE;
	return seat->server->loser == seat->number ? MOVE_FENCE_LOST : MOVE_FENCE_WON;
}

static enum move_fence is_fenced(void *ctx)
{
	struct seat *seat = ctx;
	enum move_fence rc;

	pthread_mutex_lock(&seat->server->lock);
	rc = answer(seat);
	seat->server->n_asked++;
	pthread_mutex_unlock(&seat->server->lock);
	return rc;
}

/* The loser's disk takes nothing more from then on, and what it took stays. */
static enum move_fence fence(void *ctx)
{
	struct seat *seat = ctx;
	struct server *server = seat->server;
	enum move_fence rc;

	pthread_mutex_lock(&server->lock);
	rc = answer(seat);
	if (rc == MOVE_FENCE_NONE && !(server->may_fence & 1u << seat->number))
		rc = MOVE_FENCE_LATER;
	if (rc == MOVE_FENCE_NONE) {
		server->loser = !seat->number;
		server->has_fenced = true;
		fault_disk_cut_off(server->rig.nodes[server->loser].disk);
		rc = MOVE_FENCE_WON;
	}
	pthread_mutex_unlock(&server->lock);
	return rc;
}

static const struct oltp_config *peer_config(void *ctx)
{
	struct seat *seat = ctx;
	const struct move_node *peer = &seat->server->rig.nodes[!seat->number];

	seat->config = move_rig_engine(peer);
	if (peer->volume) {
		seat->config.volume_read_only = true;
		return &seat->config;
	}
	if (seat->copy)
		fault_disk_destroy(seat->copy);
	seat->copy = seat->server->trouble == ELSEWHERE ? fault_disk_create(7) :
		     fault_disk_copy(peer->disk, 7);
	if (seat->server->trouble == UNREADABLE)
		fault_disk_fail_at(seat->copy, 3, FAULT_NEVER, -EIO);
	seat->config.log_io_ctx = seat->copy;
	return &seat->config;
}

static const struct move_fence_ops ops = { is_fenced, fence, peer_config };

static struct server *server_new(uint64_t fence_ms)
{
	struct server *server = calloc(1, sizeof(*server));

	assert_non_null(server);
	pthread_mutex_init(&server->lock, NULL);
	move_history_init(&server->history);
	move_rig_init(&server->rig, BITS);
	server->rig.config.fence = &ops;
	server->rig.config.fence_ns = fence_ms * 1000000;
	for (uint32_t i = 0; i < 2; i++) {
		server->seats[i] = (struct seat){ .server = server, .number = i };
		server->rig.nodes[i].fence_ctx = &server->seats[i];
	}
	return server;
}

static void server_free(struct server *server)
{
	for (uint32_t i = 0; i < 2; i++) {
		move_rig_close(&server->rig, i, false);
		if (server->seats[i].copy)
			fault_disk_destroy(server->seats[i].copy);
	}
	move_rig_finish(&server->rig);
	move_history_finish(&server->history);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

static struct move_stats stats_of(const struct move_rig *rig, uint32_t node)
{
	struct move_stats stats;

	move_stats_read(rig->nodes[node].move, &stats);
	return stats;
}

/* Until each has given units. */
static void wait_exchanged(const struct move_rig *rig)
{
	while (stats_of(rig, 0).units.given < 4 || stats_of(rig, 1).units.given < 4)
		usleep(1000);
}

/* A node that has nothing, or has just given the last that it had, fences nobody by itself. */
static void wait_fenced(struct server *server, uint32_t winner)
{
	while (!server->has_fenced) {
		if (!stats_of(&server->rig, winner).owned)
			move_take_over(server->rig.nodes[winner].move);
		usleep(1000);
	}
}

/* What is at the winner is all, and outlives a crash of it. */
static void check_winner(struct server *server, const struct pairs *pairs, uint32_t winner)
{
	struct move_rig *rig = &server->rig;

	move_rig_wait_mode(rig, winner, UNITS_ALONE);
	assert_int_equal(server->loser, !winner);
	assert_int_equal(stats_of(rig, winner).owned, UNITS);
	assert_int_equal(stats_of(rig, winner).error, 0);
	pairs_check(pairs, rig, winner);
	kv_audit(rig->nodes[winner].kv);
	move_rig_close(rig, winner, true);
	move_rig_open(rig, winner);
	move_rig_wait_mode(rig, winner, UNITS_ALONE);
	pairs_check(pairs, rig, winner);
}

/* One dies for good at any moment. */
static void test_survivor(void **state)
{
	uint32_t rounds = test_count("EBB_TEST_CUTS", ROUNDS);
	uint64_t recovered[2] = { 0 };

	(void)state;
	for (uint32_t round = 0; round < rounds; round++) {
		struct server *server = server_new(50);
		struct pairs *pairs = calloc(1, sizeof(*pairs));
		struct move_rig *rig = &server->rig;
		uint32_t winner = round % 2;

		assert_non_null(pairs);
		move_rig_open_both(rig);
		pairs_begin(pairs, rig, round);
		move_history_begin(&server->history, rig, round);
		wait_exchanged(rig);
		server->may_fence = 1u << winner;
		usleep(round * 7919 % 20000);
		fault_disk_lose_power_at(rig->nodes[!winner].disk, 0);
		usleep(5000);
		pairs_end(pairs);
		move_history_end(&server->history);
		move_rig_close(rig, !winner, true);
		wait_fenced(server, winner);
		move_rig_wait_mode(rig, winner, UNITS_ALONE);
		recovered[winner] += stats_of(rig, winner).recovered;
		check_winner(server, pairs, winner);
		move_history_check(&server->history, rig, winner, true);
		server_free(server);
		free(pairs);
	}
	assert_true(recovered[0] > 0 && recovered[1] > 0);
}

/* Both are up and cannot reach each other. */
static void test_both(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct server *server = server_new(50);
		struct pairs *pairs = calloc(1, sizeof(*pairs));
		struct move_rig *rig = &server->rig;
		struct move_client client;
		uint32_t loser;

		assert_non_null(pairs);
		move_rig_open_both(rig);
		pairs_begin(pairs, rig, round);
		move_history_begin(&server->history, rig, round);
		wait_exchanged(rig);
		server->may_fence = 3;
		move_rig_part(rig);
		while (!server->has_fenced)
			usleep(1000);
		loser = server->loser;
		move_rig_wait_mode(rig, !loser, UNITS_ALONE);
		/* One that has nothing does not ask, and answers nothing. */
		if (stats_of(rig, loser).owned) {
			move_rig_wait_mode(rig, loser, UNITS_STOPPED);
			assert_true(stats_of(rig, loser).error != 0);
		}
		usleep(20000);
		pairs_end(pairs);
		move_history_end(&server->history);
		if (stats_of(rig, loser).mode == UNITS_STOPPED) {
			move_client_open(&client, &rig->nodes[loser]);
			assert_true(move_client_do(&client, "INCR n"));
			assert_memory_equal(client.out.bytes, "-", 1);
			move_client_close(&client);
		}
		/* It is told at the start, and says nothing. */
		move_rig_close(rig, loser, true);
		move_rig_open(rig, loser);
		move_rig_connect(rig);
		move_rig_wait_mode(rig, loser, UNITS_STOPPED);
		assert_int_equal(stats_of(rig, loser).error, -EPERM);
		check_winner(server, pairs, !loser);
		move_history_check(&server->history, rig, !loser, true);
		server_free(server);
		free(pairs);
	}
}

/* The winner loses power while it takes over, and goes on when it is back. */
static void test_winner_restarts(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
		struct server *server = server_new(30);
		struct pairs *pairs = calloc(1, sizeof(*pairs));
		struct move_rig *rig = &server->rig;
		uint32_t winner = round % 2;

		assert_non_null(pairs);
		move_rig_open_both(rig);
		pairs_begin(pairs, rig, round);
		wait_exchanged(rig);
		server->may_fence = 1u << winner;
		fault_disk_lose_power_at(rig->nodes[!winner].disk, 0);
		usleep(5000);
		pairs_end(pairs);
		move_rig_close(rig, !winner, true);
		wait_fenced(server, winner);
		usleep(round / 2 * 3000);
		move_rig_close(rig, winner, true);
		move_rig_open(rig, winner);
		check_winner(server, pairs, winner);
		server_free(server);
		free(pairs);
	}
}

static void wait_error(const struct move_rig *rig, uint32_t node)
{
	while (!stats_of(rig, node).error)
		usleep(1000);
}

/* While the loser's log cannot be read, the winner serves what it has; then it has all. */
static void test_unreadable(void **state)
{
	(void)state;
	for (uint32_t winner = 0; winner < 2; winner++) {
		struct server *server = server_new(50);
		struct pairs *pairs = calloc(1, sizeof(*pairs));
		struct move_rig *rig = &server->rig;
		struct move_stats stats;

		assert_non_null(pairs);
		move_rig_open_both(rig);
		pairs_begin(pairs, rig, winner);
		wait_exchanged(rig);
		server->may_fence = 1u << winner;
		server->trouble = winner ? UNREADABLE : ELSEWHERE;
		fault_disk_lose_power_at(rig->nodes[!winner].disk, 0);
		usleep(5000);
		pairs_end(pairs);
		move_rig_close(rig, !winner, true);
		wait_fenced(server, winner);
		wait_error(rig, winner);
		usleep(150000);
		stats = stats_of(rig, winner);
		assert_int_equal(stats.mode, UNITS_SHARED);
		assert_true(stats.is_peer_fenced);
		assert_int_equal(stats.recovered, 0);
		/* Also a restart changes nothing of that. */
		move_rig_close(rig, winner, true);
		move_rig_open(rig, winner);
		wait_error(rig, winner);
		assert_int_equal(stats_of(rig, winner).mode, UNITS_SHARED);
		server->trouble = NO_TROUBLE;
		check_winner(server, pairs, winner);
		server_free(server);
		free(pairs);
	}
}

/* There is no message before the server has said who is fenced. */
static void test_asked_first(void **state)
{
	struct server *server = server_new(10000);
	struct move_rig *rig = &server->rig;
	struct move_client b;
	uint32_t asked;

	(void)state;
	move_rig_open_both(rig);
	move_client_open(&b, &rig->nodes[1]);
	move_client_expect(&b, "INCR n", ":1\r\n");
	move_client_close(&b);
	move_rig_close(rig, 1, true);
	server->is_away = true;
	asked = server->n_asked;
	move_rig_open(rig, 1);
	move_rig_connect(rig);
	while (server->n_asked < asked + 4)
		usleep(1000);
	assert_false(stats_of(rig, 1).is_connected);
	assert_int_equal(stats_of(rig, 1).owned, 0);
	server->is_away = false;
	move_client_open(&b, &rig->nodes[1]);
	move_client_expect(&b, "INCR n", ":2\r\n");
	move_client_close(&b);
	server_free(server);
}

/* On volumes, which the winner only reads. */
static void test_volumes(void **state)
{
	char paths[2][32];
	struct server *server = server_new(100);
	struct move_rig *rig = &server->rig;
	struct oltp_volume_info before = { 0 }, behind = { 0 };
	struct move_client a, b;
	char line[64];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		int fd;

		strcpy(paths[i], "/var/tmp/move-fence-XXXXXX");
		fd = mkstemp(paths[i]);
		assert_true(fd >= 0);
		assert_int_equal(posix_fallocate(fd, 0, VOLUME_BYTES), 0);
		close(fd);
		assert_int_equal(oltp_volume_format(paths[i], false), 0);
		rig->nodes[i].volume = paths[i];
	}
	move_rig_open_both(rig);
	move_client_open(&a, &rig->nodes[0]);
	move_client_open(&b, &rig->nodes[1]);
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(line, sizeof(line), "SET k%u $%u", i, i * 100);
		move_client_expect(i % 3 ? &b : &a, line, "+OK\r\n");
	}
	assert_true(stats_of(rig, 1).owned > 0);
	move_client_close(&b);
	server->may_fence = 1;
	move_rig_close(rig, 1, false);
	assert_int_equal(oltp_volume_list(paths[1], &before, NULL, NULL), 0);
	move_rig_wait_mode(rig, 0, UNITS_ALONE);
	assert_true(stats_of(rig, 0).recovered > 0);
	assert_int_equal(oltp_volume_list(paths[1], &behind, NULL, NULL), 0);
	assert_memory_equal(&before, &behind, sizeof(before));
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(line, sizeof(line), "STRLEN k%u", i);
		assert_int_equal(move_client_integer(&a, line), i * 100);
	}
	move_client_close(&a);
	kv_audit(rig->nodes[0].kv);
	server_free(server);
	unlink(paths[0]);
	unlink(paths[1]);
}

/* Tells both nodes times, as a server does once per second; or one of them. */
struct teller {
	pthread_t thread;
	struct move_rig *rig;
	_Atomic uint32_t nodes;		/* bits; 0: ends */
};

static void *tell_times(void *ctx)
{
	const struct drain_times times = { 1, 1000 };
	struct teller *teller = ctx;

	while (teller->nodes) {
		for (uint32_t i = 0; i < 2; i++) {
			if (teller->nodes & 1u << i)
				move_tell_times(teller->rig->nodes[i].move, &times);
		}
		usleep(20000);
	}
	return NULL;
}

/* A node that is stuck: its connection is there, and nothing comes on it. */
static void test_silent(void **state)
{
	struct server *server = server_new(300);
	struct pairs *pairs = calloc(1, sizeof(*pairs));
	struct teller teller = { .rig = &server->rig, .nodes = 3 };
	struct move_rig *rig = &server->rig;

	(void)state;
	assert_non_null(pairs);
	rig->config.silence_ns = 2000000000;
	move_rig_open_both(rig);
	pthread_create(&teller.thread, NULL, tell_times, &teller);
	pairs_begin(pairs, rig, 1);
	wait_exchanged(rig);
	server->may_fence = 1;
	/* Both give signs of life: the connection stays. */
	usleep(2500000);
	assert_true(stats_of(rig, 0).is_connected && stats_of(rig, 1).is_connected);
	assert_int_equal(stats_of(rig, 0).error, 0);
	assert_int_equal(stats_of(rig, 0).fence, MOVE_FENCE_NONE);
	teller.nodes = 1;
	while (!server->has_fenced) {
		if (!stats_of(rig, 0).owned)
			move_take_over(rig->nodes[0].move);
		usleep(1000);
	}
	move_rig_wait_mode(rig, 0, UNITS_ALONE);
	assert_int_equal(stats_of(rig, 0).fence, MOVE_FENCE_WON);
	teller.nodes = 0;
	pthread_join(teller.thread, NULL);
	pairs_end(pairs);
	move_rig_close(rig, 1, true);
	check_winner(server, pairs, 0);
	server_free(server);
	free(pairs);
}

/* A node whose log has failed drops the connection, so its peer need not wait for silence. */
static void test_log_failed(void **state)
{
	struct server *server = server_new(10000);
	struct move_rig *rig = &server->rig;
	const struct drain_times times = { 0, 0 };

	(void)state;
	move_rig_open_both(rig);
	fault_disk_lose_power_at(rig->nodes[1].disk, 0);
	while (stats_of(rig, 1).mode != UNITS_STOPPED || stats_of(rig, 0).is_connected) {
		struct move_client b;

		/* Something to be written. */
		move_client_open(&b, &rig->nodes[1]);
		(void)move_client_do(&b, "SET a b");
		move_client_close(&b);
		move_tell_times(rig->nodes[1].move, &times);
		usleep(10000);
	}
	assert_true(stats_of(rig, 1).error != 0);
	server_free(server);
}

/* From the target to the source; nothing that says that a unit was taken gets through. */
struct deaf {
	int from, to;
};

static bool read_all(int fd, uint8_t *to, size_t bytes)
{
	size_t n = 0;

	while (n < bytes) {
		ssize_t got = read(fd, to + n, bytes - n);

		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	return true;
}

static void *pass_to_source(void *ctx)
{
	const struct deaf *deaf = ctx;
	uint8_t *frame = malloc(WIRE_HEADER_BYTES + WIRE_PAYLOAD_MAX);
	struct wire_header header;

	while (read_all(deaf->from, frame, sizeof(header))) {
		memcpy(&header, frame, sizeof(header));
		if (!read_all(deaf->from, frame + sizeof(header), header.bytes - sizeof(header)))
			break;
		if (header.type != UNITS_GOT &&
		    write(deaf->to, frame, header.bytes) != (ssize_t)header.bytes)
			break;
	}
	shutdown(deaf->to, SHUT_RDWR);
	free(frame);
	return NULL;
}

static void *pass_to_target(void *ctx)
{
	const struct deaf *deaf = ctx;
	uint8_t bytes[4096];
	ssize_t n;

	while ((n = read(deaf->to, bytes, sizeof(bytes))) > 0) {
		if (write(deaf->from, bytes, (size_t)n) != n)
			break;
	}
	shutdown(deaf->from, SHUT_RDWR);
	return NULL;
}

/*
 * The peer took a unit, has changed it, and died before this node heard of it. What this node has
 * of the unit is old then.
 */
static void test_given_in_doubt(void **state)
{
	/* It is tried once: what a try that fails leaves behind is removed before the next. */
	struct server *server = server_new(60000);
	struct move_rig *rig = &server->rig;
	struct move_client a, b;
	int source[2], target[2];
	pthread_t threads[2];
	struct deaf deaf;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	rig->config.unit_bits = 0;
	move_rig_open(rig, 0);
	move_rig_open(rig, 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, source), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, target), 0);
	deaf = (struct deaf){ .from = target[1], .to = source[1] };
	pthread_create(&threads[0], NULL, pass_to_source, &deaf);
	pthread_create(&threads[1], NULL, pass_to_target, &deaf);
	move_connect(rig->nodes[0].move, source[0], false);
	move_connect(rig->nodes[1].move, target[0], false);
	move_client_open(&a, &rig->nodes[0]);
	move_client_expect(&a, "SET n 1", "+OK\r\n");
	move_client_expect(&a, "SET gone 1", "+OK\r\n");
	move_share(rig->nodes[0].move);
	move_rig_wait_mode(rig, 0, UNITS_SHARED);
	move_client_open(&b, &rig->nodes[1]);
	move_client_expect(&b, "INCR n", ":2\r\n");
	move_client_expect(&b, "DEL gone", ":1\r\n");
	move_client_close(&b);
	assert_int_equal(stats_of(rig, 0).in_state[UNIT_GIVING], 1);
	server->may_fence = 1;
	move_rig_close(rig, 1, true);
	move_take_over(rig->nodes[0].move);
	move_rig_wait_mode(rig, 0, UNITS_ALONE);
	assert_int_equal(stats_of(rig, 0).recovered, 1);
	move_client_expect(&a, "INCR n", ":3\r\n");
	move_client_expect(&a, "EXISTS gone", ":0\r\n");
	move_client_close(&a);
	kv_audit(rig->nodes[0].kv);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	close(deaf.from);
	close(deaf.to);
	server_free(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_survivor),
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_winner_restarts),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_asked_first),
		cmocka_unit_test(test_volumes),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_log_failed),
		cmocka_unit_test(test_given_in_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
