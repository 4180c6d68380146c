/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The link protocol: good frames, one bad frame per rule, any split, random bytes. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backend/real/linkproto.h"
#include "tests/lib/link_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t uuid[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

struct fixture {
	struct ebb_linkproto_parser parser;
	struct link_frame_hello hello;
	size_t hello_len;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	ebb_linkproto_parser_init(&f->parser);
	f->hello_len = link_frame_hello(&f->hello, uuid, 8, 3, 7);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ebb_linkproto_parser_finish(&f->parser);
	free(f);
	return 0;
}

static int parse(struct fixture *f, const void *data, size_t len, struct ebb_linkproto_msg *msg,
		 struct ebb_err *err)
{
	size_t used;
	int rc = ebb_linkproto_parse(&f->parser, data, len, &used, msg, err);

	if (rc == 1)
		assert_int_equal(used, len);
	return rc;
}

static void say_hello(struct fixture *f)
{
	struct ebb_linkproto_msg msg;

	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), 1);
}

static void test_hello(void **state)
{
	struct fixture *f = *state;
	struct ebb_linkproto_msg msg;

	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), 1);
	assert_int_equal(msg.type, VIRTIO_EBB_LINK_HELLO);
	assert_memory_equal(msg.uuid, uuid, 16);
	assert_true(msg.u.hello.has_driver);
	assert_int_equal(msg.u.hello.max_cpus, 8);
	assert_int_equal(msg.u.hello.num_cpus, 3);
	assert_int_equal(msg.u.hello.num_nodes, 2);
	assert_int_equal(msg.u.hello.resets, 7);
	assert_int_equal(msg.u.hello.cpus[0].flags, VIRTIO_EBB_CPU_F_STARTUP);
	assert_int_equal(msg.u.hello.cpus[2].vcpu, 2);
	assert_true(ebb_linkproto_is_idle(&f->parser));
}

static void test_hello_lends(void **state)
{
	struct fixture *f = *state;
	struct ebb_linkproto_msg msg;

	f->hello.cpus[1].cpu.flags = htole16(VIRTIO_EBB_CPU_F_LENT);
	f->hello.cpus[2].cpu.flags = htole16(VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_PARKED);
	/* Lent CPUs may outlive the driver that lent them. */
	f->hello.hello.flags = htole32(0);
	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), 1);
	assert_false(msg.u.hello.can_lend);
	f->hello.hello.flags = htole32(VIRTIO_EBB_HELLO_F_DRIVER | VIRTIO_EBB_HELLO_F_LEND);
	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), 1);
	assert_true(msg.u.hello.has_driver);
	assert_true(msg.u.hello.can_lend);
	assert_int_equal(msg.u.hello.cpus[1].flags, VIRTIO_EBB_CPU_F_LENT);
	assert_int_equal(msg.u.hello.cpus[2].flags,
			 VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_PARKED);
}

static void test_requests_and_telemetry(void **state)
{
	struct fixture *f = *state;
	struct ebb_linkproto_msg msg;
	struct link_frame_request req;
	struct link_frame_telemetry tel;
	size_t len;

	say_hello(f);
	len = link_frame_add(&req, 42, 3, 1);
	req.request.req.flags = htole16(VIRTIO_EBB_ADD_F_ALLOW_HT);
	assert_int_equal(parse(f, &req, len, &msg, NULL), 1);
	assert_int_equal(msg.u.request.type, VIRTIO_EBB_REQ_CPU_ADD);
	assert_int_equal(msg.u.request.tag, 42);
	assert_int_equal(msg.u.request.count, 3);
	assert_int_equal(msg.u.request.node, 1);
	assert_true(msg.u.request.allow_ht);
	len = link_frame_add(&req, 43, 1, VIRTIO_EBB_NODE_ANY);
	assert_int_equal(parse(f, &req, len, &msg, NULL), 1);
	assert_int_equal(msg.u.request.node, VIRTIO_EBB_NODE_ANY);
	len = link_frame_remove(&req, 44, 2, 0);
	assert_int_equal(parse(f, &req, len, &msg, NULL), 1);
	assert_int_equal(msg.u.request.vcpu, 2);
	assert_false(msg.u.request.park);
	len = link_frame_lend(&req, 45, 2, 0, 0);
	assert_int_equal(parse(f, &req, len, &msg, NULL), 1);
	assert_int_equal(msg.u.request.type, VIRTIO_EBB_REQ_CPU_LEND);
	assert_int_equal(msg.u.request.vcpu, 2);
	assert_false(msg.u.request.park);
	len = link_frame_lend(&req, 46, 1, 1, VIRTIO_EBB_LEND_F_PARK);
	assert_int_equal(parse(f, &req, len, &msg, NULL), 1);
	assert_int_equal(msg.u.request.vcpu, 1);
	assert_true(msg.u.request.park);
	len = link_frame_telemetry(&tel, 1234567890123);
	assert_int_equal(parse(f, &tel, len, &msg, NULL), 1);
	assert_int_equal(msg.u.telemetry.committed, 1234567890123);
	assert_int_equal(msg.u.telemetry.p50_us, 120);
	assert_int_equal(msg.u.telemetry.baseline_mib, 0);
	tel.telemetry.baseline_ios = htole64(UINT64_MAX);
	tel.telemetry.actual_ios = htole64(77);
	tel.telemetry.baseline_mib = htole32(640);
	assert_int_equal(parse(f, &tel, len, &msg, NULL), 1);
	assert_true(msg.u.telemetry.baseline_ios == UINT64_MAX);
	assert_int_equal(msg.u.telemetry.actual_ios, 77);
	assert_int_equal(msg.u.telemetry.baseline_mib, 640);
}

