// SPDX-License-Identifier: GPL-2.0-only
/* Checks everything that comes from the device; see wire.h. */
#include "wire.h"

static bool is_zero(const void *p, size_t len_bytes)
{
	const u8 *bytes = p;
	size_t i;

	for (i = 0; i < len_bytes; i++)
		if (bytes[i])
			return false;
	return true;
}

int ebb_wire_read_pool(const struct virtio_ebb_pool *wire, struct ebb_wire_pool *ret)
{
	struct ebb_wire_pool pool = {
		.addr = le64_to_cpu(wire->addr),
		.size_bytes = le64_to_cpu(wire->size_bytes),
		.block_bytes = le32_to_cpu(wire->block_bytes),
		.pxm = le16_to_cpu(wire->node),
	};

	if (wire->reserved)
		return -EPROTO;
	*ret = pool;
	return 0;
}

static bool is_aligned(u64 value, u32 block_bytes)
{
	return !(value & (block_bytes - 1));
}

static bool is_good_pool(const struct ebb_wire_pool *pool)
{
	u32 block_bytes = pool->block_bytes;

	return block_bytes >= EBB_WIRE_PAGE_BYTES && !(block_bytes & (block_bytes - 1)) &&
	       is_aligned(pool->addr, block_bytes) && is_aligned(pool->size_bytes, block_bytes) &&
	       pool->size_bytes && pool->addr + pool->size_bytes > pool->addr;
}

bool ebb_wire_is_usable_pool(const struct ebb_wire_pool *pool)
{
	return pool->block_bytes >= EBB_WIRE_MIN_BLOCK_BYTES;
}

static bool is_apart(const struct ebb_wire_pool *a, const struct ebb_wire_pool *b)
{
	return a->pxm != b->pxm &&
	       (a->addr + a->size_bytes <= b->addr || b->addr + b->size_bytes <= a->addr);
}

static bool has_good_pools(const struct ebb_wire_config *cfg)
{
	u32 i, j;

	if (cfg->num_pools > cfg->num_nodes)
		return false;
	for (i = 0; i < cfg->num_pools; i++) {
		if (cfg->pools[i].pxm >= cfg->num_nodes || !is_good_pool(&cfg->pools[i]))
			return false;
		for (j = 0; j < i; j++)
			if (!is_apart(&cfg->pools[i], &cfg->pools[j]))
				return false;
	}
	return true;
}

int ebb_wire_pool_of_node(const struct ebb_wire_config *cfg, u32 pxm)
{
	u32 i;

	for (i = 0; i < cfg->num_pools; i++)
		if (cfg->pools[i].pxm == pxm)
			return i;
	return -1;
}

int ebb_wire_check_config(const struct ebb_wire_config *cfg)
{
	if (cfg->proto != VIRTIO_EBB_PROTO ||
	    !cfg->num_nodes || cfg->num_nodes > VIRTIO_EBB_MAX_NODES ||
	    !cfg->max_cpus || cfg->max_cpus > EBB_WIRE_MAX_CPUS ||
	    !cfg->num_startup_cpus || cfg->num_startup_cpus > cfg->max_cpus ||
	    !cfg->request_timeout_ms || cfg->request_timeout_ms > EBB_WIRE_MAX_TIMEOUT_MS ||
	    !has_good_pools(cfg))
		return -EPROTO;
	return 0;
}

static bool is_reason_of_status(const struct virtio_ebb_req *req, u16 status, u16 reason)
{
	switch (status) {
	case VIRTIO_EBB_ACK:
		return reason == VIRTIO_EBB_REASON_NONE;
	case VIRTIO_EBB_NACK:
		if (reason == VIRTIO_EBB_REASON_RUNNING)
			return req->type == cpu_to_le16(VIRTIO_EBB_REQ_CPU_LEND);
		return reason >= VIRTIO_EBB_REASON_LIMIT && reason <= VIRTIO_EBB_REASON_HOST;
	case VIRTIO_EBB_BUSY:
		return reason >= VIRTIO_EBB_REASON_CAPACITY && reason <= VIRTIO_EBB_REASON_MIGRATED;
	case VIRTIO_EBB_ERROR:
		return reason >= VIRTIO_EBB_REASON_TYPE && reason <= VIRTIO_EBB_REASON_TAG;
	default:
		return false;
	}
}

