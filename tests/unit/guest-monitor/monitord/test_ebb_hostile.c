// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Applications that do not play by proto.h: the monitor drops them and goes on
 * serving the others.
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
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/libebb/link.h"
#include "guest-monitor/monitord/monitor.h"
#include "tests/lib/chance.h"
#include "tests/lib/ebb_rig.h"

#define SOON_MS		EBB_RIG_SOON_MS
#define RANDOM_ROUNDS	1500
#define CROWD		14	/* below EBB_MONITOR_MAX_PER_PROCESS */
#define CROWDS		5	/* together more than EBB_MONITOR_MAX_APPS */

static int raw_connect(struct ebb_rig *rig)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(addr.sun_path, rig->mon_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* Bytes of the next message; 0: hung up; -1: nothing within ms. */
static int raw_receive(int fd, union ebb_msg *msg, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, ms) == 0)
		return -1;
	n = recv(fd, msg, sizeof(*msg), MSG_DONTWAIT);
	return n > 0 ? (int)n : 0;
}

static bool raw_is_dropped(int fd)
{
	union ebb_msg msg;
	int n;

	do
		n = raw_receive(fd, &msg, SOON_MS);
	while (n > 0);
	return n == 0;
}

static size_t hello_make(union ebb_msg *msg, const char *name)
{
	size_t bytes = ebb_msg_init(msg, EBB_MSG_HELLO, 0);

	strncpy(msg->hello.name, name, sizeof(msg->hello.name) - 1);
	return bytes;
}

/* What WELCOME says, or -1 if there is none. */
static int raw_hello(int fd, const char *name)
{
	union ebb_msg msg;
	size_t bytes = hello_make(&msg, name);

	if (send(fd, &msg, bytes, MSG_NOSIGNAL) < 0)
		return -1;
	if (raw_receive(fd, &msg, SOON_MS) != sizeof(msg.welcome) ||
	    msg.hdr.type != EBB_MSG_WELCOME)
		return -1;
	return (int)msg.welcome.error;
}

static int registered_connect(struct ebb_rig *rig)
{
	int fd = raw_connect(rig);

	assert_int_equal(raw_hello(fd, "hostile"), 0);
	return fd;
}

/* The monitor is the same process as before, and serves. */
static void monitor_is_well(struct ebb_rig *rig)
{
	struct ebb *ebb = ebb_rig_open(rig, "good", 0);
	struct ebb_stats stats = { .committed = 5 };

	assert_int_equal(waitpid(rig->monitor, NULL, WNOHANG), 0);
	assert_int_equal(ebb_has_monitor(ebb), 1);
	assert_int_equal(ebb_report(ebb, &stats), 0);
	assert_int_equal(ebb_stats_get(ebb, NULL, &stats), 0);
	assert_int_equal(stats.committed, 5);
	ebb_close(ebb);
}

static int setup(void **state)
{
	int r = ebb_rig_setup(state);

	if (r == 0)
		ebb_rig_monitor_start(*state);
	return r;
}

