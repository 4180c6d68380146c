// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The host asks what memory is worth: registered caches, with a monitor and without, applications
 * that do not answer, monitors that come and go, and what becomes of the answers.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/libebb/link.h"
#include "guest-monitor/libebb/values.h"
#include "tests/lib/ebb_rig.h"

#define BLOCK		FAKE_EBB_BLOCK_BYTES
#define MIB		(1ull << 20)
#define SOON_MS		EBB_RIG_SOON_MS
#define OWNED_BLOCKS	8u

/* A cache of so many objects of 1 MiB, used once a second, each dearer than the one before. */
struct cache {
	unsigned int num;
	uint64_t sts_ns;
	uint32_t node;
	int error;
	_Atomic unsigned int reads;
	_Atomic int is_held;		/* the next read waits until it is not */
	_Atomic int is_reading;
};

static int cache_read(void *arg, struct ebb_vom_object *ret, unsigned int max)
{
	struct cache *c = arg;

	assert_true(c->num <= max);
	atomic_store(&c->is_reading, 1);
	while (atomic_load(&c->is_held))
		usleep(1000);
	atomic_store(&c->is_reading, 0);
	for (unsigned int i = 0; i < c->num; i++)
		ret[i] = (struct ebb_vom_object){
			.bytes = MIB,
			.sts_ns = c->sts_ns * (i + 1),
			.last_ns = 0,
			.before_ns = 1000000000,
			.node = c->node,
		};
	atomic_fetch_add(&c->reads, 1);
	return c->error ? c->error : (int)c->num;
}

static unsigned int cache_register(struct ebb *ebb, struct cache *c, enum ebb_vom_kind kind)
{
	const struct ebb_vom_cache cache = { .kind = kind, .node = EBB_NODE_ANY,
					     .read = cache_read, .arg = c };
	unsigned int id;

	assert_int_equal(ebb_vom_register(ebb, &cache, &id), 0);
	return id;
}

struct wait {
	struct ebb_rig *rig;
	uint32_t seq;
	uint32_t calls;
	struct ebb_vom vom;
};

static bool has_answer(void *arg)
{
	struct wait *w = arg;

	return fake_ebb_dev_vom(w->rig->dev, &w->vom) >= w->calls && w->vom.seq == w->seq;
}

static bool has_calls(void *arg)
{
	struct wait *w = arg;

	return fake_ebb_dev_vom(w->rig->dev, &w->vom) >= w->calls;
}

/* Asks, and waits for the answer. */
static struct ebb_vom ask(struct ebb_rig *rig, struct ebb *const apps[], size_t num, uint32_t seq)
{
	struct wait w = { .rig = rig, .seq = seq };

	fake_ebb_dev_ask_vom(rig->dev, seq);
	assert_true(ebb_rig_until(apps, num, has_answer, &w, SOON_MS));
	return w.vom;
}

static void mem_add(struct ebb_rig *rig, struct ebb *ebb, uint64_t bytes)
{
	struct ebb_lease lease;

	fake_ebb_dev_set_pool(rig->dev, 0, 1000 * BLOCK);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 1000 * BLOCK, 0);
	assert_int_equal(ebb_mem_add(ebb, bytes, 0, &lease), 0);
	assert_int_equal(lease.bytes, bytes);
}