static void test_hello_values(void **state)
{
	struct fixture *f = *state;
	struct ebb_linkproto_msg msg;

	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), 1);
	assert_false(msg.u.hello.can_vom);
	f->hello.hello.flags = htole32(VIRTIO_EBB_HELLO_F_DRIVER | VIRTIO_EBB_HELLO_F_VOM);
	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), 1);
	assert_true(msg.u.hello.can_vom);
	assert_false(msg.u.hello.can_lend);
	assert_false(msg.u.hello.can_leave);
	f->hello.hello.flags = htole32(VIRTIO_EBB_HELLO_F_DRIVER | VIRTIO_EBB_HELLO_F_LEAVE);
	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), 1);
	assert_true(msg.u.hello.can_leave);
	assert_false(msg.u.hello.can_baseline);
	f->hello.hello.flags = htole32(VIRTIO_EBB_HELLO_F_DRIVER | VIRTIO_EBB_HELLO_F_BASELINE);
	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), 1);
	assert_true(msg.u.hello.can_baseline);
	f->hello.hello.flags = htole32(VIRTIO_EBB_HELLO_F_BASELINE);
	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), -EPROTO);
	f->hello.hello.flags = htole32(VIRTIO_EBB_HELLO_F_LEAVE);
	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), -EPROTO);
}

static void test_vom(void **state)
{
	static const uint16_t nums[] = { 0, 1, 2, 6, VIRTIO_EBB_VOM_MAX_BUCKETS };
	struct fixture *f = *state;
	struct ebb_linkproto_msg msg;
	struct link_frame_telemetry tel;
	struct link_frame_vom vom;

	say_hello(f);
	for (size_t n = 0; n < sizeof(nums) / sizeof(nums[0]); n++) {
		size_t len = link_frame_vom(&vom, 9 + n, nums[n]);

		/* All of a value fits into 64 bits, and all of a size into 32. */
		if (nums[n])
			vom.buckets[nums[n] - 1].value = htole64(UINT64_MAX);
		if (nums[n])
			vom.buckets[nums[n] - 1].kib = htole32(UINT32_MAX);
		assert_int_equal(parse(f, &vom, len, &msg, NULL), 1);
		assert_int_equal(msg.type, VIRTIO_EBB_LINK_TELEMETRY);
		assert_true(msg.is_vom);
		assert_int_equal(msg.u.vom.seq, 9 + n);
		assert_int_equal(msg.u.vom.num_buckets, nums[n]);
		for (uint32_t i = 0; i < nums[n]; i++) {
			assert_int_equal(msg.u.vom.buckets[i].value, le64toh(vom.buckets[i].value));
			assert_int_equal(msg.u.vom.buckets[i].kib, le32toh(vom.buckets[i].kib));
			assert_int_equal(msg.u.vom.buckets[i].node, le16toh(vom.buckets[i].node));
		}
	}
	/* Six buckets are as long as the totals. */
	assert_int_equal(link_frame_vom(&vom, 1, 6), link_frame_telemetry(&tel, 3));
	assert_int_equal(parse(f, &tel, sizeof(tel), &msg, NULL), 1);
	assert_false(msg.is_vom);
	assert_int_equal(msg.u.telemetry.committed, 3);
}

