/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Description: what the guest driver makes of the value of memory: questions of the device, and
 * histograms of programs.  Each refusal changes one thing that is good without the change.
 */
#include "guest-driver/pure/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIB	((u64)1 << 20)

/* Node 1 has no pool. */
static const struct ebb_wire_config cfg = {
	.proto = VIRTIO_EBB_PROTO,
	.num_nodes = 2,
	.max_cpus = 8,
	.num_startup_cpus = 1,
	.request_timeout_ms = 15000,
	.num_pools = 1,
	.has_vom = true,
	.pools[0] = { 4096 * MIB, 1024 * MIB, 2 * MIB, 0 },
};

/* Of proximity domains 0, 1 and 2. */
static const int linux_node[] = { 5, 1, 3 };

static int read_event(const struct virtio_ebb_event *event, struct ebb_wire_event *ret)
{
	return ebb_wire_read_event(event, sizeof(*event), &cfg, ret);
}

static void test_ask(void **state)
{
	struct virtio_ebb_event good = {
		.type = cpu_to_le16(VIRTIO_EBB_EVENT_LIMITS),
		.num_nodes = cpu_to_le16(2),
		.generation = cpu_to_le64(9),
	}, event;
	struct ebb_wire_config without = cfg;
	struct ebb_wire_event ret = { .vom_seq = 1 };

	(void)state;
	without.has_vom = false;
	good.nodes[1].node = cpu_to_le16(1);
	assert_int_equal(read_event(&good, &ret), 0);
	assert_int_equal(ret.vom_seq, 0);
	assert_true(ret.limits[0].mem_cutoff == 0);
	assert_int_equal(ebb_wire_read_event(&good, sizeof(good), &without, &ret), 0);

	event = good;
	event.vom_seq = cpu_to_le32(0xfedcba98);
	assert_int_equal(read_event(&event, &ret), 0);
	assert_int_equal(ret.vom_seq, 0xfedcba98);
	assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &without, &ret), -EPROTO);
	event = good;
	event.nodes[0].mem_cutoff = cpu_to_le64(UINT64_MAX);
	assert_int_equal(read_event(&event, &ret), 0);
	assert_true(ret.limits[0].mem_cutoff == UINT64_MAX);
	assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &without, &ret), -EPROTO);

#define BAD(field, value) do { \
		event = good; \
		event.field = (value); \
		assert_int_equal(read_event(&event, &ret), -EPROTO); \
	} while (0)
	BAD(reserved, cpu_to_le32(1));
	BAD(nodes[1].mem_cutoff, cpu_to_le64(1));
	BAD(nodes[2].mem_cutoff, cpu_to_le64(1));
#undef BAD
}

/* Only limits ask. */
static void test_ask_elsewhere(void **state)
{
	struct virtio_ebb_event event = { .type = cpu_to_le16(VIRTIO_EBB_EVENT_MEM_REVOKED) };
	struct ebb_wire_event ret = { .vom_seq = 1 };

	(void)state;
	assert_int_equal(read_event(&event, &ret), 0);
	assert_int_equal(ret.vom_seq, 0);
	event.vom_seq = cpu_to_le32(1);
	assert_int_equal(read_event(&event, &ret), -EPROTO);
	event.type = cpu_to_le16(VIRTIO_EBB_EVENT_CPU);
	event.cpu.hv_cpu_id = cpu_to_le64(3);
	assert_int_equal(read_event(&event, &ret), -EPROTO);
	event.vom_seq = 0;
	assert_int_equal(read_event(&event, &ret), 0);
}

/* By the order of domains, not of the numbers that Linux gave them. */
static const struct ebb_vom_bucket buckets[] = {
	{ .value = 0, .kib = 64, .node = 5 },
	{ .value = 7, .kib = 1, .node = 5 },
	{ .value = 7, .kib = 0xffffffff, .node = 1 },
	{ .value = UINT64_MAX, .kib = 2, .node = 3 },
};
#define NUM	(sizeof(buckets) / sizeof(buckets[0]))

struct fixture {
	struct ebb_vom arg;
	union {
		struct virtio_ebb_vom v;
		unsigned char bytes[EBB_WIRE_MAX_VOM_BYTES];
	} wire;
	u32 len;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	f->arg.seq = 77;
	f->arg.num_buckets = NUM;
	memcpy(f->arg.buckets, buckets, sizeof(buckets));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static int make(struct fixture *f)
{
	memset(&f->wire, 0xff, sizeof(f->wire));
	return ebb_wire_make_vom(&f->arg, linux_node, 3, &f->wire.v, &f->len);
}

static void test_make(void **state)
{
	static const u16 pxm[NUM] = { 0, 0, 1, 2 };
	struct fixture *f = *state;
	const struct virtio_ebb_vom_bucket *out = (const void *)(&f->wire.v + 1);

	assert_int_equal(make(f), 0);
	assert_int_equal(f->len, 16 + NUM * 16);
	assert_int_equal(le16_to_cpu(f->wire.v.type), VIRTIO_EBB_TELEMETRY_VOM);
	assert_int_equal(le16_to_cpu(f->wire.v.num_buckets), NUM);
	assert_int_equal(le32_to_cpu(f->wire.v.seq), 77);
	assert_true(f->wire.v.reserved == 0);
	for (u32 i = 0; i < NUM; i++) {
		assert_true(le64_to_cpu(out[i].value) == buckets[i].value);
		assert_int_equal(le32_to_cpu(out[i].kib), buckets[i].kib);
		assert_int_equal(le16_to_cpu(out[i].node), pxm[i]);
		assert_int_equal(out[i].reserved, 0);
	}

	f->arg.num_buckets = 0;
	assert_int_equal(make(f), 0);
	assert_int_equal(f->len, 16);
	f->arg.num_buckets = EBB_VOM_MAX_BUCKETS;
	for (u32 i = 0; i < EBB_VOM_MAX_BUCKETS; i++)
		f->arg.buckets[i] = (struct ebb_vom_bucket) { .value = i, .kib = 1, .node = 1 };
	assert_int_equal(make(f), 0);
	assert_int_equal(f->len, EBB_WIRE_MAX_VOM_BYTES);
	assert_int_equal(f->len, 8208);
}

static void test_make_bad(void **state)
{
	struct fixture *f = *state;

#define BAD(field, bad) do { \
		__typeof__(f->arg.field) good_ = f->arg.field; \
		f->arg.field = (bad); \
		assert_int_equal(make(f), -EINVAL); \
		f->arg.field = good_; \
	} while (0)
	BAD(seq, 0);
	BAD(num_buckets, EBB_VOM_MAX_BUCKETS + 1);
	BAD(num_buckets, 0xffffffff);
	BAD(num_buckets, NUM + 1);
	BAD(buckets[0].kib, 0);
	BAD(buckets[3].kib, 0);
	BAD(buckets[2].reserved, 1);
	BAD(buckets[1].node, 2);
	BAD(buckets[1].node, 0xffff);
	BAD(buckets[0].node, 1);
	BAD(buckets[3].node, 5);
	BAD(buckets[0].value, 7);
	BAD(buckets[0].value, 8);
#undef BAD
	assert_int_equal(make(f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ask),
		cmocka_unit_test(test_ask_elsewhere),
		cmocka_unit_test_setup_teardown(test_make, setup, teardown),
		cmocka_unit_test_setup_teardown(test_make_bad, setup, teardown),
	};

	return cmocka_run_group_tests_name("ebb_wire_vom", tests, NULL, NULL);
}
