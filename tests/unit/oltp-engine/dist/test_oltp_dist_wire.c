// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a node takes from outside: frames with each field wrong in turn, peers that are slow, break
 * off, speak another version or have our name, logs that are torn, damaged or of another node.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "oltp-engine/dist/conn.h"
#include "oltp-engine/dist/dist.h"
#include "oltp-engine/dist/log.h"
#include "oltp-engine/dist/node_private.h"
#include "oltp-engine/dist/node_ycsb.h"
#include "oltp-engine/src/base/clock.h"

static const struct dist_gtid some = { .node = 9, .incarnation = 2, .seq = 77 };

#define SLOW_BYTES	2048u

/* ---- a peer that takes its time ---- */

struct slow_peer {
	int fd;
	_Atomic bool is_hurried;
	struct {
		struct dist_frame frame;
		uint8_t payload[SLOW_BYTES];
	} message;
};

/* A byte each 2 ms, and all the rest once it is told to. */
static void *slow_main(void *arg)
{
	struct slow_peer *peer = arg;
	const uint8_t *bytes = (const uint8_t *)&peer->message;

	for (size_t at = 0; at < sizeof(peer->message);) {
		size_t n = atomic_load(&peer->is_hurried) ? sizeof(peer->message) - at : 1;

		if (send(peer->fd, bytes + at, n, MSG_NOSIGNAL) != (ssize_t)n)
			break;
		at += n;
		usleep(2000);
	}
	return NULL;
}