static void test_pools(void **state)
{
	struct fixture *f = *state;
	struct ebb_linkproto_msg msg;
	struct link_frame_mem mem;
	size_t len;

	f->hello_len = link_frame_hello_pools(&f->hello, 2);
	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), 1);
	assert_int_equal(msg.u.hello.num_cpus, 3);
	assert_int_equal(msg.u.hello.num_pools, 2);
	assert_int_equal(msg.u.hello.pools[1].node, 1);
	assert_int_equal(msg.u.hello.pools[1].block_bytes, 2 << 20);
	assert_int_equal(msg.u.hello.pools[1].size_bytes, 1 << 30);
	assert_int_equal(msg.u.hello.pools[1].requested_bytes, 512 << 20);
	assert_int_equal(msg.u.hello.pools[1].held_bytes, 256 << 20);
	assert_int_equal(msg.u.hello.pools[1].unconfirmed_bytes, 64 << 20);
	len = link_frame_mem(&mem, 2, 128 << 20);
	assert_int_equal(parse(f, &mem, len, &msg, NULL), 1);
	assert_int_equal(msg.type, VIRTIO_EBB_LINK_MEM);
	assert_int_equal(msg.u.mem.num_pools, 2);
	assert_int_equal(msg.u.mem.pools[0].held_bytes, 128 << 20);
	assert_int_equal(msg.u.mem.pools[1].held_bytes, 256 << 20);
	/* In any order: by node in the message. */
	mem.pools[0].node = htole16(1);
	mem.pools[1].node = htole16(0);
	assert_int_equal(parse(f, &mem, len, &msg, NULL), 1);
	assert_int_equal(msg.u.mem.pools[1].held_bytes, 128 << 20);
	/* A HELLO without pools ends them. */
	f->hello_len = link_frame_hello(&f->hello, uuid, 8, 3, 7);
	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), 1);
	assert_int_equal(msg.u.hello.num_pools, 0);
	len = link_frame_mem(&mem, 2, 0);
	assert_int_equal(parse(f, &mem, len, &msg, NULL), -EPROTO);
}

/* One field broken at a time, the rest well-formed. */
struct breakage {
	const char *text;		/* must be in the error */
	size_t offset, size;		/* of the field in the frame */
	uint64_t value;
	enum { IN_HELLO, IN_POOLS, IN_MEM, IN_ADD, IN_REMOVE, IN_LEND, IN_TELEMETRY,
	       IN_VOM } where;
};

#define HELLO_AT(f)	offsetof(struct link_frame_hello, hello.f)
#define HCPU_AT(i, f)                                                                              \
	(offsetof(struct link_frame_hello, cpus) + (i) * sizeof(struct virtio_ebb_link_cpu) +      \
	 offsetof(struct virtio_ebb_link_cpu, f))
/* Of a HELLO with three CPUs and two pools. */
#define POOL_AT(i, f)                                                                              \
	(HCPU_AT(3, vcpu) - offsetof(struct virtio_ebb_link_cpu, vcpu) +                           \
	 (i) * sizeof(struct virtio_ebb_link_pool) + offsetof(struct virtio_ebb_link_pool, f))
#define MEM_AT(f)	offsetof(struct link_frame_mem, f)
#define MIB(n)		((uint64_t)(n) << 20)
#define REQ_AT(f)	offsetof(struct link_frame_request, request.f)
#define TEL_AT(f)	offsetof(struct link_frame_telemetry, telemetry.f)
#define VOM_AT(f)	offsetof(struct link_frame_vom, f)
#define HDR_AT(f)	offsetof(struct virtio_ebb_link_hdr, f)

