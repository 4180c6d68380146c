/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Description: the guest driver's checks of what the device says.  Each
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

/* The same VM, with VIRTIO_EBB_F_LEND. */
static const struct ebb_wire_config lend_cfg = {
	.proto = VIRTIO_EBB_PROTO,
	.num_nodes = 2,
	.max_cpus = 8,
	.num_startup_cpus = 1,
	.request_timeout_ms = 15000,
	.can_lend = true,
};

static void test_config(void **state)
{
	struct ebb_wire_config c;

	(void)state;
	assert_int_equal(ebb_wire_check_config(&cfg), 0);
#define BAD(field, value) do { \
		c = cfg; \
		c.field = (value); \
		assert_int_equal(ebb_wire_check_config(&c), -EPROTO); \
	} while (0)
	BAD(proto, VIRTIO_EBB_PROTO + 1);
	BAD(num_nodes, 0);
	BAD(num_nodes, VIRTIO_EBB_MAX_NODES + 1);
	BAD(max_cpus, 0);
	BAD(max_cpus, EBB_WIRE_MAX_CPUS + 1);
	BAD(num_startup_cpus, 0);
	BAD(num_startup_cpus, 9);
	BAD(request_timeout_ms, 0);
	BAD(request_timeout_ms, EBB_WIRE_MAX_TIMEOUT_MS + 1);
	BAD(num_pools, 1);
#undef BAD
}

static struct virtio_ebb_req request(u16 type, u16 count)
{
	struct virtio_ebb_req req = {
		.type = cpu_to_le16(type),
		.tag = cpu_to_le64(0x1122334455667788),
	};

	if (type == VIRTIO_EBB_REQ_CPU_ADD) {
		req.u.cpu_add.count = cpu_to_le16(count);
		req.u.cpu_add.node = cpu_to_le16(VIRTIO_EBB_NODE_ANY);
	}
	return req;
}

static struct virtio_ebb_resp response(const struct virtio_ebb_req *req, u16 status, u16 reason,
				       u16 count)
{
	struct virtio_ebb_resp resp = {
		.tag = req->tag,
		.type = req->type,
		.status = cpu_to_le16(status),
		.reason = cpu_to_le16(reason),
		.count = cpu_to_le16(count),
	};

	for (u16 i = 0; i < count; i++)
		resp.cpus[i].hv_cpu_id = cpu_to_le64(1000 + i);
	return resp;
}

static int read_answer(const struct virtio_ebb_req *req, const struct virtio_ebb_resp *resp)
{
	struct ebb_wire_answer answer;

	return ebb_wire_read_answer(req, resp, sizeof(*resp), &cfg, &answer);
}

static void test_answer_good(void **state)
{
	struct virtio_ebb_req req = request(VIRTIO_EBB_REQ_CPU_ADD, 3);
	struct virtio_ebb_resp resp = response(&req, VIRTIO_EBB_ACK, VIRTIO_EBB_REASON_NONE, 2);
	struct ebb_wire_answer answer;

	(void)state;
	assert_int_equal(ebb_wire_read_answer(&req, &resp, sizeof(resp), &cfg, &answer), 0);
	assert_int_equal(answer.status, VIRTIO_EBB_ACK);
	assert_int_equal(answer.count, 2);

	req = request(VIRTIO_EBB_REQ_STATE, 0);
	resp = response(&req, VIRTIO_EBB_ACK, VIRTIO_EBB_REASON_NONE, VIRTIO_EBB_MAX_REQ_CPUS);
	resp.total = cpu_to_le32(40);
	assert_int_equal(ebb_wire_read_answer(&req, &resp, sizeof(resp), &cfg, &answer), 0);
	assert_int_equal(answer.total, 40);
}

