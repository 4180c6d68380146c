/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The links: who may connect, what is reported, what is sent, and how they end. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "backend/real/link.h"
#include "tests/lib/fake_device.h"
#include "tests/lib/link_frames.h"
#include "util/clock.h"
#include "util/log.h"

static const uint8_t uuid[16] = { 0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
#define UUID_TEXT "ab010203-0405-0607-0809-0a0b0c0d0e0f"

#define PATIENCE_USEC	(60 * EBB_USEC_PER_SEC) /* a hang, not slowness */

struct fixture {
	sd_event *event;
	struct ebb_links *links;
	char folder[64], path[128];
	pid_t qemu_pid;			/* what the agent believes */
	unsigned int num_facts;
	struct ebb_fact last;		/* without arrays */
	struct fake_device dev;
};

static int take_fact(void *ctx, usec_t now, const struct ebb_fact *fact)
{
	struct fixture *f = ctx;

	assert_true(now > 0);
	assert_memory_equal(fact->uuid, uuid, 16);
	f->num_facts++;
	f->last = *fact;
	return 0;
}

static pid_t qemu_pid(void *ctx, const uint8_t u[16])
{
	struct fixture *f = ctx;

	assert_memory_equal(u, uuid, 16);
	return f->qemu_pid;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct ebb_links_config cfg = {
		.folder = f->folder,
		.group = -1,
		.sink = {f, take_fact},
		.qemu_pid = qemu_pid,
		.ctx = f,
	};

	ebb_log_set_level(LOG_ERR);
	strcpy(f->folder, "/tmp/test_io_link.XXXXXX");
	if (!mkdtemp(f->folder) || sd_event_new(&f->event) < 0 ||
	    ebb_links_create(f->event, &cfg, &f->links) < 0 ||
	    ebb_links_listen(f->links, uuid, "web", NULL) < 0)
		return -1;
	ebb_links_enable(f->links, uuid, true);
	snprintf(f->path, sizeof(f->path), "%s/%s.sock", f->folder, UUID_TEXT);
	f->qemu_pid = getpid();
	f->dev.fd = -1;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	fake_device_close(&f->dev);
	ebb_links_destroy(f->links);
	if (stat(f->path, &st) == 0 || rmdir(f->folder) < 0)
		return -1;
	sd_event_unref(f->event);
	free(f);
	return 0;
}

/* Run the loop until nothing more happens. */
static void pump(struct fixture *f)
{
	while (sd_event_run(f->event, 20000) > 0)
		;
}

static void bring_up(struct fixture *f)
{
	struct ebb_action a = { .type = EBB_ACTION_WELCOME };
	struct fake_frame frame;

	memcpy(a.uuid, uuid, 16);
	assert_int_equal(fake_device_connect(&f->dev, f->path, uuid), 0);
	assert_int_equal(fake_device_hello(&f->dev, 8, 3, 1), 0);
	pump(f);
	assert_int_equal(f->num_facts, 1);
	assert_int_equal(f->last.type, EBB_FACT_HELLO);
	assert_true(f->last.u.hello.is_first);
	ebb_links_submit(f->links, &a);
	pump(f);
	assert_int_equal(fake_device_receive(&f->dev, true, &frame), 0);
	assert_int_equal(frame.type, VIRTIO_EBB_LINK_WELCOME);
	f->num_facts = 0;
}

static void test_talk(void **state)
{
	struct fixture *f = *state;
	struct ebb_action a = { .type = EBB_ACTION_RESPONSE };
	struct link_frame_request req;
	struct link_frame_telemetry tel;
	struct link_frame_vom vom;
	struct fake_frame frame;

	bring_up(f);
	assert_int_equal(fake_device_hello(&f->dev, 8, 2, 1), 0);
	pump(f);
	assert_false(f->last.u.hello.is_first);
	fake_device_send(&f->dev, &req, link_frame_add(&req, 99, 2, 1));
	pump(f);
	assert_int_equal(f->last.type, EBB_FACT_REQUEST);
	assert_int_equal(f->last.u.request.tag, 99);
	fake_device_send(&f->dev, &tel, link_frame_telemetry(&tel, 5));
	pump(f);
	assert_int_equal(f->last.type, EBB_FACT_TELEMETRY);
	assert_int_equal(f->num_facts, 3);
	fake_device_send(&f->dev, &vom, link_frame_vom(&vom, 6, 4));
	pump(f);
	assert_int_equal(f->last.type, EBB_FACT_VOM);
	assert_int_equal(f->last.u.vom.seq, 6);
	assert_int_equal(f->last.u.vom.num_buckets, 4);

	memcpy(a.uuid, uuid, 16);
	a.u.response = (struct ebb_action_response){ .tag = 99, .type = 1, .count = 1 };
	ebb_links_submit(f->links, &a);
	a.type = EBB_ACTION_REVOKE;
	a.u.pool = (struct ebb_action_pool){ .node = 1, .bytes = 4 << 20 };
	ebb_links_submit(f->links, &a);
	a.type = EBB_ACTION_LIMITS;
	a.u.limits = (struct ebb_action_limits){ .generation = 4, .num_nodes = 2 };
	ebb_links_submit(f->links, &a);
	pump(f);
	assert_int_equal(fake_device_receive(&f->dev, true, &frame), 0);
	assert_int_equal(frame.type, VIRTIO_EBB_LINK_RESPONSE);
	assert_int_equal(fake_device_receive(&f->dev, true, &frame), 0);
	assert_int_equal(frame.type, VIRTIO_EBB_LINK_REVOKE);
	assert_int_equal(fake_device_receive(&f->dev, true, &frame), 0);
	assert_int_equal(frame.type, VIRTIO_EBB_LINK_LIMITS);
	assert_int_equal(frame.len, 16 + 2 * 48);
}

static void expect_closed(struct fixture *f)
{
	struct fake_frame frame;

	pump(f);
	assert_int_equal(fake_device_receive(&f->dev, true, &frame), -ECONNRESET);
}

static void test_lost_and_back(void **state)
{
	struct fixture *f = *state;

	bring_up(f);
	fake_device_close(&f->dev);
	pump(f);
	assert_int_equal(f->num_facts, 1);
	assert_int_equal(f->last.type, EBB_FACT_LINK_LOST);
	f->num_facts = 0;
	bring_up(f);
}

/* A connection that never said HELLO is nobody's loss. */
static void test_no_hello(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fake_device_connect(&f->dev, f->path, uuid), 0);
	pump(f);
	fake_device_close(&f->dev);
	pump(f);
	assert_int_equal(f->num_facts, 0);
}

