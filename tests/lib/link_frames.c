/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Well-formed frames of the link protocol. */
#include <endian.h>
#include <string.h>
#include "tests/lib/link_frames.h"

static size_t frame_init(void *frame, uint16_t type, size_t len)
{
	struct virtio_ebb_link_hdr *h = frame;

	memset(frame, 0, sizeof(*h) + len);
	h->magic = htole32(VIRTIO_EBB_LINK_MAGIC);
	h->proto = htole16(VIRTIO_EBB_LINK_PROTO);
	h->type = htole16(type);
	h->len = htole32(len);
	return sizeof(*h) + len;
}

static void cpu_init(struct virtio_ebb_link_cpu *cpu, uint32_t vcpu, uint16_t node, uint16_t flags)
{
	cpu->cpu.hv_cpu_id = htole64(0x1000 + vcpu);
	cpu->cpu.arch_id = htole32(vcpu);
	cpu->cpu.node = htole16(node);
	cpu->cpu.flags = htole16(flags);
	cpu->vcpu = htole32(vcpu);
}

size_t link_frame_hello(struct link_frame_hello *f, const uint8_t uuid[16], uint32_t max_cpus,
			uint32_t num_cpus, uint64_t resets)
{
	size_t len = frame_init(f, VIRTIO_EBB_LINK_HELLO,
				sizeof(f->hello) + num_cpus * sizeof(f->cpus[0]));

	memcpy(f->hello.uuid, uuid, 16);
	f->hello.flags = htole32(VIRTIO_EBB_HELLO_F_DRIVER);
	f->hello.max_cpus = htole32(max_cpus);
	f->hello.num_cpus = htole32(num_cpus);
	f->hello.num_nodes = htole16(2);
	f->hello.resets = htole64(resets);
	for (uint32_t i = 0; i < num_cpus; i++)
		cpu_init(&f->cpus[i], i, i & 1, i == 0 ? VIRTIO_EBB_CPU_F_STARTUP : 0);
	return len;
}

static void pools_init(struct virtio_ebb_link_pool *pools, uint16_t num_pools)
{
	for (uint16_t i = 0; i < num_pools; i++)
		pools[i] = (struct virtio_ebb_link_pool){
			.node = htole16(i),
			.block_bytes = htole32(2u << 20),
			.size_bytes = htole64(1ull << 30),
			.requested_bytes = htole64(512ull << 20),
			.held_bytes = htole64(256ull << 20),
			.unconfirmed_bytes = htole64(64ull << 20),
		};
}

size_t link_frame_hello_pools(struct link_frame_hello *f, uint16_t num_pools)
{
	struct virtio_ebb_link_pool *pools = (void *)&f->cpus[le32toh(f->hello.num_cpus)];

	pools_init(pools, num_pools);
	f->hello.num_pools = htole16(num_pools);
	f->hdr.len = htole32(sizeof(f->hello) +
			     le32toh(f->hello.num_cpus) * sizeof(f->cpus[0]) +
			     num_pools * sizeof(pools[0]));
	return sizeof(f->hdr) + le32toh(f->hdr.len);
}

size_t link_frame_mem(struct link_frame_mem *f, uint16_t num_pools, uint64_t held_bytes)
{
	size_t len = frame_init(f, VIRTIO_EBB_LINK_MEM,
				sizeof(f->mem) + num_pools * sizeof(f->pools[0]));

	f->mem.num_pools = htole32(num_pools);
	pools_init(f->pools, num_pools);
	f->pools[0].held_bytes = htole64(held_bytes);
	return len;
}

size_t link_frame_add(struct link_frame_request *f, uint64_t tag, uint16_t count, uint16_t node)
{
	size_t len = frame_init(f, VIRTIO_EBB_LINK_REQUEST, sizeof(f->request));

	f->request.req.type = htole16(VIRTIO_EBB_REQ_CPU_ADD);
	f->request.req.tag = htole64(tag);
	f->request.req.u.cpu_add.count = htole16(count);
	f->request.req.u.cpu_add.node = htole16(node);
	return len;
}

size_t link_frame_remove(struct link_frame_request *f, uint64_t tag, uint32_t vcpu, uint16_t node)
{
	size_t len = frame_init(f, VIRTIO_EBB_LINK_REQUEST, sizeof(f->request));

	f->request.req.type = htole16(VIRTIO_EBB_REQ_CPU_REMOVE);
	f->request.req.tag = htole64(tag);
	cpu_init(&f->request.cpu, vcpu, node, 0);
	f->request.req.u.cpu_remove.hv_cpu_id = f->request.cpu.cpu.hv_cpu_id;
	return len;
}

size_t link_frame_lend(struct link_frame_request *f, uint64_t tag, uint32_t vcpu, uint16_t node,
		       uint16_t flags)
{
	size_t len = link_frame_remove(f, tag, vcpu, node);

	f->request.req.type = htole16(VIRTIO_EBB_REQ_CPU_LEND);
	f->request.req.flags = htole16(flags);
	return len;
}

size_t link_frame_telemetry(struct link_frame_telemetry *f, uint64_t committed)
{
	size_t len = frame_init(f, VIRTIO_EBB_LINK_TELEMETRY, sizeof(f->telemetry));

	f->telemetry.type = htole16(VIRTIO_EBB_TELEMETRY_TOTALS);
	f->telemetry.num_apps = htole16(1);
	f->telemetry.interval_ms = htole32(250);
	f->telemetry.committed = htole64(committed);
	f->telemetry.p50_us = htole32(120);
	return len;
}

size_t link_frame_vom(struct link_frame_vom *f, uint32_t seq, uint16_t num_buckets)
{
	size_t len = frame_init(f, VIRTIO_EBB_LINK_TELEMETRY,
				sizeof(f->vom) + num_buckets * sizeof(f->buckets[0]));

	f->vom.type = htole16(VIRTIO_EBB_TELEMETRY_VOM);
	f->vom.num_buckets = htole16(num_buckets);
	f->vom.seq = htole32(seq);
	for (uint16_t i = 0; i < num_buckets; i++) {
		uint16_t node = i >= num_buckets / 2;

		f->buckets[i].value = htole64(10ull * (node ? i - num_buckets / 2 : i));
		f->buckets[i].kib = htole32(64);
		f->buckets[i].node = htole16(node);
	}
	return len;
}