static void test_registration(void **state)
{
	struct ebb *ebb = ebb_rig_open(*state, "a", EBB_OPEN_NO_MONITOR);
	struct cache c = { .num = 1 };
	const struct ebb_vom_cache good = { .kind = EBB_VOM_SAMPLED, .read = cache_read,
					    .arg = &c };
	struct ebb_vom_cache bad;
	unsigned int id, ids[EBB_VOM_MAX_CACHES];

	bad = good;
	bad.kind = 0;
	assert_int_equal(ebb_vom_register(ebb, &bad, &id), -EINVAL);
	bad.kind = EBB_VOM_FREE + 1;
	assert_int_equal(ebb_vom_register(ebb, &bad, &id), -EINVAL);
	bad = good;
	bad.read = NULL;
	assert_int_equal(ebb_vom_register(ebb, &bad, &id), -EINVAL);
	bad = good;
	bad.max_objects = EBB_VOM_MAX_SAMPLES + 1;
	assert_int_equal(ebb_vom_register(ebb, &bad, &id), -EINVAL);
	bad.kind = EBB_VOM_SWEPT;
	assert_int_equal(ebb_vom_register(ebb, &bad, &id), 0);
	assert_int_equal(ebb_vom_unregister(ebb, id), 0);
	bad.max_objects = EBB_VOM_MAX_OBJECTS + 1;
	assert_int_equal(ebb_vom_register(ebb, &bad, &id), -EINVAL);
	bad = good;
	bad.reserved = 1;
	assert_int_equal(ebb_vom_register(ebb, &bad, &id), -EINVAL);
	bad = good;
	bad.node = EBB_MAX_NODES;
	assert_int_equal(ebb_vom_register(ebb, &bad, &id), -ENXIO);
	for (unsigned int i = 0; i < EBB_VOM_MAX_CACHES; i++)
		assert_int_equal(ebb_vom_register(ebb, &good, &ids[i]), 0);
	assert_int_equal(ebb_vom_register(ebb, &good, &id), -ENOSPC);
	assert_int_equal(ebb_vom_unregister(ebb, EBB_VOM_MAX_CACHES), -ENOENT);
	assert_int_equal(ebb_vom_unregister(ebb, ids[5]), 0);
	assert_int_equal(ebb_vom_unregister(ebb, ids[5]), -ENOENT);
	assert_int_equal(ebb_vom_register(ebb, &good, &id), 0);
	assert_int_equal(id, ids[5]);
	assert_int_equal(c.reads, 0);
	ebb_close(ebb);
}

/* One object in each of a few nodes and kinds, by themselves. */
static void test_direct(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct cache swept = { .num = 2, .sts_ns = 1000, .node = 1 };
	struct cache unused = { .num = 1, .sts_ns = 77, .node = 1 };
	struct cache other = { .num = 1, .sts_ns = EBB_VOM_UNKNOWN };
	struct ebb_vom vom;

	cache_register(ebb, &swept, EBB_VOM_SWEPT);
	cache_register(ebb, &unused, EBB_VOM_FREE);
	cache_register(ebb, &other, EBB_VOM_SAMPLED);
	fake_ebb_dev_set_cutoff(rig->dev, 1, 12345);
	vom = ask(rig, &ebb, 1, 3);
	assert_int_equal(vom.size, 8208);
	assert_int_equal(vom.num_buckets, 4);
	/* What can not be made again is worth more than all else. */
	assert_int_equal(vom.buckets[0].node, 0);
	assert_int_equal(vom.buckets[0].value, 1ull << 62);
	assert_int_equal(vom.buckets[1].node, 1);
	assert_int_equal(vom.buckets[1].value, 0);
	assert_int_equal(vom.buckets[1].kib, 1024);
	assert_int_equal(vom.buckets[2].value, 1000);
	assert_int_equal(vom.buckets[3].value, 2000);
	/* The cut-off is of a pool, and there is none. */
	assert_int_equal(ebb_rig_share(ebb, 1).mem_cutoff, 0);
	fake_ebb_dev_set_pool(rig->dev, 1, 100 * BLOCK);
	fake_ebb_dev_set_mem_limit(rig->dev, 1, 10 * BLOCK, 0);
	ebb_rig_run(&ebb, 1, 50);
	assert_int_equal(ebb_rig_share(ebb, 1).mem_cutoff, 12345);
	/* What was answered is not asked any more. */
	assert_int_equal(fake_ebb_dev_vom(rig->dev, &vom), 1);
	assert_int_equal(swept.reads, 1);
	ebb_close(ebb);
}

/* However often the host asks, caches are read once a second; numbers that passed are left out. */
static void test_not_too_often(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct cache c = { .num = 1, .sts_ns = 1 };
	uint64_t start_ns = ebb_rig_now_ns();

	cache_register(ebb, &c, EBB_VOM_SAMPLED);
	ask(rig, &ebb, 1, 1);
	for (uint32_t seq = 2; seq < 50; seq++) {
		fake_ebb_dev_ask_vom(rig->dev, seq);
		ebb_rig_run(&ebb, 1, 1);
	}
	ask(rig, &ebb, 1, 50);
	assert_true(c.reads <= 1 + (ebb_rig_now_ns() - start_ns) /
				   (EBB_VALUES_INTERVAL_MS * 1000000ull));
	assert_true(c.reads >= 2);
	ebb_close(ebb);
}