static void test_wrong_process(void **state)
{
	struct fixture *f = *state;

	f->qemu_pid = getpid() + 1;
	assert_int_equal(fake_device_connect(&f->dev, f->path, uuid), 0);
	expect_closed(f);
	assert_non_null(strstr(ebb_links_last_error(f->links, uuid), "the QEMU of the VM is"));
	assert_int_equal(f->num_facts, 0);
}

/* One stranger costs the VM nothing, a flood of them is stopped. */
static void test_strangers(void **state)
{
	struct fixture *f = *state;
	uint64_t t0;

	f->qemu_pid = getpid() + 1;
	assert_int_equal(fake_device_connect(&f->dev, f->path, uuid), 0);
	expect_closed(f);
	fake_device_close(&f->dev);
	f->qemu_pid = getpid();
	bring_up(f);
	fake_device_close(&f->dev);
	pump(f);
	f->qemu_pid = getpid() + 1;
	t0 = ebb_clock_mono_usec();
	while (ebb_clock_mono_usec() - t0 < PATIENCE_USEC) {
		if (fake_device_connect(&f->dev, f->path, uuid) == 0)
			while (sd_event_run(f->event, 0) > 0)
				;
		fake_device_close(&f->dev);
		if (strstr(ebb_links_last_error(f->links, uuid), "too many"))
			return;
	}
	fail_msg("strangers are let in one after the other");
}