static const struct breakage breakages[] = {
	{ "magic", HDR_AT(magic), 4, 0x12345678, IN_HELLO },
	{ "protocol version is 3, this agent speaks 2", HDR_AT(proto), 2, 3, IN_HELLO },
	{ "reserved field of the header", HDR_AT(reserved), 4, 1, IN_HELLO },
	{ "first frame is of type 2", HDR_AT(type), 2, VIRTIO_EBB_LINK_REQUEST, IN_HELLO },
	{ "type 130 is none that a device sends", HDR_AT(type), 2, VIRTIO_EBB_LINK_LIMITS, IN_ADD },
	{ "HELLO has a payload of 8 bytes", HDR_AT(len), 4, 8, IN_HELLO },
	{ "HELLO of 3 CPUs and 0 pools has 56 bytes", HDR_AT(len), 4, 56, IN_HELLO },
	{ "HELLO has a payload of 4294967288 bytes", HDR_AT(len), 4, 0xfffffff8, IN_HELLO },
	{ "payload of 80 bytes, should be 72", HDR_AT(len), 4, 80, IN_ADD },
	{ "payload of 104 bytes, should be 112", HDR_AT(len), 4, 104, IN_TELEMETRY },
	{ "unknown flags 0x41 in HELLO", HELLO_AT(flags), 4, 65, IN_HELLO },
	{ "no driver runs, and that it can lend", HELLO_AT(flags), 4, 2, IN_HELLO },
	{ "HELLO of 3 CPUs and 1 pools has 120 bytes", HELLO_AT(num_pools), 2, 1, IN_HELLO },
	{ "num_pools in HELLO is 3, num_nodes is 2", HELLO_AT(num_pools), 2, 3, IN_HELLO },
	{ "HELLO of 3 CPUs and 1 pools has 200 bytes", HELLO_AT(num_pools), 2, 1, IN_POOLS },
	{ "reserved field of a pool", POOL_AT(1, reserved), 2, 1, IN_POOLS },
	{ "node of a pool is 2, the VM has nodes 0 to 1", POOL_AT(1, node), 2, 2, IN_POOLS },
	{ "two pools have node 0", POOL_AT(1, node), 2, 0, IN_POOLS },
	{ "blocks of pool 1 have 0 bytes", POOL_AT(1, block_bytes), 4, 0, IN_POOLS },
	{ "should be a power of two", POOL_AT(1, block_bytes), 4, 3 << 20, IN_POOLS },
	{ "size of pool 1 is 0", POOL_AT(1, size_bytes), 8, 0, IN_POOLS },
	{ "size of pool 1 is 18446744073707454464", POOL_AT(1, size_bytes), 8, -MIB(2), IN_POOLS },
	{ "size bytes of pool 1 are 1074790400", POOL_AT(1, size_bytes), 8, MIB(1025), IN_POOLS },
	{ "requested bytes of pool 0 are 1075838976", POOL_AT(0, requested_bytes), 8, MIB(1026),
	  IN_POOLS },
	{ "requested bytes of pool 0 are 1048576", POOL_AT(0, requested_bytes), 8, MIB(1),
	  IN_POOLS },
	{ "held bytes of pool 0 are 1", POOL_AT(0, held_bytes), 8, 1, IN_POOLS },
	{ "held bytes of pool 0 are 1075838976", POOL_AT(0, held_bytes), 8, MIB(1026), IN_POOLS },
	{ "unconfirmed bytes of pool 0 are 1", POOL_AT(0, unconfirmed_bytes), 8, 1, IN_POOLS },
	{ "held and unconfirmed bytes of pool 0 are 1140850688, its size is 1073741824",
	  POOL_AT(0, held_bytes), 8, MIB(1024), IN_POOLS },
	{ "MEM has a payload of 0 bytes", HDR_AT(len), 4, 0, IN_MEM },
	{ "MEM has a payload of 4294967288 bytes", HDR_AT(len), 4, 0xfffffff8, IN_MEM },
	{ "MEM of 2 pools has 48 bytes, HELLO listed 2 pools", HDR_AT(len), 4, 48, IN_MEM },
	{ "MEM of 1 pools has 88 bytes", MEM_AT(mem.num_pools), 4, 1, IN_MEM },
	{ "MEM of 0 pools has 88 bytes", MEM_AT(mem.num_pools), 4, 0, IN_MEM },
	{ "reserved field of MEM", MEM_AT(mem.reserved), 4, 1, IN_MEM },
	{ "reserved field of a pool", MEM_AT(pools[1].reserved), 2, 1, IN_MEM },
	{ "two pools have node 0", MEM_AT(pools[1].node), 2, 0, IN_MEM },
	{ "block size or size of pool 1 is not as in HELLO", MEM_AT(pools[1].block_bytes), 4,
	  1 << 20, IN_MEM },
	{ "block size or size of pool 1 is not as in HELLO", MEM_AT(pools[1].size_bytes), 8,
	  MIB(2048), IN_MEM },
	{ "held bytes of pool 0 are 1", MEM_AT(pools[0].held_bytes), 8, 1, IN_MEM },
	{ "HELLO has a payload of 52 bytes", HDR_AT(len), 4, 52, IN_HELLO },
	{ "num_nodes in HELLO is 0", HELLO_AT(num_nodes), 2, 0, IN_HELLO },
	{ "num_nodes in HELLO is 17", HELLO_AT(num_nodes), 2, 17, IN_HELLO },
	{ "HELLO of 4 CPUs and 0 pools has 120 bytes", HELLO_AT(num_cpus), 4, 4, IN_HELLO },
	{ "max_cpus is 2", HELLO_AT(max_cpus), 4, 2, IN_HELLO },
	{ "hv_cpu_id of vCPU 1 is 0", HCPU_AT(1, cpu.hv_cpu_id), 8, 0, IN_HELLO },
	{ "node of vCPU 1 is 2", HCPU_AT(1, cpu.node), 2, 2, IN_HELLO },
	{ "unknown flags 0x20 of vCPU 1", HCPU_AT(1, cpu.flags), 2, 0x20, IN_HELLO },
	{ "startup vCPU 1 is flagged as lent", HCPU_AT(1, cpu.flags), 2, 9, IN_HELLO },
	{ "vCPU 1 is flagged as lent and forced", HCPU_AT(1, cpu.flags), 2, 12, IN_HELLO },
	{ "vCPU 1 is flagged as parked, not as lent", HCPU_AT(1, cpu.flags), 2, 16, IN_HELLO },
	{ "startup vCPU 1 is flagged as forced", HCPU_AT(1, cpu.flags), 2, 5, IN_HELLO },
	{ "reserved field of a CPU", HCPU_AT(1, reserved), 4, 1, IN_HELLO },
	{ "max_cpus in HELLO is 513", HELLO_AT(max_cpus), 4, 513, IN_HELLO },
	{ "vCPU 8 is named, max_cpus is 8", HCPU_AT(1, vcpu), 4, 8, IN_HELLO },
	{ "vCPU 2 is twice", HCPU_AT(1, vcpu), 4, 2, IN_HELLO },
	{ "no CPU in HELLO is of the startup set", HCPU_AT(0, cpu.flags), 2, 0, IN_HELLO },
	{ "request type 3", REQ_AT(req.type), 2, VIRTIO_EBB_REQ_STATE, IN_ADD },
	{ "request type 0", REQ_AT(req.type), 2, 0, IN_ADD },
	{ "reserved field of a request", REQ_AT(req.reserved), 4, 1, IN_ADD },
	{ "unknown flags 0x2 in CPU_ADD", REQ_AT(req.flags), 2, 2, IN_ADD },
	{ "count in CPU_ADD is 0", REQ_AT(req.u.cpu_add.count), 2, 0, IN_ADD },
	{ "count in CPU_ADD is 33", REQ_AT(req.u.cpu_add.count), 2, 33, IN_ADD },
	{ "node in CPU_ADD is 2", REQ_AT(req.u.cpu_add.node), 2, 2, IN_ADD },
	{ "reserved field of CPU_ADD", REQ_AT(req.u.cpu_add.reserved), 4, 1, IN_ADD },
	{ "reserved field of CPU_ADD", REQ_AT(req.u.words[1]), 8, 1, IN_ADD },
	{ "reserved field of CPU_ADD", REQ_AT(req.u.words[3]), 8, 1, IN_ADD },
	{ "CPU_ADD names a CPU", REQ_AT(cpu.vcpu), 4, 1, IN_ADD },
	{ "unknown flags 0x1 in CPU_REMOVE", REQ_AT(req.flags), 2, 1, IN_REMOVE },
	{ "reserved field of CPU_REMOVE", REQ_AT(req.u.words[2]), 8, 1, IN_REMOVE },
	{ "names two different CPUs", REQ_AT(req.u.words[0]), 8, 0x9999, IN_REMOVE },
	{ "vCPU 8 is named, max_cpus is 8", REQ_AT(cpu.vcpu), 4, 8, IN_REMOVE },
	{ "node of vCPU 1 is 9", REQ_AT(cpu.cpu.node), 2, 9, IN_REMOVE },
	{ "unknown flags 0x3 in CPU_LEND", REQ_AT(req.flags), 2, 3, IN_LEND },
	{ "reserved field of CPU_LEND", REQ_AT(req.u.words[1]), 8, 1, IN_LEND },
	{ "CPU_LEND names two different CPUs", REQ_AT(req.u.words[0]), 8, 0x9999, IN_LEND },
	{ "vCPU 8 is named, max_cpus is 8", REQ_AT(cpu.vcpu), 4, 8, IN_LEND },
	{ "telemetry type 7 is unknown", TEL_AT(type), 2, 7, IN_TELEMETRY },
	{ "reserved field of telemetry", TEL_AT(reserved), 8, 1, IN_TELEMETRY },
	{ "reserved field of a histogram", TEL_AT(type), 2, VIRTIO_EBB_TELEMETRY_VOM,
	  IN_TELEMETRY },
	{ "totals has 80 bytes", VOM_AT(vom.type), 2, VIRTIO_EBB_TELEMETRY_TOTALS, IN_VOM },
	{ "telemetry type 3 is unknown", VOM_AT(vom.type), 2, 3, IN_VOM },
	{ "payload of 88 bytes", HDR_AT(len), 4, 88, IN_VOM },
	{ "payload of 0 bytes", HDR_AT(len), 4, 0, IN_VOM },
	{ "payload of 8224 bytes", HDR_AT(len), 4, 16 + 513 * 16, IN_VOM },
	{ "histogram of 3 buckets has 80 bytes", VOM_AT(vom.num_buckets), 2, 3, IN_VOM },
	{ "histogram of 5 buckets has 80 bytes", VOM_AT(vom.num_buckets), 2, 5, IN_VOM },
	{ "histogram of 65535 buckets", VOM_AT(vom.num_buckets), 2, 65535, IN_VOM },
	{ "reserved field of a histogram", VOM_AT(vom.reserved), 8, 1, IN_VOM },
	{ "reserved field of a bucket", VOM_AT(buckets[3].reserved), 2, 1, IN_VOM },
	{ "node of a bucket is 2", VOM_AT(buckets[3].node), 2, 2, IN_VOM },
	{ "bucket of node 0 has 0 KiB", VOM_AT(buckets[0].kib), 4, 0, IN_VOM },
	{ "bucket 1 of a histogram", VOM_AT(buckets[0].value), 8, 10, IN_VOM },
	{ "bucket 1 of a histogram", VOM_AT(buckets[0].node), 2, 1, IN_VOM },
	{ "bucket 3 of a histogram", VOM_AT(buckets[3].node), 2, 0, IN_VOM },
};