static void test_answer_bad(void **state)
{
	struct virtio_ebb_req add = request(VIRTIO_EBB_REQ_CPU_ADD, 3);
	const struct virtio_ebb_resp good = response(&add, VIRTIO_EBB_ACK, 0, 2);
	struct ebb_wire_answer answer = { .count = 77 };
	struct virtio_ebb_resp resp = good;

	(void)state;
	assert_int_equal(read_answer(&add, &good), 0);
	for (u32 len = 0; len < sizeof(resp); len++)
		assert_int_equal(ebb_wire_read_answer(&add, &good, len, &cfg, &answer), -EPROTO);
	assert_int_equal(ebb_wire_read_answer(&add, &good, sizeof(resp) + 1, &cfg, &answer),
			 -EPROTO);
	assert_int_equal(answer.count, 77);
#define BAD(field, value) do { \
		resp = good; \
		resp.field = (value); \
		assert_int_equal(read_answer(&add, &resp), -EPROTO); \
	} while (0)
	BAD(tag, good.tag + 1);
	BAD(type, cpu_to_le16(VIRTIO_EBB_REQ_CPU_REMOVE));
	BAD(status, cpu_to_le16(VIRTIO_EBB_NACK));
	BAD(status, cpu_to_le16(4));
	BAD(reason, cpu_to_le16(VIRTIO_EBB_REASON_LIMIT));
	BAD(count, cpu_to_le16(0));
	BAD(count, cpu_to_le16(1));
	BAD(count, cpu_to_le16(4));
	BAD(count, cpu_to_le16(0xffff));
	BAD(total, cpu_to_le32(1));
	BAD(reserved, cpu_to_le32(1));
	BAD(cpus[2].arch_id, cpu_to_le32(1));
	BAD(cpus[VIRTIO_EBB_MAX_REQ_CPUS - 1].flags, cpu_to_le16(1));
#undef BAD
}

static struct virtio_ebb_req lend_request(u16 flags)
{
	struct virtio_ebb_req req = request(VIRTIO_EBB_REQ_CPU_LEND, 0);

	req.flags = cpu_to_le16(flags);
	req.u.cpu_lend.hv_cpu_id = cpu_to_le64(1000);
	return req;
}

/* What the device says to a CPU_LEND that worked; only an ACK has a CPU. */
static struct virtio_ebb_resp lend_response(const struct virtio_ebb_req *req, u16 status,
					    u16 reason)
{
	bool is_ack = status == VIRTIO_EBB_ACK;
	struct virtio_ebb_resp resp = response(req, status, reason, is_ack);

	if (is_ack)
		resp.cpus[0].flags = cpu_to_le16(VIRTIO_EBB_CPU_F_LENT);
	return resp;
}

static int read_lend(const struct virtio_ebb_req *req, const struct virtio_ebb_resp *resp,
		     u16 *ret_flags)
{
	struct ebb_wire_answer answer = { .lent_flags = 0xffff };
	int rc = ebb_wire_read_answer(req, resp, sizeof(*resp), &lend_cfg, &answer);

	*ret_flags = answer.lent_flags;
	return rc;
}

static void test_answer_status_and_reason(void **state)
{
	const struct virtio_ebb_req remove = request(VIRTIO_EBB_REQ_CPU_REMOVE, 0);
	const struct virtio_ebb_req lend = lend_request(0);
	u16 flags;

	(void)state;
	for (u16 status = 0; status < 6; status++) {
		for (u16 reason = 0; reason < VIRTIO_EBB_REASON_MAX + 2; reason++) {
			struct virtio_ebb_resp resp = response(&remove, status, reason, 0);
			bool is_good =
				(status == VIRTIO_EBB_ACK && reason == 0) ||
				(status == VIRTIO_EBB_NACK && reason >= 1 && reason <= 6) ||
				(status == VIRTIO_EBB_BUSY && reason >= 7 && reason <= 11) ||
				(status == VIRTIO_EBB_ERROR && reason >= 12 && reason <= 16);
			bool is_running = status == VIRTIO_EBB_NACK &&
				reason == VIRTIO_EBB_REASON_RUNNING;

			assert_int_equal(read_answer(&remove, &resp), is_good ? 0 : -EPROTO);
			resp = lend_response(&lend, status, reason);
			assert_int_equal(read_lend(&lend, &resp, &flags),
					 is_good || is_running ? 0 : -EPROTO);
		}
	}
}