/* Number of CPUs in an answer that is well-formed; negative if this can not be. */
static int max_cpus_of_answer(const struct virtio_ebb_req *req, u16 status)
{
	if (status != VIRTIO_EBB_ACK)
		return 0;
	switch (le16_to_cpu(req->type)) {
	case VIRTIO_EBB_REQ_CPU_ADD:
		return le16_to_cpu(req->u.cpu_add.count);
	case VIRTIO_EBB_REQ_CPU_REMOVE:
	case VIRTIO_EBB_REQ_MEM_CONFIRM:
		return 0;
	case VIRTIO_EBB_REQ_STATE:
		return VIRTIO_EBB_MAX_REQ_CPUS;
	case VIRTIO_EBB_REQ_CPU_LEND:
		return 1;
	default:
		return -1;
	}
}

/* The CPU that an ACK to CPU_LEND names is the one that was lent, and parked only if asked for. */
static int read_lent(const struct virtio_ebb_req *req, const struct virtio_ebb_cpu *wire,
		     const struct ebb_wire_config *cfg, u16 *ret_flags)
{
	u16 allowed = VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_HT;
	struct ebb_cpu_desc cpu;

	if (req->flags & cpu_to_le16(VIRTIO_EBB_LEND_F_PARK))
		allowed |= VIRTIO_EBB_CPU_F_PARKED;
	if (ebb_wire_read_cpu(wire, cfg, &cpu) || wire->hv_cpu_id != req->u.cpu_lend.hv_cpu_id ||
	    !(cpu.flags & VIRTIO_EBB_CPU_F_LENT) || cpu.flags & ~allowed)
		return -EPROTO;
	*ret_flags = cpu.flags;
	return 0;
}

int ebb_wire_read_answer(const struct virtio_ebb_req *req, const struct virtio_ebb_resp *resp,
			 u32 len, const struct ebb_wire_config *cfg, struct ebb_wire_answer *ret)
{
	struct ebb_wire_answer answer = { 0 };
	int max_cpus;

	if (len != sizeof(*resp) || resp->tag != req->tag || resp->type != req->type ||
	    resp->reserved)
		return -EPROTO;
	answer.status = le16_to_cpu(resp->status);
	answer.reason = le16_to_cpu(resp->reason);
	answer.count = le16_to_cpu(resp->count);
	answer.total = le32_to_cpu(resp->total);

	max_cpus = max_cpus_of_answer(req, answer.status);
	if (!is_reason_of_status(req, answer.status, answer.reason) ||
	    max_cpus > VIRTIO_EBB_MAX_REQ_CPUS || (int)answer.count > max_cpus)
		return -EPROTO;
	if (req->type == cpu_to_le16(VIRTIO_EBB_REQ_CPU_ADD) &&
	    answer.status == VIRTIO_EBB_ACK && !answer.count)
		return -EPROTO;
	if (req->type == cpu_to_le16(VIRTIO_EBB_REQ_CPU_LEND) &&
	    answer.status == VIRTIO_EBB_ACK &&
	    (!answer.count || read_lent(req, &resp->cpus[0], cfg, &answer.lent_flags)))
		return -EPROTO;
	if (answer.total &&
	    (req->type != cpu_to_le16(VIRTIO_EBB_REQ_STATE) || answer.status != VIRTIO_EBB_ACK))
		return -EPROTO;
	if (!is_zero(resp->cpus + answer.count,
		     (VIRTIO_EBB_MAX_REQ_CPUS - answer.count) * sizeof(resp->cpus[0])))
		return -EPROTO;
	*ret = answer;
	return 0;
}

static bool is_flags(u16 flags, const struct ebb_wire_config *cfg)
{
	u16 lending = VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_PARKED;

	if (flags & ~VIRTIO_EBB_CPU_F_ALL)
		return false;
	if (!(flags & lending))
		return true;
	/* What is lent has no core that could be taken, and a startup CPU is never lent. */
	return cfg->can_lend && flags & VIRTIO_EBB_CPU_F_LENT &&
	       !(flags & (VIRTIO_EBB_CPU_F_STARTUP | VIRTIO_EBB_CPU_F_FORCED));
}

