/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Description: the guest driver's checks of what the device says of pools and of memory.  Each
 * refusal changes one thing in a message that is good without the change.
 */
#include "guest-driver/pure/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct ebb_wire_config cfg = {
	.proto = VIRTIO_EBB_PROTO,
	.num_nodes = 2,
	.max_cpus = 8,
	.num_startup_cpus = 1,
	.request_timeout_ms = 15000,
};

static struct virtio_ebb_event limits_event(void)
{
	struct virtio_ebb_event event = {
		.type = cpu_to_le16(VIRTIO_EBB_EVENT_LIMITS),
		.num_nodes = cpu_to_le16(2),
		.generation = cpu_to_le64(9),
	};

	event.nodes[0].node = cpu_to_le16(1);
	event.nodes[1].cpus_limit = cpu_to_le32(8);
	return event;
}

#define MIB	((u64)1 << 20)

static struct ebb_wire_config config_with_pools(void)
{
	struct ebb_wire_config c = cfg;

	c.num_pools = 2;
	c.pools[0] = (struct ebb_wire_pool) { 4096 * MIB, 1024 * MIB, 2 * MIB, 0 };
	c.pools[1] = (struct ebb_wire_pool) { 5120 * MIB, 64 * MIB, 4 * MIB, 1 };
	return c;
}

static void test_pool_config(void **state)
{
	const struct ebb_wire_config good = config_with_pools();
	struct virtio_ebb_pool wire = {
		.addr = cpu_to_le64(3),
		.size_bytes = cpu_to_le64(4),
		.block_bytes = cpu_to_le32(5),
		.node = cpu_to_le16(6),
	};
	struct ebb_wire_pool pool;
	struct ebb_wire_config c;

	(void)state;
	assert_int_equal(ebb_wire_read_pool(&wire, &pool), 0);
	assert_true(pool.addr == 3 && pool.size_bytes == 4 && pool.block_bytes == 5 &&
		    pool.pxm == 6);
	wire.reserved = 1;
	assert_int_equal(ebb_wire_read_pool(&wire, &pool), -EPROTO);

	assert_int_equal(ebb_wire_check_config(&good), 0);
	assert_int_equal(ebb_wire_pool_of_node(&good, 1), 1);
	assert_int_equal(ebb_wire_pool_of_node(&good, 2), -1);
#define BAD(field, value) do { \
		c = good; \
		c.field = (value); \
		assert_int_equal(ebb_wire_check_config(&c), -EPROTO); \
	} while (0)
	BAD(num_pools, 3);
	BAD(num_pools, VIRTIO_EBB_MAX_NODES + 1);
	BAD(pools[0].pxm, 1);
	BAD(pools[0].pxm, 2);
	BAD(pools[0].block_bytes, 0);
	BAD(pools[0].block_bytes, 2048);
	BAD(pools[0].block_bytes, 3 * MIB);
	BAD(pools[0].addr, 4097 * MIB);
	BAD(pools[0].size_bytes, 0);
	BAD(pools[0].size_bytes, 1023 * MIB);
	BAD(pools[0].size_bytes, 1028 * MIB);	/* into the next one */
	BAD(pools[1].addr, -64 * MIB);		/* ends beyond the last address */
#undef BAD
}

static void test_limits_of_memory(void **state)
{
	const struct ebb_wire_config pools = config_with_pools();
	struct virtio_ebb_event good = limits_event(), event;
	struct ebb_wire_event ret;

	(void)state;
	good.nodes[0].mem_held_bytes = cpu_to_le64(8 * MIB);
	good.nodes[0].mem_limit_bytes = cpu_to_le64(4 * MIB);
	good.nodes[0].mem_deadline_ms = cpu_to_le32(70);
	good.nodes[1].mem_limit_bytes = cpu_to_le64(2048 * MIB);
	assert_int_equal(ebb_wire_read_event(&good, sizeof(good), &pools, &ret), 0);
	assert_true(ret.limits[1].mem_limit_bytes == 4 * MIB);
	assert_int_equal(ret.limits[1].mem_deadline_ms, 70);
	assert_true(ret.limits[0].mem_limit_bytes == 2048 * MIB);
#define BAD(field, value) do { \
		event = good; \
		event.field = (value); \
		assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &pools, &ret), \
				 -EPROTO); \
	} while (0)
	BAD(nodes[0].mem_held_bytes, cpu_to_le64(2 * MIB));
	BAD(nodes[0].mem_held_bytes, cpu_to_le64(68 * MIB));
	BAD(nodes[0].mem_limit_bytes, cpu_to_le64(2 * MIB));
	BAD(nodes[1].mem_limit_bytes, cpu_to_le64(4096));
	BAD(nodes[0].mem_promise_mib, cpu_to_le32(1));	/* not negotiated */
#undef BAD
}

static void test_promise(void **state)
{
	struct ebb_wire_config c = config_with_pools();
	struct virtio_ebb_event event = limits_event();
	struct ebb_wire_event ret = { .mem_promise_mib = 99 };

	(void)state;
	assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &c, &ret), 0);
	assert_int_equal(ret.mem_promise_mib, 0);
	c.has_baseline = true;
	event.nodes[0].mem_promise_mib = cpu_to_le32(0xfffffffe);
	event.nodes[1].mem_promise_mib = cpu_to_le32(1);
	assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &c, &ret), 0);
	assert_true(ret.mem_promise_mib == 0xffffffff);
	/* The sum has to fit. */
	event.nodes[1].mem_promise_mib = cpu_to_le32(2);
	assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &c, &ret), -EPROTO);
	/* Nothing is promised where there is no pool. */
	event.nodes[1].mem_promise_mib = cpu_to_le32(1);
	c.num_pools = 1;
	event.nodes[0].mem_promise_mib = 0;
	event.nodes[1].mem_promise_mib = 0;
	assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &c, &ret), 0);
	event.nodes[le16_to_cpu(event.nodes[0].node) == c.pools[0].pxm].mem_promise_mib =
		cpu_to_le32(1);
	assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &c, &ret), -EPROTO);
}