static void test_answer_to_lend(void **state)
{
	const struct virtio_ebb_req lend = lend_request(0);
	const struct virtio_ebb_req park = lend_request(VIRTIO_EBB_LEND_F_PARK);
	const struct virtio_ebb_resp good = lend_response(&lend, VIRTIO_EBB_ACK, 0);
	struct virtio_ebb_resp resp = good;
	u16 flags;

	(void)state;
	assert_int_equal(read_lend(&lend, &good, &flags), 0);
	assert_int_equal(flags, VIRTIO_EBB_CPU_F_LENT);
	resp.cpus[0].flags = cpu_to_le16(VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_HT);
	assert_int_equal(read_lend(&lend, &resp, &flags), 0);
	assert_int_equal(flags, VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_HT);
	/* To be parked: it may rest, or run again. */
	assert_int_equal(read_lend(&park, &good, &flags), 0);
	resp.cpus[0].flags = cpu_to_le16(VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_PARKED);
	assert_int_equal(read_lend(&park, &resp, &flags), 0);
	assert_int_equal(flags, VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_PARKED);
#define BAD(field, value) do { \
		resp = good; \
		resp.field = (value); \
		assert_int_equal(read_lend(&lend, &resp, &flags), -EPROTO); \
	} while (0)
	BAD(count, 0);
	BAD(count, cpu_to_le16(2));
	BAD(total, cpu_to_le32(1));
	BAD(cpus[0].hv_cpu_id, cpu_to_le64(1001));
	BAD(cpus[0].hv_cpu_id, 0);
	BAD(cpus[0].node, cpu_to_le16(2));
	BAD(cpus[0].flags, 0);
	BAD(cpus[0].flags, cpu_to_le16(VIRTIO_EBB_CPU_F_PARKED));
	BAD(cpus[0].flags, cpu_to_le16(VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_PARKED));
	BAD(cpus[0].flags, cpu_to_le16(VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_FORCED));
	BAD(cpus[0].flags, cpu_to_le16(VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_STARTUP));
	BAD(cpus[1].hv_cpu_id, cpu_to_le64(1));
#undef BAD
	resp = good;
	resp.count = 0;
	memset(&resp.cpus[0], 0, sizeof(resp.cpus[0]));
	assert_int_equal(read_lend(&lend, &resp, &flags), -EPROTO);
	resp = good;
	resp.status = cpu_to_le16(VIRTIO_EBB_BUSY);
	resp.reason = cpu_to_le16(VIRTIO_EBB_REASON_NO_AGENT);
	assert_int_equal(read_lend(&lend, &resp, &flags), -EPROTO);
	/* Nobody may be told of lending who has not agreed to it. */
	assert_int_equal(read_answer(&lend, &good), -EPROTO);
}

static void test_lend_flags(void **state)
{
	static const u16 good[] = {
		0, VIRTIO_EBB_CPU_F_STARTUP, VIRTIO_EBB_CPU_F_FORCED, VIRTIO_EBB_CPU_F_LENT,
		VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_PARKED,
		VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_HT,
	};
	static const u16 bad[] = {
		VIRTIO_EBB_CPU_F_PARKED,
		VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_STARTUP,
		VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_FORCED,
		VIRTIO_EBB_CPU_F_LENT | (VIRTIO_EBB_CPU_F_ALL + 1),
	};
	struct virtio_ebb_cpu wire = { .hv_cpu_id = cpu_to_le64(5) };
	struct ebb_cpu_desc cpu;

	(void)state;
	for (unsigned int i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		wire.flags = cpu_to_le16(good[i]);
		assert_int_equal(ebb_wire_read_cpu(&wire, &lend_cfg, &cpu), 0);
		assert_int_equal(cpu.flags, good[i]);
		assert_int_equal(ebb_wire_read_cpu(&wire, &cfg, &cpu),
				 good[i] & VIRTIO_EBB_CPU_F_LENT ? -EPROTO : 0);
	}
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		wire.flags = cpu_to_le16(bad[i]);
		assert_int_equal(ebb_wire_read_cpu(&wire, &lend_cfg, &cpu), -EPROTO);
	}
}