int ebb_wire_read_cpu(const struct virtio_ebb_cpu *wire, const struct ebb_wire_config *cfg,
		      struct ebb_cpu_desc *ret)
{
	struct ebb_cpu_desc cpu = {
		.hv_cpu_id = le64_to_cpu(wire->hv_cpu_id),
		.arch_id = le32_to_cpu(wire->arch_id),
		.pxm = le16_to_cpu(wire->node),
		.flags = le16_to_cpu(wire->flags),
	};

	if (!cpu.hv_cpu_id || cpu.pxm >= cfg->num_nodes || !is_flags(cpu.flags, cfg))
		return -EPROTO;
	*ret = cpu;
	return 0;
}

int ebb_wire_check_grant(const struct virtio_ebb_req *req, const struct ebb_cpu_desc *cpu)
{
	u16 node = le16_to_cpu(req->u.cpu_add.node);

	if (cpu->flags & ~VIRTIO_EBB_CPU_F_HT ||
	    (cpu->flags && !(req->flags & cpu_to_le16(VIRTIO_EBB_ADD_F_ALLOW_HT))) ||
	    (node != VIRTIO_EBB_NODE_ANY && node != cpu->pxm))
		return -EPROTO;
	return 0;
}

/* What a node may say of memory: nothing without a pool. */
static bool is_mem_limit(const struct virtio_ebb_limit *wire, const struct ebb_wire_config *cfg,
			 u32 pxm)
{
	u64 held_bytes = le64_to_cpu(wire->mem_held_bytes);
	u64 limit_bytes = le64_to_cpu(wire->mem_limit_bytes);
	int i = ebb_wire_pool_of_node(cfg, pxm);

	if ((wire->mem_cutoff && !cfg->has_vom) || (wire->mem_promise_mib && !cfg->has_baseline))
		return false;
	if (i < 0)
		return !held_bytes && !limit_bytes && !wire->mem_deadline_ms &&
		       !wire->mem_cutoff && !wire->mem_promise_mib;
	return is_aligned(held_bytes, cfg->pools[i].block_bytes) &&
	       is_aligned(limit_bytes, cfg->pools[i].block_bytes) &&
	       held_bytes <= cfg->pools[i].size_bytes;
}

static bool has_usable_pool(const struct ebb_wire_config *cfg, u32 pxm)
{
	int i = ebb_wire_pool_of_node(cfg, pxm);

	return i >= 0 && ebb_wire_is_usable_pool(&cfg->pools[i]);
}

static int read_limits(const struct virtio_ebb_event *event, const struct ebb_wire_config *cfg,
		       struct ebb_wire_event *ret)
{
	u64 promise_mib = 0;
	u32 seen = 0;
	u32 i;

	if (!ret->generation || le16_to_cpu(event->num_nodes) != cfg->num_nodes ||
	    (event->vom_seq && !cfg->has_vom) ||
	    !is_zero(&event->cpu, sizeof(event->cpu)) ||
	    !is_zero(event->nodes + cfg->num_nodes,
		     sizeof(event->ranges) - cfg->num_nodes * sizeof(event->nodes[0])))
		return -EPROTO;

	ret->vom_seq = le32_to_cpu(event->vom_seq);
	for (i = 0; i < cfg->num_nodes; i++) {
		const struct virtio_ebb_limit *wire = &event->nodes[i];
		u16 node = le16_to_cpu(wire->node);
		u16 tier = le16_to_cpu(wire->tier);
		struct ebb_wire_limit *limit;
		bool has_pool;

		if (node >= cfg->num_nodes || seen & (1u << node) ||
		    tier >= (cfg->can_lend ? VIRTIO_EBB_TIER_MAX : VIRTIO_EBB_TIER_ANY + 1) ||
		    !is_mem_limit(wire, cfg, node))
			return -EPROTO;
		seen |= 1u << node;
		limit = &ret->limits[node];
		limit->tier = tier;
		limit->deadline_ms = le32_to_cpu(wire->deadline_ms);
		limit->cpus_held = le32_to_cpu(wire->cpus_held);
		limit->cpus_limit = le32_to_cpu(wire->cpus_limit);
		has_pool = has_usable_pool(cfg, node);
		limit->mem_deadline_ms = has_pool ? le32_to_cpu(wire->mem_deadline_ms) : 0;
		limit->mem_limit_bytes = has_pool ? le64_to_cpu(wire->mem_limit_bytes) : 0;
		limit->mem_cutoff = has_pool ? le64_to_cpu(wire->mem_cutoff) : 0;
		if (limit->cpus_held > cfg->max_cpus || limit->cpus_limit > cfg->max_cpus)
			return -EPROTO;
		promise_mib += le32_to_cpu(wire->mem_promise_mib);
	}
	if (promise_mib >> 32)
		return -EPROTO;
	ret->mem_promise_mib = promise_mib;
	return 0;
}