/* No file descriptor is left: QEMU waits until there is one, and the loop does not spin. */
static void test_no_descriptors(void **state)
{
	struct fixture *f = *state;
	struct rlimit before, none;
	int rounds = 0;
	uint64_t t0;

	assert_int_equal(fake_device_connect(&f->dev, f->path, uuid), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	/* A round in which nothing happens takes 20 ms and is the last one. */
	while (rounds < 1000 && sd_event_run(f->event, 20000) > 0)
		rounds++;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(rounds < 1000);
	assert_string_equal(ebb_links_last_error(f->links, uuid),
			    "a connection can not be accepted: Too many open files");
	assert_int_equal(fake_device_hello(&f->dev, 8, 2, 1), 0);
	t0 = ebb_clock_mono_usec();
	while (f->num_facts == 0 && ebb_clock_mono_usec() - t0 < PATIENCE_USEC)
		sd_event_run(f->event, 100000);
	assert_int_equal(f->last.type, EBB_FACT_HELLO);
	assert_string_equal(ebb_links_last_error(f->links, uuid), "");
}

static void test_no_process(void **state)
{
	struct fixture *f = *state;

	f->qemu_pid = -ESRCH;
	assert_int_equal(fake_device_connect(&f->dev, f->path, uuid), 0);
	expect_closed(f);
	assert_non_null(strstr(ebb_links_last_error(f->links, uuid), "can not be found"));
}

static void test_wrong_version(void **state)
{
	struct fixture *f = *state;
	struct link_frame_hello hello;
	size_t len = link_frame_hello(&hello, uuid, 8, 2, 0);

	hello.hdr.proto = htole16(VIRTIO_EBB_LINK_PROTO + 1);
	assert_int_equal(fake_device_connect(&f->dev, f->path, uuid), 0);
	fake_device_send(&f->dev, &hello, len);
	expect_closed(f);
	assert_string_equal(ebb_links_last_error(f->links, uuid),
			    "protocol version is 3, this agent speaks 2");
	assert_int_equal(f->num_facts, 0);
}

static void test_foreign_uuid(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fake_device_connect(&f->dev, f->path, (uint8_t[16]){ 1 }), 0);
	fake_device_hello(&f->dev, 8, 2, 0);
	expect_closed(f);
	assert_non_null(strstr(ebb_links_last_error(f->links, uuid), "uuid of another VM"));
}

/* Garbage ends the link, is reported once, and the next connection has to wait. */
static void test_garbage(void **state)
{
	struct fixture *f = *state;
	struct fake_frame frame;
	uint64_t t0;

	bring_up(f);
	t0 = ebb_clock_mono_usec();
	fake_device_send(&f->dev, "GET / HTTP/1.1\r\n\r\n", 18);
	expect_closed(f);
	assert_int_equal(f->num_facts, 1);
	assert_int_equal(f->last.type, EBB_FACT_LINK_LOST);
	fake_device_close(&f->dev);
	f->num_facts = 0;
	assert_int_equal(fake_device_connect(&f->dev, f->path, uuid), 0);
	fake_device_hello(&f->dev, 8, 2, 1);
	while (f->num_facts == 0 && ebb_clock_mono_usec() - t0 < PATIENCE_USEC)
		sd_event_run(f->event, 100000);
	assert_int_equal(f->last.type, EBB_FACT_HELLO);
	assert_true(ebb_clock_mono_usec() - t0 >= EBB_USEC_PER_SEC);
	assert_int_equal(fake_device_receive(&f->dev, false, &frame), -EAGAIN);
}