static void test_cpu(void **state)
{
	const struct virtio_ebb_cpu good = {
		.hv_cpu_id = cpu_to_le64(5),
		.arch_id = cpu_to_le32(6),
		.node = cpu_to_le16(1),
		.flags = cpu_to_le16(VIRTIO_EBB_CPU_F_HT),
	};
	struct virtio_ebb_cpu wire;
	struct ebb_cpu_desc cpu;

	(void)state;
	assert_int_equal(ebb_wire_read_cpu(&good, &cfg, &cpu), 0);
	assert_true(cpu.hv_cpu_id == 5 && cpu.arch_id == 6 && cpu.pxm == 1 &&
		    cpu.flags == VIRTIO_EBB_CPU_F_HT);
	wire = good;
	wire.hv_cpu_id = 0;
	assert_int_equal(ebb_wire_read_cpu(&wire, &cfg, &cpu), -EPROTO);
	wire = good;
	wire.node = cpu_to_le16(2);
	assert_int_equal(ebb_wire_read_cpu(&wire, &cfg, &cpu), -EPROTO);
	wire = good;
	wire.flags = cpu_to_le16(VIRTIO_EBB_CPU_F_ALL + 1);
	assert_int_equal(ebb_wire_read_cpu(&wire, &cfg, &cpu), -EPROTO);
}

static void test_grant(void **state)
{
	struct virtio_ebb_req req = request(VIRTIO_EBB_REQ_CPU_ADD, 1);
	struct ebb_cpu_desc cpu = { .hv_cpu_id = 1, .pxm = 1 };

	(void)state;
	assert_int_equal(ebb_wire_check_grant(&req, &cpu), 0);
	req.u.cpu_add.node = cpu_to_le16(1);
	assert_int_equal(ebb_wire_check_grant(&req, &cpu), 0);
	req.u.cpu_add.node = 0;
	assert_int_equal(ebb_wire_check_grant(&req, &cpu), -EPROTO);
	req.u.cpu_add.node = cpu_to_le16(1);
	cpu.flags = VIRTIO_EBB_CPU_F_HT;
	assert_int_equal(ebb_wire_check_grant(&req, &cpu), -EPROTO);
	req.flags = cpu_to_le16(VIRTIO_EBB_ADD_F_ALLOW_HT);
	assert_int_equal(ebb_wire_check_grant(&req, &cpu), 0);
	cpu.flags = VIRTIO_EBB_CPU_F_STARTUP;
	assert_int_equal(ebb_wire_check_grant(&req, &cpu), -EPROTO);
	cpu.flags = VIRTIO_EBB_CPU_F_FORCED;
	assert_int_equal(ebb_wire_check_grant(&req, &cpu), -EPROTO);
	/* A grant ends the lending. */
	cpu.flags = VIRTIO_EBB_CPU_F_LENT;
	assert_int_equal(ebb_wire_check_grant(&req, &cpu), -EPROTO);
}

static struct virtio_ebb_event limits_event(void)
{
	struct virtio_ebb_event event = {
		.type = cpu_to_le16(VIRTIO_EBB_EVENT_LIMITS),
		.num_nodes = cpu_to_le16(2),
		.generation = cpu_to_le64(9),
	};