/* A pool whose blocks are too small to be leased costs its node's memory, and nothing else. */
static void test_pool_of_small_blocks(void **state)
{
	struct virtio_ebb_event event = limits_event();
	struct ebb_wire_config c = config_with_pools();
	struct ebb_wire_event ret;

	(void)state;
	c.pools[0].block_bytes = MIB;
	assert_int_equal(ebb_wire_check_config(&c), 0);
	assert_false(ebb_wire_is_usable_pool(&c.pools[0]));
	assert_true(ebb_wire_is_usable_pool(&c.pools[1]));
	event.nodes[0].mem_limit_bytes = cpu_to_le64(4 * MIB);
	event.nodes[1].mem_limit_bytes = cpu_to_le64(3 * MIB);
	event.nodes[1].mem_deadline_ms = cpu_to_le32(70);
	memset(&ret, 0xff, sizeof(ret));
	assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &c, &ret), 0);
	assert_true(ret.limits[1].mem_limit_bytes == 4 * MIB);
	assert_true(ret.limits[0].mem_limit_bytes == 0 && ret.limits[0].mem_deadline_ms == 0 &&
		    ret.limits[0].mem_cutoff == 0);
	assert_int_equal(ret.limits[0].cpus_limit, le32_to_cpu(event.nodes[1].cpus_limit));
}

static void check_ranges_event(u16 type)
{
	struct ebb_wire_config pools = config_with_pools();
	struct virtio_ebb_event good = { .type = cpu_to_le16(type) };
	struct virtio_ebb_event event;
	struct ebb_wire_event ret;

	pools.can_leave = true;
	assert_int_equal(ebb_wire_read_event(&good, sizeof(good), &pools, &ret), 0);
	assert_int_equal(ret.num_ranges, 0);
	/* A VM without pools. */
	assert_int_equal(ebb_wire_read_event(&good, sizeof(good), &cfg, &ret), -EPROTO);
	good.num_ranges = cpu_to_le32(2);
	good.ranges[0].addr = cpu_to_le64(4098 * MIB);
	good.ranges[0].size_bytes = cpu_to_le64(1022 * MIB);
	good.ranges[1].addr = cpu_to_le64(5124 * MIB);
	good.ranges[1].size_bytes = cpu_to_le64(60 * MIB);
	assert_int_equal(ebb_wire_read_event(&good, sizeof(good), &pools, &ret), 0);
	assert_int_equal(ret.num_ranges, 2);
	assert_true(ret.ranges[1].addr == 5124 * MIB && ret.ranges[1].size_bytes == 60 * MIB);
#define BAD(field, value) do { \
		event = good; \
		event.field = (value); \
		assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &pools, &ret), \
				 -EPROTO); \
	} while (0)
	BAD(num_nodes, cpu_to_le16(1));
	BAD(generation, cpu_to_le64(1));
	BAD(cpu.hv_cpu_id, cpu_to_le64(1));
	BAD(num_ranges, cpu_to_le32(1));
	BAD(num_ranges, cpu_to_le32(3));
	BAD(num_ranges, cpu_to_le32(VIRTIO_EBB_MAX_RANGES + 1));
	BAD(num_ranges, cpu_to_le32(0xffffffff));
	BAD(ranges[0].addr, cpu_to_le64(4094 * MIB));
	BAD(ranges[0].addr, cpu_to_le64(4097 * MIB));
	BAD(ranges[0].addr, cpu_to_le64(5124 * MIB));	/* past the first pool, over the second */
	BAD(ranges[0].size_bytes, 0);
	BAD(ranges[0].size_bytes, cpu_to_le64(1024 * MIB));
	BAD(ranges[0].size_bytes, cpu_to_le64(-MIB));
	BAD(ranges[1].addr, cpu_to_le64(5122 * MIB));
	BAD(ranges[1].addr, cpu_to_le64(4100 * MIB));	/* falls */
	BAD(ranges[1].size_bytes, cpu_to_le64(2 * MIB));
#undef BAD
}

static void test_revoked_event(void **state)
{
	(void)state;
	check_ranges_event(VIRTIO_EBB_EVENT_MEM_REVOKED);
}

static void test_leaving_event(void **state)
{
	const struct ebb_wire_config pools = config_with_pools();
	struct virtio_ebb_event event = { .type = cpu_to_le16(VIRTIO_EBB_EVENT_MEM_LEAVING) };
	struct ebb_wire_event ret;

	(void)state;
	check_ranges_event(VIRTIO_EBB_EVENT_MEM_LEAVING);
	/* Not negotiated. */
	assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &pools, &ret), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool_config),
		cmocka_unit_test(test_limits_of_memory),
		cmocka_unit_test(test_promise),
		cmocka_unit_test(test_pool_of_small_blocks),
		cmocka_unit_test(test_revoked_event),
		cmocka_unit_test(test_leaving_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
