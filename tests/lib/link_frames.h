/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Well-formed frames of the link protocol, as a device sends them, for tests to send or to break.
 */
#ifndef EBB_TESTS_LINK_FRAMES_H
#define EBB_TESTS_LINK_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include "backend/real/virtio_ebb_link.h"

#define LINK_FRAMES_MAX_CPUS	16
#define LINK_FRAMES_MAX_BUCKETS	VIRTIO_EBB_VOM_MAX_BUCKETS

struct link_frame_hello {
	struct virtio_ebb_link_hdr hdr;
	struct virtio_ebb_link_hello hello;
	struct virtio_ebb_link_cpu cpus[LINK_FRAMES_MAX_CPUS];
	struct virtio_ebb_link_pool pools[2]; /* they follow the last CPU that there is */
};

struct link_frame_mem {
	struct virtio_ebb_link_hdr hdr;
	struct virtio_ebb_link_mem mem;
	struct virtio_ebb_link_pool pools[2];
};

struct link_frame_request {
	struct virtio_ebb_link_hdr hdr;
	struct virtio_ebb_link_request request;
};

struct link_frame_telemetry {
	struct virtio_ebb_link_hdr hdr;
	struct virtio_ebb_telemetry telemetry;
};

struct link_frame_vom {
	struct virtio_ebb_link_hdr hdr;
	struct virtio_ebb_vom vom;
	struct virtio_ebb_vom_bucket buckets[LINK_FRAMES_MAX_BUCKETS];
};

/*
 * Each returns the length of the frame.  The HELLO has two nodes and, of num_cpus CPUs, one of
 * the startup set.
 */
size_t link_frame_hello(struct link_frame_hello *f, const uint8_t uuid[16], uint32_t max_cpus,
			uint32_t num_cpus, uint64_t resets);
/*
 * Gives a HELLO of link_frame_hello() pools for its nodes: 1 GiB each in blocks of 2 MiB, 512 MiB
 * requested, 256 MiB held, 64 MiB unconfirmed.
 */
size_t link_frame_hello_pools(struct link_frame_hello *f, uint16_t num_pools);
/* The pools of that HELLO, held_bytes in the first. */
size_t link_frame_mem(struct link_frame_mem *f, uint16_t num_pools, uint64_t held_bytes);
size_t link_frame_add(struct link_frame_request *f, uint64_t tag, uint16_t count, uint16_t node);
size_t link_frame_remove(struct link_frame_request *f, uint64_t tag, uint32_t vcpu, uint16_t node);
size_t link_frame_lend(struct link_frame_request *f, uint64_t tag, uint32_t vcpu, uint16_t node,
		       uint16_t flags);
size_t link_frame_telemetry(struct link_frame_telemetry *f, uint64_t committed);
/* The first half of the buckets of node 0, the rest of node 1; values 0, 10, 20...; 64 KiB each. */
size_t link_frame_vom(struct link_frame_vom *f, uint32_t seq, uint16_t num_buckets);

#endif