	event.nodes[0].node = cpu_to_le16(1);
	event.nodes[0].cpus_held = cpu_to_le32(3);
	event.nodes[0].cpus_limit = cpu_to_le32(2);
	event.nodes[0].deadline_ms = cpu_to_le32(2000);
	event.nodes[1].cpus_held = cpu_to_le32(1);
	event.nodes[1].cpus_limit = cpu_to_le32(8);
	return event;
}

static int read_event(const struct virtio_ebb_event *event)
{
	struct ebb_wire_event ret;

	return ebb_wire_read_event(event, sizeof(*event), &cfg, &ret);
}

static void test_limits_event(void **state)
{
	const struct virtio_ebb_event good = limits_event();
	struct virtio_ebb_event event;
	struct ebb_wire_event ret;

	(void)state;
	assert_int_equal(ebb_wire_read_event(&good, sizeof(good), &cfg, &ret), 0);
	assert_true(ret.generation == 9);
	assert_int_equal(ret.limits[1].cpus_held, 3);
	assert_int_equal(ret.limits[1].deadline_ms, 2000);
	assert_int_equal(ret.limits[0].cpus_limit, 8);
	for (u32 len = 0; len < sizeof(good); len += 8)
		assert_int_equal(ebb_wire_read_event(&good, len, &cfg, &ret), -EPROTO);
#define BAD(field, value) do { \
		event = good; \
		event.field = (value); \
		assert_int_equal(read_event(&event), -EPROTO); \
	} while (0)
	BAD(type, 0);
	BAD(type, cpu_to_le16(4));
	BAD(num_nodes, cpu_to_le16(1));
	BAD(num_nodes, cpu_to_le16(3));
	BAD(num_ranges, cpu_to_le32(1));
	BAD(generation, 0);
	BAD(cpu.flags, cpu_to_le16(1));
	BAD(nodes[0].node, 0);
	BAD(nodes[0].node, cpu_to_le16(2));
	BAD(nodes[0].node, cpu_to_le16(40));
	BAD(nodes[0].tier, cpu_to_le16(1));
	BAD(nodes[0].cpus_held, cpu_to_le32(9));
	BAD(nodes[0].cpus_limit, cpu_to_le32(9));
	BAD(nodes[0].mem_held_bytes, cpu_to_le64(1));
	BAD(nodes[0].mem_limit_bytes, cpu_to_le64(1));
	BAD(nodes[0].mem_deadline_ms, cpu_to_le32(1));
	BAD(nodes[0].mem_promise_mib, cpu_to_le32(1));
	BAD(nodes[2].cpus_limit, cpu_to_le32(1));
	BAD(ranges[VIRTIO_EBB_MAX_RANGES - 1].size_bytes, cpu_to_le64(1));
#undef BAD
}

static void test_tier(void **state)
{
	struct virtio_ebb_event event = limits_event();
	struct ebb_wire_event ret;

	(void)state;
	for (u16 tier = 0; tier < VIRTIO_EBB_TIER_MAX + 2; tier++) {
		event.nodes[0].tier = cpu_to_le16(tier);
		assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &lend_cfg, &ret),
				 tier < VIRTIO_EBB_TIER_MAX ? 0 : -EPROTO);
		if (tier < VIRTIO_EBB_TIER_MAX) {
			assert_int_equal(ret.limits[1].tier, tier);
			assert_int_equal(ret.limits[0].tier, VIRTIO_EBB_TIER_ANY);
		}
	}
}