static bool is_in_pool(const struct ebb_wire_range *range, const struct ebb_wire_pool *pool)
{
	return range->addr >= pool->addr && range->addr - pool->addr < pool->size_bytes &&
	       range->size_bytes <= pool->size_bytes - (range->addr - pool->addr) &&
	       is_aligned(range->addr, pool->block_bytes) &&
	       is_aligned(range->size_bytes, pool->block_bytes);
}

static bool is_range_of_any_pool(const struct ebb_wire_range *range,
				 const struct ebb_wire_config *cfg)
{
	u32 i;

	for (i = 0; i < cfg->num_pools; i++)
		if (is_in_pool(range, &cfg->pools[i]))
			return true;
	return false;
}

static int read_ranges(const struct virtio_ebb_event *event, const struct ebb_wire_config *cfg,
		       struct ebb_wire_event *ret)
{
	u32 num_ranges = le32_to_cpu(event->num_ranges);
	u64 end = 0;
	u32 i;

	if (event->num_nodes || ret->generation || num_ranges > VIRTIO_EBB_MAX_RANGES ||
	    !is_zero(&event->cpu, sizeof(event->cpu)) ||
	    !is_zero(event->ranges + num_ranges,
		     (VIRTIO_EBB_MAX_RANGES - num_ranges) * sizeof(event->ranges[0])))
		return -EPROTO;
	for (i = 0; i < num_ranges; i++) {
		struct ebb_wire_range *range = &ret->ranges[i];

		range->addr = le64_to_cpu(event->ranges[i].addr);
		range->size_bytes = le64_to_cpu(event->ranges[i].size_bytes);
		if (!range->size_bytes || range->addr < end || !is_range_of_any_pool(range, cfg))
			return -EPROTO;
		end = range->addr + range->size_bytes;
	}
	ret->num_ranges = num_ranges;
	return 0;
}

int ebb_wire_read_event(const struct virtio_ebb_event *event, u32 len,
			const struct ebb_wire_config *cfg, struct ebb_wire_event *ret)
{
	if (len != sizeof(*event) || event->reserved ||
	    (event->vom_seq && event->type != cpu_to_le16(VIRTIO_EBB_EVENT_LIMITS)) ||
	    (event->num_ranges && event->type != cpu_to_le16(VIRTIO_EBB_EVENT_MEM_REVOKED) &&
	     event->type != cpu_to_le16(VIRTIO_EBB_EVENT_MEM_LEAVING)))
		return -EPROTO;

	ret->type = le16_to_cpu(event->type);
	ret->generation = le64_to_cpu(event->generation);
	ret->vom_seq = 0;
	ret->mem_promise_mib = 0;
	ret->num_ranges = 0;
	switch (ret->type) {
	case VIRTIO_EBB_EVENT_LIMITS:
		return read_limits(event, cfg, ret);
	case VIRTIO_EBB_EVENT_CPU:
		if (event->num_nodes || ret->generation ||
		    !is_zero(event->ranges, sizeof(event->ranges)))
			return -EPROTO;
		return ebb_wire_read_cpu(&event->cpu, cfg, &ret->cpu);
	case VIRTIO_EBB_EVENT_MEM_REVOKED:
		return cfg->num_pools ? read_ranges(event, cfg, ret) : -EPROTO;
	case VIRTIO_EBB_EVENT_MEM_LEAVING:
		return cfg->can_leave ? read_ranges(event, cfg, ret) : -EPROTO;
	default:
		return -EPROTO;
	}
}

int ebb_wire_check_telemetry(const struct virtio_ebb_telemetry *report,
			     const struct ebb_wire_config *cfg)
{
	if (report->type != cpu_to_le16(VIRTIO_EBB_TELEMETRY_TOTALS) || report->reserved2 ||
	    report->reserved)
		return -EINVAL;
	if (!cfg->has_baseline &&
	    (report->baseline_ios || report->actual_ios || report->baseline_mib))
		return -EINVAL;
	return 0;
}