static void test_driver_has_no_room(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct cache c = { .num = 1, .sts_ns = 1 };
	struct wait w = { .rig = rig, .seq = 1, .calls = 3 };

	cache_register(ebb, &c, EBB_VOM_SAMPLED);
	fake_ebb_dev_set_vom_error(rig->dev, -EBUSY);
	fake_ebb_dev_ask_vom(rig->dev, 1);
	assert_true(ebb_rig_until(&ebb, 1, has_calls, &w, SOON_MS));
	assert_int_equal(w.vom.seq, 0);
	fake_ebb_dev_set_vom_error(rig->dev, 0);
	assert_true(ebb_rig_until(&ebb, 1, has_answer, &w, SOON_MS));
	assert_int_equal(c.reads, 1);
	/* A device that does not know of it is asked once. */
	fake_ebb_dev_set_vom_error(rig->dev, -EOPNOTSUPP);
	w.calls = fake_ebb_dev_vom(rig->dev, &w.vom) + 1;
	fake_ebb_dev_ask_vom(rig->dev, 2);
	assert_true(ebb_rig_until(&ebb, 1, has_calls, &w, SOON_MS));
	ebb_rig_run(&ebb, 1, 300);
	assert_int_equal(fake_ebb_dev_vom(rig->dev, &w.vom), w.calls);
	ebb_close(ebb);
}

/* It can not say: nothing is sent. The next number is another question. */
static void test_not_known(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct cache c = { .num = 1, .sts_ns = 1, .error = -EAGAIN };
	struct ebb_vom vom;

	cache_register(ebb, &c, EBB_VOM_SAMPLED);
	fake_ebb_dev_ask_vom(rig->dev, 1);
	ebb_rig_run(&ebb, 1, 100);
	assert_int_equal(c.reads, 1);
	assert_int_equal(fake_ebb_dev_vom(rig->dev, &vom), 0);
	/* Nor one that says that it has filled in more than there is room for. */
	c.error = EBB_VOM_MAX_SAMPLES + 1;
	fake_ebb_dev_ask_vom(rig->dev, 2);
	ebb_rig_run(&ebb, 1, 1200);
	assert_int_equal(c.reads, 2);
	assert_int_equal(fake_ebb_dev_vom(rig->dev, &vom), 0);
	c.error = 0;
	c.num = 3;
	vom = ask(rig, &ebb, 1, 3);
	assert_int_equal(vom.num_buckets, 3);
	ebb_close(ebb);
}

/* Without caches there is no answer: nothing is known of its memory. */
static void test_without_caches(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct cache c = { .num = 1, .sts_ns = 1 };
	unsigned int id = cache_register(ebb, &c, EBB_VOM_SAMPLED);
	struct ebb_vom vom;

	assert_int_equal(ebb_vom_unregister(ebb, id), 0);
	fake_ebb_dev_ask_vom(rig->dev, 1);
	ebb_rig_run(&ebb, 1, 100);
	assert_int_equal(fake_ebb_dev_vom(rig->dev, &vom), 0);
	assert_int_equal(c.reads, 0);
	/* The host still wants to know. */
	cache_register(ebb, &c, EBB_VOM_SAMPLED);
	ask(rig, &ebb, 1, 1);
	ebb_close(ebb);
}

struct unregister {
	struct ebb *ebb;
	unsigned int id;
	_Atomic int is_done;
};

static void *unregister_main(void *arg)
{
	struct unregister *u = arg;

	assert_int_equal(ebb_vom_unregister(u->ebb, u->id), 0);
	atomic_store(&u->is_done, 1);
	return NULL;
}

static void *dispatch_main(void *arg)
{
	struct ebb *ebb = arg;

	ebb_rig_run(&ebb, 1, 20);
	return NULL;
}