static void test_cpu_event(void **state)
{
	struct ebb_wire_event ret;
	struct virtio_ebb_event good = { .type = cpu_to_le16(VIRTIO_EBB_EVENT_CPU) };
	struct virtio_ebb_event event;

	(void)state;
	good.cpu.hv_cpu_id = cpu_to_le64(3);
	good.cpu.flags = cpu_to_le16(VIRTIO_EBB_CPU_F_FORCED);
	assert_int_equal(read_event(&good), 0);
#define BAD(field, value) do { \
		event = good; \
		event.field = (value); \
		assert_int_equal(read_event(&event), -EPROTO); \
	} while (0)
	BAD(num_nodes, cpu_to_le16(1));
	BAD(generation, cpu_to_le64(1));
	BAD(num_ranges, cpu_to_le32(1));
	BAD(cpu.hv_cpu_id, 0);
	BAD(cpu.node, cpu_to_le16(2));
	BAD(cpu.flags, cpu_to_le16(VIRTIO_EBB_CPU_F_LENT));
	BAD(nodes[0].cpus_held, cpu_to_le32(1));
	BAD(ranges[VIRTIO_EBB_MAX_RANGES - 1].size_bytes, cpu_to_le64(1));
#undef BAD
	event = good;
	event.cpu.flags = cpu_to_le16(VIRTIO_EBB_CPU_F_LENT);
	assert_int_equal(ebb_wire_read_event(&event, sizeof(event), &lend_cfg, &ret), 0);
	assert_int_equal(ret.cpu.flags, VIRTIO_EBB_CPU_F_LENT);
}

/* Whatever bytes come: no crash (the sanitizer builds look), and nothing out of range is taken. */
static void test_noise(void **state)
{
	struct virtio_ebb_req req = request(VIRTIO_EBB_REQ_CPU_ADD, 4);
	u32 taken = 0;

	(void)state;
	srand(3);
	for (unsigned int i = 0; i < 100000; i++) {
		struct virtio_ebb_resp resp = response(&req, 0, 0, 1 + rand() % 4);
		struct virtio_ebb_event event = limits_event();
		struct ebb_wire_answer answer;
		struct ebb_wire_event ret;

		((u8 *)&resp)[rand() % sizeof(resp)] ^= 1 << rand() % 8;
		((u8 *)&event)[rand() % sizeof(event)] ^= 1 << rand() % 8;
		if (!ebb_wire_read_answer(&req, &resp, sizeof(resp), &cfg, &answer)) {
			assert_true(answer.count <= 4);
			taken++;
		}
		if (!ebb_wire_read_event(&event, sizeof(event), &cfg, &ret)) {
			for (u32 n = 0; n < cfg.num_nodes; n++)
				assert_true(ret.limits[n].cpus_limit <= cfg.max_cpus);
			taken++;
		}
	}
	/* Ids and numbers that are as good as before: some pass, most do not. */
	assert_true(taken > 0 && taken < 100000);
}

static void test_telemetry(void **state)
{
	const struct virtio_ebb_telemetry good = {
		.type = cpu_to_le16(VIRTIO_EBB_TELEMETRY_TOTALS),
	};
	const struct ebb_wire_config with = { .has_baseline = true }, without = { 0 };
	struct virtio_ebb_telemetry report;

	(void)state;
	assert_int_equal(ebb_wire_check_telemetry(&good, &without), 0);
	assert_int_equal(ebb_wire_check_telemetry(&good, &with), 0);
#define CHECK(field, value, want) do { \
		report = good; \
		report.field = (value); \
		assert_int_equal(ebb_wire_check_telemetry(&report, &without), -EINVAL); \
		assert_int_equal(ebb_wire_check_telemetry(&report, &with), want); \
	} while (0)
	CHECK(reserved, 1, -EINVAL);
	CHECK(reserved2, 1, -EINVAL);
	CHECK(type, 0, -EINVAL);
	CHECK(baseline_ios, cpu_to_le64(1), 0);
	CHECK(actual_ios, cpu_to_le64(1ull << 63), 0);
	CHECK(baseline_mib, cpu_to_le32(1), 0);
#undef CHECK
}