static void test_breakages(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(breakages) / sizeof(breakages[0]); i++) {
		const struct breakage *b = &breakages[i];
		uint64_t value = htole64(b->value);
		union {
			struct link_frame_hello hello;
			struct link_frame_mem mem;
			struct link_frame_request req;
			struct link_frame_telemetry tel;
			struct link_frame_vom vom;
		} frame;
		struct ebb_linkproto_msg msg;
		struct ebb_err err = { "" };
		struct fixture *f;
		void *st;
		size_t len;

		setup(&st);
		f = st;
		if (b->where == IN_MEM)
			f->hello_len = link_frame_hello_pools(&f->hello, 2);
		if (b->where != IN_HELLO && b->where != IN_POOLS)
			say_hello(f);
		switch (b->where) {
		case IN_HELLO:
			len = link_frame_hello(&frame.hello, uuid, 8, 3, 7);
			break;
		case IN_POOLS:
			link_frame_hello(&frame.hello, uuid, 8, 3, 7);
			len = link_frame_hello_pools(&frame.hello, 2);
			break;
		case IN_MEM:
			len = link_frame_mem(&frame.mem, 2, MIB(2));
			break;
		case IN_ADD:
			len = link_frame_add(&frame.req, 1, 1, 0);
			break;
		case IN_REMOVE:
			len = link_frame_remove(&frame.req, 1, 1, 1);
			break;
		case IN_LEND:
			len = link_frame_lend(&frame.req, 1, 1, 1, VIRTIO_EBB_LEND_F_PARK);
			break;
		case IN_VOM:
			len = link_frame_vom(&frame.vom, 1, 4);
			break;
		default:
			len = link_frame_telemetry(&frame.tel, 1);
		}
		memcpy((uint8_t *)&frame + b->offset, &value, b->size);
		assert_int_equal(parse(f, &frame, len, &msg, &err), -EPROTO);
		if (!strstr(err.text, b->text))
			fail_msg("case %zu: \"%s\" is not in \"%s\"", i, b->text, err.text);
		/* The stream stays failed. */
		assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, &err), -EPROTO);
		teardown(&st);
	}
}

