// SPDX-License-Identifier: GPL-2.0-or-later
/* Where the network front listens, and which settings it refuses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "net_rig.h"
#include "oltp-engine/server/net/front.h"

static void test_addresses(void **state)
{
	struct net_rig *rig = *state;
	struct net_front *front;
	struct stat st;
	char path[120];
	int fds[NET_LISTENERS_MAX];

	net_rig_open(rig, 1);
	assert_int_equal(net_create(&rig->config, &front), 0);
	assert_int_equal(net_listen_tcp(front, "127.0.0.1"), -EINVAL);
	assert_int_equal(net_listen_tcp(front, "127.0.0.1:"), -EINVAL);
	assert_int_equal(net_listen_tcp(front, "127.0.0.1:65536"), -EINVAL);
	assert_int_equal(net_listen_tcp(front, "127.0.0.1:+1"), -EINVAL);
	assert_int_equal(net_listen_tcp(front, "::1:0"), -EINVAL);
	assert_int_equal(net_listen_tcp(front, "[::1:0"), -EINVAL);
	assert_int_equal(net_listen_tcp(front, "300.1.1.1:0"), -ENOENT);
	assert_int_equal(net_port(front), 0);
	assert_int_equal(net_fds(front, fds), 0);
	snprintf(path, sizeof(path), "127.0.0.1:%u", net_port(rig->front));
	assert_int_equal(net_listen_tcp(front, path), -EADDRINUSE);
	assert_int_equal(net_listen_unix(front, rig->path), -EADDRINUSE);
	assert_int_equal(net_listen_tcp(front, ":0"), 0);
	assert_true(net_port(front) > 0);
	snprintf(path, sizeof(path), "%s/other", rig->log->dir);
	assert_int_equal(net_listen_unix(front, path), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	for (uint32_t n = net_fds(front, fds); n < NET_LISTENERS_MAX; n++)
		assert_int_equal(net_listen_tcp(front, "127.0.0.1:0"), 0);
	assert_int_equal(net_listen_tcp(front, "127.0.0.1:0"), -ENOSPC);
	net_destroy(front);
	assert_int_equal(stat(path, &st), -1);
}

static void test_what_is_refused(void **state)
{
	const struct net_config good = { .clients_max = 1, .request_bytes_max = 1 << 20,
					 .output_bytes_max = 1 << 20 };
	struct net_front *front;
	struct net_config bad;

	(void)state;
	bad = good;
	bad.clients_max = 0;
	assert_int_equal(net_create(&bad, &front), -EINVAL);
	bad.clients_max = NET_CLIENTS_MAX + 1;
	assert_int_equal(net_create(&bad, &front), -EINVAL);
	bad = good;
	bad.request_bytes_max = NET_REQUEST_BYTES_MIN - 1;
	assert_int_equal(net_create(&bad, &front), -EINVAL);
	bad.request_bytes_max = NET_REQUEST_BYTES_MAX + 1;
	assert_int_equal(net_create(&bad, &front), -EINVAL);
	bad = good;
	bad.output_bytes_max = NET_OUTPUT_BYTES_MIN - 1;
	assert_int_equal(net_create(&bad, &front), -EINVAL);
	bad.output_bytes_max = NET_OUTPUT_BYTES_MAX + 1;
	assert_int_equal(net_create(&bad, &front), -EINVAL);
	net_destroy(NULL);
}

/* However many clients there may be, a ring has the flags that this kernel knows. */
static void test_rings(void **state)
{
	const uint32_t clients[] = { 1, 200, 16129, 16383, 16384, NET_CLIENTS_MAX };
	uint32_t flags = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(clients) / sizeof(*clients); i++) {
		struct net_front front = { .config.clients_max = clients[i] };
		struct net_worker w = { .front = &front };

		assert_int_equal(ring_init(&w), 0);
		flags = i ? flags : w.ring.flags;
		assert_int_equal(w.ring.flags, flags);
		ring_finish(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_addresses, net_rig_setup, net_rig_teardown),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