/* Each: a good message with one thing wrong. */
static void spoil_magic(union ebb_msg *m) { m->hdr.magic ^= 1; }
static void spoil_type(union ebb_msg *m) { m->hdr.type = 77; }
static void spoil_type_zero(union ebb_msg *m) { m->hdr.type = 0; }
static void spoil_size(union ebb_msg *m) { m->hdr.size += 8; }
static void spoil_id(union ebb_msg *m) { m->hdr.id = 1; }
static void spoil_flags(union ebb_msg *m) { m->owned.flags = 4; }
static void spoil_mem_step(union ebb_msg *m) { m->owned.nodes[1].mem_bytes = 4096; }
static void spoil_mem_max(union ebb_msg *m) { m->owned.nodes[0].mem_bytes = 1ull << 53; }
static void spoil_num(union ebb_msg *m) { m->owned.num_nodes = EBB_MAX_NODES + 1; }
static void spoil_num_max(union ebb_msg *m) { m->owned.num_nodes = UINT32_MAX; }
static void spoil_node(union ebb_msg *m) { m->owned.nodes[1].node = EBB_MAX_NODES; }
static void spoil_order(union ebb_msg *m) { m->owned.nodes[1].node = 0; }
static void spoil_unused(union ebb_msg *m) { m->owned.nodes[2].cpus = 1; }
static void spoil_name_end(union ebb_msg *m) { memset(m->stats_get.name, 'x', 32); }
static void spoil_name_pad(union ebb_msg *m) { m->stats_get.name[20] = 'x'; }
static void spoil_seq(union ebb_msg *m) { m->ack.seq = 1000; }
static void spoil_vom_seq(union ebb_msg *m) { m->vom.seq = 0; }
static void spoil_vom_num(union ebb_msg *m) { m->vom.num_buckets = 4; }
static void spoil_vom_many(union ebb_msg *m) { m->vom.num_buckets = EBB_VOM_MAX_BUCKETS + 1; }
static void spoil_vom_huge(union ebb_msg *m) { m->vom.num_buckets = 0xf0000003; }
static void spoil_vom_node(union ebb_msg *m) { m->vom.buckets[2].node = EBB_MAX_NODES; }
static void spoil_vom_nodes(union ebb_msg *m) { m->vom.buckets[0].node = 2; }
static void spoil_vom_order(union ebb_msg *m) { m->vom.buckets[1].value = 0; }
static void spoil_vom_kib(union ebb_msg *m) { m->vom.buckets[1].kib = 0; }
static void spoil_vom_reserved(union ebb_msg *m) { m->vom.buckets[2].reserved = 1; }
static void spoil_nothing(union ebb_msg *m) { (void)m; }

static const struct {
	const char *what;
	uint16_t type;
	void (*spoil)(union ebb_msg *msg);
	int more_bytes;			/* sent beyond what the type has */
} bad[] = {
	{ "magic", EBB_MSG_OWNED, spoil_magic, 0 },
	{ "type", EBB_MSG_OWNED, spoil_type, 0 },
	{ "type 0", EBB_MSG_OWNED, spoil_type_zero, 0 },
	{ "size field", EBB_MSG_OWNED, spoil_size, 0 },
	{ "size field and size", EBB_MSG_ACK, spoil_size, 8 },
	{ "short", EBB_MSG_OWNED, spoil_nothing, -1 },
	{ "long", EBB_MSG_OWNED, spoil_nothing, 1 },
	{ "longer than any", EBB_MSG_SHARES, spoil_nothing, 64 },
	{ "header only", EBB_MSG_ACK, spoil_nothing, -8 },
	{ "less than a header", EBB_MSG_ACK, spoil_nothing, -20 },
	{ "id", EBB_MSG_OWNED, spoil_id, 0 },
	{ "flags", EBB_MSG_OWNED, spoil_flags, 0 },
	{ "part of a block", EBB_MSG_OWNED, spoil_mem_step, 0 },
	{ "more memory than there is", EBB_MSG_OWNED, spoil_mem_max, 0 },
	{ "number of nodes", EBB_MSG_OWNED, spoil_num, 0 },
	{ "huge number of nodes", EBB_MSG_OWNED, spoil_num_max, 0 },
	{ "node", EBB_MSG_OWNED, spoil_node, 0 },
	{ "order of nodes", EBB_MSG_OWNED, spoil_order, 0 },
	{ "unused node", EBB_MSG_OWNED, spoil_unused, 0 },
	{ "name without end", EBB_MSG_STATS_GET, spoil_name_end, 0 },
	{ "name with something behind it", EBB_MSG_STATS_GET, spoil_name_pad, 0 },
	{ "acknowledgement of what was not sent", EBB_MSG_ACK, spoil_seq, 0 },
	{ "hello again", EBB_MSG_HELLO, spoil_nothing, 0 },
	{ "value for no number", EBB_MSG_VOM, spoil_vom_seq, 0 },
	{ "fewer buckets than said", EBB_MSG_VOM, spoil_vom_num, 0 },
	{ "more buckets than can be", EBB_MSG_VOM, spoil_vom_many, 0 },
	{ "so many buckets that sizes wrap", EBB_MSG_VOM, spoil_vom_huge, 0 },
	{ "bucket of no node", EBB_MSG_VOM, spoil_vom_node, 0 },
	{ "buckets of nodes that fall", EBB_MSG_VOM, spoil_vom_nodes, 0 },
	{ "values that do not rise", EBB_MSG_VOM, spoil_vom_order, 0 },
	{ "bucket of nothing", EBB_MSG_VOM, spoil_vom_kib, 0 },
	{ "reserved of a bucket", EBB_MSG_VOM, spoil_vom_reserved, 0 },
	{ "values, cut off", EBB_MSG_VOM, spoil_nothing, -16 },
	{ "values, too long", EBB_MSG_VOM, spoil_nothing, 16 },
	{ "values without any", EBB_MSG_VOM, spoil_nothing, -50 },
	{ "welcome", EBB_MSG_WELCOME, spoil_nothing, 0 },
	{ "shares", EBB_MSG_SHARES, spoil_nothing, 0 },
	{ "stats", EBB_MSG_STATS, spoil_nothing, 0 },
};