/* Bytes that trickle in are no reason to wait for longer than for a message that does not come. */
static void a_slow_peer_keeps_nobody(void **state)
{
	struct slow_peer peer = {
		.message.frame = dist_frame_make(DIST_VOTE, &some, DIST_VOTE_READ, SLOW_BYTES),
	};
	const struct dist_frame hello = dist_frame_make(DIST_HELLO, &some, 0, 0), *frame;
	struct dist_conn conn = { .fd = -1 };
	uint64_t start_ns;
	const void *payload;
	pthread_t thread;
	int fds[2], rc;

	(void)state;
	memset(peer.message.payload, 0x5a, SLOW_BYTES);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	peer.fd = fds[1];
	assert_int_equal(send(peer.fd, &hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(dist_conn_accept(&conn, fds[0], some.node + 1), 0);
	assert_int_equal(pthread_create(&thread, NULL, slow_main, &peer), 0);
	start_ns = clock_now_ns();
	/* The whole message takes 4 s. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(dist_conn_receive(&conn, &frame, &payload), -EAGAIN);
	atomic_store(&peer.is_hurried, true);
	while ((rc = dist_conn_receive(&conn, &frame, &payload)) == -EAGAIN &&
	       clock_now_ns() - start_ns < 60000000000ull)
		;
	assert_int_equal(rc, 0);
	assert_int_equal(frame->type, DIST_VOTE);
	assert_memory_equal(payload, peer.message.payload, SLOW_BYTES);
	pthread_join(thread, NULL);
	dist_conn_close(&conn);
	close(peer.fd);
}

/* Reads some bytes each 0.5 s. */
static void *reader_main(void *arg)
{
	struct slow_peer *peer = arg;
	uint8_t bytes[1024];

	while (recv(peer->fd, bytes, sizeof(bytes), 0) > 0)
		if (!atomic_load(&peer->is_hurried))
			usleep(500000);
	return NULL;
}

/* One that reads slowly does not either: a message has one deadline, however it is divided. */
static void a_slow_reader_keeps_nobody(void **state)
{
	static uint8_t payload[DIST_PAYLOAD_MAX];
	const struct dist_frame frame = dist_frame_make(DIST_PREPARE, &some, 0, sizeof(payload));
	const int small = 1;
	struct dist_conn conn;
	struct slow_peer peer = { 0 };
	pthread_t thread;
	int fds[2], rc;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	conn.fd = fds[0];
	peer.fd = fds[1];
	assert_int_equal(setsockopt(conn.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	while (send(conn.fd, payload, 64, MSG_DONTWAIT) == 64)
		;
	assert_int_equal(pthread_create(&thread, NULL, reader_main, &peer), 0);
	/* A first message may find room for all of it; not ten of them. */
	for (int i = 0; i < 10; i++) {
		rc = dist_conn_send(&conn, &frame, payload);
		if (rc)
			break;
	}
	assert_int_equal(rc, -ETIMEDOUT);
	atomic_store(&peer.is_hurried, true);
	dist_conn_close(&conn);
	pthread_join(thread, NULL);
	close(peer.fd);
}

/* ---- frames ---- */

static void good_frames_pass(void **state)
{
	struct dist_frame frame;

	(void)state;
	for (uint32_t type = DIST_COMMIT; type <= DIST_QUERY; type++) {
		frame = dist_frame_make(type, &some, 0, 0);
		assert_int_equal(dist_frame_check(&frame), 0);
	}
	frame = dist_frame_make(DIST_HELLO, &some, 0, 0);
	assert_int_equal(dist_frame_check(&frame), 0);
	frame = dist_frame_make(DIST_PREPARE, &some, DIST_OPS_MAX,
				DIST_OPS_MAX * sizeof(struct dist_op));
	assert_int_equal(dist_frame_check(&frame), 0);
	frame = dist_frame_make(DIST_VOTE, &some, DIST_VOTE_READ, DIST_PAYLOAD_MAX);
	assert_int_equal(dist_frame_check(&frame), 0);
	frame = dist_frame_make(DIST_VOTE, &some, DIST_VOTE_NO, 8);
	assert_int_equal(dist_frame_check(&frame), 0);
}

static void each_wrong_field_is_refused(void **state)
{
	const struct dist_frame good = dist_frame_make(DIST_PREPARE, &some, 2,
						       2 * sizeof(struct dist_op));
	struct dist_frame bad[] = { good, good, good, good, good, good, good, good };

	(void)state;
	bad[0].reserved = 1;
	bad[1].type = 0;
	bad[2].type = DIST_QUERY + 1;
	bad[3].n = 0;
	bad[4].n = 3;
	bad[5].bytes += 4;
	bad[6].bytes = 16;
	bad[7].bytes = DIST_FRAME_BYTES + DIST_PAYLOAD_MAX + 8;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(dist_frame_check(&bad[i]), -EPROTO);
	bad[0] = good;
	bad[0].version = DIST_VERSION + 1;
	assert_int_equal(dist_frame_check(&bad[0]), -EPROTONOSUPPORT);
	bad[0] = dist_frame_make(DIST_COMMIT, &some, 1, 0);
	assert_int_equal(dist_frame_check(&bad[0]), -EPROTO);
	bad[0] = dist_frame_make(DIST_VOTE, &some, DIST_VOTE_READ + 1, 0);
	assert_int_equal(dist_frame_check(&bad[0]), -EPROTO);
}

/* ---- logs ---- */

struct seen {
	uint32_t n;
	enum dist_record kinds[8];
	size_t bytes[8];
};

static int see(void *ctx, enum dist_record kind, const struct dist_gtid *gtid, const void *payload,
	       size_t bytes)
{
	struct seen *seen = ctx;

	assert_true(seen->n < 8);
	assert_true(dist_gtid_is_equal(gtid, &some));
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(((const uint8_t *)payload)[i], (uint8_t)i);
	seen->kinds[seen->n] = kind;
	seen->bytes[seen->n++] = bytes;
	return 0;
}

struct place {
	char dir[32];
	char log[64];
	char listen[64];
	char peer[64];
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	if (!place)
		return -1;
	strcpy(place->dir, "/tmp/ebb-dist-XXXXXX");
	if (!mkdtemp(place->dir))
		return -1;
	snprintf(place->log, sizeof(place->log), "%s/log", place->dir);
	snprintf(place->listen, sizeof(place->listen), "unix:%s/a", place->dir);
	snprintf(place->peer, sizeof(place->peer), "unix:%s/b", place->dir);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	unlink(place->log);
	unlink(place->listen + 5);
	unlink(place->peer + 5);
	rmdir(place->dir);
	free(place);
	return 0;
}

static void write_log(const struct place *place)
{
	uint8_t payload[100];
	struct dist_log *log;
	struct seen seen = { 0 };
	uint64_t end;

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)i;
	assert_int_equal(dist_log_open(place->log, see, &seen, &log), 0);
	assert_int_equal(seen.n, 0);
	assert_int_equal(dist_log_append(log, DIST_RECORD_START, &some, NULL, 0, &end), 0);
	assert_int_equal(dist_log_append(log, DIST_RECORD_PREPARE, &some, payload, 99, &end), 0);
	assert_int_equal(dist_log_append(log, DIST_RECORD_COMMIT, &some, NULL, 0, &end), 0);
	assert_int_equal(dist_log_force(log, end), 0);
	dist_log_close(log);
}

static off_t size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* A crash may cut the file anywhere: what comes back is a prefix, and new records follow it. */
static void torn_logs_give_their_prefix(void **state)
{
	struct place *place = *state;
	off_t whole;

	write_log(place);
	whole = size_of(place->log);
	for (off_t cut = whole; cut >= 0; cut -= 7) {
		struct seen seen = { 0 }, again = { 0 };
		struct dist_log *log;
		uint64_t end;

		assert_int_equal(truncate(place->log, cut), 0);
		assert_int_equal(dist_log_open(place->log, see, &seen, &log), 0);
		assert_true(seen.n <= 3 && (cut < whole) == (seen.n < 3));
		if (seen.n > 1)
			assert_int_equal(seen.bytes[1], 99);
		assert_int_equal(dist_log_append(log, DIST_RECORD_END, &some, NULL, 0, &end), 0);
		dist_log_close(log);
		assert_int_equal(dist_log_open(place->log, see, &again, &log), 0);
		assert_int_equal(again.n, seen.n + 1);
		assert_int_equal(again.kinds[seen.n], DIST_RECORD_END);
		dist_log_close(log);
		unlink(place->log);
		write_log(place);
	}
}

static void changed_bytes_end_the_log(void **state)
{
	struct place *place = *state;
	struct seen seen = { 0 };
	struct dist_log *log;
	uint8_t byte;
	int fd;

	write_log(place);
	fd = open(place->log, O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, 100), 1);
	byte ^= 4;
	assert_int_equal(pwrite(fd, &byte, 1, 100), 1);
	close(fd);
	assert_int_equal(dist_log_open(place->log, see, &seen, &log), 0);
	assert_int_equal(seen.n, 1);
	dist_log_close(log);
}

static void a_log_has_one_owner(void **state)
{
	struct place *place = *state;
	struct seen seen = { 0 };
	struct dist_log *log, *other;

	assert_int_equal(dist_log_open(place->log, see, &seen, &log), 0);
	assert_int_equal(dist_log_open(place->log, see, &seen, &other), -EBUSY);
	dist_log_close(log);
}

/* What was written before the disk was full is not known; nothing may be added behind it. */
static void a_log_that_failed_takes_no_more(void **state)
{
	struct place *place = *state;
	struct rlimit before, small;
	struct seen seen = { 0 };
	struct dist_log *log;
	uint64_t end;
	int rc;

	assert_int_equal(dist_log_open(place->log, see, &seen, &log), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 100;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	rc = dist_log_append(log, DIST_RECORD_START, &some, NULL, 0, &end);
	for (int i = 0; !rc && i < 5; i++)
		rc = dist_log_append(log, DIST_RECORD_END, &some, NULL, 0, &end);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(rc, -EFBIG);
	assert_int_equal(dist_log_append(log, DIST_RECORD_END, &some, NULL, 0, &end), -EFBIG);
	assert_int_equal(dist_log_force(log, end), -EFBIG);
	dist_log_close(log);
	/* The torn record is gone, and the log can be used again. */
	assert_int_equal(dist_log_open(place->log, see, &seen, &log), 0);
	assert_int_equal(seen.n, 2);
	dist_log_close(log);
}

/* ---- a node ---- */

struct rig {
	struct oltp_engine *engine;
	struct node_ycsb *work;
	struct dist_node *node;
};

static int rig_open(struct rig *rig, const struct place *place)
{
	const struct node_ycsb_config config = {
		.ycsb = { .records = 100, .operations = 4, .update_share = 1, .seed = 1 },
	};
	struct dist_node_config node = {
		.id = 1,
		.listen = place->listen,
		.peer = place->peer,
		.log_path = place->log,
		.times = { 200000000, 100000000, 100000000 },
	};

	memset(rig, 0, sizeof(*rig));
	assert_int_equal(oltp_engine_open(NULL, &rig->engine), 0);
	assert_int_equal(node_ycsb_create(rig->engine, &config, &rig->work), 0);
	node.engine = rig->engine;
	node.app = node_ycsb_app(rig->work);
	return dist_node_open(&node, &rig->node);
}

static void rig_close(struct rig *rig)
{
	dist_node_close(rig->node);
	node_ycsb_destroy(rig->work);
	oltp_engine_close(rig->engine);
}

static int raw_connect(const struct place *place)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(address.sun_path, place->listen + 5);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static const struct dist_frame *hear(struct dist_conn *conn, const void **ret_payload)
{
	const struct dist_frame *frame;
	int rc = -EAGAIN;

	for (int i = 0; rc == -EAGAIN && i < 6000; i++)
		rc = dist_conn_receive(conn, &frame, ret_payload);
	assert_int_equal(rc, 0);
	return frame;
}

static void say(struct dist_conn *conn, enum dist_type type, uint32_t n, const void *payload,
		size_t bytes)
{
	struct dist_frame frame = dist_frame_make(type, &some, n, bytes);

	assert_int_equal(dist_conn_send(conn, &frame, payload), 0);
}

static uint64_t in_doubt(struct rig *rig)
{
	struct dist_node_stats stats;

	dist_node_stats_read(rig->node, &stats);
	return stats.in_doubt;
}

static void strangers_are_sent_away(void **state)
{
	struct place *place = *state;
	struct dist_frame hello = dist_frame_make(DIST_HELLO, &some, 0, 0), answer;
	char garbage[300];
	struct dist_conn conn;
	struct rig rig;
	int fd;

	assert_int_equal(rig_open(&rig, place), 0);
	/* Nonsense, and nothing more: closed without a word. */
	memset(garbage, 0x5a, sizeof(garbage));
	fd = raw_connect(place);
	assert_int_equal(send(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	assert_true(recv(fd, &answer, sizeof(answer), 0) <= 0 || answer.type == DIST_HELLO);
	close(fd);
	/* Another version is told ours, and then closed. */
	hello.version = DIST_VERSION + 1;
	fd = raw_connect(place);
	assert_int_equal(send(fd, &hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(recv(fd, &answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
	assert_int_equal(answer.version, DIST_VERSION);
	assert_true(recv(fd, &answer, sizeof(answer), 0) <= 0);
	close(fd);
	/* Our own number. */
	assert_int_not_equal(dist_conn_open(&conn, place->listen, 1), 0);
	/* And after all that a good one is served. */
	assert_int_equal(dist_conn_open(&conn, place->listen, 9), 0);
	dist_conn_close(&conn);
	rig_close(&rig);
}

static void bad_operations_get_a_no(void **state)
{
	static const struct dist_op bad[] = {
		{ .key = 5, .code = 99, .arg = 0 },
		{ .key = 5, .code = 2, .arg = 1u << 31 },
		{ .key = 1ull << 40, .code = 1, .arg = 0 },
	};
	struct place *place = *state;
	struct ycsb_audit audit;
	struct dist_conn conn;
	struct rig rig;

	assert_int_equal(rig_open(&rig, place), 0);
	assert_int_equal(dist_conn_open(&conn, place->listen, 9), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* A good one first, which is undone with the bad one. */
		const struct dist_op ops[] = { { .key = 5, .code = 2, .arg = 3 }, bad[i] };
		const void *payload;
		const struct dist_frame *frame;

		say(&conn, DIST_PREPARE, 2, ops, sizeof(ops));
		frame = hear(&conn, &payload);
		assert_int_equal(frame->type, DIST_VOTE);
		assert_int_equal(frame->n, DIST_VOTE_NO);
	}
	dist_conn_close(&conn);
	node_ycsb_audit(rig.work, false, &audit);
	assert_int_equal(audit.updates, 0);
	rig_close(&rig);
}

/* Plays the coordinator's node for whoever asks: one question, one answer. */
static void answer_question(const struct place *place, enum dist_type answer)
{
	struct dist_conn conn;
	const struct dist_frame *frame;
	const void *payload;
	int listener, fd;

	assert_int_equal(dist_listen(place->peer, &listener), 0);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	conn.fd = fd;
	assert_int_equal(dist_conn_accept(&conn, fd, 9), 0);
	frame = hear(&conn, &payload);
	assert_int_equal(frame->type, DIST_QUERY);
	assert_true(dist_gtid_is_equal(&frame->gtid, &some));
	say(&conn, answer, 0, NULL, 0);
	if (answer == DIST_COMMIT)
		assert_int_equal(hear(&conn, &payload)->type, DIST_ACK);
	dist_conn_close(&conn);
	dist_unlisten(place->peer, listener);
}

static void in_doubt_then(const struct place *place, bool with_restart, enum dist_type answer,
			  uint64_t updates)
{
	static const struct dist_op op = { .key = 5, .code = 2, .arg = 3 };
	struct ycsb_audit audit;
	struct dist_conn conn;
	const void *payload;
	struct rig rig;

	assert_int_equal(rig_open(&rig, place), 0);
	assert_int_equal(dist_conn_open(&conn, place->listen, 9), 0);
	say(&conn, DIST_PREPARE, 1, &op, sizeof(op));
	assert_int_equal(hear(&conn, &payload)->n, DIST_VOTE_YES);
	/* Voted, and the coordinator is gone. */
	dist_conn_close(&conn);
	for (int i = 0; !in_doubt(&rig) && i < 6000; i++)
		usleep(10000);
	assert_int_equal(in_doubt(&rig), 1);
	if (with_restart) {
		rig_close(&rig);
		assert_int_equal(rig_open(&rig, place), 0);
		assert_int_equal(in_doubt(&rig), 1);
	}
	/* Its lock is still held. */
	assert_int_equal(dist_conn_open(&conn, place->listen, 8), 0);
	say(&conn, DIST_PREPARE, 1, &op, sizeof(op));
	assert_int_equal(hear(&conn, &payload)->n, DIST_VOTE_NO);
	dist_conn_close(&conn);
	answer_question(place, answer);
	for (int i = 0; in_doubt(&rig) && i < 6000; i++)
		usleep(10000);
	assert_int_equal(in_doubt(&rig), 0);
	node_ycsb_audit(rig.work, false, &audit);
	assert_int_equal(audit.updates, updates);
	assert_int_equal(audit.damaged_records, 0);
	rig_close(&rig);
}

static void in_doubt_commits_when_told(void **state)
{
	in_doubt_then(*state, false, DIST_COMMIT, 1);
}

static void in_doubt_aborts_when_told(void **state)
{
	in_doubt_then(*state, false, DIST_ABORT, 0);
}

static void in_doubt_survives_a_restart(void **state)
{
	in_doubt_then(*state, true, DIST_COMMIT, 1);
}

static void in_doubt_survives_a_restart_and_aborts(void **state)
{
	in_doubt_then(*state, true, DIST_ABORT, 0);
}

/*
 * A transaction that was aborted, or that only read, is in the book until its worker has seen how
 * it ended. An ACK of it is wrong and changes nothing: without its entry it would count as
 * committed.
 */
static void an_ack_ends_only_what_was_logged(void **state)
{
	static const enum dist_vote votes[] = { DIST_VOTE_NO, DIST_VOTE_READ };
	struct dist_gtid gtid = { .node = 1, .incarnation = 1, .seq = 1000 };
	const struct dist_times times = { 200000000, 100000000, 100000000 };
	struct place *place = *state;
	struct dist_coord_entry *entry;
	struct dist_actions actions;
	struct dist_book *book;
	struct rig rig;

	assert_int_equal(rig_open(&rig, place), 0);
	book = &rig.node->book;
	for (size_t i = 0; i < 2; i++, gtid.seq++) {
		pthread_mutex_lock(&book->lock);
		entry = dist_book_coord_add(book, &gtid);
		assert_non_null(entry);
		dist_coord_start(&entry->coord, 1, &times, clock_now_ns(), &actions);
		dist_coord_vote(&entry->coord, 0, votes[i], &actions);
		assert_true(dist_coord_is_done(&entry->coord));
		pthread_mutex_unlock(&book->lock);
		dist_node_confirmed(rig.node, &gtid);
		pthread_mutex_lock(&book->lock);
		assert_ptr_equal(dist_book_coord_find(book, &gtid), entry);
		dist_book_coord_remove(book, entry);
		pthread_mutex_unlock(&book->lock);
	}
	rig_close(&rig);
}

static void another_nodes_log_is_refused(void **state)
{
	struct place *place = *state;
	struct rig rig;

	/* Begins with a START of node 9. */
	write_log(place);
	assert_int_equal(rig_open(&rig, place), -EBADMSG);
	rig_close(&rig);
}

static void bad_addresses_are_refused(void **state)
{
	static const char *const bad[] = { "", "unix:", "tcp:", "tcp:1.2.3.4", "tcp:1.2.3.4:0",
					   "tcp:1.2.3.4:65536", "tcp:1.2.3.4:9x", "tcp:host:9" };
	struct dist_conn conn;
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(dist_listen(bad[i], &fd), -EINVAL);
		assert_int_equal(dist_conn_open(&conn, bad[i], 1), -EINVAL);
	}
}

static void *connect_main(void *arg)
{
	struct dist_conn *conn = arg;
	int rc = dist_conn_open(conn, "tcp:127.0.0.1:47123", 2);

	return rc ? conn : NULL;
}

static void tcp_works_too(void **state)
{
	struct dist_conn server, client;
	pthread_t thread;
	void *failed;
	int listener;

	(void)state;
	assert_int_equal(dist_listen("tcp:127.0.0.1:47123", &listener), 0);
	assert_int_equal(pthread_create(&thread, NULL, connect_main, &client), 0);
	server.fd = accept(listener, NULL, NULL);
	assert_int_equal(dist_conn_accept(&server, server.fd, 1), 0);
	pthread_join(thread, &failed);
	assert_null(failed);
	dist_conn_close(&client);
	dist_conn_close(&server);
	dist_unlisten("tcp:127.0.0.1:47123", listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_peer_keeps_nobody),
		cmocka_unit_test(a_slow_reader_keeps_nobody),
		cmocka_unit_test(good_frames_pass),
		cmocka_unit_test(each_wrong_field_is_refused),
		cmocka_unit_test_setup_teardown(torn_logs_give_their_prefix, set_up, tear_down),
		cmocka_unit_test_setup_teardown(changed_bytes_end_the_log, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_log_has_one_owner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_log_that_failed_takes_no_more, set_up, tear_down),
		cmocka_unit_test_setup_teardown(strangers_are_sent_away, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bad_operations_get_a_no, set_up, tear_down),
		cmocka_unit_test_setup_teardown(in_doubt_commits_when_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(in_doubt_aborts_when_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(in_doubt_survives_a_restart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(in_doubt_survives_a_restart_and_aborts, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_ack_ends_only_what_was_logged, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(another_nodes_log_is_refused, set_up, tear_down),
		cmocka_unit_test(bad_addresses_are_refused),
		cmocka_unit_test(tcp_works_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