/* num_nodes if there is no such node. */
static unsigned int pxm_of_node(const int *linux_node, unsigned int num_nodes, u16 node)
{
	unsigned int i;

	for (i = 0; i < num_nodes; i++)
		if (linux_node[i] == node)
			break;
	return i;
}

int ebb_wire_make_vom(const struct ebb_vom *arg, const int *linux_node, unsigned int num_nodes,
		      struct virtio_ebb_vom *ret, u32 *ret_len)
{
	struct virtio_ebb_vom_bucket *out = (void *)(ret + 1);
	unsigned int last_pxm = 0;
	u64 last_value = 0;
	u32 i;

	if (!arg->seq || arg->num_buckets > EBB_VOM_MAX_BUCKETS)
		return -EINVAL;
	*ret = (struct virtio_ebb_vom) {
		.type = cpu_to_le16(VIRTIO_EBB_TELEMETRY_VOM),
		.num_buckets = cpu_to_le16(arg->num_buckets),
		.seq = cpu_to_le32(arg->seq),
	};
	for (i = 0; i < arg->num_buckets; i++) {
		const struct ebb_vom_bucket *in = &arg->buckets[i];
		unsigned int pxm = pxm_of_node(linux_node, num_nodes, in->node);

		if (pxm == num_nodes || !in->kib || in->reserved)
			return -EINVAL;
		if (i && (pxm < last_pxm || (pxm == last_pxm && in->value <= last_value)))
			return -EINVAL;
		last_pxm = pxm;
		last_value = in->value;
		out[i] = (struct virtio_ebb_vom_bucket) {
			.value = cpu_to_le64(in->value),
			.kib = cpu_to_le32(in->kib),
			.node = cpu_to_le16(pxm),
		};
	}
	*ret_len = sizeof(*ret) + arg->num_buckets * sizeof(*out);
	return 0;
}

int ebb_wire_add_errno(const struct ebb_wire_answer *answer)
{
	switch (answer->status) {
	case VIRTIO_EBB_ACK:
		return 0;
	case VIRTIO_EBB_BUSY:
		return -EAGAIN;
	case VIRTIO_EBB_NACK:
		break;
	default:
		return -EIO;
	}
	switch (answer->reason) {
	case VIRTIO_EBB_REASON_LIMIT:
		return -EDQUOT;
	case VIRTIO_EBB_REASON_CEILING:
		return -ERANGE;
	case VIRTIO_EBB_REASON_NODE:
		return -ENXIO;
	default:
		return -EIO;
	}
}

int ebb_wire_confirm_errno(const struct ebb_wire_answer *answer)
{
	if (answer->status == VIRTIO_EBB_ACK)
		return 0;
	if (answer->status == VIRTIO_EBB_NACK && answer->reason == VIRTIO_EBB_REASON_NOT_HELD)
		return -ENOENT;
	return answer->status == VIRTIO_EBB_BUSY ? -EAGAIN : -EIO;
}

bool ebb_wire_is_removed(const struct ebb_wire_answer *answer)
{
	return answer->status == VIRTIO_EBB_ACK ||
	       (answer->status == VIRTIO_EBB_NACK && answer->reason == VIRTIO_EBB_REASON_NOT_HELD);
}

bool ebb_wire_is_running(const struct ebb_wire_answer *answer)
{
	return answer->status == VIRTIO_EBB_NACK && answer->reason == VIRTIO_EBB_REASON_RUNNING;
}

static bool is_node_taken(const int *linux_node, unsigned int num_nodes, int node)
{
	unsigned int i;

	for (i = 0; i < num_nodes; i++)
		if (linux_node[i] == node)
			return true;
	return false;
}

void ebb_wire_fill_nodes(int *linux_node, unsigned int num_nodes)
{
	unsigned int i;
	int next = 0;

	for (i = 0; i < num_nodes; i++) {
		if (linux_node[i] >= 0)
			continue;
		while (is_node_taken(linux_node, num_nodes, next))
			next++;
		linux_node[i] = next;
	}
}

u16 ebb_wire_pxm_of_node(const struct ebb_wire_config *cfg, u32 linux_node)
{
	u32 i;

	for (i = 0; i < cfg->num_nodes; i++)
		if ((u32)cfg->linux_node[i] == linux_node)
			return i;
	return VIRTIO_EBB_NODE_ANY;
}