static size_t good_make(union ebb_msg *msg, uint16_t type)
{
	size_t bytes = ebb_msg_init(msg, type, 0);

	if (type == EBB_MSG_OWNED) {
		msg->owned.num_nodes = 2;
		msg->owned.nodes[0].cpus = 1;
		msg->owned.nodes[1].node = 1;
	} else if (type == EBB_MSG_VOM) {
		msg->vom.seq = 7;
		msg->vom.num_buckets = 3;
		msg->vom.buckets[0] = (struct ebb_vom_bucket){ .value = 0, .kib = 1 };
		msg->vom.buckets[1] = (struct ebb_vom_bucket){ .value = 5, .kib = 1 };
		msg->vom.buckets[2] = (struct ebb_vom_bucket){ .value = 5, .kib = 1, .node = 1 };
		msg->hdr.size = (uint32_t)ebb_msg_vom_bytes(3);
		bytes = msg->hdr.size;
	} else if (type == EBB_MSG_STATS_GET || type == EBB_MSG_HELLO) {
		strcpy(msg->stats_get.name, "hostile");
	}
	return bytes;
}

static void every_malformed_message_ends_the_connection(void **state)
{
	struct ebb_rig *rig = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char bytes[sizeof(union ebb_msg) + 64] = { 0 };
		union ebb_msg msg;
		size_t num = good_make(&msg, bad[i].type);
		int fd = registered_connect(rig);

		bad[i].spoil(&msg);
		memcpy(bytes, &msg, sizeof(msg));
		num = (size_t)((int)num + bad[i].more_bytes);
		assert_int_equal(send(fd, bytes, num, MSG_NOSIGNAL), num);
		if (!raw_is_dropped(fd))
			fail_msg("not dropped: %s", bad[i].what);
		close(fd);
	}
	monitor_is_well(rig);
}

static void the_same_messages_unspoilt_are_taken(void **state)
{
	static const uint16_t types[] = { EBB_MSG_OWNED, EBB_MSG_REPORT, EBB_MSG_VOM,
					  EBB_MSG_STATS_GET };
	struct ebb_rig *rig = *state;
	int fd = registered_connect(rig);
	union ebb_msg msg;
	int n;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t num = good_make(&msg, types[i]);

		assert_int_equal(send(fd, &msg, num, MSG_NOSIGNAL), num);
	}
	do
		n = raw_receive(fd, &msg, SOON_MS);
	while (n > 0 && msg.hdr.type != EBB_MSG_STATS);
	assert_int_equal(n, sizeof(msg.stats));
	assert_int_equal(msg.stats.error, 0);
	close(fd);
}