static void test_any_split(void **state)
{
	struct fixture *f = *state;
	struct ebb_linkproto_msg msg;
	struct link_frame_request req;
	uint8_t stream[sizeof(f->hello) + sizeof(req)];
	size_t len;

	memcpy(stream, &f->hello, f->hello_len);
	len = f->hello_len + link_frame_add(&req, 5, 2, 0);
	memcpy(stream + f->hello_len, &req, sizeof(req));
	for (size_t cut = 1; cut < len; cut++) {
		const uint8_t *at = stream;
		size_t left = cut, used;
		int num = 0;

		ebb_linkproto_parser_finish(&f->parser);
		for (int part = 0; part < 2; part++, left = len - cut) {
			while (left) {
				int rc = ebb_linkproto_parse(&f->parser, at, left, &used, &msg,
							     NULL);

				assert_in_range(rc, 0, 1);
				num += rc;
				at += used;
				left -= used;
			}
		}
		assert_int_equal(num, 2);
		assert_int_equal(msg.u.request.tag, 5);
	}
}

static void test_encoders(void **state)
{
	_Alignas(8) uint8_t buf[EBB_LINKPROTO_MAX_OUT];
	const struct virtio_ebb_link_hdr *h = (void *)buf;
	const struct ebb_action_welcome welcome = { .status = VIRTIO_EBB_ACK };
	const struct ebb_action_response response = {
		.tag = 77, .type = VIRTIO_EBB_REQ_CPU_ADD, .count = 2,
		.cpus = { { .vcpu = 3 }, { .vcpu = 4, .flags = VIRTIO_EBB_CPU_F_HT } },
	};
	const struct ebb_action_limits limits = {
		.generation = 9, .num_nodes = 2, .vom_seq = 12,
		.nodes = { { .held = 1, .limit = 2 },
			   { .held = 4, .limit = 3, .tier = VIRTIO_EBB_TIER_PARK,
			     .deadline_ms = 1500, .mem_deadline_ms = 70,
			     .mem_held_bytes = MIB(8), .mem_limit_bytes = MIB(4),
			     .mem_cutoff = 1ull << 40, .mem_promise_mib = 1 << 20 } },
	};
	const struct ebb_action_pool revoke = { .node = 1, .bytes = MIB(6) };
	const struct ebb_action_pool leave = { .node = 1, .is_leave = true, .bytes = MIB(6) };
	const struct ebb_action_cpu_flags flags = { .vcpu = 5, .flags = VIRTIO_EBB_CPU_F_FORCED };
	const struct virtio_ebb_link_response *r = (void *)(h + 1);
	const struct virtio_ebb_link_limits *l = (void *)(h + 1);
	const struct virtio_ebb_link_cpu_flags *c = (void *)(h + 1);
	const struct virtio_ebb_link_revoke *k = (void *)(h + 1);
	const struct virtio_ebb_link_cpu *cpu = (void *)(r + 1);
	const struct virtio_ebb_limit *node = (void *)(l + 1);

	(void)state;
	assert_int_equal(ebb_linkproto_welcome(buf, &welcome), 24);
	assert_int_equal(le32toh(h->magic), VIRTIO_EBB_LINK_MAGIC);
	assert_int_equal(le16toh(h->type), VIRTIO_EBB_LINK_WELCOME);
	assert_int_equal(le32toh(h->len), 8);

	assert_int_equal(ebb_linkproto_response(buf, &response), 16 + 16 + 48);
	assert_int_equal(le64toh(r->tag), 77);
	assert_int_equal(le16toh(r->count), 2);
	assert_int_equal(le32toh(cpu[1].vcpu), 4);
	assert_int_equal(le16toh(cpu[0].cpu.flags), 0);
	assert_int_equal(le16toh(cpu[1].cpu.flags), VIRTIO_EBB_CPU_F_HT);

	assert_int_equal(ebb_linkproto_limits(buf, &limits), 16 + 16 + 2 * 48);
	assert_int_equal(le64toh(l->generation), 9);
	assert_int_equal(le32toh(l->num_nodes), 2);
	assert_int_equal(le32toh(l->vom_seq), 12);
	assert_int_equal(le16toh(node[1].node), 1);
	assert_int_equal(le16toh(node[0].tier), VIRTIO_EBB_TIER_ANY);
	assert_int_equal(le16toh(node[1].tier), VIRTIO_EBB_TIER_PARK);
	assert_int_equal(le32toh(node[1].deadline_ms), 1500);
	assert_int_equal(le32toh(node[1].cpus_limit), 3);
	assert_int_equal(le32toh(node[1].mem_deadline_ms), 70);
	assert_int_equal(le64toh(node[1].mem_held_bytes), MIB(8));
	assert_int_equal(le64toh(node[1].mem_limit_bytes), MIB(4));
	assert_int_equal(le64toh(node[0].mem_limit_bytes), 0);
	assert_int_equal(le64toh(node[0].mem_cutoff), 0);
	assert_int_equal(le64toh(node[1].mem_cutoff), 1ull << 40);
	assert_int_equal(le32toh(node[0].mem_promise_mib), 0);
	assert_int_equal(le32toh(node[1].mem_promise_mib), 1 << 20);

	assert_int_equal(ebb_linkproto_cpu_flags(buf, &flags), 24);
	assert_int_equal(le32toh(c->vcpu), 5);
	assert_int_equal(le32toh(c->flags), VIRTIO_EBB_CPU_F_FORCED);

	assert_int_equal(ebb_linkproto_revoke(buf, &revoke), 16 + 16);
	assert_int_equal(le16toh(h->type), VIRTIO_EBB_LINK_REVOKE);
	assert_int_equal(le16toh(k->node), 1);
	assert_int_equal(le64toh(k->target_bytes), MIB(6));
	assert_int_equal(k->flags, 0);
	assert_int_equal(k->reserved, 0);
	assert_int_equal(ebb_linkproto_revoke(buf, &leave), 16 + 16);
	assert_int_equal(le16toh(k->flags), VIRTIO_EBB_REVOKE_F_LEAVE);
	assert_int_equal(le64toh(k->target_bytes), MIB(6));
}