/* Whoever unregisters a cache that is being read waits for the end of that. */
static void test_unregister_while_asked(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct cache c = { .num = 1, .sts_ns = 1, .is_held = 1 };
	struct unregister u = { .ebb = ebb, .id = cache_register(ebb, &c, EBB_VOM_SAMPLED) };
	pthread_t dispatching, unregistering;

	fake_ebb_dev_ask_vom(rig->dev, 1);
	assert_int_equal(pthread_create(&dispatching, NULL, dispatch_main, ebb), 0);
	while (!atomic_load(&c.is_reading))
		usleep(1000);
	assert_int_equal(pthread_create(&unregistering, NULL, unregister_main, &u), 0);
	usleep(50000);
	assert_int_equal(atomic_load(&u.is_done), 0);
	atomic_store(&c.is_held, 0);
	pthread_join(unregistering, NULL);
	assert_int_equal(c.is_reading, 0);
	assert_int_equal(c.reads, 1);
	pthread_join(dispatching, NULL);
	ebb_close(ebb);
}

struct inward {
	struct ebb *ebb;
	unsigned int own, other;
	int result;
};

static int inward_read(void *arg, struct ebb_vom_object *ret, unsigned int max)
{
	struct inward *in = arg;

	(void)ret;
	(void)max;
	in->result = ebb_vom_unregister(in->ebb, in->own);
	assert_int_equal(ebb_vom_unregister(in->ebb, in->other), 0);
	return 0;
}

static void test_unregister_from_inside(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct cache c = { .num = 1, .sts_ns = 1 };
	struct inward in = { .ebb = ebb };
	const struct ebb_vom_cache cache = { .kind = EBB_VOM_SWEPT, .read = inward_read,
					     .arg = &in };

	assert_int_equal(ebb_vom_register(ebb, &cache, &in.own), 0);
	in.other = cache_register(ebb, &c, EBB_VOM_SAMPLED);
	assert_int_equal(ask(rig, &ebb, 1, 1).num_buckets, 0);
	assert_int_equal(in.result, -EDEADLK);
	assert_int_equal(c.reads, 0);
	ebb_close(ebb);
}

/* The monitor makes one of two; what is not told of is as the middle of what is. */
static void test_merged(void **state)
{
	struct ebb_rig *rig = *state;
	struct cache a = { .num = 12, .sts_ns = 1000 }, b = { .num = 16, .sts_ns = 1000 };
	struct ebb *apps[2];
	struct ebb_vom vom;

	ebb_rig_monitor_start(rig);
	apps[0] = ebb_rig_open(rig, "a", 0);
	apps[1] = ebb_rig_open(rig, "b", 0);
	cache_register(apps[0], &a, EBB_VOM_SAMPLED);
	cache_register(apps[1], &b, EBB_VOM_SAMPLED);
	mem_add(rig, apps[0], OWNED_BLOCKS * BLOCK);
	mem_add(rig, apps[1], OWNED_BLOCKS * BLOCK);
	ebb_rig_run(apps, 2, 20);
	vom = ask(rig, apps, 2, 1);
	assert_int_equal(fake_ebb_dev_vom(rig->dev, &vom), 1);
	assert_int_equal(vom.num_buckets, 16);
	for (uint32_t i = 1; i <= vom.num_buckets; i++) {
		const uint32_t missing = i == 6 ? 4096 : 0;

		assert_int_equal(vom.buckets[i - 1].value, 1000 * i);
		assert_int_equal(vom.buckets[i - 1].kib, (i <= 12 ? 2048 : 1024) + missing);
	}
	ebb_close(apps[0]);
	ebb_close(apps[1]);
}

struct demanded {
	struct ebb *apps[2];
	uint64_t blocks[2];
};

static bool is_demanded(void *arg)
{
	const struct demanded *d = arg;

	for (int i = 0; i < 2; i++)
		if (ebb_rig_share(d->apps[i], 0).mem_demanded_bytes != d->blocks[i] * BLOCK)
			return false;
	return true;
}