static void hello_is_refused_with_a_reason(void **state)
{
	struct ebb_rig *rig = *state;
	union ebb_msg msg;
	size_t bytes;
	int fd;

	fd = raw_connect(rig);
	assert_int_equal(raw_hello(fd, "no good"), EINVAL);
	assert_true(raw_is_dropped(fd));
	close(fd);
	fd = raw_connect(rig);
	assert_int_equal(raw_hello(fd, ""), EINVAL);
	close(fd);

	/* Of another version, which may well have another size. */
	fd = raw_connect(rig);
	bytes = hello_make(&msg, "fine");
	msg.hdr.version = EBB_MSG_VERSION + 1;
	assert_int_equal(send(fd, &msg, bytes + 16, MSG_NOSIGNAL), bytes + 16);
	assert_int_equal(raw_receive(fd, &msg, SOON_MS), sizeof(msg.welcome));
	assert_int_equal(msg.welcome.error, EPROTO);
	assert_int_equal(msg.hdr.version, EBB_MSG_VERSION);
	assert_true(raw_is_dropped(fd));
	close(fd);
	monitor_is_well(rig);
}

static void first_message_must_be_hello(void **state)
{
	struct ebb_rig *rig = *state;
	union ebb_msg msg;
	size_t bytes = ebb_msg_init(&msg, EBB_MSG_STATS_GET, 3);
	int fd = raw_connect(rig);

	assert_int_equal(send(fd, &msg, bytes, MSG_NOSIGNAL), bytes);
	assert_true(raw_is_dropped(fd));
	close(fd);
}

static void silence_is_not_waited_for(void **state)
{
	struct ebb_rig *rig = *state;
	uint64_t start_ns;
	int fd;

	ebb_rig_time_slow(1);
	start_ns = ebb_now_ns();
	fd = raw_connect(rig);
	assert_true(raw_is_dropped(fd));
	assert_true(ebb_now_ns() - start_ns >= EBB_MSG_HELLO_TIMEOUT_MS * 1000000ull);
	close(fd);
}

static void who_does_not_read_is_dropped(void **state)
{
	struct ebb_rig *rig = *state;
	int fd = registered_connect(rig);
	union ebb_msg msg;
	size_t bytes = ebb_msg_init(&msg, EBB_MSG_STATS_GET, 1);
	int sent = 0;

	/* Answers that nobody takes: far fewer than this fit into its queue. */
	while (sent < 100000 && send(fd, &msg, bytes, MSG_NOSIGNAL) == (ssize_t)bytes)
		sent++;
	assert_in_range(sent, 1, 99999);
	close(fd);
	monitor_is_well(rig);
}

static void one_process_has_a_limit(void **state)
{
	struct ebb_rig *rig = *state;
	int fds[EBB_MONITOR_MAX_PER_PROCESS + 1];
	char name[] = "client-A";

	for (int i = 0; i < EBB_MONITOR_MAX_PER_PROCESS; i++, name[7]++) {
		fds[i] = raw_connect(rig);
		assert_int_equal(raw_hello(fds[i], name), 0);
	}
	fds[EBB_MONITOR_MAX_PER_PROCESS] = raw_connect(rig);
	assert_true(raw_is_dropped(fds[EBB_MONITOR_MAX_PER_PROCESS]));
	for (int i = 0; i <= EBB_MONITOR_MAX_PER_PROCESS; i++)
		close(fds[i]);
	/* It hears of a new one, and only then of those that have left, if it is busy. */
	for (int tries = 0, r = -1; r != 0; tries++) {
		int fd = raw_connect(rig);

		assert_true(tries < SOON_MS);
		r = raw_hello(fd, "after");
		close(fd);
		usleep(1000);
	}
	monitor_is_well(rig);
}