/* Bounded random input for the fuzz target: frames with a few bytes changed. */
static void test_random(void **state)
{
	uint8_t input[1 + sizeof(struct link_frame_hello) + sizeof(struct link_frame_mem) +
		      sizeof(struct link_frame_request) + sizeof(struct link_frame_vom)];
	unsigned int seed = 20200815;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct link_frame_hello hello;
		struct link_frame_mem mem;
		struct link_frame_request req;
		struct link_frame_vom vom;
		size_t len = 1, n;

		input[0] = rand_r(&seed);
		n = link_frame_hello(&hello, uuid, 8, 1 + rand_r(&seed) % 4, 0);
		if (rand_r(&seed) % 2)
			n = link_frame_hello_pools(&hello, 2);
		memcpy(input + len, &hello, n);
		len += n;
		if (hello.hello.num_pools) {
			n = link_frame_mem(&mem, 2, MIB(2) * (rand_r(&seed) % 600));
			memcpy(input + len, &mem, n);
			len += n;
		}
		n = rand_r(&seed) % 2 ? link_frame_remove(&req, i, rand_r(&seed) % 4, 1) :
					link_frame_lend(&req, i, rand_r(&seed) % 4, 1,
							rand_r(&seed) % 2);
		memcpy(input + len, &req, n);
		len += n;
		n = link_frame_vom(&vom, i, rand_r(&seed) % 8);
		memcpy(input + len, &vom, n);
		len += n;
		for (int change = rand_r(&seed) % 4; change > 0; change--)
			input[rand_r(&seed) % len] = rand_r(&seed) % 3 ? rand_r(&seed) % 4
								       : rand_r(&seed);
		assert_int_equal(LLVMFuzzerTestOneInput(input, len - rand_r(&seed) % 2), 0);
	}
}