static void test_errno(void **state)
{
	static const struct {
		u16 status, reason;
		int add_rc;
		int confirm_rc;
		bool is_removed;
	} cases[] = {
		{ VIRTIO_EBB_ACK, VIRTIO_EBB_REASON_NONE, 0, 0, true },
		{ VIRTIO_EBB_NACK, VIRTIO_EBB_REASON_LIMIT, -EDQUOT, -EIO, false },
		{ VIRTIO_EBB_NACK, VIRTIO_EBB_REASON_CEILING, -ERANGE, -EIO, false },
		{ VIRTIO_EBB_NACK, VIRTIO_EBB_REASON_NODE, -ENXIO, -EIO, false },
		{ VIRTIO_EBB_NACK, VIRTIO_EBB_REASON_NOT_HELD, -EIO, -ENOENT, true },
		{ VIRTIO_EBB_NACK, VIRTIO_EBB_REASON_HOST, -EIO, -EIO, false },
		{ VIRTIO_EBB_NACK, VIRTIO_EBB_REASON_RUNNING, -EIO, -EIO, false },
		{ VIRTIO_EBB_BUSY, VIRTIO_EBB_REASON_CAPACITY, -EAGAIN, -EAGAIN, false },
		{ VIRTIO_EBB_BUSY, VIRTIO_EBB_REASON_NO_AGENT, -EAGAIN, -EAGAIN, false },
		{ VIRTIO_EBB_BUSY, VIRTIO_EBB_REASON_TIMEOUT, -EAGAIN, -EAGAIN, false },
		{ VIRTIO_EBB_ERROR, VIRTIO_EBB_REASON_RANGE, -EIO, -EIO, false },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ebb_wire_answer answer = {
			.status = cases[i].status,
			.reason = cases[i].reason,
		};

		assert_int_equal(ebb_wire_add_errno(&answer), cases[i].add_rc);
		assert_int_equal(ebb_wire_confirm_errno(&answer), cases[i].confirm_rc);
		assert_int_equal(ebb_wire_is_removed(&answer), cases[i].is_removed);
		assert_int_equal(ebb_wire_is_running(&answer),
				 cases[i].reason == VIRTIO_EBB_REASON_RUNNING);
	}
}

static void test_nodes(void **state)
{
	int all[] = { 1, 0, 2 };
	int none[] = { -1, -1, -1 };
	int some[] = { -1, 0, -1, 2 };

	(void)state;
	ebb_wire_fill_nodes(all, 3);
	assert_true(all[0] == 1 && all[1] == 0 && all[2] == 2);
	ebb_wire_fill_nodes(none, 3);
	assert_true(none[0] == 0 && none[1] == 1 && none[2] == 2);
	ebb_wire_fill_nodes(some, 4);
	assert_true(some[0] == 1 && some[1] == 0 && some[2] == 3 && some[3] == 2);
}

static void test_pxm_of_node(void **state)
{
	const struct ebb_wire_config cfg = { .num_nodes = 2, .linux_node = { 1, 0, 5 } };

	(void)state;
	assert_int_equal(ebb_wire_pxm_of_node(&cfg, 1), 0);
	assert_int_equal(ebb_wire_pxm_of_node(&cfg, 0), 1);
	assert_int_equal(ebb_wire_pxm_of_node(&cfg, 5), VIRTIO_EBB_NODE_ANY);
	assert_int_equal(ebb_wire_pxm_of_node(&cfg, 0xffffffffu), VIRTIO_EBB_NODE_ANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_answer_good),
		cmocka_unit_test(test_answer_bad),
		cmocka_unit_test(test_answer_status_and_reason),
		cmocka_unit_test(test_answer_to_lend),
		cmocka_unit_test(test_lend_flags),
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_grant),
		cmocka_unit_test(test_limits_event),
		cmocka_unit_test(test_tier),
		cmocka_unit_test(test_cpu_event),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_telemetry),
		cmocka_unit_test(test_errno),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_pxm_of_node),
	};

	return cmocka_run_group_tests_name("ebb_wire", tests, NULL, NULL);
}