/* Demands go to whose memory is worth less, once that is known; before, to who has more. */
static void test_divided_by_value(void **state)
{
	struct ebb_rig *rig = *state;
	/* 6000 to 96000, and 1000 to 16000. */
	struct cache a = { .num = 16, .sts_ns = 6000 }, b = { .num = 16, .sts_ns = 1000 };
	struct demanded d;

	ebb_rig_monitor_start(rig);
	d.apps[0] = ebb_rig_open(rig, "a", 0);
	d.apps[1] = ebb_rig_open(rig, "b", 0);
	cache_register(d.apps[0], &a, EBB_VOM_SAMPLED);
	cache_register(d.apps[1], &b, EBB_VOM_SAMPLED);
	mem_add(rig, d.apps[0], OWNED_BLOCKS * BLOCK);
	mem_add(rig, d.apps[1], OWNED_BLOCKS * BLOCK);
	ebb_rig_run(d.apps, 2, 20);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, (2 * OWNED_BLOCKS - 8) * BLOCK,
				   ebb_rig_now_ns() + 1000000000000ull);
	d.blocks[0] = d.blocks[1] = 4;
	assert_true(ebb_rig_until(d.apps, 2, is_demanded, &d, SOON_MS));
	ask(rig, d.apps, 2, 1);
	d.blocks[0] = 1;
	d.blocks[1] = 7;
	assert_true(ebb_rig_until(d.apps, 2, is_demanded, &d, SOON_MS));
	ebb_close(d.apps[0]);
	ebb_close(d.apps[1]);
}

/* An application that says that it will answer, and then does not. */
static int silent_open(struct ebb_rig *rig)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	union ebb_msg msg;
	size_t bytes;

	assert_true(fd >= 0);
	strcpy(addr.sun_path, rig->mon_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	bytes = ebb_msg_init(&msg, EBB_MSG_HELLO, 0);
	strcpy(msg.hello.name, "silent");
	assert_int_equal(send(fd, &msg, bytes, MSG_NOSIGNAL), bytes);
	bytes = ebb_msg_init(&msg, EBB_MSG_OWNED, 0);
	msg.owned.flags = EBB_MSG_OWNED_VALUES;
	assert_int_equal(send(fd, &msg, bytes, MSG_NOSIGNAL), bytes);
	return fd;
}

static void test_silent_one_is_left_out(void **state)
{
	struct ebb_rig *rig = *state;
	struct cache c = { .num = 2, .sts_ns = 1000 };
	struct ebb_vom vom;
	struct ebb *ebb;
	int fd;

	ebb_rig_monitor_start(rig);
	ebb = ebb_rig_open(rig, "a", 0);
	cache_register(ebb, &c, EBB_VOM_SAMPLED);
	mem_add(rig, ebb, BLOCK);
	fd = silent_open(rig);
	ebb_rig_run(&ebb, 1, 20);
	fake_ebb_dev_ask_vom(rig->dev, 1);
	ebb_rig_run(&ebb, 1, 300);
	assert_int_equal(c.reads, 1);
	/* It is waited for. */
	assert_int_equal(fake_ebb_dev_vom(rig->dev, &vom), 0);
	ebb_rig_time_pass(1100);
	vom = ask(rig, &ebb, 1, 1);
	assert_int_equal(vom.num_buckets, 2);
	close(fd);
	ebb_close(ebb);
}

/* What was said to a monitor that has gone is said again to the next. */
static void test_monitor_comes_back(void **state)
{
	struct ebb_rig *rig = *state;
	struct cache c = { .num = 2, .sts_ns = 1000 };
	struct wait w = { .rig = rig, .seq = 1, .calls = 2 };
	struct ebb *ebb;

	ebb_rig_monitor_start(rig);
	ebb = ebb_rig_open(rig, "a", 0);
	cache_register(ebb, &c, EBB_VOM_SAMPLED);
	mem_add(rig, ebb, BLOCK);
	ebb_rig_run(&ebb, 1, 20);
	ask(rig, &ebb, 1, 1);
	ebb_rig_monitor_end(rig, SIGKILL);
	ebb_rig_monitor_start(rig);
	ebb_rig_time_pass(3000);
	assert_true(ebb_rig_until(&ebb, 1, has_answer, &w, SOON_MS));
	assert_int_equal(w.vom.num_buckets, 2);
	assert_int_equal(c.reads, 1);
	ebb_close(ebb);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, ebb_rig_setup, ebb_rig_teardown)
		TEST(test_registration),
		TEST(test_direct),
		TEST(test_not_too_often),
		TEST(test_driver_has_no_room),
		TEST(test_not_known),
		TEST(test_without_caches),
		TEST(test_unregister_while_asked),
		TEST(test_unregister_from_inside),
		TEST(test_merged),
		TEST(test_divided_by_value),
		TEST(test_silent_one_is_left_out),
		TEST(test_monitor_comes_back),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