/* Exits with the number of applications that were refused for want of room. */
static void crowd_role(int argc, char **argv)
{
	struct ebb_rig rig;
	char name[] = "crowd-0-A";
	int num_refused = 0;
	sigset_t signals;
	int signo;

	if (argc < 5 || strcmp(argv[1], "--crowd") != 0)
		return;
	strcpy(rig.mon_path, argv[2]);
	name[6] = argv[3][0];
	for (int i = 0; i < CROWD; i++, name[8]++)
		num_refused += raw_hello(raw_connect(&rig), name) == EUSERS;
	/* All stay until all have come. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (write(atoi(argv[4]), "", 1) != 1)
		exit(255);
	sigwait(&signals, &signo);
	exit(num_refused);
}

static void applications_have_a_limit(void **state)
{
	struct ebb_rig *rig = *state;
	char name[] = "0", fd_text[16];
	pid_t crowds[CROWDS];
	int num_refused = 0;
	int done[2];
	char byte;

	assert_int_equal(pipe(done), 0);
	snprintf(fd_text, sizeof(fd_text), "%d", done[1]);
	for (int i = 0; i < CROWDS; i++, name[0]++) {
		crowds[i] = ebb_rig_spawn("--crowd", rig->mon_path, name, fd_text);
		assert_int_equal(read(done[0], &byte, 1), 1);
	}
	for (int i = 0; i < CROWDS; i++) {
		int status = ebb_rig_end(crowds[i], SIGUSR1);

		assert_true(WIFEXITED(status));
		num_refused += WEXITSTATUS(status);
	}
	assert_int_equal(num_refused, CROWDS * CROWD - EBB_MONITOR_MAX_APPS);
	close(done[0]);
	close(done[1]);
	monitor_is_well(rig);
}

static void random_fill(void *data, size_t bytes)
{
	unsigned char *p = data;

	for (size_t i = 0; i < bytes; i++)
		p[i] = (unsigned char)roll(256);
}

/* Half of them with a good header, so that what lies behind it is looked at. */
static size_t random_make(union ebb_msg *msg)
{
	static const uint16_t types[] = {
		EBB_MSG_HELLO, EBB_MSG_OWNED, EBB_MSG_ACK, EBB_MSG_REPORT, EBB_MSG_STATS_GET,
		EBB_MSG_WELCOME, EBB_MSG_SHARES, EBB_MSG_STATS,
	};
	struct ebb_msg_hdr hdr;

	random_fill(msg, sizeof(*msg));
	if (roll(2))
		return 1 + roll(sizeof(*msg));
	hdr = msg->hdr;
	ebb_msg_init(msg, types[roll(8)], roll(4) ? 0 : hdr.id);
	hdr = msg->hdr;
	if (roll(2))
		random_fill(msg, sizeof(*msg));
	msg->hdr = hdr;
	/* One byte off. */
	if (roll(2))
		((unsigned char *)msg)[roll(hdr.size)] ^= 1u << roll(8);
	return hdr.size;
}

static void random_bytes(void **state)
{
	struct ebb_rig *rig = *state;

	fake_ebb_dev_set_limit(rig->dev, 0, 6, 0);
	for (int round = 0; round < RANDOM_ROUNDS; round++) {
		int fd = raw_connect(rig);
		union ebb_msg msg;

		/* Most come to be registered first; the name may still be taken by the last. */
		if (roll(4))
			raw_hello(fd, roll(2) ? "hostile" : "hostile2");
		for (uint32_t i = 1 + roll(6); i > 0; i--) {
			size_t bytes = random_make(&msg);

			if (send(fd, &msg, bytes, MSG_NOSIGNAL) < 0)
				break;
		}
		close(fd);
	}
	monitor_is_well(rig);
	assert_int_equal(ebb_rig_monitor_end(rig, SIGTERM), 0);
}

#define RIG_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, ebb_rig_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(every_malformed_message_ends_the_connection),
		RIG_TEST(the_same_messages_unspoilt_are_taken),
		RIG_TEST(hello_is_refused_with_a_reason),
		RIG_TEST(first_message_must_be_hello),
		RIG_TEST(silence_is_not_waited_for),
		RIG_TEST(who_does_not_read_is_dropped),
		RIG_TEST(one_process_has_a_limit),
		RIG_TEST(applications_have_a_limit),
		RIG_TEST(random_bytes),
	};

	crowd_role(argc, argv);
	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests_name("ebb_hostile", tests, NULL, NULL);
}