/* As a device gives it back to the next agent. */
static void test_account(void **state)
{
	const struct ebb_account account = {
		.writer = 7, .age = 8, .core_usec = { 9, 10 }, .mib_usec = { 11, 12 },
		.cpu = { .metered_usec = 13, .wanted = 14, .promised = 15, .got = 16,
			 .violated = 17, .unclear = 18, .num_intervals = 19,
			 .num_violations = 20, .num_unclear = 21 },
		.mem = { .metered_usec = 22, .num_unclear = 23 },
	};
	struct fixture *f = *state;
	struct {
		struct virtio_ebb_link_hdr hdr;
		struct virtio_ebb_link_account account;
	} frame;
	struct ebb_linkproto_msg msg;
	size_t len = ebb_linkproto_account(&frame, &account);

	assert_int_equal(len, sizeof(frame));
	assert_int_equal(le16toh(frame.hdr.type), VIRTIO_EBB_LINK_KEEP_ACCOUNT);
	f->hello_len = link_frame_hello(&f->hello, uuid, 8, 3, 7);
	f->hello.hello.flags = htole32(VIRTIO_EBB_HELLO_F_ACCOUNT);
	assert_int_equal(parse(f, &f->hello, f->hello_len, &msg, NULL), 1);
	assert_true(msg.u.hello.can_account);
	frame.hdr.type = htole16(VIRTIO_EBB_LINK_ACCOUNT);
	assert_int_equal(parse(f, &frame, len, &msg, NULL), 1);
	assert_int_equal(msg.type, VIRTIO_EBB_LINK_ACCOUNT);
	assert_memory_equal(&msg.u.account, &account, sizeof(account));
	frame.account.mem.unclear = htole64((1ull << 62) + 1);
	assert_int_equal(parse(f, &frame, len, &msg, NULL), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hello_lends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_requests_and_telemetry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hello_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vom, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pools, setup, teardown),
		cmocka_unit_test_setup_teardown(test_account, setup, teardown),
		cmocka_unit_test(test_breakages),
		cmocka_unit_test_setup_teardown(test_any_split, setup, teardown),
		cmocka_unit_test(test_encoders),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("io/linkproto", tests, NULL, NULL);
}