static void test_nack_closes(void **state)
{
	struct fixture *f = *state;
	struct ebb_action a = { .type = EBB_ACTION_WELCOME };
	struct fake_frame frame;

	memcpy(a.uuid, uuid, 16);
	a.u.welcome.status = VIRTIO_EBB_NACK;
	assert_int_equal(fake_device_connect(&f->dev, f->path, uuid), 0);
	fake_device_hello(&f->dev, 8, 3, 1);
	pump(f);
	ebb_links_submit(f->links, &a);
	pump(f);
	assert_int_equal(fake_device_receive(&f->dev, true, &frame), 0);
	assert_int_equal(frame.type, VIRTIO_EBB_LINK_WELCOME);
	expect_closed(f);
	assert_int_equal(f->last.type, EBB_FACT_LINK_LOST);
}

static void test_close_action(void **state)
{
	struct fixture *f = *state;
	struct ebb_action a = { .type = EBB_ACTION_LINK_CLOSE };

	memcpy(a.uuid, uuid, 16);
	bring_up(f);
	ebb_links_submit(f->links, &a);
	assert_int_equal(f->num_facts, 0);
	expect_closed(f);
	assert_int_equal(f->num_facts, 1);
	assert_int_equal(f->last.type, EBB_FACT_LINK_LOST);
}

/* The queue of a device that does not read is bounded. */
static void test_overflow(void **state)
{
	struct fixture *f = *state;
	struct ebb_action a = { .type = EBB_ACTION_LIMITS };

	memcpy(a.uuid, uuid, 16);
	a.u.limits = (struct ebb_action_limits){ .num_nodes = EBB_MAX_GUEST_NODES };
	bring_up(f);
	for (int i = 0; i < 10000 && f->num_facts == 0; i++) {
		ebb_links_submit(f->links, &a);
		if (i % 16 == 0)
			while (sd_event_run(f->event, 0) > 0)
				;
	}
	pump(f);
	assert_int_equal(f->num_facts, 1);
	assert_int_equal(f->last.type, EBB_FACT_LINK_LOST);
}

static void test_forget(void **state)
{
	struct fixture *f = *state;

	bring_up(f);
	ebb_links_forget(f->links, uuid);
	expect_closed(f);
	assert_int_equal(f->num_facts, 0);
	fake_device_close(&f->dev);
	assert_int_equal(fake_device_connect(&f->dev, f->path, uuid), -ENOENT);
}

/* Before the VM is known to run, what it says waits in the socket. */
static void test_not_enabled(void **state)
{
	struct fixture *f = *state;

	ebb_links_enable(f->links, uuid, false);
	assert_int_equal(fake_device_connect(&f->dev, f->path, uuid), 0);
	fake_device_hello(&f->dev, 8, 3, 1);
	pump(f);
	assert_int_equal(f->num_facts, 0);
	ebb_links_enable(f->links, uuid, true);
	pump(f);
	assert_int_equal(f->num_facts, 1);
	assert_int_equal(f->last.type, EBB_FACT_HELLO);
}

/* A second connection of the same process replaces the first. */
static void test_replaced(void **state)
{
	struct fixture *f = *state;
	struct fake_device second = { .fd = -1 };

	bring_up(f);
	assert_int_equal(fake_device_connect(&second, f->path, uuid), 0);
	fake_device_hello(&second, 8, 3, 1);
	expect_closed(f);
	assert_int_equal(f->num_facts, 2);
	assert_int_equal(f->last.type, EBB_FACT_HELLO);
	assert_true(f->last.u.hello.is_first);
	fake_device_close(&second);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(talk),	  TEST(lost_and_back), TEST(no_hello),	    TEST(wrong_process),
		TEST(no_process), TEST(strangers),     TEST(wrong_version), TEST(foreign_uuid),
		TEST(garbage),	  TEST(nack_closes),   TEST(close_action),  TEST(overflow),
		TEST(forget),	  TEST(not_enabled),   TEST(replaced),	    TEST(no_descriptors),
	};

	return cmocka_run_group_tests_name("io/link", tests, NULL, NULL);
}
